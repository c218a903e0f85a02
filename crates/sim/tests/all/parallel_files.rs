//! Whole programs on parallel file systems: every strategy on every example, and what makes IOR's hard phase hard.

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::workload::{Workload, catalogue};
use pio_sim::{Options, Prediction, simulate};

const EXAMPLES: [&str; 6] = ["beegfs", "burst-buffer", "daos", "gpfs", "lustre", "nfs"];

fn workload(name: &str, parameters: &[(&str, &str)]) -> Workload {
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

/// Bytes a second of IOR's phase with a sync, one rank on each of so many nodes of this machine.
fn rate(machine: &Machine, name: &str, ranks: u32) -> f64 {
    let size = if name == "ior-easy" { ("block", "16 MiB") } else { ("segments", "64") };
    let program = workload(name, &[("ranks", &ranks.to_string()), ("phases", "write-sync"), size]);
    let found = predict(machine, &program, Strategy::Independent);
    found.bytes_written as f64 / found.makespan.seconds()
}

#[test]
fn interleaved_writes_of_a_shared_file_are_slow_where_clients_lock() {
    let lustre = Machine::built_in("lustre").unwrap();
    let wide = lustre.with("storage.stripe-count", "288").unwrap();
    let (easy, hard) = (rate(&lustre, "ior-easy", 8), rate(&wide, "ior-hard", 8));
    assert!(easy > 10.0 * hard, "{easy} and {hard} B/s");
    // One client has all locks: nobody calls them back.
    let alone = rate(&wide, "ior-hard", 1);
    assert!(hard < 2.0 * alone, "eight clients are hardly faster than one: {hard} and {alone} B/s");
    // Where no client locks, they are.
    let daos = Machine::built_in("daos").unwrap();
    let (eight, one) = (rate(&daos, "ior-hard", 8), rate(&daos, "ior-hard", 1));
    assert!(eight > 4.0 * one, "{eight} and {one} B/s");
}

#[test]
fn collective_buffering_makes_up_for_it() {
    let lustre = Machine::built_in("lustre").unwrap().with("storage.stripe-count", "8").unwrap();
    let program = workload("bt-io", &[("ranks", "16"), ("mesh", "24")]);
    let io_time = |strategy| predict(&lustre, &program, strategy).io_time_mean;
    assert!(io_time(Strategy::TwoPhase) < io_time(Strategy::Independent));
}
