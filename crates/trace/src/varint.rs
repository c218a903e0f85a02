//! Numbers of one to ten bytes: seven bits a byte, lowest first, the top bit set on all but the last.
//!
//! Signed numbers are folded (0, −1, 1, −2, … become 0, 1, 2, 3, …) so that small ones stay short. Reading is exact:
//! a number that ends in a zero byte it does not need, or does not fit, is refused, so each number has one encoding.

/// Appends a number.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number (any difference of two `u64`, wrapped).
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a string: its length in bytes, then the bytes.
pub(crate) fn put_str(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Takes a number from the front.
#[inline]
pub(crate) fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(u64::from(first));
    }
    take_long(input)
}

#[inline]
fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in input.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            let fits = i < 9 || byte == 1;
            let shortest = byte != 0;
            *input = &input[i + 1..];
            return (fits && shortest).then_some(value);
        }
    }
    None
}

/// Takes a signed number from the front.
#[inline]
pub(crate) fn take_signed(input: &mut &[u8]) -> Option<i64> {
    let folded = take(input)?;
    Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
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
            put_signed(&mut bytes, value as i64);
            let mut input = &bytes[..];
            assert_eq!(take(&mut input), Some(value));
            assert_eq!(take_signed(&mut input), Some(value as i64));
            assert!(input.is_empty());
        }
        for bad in [&[][..], &[0x80], &[0x80, 0], &[0xff; 10], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]] {
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
