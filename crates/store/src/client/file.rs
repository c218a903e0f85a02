//! An open file of a store.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pio_layout::View;

use super::lane::{Answered, Lane, Payload};
use super::memory::{Sink, Source};
use super::split::{Chunk, Split};
use super::store::{Store, servers_of};
use crate::error::{Failure, StoreError};
use crate::limits::Limits;
use crate::protocol::{Answer, Body, FileRef, Holder, Register};

/// Strips that one request goes through at most: far fewer than a server allows.
const MOST_STRIPS: u64 = Limits::DEFAULT.strips as u64 / 16;
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
    unsynced: Mutex<BTreeMap<u32, Unsynced>>,
}

/// What was written to a server and not synced since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unsynced {
    /// The epoch in which the server took it.
    epoch: u64,
    /// How many times it took something.
    writes: u64,
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
        self.check_positions(view, &positions)?;
        let mut transfer = Transfer::default();
        self.transfer(view, positions, Payload::Out(source), &mut transfer)
    }

    /// Reads `positions` of `view` into `sink`, in order; says how many bytes lie before the end of the file. What was never
    /// written reads as zero; memory for what lies behind the end stays as it was.
    ///
    /// # Errors
    /// If a server cannot read or finds its data damaged, or is not there.
    pub fn read(&self, view: &View, positions: Range<u64>, sink: &mut dyn Sink) -> Result<u64, StoreError> {
        self.check_positions(view, &positions)?;
        let mut transfer = Transfer::default();
        self.transfer(view, positions.clone(), Payload::In(&mut *sink), &mut transfer)?;
        if transfer.missing.is_empty() {
            return Ok(positions.end - positions.start);
        }
        // A part that ends early may be a hole or the end of the file: only all parts together tell.
        let end = view.position_at_or_after(self.size()?);
        let len = end.clamp(positions.start, positions.end) - positions.start;
        for missing in transfer.missing {
            let hole = missing.start..missing.end.min(len);
            if !hole.is_empty() {
                sink.zero(hole);
            }
        }
        Ok(len)
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
    /// If a server is not there.
    pub fn size(&self) -> Result<u64, StoreError> {
        let servers = servers_of(&self.file);
        let calls = servers.iter().map(|server| (*server, Body::Length { file: self.file })).collect();
        let mut size = 0;
        for (server, answer) in servers.iter().zip(self.store.call_all(&self.path, calls)?) {
            let Answer::Length(len) = answer else { return Err(StoreError::Confused { server: *server }) };
            let slot = self.file.placement.slot_of_server(*server).unwrap_or(0);
            size = size.max(self.file.placement.file_len(slot, len));
        }
        Ok(size)
    }

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// If a server cannot, or is not there.
    pub fn set_size(&self, size: u64) -> Result<(), StoreError> {
        self.each_part(size, |bytes| Some(Body::SetLength { file: self.file, bytes }))?;
        // Appends go on from here.
        let body = Body::SetRegister { file: self.file.id, register: Register::End, value: size };
        self.store.call(&self.path, self.file.id.home(), body).map(drop)
    }

    /// Makes sure that there is room for so many bytes; the file is at least so long then.
    ///
    /// # Errors
    /// If there is no room, or a server is not there.
    pub fn preallocate(&self, size: u64) -> Result<(), StoreError> {
        self.each_part(size, |bytes| (bytes > 0).then_some(Body::Preallocate { file: self.file, bytes }))
    }

    /// Makes all that was written durable, on every server.
    ///
    /// # Errors
    /// [`StoreError::Lost`] if a machine went down, or its disk failed, after this client wrote to it and before it
    /// synced: what was written must be written again. Else if a server cannot sync, or is not there.
    pub fn sync(&self) -> Result<(), StoreError> {
        let servers = servers_of(&self.file);
        let written = self.unsynced().clone();
        let calls = servers.iter().map(|server| (*server, Body::Sync { file: self.file })).collect();
        let answers = self.store.call_all(&self.path, calls)?;
        let mut lost = None;
        for (server, answer) in servers.iter().zip(answers) {
            let Answer::Written { epoch } = answer else {
                return Err(StoreError::Confused { server: *server });
            };
            if written.get(server).is_some_and(|written| written.epoch != epoch) {
                lost = lost.or(Some(*server));
            }
        }
        // What another thread wrote meanwhile may not be synced. A loss is told once.
        self.unsynced().retain(|server, now| written.get(server) != Some(now));
        match lost {
            Some(server) => Err(StoreError::Lost { path: self.path.clone(), server }),
            None => Ok(()),
        }
    }

    /// Syncs, and is done with the file.
    ///
    /// # Errors
    /// As [`StoreFile::sync`].
    pub fn close(self) -> Result<(), StoreError> {
        self.sync()
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
    pub fn fetch_add_pointer(&self, by: u64) -> Result<u64, StoreError> {
        self.fetch_add(Register::Pointer, 0, by)
    }

    /// Sets the shared file pointer.
    ///
    /// # Errors
    /// If it does not fit 63 bits, or the server is not there.
    pub fn set_pointer(&self, value: u64) -> Result<(), StoreError> {
        let body = Body::SetRegister { file: self.file.id, register: Register::Pointer, value };
        self.store.call(&self.path, self.file.id.home(), body).map(drop)
    }

    /// Takes `len` bytes at the end of the file, for this client alone; says where they are.
    ///
    /// # Errors
    /// If the file would not fit 63 bits, or a server is not there.
    pub fn reserve_end(&self, len: u64) -> Result<u64, StoreError> {
        let size = self.size()?;
        self.fetch_add(Register::End, size, len)
    }

    /// Writes `data` at the end of the file, behind whatever others append; says where.
    ///
    /// # Errors
    /// As [`StoreFile::reserve_end`] and [`StoreFile::write`].
    pub fn append(&self, data: &[u8]) -> Result<u64, StoreError> {
        let offset = self.reserve_end(data.len() as u64)?;
        self.write_at(offset, data)?;
        Ok(offset)
    }

    fn fetch_add(&self, register: Register, at_least: u64, by: u64) -> Result<u64, StoreError> {
        let home = self.file.id.home();
        let body = Body::FetchAdd { file: self.file.id, register, at_least, by };
        match self.store.call(&self.path, home, body)? {
            Answer::Value(value) => Ok(value),
            _ => Err(StoreError::Confused { server: home }),
        }
    }

    /// Asks each server something of its part of a file of `size` bytes.
    fn each_part(&self, size: u64, body: impl Fn(u64) -> Option<Body>) -> Result<(), StoreError> {
        let calls = servers_of(&self.file).into_iter().filter_map(|server| {
            let slot = self.file.placement.slot_of_server(server)?;
            Some((server, body(self.file.placement.striping().len_of_server(slot, size))?))
        });
        let calls: Vec<(u32, Body)> = calls.collect();
        let servers: Vec<u32> = calls.iter().map(|(server, _)| *server).collect();
        for (server, answer) in servers.into_iter().zip(self.store.call_all(&self.path, calls)?) {
            let Answer::Written { epoch } = answer else { return Err(StoreError::Confused { server }) };
            self.note_written(server, epoch)?;
        }
        Ok(())
    }

    fn check_positions(&self, view: &View, positions: &Range<u64>) -> Result<(), StoreError> {
        if positions.start <= positions.end && (positions.is_empty() || positions.end <= view.limit()) {
            return Ok(());
        }
        Err(StoreError::Invalid { path: self.path.clone(), expected: "offsets of at most 63 bits".into() })
    }

    /// Moves data between memory and all servers that have some of them.
    fn transfer(
        &self,
        view: &View,
        positions: Range<u64>,
        mut payload: Payload,
        transfer: &mut Transfer,
    ) -> Result<(), StoreError> {
        if positions.is_empty() {
            return Ok(());
        }
        let servers = self.servers_touched(view, &positions);
        let mut lanes = self.store.lanes(&servers)?;
        let mut chunk_bytes = self.store.options().chunk_bytes;
        if matches!(payload, Payload::Out(_)) && *view == View::contiguous(view.displacement()) {
            // A server has nothing to do with it but to pass it on to its file: what a message costs by itself, waking up
            // threads, weighs more than that it outgrows the caches. Reads and pieces are slower so.
            chunk_bytes *= 2;
        }
        for lane in &mut lanes.lanes {
            chunk_bytes = chunk_bytes.min(u64::from(lane.ready()?));
        }
        let window = self.store.options().window.max(1);
        let placement = &self.file.placement;
        for chunk in Split::new(placement, view, positions, chunk_bytes, MOST_STRIPS) {
            let server = placement.server_of_slot(chunk.slot);
            let at = servers.partition_point(|other| *other < server);
            let lane = lanes.lanes.get_mut(at).ok_or(StoreError::Confused { server })?;
            if lane.flying() >= window {
                // Several answers at a time: the server sends them so, and to wait costs more than to take them.
                while lane.flying() > window / 2 {
                    self.settle(lane, &mut payload, transfer)?;
                }
            }
            if transfer.failed.is_some() {
                break;
            }
            lane.move_chunk(self.file, view, chunk, &payload)?;
        }
        for lane in &mut lanes.lanes {
            while lane.flying() > 0 {
                self.settle(lane, &mut payload, transfer)?;
            }
            self.check_epoch(lane.server(), lane.epoch())?;
        }
        match transfer.failed.take() {
            Some((server, failure)) => Err(StoreError::Failed { path: self.path.clone(), server, failure }),
            None => Ok(()),
        }
    }

    /// The servers that have some of the data, ascending; all of the file's if that takes long to find out.
    fn servers_touched(&self, view: &View, positions: &Range<u64>) -> Vec<u32> {
        let placement = &self.file.placement;
        let all = servers_of(&self.file);
        let mut touched = Vec::new();
        let mut shares = placement.shares(view, positions.clone());
        for _ in 0..4 * all.len() {
            let Some(share) = shares.next() else {
                touched.sort_unstable();
                touched.dedup();
                return touched;
            };
            touched.push(placement.server_of_slot(share.slot));
        }
        all
    }

    /// Takes the next answer of a lane.
    fn settle(
        &self,
        lane: &mut Lane,
        payload: &mut Payload,
        transfer: &mut Transfer,
    ) -> Result<(), StoreError> {
        let server = lane.server();
        let Answered { chunk, body } = lane.answer(payload)?;
        match (body, chunk, payload) {
            (Ok(Answer::Written { epoch }), Some(_), Payload::Out(_)) => self.note_written(server, epoch),
            (Ok(Answer::Data { bytes }), Some(chunk), Payload::In(_)) if bytes <= chunk.len => {
                transfer.missing.extend(bytes_behind(&chunk, bytes));
                Ok(())
            }
            (Err(failure), ..) => {
                transfer.failed.get_or_insert((server, failure));
                Ok(())
            }
            _ => Err(StoreError::Confused { server }),
        }
    }

    /// Notes in which epoch a server took data; an error if it lost some before.
    fn note_written(&self, server: u32, epoch: u64) -> Result<(), StoreError> {
        let mut unsynced = self.unsynced();
        let entry = unsynced.entry(server).or_insert(Unsynced { epoch, writes: 0 });
        let same = entry.epoch == epoch;
        *entry = Unsynced { epoch, writes: entry.writes + 1 };
        if same { Ok(()) } else { Err(StoreError::Lost { path: self.path.clone(), server }) }
    }

    /// An error if a server lost what this client wrote: it must not read something else as if nothing had happened.
    fn check_epoch(&self, server: u32, epoch: u64) -> Result<(), StoreError> {
        match self.unsynced().get(&server) {
            Some(written) if written.epoch != epoch => {
                Err(StoreError::Lost { path: self.path.clone(), server })
            }
            _ => Ok(()),
        }
    }

    fn unsynced(&self) -> MutexGuard<'_, BTreeMap<u32, Unsynced>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that is held: to be given back with [`StoreFile::unlock`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Lock(u64);

/// What came of an operation so far.
#[derive(Default)]
struct Transfer {
    /// Data bytes that a part ended before, counted from the first of the access.
    missing: Vec<Range<u64>>,
    failed: Option<(u32, Failure)>,
}

/// What lies behind the first `bytes` bytes of a chunk.
fn bytes_behind(chunk: &Chunk, bytes: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let mut left = bytes;
    let behind = chunk.bytes.iter().map(move |range| {
        let there = left.min(range.end - range.start);
        left -= there;
        range.start + there..range.end
    });
    behind.filter(|range| !range.is_empty())
}
