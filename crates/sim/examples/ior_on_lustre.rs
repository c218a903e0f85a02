//! IOR's easy and hard phases, as IO500 runs them, on the example machine `lustre`, beside what was measured: the tables of
//! `docs/design/parallel-file-systems.md`.
//!
//! `cargo run --release -p pio-sim --example ior_on_lustre` for the machine as it is described;
//! `… ior_on_lustre -- KEY=VALUE…` with keys of it changed;
//! `… ior_on_lustre -- RUNS.csv` beside measured runs of IOR on another Lustre: a table with the columns `run`, `workload`,
//! `files`, `transfer_B`, `block_B`, `segments`, `ranks`, `write_and_sync_s` and `read_s`.

use std::error::Error;
use std::path::Path;

use pio_machine::{Machine, Storage};
use pio_plan::{Hints, Strategy};
use pio_sim::workload::find;
use pio_sim::{Options, simulate};

const GIB: f64 = (1_u64 << 30) as f64;

/// Bytes of a rank in the easy phase, and its transfers in the hard one. With twice as many of these, ranks have drifted
/// further apart, and 10 clients write 16 % faster.
const BLOCK: u64 = 256 << 20;
const SEGMENTS: u64 = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let changes: Option<Vec<_>> = arguments.iter().map(|argument| argument.split_once('=')).collect();
    match (changes, &arguments[..]) {
        (Some(changes), _) => as_submitted(&changes),
        (None, [runs]) => beside_runs(Path::new(runs)),
        (None, _) => Err("expected keys of the description with their values, or one table of runs".into()),
    }
}

/// Seconds until all ranks are done with a phase.
fn seconds(
    machine: &Machine,
    workload: &str,
    parameters: &[(&str, String)],
    ranks_per_node: u32,
) -> Result<f64, Box<dyn Error>> {
    let given: Vec<_> = parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let workload = find(workload)?.build(&given, 1)?;
    let options = Options { ranks_per_node: Some(ranks_per_node), ..Options::default() };
    let strategy = Strategy::Independent;
    let found = simulate(machine, &workload, strategy, &Hints::default(), &options, None, &mut |_| {})?;
    Ok(found.makespan.seconds())
}

/// How the Data Accelerator was run: submissions 78 and 23 of IO500. Clients, ranks on each, objects of an easy file and of
/// the hard one; and what was measured: easy write and read, hard write and read, GiB/s.
const SUBMITTED: [(u32, u32, u32, u32, [f64; 4]); 2] =
    [(10, 32, 8, 320, [142.40, 106.34, 3.182, 4.624]), (128, 16, 2, 1152, [341.24, 383.01, 14.14, 160.55])];

/// Strips are of 16 MiB. Easy files are written and read past the cache (`--posix.odirect`), 16 MiB at a time.
fn as_submitted(changes: &[(&str, &str)]) -> Result<(), Box<dyn Error>> {
    println!(
        "| clients | phase | measured, GiB/s | predicted | predicted over measured |\n|---|---|---|---|---|"
    );
    for (clients, per_client, easy_objects, hard_objects, measured) in SUBMITTED {
        let dealt = |objects: u32| {
            let count = objects.to_string();
            let strips = [("storage.strip", "16 MiB"), ("storage.stripe-count", count.as_str())];
            Machine::built_in("lustre")?.with_all(&strips)?.with_all(changes)
        };
        let (mut direct, wide) = (dealt(easy_objects)?, dealt(hard_objects)?);
        if let Storage::Parallel(files) = &mut direct.storage {
            (files.client.cache, files.locks) = (None, None);
        }
        let ranks = clients * per_client;
        let of_easy = |phases: &str| {
            let block = ("block", format!("{BLOCK} B"));
            let parameters = [
                ("ranks", ranks.to_string()),
                ("transfer", "16 MiB".to_owned()),
                block,
                ("phases", phases.to_owned()),
            ];
            seconds(&direct, "ior-easy", &parameters, per_client)
        };
        let of_hard = |phases: &str| {
            let parameters = [
                ("ranks", ranks.to_string()),
                ("segments", SEGMENTS.to_string()),
                ("phases", phases.to_owned()),
                ("shift", per_client.to_string()),
            ];
            seconds(&wide, "ior-hard", &parameters, per_client)
        };
        let easy = (u64::from(ranks) * BLOCK) as f64 / GIB;
        let hard = (u64::from(ranks) * SEGMENTS * 47_008) as f64 / GIB;
        let predicted = [
            easy / of_easy("write-sync")?,
            easy / of_easy("read")?,
            hard / of_hard("write-sync")?,
            hard / of_hard("read")?,
        ];
        let phases = ["easy write", "easy read", "hard write", "hard read"];
        for ((phase, predicted), measured) in phases.into_iter().zip(predicted).zip(measured) {
            println!(
                "| {clients} | {phase} | {measured:.2} | {predicted:.2} | {:.2} |",
                predicted / measured
            );
        }
    }
    Ok(())
}

