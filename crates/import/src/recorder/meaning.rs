//! What a signature says: which call, on what, and which bytes.
//!
//! Arguments stand in the order of the C functions. For a descriptor or a stream stands the path of its file, for a
//! handle of MPI-IO a name that its ranks share, for a datatype its MPI name. What the function returned is not there.

use super::calls::Reading;
use super::libraries;
use super::metadata::Metadata;
use crate::opened::{by_flags, by_mode};
use pio_trace::{Call, FileId, Flags, Layer, Op};

/// A call, understood.
pub(super) struct Meaning {
    pub(super) call: Call,
    pub(super) object: Object,
    pub(super) what: What,
}

/// What a call works on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    None,
    /// The file that its process has open.
    File(FileId),
    /// A handle of MPI-IO.
    Shared(u32),
}

pub(super) enum What {
    Open(Flags),
    /// By MPI-IO. `together` for handles whose ranks are known by their common name.
    OpenShared {
        file: FileId,
        together: bool,
    },
    /// By HDF5.
    OpenLibrary,
    Close,
    /// Data move. No size where the datatype is not known.
    Move {
        place: Place,
        size: Option<u64>,
    },
    /// Data move in a library, which knows where to. No size where only the calls below tell it.
    MoveBelow {
        size: Option<u64>,
    },
    Seek(Place),
    /// A view without gaps, of elements of so many bytes; or one that is not known.
    View {
        displacement: u64,
        unit: Option<u64>,
    },
    Other {
        size: u64,
    },
}

/// Where in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    At(u64),
    /// For the so-and-so-manieth of the ranks that make the call: `step` times its number, and `first`.
    ByRank {
        step: i64,
        first: i64,
    },
    /// So far from where the file pointer stands.
    FromPosition(i64),
    Unknown,
}

/// A shared name of a handle of MPI-IO: `RANK-NUMBER` of who gave it.
fn is_name_of_all(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(rank, number)| rank.parse::<u32>().is_ok() && number.parse::<u32>().is_ok())
}

impl Meaning {
    /// None for what a trace has no place for.
    pub(super) fn of(
        function: &str,
        arguments: &[&str],
        metadata: &Metadata,
        reading: &mut Reading,
    ) -> Option<Meaning> {
        if let Some(rest) = function.strip_prefix("MPI_File_") {
            return mpi_file(function, rest, arguments, reading);
        }
        if function.starts_with("MPI_") {
            return message(function, arguments);
        }
        if function.starts_with("H5") {
            return libraries::hdf5(function, &Words(arguments), reading);
        }
        if function.starts_with("ncmpi_") {
            return libraries::pnetcdf(function, &Words(arguments), reading);
        }
        posix(function, arguments, metadata, reading)
    }
}

/// Words of a call.
pub(super) struct Words<'a>(&'a [&'a str]);

impl<'a> Words<'a> {
    pub(super) fn text(&self, index: usize) -> &'a str {
        self.0.get(index).copied().unwrap_or("")
    }

    fn number(&self, index: usize) -> Option<i64> {
        self.text(index).parse().ok()
    }

    pub(super) fn size(&self, index: usize) -> Option<u64> {
        self.text(index).parse().ok()
    }

    /// An offset, or the pattern `a*r+b` that stands for those of all ranks.
    fn place(&self, index: usize) -> Place {
        let text = self.text(index);
        if let Ok(offset) = text.parse() {
            return Place::At(offset);
        }
        let pattern = text.split_once("*r+").and_then(|(step, first)| {
            Some(Place::ByRank { step: step.parse().ok()?, first: first.parse().ok()? })
        });
        pattern.unwrap_or(Place::Unknown)
    }

    /// A seek's offset, by what it counts from.
    fn target(&self, offset: usize, whence: usize) -> Place {
        match self.text(whence) {
            "0" | "SEEK_SET" | "MPI_SEEK_SET" | "600" => self.place(offset),
            "1" | "SEEK_CUR" | "MPI_SEEK_CUR" | "602" => {
                self.number(offset).map_or(Place::Unknown, Place::FromPosition)
            }
            _ => Place::Unknown,
        }
    }
}

