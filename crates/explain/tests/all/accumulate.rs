//! Small traces made by hand, with every number worked out; then random ones against a naive recomputation.

use pio_explain::findings::Kind;
use pio_explain::{Accumulator, Amount, Explanation, InMpi, Later, Tally, Transfer};
use pio_layout::View;
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Layer, Op, Process, ProcessId, Tables, Target, Trace,
    TraceWriter, ViewId,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn process(rank: Option<u32>, end_ns: Option<u64>) -> Process {
    Process { rank, pid: 100, host: "node1".into(), command: "app".into(), start_ns: 0, end_ns }
}

fn handle(file: u32, process: u32, ranks: u32) -> Handle {
    Handle { file: FileId(file), process: ProcessId(process), ranks, collective: u64::from(ranks > 1) }
}

fn event(call: Call, process: u32, handle: Option<u32>, start_ns: u64, elapsed_ns: u64) -> Event {
    Event {
        call,
        process: ProcessId(process),
        thread: 0,
        handle: handle.map(HandleId),
        target: Target::None,
        memory: None,
        size: 0,
        result: 0,
        start_ns,
        elapsed_ns,
        think_ns: 0,
        used_ns: None,
        flags: Flags::NONE,
        operation: 0,
    }
}

fn at(mut event: Event, offset: u64, size: u64) -> Event {
    event.target = Target::Extent { offset };
    event.size = size;
    event.result = size as i64;
    event
}

fn physical(mut event: Event) -> Event {
    event.flags = event.flags | Flags::PHYSICAL;
    event
}

/// Two ranks write one file together: rank 1 sends its half to rank 0, which writes all. File 1 is rank 0's own log.
fn collective_write() -> (Tables, Vec<Event>) {
    let tables = Tables {
        job: "app".into(),
        processes: vec![
            process(None, Some(120 * MS)),
            process(Some(0), Some(100 * MS)),
            process(Some(1), Some(100 * MS)),
        ],
        files: vec![File { path: "/data".into() }, File { path: "/log".into() }],
        handles: vec![handle(0, 1, 2), handle(0, 2, 2), handle(0, 1, 1), handle(1, 1, 1)],
        views: vec![View::contiguous(0)],
        ..Tables::default()
    };
    let write_all = |process, handle, position| {
        let mut write = at(event(Call::MpiFileWriteAll, process, Some(handle), 20 * MS, 40 * MS), 0, 1 << 20);
        write.target = Target::View { view: ViewId(0), position };
        write.flags = Flags::COLLECTIVE;
        write.think_ns = 5 * MS;
        write
    };
    let message = |call, process, start, elapsed, size| {
        let mut message = physical(event(call, process, None, start * MS, elapsed * MS));
        message.target = Target::Peer { rank: 0 };
        message.size = size;
        message.result = size as i64;
        message
    };
    let program_message = |start| event(Call::MpiBarrier, 2, None, start * MS, MS);
    let events = vec![
        program_message(0),
        event(Call::MpiFileOpen, 1, Some(0), 2 * MS, 8 * MS),
        event(Call::MpiFileOpen, 2, Some(1), 2 * MS, 8 * MS),
        physical(event(Call::Open, 1, Some(2), 3 * MS, 4 * MS)),
        program_message(12),
        write_all(1, 0, 0),
        write_all(2, 1, 1 << 20),
        message(Call::StrategyDescribe, 2, 21, 1, 64),
        message(Call::StrategyData, 2, 23, 7, 1 << 20),
        physical(at(event(Call::Pwrite, 1, Some(2), 32 * MS, 10 * MS), 0, 1 << 20)),
        physical(at(event(Call::Pwrite, 1, Some(2), 42 * MS, 12 * MS), 1 << 20, 1 << 20)),
        message(Call::StrategyAcknowledge, 2, 30, 28, 8),
        at(event(Call::Write, 1, Some(3), 65 * MS, MS), 0, 30),
        event(Call::MpiFileClose, 1, Some(0), 70 * MS, 5 * MS),
        event(Call::MpiFileClose, 2, Some(1), 70 * MS, 5 * MS),
        physical(event(Call::Close, 1, Some(2), 71 * MS, 2 * MS)),
        program_message(74),
        program_message(75),
    ];
    (tables, events)
}

/// Small writes here and there, by `call`; each alone, or in a call of HDF5.
fn scattered_writes(call: Call, by_hdf5: bool) -> (Tables, Vec<Event>) {
    let tables = Tables {
        processes: vec![process(Some(0), Some(10_000 * MS))],
        files: vec![File { path: "/data".into() }],
        handles: vec![handle(0, 0, 1), handle(0, 0, 1)],
        ..Tables::default()
    };
    let mut events = Vec::new();
    for i in 0..2000 {
        let mut write = at(event(call, 0, Some(0), 4 * i * MS + MS, MS), i * 7919 % 2000 * 10_000, 100);
        // A call of MPI-IO is an operation of its own, one of POSIX belongs to what caused it.
        write.operation = if call.layer() == Layer::MpiIo { 2 * i + 2 } else { 0 };
        if by_hdf5 {
            let mut cause = event(Call::H5Dwrite, 0, Some(1), 4 * i * MS, 3 * MS);
            (cause.size, cause.result, cause.operation) = (100, 100, 2 * i + 1);
            events.push(cause);
            write.operation = write.operation.max(2 * i + 1);
            write = physical(write);
        }
        events.push(write);
    }
    (tables, events)
}

#[test]
fn what_hdf5_causes_is_charged_as_if_the_program_had_done_it() {
    for call in [Call::Pwrite, Call::MpiFileWriteAt] {
        let [alone, below] = [false, true].map(|by_hdf5| {
            let (tables, events) = scattered_writes(call, by_hdf5);
            Explanation::of(&tables, events)
        });
        let charged = |found: &Explanation| -> Vec<_> {
            found.findings.iter().map(|finding| (finding.kind, finding.lost_ns)).collect()
        };
        assert!(!charged(&alone).is_empty(), "{call:?}");
        assert_eq!(charged(&below), charged(&alone), "{call:?}");
        assert_eq!(alone.layers.len(), 1, "{call:?}");
        // But what the program asked for is what it asked of HDF5.
        assert_eq!(below.processes[0].program.write, tally(2000, 200_000, 6000, 3), "{call:?}");
        assert_eq!((below.workload.write.count, below.workload.write.bytes), (2000, 200_000), "{call:?}");
        let asked = below.asked_operations.as_ref().unwrap_or(&below.operations);
        assert_eq!((asked.layer, asked.table.tally(Op::Write).time_ns), (Layer::Hdf5, 6000 * MS), "{call:?}");
    }
}

