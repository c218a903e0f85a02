//! S3D-IO: the checkpoints of S3D, a direct numerical simulation of turbulent combustion (Chen et al. 2009; its I/O
//! kernel as used by Liao and Choudhary 2008, and its README).
//!
//! A checkpoint is a file of four arrays of 8-byte numbers in Fortran order: mass (eleven species), velocity (three
//! components), pressure and temperature. Their first three dimensions are distributed (block, block, block), the fourth
//! is not. Each array is written with a collective call. A run may begin by reading a checkpoint.

use pio_layout::{Datatype, LayoutError, Order, View};
use pio_plan::Direction;

use super::entry::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use super::steps::Workload;
use crate::error::SimError;

const NUMBER_BYTES: u64 = 8;

/// Components of mass, velocity, pressure and temperature.
const COMPONENTS: [u64; 4] = [11, 3, 1, 1];

pub(super) const ENTRY: Entry = Entry {
    name: "s3d-io",
    about: "checkpoints of a combustion code: four arrays distributed in blocks, written collectively",
    source: "Chen et al. 2009; Liao and Choudhary 2008; S3D-IO by Northwestern University",
    parameters: &[
        processes("px"),
        processes("py"),
        processes("pz"),
        points("nx"),
        points("ny"),
        points("nz"),
        Parameter {
            name: "checkpoints",
            about: "checkpoints, a file each",
            kind: Kind::Count(1, 100_000),
            default: "5",
        },
        Parameter {
            name: "restart",
            about: "whether it begins by reading a checkpoint",
            kind: Kind::Word(&["yes", "no"]),
            default: "no",
        },
        Parameter {
            name: "compute",
            about: "time before a checkpoint",
            kind: Kind::Time("0 s", "1000000 s"),
            default: "60 s",
        },
    ],
    build,
};

const fn processes(name: &'static str) -> Parameter {
    Parameter { name, about: "processes along this dimension", kind: Kind::Count(1, 1 << 10), default: "2" }
}

const fn points(name: &'static str) -> Parameter {
    Parameter {
        name,
        about: "mesh points of a process along this dimension",
        kind: Kind::Count(1, 1 << 14),
        default: "50",
    }
}

fn build(values: &Values) -> Result<Workload, SimError> {
    let grid = ["px", "py", "pz"].map(|name| values.count(name));
    let part = ["nx", "ny", "nz"].map(|name| values.count(name));
    let ranks = grid.iter().product::<u64>();
    if ranks > 1 << 20 {
        return Err(values.wrong("px", ranks, "at most 1048576 processes in all"));
    }
    let checkpoints = values.count("checkpoints");
    values.check_calls(ranks * (checkpoints + 1) * (2 * COMPONENTS.len() as u64 + 2))?;
    let numbers: u64 = COMPONENTS.iter().sum();
    values.check_file(&[numbers * NUMBER_BYTES, ranks, part[0], part[1], part[2]])?;
    let mut programs = Programs::new(values, ranks as u32);
    let mut views = Vec::new();
    for rank in 0..ranks {
        let mut displacement = 0;
        for components in COMPONENTS {
            let view = view(rank, grid, part, components, displacement);
            views.push(programs.view(view.map_err(|source| values.layout(source))?));
            displacement += components * ranks * part.iter().product::<u64>() * NUMBER_BYTES;
        }
    }
    let arrays = |programs: &mut Programs, path: &str, direction| {
        let file = programs.open_together(path);
        for (rank, views) in (0..ranks as u32).zip(views.chunks_exact(COMPONENTS.len())) {
            for (components, view) in COMPONENTS.iter().zip(views) {
                let bytes = components * part.iter().product::<u64>() * NUMBER_BYTES;
                programs.set_view(rank, file, *view);
                programs.collective(rank, file, direction, *view, 0..bytes);
            }
        }
        programs.close_together(file);
    };
    if values.word("restart") == "yes" {
        arrays(&mut programs, "/s3d.restart.field", Direction::Read);
    }
    for checkpoint in 0..checkpoints {
        programs.all_think(values.time("compute"));
        arrays(&mut programs, &format!("/s3d.{checkpoint}.field"), Direction::Write);
    }
    Ok(programs.finish())
}

/// What a process has of an array that begins at `displacement`.
fn view(
    rank: u64,
    grid: [u64; 3],
    part: [u64; 3],
    components: u64,
    displacement: u64,
) -> Result<View, LayoutError> {
    let place = [rank % grid[0], rank / grid[0] % grid[1], rank / grid[0] / grid[1]];
    let [x, y, z] = [0, 1, 2].map(|dimension| grid[dimension] * part[dimension]);
    let start = [0, 1, 2].map(|dimension| place[dimension] * part[dimension]);
    let number = Datatype::bytes(NUMBER_BYTES);
    let block = Datatype::subarray(
        &[x, y, z, components],
        &[part[0], part[1], part[2], components],
        &[start[0], start[1], start[2], 0],
        Order::Fortran,
        &number,
    )?;
    View::new(displacement, NUMBER_BYTES, block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests_support::{built, coverage};

    #[test]
    fn a_checkpoint_is_sixteen_numbers_a_point_each_written_once() {
        let given = [("px", "3"), ("nx", "5"), ("ny", "4"), ("nz", "6"), ("checkpoints", "2")];
        let found = coverage(&built("s3d-io", &given), Direction::Write);
        assert_eq!(found.len(), 2);
        for (file, bytes) in found {
            let length = 12 * 5 * 4 * 6 * 16 * 8;
            assert_eq!((bytes.length, bytes.touched, bytes.pieces), (length, length, 1), "{file}");
        }
    }

    #[test]
    fn a_run_moves_as_much_as_the_benchmark_says() {
        // Eight processes with 50×50×50 points each: 0.12 GiB read, 0.60 GiB written.
        let workload = built("s3d-io", &[("restart", "yes")]);
        let gib = |direction| {
            let bytes = coverage(&workload, direction).iter().map(|(_, bytes)| bytes.touched).sum::<u64>();
            format!("{:.2}", bytes as f64 / f64::from(1 << 30))
        };
        assert_eq!((gib(Direction::Read), gib(Direction::Write)), ("0.12".to_owned(), "0.60".to_owned()));
    }
}
