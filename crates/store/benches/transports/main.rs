//! How fast servers take and give a contiguous stream, beside the least that the transport and the disk can do; how that
//! goes on with more servers; and how many bytes go over the wire.
//!
//! `cargo bench -p pio-store --bench transports`. Ours and the limit take turns in one run. All sides are threads of this
//! process: the processor time of all is in the ratios, which say something on a busy machine too.

mod bare_ucx;
mod limits;
mod scene;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bare_ucx::Bare;
use limits::Limit;
use pio_layout::{Datatype, View};
use pio_store::client::{Mode, StoreFile, StripingHints};
use pio_store::transport::{Traffic, Transport};
use rustix::time::{ClockId, clock_gettime};
use scene::Scene;

const BYTES: usize = 128 << 20;
const CREATE: Mode = Mode { create: true, exclusive: false };
/// A folder in memory.
const MEMORY: &str = "/dev/shm";
/// One on a disk: where cargo puts what it makes.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // `cargo test` runs benches too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let cores = thread::available_parallelism()?;
    println!(
        "pioscope {} · {} MiB to and from servers, {cores} cores; medians of rounds in turn",
        env!("CARGO_PKG_VERSION"),
        BYTES >> 20
    );
    let bare = Bare::new()?;
    match &bare {
        Some(bare) => println!("ucx {}", bare.version()),
        None => println!("ucx is not there: left out"),
    }
    let data: Vec<u8> = (0..BYTES).map(|at| (at / 5) as u8).collect();
    streams("memory", Path::new(MEMORY), &data, 9, false, bare.as_ref())?;
    streams("a disk, with a sync", Path::new(DISK), &data, 5, true, bare.as_ref())?;
    scaling(&data)?;
    wire(&data)
}

/// Time that something took, in seconds of processors and of the wall.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

fn cost(work: impl FnOnce() -> Outcome<()>) -> Outcome<Cost> {
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_secs_f64()
    };
    let (start, before) = (Instant::now(), cpu());
    work()?;
    Ok(Cost { cpu: cpu() - before, wall: start.elapsed().as_secs_f64() })
}

