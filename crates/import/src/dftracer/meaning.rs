//! Which call of a trace a call of a log is.

use super::record::{Arguments, Record};
use crate::opened::{by_flags, by_mode};
use pio_trace::{Call, Flags, Op};

const F_SETLK: i64 = 6;
const F_SETLKW: i64 = 7;

/// The error of a call that failed: a log does not say which it was.
const EIO: i64 = 5;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) call: Call,
    pub(super) what: What,
    /// Bytes asked for; none if the log does not say.
    pub(super) size: Option<u64>,
    /// As an event's.
    pub(super) result: i64,
    /// The file descriptor, which versions before 2 have.
    pub(super) descriptor: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Open(Flags),
    Close,
    Move(Place),
    Seek(Place),
    /// Something else on an open file, from an offset on if it has one.
    OnHandle(Option<u64>),
    OnName,
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    At(u64),
    /// So far from the file pointer.
    FromPosition(i64),
    Unknown,
}

const NEXT: Place = Place::FromPosition(0);

/// None if a trace has no such call.
pub(super) fn of(record: &Record) -> Option<Meaning> {
    let arguments = &record.arguments;
    let name = record.name.strip_suffix("64").unwrap_or(&record.name);
    let (call, what, size) =
        if record.category == "STDIO" { stdio(name, arguments) } else { posix(name, arguments) }?;
    let returned = arguments.number("ret");
    let failed = returned.is_some_and(|returned| returned < 0);
    let result = match call.op() {
        Op::Read | Op::Write => moved(name, arguments).or_else(|| i64::try_from(size?).ok()).unwrap_or(0),
        _ if failed => -EIO,
        _ => 0,
    };
    // An open returns the descriptor that other calls are given.
    let descriptor = if call.op() == Op::Open { returned } else { arguments.number("fd") };
    Some(Meaning { call, what, size, result, descriptor: descriptor.filter(|&descriptor| descriptor >= 0) })
}

/// Bytes that a call moved, or minus an error. None if the log does not say.
fn moved(name: &str, arguments: &Arguments) -> Option<i64> {
    let returned = arguments.number("ret");
    let failed = returned.is_some_and(|returned| returned < 0);
    match name {
        // Elements.
        "fread" | "fwrite" => returned?.checked_mul(arguments.number("size")?),
        "fgets" => Some(arguments.number("ret_len").unwrap_or(0)),
        "fputs" | "puts" if !failed => arguments.number("str_len"),
        // The byte itself; at the end of the file, minus one.
        "fgetc" | "getc" | "getc_unlocked" | "getw" | "getline" | "getdelim" if failed => Some(0),
        "fgetc" | "getc" | "getc_unlocked" | "fputc" | "putc" | "putc_unlocked" if !failed => Some(1),
        "getw" | "putw" if !failed => Some(4),
        // How many values, not how many bytes.
        "fscanf" | "vfscanf" => None,
        _ if failed => Some(-EIO),
        _ => returned,
    }
}

type Known = (Call, What, Option<u64>);