/// Of the C library.
fn posix(function: &str, arguments: &[&str], metadata: &Metadata, reading: &mut Reading) -> Option<Meaning> {
    let words = Words(arguments);
    let mut file = |index: usize| match words.text(index) {
        "" | "???" => Object::None,
        path => Object::File(reading.builder.file(path)),
    };
    let name = function.strip_suffix("64").unwrap_or(function);
    let at = |place| if metadata.has_differences { Place::Unknown } else { place };
    let moves = |place, size| What::Move { place, size };
    let next = Place::FromPosition(0);
    let product = |a, b| words.size(a).zip(words.size(b)).and_then(|(a, b)| a.checked_mul(b));
    let other = |size: Option<u64>| What::Other { size: size.unwrap_or(0) };
    let (call, object, what) = match name {
        "creat" => (Call::Creat, file(0), What::Open(Flags::TRUNCATE)),
        "open" => (Call::Open, file(0), What::Open(by_flags(words.number(1).unwrap_or(0)))),
        "close" => (Call::Close, file(0), What::Close),
        "read" => (Call::Read, file(0), moves(next, words.size(2))),
        "write" => (Call::Write, file(0), moves(next, words.size(2))),
        "pread" => (Call::Pread, file(0), moves(at(words.place(3)), words.size(2))),
        "pwrite" => (Call::Pwrite, file(0), moves(at(words.place(3)), words.size(2))),
        "readv" => (Call::Readv, file(0), moves(next, words.size(1))),
        "writev" => (Call::Writev, file(0), moves(next, words.size(1))),
        "lseek" => (Call::Lseek, file(0), What::Seek(at(words.target(1, 2)))),
        "fsync" => (Call::Fsync, file(0), other(None)),
        "fdatasync" => (Call::Fdatasync, file(0), other(None)),
        "ftruncate" => (Call::Ftruncate, file(0), other(words.size(1))),
        "mmap" => (Call::Mmap, file(4), other(words.size(1))),
        "msync" => (Call::Msync, Object::None, other(words.size(1))),
        "fopen" => (Call::Fopen, file(0), What::Open(by_mode(words.text(1)))),
        // What is open already is not cut.
        "fdopen" => (Call::Fopen, file(0), What::Open(by_mode(words.text(1).trim_start_matches('w')))),
        "fclose" => (Call::Fclose, file(0), What::Close),
        "fread" => (Call::Fread, file(3), moves(next, product(1, 2))),
        "fwrite" => (Call::Fwrite, file(3), moves(next, product(1, 2))),
        "fprintf" | "vfprintf" => (Call::Fwrite, file(0), moves(next, words.size(1))),
        "fseek" | "fseeko" => (Call::Fseek, file(0), What::Seek(words.target(1, 2))),
        "fflush" => (Call::Fflush, file(0), other(None)),
        "truncate" => (Call::Truncate, Object::None, other(words.size(1))),
        "unlink" | "remove" => (Call::Unlink, Object::None, other(None)),
        "rename" => (Call::Rename, Object::None, other(None)),
        "access" | "faccessat" => (Call::Access, Object::None, other(None)),
        "mkdir" => (Call::Mkdir, Object::None, other(None)),
        "rmdir" => (Call::Rmdir, Object::None, other(None)),
        "link" | "linkat" => (Call::Link, Object::None, other(None)),
        "symlink" | "symlinkat" => (Call::Symlink, Object::None, other(None)),
        "readlink" | "readlinkat" => (Call::Readlink, Object::None, other(None)),
        "chmod" => (Call::Chmod, Object::None, other(None)),
        "opendir" => (Call::Opendir, Object::None, other(None)),
        "__xstat" | "__lxstat" | "__fxstat" | "stat" | "lstat" | "fstat" | "fstatat" => {
            (Call::Stat, Object::None, other(None))
        }
        _ => return None,
    };
    Some(Meaning { call, object, what })
}

