//! What clients see of a small file system on a network that carries everything in the same time, against closed forms.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use pio_machine::{
    Bandwidth, Client, ClientCache, Duration, ExtentLocks, Grant, IoNodePlacement, IoNodes, LocksOn,
    Metadata, ObjectServers, ParallelFiles as Costs, Service, Yields,
};
use proptest::prelude::*;

use super::client::{Client as NodeClient, Object};
use super::extents::Extents;
use super::stripes::ObjectId;
use super::{Action, Message, ParallelFiles, Wake, Wanted};
use crate::kernel::{Events, Time};
use crate::workload::Naming;

/// Picoseconds of a millisecond.
pub(super) const MS: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;
/// Every message takes so many milliseconds.
const WAY: u64 = 1;

pub(super) fn ms(count: u64) -> Duration {
    Duration::from_picoseconds(count * MS)
}

pub(super) fn rate(mb_per_s: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(mb_per_s * MB)
}

/// One target that reads 1 MB in 1 + 10 ms and writes it in 1 + 20 ms. Requests are of 1 MB, one at a time. No cache, no lock.
pub(crate) fn costs() -> Costs {
    let service = |mb_per_s| Service { request: ms(1), bandwidth: rate(mb_per_s) };
    Costs {
        io: IoNodes {
            count: 1,
            placement: IoNodePlacement::Clustered,
            dedicated: true,
            shares_cores: false,
            wake: Duration::ZERO,
            deep_wake: Duration::ZERO,
            change: Duration::ZERO,
            channel: None,
        },
        servers: ObjectServers {
            targets: 1,
            read: service(100),
            write: service(50),
            threads: None,
            link: None,
            memory: 0,
            journal: Duration::ZERO,
        },
        components: Vec::new(),
        strip: MB,
        stripe_count: None,
        client: Client { request: MB, in_flight: 1, cache: None },
        locks: None,
        metadata: Metadata {
            servers: 1,
            striped_directories: false,
            open: ms(2),
            create: ms(3),
            close: Duration::ZERO,
            resize: ms(4),
            lock: ms(5),
            stat: Some(ms(6)),
            unlink: Some(ms(7)),
        },
    }
}

fn cache() -> ClientCache {
    ClientCache { size: 100 * MB, page: 1000, dirty: 10 * MB, read_ahead: 0, flush_on_close: false }
}

fn cached(cache: ClientCache) -> Costs {
    let mut costs = costs();
    costs.client.cache = Some(cache);
    costs
}

fn locked(locks: ExtentLocks) -> Costs {
    Costs { locks: Some(locks), ..cached(cache()) }
}

pub(super) const LOCKS: ExtentLocks = ExtentLocks {
    on: LocksOn::Objects,
    grant: Grant::Widest,
    yields: Yields::Lock,
    unit: 1000,
    request: Duration::from_picoseconds(2 * MS),
    callback: Duration::from_picoseconds(5 * MS),
    sync: false,
};

enum Happening {
    Wanted(u32, u32, u32, Wanted),
    Arrived(Message),
    Woken(Wake),
}

/// The file system, and what has happened.
struct Run {
    files: ParallelFiles,
    events: Events<Happening>,
    /// Ranks, in the order in which they were done, and when.
    done: Vec<(u32, Time)>,
    /// Bytes that clients and servers sent.
    sent: u64,
    now: Time,
    /// Messages without data take up to so many milliseconds more, so that one overtakes another.
    late: u64,
    messages: u64,
    /// What a rank of a program thinks before it wants the next, milliseconds.
    think: u64,
    /// What each rank wants next, and on which node and of which file.
    programs: BTreeMap<u32, VecDeque<(u32, u32, Wanted)>>,
}

impl Run {
    /// Servers are on nodes from 100 on. File 0 is made by the program, file 1 was there and has no end.
    fn new(costs: &Costs) -> Run {
        Run::with_files(costs, [("/a/new", 0), ("/a/old", u64::MAX)].into_iter())
    }

