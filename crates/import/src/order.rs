//! Numbers in the byte order of the machine that wrote a log.

/// The byte order of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first: x86, and most others.
    Little,
    /// Most significant byte first: the Power processors of Blue Gene.
    Big,
}

impl ByteOrder {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }

    pub(super) fn i64(self, bytes: [u8; 8]) -> i64 {
        self.u64(bytes) as i64
    }
}

/// The words of a record of known length, one after the other. Behind its end there are zeros: callers take as many
/// words as they asked bytes for.
pub(super) struct Words<'a> {
    words: std::slice::Iter<'a, [u8; 8]>,
    order: ByteOrder,
}

impl<'a> Words<'a> {
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Words<'a> {
        Words { words: bytes.as_chunks().0.iter(), order }
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.order.u64(self.words.next().copied().unwrap_or_default())
    }

    pub(super) fn i64(&mut self) -> i64 {
        self.u64() as i64
    }

    pub(super) fn f64(&mut self) -> f64 {
        f64::from_bits(self.u64())
    }
}

/// Text in a field of fixed size, up to its first NUL.
pub(super) fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
