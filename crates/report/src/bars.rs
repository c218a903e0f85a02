//! The bars of the timeline: the events, or, if there are too many, neighbours drawn as one.

mod by_process;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use pio_trace::{Call, Event, Flags, Split, Target};

/// Most bars that a page holds: so many make a page of 4 to 7 MB that can be filtered within a frame or two.
const MOST_BARS: usize = 100_000;

/// Most bars of a page with so many processes: each also has names and rows, which take as much room as two bars and more.
pub(crate) fn most_bars(processes: usize) -> usize {
    MOST_BARS.saturating_sub(3 * processes).max(MOST_BARS / 2)
}

/// One bar: an event, or several of one thread and function on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) call: Call,
    pub(crate) flags: u16,
    pub(crate) files: Files,
    pub(crate) place: Place,
    pub(crate) size: u64,
    pub(crate) result: i64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// What its events took: less than from start to end where pauses are between them, more where they overlap.
    pub(crate) time_ns: u64,
    /// Of collective calls, where their time went if that is known: late ranks, library, files, nanoseconds.
    pub(crate) parts_ns: [u64; 3],
    /// Events it stands for.
    pub(crate) events: u64,
    /// Those that failed.
    pub(crate) failed: u64,
}

/// The page's numbers of the file that a call is on and of its second path; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) file: u32,
    pub(crate) other: u32,
}

/// Number of all files that the page does not name, and of bars of several files.
pub(crate) const OTHER_FILES: u32 = u32::MAX;

/// What a call is about: bytes of a file or view, a rank, a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: u64,
    /// First byte, or the rank.
    pub(crate) first: u64,
    /// Bytes from the first to behind the last.
    pub(crate) length: u64,
}

impl Place {
    const NONE: Place = Place { kind: 0, first: 0, length: 0 };
    const RANK: u64 = 3;

    fn of(event: &Event) -> Place {
        let bytes = |kind, first| Place { kind, first, length: event.size };
        match event.target {
            Target::None | Target::Mark { .. } => Place::NONE,
            Target::Extent { offset } => bytes(1, offset),
            Target::View { position, .. } => bytes(2, position),
            Target::Peer { rank } => Place { kind: Place::RANK, first: rank.into(), length: 0 },
            Target::Name { .. } => Place { kind: 4, ..Place::NONE },
            Target::Server { server, offset } => bytes(5 + u64::from(server), offset),
        }
    }

    /// Whether it is bytes of a file.
    pub(crate) fn is_in_file(self) -> bool {
        self.kind == 1 || self.kind > 4
    }

    fn merged(self, other: Place) -> Place {
        if self.kind != other.kind || self.kind == Place::RANK && self.first != other.first {
            return Place::NONE;
        }
        let first = self.first.min(other.first);
        let end = |place: Place| place.first.saturating_add(place.length);
        Place { first, length: end(self).max(end(other)) - first, ..self }
    }
}

impl Bar {
    /// That of one event.
    pub(crate) fn of(event: &Event, files: Files, split: Option<Split>) -> Bar {
        let parts_ns = split
            .map_or([0; 3], |split| [split.late_ns, split.library_ns, split.files_ns.unwrap_or_default()]);
        Bar {
            process: event.process.0,
            thread: event.thread,
            call: event.call,
            flags: event.flags.bits(),
            files,
            place: Place::of(event),
            size: event.size,
            result: event.result,
            start_ns: event.start_ns,
            end_ns: event.end_ns(),
            time_ns: event.elapsed_ns,
            parts_ns,
            events: 1,
            failed: u64::from(event.result < 0 && !event.flags.contains(Flags::UNFINISHED)),
        }
    }

    fn mean_size(&self) -> u64 {
        // A division takes as long as all else that is asked of an event.
        if self.events == 1 { self.size } else { self.size / self.events }
    }

