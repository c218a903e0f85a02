//! From calls to events: which process made them, what a file's name is, and where its file pointer stands.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;
use std::path::Path;

use super::meaning::{self, Meaning, Place, What};
use super::members::Damaged;
use super::names::{self, Names};
use super::others::Others;
use super::record::{Phase, Record};
use crate::builder::Builder;
use crate::error::ImportError;
use crate::sort::Access;
use pio_trace::Flags;
use pio_trace::{Call, Layer, Op};
use pio_trace::{FileId, HandleId, ProcessId};

/// Calls of a log that are kept until those that began before have come: threads write to a log in pieces.
const MOST_PENDING: usize = 1 << 16;

const MICROSECOND_NS: u64 = 1000;

/// What becomes of one or more logs.
pub(super) struct Reading {
    pub(super) builder: Builder,
    files: Names,
    hosts: Names,
    texts: Names,
    processes: Vec<Process>,
    /// By host and process number.
    known: HashMap<(String, u32), usize>,
    others: Others,
    coarsest_unit_ns: u64,
    empty_logs: u64,
    /// Calls of a kind that a trace does not have.
    passed_over: u64,
    /// Calls that do not say on which file.
    nameless: u64,
    /// Calls of which only sums were kept.
    aggregated: u64,
    unnamed_files: u64,
    /// Names that a log gives a hash after another one.
    shared_hashes: u64,
    sizes_lost: u64,
    offsets_lost: u64,
}

/// A process, while its calls are read.
struct Process {
    id: ProcessId,
    threads: HashMap<u64, u32>,
    open: HashMap<Key, Open>,
    /// Whether a log says that it began: then one that does not say that it ended was killed.
    says_when: bool,
    ended_ns: Option<u64>,
    last_ns: u64,
}

/// What stands for an open file: its name, whether it is a stream, and its descriptor if the log has those.
type Key = (FileId, bool, Option<i64>);

/// An open file.
#[derive(Clone, Copy)]
struct Open {
    handle: HandleId,
    /// Where the file pointer stands, if that is known.
    position: Option<u64>,
    appends: bool,
}

/// A call whose turn has not come.
struct Pending {
    start_ns: u64,
    /// In the log.
    number: u64,
    elapsed_ns: u64,
    process: usize,
    thread: u32,
    meaning: Meaning,
    file: FileId,
    other: Option<FileId>,
}

impl Pending {
    fn key(&self) -> Reverse<(u64, u64)> {
        Reverse((self.start_ns, self.number))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Pending) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Pending {}

impl Reading {
    pub(super) fn new(path: &Path) -> Reading {
        Reading {
            builder: Builder::new(path, "DFTracer"),
            files: Names::default(),
            hosts: Names::default(),
            texts: Names::default(),
            processes: Vec::new(),
            known: HashMap::new(),
            others: Others::default(),
            coarsest_unit_ns: MICROSECOND_NS,
            empty_logs: 0,
            passed_over: 0,
            nameless: 0,
            aggregated: 0,
            unnamed_files: 0,
            shared_hashes: 0,
            sizes_lost: 0,
            offsets_lost: 0,
        }
    }

    pub(super) fn log(&mut self) -> Log<'_> {
        Log {
            reading: self,
            own: Names::default(),
            files: HashMap::new(),
            host: String::new(),
            folder: None,
            unit_ns: MICROSECOND_NS,
            pending: BinaryHeap::new(),
            records: 0,
        }
    }

    /// Takes note of where a log could not be decompressed.
    pub(super) fn damaged(&mut self, place: &str, Damaged { places, count }: Damaged) {
        if let Some(first) = places.first() {
            let more = if count > 1 { format!(", and at {} more places", count - 1) } else { String::new() };
            let value = format!("{place}damaged at byte {first}: expected data of gzip{more}");
            self.builder.note("lost by damage", value);
        }
    }

