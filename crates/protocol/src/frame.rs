//! A message: what precedes its head.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | bytes of the head, little endian |
//! | 4 | 4 | bytes of the data, little endian |
//! | 8 | 4 | CRC-32 of the data, little endian; 0 if there are none |
//! | 12 | 4 | CRC-32 of bytes 0 to 11 and of the head, little endian |
//! | 16 | | the head |
//! | | | the data |
//!
//! On a stream of bytes the prefix is *packed*, as most messages are short: the two lengths are LEB128, the checksum of the
//! data is there only if there are data, and the checksum of the head is that of the prefix as it is above.

use crate::error::ProtocolError;
use crate::limits::Limits;
use crate::wire::put;

/// Bytes before the head.
pub const PREFIX_BYTES: usize = 16;
const HEAD_LEN: usize = 0;
const DATA_LEN: usize = 4;
const DATA_CHECKSUM: usize = 8;
const HEAD_CHECKSUM: usize = 12;

/// What precedes a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes of the head.
    pub head_len: u32,
    /// Bytes of the data.
    pub data_len: u32,
    /// CRC-32 of the data.
    pub data_checksum: u32,
    head_checksum: u32,
}

impl Prefix {
    /// The prefix of a head, and of data of which the length and checksum are known.
    pub fn new(head: &[u8], data_len: u32, data_checksum: u32) -> Prefix {
        let mut prefix = Prefix { head_len: head.len() as u32, data_len, data_checksum, head_checksum: 0 };
        prefix.head_checksum = prefix.checksum(head);
        prefix
    }

    /// The prefix as bytes.
    pub fn encode(&self) -> [u8; PREFIX_BYTES] {
        let mut bytes = [0; PREFIX_BYTES];
        bytes[HEAD_LEN..][..4].copy_from_slice(&self.head_len.to_le_bytes());
        bytes[DATA_LEN..][..4].copy_from_slice(&self.data_len.to_le_bytes());
        bytes[DATA_CHECKSUM..][..4].copy_from_slice(&self.data_checksum.to_le_bytes());
        bytes[HEAD_CHECKSUM..].copy_from_slice(&self.head_checksum.to_le_bytes());
        bytes
    }

    /// The prefix in these bytes.
    ///
    /// # Errors
    /// If it announces more than the limits allow.
    pub fn decode(bytes: &[u8; PREFIX_BYTES], limits: &Limits) -> Result<Prefix, ProtocolError> {
        let field = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let prefix = Prefix {
            head_len: field(HEAD_LEN),
            data_len: field(DATA_LEN),
            data_checksum: field(DATA_CHECKSUM),
            head_checksum: field(HEAD_CHECKSUM),
        };
        prefix.check_lengths(limits)?;
        Ok(prefix)
    }

    /// Appends the packed prefix.
    pub fn pack(&self, out: &mut Vec<u8>) {
        put(out, self.head_len.into());
        put(out, self.data_len.into());
        if self.data_len > 0 {
            out.extend(self.data_checksum.to_le_bytes());
        }
        out.extend(self.head_checksum.to_le_bytes());
    }

    /// The packed prefix that `next` gives byte by byte.
    ///
    /// # Errors
    /// If it announces more than the limits allow, is none, or `next` fails.
    pub fn unpack<E: From<ProtocolError>>(
        limits: &Limits,
        mut next: impl FnMut() -> Result<u8, E>,
    ) -> Result<Prefix, E> {
        let mut length = || -> Result<u32, E> {
            let mut value = 0_u32;
            for shift in (0..u32::BITS).step_by(7) {
                let byte = next()?;
                let bits = u32::from(byte & 0x7f);
                if bits << shift >> shift != bits {
                    break;
                }
                value |= bits << shift;
                if byte < 0x80 {
                    return Ok(value);
                }
            }
            Err(ProtocolError::Malformed { expected: "a length of at most 32 bits" }.into())
        };
        let (head_len, data_len) = (length()?, length()?);
        let mut checksum =
            || -> Result<u32, E> { Ok(u32::from_le_bytes([next()?, next()?, next()?, next()?])) };
        let data_checksum = if data_len > 0 { checksum()? } else { 0 };
        let prefix = Prefix { head_len, data_len, data_checksum, head_checksum: checksum()? };
        prefix.check_lengths(limits)?;
        Ok(prefix)
    }

