//! Models, and the one loop that lets them happen.
//!
//! A [`Model`] is a part of a machine that keeps its own time: a network, an I/O node, a server, processors. It says when
//! it next has something to do, carries on when it is told to, and gives out what others must know: messages that have
//! arrived, requests that are done. Most models keep all their happenings in one [`Events`]: [`advance_events`] is the loop
//! inside them.
//!
//! A [`Simulation`] joins models: it takes what one gives out and gives another something to do. [`run`] lets whichever is
//! next carry on, and stops it before anything that another does, so that nobody ever acts on the past.

use super::events::Events;
use super::time::Time;

/// A part of a machine that keeps its own time.
pub trait Model {
    /// What others must know: that a message has arrived, that a request is done. It carries its time where that matters.
    type Out;

    /// When something happens next; nothing, if nothing is under way.
    fn next_time(&self) -> Option<Time>;

    /// Carries on up to `until`, or, if that comes first, to the first moment at which there is something to give out:
    /// that is added to `out`.
    fn advance(&mut self, until: Time, out: &mut Vec<Self::Out>);

    /// Carries on up to `until`, whatever it gives out on the way.
    fn advance_through(&mut self, until: Time, out: &mut Vec<Self::Out>) {
        while self.next_time().is_some_and(|next| next <= until) {
            self.advance(until, out);
        }
    }
}

/// The [`Model::advance`] of a model whose happenings all wait in one queue of events, as `handle` has them happen.
pub fn advance_events<M, E, O>(
    model: &mut M,
    events: impl Fn(&mut M) -> &mut Events<E>,
    mut handle: impl FnMut(&mut M, Time, E, &mut Vec<O>),
    until: Time,
    out: &mut Vec<O>,
) {
    let before = out.len();
    let mut last = until;
    while events(model).next_time().is_some_and(|next| next <= last) {
        let Some((now, event)) = events(model).pop() else { return };
        handle(model, now, event, out);
        if out.len() > before {
            // What else happens at this moment is given out with it.
            last = now;
        }
    }
}

/// `MODELS` models that act on each other. Its own queue of events counts as one of them.
pub trait Simulation<const MODELS: usize> {
    /// Why it cannot go on.
    type Error;

    /// When each of the models has something to do next. At the same time, the first goes first.
    fn next_times(&self) -> [Option<Time>; MODELS];

    /// Whether it is over, rather than that something happens at `next`. Unless told otherwise, it is when nothing is left
    /// to happen.
    fn is_over(&self, _next: Time) -> bool {
        false
    }

    /// Lets the model of this number carry on, not beyond `until`, and deals with what it gives out.
    ///
    /// # Errors
    /// If the simulation cannot go on.
    fn proceed(&mut self, model: usize, until: Time) -> Result<(), Self::Error>;
}

/// Lets everything happen in order of time until the simulation is over, or nothing is left to happen.
///
/// # Errors
/// Those of the simulation.
#[inline]
pub fn run<const MODELS: usize, S: Simulation<MODELS>>(simulation: &mut S) -> Result<(), S::Error> {
    while let Some(turn) = Turn::next(simulation.next_times()) {
        if simulation.is_over(turn.now) {
            break;
        }
        simulation.proceed(turn.model, turn.until)?;
    }
    Ok(())
}

/// Which model is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    model: usize,
    now: Time,
    /// What another does comes after this.
    until: Time,
}

