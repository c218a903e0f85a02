//! The program's own memory, as an operation sees it: copies of a datatype from an address on.

use pio_layout::{Datatype, Layout, LayoutError, View, pack};
use std::ops::Range;

/// The program's buffer: data byte `position` of the operation is the `position`-th byte of the layout.
#[derive(Debug)]
pub(crate) struct Memory {
    base: *mut u8,
    len: usize,
    /// Index in `base` of the layout's offset 0.
    origin: i64,
    layout: Layout,
}

// SAFETY: the memory is the program's, which lends it until the operation is complete.
unsafe impl Send for Memory {}

impl Memory {
    /// `count` copies of `datatype` at `address`.
    ///
    /// # Errors
    /// If their offsets do not fit 64 bits.
    ///
    /// # Safety
    /// The program promised MPI that this memory is its, to be read (and written, by operations that read) as long as
    /// the operation lasts.
    pub(crate) unsafe fn new(
        address: *mut u8,
        count: u64,
        datatype: &Datatype,
    ) -> Result<Memory, LayoutError> {
        let layout = datatype.repeated(count)?;
        let lower = layout.lower_bound();
        let len = (layout.upper_bound() - lower) as usize;
        // With MPI_BOTTOM, the address is 0 and the offsets are addresses.
        let base = address.wrapping_offset(lower as isize);
        Ok(Memory { base, len, origin: -lower, layout })
    }

    /// No memory at all, of an operation without data.
    pub(crate) fn none() -> Memory {
        Memory { base: std::ptr::null_mut(), len: 0, origin: 0, layout: Layout::bytes(0) }
    }

    /// Number of data bytes.
    pub(crate) fn size(&self) -> u64 {
        self.layout.size()
    }

    /// Data bytes `positions`, if they are contiguous in memory.
    pub(crate) fn contiguous(&mut self, positions: Range<u64>) -> Option<&mut [u8]> {
        let place = self.place_of(positions)?;
        self.bytes_mut().get_mut(place)
    }

    /// The pieces of memory that hold data bytes `positions`, in order; none if they are shorter than `least` in the mean.
    pub(crate) fn slices(&self, positions: Range<u64>, least: u64) -> Option<impl Iterator<Item = &[u8]>> {
        let bytes = positions.end - positions.start;
        let most = bytes / least.max(1);
        let pieces: u64 = self
            .layout
            .runs(positions.clone())
            .map(|run| run.count)
            .take_while({
                let mut sum = 0_u64;
                move |count| {
                    sum = sum.saturating_add(*count);
                    sum <= most.saturating_add(1)
                }
            })
            .sum();
        if pieces > most.max(1) {
            return None;
        }
        let place = |extent: pio_layout::Extent| {
            let start = usize::try_from(extent.offset + self.origin).ok()?;
            self.bytes().get(start..start.checked_add(extent.len as usize)?)
        };
        Some(self.layout.extents(positions).filter_map(place))
    }

    /// Where in memory data bytes `positions` are, if they are contiguous.
    fn place_of(&self, positions: Range<u64>) -> Option<Range<usize>> {
        let len = positions.end - positions.start;
        if self.layout.is_dense() {
            return Some(positions.start as usize..positions.end as usize);
        }
        let first = self.layout.runs(positions).next()?;
        let start = (first.offset + self.origin) as usize;
        (first.size() == len && first.count == 1).then_some(start..start + len as usize)
    }

    /// Copies data bytes `positions` into `stream`.
    pub(crate) fn pack(&self, positions: Range<u64>, stream: &mut [u8]) -> Result<(), LayoutError> {
        pack::pack(self.layout.runs(positions), self.bytes(), self.origin, stream)
    }

    /// Copies `stream` to data bytes `positions`.
    pub(crate) fn unpack(&mut self, positions: Range<u64>, stream: &[u8]) -> Result<(), LayoutError> {
        let (runs, origin) = (self.layout.runs(positions), self.origin);
        pack::unpack(runs, self.bytes_mut(), origin, stream)
    }

    /// Copies the data bytes `positions` of `view`, the first of which is data byte `start`, into a buffer that holds
    /// the file from offset `window` on.
    pub(crate) fn copy_to(
        &self,
        start: u64,
        view: &View,
        positions: Range<u64>,
        buffer: &mut [u8],
        window: u64,
    ) -> Result<(), LayoutError> {
        let len = positions.end - positions.start;
        let window = -(window as i64);
        if let Some(stream) = self.place_of(start..start + len).and_then(|place| self.bytes().get(place)) {
            return pack::unpack(view.runs(positions), buffer, window, stream);
        }
        let own = self.layout.runs(start..start + len);
        pack::copy(own, self.bytes(), self.origin, view.runs(positions), buffer, window, len)
    }

    /// The other way round.
    pub(crate) fn copy_from(
        &mut self,
        start: u64,
        view: &View,
        positions: Range<u64>,
        buffer: &[u8],
        window: u64,
    ) -> Result<(), LayoutError> {
        let len = positions.end - positions.start;
        let window = -(window as i64);
        if let Some(stream) = self.contiguous(start..start + len) {
            return pack::pack(view.runs(positions), buffer, window, stream);
        }
        let own = self.layout.runs(start..start + len);
        let origin = self.origin;
        pack::copy(view.runs(positions), buffer, window, own, self.bytes_mut(), origin, len)
    }

    fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the program's memory, by the contract of `new`.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: the program's memory, by the contract of `new`; only operations that read write to it.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }
}
