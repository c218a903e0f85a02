//! How fast the simulator is on one core, in processor time: each part beside a bare event loop, which only takes events
//! out and adds them again, measured in turn in the same run. The loop is the limit: a model is as much slower as its
//! ratio says.
//!
//! `cargo bench -p pio-sim --bench speed [-- PART …]`; without names, all parts.

mod central_queue;
mod circuit;
mod disks;
mod events;
mod flow;
mod measure;
mod network;
mod queueing;

use measure::Part;

const PARTS: &[Part] = &[
    central_queue::PART,
    circuit::PART,
    disks::PART,
    events::PART,
    flow::PART,
    network::PART,
    queueing::PART,
];

fn main() {
    // Cargo passes `--bench`.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let known = |name: &String| PARTS.iter().any(|part| part.name == *name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        eprintln!("no part {unknown}: expected some of {}", names.join(", "));
        std::process::exit(2);
    }
    println!(
        "pioscope {} · best of {} runs in turn · processor time of one core",
        env!("CARGO_PKG_VERSION"),
        measure::ROUNDS
    );
    for part in PARTS.iter().filter(|part| wanted.is_empty() || wanted.iter().any(|name| name == part.name)) {
        println!("\n{}", part.name);
        (part.run)();
    }
}
