//! A file system that the nodes share: when it answers, and which writers of a node wait for each other.
//!
//! A request gets the locks it needs, then one of the streams; its bytes pass the node's link and the servers, whichever
//! is later, and its answer takes a time of its own, in which the stream is still taken. Streams, links and servers are
//! first come, first served, so that the end of a request is known when it has its locks. It takes none of them before:
//! who waits for a lock keeps nobody waiting but who wants the same lock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use pio_machine::{ClientLocks, Duration, Exclusive, SharedFiles as Costs};
use pio_plan::Direction;

use crate::kernel::{Queue, Time};

/// What a node asks of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) node: u32,
    pub(crate) file: u32,
    pub(crate) direction: Direction,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The file system at work.
#[derive(Debug)]
pub(crate) struct SharedFiles {
    costs: Costs,
    /// Of each node.
    links: Vec<Queue>,
    servers: Queue,
    /// If there are so many and no more.
    streams: Option<Streams>,
    /// Of each file's strips, those that a node has.
    locks: BTreeMap<(u32, u64), Lock>,
    /// Of each file and node: its writers.
    writers: BTreeMap<(u32, u32), Writers>,
    /// Of each file: where it ends.
    sizes: Vec<u64>,
}

/// Each carries a request at a time.
#[derive(Debug)]
struct Streams {
    /// How many have carried none yet.
    unused: u32,
    /// When each of the others is free.
    free: BinaryHeap<Reverse<Time>>,
}

#[derive(Debug)]
struct Lock {
    /// None if a node had it to read: that keeps none.
    node: Option<u32>,
    /// From when on the node has it, or may have it who comes next.
    from: Time,
    /// Ranks whose requests are to begin under it.
    users: Vec<u32>,
    /// When the last request ends that has begun under it.
    busy_until: Time,
    /// Ranks whose requests wait until it is known when all of these end.
    waiting: VecDeque<(u32, Asked)>,
}

/// The writers of a file on one node, as of a lock that some share and others have alone.
#[derive(Debug, Default)]
struct Writers {
    sharing: u32,
    alone: bool,
    /// Rank, and whether it wants it alone.
    waiting: VecDeque<(u32, bool)>,
}

impl Streams {
    fn new(count: u32) -> Streams {
        Streams { unused: count, free: BinaryHeap::new() }
    }

    /// Takes the one that is free first: when that is.
    fn take(&mut self) -> Time {
        if self.unused > 0 {
            self.unused -= 1;
            return Time::default();
        }
        self.free.pop().map(|Reverse(free)| free).unwrap_or_default()
    }

    fn give_back(&mut self, free: Time) {
        self.free.push(Reverse(free));
    }
}

impl SharedFiles {
    /// A file system for so many nodes. `sizes`: of each file, where it ends at the beginning.
    pub(crate) fn new(costs: &Costs, nodes: u32, sizes: Vec<u64>) -> SharedFiles {
        SharedFiles {
            links: vec![Queue::default(); nodes as usize],
            servers: Queue::default(),
            streams: costs.streams.map(Streams::new),
            locks: BTreeMap::new(),
            writers: BTreeMap::new(),
            sizes,
            costs: costs.clone(),
        }
    }

    /// Bytes of the next request of so many.
    pub(crate) fn next_of(&self, bytes: u64) -> u64 {
        self.costs.request.map_or(bytes, |most| most.min(bytes))
    }

    /// A rank's read or write arrives now: when it has the locks that it needs, and is to begin. If that is not known yet,
    /// it is told by [`SharedFiles::begin`].
    pub(crate) fn ask(&mut self, now: Time, rank: u32, asked: Asked) -> Option<Time> {
        let Some(ClientLocks { callback, .. }) = self.costs.locks else { return Some(now) };
        for strip in self.strips(&asked) {
            if let Some(lock) = self.locks.get_mut(&(asked.file, strip))
                && lock.keeps_waiting(asked.node)
            {
                lock.waiting.push_back((rank, asked));
                return None;
            }
        }
        Some(self.lock(now, rank, &asked, callback))
    }

