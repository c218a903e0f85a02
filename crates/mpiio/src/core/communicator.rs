//! Messages and collective calls, through the shim's table of functions.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::boundary::MpiTable;
use super::coroutine;
use super::status::Status;
use super::turns;

/// How often to look for something before giving the processor away. Ranks often outnumber processors.
const LOOKS_BEFORE_YIELD: u32 = 16;
/// For so long a wait without sleep. The kernel wakes sleepers some 50 microseconds late.
const AWAKE: Duration = Duration::from_micros(400);
/// The same where a node has more ranks than processors: whoever looks keeps another from its work.
const AWAKE_IN_A_CROWD: Duration = Duration::from_micros(50);
/// Other operations of this rank must go on meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Whether some communicator has more ranks on this node than there are processors.
static CROWDED: AtomicBool = AtomicBool::new(false);

/// So many ranks are on this node.
pub fn share_node_with(ranks: usize) {
    if std::thread::available_parallelism().is_ok_and(|processors| ranks > processors.get()) {
        CROWDED.store(true, Ordering::Relaxed);
    }
}

/// A communicator, by the shim's pointer to it; of all ranks that opened a file.
#[derive(Debug)]
pub struct Communicator {
    mpi: &'static MpiTable,
    handle: NonNull<c_void>,
    rank: u32,
    ranks: u32,
}

// SAFETY: the handle is the shim's, which uses it from any thread. MPI itself must have been started for threads by a
// program that has several of them in MPI.
unsafe impl Send for Communicator {}

/// A message that arrived.
pub struct Arrived {
    /// Who sent it.
    pub from: u32,
    /// Its bytes.
    pub size: usize,
    message: u64,
}

/// A started send, with the bytes that must stay until it is complete.
#[derive(Debug)]
pub struct Sending {
    request: u64,
    /// Held for MPI.
    _bytes: Vec<u8>,
}

impl Communicator {
    /// A duplicate of the communicator that the shim points to. Collective.
    ///
    /// # Safety
    /// `original` must be the shim's pointer to a communicator.
    pub unsafe fn duplicate_of(
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
        Ok(Communicator { mpi, handle, rank: rank as u32, ranks: ranks as u32 })
    }

    /// A duplicate. Collective.
    pub fn duplicate(&self) -> Result<Communicator, Status> {
        // SAFETY: the handle is the shim's.
        unsafe { Communicator::duplicate_of(self.mpi, self.handle.as_ptr()) }
    }

    /// Frees the communicator; not told to MPI if MPI is about to end. Collective.
    pub fn release(self, communicate: bool) {
        // SAFETY: the handle is the shim's, and is not used again.
        unsafe { (self.mpi.release)(self.handle.as_ptr(), c_int::from(communicate)) }
    }