/// Median, least and most.
fn spread<T>(of: &[T], value: impl Fn(&T) -> f64) -> (f64, f64, f64) {
    let mut values: Vec<f64> = of.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn per_gb(seconds: f64) -> f64 {
    seconds / (BYTES as f64 / 1e9)
}

/// One server's stream, beside its limit.
fn streams(
    what: &str,
    folder: &Path,
    data: &[u8],
    rounds: usize,
    sync: bool,
    bare: Option<&Bare>,
) -> Outcome<()> {
    println!("\none server, files in {what}");
    println!(
        "the limit: over tcp, a raw loopback socket and a pwrite or pread of each 512 KiB; through shared memory, a memcpy;"
    );
    println!("through ucx, bare active messages");
    println!(
        "{:<20} {:>10} {:>10} {:>8} {:>11} {:>8} {:>11}",
        "", "ours", "limit", "of the", "", "wall, of", ""
    );
    println!(
        "{:<20} {:>10} {:>10} {:>8} {:>11} {:>8} {:>11}",
        "", "CPU s/GB", "CPU s/GB", "limit", "range", "limit", "range"
    );
    let scene = Scene::new(folder, 1)?;
    let limit = Limit::new(scene.folder(), data, sync, bare)?;
    for (transport, name) in
        [(Transport::Tcp, "tcp"), (Transport::Shared, "shared memory"), (Transport::Ucx, "ucx")]
    {
        if transport == Transport::Ucx && bare.is_none() {
            continue;
        }
        let file = scene.client(transport)?.open("stream", CREATE, StripingHints::default())?;
        let write = || -> Outcome<()> {
            file.write_at(0, data)?;
            if sync { Ok(file.sync()?) } else { Ok(()) }
        };
        compare(&format!("{name} write"), rounds, || limit.write(transport), write)?;
        if sync {
            // What was written lies in memory: to read it says nothing about the disk.
            continue;
        }
        let (mut out, mut back) = (vec![0; BYTES], vec![0; BYTES]);
        let read = || Ok(file.read_at(0, &mut back).map(drop)?);
        compare(&format!("{name} read"), rounds, || limit.read(transport, &mut out), read)?;
        assert!(back == data && out == data);
    }
    Ok(())
}

fn compare(
    what: &str,
    rounds: usize,
    mut limit: impl FnMut() -> Outcome<()>,
    mut ours: impl FnMut() -> Outcome<()>,
) -> Outcome<()> {
    // The first touch of memory is nobody's.
    limit()?;
    ours()?;
    let pairs: Vec<(Cost, Cost)> =
        (0..rounds).map(|_| Ok((cost(&mut ours)?, cost(&mut limit)?))).collect::<Outcome<_>>()?;
    let (ours, ..) = spread(&pairs, |(ours, _)| per_gb(ours.cpu));
    let (limit, ..) = spread(&pairs, |(_, limit)| per_gb(limit.cpu));
    let (ratio, least, most) = spread(&pairs, |(ours, limit)| limit.cpu / ours.cpu);
    let (wall, least_wall, most_wall) = spread(&pairs, |(ours, limit)| limit.wall / ours.wall);
    println!(
        "{what:<20} {ours:>10.3} {limit:>10.3} {ratio:>8.2} {:>11} {wall:>8.2} {:>11}",
        format!("{least:.2}–{most:.2}"),
        format!("{least_wall:.2}–{most_wall:.2}")
    );
    Ok(())
}

/// More servers, each with a folder of its own, in memory: as many times as fast until the cores have no more to give.
fn scaling(data: &[u8]) -> Outcome<()> {
    println!(
        "\none, two and four servers over tcp, each with its folder in memory; one and two clients, each with its file"
    );
    println!(
        "{:<20} {:>8} {:>8} {:>10} {:>10} {:>11} {:>10}",
        "", "servers", "GB/s", "speed-up", "range", "CPU s/GB", "cores busy"
    );
    let scenes: Vec<Scene> = [1, 2, 4]
        .into_iter()
        .map(|servers| Scene::new(Path::new(MEMORY), servers))
        .collect::<Outcome<_>>()?;
    for clients in [1, 2] {
        let files: Vec<Vec<StoreFile>> = scenes
            .iter()
            .map(|scene| {
                (0..clients)
                    .map(|client| {
                        let path = format!("{clients}-{client}");
                        Ok(scene.client(Transport::Tcp)?.open(&path, CREATE, StripingHints::default())?)
                    })
                    .collect()
            })
            .collect::<Outcome<_>>()?;
        let share = BYTES / clients;
        let mut outs = vec![vec![0; share]; clients];
        for reading in [false, true] {
            let mut round = || -> Outcome<Vec<Cost>> {
                files
                    .iter()
                    .map(|files| {
                        cost(|| {
                            thread::scope(|scope| {
                                let threads: Vec<_> = files
                                    .iter()
                                    .zip(data.chunks(share).zip(&mut outs))
                                    .map(|(file, (data, out))| {
                                        scope.spawn(move || match reading {
                                            true => file.read_at(0, out).map(drop),
                                            false => file.write_at(0, data),
                                        })
                                    })
                                    .collect();
                                for thread in threads {
                                    thread.join().map_err(|_| "a client failed")??;
                                }
                                Ok(())
                            })
                        })
                    })
                    .collect()
            };
            round()?;
            let rounds: Vec<Vec<Cost>> = (0..5).map(|_| round()).collect::<Outcome<_>>()?;
            for (at, servers) in [1, 2, 4].into_iter().enumerate() {
                let (rate, ..) = spread(&rounds, |round| BYTES as f64 / 1e9 / round[at].wall);
                let (ratio, least, most) = spread(&rounds, |round| round[0].wall / round[at].wall);
                let (cpu, ..) = spread(&rounds, |round| per_gb(round[at].cpu));
                let (busy, ..) = spread(&rounds, |round| round[at].cpu / round[at].wall);
                let what = format!(
                    "{clients} client{}, {}",
                    if clients > 1 { "s" } else { "" },
                    if reading { "read" } else { "write" }
                );
                println!(
                    "{what:<20} {servers:>8} {rate:>8.2} {ratio:>10.2} {:>10} {cpu:>11.3} {busy:>10.2}",
                    format!("{least:.2}–{most:.2}")
                );
            }
        }
    }
    Ok(())
}

/// Bytes on the wire, as the client counts them, for bytes of data in pieces.
fn wire(data: &[u8]) -> Outcome<()> {
    println!("\nbytes on the wire over tcp, both directions, for pieces of 4 bytes");
    println!("{:<36} {:>7} {:>11} {:>11} {:>9}", "", "servers", "data bytes", "wire bytes", "ratio");
    for servers in [1, 4] {
        let scene = Scene::new(Path::new(MEMORY), servers)?;
        let store = scene.client(Transport::Tcp)?;
        let bytes = |traffic: Traffic| traffic.sent + traffic.received;
        for (pieces, every) in [(4_000_u64, 8), (64_000, 8), (1_024_000, 8), (1_024_000, 400)] {
            let file: StoreFile =
                store.open(&format!("{pieces}-{every}"), CREATE, StripingHints::default())?;
            let len = pieces * 4;
            let view = View::new(0, 4, Datatype::bytes(4).resized(0, every)?)?;
            let data = &data[..len as usize];
            let mut out = vec![0; len as usize];
            let mut before = bytes(store.traffic());
            let mut count = |what: &str| {
                let now = bytes(store.traffic());
                let (what, wire) = (format!("{what} {pieces} pieces every {every} B"), now - before);
                println!("{what:<36} {servers:>7} {len:>11} {wire:>11} {:>9.5}", wire as f64 / len as f64);
                before = now;
            };
            file.write(&view, 0..len, &data)?;
            count("first write");
            file.write(&view, 0..len, &data)?;
            count("write");
            file.read(&view, 0..len, &mut &mut out[..])?;
            count("read");
            assert!(out == data);
        }
    }
    Ok(())
}
