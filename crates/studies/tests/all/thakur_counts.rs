//! The calls of Thakur's application, counted in its simulated trace, are those of his Tables 1 and 2.

use std::collections::{BTreeMap, BTreeSet};

use pio_machine::Machine;
use pio_plan::{Describe, Hints, Strategy};
use pio_sim::workload::{Collapse, collapse};
use pio_sim::{Options, Prediction, Workload, simulate};
use pio_trace::{Call, Op, Trace};

/// All ranks describe their accesses to each other, however many they are; nobody sieves, and so nobody locks.
fn as_published() -> Hints {
    Hints { describe: Some(Describe::All), ind_wr_buffer_size: Some(1), ..Hints::default() }
}

fn run(run: &Collapse, path: Option<&std::path::Path>) -> Prediction {
    let machine = Machine::built_in("sp-argonne").unwrap();
    let workload = collapse(run).unwrap();
    let (hints, options) = (as_published(), Options::default());
    simulate(&machine, &workload, Strategy::TwoPhase, &hints, &options, path, &mut |_| {}).unwrap()
}

#[test]
fn the_small_case_makes_exactly_the_published_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pio");
    let prediction = run(&Collapse::SMALL, Some(&path));
    let count = |op| prediction.operation(op).count;
    assert_eq!((count(Op::Open), count(Op::Close)), (200, 200));
    assert_eq!((count(Op::Read), count(Op::Write), count(Op::Communicate)), (49, 536, 5608));
    let sizes: Vec<((Op, u64), u64)> = prediction.sizes.clone().into_iter().collect();
    let (k128, k512) = (128 << 10, 512 << 10);
    let expected = [
        ((Op::Read, 24), 1),
        ((Op::Read, k512), 48),
        ((Op::Write, 24), 24),
        ((Op::Write, k128), 128),
        ((Op::Write, k512), 384),
    ];
    assert_eq!(sizes, expected);

    // The trace says the same.
    let mut calls: BTreeMap<Call, u64> = BTreeMap::new();
    let trace = Trace::open(&path).unwrap();
    for event in trace.events() {
        *calls.entry(event.unwrap().call).or_default() += 1;
    }
    let strategy = calls[&Call::StrategyDescribe] + calls[&Call::StrategyData];
    assert_eq!((strategy, calls[&Call::MpiBcast], calls.get(&Call::StrategyGrant)), (5600, 8, None));
    assert_eq!((calls[&Call::Pread], calls[&Call::Pwrite]), (49, 536));
    assert_eq!((calls[&Call::MpiFileOpen], calls[&Call::Open], calls[&Call::Close]), (200, 200, 200));
}

/// The calls of a two-phase run, computed by hand: see section 3.3 of the paper.
#[test]
fn the_large_case_follows_the_same_formula() {
    let large = Collapse::LARGE;
    let ranks = u64::from(large.processes);
    let dumps = u64::from(large.iterations / large.dump_every);
    let files = 1 + 6 * dumps;
    let arrays = 6 + 16 * dumps;
    // 64 slabs of 2 planes; a quarter of the third dimension is 16 slabs, one of them the rank's own.
    let messages = arrays * ranks * ((ranks - 1) + (16 - 1)) + ranks;
    let found = run(&large, None);
    let count = |op| found.operation(op).count;
    assert_eq!((count(Op::Open), count(Op::Close)), (files * ranks, files * ranks));
    assert_eq!(count(Op::Read), 6 * ranks + 1);
    assert_eq!(count(Op::Write), dumps * (16 * ranks + 6));
    assert_eq!(count(Op::Communicate), messages);
    let bytes = |arrays_of_numbers: u64, arrays_of_characters: u64, headers: u64| {
        let points: u64 = large.mesh.iter().product();
        points * (4 * arrays_of_numbers + arrays_of_characters) + 24 * headers
    };
    assert_eq!((found.bytes_read, found.bytes_written), (bytes(6, 0, 1), bytes(12, 4, 6)));
    let on_servers: u64 = found.servers.iter().map(|server| server.bytes_written).sum();
    assert_eq!(on_servers, found.bytes_written);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let path = folder.path().join(name);
        run(&Collapse { iterations: 5, ..Collapse::SMALL }, Some(&path));
        std::fs::read(path).unwrap()
    };
    assert_eq!(bytes("a.pio"), bytes("b.pio"));
}

