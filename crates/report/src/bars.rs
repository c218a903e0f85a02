//! The bars of the timeline: the events, or, if there are too many, neighbours drawn as one.

use std::collections::HashMap;

use pio_trace::{Call, Event, HandleId, Split, Target};

/// Most bars that a page holds: a quarter of a million makes a page of about 7 MB that stays fluid.
pub(crate) const MOST_BARS: usize = 250_000;

/// One bar: an event, or several of one process, layer and operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) process: u32,
    pub(crate) call: Call,
    pub(crate) flags: u8,
    /// None if it has none, or if the events it stands for differ.
    pub(crate) handle: Option<HandleId>,
    pub(crate) target: Target,
    pub(crate) size: u64,
    pub(crate) result: i64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Of collective calls, where their time went if that is known: late ranks, library, files, nanoseconds.
    pub(crate) parts_ns: [u64; 3],
    /// Events it stands for.
    pub(crate) events: u64,
}

impl Bar {
    fn of(event: &Event, split: Option<Split>) -> Bar {
        let parts_ns = split
            .map_or([0; 3], |split| [split.late_ns, split.library_ns, split.files_ns.unwrap_or_default()]);
        Bar {
            parts_ns,
            process: event.process.0,
            call: event.call,
            flags: event.flags.bits(),
            handle: event.handle,
            target: event.target,
            size: event.size,
            result: event.result,
            start_ns: event.start_ns,
            end_ns: event.end_ns(),
            events: 1,
        }
    }

    fn merge(&mut self, other: &Bar) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.size = self.size.saturating_add(other.size);
        self.result = self.result.max(0).saturating_add(other.result.max(0));
        self.flags &= other.flags;
        self.target = Target::None;
        self.events += other.events;
        for (part_ns, other_ns) in self.parts_ns.iter_mut().zip(other.parts_ns) {
            *part_ns = part_ns.saturating_add(other_ns);
        }
        if self.handle != other.handle {
            self.handle = None;
        }
    }
}

/// Gathers bars; whenever they are too many, those of one process and function that fall within a span of time become
/// one, and the span doubles until they are few enough.
pub(crate) struct Bars {
    most: usize,
    duration_ns: u64,
    span_ns: u64,
    bars: Vec<Bar>,
    /// Latest bar of each process and function.
    latest: HashMap<(u32, Call), usize>,
}

impl Bars {
    pub(crate) fn new(duration_ns: u64, most: usize) -> Bars {
        Bars { most, duration_ns, span_ns: 0, bars: Vec::new(), latest: HashMap::new() }
    }

    pub(crate) fn add(&mut self, event: &Event, split: Option<Split>) {
        self.place(Bar::of(event, split));
        while self.bars.len() > self.most && self.span_ns <= self.duration_ns {
            // A first span far below a pixel of the whole: 2^-20 of the job.
            self.span_ns = (self.span_ns * 2).max(self.duration_ns >> 20).max(1);
            self.latest.clear();
            for bar in std::mem::take(&mut self.bars) {
                self.place(bar);
            }
        }
    }

    /// The bars, in order of their start, and the span within which events were drawn as one (0: none were).
    pub(crate) fn finish(self) -> (Vec<Bar>, u64) {
        (self.bars, self.span_ns)
    }

    fn place(&mut self, bar: Bar) {
        if self.span_ns > 0 {
            let lane = (bar.process, bar.call);
            let last = self.latest.get(&lane).and_then(|&index| self.bars.get_mut(index));
            let near = last.filter(|last| bar.end_ns.max(last.end_ns) - last.start_ns <= self.span_ns);
            if let Some(last) = near {
                last.merge(&bar);
                return;
            }
            self.latest.insert(lane, self.bars.len());
        }
        self.bars.push(bar);
    }
}

/// The name by which the page knows the operation of a call: the acknowledgements have their own.
pub(crate) fn op_name(call: Call) -> &'static str {
    match call {
        Call::StrategyAcknowledge => "acknowledgement",
        _ => call.op().name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_trace::{Flags, ProcessId};

    fn event(process: u32, start_ns: u64, elapsed_ns: u64) -> Event {
        Event {
            call: Call::Write,
            process: ProcessId(process),
            thread: 0,
            handle: Some(HandleId(0)),
            target: Target::Extent { offset: start_ns },
            memory: None,
            size: 10,
            result: 10,
            start_ns,
            elapsed_ns,
            think_ns: 0,
            used_ns: None,
            flags: Flags::NONE,
            operation: 0,
        }
    }

    #[test]
    fn few_events_are_kept_as_they_are() {
        let mut bars = Bars::new(100, 3);
        for start in [0, 1, 2] {
            bars.add(&event(0, start, 1), None);
        }
        let (bars, span_ns) = bars.finish();
        assert_eq!((bars.len(), span_ns), (3, 0));
        assert_eq!(bars[1], Bar::of(&event(0, 1, 1), None));
    }

    #[test]
    fn many_events_are_merged_and_none_is_lost() {
        let mut bars = Bars::new(100_000, 100);
        let split = Split { late_ns: 3, library_ns: 2, files_ns: None };
        for index in 0..10_000 {
            bars.add(&event(index % 2, u64::from(index) * 10, 5), Some(split));
        }
        let (bars, span_ns) = bars.finish();
        assert!(bars.len() <= 100 && bars.len() > 40, "{}", bars.len());
        assert_eq!(bars.iter().map(|bar| bar.events).sum::<u64>(), 10_000);
        assert_eq!(bars.iter().map(|bar| bar.size).sum::<u64>(), 100_000);
        for (part, sum_ns) in [30_000, 20_000, 0].into_iter().enumerate() {
            assert_eq!(bars.iter().map(|bar| bar.parts_ns[part]).sum::<u64>(), sum_ns);
        }
        assert!(bars.iter().all(|bar| bar.end_ns - bar.start_ns <= span_ns));
        assert!(bars.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
    }

    #[test]
    fn a_long_event_keeps_its_own_bar() {
        let mut bars = Bars::new(1000, 4);
        bars.add(&event(0, 0, 900), None);
        for start in 1..20 {
            bars.add(&event(1, start, 1), None);
        }
        let (bars, _) = bars.finish();
        assert_eq!((bars[0].events, bars[0].end_ns), (1, 900));
    }
}
