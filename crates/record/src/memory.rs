//! Which files in `/dev/shm` are a program's.
//!
//! Two things lie there: files that somebody put into memory to have them fast, and the memory that processes share (of MPI
//! libraries, PyTorch's loaders, Python's `multiprocessing`), which is opened, cut to its size and mapped. Names do not
//! tell them apart, but what is done with them does: shared memory is not read and written by calls. So an entry of the
//! folder, with all below it if it is a folder itself, counts if calls move data of a file there. MPICH makes a segment as
//! large as it is to be by writing its last byte: one byte is not enough. What is opened by `shm_open` is shared memory in any
//! case, and not recorded (`c/pio_open.c`): UCX writes to it.

use std::collections::{HashMap, HashSet};

use pio_trace::{Call, Layer, Op};

use crate::collect::Member;
use crate::error::Error;
use crate::spool;
use crate::survey::Survey;

const FOLDER: &str = "/dev/shm/";

/// What the call that makes a segment as large as it is to be writes of it.
const SIZING_BYTES: u64 = 1;

/// The entries of `/dev/shm` that hold files of the job.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    entries: HashSet<String>,
}

impl Memory {
    /// Those of all processes. Spools of processes that opened files there are read once more.
    pub(crate) fn of(members: &[Member]) -> Result<Memory, Error> {
        let mut moved: HashMap<&str, u64> = HashMap::new();
        for Member { spool, survey, .. } in members {
            for file in survey.library_files.values() {
                // What MPI-IO, HDF5 or PnetCDF open is a file, whatever is done with it.
                moved.extend(entry(&file.path).map(|entry| (entry, u64::MAX)));
            }
            if !survey.open_files.iter().any(|file| entry(&file.path).is_some()) {
                continue;
            }
            let scanned = spool.scan(|_, bytes| {
                for (record, _) in spool::records(bytes) {
                    if let Some(entry) = entry_of(&record, survey) {
                        let bytes = moved.entry(entry).or_default();
                        *bytes = bytes.saturating_add(u64::try_from(record.result).unwrap_or(0));
                    }
                }
            });
            scanned.map_err(Error::io(spool.path(), "read the spool"))?;
        }
        let used = moved.into_iter().filter(|&(_, bytes)| bytes > SIZING_BYTES);
        Ok(Memory { entries: used.map(|(entry, _)| entry.to_owned()).collect() })
    }

    /// Whether a path is of shared memory, and no file of the job.
    pub(crate) fn is_shared(&self, path: &str) -> bool {
        entry(path).is_some_and(|entry| !self.entries.contains(entry))
    }
}

/// The entry of the folder that a path leads to or through.
fn entry(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)?.split('/').next()
}

/// The entry whose data a record moved.
fn entry_of<'a>(record: &spool::Record, survey: &'a Survey) -> Option<&'a str> {
    let call = Call::from_number(record.call)?;
    let moves =
        matches!(call.op(), Op::Read | Op::Write) && matches!(call.layer(), Layer::Posix | Layer::Stdio);
    let file = moves.then(|| survey.open_file_at(record.fd, record.start_ns))??;
    entry(&survey.open_files[file].path)
}