/// Of the measured system nothing is known but its stripes, and that all ranks are on one node. Its targets get the rate of
/// the first run with files of their own, which is not counted; what the others would be then is predicted.
fn beside_runs(path: &Path) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().ok_or("an empty table")?.split(',').collect();
    let column = |name: &str| {
        let place = head.iter().position(|column| *column == name);
        place.ok_or_else(|| format!("{}: expected a column {name}", path.display()))
    };
    let names =
        ["workload", "files", "transfer_B", "block_B", "segments", "ranks", "write_and_sync_s", "read_s"];
    let places = names.map(&column);
    let places: Vec<usize> = places.into_iter().collect::<Result<_, _>>()?;
    let mut machine: Option<Machine> = None;
    println!(
        "| workload | files | transfer | measured write, s | predicted | error |\n|---|---|---|---|---|---|"
    );
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |index: usize| cells.get(places[index]).copied().unwrap_or_default();
        let number = |index: usize| -> Result<f64, String> {
            let wrong =
                |_| format!("{}: {} = {}: expected a number", path.display(), names[index], cell(index));
            cell(index).parse().map_err(wrong)
        };
        let (ranks, transfer, block, segments) = (number(5)?, number(2)?, number(3)?, number(4)?);
        let (is_shared, measured) = (cell(1) == "shared", number(6)?);
        let Some(machine) = &machine else {
            if !is_shared {
                let rate = ranks * block * segments / measured / 1e3;
                machine = Some(with_rate(rate as u64)?);
                println!(
                    "| {} | {} | {transfer} B | {measured:.1} | (its rate is taken from it) | |",
                    cell(0),
                    cell(1)
                );
            }
            continue;
        };
        // The program writes a file of its own in transfers, or one file in turn.
        let parameters = match (cell(0), is_shared) {
            ("ior-easy", false) => [
                ("ranks", format!("{ranks}")),
                ("transfer", format!("{transfer} B")),
                ("block", format!("{block} B")),
            ],
            ("ior-hard", true) => [
                ("ranks", format!("{ranks}")),
                ("transfer", format!("{transfer} B")),
                ("segments", format!("{segments}")),
            ],
            _ => continue,
        };
        let parameters: Vec<_> =
            parameters.into_iter().chain([("phases", "write-sync".to_owned())]).collect();
        let predicted = seconds(machine, cell(0), &parameters, ranks as u32)?;
        let error = (predicted / measured - 1.0) * 100.0;
        println!(
            "| {} | {} | {transfer} B | {measured:.1} | {predicted:.1} | {error:+.0} % |",
            cell(0),
            cell(1)
        );
    }
    Ok(())
}

/// A Lustre whose servers together write so many kB/s, whichever targets a file is on.
fn with_rate(kb_per_s: u64) -> Result<Machine, Box<dyn Error>> {
    let rate = format!("{kb_per_s} kB/s");
    let changes = [
        ("storage.io.count", "1"),
        ("storage.servers.targets", "6"),
        ("storage.servers.link", rate.as_str()),
        ("storage.metadata.servers", "1"),
    ];
    Ok(Machine::built_in("lustre")?.with_all(&changes)?)
}
