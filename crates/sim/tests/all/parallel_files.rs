//! Whole programs on parallel file systems: every strategy on every example, and what makes IOR's hard phase hard.

use pio_machine::{Duration, Machine, Storage};
use pio_plan::{Hints, Strategy};
use pio_sim::workload::{Named, Workload, catalogue};
use pio_sim::{Options, Prediction, simulate};
use pio_trace::{Call, File, Op};

const EXAMPLES: [&str; 6] = ["beegfs", "burst-buffer", "daos", "gpfs", "lustre", "nfs"];

pub(crate) fn workload(name: &str, parameters: &[(&str, &str)]) -> Workload {
    let entry = catalogue().iter().find(|entry| entry.name == name).unwrap();
    let parameters: Vec<_> =
        parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    entry.build(&parameters, 1).unwrap()
}

fn predict(machine: &Machine, workload: &Workload, strategy: Strategy) -> Prediction {
    let (hints, options) = (Hints::default(), Options::default());
    simulate(machine, workload, strategy, &hints, &options, None, &mut |_| {}).unwrap()
}

#[test]
fn every_strategy_runs_on_every_example() {
    let program = workload("bt-io", &[("ranks", "4"), ("mesh", "12")]);
    for name in EXAMPLES {
        let machine = Machine::built_in(name).unwrap();
        let least = predict(&machine, &program, Strategy::Independent);
        assert_eq!(least.servers.len() as u32, machine.storage.io_nodes().unwrap().count, "{name}");
        for strategy in Strategy::ALL {
            let found = predict(&machine, &program, strategy);
            assert!(found.bytes_read >= least.bytes_read, "{name}, {strategy}");
            assert!(found.bytes_written >= least.bytes_written, "{name}, {strategy}");
            assert_eq!(predict(&machine, &program, strategy), found, "{name}, {strategy}: twice the same");
        }
    }
}

#[test]
fn nothing_is_read_behind_the_end_of_what_a_program_reads() {
    let machine = Machine::built_in("lustre").unwrap();
    let program = workload("ior-easy", &[("ranks", "4"), ("block", "64 MiB"), ("phases", "read")]);
    let found = predict(&machine, &program, Strategy::Independent);
    // Twice as much was, when files had no end.
    assert_eq!(found.servers.iter().map(|server| server.bytes_read).sum::<u64>(), 4 << 26);
}

#[test]
fn more_requests_in_flight_make_no_call_slower() {
    let program = workload(
        "ior-easy",
        &[("ranks", "1"), ("block", "64 MiB"), ("transfer", "64 MiB"), ("phases", "write")],
    );
    for name in ["burst-buffer", "daos"] {
        let machine = Machine::built_in(name).unwrap();
        let [one, few, many] = ["1", "8", "64"].map(|count| {
            let machine = machine.with("storage.client.in-flight", count).unwrap();
            predict(&machine, &program, Strategy::Independent).io_time_mean.seconds()
        });
        assert!(few <= one * 1.001 && many <= few * 1.001, "{name}: {one}, {few}, {many} s");
    }
}

/// Bytes a second of IOR's phase with a sync, 16 ranks on each of so many nodes.
fn rate(machine: &Machine, name: &str, nodes: u32) -> f64 {
    let size = if name == "ior-easy" { ("block", "64 MiB") } else { ("segments", "128") };
    let program = workload(name, &[("ranks", &(16 * nodes).to_string()), ("phases", "write-sync"), size]);
    let options = Options { ranks_per_node: Some(16), ..Options::default() };
    let (strategy, hints) = (Strategy::Independent, Hints::default());
    let found = simulate(machine, &program, strategy, &hints, &options, None, &mut |_| {}).unwrap();
    found.bytes_written as f64 / found.makespan.seconds()
}

#[test]
fn interleaved_writes_of_a_shared_file_are_slow_where_clients_lock() {
    let narrow = Machine::built_in("lustre").unwrap().with("storage.stripe-count", "2").unwrap();
    let mut wide = narrow.with("storage.stripe-count", "288").unwrap();
    let [easy_one, easy] = [1, 8].map(|nodes| rate(&narrow, "ior-easy", nodes));
    let [hard_one, hard] = [1, 8].map(|nodes| rate(&wide, "ior-hard", nodes));
    assert!(easy > 5.0 * easy_one, "eight clients do six times what one does: {easy}, {easy_one} B/s");
    assert!(
        hard < 3.0 * hard_one,
        "eight are little faster than one, which has all locks: {hard}, {hard_one} B/s"
    );
    assert!(easy > 5.0 * hard, "{easy}, {hard} B/s");
    // It is the locks.
    let Storage::Parallel(files) = &mut wide.storage else { panic!("parallel") };
    files.locks = None;
    let free = rate(&wide, "ior-hard", 8);
    assert!(free > 2.0 * hard, "{free}, {hard} B/s");
}

#[test]
fn collective_buffering_makes_up_for_it() {
    let lustre = Machine::built_in("lustre").unwrap().with("storage.stripe-count", "8").unwrap();
    let program = workload("bt-io", &[("ranks", "16"), ("mesh", "24")]);
    let io_time = |strategy| predict(&lustre, &program, strategy).io_time_mean;
    assert!(io_time(Strategy::TwoPhase) < io_time(Strategy::Independent));
}

#[test]
fn recorded_unlinks_queue_where_a_machine_says_what_they_take() {
    let us = |count: u64| Duration::from_picoseconds(count * 1_000_000);
    let named =
        |file| Named { before: 0, think: us(0), idle: us(0), call: Call::Unlink, file, elapsed: us(1000) };
    // Eight ranks remove ten files each, all in one directory.
    let program = Workload {
        name: "removes".to_owned(),
        files: (0..80).map(|file| File { path: format!("/shared/{file}") }).collect(),
        programs: vec![Vec::new(); 8],
        unreplayed: vec![us(10_000); 8],
        named: (0..8).map(|rank| (0..10).map(|turn| named(rank * 10 + turn)).collect()).collect(),
        ..Workload::default()
    };
    let lustre = Machine::built_in("lustre").unwrap();
    let found = predict(&lustre, &program, Strategy::Independent);
    assert_eq!((found.operation(Op::Metadata).count, found.unreplayed_mean), (80, us(0)));
    // One server, 105 us each; the ways of the first there and of the last back are a few us.
    let beyond = found.io_time_max.seconds() - 80.0 * 105e-6;
    assert!((0.0..20e-6).contains(&beyond), "{beyond}");
    let nfs = Machine::built_in("nfs").unwrap();
    let found = predict(&nfs, &program, Strategy::Independent);
    assert_eq!((found.operation(Op::Metadata).count, found.io_time_max), (0, us(10_000)), "as recorded");
}
