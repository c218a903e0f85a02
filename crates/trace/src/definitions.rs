//! Table entries in definitions blocks: written once, when first needed, in an order in which every entry refers only
//! to entries before it.

use pio_layout::{Datatype, View};

use crate::file_systems::{FileSystem, Placement, Striping};
use crate::format::TARGET_RAW_LEN;
use crate::tables::{File, FileId, FileSystemId, Handle, Process, ProcessId, Tables};
use crate::varint;

/// First byte of an entry: what it defines. Part of the file format: add at the end, never renumber.
mod tag {
    pub(super) const JOB: u8 = 1;
    pub(super) const EPOCH: u8 = 2;
    pub(super) const NOTE: u8 = 3;
    pub(super) const PROCESS: u8 = 4;
    pub(super) const FILE: u8 = 5;
    pub(super) const HANDLE: u8 = 6;
    pub(super) const VIEW: u8 = 7;
    pub(super) const DATATYPE: u8 = 8;
    /// A process that was defined as running has ended.
    pub(super) const PROCESS_END: u8 = 9;
    pub(super) const MARK_NAME: u8 = 10;
    pub(super) const FILE_SYSTEM: u8 = 11;
    pub(super) const PLACEMENT: u8 = 12;
}

/// Why tables cannot be written.
#[derive(Debug)]
pub(crate) enum Refusal {
    Changed(&'static str),
    Unknown { what: &'static str, id: u32, known: usize },
}

/// The payload of one definitions block.
#[derive(Default)]
pub(crate) struct Payload {
    pub(crate) raw: Vec<u8>,
    pub(crate) count: u32,
}

/// Knows which entries are in the file already.
#[derive(Default)]
pub(crate) struct DefinitionsEncoder {
    started: bool,
    written: Tables,
}

impl DefinitionsEncoder {
    /// Payloads with all entries that were added since the last call; the first call gives at least one.
    pub(crate) fn encode_new(&mut self, tables: &Tables) -> Result<Vec<Payload>, Refusal> {
        self.check_unchanged(tables)?;
        check_references(tables, &self.written)?;
        let mut payloads = Payloads::default();
        if !self.started {
            payloads.entry(tag::JOB, |out| varint::put_str(out, &tables.job));
            payloads.entry(tag::EPOCH, |out| varint::put(out, tables.epoch_ns));
        }
        let written = &self.written;
        for (name, value) in &tables.notes[written.notes.len()..] {
            payloads.entry(tag::NOTE, |out| {
                varint::put_str(out, name);
                varint::put_str(out, value);
            });
        }
        for (id, (old, new)) in written.processes.iter().zip(&tables.processes).enumerate() {
            if let (None, Some(end_ns)) = (old.end_ns, new.end_ns) {
                payloads.entry(tag::PROCESS_END, |out| {
                    varint::put(out, id as u64);
                    varint::put(out, end_ns);
                });
            }
        }
        for process in &tables.processes[written.processes.len()..] {
            payloads.entry(tag::PROCESS, |out| put_process(out, process));
        }
        for file in &tables.files[written.files.len()..] {
            payloads.entry(tag::FILE, |out| varint::put_str(out, &file.path));
        }
        for handle in &tables.handles[written.handles.len()..] {
            payloads.entry(tag::HANDLE, |out| put_handle(out, handle));
        }
        for view in &tables.views[written.views.len()..] {
            payloads.entry(tag::VIEW, |out| view.encode(out));
        }
        for datatype in &tables.datatypes[written.datatypes.len()..] {
            payloads.entry(tag::DATATYPE, |out| datatype.encode(out));
        }
        for name in &tables.mark_names[written.mark_names.len()..] {
            payloads.entry(tag::MARK_NAME, |out| varint::put_str(out, name));
        }
        for file_system in &tables.file_systems[written.file_systems.len()..] {
            payloads.entry(tag::FILE_SYSTEM, |out| {
                varint::put_str(out, &file_system.kind);
                varint::put_str(out, &file_system.mount);
            });
        }
        for placement in &tables.placements[written.placements.len()..] {
            payloads.entry(tag::PLACEMENT, |out| put_placement(out, placement));
        }
        self.remember(tables);
        Ok(payloads.finished())
    }

    /// Whether all that is in the file is still the same in `tables`. A process may have ended since.
    fn check_unchanged(&self, tables: &Tables) -> Result<(), Refusal> {
        let written = &self.written;
        let same_or_ended = |(old, new): (&Process, &Process)| {
            old == new || (old.end_ns.is_none() && *old == Process { end_ns: None, ..new.clone() })
        };
        let processes_grew = written.processes.len() <= tables.processes.len()
            && written.processes.iter().zip(&tables.processes).all(same_or_ended);
        let checks = [
            ("the job's name", !self.started || written.job == tables.job),
            ("the job's start", !self.started || written.epoch_ns == tables.epoch_ns),
            ("the list of notes", tables.notes.starts_with(&written.notes)),
            ("the list of processes", processes_grew),
            ("the list of files", tables.files.starts_with(&written.files)),
            ("the list of handles", tables.handles.starts_with(&written.handles)),
            ("the list of views", tables.views.starts_with(&written.views)),
            ("the list of datatypes", tables.datatypes.starts_with(&written.datatypes)),
            ("the list of names of marks", tables.mark_names.starts_with(&written.mark_names)),
            ("the list of file systems", tables.file_systems.starts_with(&written.file_systems)),
            ("the list of placements", tables.placements.starts_with(&written.placements)),
        ];
        match checks.into_iter().find(|(_, unchanged)| !unchanged) {
            Some((what, _)) => Err(Refusal::Changed(what)),
            None => Ok(()),
        }
    }

    fn remember(&mut self, tables: &Tables) {
        let written = &mut self.written;
        if !self.started {
            self.started = true;
            written.job.clone_from(&tables.job);
            written.epoch_ns = tables.epoch_ns;
        }
        for (old, new) in written.processes.iter_mut().zip(&tables.processes) {
            old.end_ns = new.end_ns;
        }
        extend(&mut written.notes, &tables.notes);
        extend(&mut written.processes, &tables.processes);
        extend(&mut written.files, &tables.files);
        extend(&mut written.handles, &tables.handles);
        extend(&mut written.views, &tables.views);
        extend(&mut written.datatypes, &tables.datatypes);
        extend(&mut written.mark_names, &tables.mark_names);
        extend(&mut written.file_systems, &tables.file_systems);
        extend(&mut written.placements, &tables.placements);
    }
}

/// Appends to `old` what `new` has beyond it.
fn extend<T: Clone>(old: &mut Vec<T>, new: &[T]) {
    old.extend_from_slice(&new[old.len()..]);
}

fn check_references(tables: &Tables, checked: &Tables) -> Result<(), Refusal> {
    for handle in &tables.handles[checked.handles.len()..] {
        check_handle(handle, tables)?;
    }
    for placement in &tables.placements[checked.placements.len()..] {
        check_placement(placement, tables)?;
    }
    Ok(())
}

fn check_placement(placement: &Placement, tables: &Tables) -> Result<(), Refusal> {
    let Placement { file, file_system, .. } = *placement;
    if file.index() >= tables.files.len() {
        return Err(Refusal::Unknown { what: "file", id: file.0, known: tables.files.len() });
    }
    if file_system.index() >= tables.file_systems.len() {
        return Err(Refusal::Unknown {
            what: "file system",
            id: file_system.0,
            known: tables.file_systems.len(),
        });
    }
    Ok(())
}

fn check_handle(handle: &Handle, tables: &Tables) -> Result<(), Refusal> {
    if handle.file.index() >= tables.files.len() {
        return Err(Refusal::Unknown { what: "file", id: handle.file.0, known: tables.files.len() });
    }
    if handle.process.index() >= tables.processes.len() {
        return Err(Refusal::Unknown {
            what: "process",
            id: handle.process.0,
            known: tables.processes.len(),
        });
    }
    Ok(())
}

/// Entries dealt out to payloads of about the target size.
#[derive(Default)]
struct Payloads {
    full: Vec<Payload>,
    open: Payload,
}

impl Payloads {
    fn entry(&mut self, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.open.raw.push(tag);
        body(&mut self.open.raw);
        self.open.count += 1;
        if self.open.raw.len() >= TARGET_RAW_LEN {
            self.full.push(std::mem::take(&mut self.open));
        }
    }

    fn finished(mut self) -> Vec<Payload> {
        if self.open.count > 0 {
            self.full.push(self.open);
        }
        self.full
    }
}

fn put_process(out: &mut Vec<u8>, process: &Process) {
    varint::put(out, process.rank.map_or(0, |rank| u64::from(rank) + 1));
    varint::put(out, u64::from(process.pid));
    varint::put_str(out, &process.host);
    varint::put_str(out, &process.command);
    varint::put(out, process.start_ns);
    varint::put(out, u64::from(process.end_ns.is_some()));
    if let Some(end_ns) = process.end_ns {
        varint::put(out, end_ns);
    }
}

fn put_handle(out: &mut Vec<u8>, handle: &Handle) {
    varint::put(out, u64::from(handle.file.0));
    varint::put(out, u64::from(handle.process.0));
    varint::put(out, u64::from(handle.ranks));
    varint::put(out, handle.collective);
}

/// A file that lies on no targets has 0 of them.
fn put_placement(out: &mut Vec<u8>, placement: &Placement) {
    varint::put(out, u64::from(placement.file.0));
    varint::put(out, u64::from(placement.file_system.0));
    varint::put(out, placement.striping.map_or(0, |striping| u64::from(striping.targets)));
    if let Some(striping) = placement.striping {
        varint::put(out, striping.unit_bytes);
    }
}

/// Adds the entries of a definitions block to `tables`, or says what was expected instead.
pub(crate) fn decode(mut raw: &[u8], count: u32, tables: &mut Tables) -> Result<(), String> {
    let input = &mut raw;
    for i in 0..count {
        decode_entry(input, tables).map_err(|expected| format!("{expected} as definition {i} of a block"))?;
    }
    if !input.is_empty() {
        return Err(format!("nothing after the {count} definitions of a block, found {} bytes", input.len()));
    }
    Ok(())
}

fn decode_entry(input: &mut &[u8], tables: &mut Tables) -> Result<(), String> {
    let (&tag, rest) = input.split_first().ok_or("a definition, found the end of the block")?;
    *input = rest;
    match tag {
        tag::JOB => tables.job = varint::take_str(input).ok_or("the name of a job")?,
        tag::EPOCH => tables.epoch_ns = varint::take(input).ok_or("a time")?,
        tag::NOTE => {
            let name = varint::take_str(input).ok_or("the name of a note")?;
            let value = varint::take_str(input).ok_or("the text of a note")?;
            tables.notes.push((name, value));
        }
        tag::PROCESS => tables.processes.push(take_process(input).ok_or("a process")?),
        tag::FILE => {
            let path = varint::take_str(input).ok_or("the path of a file")?;
            tables.files.push(File { path });
        }
        tag::HANDLE => {
            let handle = take_handle(input).ok_or("a handle")?;
            check_handle(&handle, tables).map_err(|_| "a handle of a known file and process")?;
            tables.handles.push(handle);
        }
        tag::VIEW => tables.views.push(View::decode(input).map_err(|e| format!("a view ({e})"))?),
        tag::DATATYPE => {
            tables.datatypes.push(Datatype::decode(input).map_err(|e| format!("a datatype ({e})"))?);
        }
        tag::PROCESS_END => {
            let (id, end_ns) =
                varint::take_u32(input).zip(varint::take(input)).ok_or("the end of a process")?;
            let running = tables.processes.get_mut(id as usize).filter(|process| process.end_ns.is_none());
            running.ok_or("the end of a running process")?.end_ns = Some(end_ns);
        }
        tag::MARK_NAME => {
            tables.mark_names.push(varint::take_str(input).ok_or("the name of a mark")?);
        }
        tag::FILE_SYSTEM => {
            let kind = varint::take_str(input).ok_or("the kind of a file system")?;
            let mount = varint::take_str(input).ok_or("where a file system is mounted")?;
            tables.file_systems.push(FileSystem { kind, mount });
        }
        tag::PLACEMENT => {
            let placement = take_placement(input).ok_or("a placement")?;
            check_placement(&placement, tables)
                .map_err(|_| "a placement of a known file on a known file system")?;
            tables.placements.push(placement);
        }
        other => return Err(format!("a definition of a known kind (1 to 12), found {other},")),
    }
    Ok(())
}

fn take_process(input: &mut &[u8]) -> Option<Process> {
    let rank = match varint::take(input)? {
        0 => None,
        above => Some(u32::try_from(above - 1).ok()?),
    };
    Some(Process {
        rank,
        pid: varint::take_u32(input)?,
        host: varint::take_str(input)?,
        command: varint::take_str(input)?,
        start_ns: varint::take(input)?,
        end_ns: match varint::take(input)? {
            0 => None,
            1 => Some(varint::take(input)?),
            _ => return None,
        },
    })
}

fn take_handle(input: &mut &[u8]) -> Option<Handle> {
    Some(Handle {
        file: FileId(varint::take_u32(input)?),
        process: ProcessId(varint::take_u32(input)?),
        ranks: varint::take_u32(input)?,
        collective: varint::take(input)?,
    })
}

fn take_placement(input: &mut &[u8]) -> Option<Placement> {
    Some(Placement {
        file: FileId(varint::take_u32(input)?),
        file_system: FileSystemId(varint::take_u32(input)?),
        striping: match varint::take_u32(input)? {
            0 => None,
            targets => Some(Striping { targets, unit_bytes: varint::take(input)? }),
        },
    })
}