/// 1,000 writes of 1,000 bytes in 10 µs each, on one file; then `large` ones of 1 MiB in 0.5 ms on another.
fn small_and_large(large: u64, note: Option<&str>) -> Explanation {
    let mut tables = Tables {
        processes: vec![process(None, Some(50 * MS))],
        files: vec![File { path: "/slow/small".into() }, File { path: "/slow/large".into() }],
        handles: vec![handle(0, 0, 1), handle(1, 0, 1)],
        ..Tables::default()
    };
    tables.notes.extend(note.map(|text| ("large requests".to_owned(), text.to_owned())));
    let small = (0..1000).map(|i| at(event(Call::Write, 0, Some(0), i * 20_000, 10_000), i * 1000, 1000));
    let large =
        (0..large).map(|i| at(event(Call::Write, 0, Some(1), 20 * MS + i * MS, MS / 2), i << 20, 1 << 20));
    Explanation::of(&tables, small.chain(large))
}

#[test]
fn rates_are_the_traces_own_or_measured_or_not_known() {
    let lost_ms = |found: &Explanation| {
        assert_eq!(found.findings.iter().map(|one| one.kind).collect::<Vec<_>>(), [Kind::SmallWrites]);
        found.findings[0].lost_ns.map(|lost_ns| (lost_ns / 1e4).round() / 100.0)
    };
    let unknown = small_and_large(0, None);
    assert_eq!(lost_ms(&unknown), None, "10 ms, but nobody knows what larger ones would take");
    assert_eq!(unknown.findings[0].time_ns(), 10e6);
    assert_eq!(lost_ms(&small_and_large(3, None)), None, "three are no rate");
    // A MB at 2,097 MB/s.
    assert_eq!(lost_ms(&small_and_large(4, None)), Some(9.52));
    let slow = "write 200.0 (150.0-250.0) MB/s, in /slow";
    assert_eq!(lost_ms(&small_and_large(0, Some(slow))), Some(5.0));
    assert_eq!(lost_ms(&small_and_large(4, Some(slow))), Some(9.52), "its own large requests are there");
    let elsewhere = "write 200.0 (150.0-250.0) MB/s, in /slower";
    assert_eq!(lost_ms(&small_and_large(0, Some(elsewhere))), None);
    let reads = "cached read 200.0 (150.0-250.0) MB/s, in /";
    assert_eq!(lost_ms(&small_and_large(0, Some(reads))), None);
}

/// Rounds of 1 ms, in each of which one thread makes `served` writes of 1,000 bytes in 10 µs each, beside `waiting` threads
/// whose one write takes all of it.
fn threads_that_write(served: u64, waiting: u64) -> Explanation {
    let tables = Tables {
        processes: vec![process(None, Some(100 * MS))],
        files: vec![File { path: "/data".into() }],
        handles: vec![handle(0, 0, 1)],
        notes: vec![("large requests".into(), "write 1000 (900-1100) MB/s, in /".into())],
        ..Tables::default()
    };
    let write = |thread: u64, number: u64, start_ns: u64, elapsed_ns: u64| {
        let offset = thread * 10_000_000 + number * 1000;
        let thread = thread as u32;
        Event { thread, ..at(event(Call::Pwrite, 0, Some(0), start_ns, elapsed_ns), offset, 1000) }
    };
    let mut events = Vec::new();
    for round in 0..50 {
        let start_ns = round * MS;
        events.extend((0..waiting).map(|thread| write(thread + 1, round, start_ns, MS)));
        events.extend((0..served).map(|i| write(0, round * served + i, start_ns + i * 10_000, 10_000)));
    }
    events.sort_by_key(|event| event.start_ns);
    Explanation::of(&tables, events)
}

#[test]
fn threads_that_wait_for_each_other_do_not_wait_for_a_device() {
    let small = |found: &Explanation| {
        let finding = found.findings.iter().find(|one| one.kind == Kind::SmallWrites)?;
        Some((finding.lost_ns.expect("the rate is known") / 1e6, finding.waits_ns / 1e6))
    };
    // Three threads wait while one goes on: 200 ms of calls, 5 MB of which take 5 ms, four at a time.
    let (lost_ms, waits_ms) = small(&threads_that_write(100, 3)).expect("small writes");
    assert!((48.0..49.5).contains(&lost_ms) && waits_ms < 0.1, "{lost_ms} {waits_ms}");
    // Nearly nobody goes on: the system writes behind, and larger requests would wait, too.
    let found = threads_that_write(5, 3);
    let waits_ms = small(&found).map(|(_, waits_ms)| waits_ms);
    assert!(waits_ms.is_none_or(|waits_ms| waits_ms > 135.0), "{:?}", found.findings);
}

/// Two processes that lock a file by turns: each waits for 5 of 10 ms.
#[test]
fn a_lock_costs_what_the_process_that_waits_longest_waits() {
    let tables = Tables {
        processes: vec![process(None, Some(100 * MS)), process(None, Some(100 * MS))],
        files: vec![File { path: "/data".into() }],
        handles: vec![handle(0, 0, 1), handle(0, 1, 1)],
        ..Tables::default()
    };
    let locks = |waits_ns: u64| {
        (0..20).flat_map(move |i| {
            let (one, start) = (i % 2, u64::from(i) * 5 * MS);
            [event(Call::FcntlLock, one, Some(one), start, waits_ns), {
                event(Call::FcntlLock, one, Some(one), start + 5 * MS - 1000, 1000)
            }]
        })
    };
    let found = Explanation::of(&tables, locks(4 * MS));
    assert_eq!(
        found.findings.iter().map(|one| (one.kind, one.lost_ns)).collect::<Vec<_>>(),
        [(Kind::LockWaits, Some(40e6))]
    );
    assert_eq!(Explanation::of(&tables, locks(1000)).findings, [], "nobody waits");
}

