//! Tables of call signatures: each different call once.
//!
//! ```text
//! i32 entries; each: i32 number · i32 rank · i32 length · u32 count · key      (2.3, of one process: number · length · key)
//! key: u64 thread · function (1 byte, in 3.0 4) · u8 depth · u8 arguments · i32 length · arguments, a blank behind each
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use super::calls::Reading;
use super::folder::Folder;
use super::meaning::Meaning;
use super::metadata::{Metadata, double_word, word};
use super::{Broken, packed};

/// The keys of a table as they stand in its file.
#[derive(Default)]
pub(super) struct Table {
    bytes: Vec<u8>,
    keys: BTreeMap<u32, Range<usize>>,
}

/// What can be used of a part of a trace, and where it ends before its end.
pub(super) type Usable<T> = (T, Option<Broken>);

impl Table {
    pub(super) fn read(folder: &Folder, name: &str, metadata: &Metadata) -> Usable<Table> {
        let stored = match folder.read(name) {
            Ok(stored) => stored,
            Err(broken) => return (Table::default(), Some(broken)),
        };
        if packed::is_packed(&stored) {
            let part = packed::unpack(name, &stored, 0);
            let (table, broken) = Table::parse(part.bytes, name, metadata);
            // Of a stream, only its own bytes have a place in the file.
            let inside =
                broken.map(|it| Broken::new(name, 0, format!("unpacked at {}: {}", it.offset, it.expected)));
            return (table, part.broken.or(inside));
        }
        Table::parse(stored, name, metadata)
    }

    fn parse(bytes: Vec<u8>, name: &str, metadata: &Metadata) -> Usable<Table> {
        // Numbers before a key, and which of them is its length.
        let (words, length) = if metadata.version == (2, 3) && !metadata.merged { (2, 1) } else { (4, 2) };
        let mut keys = BTreeMap::new();
        let end = |keys: &BTreeMap<_, _>, at: usize, expected: &str| {
            let of = word(&bytes, 0).unwrap_or(0);
            Some(Broken::new(name, at as u64, format!("{expected} of signature {} of {of}", keys.len() + 1)))
        };
        let mut at = 4;
        let mut broken = None;
        if bytes.len() < 4 {
            broken = Some(Broken::new(name, 0, "the number of signatures"));
        }
        for _ in 0..word(&bytes, 0).unwrap_or(0) {
            let (Some(number), Some(len)) = (word(&bytes, at), word(&bytes, at + 4 * length)) else {
                broken = end(&keys, at, "the number and length");
                break;
            };
            let begin = at + 4 * words;
            let key = usize::try_from(len).ok().and_then(|len| Some(begin..begin.checked_add(len)?));
            let Some(key) = key.filter(|key| key.end <= bytes.len()) else {
                broken = end(&keys, at, "all bytes");
                break;
            };
            at = key.end;
            keys.insert(number, key);
        }
        (Table { bytes, keys }, broken)
    }
}

/// A key, taken apart.
pub(super) struct Key<'a> {
    pub(super) thread: u64,
    pub(super) function: u32,
    pub(super) depth: u8,
    pub(super) arguments: Vec<&'a str>,
}

impl<'a> Key<'a> {
    /// None if its lengths do not agree.
    fn of(bytes: &'a [u8]) -> Option<Key<'a>> {
        [1, 4].into_iter().find_map(|function_len| {
            let (depth_at, len_at) = (8 + function_len, 10 + function_len);
            let text = bytes.get(len_at + 4..)?;
            if usize::try_from(word(bytes, len_at)?) != Ok(text.len()) {
                return None;
            }
            let function = match function_len {
                1 => u32::from(*bytes.get(8)?),
                _ => word(bytes, 8)?,
            };
            // Recorder puts `_` for blanks in arguments. Bytes that are no UTF-8 leave the argument empty.
            let words = text.split(|&byte| byte == b' ').map(|word| std::str::from_utf8(word).unwrap_or(""));
            let count = usize::from(*bytes.get(depth_at + 1)?);
            Some(Key {
                thread: double_word(bytes, 0)?,
                function,
                depth: *bytes.get(depth_at)?,
                arguments: words.take(count).collect(),
            })
        })
    }
}

/// The calls of a table, understood.
pub(super) struct Signatures {
    by_number: BTreeMap<u32, Signature>,
    /// Whether any is one of MPI, or of a library upon it.
    pub(super) any_mpi: bool,
}

/// A call, but for who made it and when.
pub(super) struct Signature {
    pub(super) number: u32,
    pub(super) thread: u64,
    pub(super) depth: u8,
    /// None for what a trace has no place for.
    pub(super) meaning: Option<Meaning>,
}

impl Signatures {
    pub(super) fn of(table: &Table, metadata: &Metadata, reading: &mut Reading) -> Signatures {
        let mut by_number = BTreeMap::new();
        let mut any_mpi = false;
        for (&number, key) in &table.keys {
            let Some(key) = Key::of(&table.bytes[key.clone()]) else { continue };
            let function = metadata.function(key.function);
            any_mpi |= function.starts_with("MPI_") || function.starts_with("ncmpi_");
            let meaning = Meaning::of(function, &key.arguments, metadata, reading);
            by_number.insert(number, Signature { number, thread: key.thread, depth: key.depth, meaning });
        }
        Signatures { by_number, any_mpi }
    }

    pub(super) fn get(&self, number: u32) -> Option<&Signature> {
        self.by_number.get(&number)
    }
}
