//! BT-IO of the NAS parallel benchmarks (Wong and van der Wijngaart 2003, NAS-03-002): a solver for the
//! Navier-Stokes equations that writes its solution every five steps, five 8-byte numbers for each mesh point.
//!
//! The mesh is cut into square-root-of-P slices along each dimension, and each of the P processes has one cell of each
//! slice, along a diagonal: so what it has of the file is scattered in lines of a cell's width. `full` writes all of it
//! with a collective call through a file view, `simple` each line with a call of its own. The file is appended to with
//! each dump, and read back at the end to be verified.

use pio_layout::{Datatype, LayoutError, Order, View};
use pio_plan::Direction;

use super::entry::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use super::steps::Workload;
use crate::error::SimError;

/// Bytes of a mesh point: five 8-byte numbers.
const POINT_BYTES: u64 = 40;

pub(super) const ENTRY: Entry = Entry {
    name: "bt-io",
    about: "NAS BT-IO: a diagonally partitioned mesh, dumped collectively (full) or line by line (simple)",
    source: "Wong and van der Wijngaart 2003, NAS Parallel Benchmarks I/O Version 2.4 (NAS-03-002)",
    parameters: &[
        Parameter {
            name: "ranks",
            about: "processes, a square number",
            kind: Kind::Count(1, 1 << 16),
            default: "16",
        },
        Parameter {
            name: "mesh",
            about: "points along each dimension: 64, 102, 162, 408, 1020 in classes A to E",
            kind: Kind::Count(1, 1 << 14),
            default: "64",
        },
        Parameter {
            name: "dumps",
            about: "times that the solution is written: 40 in classes A to C",
            kind: Kind::Count(1, 100_000),
            default: "40",
        },
        Parameter {
            name: "compute",
            about: "time of the five steps before a dump",
            kind: Kind::Time("0 s", "100000 s"),
            default: "1 s",
        },
        Parameter {
            name: "variant",
            about: "how the solution is written",
            kind: Kind::Word(&["full", "simple"]),
            default: "full",
        },
        Parameter {
            name: "verify",
            about: "whether the file is read back at the end",
            kind: Kind::Word(&["yes", "no"]),
            default: "yes",
        },
    ],
    build,
};

/// A process's cell of one slice: where it begins, and its points along each dimension.
#[derive(Clone, Copy, Debug)]
struct Cell {
    start: [u64; 3],
    size: [u64; 3],
}

fn build(values: &Values) -> Result<Workload, SimError> {
    let (ranks, mesh, dumps) = (values.ranks("ranks"), values.count("mesh"), values.count("dumps"));
    let slices = ranks.isqrt();
    if slices * slices != ranks {
        return Err(values.wrong("ranks", ranks, "a square number"));
    }
    if u64::from(slices) > mesh {
        return Err(values.wrong("ranks", ranks, format!("at most the square of the mesh's {mesh} points")));
    }
    let is_full = values.word("variant") == "full";
    let lines = mesh * mesh * u64::from(slices);
    values.check_calls(2 * dumps * if is_full { u64::from(ranks) } else { lines })?;
    values.check_file(&[mesh, mesh, mesh, POINT_BYTES, dumps])?;
    let mut programs = Programs::new(values, ranks);
    let file = programs.open_together("/btio.full.out");
    let dump_bytes = mesh.pow(3) * POINT_BYTES;
    let views: Vec<_> = (0..ranks)
        .map(|rank| {
            let cells = cells(rank, slices, mesh);
            let view = if is_full { view(&cells, mesh) } else { Ok(View::contiguous(0)) };
            let view = view.map_err(|source| values.layout(source))?;
            Ok((cells, programs.view(view)))
        })
        .collect::<Result<_, SimError>>()?;
    for (rank, (_, view)) in (0..ranks).zip(&views) {
        programs.set_view(rank, file, *view);
    }
    let access = |programs: &mut Programs, dump: u64, direction| {
        for (rank, (cells, view)) in (0..ranks).zip(&views) {
            if is_full {
                let bytes: u64 =
                    cells.iter().map(|cell| cell.size.iter().product::<u64>()).sum::<u64>() * POINT_BYTES;
                programs.collective(rank, file, direction, *view, dump * bytes..(dump + 1) * bytes);
            } else {
                for line in cells.iter().flat_map(|cell| cell.lines(mesh)) {
                    let start = dump * dump_bytes + line.start;
                    programs.independent(
                        rank,
                        file,
                        direction,
                        *view,
                        start..start + (line.end - line.start),
                    );
                }
            }
        }
    };
    for dump in 0..dumps {
        programs.all_think(values.time("compute"));
        access(&mut programs, dump, Direction::Write);
    }
    if values.word("verify") == "yes" {
        (0..dumps).for_each(|dump| access(&mut programs, dump, Direction::Read));
    }
    programs.close_together(file);
    Ok(programs.finish())
}