fn tally(count: u64, bytes: u64, time_ms: u64, longest_ms: u64) -> Tally {
    Tally { count, failed: 0, bytes, time_ns: time_ms * MS, longest_ns: longest_ms * MS }
}

#[test]
fn thakurs_view_counts_where_the_library_did() {
    let (tables, events) = collective_write();
    let found = Explanation::of(&tables, events);
    let view = &found.operations;
    assert_eq!((view.layer, view.processes), (Layer::Posix, 2));
    let expected = [
        (Op::Open, tally(1, 0, 4, 4)),
        (Op::Close, tally(1, 0, 2, 2)),
        (Op::Write, tally(2, 2 << 20, 22, 12)),
        // Describe, data, and the barriers at 12 and 74 ms: those before the open and after the close do not count.
        (Op::Communicate, tally(4, 64 + (1 << 20), 1 + 7 + 1 + 1, 7)),
    ];
    assert_eq!(view.table.operations.iter().collect::<Vec<_>>(), expected);
    assert_eq!(view.table.acknowledgements, tally(1, 8, 28, 28));
    // The barriers are the program's own: no part of its I/O.
    assert_eq!(view.own_messages, tally(2, 0, 2, 1));
    let for_io: Vec<_> = view.for_io().map(|(op, tally)| (op, tally.count, tally.time_ns / MS)).collect();
    assert_eq!(for_io, [(Op::Open, 1, 4), (Op::Close, 1, 2), (Op::Write, 2, 22), (Op::Communicate, 2, 8)]);
    assert_eq!(view.mean_time_per_process_s(Op::Write), Some(0.011));
    // The second write begins as the first one ends.
    assert_eq!(view.bandwidth_bytes_per_s(Op::Write), Some((2 << 20) as f64 / 22e6 * 1e9));
    assert_eq!(view.bandwidth_bytes_per_s(Op::Read), None);
    let sizes = view.table.write_sizes.classes();
    assert_eq!((sizes.len(), sizes[0].from_bytes, sizes[0].amount.count), (1, 1 << 20, 2));

    let asked = found.asked_operations.expect("the program used MPI-IO");
    assert_eq!(asked.layer, Layer::MpiIo);
    assert_eq!(asked.table.tally(Op::Open), tally(2, 0, 16, 8));
    assert_eq!(asked.table.tally(Op::Write), tally(2, 2 << 20, 80, 40));
    // Both ranks at the same time.
    assert_eq!(asked.bandwidth_bytes_per_s(Op::Write), Some((2 << 20) as f64 / 40e6 * 1e9));
    let log = Transfer { bytes: (2 << 20) + 30, busy_ns: 41 * MS };
    assert_eq!((found.transfers.write, found.transfers.data), (log, log));
}

/// MPI moves the data of a nonblocking operation after its call has returned. That counted as 1 MiB in a microsecond.
#[test]
fn nonblocking_operations_are_as_fast_as_their_data_move() {
    let tables = Tables {
        processes: vec![process(Some(0), Some(100 * MS))],
        files: vec![File { path: "/data".into() }],
        handles: vec![handle(0, 0, 1)],
        ..Tables::default()
    };
    let operation = |mut event: Event, number, flags| {
        event.operation = number;
        event.flags = event.flags | flags;
        event
    };
    let moves = |call, start_ns, elapsed_ns| at(event(call, 0, Some(0), start_ns, elapsed_ns), 0, 1 << 20);
    let events = [
        operation(moves(Call::MpiFileIwriteAtAll, MS, 1000), 2, Flags::ASYNC),
        event(Call::MpiWait, 0, None, 10 * MS, 20 * MS),
        // Data sieving reads what it will write.
        operation(physical(moves(Call::Pread, 12 * MS, 3 * MS)), 2, Flags::NONE),
        operation(physical(moves(Call::Pwrite, 15 * MS, 5 * MS)), 2, Flags::NONE),
        // A blocking one lasts as long as its call.
        operation(moves(Call::MpiFileReadAt, 40 * MS, 10 * MS), 3, Flags::NONE),
        operation(physical(moves(Call::Pread, 42 * MS, 3 * MS)), 3, Flags::NONE),
    ];
    let found = Explanation::of(&tables, events);
    assert_eq!(found.later, Later { write_ns: 8 * MS, ..Later::default() });
    let write = Transfer { bytes: 1 << 20, busy_ns: 8 * MS + 1000 };
    let read = Transfer { bytes: 1 << 20, busy_ns: 10 * MS };
    assert_eq!((found.transfers.write, found.transfers.read), (write, read));
    let data = Transfer { bytes: 2 << 20, busy_ns: 18 * MS + 1000 };
    assert_eq!((found.transfers.data, found.processes[0].transfer), (data, data));
    let asked = found.asked_operations.expect("the program used MPI-IO");
    assert_eq!(asked.write, write);
}

/// Nobody says which of several operations goes on in a wait for all of them.
#[test]
fn data_of_several_operations_move_in_one_wait() {
    let tables = Tables {
        processes: vec![process(Some(0), Some(100 * MS))],
        files: vec![File { path: "/data".into() }],
        handles: vec![handle(0, 0, 1)],
        ..Tables::default()
    };
    let moves = |call, start_ns, elapsed_ns| at(event(call, 0, Some(0), start_ns, elapsed_ns), 0, 1 << 20);
    let begun = |call, operation| {
        let event = moves(call, MS + operation, 1);
        Event { operation, flags: event.flags | Flags::ASYNC, ..event }
    };
    // Not of what was begun.
    let flush = physical(moves(Call::Pwrite, 60 * MS, 10 * MS));
    let ways = [
        (Call::MpiFileIwriteAt, Call::MpiWaitall, Later { write_ns: 12 * MS, ..Later::default() }),
        (
            Call::NcmpiIputVara,
            Call::NcmpiWaitAll,
            Later { write_ns: 20 * MS, read_ns: 0, in_syncs_ns: 20 * MS },
        ),
    ];
    for (begin, wait, later) in ways {
        let events = [
            begun(begin, 2),
            begun(begin, 3),
            event(wait, 0, None, 10 * MS, 20 * MS),
            physical(moves(Call::Pwrite, 12 * MS, 6 * MS)),
            physical(moves(Call::Pwrite, 18 * MS, 6 * MS)),
            event(Call::MpiFileClose, 0, Some(0), 55 * MS, 20 * MS),
            flush.clone(),
        ];
        let found = Explanation::of(&tables, events);
        assert_eq!(found.later, later, "{wait:?}");
        assert_eq!(found.transfers.write, Transfer { bytes: 2 << 20, busy_ns: 12 * MS + 2 }, "{wait:?}");
    }
}

