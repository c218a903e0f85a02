//! Numbers of one to ten bytes: seven bits a byte, lowest first, the top bit set on all but the last.
//!
//! Signed numbers are folded (0, −1, 1, −2, … become 0, 1, 2, 3, …) so that small ones stay short. Reading is exact:
//! a number that ends in a zero byte it does not need, or does not fit, is refused, so each number has one encoding.

/// Bytes that a number takes at most.
pub(crate) const MAX_LEN: usize = 10;

pub(crate) use pio_layout::number::put;

/// Folds a signed number (any difference of two `u64`, wrapped).
#[inline]
pub(crate) fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`fold`].
#[inline]
pub(crate) fn unfold(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// Whether `byte` may be the last of a number, at index `i`.
#[inline]
pub(crate) fn is_valid_end(byte: u8, i: usize) -> bool {
    let fits = i < MAX_LEN - 1 || byte == 1;
    let shortest = i == 0 || byte != 0;
    fits && shortest
}

/// Appends a string: its length in bytes, then the bytes.
pub(crate) fn put_str(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Takes a number from the front.
pub(crate) fn take(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in input.iter().take(MAX_LEN).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *input = &input[i + 1..];
            return is_valid_end(byte, i).then_some(value);
        }
    }
    None
}

/// Takes a number that fits 32 bits from the front.
#[inline]
pub(crate) fn take_u32(input: &mut &[u8]) -> Option<u32> {
    take(input)?.try_into().ok()
}

/// Takes a string from the front. Nothing is allocated before the length is known to be there.
pub(crate) fn take_str(input: &mut &[u8]) -> Option<String> {
    let len = usize::try_from(take(input)?).ok()?;
    let (text, rest) = input.split_at_checked(len)?;
    *input = rest;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_return_and_have_one_encoding() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut input = &bytes[..];
            assert_eq!(take(&mut input), Some(value));
            assert_eq!(unfold(fold(value as i64)), value as i64);
            assert!(input.is_empty());
        }
        for bad in [
            &[][..],
            &[0x80],
            &[0x80, 0],
            &[0xff; 10],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert_eq!(take(&mut &bad[..]), None, "{bad:?}");
        }
    }

    #[test]
    fn a_string_longer_than_its_bytes_is_refused() {
        let mut bytes = Vec::new();
        put(&mut bytes, u64::MAX);
        bytes.extend_from_slice(b"abc");
        assert_eq!(take_str(&mut &bytes[..]), None);
    }
}
