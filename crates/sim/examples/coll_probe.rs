use pio_machine::Duration;
use pio_sim::network::circuit as net;
use pio_sim::network::topology::Topology;
use pio_sim::study::coll::*;
fn ns(count: u64) -> Duration {
    Duration::from_picoseconds(count * 1000)
}
fn main() {
    let n = pio_machine::Machine::built_in("qsnet-64").unwrap().network;
    let link = n.link.clone();
    let pio_machine::Switching::Circuit(d) = n.switching else { panic!() };
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
    let arb = "";
    let only = std::env::args().nth(1);
    {
        if only.is_none() {
            for n in [1u32, 2, 3, 8, 16, 32, 63] {
                let ps: Vec<_> = (1..=n)
                    .map(|i| {
                        proc(i, Destinations::Fixed(0), 335e6, 1048576.0, 1.0, Distribution::Exponential)
                    })
                    .collect();
                let t = std::time::Instant::now();
                let mut w = net::Circuit::new(&top, &link, &d).unwrap();
                let o = run(&mut w, &ps, window, 1);
                let s: f64 = o.rate(0..ps.len(), window).mean * 0.1;
                let e = t.elapsed().as_secs_f64();
                let tot = w.totals();
                print!(
                    "{arb:?} {n}: {:.1} MB/s  packets {:.0} events/packet {:.1}",
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
        }
        // uniform
        for (load, nodes) in [(30e6, 64u32), (100e6, 64u32), (335e6, 32), (335e6, 64)] {
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
            let mut w = net::Circuit::new(&top, &link, &d).unwrap();
            let o = run(&mut w, &ps, window, 1);
            let s: f64 = o.rate(0..ps.len(), window).mean * 0.1;
            let e = t.elapsed().as_secs_f64();
            let tot = w.totals();
            println!(
                "{arb:?} uniform {nodes} {load:e}: {:.1} MB/s a node;  packets {:.0} events/packet {:.1}",
                s / 0.1 / 1e6 / nodes as f64,
                tot.packets as f64 / e,
                tot.events as f64 / tot.packets as f64
            );
        }
        if only.is_some() {
            return;
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
                    let mut w = net::Circuit::new(&top, &link, &d).unwrap();
                    let o = run(&mut w, &ps, window, 1);
                    let s: f64 = o.rate(0..ps.len(), window).mean * 0.1;
                    let e = t.elapsed().as_secs_f64();
                    let tot = w.totals();
                    println!(
                        "{arb:?} {writes} {io:?} {app:?}: {:.1} MB/s an I/O node;  packets {:.0} events/packet {:.1} {e:.2} s",
                        s / 0.1 / 1e6 / 8.0,
                        tot.packets as f64 / e,
                        tot.events as f64 / tot.packets as f64
                    );
                }
            }
        }
    }
}