#[test]
fn layers_are_kept_apart() {
    let (tables, events) = collective_write();
    let found = Explanation::of(&tables, events);
    let rows: Vec<_> = found
        .layers
        .iter()
        .map(|row| (row.layer, row.physical, row.table.operations.iter().map(|(_, tally)| tally.count).sum()))
        .collect();
    let expected: [(Layer, bool, u64); 5] = [
        (Layer::MpiIo, false, 6),
        (Layer::Posix, false, 1),
        (Layer::Posix, true, 4),
        (Layer::Message, false, 4),
        (Layer::Message, true, 2),
    ];
    assert_eq!(rows, expected);
    assert_eq!(found.events, 18);
    assert_eq!(found.duration_ns, 120 * MS);
    assert!(found.trouble.is_empty(), "{:?}", found.trouble);
}

#[test]
fn miller_and_katz_count_what_the_program_asked_for() {
    let (tables, events) = collective_write();
    let workload = Explanation::of(&tables, events).workload;
    assert_eq!(workload.cpu_s, 0.01);
    assert_eq!(workload.data_size_bytes, (2 << 20) + 30);
    assert_eq!((workload.files, workload.large_files), (2, 1));
    assert_eq!(workload.write, Amount { count: 3, bytes: (2 << 20) + 30 });
    assert_eq!(workload.large_write, Amount { count: 2, bytes: 2 << 20 });
    let large = workload.large_per_cpu_second().expect("there is CPU time");
    assert_eq!(large.writes_per_s, 200.0);
    assert_eq!(large.write_bytes_per_s, (2 << 20) as f64 / 0.01);
    assert_eq!(large.mean_io_bytes, Some((1 << 20) as f64));
    assert_eq!(large.read_write_ratio, Some(0.0));
}

#[test]
fn nested_calls_are_io_time_once() {
    let (tables, events) = collective_write();
    let found = Explanation::of(&tables, events);
    // Rank 0: open 8, write 40, log 1, close 5. Rank 1: the same without the log.
    let io: Vec<_> = found.processes.iter().map(|process| (process.rank, process.io_ns)).collect();
    assert_eq!(io, [(Some(0), 54 * MS), (Some(1), 53 * MS)]);
    assert_eq!(found.io_time.any_ns, 54 * MS);
    assert_eq!(found.io_time.concurrency(), Some(107.0 / 54.0));
    assert_eq!(found.io_time.fraction(), Some(107.0 / 200.0));
    let imbalance = found.imbalance.expect("there are processes");
    assert_eq!(imbalance.file_system_bytes, Some(2.0));
    assert_eq!(imbalance.io_time, Some(54.0 / 53.5));
    let busy: f64 = found.busy.rows[0].fraction.iter().sum::<f64>() * found.busy.bin_ns as f64;
    assert!((busy - 54.0 * MS as f64).abs() < 1.0, "{busy}");
    let written: f64 = found.rate.file_system_write.iter().sum();
    assert!((written - ((2 << 20) + 30) as f64).abs() < 1e-3, "{written}");
}

/// 16 threads of one process read 4 KiB at a time here and there, each of a file of its own, and write what they made of
/// it by `pwrite` to another: all of the time, all at the same time.
fn threads() -> (Tables, Vec<Event>) {
    const THREADS: u32 = 16;
    let rates = "write 1000 (900-1100) MB/s, device read 1000 (900-1100) MB/s, in /";
    let mut tables = Tables {
        processes: vec![process(None, Some(1_000 * MS))],
        notes: vec![("large requests".into(), rates.into())],
        ..Tables::default()
    };
    let mut events = Vec::new();
    for thread in 0..THREADS {
        for name in ["in", "out"] {
            tables.handles.push(handle(tables.files.len() as u32, 0, 1));
            tables.files.push(File { path: format!("/{name}.{thread}") });
        }
        for turn in 0..500 {
            for (step, call) in [(0, Call::Pread), (1, Call::Pwrite)] {
                let start = (2 * turn + step) * MS + u64::from(thread) * 1_000;
                let mut one = at(
                    event(call, 0, Some(2 * thread + step as u32), start, MS),
                    turn * turn * turn % 503 * 8192,
                    4096,
                );
                one.thread = thread;
                events.push(one);
            }
        }
    }
    events.sort_by_key(|event| event.start_ns);
    (tables, events)
}

#[test]
fn time_of_threads_that_overlaps_counts_once() {
    let (tables, events) = threads();
    let found = Explanation::of(&tables, events);
    let io_ns = found.io_time.any_ns;
    assert_eq!((io_ns, found.processes[0].io_ns), (1_000 * MS + 15_000, io_ns));
    let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::RandomAccess]);
    let random = &found.findings[0];
    // The first read and the first write of each file follow nothing.
    assert_eq!((random.cost.calls, random.cost.time_ns), (15_968, 15_968 * MS));
    assert!((io_ns - 3 * MS..io_ns).contains(&random.cost.own_ns), "{}", random.cost.own_ns);
    assert!((15.0..16.1).contains(&random.together), "{}", random.together);
    // Nearly all of the run, but not more.
    let lost_ns = random.lost_ns.expect("the rates are known");
    assert!((0.9 * io_ns as f64..=io_ns as f64).contains(&lost_ns), "{lost_ns}");
    // All 16 move their 4 KiB in the same ms: so the chart has it.
    let rate = found.transfers.data.bandwidth_bytes_per_s().expect("they move data");
    let bin_s = found.rate.bin_ns as f64 / 1e9;
    let bins = found.rate.program_read.iter().zip(&found.rate.program_write);
    let charted = bins.map(|(read, written)| (read + written) / bin_s).fold(0.0, f64::max);
    assert!((0.95..1.05).contains(&(rate / (16.0 * 4096.0 / 0.001))), "{rate}");
    assert!((0.95..1.05).contains(&(rate / charted)), "{rate} beside a peak of {charted}");
}