    pub(super) fn finish(mut self, out: impl Write, name: &Path) -> Result<u64, ImportError> {
        self.refuse_what_has_no_calls()?;
        for process in &self.processes {
            let killed = process.says_when && process.ended_ns.is_none();
            if let Some(entry) = self.builder.process(process.id).filter(|_| !killed) {
                entry.end_ns = Some(process.last_ns.max(process.ended_ns.unwrap_or(0)));
            }
        }
        let told = [
            ("lost processes", self.empty_logs, "logs with nothing in them: their processes were killed"),
            (
                "lost calls",
                self.nameless,
                "that do not say on which file (DFTRACER_INC_METADATA=1 keeps files and sizes)",
            ),
            (
                "lost calls",
                self.aggregated,
                "of which the log has only sums (as with DFTRACER_ENABLE_AGGREGATION=1)",
            ),
            ("lost names", self.unnamed_files, "files of which the logs have only a hash"),
            (
                "lost names",
                self.shared_hashes,
                "files share a hash with another one in their log: calls count for the one named last",
            ),
            ("lost sizes", self.sizes_lost, "calls that do not say how large their data are"),
            ("lost offsets", self.offsets_lost, "calls: where the file pointer was is not known"),
            (
                "passed over",
                self.passed_over,
                "calls that a trace does not have (fork, wait, chdir, ftell, …)",
            ),
        ];
        self.builder.note_counts(told);
        if self.coarsest_unit_ns > MICROSECOND_NS {
            let value = format!(
                "in units of {} ms: DFTRACER_TIME_METRIC=US is finer",
                self.coarsest_unit_ns / 1_000_000
            );
            self.builder.note("times", value);
        }
        if let Some(text) = self.others.text() {
            self.builder.note("other events", text);
        }
        self.builder.begin_with_first_process();
        self.builder.write(out, name)
    }

    /// A trace without calls would look like a program without I/O.
    fn refuse_what_has_no_calls(&self) -> Result<(), ImportError> {
        let expected = match (self.builder.is_empty(), self.aggregated, self.nameless) {
            (true, 1.., _) => "single calls: a log written without DFTRACER_ENABLE_AGGREGATION=1",
            (true, 0, 1..) => "calls with their files: a log written with DFTRACER_INC_METADATA=1",
            _ => return Ok(()),
        };
        Err(ImportError::NoCalls { path: self.builder.path().to_owned(), expected: expected.to_owned() })
    }

    /// The process of a number on a host.
    fn process(&mut self, host: &str, pid: u32, at_ns: u64) -> usize {
        if let Some(&index) = self.known.get(&(host.to_owned(), pid)) {
            return index;
        }
        let name = self.hosts.get(host).unwrap_or(host).to_owned();
        let id = self.builder.add_process(pid, None, &name, at_ns);
        self.processes.push(Process {
            id,
            threads: HashMap::new(),
            open: HashMap::new(),
            says_when: false,
            ended_ns: None,
            last_ns: at_ns,
        });
        self.known.insert((host.to_owned(), pid), self.processes.len() - 1);
        self.processes.len() - 1
    }

    fn push(&mut self, made: &Pending) -> Result<(), ImportError> {
        let Pending { meaning: Meaning { call, what, size, result, descriptor }, .. } = *made;
        let Some(process) = self.processes.get_mut(made.process) else { return Ok(()) };
        let builder = &mut self.builder;
        let key = (made.file, call.layer() == Layer::Stdio, descriptor);
        let mut opened = Opened { process, builder, key };
        let mut access = Access {
            call,
            flags: Flags::NONE,
            process: opened.process.id,
            thread: made.thread,
            handle: None,
            name: None,
            other: None,
            offset: None,
            size: size.unwrap_or(0),
            result,
            start_ns: made.start_ns,
            elapsed_ns: made.elapsed_ns,
            operation: 0,
        };
        match what {
            What::Open(_) if result < 0 => access.name = Some(made.file),
            What::Open(flags) => {
                let appends = flags.contains(Flags::APPEND);
                access.handle = Some(opened.open(Some(0), appends).handle);
                access.flags = flags;
            }
            What::Close => access.handle = Some(opened.close()),
            What::Move(place) => {
                let open = opened.get();
                access.handle = Some(open.handle);
                let appends = open.appends && call.op() == Op::Write;
                access.offset = target(open, place).filter(|_| !appends);
                if matches!(place, Place::FromPosition(_)) {
                    let moved = u64::try_from(result).unwrap_or(0);
                    open.position = access.offset.and_then(|offset| offset.checked_add(moved));
                } else if place == Place::Unknown {
                    open.position = None;
                }
                access.flags = if appends { Flags::APPEND } else { Flags::NONE };
                self.sizes_lost += u64::from(size.is_none());
                self.offsets_lost += u64::from(access.offset.is_none() && !appends);
            }
            What::Seek(place) => {
                let open = opened.get();
                access.handle = Some(open.handle);
                if result >= 0 {
                    open.position = target(open, place);
                    access.offset = open.position;
                }
            }
            What::OnHandle(offset) => {
                access.handle = Some(opened.get().handle);
                access.offset = offset;
            }
            What::OnName => {
                access.name = Some(made.file);
                access.other = made.other;
                // A log names first what the link stands for.
                if let (Call::Symlink, Some(link)) = (call, made.other) {
                    access.name = Some(link);
                    access.other = Some(made.file);
                }
            }
        }
        self.builder.push(access)
    }
}

