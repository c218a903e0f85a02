//! A workload through the library: its ranks are threads of the test.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::ops::Range;
use std::sync::Arc;

use pio_layout::{Datatype, View};
use pio_plan::{Access, Direction, Hints};
use pio_sim::Workload;
use pio_sim::workload::{Step, What};
use pio_trace::{Call, HandleId, ViewId};

use super::scene::{Place, Scene};
use super::world::{MPI, Request, World, release};
use crate::core::file::access::Positioning;
use crate::core::file::handle::{Displacement, File};
use crate::core::file::hints::Given;
use crate::core::file::settings::Settings;
use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::memory::Memory;
use crate::core::mpi::recorder::of_tests::calling;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::run::queue::Completion;
use crate::core::storage::mode::Mode;
use crate::places::Places;

/// Runs it. The step of a rank is the call of the number that [`number_of`] says.
pub(super) fn run(workload: &Workload, scene: &Scene, place: Place, hints: &Hints) {
    // Both sides choose by the same knowledge of the machine.
    let terms = pio_sim::terms(&scene.machine(workload.ranks().div_ceil(place.ranks_per_node)));
    let places = Places { folders: vec![("/".into(), terms.clone())], servers: Some(terms) };
    let settings = Settings { strategy: place.strategy, hints: hints.clone(), shared_memory: true, places };
    let world = |members: &Vec<u32>| {
        let nodes: Vec<u32> = members.iter().map(|rank| rank / place.ranks_per_node).collect();
        Arc::new(World::new(&nodes))
    };
    let worlds: Vec<_> = workload.groups.iter().map(world).collect();
    let sizes = place.files_exist.then(|| sizes_of(workload));
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workload.ranks())
            .map(|rank| {
                let (worlds, settings, sizes) = (&worlds, &settings, sizes.as_deref());
                scope.spawn(move || {
                    let mut running = Rank::begin(workload, scene, worlds, settings, sizes, rank);
                    for (number, step) in workload.programs[rank as usize].iter().enumerate() {
                        calling(number_of(rank, number), || running.take(step));
                    }
                    running.end();
                })
            })
            .collect();
        all.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// What a step of a rank's program is called.
fn number_of(rank: u32, step: usize) -> u64 {
    (u64::from(rank) << 32) + step as u64 + 1
}

/// The rank that makes the call of this number.
pub(super) fn rank_of(number: u64) -> u32 {
    (number >> 32) as u32
}

/// For each file, the bytes before the end of what is read and written.
fn sizes_of(workload: &Workload) -> Vec<u64> {
    let mut sizes = vec![0; workload.files.len()];
    for step in workload.programs.iter().flatten() {
        let What::Access { handle, view, positions, .. } = &step.what else { continue };
        let view = workload.views[view.index()].clone();
        let size = &mut sizes[workload.handles[handle.index()].file as usize];
        *size = Access { view, positions: positions.clone() }.bounds().end.max(*size);
    }
    sizes
}

/// One rank.
struct Rank<'a> {
    workload: &'a Workload,
    scene: &'a Scene,
    settings: &'a Settings,
    sizes: Option<&'a [u64]>,
    /// For each group that it is in.
    pools: BTreeMap<u32, (Arc<ChannelPool>, *mut c_void)>,
    files: BTreeMap<HandleId, Opened>,
}

/// An open file.
struct Opened {
    file: File,
    outstanding: Vec<Outstanding>,
}

/// A nonblocking or split operation.
struct Outstanding {
    request: Box<Request>,
    direction: Direction,
    is_split: bool,
    /// What it reads into or writes.
    _bytes: Vec<u8>,
}