/// Many files of which a library reads the head, and then what is behind it, in equal parts of this order.
fn loaded(order: &[u64]) -> Vec<Kind> {
    let part_bytes = (512 << 10) / order.len() as u64;
    let rates = "write 1000 (900-1100) MB/s, device read 1000 (900-1100) MB/s, in /";
    let mut tables = Tables {
        processes: vec![process(None, Some(3_000 * MS))],
        notes: vec![("large requests".into(), rates.into())],
        ..Tables::default()
    };
    let mut events = Vec::new();
    let mut start = 0;
    for file in 0..300_u32 {
        tables.handles.push(handle(file, 0, 1));
        tables.files.push(File { path: format!("/{file}.npy") });
        let mut read = |offset, bytes| {
            events.push(at(event(Call::Read, 0, Some(file), start, MS), offset, bytes));
            start += MS;
        };
        read(0, 4096);
        order.iter().for_each(|part| read(128 + part * part_bytes, part_bytes));
    }
    Explanation::of(&tables, events).findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn what_is_read_in_one_piece_is_not_scattered() {
    assert!(!loaded(&[0]).contains(&Kind::RandomAccess));
    assert!(loaded(&[3, 0, 6, 1, 5, 2, 7, 4]).contains(&Kind::RandomAccess));
}

#[test]
fn files_and_patterns() {
    let (tables, events) = collective_write();
    let found = Explanation::of(&tables, events);
    let data = &found.files[0];
    assert_eq!(
        (data.path.as_str(), data.size_bytes, data.by_mpi_io, data.processes),
        ("/data", 2 << 20, true, 2)
    );
    assert_eq!((data.program.write.count, data.file_system.write.count), (2, 2));
    assert_eq!(data.imbalance, Some(2.0), "rank 0 wrote all");
    assert_eq!((data.program_pattern.first, data.file_system_pattern.consecutive), (2, 1));
    assert!(!found.files[1].by_mpi_io);
    assert_eq!(found.file_system_pattern.sequential_fraction(), Some(1.0));
}

#[test]
fn without_posix_calls_the_view_is_mpi_io() {
    let (tables, events) = collective_write();
    let events = events.into_iter().filter(|event| event.layer() != Layer::Posix);
    let view = Explanation::of(&tables, events).operations;
    assert_eq!(view.layer, Layer::MpiIo);
    assert_eq!(view.table.tally(Op::Write), tally(2, 2 << 20, 80, 40));
    assert_eq!(view.table.tally(Op::Communicate).count, 4);
}

#[test]
fn trouble_is_told() {
    let tables = Tables {
        notes: vec![("events dropped".into(), "17".into()), ("events lost".into(), "0".into())],
        processes: vec![process(None, None)],
        ..Tables::default()
    };
    let mut refused = event(Call::Open, 0, None, 0, 5);
    refused.result = -13;
    // Libraries look for files in many places: not finding one is no trouble.
    let mut missing = event(Call::Open, 0, None, 0, 5);
    missing.result = -2;
    let asked = Event { call: Call::Stat, ..missing.clone() };
    let mut killed = event(Call::Read, 0, None, 10, 5);
    killed.flags = Flags::UNFINISHED;
    killed.result = -4;
    let mut accumulator = Accumulator::new(&tables);
    for event in [refused.clone(), missing, asked, refused, killed] {
        accumulator.add(&event);
    }
    accumulator.add_damage("block 3: checksum");
    let trouble = accumulator.finish().trouble;
    assert_eq!(trouble.failed(), 2);
    assert_eq!((trouble.failures[0].call, trouble.failures[0].error), (Call::Open, 13));
    assert_eq!(trouble.unfinished, [(Call::Read, 1)]);
    assert_eq!(trouble.killed_processes, 1);
    assert_eq!(trouble.dropped, ["events dropped: 17"]);
    assert_eq!(trouble.damage, ["block 3: checksum"]);
}

#[test]
fn an_empty_trace_is_explained() {
    let found = Explanation::of(&Tables::default(), []);
    assert_eq!((found.events, found.process_count, found.duration_ns), (0, 0, 0));
    assert_eq!(found.workload.per_cpu_second(), None);
    assert_eq!(found.imbalance, None);
}

#[test]
fn references_to_nothing_are_counted_for_the_job_only() {
    let mut lost = at(event(Call::Write, 9, Some(9), u64::MAX - 1, 10), u64::MAX, u64::MAX);
    lost.result = i64::MAX;
    let found = Explanation::of(&Tables::default(), [lost.clone(), lost]);
    assert_eq!(found.operations.table.tally(Op::Write).count, 2);
    assert!(found.files.is_empty() && found.processes.is_empty());
}

/// They were of the process, but not of the job.
#[test]
fn calls_on_files_that_are_not_told_are_requests_of_the_program() {
    let tables = Tables {
        processes: vec![process(None, Some(MS))],
        files: vec![File { path: "/a".into() }],
        handles: vec![handle(0, 0, 1)],
        ..Tables::default()
    };
    let events = [
        at(event(Call::Read, 0, None, 0, 10), 0, 100),
        at(event(Call::Write, 0, None, 20, 10), 0, 30),
        at(event(Call::Read, 0, Some(0), 40, 10), 0, 5),
    ];
    let found = Explanation::of(&tables, events);
    let workload = &found.workload;
    assert_eq!((workload.read.count, workload.read.bytes), (2, 105));
    assert_eq!((workload.write.count, workload.write.bytes), (1, 30));
    assert_eq!((workload.files, found.transfers.read.bytes), (1, 105));
}

/// A rate is of the calls that move data: others may wait, and reads at the end of a file have none to wait for.
#[test]
fn the_time_of_calls_that_moved_nothing_is_in_no_bandwidth() {
    let tables = Tables {
        processes: vec![process(None, Some(100))],
        files: vec![File { path: "/a".into() }],
        handles: vec![handle(0, 0, 1)],
        ..Tables::default()
    };
    let mut failed = at(event(Call::Read, 0, Some(0), 20, 30), 0, 100);
    failed.result = -5;
    let mut at_end = at(event(Call::Read, 0, Some(0), 60, 30), 100, 100);
    at_end.result = 0;
    let found = Explanation::of(&tables, [at(event(Call::Read, 0, Some(0), 0, 10), 0, 100), failed, at_end]);
    let expected = Transfer { bytes: 100, busy_ns: 10 };
    assert_eq!((found.transfers.read, found.processes[0].transfer), (expected, expected));
    assert_eq!(found.io_time.process_ns, 70, "the program waited for them all the same");
}

#[test]
fn who_has_no_rank_is_not_counted_among_those_that_do() {
    let tables = Tables {
        processes: vec![process(Some(0), Some(100)), process(Some(1), Some(100)), process(None, Some(100))],
        files: vec![File { path: "/a".into() }],
        handles: (0..3).map(|process| handle(0, process, 1)).collect(),
        ..Tables::default()
    };
    // A helper beside the job is at files all the time.
    let reads = [(0, 0, 10), (1, 0, 10), (2, 0, 100)]
        .map(|(process, start, took)| at(event(Call::Read, process, Some(process), start, took), 0, 100));
    let io_time = Explanation::of(&tables, reads).io_time;
    assert_eq!((io_time.any_ns, io_time.process_ns), (10, 20));
    assert_eq!(io_time.concurrency(), Some(2.0));
}

#[test]
fn the_time_of_all_processes_may_have_more_than_64_bits() {
    let long = u64::MAX / 2;
    let tables = Tables {
        processes: (0..4).map(|rank| process(Some(rank), Some(long))).collect(),
        files: vec![File { path: "/a".into() }],
        handles: (0..4).map(|process| handle(0, process, 1)).collect(),
        ..Tables::default()
    };
    let reads = (0..4).map(|rank| at(event(Call::Read, rank, Some(rank), 0, long), 0, 100));
    let io_time = Explanation::of(&tables, reads).io_time;
    assert_eq!(io_time.process_ns, 4 * u128::from(long));
    assert_eq!((io_time.concurrency(), io_time.fraction()), (Some(4.0), Some(1.0)));
}

/// A rank that writes 3 MiB, and waits from 25 to 50 ms for requests to three servers at a time.
#[test]
fn requests_to_servers_are_what_reaches_the_files_and_their_times_add_up() {
    const MIB: u64 = 1 << 20;
    let tables = Tables {
        processes: vec![process(Some(0), Some(100 * MS))],
        files: vec![File { path: "/data".into() }],
        handles: vec![handle(0, 0, 1)],
        ..Tables::default()
    };
    let of_operation = |mut event: Event| {
        event.operation = 1;
        event
    };
    let request = |server, start, end| {
        let offset = u64::from(server) * MIB;
        let request = event(Call::ServerWrite, 0, Some(0), start * MS, (end - start) * MS);
        let target = Target::Server { server, offset };
        of_operation(physical(Event { target, ..at(request, offset, MIB) }))
    };
    let events = [
        of_operation(at(event(Call::MpiFileWriteAt, 0, Some(0), 20 * MS, 40 * MS), 0, 3 * MIB)),
        request(0, 25, 45),
        request(1, 25, 50),
        request(2, 30, 40),
    ];
    let found = Explanation::of(&tables, events);
    let [calls, requests] = &found.layers[..] else { panic!("{:?}", found.layers) };
    assert_eq!((calls.layer, calls.physical), (Layer::MpiIo, false));
    assert_eq!((requests.layer, requests.physical), (Layer::Server, true));
    assert_eq!(requests.table.tally(Op::Write), tally(3, 3 * MIB, 25, 20));
    // The program wrote 3 MiB, not 6.
    assert_eq!(found.transfers.write, Transfer { bytes: 3 * MIB, busy_ns: 40 * MS });
    assert!((found.rate.program_write.iter().sum::<f64>() - 3.0 * MIB as f64).abs() < 1e-3);
    assert_eq!(found.files[0].program.write.count, 1);
    assert_eq!(found.files[0].file_system.write, tally(3, 3 * MIB, 25, 20));
    assert_eq!(found.operations.table.tally(Op::Write), tally(3, 3 * MIB, 25, 20));
    let asked = found.asked_operations.as_ref().expect("by MPI-IO");
    assert_eq!(asked.table.tally(Op::Write), tally(1, 3 * MIB, 40, 40));
    let split = found.mpi_io.total();
    assert!(found.mpi_io.files_seen);
    assert_eq!((split.files_ns, split.library_ns), (25 * MS, 15 * MS));
}

fn any_event() -> impl Strategy<Value = Event> {
    let call = prop::sample::select(vec![
        Call::Read,
        Call::Pwrite,
        Call::Open,
        Call::Close,
        Call::MpiSend,
        Call::MpiFileRead,
    ]);
    (call, 0..3_u32, 0..3_u32, 0..1000_u64, 0..50_u64, 0..100_u64, 0..200_u64, any::<bool>(), 0..10_u64)
        .prop_map(|(call, process, handle, start, elapsed, size, offset, physical, think)| {
            let mut event = at(event(call, process, Some(handle), start, elapsed), offset, size);
            if size % 7 == 3 {
                event.result = -5;
            }
            if physical {
                event.flags = Flags::PHYSICAL;
            }
            event.think_ns = think;
            event
        })
}

proptest! {
    #[test]
    fn agrees_with_a_naive_recomputation(mut events in prop::collection::vec(any_event(), 0..60)) {
        events.sort_by_key(|event| event.start_ns);
        let tables = Tables {
            processes: (0..3).map(|rank| process(Some(rank), Some(1100))).collect(),
            files: vec![File { path: "/a".into() }, File { path: "/b".into() }],
            handles: vec![handle(0, 0, 1), handle(0, 1, 1), handle(1, 2, 1)],
            ..Tables::default()
        };
        let found = Explanation::of(&tables, events.clone());

        for row in &found.layers {
            for op in Op::ALL {
                let chosen = events.iter().filter(|e| e.layer() == row.layer && e.is_physical() == row.physical && e.op() == op);
                let moves = matches!(op, Op::Read | Op::Write | Op::Communicate);
                let expected = chosen.fold(Tally::default(), |sum, e| sum.merged(Tally {
                    count: 1,
                    failed: u64::from(e.result < 0),
                    bytes: if moves { e.result.max(0) as u64 } else { 0 },
                    time_ns: e.elapsed_ns,
                    longest_ns: e.elapsed_ns,
                }));
                prop_assert_eq!(row.table.tally(op), expected);
            }
        }

        let is_io = |e: &&Event| e.layer() != Layer::Message;
        let busy = |process: u32, time: u64| {
            events.iter().filter(is_io).any(|e| e.process.0 == process && (e.start_ns..e.end_ns()).contains(&time))
        };
        let (mut any, mut all) = (0, 0);
        for time in 0..1100 {
            let count = (0..3).filter(|&process| busy(process, time)).count() as u64;
            any += u64::from(count > 0);
            all += u128::from(count);
        }
        prop_assert_eq!((found.io_time.any_ns, found.io_time.process_ns), (any, all));
        let lost: f64 = found.findings.iter().filter_map(|finding| finding.lost_ns).sum();
        prop_assert!(lost <= any as f64 * (1.0 + 1e-9), "{} of {}", lost, any);
        let moving = |ops: &[Op], time: u64| {
            let chosen = |e: &&Event| ops.contains(&e.op()) && !e.is_physical() && e.result > 0;
            events.iter().filter(chosen).any(|e| (e.start_ns..e.end_ns()).contains(&time))
        };
        let busy_ns = |ops: &[Op]| (0..1100).filter(|&time| moving(ops, time)).count() as u64;
        let transfers = found.transfers;
        prop_assert_eq!(transfers.read.busy_ns, busy_ns(&[Op::Read]));
        prop_assert_eq!(transfers.write.busy_ns, busy_ns(&[Op::Write]));
        prop_assert_eq!(transfers.data.busy_ns, busy_ns(&[Op::Read, Op::Write]));

        for file in &found.files {
            let end = events.iter()
                .filter(|e| e.handle.is_some_and(|h| tables.handles[h.index()].file == file.file))
                .filter(|e| is_io(e) && matches!(e.op(), Op::Read | Op::Write) && e.result > 0)
                .filter_map(|e| match e.target { Target::Extent { offset } => Some(offset + e.result as u64), _ => None })
                .max().unwrap_or(0);
            prop_assert_eq!(file.size_bytes, end);
            let pattern = &file.program_pattern;
            let accesses = events.iter()
                .filter(|e| e.handle.is_some_and(|h| tables.handles[h.index()].file == file.file))
                .filter(|e| is_io(e) && !e.is_physical() && matches!(e.op(), Op::Read | Op::Write) && e.result >= 0)
                .count() as u64;
            prop_assert_eq!(pattern.first + pattern.consecutive + pattern.strided + pattern.random, accesses);
        }

        let read: f64 = found.rate.program_read.iter().sum();
        let expected: i64 = events.iter().filter(|e| e.op() == Op::Read && !e.is_physical()).map(|e| e.result.max(0)).sum();
        prop_assert!((read - expected as f64).abs() < 1e-6);
        let think: u64 = events.iter().map(|e| e.think_ns).sum();
        prop_assert_eq!(found.workload.cpu_s, think as f64 / 1e9);
    }
}

/// What a damaged or hostile trace may say of a time, a size or an offset.
fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_u64, Just(1 << 40), Just(u64::MAX / 2), Just(u64::MAX), any::<u64>()]
}

