//! The one encoding of layouts, datatypes and views: in trace files and on the wire.
//!
//! Unsigned numbers (`u`) are LEB128: seven bits a byte, least first, the top bit says that more follow. Signed numbers
//! (`i`) are zigzag-coded first: 0, −1, 1, −2, … become 0, 1, 2, 3, …
//!
//! | value | bytes |
//! |---|---|
//! | layout | `i` offset of the first data byte, shape |
//! | shape: block | `0`, `u` length (0: empty) |
//! | shape: strided | `1`, `u` count, `i` stride, shape |
//! | shape: indexed | `2`, `u` n, n − 1 × `i` distance from one displacement to the next, shape |
//! | shape: blocks | `3`, `u` n, n × (`i` distance from the end of the block before, `u` length) |
//! | shape: sequence | `4`, `u` n, n × layout, offsets relative to the first data byte |
//! | datatype | layout, `i` lower bound, `i` extent, `0` or `1`: bounds explicit |
//! | view | `u` displacement, `u` etype size, datatype |
//!
//! A decoder trusts nothing: it builds through the checked constructors, so what it returns is valid and in normal
//! form; it allocates no more than the input's length justifies, and follows at most [`MAX_DEPTH`] levels.

use thiserror::Error;

use crate::datatype::Datatype;
use crate::error::LayoutError;
use crate::layout::{Kind, Layout, MAX_DEPTH, Shape};
use crate::number::{self, NumberError};
use crate::view::View;

const BLOCK: u8 = 0;
const STRIDED: u8 = 1;
const INDEXED: u8 = 2;
const BLOCKS: u8 = 3;
const SEQUENCE: u8 = 4;

/// Bytes of the longest LEB128 number of 64 bits.
const NUMBER_BYTES: u64 = 10;

/// Why bytes could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("bytes cannot be decoded at {at}: expected {expected}")]
pub struct DecodeError {
    /// How many bytes into the input.
    pub at: usize,
    /// What should have been there.
    pub expected: String,
}

impl Layout {
    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        signed(self.offset, out);
        encode_shape(&self.shape, out);
    }

    /// Decodes a layout from the front of `bytes` and moves `bytes` behind it.
    ///
    /// # Errors
    /// On anything but a valid encoding; `bytes` is then left as it was.
    pub fn decode(bytes: &mut &[u8]) -> Result<Layout, DecodeError> {
        decode(bytes, |input| input.layout(0))
    }
}

impl Datatype {
    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.layout().encode(out);
        signed(self.lower_bound(), out);
        signed(self.extent(), out);
        out.push(u8::from(self.has_explicit_bounds()));
    }

    /// Decodes a datatype from the front of `bytes` and moves `bytes` behind it.
    ///
    /// # Errors
    /// On anything but a valid encoding; `bytes` is then left as it was.
    pub fn decode(bytes: &mut &[u8]) -> Result<Datatype, DecodeError> {
        decode(bytes, |input| input.datatype())
    }
}

impl View {
    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        number::put(out, self.displacement());
        number::put(out, self.etype_size());
        self.filetype().encode(out);
    }

    /// Whether the encoding has at most `bytes` bytes. O(nodes) where there is no doubt; otherwise as long as to encode it.
    pub fn encodes_within(&self, bytes: u64) -> bool {
        let shape = &self.filetype().layout().shape;
        // Displacement, etype size, offset, bounds and the flag beside the shape.
        if most_bytes_of_shape(shape).saturating_add(6 * NUMBER_BYTES) <= bytes {
            return true;
        }
        let mut encoding = Vec::new();
        self.encode(&mut encoding);
        encoding.len() as u64 <= bytes
    }

    /// Decodes a view from the front of `bytes` and moves `bytes` behind it.
    ///
    /// # Errors
    /// On anything but a valid encoding; `bytes` is then left as it was.
    pub fn decode(bytes: &mut &[u8]) -> Result<View, DecodeError> {
        decode(bytes, |input| input.view())
    }
}

fn encode_shape(shape: &Shape, out: &mut Vec<u8>) {
    match &shape.kind {
        Kind::Block => {
            out.push(BLOCK);
            number::put(out, shape.size);
        }
        Kind::Strided { count, stride, inner } => {
            out.push(STRIDED);
            number::put(out, *count);
            signed(*stride, out);
            encode_shape(inner, out);
        }
        Kind::Indexed { displacements, inner } => {
            out.push(INDEXED);
            number::put(out, displacements.len() as u64);
            // Distances wrap: two displacements may be a whole i64 apart.
            displacements.windows(2).for_each(|pair| signed(pair[1].wrapping_sub(pair[0]), out));
            encode_shape(inner, out);
        }
        Kind::Blocks { blocks, .. } => {
            out.push(BLOCKS);
            number::put(out, blocks.len() as u64);
            let mut end = 0i64;
            for &(offset, len) in blocks {
                signed(offset.wrapping_sub(end), out);
                number::put(out, len);
                end = offset.wrapping_add(len as i64);
            }
        }
        Kind::Sequence { parts, .. } => {
            out.push(SEQUENCE);
            number::put(out, parts.len() as u64);
            parts.iter().for_each(|part| part.encode(out));
        }
    }
}