    /// Servers are on nodes from 100 on.
    fn with_files<'a>(costs: &Costs, files: impl Iterator<Item = (&'a str, u64)> + Clone) -> Run {
        let servers = (0..costs.io.count).map(|server| 100 + server).collect();
        let files = ParallelFiles::new(costs, servers, files);
        Run {
            files,
            events: Events::new(),
            done: Vec::new(),
            sent: 0,
            now: Time::default(),
            late: 0,
            messages: 0,
            think: 0,
            programs: BTreeMap::new(),
        }
    }

    /// A rank on a node wants something of a file at so many milliseconds. It must want nothing else at the time.
    fn at(&mut self, at: u64, rank: u32, node: u32, file: u32, wanted: Wanted) {
        self.events.add(Time(at * MS), Happening::Wanted(rank, node, file, wanted));
    }

    /// When the last has been done, whole milliseconds.
    fn next_ms(&self) -> u64 {
        self.now.0.div_ceil(MS)
    }

    /// What a rank wants after another, from now on.
    fn program(&mut self, rank: u32, node: u32, file: u32, wanted: impl Iterator<Item = Wanted>) {
        self.programs.insert(rank, wanted.map(|wanted| (node, file, wanted)).collect());
        self.go_on(rank);
    }

    fn go_on(&mut self, rank: u32) {
        let next = self.programs.get_mut(&rank).and_then(VecDeque::pop_front);
        if let Some((node, file, wanted)) = next {
            self.events.add(self.now + ms(self.think), Happening::Wanted(rank, node, file, wanted));
        }
    }

    fn finish(&mut self) {
        while let Some((now, happening)) = self.events.pop() {
            self.now = now;
            match happening {
                Happening::Wanted(rank, node, file, wanted) => self.files.want(now, rank, node, file, wanted),
                Happening::Arrived(message) => self.files.arrived(now, message),
                Happening::Woken(wake) => self.files.woken(now, wake),
            }
            self.nobody_shares_with_a_writer();
            self.what_is_dirty_and_who_has_what_is_known();
            for action in std::mem::take(&mut self.files.actions) {
                match action {
                    Action::Send { from, to, bytes, message } => {
                        self.sent += bytes;
                        self.messages += 1;
                        // Any numbers that go up and down will do.
                        let late = if bytes == 0 { self.messages * 7919 % 13 % (self.late + 1) } else { 0 };
                        let way = if from == to { 0 } else { WAY + late };
                        self.events.add(now + ms(way), Happening::Arrived(message));
                    }
                    Action::Wake { at, wake } => self.events.add(at, Happening::Woken(wake)),
                    Action::Done { rank } => {
                        self.done.push((rank, now));
                        self.go_on(rank);
                    }
                }
            }
        }
    }
}

impl Run {
    /// A client that is at rest has nothing in its cache but under its locks.
    fn all_that_is_cached_is_locked(&self, client: &NodeClient) {
        let mut locked: BTreeMap<ObjectId, Extents> = BTreeMap::new();
        for (resource, locks) in &client.locks {
            for piece in locks.readable().iter().flat_map(|extent| self.files.guarded(*resource, &extent)) {
                locked.entry(piece.object).or_default().add(piece.range);
            }
        }
        for (object, has) in &client.objects {
            let locked = locked.entry(*object).or_default();
            let free = has.present.iter().find(|extent| !locked.covers(extent));
            assert_eq!(free, None, "of {object:?} under {locked:?}");
        }
    }

    /// Objects are found by what is looked for: as if all were looked at. Where there are many, that takes too long.
    fn what_is_dirty_and_who_has_what_is_known(&self) {
        if self.files.files.len() > 10 {
            return;
        }
        let mut clients: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (node, client) in &self.files.clients {
            let dirty = client.objects.iter().filter(|(_, has)| has.dirty.len() > 0);
            let dirty = dirty.map(|(object, _)| (self.files.target_of(*object), *object)).collect();
            assert_eq!(client.dirty_objects, dirty, "of node {node}");
            for object in client.objects.keys() {
                clients.entry(object.file).or_default().insert(*node);
            }
        }
        for (number, file) in (0..).zip(&self.files.files) {
            assert_eq!(file.clients, clients.remove(&number).unwrap_or_default(), "of file {number}");
        }
    }

    /// No client believes that it may read or write what another believes that it may write.
    fn nobody_shares_with_a_writer(&self) {
        let clients = &self.files.clients;
        for (node, client) in clients {
            for (other, has) in clients.iter().filter(|(other, _)| *other != node) {
                for (resource, locks) in &client.locks {
                    let Some(of_other) = has.locks.get(resource) else { continue };
                    let shared = |extent: &Range<u64>| of_other.readable().overlaps(extent);
                    let found = locks.writable().iter().find(shared);
                    assert_eq!(found, None, "{node} and {other} at {:?}: {resource:?}", self.now);
                }
            }
        }
    }
}

/// When what rank after rank wants on a node of its own is done, picoseconds; `wanted`: when, on which node, file, and what.
fn ends<const N: usize>(costs: &Costs, wanted: [(u64, u32, u32, Wanted); N]) -> [u64; N] {
    let mut run = Run::new(costs);
    for (rank, (at, node, file, wanted)) in wanted.into_iter().enumerate() {
        run.at(at, rank as u32, node, file, wanted);
    }
    run.finish();
    assert_eq!(run.done.len(), N, "all are done");
    let mut ends = [0; N];
    run.done.iter().for_each(|(rank, at)| ends[*rank as usize] = at.0);
    ends
}

