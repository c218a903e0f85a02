//! The latency-load curve of a 64-node network under uniform traffic, and how fast it is simulated:
//! `cargo run --release -p pio-sim --example latency_load -- tree|fly VIRTUAL-CHANNELS BUFFER FLITS CYCLES [LOAD ...]`.

use std::error::Error;
use std::time::Instant;

use pio_machine::{
    Allocator, Arbitration, Bandwidth, Choice, Duration, Link, Pipeline, Reuse, Wormhole as Description,
};
use pio_sim::network::topology::Topology;
use pio_sim::network::traffic::{Arrivals, Pattern, Size, Span, Traffic};
use pio_sim::network::wormhole::Wormhole;

/// Bytes a second: a cycle is 1 ns.
const BANDWIDTH: u64 = 8_000_000_000;
const FLIT: u64 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| -> Result<u64, Box<dyn Error>> {
        Ok(arguments.get(index).map_or(Ok(default), |text| text.parse())?)
    };
    let topology = match arguments.first().map(String::as_str) {
        Some("fly") => Topology::fly(4, 3)?,
        _ => Topology::fat_tree(4, 3)?,
    };
    let (virtual_channels, buffer) = (number(1, 4)? as u32, number(2, 8)? as u32);
    let (flits, cycles) = (number(3, 1)?, number(4, 20_000)?);
    let loads: Result<Vec<f64>, _> = arguments.iter().skip(5).map(|load| load.parse()).collect();
    let pipeline = Pipeline {
        injection: 1,
        routing: 1,
        vc_allocation: 1,
        switch_allocation: 1,
        switch_traversal: 1,
        credit: 0,
    };
    let description = Description {
        flit: FLIT,
        payload: FLIT * flits,
        header: 0,
        virtual_channels,
        buffer,
        cut_through: false,
        reuse: Reuse::TailSent,
        allocator: Allocator::Islip,
        iterations: 1,
        arbitration: Arbitration::RoundRobin,
        choice: Choice::Random,
        pipeline,
    };
    let bandwidth = Bandwidth::from_bytes_per_second(BANDWIDTH);
    let link = Link { bandwidth, latency: Duration::from_picoseconds(1000) };
    println!("{topology}, {virtual_channels} virtual channels of {buffer} flits, packets of {flits} flits");
    println!("  load accepted     mean      ±    p50    p99    max unstable  flit-hops/s  packets/s");
    for load in loads? {
        let mut network = Wormhole::new(&topology, &link, &description, 1)?;
        let traffic = Traffic {
            pattern: Pattern::Uniform { to_self: true },
            arrivals: Arrivals::Bernoulli { slot: network.cycle() },
            size: Size::Fixed(FLIT * flits),
            messages_per_s: load * BANDWIDTH as f64 / (FLIT * flits) as f64,
        };
        let nanoseconds = |count: u64| Duration::from_picoseconds(1000 * count);
        let span = Span { warm_up: nanoseconds(cycles / 5), measured: nanoseconds(cycles) };
        let start = Instant::now();
        let point = traffic.run(&mut network, span, 1)?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{load:6.3} {:8.4} {:8.2} {:6.2} {:6.0} {:6.0} {:6.0} {:8} {:12.3e} {:10.3e}",
            point.accepted_bytes_per_s / BANDWIDTH as f64,
            point.mean_s * 1e9,
            point.half_width_s * 1e9,
            point.p50.seconds() * 1e9,
            point.p99.seconds() * 1e9,
            point.max.seconds() * 1e9,
            point.is_unstable,
            network.flit_hops() as f64 / seconds,
            point.messages as f64 * (1.2) / seconds,
        );
    }
    Ok(())
}