/// The open file that a call of a process works on.
struct Opened<'a> {
    process: &'a mut Process,
    builder: &'a mut Builder,
    key: Key,
}

impl Opened<'_> {
    fn open(&mut self, position: Option<u64>, appends: bool) -> &mut Open {
        let handle = self.builder.add_handle(self.key.0, self.process.id);
        let open = Open { handle, position, appends };
        self.process.open.entry(self.key).insert_entry(open).into_mut()
    }

    /// Of a file that was opened before DFTracer came, nothing but the name is known.
    fn get(&mut self) -> &mut Open {
        self.key = self.of_any_descriptor();
        if self.process.open.contains_key(&self.key) {
            let (builder, key, id) = (&mut *self.builder, self.key, self.process.id);
            return self.process.open.entry(key).or_insert_with(|| Open {
                handle: builder.add_handle(key.0, id),
                position: None,
                appends: false,
            });
        }
        self.open(None, false)
    }

    fn close(&mut self) -> HandleId {
        self.key = self.of_any_descriptor();
        match self.process.open.remove(&self.key) {
            Some(open) => open.handle,
            None => self.builder.add_handle(self.key.0, self.process.id),
        }
    }

    /// Opens of some versions do not say which descriptor they gave.
    fn of_any_descriptor(&self) -> Key {
        let (file, is_stream, _) = self.key;
        let without = (file, is_stream, None);
        let is_known = |key: &Key| self.process.open.contains_key(key);
        if !is_known(&self.key) && is_known(&without) { without } else { self.key }
    }
}

/// The byte that a place means, if that is known.
fn target(open: &Open, place: Place) -> Option<u64> {
    match place {
        Place::At(offset) => Some(offset),
        Place::FromPosition(distance) => open.position?.checked_add_signed(distance),
        Place::Unknown => None,
    }
}

/// A log, while it is read.
pub(super) struct Log<'a> {
    pub(super) reading: &'a mut Reading,
    /// Of files, as this log says.
    own: Names,
    /// The files that its hashes stand for.
    files: HashMap<String, FileId>,
    /// The hash of the host that it was written on.
    host: String,
    /// The working folder.
    folder: Option<String>,
    unit_ns: u64,
    pending: BinaryHeap<Pending>,
    records: u64,
}