fn in_ms<const N: usize>(costs: &Costs, wanted: [(u64, u32, u32, Wanted); N]) -> [u64; N] {
    ends(costs, wanted).map(|end| {
        assert!(end.is_multiple_of(MS), "{end} ps");
        end / MS
    })
}

fn read(range: Range<u64>) -> Wanted {
    Wanted::Read(range)
}

fn write(range: Range<u64>) -> Wanted {
    Wanted::Write(range)
}

/// To the server and back.
const WAYS: u64 = 2 * WAY;

#[test]
fn requests_without_a_cache_take_the_network_and_the_device() {
    let mut costs = costs();
    assert_eq!(in_ms(&costs, [(5, 0, 0, write(0..MB))]), [5 + WAYS + 21]);
    assert_eq!(in_ms(&costs, [(0, 0, 1, read(0..MB))]), [WAYS + 11]);
    // One at a time: each takes the network both ways. All at a time: the device is all that counts.
    assert_eq!(in_ms(&costs, [(0, 0, 0, write(0..3 * MB))]), [3 * (WAYS + 21)]);
    costs.client.in_flight = 3;
    assert_eq!(in_ms(&costs, [(0, 0, 0, write(0..3 * MB))]), [WAYS + 3 * 21]);
    // A new file has nothing to read.
    assert_eq!(in_ms(&costs, [(0, 0, 0, read(0..MB))]), [0]);
}

#[test]
fn a_call_may_be_of_many_requests() {
    // If each that is answered was looked for among all, this would take minutes.
    let mut costs = costs();
    (costs.client.request, costs.client.in_flight) = (100, 64);
    let mut run = Run::new(&costs);
    run.at(0, 0, 0, 0, write(0..30 * MB));
    run.finish();
    assert_eq!(run.files.done()[0].requests, 300_000);
}

#[test]
fn what_is_behind_all_files_is_not_moved() {
    let wanted = [(0, 0, 0, write(u64::MAX - 1..u64::MAX)), (0, 1, 1, read(u64::MAX - 1..u64::MAX))];
    assert_eq!(in_ms(&locked(LOCKS), wanted.clone()), [0, 0]);
    assert_eq!(in_ms(&costs(), wanted), [0, 0]);
}

#[test]
fn targets_work_side_by_side() {
    let mut costs = costs();
    (costs.io.count, costs.servers.targets) = (2, 2);
    assert_eq!(in_ms(&costs, [(0, 0, 0, write(0..4 * MB))]), [WAYS + 21]);
    costs.stripe_count = Some(2);
    assert_eq!(in_ms(&costs, [(0, 0, 0, write(0..4 * MB))]), [2 * (WAYS + 21)]);
}

#[test]
fn metadata_operations_queue_at_their_server() {
    let open = |makes| Wanted::Open { makes };
    let wanted =
        [(0, 0, 0, open(true)), (0, 1, 0, open(false)), (0, 2, 0, Wanted::Resize), (0, 3, 0, Wanted::Lock)];
    assert_eq!(in_ms(&costs(), wanted), [WAYS + 5, WAYS + 7, WAYS + 11, WAYS + 16]);
    let named = [(0, 0, 0, Wanted::Name(Naming::Ask)), (0, 1, 0, Wanted::Name(Naming::Remove))];
    assert_eq!(in_ms(&costs(), named), [WAYS + 6, WAYS + 13]);
    assert_eq!(in_ms(&costs(), [(3, 0, 0, Wanted::Close)]), [3], "what takes no time asks nobody");
}

#[test]
fn writes_end_in_the_cache_and_a_sync_waits_for_device_and_journal() {
    let mut costs = cached(cache());
    costs.servers.journal = ms(7);
    let wanted = [(0, 0, 0, write(0..MB)), (0, 0, 0, write(MB..MB + 1000)), (0, 0, 0, Wanted::Sync)];
    // Two requests, the second because of the sync, one at a time; 1000 bytes take 1 ms and 20 us.
    let [first, second, sync] = ends(&costs, wanted);
    let device = 21 * MS + MS + 20 * MS / 1000;
    assert_eq!((first, second, sync), (0, 0, 2 * WAYS * MS + device + (WAYS + 7) * MS));
}