/// What the encoding of a shape cannot be longer than.
fn most_bytes_of_shape(shape: &Shape) -> u64 {
    let inside = match &shape.kind {
        Kind::Block => 0,
        Kind::Strided { inner, .. } => NUMBER_BYTES.saturating_add(most_bytes_of_shape(inner)),
        Kind::Indexed { displacements, inner } => {
            (displacements.len() as u64 * NUMBER_BYTES).saturating_add(most_bytes_of_shape(inner))
        }
        Kind::Blocks { blocks, .. } => blocks.len() as u64 * 2 * NUMBER_BYTES,
        Kind::Sequence { parts, .. } => parts.iter().fold(0, |sum: u64, part| {
            sum.saturating_add(NUMBER_BYTES).saturating_add(most_bytes_of_shape(&part.shape))
        }),
    };
    // Its kind, and a length or count.
    inside.saturating_add(1 + NUMBER_BYTES)
}

fn signed(value: i64, out: &mut Vec<u8>) {
    number::put(out, (value << 1 ^ value >> 63) as u64);
}

fn decode<T>(
    bytes: &mut &[u8],
    read: impl FnOnce(&mut Input) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut input = Input { bytes, at: 0 };
    let value = read(&mut input)?;
    *bytes = &bytes[input.at..];
    Ok(value)
}

/// Bytes and how far they have been read.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn view(&mut self) -> Result<View, DecodeError> {
        let at = self.at;
        let displacement = self.unsigned("a displacement")?;
        let etype_size = self.unsigned("an etype size")?;
        let filetype = self.datatype()?;
        View::new(displacement, etype_size, filetype).map_err(|error| invalid(at, &error))
    }

    fn datatype(&mut self) -> Result<Datatype, DecodeError> {
        let at = self.at;
        let layout = self.layout(0)?;
        let lower = self.signed("a lower bound")?;
        let extent = self.signed("an extent")?;
        let explicit = match self.byte("0 or 1")? {
            flag @ 0..=1 => flag == 1,
            _ => return Err(DecodeError { at: self.at - 1, expected: "0 or 1".into() }),
        };
        Datatype::from_parts(layout, lower, extent, explicit).map_err(|error| invalid(at, &error))
    }

    fn layout(&mut self, depth: usize) -> Result<Layout, DecodeError> {
        let at = self.at;
        let offset = self.signed("an offset")?;
        let shape = self.shape(depth)?;
        shape.shifted(offset).map_err(|error| invalid(at, &error))
    }

    fn shape(&mut self, depth: usize) -> Result<Layout, DecodeError> {
        let at = self.at;
        // A sequence may go one level further: see `Shape::checked`.
        if depth > MAX_DEPTH + 1 {
            return Err(DecodeError { at, expected: format!("at most {MAX_DEPTH} levels of nesting") });
        }
        let built = match self.byte("a shape")? {
            BLOCK => {
                let len = self.unsigned("a length")?;
                if len > i64::MAX as u64 {
                    return Err(DecodeError { at, expected: "a length of at most 63 bits".into() });
                }
                Ok(Layout::bytes(len))
            }
            STRIDED => {
                let count = self.unsigned("a count")?;
                let stride = self.signed("a stride")?;
                Layout::strided(count, stride, self.shape(depth + 1)?)
            }
            INDEXED => {
                let count = self.count("displacements")?;
                let mut displacements = Vec::with_capacity(count);
                let mut displacement = 0i64;
                for index in 0..count {
                    if index > 0 {
                        displacement = displacement.wrapping_add(self.signed("a distance")?);
                    }
                    displacements.push(displacement);
                }
                Layout::indexed(displacements, self.shape(depth + 1)?)
            }
            BLOCKS => {
                let count = self.count("blocks")?;
                let mut blocks = Vec::with_capacity(count);
                let mut end = 0i64;
                for _ in 0..count {
                    let offset = end.wrapping_add(self.signed("a distance")?);
                    let len = self.unsigned("a length")?;
                    end = offset.wrapping_add(len as i64);
                    blocks.push((offset, len));
                }
                Layout::blocks(blocks)
            }
            SEQUENCE => {
                let count = self.count("parts")?;
                let mut parts = Vec::with_capacity(count);
                for _ in 0..count {
                    parts.push((0, self.layout(depth + 1)?));
                }
                Layout::sequence(parts)
            }
            _ => return Err(DecodeError { at, expected: "a shape (0 to 4)".into() }),
        };
        built.map_err(|error| invalid(at, &error))
    }

    /// A number of things of at least a byte each: no more than there are bytes left.
    fn count(&mut self, what: &str) -> Result<usize, DecodeError> {
        let at = self.at;
        let count = self.unsigned("a number of parts")?;
        // The first displacement of a list takes no byte, but the shape behind the list does.
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() - self.at => Ok(count),
            _ => {
                let left = self.bytes.len() - self.at;
                Err(DecodeError { at, expected: format!("at most as many {what} as bytes left ({left})") })
            }
        }
    }

    fn signed(&mut self, what: &str) -> Result<i64, DecodeError> {
        let value = self.unsigned(what)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn unsigned(&mut self, what: &str) -> Result<u64, DecodeError> {
        let mut rest = &self.bytes[self.at..];
        let taken = number::take(&mut rest).map_err(|error| match error {
            NumberError::Cut => {
                DecodeError { at: self.bytes.len(), expected: format!("{what}, found the end") }
            }
            NumberError::TooLarge => {
                DecodeError { at: self.at, expected: format!("{what} of at most 64 bits") }
            }
        })?;
        self.at = self.bytes.len() - rest.len();
        Ok(taken)
    }

    fn byte(&mut self, what: &str) -> Result<u8, DecodeError> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(DecodeError { at: self.at, expected: format!("{what}, found the end") }),
        }
    }
}

pub(crate) fn invalid(at: usize, error: &LayoutError) -> DecodeError {
    DecodeError { at, expected: format!("a valid value, but {error}") }
}
