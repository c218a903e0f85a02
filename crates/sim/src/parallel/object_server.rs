//! An object server: its threads, its link, its targets with their memory and their journals.
//!
//! All of these are first come, first served: a request comes to each of them when it is through with the one before. So it is
//! known when a device begins with a request when that is over, and a link takes whatever has left its device first.

use std::collections::VecDeque;

use pio_machine::{Bandwidth, Duration, ObjectServers, Service};

use crate::kernel::{Queue, Time};
use crate::prediction::ServerTotal;

/// One object server.
#[derive(Debug)]
pub(super) struct ObjectServer {
    /// Threads without a request; none where there are as many as it takes.
    idle: Option<u32>,
    /// Requests that wait for a thread.
    waiting: VecDeque<u32>,
    /// Its link, in and out.
    incoming: Queue,
    outgoing: Queue,
    targets: Vec<Target>,
    pub(super) done: ServerTotal,
}

#[derive(Clone, Debug, Default)]
struct Target {
    device: Queue,
    /// Writes that its memory may have to hold: when each is on the device, and its bytes; and the sum of these.
    held: VecDeque<(Time, u64)>,
    held_bytes: u64,
    /// From when on the memory has room for them.
    has_room: Time,
    /// When the commits of its journal begin, ascending: those to come, and the last ones before.
    commits: VecDeque<Time>,
}

impl ObjectServer {
    pub(super) fn new(costs: &ObjectServers) -> ObjectServer {
        ObjectServer {
            idle: costs.threads,
            waiting: VecDeque::new(),
            incoming: Queue::default(),
            outgoing: Queue::default(),
            targets: vec![Target::default(); costs.targets as usize],
            done: ServerTotal { requests: 0, bytes_read: 0, bytes_written: 0 },
        }
    }

    /// A write begins to arrive: when its data are in.
    pub(super) fn take_in(&mut self, costs: &ObjectServers, now: Time, bytes: u64) -> Time {
        pass(&mut self.incoming, costs.link, now, bytes)
    }

    /// A request with this number needs a thread: whether it has one now. If not, it waits for its turn to have that of a
    /// request that is done.
    pub(super) fn take_thread(&mut self, request: u32) -> bool {
        match &mut self.idle {
            None => true,
            Some(0) => {
                self.waiting.push_back(request);
                false
            }
            Some(idle) => {
                *idle -= 1;
                true
            }
        }
    }

    /// A request with a thread is done: the one that has the thread now.
    pub(super) fn leave_thread(&mut self) -> Option<u32> {
        let idle = self.idle.as_mut()?;
        let next = self.waiting.pop_front();
        *idle += u32::from(next.is_none());
        next
    }

    /// A write begins whose data are in: when it is answered, and when it is on the device. A target answers as soon as its
    /// memory has room for the bytes, beside those of writes before that are not on the device yet.
    pub(super) fn write(
        &mut self,
        costs: &ObjectServers,
        now: Time,
        target: u32,
        bytes: u64,
    ) -> (Time, Time) {
        self.count(0, bytes);
        let target = &mut self.targets[target as usize];
        let (_, on_device) = target.device.serve(now, time_of(&costs.write, bytes));
        let taken = target.hold(costs.memory, now, on_device, bytes);
        (taken, on_device)
    }

    /// A read begins: when its data are off the device.
    pub(super) fn read(&mut self, costs: &ObjectServers, now: Time, target: u32, bytes: u64) -> Time {
        self.count(bytes, 0);
        self.targets[target as usize].device.serve(now, time_of(&costs.read, bytes)).1
    }

    /// The data of a read are off their device: when the last byte leaves.
    pub(super) fn send_out(&mut self, costs: &ObjectServers, now: Time, bytes: u64) -> Time {
        pass(&mut self.outgoing, costs.link, now, bytes)
    }

