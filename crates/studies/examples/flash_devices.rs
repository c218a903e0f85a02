//! Sets flash devices beside what their makers publish: what was fitted to it, and what was predicted.
//!
//! `cargo run --release -p pio-studies --example flash_devices > docs/measured/flash.md`

use std::error::Error;

use pio_machine::IoNode;
use pio_machine::disk::{Disk, Flash};
use pio_sim::disk::{FlashLoad, FlashRun};

const NVME: &str = include_str!("../../../machines/io-nodes/nvme-p4500.toml");
const SATA: &str = include_str!("../../../machines/io-nodes/sata-s4500.toml");

/// Flash and data are so many times less than in the device, block by block: garbage collection then comes to its steady
/// state within seconds. Only the ratio of the two matters to it, and the rates of dies, channels and link are whole.
const SMALLER: u64 = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let nvme = device("nvme-p4500.toml", NVME)?;
    let sata = device("sata-s4500.toml", SATA)?;
    println!(
        "# Flash devices\n\nWritten by `cargo run --release -p pio-studies --example flash_devices`. Published: Lenovo's \
         product guide of the P4500,\nIntel's product specification of the S4500. The descriptions are \
         `machines/io-nodes/nvme-p4500.toml` and `sata-s4500.toml`,\nwith {SMALLER} times less flash and data; 2 and 4 TB are \
         the first with two and four times the dies on each channel. NVMe\ndevices have 128 requests at a time (the guide \
         does not say how many there were), the SATA device 32, random writes after\neach unit was overwritten four times \
         on average. How the model works: [flash](../design/flash.md).\n"
    );
    println!("| device | load | published | computed | apart | |\n|---|---|---|---|---|---|");
    for (name, dies, published) in [
        ("P4500 1 TB", 1, [85.0, 3.2, 0.6, 279.5, 30.5]),
        ("P4500 2 TB", 2, [85.0, 3.2, 1.05, 490.0, 38.0]),
        ("P4500 4 TB", 4, [115.0, 3.2, 1.8, 645.0, 62.5]),
    ] {
        let first = dies == 1;
        let flash = Flash { dies: nvme.dies * dies, capacity: nvme.capacity * u64::from(dies), ..nvme };
        let [alone, read, write, reads, writes] = published;
        latency(name, &flash, alone, first);
        let gigabytes = |run: &FlashRun, load: &FlashLoad| run.bandwidth(load) / 1e9;
        let load = sequential(&flash, 1.0);
        row(name, "sequential reads, GB/s", read, gigabytes(&load.run(&flash), &load), true);
        let load = sequential(&flash, 0.0);
        row(name, "sequential writes, GB/s", write, gigabytes(&load.run(&flash), &load), first);
        rates(name, &flash, 128, 4096, [(reads, false), (writes, false)]);
    }
    let name = "S4500 960 GB";
    latency(name, &sata, 110.0, true);
    let load = sequential(&sata, 0.0);
    row(name, "sequential writes, GB/s", 0.49, load.run(&sata).bandwidth(&load) / 1e9, false);
    rates(name, &sata, 32, 4096, [(72.0, true), (33.0, false)]);
    rates(name, &sata, 32, 8192, [(48.0, false), (21.0, false)]);
    println!(
        "\nThe makers publish maxima (\"up to\"), and neither how many dies there are nor how much flash. Random writes \
         depend on the\nlatter: with 1 TiB of flash for 1 TB and for 960 GB, {:.1} and {:.1} units are written for each of the \
         host's. The published\nwrites of the P4500 grow less than its dies, as if something else bounded them; here they grow \
         as the dies. Commands\ntake the SATA link's time, which carries one direction at a time: where they take only the \
         controller's, 8 KB reads\nare 61 thousand a second.",
        amplification(&nvme),
        amplification(&sata),
    );
    Ok(())
}

fn device(file: &str, text: &str) -> Result<Flash, Box<dyn Error>> {
    match IoNode::parse(file, text)?.disks.disk {
        Disk::Flash(flash) => Ok(Flash {
            capacity: flash.capacity / SMALLER,
            pages: flash.pages / SMALLER as u32,
            // A block has less pages: so that each page pays the same for it.
            erase: pio_machine::Duration::from_picoseconds(flash.erase.picoseconds() / SMALLER),
            ..*flash
        }),
        _ => Err(format!("{file}: expected a flash device").into()),
    }
}

fn sequential(flash: &Flash, reads: f64) -> FlashLoad {
    FlashLoad {
        bytes: 128 << 10,
        depth: 32,
        reads,
        random: false,
        region: flash.capacity,
        overwrites: 0.0,
        skipped: 2000,
        requests: 10_000,
        seed: 1,
    }
}

fn random(flash: &Flash, reads: f64, bytes: u64, depth: u32) -> FlashLoad {
    let overwrites = if reads < 1.0 { 4.0 } else { 0.0 };
    FlashLoad { bytes, depth, random: true, overwrites, requests: 200_000, ..sequential(flash, reads) }
}

fn amplification(flash: &Flash) -> f64 {
    random(flash, 0.0, 4096, 32).run(flash).work.write_amplification().unwrap_or(1.0)
}

/// One read at a time, and whether the description was fitted to it.
fn latency(name: &str, flash: &Flash, published_us: f64, fitted: bool) {
    let run = FlashLoad { requests: 1000, ..random(flash, 1.0, 4096, 1) }.run(flash);
    row(name, "a 4 KB read alone, us", published_us, run.times.mean_s() * 1e6, fitted);
}

/// Random reads and writes, thousands a second; whether the description was fitted to the number.
fn rates(name: &str, flash: &Flash, depth: u32, bytes: u64, published: [(f64, bool); 2]) {
    let kilobytes = bytes / 1024;
    for ((what, part), (published, fitted)) in [("reads", 1.0), ("writes", 0.0)].into_iter().zip(published) {
        let found = random(flash, part, bytes, depth).run(flash).rate / 1e3;
        row(name, &format!("random {kilobytes} KB {what}, thousands a second"), published, found, fitted);
    }
}

fn row(name: &str, what: &str, published: f64, found: f64, fitted: bool) {
    let apart = 100.0 * (found / published - 1.0);
    let kind = if fitted { "fitted" } else { "predicted" };
    println!("| {name} | {what} | {published} | {found:.3} | {apart:+.0} % | {kind} |");
}
