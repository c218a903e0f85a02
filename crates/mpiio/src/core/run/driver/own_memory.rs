//! What a rank has its data in: the program's memory, or what it gathered of others.

use pio_layout::Datatype;
use pio_plan::{IoError, Piece, Slot};

use super::PROTOCOL_ERROR;
use crate::core::mpi::memory::Memory;
use crate::core::run::channel::Channel;

/// The memory that a rank's own pieces and requests are of.
#[derive(Debug)]
pub(super) struct OwnMemory {
    program: Memory,
    /// Of a rank that speaks for others: its buffer of what these have.
    gathered: Option<Memory>,
}

impl OwnMemory {
    /// The program's.
    pub(super) fn of_program(program: Memory) -> OwnMemory {
        OwnMemory { program, gathered: None }
    }

    /// From here on the rank speaks for others, which have so many bytes together.
    pub(super) fn gather(&mut self, channel: &mut Channel, bytes: u64) -> Result<(), IoError> {
        // Where there is no room, the rank goes on without data.
        self.gathered = Some(Memory::none());
        let buffer = channel.working.own(Slot::GATHERED, bytes)?;
        // SAFETY: the buffer is this rank's, and no longer one is asked for in the operation (`has_room_for`), so that it stays where it is. The
        // strategy's messages give each byte to one rank at a time.
        let memory = unsafe { Memory::new(buffer.as_mut_ptr(), 1, &Datatype::bytes(bytes)) };
        self.gathered = Some(memory.map_err(|_| PROTOCOL_ERROR)?);
        Ok(())
    }

    /// Whether what is gathered has the place of a piece: with more room, the buffer would move.
    pub(super) fn has_room_for(&self, piece: &Piece) -> bool {
        self.gathered.as_ref().is_some_and(|gathered| piece.window.end <= gathered.size())
    }

    /// Where the data of a piece are on the client's side.
    pub(super) fn of_piece(&mut self, piece: &Piece) -> &mut Memory {
        if piece.is_gathered() { &mut self.program } else { self.of_requests() }
    }

    /// Where the data of requests to the file are.
    pub(super) fn of_requests(&mut self) -> &mut Memory {
        self.gathered.as_mut().unwrap_or(&mut self.program)
    }
}
