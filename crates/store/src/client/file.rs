//! An open file of a store.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pio_layout::View;
use pio_protocol::client::{
    Chunk, Lost, MOST_STRIPS, Naming, OperationError, Split, Transfer, Unsynced, chunk_bytes, holes, lengths,
};
use pio_protocol::{Answer, Body, FileRef, Holder, ReplyBody};

use super::link::{Answered, Payload, ServerLink};
use super::memory::{Sink, Source};
use super::store::{Stat, Store};
use super::watch::Watched;
use crate::error::StoreError;

/// First and longest time between two questions whether a lock is free.
const LOCK_PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(5));

/// How long somebody waits for a lock before it is told whose it is, and from then on how often.
const TELL_AFTER: Duration = Duration::from_secs(2);
const TELL_EVERY: Duration = Duration::from_secs(30);

/// An open file of a store. It may be used by many threads; each operation has the servers for itself.
#[derive(Debug)]
pub struct StoreFile {
    store: Store,
    path: String,
    file: FileRef,
    unsynced: Mutex<Unsynced>,
}

impl StoreFile {
    pub(super) fn new(store: Store, path: &str, file: FileRef) -> StoreFile {
        StoreFile { store, path: path.into(), file, unsynced: Mutex::default() }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its number, and where its bytes are.
    pub fn file(&self) -> FileRef {
        self.file
    }

    /// Writes the data bytes of `source` to `positions` of `view`, in order. When this returns every server has the data
    /// in its machine's memory; [`StoreFile::sync`] makes them durable.
    ///
    /// # Errors
    /// If a server cannot write (its disk is full, say), or is not there. Some of the data may have been written.
    pub fn write(&self, view: &View, positions: Range<u64>, source: &dyn Source) -> Result<(), StoreError> {
        self.write_named(Naming::View, view, positions, source)
    }

    /// The same; requests name the bytes as `naming` says.
    ///
    /// # Errors
    /// As [`StoreFile::write`], and if a request would list more pieces than it may.
    pub fn write_named(
        &self,
        naming: Naming,
        view: &View,
        positions: Range<u64>,
        source: &dyn Source,
    ) -> Result<(), StoreError> {
        self.check_positions(view, &positions)?;
        self.transfer(naming, view, positions, Payload::Out(source)).map(drop)
    }

    /// Reads `positions` of `view` into `sink`, in order; says how many bytes lie before the end of the file. What was never
    /// written reads as zero; memory for what lies behind the end stays as it was.
    ///
    /// # Errors
    /// If a server cannot read, finds its data damaged or lost what it had of the file with its folder, or is not there.
    pub fn read(&self, view: &View, positions: Range<u64>, sink: &mut dyn Sink) -> Result<u64, StoreError> {
        self.read_named(Naming::View, view, positions, sink)
    }

    /// The same; requests name the bytes as `naming` says.
    ///
    /// # Errors
    /// As [`StoreFile::read`], and if a request would list more pieces than it may.
    pub fn read_named(
        &self,
        naming: Naming,
        view: &View,
        positions: Range<u64>,
        sink: &mut dyn Sink,
    ) -> Result<u64, StoreError> {
        self.check_positions(view, &positions)?;
        let missing = self.transfer(naming, view, positions.clone(), Payload::In(&mut *sink))?;
        if missing.is_empty() {
            return Ok(positions.end - positions.start);
        }
        // A part that ends early may be a hole or the end of the file: only all parts together tell.
        let stat = self.stat()?;
        let (len, holes) = holes(missing, view, &positions, stat.size);
        let mut holes = holes.peekable();
        if holes.peek().is_some() {
            self.check_holes(&stat)?;
        }
        holes.for_each(|hole| sink.zero(hole));
        Ok(len)
    }

    /// A server that has nothing of the file may have lost it: then that is no hole.
    fn check_holes(&self, stat: &Stat) -> Result<(), StoreError> {
        let calls = stat.servers_without.iter().map(|server| (*server, Body::Check { file: self.file }));
        self.store.call_all(&self.path, calls.collect()).map(drop)
    }

    /// Writes `data` at byte `offset`.
    ///
    /// # Errors
    /// As [`StoreFile::write`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        self.write(&View::contiguous(0), offset..offset.saturating_add(data.len() as u64), &data)
    }