    /// A wish that all of a target's data be durable: when they are.
    pub(super) fn sync(&mut self, costs: &ObjectServers, now: Time, target: u32) -> Time {
        self.done.requests += 1;
        let ready = self.targets[target as usize].device.free().max(now);
        self.commit(costs, now, target, ready)
    }

    /// When data are durable that are on a target's device at `written`: with the first commit that begins no sooner, be it over.
    /// If there is none, or it waits for other data for so long that one can be made before it, they have one of their own.
    pub(super) fn commit(&mut self, costs: &ObjectServers, now: Time, target: u32, written: Time) -> Time {
        let commits = &mut self.targets[target as usize].commits;
        while commits.get(1).is_some_and(|next| *next + costs.journal <= now) {
            commits.pop_front();
        }
        let place = commits.partition_point(|begin| *begin < written);
        let free = place.checked_sub(1).map_or(now, |before| commits[before] + costs.journal);
        let own = written.max(now).max(free);
        let begin = match commits.get(place) {
            Some(next) if *next < own + costs.journal => *next,
            _ => {
                commits.insert(place, own);
                own
            }
        };
        now.max(begin + costs.journal)
    }

    fn count(&mut self, read: u64, written: u64) {
        self.done.requests += 1;
        self.done.bytes_read += read;
        self.done.bytes_written += written;
    }
}

impl Target {
    /// One more write is in memory from `begin` until it is on the device: when there is room for it. What is larger than the
    /// memory has room when it is on the device.
    fn hold(&mut self, memory: u64, begin: Time, on_device: Time, bytes: u64) -> Time {
        self.held.push_back((on_device, bytes));
        self.held_bytes += bytes;
        // Who comes later needs room behind all that are let go of here, too.
        let mut has_room = self.has_room.max(begin);
        while let Some((on_device, bytes)) = self.held.front().copied() {
            if on_device > begin && self.held_bytes <= memory {
                break;
            }
            self.held.pop_front();
            self.held_bytes -= bytes;
            has_room = has_room.max(on_device);
        }
        self.has_room = has_room;
        has_room
    }
}

/// When bytes that come now are through a link.
fn pass(queue: &mut Queue, link: Option<Bandwidth>, now: Time, bytes: u64) -> Time {
    link.map_or(now, |link| queue.serve(now, link.time_of(bytes)).1)
}

