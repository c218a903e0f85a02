//! Requests to the file.

use std::ops::Range;
use std::time::Duration;

use pio_layout::{Layout, coverage, pack};
use pio_plan::{Direction, Io, IoError, Slot, StateMachine};
use pio_protocol::client::Naming;

use super::{Driver, Means, PROTOCOL_ERROR, out_of_place};
use crate::core::run::working_memory::WorkingMemory;
use crate::core::storage::backend::Storage;
use crate::core::storage::pieces;

impl<M: StateMachine + ?Sized> Driver<M> {
    pub(super) fn request(&mut self, means: &mut Means, io: &Io) -> Result<u64, IoError> {
        let storage = means.storage;
        match io {
            Io::Pieces { direction, positions } => self.own_data(means, *direction, positions.clone(), None),
            Io::List { direction, positions } => {
                self.own_data(means, *direction, positions.clone(), Some(Naming::List))
            }
            Io::Ship { direction, positions } => {
                self.own_data(means, *direction, positions.clone(), Some(Naming::View))
            }
            Io::Lock { file, shared } => storage.lock(file.clone(), *shared).map(|()| 0),
            Io::Unlock { file } => storage.unlock(file.clone()).map(|()| 0),
            Io::Window { direction, slot, origin, file } => {
                let buffer = means.working().own(*slot, file.end - origin)?;
                storage.window(*direction, file.clone(), &mut buffer[(file.start - origin) as usize..])
            }
            Io::WriteParts { slot, origin, parts } => {
                write_parts(storage, means.working(), *slot, *origin, parts)
            }
            Io::FillAndWrite { slot, origin, file, holes, locks } => {
                fill_and_write(means, *slot, *origin, file.clone(), holes, *locks)
            }
        }
    }

    /// Moves data between this rank's own memory and the file; servers put them in their places if they are told which, as
    /// `naming` says.
    fn own_data(
        &mut self,
        means: &mut Means,
        direction: Direction,
        positions: Range<u64>,
        naming: Option<Naming>,
    ) -> Result<u64, IoError> {
        let access = self.machine.access_of(self.me).ok_or(PROTOCOL_ERROR)?;
        let start = positions.start.checked_sub(access.positions.start).ok_or(PROTOCOL_ERROR)?;
        let (storage, view, memory) = (means.storage, &access.view, self.memory.of_requests());
        if let Some(naming) = naming
            && let Some(result) = storage.ship(naming, direction, view, positions.clone(), start, memory)
        {
            return result;
        }
        pieces::transfer(storage, direction, view, positions, start, memory, &mut means.working().block)
    }
}

fn write_parts(
    storage: &Storage,
    working: &mut WorkingMemory,
    slot: Slot,
    origin: u64,
    parts: &Layout,
) -> Result<u64, IoError> {
    let end = parts.upper_bound().max(0) as u64;
    let buffer = working.own(slot, end - origin)?;
    let mut written = 0;
    for part in parts.extents(0..parts.size()) {
        let start = (part.offset as u64 - origin) as usize;
        written += storage.write(part.offset as u64, &buffer[start..start + part.len as usize])?;
    }
    Ok(written)
}

/// Completes the window with what the file holds in the holes, and writes it with one request; others that lock, too, are kept out
/// meanwhile, if it `locks`. Where there is no lock to be had soon, or nothing to read, it leaves the holes alone.
fn fill_and_write(
    means: &mut Means,
    slot: Slot,
    origin: u64,
    file: Range<u64>,
    holes: &Layout,
    locks: bool,
) -> Result<u64, IoError> {
    let storage = means.storage;
    let _modifying = means.modify();
    let is_locked = locks && storage.lock_within(file.clone(), patience(holes)).is_ok();
    let written = if storage.is_readable() && is_locked == locks {
        fill(storage, means.working(), slot, origin, file.clone(), holes)
    } else {
        let parts = coverage::holes_of_layouts(file.start as i64..file.end as i64, vec![holes.clone()]);
        write_parts(storage, means.working(), slot, origin, &parts).map(|_| file.end - file.start)
    };
    // Who lost the lock meanwhile may have written over what another wrote in the holes.
    let unlocked = if is_locked { storage.unlock(file) } else { Ok(()) };
    written.and_then(|bytes| unlocked.map(|()| bytes))
}

/// How long to ask for a lock that others hold by turns: the more parts there are to be written without it, the longer.
fn patience(holes: &Layout) -> Duration {
    Duration::from_micros(holes.pieces(0..holes.size()).saturating_mul(20).clamp(20_000, 10_000_000))
}

fn fill(
    storage: &Storage,
    working: &mut WorkingMemory,
    slot: Slot,
    origin: u64,
    file: Range<u64>,
    holes: &Layout,
) -> Result<u64, IoError> {
    let WorkingMemory { own, block } = working;
    let needed = holes.lower_bound().max(0) as u64..holes.upper_bound().max(0) as u64;
    let len = (needed.end - needed.start) as usize;
    if block.len() < len {
        block.resize(len, 0);
    }
    let (buffer, block) = (own.collective(slot, file.end - origin)?, &mut block[..len]);
    let read = storage.read(needed.start, block)? as usize;
    // What lies beyond the end of the file reads as zero.
    block[read..].fill(0);
    let runs = || holes.runs(0..holes.size());
    pack::copy(runs(), block, -(needed.start as i64), runs(), buffer, -(origin as i64), holes.size())
        .map_err(out_of_place)?;
    storage.write(file.start, &buffer[(file.start - origin) as usize..])
}
