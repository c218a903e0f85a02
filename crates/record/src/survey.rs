//! The first pass over a spool: what its events will refer to.
//!
//! A descriptor's number says nothing by itself: which open it stands for depends on the moment. The survey turns the
//! opens, duplications and adoptions of a process into one timeline a descriptor. It also finds the paths of files of MPI-IO, HDF5 and PnetCDF,
//! the definitions of datatypes and views, and where the chunks of each thread are.

use std::collections::{BTreeMap, HashMap};
use std::io;

use pio_trace::{Call, Layer};

use crate::layouts::Layouts;
use crate::memory::Memory;
use crate::spool::{self, Chunk, Record, Spool};

/// One open of one file by a descriptor, whatever its numbers.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    /// Absolute path.
    pub path: String,
    /// Where the descriptor stood at first.
    pub position: u64,
    /// Number of its device, 0 if it is not known.
    pub device: u64,
    /// Whether it is memory that processes share, and no file of the job.
    pub is_shared_memory: bool,
}

/// One open of one file by MPI-IO or a library above it.
#[derive(Clone, Debug)]
pub(crate) struct LibraryFile {
    /// Absolute path.
    pub path: String,
    /// Size of the communicator.
    pub ranks: u32,
}

/// Hints that a program gave by one call.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    at_ns: u64,
    /// Keys and values.
    pub pairs: Vec<(String, String)>,
}

/// What a process's events refer to.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Opens, in order of time.
    pub open_files: Vec<OpenFile>,
    /// By descriptor: from when on it stood for which of `open_files`, in order of time.
    timelines: HashMap<i32, Vec<(u64, usize)>>,
    /// By layer and the process's own number, which is in order of opening.
    pub library_files: BTreeMap<(Layer, i32), LibraryFile>,
    /// By the same number: hints that the program gave for a file of MPI-IO, in order of time.
    pub hints: BTreeMap<i32, Vec<Given>>,
    /// Chunks of each thread, in order, and when the first call in them began: of whole records and of short ones.
    pub threads: BTreeMap<(u32, bool), (u64, Vec<Chunk>)>,
    /// This process's ids of layouts.
    pub layouts: Layouts,
    /// Paths that calls name, with their ids: the same in every process.
    pub names: Vec<(u64, String)>,
    /// Types of the file systems on the devices, by their numbers.
    pub devices: HashMap<u64, u32>,
    /// Names of marks and phases, with their ids: the same in every process.
    pub mark_names: Vec<(u64, String)>,
    /// Names of call sites, the same.
    pub call_sites: Vec<(u64, String)>,
    /// Whether the process made, moved or removed a file or folder by its name.
    changed_names: bool,
    /// Places that hold what cannot be.
    pub damaged: u64,
}

/// A change of what a descriptor stands for.
struct Change {
    at_ns: u64,
    fd: i32,
    to: Meaning,
}

enum Meaning {
    Opened(OpenFile),
    SameAs(i32),
}

impl Survey {
    /// Reads the whole spool.
    pub(crate) fn of(spool: &Spool) -> io::Result<Survey> {
        let mut survey = Survey::default();
        let mut changes = Vec::new();
        let mut damaged_chunks = 0;
        let damaged = spool.scan(|chunk, bytes| {
            let mut records = spool::records(bytes);
            let thread =
                survey.threads.entry((chunk.thread, chunk.is_short)).or_insert((u64::MAX, Vec::new()));
            thread.1.push(chunk);
            let first_ns = &mut thread.0;
            for (record, payload) in records.by_ref() {
                if record.call < spool::ADOPT {
                    *first_ns = (*first_ns).min(record.start_ns);
                    survey.changed_names |= changes_names(record.call);
                    if record.is_mpi_io() {
                        survey.layouts.uses(record.view, record.memory);
                    }
                }
                if record.call == spool::HINTS {
                    let given = record.hints(payload).map(|pairs| Given { at_ns: record.start_ns, pairs });
                    survey.hints.entry(record.fd).or_default().extend(given);
                }
                if record.call == spool::NAME {
                    survey.names.extend(record.path(payload).map(|path| (record.offset, path)));
                }
                if record.call == spool::DEVICE {
                    survey.devices.insert(record.offset, record.size as u32);
                }
                if record.call == spool::MARK_NAME {
                    survey.mark_names.extend(record.path(payload).map(|name| (record.offset, name)));
                }
                if record.call == spool::CALL_SITE {
                    survey.call_sites.extend(record.path(payload).map(|name| (record.offset, name)));
                }
                note(
                    &record,
                    payload,
                    chunk.thread,
                    &mut changes,
                    &mut survey.library_files,
                    &mut survey.layouts,
                );
            }
            damaged_chunks += u64::from(records.damaged);
        })?;
        survey.damaged = damaged + damaged_chunks;
        for (_, chunks) in survey.threads.values_mut() {
            // Of a chunk that its thread was copying when it was killed, there are two.
            chunks.sort_by_key(|chunk| (chunk.sequence, chunk.offset));
            chunks.dedup_by_key(|chunk| chunk.sequence);
        }
        survey.hints.values_mut().for_each(|given| given.sort_by_key(|one| one.at_ns));
        changes.sort_by_key(|change| change.at_ns);
        survey.apply(changes);
        Ok(survey)
    }

