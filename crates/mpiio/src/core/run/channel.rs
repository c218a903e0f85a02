//! What the ranks of one open file talk through: a communicator of their own, and shared memory.
//!
//! A channel outlives the file: the next file on the same communicator takes it over, with its buffers mapped and warm.

use std::ops::Range;
use std::sync::Arc;

use pio_plan::{Choice, IoError, Memory, Nodes, Slot, Strategy};
use pio_store::transport::Traffic;

use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::communicator::{Communicator, Sending, TAGS};
use crate::core::mpi::mailbox::Mailbox;
use crate::core::mpi::shared_memory::{Address, Segment};
use crate::core::mpi::status::Status;
use crate::core::run::buffers::{self, Buffers};
use crate::core::run::transfer_path::PathTuner;
use crate::core::run::working_memory::WorkingMemory;
use crate::core::storage::servers;
use crate::say::say;

/// What an operation's machines moved between ranks, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Of messages, less the data that they carry.
    pub(crate) messages: u64,
    /// Of data that went to another rank, in messages or through its memory.
    pub(crate) data: u64,
    /// Of the program's own data, read and written by this rank.
    pub(crate) program: u64,
}

/// A communicator, the memory that this rank works in, and that of the ranks that share memory with it.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Which of the channels of its communicator; the same on all ranks.
    pub(crate) id: u64,
    /// For messages.
    pub(crate) communicator: Communicator,
    /// This rank's memory.
    pub(crate) working: WorkingMemory,
    /// Those of the ranks that share memory with this one (itself not among them).
    others: Vec<Option<Buffers>>,
    /// The paths of data to those.
    pub(crate) paths: PathTuner,
    /// The nodes that the ranks are on, if ranks of a node share memory.
    pub(crate) nodes: Option<Arc<Nodes>>,
    /// How many processors the ranks have: one each at most.
    pub(crate) processors: u32,
    operations: u32,
    /// Sends that are not yet complete.
    pub(crate) sending: Vec<Sending>,
    /// For messages that carry data.
    pub(crate) received: Vec<u8>,
    /// What this rank sent since the file was opened.
    pub(crate) tally: Tally,
    /// What was chosen last, of what people were told.
    told: Option<Strategy>,
    /// What the automatic choice keeps in mind of the files before.
    pub(crate) memory: Memory,
}

impl Channel {
    /// A new channel of the same ranks that `control` has, by which they agree. `node` tells for each rank the least rank
    /// that shares memory with it; none if none does. Collective.
    pub(crate) fn new(
        id: u64,
        mut communicator: Communicator,
        control: &Communicator,
        node: Option<&[u32]>,
        processors: u32,
    ) -> Result<Channel, Status> {
        let (own, others) = match node {
            None => (Buffers::private(), (0..communicator.ranks()).map(|_| None).collect()),
            Some(node) => buffers::share(control, node)?,
        };
        let nodes = node.map(|node| Arc::new(Nodes::of(node.iter().copied())));
        if nodes.as_ref().is_some_and(|nodes| nodes.count() == 1) {
            connect(&mut communicator, control)?;
        }
        let (sending, received, tally, told, memory) = Default::default();
        Ok(Channel {
            id,
            communicator,
            working: WorkingMemory::of(own),
            others,
            paths: PathTuner::default(),
            nodes,
            processors,
            operations: 0,
            sending,
            received,
            tally,
            told,
            memory,
        })
    }

    /// The tag of the next operation. What was sent in the one before has been taken by then.
    pub(crate) fn next_tag(&mut self) -> i32 {
        self.operations = (self.operations + 1) % TAGS;
        self.working.own.empty_outbox();
        self.operations as i32
    }