    /// Reads from byte `offset` on; says how many bytes there were.
    ///
    /// # Errors
    /// As [`StoreFile::read`].
    pub fn read_at(&self, offset: u64, mut out: &mut [u8]) -> Result<u64, StoreError> {
        self.read(&View::contiguous(0), offset..offset.saturating_add(out.len() as u64), &mut out)
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// If a server is not there, or lost what was written and not yet synced.
    pub fn size(&self) -> Result<u64, StoreError> {
        Ok(self.file.placement.size(&self.lengths()?))
    }

    /// What is known of it.
    ///
    /// # Errors
    /// As [`StoreFile::size`].
    pub fn stat(&self) -> Result<Stat, StoreError> {
        let (lengths, placement) = (self.lengths()?, self.file.placement);
        let size = placement.size(&lengths);
        let is_without =
            |(slot, len): &(u32, u64)| *len == 0 && placement.striping().len_of_server(*slot, size) > 0;
        let without = lengths.into_iter().filter(is_without).map(|(slot, _)| placement.server_of_slot(slot));
        let servers_without = without.collect();
        Ok(Stat { path: self.path.clone(), file: self.file.id, size, placement, servers_without })
    }

    /// Slot and bytes of each of its parts.
    fn lengths(&self) -> Result<Vec<(u32, u64)>, StoreError> {
        let servers = self.file.placement.servers_with_a_part();
        let calls = servers.iter().map(|server| (*server, Body::Length { file: self.file })).collect();
        let answers = servers.into_iter().zip(self.store.call_all(&self.path, calls)?);
        let lengths = lengths(&self.file.placement, &self.unsynced(), answers);
        lengths.map_err(|error| StoreError::of(&self.path, error))
    }

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// If a server cannot, or is not there.
    pub fn set_size(&self, size: u64) -> Result<(), StoreError> {
        self.each_part(size, |bytes| Some(Body::SetLength { file: self.file, bytes }))
    }

    /// Makes sure that there is room for so many bytes; the file is at least so long then.
    ///
    /// # Errors
    /// If there is no room, which leaves the file as long as it was, or a server is not there.
    pub fn preallocate(&self, size: u64) -> Result<(), StoreError> {
        self.each_part(size, |bytes| (bytes > 0).then_some(Body::Preallocate { file: self.file, bytes }))?;
        self.each_part(size, |bytes| (bytes > 0).then_some(Body::Extend { file: self.file, bytes }))
    }

    /// Makes all that was written durable, on every server.
    ///
    /// # Errors
    /// [`StoreError::Lost`] if a machine went down, or its disk failed, after this client wrote to it and before it
    /// synced: what was written must be written again. Else if a server cannot sync, or is not there.
    pub fn sync(&self) -> Result<(), StoreError> {
        let servers = self.file.placement.servers_with_a_part();
        let syncing = self.unsynced().begin_sync();
        let calls = servers.iter().map(|server| (*server, Body::Sync { file: self.file })).collect();
        let answers = self.store.call_all(&self.path, calls)?;
        let epochs = servers.iter().zip(answers).map(|(&server, answer)| match answer {
            Answer::Written { epoch } => Ok((server, epoch)),
            _ => Err(StoreError::Confused { server }),
        });
        let epochs: Vec<(u32, u64)> = epochs.collect::<Result<_, _>>()?;
        self.unsynced().end_sync(syncing, epochs).map_err(|lost| self.lost(lost))
    }

    /// Syncs, and is done with the file.
    ///
    /// # Errors
    /// As [`StoreFile::sync`].
    pub fn close(self) -> Result<(), StoreError> {
        self.sync()
    }

    /// Removes the file, unless another has its path by now, which stays.
    ///
    /// # Errors
    /// [`Failure::NotFound`](pio_protocol::Failure::NotFound) if its path is not this file's any more; or a server is not there.
    pub fn remove(&self) -> Result<(), StoreError> {
        self.store.remove_opened(&self.path, self.file.id)
    }

    /// Locks a range for this client: alone, or with others that share it. Waits for its turn, which comes first come
    /// first served, as long as `patience`.
    ///
    /// # Errors
    /// If it is not had within `patience`, or the server is not there.
    pub fn lock(&self, range: Range<u64>, shared: bool, patience: Duration) -> Result<Lock, StoreError> {
        self.lock_telling(range, shared, patience, &mut |_| {})
    }

    /// The same; tells `waiting` who holds the lock when it has waited for 2 s, and from then on twice a minute.
    ///
    /// # Errors
    /// As [`StoreFile::lock`].
    pub fn lock_telling(
        &self,
        range: Range<u64>,
        shared: bool,
        patience: Duration,
        waiting: &mut dyn FnMut(&Holder),
    ) -> Result<Lock, StoreError> {
        let mut tell_at = TELL_AFTER;
        let lock = self.store.next_lock();
        let (home, file) = (self.file.id.home(), self.file.id);
        let (start, mut pause) = (Instant::now(), LOCK_PAUSE.0);
        loop {
            let body = Body::Lock { file, lock, shared, range: range.clone() };
            match self.store.call(&self.path, home, body)? {
                Answer::Done => return Ok(Lock(lock)),
                Answer::Wait { holder, .. } if start.elapsed() < patience => {
                    if start.elapsed() >= tell_at {
                        waiting(&holder);
                        tell_at = start.elapsed() + TELL_EVERY;
                    }
                }
                Answer::Wait { holder, .. } => {
                    self.store.call(&self.path, home, Body::Unlock { file, lock })?;
                    return Err(StoreError::Locked { path: self.path.clone(), holder });
                }
                _ => return Err(StoreError::Confused { server: home }),
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LOCK_PAUSE.1);
        }
    }

    /// Gives a lock back.
    ///
    /// # Errors
    /// If it was lost meanwhile, because the server restarted or did not hear of this client for too long: then others may
    /// have come in between.
    pub fn unlock(&self, lock: Lock) -> Result<(), StoreError> {
        let body = Body::Unlock { file: self.file.id, lock: lock.0 };
        self.store.call(&self.path, self.file.id.home(), body).map(drop)
    }

    /// Adds to the shared file pointer; says what it was.
    ///
    /// # Errors
    /// If it would not fit 63 bits, or the server is not there.
    pub fn move_pointer(&self, by: u64) -> Result<u64, StoreError> {
        let home = self.file.id.home();
        match self.store.call(&self.path, home, Body::MovePointer { file: self.file.id, by })? {
            Answer::Value(value) => Ok(value),
            _ => Err(StoreError::Confused { server: home }),
        }
    }

    /// Sets the shared file pointer.
    ///
    /// # Errors
    /// If it does not fit 63 bits, or the server is not there.
    pub fn set_pointer(&self, value: u64) -> Result<(), StoreError> {
        let body = Body::SetPointer { file: self.file.id, value };
        self.store.call(&self.path, self.file.id.home(), body).map(drop)
    }

    /// Asks each server something of its part of a file of `size` bytes.
    fn each_part(&self, size: u64, body: impl Fn(u64) -> Option<Body>) -> Result<(), StoreError> {
        let calls = self.file.placement.servers_with_a_part().into_iter().filter_map(|server| {
            let slot = self.file.placement.slot_of_server(server)?;
            Some((server, body(self.file.placement.striping().len_of_server(slot, size))?))
        });
        let calls: Vec<(u32, Body)> = calls.collect();
        let servers: Vec<u32> = calls.iter().map(|(server, _)| *server).collect();
        for (server, answer) in servers.into_iter().zip(self.store.call_all(&self.path, calls)?) {
            let Answer::Written { epoch } = answer else { return Err(StoreError::Confused { server }) };
            self.unsynced().note_written(server, epoch).map_err(|lost| self.lost(lost))?;
        }
        Ok(())
    }

    fn check_positions(&self, view: &View, positions: &Range<u64>) -> Result<(), StoreError> {
        if positions.start <= positions.end && (positions.is_empty() || positions.end <= view.limit()) {
            return Ok(());
        }
        Err(StoreError::Invalid { path: self.path.clone(), expected: "offsets of at most 63 bits".into() })
    }

    /// Moves data between memory and all servers that have some of them; says which data bytes parts ended before.
    fn transfer(
        &self,
        naming: Naming,
        view: &View,
        positions: Range<u64>,
        mut payload: Payload,
    ) -> Result<Vec<Range<u64>>, StoreError> {
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        let direction = payload.direction();
        let mut transfer = Transfer::new(direction);
        let placement = &self.file.placement;
        let servers = placement.servers_touched(view, &positions);
        let mut links = self.store.links(&servers)?;
        let mut bytes = chunk_bytes(self.store.options().chunk_bytes, direction, view);
        for link in &mut links.links {
            bytes = bytes.min(u64::from(link.ready()?));
        }
        let window = self.store.options().window.max(1);
        let mut watched = self.store.watched();
        for chunk in Split::new(placement, view, positions, bytes, MOST_STRIPS) {
            let server = placement.server_of_slot(chunk.slot);
            let at = servers.partition_point(|other| *other < server);
            let link = links.links.get_mut(at).ok_or(StoreError::Confused { server })?;
            if link.waiting_for() >= window {
                // Several answers at a time: the server sends them so, and to wait costs more than to take them.
                while link.waiting_for() > window / 2 {
                    self.settle(link, &mut payload, &mut transfer, &mut watched, view)?;
                }
            }
            if transfer.has_failed() {
                break;
            }
            let failed = |failure| StoreError::Failed { path: self.path.clone(), server, failure };
            let list = chunk.list(naming, view, placement).map_err(failed)?;
            watched.sends(server, direction, view, &chunk);
            link.move_chunk(self.file, view, list, chunk, &payload)?;
        }
        for link in &mut links.links {
            while link.waiting_for() > 0 {
                self.settle(link, &mut payload, &mut transfer, &mut watched, view)?;
            }
        }
        transfer.finish().map_err(|error| StoreError::of(&self.path, error))
    }

    /// Takes the next answer of a link.
    fn settle(
        &self,
        link: &mut ServerLink,
        payload: &mut Payload,
        transfer: &mut Transfer,
        watched: &mut Watched,
        view: &View,
    ) -> Result<(), StoreError> {
        let server = link.server();
        let Answered { chunk, body } = link.answer(payload)?;
        if let Some(chunk) = &chunk {
            watched.answered(server, view, chunk, self.moved(server, chunk, &body));
        }
        let settled = transfer.settle(&mut self.unsynced(), server, chunk.as_ref(), body);
        settled.map_err(|error| StoreError::of(&self.path, error))
    }

    /// Bytes that a request moved, or the error number of what its server answered.
    fn moved(&self, server: u32, chunk: &Chunk, body: &ReplyBody) -> Result<u64, i32> {
        match *body {
            Ok(Answer::Data { bytes, .. }) => Ok(bytes),
            Ok(_) => Ok(chunk.len),
            Err(failure) => Err(StoreError::Failed { path: String::new(), server, failure }.errno()),
        }
    }

    fn lost(&self, lost: Lost) -> StoreError {
        StoreError::of(&self.path, OperationError::Lost(lost))
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that is held: to be given back with [`StoreFile::unlock`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Lock(u64);
