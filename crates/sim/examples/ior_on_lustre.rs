//! IOR's easy and hard phases, as IO500 runs them, on the example machine `lustre`, from 1 to 64 clients: the tables of
//! `docs/design/parallel-file-systems.md`.
//!
//! `cargo run --release -p pio-sim --example ior_on_lustre` for the machine alone;
//! `… ior_on_lustre -- RUNS.csv` beside measured runs of IOR on another Lustre: a table with the columns `run`, `workload`,
//! `files`, `transfer_B`, `block_B`, `segments`, `ranks`, `write_and_sync_s` and `read_s`.

use std::error::Error;
use std::path::Path;

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::workload::find;
use pio_sim::{Options, simulate};

const GIB: f64 = (1_u64 << 30) as f64;

/// Ranks on each client, as in most of IO500's submissions of the Data Accelerator.
const RANKS_PER_CLIENT: u32 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        None => by_clients(),
        Some(path) => beside_runs(Path::new(&path)),
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

/// Easy files are on two targets each and the hard one is on all of them, in strips of 16 MiB, as in the submission.
fn by_clients() -> Result<(), Box<dyn Error>> {
    let strips = [("storage.strip", "16 MiB"), ("storage.stripe-count", "2")];
    let narrow = Machine::built_in("lustre")?.with_all(&strips)?;
    let wide = narrow.with("storage.stripe-count", "288")?;
    println!("| clients | easy write | easy read | hard write | hard read |\n|---|---|---|---|---|");
    for clients in [1, 2, 4, 8, 10, 16, 32, 64, 128] {
        let ranks = clients * RANKS_PER_CLIENT;
        let (block, segments): (u64, u64) = (64 << 20, 128);
        let of_easy = |phases: &str| {
            let parameters = [
                ("ranks", ranks.to_string()),
                ("block", format!("{block} B")),
                ("phases", phases.to_owned()),
            ];
            seconds(&narrow, "ior-easy", &parameters, RANKS_PER_CLIENT)
        };
        let of_hard = |phases: &str| {
            let parameters = [
                ("ranks", ranks.to_string()),
                ("segments", segments.to_string()),
                ("phases", phases.to_owned()),
            ];
            seconds(&wide, "ior-hard", &parameters, RANKS_PER_CLIENT)
        };
        let easy = (u64::from(ranks) * block) as f64 / GIB;
        let hard = (u64::from(ranks) * segments * 47_008) as f64 / GIB;
        println!(
            "| {clients} | {:.1} | {:.1} | {:.2} | {:.2} |",
            easy / of_easy("write-sync")?,
            easy / of_easy("read")?,
            hard / of_hard("write-sync")?,
            hard / of_hard("read")?,
        );
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
