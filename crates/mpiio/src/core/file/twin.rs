//! What is predicted is what is run, action by action: the same workload through this library, its ranks threads of the
//! test over an MPI of a few lines, and through the simulator. Each rank's machines must ask for the same.
//!
//! Ranks hear of each other in another order here and there. A rank that has data for an aggregator, and is one itself, does
//! whichever it can go on with. So its actions of one kind with one other rank are compared in their order, as are its
//! copies and its requests to the file; not how those of several kinds alternate.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CString, c_int, c_void};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, PoisonError};

use pio_layout::{Datatype, View};
use pio_machine::Machine as Description;
use pio_plan::{Access, Action, Choice, Direction, Event, Hints, Message, Rank, StateMachine, Strategy};
use pio_sim::workload::{Open, Step, What};
use pio_sim::{Options, Workload};
use pio_trace::{Call, HandleId, ViewId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::core::file::access::Positioning;
use crate::core::file::handle::{Displacement, File};
use crate::core::file::hints::Given;
use crate::core::file::settings::Settings;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::progress::PROGRAM_OF_TESTS;
use crate::core::mpi::table::MpiTable;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::storage::mode::Mode;

/// Each read and write of a rank: what its machine asked for.
type Asked = Arc<Mutex<Vec<Vec<Action>>>>;

thread_local! {
    /// Of the rank that this thread is, if anybody listens.
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// The machine of a read or write, which is listened to if the thread is a rank of these tests.
pub(super) fn listen(machine: Box<dyn StateMachine + Send>) -> Box<dyn StateMachine + Send> {
    match ASKED.with_borrow(|asked| asked.clone()) {
        Some(asked) => listened(machine, &asked),
        None => machine,
    }
}

fn listened(machine: Box<dyn StateMachine + Send>, asked: &Asked) -> Box<dyn StateMachine + Send> {
    let mut all = asked.lock().unwrap();
    all.push(Vec::new());
    Box::new(Listened { machine, asked: asked.clone(), number: all.len() - 1 })
}

struct Listened {
    machine: Box<dyn StateMachine + Send>,
    asked: Asked,
    number: usize,
}

impl StateMachine for Listened {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        let before = actions.len();
        self.machine.handle(event, actions);
        self.asked.lock().unwrap()[self.number].extend_from_slice(&actions[before..]);
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        self.machine.access_of(rank)
    }

    fn choice(&self) -> Option<&Choice> {
        self.machine.choice()
    }
}

// --- An MPI ---

/// Of ranks that are threads.
struct World {
    ranks: u32,
    ranks_per_node: u32,
    meeting: Barrier,
    said: Mutex<Vec<Vec<u8>>>,
    mail: Mutex<BTreeMap<(u64, u32), VecDeque<Letter>>>,
}

struct Letter {
    from: u32,
    tag: c_int,
    bytes: Vec<u8>,
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

unsafe extern "C" fn release(handle: *mut c_void, _: c_int) {
    // SAFETY: the handle is ours, and not used again.
    drop(unsafe { Box::from_raw(handle.cast::<Handle>()) });
}

unsafe extern "C" fn size(handle: *const c_void, rank: *mut c_int, ranks: *mut c_int) -> c_int {
    // SAFETY: the handle is ours, the places the core's.
    unsafe { (*rank, *ranks) = (of(handle).rank as c_int, of(handle).world.ranks as c_int) };
    0
}

unsafe extern "C" fn node(handle: *const c_void, leader: *mut c_int) -> c_int {
    // SAFETY: the handle is ours, the place the core's.
    unsafe {
        let Handle { world, rank, .. } = of(handle);
        *leader = (rank - rank % world.ranks_per_node) as c_int;
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

unsafe extern "C" fn complete(_: *mut c_void, _: c_int, _: u64) {}

static MPI: MpiTable = MpiTable {
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
    complete,
};

// --- The two ---

/// Where a workload runs.
#[derive(Clone, Copy, Debug)]
struct Place {
    ranks_per_node: u32,
    strategy: Strategy,
}

/// What each rank's reads and writes asked for.
type AllAsked = Vec<Vec<Vec<Action>>>;

/// Through the library, with files in this folder.
fn run(workload: &Workload, place: Place, hints: &Hints, folder: &Path) -> AllAsked {
    let ranks = workload.ranks();
    let world = Arc::new(World {
        ranks,
        ranks_per_node: place.ranks_per_node,
        meeting: Barrier::new(ranks as usize),
        said: Mutex::new(vec![Vec::new(); ranks as usize]),
        mail: Mutex::default(),
    });
    let settings = Settings { strategy: place.strategy, hints: hints.clone(), shared_memory: true };
    let rank = |rank: u32| {
        let asked = Asked::default();
        ASKED.set(Some(asked.clone()));
        let handle = Handle::make(world.clone(), rank, 1);
        // SAFETY: the handle is ours, as are the table's functions.
        let pool = unsafe { ChannelPool::new(&MPI, handle, settings.shared_memory) }.unwrap();
        let mut files: BTreeMap<HandleId, File> = BTreeMap::new();
        for step in &workload.programs[rank as usize] {
            match &step.what {
                What::Open(handle) => {
                    let file = workload.handles[handle.index()].file;
                    let name = folder.join(file.to_string()).into_os_string().into_encoded_bytes();
                    // Created, to be read and written.
                    let (name, mode) = (CString::new(name).unwrap(), Mode(4 | 8));
                    let file = File::open(&pool, &settings, &name, mode, &Given::default()).unwrap();
                    files.insert(*handle, file);
                }
                What::Close(handle) => files.remove(handle).unwrap().close().unwrap(),
                What::SetView(handle, view) => {
                    let view = &workload.views[view.index()];
                    let etype = Datatype::bytes(view.etype_size());
                    let displacement = Displacement::Byte(view.displacement() as i64);
                    let types = Some((&etype, view.filetype()));
                    files[handle].set_view(displacement, types, &Given::default()).unwrap();
                }
                What::Access { handle, direction, view, positions, collective, .. } => {
                    let etype = workload.views[view.index()].etype_size();
                    let mut bytes = vec![0; (positions.end - positions.start) as usize];
                    let all = Datatype::bytes(bytes.len() as u64);
                    // SAFETY: the memory is there until the operation is complete.
                    let memory = unsafe { Memory::new(bytes.as_mut_ptr(), 1, &all) }.unwrap();
                    let at = Positioning::Explicit((positions.start / etype) as i64);
                    files[handle].transfer(*direction, *collective, at, Ok(memory)).unwrap();
                }
                What::Seek(..) | What::Request { .. } | What::Broadcast { .. } => {}
            }
        }
        pool.forget(true);
        // SAFETY: nobody has it any more.
        unsafe { release(handle, 1) };
        std::mem::take(&mut *asked.lock().unwrap())
    };
    std::thread::scope(|scope| {
        let rank = &rank;
        let all: Vec<_> = (0..ranks).map(|number| scope.spawn(move || rank(number))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Nodes like the one that the test runs on.
fn description(nodes: u32) -> Description {
    let cores = std::thread::available_parallelism().unwrap();
    let text = format!(
        r#"
name = "here"
source = "made up"
[nodes]
count = {nodes}
cores = {cores}
switch = "1 us"
copy = {{ bandwidth = "5 GB/s", piece = "10 ns" }}
[messages]
send = "100 ns"
receive = "100 ns"
local-latency = "100 ns"
[network]
kind = "flat"
link = {{ bandwidth = "5 GB/s", latency = "1 us" }}
[calls]
open = "5 us"
close = "1 us"
seek = "100 ns"
read = {{ call = "1 us", bandwidth = "5 GB/s" }}
write = {{ call = "1 us", bandwidth = "2 GB/s" }}
[storage]
kind = "local"
exclusive-writes = true
"#
    );
    Description::parse("here.toml", &text).unwrap()
}

/// Through the simulator.
fn predict(workload: &Workload, place: Place, hints: &Hints) -> AllAsked {
    let asked: Vec<Asked> = (0..workload.ranks()).map(|_| Asked::default()).collect();
    let nodes = workload.ranks().div_ceil(place.ranks_per_node);
    let options = Options { ranks_per_node: Some(place.ranks_per_node), ..Options::default() };
    let listen = |rank: u32, machine| listened(machine, &asked[rank as usize]);
    pio_sim::simulate_with(&description(nodes), workload, place.strategy, hints, &options, &listen).unwrap();
    asked.iter().map(|asked| std::mem::take(&mut *asked.lock().unwrap())).collect()
}

/// Actions by their kind and the rank that they concern, if any.
fn by_kind(actions: &[Action]) -> BTreeMap<(&'static str, Option<Rank>), Vec<Action>> {
    let mut found: BTreeMap<_, Vec<Action>> = BTreeMap::new();
    for action in actions {
        let kind = match action {
            Action::Send { to, message: Message::Grant { .. } | Message::Release { .. } } => {
                ("grant", Some(*to))
            }
            Action::Send { to, message: Message::Acknowledge { .. } } => ("acknowledge", Some(*to)),
            Action::Send { to, .. } => ("describe", Some(*to)),
            Action::SendData { to, .. } => ("data", Some(*to)),
            Action::Copy { .. } => ("copy", None),
            Action::Io(_) => ("request", None),
            Action::Finish { .. } => ("finish", None),
        };
        let mut action = action.clone();
        if let Action::Copy { piece } = &mut action {
            // A rank that works alone is rank 0 of one here, and has its number there.
            piece.client = Rank(0);
        }
        found.entry(kind).or_default().push(action);
    }
    found
}

fn assert_twins(name: &str, workload: &Workload, place: Place, hints: &Hints) {
    let folder = tempfile::tempdir().unwrap();
    let program = PROGRAM_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let real = run(workload, place, hints, folder.path());
    drop(program);
    let predicted = predict(workload, place, hints);
    for (rank, (real, predicted)) in real.iter().zip(&predicted).enumerate() {
        assert_eq!(real.len(), predicted.len(), "{name}, {place:?}: operations of rank {rank}");
        for (number, (real, predicted)) in real.iter().zip(predicted).enumerate() {
            assert!(!real.is_empty());
            let what = format!("{name}, {place:?}, {}, rank {rank}, operation {number}", hints.to_text());
            let (real, predicted) = (by_kind(real), by_kind(predicted));
            assert!(
                real.keys().eq(predicted.keys()),
                "{what}: with {:?} and {:?}",
                real.keys(),
                predicted.keys()
            );
            for (kind, real) in &real {
                let predicted = &predicted[kind];
                let first = real.iter().zip(predicted).position(|(real, predicted)| real != predicted);
                let at = first.unwrap_or(real.len().min(predicted.len()));
                let (next, expected) = (real.get(at), predicted.get(at));
                assert_eq!(next, expected, "{what}, {kind:?}, number {at}: real and predicted");
            }
        }
    }
}

// --- Workloads ---

/// A random view: pieces of random lengths, of every rank's tile its share.
fn any_view(random: &mut Pcg64Mcg, rank: u32, ranks: u32) -> View {
    let displacement = random.random_range(0..1000);
    let most: u64 = [64, 700, 40_000][random.random_range(0..3)];
    match random.random_range(0..4) {
        0 => View::contiguous(displacement + u64::from(rank) * 50_000),
        // Every so many-th piece of one size.
        1 => {
            let bytes = random.random_range(1..=most);
            let stride = (u64::from(ranks) * bytes + random.random_range(0..200)) as i64;
            let tile = Datatype::bytes(bytes).resized(0, stride).unwrap();
            View::new(displacement + u64::from(rank) * bytes, 1, tile).unwrap()
        }
        // Pieces of several sizes, in order.
        _ => {
            let mut at = 0;
            let mut pieces = Vec::new();
            for _ in 0..random.random_range(1..12) {
                let bytes = random.random_range(1..=most / 4 + 1);
                at += random.random_range(0..most) as i64;
                pieces.push((bytes, at));
                at += bytes as i64;
            }
            let tile = Datatype::indexed(&pieces, &Datatype::bytes(1)).unwrap();
            let extent = tile.layout().upper_bound() + random.random_range(0..100);
            View::new(displacement, 1, tile.resized(0, extent).unwrap()).unwrap()
        }
    }
}

/// All ranks write, together and alone, and read it back.
fn any_workload(random: &mut Pcg64Mcg, ranks: u32) -> Workload {
    let mut workload = Workload {
        name: "random".into(),
        files: vec![pio_trace::File { path: "/data".into() }],
        groups: vec![(0..ranks).collect()],
        programs: vec![Vec::new(); ranks as usize],
        ..Workload::default()
    };
    let handle = |rank| HandleId(rank);
    workload.handles = (0..ranks).map(|rank| Open { file: 0, rank, group: Some(0), collective: 1 }).collect();
    let step = |what| Step { think: pio_machine::Duration::ZERO, what };
    for rank in 0..ranks {
        workload.programs[rank as usize].push(step(What::Open(handle(rank))));
    }
    for _ in 0..random.random_range(1..3) {
        // Different only for ranks of whom one has nothing, or other pieces.
        let seed: u64 = random.random();
        let alike = random.random_bool(0.7);
        for rank in 0..ranks {
            let mut own = Pcg64Mcg::seed_from_u64(if alike { seed } else { seed ^ u64::from(rank) });
            let view = any_view(&mut own, rank, ranks);
            let is_contiguous = view == View::contiguous(view.displacement());
            let most = if is_contiguous { 60_000 } else { 30 * view.filetype().size() };
            workload.views.push(view);
            let id = ViewId(workload.views.len() as u32 - 1);
            let bytes = if own.random_bool(0.1) { 0 } else { own.random_range(1..=most) };
            let half = bytes / 2;
            let program = &mut workload.programs[rank as usize];
            program.push(step(What::SetView(handle(rank), id)));
            for (direction, positions, collective) in [
                (Direction::Write, 0..half, true),
                (Direction::Write, half..bytes, false),
                (Direction::Read, 0..half, true),
                (Direction::Read, half..bytes, false),
                (Direction::Read, 0..bytes, true),
            ] {
                let call = match (direction, collective) {
                    (Direction::Write, true) => Call::MpiFileWriteAtAll,
                    (Direction::Write, false) => Call::MpiFileWriteAt,
                    (Direction::Read, true) => Call::MpiFileReadAtAll,
                    (Direction::Read, false) => Call::MpiFileReadAt,
                };
                let handle = handle(rank);
                program.push(step(What::Access { handle, call, direction, view: id, positions, collective }));
            }
        }
    }
    for rank in 0..ranks {
        workload.programs[rank as usize].push(step(What::Close(handle(rank))));
    }
    workload
}

fn any_hints(random: &mut Pcg64Mcg, ranks: u32) -> Hints {
    let mut buffer = |sizes: [u64; 3]| {
        let chosen = random.random_range(0..4);
        sizes.get(chosen).copied()
    };
    Hints {
        cb_buffer_size: buffer([4096, 30_000, 1 << 20]),
        ind_rd_buffer_size: buffer([4096, 10_000, 1 << 20]),
        ind_wr_buffer_size: buffer([4096, 10_000, 1 << 20]),
        striping_unit: buffer([512, 4096, 65_536]),
        cb_nodes: random.random_bool(0.5).then(|| random.random_range(1..=ranks)),
        ..Hints::default()
    }
}

/// A failure says the seed.
#[test]
fn random_workloads_ask_for_the_same() {
    for seed in 0..150 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let ranks = random.random_range(1..6);
        let workload = any_workload(&mut random, ranks);
        let hints = any_hints(&mut random, ranks);
        let ranks_per_node = random.random_range(1..=ranks);
        let strategy = Strategy::ALL[seed as usize % Strategy::ALL.len()];
        assert_twins(&format!("seed {seed}"), &workload, Place { ranks_per_node, strategy }, &hints);
    }
}

#[test]
fn workloads_of_the_literature_ask_for_the_same() {
    let given = |words: &[(&str, &str)]| -> Vec<(String, String)> {
        words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    for (name, words) in [
        ("bt-io", given(&[("ranks", "4"), ("mesh", "12"), ("dumps", "2")])),
        ("flash-io", given(&[("ranks", "4"), ("blocks", "4"), ("cells", "4")])),
        ("ior-hard", given(&[("ranks", "4"), ("segments", "8")])),
        (
            "collapse",
            given(&[
                ("ranks", "4"),
                ("x", "16"),
                ("y", "16"),
                ("z", "16"),
                ("iterations", "5"),
                ("restart", "no"),
            ]),
        ),
    ] {
        let workload = pio_sim::workload::find(name).unwrap().build(&words, 1).unwrap();
        for strategy in Strategy::ALL {
            for ranks_per_node in [4, 2] {
                assert_twins(name, &workload, Place { ranks_per_node, strategy }, &Hints::default());
            }
        }
    }
}
