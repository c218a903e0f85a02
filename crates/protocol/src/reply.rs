//! What servers answer.
//!
//! A reply is its kind, the number of the request, and the fields of its kind.
//!
//! | kind | reply | fields |
//! |---|---|---|
//! | 0 | failed | failure (see [`Failure`]): its kind, and a number |
//! | 1 | done | |
//! | 2 | file | `0`: none; `1`, file id, `1` if it is new |
//! | 3 | names | `1` if there are more, how many, and each: name, file id |
//! | 4 | record | placement |
//! | 5 | value | number |
//! | 6 | wait | who holds the lock: host (string), process, milliseconds |
//! | 7 | written | epoch |
//! | 8 | data | how many of the positions lie before the end of the part, epoch; that many data bytes |
//! | 9 | length | bytes of the part, epoch |
//! | 10 | usage | bytes in the folders, of them free, files, bytes of files |
//! | 11 | damage | blocks looked at, how many are damaged, the first of them |
//! | 12 | parts | `1` if there are more, how many, and each: file id, placement, bytes |

use std::fmt::{self, Display};

use crate::error::{Expected, Failure, ProtocolError};
use crate::limits::PATH_BYTES;
use crate::placement::Placement;
use crate::process::HOST_BYTES;
use crate::request::{FileId, FileRef};
use crate::wire::{Input, put, put_bytes};

/// What a server's folders hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the file systems of the folders.
    pub total_bytes: u64,
    /// Bytes of them that are free.
    pub free_bytes: u64,
    /// Files of which there is a part.
    pub files: u64,
    /// Bytes of the parts.
    pub used_bytes: u64,
}

/// Who holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// For how many milliseconds.
    pub held_ms: u64,
}

impl Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder { host, pid, held_ms } = self;
        write!(f, "process {pid} on {host} (held for {} s)", held_ms / 1000)
    }
}

/// What is answered when all is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// Which file has (or had) the name.
    File {
        /// The file, if any.
        file: Option<FileId>,
        /// Whether it was made just now.
        new: bool,
    },
    /// Names, ascending.
    Names {
        /// Whether there are more.
        more: bool,
        /// Each with its file.
        names: Vec<(String, FileId)>,
    },
    /// Where a file's bytes are.
    Record(Placement),
    /// The shared file pointer before it was moved.
    Value(u64),
    /// Somebody else has the lock: ask again.
    Wait {
        /// Who has it, or the first of those before.
        holder: Holder,
    },
    /// It is written (or durable).
    Written {
        /// The server's epoch: counts how often data not yet synced may have been lost.
        epoch: u64,
    },
    /// Data follow.
    Data {
        /// How many bytes follow; positions behind them lie behind the end of the part.
        bytes: u64,
        /// The server's epoch after it had read them.
        epoch: u64,
    },
    /// The part's length.
    Length {
        /// Its bytes.
        bytes: u64,
        /// The server's epoch after it had looked.
        epoch: u64,
    },
    /// What is in use.
    Usage(Usage),
    /// What a check found.
    Damage {
        /// Blocks that were compared.
        checked: u64,
        /// Blocks that are not what they should be.
        damaged: u64,
        /// The first of them.
        blocks: Vec<u64>,
    },
    /// Parts that are there, ascending by file.
    Parts {
        /// Whether there are more.
        more: bool,
        /// Each with its bytes. Of one that does not say where it belongs, the placement is one that has this server.
        parts: Vec<(FileRef, u64)>,
        /// Of files with a lower [count](FileId::count), names that the server kept may be lost; 0 if none are.
        lost_below: u64,
    },
}

/// An answer or why there is none.
pub type ReplyBody = Result<Answer, Failure>;

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's number.
    pub number: u64,
    /// What is answered.
    pub body: ReplyBody,
}

/// Names (or parts) in an answer: so many at most.
pub const MOST_NAMES: u32 = 512;
/// Damaged blocks in an answer: so many at most.
pub const MOST_BLOCKS: usize = 1024;

