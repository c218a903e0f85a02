//! The application of Thakur, Gropp and Lusk (1996, section 3.2) as the calls it makes: a gravitational collapse on a
//! three-dimensional mesh, its arrays distributed (block,block,block).
//!
//! Analysis and restart files hold six variables (24 bytes, by rank 0 alone) and six arrays of 4-byte numbers; each of
//! the four visualisation files six variables and one array of characters. Arrays are column-major, one after another.

use pio_layout::{Datatype, LayoutError, Order, View};
use pio_machine::Duration;
use pio_plan::Direction;
use pio_trace::{Call, File, HandleId, ViewId};

use super::steps::{Open, Step, What, Workload};
use crate::error::SimError;

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collapse {
    /// Mesh points along each dimension.
    pub mesh: [u64; 3],
    /// Processes, a power of two that deals the mesh out evenly.
    pub processes: u32,
    /// Iterations.
    pub iterations: u32,
    /// All files are written every so many of them.
    pub dump_every: u32,
    /// Whether the run begins by reading a restart file.
    pub restart: bool,
}

const HEADER_BYTES: u64 = 24;
const ARRAYS: u64 = 6;
const NUMBER_BYTES: u64 = 4;
const VISUALISATION_FILES: u32 = 4;
const NAME: &str = "collapse";

impl Collapse {
    /// The small case of the paper.
    pub const SMALL: Collapse =
        Collapse { mesh: [128, 128, 64], processes: 8, iterations: 20, dump_every: 5, restart: true };

    /// The large case of the paper.
    pub const LARGE: Collapse =
        Collapse { mesh: [256, 256, 128], processes: 64, iterations: 5, dump_every: 5, restart: true };

    /// Processes along each dimension: as equal as powers of two can be, the first dimensions the larger.
    fn grid(&self) -> [u64; 3] {
        let powers = self.processes.trailing_zeros();
        [0, 1, 2].map(|dimension| 1 << ((powers + 2 - dimension) / 3))
    }

    fn check(&self) -> Result<(), SimError> {
        let wrong = |what, found: String, expected: &str| {
            Err(SimError::Workload { workload: NAME.to_owned(), what, found, expected: expected.to_owned() })
        };
        if !self.processes.is_power_of_two() || self.processes > 1 << 16 {
            return wrong("processes", self.processes.to_string(), "a power of two from 1 to 65536");
        }
        let grid = self.grid();
        let uneven = |dimension: usize| {
            let points = self.mesh[dimension];
            points == 0 || points > 1 << 16 || !points.is_multiple_of(grid[dimension])
        };
        if (0..3).any(uneven) {
            let expected = format!("multiples of {grid:?} up to 65536");
            return wrong("mesh", format!("{:?}", self.mesh), &expected);
        }
        if self.dump_every == 0 {
            return wrong("dump_every", "0".to_owned(), "at least 1");
        }
        Ok(())
    }

    /// The part of an array of `number_bytes`-byte numbers that a rank has, in a file from `displacement` on.
    fn view(&self, rank: u32, number_bytes: u64, displacement: u64) -> Result<View, LayoutError> {
        let grid = self.grid();
        let part = [0, 1, 2].map(|dimension| self.mesh[dimension] / grid[dimension]);
        // The first dimension varies fastest, among the ranks as in the array.
        let rank = u64::from(rank);
        let coordinates = [rank % grid[0], rank / grid[0] % grid[1], rank / grid[0] / grid[1]];
        let starts = [0, 1, 2].map(|dimension| coordinates[dimension] * part[dimension]);
        let number = Datatype::bytes(number_bytes);
        let block = Datatype::subarray(&self.mesh, &part, &starts, Order::Fortran, &number)?;
        View::new(displacement, number_bytes, block)
    }

    fn points(&self) -> u64 {
        self.mesh.iter().product()
    }
}

/// The calls of such a run.
///
/// # Errors
/// If the processes do not deal out the mesh evenly.
pub fn collapse(run: &Collapse) -> Result<Workload, SimError> {
    run.check()?;
    let mut builder =
        Builder::new(run).map_err(|source| SimError::Layout { workload: NAME.to_owned(), source })?;
    if run.restart {
        builder.numbers("/restart.in".to_owned(), Direction::Read);
    }
    for dump in 1..=run.iterations / run.dump_every {
        builder.numbers(format!("/analysis.{dump}"), Direction::Write);
        for kind in 0..VISUALISATION_FILES {
            builder.characters(format!("/visualisation.{dump}.{kind}"));
        }
        builder.numbers("/restart.out".to_owned(), Direction::Write);
    }
    Ok(builder.workload)
}

struct Builder {
    workload: Workload,
    points: u64,
    /// For each rank: the views of the arrays of numbers, then that of the array of characters, then that of the header.
    views_per_rank: u32,
    collectives: u64,
}

