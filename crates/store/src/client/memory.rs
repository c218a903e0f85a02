//! The caller's memory: where the data of an operation come from, or go to.
//!
//! Data bytes are counted from 0: byte `k` of the operation is the k-th of the memory, in its order.

use std::io::IoSlice;
use std::ops::Range;

use pio_layout::{Layout, pack};

/// Pieces that are shorter on average are packed into one buffer; longer ones are sent from where they lie. Below it,
/// telling the kernel of a piece costs more than copying it.
pub const GATHER_BYTES: u64 = 256;

/// Memory that is written from.
pub trait Source {
    /// Appends the pieces that hold these data bytes, in order; or returns false (having appended nothing) if they are
    /// so small that they are better packed.
    fn gather<'a>(&'a self, bytes: Range<u64>, pieces: &mut Vec<IoSlice<'a>>) -> bool;

    /// Copies these data bytes to `out`, which is as long.
    fn pack(&self, bytes: Range<u64>, out: &mut [u8]);
}

/// Memory that is read into.
pub trait Sink {
    /// Where these data bytes go, if they lie side by side.
    fn slice(&mut self, bytes: Range<u64>) -> Option<&mut [u8]>;

    /// Copies `data` to where these data bytes go.
    fn unpack(&mut self, bytes: Range<u64>, data: &[u8]);

    /// Makes these data bytes zero.
    fn zero(&mut self, bytes: Range<u64>);
}

impl Source for [u8] {
    fn gather<'a>(&'a self, bytes: Range<u64>, pieces: &mut Vec<IoSlice<'a>>) -> bool {
        if let Some(piece) = self.get(bytes.start as usize..bytes.end as usize) {
            pieces.push(IoSlice::new(piece));
        }
        true
    }

    fn pack(&self, bytes: Range<u64>, out: &mut [u8]) {
        out.copy_from_slice(&self[bytes.start as usize..bytes.end as usize]);
    }
}

impl Sink for [u8] {
    fn slice(&mut self, bytes: Range<u64>) -> Option<&mut [u8]> {
        self.get_mut(bytes.start as usize..bytes.end as usize)
    }

    fn unpack(&mut self, bytes: Range<u64>, data: &[u8]) {
        self[bytes.start as usize..bytes.end as usize].copy_from_slice(data);
    }

    fn zero(&mut self, bytes: Range<u64>) {
        self[bytes.start as usize..bytes.end as usize].fill(0);
    }
}

impl Source for &[u8] {
    fn gather<'a>(&'a self, bytes: Range<u64>, pieces: &mut Vec<IoSlice<'a>>) -> bool {
        (**self).gather(bytes, pieces)
    }

    fn pack(&self, bytes: Range<u64>, out: &mut [u8]) {
        (**self).pack(bytes, out);
    }
}

impl Sink for &mut [u8] {
    fn slice(&mut self, bytes: Range<u64>) -> Option<&mut [u8]> {
        (**self).slice(bytes)
    }

    fn unpack(&mut self, bytes: Range<u64>, data: &[u8]) {
        (**self).unpack(bytes, data);
    }

    fn zero(&mut self, bytes: Range<u64>) {
        (**self).zero(bytes);
    }
}

/// Memory in which the data lie as a layout says.
#[derive(Debug)]
pub struct Layed<B> {
    /// The memory.
    pub memory: B,
    /// Index in it of the layout's offset 0.
    pub origin: i64,
    /// Where the data bytes are.
    pub layout: Layout,
}

impl<B: AsRef<[u8]>> Layed<B> {
    /// Memory in which the data lie as `layout` says, from index `origin` on; `None` if they lie outside.
    pub fn new(memory: B, origin: i64, layout: Layout) -> Option<Layed<B>> {
        let fits = layout.is_empty()
            || layout.lower_bound().checked_add(origin)? >= 0
                && layout.upper_bound().checked_add(origin)? <= memory.as_ref().len() as i64;
        fits.then_some(Layed { memory, origin, layout })
    }
}

impl<B: AsRef<[u8]>> Source for Layed<B> {
    fn gather<'a>(&'a self, bytes: Range<u64>, pieces: &mut Vec<IoSlice<'a>>) -> bool {
        let runs = self.layout.runs(bytes.clone());
        let count: u64 = runs.clone().take(4096).map(|run| run.count).sum();
        if bytes.end - bytes.start < count * GATHER_BYTES {
            return false;
        }
        let memory = self.memory.as_ref();
        for piece in self.layout.extents(bytes) {
            let start = (piece.offset + self.origin) as usize;
            pieces.push(IoSlice::new(&memory[start..start + piece.len as usize]));
        }
        true
    }

    fn pack(&self, bytes: Range<u64>, out: &mut [u8]) {
        // The bounds were checked when this was made.
        let _ = pack::pack(self.layout.runs(bytes), self.memory.as_ref(), self.origin, out);
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Sink for Layed<B> {
    fn slice(&mut self, bytes: Range<u64>) -> Option<&mut [u8]> {
        let len = bytes.end - bytes.start;
        let first = self.layout.runs(bytes).next()?;
        let start = (first.offset + self.origin) as usize;
        if first.count != 1 || first.len != len {
            return None;
        }
        self.memory.as_mut().get_mut(start..start + len as usize)
    }

    fn unpack(&mut self, bytes: Range<u64>, data: &[u8]) {
        let _ = pack::unpack(self.layout.runs(bytes), self.memory.as_mut(), self.origin, data);
    }

    fn zero(&mut self, bytes: Range<u64>) {
        let zeros = [0; 4096];
        let mut at = bytes.start;
        while at < bytes.end {
            let end = bytes.end.min(at + zeros.len() as u64);
            self.unpack(at..end, &zeros[..(end - at) as usize]);
            at = end;
        }
    }
}
