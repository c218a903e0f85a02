//! How data go from rank to rank.

use pio_layout::pack;
use pio_plan::{DataPath, Direction, IoError, Piece, Rank, StateMachine};

use super::{Driver, HEAD_BYTES, PROTOCOL_ERROR, out_of_place, start_in};
use crate::core::run::channel::Channel;
use crate::core::run::copy;
use crate::core::run::message_log::Call;
use crate::core::run::transfer_path::{self, TransferPath};
use crate::core::run::working_memory::WorkingMemory;

/// Packed at a time: half of a usual first-level cache.
const BLOCK_BYTES: usize = 16 << 10;

impl<M: StateMachine + ?Sized> Driver<M> {
    pub(super) fn send_data(
        &mut self,
        channel: &mut Channel,
        to: Rank,
        piece: &Piece,
        error: Option<IoError>,
    ) -> Result<(), IoError> {
        let start_ns = self.log.begin();
        let len = piece.positions.end - piece.positions.start;
        let shares = channel.shares_with(to.0);
        let packs = shares && error.is_none() && self.path(channel, len) == TransferPath::Outbox;
        let place = if packs { self.put_into_outbox(channel, piece) } else { None };
        let in_place = place.is_none()
            && match self.direction {
                _ if error.is_some() => true,
                Direction::Write => shares && self.put_in_place(channel, to, piece)?,
                // The client takes them itself.
                Direction::Read => shares,
            };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + if shares || in_place { 0 } else { len as usize });
        let path = match place {
            Some(_) => DataPath::InOutbox,
            None if in_place => DataPath::InPlace,
            None => DataPath::InMessage,
        };
        piece.encode(path, error, &mut bytes);
        bytes.extend(place.iter().flat_map(|start| start.to_le_bytes()));
        channel.tally.messages += bytes.len() as u64;
        channel.tally.data += if error.is_some() { 0 } else { len };
        if place.is_none() && !in_place {
            let head = bytes.len();
            bytes.resize(head + len as usize, 0);
            let packed = match self.direction {
                Direction::Write => self.pack_from_memory(piece, &mut bytes[head..]),
                Direction::Read => self.pack_from_own(channel, to, piece, &mut bytes[head..]),
            };
            self.note(packed);
        }
        self.send(channel, to, bytes)?;
        self.log.sent(Call::Data, to.0, if error.is_some() { 0 } else { len }, start_ns);
        Ok(())
    }

    /// The path of a piece of so many bytes.
    fn path(&mut self, channel: &mut Channel, len: u64) -> TransferPath {
        if !self.packs || len < transfer_path::LEAST_BYTES {
            return TransferPath::InPlace;
        }
        let (trial, bytes) = self.trial.get_or_insert_with(|| (channel.paths.next(self.direction, len), 0));
        *bytes += len;
        trial.path
    }

    /// Data of a message came: puts them where they belong. `rest` is what follows the piece in the message.
    pub(super) fn place(
        &mut self,
        channel: &mut Channel,
        path: DataPath,
        from: Rank,
        piece: &Piece,
        rest: &[u8],
    ) -> Result<(), IoError> {
        if piece.is_gathered() && self.direction == Direction::Write && !self.memory.has_room_for(piece) {
            return Err(PROTOCOL_ERROR);
        }
        match (path, self.direction) {
            // The client put them where they belong.
            (DataPath::InPlace, Direction::Write) => Ok(()),
            (DataPath::InPlace, Direction::Read) => self.take_in_place(channel, from, piece),
            (DataPath::InOutbox, _) => self.take_from_outbox(channel, from, piece, rest),
            (DataPath::InMessage, Direction::Write) => self.put_into_own(channel, from, piece, rest),
            (DataPath::InMessage, Direction::Read) => self.put_into_memory(piece, rest),
        }
    }

    pub(super) fn copy(&mut self, working: &mut WorkingMemory, piece: &Piece) -> Result<(), IoError> {
        let access = self.machine.access_for(piece, self.me).ok_or(PROTOCOL_ERROR)?;
        let start = start_in(access, piece)?;
        let positions = piece.positions.clone();
        let window = piece.window.start;
        if positions.is_empty() {
            return Ok(());
        }
        let buffer = working.own(piece.slot(), piece.window.end - window)?;
        match self.direction {
            Direction::Write => {
                self.memory.of_piece(piece).copy_to(start, &access.view, positions, buffer, window)
            }
            Direction::Read => {
                self.memory.of_piece(piece).copy_from(start, &access.view, positions, buffer, window)
            }
        }
        .map_err(out_of_place)
    }

    /// Packs a piece into this rank's outbox; where it begins there. None if there is no room.
    fn put_into_outbox(&mut self, channel: &mut Channel, piece: &Piece) -> Option<u64> {
        let access = self.machine.access_for(piece, piece.client)?;
        let window = &piece.window;
        let (start, window_len) = match self.direction {
            Direction::Write => (start_in(access, piece).ok()?, 0),
            Direction::Read => (0, window.end - window.start),
        };
        let len = piece.positions.end - piece.positions.start;
        let (place, room, buffer) = channel.working.own.room(len, piece.slot(), window_len)?;
        let mut block = [0; BLOCK_BYTES];
        let mut done = 0;
        for target in room.chunks_mut(BLOCK_BYTES) {
            let block = &mut block[..target.len()];
            let part = done..done + target.len() as u64;
            match self.direction {
                Direction::Write => {
                    self.memory.of_piece(piece).pack(start + part.start..start + part.end, block)
                }
                Direction::Read => {
                    let first = piece.positions.start;
                    let runs = access.view.runs(first + part.start..first + part.end);
                    pack::pack(runs, buffer, -(window.start as i64), block)
                }
            }
            .ok()?;
            copy::nontemporal(target, block);
            done = part.end;
        }
        Some(place)
    }

    /// Unpacks a piece that is in another's outbox.
    fn take_from_outbox(
        &mut self,
        channel: &mut Channel,
        from: Rank,
        piece: &Piece,
        place: &[u8],
    ) -> Result<(), IoError> {
        let start = u64::from_le_bytes(place.try_into().map_err(|_| PROTOCOL_ERROR)?);
        let len = piece.positions.end.checked_sub(piece.positions.start).ok_or(PROTOCOL_ERROR)?;
        let place = start..start.checked_add(len).ok_or(PROTOCOL_ERROR)?;
        let window = &piece.window;
        match self.direction {
            Direction::Write => {
                let access = self.machine.access_for(piece, from).ok_or(PROTOCOL_ERROR)?;
                let window_len = window.end - window.start;
                let (data, buffer) = channel.sent_and_own(from.0, place, piece.slot(), window_len)?;
                let runs = access.view.runs(piece.positions.clone());
                pack::unpack(runs, buffer, -(window.start as i64), data).map_err(out_of_place)
            }
            Direction::Read => {
                let access = self.machine.access_for(piece, self.me).ok_or(PROTOCOL_ERROR)?;
                let start = start_in(access, piece)?;
                let (data, _) = channel.sent_and_own(from.0, place, piece.slot(), 0)?;
                match self.memory.of_piece(piece).contiguous(start..start + len) {
                    Some(target) => {
                        pack::move_bytes(target, data);
                        Ok(())
                    }
                    None => {
                        self.memory.of_piece(piece).unpack(start..start + len, data).map_err(out_of_place)
                    }
                }
            }
        }
    }

    /// Writes a piece of this rank into another's buffer. False if there is no memory for that.
    fn put_in_place(&mut self, channel: &mut Channel, to: Rank, piece: &Piece) -> Result<bool, IoError> {
        let access = self.machine.access_for(piece, self.me).ok_or(PROTOCOL_ERROR)?;
        let start = start_in(access, piece)?;
        let window = piece.window.start;
        let Ok(buffer) = channel.buffer_of(to.0, piece.slot(), piece.window.end - window) else {
            return Ok(false);
        };
        self.memory
            .of_piece(piece)
            .copy_to(start, &access.view, piece.positions.clone(), buffer, window)
            .map_err(out_of_place)?;
        Ok(true)
    }

    /// Reads a piece of this rank from another's buffer.
    fn take_in_place(&mut self, channel: &mut Channel, from: Rank, piece: &Piece) -> Result<(), IoError> {
        let access = self.machine.access_for(piece, self.me).ok_or(PROTOCOL_ERROR)?;
        let start = start_in(access, piece)?;
        let window = piece.window.start;
        let buffer = channel.buffer_of(from.0, piece.slot(), piece.window.end - window)?;
        self.memory
            .of_piece(piece)
            .copy_from(start, &access.view, piece.positions.clone(), buffer, window)
            .map_err(out_of_place)
    }

    fn pack_from_memory(&mut self, piece: &Piece, stream: &mut [u8]) -> Result<(), IoError> {
        let access = self.machine.access_for(piece, self.me).ok_or(PROTOCOL_ERROR)?;
        let start = start_in(access, piece)?;
        self.memory.of_piece(piece).pack(start..start + stream.len() as u64, stream).map_err(out_of_place)
    }

    fn put_into_memory(&mut self, piece: &Piece, stream: &[u8]) -> Result<(), IoError> {
        let access = self.machine.access_for(piece, self.me).ok_or(PROTOCOL_ERROR)?;
        let start = start_in(access, piece)?;
        self.memory.of_piece(piece).unpack(start..start + stream.len() as u64, stream).map_err(out_of_place)
    }

    fn pack_from_own(
        &mut self,
        channel: &mut Channel,
        client: Rank,
        piece: &Piece,
        stream: &mut [u8],
    ) -> Result<(), IoError> {
        let access = self.machine.access_for(piece, client).ok_or(PROTOCOL_ERROR)?;
        let window = piece.window.start;
        let buffer = channel.working.own(piece.slot(), piece.window.end - window)?;
        let runs = access.view.runs(piece.positions.clone());
        pack::pack(runs, buffer, -(window as i64), stream).map_err(out_of_place)
    }

    fn put_into_own(
        &mut self,
        channel: &mut Channel,
        client: Rank,
        piece: &Piece,
        stream: &[u8],
    ) -> Result<(), IoError> {
        let access = self.machine.access_for(piece, client).ok_or(PROTOCOL_ERROR)?;
        let window = piece.window.start;
        let buffer = channel.working.own(piece.slot(), piece.window.end - window)?;
        let runs = access.view.runs(piece.positions.clone());
        pack::unpack(runs, buffer, -(window as i64), stream).map_err(out_of_place)
    }
}