impl Log<'_> {
    /// Whether the record could be understood.
    pub(super) fn read(&mut self, record: &Record) -> Result<bool, ImportError> {
        self.records += 1;
        match (record.phase, &*record.category) {
            (Phase::Metadata, _) => self.metadata(record),
            (Phase::Aggregated, _) => {
                let calls = record.arguments.size("dft_cnt").unwrap_or(1);
                self.reading.aggregated = self.reading.aggregated.saturating_add(calls);
            }
            (Phase::Complete, category) => {
                let Some((start_ns, elapsed_ns)) = self.times(record) else { return Ok(false) };
                let process = self.process(record, start_ns, elapsed_ns);
                match category {
                    "POSIX" | "STDIO" => return self.call(record, process, start_ns, elapsed_ns),
                    "dftracer" => self.life(record, process, start_ns),
                    _ => self.reading.others.add(category, &record.name),
                }
            }
            (Phase::Other, category) => self.reading.others.add(category, &record.name),
        }
        Ok(true)
    }

    /// Takes the calls whose turn has not come, in their order. `place` names the log in notes.
    pub(super) fn finish(mut self, place: &str) -> Result<(), ImportError> {
        while let Some(made) = self.pending.pop() {
            self.reading.push(&made)?;
        }
        self.reading.empty_logs += u64::from(self.records == 0 && !place.is_empty());
        Ok(())
    }

    fn times(&self, record: &Record) -> Option<(u64, u64)> {
        let start_ns = record.start?.checked_mul(self.unit_ns)?;
        Some((start_ns, record.elapsed.checked_mul(self.unit_ns)?))
    }

    /// What a hash stands for, or something about a process.
    fn metadata(&mut self, record: &Record) {
        let (Some(name), Some(value)) = (record.arguments.text("name"), record.arguments.text("value"))
        else {
            return;
        };
        match (&*record.name, &*name, &*value) {
            ("FH", path, hash) => {
                let before = self.own.get(hash);
                self.reading.shared_hashes += u64::from(before.is_some_and(|before| before != path));
                self.own.learn(hash, path);
                self.reading.files.learn(hash, path);
                self.files.remove(hash);
            }
            ("HH", host, hash) => {
                self.reading.hosts.learn(hash, host);
                hash.clone_into(&mut self.host);
            }
            ("SH", text, hash) => self.reading.texts.learn(hash, text),
            ("CM", "time_metric", unit) => {
                self.unit_ns = match unit {
                    "NS" => 1,
                    "MS" => 1_000_000,
                    "SEC" => 1_000_000_000,
                    _ => MICROSECOND_NS,
                };
                self.reading.coarsest_unit_ns = self.reading.coarsest_unit_ns.max(self.unit_ns);
            }
            ("PR", "rank", rank) => self.rank(record, rank),
            ("process_name", title, _) => {
                if let Some(rank) = title.strip_prefix("Rank ") {
                    self.rank(record, rank);
                }
            }
            _ => {}
        }
    }

    fn rank(&mut self, record: &Record, rank: &str) {
        let host = self.host_of(record);
        let Ok(rank) = rank.parse() else { return };
        let Some(&index) = self.reading.known.get(&(host, record.pid)) else { return };
        let Some(process) = self.reading.processes.get(index) else { return };
        if let Some(entry) = self.reading.builder.process(process.id) {
            entry.rank = Some(rank);
        }
    }

    fn host_of(&self, record: &Record) -> String {
        let arguments = &record.arguments;
        let own = arguments.text("hhash").or_else(|| arguments.text("hostname"));
        own.map_or_else(|| self.host.clone(), |host| host.into_owned())
    }

    /// The process that a record is of.
    fn process(&mut self, record: &Record, start_ns: u64, elapsed_ns: u64) -> usize {
        let host = self.host_of(record);
        let index = self.reading.process(&host, record.pid, start_ns);
        if let Some(process) = self.reading.processes.get_mut(index) {
            process.last_ns = process.last_ns.max(start_ns.saturating_add(elapsed_ns));
            if let Some(entry) = self.reading.builder.process(process.id) {
                entry.start_ns = entry.start_ns.min(start_ns);
            }
        }
        index
    }

    /// A process begins or ends.
    fn life(&mut self, record: &Record, index: usize, at_ns: u64) {
        let Some(process) = self.reading.processes.get_mut(index) else { return };
        match &*record.name {
            "start" => {
                process.says_when = true;
                process.ended_ns = None;
                let text = |name| record.arguments.text(name);
                let command =
                    text("cmd_hash").and_then(|hash| self.reading.texts.get(&hash).map(str::to_owned));
                if let (Some(command), Some(entry)) = (command, self.reading.builder.process(process.id)) {
                    entry.command = command.replace(';', " ");
                }
                let folder = text("cwd").and_then(|hash| self.file_name(&hash).map(str::to_owned));
                self.folder = folder.filter(|folder| folder.starts_with('/'));
            }
            "end" => process.ended_ns = Some(at_ns),
            _ => {}
        }
    }

    fn call(
        &mut self,
        record: &Record,
        process: usize,
        start_ns: u64,
        elapsed_ns: u64,
    ) -> Result<bool, ImportError> {
        let Some(meaning) = meaning::of(record) else {
            self.reading.passed_over += 1;
            return Ok(true);
        };
        let Some(file) = self.file(record, "fhash", "fname") else {
            self.reading.nameless += 1;
            return Ok(true);
        };
        let other =
            self.file(record, "newpath_hash", "newpath").or_else(|| self.file(record, "path2_hash", "path2"));
        let Some(entry) = self.reading.processes.get_mut(process) else { return Ok(false) };
        let next = entry.threads.len() as u32;
        let thread = *entry.threads.entry(record.tid).or_insert(next);
        let number = self.records;
        self.pending.push(Pending { start_ns, number, elapsed_ns, process, thread, meaning, file, other });
        if self.pending.len() > MOST_PENDING
            && let Some(made) = self.pending.pop()
        {
            self.reading.push(&made)?;
        }
        Ok(true)
    }

    /// The file that a call names: by its hash or, before version 1, by its path.
    fn file(&mut self, record: &Record, hash: &str, path: &str) -> Option<FileId> {
        let folder = self.folder.as_deref();
        let Some(hash) = record.arguments.text(hash).filter(|hash| *hash != "0" && !hash.is_empty()) else {
            let path = record.arguments.text(path).filter(|path| !path.is_empty())?;
            return Some(self.reading.builder.file(&names::whole(&path, folder)));
        };
        if let Some(&file) = self.files.get(&*hash) {
            return Some(file);
        }
        let path = match self.file_name(&hash) {
            Some(path) => names::whole(path, folder).into_owned(),
            None => {
                self.reading.unnamed_files += 1;
                format!("file of hash {hash}")
            }
        };
        let file = self.reading.builder.file(&path);
        self.files.insert(hash.into_owned(), file);
        Some(file)
    }

    fn file_name(&self, hash: &str) -> Option<&str> {
        self.own.get(hash).or_else(|| self.reading.files.get(hash))
    }
}
