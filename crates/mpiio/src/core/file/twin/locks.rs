//! What a rank locks, beside its own threads.

use std::ffi::CString;
use std::sync::{Arc, Mutex};
use std::vec::IntoIter;

use pio_layout::View;
use pio_plan::{Access, Action, Direction, Event, Io, Rank, StateMachine};

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

/// Of the kernel's locks a rank has one for all its threads: one would unlock what another has locked.
#[test]
fn who_locks_a_part_of_the_file_keeps_its_own_threads_out_too() {
    let world = Arc::new(World::new(&[0]));
    let communicator = world.communicator(0);
    // SAFETY: the communicator is ours, as are the table's functions.
    let pool = unsafe { ChannelPool::new(&MPI, communicator, true) }.unwrap();
    let (mut channel, _) = pool.open([0]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = CString::new(file.path().to_str().unwrap()).unwrap();
    let storage = Storage::open(&name, Mode(4), true, Default::default()).unwrap();
    let (alone, found) = (Arc::new(Mutex::new(WorkingMemory::private())), Arc::new(Mutex::new(Vec::new())));
    let steps = vec![
        Action::Io(Io::Lock { file: 0..8, shared: false }),
        Action::Io(Io::Pieces { direction: Direction::Write, positions: 0..0 }),
        Action::Io(Io::Unlock { file: 0..8 }),
        Action::Finish { result: Ok(0) },
    ];
    let access = Access { view: View::contiguous(0), positions: 0..0 };
    let told = found.clone();
    let told = Box::new(move |is_free| told.lock().unwrap().push(is_free));
    let machine = Box::new(Locks { access, steps: steps.into_iter(), told, alone: alone.clone() });
    let mut driver = Driver::collective(&mut channel, machine, Direction::Write, Memory::none(), false);
    let ranks = Ranks::On { channel: &mut channel, modifying: Some(&alone) };
    assert_eq!(driver.run(&mut Means { ranks, storage: &storage }), Ok(0));
    assert_eq!(*found.lock().unwrap(), [true, false, false, true]);
    pool.put_back(channel);
    pool.forget(true);
    // SAFETY: nobody has it any more.
    unsafe { release(communicator, 1) };
}
