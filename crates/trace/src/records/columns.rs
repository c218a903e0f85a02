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
    /// Behind all others, and absent where no event has it.
    Used,
}

/// How many columns there are.
const COLUMNS: usize = 11;
/// Of them, those that every block has.
const ALWAYS: usize = Column::Used as usize;
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

    /// Appends the payload of a block with these header bytes, and empties both.
    pub(super) fn drain_to(&mut self, headers: &mut Vec<u8>, out: &mut Vec<u8>) {
        let (always, optional) = self.0.split_at_mut(ALWAYS);
        put_lens(always, out);
        out.append(headers);
        put_planes(always, out);
        if optional.as_flattened().iter().any(|plane| !plane.is_empty()) {
            put_lens(optional, out);
            put_planes(optional, out);
        }
    }
}

fn put_lens(columns: &[[Vec<u8>; PLANES]], out: &mut Vec<u8>) {
    for plane in columns.as_flattened() {
        varint::put(out, plane.len() as u64);
    }
}

fn put_planes(columns: &mut [[Vec<u8>; PLANES]], out: &mut Vec<u8>) {
    for plane in columns.as_flattened_mut() {
        out.append(plane);
    }
}

/// Columns to read from.
pub(super) struct ColumnReader<'a>([[&'a [u8]; PLANES]; COLUMNS]);

impl<'a> ColumnReader<'a> {
    /// The header bytes of `count` events, and the columns. None if the lengths do not fill `raw` exactly.
    pub(super) fn split(mut raw: &'a [u8], count: usize) -> Option<(&'a [u8], ColumnReader<'a>)> {
        let mut columns = ColumnReader([[&[]; PLANES]; COLUMNS]);
        let (always, optional) = columns.0.split_at_mut(ALWAYS);
        let lens = take_lens::<ALWAYS>(&mut raw)?;
        let headers = raw.split_off(..count)?;
        take_planes(always, &lens, &mut raw)?;
        if !raw.is_empty() {
            let lens = take_lens::<{ COLUMNS - ALWAYS }>(&mut raw)?;
            take_planes(optional, &lens, &mut raw)?;
        }
        raw.is_empty().then_some((headers, columns))
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

fn take_lens<const N: usize>(raw: &mut &[u8]) -> Option<[[usize; PLANES]; N]> {
    let mut lens = [[0; PLANES]; N];
    for len in lens.as_flattened_mut() {
        *len = usize::try_from(varint::take(raw)?).ok()?;
    }
    Some(lens)
}

fn take_planes<'a>(
    columns: &mut [[&'a [u8]; PLANES]],
    lens: &[[usize; PLANES]],
    raw: &mut &'a [u8],
) -> Option<()> {
    for (plane, len) in columns.as_flattened_mut().iter_mut().zip(lens.as_flattened()) {
        *plane = raw.split_off(..*len)?;
    }
    Some(())
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