impl Turn {
    #[inline]
    fn next<const MODELS: usize>(times: [Option<Time>; MODELS]) -> Option<Turn> {
        let mut next: Option<Turn> = None;
        for (model, time) in times.into_iter().enumerate() {
            let Some(now) = time else { continue };
            match &mut next {
                // It goes before those that were found at this time or later: they hold it up just before.
                Some(first) if now < first.now => {
                    let until = Time(first.now.0 - 1);
                    next = Some(Turn { model, now, until });
                }
                Some(first) => first.until = first.until.min(now),
                None => next = Some(Turn { model, now, until: Time::NEVER }),
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn turn(model: usize, now: u64, until: u64) -> Option<Turn> {
        Some(Turn { model, now: Time(now), until: Time(until) })
    }

    #[test]
    fn whoever_is_next_stops_before_what_another_does() {
        let at = |time| Some(Time(time));
        assert_eq!(Turn::next::<2>([None, None]), None);
        assert_eq!(Turn::next([None, at(7)]), turn(1, 7, u64::MAX));
        assert_eq!(Turn::next([at(7), at(7)]), turn(0, 7, 7));
        // The second stops just before the first, which goes first at the same time.
        assert_eq!(Turn::next([at(9), at(7)]), turn(1, 7, 8));
        assert_eq!(Turn::next([at(7), at(9)]), turn(0, 7, 9));
        assert_eq!(Turn::next([at(8), at(5), at(6)]), turn(1, 5, 6));
    }

    proptest! {
        #[test]
        fn nobody_acts_on_the_past(times in prop::array::uniform4(prop::option::of(0..6_u64))) {
            let times = times.map(|time| time.map(Time));
            let first = times.iter().enumerate().filter_map(|(model, time)| Some(((*time)?, model))).min();
            let turn = Turn::next(times);
            prop_assert_eq!(turn.map(|turn| (turn.now, turn.model)), first);
            let Some(turn) = turn else { return Ok(()) };
            for (other, time) in times.into_iter().enumerate().filter(|(other, _)| *other != turn.model) {
                let Some(time) = time else { continue };
                let last = if other < turn.model { Time(time.0.saturating_sub(1)) } else { time };
                prop_assert!(turn.until <= last);
            }
        }
    }

    /// A clock that ticks every so many picoseconds, and says how often it has ticked; and what it told.
    struct Clock {
        events: Events<u64>,
        every: u64,
    }

    impl Clock {
        fn tick(&mut self, now: Time, count: u64, told: &mut Vec<(Time, u64)>) {
            self.events.add(Time(now.0 + self.every), count + 1);
            if count.is_multiple_of(2) {
                told.push((now, count));
            }
        }
    }

    impl Model for Clock {
        type Out = (Time, u64);

        fn next_time(&self) -> Option<Time> {
            self.events.next_time()
        }

        fn advance(&mut self, until: Time, told: &mut Vec<(Time, u64)>) {
            advance_events(self, |clock| &mut clock.events, Clock::tick, until, told);
        }
    }

    struct Clocks {
        clocks: [Clock; 2],
        told: Vec<(usize, u64, u64)>,
    }

    impl Simulation<2> for Clocks {
        type Error = Infallible;

        fn next_times(&self) -> [Option<Time>; 2] {
            [self.clocks[0].next_time(), self.clocks[1].next_time()]
        }

        fn is_over(&self, next: Time) -> bool {
            next > Time(12)
        }

        fn proceed(&mut self, model: usize, until: Time) -> Result<(), Infallible> {
            let mut told = Vec::new();
            self.clocks[model].advance(until, &mut told);
            self.told.extend(told.iter().map(|(time, count)| (model, time.0, *count)));
            Ok(())
        }
    }

    #[test]
    fn everything_happens_in_order_of_time_and_of_the_models() {
        let clock = |every| {
            let mut events = Events::new();
            events.add(Time(every), 1);
            Clock { events, every }
        };
        let mut clocks = Clocks { clocks: [clock(3), clock(2)], told: Vec::new() };
        let Ok(()) = run(&mut clocks);
        // Every second tick is told: of 3 ps at 6 and 12, of 2 ps at 4, 8 and 12, where the first goes first.
        assert_eq!(clocks.told, [(1, 4, 2), (0, 6, 2), (1, 8, 4), (0, 12, 4), (1, 12, 6)]);
    }
}