/// Of MPI-IO; `rest` is the name behind `MPI_File_`.
fn mpi_file(function: &str, rest: &str, arguments: &[&str], reading: &mut Reading) -> Option<Meaning> {
    let words = Words(arguments);
    // What Recorder has and a trace has not is told by its beginning: the data move then.
    let call = Call::ALL.iter().copied().find(|call| call.name() == function)?;
    if call == Call::MpiFileOpen {
        let name = words.text(4);
        let what =
            What::OpenShared { file: reading.builder.file(words.text(1)), together: is_name_of_all(name) };
        return Some(Meaning { call, object: Object::Shared(reading.shared(name)), what });
    }
    let object = Object::Shared(reading.shared(words.text(0)));
    let what = match call.op() {
        Op::Close => What::Close,
        Op::Read | Op::Write => {
            let by_all = rest.contains("shared") || rest.contains("ordered");
            let explicit = rest.contains("_at");
            let place = match (explicit, by_all) {
                (true, _) => words.place(1),
                // Where the pointer that all share stands, nobody knows.
                (false, true) => Place::Unknown,
                (false, false) => Place::FromPosition(0),
            };
            let (count, datatype) = if explicit { (3, 4) } else { (2, 3) };
            let unit = datatype_size(words.text(datatype));
            let size = words.size(count).zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
            What::Move { place, size: size.or((words.size(count) == Some(0)).then_some(0)) }
        }
        Op::Seek => What::Seek(words.target(1, 2)),
        Op::View => {
            let same = words.text(2) == words.text(3);
            let unit = datatype_size(words.text(2)).filter(|_| same);
            What::View { displacement: words.size(1).unwrap_or(0), unit }
        }
        _ => What::Other { size: words.size(1).unwrap_or(0) },
    };
    Some(Meaning { call, object, what })
}

/// Of MPI's messages: how many bytes, not to whom.
fn message(function: &str, arguments: &[&str]) -> Option<Meaning> {
    let words = Words(arguments);
    let call =
        Call::ALL.iter().copied().find(|call| call.name() == function && call.layer() == Layer::Message)?;
    let (count, datatype) = match call {
        Call::MpiReduce | Call::MpiAllreduce => (2, 3),
        _ => (1, 2),
    };
    let unit = datatype_size(words.text(datatype));
    let size = words.size(count).zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    Some(Meaning { call, object: Object::None, what: What::Other { size: size.unwrap_or(0) } })
}

/// Bytes of an element. Of types that programs make, Recorder has no more than a name, if that.
fn datatype_size(name: &str) -> Option<u64> {
    Some(match name {
        "MPI_BYTE" | "MPI_PACKED" | "MPI_CHAR" | "MPI_SIGNED_CHAR" | "MPI_UNSIGNED_CHAR" | "MPI_INT8_T"
        | "MPI_UINT8_T" | "MPI_C_BOOL" | "MPI_CXX_BOOL" | "MPI_CHARACTER" | "MPI_INTEGER1"
        | "MPI_LOGICAL1" => 1,
        "MPI_SHORT" | "MPI_UNSIGNED_SHORT" | "MPI_INT16_T" | "MPI_UINT16_T" | "MPI_INTEGER2"
        | "MPI_REAL2" | "MPI_LOGICAL2" => 2,
        "MPI_INT" | "MPI_UNSIGNED" | "MPI_INT32_T" | "MPI_UINT32_T" | "MPI_FLOAT" | "MPI_WCHAR"
        | "MPI_INTEGER" | "MPI_INTEGER4" | "MPI_REAL" | "MPI_REAL4" | "MPI_LOGICAL" | "MPI_LOGICAL4" => 4,
        "MPI_LONG"
        | "MPI_UNSIGNED_LONG"
        | "MPI_LONG_LONG"
        | "MPI_LONG_LONG_INT"
        | "MPI_UNSIGNED_LONG_LONG"
        | "MPI_INT64_T"
        | "MPI_UINT64_T"
        | "MPI_DOUBLE"
        | "MPI_AINT"
        | "MPI_OFFSET"
        | "MPI_COUNT"
        | "MPI_INTEGER8"
        | "MPI_REAL8"
        | "MPI_DOUBLE_PRECISION"
        | "MPI_COMPLEX"
        | "MPI_COMPLEX8"
        | "MPI_C_COMPLEX"
        | "MPI_C_FLOAT_COMPLEX"
        | "MPI_CXX_FLOAT_COMPLEX"
        | "MPI_FLOAT_INT"
        | "MPI_2INT"
        | "MPI_LOGICAL8" => 8,
        "MPI_LONG_DOUBLE"
        | "MPI_DOUBLE_COMPLEX"
        | "MPI_COMPLEX16"
        | "MPI_C_DOUBLE_COMPLEX"
        | "MPI_CXX_DOUBLE_COMPLEX"
        | "MPI_REAL16"
        | "MPI_INTEGER16" => 16,
        _ => return None,
    })
}
