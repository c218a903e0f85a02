//! Unsigned numbers of one to ten bytes (LEB128): seven bits a byte, lowest first, the top bit set on all but the last.
//!
//! Layouts, messages between ranks, requests to servers and the fields of a trace are made of them.

/// What is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// The bytes end within it.
    Cut,
    /// It does not fit 64 bits.
    TooLarge,
}

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front.
///
/// # Errors
/// If there is none; `input` is left as it was then.
#[inline]
pub fn take(input: &mut &[u8]) -> Result<u64, NumberError> {
    let (mut value, mut rest) = (0_u64, *input);
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first().ok_or(NumberError::Cut)?;
        rest = behind;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if bits << shift >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte < 0x80 {
            *input = rest;
            return Ok(value);
        }
    }
    Err(NumberError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            bytes.push(7);
            let mut input = &bytes[..];
            assert_eq!(take(&mut input), Ok(value));
            assert_eq!(input, [7]);
        }
    }

    #[test]
    fn what_is_cut_or_too_large_is_told() {
        for cut in [&[][..], &[0x80], &[0xff; 9]] {
            assert_eq!(take(&mut &cut[..]), Err(NumberError::Cut), "{cut:?}");
        }
        let mut large = [0xff; 10];
        assert_eq!(take(&mut &large[..]), Err(NumberError::TooLarge));
        large[9] = 2;
        assert_eq!(take(&mut &large[..]), Err(NumberError::TooLarge));
        large[9] = 0x81;
        assert_eq!(take(&mut &large[..]), Err(NumberError::TooLarge));
    }
}
