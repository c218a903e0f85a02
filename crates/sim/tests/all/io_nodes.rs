//! A trace's requests served by whole I/O nodes: times by hand, and what memory in the nodes changes.

use pio_layout::View;
use pio_machine::{Duration, Machine};
use pio_plan::{Direction, Hints, Strategy};
use pio_sim::workload::{Open, Step, What, Workload};
use pio_sim::{Options, Prediction, simulate};
use pio_trace::{Call, File, HandleId, Op};

/// Numbers that add up in one's head: 1 GB/s is 1 ns a byte.
const MACHINE: &str = r#"
name = "by-hand"
source = "made up"
[nodes]
count = 8
cores = 2
switch = "0 s"
copy = { bandwidth = "1 GB/s", piece = "0 s" }
[messages]
send = "0 s"
receive = "0 s"
local-latency = "0 s"
[network]
kind = "flat"
link = { bandwidth = "1 GB/s", latency = "100 ns" }
[storage]
kind = "io-nodes"
io = { count = 2, placement = "clustered", dedicated = true }
strip = "1 KiB"
request = "200 B"
CACHE
open = "0 s"
close = "0 s"
[io-node]
adapter = "1 GB/s"
cpu = { request = "10 us", response = "5 us" }
bus = "1 GB/s"
channel = "1 GB/s"
buffer = "1 MiB"
unit = "1 KiB"
disk = { count = 1, seek = "1 ms", bandwidth = "10 MB/s", queue = "fcfs" }
[calls]
open = "0 s"
close = "0 s"
seek = "0 s"
read = { call = "1 us", bandwidth = "1 GB/s" }
write = { call = "1 us", bandwidth = "1 GB/s" }
"#;

const CACHE: &str = r#"cache = { size = "64 KiB", block = "1 KiB", policy = "lru", shared = true, process-limit-percent = 100, read-ahead = false, write-behind = true, dirty-limit-percent = 100 }"#;

fn machine(cache: &str) -> Machine {
    Machine::parse("by-hand.toml", &MACHINE.replace("CACHE", cache)).unwrap()
}

/// One rank that makes these requests (direction, offset, bytes), one after the other.
fn workload(requests: &[(Direction, u64, u64)]) -> Workload {
    let step = |&(direction, offset, bytes): &(Direction, u64, u64)| {
        let call = if direction == Direction::Read { Call::Pread } else { Call::Pwrite };
        let what = What::Request { handle: HandleId(0), call, direction, offset, bytes };
        Step { think: Duration::ZERO, idle: Duration::ZERO, what }
    };
    Workload {
        name: "test".to_owned(),
        files: vec![File { path: "/f".to_owned() }],
        handles: vec![Open { file: 0, rank: 0, group: None, collective: 0 }],
        views: vec![View::contiguous(0)],
        groups: Vec::new(),
        programs: vec![requests.iter().map(step).collect()],
        ..Workload::default()
    }
}

fn predict(machine: &Machine, requests: &[(Direction, u64, u64)]) -> Prediction {
    let (hints, options) = (Hints::default(), Options::default());
    let strategy = Strategy::Independent;
    simulate(machine, &workload(requests), strategy, &hints, &options, None, &mut |_| ()).unwrap()
}

/// Nanoseconds in requests of this kind.
fn time_ns(prediction: &Prediction, op: Op) -> u64 {
    prediction.operation(op).time.picoseconds() / 1000
}

/// A message of so many bytes over two links.
fn link_ns(bytes: u64) -> u64 {
    200 + bytes
}

/// A strip behind the one before it, where the disk's arm is already.
const DISK_NS: u64 = 102_400;

/// The first strip: the arm must get there.
const FIRST_NS: u64 = 1_000_000 + DISK_NS;

#[test]
fn a_read_passes_all_of_the_node() {
    let found = predict(&machine(""), &[(Direction::Read, 0, 1024)]);
    let node = 200 + 10_000 + FIRST_NS + 1024 + 5_000 + 1024;
    assert_eq!(time_ns(&found, Op::Read), 1_000 + link_ns(200) + node + link_ns(1024) + 1024);
}

#[test]
fn a_write_is_on_the_disk_when_it_is_done() {
    let found = predict(&machine(""), &[(Direction::Write, 0, 1024)]);
    let node = 1224 + 10_000 + 1024 + FIRST_NS;
    assert_eq!(time_ns(&found, Op::Write), 1_000 + 1024 + link_ns(1224) + node + link_ns(200));
}

