//! Numbers and strings as bytes: what messages and records are made of.
//!
//! Unsigned numbers are LEB128, as in the encoding of layouts; strings are their length and their bytes.

use std::ops::Range;

pub use pio_layout::number::put;
use pio_layout::number::{self, NumberError};

use crate::error::ProtocolError;

pub(crate) fn put_range(out: &mut Vec<u8>, range: &Range<u64>) {
    put(out, range.start);
    put(out, range.end.saturating_sub(range.start));
}

/// Appends the length of some bytes, and them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes from outside, taken from the front.
#[derive(Debug)]
pub struct Input<'a> {
    /// What was not taken yet.
    pub rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Input that begins with the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// A byte. The error of this and the others says what was `expected`.
    ///
    /// # Errors
    /// If there is none left.
    pub fn byte(&mut self, expected: &'static str) -> Result<u8, ProtocolError> {
        let (first, rest) = self.rest.split_first().ok_or(ProtocolError::Malformed { expected })?;
        self.rest = rest;
        Ok(*first)
    }

    /// A number (LEB128).
    ///
    /// # Errors
    /// If there is none, or it has more than 64 bits.
    pub fn number(&mut self, expected: &'static str) -> Result<u64, ProtocolError> {
        number::take(&mut self.rest).map_err(|error| ProtocolError::Malformed {
            expected: match error {
                NumberError::Cut => expected,
                NumberError::TooLarge => "a number of at most 64 bits",
            },
        })
    }

    /// A number of at most 32 bits.
    ///
    /// # Errors
    /// As [`Input::number`], and if it has more.
    pub fn small(&mut self, expected: &'static str) -> Result<u32, ProtocolError> {
        u32::try_from(self.number(expected)?).map_err(|_| ProtocolError::Malformed { expected })
    }

    pub(crate) fn flag(&mut self) -> Result<bool, ProtocolError> {
        match self.byte("0 or 1")? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ProtocolError::Malformed { expected: "0 or 1" }),
        }
    }

    /// Start and length. No offset or position is beyond `i64::MAX`.
    pub(crate) fn range(&mut self) -> Result<Range<u64>, ProtocolError> {
        let (start, len) = (self.number("a start")?, self.number("a length")?);
        match start.checked_add(len) {
            Some(end) if end <= i64::MAX as u64 => Ok(start..end),
            _ => Err(ProtocolError::Malformed { expected: "a range within 63 bits" }),
        }
    }

    /// Bytes with their length before them, `most` of them at most.
    ///
    /// # Errors
    /// If there are fewer than the length says, or it is too large.
    pub fn bytes(&mut self, most: usize, expected: &'static str) -> Result<&'a [u8], ProtocolError> {
        let len = usize::try_from(self.number(expected)?)
            .ok()
            .filter(|len| *len <= most && *len <= self.rest.len())
            .ok_or(ProtocolError::Malformed { expected })?;
        let (now, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(now)
    }

    /// The same as text.
    ///
    /// # Errors
    /// As [`Input::bytes`], and if they are no UTF-8.
    pub fn string(&mut self, most: usize, expected: &'static str) -> Result<String, ProtocolError> {
        let bytes = self.bytes(most, expected)?;
        match std::str::from_utf8(bytes) {
            Ok(string) => Ok(string.to_owned()),
            Err(_) => Err(ProtocolError::Malformed { expected: "UTF-8" }),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], ProtocolError> {
        let (now, rest) = self.rest.split_first_chunk::<N>().ok_or(ProtocolError::Malformed { expected })?;
        self.rest = rest;
        Ok(*now)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// If something is.
    pub fn end(&self) -> Result<(), ProtocolError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ProtocolError::Malformed { expected: "the end" }) }
    }
}