    /// The shim's pointer.
    pub fn handle(&self) -> *const c_void {
        self.handle.as_ptr()
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The least rank of those that share memory with this one. Collective.
    pub fn node(&self) -> Result<u32, Status> {
        let mut leader = 0;
        // SAFETY: the handle is the shim's.
        Status::check(unsafe { (self.mpi.node)(self.handle.as_ptr(), &mut leader) })?;
        Ok(leader as u32)
    }

    /// Starts to send.
    pub fn send(&self, to: u32, tag: i32, bytes: Vec<u8>) -> Result<Sending, Status> {
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
        Ok(Sending { request, _bytes: bytes })
    }

    /// Whether a send is complete.
    pub fn is_sent(&self, sending: &mut Sending) -> Result<bool, Status> {
        self.test(&mut sending.request)
    }

    /// A message with this tag that has arrived, if any.
    pub fn probe(&self, tag: i32) -> Result<Option<Arrived>, Status> {
        let (mut found, mut from, mut size, mut message) = (0, 0, 0, 0);
        // SAFETY: the handle is the shim's, the others are ours.
        Status::check(unsafe {
            (self.mpi.probe)(self.handle.as_ptr(), tag, &mut found, &mut from, &mut size, &mut message)
        })?;
        Ok((found != 0).then_some(Arrived { from: from as u32, size: size as usize, message }))
    }

    /// Takes the bytes of a message that has arrived.
    pub fn receive(&self, mut arrived: Arrived, bytes: &mut Vec<u8>) -> Result<(), Status> {
        bytes.resize(arrived.size, 0);
        // SAFETY: there is room for the message's size.
        Status::check(unsafe {
            (self.mpi.receive)(&mut arrived.message, bytes.as_mut_ptr().cast(), arrived.size as u64)
        })
    }

    /// Rank 0's bytes for every rank. Collective.
    pub fn broadcast(&self, bytes: &mut [u8]) -> Result<(), Status> {
        if self.ranks == 1 {
            return Ok(());
        }
        let mut request = 0;
        // SAFETY: the bytes stay borrowed until the request is complete.
        Status::check(unsafe {
            (self.mpi.broadcast)(
                self.handle.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len() as u64,
                0,
                &mut request,
            )
        })?;
        self.wait(request)
    }

    /// Waits until every rank is here. Collective.
    pub fn barrier(&self) -> Result<(), Status> {
        if self.ranks == 1 {
            return Ok(());
        }
        let mut request = 0;
        // SAFETY: the handle is the shim's.
        Status::check(unsafe { (self.mpi.barrier)(self.handle.as_ptr(), &mut request) })?;
        self.wait(request)
    }

    /// Every rank's words, for every rank. Collective.
    pub fn gather<const N: usize>(&self, mine: [u64; N]) -> Result<Vec<[u64; N]>, Status> {
        let mut all = vec![mine; self.ranks as usize];
        if self.ranks == 1 {
            return Ok(all);
        }
        let mut request = 0;
        // SAFETY: both arrays stay until the request is complete; the second has room for one of each rank.
        Status::check(unsafe {
            (self.mpi.gather)(
                self.handle.as_ptr(),
                mine.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                size_of::<[u64; N]>() as u64,
                &mut request,
            )
        })?;
        self.wait(request)?;
        Ok(all)
    }

    fn test(&self, request: &mut u64) -> Result<bool, Status> {
        let mut done = 0;
        // SAFETY: the request is the shim's.
        Status::check(unsafe { (self.mpi.test)(request, &mut done) })?;
        Ok(done != 0)
    }

    fn wait(&self, mut request: u64) -> Result<(), Status> {
        let mut patience = Patience::new();
        while !self.test(&mut request)? {
            patience.wait();
        }
        Ok(())
    }
}

/// How to wait for other ranks: a short while at full speed, then giving the processor away between looks, and where
/// that does not help, asleep for an eighth of the time that was waited already: a rank that works must not share its
/// processor with several that only look. Other operations of this rank go on meanwhile; a nonblocking operation goes
/// back to whoever carries it on.
#[derive(Debug)]
pub struct Patience {
    looks: u32,
    /// When it began to give the processor away.
    since: Option<Instant>,
}

impl Patience {
    /// The wait begins.
    pub fn new() -> Patience {
        Patience { looks: 0, since: None }
    }

    /// After a look that found nothing.
    pub fn wait(&mut self) {
        if coroutine::pause() {
            return;
        }
        turns::progress();
        self.looks += 1;
        if self.looks <= LOOKS_BEFORE_YIELD {
            return std::hint::spin_loop();
        }
        std::thread::yield_now();
        if self.looks.is_multiple_of(LOOKS_BEFORE_YIELD) {
            let awake = if CROWDED.load(Ordering::Relaxed) { AWAKE_IN_A_CROWD } else { AWAKE };
            let waited = self.since.get_or_insert_with(Instant::now).elapsed();
            if waited > awake {
                std::thread::sleep((waited / 8).min(LONGEST_SLEEP));
            }
        }
    }
}
