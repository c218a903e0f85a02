//! The bars of a page, gathered from all events of its trace.
//!
//! That is half of what a page of many events takes, and the explanation must come first: it says how long the job was, which
//! files took the most time, and when late ranks came to collective calls. A whole trace tells the first of these before its
//! first event, and if it has few files, all are named. So the bars of most traces are gathered while they are explained
//! ([`Gathering`]), and the events are read once.

use pio_explain::Explanation;
use pio_trace::{BlockEvents, Event, Layer, Splits, Tables, Trace, TraceError};

use crate::bars::{Bar, Bars, Files, most_bars};
use crate::named_files::NamedFiles;

/// One event or more.
pub(crate) enum Part<'a> {
    One(&'a Event),
    Block(&'a BlockEvents),
}

/// Takes events, part by part, in order of start.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Part<'_>);

/// The bars, in order of their start, and what a page must know of them.
pub(crate) struct Gathered<'a> {
    pub(crate) bars: Vec<Bar>,
    /// Within which events were drawn as one, nanoseconds; 0: none were.
    pub(crate) span_ns: u64,
    pub(crate) files: NamedFiles<'a>,
}

impl<'a> Gathered<'a> {
    /// Of all events, and of the splits of the same.
    pub(crate) fn of(
        tables: &'a Tables,
        events: impl FnOnce(Take<'_>),
        splits: &Splits,
        found: &Explanation,
    ) -> Gathered<'a> {
        let mut bars = Bars::new(found.duration_ns, most_bars(found.processes.len()));
        let mut files = NamedFiles::of(tables, found);
        let mut all_splits = splits.walk();
        events(&mut |part| {
            if let Part::Block(block) = part
                && splits.is_empty()
            {
                return add_block(&mut bars, &mut files, block);
            }
            let mut add = |event: &Event| {
                let split = all_splits.of(event);
                if is_shown(&event) {
                    bars.add(Bar::of(event, files.of_event(event), split));
                }
            };
            match part {
                Part::One(event) => add(event),
                Part::Block(block) => block.each_in_order(|_, event| add(event)),
            }
        });
        let (bars, span_ns) = bars.finish();
        Gathered { bars, span_ns, files }
    }
}

/// Bars that are gathered while their trace is explained ([`explain_for_page`]).
pub struct Gathering<'a> {
    tables: &'a Tables,
    bars: Bars,
    /// In order of first use.
    files: NamedFiles<'a>,
    duration_ns: u64,
    most_bars: usize,
}

impl<'a> Gathering<'a> {
    /// None yet. No gathering where bars need more than events: the splits of collective calls, or a choice among the files.
    fn begin(trace: &'a Trace) -> Option<Gathering<'a>> {
        let tables = trace.tables();
        let files = NamedFiles::of_few(tables)?;
        if tables.handles.iter().any(|handle| handle.collective != 0) {
            return None;
        }
        let ranks = tables.processes.iter().filter(|process| process.rank.is_some()).count();
        let most_bars = most_bars(if ranks > 0 { ranks } else { tables.processes.len() });
        let duration_ns = trace.duration_ns();
        Some(Gathering { tables, bars: Bars::new(duration_ns, most_bars), files, duration_ns, most_bars })
    }

    /// As [`Gathered::of`] would find them; none if the job is not what it was taken for.
    pub(crate) fn finish(self, found: &Explanation) -> Option<Gathered<'a>> {
        if (self.duration_ns, self.most_bars) != (found.duration_ns, most_bars(found.processes.len())) {
            return None;
        }
        let mut files = NamedFiles::of(self.tables, found);
        let numbers: Vec<u32> = self.files.named().map(|file| files.number(file)).collect();
        // From 1; 0 is none.
        let in_page = |number: u32| match number.checked_sub(1) {
            Some(index) => numbers.get(index as usize).copied().unwrap_or(number),
            None => 0,
        };
        let (mut bars, span_ns) = self.bars.finish();
        for bar in &mut bars {
            bar.files = Files { file: in_page(bar.files.file), other: in_page(bar.files.other) };
        }
        Some(Gathered { bars, span_ns, files })
    }
}

/// The explanation of a whole trace file, as [`Explanation::of_trace`]; and, if it can be had on the way, what
/// [`html_of_trace`](crate::html_of_trace) would read the trace again for.
///
/// # Errors
/// If the file cannot be read.
pub fn explain_for_page<'a>(
    trace: &'a Trace,
    progress: &mut dyn FnMut(u64),
) -> Result<(Explanation, Option<Gathering<'a>>), TraceError> {
    let Some(mut gathering) = Gathering::begin(trace) else {
        return Ok((Explanation::of_trace(trace, progress)?, None));
    };
    let Gathering { bars, files, .. } = &mut gathering;
    let found = Explanation::of_trace_and(trace, &mut |block| add_block(bars, files, block), progress)?;
    Ok((found, Some(gathering)))
}

fn is_shown(event: &&Event) -> bool {
    event.layer() != Layer::Mark
}

/// Makes bars of all events of a block, none of which has a split.
fn add_block(bars: &mut Bars, files: &mut NamedFiles<'_>, block: &BlockEvents) {
    if let Some(events) = block.by_process() {
        let shown = events.iter().filter(is_shown);
        let shown = shown.map(|event| Some(Bar::of(event, files.of_later_event(event)?, None)));
        if bars.add_by_process(events.len(), shown) {
            return;
        }
    }
    block.each_in_order(|_, event| {
        if is_shown(&event) {
            bars.add(Bar::of(event, files.of_event(event), None));
        }
    });
}
