use pio_machine::circuit::*;
use pio_machine::{Bandwidth, Duration, Link};
use pio_sim::network::circuit as net;
use pio_sim::network::topology::Topology;
use pio_sim::study::coll::*;
fn ns(count: u64) -> Duration {
    Duration::from_picoseconds(count * 1000)
}
fn main() {
    let link = Link { bandwidth: Bandwidth::from_bytes_per_second(400_000_000), latency: ns(20) };
    let mut d = Circuit {
        flow_through: ns(35),
        virtual_channels: 2,
        buffer: 256,
        arbitration: Arbitration::PacketAge,
        packet: Packet { flit: 2, transaction: 64, transactions: 5, transaction_overhead: 10, overhead: 8 },
        adapter: Adapter {
            memory: Memory::Adapter,
            library: Library::Direct,
            start: ns(2060),
            matching: ns(3250),
            transaction_out: Duration::from_picoseconds(114_300),
            transaction_in: Duration::from_picoseconds(114_300),
            gap: Duration::from_picoseconds(10_200),
            slice: 8192,
            bus: Bus {
                bandwidth: Bandwidth::from_bytes_per_second(264_000_000),
                packet: ns(388),
                turn: ns(400),
            },
        },
    };
    let window = Window { warm_up: ns(20_000_000), measured: ns(100_000_000) };
    let top = Topology::fat_tree(4, 3).unwrap();
    let proc = |node, destinations, load: f64, bytes: f64, writes, sizes| Process {
        node,
        destinations,
        load,
        bytes,
        writes,
        times: Distribution::Exponential,
        sizes,
        outstanding: 1,
    };
    for arb in [Arbitration::PacketAge, Arbitration::SwitchAge] {
        d.arbitration = arb;
        for n in [1u32, 2, 3, 8, 16, 32, 63] {
            let ps: Vec<_> = (1..=n)
                .map(|i| proc(i, Destinations::Fixed(0), 335e6, 1048576.0, 1.0, Distribution::Exponential))
                .collect();
            let t = std::time::Instant::now();
            let mut w = net::Circuit::new(&top, &link, &d);
            let o = run(&mut w, &ps, window, 1);
            let s: f64 = o.rate(0..ps.len(), window).mean * 0.1;
            let e = t.elapsed().as_secs_f64();
            let tot = w.totals();
            print!(
                "{arb:?} {n}: {:.1} MB/s  packets/s {:.0} events/packet {:.1}",
                s / 0.1 / 1e6,
                tot.packets as f64 / e,
                tot.events as f64 / tot.packets as f64
            );
            if n == 63 {
                for (a, b) in [(0, 3), (3, 15), (15, 63)] {
                    print!("  {:.2}", o.rate(a..b, window).mean / (b - a) as f64 / 1e6);
                }
            }
            println!();
        }
        // uniform
        for (load, nodes) in [(100e6, 32u32), (335e6, 32), (335e6, 64)] {
            let ps: Vec<_> = (0..nodes)
                .map(|i| {
                    proc(
                        i,
                        Destinations::Random((0..nodes).filter(|j| *j != i).collect()),
                        load,
                        262144.0,
                        1.0,
                        Distribution::Fixed,
                    )
                })
                .collect();
            let t = std::time::Instant::now();
            let mut w = net::Circuit::new(&top, &link, &d);
            let o = run(&mut w, &ps, window, 1);
            let s: f64 = o.rate(0..ps.len(), window).mean * 0.1;
            let e = t.elapsed().as_secs_f64();
            let tot = w.totals();
            println!(
                "{arb:?} uniform {nodes} {load:e}: {:.1} MB/s a node;  packets/s {:.0} events/packet {:.1}",
                s / 0.1 / 1e6 / nodes as f64,
                tot.packets as f64 / e,
                tot.events as f64 / tot.packets as f64
            );
        }
        for writes in [1.0, 0.5, 0.0] {
            for io in [IoMapping::Clustered, IoMapping::Distributed] {
                for app in [ApplicationMapping::Shared, ApplicationMapping::Dedicated] {
                    let p = Placement::new(64, 8, io, app).unwrap();
                    let ps: Vec<_> = p
                        .applications
                        .iter()
                        .map(|&i| {
                            proc(
                                i,
                                Destinations::Random(p.io.iter().copied().filter(|j| *j != i).collect()),
                                335e6,
                                1048576.0,
                                writes,
                                Distribution::Exponential,
                            )
                        })
                        .collect();
                    let t = std::time::Instant::now();
                    let mut w = net::Circuit::new(&top, &link, &d);
                    let o = run(&mut w, &ps, window, 1);
                    let s: f64 = o.rate(0..ps.len(), window).mean * 0.1;
                    let e = t.elapsed().as_secs_f64();
                    let tot = w.totals();
                    println!(
                        "{arb:?} {writes} {io:?} {app:?}: {:.1} MB/s an I/O node;  packets/s {:.0} events/packet {:.1} {e:.2} s",
                        s / 0.1 / 1e6 / 8.0,
                        tot.packets as f64 / e,
                        tot.events as f64 / tot.packets as f64
                    );
                }
            }
        }
    }
}
