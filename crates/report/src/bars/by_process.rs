//! Bars of many events, process by process.
//!
//! In order of start thousands of processes have their turns one after the other, and the latest bars of each come from memory
//! again and again. What becomes of the events of one process depends on those of the others in one way alone: when there are
//! too many bars, all become coarser. So events are taken process by process as long as that does not happen; if it does, it is
//! as if nothing had been.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::{Bar, Bars, Lane, Mixed};

/// Events for each lane from which on it is worthwhile: the latest bar of each is kept meanwhile.
const EVENTS_OF_LANE: usize = 4;

impl Bars {
    /// Does what [`Bars::add`] would do with the events of `bars` in order of start, those that start together in the order
    /// here: here they come process by process, the `count` of them or less, those of a process in order of start. Does nothing,
    /// and says so, where the order matters for more: where there would be too many bars, or one of them is none.
    pub(crate) fn add_by_process(&mut self, count: usize, bars: impl Iterator<Item = Option<Bar>>) -> bool {
        if count < self.latest.len() * EVENTS_OF_LANE {
            return false;
        }
        let before = Before::of(self);
        for bar in bars {
            if let Some(bar) = bar {
                self.place(bar);
            } else {
                before.bring_back(self);
                return false;
            }
            // Later, none becomes coarser, and the order does not matter.
            if self.bars.len() > self.most && self.span_ns <= self.duration_ns {
                before.bring_back(self);
                return false;
            }
        }
        self.order_from(before.count);
        true
    }

    /// Brings the bars from this one on into order of start.
    fn order_from(&mut self, first: usize) {
        let added = self.bars.split_off(first);
        let mut order: Vec<usize> = (0..added.len()).collect();
        order.sort_by_key(|&index| added[index].start_ns);
        let mut places = vec![0; added.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = first + place;
        }
        for index in self.latest.values_mut().filter(|index| **index >= first) {
            *index = places[*index - first];
        }
        self.bars.extend(order.into_iter().map(|index| added[index].clone()));
    }
}

/// What may change while bars are added.
struct Before {
    count: usize,
    /// The bars that can grow: the latest of each lane.
    bars: Vec<(usize, Bar)>,
    latest: HashMap<Lane, usize, BuildHasherDefault<Mixed>>,
}

impl Before {
    fn of(bars: &Bars) -> Before {
        let kept = bars.latest.values().filter_map(|&index| Some((index, bars.bars.get(index)?.clone())));
        Before { count: bars.bars.len(), bars: kept.collect(), latest: bars.latest.clone() }
    }

    fn bring_back(self, bars: &mut Bars) {
        bars.bars.truncate(self.count);
        for (index, bar) in self.bars {
            bars.bars[index] = bar;
        }
        bars.latest = self.latest;
    }
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, HandleId, ProcessId, Target};
    use proptest::prelude::*;

    use super::super::Files;
    use super::*;

    fn bar(event: &Event) -> Bar {
        Bar::of(event, Files { file: 1 + event.thread, other: 0 }, None)
    }

    fn event() -> impl Strategy<Value = Event> {
        let calls = prop::sample::select(vec![Call::Pwrite, Call::Pread, Call::Fsync]);
        (calls, 0..5_u32, 0..2_u32, 0..40_u64, 0..100_u64, 0..3_000_u64).prop_map(
            |(call, process, thread, after_ns, elapsed_ns, size)| Event {
                thread,
                handle: Some(HandleId(0)),
                target: Target::Extent { offset: size * 7 },
                size,
                result: size as i64,
                elapsed_ns,
                ..Event::new(call, ProcessId(process), after_ns)
            },
        )
    }

    proptest! {
        #[test]
        fn by_process_bars_are_those_in_order_of_start(
            blocks in prop::collection::vec(prop::collection::vec(event(), 1..150), 1..8),
            most in 5..300_usize,
        ) {
            let (mut in_order, mut by_process) = (Bars::new(20_000, most), Bars::new(20_000, most));
            let mut start_ns = 0;
            for mut events in blocks {
                for event in &mut events {
                    // Some start together.
                    start_ns += event.start_ns.saturating_sub(10);
                    event.start_ns = start_ns;
                }
                events.sort_by_key(|event| event.process);
                let is_taken = by_process.add_by_process(events.len(), events.iter().map(|event| Some(bar(event))));
                events.sort_by_key(|event| event.start_ns);
                for event in &events {
                    in_order.add(bar(event));
                    if !is_taken {
                        by_process.add(bar(event));
                    }
                }
                prop_assert_eq!(&in_order.latest, &by_process.latest);
            }
            prop_assert_eq!(in_order.finish(), by_process.finish());
        }
    }

    #[test]
    fn what_has_no_bar_changes_nothing() {
        let mut bars = Bars::new(1000, 10);
        let events: Vec<_> = (0..8).map(|start_ns| Event::new(Call::Read, ProcessId(0), start_ns)).collect();
        assert!(bars.add_by_process(8, events.iter().map(|event| Some(bar(event)))));
        let known = (bars.bars.clone(), bars.latest.clone());
        let next = Event::new(Call::Read, ProcessId(0), 9);
        assert!(!bars.add_by_process(2, [Some(bar(&next)), None].into_iter()));
        assert_eq!((bars.bars, bars.latest), known);
    }
}