#[test]
fn what_is_cut_off_is_neither_read_again_nor_written() {
    let full = cached(ClientCache { dirty: MB / 2, ..cache() });
    for costs in [cached(cache()), locked(LOCKS), full] {
        let mut run = Run::new(&costs);
        run.at(0, 0, 0, 0, write(0..MB));
        run.finish();
        run.at(run.next_ms(), 0, 0, 0, Wanted::Sync);
        run.finish();
        let (read, sent) = (run.files.done()[0].bytes_read, run.sent);
        assert_eq!((read, sent), (0, MB));
        run.files.set_size(run.now, 0, 0);
        // Another client writes a part of a page. Of the file as it was, the rest of the page would have been read.
        run.at(run.next_ms(), 1, 1, 0, write(0..500));
        run.finish();
        assert_eq!(run.files.done()[0].bytes_read, 0);
        assert_eq!(run.files.clients[&0].cached_bytes, 0);
        // What the client has not sent yet it does not send any more.
        run.files.set_size(run.now, 0, 100);
        run.at(run.next_ms(), 1, 1, 0, Wanted::Sync);
        run.finish();
        let client = &run.files.clients[&1];
        assert_eq!((run.sent - sent, client.dirty_bytes, client.cached_bytes), (100, 0, 100));
        run.files.grow(0, MB);
        run.at(run.next_ms(), 2, 2, 0, write(MB - 500..MB));
        run.finish();
        assert_eq!(run.files.done()[0].bytes_read, 1000, "it has its size again");
    }
}

#[test]
fn who_finds_the_cache_full_of_dirty_bytes_waits() {
    let costs = cached(ClientCache { dirty: 2 * MB, ..cache() });
    let part = |number: u64| (0, 0, 0, write(number * MB..(number + 1) * MB));
    let others = (0, 1, 0, write(9 * MB..10 * MB));
    let ends = in_ms(&costs, [part(0), part(1), part(2), part(3), others]);
    // The other node's write is behind the first at the device; its own second request comes after both.
    assert_eq!(ends, [0, 0, WAYS + 21, WAYS + 21 + WAYS + 21 + (21 - WAYS), 0]);
}

#[test]
fn what_targets_do_not_have_yet_is_no_more_than_the_cache() {
    let mut costs = cached(ClientCache { size: 2 * MB, ..cache() });
    (costs.io.count, costs.servers.targets) = (4, 4);
    let part = |number: u64| (0, 0, 0, write(number * MB..(number + 1) * MB));
    // Each for a target of its own; the last two have room when the first two are there, which is at the same time.
    let ends = in_ms(&costs, [part(0), part(1), part(2), part(3)]);
    assert_eq!(ends, [0, 0, WAYS + 21, WAYS + 21]);
    // What is larger than the cache goes through it.
    let costs = cached(ClientCache { size: 4000, ..cache() });
    assert_eq!(in_ms(&costs, [part(0), part(1)]), [0, WAYS + 21]);
}

#[test]
fn less_than_a_request_waits_for_more_or_for_want_of_room() {
    let costs = cached(ClientCache { dirty: MB, ..cache() });
    let half = MB / 2;
    let mut run = Run::new(&costs);
    for (rank, start) in [0, 2 * MB].into_iter().enumerate() {
        run.at(0, rank as u32, 0, 0, write(start..start + half));
    }
    run.finish();
    assert_eq!((run.done.len(), run.sent), (2, 0), "nothing is sent");
    run.at(1, 3, 0, 0, write(4 * MB..4 * MB + half));
    run.finish();
    // Half a megabyte takes 11 ms.
    assert_eq!(
        (run.done[2], run.sent),
        ((3, Time((1 + WAYS + 11) * MS)), MB),
        "both go, and the third has room"
    );
}

#[test]
fn what_was_read_or_written_is_read_again_at_once() {
    let costs = cached(cache());
    let again = (50, 0, 1, read(500..MB));
    assert_eq!(in_ms(&costs, [(0, 0, 1, read(0..MB)), again.clone(), (50, 1, 1, read(0..MB))]), [13, 50, 63]);
    assert_eq!(in_ms(&costs, [(0, 0, 1, write(0..MB)), again]), [0, 50]);
    let small = cached(ClientCache { size: 2 * MB, ..cache() });
    let part = |at, number: u64| (at, 0, 1, read(number * MB..(number + 1) * MB));
    let ends = in_ms(&small, [part(0, 0), part(20, 1), part(40, 2), part(60, 1), part(80, 0)]);
    assert_eq!(ends, [13, 33, 53, 60, 93], "the oldest has left");
}

#[test]
fn who_reads_forwards_finds_the_next_bytes_on_their_way() {
    let mut costs = cached(ClientCache { read_ahead: 4 * MB, ..cache() });
    costs.client.in_flight = 8;
    let mut run = Run::new(&costs);
    run.program(0, 0, 1, [0, 1, 2, 3, 9].into_iter().map(|number| read(number * MB..(number + 1) * MB)));
    run.finish();
    let ends: Vec<u64> = run.done.iter().map(|(_, at)| at.0 / MS).collect();
    // 1 MB ahead, then 2 MB, then 4 MB: the device is never idle, and each read takes its time alone. A window of 4 MB ends
    // at 7 MB behind the third read, and at 8 MB behind the fourth. The last goes on nowhere, and waits for all of these.
    assert_eq!(ends, [13, 24, 35, 46, 1 + 8 * 11 + 11 + 1]);
    assert_eq!(run.files.done()[0].bytes_read, 9 * MB);
}