/// A process's cells: that of slice z lies z further along the first dimension than that of slice 0, and z less along
/// the second. Where the points cannot be dealt out evenly, the first cells along a dimension have one more.
fn cells(rank: u32, slices: u32, mesh: u64) -> Vec<Cell> {
    let count = u64::from(slices);
    let (x, y) = (u64::from(rank) % count, u64::from(rank) / count);
    let start = |index: u64| index * (mesh / count) + index.min(mesh % count);
    let of_slice = |z| {
        let place = [(x + z) % count, (y + count - z) % count, z];
        Cell { start: place.map(start), size: place.map(|index| start(index + 1) - start(index)) }
    };
    (0..count).map(of_slice).collect()
}

/// What a process sees of the file: its cells, one dump behind the other.
fn view(cells: &[Cell], mesh: u64) -> Result<View, LayoutError> {
    let point = Datatype::bytes(POINT_BYTES);
    let part = |cell: &Cell| {
        let block = Datatype::subarray(&[mesh; 3], &cell.size, &cell.start, Order::Fortran, &point)?;
        Ok((1, 0, block))
    };
    let parts = cells.iter().map(part).collect::<Result<Vec<_>, LayoutError>>()?;
    View::new(0, POINT_BYTES, Datatype::structure(&parts)?)
}

impl Cell {
    /// The bytes of its lines along the first dimension.
    fn lines(self, mesh: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
        let [x, y, z] = self.start;
        let rows = (z..z + self.size[2]).flat_map(move |z| (y..y + self.size[1]).map(move |y| (y, z)));
        rows.map(move |(y, z)| {
            let start = ((z * mesh + y) * mesh + x) * POINT_BYTES;
            start..start + self.size[0] * POINT_BYTES
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests_support::{built, coverage, message};

    #[test]
    fn both_variants_write_every_byte_once() {
        for variant in ["full", "simple"] {
            // 14 points do not deal out evenly to three slices.
            let given = [("ranks", "9"), ("mesh", "14"), ("dumps", "3"), ("variant", variant)];
            let workload = built("bt-io", &given);
            for direction in [Direction::Write, Direction::Read] {
                let found = coverage(&workload, direction);
                let [(_, bytes)] = found.as_slice() else { panic!("one file") };
                assert_eq!(
                    (bytes.length, bytes.touched, bytes.pieces),
                    (14 * 14 * 14 * 40 * 3, 14 * 14 * 14 * 40 * 3, 1)
                );
            }
        }
    }

    #[test]
    fn a_class_writes_as_much_as_the_report_says() {
        // Class A: 419.43 MB.
        let bytes = coverage(&built("bt-io", &[]), Direction::Write)[0].1.length;
        assert_eq!(bytes, 419_430_400);
    }

    #[test]
    fn processes_that_make_no_square_are_refused() {
        assert_eq!(
            message("bt-io", &[("ranks", "8")]),
            "workload bt-io: ranks = 8: expected a square number"
        );
        assert_eq!(
            message("bt-io", &[("compute", "-5 s")]),
            "workload bt-io: compute = -5 s: expected a time with its unit (s, ms, us, ns, ps) from 0 s to 100000 s"
        );
    }
}
