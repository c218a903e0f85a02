//! FLASH-IO: the output of FLASH, an adaptive-mesh hydrodynamics code (Fryxell et al. 2000), as its I/O benchmark writes
//! it (Liao and Choudhary 2008; README of FLASH-IO in PnetCDF).
//!
//! Each process has 80 blocks of 8×8×8 cells, or one or two more, in turn. A checkpoint holds the tree of blocks and 24
//! unknowns; two plot files hold the tree and four unknowns, at cell centres and at corners (9×9×9). All numbers have 8
//! bytes, as in the benchmark's form for Parallel netCDF, whose output sizes the test compares. In the file an unknown
//! is one array over all blocks of all processes, and a process's blocks lie together in it: a collective call for each
//! array. Left out is the file format's own header.

use pio_layout::View;
use pio_plan::Direction;

use super::entry::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use super::steps::Workload;
use crate::error::SimError;

pub(super) const ENTRY: Entry = Entry {
    name: "flash-io",
    about: "an adaptive-mesh code's checkpoint and plot files: array after array, contiguous for each rank",
    source: "Fryxell et al. 2000; Liao and Choudhary 2008; FLASH-IO of the PnetCDF distribution",
    parameters: &[
        Parameter { name: "ranks", about: "processes", kind: Kind::Count(1, 1 << 20), default: "16" },
        Parameter {
            name: "blocks",
            about: "blocks of rank 0; the next two have one and two more, and so on in turn",
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

const NUMBER_BYTES: u64 = 8;

/// Bytes that each block has in the arrays of the tree: its level, its kind, its neighbours, parent and children (15
/// integers of 4 bytes), and the coordinates of its centre, its size and its bounds.
const TREE: [u64; 6] = [4, 4, 15 * 4, 3 * NUMBER_BYTES, 3 * NUMBER_BYTES, 6 * NUMBER_BYTES];

/// Unknowns in a checkpoint, and in a plot file.
const UNKNOWNS: usize = 24;
const PLOTTED: usize = 4;

fn build(values: &Values) -> Result<Workload, SimError> {
    let (ranks, cells) = (values.ranks("ranks"), values.count("cells"));
    values.check_calls(u64::from(ranks) * values.count("dumps") * (3 * UNKNOWNS as u64))?;
    // The tree, and what some ranks have more, are less than one more of everything.
    let points = (cells + 1).pow(3) * NUMBER_BYTES;
    values.check_file(&[UNKNOWNS as u64 + 1, points, values.count("blocks") + 2, u64::from(ranks)])?;
    let mut programs = Programs::new(values, ranks);
    for dump in 0..values.count("dumps") {
        programs.all_think(values.time("compute"));
        let blocks = values.count("blocks");
        let mut file = |name: &str, unknowns: usize, points: u64| {
            let unknown = points.pow(3) * NUMBER_BYTES;
            let arrays = TREE.into_iter().chain(std::iter::repeat_n(unknown, unknowns));
            write_arrays(&mut programs, &format!("/flash_{name}_{dump:04}"), blocks, arrays);
        };
        file("chk", UNKNOWNS, cells);
        file("plt_cnt", PLOTTED, cells);
        file("plt_crn", PLOTTED, cells + 1);
    }
    Ok(programs.finish())
}

/// Arrays one behind the other, with so many bytes for each block.
fn write_arrays(programs: &mut Programs, path: &str, blocks: u64, arrays: impl Iterator<Item = u64>) {
    let file = programs.open_together(path);
    let whole = programs.view(View::contiguous(0));
    let mut offset = 0;
    for bytes in arrays {
        for rank in 0..programs.ranks() {
            let size = (blocks + u64::from(rank % 3)) * bytes;
            programs.collective(rank, file, Direction::Write, whole, offset..offset + size);
            offset += size;
        }
    }
    programs.close_together(file);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests_support::{built, coverage};

    #[test]
    fn three_files_as_large_as_the_benchmark_says_each_byte_written_once() {
        let found = coverage(&built("flash-io", &[("ranks", "512"), ("cells", "16")]), Direction::Write);
        // What the benchmark prints for 512 processes and blocks of 16×16×16 (README of FLASH-IO in PnetCDF), MiB.
        for ((file, bytes), published) in found.iter().zip([31_109.74, 5_190.36, 6_224.35]) {
            assert_eq!((bytes.touched, bytes.pieces), (bytes.length, 1), "{file}");
            let size_mib = bytes.length as f64 / f64::from(1 << 20);
            assert!((size_mib - published).abs() < 0.005, "{file}: {size_mib}");
        }
        assert_eq!(found.len(), 3);
    }
}