#[test]
fn what_the_memory_has_is_not_read_again() {
    let twice = predict(&machine(CACHE), &[(Direction::Read, 0, 1024), (Direction::Read, 0, 1024)]);
    let around = 1_000 + link_ns(200) + link_ns(1024) + 1024;
    // Out of the memory: the message is not taken in by the node's processor before the memory is looked at.
    let hit = 200 + 10_000 + 5_000 + 1024;
    let fetch = 10_000 + FIRST_NS + 1024;
    assert_eq!(time_ns(&twice, Op::Read), 2 * (around + hit) + fetch);
}

#[test]
fn a_writer_does_not_wait_for_the_disk_behind_the_memory() {
    let found = predict(&machine(CACHE), &[(Direction::Write, 0, 1024)]);
    assert_eq!(time_ns(&found, Op::Write), 1_000 + 1024 + link_ns(1224) + 1224 + 10_000 + link_ns(200));
    // More than the memory holds: then it does.
    let many: Vec<_> = (0..400).map(|strip| (Direction::Write, strip * 1024, 1024)).collect();
    let found = predict(&machine(CACHE), &many);
    // Two nodes of one disk each write half of it; up to 64 strips a node are still in memory at the end.
    assert!(time_ns(&found, Op::Write) > (200 - 64 - 1) * DISK_NS, "{}", time_ns(&found, Op::Write));
}

/// Each node is asked whether its disks have the file: a message there and one back, and what it writes itself.
#[test]
fn a_sync_waits_for_what_nodes_have_to_write_and_for_nothing_else() {
    let sync_ns = |cache: &str, requests: &[(Direction, u64, u64)]| {
        let mut synced = workload(requests);
        let what = What::Sync(HandleId(0), Call::Fsync);
        synced.programs[0].push(Step { think: Duration::ZERO, idle: Duration::ZERO, what });
        let (hints, options) = (Hints::default(), Options::default());
        let strategy = Strategy::Independent;
        let machine = machine(cache);
        let found = simulate(&machine, &synced, strategy, &hints, &options, None, &mut |_| ()).unwrap();
        time_ns(&found, Op::Sync)
    };
    let read_ahead = CACHE.replace("read-ahead = false", "read-ahead = true");
    let write_through = CACHE.replace("write-behind = true", "write-behind = false");
    // The second node's message leaves behind the first one's.
    let asked = 200 + 2 * link_ns(200);
    assert_eq!(sync_ns(CACHE, &[]), asked);
    // The disks of what is read ahead are busy for longer.
    assert_eq!(sync_ns(&read_ahead, &[(Direction::Read, 0, 8192)]), asked);
    assert_eq!(sync_ns(&write_through, &[(Direction::Write, 0, 1024)]), asked);
    // One of the two nodes has something to write: it began when it answered the write, and answers the sync when it is done.
    let writes = 10_000 + 1024 + FIRST_NS;
    assert_eq!(sync_ns(CACHE, &[(Direction::Write, 0, 1024)]), writes);
}

#[test]
fn a_process_has_room_for_a_block_however_little_of_the_memory_is_its() {
    // 1 % of it is less than a block.
    let little = CACHE.replace("process-limit-percent = 100", "process-limit-percent = 1");
    let found = predict(&machine(&little), &[(Direction::Write, 0, 1024), (Direction::Read, 0, 1024)]);
    assert_eq!(found.operation(Op::Read).count, 1);
}

#[test]
fn larger_memory_is_never_slower() {
    // Three times over 96 KiB, in order.
    let scan: Vec<_> =
        (0..3).flat_map(|_| (0..96).map(|strip| (Direction::Read, strip * 1024, 1024))).collect();
    let mut last = u64::MAX;
    for size in ["16 KiB", "32 KiB", "48 KiB", "64 KiB"] {
        let found = predict(&machine(&CACHE.replace("64 KiB", size)), &scan);
        let time = time_ns(&found, Op::Read);
        assert!(time <= last, "{size}");
        last = time;
    }
    // A node has half of it, and room for all of that half: each strip is read once.
    assert!(last < 97 * DISK_NS + 3 * 96 * 40_000, "{last}");
}

#[test]
fn a_strip_on_several_units_is_on_several_disks() {
    // Four disks have a unit of the strip each: what is there is read at the same time. The processor takes in four requests.
    let text = MACHINE.replace("CACHE", "").replace("strip = \"1 KiB\"", "strip = \"4 KiB\"");
    let machine = Machine::parse("by-hand.toml", &text.replace("disk = { count = 1", "disk = { count = 4"));
    let found = predict(&machine.unwrap(), &[(Direction::Read, 0, 4096)]);
    let node = 200 + 4 * 10_000 + FIRST_NS + 1024 + 5_000 + 1024;
    assert_eq!(time_ns(&found, Op::Read), 1_000 + link_ns(200) + node + link_ns(4096) + 4096);
}

