//! Views as MPI allows them: beside those that tile the file in order, two that are odd.
//!
//! A filetype may be longer than its extent: see [`View::of_filetype`].
//!
//! A filetype may overlap itself if the file is only read. Its data are read piece by piece.

use std::ops::Range;
use std::sync::Arc;

use pio_layout::{Datatype, Layout, LayoutError, View};

use crate::core::mpi::memory::Memory;
use crate::core::mpi::status::Status;
use crate::core::storage::backend::Storage;

/// What a program set.
#[derive(Clone, Debug)]
pub(crate) struct FileView {
    /// What counts for how many data bytes and etypes there are, and for all access unless the filetype overlaps itself.
    pub(crate) regular: View,
    /// The filetype, if it overlaps itself.
    pub(crate) overlapping: Option<Arc<Overlapping>>,
}

impl FileView {
    /// # Errors
    /// If it is no view for a file that is written (if `writes`) or read. MPI names no class for filetypes that are no
    /// filetypes; programs know ROMIO's.
    pub(crate) fn new(
        displacement: u64,
        etype: u64,
        filetype: &Datatype,
        writes: bool,
    ) -> Result<FileView, Status> {
        match View::of_filetype(displacement, etype, filetype.clone()) {
            Ok(regular) => Ok(FileView { regular, overlapping: None }),
            Err(LayoutError::NotMonotone { .. }) if !writes => {
                let overlapping = Overlapping::new(displacement, filetype)?;
                // For counting only: as many data bytes, one after the other.
                let regular = View::new(displacement, etype, Datatype::bytes(filetype.size()));
                Ok(FileView {
                    regular: regular.map_err(|_| Status::Argument)?,
                    overlapping: Some(Arc::new(overlapping)),
                })
            }
            Err(LayoutError::NotMonotone { .. } | LayoutError::BeforeFile { .. }) => Err(Status::Io),
            Err(_) => Err(Status::Argument),
        }
    }
}

/// A filetype whose pieces may overlap, but begin in order.
#[derive(Debug)]
pub(crate) struct Overlapping {
    displacement: i64,
    layout: Layout,
    extent: i64,
}

impl Overlapping {
    fn new(displacement: u64, filetype: &Datatype) -> Result<Overlapping, Status> {
        let displacement = i64::try_from(displacement).map_err(|_| Status::Displacement)?;
        let (layout, extent) = (filetype.layout().clone(), filetype.extent());
        let first = displacement.checked_add(layout.lower_bound()).ok_or(Status::Argument)?;
        let mut last = i64::MIN;
        for piece in layout.extents(0..layout.size()) {
            if piece.offset < last {
                return Err(Status::Io);
            }
            last = piece.offset;
        }
        if first < 0 || extent < 0 || layout.is_empty() {
            return Err(Status::Io);
        }
        Ok(Overlapping { displacement, layout, extent })
    }

    /// Where in the file a data byte is.
    pub(crate) fn offset_of(&self, position: u64) -> Option<u64> {
        let inside = self.layout.offset_of(position % self.layout.size())?;
        self.tile(position / self.layout.size())?.checked_add(inside)?.try_into().ok()
    }

    /// The first data byte that is not before this one of the file; none if there is no such.
    pub(crate) fn position_at_or_after(&self, offset: u64) -> Option<u64> {
        let offset = i64::try_from(offset).ok()?;
        // The first tile with a byte that is not before it.
        let behind =
            i128::from(offset) - i128::from(self.displacement) - i128::from(self.layout.upper_bound());
        let tile =
            if behind < 0 { 0 } else { u64::try_from(behind.checked_div(self.extent.into())? + 1).ok()? };
        let inside = offset - self.tile(tile)?;
        let mut before = 0;
        for piece in self.layout.extents(0..self.layout.size()) {
            let skipped = u64::try_from(inside - piece.offset).unwrap_or(0);
            if skipped < piece.len {
                return tile.checked_mul(self.layout.size())?.checked_add(before + skipped);
            }
            before += piece.len;
        }
        None
    }

    /// Reads the data bytes `positions`; bytes read, fewer only if the file ends.
    pub(crate) fn read(
        &self,
        storage: &Storage,
        positions: Range<u64>,
        memory: &mut Memory,
    ) -> Result<u64, Status> {
        let size = self.layout.size();
        let mut buffer = Vec::new();
        let mut at = positions.start;
        while at < positions.end {
            let (tile, inside) = (at / size, at % size);
            let end = size.min(inside + (positions.end - at));
            let start = self.tile(tile).ok_or(Status::Argument)?;
            for piece in self.layout.extents(inside..end) {
                buffer.resize(piece.len as usize, 0);
                let offset = start.checked_add(piece.offset).ok_or(Status::Argument)?;
                let read = storage.read(offset as u64, &mut buffer)?;
                let done = at - positions.start;
                memory.unpack(done..done + read, &buffer[..read as usize]).map_err(|_| Status::Internal)?;
                at += read;
                if read < piece.len {
                    return Ok(at - positions.start);
                }
            }
        }
        Ok(at - positions.start)
    }

    fn tile(&self, tile: u64) -> Option<i64> {
        i64::try_from(tile).ok()?.checked_mul(self.extent)?.checked_add(self.displacement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(blocks: &[(u64, i64)]) -> Datatype {
        Datatype::indexed(blocks, &Datatype::bytes(4)).unwrap()
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        for writes in [true, false] {
            let view = |blocks: &[(u64, i64)]| FileView::new(0, 4, &indexed(blocks), writes).map(drop);
            assert_eq!(view(&[(1, -2), (1, 2)]), Err(Status::Io));
            assert_eq!(view(&[(1, 3), (1, 0)]), Err(Status::Io));
            assert_eq!(view(&[(3, 0), (1, 1)]), if writes { Err(Status::Io) } else { Ok(()) });
            assert_eq!(view(&[(1, 0), (1, 2)]), Ok(()));
        }
        let odd = FileView::new(0, 3, &indexed(&[(1, 0)]), false).map(drop);
        assert_eq!(odd, Err(Status::Argument));
    }

    #[test]
    fn overlapping_pieces_have_their_offsets() {
        let view = FileView::new(8, 4, &indexed(&[(3, 0), (1, 1)]), false).unwrap();
        let overlapping = view.overlapping.unwrap();
        assert_eq!(overlapping.offset_of(8), Some(8 + 8));
        assert_eq!(overlapping.offset_of(12), Some(8 + 4));
        assert_eq!(overlapping.offset_of(16), Some(8 + 12));
        for (offset, position) in [(0, 0), (9, 1), (16, 8), (20, 16), (21, 17), (31, 27), (32, 32), (44, 48)]
        {
            assert_eq!(overlapping.position_at_or_after(offset), Some(position), "{offset}");
            assert!((0..position).all(|before| overlapping.offset_of(before).unwrap() < offset));
        }
        let at_one_place = indexed(&[(3, 0), (1, 1)]).resized(0, 0).unwrap();
        let overlapping = FileView::new(0, 4, &at_one_place, false).unwrap().overlapping.unwrap();
        assert_eq!(overlapping.position_at_or_after(11), Some(11));
        assert_eq!(overlapping.position_at_or_after(12), None);
    }
}