/// Any call with any numbers.
fn any_call() -> impl Strategy<Value = Event> {
    let numbers = [any_number(), any_number(), any_number(), any_number(), any_number()];
    let flags = prop::sample::select(vec![
        Flags::NONE,
        Flags::PHYSICAL,
        Flags::ASYNC,
        Flags::UNFINISHED,
        Flags::COLLECTIVE,
        Flags::COLD,
    ]);
    let result = prop_oneof![Just(None), Just(Some(i64::MAX)), (-30..100_i64).prop_map(Some)];
    (prop::sample::select(Call::ALL), 0..3_u32, 0..3_u32, numbers, flags, result, 0..5_u64).prop_map(
        |(call, process, handle, [start, elapsed, size, offset, think], flags, result, operation)| {
            let mut event = at(event(call, process, Some(handle), start, elapsed), offset, size);
            event.result = result.unwrap_or(event.result);
            Event { think_ns: think, flags, operation, ..event }
        },
    )
}

proptest! {
    /// Sums of what was waited for locks went beyond 64 bits.
    #[test]
    fn any_numbers_do_no_harm(mut events in prop::collection::vec(any_call(), 0..60)) {
        events.sort_by_key(|event| event.start_ns);
        let tables = Tables {
            processes: (0..3).map(|rank| process(Some(rank), Some(u64::MAX))).collect(),
            files: vec![File { path: "/a".into() }, File { path: "/b".into() }],
            handles: vec![handle(0, 0, 2), handle(0, 1, 2), handle(1, 2, 1)],
            ..Tables::default()
        };
        Explanation::of(&tables, events);
    }
}

