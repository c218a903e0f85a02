//! Connections of ranks to the servers of a store. To make one takes time, and so does the memory through which data go where servers
//! work on the ranks' cores, whenever more of it is used than before: both sides have its pages made.

use std::collections::BTreeMap;

use pio_machine::{Bandwidth, Duration, Storage};
use pio_plan::Direction;
use pio_trace::HandleId;

use super::Engine;
use super::sites::Dealt;
use crate::process::Then;
use crate::server::Part;

/// Those of all ranks, where a machine says what they take.
#[derive(Debug, Default)]
pub(super) struct Connections {
    made: BTreeMap<(u32, u32), Memory>,
}

/// The memory through which the data of a connection go.
#[derive(Debug, Default)]
struct Memory {
    /// Bytes that the rank has put there, and the server not taken.
    put: u64,
    /// Most of them at a time, which are used from then on.
    used_by_rank: u64,
    /// And most of a message from the server.
    used_by_server: u64,
}

impl Memory {
    /// The rank puts so many bytes there: those of them that are where none was before.
    fn put(&mut self, bytes: u64) -> u64 {
        self.put += bytes;
        more(&mut self.used_by_rank, self.put)
    }
}

/// By how much `now` is more than ever before.
fn more(most: &mut u64, now: u64) -> u64 {
    let before = std::mem::replace(most, now.max(*most));
    now.saturating_sub(before)
}

impl Engine<'_> {
    /// Parts of a rank's request go off; before, it connects to those of their servers to which it has not connected.
    pub(super) fn connect_and_send(&mut self, rank: u32) {
        let connect = self.time_to_connect();
        let Some(transfer) = &self.processes[rank as usize].transfer else { return };
        let mut new = 0;
        if connect > Duration::ZERO {
            for (part, _) in &transfer.to_send {
                self.connections.made.entry((rank, part.server)).or_insert_with(|| {
                    new += 1;
                    Memory::default()
                });
            }
        }
        if new == 0 {
            return self.send_parts(rank);
        }
        self.compute(rank, connect.saturating_mul(new), Then::SendParts);
    }

    /// A rank opens a file, or the first of those that open it together: it asks the server that keeps the file's name. To connect to
    /// that is part of what opens were measured to take.
    pub(super) fn connect_to_open(&mut self, rank: u32, handle: HandleId) {
        let open = &self.workload.handles[handle.index()];
        let asks = open.group.is_none_or(|group| self.workload.groups[group as usize].first() == Some(&rank));
        if let Some(Dealt::ByStore(placement)) = self.files[open.file as usize].dealt
            && asks
            && self.time_to_connect() > Duration::ZERO
        {
            self.connections.made.entry((rank, placement.base())).or_default();
        }
    }

    fn time_to_connect(&self) -> Duration {
        match self.machine.storage {
            Storage::Striped { connect, .. } => connect,
            _ => Duration::ZERO,
        }
    }

    fn channel(&self) -> Option<Bandwidth> {
        self.machine.storage.io_nodes().and_then(|io| io.channel)
    }

    /// What it takes a rank longer to put the bytes of a part where its server finds them.
    pub(super) fn time_for_memory_of_rank(&mut self, part: &Part) -> Duration {
        let Some(rate) = self.channel() else { return Duration::ZERO };
        rate.time_of(self.connections.made.entry((part.rank, part.server)).or_default().put(part.bytes))
    }

    /// And the server to put those of a read where the rank finds them.
    pub(super) fn time_for_memory_of_server(&mut self, part: &Part) -> Duration {
        let Some(rate) = self.channel().filter(|_| part.direction == Direction::Read) else {
            return Duration::ZERO;
        };
        let memory = self.connections.made.entry((part.rank, part.server)).or_default();
        rate.time_of(more(&mut memory.used_by_server, part.bytes))
    }

    /// A server has taken the bytes of a part out of that memory.
    pub(super) fn take_out(&mut self, part: &Part) {
        if part.direction == Direction::Write
            && let Some(memory) = self.connections.made.get_mut(&(part.rank, part.server))
        {
            memory.put = memory.put.saturating_sub(part.bytes);
        }
    }
}
