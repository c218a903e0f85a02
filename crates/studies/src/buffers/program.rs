//! What a process does, reduced to what buffers see: it computes, then reads or writes a piece of a file, and so on.

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::Direction;

use pio_sim::SimError;
use pio_sim::workload::{Step, What, Workload};

/// One process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What to call it.
    pub name: String,
    /// Its reads and writes, in order.
    pub accesses: Vec<TimedAccess>,
    /// What it computes after the last.
    pub last: Duration,
}

/// A read or write, and how long the process computes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedAccess {
    /// Processor time since the previous access.
    pub think: Duration,
    /// Which file.
    pub file: u32,
    /// Whether the request reads or writes.
    pub direction: Direction,
    /// First byte.
    pub offset: u64,
    /// Bytes that the request asks for.
    pub bytes: u64,
    /// Whether the process goes on before it is done.
    pub asynchronous: bool,
}

impl Program {
    /// The processes of a workload; files keep their numbers. Requests through a view become one for each piece of the
    /// file. Opens, closes and seeks cost nothing here.
    ///
    /// # Errors
    /// If the workload's numbers do not go together, or ranks wait for each other: here every process is for itself.
    pub fn of(workload: &Workload) -> Result<Vec<Program>, SimError> {
        workload.check()?;
        workload.programs.iter().enumerate().map(|(rank, steps)| program(workload, rank, steps)).collect()
    }

    /// Bytes read and bytes written.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |direction| {
            self.accesses.iter().filter(|one| one.direction == direction).map(|one| one.bytes).sum()
        };
        (sum(Direction::Read), sum(Direction::Write))
    }

    /// Processor time that it needs for itself.
    pub fn think(&self) -> Duration {
        let sum: u64 = self.accesses.iter().map(|one| one.think.picoseconds()).sum();
        Duration::from_picoseconds(sum + self.last.picoseconds())
    }
}

fn program(workload: &Workload, rank: usize, steps: &[Step]) -> Result<Program, SimError> {
    let mut program = Program { name: workload.name.clone(), ..Program::default() };
    let mut think = 0;
    for step in steps {
        think += step.think.picoseconds();
        let (handle, call, direction, view, positions) = match &step.what {
            What::Open(_)
            | What::Close(_)
            | What::SetView(..)
            | What::Seek(..)
            | What::Resize(..)
            | What::Sync(..)
            | What::Name { .. } => continue,
            What::Request { handle, call, direction, offset, bytes } => {
                (*handle, *call, *direction, &View::contiguous(*offset), 0..*bytes)
            }
            What::Access { handle, call, direction, view, positions, .. } => {
                (*handle, *call, *direction, &workload.views[view.index()], positions.clone())
            }
            What::Rendezvous | What::Broadcast { .. } | What::Meet { .. } => {
                return Err(SimError::Workload {
                    workload: workload.name.clone(),
                    what: "collective call",
                    found: format!("one of rank {rank}"),
                    expected: "processes that do not wait for each other".to_owned(),
                });
            }
        };
        let file = workload.handles[handle.index()].file;
        for extent in view.extents(positions) {
            let think = Duration::from_picoseconds(std::mem::take(&mut think));
            let (offset, bytes) = (extent.offset as u64, extent.len);
            let asynchronous = call.is_asynchronous();
            program.accesses.push(TimedAccess { think, file, direction, offset, bytes, asynchronous });
        }
    }
    program.last = Duration::from_picoseconds(think);
    Ok(program)
}
