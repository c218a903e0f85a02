//! The simulated trace: events in order of their start.
//!
//! A call is known when it is over, but its place in the trace is that of its start: events wait until no call that is
//! still running can have started before them. Where more wait than memory should hold (a single operation of millions
//! of requests), they are put aside in sorted parts, which are merged at the end.

use std::path::{Path, PathBuf};

use pio_trace::{Event, Layer, Tables, Trace, TraceError, TraceWriter};

/// Events in memory at most.
const WAITING_EVENTS: usize = 1 << 19;

/// Events of a block of a part: merging holds one block of each part, and a large job has dozens of parts.
const PART_BLOCK_EVENTS: usize = 1 << 13;

/// Looks whether events can go out after so many have come.
const STEP_EVENTS: usize = 1 << 15;

/// Writes events that come in order of their end.
pub(crate) struct Output {
    path: PathBuf,
    tables: Tables,
    writer: TraceWriter<std::fs::File>,
    waiting: Vec<Event>,
    look_at: usize,
    /// Sorted parts on disk, not yet in the trace.
    parts: Vec<PathBuf>,
}

impl Output {
    pub(crate) fn create(path: &Path, tables: Tables) -> Result<Output, TraceError> {
        let writer = TraceWriter::create(path, tables.clone())?;
        let waiting = Vec::new();
        Ok(Output { path: path.to_owned(), tables, writer, waiting, look_at: STEP_EVENTS, parts: Vec::new() })
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.waiting.push(event);
    }

    /// Whether it is time for [`Output::settle`].
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.look_at
    }

    /// Writes what starts before `certain_ns`: no event to come does.
    pub(crate) fn settle(&mut self, certain_ns: u64) -> Result<(), TraceError> {
        // A stable sort: equal events stay in the order in which they came.
        self.waiting.sort_by_key(place);
        if self.parts.is_empty() {
            let certain = self.waiting.partition_point(|event| event.start_ns < certain_ns);
            for event in self.waiting.drain(..certain) {
                self.writer.push(&event)?;
            }
        }
        if self.waiting.len() >= WAITING_EVENTS {
            self.put_aside()?;
        }
        self.look_at = self.waiting.len() + STEP_EVENTS;
        Ok(())
    }

    /// Writes everything. Process `i` ended at `ends_ns[i]`.
    pub(crate) fn finish(mut self, ends_ns: &[u64]) -> Result<(), TraceError> {
        self.waiting.sort_by_key(place);
        let parts = std::mem::take(&mut self.parts);
        let written = self.merge(&parts);
        for part in &parts {
            // What cannot be removed does no harm beyond its size.
            let _ = std::fs::remove_file(part);
        }
        written?;
        for (process, end_ns) in self.writer.tables_mut().processes.iter_mut().zip(ends_ns) {
            process.end_ns = Some(*end_ns);
        }
        self.writer.finish()
    }

    fn put_aside(&mut self) -> Result<(), TraceError> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}", self.parts.len()));
        let path = self.path.with_file_name(name);
        let mut writer = TraceWriter::create(&path, self.tables.clone())?;
        self.parts.push(path);
        for block in self.waiting.chunks(PART_BLOCK_EVENTS) {
            for event in block {
                writer.push(event)?;
            }
            writer.flush()?;
        }
        self.waiting.clear();
        writer.finish()
    }

    fn merge(&mut self, parts: &[PathBuf]) -> Result<(), TraceError> {
        let traces = parts.iter().map(|part| Trace::open(part)).collect::<Result<Vec<_>, _>>()?;
        let mut sources: Vec<_> = traces.iter().map(|trace| trace.events().peekable()).collect();
        let mut last = std::mem::take(&mut self.waiting).into_iter().peekable();
        loop {
            let mut best: Option<(usize, _)> = None;
            for (index, source) in sources.iter_mut().enumerate() {
                let Some(head) = source.peek() else { continue };
                // An error is taken out first, and ends the merge.
                let key = head.as_ref().map_or((0, 0, 0), place);
                if best.is_none_or(|(_, least)| key < least) {
                    best = Some((index, key));
                }
            }
            let in_memory = last.peek().map(place);
            let event = match (best, in_memory) {
                (Some((index, key)), other) if other.is_none_or(|other| key <= other) => {
                    sources[index].next()
                }
                _ => last.next().map(Ok),
            };
            match event {
                Some(event) => self.writer.push(&event?)?,
                None => return Ok(()),
            }
        }
    }
}

/// Order in the trace: by start, then process, a program's call before what it caused.
fn place(event: &Event) -> (u64, u32, u8) {
    let lower = u8::from(event.layer() != Layer::MpiIo);
    (event.start_ns, event.process.0, lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_trace::{Call, Process, ProcessId};

    fn event(start_ns: u64) -> Event {
        Event { elapsed_ns: 1, ..Event::new(Call::MpiBarrier, ProcessId(0), start_ns) }
    }

    #[test]
    fn what_does_not_fit_memory_is_put_aside_and_merged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pio");
        let process = Process {
            rank: Some(0),
            pid: 0,
            host: String::new(),
            command: String::new(),
            start_ns: 0,
            end_ns: None,
        };
        let mut output =
            Output::create(&path, Tables { processes: vec![process], ..Tables::default() }).unwrap();
        let count = WAITING_EVENTS as u64 * 2 + 12_345;
        for number in 0..count {
            // Any order; the call that started at 0 ends last.
            output.push(event(1 + number * 7919 % count));
            if output.is_full() {
                output.settle(0).unwrap();
            }
        }
        output.push(event(0));
        assert_eq!(output.parts.len(), 2);
        for part in &output.parts {
            // What merging holds of a part.
            let part = Trace::open(part).unwrap();
            assert!(part.blocks().iter().all(|block| block.event_count() <= PART_BLOCK_EVENTS));
        }
        output.finish(&[count]).unwrap();
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.tables().processes[0].end_ns, Some(count));
        let starts: Vec<u64> = trace.events().map(|event| event.unwrap().start_ns).collect();
        assert_eq!(starts.len() as u64, count + 1);
        assert!(starts.is_sorted());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
