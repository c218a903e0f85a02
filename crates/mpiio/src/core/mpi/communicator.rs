//! Messages and collective calls: through the ranks' [mailboxes](crate::core::mpi::mailbox) if all are on one node, else through the
//! shim's table of functions.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::mpi::backoff::{self, Backoff};
use crate::core::mpi::mailbox::{Mailbox, WaitingRoom};
use crate::core::mpi::status::Status;
use crate::core::mpi::table::MpiTable;

/// Tags of collective calls through mailboxes: below those of operations, and so many until they are used again.
const COLLECTIVE_TAGS: u32 = 32768;
/// Tags of operations' messages go round, from 0 on: operations of one file that are so far apart are never under way together.
/// MPI promises tags up to 32767.
pub(crate) const TAGS: u32 = 32767;
/// A tag of no message: to look for it only lets MPI go on.
const NO_TAG: c_int = TAGS as c_int;

/// A communicator, by the shim's pointer to it; of all ranks that opened a file.
#[derive(Debug)]
pub(crate) struct Communicator {
    mpi: &'static MpiTable,
    handle: NonNull<c_void>,
    rank: u32,
    ranks: u32,
    local: Option<Mutex<Local>>,
}

/// Ranks of one node.
#[derive(Debug)]
struct Local {
    mailbox: Mailbox,
    collectives: u32,
}

// SAFETY: the handle is the shim's, which uses it from any thread. MPI itself must have been started for threads by a
// program that has several of them in MPI.
unsafe impl Send for Communicator {}

/// A message that arrived.
pub(crate) struct Arrived {
    /// Who sent it.
    pub(crate) from: u32,
    /// Its bytes.
    pub(crate) size: usize,
    content: Content,
}

enum Content {
    /// MPI still has it.
    Matched(u64),
    Here(Vec<u8>),
}

/// A started send.
#[derive(Debug)]
pub(crate) enum Sending {
    /// With the bytes that must stay until it is complete.
    Request { request: u64, _bytes: Vec<u8> },
    /// The mailbox keeps the bytes.
    Mail,
}

/// A collective call of all ranks that has begun: see [`Communicator::poll`].
#[derive(Debug)]
pub(crate) struct CollectiveCall {
    /// Of all ranks, or of rank 0.
    all: Vec<u8>,
    mine: Vec<u8>,
    missing: Missing,
}

#[derive(Debug)]
enum Missing {
    Nothing,
    /// MPI's request.
    Request(u64),
    /// So many letters; each rank's bytes begin at its number times `each`.
    Letters {
        tag: i32,
        missing: u32,
        each: usize,
    },
}

