//! What servers that work on the ranks' cores do there: the processor time of each part of a request.

use pio_machine::{Duration, Machine, Storage};
use pio_plan::Direction;

use super::Engine;
use crate::server::{Next, Part};

/// What a request takes longer or shorter than the machine's description says, of its rank's time and its thread's, for how many ranks
/// its node has.
#[derive(Debug, Default)]
pub(super) struct ByRanks {
    longer: Duration,
    shorter: Duration,
}

impl ByRanks {
    /// The description's cores are all busy with clients. Where ranks are more, requests take longer by what those of so many take
    /// more processor time than those of one rank a core: less is in the processors' caches. Where they are few, a rank and its
    /// threads have the caches to themselves. Nothing where nobody measured it.
    pub(super) fn of(machine: &Machine, ranks_per_node: u32) -> ByRanks {
        let (Storage::Striped { write, .. }, Some(costs)) = (&machine.storage, &machine.mpi_io) else {
            return ByRanks::default();
        };
        let (cores, ranks) = (machine.nodes.cores, ranks_per_node);
        // Processor time of a request of so many ranks.
        let taken = |ranks: u32| {
            let request = costs.pioscope.of(ranks).request;
            Duration::from_seconds(request.seconds() * f64::from(cores.min(ranks)) / f64::from(ranks))
        };
        // One switch to the thread, and one back.
        let switches = machine.nodes.switch.saturating_mul(2);
        let parts = [costs.pioscope.call, machine.calls.write.call, write.request, switches];
        let known = parts.into_iter().fold(Duration::ZERO, Duration::saturating_add);
        if taken(ranks) == Duration::ZERO {
            ByRanks::default()
        } else if ranks > cores {
            ByRanks { longer: taken(ranks).saturating_sub(taken(cores)), shorter: Duration::ZERO }
        } else {
            ByRanks { longer: Duration::ZERO, shorter: known.saturating_sub(taken(ranks)) }
        }
    }
}

impl Engine<'_> {
    /// A rank begins to wait for threads, if there are any, after it sent them so many bytes of data.
    pub(super) fn begin_asking(&mut self, rank: u32, sent_bytes: u64) {
        if let Some(threads) = &mut self.threads {
            threads.begin_asking(rank, self.processes[rank as usize].node, self.now, sent_bytes);
        }
    }

    /// It waits no longer.
    pub(super) fn end_asking(&mut self, rank: u32) {
        if let Some(threads) = &mut self.threads {
            threads.end_asking(rank, self.processes[rank as usize].node);
        }
    }

    /// A part comes to a server that works on the ranks' cores.
    pub(super) fn hand_to_thread(&mut self, part: Part) {
        self.hardware.servers[part.server as usize].count(&part);
        let idle = self.threads.as_mut().and_then(|threads| threads.take_in(part));
        if let Some(thread) = idle {
            self.begin_on(thread, &part);
        }
    }

    /// A thread takes up a part. If it must be alone to write that, its bytes follow in a turn of their own.
    fn begin_on(&mut self, thread: u32, part: &Part) {
        let Some(threads) = &mut self.threads else { return };
        let (changes, alone) = (threads.changes(part) && !part.follows, threads.writes_alone(part));
        let io = self.machine.storage.io_nodes().filter(|_| changes);
        let change = io.map_or(Duration::ZERO, |io| io.change);
        let bytes = if alone { Duration::ZERO } else { self.time_for_bytes(part) };
        let memory = self.time_for_memory_of_server(part);
        let times = [self.time_for_request(part), change, bytes, memory];
        self.keep_busy(thread, times.into_iter().fold(Duration::ZERO, Duration::saturating_add));
    }

    /// A server's thread has done what it was to do, and goes on to the next.
    pub(super) fn thread_is_through(&mut self, thread: u32) {
        let Some(threads) = &mut self.threads else { return };
        match threads.next(thread) {
            Next::Write(part) => return self.keep_busy(thread, self.time_for_bytes(&part)),
            Next::Wait => return,
            Next::End { woken: Some((waiting, part)) } => {
                self.keep_busy(waiting, self.machine.nodes.wake.saturating_add(self.time_for_bytes(&part)));
            }
            Next::End { woken: None } => {}
        }
        let Some(threads) = &mut self.threads else { return };
        let (done, next) = threads.end(thread, self.now);
        if let Some(part) = done {
            self.take_out(&part);
            self.send_back(part);
        }
        if let Some(part) = next {
            self.begin_on(thread, &part);
        }
    }

    fn time_for_request(&self, part: &Part) -> Duration {
        let Storage::Striped { read, write, .. } = &self.machine.storage else { return Duration::ZERO };
        let service = if part.direction == Direction::Read { read } else { write };
        service.request.saturating_add(self.by_ranks.longer).saturating_sub(self.by_ranks.shorter)
    }

    /// Processor time of a part's bytes, of its pieces, and of new pages.
    fn time_for_bytes(&self, part: &Part) -> Duration {
        let Storage::Striped { read, write, .. } = &self.machine.storage else { return Duration::ZERO };
        let service = if part.direction == Direction::Read { read } else { write };
        let pieces = if part.pieces > 0 { self.time_to_place(part) } else { Duration::ZERO };
        let moving = service.bandwidth.time_of(part.bytes);
        moving.saturating_add(pieces).saturating_add(self.time_for_new_pages(part))
    }
}
