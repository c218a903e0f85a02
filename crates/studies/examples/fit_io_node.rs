//! Sets the I/O node of Baylor et al. 1995 beside what their text says of their Figure 6.
//!
//! `cargo run --release -p pio-studies --example fit_io_node [FILE]`: FILE has another section `[io-node]` to try.

use std::error::Error;

use pio_machine::IoNode;
use pio_sim::io_node::{Adapter, OpenLoad};

fn main() -> Result<(), Box<dyn Error>> {
    let machine = match std::env::args().nth(1) {
        Some(file) => IoNode::parse(&file, &std::fs::read_to_string(&file)?)?,
        None => IoNode::of_baylor()?,
    };
    println!("ms; bytes, requests a second: read hit, write hit, read miss, write miss, all; use of a disk");
    for bytes in [4096, 32_768] {
        for rate in [5.0, 80.0, 320.0, 640.0, 650.0, 850.0, 950.0, 1100.0] {
            let load =
                OpenLoad { rate, bytes, message: 200, reads: 0.67, misses: 0.3, requests: 400_000, seed: 1 };
            let found = load.run(&machine, Adapter::Own)?;
            let ms = |estimate: Option<pio_sim::kernel::Estimate>| {
                estimate.map_or("-".to_owned(), |estimate| format!("{:.3}", estimate.mean * 1e3))
            };
            let columns = [found.read_hit, found.write_hit, found.read_miss, found.write_miss, found.all]
                .map(ms)
                .join("  ");
            let busy = found.in_use.disks.seconds()
                / found.end.since(Default::default()).seconds()
                / f64::from(machine.disks.count);
            println!("{bytes:6} {rate:6}: {columns}  {busy:.3}");
        }
    }
    Ok(())
}