    fn merge(&mut self, other: &Bar) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.size = self.size.saturating_add(other.size);
        self.result = self.result.max(0).saturating_add(other.result.max(0));
        self.flags &= other.flags;
        self.place = self.place.merged(other.place);
        self.events += other.events;
        self.failed += other.failed;
        for (part_ns, other_ns) in self.parts_ns.iter_mut().zip(other.parts_ns) {
            *part_ns = part_ns.saturating_add(other_ns);
        }
        if self.files != other.files {
            self.files = Files { file: OTHER_FILES, other: 0 };
        }
    }
}

/// What bars must have in common to become one, whatever the time between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lane {
    process: u32,
    call: Call,
    physical: bool,
    thread: u32,
    files: Files,
    /// Binary logarithm of the size.
    size: u8,
}

impl Hash for Lane {
    /// Three words: each takes a step that waits for the one before.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        hasher.write_u64(pair(self.process, self.thread));
        hasher.write_u64(pair(self.files.file, self.files.other));
        let kind = u32::from(self.call.number()) << 1 | u32::from(self.physical);
        hasher.write_u64(pair(kind, self.size.into()));
    }
}

/// What is told apart. The less, the fewer bars there can be at least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Calls,
    Threads,
    Files,
    Sizes,
}

impl Detail {
    fn less(self) -> Detail {
        match self {
            Detail::Sizes => Detail::Files,
            Detail::Files => Detail::Threads,
            Detail::Threads | Detail::Calls => Detail::Calls,
        }
    }

    fn lane(self, bar: &Bar) -> Lane {
        let known = |detail: Detail| self >= detail;
        Lane {
            process: bar.process,
            call: bar.call,
            physical: bar.flags & Flags::PHYSICAL.bits() != 0,
            thread: if known(Detail::Threads) { bar.thread } else { 0 },
            files: if known(Detail::Files) { bar.files } else { Files::default() },
            size: if known(Detail::Sizes) {
                bar.mean_size().checked_ilog2().map_or(0, |log| log as u8 + 1)
            } else {
                0
            },
        }
    }
}

/// Gathers bars; whenever they are too many, those of one lane that fall within a span of time become one, and the span
/// doubles until they are few enough. Where that would blur the picture, lanes are told apart by less instead.
pub(crate) struct Bars {
    most: usize,
    duration_ns: u64,
    span_ns: u64,
    detail: Detail,
    bars: Vec<Bar>,
    /// Latest bar of each lane.
    latest: HashMap<Lane, usize, BuildHasherDefault<Mixed>>,
}

/// A hash of the few numbers of a lane, which nobody chose to collide: each event asks for one, and the usual hash would take
/// as long as all else that is done for it.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, value: u64) {
        // Knuth's multiplier (The Art of Computer Programming 3, section 6.4): the golden ratio of 2^64, made odd.
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The table takes the low bits, and the high ones have most of the mixing.
        self.0 ^ self.0 >> 32
    }
}

impl Bars {
    pub(crate) fn new(duration_ns: u64, most: usize) -> Bars {
        Bars {
            most,
            duration_ns,
            span_ns: 0,
            detail: Detail::Sizes,
            bars: Vec::new(),
            latest: HashMap::default(),
        }
    }