/// `name` has no `64` at its end.
fn posix(name: &str, arguments: &Arguments) -> Option<Known> {
    let open = || What::Open(by_flags(arguments.number("flags").unwrap_or(0)));
    let count = || arguments.size("count").or_else(|| arguments.size("ret"));
    let next = What::Move(NEXT);
    let at = || What::Move(arguments.size("offset").map_or(Place::Unknown, Place::At));
    let on_handle = What::OnHandle(None);
    let range = |length: &str| (What::OnHandle(arguments.size("offset")), arguments.size(length));
    let (call, (what, size)) = match name {
        "open" | "openat" => (Call::Open, (open(), None)),
        "creat" => (Call::Creat, (What::Open(Flags::TRUNCATE), None)),
        "close" => (Call::Close, (What::Close, None)),
        "read" => (Call::Read, (next, count())),
        "write" => (Call::Write, (next, count())),
        "readv" => (Call::Readv, (next, count())),
        "writev" => (Call::Writev, (next, count())),
        "pread" => (Call::Pread, (at(), count())),
        "pwrite" => (Call::Pwrite, (at(), count())),
        "preadv" => (Call::Preadv, (at(), count())),
        "pwritev" => (Call::Pwritev, (at(), count())),
        // Of the two files DFTracer names one: that which sendfile writes, and copy_file_range reads.
        "sendfile" => (Call::Write, (next, count())),
        "copy_file_range" => (Call::Read, (What::Move(Place::Unknown), arguments.size("len"))),
        "lseek" => {
            let reached = arguments.size("ret").map_or(Place::Unknown, Place::At);
            (Call::Lseek, (What::Seek(reached), None))
        }
        "fsync" => (Call::Fsync, (on_handle, None)),
        "fdatasync" => (Call::Fdatasync, (on_handle, None)),
        "ftruncate" => (Call::Ftruncate, (on_handle, arguments.size("length"))),
        "mmap" => (Call::Mmap, (on_handle, arguments.size("length"))),
        "posix_fallocate" => (Call::Fallocate, range("len")),
        "posix_fadvise" => (Call::Fadvise, range("len")),
        "flock" => (Call::Flock, (on_handle, None)),
        "fcntl" if [F_SETLK, F_SETLKW].contains(&arguments.number("cmd")?) => {
            (Call::FcntlLock, (on_handle, None))
        }
        "dup" | "dup2" => (Call::Dup, (on_handle, None)),
        "truncate" => (Call::Truncate, (What::OnName, arguments.size("length"))),
        _ => (on_name(name)?, (What::OnName, None)),
    };
    Some((call, what, size))
}

fn on_name(name: &str) -> Option<Call> {
    Some(match name {
        "unlink" | "remove" => Call::Unlink,
        "rename" => Call::Rename,
        "link" | "linkat" => Call::Link,
        "symlink" | "symlinkat" => Call::Symlink,
        "readlink" | "readlinkat" => Call::Readlink,
        "access" | "faccessat" => Call::Access,
        "mkdir" => Call::Mkdir,
        "rmdir" => Call::Rmdir,
        "chmod" => Call::Chmod,
        "opendir" => Call::Opendir,
        "__xstat" | "__lxstat" | "__fxstat" | "stat" | "lstat" | "fstat" | "fstatat" => Call::Stat,
        _ => return None,
    })
}

/// `name` has no `64` at its end.
fn stdio(name: &str, arguments: &Arguments) -> Option<Known> {
    let product = || arguments.size("size")?.checked_mul(arguments.size("count")?);
    let next = What::Move(NEXT);
    let (call, what, size) = match name {
        "fopen" => (Call::Fopen, What::Open(by_mode(&arguments.text("mode").unwrap_or_default())), None),
        "fclose" => (Call::Fclose, What::Close, None),
        "fread" => (Call::Fread, next, product()),
        "fwrite" => (Call::Fwrite, next, product()),
        "fgets" => (Call::Fread, next, arguments.size("num")),
        "fputs" | "puts" => (Call::Fwrite, next, arguments.size("str_len")),
        "fgetc" | "getc" | "getc_unlocked" => (Call::Fread, next, Some(1)),
        "fputc" | "putc" | "putc_unlocked" => (Call::Fwrite, next, Some(1)),
        "getw" => (Call::Fread, next, Some(4)),
        "putw" => (Call::Fwrite, next, Some(4)),
        "getline" | "getdelim" => (Call::Fread, next, Some(arguments.size("ret").unwrap_or(0))),
        "fprintf" | "vfprintf" => (Call::Fwrite, next, arguments.size("ret")),
        "fscanf" | "vfscanf" => (Call::Fread, What::Move(Place::Unknown), None),
        "fseek" => {
            let place = match (arguments.number("whence"), arguments.number("offset")) {
                (Some(0), Some(offset)) => u64::try_from(offset).map_or(Place::Unknown, Place::At),
                (Some(1), Some(offset)) => Place::FromPosition(offset),
                _ => Place::Unknown,
            };
            (Call::Fseek, What::Seek(place), None)
        }
        "rewind" => (Call::Fseek, What::Seek(Place::At(0)), None),
        "fsetpos" => (Call::Fseek, What::Seek(Place::Unknown), None),
        "fflush" => (Call::Fflush, What::OnHandle(None), None),
        _ => return None,
    };
    Some((call, what, size))
}
