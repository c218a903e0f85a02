//! An MPI of a few lines, whose ranks are threads of the test.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use crate::core::mpi::table::MpiTable;

/// The ranks of a communicator, and what they say to each other.
pub(super) struct World {
    /// For each rank, the first rank of its node.
    leaders: Vec<u32>,
    meeting: Barrier,
    said: Mutex<Vec<Vec<u8>>>,
    mail: Mutex<BTreeMap<(u64, u32), VecDeque<Letter>>>,
}

struct Letter {
    from: u32,
    tag: c_int,
    bytes: Vec<u8>,
}

impl World {
    /// Of ranks that are on these nodes.
    pub(super) fn new(nodes: &[u32]) -> World {
        let leader = |node: &u32| nodes.iter().position(|other| other == node).unwrap() as u32;
        World {
            leaders: nodes.iter().map(leader).collect(),
            meeting: Barrier::new(nodes.len()),
            said: Mutex::new(vec![Vec::new(); nodes.len()]),
            mail: Mutex::default(),
        }
    }

    /// The communicator, for one of the ranks; to be [released](release).
    pub(super) fn communicator(self: &Arc<World>, rank: u32) -> *mut c_void {
        Handle::make(self.clone(), rank, 1)
    }
}

/// What the table's functions are given for a communicator: of which rank, and which of the duplicates.
struct Handle {
    world: Arc<World>,
    rank: u32,
    context: u64,
    duplicates: Mutex<u64>,
}

impl Handle {
    fn make(world: Arc<World>, rank: u32, context: u64) -> *mut c_void {
        Box::into_raw(Box::new(Handle { world, rank, context, duplicates: Mutex::new(0) })).cast()
    }

    /// All ranks say something, and hear all.
    fn meet(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        self.world.said.lock().unwrap()[self.rank as usize] = mine.to_vec();
        self.world.meeting.wait();
        let all = self.world.said.lock().unwrap().clone();
        self.world.meeting.wait();
        all
    }
}

unsafe fn of<'a>(handle: *const c_void) -> &'a Handle {
    // SAFETY: whoever has a handle has it from `Handle::make`.
    unsafe { &*handle.cast::<Handle>() }
}

unsafe fn bytes_of<'a>(bytes: *const c_void, size: u64) -> &'a [u8] {
    // SAFETY: the core gives as many bytes as it says.
    unsafe { std::slice::from_raw_parts(bytes.cast(), size as usize) }
}

unsafe extern "C" fn duplicate(handle: *const c_void, out: *mut *mut c_void) -> c_int {
    // SAFETY: the handle is ours, the place the core's.
    unsafe {
        let handle = of(handle);
        let mut duplicates = handle.duplicates.lock().unwrap();
        *duplicates += 1;
        *out = Handle::make(handle.world.clone(), handle.rank, handle.context * 100 + *duplicates);
    }
    0
}

pub(super) unsafe extern "C" fn release(handle: *mut c_void, _: c_int) {
    // SAFETY: the handle is ours, and not used again.
    drop(unsafe { Box::from_raw(handle.cast::<Handle>()) });
}

unsafe extern "C" fn size(handle: *const c_void, rank: *mut c_int, ranks: *mut c_int) -> c_int {
    // SAFETY: the handle is ours, the places the core's.
    unsafe { (*rank, *ranks) = (of(handle).rank as c_int, of(handle).world.leaders.len() as c_int) };
    0
}

unsafe extern "C" fn node(handle: *const c_void, leader: *mut c_int) -> c_int {
    // SAFETY: the handle is ours, the place the core's.
    unsafe {
        let Handle { world, rank, .. } = of(handle);
        *leader = world.leaders[*rank as usize] as c_int;
    }
    0
}

unsafe extern "C" fn send(
    handle: *const c_void,
    to: c_int,
    tag: c_int,
    bytes: *const c_void,
    size: u64,
    _: *mut u64,
) -> c_int {
    // SAFETY: the handle is ours, the bytes the core's.
    let (handle, bytes) = unsafe { (of(handle), bytes_of(bytes, size).to_vec()) };
    let mut mail = handle.world.mail.lock().unwrap();
    let letter = Letter { from: handle.rank, tag, bytes };
    mail.entry((handle.context, to as u32)).or_default().push_back(letter);
    0
}