/// The time that three processes waited for locks has more than 64 bits.
#[test]
fn locks_may_be_waited_for_as_long_as_there_are_numbers() {
    let tables = Tables {
        processes: (0..3).map(|rank| process(Some(rank), Some(u64::MAX))).collect(),
        files: vec![File { path: "/a".into() }, File { path: "/b".into() }],
        handles: (0..6).map(|index| handle(index / 3, index % 3, 1)).collect(),
        ..Tables::default()
    };
    let locks = (0..6).map(|index| event(Call::FcntlLock, index % 3, Some(index), 0, u64::MAX));
    let found = Explanation::of(&tables, locks);
    assert_eq!(found.findings.iter().map(|one| one.kind).collect::<Vec<_>>(), [Kind::LockWaits]);
}

#[test]
fn time_in_mpi_is_that_of_its_outermost_calls() {
    let (tables, _) = collective_write();
    let used = |event: Event, used_ns| Event { used_ns: Some(used_ns), ..event };
    let write = event(Call::MpiFileWriteAll, 1, Some(0), 10, 50);
    let barrier = event(Call::MpiBarrier, 1, None, 60, 30);
    let events = [
        used(write.clone(), 20),
        used(physical(event(Call::MpiBarrier, 1, None, 20, 10)), 10),
        used(barrier.clone(), 30),
        event(Call::MpiWait, 1, None, 90, 5),
    ];
    let found = Explanation::of(&tables, events);
    assert_eq!(found.in_mpi, InMpi { elapsed_ns: 80, used_ns: 50 });
    assert_eq!(Explanation::of(&tables, [write, barrier]).in_mpi.fraction(), None);
}

