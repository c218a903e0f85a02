//! What waits for the rank's own writes that were under way before it.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pio_layout::Datatype;
use pio_plan::{Direction, Hints, Strategy};

use super::scene::Scene;
use super::world::{MPI, World, release};
use crate::core::file::access::Positioning;
use crate::core::file::handle::File;
use crate::core::file::hints::Given;
use crate::core::file::settings::Settings;
use crate::core::mpi::memory::Memory;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::storage::mode::Mode;
use crate::places::Places;

/// Makes a `call` with a file of one rank, on its own, while another thread has a write under way that may sieve: it must wait
/// for that. Then checks what came of it.
fn waits_for_a_write(call: impl FnOnce(&File), check: impl FnOnce(&File)) {
    let scene = Scene::of_files();
    let world = Arc::new(World::new(&[0]));
    let communicator = world.communicator(0);
    // SAFETY: the communicator is ours, as are the table's functions.
    let pool = unsafe { ChannelPool::new(&MPI, communicator, true) }.unwrap();
    let settings = Settings {
        strategy: Strategy::TwoPhase,
        hints: Hints::default(),
        shared_memory: true,
        places: Places::default(),
    };
    let name = CString::new(scene.name_of("waits")).unwrap();
    // Created, to be read and written.
    let file = File::open(&pool, &settings, &name, Mode(4 | 8), &Given::default()).unwrap();
    let writes = file.inner.writes.clone();
    let before = writes.begin_independent();
    let is_through = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !writes.is_collective_announced() && !is_through.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // If it does not wait, it is through by then.
            std::thread::sleep(Duration::from_millis(50));
            let was_through = is_through.load(Ordering::Acquire);
            drop(before);
            assert!(!was_through, "it did not wait");
        });
        call(&file);
        is_through.store(true, Ordering::Release);
    });
    assert!(!writes.is_collective_announced());
    check(&file);
    file.close().unwrap();
    drop(file);
    pool.forget(true);
    // SAFETY: nobody has it any more.
    unsafe { release(communicator, 1) };
}

/// By the hints, other ranks know whether this one sieves.
#[test]
fn hints_change_when_what_sieves_by_the_old_ones_is_through() {
    let mut given = Given::default();
    given.set("ind_wr_buffer_size", "4096");
    let is_set = |file: &File| assert_eq!(file.hints().0.ind_wr_buffer_size, Some(4096));
    waits_for_a_write(|file| file.set_hints(&given).unwrap(), is_set);
}

/// The other ranks may write what this one sieves over.
#[test]
fn ranks_write_each_others_data_when_what_sieves_is_through() {
    let mut bytes = [7_u8; 10];
    // SAFETY: the memory is there until the operation is complete.
    let memory = unsafe { Memory::new(bytes.as_mut_ptr(), 1, &Datatype::bytes(10)) }.unwrap();
    let write = |file: &File| {
        let moved = file.transfer(Direction::Write, true, Positioning::Explicit(0), Ok(memory));
        assert_eq!(moved, Ok(10));
    };
    waits_for_a_write(write, |file| assert_eq!(file.size(), Ok(10)));
}
