//! Every generated workload, simulated: it ends, and moves the bytes it asks for.

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::workload::{What, catalogue};
use pio_sim::{Options, Workload, simulate};

use crate::parallel_files::workload;

fn bytes(workload: &Workload) -> u64 {
    let moved = workload.programs.iter().flatten().map(|step| match &step.what {
        What::Access { positions, .. } => positions.end - positions.start,
        What::Request { bytes, .. } => *bytes,
        _ => 0,
    });
    moved.sum()
}

#[test]
fn every_entry_of_the_catalogue_can_be_predicted() {
    let machine = Machine::built_in("sp-argonne").unwrap();
    // Smaller than by default, where that takes long.
    let smaller = |name: &str| match name {
        "bt-io" => vec![("ranks".to_owned(), "4".to_owned()), ("mesh".to_owned(), "12".to_owned())],
        "bvi" | "forma" => vec![("cycles".to_owned(), "2".to_owned())],
        _ => Vec::new(),
    };
    for entry in catalogue() {
        let workload = entry.build(&smaller(entry.name), 1).unwrap();
        let (hints, options) = (Hints::default(), Options::default());
        let start = std::time::Instant::now();
        let found = simulate(&machine, &workload, Strategy::TwoPhase, &hints, &options, None, &mut |_| {});
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        println!("{} {:?}", entry.name, start.elapsed());
        // Two-phase reads what it does not write of a hole, and a server may move a strip for less.
        assert!(found.bytes_read + found.bytes_written >= bytes(&workload), "{}", entry.name);
    }
}

/// Each kind of storage goes on behind requests, syncs and closes in its own way.
#[test]
fn on_every_machine_programs_that_sync_come_to_an_end() {
    let phases = ("phases", "write-sync-read");
    let easy = |ranks, block| {
        workload("ior-easy", &[("ranks", ranks), ("block", block), ("transfer", "64 KiB"), phases])
    };
    let programs = [
        // Less than a strip for each server, and more.
        easy("1", "64 KiB"),
        easy("4", "4 MiB"),
        workload("ior-hard", &[("ranks", "3"), ("segments", "20"), phases]),
    ];
    for name in Machine::built_in_names() {
        let machine = Machine::built_in(name).unwrap();
        for program in &programs {
            let (hints, options) = (Hints::default(), Options::default());
            let strategy = Strategy::Independent;
            let found = simulate(&machine, program, strategy, &hints, &options, None, &mut |_| {});
            let found = found.unwrap_or_else(|error| panic!("{name}, {}: {error}", program.name));
            assert!(found.makespan >= found.io_time_max, "{name}, {}", program.name);
            assert_eq!(
                found.bytes_read.min(bytes(program) / 2),
                bytes(program) / 2,
                "{name}, {}",
                program.name
            );
        }
    }
}