/// How long a request keeps a device busy.
fn time_of(service: &Service, bytes: u64) -> Duration {
    service.request.saturating_add(service.bandwidth.time_of(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, costs, ms, rate};
    use super::*;

    /// 1 MB is read in 1 + 10 ms, and written in 1 + 20 ms.
    fn servers() -> ObjectServers {
        costs().servers
    }

    const MB: u64 = 1_000_000;

    fn done(time: Time) -> u64 {
        time.0 / MS
    }

    #[test]
    fn targets_work_side_by_side_and_each_in_order() {
        let costs = ObjectServers { targets: 2, ..servers() };
        let mut server = ObjectServer::new(&costs);
        assert_eq!(done(server.write(&costs, Time(0), 0, MB).0), 21);
        assert_eq!(done(server.read(&costs, Time(0), 0, MB)), 21 + 11);
        assert_eq!(done(server.read(&costs, Time(0), 1, MB)), 11);
        assert_eq!(
            (server.done.requests, server.done.bytes_read, server.done.bytes_written),
            (3, 2 * MB, MB)
        );
    }

    #[test]
    fn a_request_has_the_thread_of_the_first_that_is_done() {
        let mut server = ObjectServer::new(&ObjectServers { threads: Some(2), ..servers() });
        assert_eq!([0, 1, 2, 3].map(|request| server.take_thread(request)), [true, true, false, false]);
        assert_eq!(
            (server.leave_thread(), server.leave_thread(), server.leave_thread()),
            (Some(2), Some(3), None)
        );
        assert!(server.take_thread(4));
    }

    #[test]
    fn what_comes_passes_the_link_before_and_what_goes_behind_the_device() {
        let costs = ObjectServers { targets: 2, link: Some(rate(500)), ..servers() };
        let mut server = ObjectServer::new(&costs);
        let writes = [0, 1].map(|target| {
            let there = server.take_in(&costs, Time(0), MB);
            done(server.write(&costs, there, target, MB).0)
        });
        assert_eq!(writes, [2 + 21, 4 + 21]);
        let mut server = ObjectServer::new(&costs);
        let reads = [0, 1].map(|target| {
            let read = server.read(&costs, Time(0), target, MB);
            done(server.send_out(&costs, read, MB))
        });
        assert_eq!(reads, [11 + 2, 11 + 4]);
    }

    #[test]
    fn a_memory_takes_writes_until_it_is_full() {
        // It has 2 MB: the third write of 21 ms each has room when the first is on the device.
        let costs = ObjectServers { memory: 2 * MB, ..servers() };
        let mut server = ObjectServer::new(&costs);
        let writes = [0, 0, 0, 0].map(|at| done(server.write(&costs, Time(at), 0, MB).0));
        assert_eq!(writes, [0, 0, 21, 42]);
        // A sync waits for the device.
        assert_eq!(done(server.sync(&costs, Time(50 * MS), 0)), 84);
    }

    #[test]
    fn a_memory_holds_bytes_whatever_the_device_needs_for_them() {
        // 1 kB takes 1 ms and 20 us, of which its bytes are a fiftieth. Three fit; what is read is not in the way.
        let costs = ObjectServers { memory: 3000, ..servers() };
        let mut server = ObjectServer::new(&costs);
        server.read(&costs, Time(0), 0, MB);
        let writes = [0, 0, 0, 0, 50, 50].map(|at| server.write(&costs, Time(at * MS), 0, 1000).0.0);
        assert_eq!(writes, [0, 0, 0, 11 * MS + MS + MS / 50, 50 * MS, 50 * MS]);
        // What is larger than the memory is answered when it is on the device: behind the two before.
        assert_eq!(server.write(&costs, Time(60 * MS), 0, MB).0, Time(81 * MS));
    }

    #[test]
    fn who_asks_before_a_commit_begins_shares_it() {
        let costs = ObjectServers { journal: ms(10), ..servers() };
        let mut server = ObjectServer::new(&costs);
        let syncs = [0, 0, 3, 9, 30].map(|at| done(server.sync(&costs, Time(at * MS), 0)));
        // The one of 3 has the next commit, from 10 on, and so has that of 9.
        assert_eq!(syncs, [10, 10, 20, 20, 40]);
        server.write(&costs, Time(30 * MS), 0, MB);
        assert_eq!(done(server.sync(&costs, Time(31 * MS), 0)), 51 + 10);
    }

    /// Commits of 10 ms that are asked for one after the other, at a time and for what was written by then: when each is done.
    fn durable<const N: usize>(asked: [(u64, u64); N]) -> [u64; N] {
        let costs = ObjectServers { journal: ms(10), ..servers() };
        let mut server = ObjectServer::new(&costs);
        asked.map(|(now, written)| done(server.commit(&costs, Time(now * MS), 0, Time(written * MS))))
    }

    #[test]
    fn what_a_commit_has_taken_along_is_durable_with_it() {
        // The first begins at 5; what was written before is durable with it, at once if it is over; what came since is not.
        let asked = [(5, 3), (8, 4), (20, 5), (21, 6), (22, 5), (22, 22)];
        assert_eq!(durable(asked), [15, 15, 20, 31, 22, 41]);
    }

    #[test]
    fn a_commit_that_waits_for_data_holds_nobody_back() {
        // One is to begin at 32. Others can be made before it, at 1 and at 13, and then no other.
        let asked = [(0, 32), (1, 0), (2, 1), (13, 13), (14, 14), (24, 24)];
        assert_eq!(durable(asked), [42, 11, 11, 23, 42, 42]);
    }
}
