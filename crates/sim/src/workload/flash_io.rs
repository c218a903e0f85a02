//! FLASH-IO: the output of FLASH, an adaptive-mesh hydrodynamics code (Fryxell et al. 2000), as its I/O benchmark and Li
//! et al. (2003, section 5) describe it.
//!
//! Each process has 80 blocks of 8×8×8 cells. A checkpoint holds the tree of blocks and 24 unknowns as 8-byte numbers;
//! two plot files hold the tree and four unknowns as 4-byte numbers, at cell centres and at corners (9×9×9). In the
//! file an unknown is one array over all blocks of all processes, and a process's blocks lie together in it: a
//! collective call for each array. Left out are the file format's own headers.

use pio_layout::View;
use pio_plan::Direction;

use super::Workload;
use super::catalogue::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use crate::error::SimError;

pub(super) const ENTRY: Entry = Entry {
    name: "flash-io",
    about: "an adaptive-mesh code's checkpoint and plot files: array after array, contiguous for each rank",
    source: "Fryxell et al. 2000; Li et al. 2003, section 5",
    parameters: &[
        Parameter { name: "ranks", about: "processes", kind: Kind::Count(1, 1 << 20), default: "16" },
        Parameter {
            name: "blocks",
            about: "blocks of a process",
            kind: Kind::Count(1, 1 << 16),
            default: "80",
        },
        Parameter {
            name: "cells",
            about: "cells of a block along each dimension",
            kind: Kind::Count(1, 1 << 10),
            default: "8",
        },
        Parameter {
            name: "dumps",
            about: "times that the three files are written",
            kind: Kind::Count(1, 100_000),
            default: "1",
        },
        Parameter {
            name: "compute",
            about: "time before the three files",
            kind: Kind::Time("0 s", "1000000 s"),
            default: "60 s",
        },
    ],
    build,
};

/// Unknowns in a checkpoint, and in a plot file.
const UNKNOWNS: usize = 24;
const PLOTTED: usize = 4;

fn build(values: &Values) -> Result<Workload, SimError> {
    let (ranks, cells) = (values.ranks("ranks"), values.count("cells"));
    values.check_calls(u64::from(ranks) * values.count("dumps") * (3 * UNKNOWNS as u64))?;
    let mut programs = Programs::new(values, ranks);
    for dump in 0..values.count("dumps") {
        programs.all_think(values.time("compute"));
        let blocks = values.count("blocks");
        let mut file = |name: &str, number_bytes: u64, unknowns: usize, points: u64| {
            let mut arrays = tree(number_bytes).to_vec();
            arrays.extend(std::iter::repeat_n(points.pow(3) * number_bytes, unknowns));
            write_arrays(&mut programs, &format!("/flash_{name}_{dump:04}"), blocks, &arrays);
        };
        file("chk", 8, UNKNOWNS, cells);
        file("plt_cnt", 4, PLOTTED, cells);
        file("plt_crn", 4, PLOTTED, cells + 1);
    }
    Ok(programs.finish())
}

/// Bytes that each block has in the arrays of the tree: its level, its kind, its neighbours, parent and children (15
/// integers), and the coordinates of its centre, its size and its bounds.
fn tree(number_bytes: u64) -> [u64; 6] {
    [4, 4, 15 * 4, 3 * number_bytes, 3 * number_bytes, 6 * number_bytes]
}

/// Arrays one behind the other, of each of which a process has so many bytes a block.
fn write_arrays(programs: &mut Programs, path: &str, blocks: u64, arrays: &[u64]) {
    let file = programs.open_together(path);
    let whole = programs.view(View::contiguous(0));
    let ranks = u64::from(programs.ranks());
    let mut start = 0;
    for bytes in arrays.iter().map(|bytes| bytes * blocks) {
        for rank in 0..programs.ranks() {
            let offset = start + u64::from(rank) * bytes;
            programs.collective(rank, file, Direction::Write, whole, offset..offset + bytes);
        }
        start += ranks * bytes;
    }
    programs.close_together(file);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests_support::{built, coverage};

    #[test]
    fn three_files_each_byte_written_once() {
        let found = coverage(&built("flash-io", &[("ranks", "2")]), Direction::Write);
        let blocks = 2 * 80;
        let expected = [
            // 24 unknowns and a tree of 164 bytes a block: a process has 7.9 MB.
            blocks * (24 * 512 * 8 + 68 + 12 * 8),
            blocks * (4 * 512 * 4 + 68 + 12 * 4),
            blocks * (4 * 729 * 4 + 68 + 12 * 4),
        ];
        assert_eq!(found.len(), 3);
        for ((file, bytes), length) in found.iter().zip(expected) {
            assert_eq!((bytes.length, bytes.touched, bytes.pieces), (length, length, 1), "{file}");
        }
    }
}
