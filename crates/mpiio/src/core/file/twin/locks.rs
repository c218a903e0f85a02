//! What a rank locks, beside its own threads.

use std::ffi::CString;
use std::ops::Range;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use std::vec::IntoIter;

use pio_layout::{Layout, View};
use pio_plan::{Access, Action, Direction, Event, Io, Rank, Slot, StateMachine};
use tempfile::NamedTempFile;

use super::scene::Scene;
use super::world::{MPI, World, release};
use crate::core::mpi::memory::Memory;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::run::driver::{Driver, Means, Ranks};
use crate::core::run::working_memory::WorkingMemory;
use crate::core::storage::backend::Storage;
use crate::core::storage::mode::Mode;

/// Locks a part of the file, writes nothing, and unlocks it.
struct Locks {
    access: Access,
    steps: IntoIter<Action>,
    /// Told after each step whether another thread of this rank could change the file then.
    told: Box<dyn FnMut(bool) + Send>,
    alone: Arc<Mutex<WorkingMemory>>,
}

impl StateMachine for Locks {
    fn handle(&mut self, _: Event, actions: &mut Vec<Action>) {
        (self.told)(self.alone.try_lock().is_ok());
        actions.extend(self.steps.next());
    }

    fn access_of(&self, _: Rank) -> Option<&Access> {
        Some(&self.access)
    }
}

/// After each of these steps, whether another thread of this rank could change the file, which is open in `mode`.
fn free_after(mode: Mode, steps: Vec<Action>) -> Vec<bool> {
    let file = NamedTempFile::new().unwrap();
    run(&opened(&file, mode), steps)
}

fn opened(file: &NamedTempFile, mode: Mode) -> Storage {
    let name = CString::new(file.path().to_str().unwrap()).unwrap();
    Storage::open(&name, mode, true, Default::default()).unwrap()
}

/// Takes these steps; after each, whether another thread of this rank could change the file.
fn run(storage: &Storage, steps: Vec<Action>) -> Vec<bool> {
    let world = Arc::new(World::new(&[0]));
    let communicator = world.communicator(0);
    // SAFETY: the communicator is ours, as are the table's functions.
    let pool = unsafe { ChannelPool::new(&MPI, communicator, true) }.unwrap();
    let (mut channel, _) = pool.open([0]).unwrap();
    let (alone, found) = (Arc::new(Mutex::new(WorkingMemory::private())), Arc::new(Mutex::new(Vec::new())));
    let access = Access { view: View::contiguous(0), positions: 0..0 };
    let told = found.clone();
    let told = Box::new(move |is_free| told.lock().unwrap().push(is_free));
    let machine = Box::new(Locks { access, steps: steps.into_iter(), told, alone: alone.clone() });
    let mut driver = Driver::collective(&mut channel, machine, Direction::Write, Memory::none(), false);
    let ranks = Ranks::On { channel: &mut channel, modifying: Some(&alone) };
    assert_eq!(driver.run(&mut Means { ranks, storage }), Ok(0));
    pool.put_back(channel);
    pool.forget(true);
    // SAFETY: nobody has it any more.
    unsafe { release(communicator, 1) };
    let found = found.lock().unwrap();
    found.clone()
}

fn lock(file: Range<u64>) -> Action {
    Action::Io(Io::Lock { file, shared: false })
}

fn write_nothing() -> Action {
    Action::Io(Io::Pieces { direction: Direction::Write, positions: 0..0 })
}

/// Writes bytes 0 to 4, and fills the hole behind them.
fn fill_hole() -> Action {
    let (file, holes) = (0..10, Layout::bytes(5).shifted(5).unwrap());
    Action::Io(Io::FillAndWrite { slot: Slot::of(0), origin: 0, file, holes, locks: true })
}

const FINISH: Action = Action::Finish { result: Ok(0) };

/// Of the kernel's locks a rank has one for all its threads: one would unlock what another has locked.
#[test]
fn who_locks_a_part_of_the_file_keeps_its_own_threads_out_too() {
    let steps = vec![lock(0..8), write_nothing(), Action::Io(Io::Unlock { file: 0..8 }), FINISH];
    assert_eq!(free_after(Mode(4), steps), [true, false, false, true]);
}

/// Where another holds the lock and does not give it back, a rank writes its parts alone: it must not write over what the
/// other does in the holes meanwhile. Here the file ends before the hole: only who fills it writes as far.
#[test]
fn who_gets_no_lock_to_fill_holes_leaves_them_alone() {
    for (is_locked, written) in [(true, 5), (false, 10)] {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let [other, own] = [(); 2].map(|()| opened(&file, Mode(4)));
        if is_locked {
            other.lock(0..1, true).unwrap();
        }
        run(&own, vec![fill_hole(), FINISH]);
        assert_eq!(std::fs::read(file.path()).unwrap(), vec![0; written]);
    }
}

/// On servers, who asked waited for ten minutes, however soon it was to give up.
#[test]
fn who_gets_no_lock_of_servers_to_fill_holes_leaves_them_alone() {
    let scene = Scene::of_servers();
    let name = CString::new(scene.name_of("file")).unwrap();
    let [other, own] = [(); 2].map(|()| Storage::open(&name, Mode(4 | 8), true, Default::default()).unwrap());
    other.write(0, b"abc").unwrap();
    other.lock(0..1, true).unwrap();
    let (given_up, has_given_up) = mpsc::channel();
    thread::scope(|scope| {
        let other = &other;
        scope.spawn(move || {
            // Whoever still waits gets it, and fills the hole.
            let _ = has_given_up.recv_timeout(Duration::from_secs(60));
            other.unlock(0..1).unwrap();
        });
        run(&own, vec![fill_hole(), FINISH]);
        given_up.send(()).unwrap();
    });
    assert_eq!(own.size(), Ok(5));
}

/// It is not asked to unlock that. The kernel refuses to lock for writing what was opened for reading; a Lustre that is mounted
/// without `flock` refuses all.
#[test]
fn who_cannot_lock_a_part_of_the_file_keeps_nobody_out() {
    let steps = vec![lock(0..8), write_nothing(), lock(8..16), write_nothing(), FINISH];
    assert_eq!(free_after(Mode(1), steps), [true; 5]);
}