#[test]
fn a_simulated_trace_is_a_workload_that_takes_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pio");
    let first = run(&Collapse { iterations: 10, ..Collapse::SMALL }, Some(&path));
    let workload = Workload::from_trace(&Trace::open(&path).unwrap()).unwrap();
    let machine = Machine::built_in("sp-argonne").unwrap();
    let predict = |strategy| {
        let (hints, options) = (as_published(), Options::default());
        simulate(&machine, &workload, strategy, &hints, &options, None, &mut |_| {}).unwrap()
    };
    let again = predict(Strategy::TwoPhase);
    assert_eq!(again.makespan, first.makespan);
    assert_eq!(again.operations, first.operations);
    assert_eq!(again.sizes, first.sizes);
    // The same program without two-phase: each rank's 64 x 64 x 32 block has 2048 pieces.
    let independent = predict(Strategy::Independent);
    assert_eq!(independent.operation(Op::Read).count, 6 * 8 * 2048 + 1);
    assert!(independent.makespan > first.makespan);
}

#[test]
fn time_in_a_collective_operation_is_messages_and_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pio");
    run(&Collapse { iterations: 5, ..Collapse::SMALL }, Some(&path));
    let trace = Trace::open(&path).unwrap();
    let mut reads = BTreeSet::new();
    // By process and operation: the whole, and the sum of its parts.
    let mut times: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
    for event in trace.events() {
        let event = event.unwrap();
        if event.call == Call::MpiFileReadAll {
            reads.insert((event.process.0, event.operation));
        }
        let entry = times.entry((event.process.0, event.operation)).or_default();
        match event.call {
            Call::MpiFileReadAll | Call::MpiFileWriteAll => entry.0 += event.elapsed_ns,
            _ if event.is_physical() => entry.1 += event.elapsed_ns,
            _ => {}
        }
    }
    // An aggregator that is its own first client copies its part (512 pieces, 128 KiB) before it sends anything.
    let copy = Machine::built_in("sp-argonne").unwrap().nodes.copy;
    let own_copy_ns =
        (copy.bandwidth.time_of(128 << 10).picoseconds() + 512 * copy.piece.picoseconds()) / 1000;
    let collective: Vec<_> = times.into_iter().filter(|(_, (whole, _))| *whole > 0).collect();
    assert_eq!(collective.len(), (6 + 16) * 8);
    for (operation, (whole_ns, parts_ns)) in collective {
        let left_ns = whole_ns - parts_ns;
        let allowed_ns = if reads.contains(&operation) { own_copy_ns + 1 } else { 0 };
        assert!(left_ns <= allowed_ns, "{left_ns} ns of {operation:?} belong to no event");
    }
}

/// Independent I/O of the small case: more than a million requests, written to a trace as they come.
#[test]
fn a_million_requests_are_no_burden() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("million.pio");
    let machine = Machine::built_in("sp-argonne").unwrap();
    let workload = collapse(&Collapse::SMALL).unwrap();
    let (hints, options) = (as_published(), Options::default());
    let start = std::time::Instant::now();
    let mut told = Vec::new();
    let mut progress = |progress: pio_sim::Progress| told.push(progress.simulated_seconds);
    let strategy = Strategy::Independent;
    let found = simulate(&machine, &workload, strategy, &hints, &options, None, &mut progress).unwrap();
    let requests = found.operation(Op::Read).count + found.operation(Op::Write).count;
    let seconds = start.elapsed().as_secs_f64();
    println!("{requests} requests, {} events in {seconds:.2} s", found.simulated_events);
    assert_eq!(requests, 70 * 8 * 2048 + 25);
    assert!(told.len() > 10 && told.is_sorted(), "progress goes forward");
    let traced = simulate(&machine, &workload, strategy, &hints, &options, Some(&path), &mut |_| {}).unwrap();
    assert_eq!(traced, found);
    println!("with the trace {:.2} s", start.elapsed().as_secs_f64() - seconds);
    let trace = Trace::open(&path).unwrap();
    assert!(trace.damage().is_none());
    // Requests; opens, closes and accesses of both layers; views; messages.
    let calls = 2 * 400 + 70 * 8 * 2 + 25 + 8;
    assert_eq!(trace.event_count(), requests + calls);
}