impl Communicator {
    /// A duplicate of the communicator that the shim points to. Collective.
    ///
    /// # Safety
    /// `original` must be the shim's pointer to a communicator.
    pub(crate) unsafe fn duplicate_of(
        mpi: &'static MpiTable,
        original: *const c_void,
    ) -> Result<Communicator, Status> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is the shim's, by contract.
        Status::check(unsafe { (mpi.duplicate)(original, &mut handle) })?;
        let handle = NonNull::new(handle).ok_or(Status::Communicator)?;
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: the handle is the shim's.
        Status::check(unsafe { (mpi.size)(handle.as_ptr(), &mut rank, &mut ranks) })?;
        Ok(Communicator { mpi, handle, rank: rank as u32, ranks: ranks as u32, local: None })
    }

    /// A duplicate. Collective.
    pub(crate) fn duplicate(&self) -> Result<Communicator, Status> {
        // SAFETY: the handle is the shim's.
        unsafe { Communicator::duplicate_of(self.mpi, self.handle.as_ptr()) }
    }

    /// From now on, messages and collective calls go through this mailbox. All ranks say so, with nothing under way.
    pub(crate) fn connect(&mut self, mailbox: Mailbox) {
        self.local = Some(Mutex::new(Local { mailbox, collectives: 0 }));
    }

    /// Whether messages need no MPI.
    fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Whether any thread may send and take messages: there are none, they need no MPI, or any thread may call that.
    pub(crate) fn any_thread_sends(&self) -> bool {
        self.ranks == 1 || self.is_local() || self.any_thread_calls()
    }

    /// Whether any thread of this rank's program may call MPI, whatever others do: `MPI_THREAD_MULTIPLE`.
    pub(crate) fn any_thread_calls(&self) -> bool {
        // SAFETY: the shim's function.
        unsafe { (self.mpi.for_threads)() != 0 }
    }

    /// Whether this MPI moves data that end within an etype.
    pub(crate) fn moves_parts_of_etypes(&self) -> bool {
        // SAFETY: the shim's function.
        unsafe { (self.mpi.parts_of_etypes)() != 0 }
    }

    /// Lets MPI carry on with what the program has under way; others may wait for that.
    fn poke(&self) {
        let (mut found, mut from, mut size, mut message) = (0, 0, 0, 0);
        // SAFETY: the handle is the shim's, the others are ours; nothing is found, as nobody sends with this tag. An error
        // will come again where it matters.
        unsafe {
            (self.mpi.probe)(self.handle.as_ptr(), NO_TAG, &mut found, &mut from, &mut size, &mut message)
        };
    }

    /// Where to sleep until so many messages come, if there is such a place; and whether something is still to be sent.
    fn waiting_room(&self, messages: u32) -> Option<(WaitingRoom, bool)> {
        let mut local = Communicator::lock(self.local.as_ref()?);
        let all_sent = local.mailbox.flush();
        Some((local.mailbox.waiting_room(messages), !all_sent))
    }

    /// After a look that found nothing: sleeps until a message comes if `backoff` says that it is time to.
    pub(crate) fn wait(&self, backoff: &mut Backoff) {
        self.wait_for(backoff, 1);
    }

    /// The same, until so many messages may have come, without which the caller cannot go on. Nothing else may be under way
    /// through this communicator.
    pub(crate) fn wait_for(&self, backoff: &mut Backoff, messages: u32) {
        let Some(longest) = backoff.next(self.is_local()) else { return };
        let Some((room, must_send)) = self.waiting_room(messages) else {
            return std::thread::sleep(longest);
        };
        if !room.sleep(if must_send { backoff::SLEEP_BEFORE_SENDING } else { longest }) {
            self.poke();
        }
    }

    fn lock(local: &Mutex<Local>) -> MutexGuard<'_, Local> {
        local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the communicator; not told to MPI if MPI is about to end. Collective.
    pub(crate) fn release(self, communicate: bool) {
        // SAFETY: the handle is the shim's, and is not used again.
        unsafe { (self.mpi.release)(self.handle.as_ptr(), c_int::from(communicate)) }
    }

    /// The shim's pointer.
    pub(crate) fn handle(&self) -> *const c_void {
        self.handle.as_ptr()
    }

    /// This rank.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The least rank of those that share memory with this one. Collective.
    pub(crate) fn node(&self) -> Result<u32, Status> {
        let mut leader = 0;
        // SAFETY: the handle is the shim's.
        Status::check(unsafe { (self.mpi.node)(self.handle.as_ptr(), &mut leader) })?;
        Ok(leader as u32)
    }

    /// Starts to send.
    pub(crate) fn send(&self, to: u32, tag: i32, bytes: Vec<u8>) -> Result<Sending, Status> {
        if let Some(local) = &self.local {
            Communicator::lock(local).mailbox.send(to, tag, bytes)?;
            return Ok(Sending::Mail);
        }
        let mut request = 0;
        // SAFETY: the bytes live as long as the request, in `Sending`.
        Status::check(unsafe {
            (self.mpi.send)(
                self.handle.as_ptr(),
                to as c_int,
                tag,
                bytes.as_ptr().cast(),
                bytes.len() as u64,
                &mut request,
            )
        })?;
        Ok(Sending::Request { request, _bytes: bytes })
    }

    /// Whether a send is complete.
    pub(crate) fn is_sent(&self, sending: &mut Sending) -> Result<bool, Status> {
        match (sending, &self.local) {
            (Sending::Request { request, .. }, _) => self.test(request),
            (Sending::Mail, local) => {
                Ok(local.as_ref().is_none_or(|local| Communicator::lock(local).mailbox.flush()))
            }
        }
    }

    /// A message with this tag that has arrived, if any.
    pub(crate) fn probe(&self, tag: i32) -> Result<Option<Arrived>, Status> {
        if let Some(local) = &self.local {
            let letter = Communicator::lock(local).mailbox.take(tag)?;
            return Ok(letter.map(|letter| Arrived {
                from: letter.from,
                size: letter.bytes.len(),
                content: Content::Here(letter.bytes),
            }));
        }
        let (mut found, mut from, mut size, mut message) = (0, 0, 0, 0);
        // SAFETY: the handle is the shim's, the others are ours.
        Status::check(unsafe {
            (self.mpi.probe)(self.handle.as_ptr(), tag, &mut found, &mut from, &mut size, &mut message)
        })?;
        Ok((found != 0).then_some(Arrived {
            from: from as u32,
            size: size as usize,
            content: Content::Matched(message),
        }))
    }

    /// Takes the bytes of a message that has arrived.
    pub(crate) fn receive(&self, arrived: Arrived, bytes: &mut Vec<u8>) -> Result<(), Status> {
        let mut message = match arrived.content {
            Content::Here(content) => {
                *bytes = content;
                return Ok(());
            }
            Content::Matched(message) => message,
        };
        bytes.resize(arrived.size, 0);
        // SAFETY: there is room for the message's size.
        Status::check(unsafe {
            (self.mpi.receive)(&mut message, bytes.as_mut_ptr().cast(), arrived.size as u64)
        })
    }

    /// Rank 0's bytes for every rank. Collective.
    pub(crate) fn broadcast(&self, bytes: &mut [u8]) -> Result<(), Status> {
        let said = self.complete(self.start_broadcast(bytes.to_vec())?)?;
        bytes.copy_from_slice(&said);
        Ok(())
    }

    /// Rank 0 does it, and all hear what came of it. Collective.
    pub(crate) fn on_first(&self, does: impl FnOnce() -> Result<u64, Status>) -> Result<u64, Status> {
        let mut said = [0; 16];
        if self.rank() == 0 {
            let came = does();
            said[..8].copy_from_slice(&came.unwrap_or(0).to_ne_bytes());
            said[8..12].copy_from_slice(&Status::number(came.map(drop)).to_ne_bytes());
        }
        self.broadcast(&mut said)?;
        let ([number, status], _) = said.as_chunks::<8>() else { return Err(Status::Internal) };
        Status::check(u64::from_ne_bytes(*status) as i32)?;
        Ok(u64::from_ne_bytes(*number))
    }

    /// Waits until every rank is here. Collective.
    pub(crate) fn barrier(&self) -> Result<(), Status> {
        if self.ranks == 1 {
            return Ok(());
        }
        if self.is_local() {
            return self.gather([]).map(drop);
        }
        let mut request = 0;
        // SAFETY: the handle is the shim's.
        Status::check(unsafe { (self.mpi.barrier)(self.handle.as_ptr(), &mut request) })?;
        self.complete(CollectiveCall::of(Vec::new(), Vec::new(), Missing::Request(request))).map(drop)
    }

    /// Every rank's words, for every rank. Collective.
    pub(crate) fn gather<const N: usize>(&self, mine: [u64; N]) -> Result<Vec<[u64; N]>, Status> {
        if self.ranks == 1 {
            return Ok(vec![mine]);
        }
        let all = self.complete(self.start_gather(mine.map(u64::to_ne_bytes).as_flattened())?)?;
        if N == 0 {
            return Ok(vec![mine; self.ranks as usize]);
        }
        let words: Vec<u64> = all.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        Ok(words.as_chunks::<N>().0.to_vec())
    }

    /// Begins to say rank 0's bytes, which are as many on all ranks, to every rank. Collective.
    pub(crate) fn start_broadcast(&self, mut bytes: Vec<u8>) -> Result<CollectiveCall, Status> {
        if self.ranks == 1 {
            return Ok(CollectiveCall::of(bytes, Vec::new(), Missing::Nothing));
        }
        if let Some(local) = &self.local {
            let tag = Communicator::next_collective(local);
            let missing = u32::from(self.rank != 0);
            if self.rank == 0 {
                self.mail_to_all(local, tag, &bytes)?;
            }
            return Ok(CollectiveCall::of(bytes, Vec::new(), Missing::Letters { tag, missing, each: 0 }));
        }
        let mut request = 0;
        // SAFETY: the bytes do not move until the request is complete, or for ever.
        Status::check(unsafe {
            (self.mpi.broadcast)(
                self.handle.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len() as u64,
                0,
                &mut request,
            )
        })?;
        Ok(CollectiveCall::of(bytes, Vec::new(), Missing::Request(request)))
    }

    /// Begins to say every rank's bytes, as many each, to every rank: in the end, all of them in the order of ranks.
    /// Collective.
    pub(crate) fn start_gather(&self, mine: &[u8]) -> Result<CollectiveCall, Status> {
        let each = mine.len();
        let mut all = mine.repeat(self.ranks as usize);
        if self.ranks == 1 {
            return Ok(CollectiveCall::of(all, Vec::new(), Missing::Nothing));
        }
        if let Some(local) = &self.local {
            let tag = Communicator::next_collective(local);
            self.mail_to_all(local, tag, mine)?;
            let missing = self.ranks - 1;
            return Ok(CollectiveCall::of(all, Vec::new(), Missing::Letters { tag, missing, each }));
        }
        let mine = mine.to_vec();
        let mut request = 0;
        // SAFETY: neither memory moves until the request is complete, or for ever; the second has room for one of each rank.
        Status::check(unsafe {
            (self.mpi.gather)(
                self.handle.as_ptr(),
                mine.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                each as u64,
                &mut request,
            )
        })?;
        Ok(CollectiveCall::of(all, mine, Missing::Request(request)))
    }

    /// The result of a collective call, if it is complete.
    pub(crate) fn poll(&self, call: &mut CollectiveCall) -> Result<Option<Vec<u8>>, Status> {
        let complete = match &mut call.missing {
            Missing::Nothing => true,
            Missing::Request(request) => self.test(request)?,
            Missing::Letters { tag, missing, each } => {
                let Some(local) = &self.local else { return Err(Status::Internal) };
                let mut local = Communicator::lock(local);
                while *missing > 0 {
                    let Some(letter) = local.mailbox.take(*tag)? else { break };
                    let start = letter.from as usize * *each;
                    let place =
                        call.all.get_mut(start..start + letter.bytes.len()).ok_or(Status::Internal)?;
                    place.copy_from_slice(&letter.bytes);
                    *missing -= 1;
                }
                local.mailbox.flush() && *missing == 0
            }
        };
        if !complete {
            return Ok(None);
        }
        call.missing = Missing::Nothing;
        Ok(Some(std::mem::take(&mut call.all)))
    }

    fn complete(&self, mut call: CollectiveCall) -> Result<Vec<u8>, Status> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(result) = self.poll(&mut call)? {
                return Ok(result);
            }
            let missing = if let Missing::Letters { missing, .. } = call.missing { missing } else { 1 };
            self.wait_for(&mut backoff, missing);
        }
    }

    fn next_collective(local: &Mutex<Local>) -> i32 {
        let mut local = Communicator::lock(local);
        local.collectives = (local.collectives + 1) % COLLECTIVE_TAGS;
        -1 - local.collectives as i32
    }

    /// What does not fit the others' inboxes yet goes later.
    fn mail_to_all(&self, local: &Mutex<Local>, tag: i32, bytes: &[u8]) -> Result<(), Status> {
        let mut local = Communicator::lock(local);
        for to in (0..self.ranks).filter(|rank| *rank != self.rank) {
            local.mailbox.send(to, tag, bytes.to_vec())?;
        }
        Ok(())
    }

    fn test(&self, request: &mut u64) -> Result<bool, Status> {
        let mut done = 0;
        // SAFETY: the request is the shim's.
        Status::check(unsafe { (self.mpi.test)(request, &mut done) })?;
        Ok(done != 0)
    }
}

impl CollectiveCall {
    fn of(all: Vec<u8>, mine: Vec<u8>, missing: Missing) -> CollectiveCall {
        CollectiveCall { all, mine, missing }
    }
}

impl Drop for CollectiveCall {
    fn drop(&mut self) {
        if let Missing::Request(_) = self.missing {
            // MPI may still write there.
            std::mem::forget(std::mem::take(&mut self.all));
            std::mem::forget(std::mem::take(&mut self.mine));
        }
    }
}