impl Reply {
    /// Appends the reply's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = match &self.body {
            Err(_) => 0,
            Ok(Answer::Done) => 1,
            Ok(Answer::File { .. }) => 2,
            Ok(Answer::Names { .. }) => 3,
            Ok(Answer::Record(_)) => 4,
            Ok(Answer::Value(_)) => 5,
            Ok(Answer::Wait { .. }) => 6,
            Ok(Answer::Written { .. }) => 7,
            Ok(Answer::Data { .. }) => 8,
            Ok(Answer::Length { .. }) => 9,
            Ok(Answer::Usage(_)) => 10,
            Ok(Answer::Damage { .. }) => 11,
            Ok(Answer::Parts { .. }) => 12,
        };
        out.push(kind);
        put(out, self.number);
        match &self.body {
            Err(failure) => encode_failure(*failure, out),
            Ok(Answer::Done) => {}
            Ok(Answer::File { file: None, .. }) => out.push(0),
            Ok(Answer::File { file: Some(file), new }) => {
                out.push(1);
                file.encode(out);
                out.push(u8::from(*new));
            }
            Ok(Answer::Names { more, names }) => {
                out.push(u8::from(*more));
                put(out, names.len() as u64);
                for (name, file) in names {
                    put_bytes(out, name.as_bytes());
                    file.encode(out);
                }
            }
            Ok(Answer::Record(placement)) => placement.encode(out),
            Ok(Answer::Wait { holder }) => {
                put_bytes(out, holder.host.as_bytes());
                put(out, u64::from(holder.pid));
                put(out, holder.held_ms);
            }
            Ok(Answer::Value(value) | Answer::Written { epoch: value }) => put(out, *value),
            Ok(Answer::Data { bytes, epoch } | Answer::Length { bytes, epoch }) => {
                put(out, *bytes);
                put(out, *epoch);
            }
            Ok(Answer::Usage(usage)) => {
                for value in [usage.total_bytes, usage.free_bytes, usage.files, usage.used_bytes] {
                    put(out, value);
                }
            }
            Ok(Answer::Damage { checked, damaged, blocks }) => {
                put(out, *checked);
                put(out, *damaged);
                put(out, blocks.len() as u64);
                blocks.iter().for_each(|block| put(out, *block));
            }
            Ok(Answer::Parts { more, parts, lost_below }) => {
                out.push(u8::from(*more));
                put(out, *lost_below);
                put(out, parts.len() as u64);
                for (file, bytes) in parts {
                    file.encode(out);
                    put(out, *bytes);
                }
            }
        }
    }

    /// The reply in these bytes.
    ///
    /// # Errors
    /// If they are not exactly one.
    pub fn decode(bytes: &[u8]) -> Result<Reply, ProtocolError> {
        let mut input = Input::new(bytes);
        let kind = input.byte("a kind of reply")?;
        let number = input.number("a number")?;
        let body = decode_body(kind, &mut input)?;
        input.end()?;
        Ok(Reply { number, body })
    }
}

fn decode_body(kind: u8, input: &mut Input) -> Result<ReplyBody, ProtocolError> {
    Ok(Ok(match kind {
        0 => return Ok(Err(decode_failure(input)?)),
        1 => Answer::Done,
        2 => match input.flag()? {
            false => Answer::File { file: None, new: false },
            true => Answer::File { file: Some(FileId::decode(input)?), new: input.flag()? },
        },
        3 => {
            let more = input.flag()?;
            // A name and its file take three bytes at least.
            let count = count(input, MOST_NAMES as usize, 3)?;
            let mut names = Vec::with_capacity(count);
            for _ in 0..count {
                names.push((input.string(PATH_BYTES, "a path")?, FileId::decode(input)?));
            }
            Answer::Names { more, names }
        }
        4 => Answer::Record(Placement::decode(input)?),
        5 => Answer::Value(input.number("a value")?),
        6 => Answer::Wait {
            holder: Holder {
                host: input.string(HOST_BYTES, "the name of a host")?,
                pid: input.small("a process")?,
                held_ms: input.number("a time")?,
            },
        },
        7 => Answer::Written { epoch: input.number("an epoch")? },
        8 => Answer::Data { bytes: input.number("a length")?, epoch: input.number("an epoch")? },
        9 => Answer::Length { bytes: input.number("a length")?, epoch: input.number("an epoch")? },
        10 => Answer::Usage(Usage {
            total_bytes: input.number("bytes")?,
            free_bytes: input.number("bytes")?,
            files: input.number("files")?,
            used_bytes: input.number("bytes")?,
        }),
        11 => {
            let (checked, damaged) = (input.number("blocks")?, input.number("blocks")?);
            let count = count(input, MOST_BLOCKS, 1)?;
            let mut blocks = Vec::with_capacity(count);
            for _ in 0..count {
                blocks.push(input.number("a block")?);
            }
            Answer::Damage { checked, damaged, blocks }
        }
        12 => {
            let (more, lost_below) = (input.flag()?, input.number("a file's count")?);
            // A file is six numbers, its bytes one.
            let count = count(input, MOST_NAMES as usize, 7)?;
            let mut parts = Vec::with_capacity(count);
            for _ in 0..count {
                parts.push((FileRef::decode(input)?, input.number("bytes")?));
            }
            Answer::Parts { more, parts, lost_below }
        }
        _ => return Err(ProtocolError::Malformed { expected: "a kind of reply from 0 to 12" }),
    }))
}

/// How many things of at least `bytes` bytes each follow.
fn count(input: &mut Input, most: usize, bytes: usize) -> Result<usize, ProtocolError> {
    let count = input.number("a count")?;
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= most && count * bytes <= input.rest.len())
        .ok_or(ProtocolError::Malformed { expected: "no more than there are bytes" })
}