#[test]
fn a_strip_may_be_larger_than_the_buffer_if_its_units_are_not() {
    let text = MACHINE.replace("CACHE", "").replace("strip = \"1 KiB\"", "strip = \"2 MiB\"");
    let found = predict(&Machine::parse("large.toml", &text).unwrap(), &[(Direction::Write, 0, 2 << 20)]);
    assert!(time_ns(&found, Op::Write) > 2048 * DISK_NS);
}

#[test]
fn memory_drops_a_file_that_is_emptied() {
    let read_ns = |size| {
        let mut emptied = workload(&[(Direction::Write, 0, 1024), (Direction::Read, 0, 1024)]);
        let step = |what| Step { think: Duration::ZERO, idle: Duration::from_picoseconds(1 << 40), what };
        let cut = |size| step(What::Resize(HandleId(0), Call::Ftruncate, size));
        emptied.programs[0].splice(1..1, [cut(size), cut(1024)]);
        let (hints, options) = (Hints::default(), Options::default());
        let strategy = Strategy::Independent;
        let found =
            simulate(&machine(CACHE), &emptied, strategy, &hints, &options, None, &mut |_| ()).unwrap();
        time_ns(&found, Op::Read)
    };
    let hit = 1_000 + link_ns(200) + 200 + 10_000 + 5_000 + 1024 + link_ns(1024) + 1024;
    assert_eq!(read_ns(1024), hit, "its size stays");
    assert!(read_ns(0) > hit + DISK_NS, "it is fetched");
}

#[test]
fn what_the_memory_has_moves_whole() {
    // A strip on four units is fetched in four requests, and given out in one.
    let text = MACHINE.replace("CACHE", CACHE).replace("strip = \"1 KiB\"", "strip = \"4 KiB\"");
    let machine = Machine::parse("units.toml", &text).unwrap();
    let read_ns = |count: usize| {
        let requests = vec![(Direction::Read, 0, 4096); count];
        time_ns(&predict(&machine, &requests), Op::Read)
    };
    let hit = 200 + 10_000 + 5_000 + 4096;
    assert_eq!(read_ns(3) - read_ns(2), 1_000 + link_ns(200) + link_ns(4096) + 4096 + hit);
}

#[test]
fn a_file_that_is_emptied_while_it_is_read_leaves_the_memory_then() {
    let read_ns = |size| {
        let step = |idle, what| Step { think: Duration::ZERO, idle, what };
        let read = |handle, offset, bytes| {
            let direction = Direction::Read;
            What::Request { handle: HandleId(handle), call: Call::Pread, direction, offset, bytes }
        };
        let at = |milliseconds: u64| Duration::from_picoseconds(milliseconds * 1_000_000_000);
        let mut emptied = workload(&[]);
        emptied.handles.push(Open { file: 0, rank: 1, group: None, collective: 0 });
        // The first rank still waits for the disk when the other one cuts the file.
        emptied.programs[0] = vec![step(at(0), read(0, 0, 1024)), step(at(9), read(0, 0, 1024))];
        emptied.programs.push(vec![step(at(1), What::Resize(HandleId(1), Call::Ftruncate, size))]);
        let (hints, options) = (Hints::default(), Options::default());
        let strategy = Strategy::Independent;
        let found =
            simulate(&machine(CACHE), &emptied, strategy, &hints, &options, None, &mut |_| ()).unwrap();
        time_ns(&found, Op::Read)
    };
    assert!(read_ns(0) >= read_ns(1024) + DISK_NS, "it is fetched anew");
}

#[test]
fn a_prediction_ends_with_its_ranks_and_not_with_a_rebuild() {
    let disk = "disk = { count = 1, seek = \"1 ms\", bandwidth = \"10 MB/s\", queue = \"fcfs\" }";
    let group = |raid: &str| {
        format!(
            "disk = {{ count = 4, seek = \"1 ms\", bandwidth = \"10 MB/s\", raid = {{ level = 5{raid} }} }}"
        )
    };
    let found = |raid: &str| {
        let text = MACHINE.replace("CACHE", "").replace(disk, &group(raid));
        predict(&Machine::parse("by-hand.toml", &text).unwrap(), &[(Direction::Read, 0, 1024)])
    };
    // 30 years, which is longer than time is counted.
    let rebuilt = found(", failed = [3], rebuild = { rate = \"1 kB/s\", bytes = \"1 TB\" }");
    assert_eq!(rebuilt.makespan, found(", failed = [3]").makespan);
}
