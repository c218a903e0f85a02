//! A file system that the nodes share: when it answers, and which writers of a node wait for each other.
//!
//! A request gets the locks it needs, then one of the streams; its bytes pass the node's link and the servers, whichever
//! is later, and its answer takes a time of its own, in which the stream is still taken. All of these are first come,
//! first served, so that the end of a request is known when it arrives.

use std::collections::{BTreeMap, VecDeque};

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
    /// When each is free.
    streams: Vec<Time>,
    /// Of each file's strips, those that a node has.
    locks: BTreeMap<(u32, u64), Lock>,
    /// Of each file and node: its writers.
    writers: BTreeMap<(u32, u32), Writers>,
    /// Of each file: where it ends.
    sizes: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    node: u32,
    /// When the last request under it ends.
    busy_until: Time,
}

/// The writers of a file on one node, as of a lock that some share and others have alone.
#[derive(Debug, Default)]
struct Writers {
    sharing: u32,
    alone: bool,
    /// Rank, and whether it wants it alone.
    waiting: VecDeque<(u32, bool)>,
}

impl SharedFiles {
    /// A file system for so many nodes. `sizes`: of each file, where it ends at the beginning.
    pub(crate) fn new(costs: &Costs, nodes: u32, sizes: Vec<u64>) -> SharedFiles {
        SharedFiles {
            links: vec![Queue::default(); nodes as usize],
            servers: Queue::default(),
            streams: vec![Time::default(); costs.streams.unwrap_or(0) as usize],
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

    /// A read or write that arrives now: when it is done.
    pub(crate) fn access(&mut self, now: Time, asked: Asked) -> Time {
        let granted = self.lock(now, &asked);
        let service = match asked.direction {
            Direction::Read => &self.costs.read,
            Direction::Write => &self.costs.write,
        };
        let (answer, moving) = (service.request, service.bandwidth.time_of(asked.bytes));
        let stream = self.stream();
        let begin = stream.map_or(granted, |stream| self.streams[stream].max(granted));
        let (_, mut moved) = self.links[asked.node as usize].serve(begin, moving);
        if let Some(bandwidth) = self.costs.bandwidth {
            moved = moved.max(self.servers.serve(begin, bandwidth.time_of(asked.bytes)).1);
        }
        let end = moved + answer;
        if let Some(stream) = stream {
            self.streams[stream] = end;
        }
        for strip in self.strips(&asked) {
            if let Some(lock) = self.locks.get_mut(&(asked.file, strip)) {
                lock.busy_until = lock.busy_until.max(end);
            }
        }
        end
    }

    /// A request without data that arrives now, and takes so long once it has a stream: when it is done.
    pub(crate) fn plain(&mut self, now: Time, time: Duration) -> Time {
        let Some(stream) = self.stream().filter(|_| time > Duration::ZERO) else { return now + time };
        self.streams[stream] = self.streams[stream].max(now) + time;
        self.streams[stream]
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

    /// The stream that is free first, if their number is limited.
    fn stream(&self) -> Option<usize> {
        (0..self.streams.len()).min_by_key(|stream| self.streams[*stream])
    }

    /// When a request has the locks that it needs. Who reads takes a lock from a writer, and keeps none.
    fn lock(&mut self, now: Time, asked: &Asked) -> Time {
        let Some(ClientLocks { callback, .. }) = self.costs.locks else { return now };
        let mut granted = now;
        for strip in self.strips(asked) {
            let key = (asked.file, strip);
            let mut from = now;
            if let Some(lock) = self.locks.get(&key).filter(|lock| lock.node != asked.node) {
                from = now.max(lock.busy_until) + callback;
                self.locks.remove(&key);
            }
            if asked.direction == Direction::Write {
                self.locks.entry(key).or_insert(Lock { node: asked.node, busy_until: from });
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

    use super::*;

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

    /// When requests that come at these milliseconds are done, milliseconds.
    fn ends(costs: &Costs, asked: &[(u64, Asked)]) -> Vec<u64> {
        let mut files = files(costs);
        asked.iter().map(|(at, asked)| files.access(Time(at * MS), *asked).0 / MS).collect()
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
    fn a_strip_is_called_back_from_the_node_that_wrote_it() {
        let locks = Some(ClientLocks { callback: ms(5), strip: Some(100) });
        let costs =
            Costs { locks, write: Service { request: ms(1), bandwidth: rate(10_000_000) }, ..costs() };
        let mut files = files(&costs);
        let mut done = |at: u64, asked| files.access(Time(at * MS), asked).0 / MS;
        assert_eq!(done(0, write(0, 0, 100)), 1);
        assert_eq!(done(10, write(0, 50, 50)), 11, "it has the strip");
        assert_eq!(done(10, write(1, 100, 100)), 11, "another strip");
        assert_eq!(
            done(10, write(1, 99, 1)),
            11 + 5 + 1,
            "waits for the request under way, then for the callback"
        );
        assert_eq!(done(20, Asked { bytes: 1, ..read(2, 0, 1) }), 20 + 5 + 1, "and so does who reads");
        assert_eq!(done(30, write(0, 0, 1)), 31, "but keeps nothing");
        assert_eq!(done(40, Asked { file: 1, ..write(3, 0, 1) }), 41, "another file");
    }

    #[test]
    fn a_lock_without_strips_covers_the_file() {
        let locks = Some(ClientLocks { callback: ms(5), strip: None });
        let far = write(1, 1 << 40, 0);
        assert_eq!(ends(&Costs { locks, ..costs() }, &[(0, write(0, 0, 0)), (2, far)]), [1, 2 + 5 + 1]);
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
