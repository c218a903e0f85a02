//! Operations and requests of one rank that need no other rank.

use pio_plan::{Access, Action, Context, Direction, Event, Io, IoError, Rank, Strategy};

use crate::core::mpi::memory::Memory;
use crate::core::storage::backend::Storage;
use crate::core::storage::pieces;

/// What a strategy cannot ask of a rank on its own, or what is not where it should be.
const PROTOCOL_ERROR: IoError = IoError { errno: libc::EPROTO };

/// Reads or writes without other ranks, as `strategy` does that; bytes moved. `block` is scratch memory.
pub fn transfer(
    storage: &Storage,
    direction: Direction,
    access: Access,
    memory: &mut Memory,
    strategy: Strategy,
    context: &Context,
    block: &mut Vec<u8>,
) -> Result<u64, IoError> {
    let me = Rank(0);
    let mut machine = strategy.alone(me, direction, access, context);
    let mut event = Event::Start;
    loop {
        let mut actions = Vec::new();
        machine.handle(event, &mut actions);
        let mut result = None;
        for action in actions {
            match action {
                Action::Io(io) => {
                    let access = machine.access_of(me).ok_or(PROTOCOL_ERROR)?;
                    result = Some(match &io {
                        Io::Window { direction, origin, file, .. } => {
                            let buffer = room(block, file.end - origin)?;
                            storage.window(
                                *direction,
                                file.clone(),
                                &mut buffer[(file.start - origin) as usize..],
                            )
                        }
                        io => carry_out(storage, io, access, memory, block),
                    });
                }
                Action::Copy { piece } => {
                    let access = machine.access_of(me).ok_or(PROTOCOL_ERROR)?;
                    let start = piece.positions.start - access.positions.start;
                    let (window, view) = (piece.window.start, &access.view);
                    let buffer = room(block, piece.window.end - window)?;
                    match direction {
                        Direction::Write => memory.copy_to(start, view, piece.positions, buffer, window),
                        Direction::Read => memory.copy_from(start, view, piece.positions, buffer, window),
                    }
                    .map_err(|_| PROTOCOL_ERROR)?;
                }
                Action::Finish { result } => return result,
                Action::Send { .. } | Action::SendData { .. } => return Err(PROTOCOL_ERROR),
            }
        }
        event = Event::IoDone { result: result.ok_or(PROTOCOL_ERROR)? };
    }
}

/// Carries out a request that goes between a rank's own memory and the file, or that moves nothing.
pub fn carry_out(
    storage: &Storage,
    io: &Io,
    access: &Access,
    memory: &mut Memory,
    block: &mut Vec<u8>,
) -> Result<u64, IoError> {
    match io {
        Io::Pieces { direction, positions }
        | Io::List { direction, positions }
        | Io::Ship { direction, positions } => {
            let start = positions.start.checked_sub(access.positions.start).ok_or(PROTOCOL_ERROR)?;
            if !matches!(io, Io::Pieces { .. })
                && let Some(result) = storage.ship(*direction, &access.view, positions.clone(), start, memory)
            {
                return result;
            }
            pieces::transfer(storage, *direction, &access.view, positions.clone(), start, memory, block)
        }
        Io::Lock { file } => storage.lock(file.clone()).map(|()| 0),
        Io::Unlock { file } => storage.unlock(file.clone()).map(|()| 0),
        Io::Window { .. } | Io::WriteParts { .. } | Io::FillAndWrite { .. } => Err(PROTOCOL_ERROR),
    }
}

/// The first bytes of scratch memory.
fn room(block: &mut Vec<u8>, len: u64) -> Result<&mut [u8], IoError> {
    let out_of_memory = IoError { errno: libc::ENOMEM };
    let len = usize::try_from(len).map_err(|_| out_of_memory)?;
    if block.len() < len {
        block.try_reserve(len - block.len()).map_err(|_| out_of_memory)?;
        block.resize(len, 0);
    }
    Ok(&mut block[..len])
}