impl Builder {
    fn new(run: &Collapse) -> Result<Builder, LayoutError> {
        let [x, y, z] = run.mesh;
        let mut views = Vec::new();
        for rank in 0..run.processes {
            for array in 0..ARRAYS {
                let displacement = HEADER_BYTES + array * run.points() * NUMBER_BYTES;
                views.push(run.view(rank, NUMBER_BYTES, displacement)?);
            }
            views.push(run.view(rank, 1, HEADER_BYTES)?);
            views.push(View::contiguous(0));
        }
        let workload = Workload {
            name: format!("{NAME} {x}x{y}x{z} on {} processes, {} iterations", run.processes, run.iterations),
            views,
            groups: vec![(0..run.processes).collect()],
            programs: vec![Vec::new(); run.processes as usize],
            ..Workload::default()
        };
        Ok(Builder { workload, points: run.points(), views_per_rank: ARRAYS as u32 + 2, collectives: 0 })
    }

    /// A file of the six variables and six arrays of numbers.
    fn numbers(&mut self, path: String, direction: Direction) {
        let arrays: Vec<u32> = (0..ARRAYS as u32).collect();
        self.file(path, direction, &arrays, NUMBER_BYTES);
    }

    /// A file of the six variables and an array of characters.
    fn characters(&mut self, path: String) {
        self.file(path, Direction::Write, &[ARRAYS as u32], 1);
    }

    fn file(&mut self, path: String, direction: Direction, arrays: &[u32], number_bytes: u64) {
        let ranks = self.workload.ranks();
        let file = self.file_index(path);
        let first_handle = self.workload.handles.len() as u32;
        self.collectives += 1;
        let collective = self.collectives;
        let open = |rank| Open { file, rank, group: Some(0), collective };
        self.workload.handles.extend((0..ranks).map(open));
        let share = self.points / u64::from(ranks) * number_bytes;
        for rank in 0..ranks {
            let handle = HandleId(first_handle + rank);
            let first_view = rank * self.views_per_rank;
            self.call(rank, What::Open(handle));
            if rank == 0 {
                let call = at(direction, Call::MpiFileReadAt, Call::MpiFileWriteAt);
                let view = ViewId(first_view + ARRAYS as u32 + 1);
                let positions = 0..HEADER_BYTES;
                self.call(rank, What::Access { handle, call, direction, view, positions, collective: false });
            }
            if direction == Direction::Read {
                self.call(rank, What::Broadcast { root: 0, bytes: HEADER_BYTES });
            }
            for array in arrays {
                let view = ViewId(first_view + array);
                let call = at(direction, Call::MpiFileReadAll, Call::MpiFileWriteAll);
                self.call(rank, What::SetView(handle, view));
                let positions = 0..share;
                self.call(rank, What::Access { handle, call, direction, view, positions, collective: true });
            }
            self.call(rank, What::Close(handle));
        }
    }

    fn file_index(&mut self, path: String) -> u32 {
        let files = &mut self.workload.files;
        let known = files.iter().position(|file| file.path == path);
        known.unwrap_or_else(|| {
            files.push(File { path });
            files.len() - 1
        }) as u32
    }

    fn call(&mut self, rank: u32, what: What) {
        self.workload.programs[rank as usize].push(Step {
            think: Duration::ZERO,
            idle: Duration::ZERO,
            what,
        });
    }
}

fn at(direction: Direction, read: Call, write: Call) -> Call {
    match direction {
        Direction::Read => read,
        Direction::Write => write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_equal_as_can_be() {
        let grid = |processes| Collapse { processes, ..Collapse::SMALL }.grid();
        assert_eq!(grid(1), [1, 1, 1]);
        assert_eq!(grid(2), [2, 1, 1]);
        assert_eq!(grid(4), [2, 2, 1]);
        assert_eq!(grid(8), [2, 2, 2]);
        assert_eq!(grid(64), [4, 4, 4]);
    }

    #[test]
    fn the_views_of_all_ranks_are_the_whole_array() {
        let run = Collapse { mesh: [4, 4, 2], processes: 8, ..Collapse::SMALL };
        let mut seen = vec![0; 32 * 4];
        for rank in 0..8 {
            let view = run.view(rank, 4, 0).unwrap();
            for position in 0..16 {
                seen[view.offset_of(position).unwrap() as usize] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count == 1));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let message = |run: Collapse| collapse(&run).unwrap_err().to_string();
        let found = message(Collapse { processes: 6, ..Collapse::SMALL });
        assert_eq!(found, "workload collapse: processes = 6: expected a power of two from 1 to 65536");
        let found = message(Collapse { mesh: [128, 127, 64], ..Collapse::SMALL });
        assert_eq!(
            found,
            "workload collapse: mesh = [128, 127, 64]: expected multiples of [2, 2, 2] up to 65536"
        );
    }
}
