//! What the readers of other tools' traces have in common: they learn of processes, files and calls in any order, and
//! out comes a trace.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::ImportError;
use crate::sort::{Access, Sorter};
use pio_trace::TraceWriter;
use pio_trace::{File, FileId, Handle, HandleId, Process, ProcessId, Tables};

/// Places named in a note on lines or records that could not be used.
const MOST_PLACES: usize = 3;

/// Times beyond this (30 years) count from 1970.
const SINCE_1970_NS: u64 = 1_000_000_000_000_000_000;

/// Collects what becomes a trace.
pub(super) struct Builder {
    pub(super) tables: Tables,
    path: PathBuf,
    files: HashMap<String, FileId>,
    accesses: Sorter,
    count: u64,
    first_start_ns: u64,
    last_end_ns: u64,
    /// What the log's times are moved back by.
    origin_ns: u64,
    skipped: u64,
    places: Vec<String>,
}

impl Builder {
    /// For the log `path`, which the trace is named after.
    pub(super) fn new(path: &Path, tool: &str) -> Builder {
        let tables = Tables {
            job: path.display().to_string(),
            notes: vec![("imported from".into(), tool.into())],
            ..Tables::default()
        };
        Builder {
            tables,
            path: path.to_path_buf(),
            files: HashMap::new(),
            accesses: Sorter::new(),
            count: 0,
            first_start_ns: u64::MAX,
            last_end_ns: 0,
            origin_ns: 0,
            skipped: 0,
            places: Vec::new(),
        }
    }

    /// The log.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn add_process(
        &mut self,
        pid: u32,
        rank: Option<u32>,
        host: &str,
        start_ns: u64,
    ) -> ProcessId {
        let id = ProcessId(self.tables.processes.len() as u32);
        let (host, command) = (host.into(), String::new());
        self.tables.processes.push(Process { rank, pid, host, command, start_ns, end_ns: None });
        id
    }

    pub(super) fn process(&mut self, id: ProcessId) -> Option<&mut Process> {
        self.tables.processes.get_mut(id.index())
    }

    /// The file of this path, which may be known.
    pub(super) fn file(&mut self, path: &str) -> FileId {
        if let Some(&id) = self.files.get(path) {
            return id;
        }
        let id = FileId(self.tables.files.len() as u32);
        self.tables.files.push(File { path: path.to_owned() });
        self.files.insert(path.to_owned(), id);
        id
    }

    /// The file that a call names without opening it; none for one that is not known yet once there are many, as of a
    /// search through millions of files.
    pub(super) fn name(&mut self, path: &str) -> Option<FileId> {
        const MOST_FILES: usize = 1 << 18;
        (self.files.len() < MOST_FILES || self.files.contains_key(path)).then(|| self.file(path))
    }

    pub(super) fn add_handle(&mut self, file: FileId, process: ProcessId) -> HandleId {
        let id = HandleId(self.tables.handles.len() as u32);
        self.tables.handles.push(Handle { file, process, ranks: 1, collective: 0 });
        id
    }

    pub(super) fn push(&mut self, access: Access) -> Result<(), ImportError> {
        self.count += 1;
        self.first_start_ns = self.first_start_ns.min(access.start_ns);
        self.last_end_ns = self.last_end_ns.max(access.start_ns.saturating_add(access.elapsed_ns));
        self.accesses.push(access).map_err(ImportError::io(&self.path, SORTING))
    }

    /// A line or record that could not be used. Told as a note, with the first few places.
    pub(super) fn skip(&mut self, place: impl FnOnce() -> String) {
        self.skipped += 1;
        if self.places.len() < MOST_PLACES {
            self.places.push(place());
        }
    }

    pub(super) fn note(&mut self, name: &str, value: String) {
        self.tables.notes.push((name.into(), value));
    }

    /// A note of each name for what there is any of: how many, and what.
    pub(super) fn note_counts<'a>(&mut self, told: impl IntoIterator<Item = (&'a str, u64, &'a str)>) {
        for (name, count, what) in told.into_iter().filter(|(_, count, _)| *count > 0) {
            self.note(name, format!("{count} {what}"));
        }
    }

    /// Lets the trace begin with its first call, whatever the log counts from. Not for logs that give processes a start.
    pub(super) fn begin_with_first_call(&mut self) {
        self.begin_at(if self.is_empty() { 0 } else { self.first_start_ns });
    }

    /// Lets the trace begin with its first process, whatever the log counts from. For logs that give every process a start.
    pub(super) fn begin_with_first_process(&mut self) {
        let first_ns = self.tables.processes.iter().map(|process| process.start_ns).min();
        self.begin_at(first_ns.unwrap_or(0).min(self.first_start_ns));
    }

    fn begin_at(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        if origin_ns > SINCE_1970_NS {
            self.tables.epoch_ns = origin_ns;
        }
        for process in &mut self.tables.processes {
            process.start_ns = process.start_ns.saturating_sub(origin_ns);
            process.end_ns = process.end_ns.map(|end_ns| end_ns.saturating_sub(origin_ns));
        }
    }

    /// Whether nothing was understood so far.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// When the first call began, by the log's times.
    pub(super) fn first_start_ns(&self) -> u64 {
        self.first_start_ns
    }

    /// When the last call returned.
    pub(super) fn last_end_ns(&self) -> u64 {
        self.last_end_ns
    }

    /// Writes the trace. `name` stands for its path in errors.
    pub(super) fn write(mut self, out: impl Write, name: &Path) -> Result<u64, ImportError> {
        if self.skipped > 0 {
            let more = if self.skipped as usize > self.places.len() { ", …" } else { "" };
            let value = format!("{} not understood: {}{more}", self.skipped, self.places.join("; "));
            self.note("lost lines", value);
        }
        let mut writer = TraceWriter::new(out, self.tables)?;
        let mut accesses = self.accesses.finish().map_err(ImportError::io(name, SORTING))?;
        while let Some(mut access) = accesses.next().map_err(ImportError::io(name, SORTING))? {
            access.start_ns -= self.origin_ns;
            writer.push(&access.into())?;
        }
        writer.finish()?;
        Ok(self.count)
    }
}

const SORTING: &str = "sort calls in a temporary file";