#[test]
fn the_rest_of_a_page_is_read_before_a_part_of_it_is_written() {
    let costs = cached(cache());
    // Half a page at either end: both are asked for at once, one is sent behind the other. A page takes 1 ms and 10 us.
    let page = WAYS * MS + MS + 10 * MS / 1000;
    assert_eq!(ends(&costs, [(0, 0, 1, write(500..2500))]), [2 * page]);
    assert_eq!(ends(&costs, [(0, 0, 1, write(1000..2500))]), [page]);
    assert_eq!(ends(&costs, [(0, 0, 1, write(1000..2000))]), [0]);
    // There is nothing behind the end of a file, and what is here is not asked for.
    assert_eq!(ends(&costs, [(0, 0, 0, write(0..1500)), (1, 0, 0, write(1500..2700))]), [0, MS]);
}

#[test]
fn a_lock_is_asked_for_once_and_called_back_with_the_data() {
    let costs = locked(LOCKS);
    let grant = WAYS + 2;
    let wanted = [
        (0, 0, 0, write(0..MB)),
        (10, 0, 0, write(MB..2 * MB)),
        // Another node: its wish, the callback, the two requests that are on their way, the time to give it back, its way,
        // and the lock's way.
        (100, 1, 0, write(2 * MB..2 * MB + 1000)),
        (200, 1, 0, write(2 * MB + 1000..2 * MB + 2000)),
        // The first node has lost it, and the second one has dirty bytes.
        (300, 0, 0, write(5 * MB..6 * MB)),
    ];
    let flushed = 2 * 1000 * 20 * MS / MB;
    let [first, second, other, again, back] = ends(&costs, wanted);
    assert_eq!(
        [first, second, other, again].map(|end| end / MS),
        [grant, 10, 100 + WAY + 2 + WAY + 5 + WAYS, 200]
    );
    assert_eq!(back, (300 + WAY + 2 + WAY + WAYS + 1 + 5 + WAYS) * MS + flushed);
}

#[test]
fn ranks_of_a_node_call_back_each_others_locks() {
    // Both ask before either has a lock, and their pieces share a page. As Lustre: the second takes the lock of the first, as
    // if it were another node's; with it go the 1500 bytes, and the half page is read back.
    let wanted = [(0, 0, 0, write(0..1500)), (0, 0, 0, write(1500..3000))];
    let called = 2 * 2 + WAYS;
    let flush = WAYS * MS + MS + 1500 * 20 * MS / MB;
    let fetch = WAYS * MS + MS + 500 * 10 * MS / MB;
    let alone = (WAYS + 2) * MS;
    assert_eq!(ends(&locked(LOCKS), wanted.clone()), [alone, (called + 5 + WAYS) * MS + flush + fetch]);
    // As GPFS: what a node has is all of its ranks'.
    let costs = locked(ExtentLocks { yields: Yields::Extent, ..LOCKS });
    assert_eq!(ends(&costs, wanted), [alone, alone + 2 * MS]);
}

#[test]
fn what_was_written_under_a_lock_is_durable_before_another_has_it() {
    let mut costs = locked(ExtentLocks { sync: true, ..LOCKS });
    costs.servers.journal = ms(7);
    let flush = WAYS * MS + MS + 1000 * 20 * MS / MB;
    let called = (WAY + 2 + WAY + 5 + WAYS) * MS;
    let page = |at, node, number: u64| (at, node, 0, write(number * 1000..(number + 1) * 1000));
    let wanted = [
        page(0, 0, 0),
        page(100, 1, 1),
        // What is durable already waits for nothing.
        (150, 1, 0, Wanted::Sync),
        page(200, 2, 2),
        // A reader has written nothing.
        (300, 0, 1, read(0..1000)),
        (400, 1, 1, write(0..1000)),
    ];
    let ends = ends(&costs, wanted);
    assert_eq!(ends[1], 100 * MS + called + flush + 7 * MS);
    assert_eq!(ends[3], 200 * MS + called);
    assert_eq!(ends[5], 400 * MS + called);
}

#[test]
fn a_rank_does_not_get_what_its_node_is_giving_back() {
    let costs = locked(LOCKS);
    let wanted = [
        (0, 0, 0, write(0..MB)),
        (50, 0, 0, write(MB..2 * MB)),
        (100, 1, 0, write(5 * MB..5 * MB + 1000)),
        // The callback came at 104, and node 0 gives all back until 109: meanwhile another of its ranks wants some of it.
        (105, 0, 0, write(7 * MB..7 * MB + 1000)),
        (200, 0, 0, write(7 * MB + 1000..7 * MB + 2000)),
    ];
    let grant = WAYS + 2;
    let other = 100 + WAY + 2 + WAY + 5 + WAYS;
    // The lock of the rest comes with the other node's.
    assert_eq!(in_ms(&costs, wanted), [grant, 50, other, other, 200]);
}

