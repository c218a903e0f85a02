//! What the tests of the generators share.

use std::collections::BTreeMap;

use pio_plan::Direction;

use super::{What, Workload, find};
use crate::error::SimError;

/// Which bytes of a file are touched.
pub(super) struct Bytes {
    /// One past the last.
    pub(super) length: u64,
    /// How many, those touched twice counted twice.
    pub(super) touched: u64,
    /// In how many pieces, if what overlaps or follows one another is one.
    pub(super) pieces: usize,
}

/// A workload of the catalogue.
pub(super) fn built(name: &str, given: &[(&str, &str)]) -> Workload {
    build(name, given).unwrap_or_else(|error| panic!("{error}"))
}

/// Why there is no such workload.
pub(super) fn message(name: &str, given: &[(&str, &str)]) -> String {
    build(name, given).unwrap_err().to_string()
}

fn build(name: &str, given: &[(&str, &str)]) -> Result<Workload, SimError> {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    find(name)?.build(&given, 1)
}

/// What is read or written of each file, in the order in which the files are named.
pub(super) fn coverage(workload: &Workload, direction: Direction) -> Vec<(String, Bytes)> {
    let mut extents: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for step in workload.programs.iter().flatten() {
        let file = |handle: &pio_trace::HandleId| workload.handles[handle.index()].file;
        match &step.what {
            What::Request { handle, direction: way, offset, bytes, .. } if *way == direction => {
                extents.entry(file(handle)).or_default().push((*offset, *bytes));
            }
            What::Access { handle, direction: way, view, positions, .. } if *way == direction => {
                let found = workload.views[view.index()].extents(positions.clone());
                extents
                    .entry(file(handle))
                    .or_default()
                    .extend(found.map(|extent| (extent.offset as u64, extent.len)));
            }
            _ => {}
        }
    }
    extents
        .into_iter()
        .map(|(file, mut extents)| {
            extents.sort_unstable();
            let (mut end, mut pieces) = (0, 0);
            for (offset, bytes) in &extents {
                pieces += usize::from(pieces == 0 || *offset > end);
                end = end.max(offset + bytes);
            }
            let touched = extents.iter().map(|(_, bytes)| bytes).sum();
            (workload.files[file as usize].path.clone(), Bytes { length: end, touched, pieces })
        })
        .collect()
}