    /// Adds the bar of an event; they come in order of its start.
    pub(crate) fn add(&mut self, bar: Bar) {
        self.place(bar);
        while self.bars.len() > self.most && self.span_ns <= self.duration_ns {
            self.coarsen();
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

    fn coarsen(&mut self) {
        // Bars of a hundredth of the job are as wide as a reader can do with. Sizes matter less.
        let parts = if self.detail == Detail::Sizes { 400 } else { 100 };
        if self.span_ns > self.duration_ns / parts && self.detail > Detail::Calls {
            self.detail = self.detail.less();
        } else {
            // A first span far below a pixel of the whole: 2^-20 of the job.
            self.span_ns = (self.span_ns * 2).max(self.duration_ns >> 20).max(1);
        }
    }

    fn place(&mut self, bar: Bar) {
        if self.span_ns > 0 {
            let lane = self.detail.lane(&bar);
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
    use pio_trace::{HandleId, ProcessId};

    const ONE_FILE: Files = Files { file: 1, other: 0 };

    fn event(process: u32, start_ns: u64, elapsed_ns: u64) -> Event {
        Event {
            handle: Some(HandleId(0)),
            target: Target::Extent { offset: start_ns },
            size: 10,
            result: 10,
            elapsed_ns,
            ..Event::new(Call::Write, ProcessId(process), start_ns)
        }
    }

    #[test]
    fn few_events_are_kept_as_they_are() {
        let mut bars = Bars::new(100, 3);
        for start in [0, 1, 2] {
            bars.add(Bar::of(&event(0, start, 1), ONE_FILE, None));
        }
        let (bars, span_ns) = bars.finish();
        assert_eq!((bars.len(), span_ns), (3, 0));
        assert_eq!(bars[1], Bar::of(&event(0, 1, 1), ONE_FILE, None));
    }

    #[test]
    fn many_events_are_merged_and_none_is_lost() {
        let mut bars = Bars::new(100_000, 100);
        let split = Split { late_ns: 3, library_ns: 2, files_ns: None };
        for index in 0..10_000 {
            bars.add(Bar::of(&event(index % 2, u64::from(index) * 10, 5), ONE_FILE, Some(split)));
        }
        let (bars, span_ns) = bars.finish();
        assert!(bars.len() <= 100 && bars.len() > 40, "{}", bars.len());
        let sum = |of: fn(&Bar) -> u64| bars.iter().map(of).sum::<u64>();
        assert_eq!(sum(|bar| bar.events), 10_000);
        assert_eq!(sum(|bar| bar.size), 100_000);
        assert_eq!(sum(|bar| bar.time_ns), 50_000);
        for (part, sum_ns) in [30_000, 20_000, 0].into_iter().enumerate() {
            assert_eq!(bars.iter().map(|bar| bar.parts_ns[part]).sum::<u64>(), sum_ns);
        }
        assert!(bars.iter().all(|bar| bar.end_ns - bar.start_ns <= span_ns));
        assert!(bars.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
        // Each covers the bytes of all its events: these are 20 apart and 10 long.
        let covered = |bar: &Bar| bar.place.length == (bar.events - 1) * 20 + 10;
        assert!(bars.iter().all(|bar| bar.place.kind == 1 && covered(bar)), "{:?}", bars[0]);
    }

    #[test]
    fn a_long_event_keeps_its_own_bar() {
        let mut bars = Bars::new(1000, 4);
        bars.add(Bar::of(&event(0, 0, 900), ONE_FILE, None));
        for start in 1..20 {
            bars.add(Bar::of(&event(1, start, 1), ONE_FILE, None));
        }
        let (bars, _) = bars.finish();
        assert_eq!((bars[0].events, bars[0].end_ns), (1, 900));
    }

    #[test]
    fn files_threads_and_sizes_stay_apart_while_there_is_room() {
        let gather = |most| {
            let mut bars = Bars::new(100_000, most);
            for index in 0..10_000_u64 {
                let (thread, file) = ((index % 2) as u32, (index / 2 % 3) as u32 + 1);
                let size = if index % 5 == 0 { 1000 } else { 10 };
                let call = Event { thread, size, result: -5, ..event(0, index * 10, 5) };
                bars.add(Bar::of(&call, Files { file, other: 0 }, None));
            }
            bars.finish().0
        };
        let apart = gather(5000);
        assert!(apart.len() > 1000 && apart.iter().all(|bar| (1..=3).contains(&bar.files.file)));
        assert!(apart.iter().all(|bar| [10, 1000].contains(&(bar.size / bar.events))));
        assert_eq!(apart.iter().filter(|bar| bar.thread == 1).map(|bar| bar.events).sum::<u64>(), 5000);
        // Then sizes are given up, at last the files.
        let few = gather(60);
        assert!(few.len() <= 60 && few.iter().any(|bar| bar.files.file == OTHER_FILES), "{}", few.len());
        assert_eq!(few.iter().map(|bar| bar.failed).sum::<u64>(), 10_000, "each failed, and is counted once");
    }
}