    /// Every rank's words, for rank 0; nothing for the others. Collective.
    pub(crate) fn collect<const N: usize>(
        &mut self,
        mine: [u64; N],
    ) -> Result<Option<Vec<[u64; N]>>, Status> {
        let (tag, communicator) = (self.next_tag(), &self.communicator);
        let mut backoff = Backoff::new();
        if communicator.rank() > 0 {
            let mut sending =
                communicator.send(0, tag, mine.iter().flat_map(|word| word.to_ne_bytes()).collect())?;
            while !communicator.is_sent(&mut sending)? {
                communicator.wait(&mut backoff);
            }
            return Ok(None);
        }
        let mut all = vec![mine; communicator.ranks() as usize];
        let mut missing = communicator.ranks() - 1;
        while missing > 0 {
            let Some(arrived) = communicator.probe(tag)? else {
                communicator.wait_for(&mut backoff, missing);
                continue;
            };
            let from = arrived.from as usize;
            communicator.receive(arrived, &mut self.received)?;
            let words = self.received.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
            all[from].iter_mut().zip(words).for_each(|(word, said)| *word = said);
            missing -= 1;
            backoff = Backoff::new();
        }
        Ok(Some(all))
    }

    /// Tells people what was chosen and why, if `PIOSCOPE_VERBOSE` is set and it is another choice than the last.
    pub(crate) fn tell(&mut self, choice: &Choice) {
        let strategy = Some(choice.strategy);
        if self.told != strategy && std::env::var_os("PIOSCOPE_VERBOSE").is_some() {
            say(format_args!("auto chose {}: {}", choice.strategy, choice.reason));
        }
        self.told = strategy;
    }

    /// Tells people what this rank sent, if `PIOSCOPE_VERBOSE` is set; then counts anew.
    pub(crate) fn tell_tally(&mut self) {
        let Tally { messages, data, program } = std::mem::take(&mut self.tally);
        if program > 0 && std::env::var_os("PIOSCOPE_VERBOSE").is_some() {
            let Traffic { sent, received } = servers::traffic_since_asked();
            let rank = self.communicator.rank();
            say(format_args!(
                "rank {rank} moved {program} bytes in collective operations, \
                 sent other ranks {data} bytes of data and {messages} bytes of messages, \
                 sent servers {sent} bytes and received {received} from them"
            ));
        }
    }

    /// Whether this rank shares memory with another.
    pub(crate) fn shares_with(&self, rank: u32) -> bool {
        self.others.get(rank as usize).is_some_and(Option::is_some)
    }

    /// What is at this place of another rank's outbox, and the first bytes of one of this rank's own collective buffers.
    pub(crate) fn sent_and_own(
        &mut self,
        from: u32,
        place: Range<u64>,
        slot: Slot,
        own_len: u64,
    ) -> Result<(&[u8], &mut [u8]), IoError> {
        match self.others.get_mut(from as usize) {
            Some(Some(buffers)) => Ok((buffers.sent(place)?, self.working.own.collective(slot, own_len)?)),
            _ => Err(IoError { errno: libc::EPROTO }),
        }
    }

    /// The first bytes of another rank's collective buffer.
    pub(crate) fn buffer_of(&mut self, rank: u32, slot: Slot, len: u64) -> Result<&mut [u8], IoError> {
        match self.others.get_mut(rank as usize) {
            Some(Some(buffers)) => buffers.collective(slot, len),
            _ => Err(IoError { errno: libc::EPROTO }),
        }
    }
}

/// Gives the ranks mailboxes, if all of them can have one. Collective.
fn connect(communicator: &mut Communicator, control: &Communicator) -> Result<(), Status> {
    let inbox = Segment::shared_by_file();
    let all = control.gather(inbox.as_ref().map_or([0; 3], |(_, address)| address.words()))?;
    let addresses: Vec<Address> = all.into_iter().map(Address::of_words).collect();
    let mailbox = inbox.and_then(|(own, _)| Mailbox::new(communicator.rank(), own, &addresses));
    let all_work = control.gather([u64::from(mailbox.is_ok())])?.into_iter().all(|[works]| works == 1);
    if let (Ok(mailbox), true) = (mailbox, all_work) {
        communicator.connect(mailbox);
    }
    Ok(())
}