impl<'a> Rank<'a> {
    fn begin(
        workload: &'a Workload,
        scene: &'a Scene,
        worlds: &[Arc<World>],
        settings: &'a Settings,
        sizes: Option<&'a [u64]>,
        rank: u32,
    ) -> Rank<'a> {
        let mut pools = BTreeMap::new();
        for (group, (members, world)) in workload.groups.iter().zip(worlds).enumerate() {
            let Ok(number) = members.binary_search(&rank) else { continue };
            let communicator = world.communicator(number as u32);
            // SAFETY: the communicator is ours, as are the table's functions.
            let pool = unsafe { ChannelPool::new(&MPI, communicator, settings.shared_memory) };
            pools.insert(group as u32, (pool.unwrap(), communicator));
        }
        Rank { workload, scene, settings, sizes, pools, files: BTreeMap::new() }
    }

    fn end(self) {
        assert!(self.files.is_empty(), "all are closed");
        for (pool, communicator) in self.pools.into_values() {
            pool.forget(true);
            // SAFETY: nobody has it any more.
            unsafe { release(communicator, 1) };
        }
    }

    fn take(&mut self, step: &Step) {
        match &step.what {
            What::Open(handle) => self.open(*handle),
            What::Close(handle) => {
                if let Some(mut opened) = self.files.remove(handle) {
                    opened.wait_for(|_| true);
                    opened.file.close().unwrap();
                }
            }
            What::SetView(handle, view) => self.set_view(*handle, *view),
            What::Access { handle, call, direction, view, positions, collective } => {
                let view = &self.workload.views[view.index()];
                let opened = self.files.get_mut(handle).unwrap();
                opened.access(*call, *direction, *collective, view, positions);
            }
            What::Seek(..)
            | What::Resize(..)
            | What::Sync(..)
            | What::Request { .. }
            | What::Name { .. }
            | What::Rendezvous
            | What::Broadcast { .. }
            | What::Meet { .. } => {}
        }
    }

    fn open(&mut self, handle: HandleId) {
        let open = &self.workload.handles[handle.index()];
        // What is opened without MPI-IO is not for the library.
        let Some(group) = open.group else { return };
        let name = self.scene.name_of(&self.workload.files[open.file as usize].path);
        // Created, to be read and written.
        let (name, mode) = (CString::new(name).unwrap(), Mode(4 | 8));
        let (pool, _) = &self.pools[&group];
        let file = File::open(pool, self.settings, &name, mode, &Given::default()).unwrap();
        if let Some(sizes) = self.sizes {
            file.set_size(sizes[open.file as usize] as i64).unwrap();
        }
        self.files.insert(handle, Opened { file, outstanding: Vec::new() });
    }

    fn set_view(&mut self, handle: HandleId, view: ViewId) {
        let view = &self.workload.views[view.index()];
        let etype = Datatype::bytes(view.etype_size());
        let displacement = Displacement::Byte(view.displacement() as i64);
        let types = Some((&etype, view.filetype()));
        let opened = self.files.get_mut(&handle).unwrap();
        opened.wait_for(|_| true);
        opened.file.set_view(displacement, types, &Given::default()).unwrap();
    }
}

/// What every rank writes there, so that whoever reads it, in whatever order, finds that or nothing.
fn byte_at(offset: u64) -> u8 {
    (offset * 31 + offset / 251) as u8 | 1
}

impl Opened {
    /// Carries out an operation, or begins it: which of both says `call`.
    fn access(
        &mut self,
        call: Call,
        direction: Direction,
        collective: bool,
        view: &View,
        positions: &Range<u64>,
    ) {
        let is_split = call.begins_split();
        // Programs read what they wrote when it is written, and split operations exclude other collective ones.
        self.wait_for(|one| {
            (direction == Direction::Read && one.direction == Direction::Write)
                || (collective && one.is_split)
        });
        let written = || positions.clone().map(|position| byte_at(view.offset_of(position).unwrap()));
        let mut bytes: Vec<u8> = match direction {
            Direction::Write => written().collect(),
            Direction::Read => vec![0; (positions.end - positions.start) as usize],
        };
        let all = Datatype::bytes(bytes.len() as u64);
        // SAFETY: the memory is there until the operation is complete.
        let memory = unsafe { Memory::new(bytes.as_mut_ptr(), 1, &all) };
        let at = Positioning::Explicit((positions.start / view.etype_size()) as i64);
        let memory = Ok(memory.unwrap());
        if !is_split && !call.is_asynchronous() {
            self.file.transfer(direction, collective, at, memory).unwrap();
            let is_right = |(read, written): (&u8, u8)| *read == written || *read == 0;
            assert!(bytes.iter().zip(written()).all(is_right), "{direction:?} of {positions:?} of {view:?}");
            return;
        }
        let request = Box::new(Request::begun());
        let completion = Completion { mpi: &MPI, token: request.token() };
        self.file.start(direction, collective, at, memory, completion).unwrap();
        self.outstanding.push(Outstanding { request, direction, is_split, _bytes: bytes });
    }

    fn wait_for(&mut self, which: impl Fn(&Outstanding) -> bool) {
        self.outstanding.retain(|one| {
            Backoff::wait_until(|| !which(one) || one.request.is_complete());
            // What is complete, waited for or not, is not outstanding any more.
            !one.request.is_complete()
        });
    }
}
