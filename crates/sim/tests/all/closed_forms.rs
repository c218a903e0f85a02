//! What can be computed by hand: the simulator gives it to the picosecond.

use pio_layout::{Datatype, View};
use pio_machine::{Duration, Machine, Nodes, Storage};
use pio_plan::{Direction, Hints, Strategy};
use pio_sim::workload::{Open, Step, What, Workload};
use pio_sim::{Options, Prediction, SimError, simulate};
use pio_trace::{Call, File, Flags, HandleId, Op, ViewId};

/// Numbers that add up in one's head: 1 GB/s is 1 ns a byte.
const MACHINE: &str = r#"
name = "by-hand"
source = "made up"
[nodes]
count = 8
cores = 2
switch = "0 s"
copy = { bandwidth = "1 GB/s", piece = "10 ns" }
[messages]
send = "3 us"
receive = "4 us"
local-latency = "500 ns"
[network]
kind = "flat"
link = { bandwidth = "1 GB/s", latency = "100 ns" }
[storage]
kind = "striped"
io = { count = 2, placement = "clustered", dedicated = true }
strip = "1 KiB"
read = { request = "20 us", bandwidth = "1 GB/s" }
write = { request = "10 us", bandwidth = "0.5 GB/s" }
open = "7 us"
close = "0 s"
[calls]
open = "5 us"
close = "2 us"
seek = "1 us"
read = { call = "1 us", bandwidth = "1 GB/s" }
write = { call = "1 us", bandwidth = "1 GB/s" }
"#;

const LOCAL: &str = "[storage]\nkind = \"local\"\nexclusive-writes = true\n[calls]";

const SHARED: &str = r#"[storage]
kind = "shared"
read = { request = "20 us", bandwidth = "1 GB/s" }
write = { request = "10 us", bandwidth = "0.5 GB/s" }
sync = { request = "40 us", bandwidth = "1 GB/s" }
request = "4 KiB"
callback = "100 us"
lock-strip = "1 KiB"
exclusive = "growth"
open = "50 us"
create = "5 us"
close = "1 us"
resize = "60 us"
lock = "9 us"
stat = "20 us"
unlink = "30 us"
[calls]"#;

fn machine(changes: &[(&str, &str)]) -> Machine {
    let mut text = MACHINE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "no {from}");
        text = text.replace(from, to);
    }
    Machine::parse("by-hand.toml", &text).unwrap()
}

fn local_machine(exclusive: bool) -> Machine {
    let start = MACHINE.find("[storage]").unwrap();
    let end = MACHINE.find("[calls]").unwrap();
    let storage = LOCAL.replace("true", if exclusive { "true" } else { "false" });
    machine(&[(&MACHINE[start..end + "[calls]".len()], &storage)])
}

/// Files in a file system that the nodes share.
fn shared_machine() -> Machine {
    shared_machine_with("", "")
}

/// The same, with something else in its description.
fn shared_machine_with(from: &str, to: &str) -> Machine {
    let start = MACHINE.find("[storage]").unwrap();
    let end = MACHINE.find("[calls]").unwrap();
    machine(&[(&MACHINE[start..end + "[calls]".len()], &SHARED.replace(from, to))])
}

/// Ranks with these programs, all on one file that each has open (through MPI, together).
fn workload(programs: Vec<Vec<What>>) -> Workload {
    let ranks = programs.len() as u32;
    let steps = |program: Vec<What>| {
        program.into_iter().map(|what| Step { think: Duration::ZERO, idle: Duration::ZERO, what }).collect()
    };
    Workload {
        name: "test".to_owned(),
        files: vec![File { path: "/f".to_owned() }],
        handles: (0..ranks).map(|rank| Open { file: 0, rank, group: Some(0), collective: 1 }).collect(),
        views: vec![View::contiguous(0)],
        groups: vec![(0..ranks).collect()],
        programs: programs.into_iter().map(steps).collect(),
        ..Workload::default()
    }
}

fn request(rank: u32, direction: Direction, offset: u64, bytes: u64) -> What {
    let call = if direction == Direction::Read { Call::Pread } else { Call::Pwrite };
    What::Request { handle: HandleId(rank), call, direction, offset, bytes }
}

fn predict(machine: &Machine, workload: &Workload, options: Options) -> Result<Prediction, SimError> {
    let hints = Hints::default();
    simulate(machine, workload, Strategy::TwoPhase, &hints, &options, None, &mut |_| {})
}

fn nanoseconds(machine: &Machine, programs: Vec<Vec<What>>) -> u64 {
    let found = predict(machine, &workload(programs), Options::default()).unwrap();
    assert_eq!(found.makespan.picoseconds() % 1000, 0);
    found.makespan.picoseconds() / 1000
}

#[test]
fn one_write_costs_its_way_there_and_back() {
    let program = vec![request(0, Direction::Write, 0, 1000)];
    // Call 1000 and its bytes 1000, two links 200, the bytes 1000, service 10000 + 2000, back 200.
    assert_eq!(nanoseconds(&machine(&[]), vec![program]), 15_400);
}

#[test]
fn one_read_costs_its_way_there_and_back() {
    let program = vec![request(0, Direction::Read, 0, 1000)];
    // Call 1000, two links 200, service 20000 + 1000, back 200, the bytes 1000, and the caller's 1000.
    assert_eq!(nanoseconds(&machine(&[]), vec![program]), 24_400);
}

#[test]
fn a_request_over_two_servers_is_served_by_both_at_once() {
    let program = vec![request(0, Direction::Write, 24, 2000)];
    // Server 0 has bytes 24..1024 (1000), server 1 bytes 1024..2024 (1000): the second part leaves 1000 later.
    assert_eq!(nanoseconds(&machine(&[]), vec![program]), 1000 + 2000 + 1000 + 200 + 1000 + 12_000 + 200);
}

#[test]
fn many_ranks_at_one_server_take_the_sum_of_its_service() {
    let program = |rank| vec![request(rank, Direction::Write, 0, 1000)];
    let programs = (0..5).map(program).collect();
    // As for one, but the last is served after the four others.
    assert_eq!(nanoseconds(&machine(&[]), programs), 15_400 + 4 * 12_000);
}

#[test]
fn long_requests_of_many_ranks_end_together() {
    let slow = machine(&[(
        "read = { request = \"20 us\", bandwidth = \"1 GB/s\" }",
        "read = { request = \"20 us\", bandwidth = \"0.25 GB/s\" }",
    )]);
    for ranks in [1, 2, 5] {
        let program = |rank| vec![request(rank, Direction::Read, 0, 4096)];
        let found = predict(&slow, &workload((0..ranks).map(program).collect()), Options::default()).unwrap();
        // Of each, both servers have two strips, which take 4096 each. The strips take turns: the last rank is served
        // when all are, each other one a strip before the next.
        let served = |rank: u32| u64::from(ranks) * (20_000 + 8192) - u64::from(ranks - 1 - rank) * 4096;
        // Call 1000, two links 200, back 200, the bytes 4096 by one link, and the caller's 4096.
        let all: u64 = (0..ranks).map(|rank| 1200 + served(rank) + 200 + 4096 + 4096).sum();
        assert_eq!(found.operation(Op::Read).time.picoseconds(), all * 1000, "{ranks} ranks");
        let last = 1200 + u64::from(ranks) * 28_192 + 200 + 4096 + 4096;
        assert_eq!(found.makespan.picoseconds(), last * 1000, "{ranks} ranks");
    }
}

#[test]
fn a_link_carries_no_more_than_its_bandwidth() {
    let fast = machine(&[(
        "write = { request = \"10 us\", bandwidth = \"0.5 GB/s\" }",
        "write = { request = \"0 s\", bandwidth = \"1000 GB/s\" }",
    )]);
    let program = |rank| vec![request(rank, Direction::Write, 0, 1000)];
    let programs = (0..8).map(program).collect();
    // All eight arrive at once at the one link into the server, which then serves in 1 ns.
    assert_eq!(nanoseconds(&fast, programs), 2000 + 200 + 8 * 1000 + 1 + 200);
}

/// Two servers on the ranks' one node, whose cores they take by turns with ranks.
fn servers_on_cores(cores: u32) -> Machine {
    machine(&[
        ("count = 8\ncores = 2", &format!("count = 1\ncores = {cores}")),
        ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true"),
    ])
}

#[test]
fn servers_on_the_ranks_cores_take_turns_with_them() {
    let program = || vec![request(0, Direction::Write, 24, 2000)];
    // Call 1000 and its bytes 2000, on the way 500; two parts of 10000 + 2000, at once or one after the other; back 500. Who sends keeps
    // its core until that is there.
    assert_eq!(nanoseconds(&servers_on_cores(2), vec![program()]), 3000 + 500 + 12_000 + 500);
    assert_eq!(nanoseconds(&servers_on_cores(1), vec![program()]), 3000 + 500 + 2 * (12_000 + 500));
    // A rank that computes has the core first: its 20000 and its seek, then the servers' turn.
    let mut beside = workload(vec![program(), vec![What::Seek(HandleId(1), Call::Lseek)]]);
    beside.programs[1][0].think = Duration::from_picoseconds(20_000_000);
    let found = predict(&servers_on_cores(1), &beside, Options::default()).unwrap();
    assert_eq!(found.makespan.picoseconds(), (3000 + 500 + 20_000 + 1000 + 2 * (12_000 + 500)) * 1000);
    assert_eq!(found.bytes_between_nodes, 0);
}

#[test]
fn a_rank_copies_while_its_servers_work() {
    let on = |cores: u32, direction, count: u64| {
        let machine = servers_on_cores(cores).with("storage.takes-views", "true").unwrap();
        let machine = machine.with("storage.strip", "64 KiB").unwrap().with("storage.io.count", "1").unwrap();
        nanoseconds(&machine, vec![vec![request(0, direction, 0, count << 20)]])
    };
    let (mib, half) = (1 << 20, 512 << 10);
    // Written are 1 MiB at a time: the rank copies one in 1 ns a byte while the server, which takes two, has that before it.
    assert_eq!(on(2, Direction::Write, 3), 1000 + mib + 500 + 3 * (10_000 + 2 * mib) + 500);
    // Read are 512 KiB at a time: the server takes as long for the bytes as the rank, and 20 us more.
    assert_eq!(on(2, Direction::Read, 2), 1000 + 500 + 4 * (20_000 + half) + 500 + half);
    // On one core each waits for the other.
    assert_eq!(on(1, Direction::Write, 1), 1000 + mib + 500 + 10_000 + 2 * mib + 500);
    assert_eq!(on(1, Direction::Write, 2), 1000 + 2 * mib + 500 + 2 * (10_000 + 2 * mib) + 500);
}

