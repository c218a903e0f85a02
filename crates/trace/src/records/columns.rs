//! Columns of numbers, split so that zstd sees bytes of equal meaning together.
//!
//! Numbers are varints, but the first bytes of all numbers of a column lie together, then the second bytes, and so on:
//! the *planes*. In times the low bytes are noise and the high ones repeat; apart, each gets a code of its own (a sixth
//! less space for recorded times than whole varints in a row).

use crate::varint;

/// What the columns hold, in order. Part of the file format.
#[derive(Clone, Copy)]
pub(super) enum Column {
    Process,
    Shape,
    Size,
    Place,
    PlaceRest,
    Result,
    Start,
    Elapsed,
    Think,
    Operation,
}

/// How many columns there are.
const COLUMNS: usize = 10;
/// Planes of a column: three for the first three bytes of its numbers, one for all further bytes.
const PLANES: usize = 4;

/// Columns to write to.
#[derive(Default)]
pub(super) struct Columns([[Vec<u8>; PLANES]; COLUMNS]);

impl Columns {
    /// Appends a number to a column.
    #[inline]
    pub(super) fn put(&mut self, column: Column, mut value: u64) {
        let planes = &mut self.0[column as usize];
        let mut plane = 0;
        while value >= 0x80 {
            planes[plane].push(value as u8 | 0x80);
            value >>= 7;
            plane = (plane + 1).min(PLANES - 1);
        }
        planes[plane].push(value as u8);
    }

    /// Appends a difference to a column.
    #[inline]
    pub(super) fn put_signed(&mut self, column: Column, value: i64) {
        self.put(column, varint::fold(value));
    }

    /// Bytes in all columns.
    pub(super) fn len(&self) -> usize {
        self.0.as_flattened().iter().map(Vec::len).sum()
    }

    /// Appends the lengths of all planes.
    pub(super) fn put_lens(&self, out: &mut Vec<u8>) {
        for plane in self.0.as_flattened() {
            varint::put(out, plane.len() as u64);
        }
    }

    /// Appends all planes, and empties them.
    pub(super) fn drain_to(&mut self, out: &mut Vec<u8>) {
        for plane in self.0.as_flattened_mut() {
            out.append(plane);
        }
    }
}

/// Columns to read from.
pub(super) struct ColumnReader<'a>([[&'a [u8]; PLANES]; COLUMNS]);

impl<'a> ColumnReader<'a> {
    /// The header bytes of `count` events, and the columns. None if the lengths do not fill `raw` exactly.
    pub(super) fn split(mut raw: &'a [u8], count: usize) -> Option<(&'a [u8], ColumnReader<'a>)> {
        let mut lens = [[0; PLANES]; COLUMNS];
        for len in lens.as_flattened_mut() {
            *len = usize::try_from(varint::take(&mut raw)?).ok()?;
        }
        let (headers, mut rest) = raw.split_at_checked(count)?;
        let mut columns = ColumnReader([[&[]; PLANES]; COLUMNS]);
        for (plane, len) in columns.0.as_flattened_mut().iter_mut().zip(lens.as_flattened()) {
            (*plane, rest) = rest.split_at_checked(*len)?;
        }
        rest.is_empty().then_some((headers, columns))
    }

    /// Takes the next number of a column. None at its end, or if it does not fit or is not the shortest form.
    ///
    /// Always inlined: which column it is then costs nothing.
    #[inline(always)]
    pub(super) fn take(&mut self, column: Column) -> Option<u64> {
        let planes = &mut self.0[column as usize];
        // Nearly all numbers have one or two bytes.
        let first = take_byte(&mut planes[0])?;
        if first < 0x80 {
            return Some(first.into());
        }
        let second = take_byte(&mut planes[1])?;
        let value = u64::from(first & 0x7f) | u64::from(second & 0x7f) << 7;
        if second < 0x80 {
            return varint::is_valid_end(second, 1).then_some(value);
        }
        take_rest(planes, value)
    }

    /// Takes the next difference of a column.
    #[inline(always)]
    pub(super) fn take_signed(&mut self, column: Column) -> Option<i64> {
        self.take(column).map(varint::unfold)
    }

    /// Whether all columns have been taken.
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_flattened().iter().all(|plane| plane.is_empty())
    }
}

#[inline]
fn take_byte(plane: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = plane.split_first()?;
    *plane = rest;
    Some(byte)
}

/// The rest of a number of three bytes or more, whose first two are in `value`.
#[inline(never)]
fn take_rest(planes: &mut [&[u8]; PLANES], mut value: u64) -> Option<u64> {
    for i in 2..varint::MAX_LEN {
        let byte = take_byte(&mut planes[i.min(PLANES - 1)])?;
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return varint::is_valid_end(byte, i).then_some(value);
        }
    }
    None
}