    /// A rank's read or write has its locks now: when it is done, and, of those that have waited for that to be known, when
    /// they are to begin.
    pub(crate) fn begin(&mut self, now: Time, rank: u32, asked: Asked) -> (Time, Vec<(u32, Time)>) {
        let end = self.serve(now, &asked);
        let mut woken = Vec::new();
        for strip in self.strips(&asked) {
            let Some(lock) = self.locks.get_mut(&(asked.file, strip)) else { continue };
            if let Some(user) = lock.users.iter().position(|user| *user == rank) {
                lock.users.swap_remove(user);
                lock.busy_until = lock.busy_until.max(end);
            }
        }
        for strip in self.strips(&asked) {
            self.wake(now, (asked.file, strip), &mut woken);
        }
        (end, woken)
    }

    /// Gives the lock of a strip, as far as that can be, to those that wait for it, in order.
    fn wake(&mut self, now: Time, key: (u32, u64), woken: &mut Vec<(u32, Time)>) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        let mut waiting = std::mem::take(&mut lock.waiting);
        while let Some((rank, asked)) = waiting.pop_front() {
            if let Some(granted) = self.ask(now, rank, asked) {
                woken.push((rank, granted));
            } else if let Some(lock) = self.locks.get_mut(&key)
                && let Some(first) = lock.waiting.pop_front()
            {
                // It waits here again, before the others. It may also wait for another strip now.
                waiting.push_front(first);
                lock.waiting = waiting;
                return;
            }
        }
    }

    /// When a request is done that begins now.
    fn serve(&mut self, now: Time, asked: &Asked) -> Time {
        let service = match asked.direction {
            Direction::Read => &self.costs.read,
            Direction::Write => &self.costs.write,
        };
        let (answer, moving) = (service.request, service.bandwidth.time_of(asked.bytes));
        let stream = self.streams.as_mut().map(Streams::take);
        let begin = stream.map_or(now, |free| free.max(now));
        let (_, mut moved) = self.links[asked.node as usize].serve(begin, moving);
        if let Some(bandwidth) = self.costs.bandwidth {
            moved = moved.max(self.servers.serve(begin, bandwidth.time_of(asked.bytes)).1);
        }
        let end = moved + answer;
        if let Some(streams) = &mut self.streams {
            streams.give_back(end);
        }
        end
    }

    /// A request without data that arrives now, and takes so long once it has a stream: when it is done.
    pub(crate) fn plain(&mut self, now: Time, time: Duration) -> Time {
        let streams = self.streams.as_mut().filter(|_| time > Duration::ZERO);
        let Some(streams) = streams else { return now + time };
        let end = streams.take().max(now) + time;
        streams.give_back(end);
        end
    }

    /// A writer comes: whether it may write at once; if not, it is told by [`SharedFiles::written`].
    pub(crate) fn may_write(&mut self, rank: u32, asked: &Asked) -> bool {
        let alone = match self.costs.exclusive {
            Exclusive::Nothing => return true,
            Exclusive::Growth => asked.offset.saturating_add(asked.bytes) > self.sizes[asked.file as usize],
            Exclusive::Writes => true,
        };
        let writers = self.writers.entry((asked.file, asked.node)).or_default();
        writers.waiting.push_back((rank, alone));
        writers.admit().contains(&rank)
    }

    /// A writer is through. The ranks that may write now.
    pub(crate) fn written(&mut self, asked: &Asked) -> Vec<u32> {
        self.grow(asked.file, asked.offset.saturating_add(asked.bytes));
        let Some(writers) = self.writers.get_mut(&(asked.file, asked.node)) else { return Vec::new() };
        if !std::mem::take(&mut writers.alone) {
            writers.sharing = writers.sharing.saturating_sub(1);
        }
        writers.admit()
    }

    /// A file ends here now.
    pub(crate) fn set_size(&mut self, file: u32, size: u64) {
        self.sizes[file as usize] = size;
    }

    /// A file ends no sooner than here.
    pub(crate) fn grow(&mut self, file: u32, size: u64) {
        let end = &mut self.sizes[file as usize];
        *end = size.max(*end);
    }

    /// From when a writer is through until the next, which sleeps, has its turn.
    pub(crate) fn handover(&self) -> Duration {
        self.costs.handover
    }

    /// Takes locks from nodes of which it is known when they are through with them: when all are here. Who reads takes a
    /// lock from a writer, and keeps none.
    fn lock(&mut self, now: Time, rank: u32, asked: &Asked, callback: Duration) -> Time {
        let mut granted = now;
        for strip in self.strips(asked) {
            let key = (asked.file, strip);
            let node = Some(asked.node);
            let (owner, from) = match self.locks.get(&key) {
                None => (None, now),
                Some(Lock { node: None, from, .. }) => (None, now.max(*from)),
                Some(lock) if lock.node == node => (node, now.max(lock.from)),
                Some(lock) => (None, now.max(lock.busy_until) + callback),
            };
            if owner.is_none() {
                let next = node.filter(|_| asked.direction == Direction::Write);
                if next.is_some() || from > now {
                    self.locks.insert(key, Lock::new(next, from));
                } else {
                    self.locks.remove(&key);
                }
            }
            if let Some(lock) = self.locks.get_mut(&key).filter(|lock| lock.node.is_some()) {
                lock.users.push(rank);
            }
            granted = granted.max(from);
        }
        granted
    }

    fn strips(&self, asked: &Asked) -> std::ops::RangeInclusive<u64> {
        let last = asked.offset.saturating_add(asked.bytes.saturating_sub(1));
        let strip = self.costs.locks.and_then(|locks| locks.strip);
        strip.map_or(0..=0, |strip| asked.offset / strip..=last / strip)
    }
}

