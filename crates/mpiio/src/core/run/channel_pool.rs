//! What stays with the program's communicator from one open to the next: a communicator of our own, where the ranks
//! are, and channels that are free.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::mpi::backoff;
use crate::core::mpi::communicator::Communicator;
use crate::core::mpi::mailbox::Mailbox;
use crate::core::mpi::processors;
use crate::core::mpi::shared_memory::{self, Address, Segment};
use crate::core::mpi::status::Status;
use crate::core::mpi::table::MpiTable;
use crate::core::run::channel::Channel;

/// Kept as an attribute of the program's communicator, and by the files that are open on it.
#[derive(Debug)]
pub(crate) struct ChannelPool {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// For opening; gone with the program's communicator.
    control: Option<Communicator>,
    /// For each rank, the least rank that shares memory with it; none if memory is not shared.
    node: Option<Vec<u32>>,
    /// How many processors the ranks have: one each at most.
    processors: u32,
    free: Vec<Channel>,
    made: u64,
}

/// Instead of the number of a free channel: make a new one.
const NEW: u64 = u64::MAX;

impl ChannelPool {
    /// For a communicator of the program's. Collective.
    ///
    /// # Safety
    /// `original` must be the shim's pointer to a communicator.
    pub(crate) unsafe fn new(
        mpi: &'static MpiTable,
        original: *const c_void,
        shared_memory: bool,
    ) -> Result<Arc<ChannelPool>, Status> {
        // SAFETY: by contract.
        let mut control = unsafe { Communicator::duplicate_of(mpi, original) }?;
        let (node, processors) = match shared_memory && control.ranks() > 1 {
            true => nodes(&mut control)?,
            false => (None, control.ranks()),
        };
        let (control, free) = (Some(control), Vec::new());
        Ok(Arc::new(ChannelPool { state: Mutex::new(State { control, node, processors, free, made: 0 }) }))
    }

    /// Every rank says something to all ranks; rank 0 also offers a channel, with its last word, which all take.
    /// Collective.
    pub(crate) fn open<const N: usize>(
        &self,
        mut mine: [u64; N],
    ) -> Result<(Channel, Vec<[u64; N]>), Status> {
        let mut state = self.lock();
        let State { control: Some(control), node, processors, free, made } = &mut *state else {
            return Err(Status::Communicator);
        };
        mine[N - 1] = free.last().map_or(NEW, |channel| channel.id);
        let all = control.gather(mine)?;
        let choice = all[0][N - 1];
        if choice != NEW {
            let place = free.iter().position(|channel| channel.id == choice).ok_or(Status::Internal)?;
            return Ok((free.swap_remove(place), all));
        }
        let communicator = control.duplicate()?;
        let id = *made;
        *made += 1;
        Ok((Channel::new(id, communicator, control, node.as_deref(), *processors)?, all))
    }

    /// Whether this rank is the one that opens first.
    pub(crate) fn is_first(&self) -> Result<bool, Status> {
        self.lock().control.as_ref().map(|control| control.rank() == 0).ok_or(Status::Communicator)
    }

    /// Whether any thread of this rank's program may call MPI.
    pub(crate) fn any_thread_calls(&self) -> Result<bool, Status> {
        self.lock().control.as_ref().map(Communicator::any_thread_calls).ok_or(Status::Communicator)
    }

    /// A file gives its channel back. Collective if the program's communicator is gone.
    pub(crate) fn put_back(&self, channel: Channel) {
        if let Some(left) = self.offer(channel) {
            left.communicator.release(true);
        }
    }

    /// The same of a file that may still be asked for its group. It keeps the channel, to release it at last, if the program's
    /// communicator is gone: nobody else wants it.
    pub(crate) fn offer(&self, mut channel: Channel) -> Option<Channel> {
        channel.tell_tally();
        let mut state = self.lock();
        if state.control.is_none() {
            return Some(channel);
        }
        state.free.push(channel);
        None
    }

    /// The program's communicator goes. Collective, if `communicate`.
    pub(crate) fn forget(&self, communicate: bool) {
        let mut state = self.lock();
        if let Some(control) = state.control.take() {
            control.release(communicate);
        }
        // In one order on all ranks.
        state.free.sort_by_key(|channel| channel.id);
        for channel in std::mem::take(&mut state.free) {
            channel.communicator.release(communicate);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which ranks share memory, if all that should can: containers may forbid it; and processors of all. Ranks of one node
/// talk through mailboxes from then on. Collective.
fn nodes(control: &mut Communicator) -> Result<(Option<Vec<u32>>, u32), Status> {
    let node = u64::from(control.node()?);
    let inbox = Segment::shared();
    let [process, descriptor, inode] = inbox.as_ref().map_or([0; 3], |(_, address)| address.words());
    let all = control.gather([node, process, descriptor, inode])?;
    let node_of: Vec<u64> = all.iter().map(|[node, ..]| *node).collect();
    let addresses: Vec<Address> = all.iter().map(|[_, address @ ..]| Address::of_words(*address)).collect();
    // Each rank tries its successor on the node, so that every one is tried by one.
    let ranks = all.len();
    let me = control.rank() as usize;
    let successor = (1..ranks).map(|step| (me + step) % ranks).find(|rank| all[*rank][0] == node);
    let works = inbox.is_ok() && successor.is_none_or(|rank| shared_memory::is_reachable(addresses[rank]));
    let one_node = node_of.iter().all(|other| *other == node);
    let (mailbox, tried) = match inbox {
        Ok((own, _)) if works && one_node => (Mailbox::new(control.rank(), own, &addresses).ok(), None),
        // Kept until all have tried.
        inbox => (None, inbox.ok()),
    };
    let works = works && (!one_node || mailbox.is_some());
    let all_work = control.gather([u64::from(works)])?.into_iter().all(|[works]| works == 1);
    drop(tried);
    if let (Some(mailbox), true) = (mailbox, all_work) {
        control.connect(mailbox);
    }
    let processors = processors::shared_by(control, &node_of)?;
    backoff::shared_processors(ranks, processors as usize);
    Ok((all_work.then(|| node_of.into_iter().map(|node| node as u32).collect()), processors))
}