#[test]
fn a_callback_that_overtakes_its_lock_waits_for_it() {
    let mut run = Run::new(&locked(LOCKS));
    // The third message is the lock, and takes 7 ms; the fourth is its callback, is sent 2 ms later and takes 2 ms.
    run.late = 6;
    [0, 1].into_iter().for_each(|rank| run.at(0, rank, rank, 0, write(0..1000)));
    run.finish();
    assert_eq!(run.done.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(run.done[0].1, Time((3 + 2 + 7) * MS));
}

#[test]
fn readers_share_a_lock_and_what_they_have_is_dropped_with_it() {
    let costs = locked(LOCKS);
    let part = 0..1000;
    let fetch = WAYS * MS + MS + 10 * MS / 1000;
    let grant = (WAYS + 2) * MS;
    let wanted = [
        (0, 0, 1, read(part.clone())),
        (100, 1, 1, read(part.clone())),
        (200, 0, 1, read(part.clone())),
        (300, 2, 1, write(part.clone())),
        (400, 0, 1, read(part)),
    ];
    let called = (WAY + 2 + WAY + 5 + WAYS) * MS;
    let flush = WAYS * MS + MS + 20 * MS / 1000;
    let ends = ends(&costs, wanted);
    let at = |start: u64, time: u64| start * MS + time;
    assert_eq!(
        ends,
        [
            at(0, grant + fetch),
            at(100, grant + fetch),
            at(200, 0),
            at(300, called),
            at(400, called + flush + fetch)
        ]
    );
}

#[test]
fn a_lock_of_which_a_part_is_given_back_goes_on_in_the_rest() {
    // As GPFS: the first writes on from 0, the second from 50 MB.
    let costs = locked(ExtentLocks { yields: Yields::Extent, on: LocksOn::Files, ..LOCKS });
    let wanted = [
        (0, 0, 0, write(0..1000)),
        (100, 1, 0, write(50 * MB..50 * MB + 1000)),
        (200, 0, 0, write(1000..2000)),
        (300, 1, 0, write(50 * MB + 1000..50 * MB + 2000)),
    ];
    assert_eq!(in_ms(&costs, wanted), [WAYS + 2, 100 + WAY + 2 + WAY + 5 + WAYS, 200, 300]);
}

/// What `rank` writes: a piece of one and a half pages.
fn piece(place: u64) -> Wanted {
    write(place * 1500..(place + 1) * 1500)
}

/// A wish, a callback, the time to give back, and the lock.
const CALLBACK: u64 = WAYS + 2 + WAYS + 5;

#[test]
fn interleaved_writes_take_turns_with_the_lock() {
    // As IOR hard: two nodes write in turn, and both begin each piece at the same time. Both want the page that their pieces
    // share: there is a callback each time.
    let pieces = 16;
    let mut run = Run::new(&locked(LOCKS));
    for number in 0..pieces {
        let now = run.next_ms();
        [0, 1].into_iter().for_each(|rank| run.at(now, rank, rank, 0, piece(2 * number + u64::from(rank))));
        run.finish();
    }
    assert!(run.next_ms() >= pieces * CALLBACK, "{} ms", run.next_ms());
}

#[test]
fn who_gives_back_a_side_goes_on_in_the_other_without_waiting() {
    let waiting = |pieces: u64| {
        let mut run = Run::new(&locked(ExtentLocks { yields: Yields::Extent, ..LOCKS }));
        run.think = 4;
        for rank in [0, 1] {
            // Whole pages: nothing need be read for them.
            let places = (0..pieces).map(|number| 1000 * (number + 100 * u64::from(rank)));
            run.program(rank, rank, 0, places.map(|start| write(start..start + 1000)));
        }
        run.finish();
        run.next_ms() - pieces * run.think
    };
    // One callback, whatever the number of pieces.
    let few = waiting(16);
    assert!((CALLBACK..2 * CALLBACK).contains(&few), "{few} ms");
    assert_eq!(waiting(90), few);
}

#[test]
fn a_close_that_flushes_is_seen_by_who_opens_behind_it() {
    let costs = cached(ClientCache { flush_on_close: true, ..cache() });
    let open = || Wanted::Open { makes: false };
    let wanted = [
        (0, 1, 0, write(0..MB)),
        (1, 1, 0, Wanted::Close),
        (90, 0, 0, open()),
        (100, 0, 0, read(0..MB)),
        (200, 1, 0, write(0..MB)),
        (201, 1, 0, Wanted::Close),
        // Until it opens the file again, the reader has the old bytes.
        (300, 0, 0, read(0..MB)),
        (400, 0, 0, open()),
        (500, 0, 0, read(0..MB)),
        // The writer knows its own bytes.
        (600, 1, 0, open()),
        (700, 1, 0, read(0..MB)),
    ];
    let ends = in_ms(&costs, wanted);
    let flush = WAYS + 21 + WAYS;
    assert_eq!(ends, [0, flush, 94, 113, 200, 200 + flush, 300, 404, 513, 604, 700]);
}

#[test]
fn what_was_read_ahead_before_a_change_is_not_kept() {
    let mut costs = cached(ClientCache { read_ahead: 4 * MB, flush_on_close: true, ..cache() });
    costs.client.in_flight = 8;
    let wanted = [
        // Two megabytes come, the second one at 24.
        (0, 0, 1, read(0..MB)),
        // The other's write is at the server before the node opens the file anew, and what was read ahead is not back.
        (1, 1, 1, write(MB..2 * MB)),
        (14, 0, 1, Wanted::Open { makes: false }),
        (100, 0, 1, read(MB..2 * MB)),
    ];
    let [first, _, opened, again] = in_ms(&costs, wanted);
    assert_eq!((first, opened), (13, 18));
    assert!(again >= 113, "{again} ms: it is read anew");
}

#[test]
fn what_is_read_ahead_under_a_lock_that_is_called_back_is_not_kept() {
    let mut costs = locked(LOCKS);
    costs.client.cache = Some(ClientCache { read_ahead: 4 * MB, ..cache() });
    costs.client.in_flight = 8;
    let mut run = Run::new(&costs);
    // The first megabyte is there at 17, and the next, which nobody waits for, would be at 28; the callback is at 19.
    run.at(0, 0, 0, 1, read(0..MB));
    run.at(15, 1, 1, 1, write(5 * MB..5 * MB + 1000));
    run.finish();
    assert_eq!(run.done.iter().map(|(_, at)| at.0 / MS).collect::<Vec<_>>(), [17, 15 + CALLBACK]);
    run.all_that_is_cached_is_locked(&run.files.clients[&0]);
}

#[test]
fn a_device_is_not_kept_for_data_that_are_still_on_the_link() {
    let mut costs = costs();
    costs.servers.link = Some(rate(10));
    // A megabyte is 100 ms on the link: the read is done meanwhile.
    let wanted = [(0, 0, 0, write(0..MB)), (0, 1, 1, read(0..MB))];
    assert_eq!(in_ms(&costs, wanted), [WAYS + 100 + 21, WAYS + 11 + 100]);
}

#[test]
fn a_link_is_not_kept_for_data_that_are_still_on_a_device() {
    let mut costs = costs();
    (costs.servers.targets, costs.servers.link) = (2, Some(rate(100)));
    // A megabyte is 11 ms on the device and 10 ms on the link. Two are read from one target, then one from the other: that
    // is off its device with the first, and leaves before the second.
    let wanted = [(0, 0, 1, read(0..MB)), (0, 1, 1, read(2 * MB..3 * MB)), (0, 2, 1, read(MB..2 * MB))];
    assert_eq!(in_ms(&costs, wanted), [WAYS + 11 + 10, WAYS + 11 + 30, WAYS + 11 + 20]);
}

#[test]
fn a_thread_is_taken_until_a_request_is_done() {
    let mut costs = costs();
    (costs.servers.targets, costs.servers.threads) = (2, Some(1));
    let wanted = [(0, 0, 1, write(0..MB)), (0, 1, 1, write(MB..2 * MB)), (0, 2, 1, read(2 * MB..3 * MB))];
    assert_eq!(in_ms(&costs, wanted.clone()), [WAYS + 21, WAYS + 42, WAYS + 53]);
    // A read has its thread until the link has its data.
    costs.servers.link = Some(rate(1000));
    let wanted = [(0, 0, 1, read(0..MB)), (0, 1, 1, read(MB..2 * MB))];
    assert_eq!(in_ms(&costs, wanted), [WAYS + 12, WAYS + 24]);
}

#[test]
fn ten_thousand_ranks_wait_for_room_without_as_many_calls() {
    // In a small stack: each would need a frame or more.
    let run = || {
        let ranks = 10_000;
        let mut run = Run::new(&cached(ClientCache { dirty: 30 * MB, ..cache() }));
        // The first fills it; when a megabyte of it is on the target, all others have room at the same time.
        run.at(0, ranks, 0, 0, write(0..30 * MB));
        (0..ranks).for_each(|rank| {
            let start = u64::from(rank + 100) * MB;
            run.at(1, rank, 0, 0, write(start..start + 100));
        });
        run.finish();
        run.done.len()
    };
    let small = std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap();
    assert_eq!(small.join().unwrap(), 10_001);
}

#[test]
fn a_node_may_have_many_files() {
    // Each close, sync and cut looks at its own file: if it looked at all that the node has, this would take minutes.
    let ranks = 100_000;
    let costs = cached(ClientCache { flush_on_close: true, dirty: 1000 * MB, size: 1000 * MB, ..cache() });
    let paths: Vec<String> = (0..ranks).map(|rank| format!("/a/{rank}")).collect();
    let mut run = Run::with_files(&costs, paths.iter().map(|path| (path.as_str(), 0)));
    (0..ranks).for_each(|rank| run.program(rank, 0, rank, [write(0..100), Wanted::Close].into_iter()));
    run.finish();
    assert_eq!(run.done.len(), 2 * ranks as usize);
    (0..ranks).for_each(|file| run.files.set_size(run.now, file, 0));
    let done = run.files.done();
    assert_eq!((done[0].requests, done[0].bytes_written), (2 * u64::from(ranks), 100 * u64::from(ranks)));
    assert_eq!(run.files.clients[&0].cached_bytes, 0);
}

/// One operation of a property test: node, file, kind, start and length.
type Step = (u32, u32, u8, u64, u64);

fn wanted((_, _, kind, start, length): Step) -> Wanted {
    match kind {
        0..=3 => write(start..start + length),
        4..=6 => read(start..start + length),
        7 => Wanted::Sync,
        8 => Wanted::Close,
        _ => Wanted::Open { makes: false },
    }
}

proptest! {
    /// Whatever ranks want, and however the file system is made: all get it; in the end all that was written is on the
    /// targets, once it was synced; and twice the same gives the same.
    #[test]
    fn everybody_gets_what_it_wants(
        steps in prop::collection::vec((0..3_u32, 0..2_u32, 0..10_u8, 0..30_000_u64, 1..20_000_u64), 1..40),
        caches in any::<bool>(),
        locks in prop::option::of((any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())),
        dirty in 1..40_000_u64,
        size in 1000..60_000_u64,
        in_flight in 1..4_u32,
        threads in prop::option::of(1..3_u32),
        flush_on_close in any::<bool>(),
        late in 0..12_u64,
    ) {
        let mut costs = costs();
        (costs.io.count, costs.servers.targets, costs.servers.threads) = (2, 2, threads);
        (costs.strip, costs.stripe_count) = (4000, Some(3));
        costs.components = vec![pio_machine::Component { to: 8000, strip: 1000, stripe_count: Some(1) }];
        (costs.client.request, costs.client.in_flight) = (3000, in_flight);
        if caches {
            costs.client.cache = Some(ClientCache { size, page: 100, dirty, read_ahead: 9000, flush_on_close });
            costs.servers.journal = ms(3);
            costs.locks = locks.map(|(files, asked, extent, sync)| ExtentLocks {
                on: if files { LocksOn::Files } else { LocksOn::Objects },
                grant: if asked { Grant::Asked } else { Grant::Widest },
                yields: if extent { Yields::Extent } else { Yields::Lock },
                unit: 100,
                sync: sync && !files,
                ..LOCKS
            });
        }
        let run = || {
            let mut run = Run::new(&costs);
            run.late = late;
            // A rank for each step: all at once, then each node syncs each file.
            for (rank, step) in steps.iter().enumerate() {
                run.at(rank as u64, rank as u32, step.0, step.1, wanted(*step));
            }
            run.finish();
            let wanted = run.done.len();
            for (node, file) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
                run.at(run.next_ms(), 1000, node, file, Wanted::Sync);
                run.finish();
            }
            (wanted, run)
        };
        let (done, first) = run();
        prop_assert_eq!(done, steps.len());
        prop_assert_eq!(first.done.len(), steps.len() + 6);
        for client in first.files.clients.values() {
            let is_at_rest = |has: &Object| has.dirty == Extents::default() && has.moving.is_empty();
            prop_assert!(client.objects.values().all(is_at_rest));
            let bytes = |extents: &Extents| extents.iter().map(|extent| extent.end - extent.start).sum::<u64>();
            prop_assert_eq!(client.objects.values().map(|has| bytes(&has.present)).sum::<u64>(), client.cached_bytes);
            if costs.locks.is_some() {
                first.all_that_is_cached_is_locked(client);
            }
        }
        // Every byte of a write that no other write touches goes once.
        let mut single = [vec![0_u32; 50_000], vec![0_u32; 50_000]];
        for step in &steps {
            if let Wanted::Write(range) = wanted(*step) {
                range.for_each(|byte| single[step.1 as usize][byte as usize] += 1);
            }
        }
        let bytes: u64 = first.files.done().iter().map(|done| done.bytes_written).sum();
        let distinct = single.iter().flatten().filter(|count| **count > 0).count() as u64;
        let all: u64 = single.iter().flatten().map(|count| u64::from(*count)).sum();
        prop_assert!(distinct <= bytes && bytes <= all, "{distinct} <= {bytes} <= {all}");
        let (_, second) = run();
        prop_assert_eq!(first.done, second.done);
    }
}