#[test]
fn a_finding_names_files_that_were_never_opened() {
    let (mut tables, _) = collective_write();
    tables.files.push(File { path: "/etc/missing".into() });
    let asked = |number: u64| {
        let mut stat = event(Call::Stat, 1, None, number * 10_000, 9_000);
        stat.target = Target::Name { file: FileId(2), other: None };
        stat
    };
    let found = Explanation::of(&tables, (0..2000).map(asked));
    let storm =
        found.findings.iter().find(|finding| finding.kind == Kind::MetadataStorm).expect("2000 calls");
    let paths: Vec<_> = storm.files.iter().map(|file| found.path(file.id)).collect();
    assert_eq!(paths, [Some("/etc/missing")]);
    assert!(found.files.is_empty(), "no file was used");
}

#[test]
fn a_damaged_block_is_left_out_and_told() {
    let (tables, events) = collective_write();
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, tables).expect("the tables are sound");
    for event in &events[..10] {
        writer.push(event).expect("events are in order");
    }
    writer.flush().expect("memory takes it");
    let middle = events.len() - 1;
    for event in &events[middle..] {
        writer.push(event).expect("events are in order");
    }
    writer.finish().expect("memory takes it");

    let whole = Trace::from_bytes(bytes.clone(), "whole").expect("the trace is whole");
    let found = Explanation::of_trace(&whole, &mut |_| {}).expect("memory can be read");
    assert_eq!((found.events, found.trouble.damage.len()), (11, 0));
    assert_eq!(found, Explanation::of(whole.tables(), whole.events().map(|event| event.expect("whole"))));

    // Some byte of the first block: its check fails, and the second one is still good.
    let mut told = false;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let Ok(trace) = Trace::from_bytes(damaged, "damaged") else { continue };
        let found = Explanation::of_trace(&trace, &mut |_| {}).expect("memory can be read");
        assert!(found.events == 11 || !found.trouble.damage.is_empty(), "byte {at} lost events in silence");
        told |= found.events == 1 && found.trouble.damage.len() == 1;
    }
    assert!(told, "no damage hit the first block alone");
}

/// Calls of 300 processes on files that they share, of all layers, some by an upper one; with them those of names.
fn call_of_many() -> impl Strategy<Value = Event> {
    let calls: Vec<Call> = Call::ALL.iter().copied().filter(|call| call.layer() != Layer::Mark).collect();
    // Mostly calls that are looked at process by process.
    let calls = prop_oneof![
        30 => prop::sample::select(vec![Call::Pwrite, Call::Pread, Call::Fsync, Call::Lseek]),
        1 => prop::sample::select(calls),
    ];
    (calls, 0..300_u32, 0..2_u32, 0..50_u64, 0..3000_u64, any::<bool>()).prop_map(
        |(call, number, file, place, size, is_physical)| {
            let moves = matches!(call.op(), Op::Read | Op::Write);
            let offset = place * 1000;
            let mut event = event(call, number, Some(number * 2 + file), 0, size * 7 % 2000);
            event.target = match call.layer() {
                Layer::Server => Target::Server { server: 0, offset },
                _ if moves => Target::Extent { offset },
                _ => Target::None,
            };
            if moves {
                (event.size, event.result) = (size, size as i64);
            }
            event.think_ns = size;
            if is_physical && call.layer() == Layer::Posix && size % 16 == 0 {
                event.flags = Flags::PHYSICAL;
            }
            event
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn many_processes_are_explained_as_their_events_are_in_order(
        blocks in prop::collection::vec(prop::collection::vec(call_of_many(), 1..400), 1..4),
    ) {
        let tables = Tables {
            processes: (0..300).map(|rank| process(Some(rank), None)).collect(),
            files: (0..2).map(|file| File { path: format!("/data/{file}") }).collect(),
            handles: (0..600).map(|number| handle(number % 2, number / 2, 1)).collect(),
            ..Tables::default()
        };
        let (mut bytes, mut start_ns) = (Vec::new(), 0);
        let mut writer = TraceWriter::new(&mut bytes, tables).expect("the tables are sound");
        for events in blocks {
            for mut event in events {
                start_ns += event.think_ns / 50;
                event.start_ns = start_ns;
                writer.push(&event).expect("events are in order");
            }
            writer.flush().expect("memory takes it");
        }
        writer.finish().expect("memory takes it");
        let trace = Trace::from_bytes(bytes, "trace").expect("the trace is whole");
        let in_order = trace.events().map(|event| event.expect("whole"));
        let (in_order, mut given) = (Explanation::of(trace.tables(), in_order), 0);
        let found = Explanation::of_trace_and(&trace, &mut |block| given += block.len() as u64, &mut |_| {});
        prop_assert_eq!(found.expect("memory can be read"), in_order);
        prop_assert_eq!(given, trace.event_count());
    }
}