#[test]
fn more_threads_than_can_be_simulated_are_refused() {
    let machine = servers_on_cores(2).with("storage.io.count", "1048576").unwrap();
    let programs = vec![vec![request(0, Direction::Write, 24, 2000)]; 5000];
    let error = predict(&machine, &workload(programs), Options::default()).unwrap_err().to_string();
    let expected =
        "machine by-hand: storage.io.count = 1048576: each of these I/O servers shares cores with 5000 ranks";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_network_that_cannot_be_is_named_by_machine_and_key() {
    let graph = "kind = \"graph\"\nswitching = \"flow\"\nflow = { routes = \"static\" }\nswitches = [{ name = \"a\", nodes = \"0-9\", links = [\"b\"] }]";
    let machine = machine(&[("kind = \"flat\"", graph)]);
    let program = vec![request(0, Direction::Write, 24, 2000)];
    let error = predict(&machine, &workload(vec![program]), Options::default()).unwrap_err().to_string();
    let expected = "machine by-hand: network.switches: graph: switch a has a link to b, which is no switch";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn pages_that_other_nodes_keep_take_this_one_no_time_to_let_go_of() {
    let local = ("open = \"5 us\"", "dropped-pages = \"1 MB/s\"\nopen = \"5 us\"");
    let program = || {
        let cut = What::Resize(HandleId(0), Call::Ftruncate, 0);
        vec![vec![request(0, Direction::Write, 0, 4096), cut]]
    };
    assert_eq!(nanoseconds(&machine(&[local]), program()), nanoseconds(&machine(&[]), program()));
}

#[test]
fn how_many_ranks_share_cores_with_servers_makes_requests_longer_or_shorter() {
    let time = |cores: u32, request: &str| {
        let barrier = format!("request = \"{request}\", barrier");
        let costs = mpi_io(false, "0 s", ["0 s"; 5]).replacen("barrier", &barrier, 1);
        let alone = "{ ranks = 1, first-open = \"0 s\", open = \"0 s\", close = \"0 s\", view = \"0 s\", \
                     request = \"11 us\", barrier = \"0 s\" }";
        let costs = costs.replacen("[ ", &format!("[ {alone}, "), 1);
        let machine = machine(&[
            ("count = 8\ncores = 2", &format!("count = 1\ncores = {cores}")),
            ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true"),
            ("[calls]", &format!("{costs}[calls]")),
        ]);
        nanoseconds(
            &machine,
            (0..2).map(|rank| vec![self::request(rank, Direction::Write, 0, 1000)]).collect(),
        )
    };
    // Of two ranks, each takes 20 us of the core; one alone takes 11. The two threads have it one after the other.
    assert_eq!(time(1, "40 us") - time(1, "0 s"), 2 * (20 - 11) * 1000);
    assert_eq!(time(1, "22 us"), time(1, "0 s"));
    // Where each has a core to itself, they may be shorter.
    assert_eq!(time(2, "40 us"), time(2, "0 s"));
    assert_eq!(time(2, "0 s") - time(2, "7 us"), (11 - 7) * 1000);
}

#[test]
fn who_has_written_goes_on_when_it_has_a_core() {
    let mut beside = workload(vec![
        vec![request(0, Direction::Write, 0, 1000)],
        vec![What::Seek(HandleId(1), Call::Lseek)],
    ]);
    let other = &mut beside.programs[1][0];
    (other.idle, other.think) =
        (Duration::from_picoseconds(3_000_000), Duration::from_picoseconds(20_000_000));
    let found = predict(&servers_on_cores(1), &beside, Options::default()).unwrap();
    // The server has the core from 2500 to 15000, when the answer is there; the other rank, which wants it since 3000, is the next. The
    // answer is heard when that one has computed and sought.
    assert_eq!(2 * found.io_time_mean.picoseconds(), (15_000 + 20_000 + 1000 + 1000) * 1000);
}

#[test]
fn a_server_on_the_ranks_cores_has_a_thread_for_each_rank() {
    let program = |rank| vec![request(rank, Direction::Write, 0, 1000)];
    // All to the first server: each of its threads has a core.
    assert_eq!(nanoseconds(&servers_on_cores(4), (0..4).map(program).collect()), 2000 + 500 + 12_000 + 500);
}

#[test]
fn a_core_that_sleeps_must_be_woken_for_a_request_or_an_answer() {
    let woken_in = |cores: u32, ranks: u32, times: &str| {
        let shares = format!("\"clustered\", dedicated = false, shares-cores = true, {times}");
        let cores = format!("count = 1\ncores = {cores}");
        let machine =
            machine(&[("count = 8\ncores = 2", &cores), ("\"clustered\", dedicated = true", &*shares)]);
        nanoseconds(&machine, (0..ranks).map(|rank| vec![request(rank, Direction::Write, 0, 1000)]).collect())
    };
    let wake = "wake = \"700 ns\"";
    let woken = |cores, ranks| woken_in(cores, ranks, wake);
    // A rank and the thread that works for it take turns on one core.
    assert_eq!(woken(1, 1), 2000 + 500 + 12_000 + 500);
    assert_eq!(woken(2, 2), 2000 + 500 + 12_000 + 500);
    // What is left over sleeps; the rank still looks out when the answer comes.
    // Where only one time is known, it holds for cores that are fast asleep, too.
    assert_eq!(woken(2, 1), 2000 + 500 + 700 + 12_000 + 500);
    assert_eq!(woken_in(2, 1, &format!("{wake}, deep-wake = \"900 ns\"")), 2000 + 500 + 900 + 12_000 + 500);
}

#[test]
fn a_thread_that_was_just_woken_goes_on_where_who_woke_it_was() {
    let cores = "count = 1\ncores = 1\nquantum = \"4 ms\"\nslice = \"2 ms\"";
    let shares = "\"clustered\", dedicated = false, shares-cores = true";
    let machine = machine(&[("count = 8\ncores = 2", cores), ("\"clustered\", dedicated = true", shares)]);
    let mut beside = workload(vec![
        vec![request(0, Direction::Write, 0, 1000); 100],
        vec![What::Seek(HandleId(1), Call::Lseek)],
    ]);
    beside.programs[1][0].think = Duration::from_picoseconds(100_000_000_000);
    let found = predict(&machine, &beside, Options::default()).unwrap();
    // The two work for 1.5 ms. The other one, which wants the core all the time, has it for a turn of 4 ms each time that they have had
    // more than it: not whenever one of them has gone to sleep.
    let rounded_ms = |picoseconds: u64| picoseconds.div_ceil(1_000_000_000);
    assert_eq!(rounded_ms(2 * found.io_time_mean.picoseconds()), 2 + 5 * 4);
}

#[test]
fn a_servers_thread_writes_new_pages_for_longer() {
    let new_pages = ("\n[calls]\n", "\n[calls]\nnew-pages = { call = \"2 us\", bandwidth = \"1 GB/s\" }\n");
    let shares = ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true");
    let on = |offset, bytes, writes: usize, folio: &str| {
        let machine = machine(&[("count = 8", "count = 1"), shares, new_pages, ("1 KiB", "64 KiB")]);
        let machine = machine.with("calls.new-folio", folio).unwrap();
        nanoseconds(&machine, vec![vec![request(0, Direction::Write, offset, bytes); writes]])
    };
    let again = 2000 + 500 + 12_000 + 500;
    assert_eq!(on(0, 1000, 1, "0 s"), again + 2000 + 4096);
    assert_eq!(on(0, 1000, 2, "0 s"), 2 * again + 2000 + 4096);
    // Where they lie in several folios, as the kernel makes them: of 4, 8, 16 and 8 KiB behind the first page.
    let longer = |offset, bytes| on(offset, bytes, 1, "3 us") - on(offset, bytes, 1, "0 s");
    assert_eq!([longer(0, 32 << 10), longer(4096, 36 << 10)], [0, 3 * 3000]);
}

#[test]
fn a_server_that_did_not_work_for_the_rank_last_takes_longer() {
    let shares = "\"clustered\", dedicated = false, shares-cores = true, change = \"5 us\"";
    let machine = machine(&[("count = 8", "count = 1"), ("\"clustered\", dedicated = true", shares)]);
    let after = |last: &[u64], offset, bytes| {
        let program = |offsets: &[u64]| {
            offsets.iter().map(|at| request(0, Direction::Write, *at, 1000)).collect::<Vec<_>>()
        };
        let with = [program(last), vec![request(0, Direction::Write, offset, bytes)]].concat();
        nanoseconds(&machine, vec![with]) - nanoseconds(&machine, vec![program(last)])
    };
    let one = 2000 + 500 + 12_000 + 500;
    assert_eq!(
        [after(&[0], 0, 1000), after(&[0], 1024, 1000), after(&[0, 1024], 1024, 1000)],
        [one, one + 5000, one]
    );
    // Two at once, on a core each: the second one's thread comes after the first one's.
    assert_eq!(after(&[0, 1024], 24, 2000), one + 1000 + 5000);
}

#[test]
fn the_first_write_to_a_file_takes_each_server_longer() {
    let resizes = ("\n[storage]\n", "\n[storage]\nresize = \"1 us\"\n");
    let begins = (resizes.0, "\n[storage]\nresize = \"1 us\"\nbegin = \"50 us\"\n");
    let shares = ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true");
    let write = || request(0, Direction::Write, 0, 1000);
    let sync = || What::Sync(HandleId(0), Call::Fsync);
    for machine in [vec![begins], vec![begins, ("count = 8", "count = 1"), shares]] {
        let longer = |program: Vec<What>| {
            let without: Vec<_> =
                machine.iter().map(|&change| if change == begins { resizes } else { change }).collect();
            let time = |changes: &[(&str, &str)]| nanoseconds(&self::machine(changes), vec![program.clone()]);
            time(&machine) - time(&without)
        };
        assert_eq!(longer(vec![write()]), 50_000);
        assert_eq!(longer(vec![write(), write()]), 50_000);
        assert_eq!(longer(vec![request(0, Direction::Read, 0, 1000)]), 0);
        // Two servers begin at the same moment.
        assert_eq!(longer(vec![request(0, Direction::Write, 24, 2000)]), 50_000);
        // One after the other.
        assert_eq!(longer(vec![write(), request(0, Direction::Write, 1024, 1000)]), 100_000);
        assert_eq!(longer(vec![write(), sync(), write()]), 100_000);
        // A new file that gets a size has parts then, on all servers at once; what has parts already does not.
        let resize = |bytes| What::Resize(HandleId(0), Call::Ftruncate, bytes);
        assert_eq!(longer(vec![resize(1000), write()]), 50_000);
        assert_eq!(longer(vec![resize(2048), write(), request(0, Direction::Write, 1024, 1000)]), 50_000);
        assert_eq!(longer(vec![resize(1000), request(0, Direction::Write, 1024, 1000)]), 100_000);
        assert_eq!(longer(vec![resize(0), write(), resize(1000)]), 50_000);
        assert_eq!(longer(vec![write(), sync(), resize(3000)]), 50_000);
    }
}

#[test]
fn the_first_request_of_a_rank_to_a_server_connects() {
    let views = ("\n[calls]\n", "\ntakes-views = true\n[calls]\n");
    let connects = (views.0, "\ntakes-views = true\nconnect = \"50 us\"\n[calls]\n");
    let shares = ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true");
    let at = |direction, offset, bytes| request(0, direction, offset, bytes);
    for others in [vec![], vec![("count = 8", "count = 1"), shares]] {
        let longer = |program: Vec<What>| {
            let time = |change| {
                let machine = machine(&[&others[..], &[change]].concat());
                nanoseconds(&machine, vec![program.clone()])
            };
            time(connects) - time(views)
        };
        for direction in [Direction::Read, Direction::Write] {
            assert_eq!(longer(vec![at(direction, 0, 1000)]), 50_000);
            assert_eq!(longer(vec![at(direction, 0, 1000), at(direction, 0, 1000)]), 50_000);
            // To two servers, one after the other.
            assert_eq!(longer(vec![at(direction, 24, 2000)]), 100_000);
            // It asked for the file's name there.
            assert_eq!(longer(vec![What::Open(HandleId(0)), at(direction, 0, 1000)]), 0);
            assert_eq!(longer(vec![What::Open(HandleId(0)), at(direction, 24, 2000)]), 50_000);
        }
    }
}

#[test]
fn memory_through_which_data_go_takes_time_when_it_is_new() {
    let longer = |program: &[(Direction, u64, u64)]| {
        let program: Vec<_> = program
            .iter()
            .map(|(direction, offset, bytes)| request(0, *direction, *offset, *bytes))
            .collect();
        let time = |channel: &str| {
            let shares = format!("\"clustered\", dedicated = false, shares-cores = true{channel}");
            let views = ("\n[calls]\n", "\ntakes-views = true\n[calls]\n");
            let shares = ("\"clustered\", dedicated = true", &*shares);
            nanoseconds(&machine(&[("count = 8", "count = 1"), shares, views]), vec![program.clone()])
        };
        time(", channel = \"1 GB/s\"") - time("")
    };
    for (way, back) in [(Direction::Write, Direction::Read), (Direction::Read, Direction::Write)] {
        assert_eq!(longer(&[(way, 0, 500)]), 500);
        assert_eq!(longer(&[(way, 0, 500), (way, 500, 500)]), 500);
        assert_eq!(longer(&[(way, 0, 500), (way, 0, 700)]), 700);
        // Each way has its own, and each server.
        assert_eq!(longer(&[(way, 0, 500), (back, 0, 500)]), 1000);
        assert_eq!(longer(&[(way, 0, 500), (way, 1024, 500)]), 1000);
    }
}

#[test]
fn a_server_lets_one_rank_at_a_time_write_whole_blocks_of_a_file() {
    let changes = [
        ("count = 8\ncores = 2", "count = 1\ncores = 4\nwake = \"3 us\""),
        ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true"),
        ("\n[calls]\n", "\ntakes-views = true\n[calls]\n"),
        ("1 KiB", "1 MiB"),
    ];
    let machine = machine(&changes);
    let of = |direction, ranks: u32, bytes: u64| {
        let program = |rank| vec![request(rank, direction, 0, bytes)];
        nanoseconds(&machine, (0..ranks).map(program).collect())
    };
    let (block, write) = (64 << 10, Direction::Write);
    // At half a byte a nanosecond; the second is woken for it.
    assert_eq!(of(write, 2, block), of(write, 1, block) + 3000 + 2 * block);
    assert_eq!(of(write, 3, block), of(write, 1, block) + 2 * (3000 + 2 * block));
    assert_eq!(of(write, 2, block - 1), of(write, 1, block - 1));
    assert_eq!(of(Direction::Read, 2, block), of(Direction::Read, 1, block));
    // Each rank its own file.
    let mut apart = workload((0..2).map(|rank| vec![request(rank, write, 0, block)]).collect());
    apart.files.push(File { path: "/g".to_owned() });
    apart.handles[1].file = 1;
    let found = predict(&machine, &apart, Options::default()).unwrap();
    assert_eq!(found.makespan.picoseconds() / 1000, of(write, 1, block));
}

#[test]
fn a_sync_sums_the_blocks_of_which_no_write_filled_all() {
    let views = (
        "\n[calls]\n",
        "\ntakes-views = true\n[calls]\nsync = { call = \"10 us\", bandwidth = \"1 GB/s\" }\n",
    );
    let sums = ("\n[storage]\n", "\n[storage]\nsumming = \"0.5 GB/s\"\n");
    let longer = |writes: &[(u64, u64)]| {
        let writes = writes.iter().map(|(at, bytes)| request(0, Direction::Write, *at, *bytes));
        let program: Vec<What> = writes.chain([What::Sync(HandleId(0), Call::Fsync)]).collect();
        let with = nanoseconds(&machine(&[views, sums, ("1 KiB", "1 MiB")]), vec![program.clone()]);
        with - nanoseconds(&machine(&[views, ("1 KiB", "1 MiB")]), vec![program])
    };
    let block = 64 << 10;
    assert_eq!(longer(&[(0, block), (block, 3 * block)]), 0);
    assert_eq!(longer(&[(0, 8192)]), 2 * 8192);
    // Of what begins within a block and ends within another, both ends.
    assert_eq!(longer(&[(4096, 2 * block)]), 2 * block);
    // What is written again is not summed twice.
    assert_eq!(longer(&[(0, 8192), (0, 8192)]), 2 * 8192);
}

/// Nanoseconds in which one rank writes three pieces of so many bytes, with as many between them or none, by one request that lists
/// them. A server's bandwidth and time for a piece are how it puts them in place.
fn listed(bytes: u64, gap: u64, (bandwidth, piece): (&str, &str), changes: &[(&str, &str)]) -> u64 {
    let server = format!("{{ bandwidth = \"{bandwidth}\", piece = \"{piece}\" }}");
    let pieces =
        format!("close = \"0 s\"\npieces = {{ read = \"0 s\", write = \"0 s\", server = {server} }}\n");
    let machine = machine(&[&[("close = \"0 s\"\n", &*pieces), ("1 KiB", "1 MiB")], changes].concat());
    let three = Datatype::vector(3, bytes, (bytes + gap) as i64, &Datatype::bytes(1)).unwrap();
    let write = What::Access {
        handle: HandleId(0),
        call: Call::MpiFileWriteAt,
        direction: Direction::Write,
        view: ViewId(0),
        positions: 0..3 * bytes,
        collective: false,
    };
    let mut workload = workload(vec![vec![write]]);
    workload.views = vec![View::new(0, 1, three).unwrap()];
    let (hints, options) = (Hints::default(), Options::default());
    let found = simulate(&machine, &workload, Strategy::List, &hints, &options, None, &mut |_| {}).unwrap();
    found.makespan.picoseconds() / 1000
}

#[test]
fn a_server_puts_pieces_in_place_that_are_apart() {
    let (fast, slow, many) = (("1 GB/s", "0 s"), ("0.5 GB/s", "0 s"), ("1 GB/s", "10 us"));
    let views = ("\n[calls]\n", "\ntakes-views = true\n[calls]\n");
    for changes in [vec![], vec![views]] {
        let longer =
            |bytes, gap, costs| listed(bytes, gap, costs, &changes) - listed(bytes, gap, fast, &changes);
        assert_eq!((longer(200, 200, many), longer(200, 200, slow)), (30_000, 600));
        // A longer one is an access of its own, and so is one that is far from the next.
        assert_eq!((longer(9000, 9000, many), longer(9000, 9000, slow)), (30_000, 3 * 4096));
        assert_eq!((longer(500, 6000, many), longer(500, 6000, slow)), (30_000, 3 * 4096));
        assert_eq!((longer(200, 0, many), longer(200, 0, slow)), (0, 0));
    }
}

#[test]
fn pieces_that_are_long_or_far_apart_are_as_many_writes_to_new_pages() {
    let shares = ("\"clustered\", dedicated = true", "\"clustered\", dedicated = false, shares-cores = true");
    let new_pages = ("\n[calls]\n", "\n[calls]\nnew-pages = { call = \"2 us\", bandwidth = \"1 GB/s\" }\n");
    let views = ("\n[calls]\n", "\ntakes-views = true\n[calls]\n");
    let without = [("count = 8", "count = 1"), shares, views];
    let with = [&without[..], &[new_pages]].concat();
    let longer = |bytes, gap| {
        listed(bytes, gap, ("1 GB/s", "0 s"), &with) - listed(bytes, gap, ("1 GB/s", "0 s"), &without)
    };
    assert_eq!(longer(8192, 8192), 3 * (2000 + 8192));
    assert_eq!(longer(500, 6000), 3 * (2000 + 4096));
    // Short ones go together, and so do those that touch.
    assert_eq!(longer(200, 200), 2000 + 4096);
    assert_eq!(longer(8192, 0), 2000 + 3 * 8192);
}

#[test]
fn an_open_waits_for_the_directory() {
    let open = |rank| vec![What::Open(HandleId(rank))];
    // Call 5000, there 200, service 7000, back 200; three at once wait for each other.
    assert_eq!(nanoseconds(&machine(&[]), vec![open(0)]), 12_400);
    assert_eq!(nanoseconds(&machine(&[]), (0..3).map(open).collect()), 12_400 + 2 * 7000);
}

#[test]
fn the_first_open_of_a_file_that_is_written_first_makes_it() {
    let makes = machine(&[("open = \"7 us\"", "open = \"7 us\"\ncreate = \"400 us\"")]);
    let then = |direction| {
        let program = vec![What::Open(HandleId(0)), request(0, direction, 0, 1000), What::Open(HandleId(0))];
        nanoseconds(&makes, vec![program.clone()]) - nanoseconds(&machine(&[]), vec![program])
    };
    assert_eq!((then(Direction::Write), then(Direction::Read)), (400_000, 0));
}

#[test]
fn one_message_costs_both_processors_and_the_wire() {
    let program = || vec![What::Broadcast { root: 0, bytes: 1000 }];
    // Send 3000, two links 200, bytes 1000, receive 4000.
    assert_eq!(nanoseconds(&machine(&[]), vec![program(), program()]), 8200);
}

#[test]
fn a_message_within_a_node_is_copied_once() {
    let program = || vec![What::Broadcast { root: 0, bytes: 1000 }];
    let options = Options { ranks_per_node: Some(2), ..Options::default() };
    let found = predict(&machine(&[]), &workload(vec![program(), program()]), options).unwrap();
    // Send 3000, on the way 500, receive 4000, copy 1000 and 10 for its one piece.
    assert_eq!((found.makespan.picoseconds(), found.bytes_between_nodes), (8_510_000, 0));
}

#[test]
fn ranks_that_share_a_core_take_turns() {
    let seek = |rank| vec![What::Seek(HandleId(rank), Call::Lseek)];
    let programs = || workload((0..4).map(seek).collect());
    let options = Options { ranks_per_node: Some(4), ..Options::default() };
    let on = |switch: &str| {
        let one =
            machine(&[("cores = 2", "cores = 1"), ("switch = \"0 s\"", &format!("switch = \"{switch}\""))]);
        predict(&one, &programs(), options).unwrap().makespan.picoseconds()
    };
    assert_eq!(on("0 s"), 4_000_000);
    // Three changes from one rank to the next.
    assert_eq!(on("100 ns"), 4_300_000);
    let two = predict(&machine(&[]), &programs(), options).unwrap();
    assert_eq!(two.makespan.picoseconds(), 2_000_000);
}

#[test]
fn writers_of_one_local_file_exclude_each_other_where_the_kernel_does() {
    let options = Options { ranks_per_node: Some(2), ..Options::default() };
    let write = |rank| vec![request(rank, Direction::Write, u64::from(rank) * 4000, 4000)];
    let read = |rank| vec![request(rank, Direction::Read, u64::from(rank) * 4000, 4000)];
    let time = |exclusive, program: &dyn Fn(u32) -> Vec<What>| {
        let programs = workload((0..2).map(program).collect());
        predict(&local_machine(exclusive), &programs, options).unwrap().makespan.picoseconds()
    };
    assert_eq!(time(true, &write), 10_000_000);
    assert_eq!(time(false, &write), 5_000_000);
    assert_eq!(time(true, &read), 5_000_000);
}

/// Ranks of a node write three pieces of 1000 bytes each to one local file, which take 2 us, with these changes to the
/// machine.
fn writers_of_pieces(ranks: u32, changes: &[(&str, &str)]) -> Prediction {
    let text = changes.iter().fold(MACHINE.to_owned(), |text, (from, to)| text.replace(from, to));
    let (before, after) = (text.find("[storage]").unwrap(), text.find("[calls]").unwrap());
    let text = format!("{}{LOCAL}{}", &text[..before], &text[after + "[calls]".len()..]);
    let machine = Machine::parse("by-hand.toml", &text).unwrap();
    let three = Datatype::vector(3, 1000, 2000, &Datatype::bytes(1)).unwrap();
    let write = |rank| What::Access {
        handle: HandleId(rank),
        call: Call::MpiFileWriteAt,
        direction: Direction::Write,
        view: ViewId(0),
        positions: 0..3000,
        collective: false,
    };
    let mut workload = workload((0..ranks).map(|rank| vec![write(rank)]).collect());
    workload.views = vec![View::new(0, 1, three).unwrap()];
    let options = Options { ranks_per_node: Some(ranks), ..Options::default() };
    let hints = Hints::default();
    simulate(&machine, &workload, Strategy::Independent, &hints, &options, None, &mut |_| {}).unwrap()
}

#[test]
fn who_writes_a_local_file_has_it_again_before_one_that_sleeps() {
    let found =
        writers_of_pieces(2, &[("cores = 2", "cores = 1"), ("switch = \"0 s\"", "switch = \"10 us\"")]);
    // The processor changes from one rank to the other once.
    assert_eq!(found.makespan.picoseconds(), 6 * 2_000_000 + 10_000_000);
}

#[test]
fn who_spins_for_a_local_file_has_it_next() {
    let found = writers_of_pieces(2, &[]);
    assert_eq!(found.makespan.picoseconds(), 6 * 2_000_000);
    // One rank has it first, third and fifth, the other second, fourth and sixth.
    assert_eq!(found.io_time_mean.picoseconds(), (10_000_000 + 12_000_000) / 2);
}

#[test]
fn nobody_spins_for_a_local_file_whose_writer_has_no_processor() {
    let found = writers_of_pieces(4, &[("cores = 2", "cores = 2\nquantum = \"3 us\"")]);
    // Writers lose their processors in the middle of writes, but the file is never kept waiting.
    assert_eq!(found.makespan.picoseconds(), 12 * 2_000_000);
}

/// Two ranks on one core, local files.
fn shared_core(calls: &str, rest: &str) -> Machine {
    let text = MACHINE.replace("cores = 2", "cores = 1\nquantum = \"10 us\"");
    let (before, after) = (text.find("[storage]").unwrap(), text.find("[calls]").unwrap());
    let text = format!("{}{LOCAL}{}{calls}{rest}", &text[..before], &text[after + "[calls]".len()..]);
    Machine::parse("by-hand.toml", &text).unwrap()
}

/// What MPI-IO costs two ranks of a node: a call, and the first open, other opens, closes, views and barriers.
fn mpi_io(spins: bool, call: &str, [first, open, close, view, barrier]: [&str; 5]) -> String {
    let together = format!(
        "{{ ranks = 2, first-open = \"{first}\", open = \"{open}\", close = \"{close}\", view = \"{view}\", \
         barrier = \"{barrier}\" }}"
    );
    let library = format!("{{ call = \"{call}\", together = [ {together} ] }}");
    format!("[mpi-io]\nspins = {spins}\npioscope = {library}\nown = {library}\n")
}

#[test]
fn ranks_take_turns_on_a_core_and_sleep_beside_it() {
    let step = |think_us: u64, idle_us: u64| Step {
        think: Duration::from_picoseconds(think_us * 1_000_000),
        idle: Duration::from_picoseconds(idle_us * 1_000_000),
        what: What::Seek(HandleId(0), Call::Lseek),
    };
    let ends = |programs: [Step; 2]| {
        let mut workload = workload(vec![Vec::new(); 2]);
        workload.programs = programs.map(|step| vec![step]).to_vec();
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        predict(&shared_core("", ""), &workload, options).unwrap().makespan.picoseconds() / 1_000_000
    };
    // Each computes 25 us, and seeks for 1 us.
    assert_eq!(ends([step(25, 0), step(25, 0)]), 52);
    // Who sleeps needs no core.
    assert_eq!(ends([step(25, 0), step(0, 25)]), 27);
    assert_eq!(ends([step(0, 25), step(0, 40)]), 41);
}

#[test]
fn pages_that_are_new_cost_more_than_those_that_are_not() {
    let new_pages = "new-pages = { call = \"2 us\", bandwidth = \"2 GB/s\" }\n";
    let time = |writes: &[(u64, u64)]| {
        let write = |(offset, bytes): &(u64, u64)| request(0, Direction::Write, *offset, *bytes);
        nanoseconds(&shared_core(new_pages, ""), vec![writes.iter().map(write).collect()])
    };
    // A call, its bytes, two pages of 4096 bytes.
    assert_eq!(time(&[(4000, 1000)]), 1_000 + 1_000 + 2_000 + 4_096);
    let once = time(&[(0, 8192)]);
    assert_eq!(time(&[(0, 8192), (100, 5000)]), once + 1_000 + 5_000);
    assert_eq!(time(&[(0, 8192), (8191, 2)]), once + 1_000 + 2 + 2_000 + 2_048);
    // Between two that are there, one is not.
    let two = time(&[(0, 4096), (8192, 4096)]);
    assert_eq!(time(&[(0, 4096), (8192, 4096), (0, 12288)]), two + 1_000 + 12_288 + 2_000 + 2_048);
}

#[test]
fn reads_find_nothing_beyond_the_end_of_a_file_that_the_program_makes() {
    let new_pages = "new-pages = { call = \"2 us\", bandwidth = \"2 GB/s\" }\n";
    let time = |program: Vec<What>| nanoseconds(&shared_core(new_pages, ""), vec![program]);
    let write = |offset, bytes| request(0, Direction::Write, offset, bytes);
    let read = |offset, bytes| request(0, Direction::Read, offset, bytes);
    // A page of a file that nobody had; one that is read first, where the program did not make the file, was there before.
    let page = 1_000 + 4_096 + 2_000 + 2_048;
    assert_eq!(time(vec![write(0, 4096)]), page);
    assert_eq!(time(vec![read(0, 4096), write(0, 4096)]), 2 * (1_000 + 4_096));
    assert_eq!(time(vec![write(0, 4096), read(2048, 4096)]), page + 1_000 + 2_048);
    assert_eq!(time(vec![write(0, 4096), read(4096, 4096), write(4096, 4096)]), page + 1_000 + page);
    // Given another size, it ends there.
    let cut = |size| What::Resize(HandleId(0), Call::Ftruncate, size);
    let made_longer = time(vec![write(0, 4096), cut(8192)]);
    assert_eq!(time(vec![write(0, 4096), cut(8192), read(4096, 4096)]), made_longer + 1_000 + 4_096);
    assert_eq!(time(vec![write(0, 4096), cut(0), write(0, 4096)]), time(vec![cut(0)]) + 2 * page);
    let preallocated = What::Resize(HandleId(0), Call::Fallocate, 100);
    assert_eq!(time(vec![write(0, 4096), preallocated, read(0, 4096)]), made_longer + 1_000 + 4_096);
}

#[test]
fn pages_that_are_cut_off_or_removed_take_time_to_leave_memory() {
    let calls = "create = \"30 us\"\nresize = \"3 us\"\nstat = \"2 us\"\nunlink = \"6 us\"\n\
                 dropped-pages = \"4 GB/s\"\nsync = { call = \"10 us\", bandwidth = \"0.1 GB/s\" }\n";
    let time = |program: Vec<What>| {
        let mut workload = workload(vec![program]);
        workload.handles[0].group = None;
        predict(&shared_core(calls, ""), &workload, Options::default()).unwrap().makespan.picoseconds() / 1000
    };
    let (open, sync) = (What::Open(HandleId(0)), What::Sync(HandleId(0), Call::Fsync));
    let write = request(0, Direction::Write, 0, 8192);
    let cut = |size| What::Resize(HandleId(0), Call::Ftruncate, size);
    let name = |call| What::Name { call, file: 0 };
    let written = time(vec![write.clone()]);
    assert_eq!(time(vec![write.clone(), cut(4096)]), written + 3_000 + 1_024);
    assert_eq!(time(vec![write.clone(), cut(4096), cut(4096)]), written + 2 * 3_000 + 1_024);
    assert_eq!(time(vec![write.clone(), name(Call::Unlink)]), written + 6_000 + 2_048);
    assert_eq!(time(vec![name(Call::Stat), name(Call::Access), name(Call::Unlink)]), 2 * 2_000 + 6_000);
    // What has left memory goes to no device; and who opens a file that was removed makes it.
    let removed = [write.clone(), name(Call::MpiFileDelete)];
    assert_eq!(time([&removed[..], &[sync]].concat()), time(removed.to_vec()));
    let again = [open.clone(), write.clone(), name(Call::Unlink), open.clone(), write.clone()];
    assert_eq!(time(again.to_vec()), 2 * time(vec![open, write]) + 6_000 + 2_048);
}

#[test]
fn files_that_are_written_anew_take_longer_to_open_and_to_close() {
    let rewrites = "rewrites = { open = { call = \"40 us\", bandwidth = \"1 GB/s\" }, \
                    close = { call = \"20 us\", bandwidth = \"2 GB/s\" } }\n";
    let time = |calls: &str, times: usize| {
        let (open, close) = (What::Open(HandleId(0)), What::Close(HandleId(0)));
        let once = [open, request(0, Direction::Write, 0, 8192), close];
        let mut workload = workload(vec![once.iter().cycle().take(3 * times).cloned().collect()]);
        workload.handles[0].group = None;
        workload.modes.insert(HandleId(0), Flags::TRUNCATE);
        let new_pages =
            "new-pages = { call = \"2 us\", bandwidth = \"2 GB/s\" }\ndropped-pages = \"4 GB/s\"\n";
        let machine = shared_core(&format!("{new_pages}{calls}"), "");
        predict(&machine, &workload, Options::default()).unwrap().makespan.picoseconds() / 1000
    };
    let once = 5_000 + 1_000 + 8_192 + 2_000 + 4_096 + 2_000;
    assert_eq!(time("", 1), once);
    // What it had leaves memory, and the pages are new again.
    assert_eq!(time("", 3), 3 * once + 2 * 2_048);
    assert_eq!(time(rewrites, 1), once);
    assert_eq!(time(rewrites, 3), 3 * once + 2 * (40_000 + 8_192 + 20_000 + 4_096));
}

#[test]
fn each_processor_has_a_cache_of_its_own() {
    let cache = "processor-cache = { size = \"1 MiB\", read = \"4 GB/s\", write = \"2 GB/s\" }\n";
    let time = |ranks: u32, cores: u32, program: Vec<(u32, Direction)>| {
        let mut machine = shared_core(cache, "");
        machine.nodes.cores = cores;
        let mut programs = vec![Vec::new(); ranks as usize];
        for (rank, direction) in program {
            programs[rank as usize].push(request(rank, direction, 0, 8192));
            // The others wait until it is done.
            programs.iter_mut().for_each(|program| program.push(What::Rendezvous));
        }
        let options = Options { ranks_per_node: Some(ranks), ..Options::default() };
        let found = predict(&machine, &workload(programs), options).unwrap();
        found.makespan.picoseconds() / 1000
    };
    let (read, write) = (Direction::Read, Direction::Write);
    let once = time(2, 2, vec![(0, write)]);
    assert_eq!(time(2, 2, vec![(0, write), (0, read)]), once + 1_000 + 8_192 / 4);
    assert_eq!(time(2, 2, vec![(0, write), (1, read)]), once + 1_000 + 8_192, "it is in the other's cache");
    assert_eq!(time(4, 2, vec![(0, write), (2, read)]) - time(4, 2, vec![(0, write)]), 1_000 + 8_192 / 4);
}

#[test]
fn a_call_takes_longer_after_other_work_as_far_as_that_lasted() {
    let longer = "after-work = { read = { call = \"2 us\", bandwidth = \"1 GB/s\" }, \
                  write = { call = \"10 us\", bandwidth = \"0.5 GB/s\" } }\n";
    let mut machine = shared_core(longer, "");
    machine.nodes.cooling = Duration::from_picoseconds(100_000_000);
    let time = |steps: &[(u64, Direction)]| {
        let mut workload = workload(vec![Vec::new()]);
        let step = |(think_us, direction): &(u64, Direction)| Step {
            think: Duration::from_picoseconds(think_us * 1_000_000),
            idle: Duration::ZERO,
            what: request(0, *direction, 0, 1000),
        };
        workload.programs = vec![steps.iter().map(step).collect()];
        let thought: u64 = steps.iter().map(|(think_us, _)| think_us * 1000).sum();
        let found = predict(&machine, &workload, Options::default()).unwrap();
        found.makespan.picoseconds() / 1000 - thought
    };
    // A call takes 1 us, its bytes another.
    let (read, write) = (Direction::Read, Direction::Write);
    let first = 2_000 + 10_000 + 2_000;
    assert_eq!(time(&[(0, write)]), first, "nothing was before");
    assert_eq!(time(&[(0, write), (0, write)]), first + 2_000);
    assert_eq!(time(&[(0, write), (50, write)]), first + 2_000 + 12_000 / 2);
    assert_eq!(time(&[(0, write), (100, read)]), first + 2_000 + 2_000 + 1_000);
    assert_eq!(time(&[(0, write), (9_000, write)]), 2 * first);
}

#[test]
fn files_that_memory_does_not_have_come_from_the_device() {
    let costs = "cold-reads = { request = \"50 us\", stream = \"0.25 GB/s\", bandwidth = \"0.5 GB/s\" }\n";
    let machine = shared_core(costs, "");
    let on = |cold: &[u32], programs: Vec<Vec<What>>| {
        let mut workload = workload(programs);
        workload.cold_files.extend(cold);
        predict(&machine, &workload, Options::default()).unwrap().makespan.picoseconds() / 1000
    };
    let read = |rank, offset, bytes| request(rank, Direction::Read, offset, bytes);
    // In memory: a call and its bytes. From the device: the first page's request, then 4 ns a byte of whole pages; the bytes are
    // copied meanwhile.
    assert_eq!(on(&[], vec![vec![read(0, 0, 8192)]]), 1_000 + 8_192);
    let first = 50_000 + 4 * 8_192;
    assert_eq!(on(&[0], vec![vec![read(0, 0, 8192)]]), first);
    // Who goes on finds the kernel ahead; who reads again finds all there; who jumps asks anew.
    assert_eq!(on(&[0], vec![vec![read(0, 0, 8192), read(0, 8192, 4096)]]), first + 4 * 4096);
    assert_eq!(on(&[0], vec![vec![read(0, 0, 8192), read(0, 0, 8192)]]), first + 1_000 + 8_192);
    assert_eq!(on(&[0], vec![vec![read(0, 0, 8192), read(0, 40_960, 100)]]), first + 50_000 + 4 * 4096);
    // What the program has written is there.
    let written = request(0, Direction::Write, 0, 8192);
    assert_eq!(
        on(&[0], vec![vec![written.clone(), read(0, 0, 8192)]]),
        on(&[], vec![vec![written, read(0, 0, 8192)]])
    );
}

#[test]
fn readers_share_a_device() {
    let costs = "cold-reads = { request = \"0 s\", stream = \"0.25 GB/s\", bandwidth = \"0.5 GB/s\" }\n";
    let mut machine = shared_core(costs, "");
    machine.nodes.cores = 8;
    let of = |ranks: u32| {
        let mut workload = workload(
            (0..ranks)
                .map(|rank| vec![request(rank, Direction::Read, u64::from(rank) << 20, 1 << 20)])
                .collect(),
        );
        workload.cold_files.insert(0);
        let options = Options { ranks_per_node: Some(ranks), ..Options::default() };
        predict(&machine, &workload, options).unwrap().makespan.picoseconds() / 1000
    };
    // Up to two readers get 4 ns a byte each, more share 2 ns a byte of the device.
    assert_eq!((of(1), of(2)), (4 << 20, 4 << 20));
    assert_eq!(of(4), 8 << 20);
}

#[test]
fn requests_cost_more_whose_memory_is_a_little_before_or_behind_their_place() {
    // Large memory begins 16 bytes into a page.
    let askew_of = |reach: &str, direction: Direction, offset: u64, bytes: u64| {
        let machine = shared_core(&format!("askew = \"1 GB/s\"\n{reach}"), "");
        let time = nanoseconds(&machine, vec![vec![request(0, direction, offset, bytes)]]);
        let usual = nanoseconds(&shared_core("", ""), vec![vec![request(0, direction, offset, bytes)]]);
        time - usual
    };
    let askew = |direction, offset, bytes| askew_of("", direction, offset, bytes);
    let (page, large) = (4096, 200_000);
    for (offset, write, read) in [
        (0, 0, large),
        (15, 0, large),
        (16, 0, 0),
        (17, large, 0),
        (47, large, 0),
        (48, 0, 0),
        (page - 15, 0, large),
        (page - 16, 0, 0),
    ] {
        assert_eq!(askew(Direction::Write, offset, large), write, "write at {offset}");
        assert_eq!(askew(Direction::Read, offset, large), read, "read at {offset}");
    }
    assert_eq!(askew(Direction::Write, 24, 100_000), 0, "small memory may be anywhere");
    for (offset, write) in [(16, 0), (17, large), (31, large), (32, 0)] {
        assert_eq!(askew_of("askew-reach = \"16 B\"\n", Direction::Write, offset, large), write, "{offset}");
    }
}

#[test]
fn files_that_a_program_writes_first_are_made_by_it() {
    let time = |calls: &str, direction| {
        let (open, close) = (What::Open(HandleId(0)), What::Close(HandleId(0)));
        let moved = request(0, direction, 0, 1000);
        let program = vec![open.clone(), moved.clone(), close.clone(), open, moved, close];
        let mut workload = workload(vec![program]);
        workload.handles[0].group = None;
        let options = Options { ranks_per_node: Some(1), ..Options::default() };
        predict(&shared_core(calls, ""), &workload, options).unwrap().makespan.picoseconds() / 1_000_000
    };
    let create = "create = \"30 us\"\n";
    assert_eq!(time("", Direction::Write), 2 * (5 + 1 + 1 + 2));
    assert_eq!(time(create, Direction::Write), 2 * (5 + 1 + 1 + 2) + 30);
    assert_eq!(time(create, Direction::Read), time("", Direction::Read));
}

#[test]
fn a_sync_waits_for_what_was_written_since_the_last_one() {
    let calls = "resize = \"3 us\"\nsync = { call = \"10 us\", bandwidth = \"0.1 GB/s\" }\n";
    let handle = HandleId(0);
    let write = request(0, Direction::Write, 0, 1000);
    let sync = What::Sync(handle, Call::Fsync);
    let time = |program: Vec<What>| nanoseconds(&shared_core(calls, ""), vec![program]);
    // Both wrote the same page. What was synced need not be once more.
    assert_eq!(time(vec![write.clone(), write.clone(), sync.clone()]), 2 * 2_000 + 10_000 + 40_960);
    assert_eq!(time(vec![write, sync.clone(), sync]), 2_000 + 10_000 + 40_960);
    assert_eq!(time(vec![What::Resize(handle, Call::Ftruncate, 0)]), 3_000);
}

#[test]
fn a_sync_waits_for_the_disks_of_servers_that_wrote_behind() {
    let memory = machine(&[("strip = \"1 KiB\"", "strip = \"1 KiB\"\nmemory = \"64 KiB\"")]);
    let sync = || What::Sync(HandleId(0), Call::Fsync);
    let write = || request(0, Direction::Write, 0, 1000);
    // As without memory, but for the 2000 of the disk, which begins with the request.
    assert_eq!(nanoseconds(&memory, vec![vec![write()]]), 15_400 - 2000);
    // By then it is done; there and back, two links each.
    assert_eq!(nanoseconds(&memory, vec![vec![write(), sync()]]), 15_400 - 2000 + 400);
    // The disk of the second server, which gets its part last, writes seven of eight strips behind the 10000 of the request.
    let long = || request(0, Direction::Write, 0, 16 << 10);
    let written = nanoseconds(&memory, vec![vec![long()]]);
    let synced = nanoseconds(&memory, vec![vec![long(), sync()]]);
    let there = 1000 + (16 << 10) + (16 << 10) + 200;
    assert_eq!((written, synced), (there + 10_000 + 200, there + 10_000 + 7 * 2048 + 200));
    // Without memory, all is written when the write is.
    assert_eq!(nanoseconds(&machine(&[]), vec![vec![write(), sync()]]), 15_400);
}

#[test]
fn a_writer_that_is_answered_waits_for_a_processor() {
    // Two ranks on a core each write in calls of 1000 and as many for the bytes; the server takes next to nothing.
    let fast = [
        (
            "write = { request = \"10 us\", bandwidth = \"0.5 GB/s\" }",
            "write = { request = \"0 s\", bandwidth = \"1000 GB/s\" }",
        ),
        ("exclusive = \"growth\"", "exclusive = \"nothing\""),
    ];
    let start = MACHINE.find("[storage]").unwrap();
    let end = MACHINE.find("[calls]").unwrap();
    let mut shared = SHARED.to_owned();
    for (from, to) in fast {
        shared = shared.replace(from, to);
    }
    let text = MACHINE.replace("cores = 2", "cores = 1\nquantum = \"100 us\"");
    let text = text.replace(&MACHINE[start..end + "[calls]".len()], &shared);
    let machine = Machine::parse("by-hand.toml", &text).unwrap();
    let write = |rank: u32, count: u64| {
        request(rank, Direction::Write, (u64::from(rank) << 30) + count * 40_000, 40_000)
    };
    let programs = (0..2).map(|rank| (0..50).map(|count| write(rank, count)).collect());
    let options = Options { ranks_per_node: Some(2), ..Options::default() };
    let found = predict(&machine, &workload(programs.collect()), options).unwrap();
    // They do nothing else: their time in I/O is all of the run, but for the last turn of one.
    let in_io = found.io_time_mean.picoseconds() as f64 / found.makespan.picoseconds() as f64;
    assert!(in_io > 0.9, "{in_io}");
}

/// `auto` goes by these: else it would gather writes for what that does not save.
#[test]
fn the_terms_of_a_shared_file_system_have_all_requests_of_a_long_call() {
    let times = |request_bytes: &str| {
        let requests = format!("request = \"{request_bytes}\"");
        let machine = shared_machine_with("request = \"4 KiB\"", &requests);
        let program = vec![request(0, Direction::Write, 0, 1 << 20)];
        let found = predict(&machine, &workload(vec![program]), Options::default()).unwrap();
        let terms = pio_sim::terms(&machine);
        let by_terms_s = terms.write_s + f64::from(1 << 20) / terms.write_bytes_per_s;
        [by_terms_s, found.io_time_mean.seconds()]
    };
    let (small, large) = (times("4 KiB"), times("1 MiB"));
    let [by_terms_s, simulated_s] = [0, 1].map(|which| small[which] - large[which]);
    assert!((simulated_s - 255.0 * 1e-5).abs() < 1e-8 && (by_terms_s / simulated_s - 1.0).abs() < 0.01);
}

#[test]
fn a_run_is_over_when_its_ranks_are() {
    let memory = machine(&[("strip = \"1 KiB\"", "strip = \"1 KiB\"\nmemory = \"64 KiB\"")]);
    let program = vec![request(0, Direction::Write, 0, 16 << 10)];
    let found = predict(&memory, &workload(vec![program]), Options::default()).unwrap();
    assert_eq!(found.makespan, found.io_time_max);
}

#[test]
fn who_syncs_beside_another_waits_for_the_same_data() {
    let calls = "sync = { call = \"10 us\", bandwidth = \"0.1 GB/s\" }\n";
    let sync = |rank| What::Sync(HandleId(rank), Call::Fsync);
    let mut workload = workload(vec![vec![request(0, Direction::Write, 0, 1000), sync(0)], vec![sync(1)]]);
    // The second asks a little later than the first, which is not through.
    workload.programs[1][0].idle = Duration::from_picoseconds(12_000_000);
    let options = Options { ranks_per_node: Some(2), ..Options::default() };
    let found = predict(&shared_core(calls, ""), &workload, options).unwrap();
    let synced = 2_000 + 10_000 + 40_960;
    let in_syncs = found.calls[&(Call::Fsync, true)].picoseconds() / 1000;
    assert_eq!((found.makespan.picoseconds() / 1000, in_syncs), (synced, synced - 2_000 + synced - 12_000));
}

#[test]
fn requests_that_the_page_cache_does_not_end_wait_for_the_device() {
    let calls = "sync = { call = \"10 us\", bandwidth = \"0.1 GB/s\" }\n\
                 new-pages = { call = \"2 us\", bandwidth = \"2 GB/s\" }\n\
                 cold-reads = { request = \"50 us\", stream = \"0.1 GB/s\", bandwidth = \"0.2 GB/s\" }\n\
                 direct = { read = { call = \"20 us\", bandwidth = \"0.1 GB/s\" }, \
                 write = { call = \"30 us\", bandwidth = \"0.1 GB/s\" } }\n";
    let time = |mode: Flags, programs: Vec<Vec<What>>| {
        let options = Options { ranks_per_node: Some(programs.len() as u32), ..Options::default() };
        let mut workload = workload(programs);
        workload.modes = (0..workload.handles.len() as u32).map(|handle| (HandleId(handle), mode)).collect();
        predict(&shared_core(calls, ""), &workload, options).unwrap().makespan.picoseconds() / 1000
    };
    let (write, read) = (request(0, Direction::Write, 0, 4096), request(0, Direction::Read, 0, 4096));
    let new_pages = 1_000 + 4_096 + 2_000 + 2_048;
    assert_eq!(time(Flags::NONE, vec![vec![write.clone(), write.clone()]]), new_pages + 1_000 + 4_096);
    // A write of a part of a page writes the page, each time.
    let part = request(0, Direction::Write, 100, 900);
    let synced = time(Flags::SYNC, vec![vec![write.clone(), part]]);
    assert_eq!(synced, new_pages + 1_000 + 900 + 2 * (10_000 + 40_960));
    let asked = time(Flags::SYNC, vec![vec![write.clone(), What::Sync(HandleId(0), Call::Fsync)]]);
    assert_eq!(asked, new_pages + 10_000 + 40_960, "nothing is left to sync");
    assert_eq!(time(Flags::DIRECT, vec![vec![write.clone(), write.clone()]]), 2 * (30_000 + 40_960));
    let part = request(0, Direction::Read, 2048, 4096);
    let once = time(Flags::DIRECT, vec![vec![write.clone()]]);
    assert_eq!(time(Flags::DIRECT, vec![vec![write, part]]), once + 20_000 + 20_480);
    // Two share the device, whose rate is twice what one gets.
    let both = vec![vec![read], vec![request(1, Direction::Read, 0, 1 << 20)]];
    // It calls when the first has left their core.
    assert_eq!(time(Flags::DIRECT, both), 1_000 + 20_000 + (10 << 20));
    let all = (0..4).map(|rank| vec![request(rank, Direction::Read, 0, 1 << 20)]).collect();
    assert!(time(Flags::DIRECT, all) >= 4 * (5 << 20));
}

#[test]
fn who_computes_in_stretches_lets_others_have_its_core_between_them() {
    let time = |stretch: Option<u64>| {
        let us = |time: u64| Duration::from_picoseconds(time * 1_000_000);
        let seek = |rank: u32, think, idle| Step {
            think: us(think),
            idle: us(idle),
            what: What::Seek(HandleId(rank), Call::Lseek),
        };
        let mut workload = workload(vec![Vec::new(); 2]);
        // The first computes; the second wants the core for a call 12 us after the beginning, and for another 200 us later.
        workload.programs = vec![vec![seek(0, 100, 0)], vec![seek(1, 0, 12), seek(1, 0, 200)]];
        workload.stretches = vec![stretch.map(us), None];
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        let machine = shared_core("", "");
        let machine =
            Machine { nodes: Nodes { quantum: us(50), slice: us(50), ..machine.nodes.clone() }, ..machine };
        let found = predict(&machine, &workload, options).unwrap();
        found.makespan.picoseconds() / 1_000_000
    };
    // A call takes 1 us; the first waits until the other's quantum is over.
    assert_eq!(time(None), 50 + 1 + 200 + 1);
    assert_eq!(time(Some(15)), 15 + 1 + 200 + 1);
}

#[test]
fn calls_of_all_ranks_take_what_was_measured_of_them() {
    let costs = mpi_io(false, "7 us", ["900 us", "80 us", "60 us", "40 us", "20 us"]);
    let time = |program: &[What]| {
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        let own = |rank: u32| {
            let of_rank = |what: &What| match what {
                What::Open(_) => What::Open(HandleId(rank)),
                What::Close(_) => What::Close(HandleId(rank)),
                What::SetView(_, view) => What::SetView(HandleId(rank), *view),
                other => other.clone(),
            };
            program.iter().map(of_rank).collect()
        };
        let programs = workload((0..2).map(own).collect());
        predict(&shared_core("collective-waits = true\n", &costs), &programs, options)
            .unwrap()
            .makespan
            .picoseconds()
            / 1_000_000
    };
    let (open, close) = (What::Open(HandleId(0)), What::Close(HandleId(0)));
    // Opens take the core 5 us each, closes 2 us; then all wait together.
    assert_eq!(time(std::slice::from_ref(&open)), 10 + 900);
    assert_eq!(time(&[open.clone(), close, open.clone()]), 10 + 900 + 4 + 60 + 10 + 80);
    assert_eq!(time(&[open, What::SetView(HandleId(0), ViewId(0))]), 10 + 900 + 40);
    assert_eq!(time(&[What::Meet { call: Call::MpiBarrier, bytes: 0 }]), 20);
}

/// Two ranks of a node, a core each, that write a file together: each has every second piece.
fn writes_together(changes: &[(&str, &str)], rest: &str, think_us: [u64; 2]) -> u64 {
    let machine = machine(changes);
    let machine = Machine::parse("by-hand.toml", &format!("{}{rest}", machine.to_toml(""))).unwrap();
    let piece = Datatype::vector(4, 1, 2, &Datatype::bytes(100)).unwrap();
    let mut workload = workload(vec![Vec::new(); 2]);
    workload.views = (0..2).map(|rank| View::new(rank * 100, 1, piece.clone()).unwrap()).collect();
    workload.programs = (0..2_u32)
        .map(|rank| {
            let (handle, view) = (HandleId(rank), ViewId(rank));
            let write = What::Access {
                handle,
                call: Call::MpiFileWriteAll,
                direction: Direction::Write,
                view,
                positions: 0..400,
                collective: true,
            };
            let after = |us: u64, what| Step {
                think: Duration::from_picoseconds(us * 1_000_000),
                idle: Duration::ZERO,
                what,
            };
            vec![after(0, What::SetView(handle, view)), after(think_us[rank as usize], write)]
        })
        .collect();
    let options = Options { ranks_per_node: Some(2), ..Options::default() };
    let hints = Hints { cb_nodes: Some(1), ..Hints::default() };
    let found = simulate(&machine, &workload, Strategy::TwoPhase, &hints, &options, None, &mut |_| {});
    found.unwrap().makespan.picoseconds() / 1_000_000
}

#[test]
fn first_calls_and_collective_ones_take_what_was_measured_of_them() {
    let text = mpi_io(false, "0 s", ["900 us", "80 us", "60 us", "40 us", "20 us"]);
    let costs = |more: &str| text.replace("barrier", &format!("{more}, barrier"));
    let time = |costs: &str| {
        let own = |rank: u32| {
            let (file, view) = (HandleId(rank), ViewId(0));
            let (open, close) = (What::Open(file), What::Close(file));
            vec![
                open.clone(),
                What::SetView(file, view),
                close.clone(),
                open,
                What::SetView(file, view),
                close,
            ]
        };
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        let machine = shared_core("collective-waits = true\n", costs);
        let found = predict(&machine, &workload((0..2).map(own).collect()), options).unwrap();
        found.makespan.picoseconds() / 1_000_000
    };
    // Two opens and two closes of each take the core.
    let calls = 20 + 8;
    assert_eq!(time(&text), calls + 900 + 80 + 2 * (60 + 40));
    let first = costs("first-close = \"500 us\", first-view = \"700 us\"");
    assert_eq!(time(&first), calls + 900 + 80 + 500 + 60 + 700 + 40);

    let quick = mpi_io(false, "0 s", ["0 s"; 5]);
    let talking = quick.replace("barrier", "collective = \"300 us\", barrier");
    // Each rank pays once, at its first message.
    assert_eq!(writes_together(&[], &talking, [0, 0]), writes_together(&[], &quick, [0, 0]) + 300);
    // And for its 400 bytes of memory.
    let fresh = quick.replace("together", "fresh = \"1 MB/s\", together");
    assert_eq!(writes_together(&[], &fresh, [0, 0]), writes_together(&[], &quick, [0, 0]) + 400);
}

#[test]
fn calls_of_all_ranks_take_longer_after_other_work() {
    let quick = mpi_io(false, "0 s", ["0 s"; 5]);
    let costs = |more: &str| quick.replace("ranks = 2", &format!("ranks = 1{more}"));
    let time = |costs: &str, what: What, think_us: u64| {
        let mut machine = shared_core("collective-waits = true\n", costs);
        machine.nodes.cooling = Duration::from_picoseconds(1_000_000_000);
        let mut workload = workload(vec![Vec::new()]);
        let step = |think_us: u64| Step {
            think: Duration::from_picoseconds(think_us * 1_000_000),
            idle: Duration::ZERO,
            what: what.clone(),
        };
        workload.programs = vec![vec![step(0), step(think_us)]];
        let found = predict(&machine, &workload, Options::default()).unwrap();
        found.makespan.picoseconds() / 1_000_000 - think_us
    };
    let view = What::SetView(HandleId(0), ViewId(0));
    let views = costs("")
        .replace("view = \"0 s\"", "first-view = \"100 us\", view = \"80 us\", view-again = \"20 us\"");
    let longer = [0, 500, 1_000, 9_000].map(|think_us| time(&views, view.clone(), think_us) - 100);
    assert_eq!(longer, [20, 20 + 60 / 2, 80, 80]);
    // What the library takes longer in a write is that of one rank, whether it talks or not.
    let write = What::Access {
        handle: HandleId(0),
        call: Call::MpiFileWrite,
        direction: Direction::Write,
        view: ViewId(0),
        positions: 0..1000,
        collective: false,
    };
    let writes = costs(", collective = \"50 us\", collective-again = \"10 us\"");
    let longer = [0, 500, 1_000]
        .map(|think_us| time(&writes, write.clone(), think_us) - time(&quick, write.clone(), think_us));
    // The first write, of 42 us, is other work for the library.
    assert_eq!(longer, [40 + 1, 40 + 21, 40 + 40]);
}

#[test]
fn who_has_waited_long_is_woken_late() {
    let late = |wake: &str, think_us| {
        let switch = format!("switch = \"0 s\"\nwake = \"{wake}\"");
        writes_together(&[("switch = \"0 s\"", &switch)], "", think_us)
    };
    // The first waits for the second: for 50 us it looks, for 5 ms it does not.
    assert_eq!(late("40 us", [0, 50]), late("0 s", [0, 50]));
    // Meanwhile the second goes on: with 3 us that it takes to send something.
    assert_eq!(late("40 us", [0, 5000]), late("0 s", [0, 5000]) + 40 - 3);
}

#[test]
fn who_spins_in_a_barrier_takes_turns_with_who_computes() {
    let machine = |spins| shared_core("", &mpi_io(spins, "0 s", ["0 s"; 5]));
    let time = |spins| {
        let step = |think_us: u64| Step {
            think: Duration::from_picoseconds(think_us * 1_000_000),
            idle: Duration::ZERO,
            what: What::Meet { call: Call::MpiBarrier, bytes: 0 },
        };
        let mut workload = workload(vec![Vec::new(); 2]);
        workload.programs = vec![vec![step(0)], vec![step(40)]];
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        predict(&machine(spins), &workload, options).unwrap().makespan.picoseconds() / 1_000_000
    };
    assert_eq!(time(false), 40);
    // Who spins goes first, and has five turns of 10 us. The other computes for 40 us, sends for 3 us and takes in for 4 us;
    // then the first, which sees that on its core alone, takes in its message.
    assert_eq!(time(true), 50 + 47 + 4);
}

#[test]
fn waiting_in_a_barrier_is_no_part_of_the_time_in_io() {
    let meet = What::Meet { call: Call::MpiBarrier, bytes: 0 };
    let bcast = What::Broadcast { root: 0, bytes: 1000 };
    let mut workload = workload(
        (0..2)
            .map(|rank| vec![meet.clone(), bcast.clone(), request(rank, Direction::Write, 0, 1000)])
            .collect(),
    );
    workload.programs[1][0].think = Duration::from_picoseconds(50_000_000);
    let found = predict(&machine(&[]), &workload, Options::default()).unwrap();
    assert_eq!(found.breakdown(), [("write", found.io_time_mean.seconds())]);
    assert!(found.operation(Op::Communicate).time.picoseconds() > 50_000_000);
}

#[test]
fn who_met_unrecorded_begins_the_next_call_together() {
    let io_time_us = |meets: bool| {
        let step = |think_us: u64, what| Step {
            think: Duration::from_picoseconds(think_us * 1_000_000),
            idle: Duration::ZERO,
            what,
        };
        let close = |rank: u32| What::Close(HandleId(rank));
        let program = |rank: u32, busy_us: u64| match meets {
            true => vec![step(busy_us, What::Rendezvous), step(0, close(rank))],
            false => vec![step(busy_us, close(rank))],
        };
        let mut workload = workload(vec![Vec::new(); 2]);
        workload.programs = vec![program(0, 10), program(1, 50)];
        let machine = machine(&[("seek = \"1 us\"", "seek = \"1 us\"\ncollective-waits = true")]);
        let found = predict(&machine, &workload, Options::default()).unwrap();
        found.io_time_max.picoseconds() / 1_000_000
    };
    // Without, the first waits in its close for the other, 40 us longer.
    assert_eq!(io_time_us(false), io_time_us(true) + 40);
}

#[test]
fn ranks_wait_for_each_other_in_collective_calls_where_the_machine_says_so() {
    let programs = || {
        let seek = What::Seek(HandleId(1), Call::MpiFileSeek);
        workload(vec![vec![What::Close(HandleId(0))], vec![seek, What::Close(HandleId(1))]])
    };
    for (waits, ends_us, io_time_us) in [(false, 3, 3), (true, 7, 7)] {
        let machine =
            machine(&[("seek = \"1 us\"", &format!("seek = \"1 us\"\ncollective-waits = {waits}"))]);
        let found = predict(&machine, &programs(), Options::default()).unwrap();
        // The second rank comes to its close after a seek; when both are through, the word of it takes 4 us to receive.
        assert_eq!(found.makespan.picoseconds(), ends_us * 1_000_000);
        assert_eq!(found.io_time_max.picoseconds(), io_time_us * 1_000_000);
        assert_eq!(found.operation(Op::Close).time.picoseconds(), 4_000_000, "the calls' own");
    }
}

#[test]
fn every_byte_written_is_on_a_server_and_evenly_so() {
    let program = |rank: u32| {
        vec![
            request(rank, Direction::Write, u64::from(rank) * 10_240, 10_240),
            request(rank, Direction::Read, 0, 2048),
        ]
    };
    let found = predict(&machine(&[]), &workload((0..4).map(program).collect()), Options::default()).unwrap();
    assert_eq!((found.bytes_written, found.bytes_read), (40_960, 8192));
    // Where nothing is said of messages without data, they are empty.
    assert_eq!(found.bytes_between_nodes, 40_960 + 8192);
    let servers: Vec<(u64, u64)> =
        found.servers.iter().map(|server| (server.bytes_written, server.bytes_read)).collect();
    assert_eq!(servers, [(20_480, 4096), (20_480, 4096)]);
}

#[test]
fn independent_makes_one_request_for_each_piece() {
    let filetype = Datatype::vector(1000, 4, 10, &Datatype::bytes(1)).unwrap();
    let mut workload = workload(vec![vec![What::Access {
        handle: HandleId(0),
        call: Call::MpiFileWriteAll,
        direction: Direction::Write,
        view: ViewId(0),
        positions: 2..3998,
        collective: true,
    }]]);
    workload.views = vec![View::new(0, 1, filetype).unwrap()];
    let hints = Hints::default();
    let options = Options::default();
    let found =
        simulate(&machine(&[]), &workload, Strategy::Independent, &hints, &options, None, &mut |_| {})
            .unwrap();
    assert_eq!(found.operation(Op::Write).count, 1000);
    let sizes: Vec<((Op, u64), u64)> = found.sizes.into_iter().collect();
    assert_eq!(sizes, [((Op::Write, 2), 2), ((Op::Write, 4), 998)]);
}

#[test]
fn a_collective_call_that_not_all_make_is_named() {
    let access = What::Access {
        handle: HandleId(0),
        call: Call::MpiFileWriteAll,
        direction: Direction::Write,
        view: ViewId(0),
        positions: 0..10,
        collective: true,
    };
    let steps = vec![
        vec![What::SetView(HandleId(0), ViewId(0)), access],
        vec![What::SetView(HandleId(1), ViewId(0))],
    ];
    let mut workload = workload(steps);
    // A view with gaps: without, nobody waits for anybody.
    let filetype = Datatype::bytes(1).resized(0, 2).unwrap();
    workload.views = vec![View::new(0, 1, filetype).unwrap()];
    let error = predict(&machine(&[]), &workload, Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("rank 0 waits forever in step 2 of 2"), "{error}");
}

#[test]
fn what_a_workload_does_not_have_is_named() {
    let message = |change: &dyn Fn(&mut Workload)| {
        let mut workload = workload(vec![vec![What::SetView(HandleId(0), ViewId(0))], Vec::new()]);
        change(&mut workload);
        predict(&machine(&[]), &workload, Options::default()).unwrap_err().to_string()
    };
    let found = message(&|workload| workload.views.clear());
    assert_eq!(found, "workload test: view = 0: expected one of 0 views");
    let found = message(&|workload| workload.handles.clear());
    assert_eq!(found, "workload test: handle = 0: expected one of 0 handles, of one of 1 files");
    let found = message(&|workload| workload.groups = vec![vec![1]]);
    assert_eq!(found, "workload test: handle = 0: expected a handle whose group has rank 0, which uses it");
    let found = message(&|workload| workload.groups = vec![vec![0, 2]]);
    assert_eq!(found, "workload test: group = [0, 2]: expected ascending ranks below 2");
    let found = message(&|workload| workload.programs.clear());
    assert_eq!(found, "workload test: has no process (expected a trace of at least one)");
}

#[test]
fn too_few_ranks_a_node_are_refused() {
    let programs = vec![Vec::new(); 9];
    let options = Options { ranks_per_node: Some(1), ..Options::default() };
    let error = predict(&machine(&[]), &workload(programs), options).unwrap_err().to_string();
    assert!(error.ends_with("ranks_per_node = 1: expected at least 2, as 9 ranks share 8 nodes"), "{error}");
}

#[test]
fn a_shared_file_system_answers_each_part_of_a_long_call() {
    let read = vec![request(0, Direction::Read, 0, 10_000)];
    // Call 1000; three requests of 20000 and their bytes; and the caller's 10000.
    assert_eq!(nanoseconds(&shared_machine(), vec![read]), 1000 + 3 * 20_000 + 10_000 + 10_000);
    let write = vec![request(0, Direction::Write, 0, 10_000)];
    assert_eq!(nanoseconds(&shared_machine(), vec![write]), 1000 + 10_000 + 3 * 10_000 + 20_000);
}

#[test]
fn what_a_shared_file_system_is_asked_for_costs_its_time_and_the_callers() {
    let handle = HandleId(0);
    let whats = [
        // It makes the file.
        (vec![What::Open(handle), request(0, Direction::Write, 0, 500)], 55_000 + 5_000 + 1500 + 11_000),
        (vec![What::Open(handle), request(0, Direction::Read, 0, 500)], 55_000 + 1000 + 20_500 + 500),
        (vec![What::Close(handle)], 2_000 + 1_000),
        (vec![What::Resize(handle, Call::Ftruncate, 0)], 60_000),
        (vec![What::Name { call: Call::Stat, file: 0 }], 20_000),
        (vec![What::Name { call: Call::Unlink, file: 0 }], 30_000),
        // 1000 bytes to write, and their page to sync.
        (
            vec![request(0, Direction::Write, 0, 1000), What::Sync(handle, Call::Fsync)],
            14_000 + 40_000 + 4096,
        ),
    ];
    for (program, expected) in whats {
        assert_eq!(nanoseconds(&shared_machine(), vec![program.clone()]), expected, "{program:?}");
    }
}

#[test]
fn nodes_call_strips_of_a_shared_file_back_from_each_other() {
    let program = |rank| vec![request(rank, Direction::Write, u64::from(rank) * 512, 512)];
    // Call and bytes 1512; the first writes for 10000 + 1024, then the strip is called back, and the second writes.
    let first = 1512 + 11_024;
    assert_eq!(nanoseconds(&shared_machine(), vec![program(0), program(1)]), first + 100_000 + 11_024);
    // On a node they share the strip, but the second waits to make the file longer, too: its call comes behind.
    let together = |handover: &str| {
        let mut machine = shared_machine();
        let Storage::Shared(files) = &mut machine.storage else { panic!("shared") };
        files.handover = Duration::parse(handover).unwrap();
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        let found = predict(&machine, &workload(vec![program(0), program(1)]), options).unwrap();
        found.makespan.picoseconds() / 1000
    };
    assert_eq!(together("0 s"), 2 * first);
    assert_eq!(together("30 us"), 2 * first + 30_000, "until who sleeps has its turn");
}

/// How much longer a run of two ranks on a node takes if, after these calls of the first, they meet and write 1000 bytes each
/// into the first mebibyte of the file.
fn two_writes_after(calls: &[What], modes: &[(HandleId, Flags)]) -> u64 {
    let time = |writes: bool| {
        let program = |rank: u32| {
            let mut program = if rank == 0 { calls.to_vec() } else { Vec::new() };
            // A file that is written first counts as made here.
            program.extend([request(rank, Direction::Write, 0, 0), What::Rendezvous]);
            program.extend(writes.then(|| request(rank, Direction::Write, u64::from(rank) * 4096, 1000)));
            program
        };
        let mut workload = workload(vec![program(0), program(1)]);
        workload.handles.iter_mut().for_each(|open| (open.group, open.collective) = (None, 0));
        workload.handles.push(workload.handles[0]);
        workload.modes = modes.iter().copied().collect();
        let options = Options { ranks_per_node: Some(2), ..Options::default() };
        predict(&shared_machine(), &workload, options).unwrap().makespan.picoseconds() / 1000
    };
    time(true) - time(false)
}

#[test]
fn a_shared_file_that_has_its_size_already_is_written_by_several_at_once() {
    let (first, again) = (HandleId(0), HandleId(2));
    let mib = 1 << 20;
    let fill = vec![What::Open(first), request(0, Direction::Write, 0, mib), What::Close(first)];
    // Call and bytes 2000, and on the link one after the other 2000 each, then 10000.
    let at_once = 2000 + 2 * 2000 + 10_000;
    // The second waits to make the file longer until the first has, and makes its call then.
    let one_by_one = 2 * (2000 + 2000 + 10_000);
    assert_eq!(two_writes_after(&[What::Open(first)], &[]), one_by_one);
    assert_eq!(two_writes_after(&fill, &[]), at_once);
    // It counted as growing until it had been written.
    for call in [Call::Ftruncate, Call::Fallocate] {
        assert_eq!(two_writes_after(&[What::Open(first), What::Resize(first, call, mib)], &[]), at_once);
    }
    // What was cut off counted as there.
    let cut = [fill.clone(), vec![What::Open(again)]].concat();
    assert_eq!(two_writes_after(&cut, &[(again, Flags::TRUNCATE)]), one_by_one);
    let removed = [fill.clone(), vec![What::Name { call: Call::Unlink, file: 0 }]].concat();
    assert_eq!(two_writes_after(&removed, &[]), one_by_one);
    let shorter = [fill, vec![What::Resize(first, Call::Ftruncate, 0)]].concat();
    assert_eq!(two_writes_after(&shorter, &[]), one_by_one);
}

#[test]
fn a_read_of_nothing_costs_its_call() {
    let at_end = request(0, Direction::Read, 1000, 0);
    for machine in [machine(&[]), local_machine(false), shared_machine()] {
        let programs = vec![vec![at_end.clone(), at_end.clone()]];
        let found = predict(&machine, &workload(programs), Options::default()).unwrap();
        assert_eq!(found.makespan.picoseconds(), 2 * 1_000_000, "{}", machine.name);
        let reads = found.operation(Op::Read);
        assert_eq!((reads.count, reads.time.picoseconds()), (2, 2 * 1_000_000));
    }
}
