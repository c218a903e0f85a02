//! Compressed parts of files: two lengths (as stored, and unpacked), 8 bytes each, then a zlib stream.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::Broken;
use super::metadata::double_word;

/// Bytes of the two lengths.
const LENGTHS: usize = 16;

/// Up to here a part may hold whatever its compression makes of it.
pub(super) const FREE_LEN: u64 = 64 << 20;
/// Beyond, what swells more was made to fill memories: tables and grammars swell by a few dozen times at most.
const MOST_TIMES: u64 = 100;

/// Whether what stands here is a compressed part. What it is otherwise (a table, a grammar) begins with numbers of four
/// bytes that cannot be lengths of eight.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    let small = |at| double_word(bytes, at).is_some_and(|len| len < 1 << 36);
    let zlib = bytes.get(LENGTHS..LENGTHS + 2).is_some_and(|begin| {
        begin[0] & 15 == 8 && (u16::from(begin[0]) << 8 | u16::from(begin[1])).is_multiple_of(31)
    });
    small(0) && small(8) && zlib
}

/// A part that was unpacked.
pub(super) struct Part {
    pub(super) bytes: Vec<u8>,
    /// Where the next one begins.
    pub(super) end: usize,
    pub(super) broken: Option<Broken>,
}

/// The part that begins at `at`: what can be unpacked of it.
pub(super) fn unpack(file: &str, bytes: &[u8], at: usize) -> Part {
    let Some(stored) = double_word(bytes, at) else {
        let broken = Broken::new(file, bytes.len() as u64, "the length of a compressed part");
        return Part { bytes: Vec::new(), end: bytes.len(), broken: Some(broken) };
    };
    let begin = (at + LENGTHS).min(bytes.len());
    let whole = usize::try_from(stored).ok().and_then(|len| begin.checked_add(len));
    let end = whole.map_or(bytes.len(), |end| end.min(bytes.len()));
    let stored = &bytes[begin..end];
    let most = FREE_LEN.max(stored.len() as u64 * MOST_TIMES);
    let mut decoder = ZlibDecoder::new(stored);
    let mut unpacked = Vec::new();
    let read = decoder.by_ref().take(most).read_to_end(&mut unpacked);
    let used = (begin as u64).saturating_add(decoder.total_in());
    let broken = match read {
        Err(error) => Some(Broken::new(file, used, format!("a whole zlib stream ({error})"))),
        Ok(_) if unpacked.len() as u64 == most => {
            Some(Broken::new(file, used, format!("data that swell less than {MOST_TIMES} times")))
        }
        Ok(_) => None,
    };
    Part { bytes: unpacked, end, broken }
}