    fn check_lengths(&self, limits: &Limits) -> Result<(), ProtocolError> {
        for (what, bytes, limit) in
            [("a head", self.head_len, limits.head_bytes), ("data", self.data_len, limits.data_bytes)]
        {
            if bytes > limit {
                return Err(ProtocolError::TooLong { what, bytes: bytes.into(), limit: limit.into() });
            }
        }
        Ok(())
    }

    /// Checks the head that came.
    ///
    /// # Errors
    /// If it (or the prefix) is not what was sent.
    pub fn check_head(&self, head: &[u8]) -> Result<(), ProtocolError> {
        let same = self.checksum(head) == self.head_checksum;
        if same { Ok(()) } else { Err(ProtocolError::Checksum { what: "head" }) }
    }

    /// Checks the data that came.
    ///
    /// # Errors
    /// If they are not what was sent.
    pub fn check_data(&self, checksum: u32) -> Result<(), ProtocolError> {
        let same = self.data_len == 0 || checksum == self.data_checksum;
        if same { Ok(()) } else { Err(ProtocolError::Checksum { what: "data" }) }
    }

    fn checksum(&self, head: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.encode()[..HEAD_CHECKSUM]);
        hasher.update(head);
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_changed_bit_is_noticed(
            head in proptest::collection::vec(any::<u8>(), 1..40), bit in 0usize..400,
        ) {
            let limits = Limits::DEFAULT;
            let prefix = Prefix::new(&head, 7, 99);
            let mut bytes = prefix.encode().to_vec();
            bytes.extend(&head);
            let whole = |bytes: &[u8]| {
                let prefix = Prefix::decode(bytes.first_chunk().unwrap(), &limits)?;
                prefix.check_head(&bytes[PREFIX_BYTES..]).map(|()| prefix)
            };
            prop_assert_eq!(whole(&bytes), Ok(prefix));
            let mut packed = Vec::new();
            prefix.pack(&mut packed);
            prop_assert!(packed.len() <= 12);
            prop_assert_eq!(unpacked(&packed, &limits), Ok(prefix));
            packed.pop();
            prop_assert!(unpacked(&packed, &limits).is_err());
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(whole(&bytes).is_err());
        }
    }

    fn unpacked(mut bytes: &[u8], limits: &Limits) -> Result<Prefix, ProtocolError> {
        Prefix::unpack(limits, || {
            let (first, rest) = bytes.split_first().ok_or(ProtocolError::Malformed { expected: "a byte" })?;
            bytes = rest;
            Ok(*first)
        })
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            if let Ok(prefix) = unpacked(&bytes, &Limits::DEFAULT) {
                prop_assert!(prefix.head_len <= Limits::DEFAULT.head_bytes);
                let mut packed = Vec::new();
                prefix.pack(&mut packed);
                prop_assert_eq!(unpacked(&packed, &Limits::DEFAULT), Ok(prefix));
            }
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_read() {
        let limits = Limits { head_bytes: 10, data_bytes: 20, ..Limits::DEFAULT };
        let long = Prefix { head_len: 11, data_len: 0, data_checksum: 0, head_checksum: 0 };
        assert!(matches!(
            Prefix::decode(&long.encode(), &limits),
            Err(ProtocolError::TooLong { bytes: 11, limit: 10, .. })
        ));
        let long = Prefix { head_len: 1, data_len: 21, data_checksum: 0, head_checksum: 0 };
        assert!(matches!(
            Prefix::decode(&long.encode(), &limits),
            Err(ProtocolError::TooLong { bytes: 21, limit: 20, .. })
        ));
    }
}