fn encode_failure(failure: Failure, out: &mut Vec<u8>) {
    let (kind, value) = match failure {
        Failure::Os(errno) => (0, u64::from(errno.unsigned_abs())),
        Failure::NotFound => (1, 0),
        Failure::Exists => (2, 0),
        Failure::Invalid(expected) => {
            let code = match expected {
                Expected::Path => 0,
                Expected::DataLength => 1,
                Expected::Placement => 2,
                Expected::Owner => 3,
                Expected::Value => 4,
                Expected::Extents => 5,
            };
            (3, code)
        }
        Failure::UnknownView => (4, 0),
        Failure::NotLocked => (5, 0),
        Failure::Limit => (6, 0),
        Failure::Damaged { block } => (7, block),
        Failure::Stale => (8, 0),
        Failure::Full => (9, 0),
        Failure::FolderLost => (10, 0),
    };
    out.push(kind);
    put(out, value);
}

fn decode_failure(input: &mut Input) -> Result<Failure, ProtocolError> {
    let kind = input.byte("a kind of failure")?;
    let value = input.number("a number")?;
    Ok(match (kind, value) {
        (0, errno) => Failure::Os(
            i32::try_from(errno).map_err(|_| ProtocolError::Malformed { expected: "an error number" })?,
        ),
        (1, 0) => Failure::NotFound,
        (2, 0) => Failure::Exists,
        (3, 0) => Failure::Invalid(Expected::Path),
        (3, 1) => Failure::Invalid(Expected::DataLength),
        (3, 2) => Failure::Invalid(Expected::Placement),
        (3, 3) => Failure::Invalid(Expected::Owner),
        (3, 4) => Failure::Invalid(Expected::Value),
        (3, 5) => Failure::Invalid(Expected::Extents),
        (4, 0) => Failure::UnknownView,
        (5, 0) => Failure::NotLocked,
        (6, 0) => Failure::Limit,
        (7, block) => Failure::Damaged { block },
        (8, 0) => Failure::Stale,
        (9, 0) => Failure::Full,
        (10, 0) => Failure::FolderLost,
        _ => return Err(ProtocolError::Malformed { expected: "a kind of failure from 0 to 10" }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_of_each() -> Vec<ReplyBody> {
        let placement = Placement::new(65536, 3, 2, 4).unwrap();
        vec![
            Ok(Answer::Done),
            Ok(Answer::File { file: None, new: false }),
            Ok(Answer::File { file: Some(FileId::new(1, 2)), new: true }),
            Ok(Answer::Names { more: true, names: vec![("a".into(), FileId(1)), ("b/c".into(), FileId(2))] }),
            Ok(Answer::Record(placement)),
            Ok(Answer::Value(9)),
            Ok(Answer::Wait { holder: Holder { host: "node1".into(), pid: 7, held_ms: 300 } }),
            Ok(Answer::Written { epoch: 1 }),
            Ok(Answer::Data { bytes: 77, epoch: 300 }),
            Ok(Answer::Length { bytes: 1 << 40, epoch: 2 }),
            Ok(Answer::Usage(Usage { total_bytes: 9, free_bytes: 8, files: 7, used_bytes: 6 })),
            Ok(Answer::Damage { checked: 100, damaged: 2, blocks: vec![4, 60] }),
            Ok(Answer::Parts {
                more: false,
                parts: vec![(FileRef { id: FileId::new(1, 9), placement }, 1 << 33)],
                lost_below: 1 << 47,
            }),
            Err(Failure::Os(28)),
            Err(Failure::NotFound),
            Err(Failure::Exists),
            Err(Failure::Invalid(Expected::Owner)),
            Err(Failure::Invalid(Expected::Extents)),
            Err(Failure::UnknownView),
            Err(Failure::NotLocked),
            Err(Failure::Limit),
            Err(Failure::Damaged { block: 3 }),
            Err(Failure::Stale),
            Err(Failure::Full),
            Err(Failure::FolderLost),
        ]
    }

    #[test]
    fn replies_go_there_and_back() {
        for body in one_of_each() {
            let reply = Reply { number: 300, body };
            let mut bytes = Vec::new();
            reply.encode(&mut bytes);
            assert_eq!(Reply::decode(&bytes), Ok(reply));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Reply::decode(&bytes);
        }

        #[test]
        fn damaged_replies_decode_or_fail_without_panic(which in 0usize..22, at in any::<usize>(), value in any::<u8>()) {
            let bodies = one_of_each();
            let mut bytes = Vec::new();
            Reply { number: 5, body: bodies[which % bodies.len()].clone() }.encode(&mut bytes);
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = Reply::decode(&bytes);
        }
    }
}