    /// Which of `open_files` a descriptor stands for at a moment.
    pub(crate) fn open_file_at(&self, fd: i32, at_ns: u64) -> Option<usize> {
        let timeline = self.timelines.get(&fd)?;
        let later = timeline.partition_point(|&(from_ns, _)| from_ns <= at_ns);
        Some(timeline.get(later.checked_sub(1)?)?.1)
    }

    /// Whether the process worked on any file, or made marks: to look for names (as shells do for programs) is not enough.
    pub(crate) fn has_files(&self) -> bool {
        let opened =
            self.open_files.iter().any(|file| !file.is_shared_memory) || !self.library_files.is_empty();
        opened || self.changed_names || !self.mark_names.is_empty()
    }

    /// Marks what is no file of the job.
    pub(crate) fn leave_out_shared(&mut self, memory: &Memory) {
        for file in self.open_files.iter_mut().filter(|file| memory.is_shared(&file.path)) {
            file.is_shared_memory = true;
            file.path = String::new(); // a loader may have made very many
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for Change { at_ns, fd, to } in changes {
            let index = match to {
                Meaning::Opened(file) => {
                    self.open_files.push(file);
                    self.open_files.len() - 1
                }
                Meaning::SameAs(other) => match self.open_file_at(other, at_ns) {
                    Some(index) => index,
                    None => continue,
                },
            };
            self.timelines.entry(fd).or_default().push((at_ns, index));
        }
    }
}

fn changes_names(number: u16) -> bool {
    use Call::*;
    Call::from_number(number).is_some_and(|call| {
        matches!(call, Creat | Truncate | Unlink | Rename | Link | Symlink | Mkdir | Rmdir | Chmod)
    })
}

fn opens_by_library(call: Call) -> bool {
    use Call::*;
    matches!(call, MpiFileOpen | H5Fcreate | H5Fopen | NcmpiCreate | NcmpiOpen)
}

fn note(
    record: &Record,
    payload: &[u8],
    thread: u32,
    changes: &mut Vec<Change>,
    library_files: &mut BTreeMap<(Layer, i32), LibraryFile>,
    layouts: &mut Layouts,
) {
    let end_ns = record.start_ns.saturating_add(record.elapsed_ns);
    match record.call {
        spool::ADOPT => {
            if let Some(path) = record.path(payload) {
                let device = u64::try_from(record.result).unwrap_or(0);
                let file = OpenFile { path, position: record.offset, device, is_shared_memory: false };
                changes.push(Change { at_ns: record.start_ns, fd: record.fd, to: Meaning::Opened(file) });
            }
        }
        spool::DATATYPE => {
            if let Some((start, piece)) = record.datatype_piece(payload) {
                layouts.add_piece(thread, record.offset, record.size, start, piece);
            }
        }
        spool::VIEW => {
            if let Some((displacement, etype_bytes, filetype)) = record.view_parts(payload) {
                layouts.add_view(record.offset, displacement, etype_bytes, filetype);
            }
        }
        number => match Call::from_number(number) {
            Some(_) if spool::is_open(number) && record.fd >= 0 => {
                if let Some(path) = record.path(payload) {
                    let device = record.offset >> spool::DEVICE_SHIFT;
                    let file = OpenFile { path, position: 0, device, is_shared_memory: false };
                    changes.push(Change { at_ns: end_ns, fd: record.fd, to: Meaning::Opened(file) });
                }
            }
            Some(Call::Dup) => {
                if let Ok(copy) = i32::try_from(record.result) {
                    changes.push(Change { at_ns: end_ns, fd: copy, to: Meaning::SameAs(record.fd) });
                }
            }
            Some(call) if opens_by_library(call) && record.result >= 0 => {
                if let Some(path) = record.path(payload) {
                    let file = LibraryFile { path, ranks: record.ranks(payload) };
                    library_files.insert((call.layer(), record.fd), file);
                }
            }
            _ => {}
        },
    }
}
