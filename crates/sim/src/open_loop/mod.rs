//! Open loops: sources that make requests at random times, whether or not those before them are done.
//!
//! [`Sources`] is the generator that all open loads share: of messages on a network ([`crate::network::traffic`]), of
//! requests to an I/O node ([`crate::io_node::OpenLoad`]), and of both in the published studies. It knows when each source
//! makes its next request. What a request is, where it goes and what is measured of it is up to the load, which is a
//! [`Simulation`](crate::kernel::Simulation) of the sources and the models that serve them.

mod distribution;

pub use distribution::Distribution;

use pio_machine::Duration;

use crate::kernel::{Events, Time};

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Simulated time that is not measured, at the start.
    pub warm_up: Duration,
    /// Simulated time that is.
    pub measured: Duration,
}

/// Sources of requests, each with a clock of its own.
#[derive(Debug)]
pub struct Sources {
    sources: Vec<Source>,
    /// When which source makes its next request.
    coming: Events<u32>,
    most_under_way: Option<u32>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    /// When its next request is made.
    next: Time,
    under_way: u32,
    /// Whether it holds back its next request.
    is_holding: bool,
}

/// A request that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of its source.
    pub source: u32,
    /// When it goes off.
    pub now: Time,
    /// When it was made: before that, if the source held it back.
    pub made: Time,
}

impl Sources {
    /// So many sources, none of which makes anything yet. One that has `most_under_way` requests that are not done, if there
    /// is such a limit, holds back the next: so memory does not grow when more is asked for than can be served.
    pub fn new(count: u32, most_under_way: Option<u32>) -> Sources {
        Sources { sources: vec![Source::default(); count as usize], coming: Events::new(), most_under_way }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.sources.len() as u32
    }

    /// When a request goes off next.
    pub fn next_time(&self) -> Option<Time> {
        self.coming.next_time()
    }

    /// Takes out the request that goes off next. Its source makes no other until [`Sources::go_on`].
    pub fn pop(&mut self) -> Option<Arrival> {
        let (now, number) = self.coming.pop()?;
        let source = &mut self.sources[number as usize];
        source.under_way += u32::from(self.most_under_way.is_some());
        Some(Arrival { source: number, now, made: source.next })
    }

    /// A source makes its next request so long after the one before, or, for the first, after the beginning; it cannot go
    /// off before `now`. If it must be held back: when it is made.
    pub fn go_on(&mut self, now: Time, number: u32, gap: Duration) -> Option<Time> {
        let source = &mut self.sources[number as usize];
        source.next = source.next + gap;
        if self.most_under_way.is_some_and(|most| source.under_way >= most) {
            source.is_holding = true;
            return Some(source.next);
        }
        self.coming.add(source.next.max(now), number);
        None
    }

    /// A request of a source is done. A source that never holds back need not be told.
    pub fn done(&mut self, now: Time, number: u32) {
        let source = &mut self.sources[number as usize];
        source.under_way -= 1;
        if std::mem::take(&mut source.is_holding) {
            self.coming.add(source.next.max(now), number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_too_much_under_way_holds_back_and_keeps_its_clock() {
        let gap = Duration::from_picoseconds(10);
        let mut sources = Sources::new(2, Some(2));
        assert_eq!(sources.go_on(Time(0), 1, gap), None);
        for number in 1..=2 {
            let now = Time(10 * number);
            assert_eq!(sources.pop(), Some(Arrival { source: 1, now, made: now }));
            let held = sources.go_on(now, 1, gap);
            assert_eq!(held, (number == 2).then_some(Time(30)));
        }
        assert_eq!(sources.next_time(), None);
        sources.done(Time(45), 1);
        assert_eq!(sources.pop(), Some(Arrival { source: 1, now: Time(45), made: Time(30) }));
        // The clock did not stop: the next is made at 40.
        assert_eq!(sources.go_on(Time(45), 1, gap), Some(Time(40)));
    }
}