impl Lock {
    fn new(node: Option<u32>, from: Time) -> Lock {
        Lock { node, from, users: Vec::new(), busy_until: from, waiting: VecDeque::new() }
    }

    /// Whether a request of a node that wants it must wait until it is known when it is free, or behind others that do.
    fn keeps_waiting(&self, node: u32) -> bool {
        !self.waiting.is_empty() || Some(node) != self.node && !self.users.is_empty()
    }
}

impl Writers {
    /// Lets in who waits, in order, as far as they go together.
    fn admit(&mut self) -> Vec<u32> {
        let mut admitted = Vec::new();
        while let Some(&(rank, alone)) = self.waiting.front() {
            if self.alone || (alone && self.sharing > 0) {
                break;
            }
            self.waiting.pop_front();
            if alone {
                self.alone = true
            } else {
                self.sharing += 1
            }
            admitted.push(rank);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use pio_machine::{Bandwidth, Service};
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::Events;

    /// Picoseconds of a millisecond.
    const MS: u64 = 1_000_000_000;

    fn ms(count: u64) -> Duration {
        Duration::from_picoseconds(count * MS)
    }

    fn rate(mb_per_s: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(mb_per_s * 1_000_000)
    }

    /// An answer takes 1 ms, 1 MB on a node's link 10 ms to read and 20 ms to write.
    fn costs() -> Costs {
        let service = |mb_per_s| Service { request: ms(1), bandwidth: rate(mb_per_s) };
        let zero = Duration::ZERO;
        Costs {
            read: service(100),
            write: service(50),
            request: None,
            bandwidth: None,
            streams: None,
            locks: None,
            exclusive: Exclusive::Nothing,
            handover: zero,
            open: zero,
            create: zero,
            close: zero,
            resize: zero,
            lock: zero,
            stat: None,
            unlink: None,
            sync: service(50),
        }
    }

    fn files(costs: &Costs) -> SharedFiles {
        SharedFiles::new(costs, 4, vec![1000, 0])
    }

    fn read(node: u32, offset: u64, bytes: u64) -> Asked {
        Asked { node, file: 0, direction: Direction::Read, offset, bytes }
    }

    fn write(node: u32, offset: u64, bytes: u64) -> Asked {
        Asked { direction: Direction::Write, ..read(node, offset, bytes) }
    }

    /// When requests that come at these milliseconds are done, milliseconds. Each is of a rank of its own.
    fn ends(costs: &Costs, asked: &[(u64, Asked)]) -> Vec<u64> {
        let mut files = files(costs);
        let mut ends = vec![0; asked.len()];
        let mut events = Events::new();
        for (rank, (at, _)) in asked.iter().enumerate() {
            events.add(Time(at * MS), (rank as u32, false));
        }
        while let Some((now, (rank, has_locks))) = events.pop() {
            let asked = asked[rank as usize].1;
            if has_locks {
                let (end, woken) = files.begin(now, rank, asked);
                ends[rank as usize] = end.0 / MS;
                woken.into_iter().for_each(|(other, at)| events.add(at, (other, true)));
            } else if let Some(granted) = files.ask(now, rank, asked) {
                events.add(granted, (rank, true));
            }
        }
        ends
    }

    #[test]
    fn requests_of_a_node_share_its_link_and_nothing_else() {
        let asked = [(3, read(0, 0, 1_000_000)), (3, write(0, 0, 1_000_000)), (3, write(1, 0, 1_000_000))];
        assert_eq!(ends(&costs(), &asked), [3 + 10 + 1, 3 + 10 + 20 + 1, 3 + 20 + 1]);
    }

    #[test]
    fn nodes_share_the_servers() {
        // What passes the servers in 5 ms takes 10 ms on a link: three nodes are more than they take at once.
        let costs = Costs { bandwidth: Some(rate(200)), ..costs() };
        let asked = [0, 1, 2].map(|node| (0, read(node, 0, 1_000_000)));
        assert_eq!(ends(&costs, &asked), [10 + 1, 10 + 1, 15 + 1]);
    }

    #[test]
    fn streams_are_taken_until_the_answer_is_there() {
        let costs = Costs { streams: Some(2), ..costs() };
        assert_eq!(ends(&costs, &[0, 0, 0, 0, 0].map(|at| (at, read(0, 0, 0)))), [1, 1, 2, 2, 3]);
        let mut files = files(&costs);
        let plain = [0, 0, 0].map(|at| files.plain(Time(at), ms(4)).0 / MS);
        assert_eq!(plain, [4, 4, 8]);
        assert_eq!(files.plain(Time(MS), Duration::ZERO).0, MS, "what takes no time needs no stream");
        assert_eq!(super::tests::files(&super::tests::costs()).plain(Time(MS), ms(4)).0, 5 * MS);
    }

    #[test]
    fn there_may_be_a_million_streams() {
        // If each request looked at all of them, this would take minutes.
        let mut files = files(&Costs { streams: Some(1 << 20), ..costs() });
        let ends = (0..1_u64 << 18).map(|at| files.plain(Time(at), ms(4)));
        assert!(ends.enumerate().all(|(at, end)| end == Time(at as u64) + ms(4)));
    }

    #[test]
    fn a_strip_is_called_back_from_the_node_that_wrote_it() {
        let locks = Some(ClientLocks { callback: ms(5), strip: Some(100) });
        let costs =
            Costs { locks, write: Service { request: ms(1), bandwidth: rate(10_000_000) }, ..costs() };
        let asked = [
            (0, write(0, 0, 100), 1),
            // It has the strip.
            (10, write(0, 50, 50), 11),
            // Another strip.
            (10, write(1, 100, 100), 11),
            // Waits for the request under way, then for the callback.
            (10, write(1, 99, 1), 11 + 5 + 1),
            // And so does who reads,
            (20, read(2, 0, 1), 20 + 5 + 1),
            // but keeps nothing.
            (30, write(0, 0, 1), 31),
            // Another file.
            (40, Asked { file: 1, ..write(3, 0, 1) }, 41),
        ];
        let found = ends(&costs, &asked.map(|(at, asked, _)| (at, asked)));
        assert_eq!(found, asked.map(|(.., end)| end));
    }

    #[test]
    fn who_wants_a_lock_waits_until_those_before_it_have_had_it() {
        let locks = Some(ClientLocks { callback: ms(5), strip: Some(100) });
        let costs = Costs { locks, ..costs() };
        let both = |node| write(node, 50, 100);
        let asked = [
            (0, write(0, 0, 0), 1),
            // The lock is on its way from 1 to 6, for the first as for the second of its node.
            (1, write(1, 0, 0), 6 + 1),
            (2, write(1, 0, 0), 6 + 1),
            // When those end is not known before 6.
            (3, write(2, 0, 0), 7 + 5 + 1),
            (3, write(1, 0, 0), 13 + 5 + 1),
            (4, write(2, 0, 0), 19 + 5 + 1),
            // Nobody has had the second strip before: only the last waits, until this one has had the first, too.
            (4, Asked { bytes: 51, ..both(3) }, 25 + 5 + 1),
            (5, write(0, 100, 0), 6),
        ];
        let found = ends(&costs, &asked.map(|(at, asked, _)| (at, asked)));
        assert_eq!(found, asked.map(|(.., end)| end));
    }

    /// A writer that waited behind a reader began before what the reader waited for was done.
    #[test]
    fn who_writes_behind_a_reader_waits_for_what_that_waits_for() {
        let locks = Some(ClientLocks { callback: ms(5), strip: Some(100) });
        let asked = [
            (0, write(0, 0, 0), 1),
            (1, write(1, 0, 0), 6 + 1),
            (2, read(2, 0, 0), 7 + 5 + 1),
            (3, write(3, 0, 0), 12 + 1),
            (20, read(2, 0, 0), 20 + 5 + 1),
        ];
        let found = ends(&Costs { locks, ..costs() }, &asked.map(|(at, asked, _)| (at, asked)));
        assert_eq!(found, asked.map(|(.., end)| end));
    }

    #[test]
    fn a_lock_without_strips_covers_the_file() {
        let locks = Some(ClientLocks { callback: ms(5), strip: None });
        let far = write(1, 1 << 40, 0);
        assert_eq!(ends(&Costs { locks, ..costs() }, &[(0, write(0, 0, 0)), (2, far)]), [1, 2 + 5 + 1]);
    }

    #[test]
    fn who_waits_for_a_lock_keeps_nobody_else_waiting() {
        let locks = Some(ClientLocks { callback: ms(100), strip: None });
        let other = |node| Asked { file: 1, ..read(node, 0, 1_000_000) };
        let asked = |node| [(0, write(0, 0, 0)), (2, write(1, 0, 0)), (3, other(node))];
        let costs = Costs { locks, ..costs() };
        // They waited for the link, the servers or the stream until the lock was there: 113, 108 and 114 ms.
        assert_eq!(ends(&costs, &asked(1)), [1, 102 + 1, 3 + 10 + 1], "on the same link");
        let servers = Costs { bandwidth: Some(rate(200)), ..costs.clone() };
        assert_eq!(ends(&servers, &asked(2)), [1, 102 + 1, 3 + 10 + 1], "at the same servers");
        let stream = Costs { streams: Some(1), ..costs };
        assert_eq!(ends(&stream, &asked(2)), [1, 102 + 1, 3 + 10 + 1], "with the same stream");
    }

    proptest! {
        /// Whatever strips requests want, none waits for ever, and none is done before it could be.
        #[test]
        fn all_requests_are_done(
            wanted in prop::collection::vec((0..30_u64, 0..4_u32, any::<bool>(), 0..400_u64, 1..300_u64), 1..60),
        ) {
            let locks = Some(ClientLocks { callback: ms(5), strip: Some(100) });
            let costs = Costs { locks, streams: Some(2), ..costs() };
            let asked = |&(at, node, writes, offset, bytes): &(u64, u32, bool, u64, u64)| {
                (at, if writes { write(node, offset, bytes) } else { read(node, offset, bytes) })
            };
            let asked: Vec<(u64, Asked)> = wanted.iter().map(asked).collect();
            for ((at, _), end) in asked.iter().zip(ends(&costs, &asked)) {
                prop_assert!(end > *at, "asked at {at} ms, done at {end} ms");
            }
        }
    }

    #[test]
    fn who_makes_a_file_longer_writes_alone_on_its_node() {
        let mut files = files(&Costs { exclusive: Exclusive::Growth, ..costs() });
        let inside = |rank: u32| write(rank / 2, u64::from(rank), 10);
        let beyond = |rank: u32| write(rank / 2, 1000 * u64::from(rank), 10_000);
        assert!(files.may_write(0, &inside(0)) && files.may_write(1, &inside(1)));
        assert!(files.may_write(2, &beyond(2)), "another node");
        assert!(!files.may_write(3, &inside(3)));
        assert_eq!(files.written(&beyond(2)), [3]);
        assert!(files.may_write(2, &beyond(2)), "the file has grown: it is inside now");
        assert_eq!(files.written(&inside(0)), [0_u32; 0]);
    }

    #[test]
    fn one_writer_a_node() {
        let mut files = files(&Costs { exclusive: Exclusive::Writes, ..costs() });
        let one = write(0, 0, 1);
        assert!(files.may_write(0, &one));
        assert!(!files.may_write(1, &one) && !files.may_write(2, &one));
        assert_eq!(files.written(&one), [1]);
        assert_eq!(files.written(&one), [2]);
        let mut free = super::tests::files(&super::tests::costs());
        assert!(free.may_write(0, &one) && free.may_write(1, &one));
    }
}