unsafe extern "C" fn test(_: *mut u64, done: *mut c_int) -> c_int {
    // SAFETY: the place is the core's.
    unsafe { *done = 1 };
    0
}

unsafe extern "C" fn probe(
    handle: *const c_void,
    tag: c_int,
    found: *mut c_int,
    from: *mut c_int,
    size: *mut u64,
    message: *mut u64,
) -> c_int {
    // SAFETY: the handle is ours, the places the core's.
    unsafe {
        let handle = of(handle);
        let mut mail = handle.world.mail.lock().unwrap();
        let inbox = mail.entry((handle.context, handle.rank)).or_default();
        *found = 0;
        if let Some(place) = inbox.iter().position(|letter| letter.tag == tag)
            && let Some(letter) = inbox.remove(place)
        {
            (*found, *from, *size) = (1, letter.from as c_int, letter.bytes.len() as u64);
            *message = Box::into_raw(Box::new(letter.bytes)) as u64;
        }
    }
    0
}

unsafe extern "C" fn receive(message: *mut u64, bytes: *mut c_void, size: u64) -> c_int {
    // SAFETY: the message is from `probe`, and taken once; there is room for it.
    unsafe {
        let letter = Box::from_raw(*message as *mut Vec<u8>);
        std::ptr::copy_nonoverlapping(letter.as_ptr(), bytes.cast(), size as usize);
    }
    0
}

unsafe extern "C" fn broadcast(
    handle: *const c_void,
    bytes: *mut c_void,
    size: u64,
    root: c_int,
    _: *mut u64,
) -> c_int {
    // SAFETY: the handle is ours, the bytes the core's.
    unsafe {
        let all = of(handle).meet(bytes_of(bytes, size));
        std::ptr::copy_nonoverlapping(all[root as usize].as_ptr(), bytes.cast(), size as usize);
    }
    0
}

unsafe extern "C" fn barrier(handle: *const c_void, _: *mut u64) -> c_int {
    // SAFETY: the handle is ours.
    unsafe { of(handle).meet(&[]) };
    0
}

unsafe extern "C" fn gather(
    handle: *const c_void,
    mine: *const c_void,
    all: *mut c_void,
    size: u64,
    _: *mut u64,
) -> c_int {
    // SAFETY: the handle is ours, the bytes the core's: it has room for those of all ranks.
    unsafe {
        let said = of(handle).meet(bytes_of(mine, size)).concat();
        std::ptr::copy_nonoverlapping(said.as_ptr(), all.cast(), said.len());
    }
    0
}

unsafe extern "C" fn for_threads() -> c_int {
    0
}

/// A nonblocking operation of the test: it has begun, is complete, or failed.
#[derive(Debug)]
pub(super) struct Request(AtomicI32);

impl Request {
    const BEGUN: c_int = -1;

    pub(super) fn begun() -> Request {
        Request(AtomicI32::new(Request::BEGUN))
    }

    /// What the core calls it, until it is complete.
    pub(super) fn token(&self) -> *mut c_void {
        (&raw const self.0).cast_mut().cast()
    }

    /// Whether it is complete; it must not have failed.
    pub(super) fn is_complete(&self) -> bool {
        let status = self.0.load(Ordering::Acquire);
        assert!(status <= 0, "status {status}");
        status != Request::BEGUN
    }
}

unsafe extern "C" fn complete(token: *mut c_void, status: c_int, _: u64) {
    // The part without data of a rank that could not begin.
    if token.is_null() {
        return;
    }
    // SAFETY: the token is a request's, which is there until it is complete.
    unsafe { &*token.cast::<AtomicI32>() }.store(status, Ordering::Release);
}

unsafe extern "C" fn parts_of_etypes() -> c_int {
    0
}

pub(super) static MPI: MpiTable = MpiTable {
    duplicate,
    release,
    size,
    node,
    send,
    test,
    probe,
    receive,
    broadcast,
    barrier,
    gather,
    for_threads,
    parts_of_etypes,
    complete,
};
