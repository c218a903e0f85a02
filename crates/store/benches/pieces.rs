//! What pieces cost on one server and on four, over TCP, beside the least that can be done: each to its place, and one
//! write of it all.
//!
//! All sides run in this process, turn by turn in one run, and CPU time is counted as well as the wall: the former says
//! something on a busy machine too.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener as Raw, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pio_layout::{Datatype, View, pack};
use pio_protocol::Limits;
use pio_store::auth::Token;
use pio_store::client::{Mode, Options, Store, StoreFile, StripingHints};
use pio_store::config::{Server, StoreDescription};
use pio_store::serve::{self, Running, Settings};
use pio_store::transport::TcpListener;
use rustix::time::{ClockId, clock_gettime};

const BYTES: usize = 256 << 20;
const ROUNDS: usize = 5;
const CHUNK: usize = 1 << 20;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // `cargo test` runs benches too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    // A folder in memory: a disk would be all there is to see.
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let data: Vec<u8> = (0..BYTES).map(|at| (at / 5) as u8).collect();
    println!("medians of {ROUNDS}, {} MiB in memory", BYTES >> 20);
    println!("{:28} {:>9} {:>12} {:>9}", "", "wall GB/s", "CPU s per GB", "CPU ratio");
    let copies = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.path().join("copy"))?;
    let limit = measure(|| Ok(copies.write_all_at(&data, 0)?))?;
    report("one pwrite", limit, None);
    let wire = measure(|| through_the_loopback(&data, &copies))?;
    report("loopback and pwrite", wire, None);
    for chunk_bytes in [512 << 10] {
        println!("messages of {} KiB", chunk_bytes >> 10);
        for servers in [1, 4] {
            let (running, file) = start(folder.path(), servers, chunk_bytes)?;
            let written = measure(|| Ok(file.write_at(0, &data)?))?;
            report(&format!("write, servers: {servers}"), written, Some(wire));
            let mut back = vec![0; BYTES];
            let read = measure(|| Ok(file.read_at(0, &mut back).map(drop)?))?;
            report(&format!("read, servers: {servers}"), read, Some(wire));
            assert!(back == data);
            for (piece, every) in [(4, 8), (4, 16), (47_008, 94_016)] {
                let len = BYTES as u64 / 4 / piece * piece;
                let view = View::new(0, piece, Datatype::bytes(piece).resized(0, every)?)?;
                // The least that can be done: the pieces to their places, and the whole to the file.
                let mut image = vec![0; len as usize / piece as usize * every as usize];
                let least = measure(|| {
                    pack::unpack(view.runs(0..len), &mut image, 0, &data[..len as usize])?;
                    Ok(copies.write_all_at(&image, 0)?)
                })?;
                let written = measure(|| Ok(file.write(&view, 0..len, &&data[..len as usize])?))?;
                let what = format!("write {piece} B every {every}, {servers}");
                report(&what, scaled(written, len), Some(scaled(least, len)));
            }
            let synced = measure(|| {
                file.write_at(0, &data[..BYTES / 4])?;
                Ok(file.sync()?)
            })?;
            report("write and sync", scaled(synced, BYTES as u64 / 4), Some(wire));
            drop(file);
            running.into_iter().for_each(Running::stop);
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

/// As if it had been all the bytes.
fn scaled(cost: Cost, bytes: u64) -> Cost {
    let factor = BYTES as f64 / bytes as f64;
    Cost { wall: cost.wall * factor, cpu: cost.cpu * factor }
}

fn measure(mut job: impl FnMut() -> Outcome<()>) -> Outcome<Cost> {
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (start, before) = (Instant::now(), cpu_seconds());
        job()?;
        walls.push(start.elapsed().as_secs_f64());
        cpus.push(cpu_seconds() - before);
    }
    walls.sort_by(f64::total_cmp);
    cpus.sort_by(f64::total_cmp);
    Ok(Cost { wall: walls[ROUNDS / 2], cpu: cpus[ROUNDS / 2] })
}

fn report(what: &str, cost: Cost, beside: Option<Cost>) {
    let gigabytes = BYTES as f64 / 1e9;
    let ratio = beside.map_or(String::new(), |beside| format!("{:.2}", beside.cpu / cost.cpu));
    println!("{what:28} {:9.2} {:12.3} {ratio:>9}", gigabytes / cost.wall, cost.cpu / gigabytes);
}

/// User and system time of this process, threads that are gone included.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The same data over a plain socket, received and written to a file by another thread.
fn through_the_loopback(data: &[u8], file: &File) -> Outcome<()> {
    let listener = Raw::bind("127.0.0.1:0")?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    thread::scope(|scope| {
        scope.spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            let mut buffer = vec![0; CHUNK];
            for at in (0..BYTES).step_by(CHUNK) {
                stream.read_exact(&mut buffer)?;
                file.write_all_at(&buffer, at as u64)?;
            }
            // Until it was counted.
            stream.write_all(&[1])
        });
        for chunk in data.chunks(CHUNK) {
            stream.write_all(chunk)?;
        }
        stream.read_exact(&mut [0])?;
        Ok(())
    })
}

fn start(folder: &Path, servers: u32, chunk_bytes: u64) -> Outcome<(Vec<Running>, StoreFile)> {
    let folder = folder.join(format!("{servers}-{chunk_bytes}"));
    std::fs::create_dir_all(&folder)?;
    let token = Token::load_or_create(&folder.join("token"))?;
    let mut running = Vec::new();
    for index in 0..servers {
        let settings = Settings {
            index,
            servers,
            folders: vec![folder.join(index.to_string())],
            token: token.clone(),
            limits: Limits::DEFAULT,
        };
        running.push(serve::start(settings, vec![Box::new(TcpListener::bind("127.0.0.1:0")?)])?);
    }
    let known = running.iter().map(|server| Server { address: server.addresses()[0].clone() }).collect();
    let description = StoreDescription { token: "token".into(), strip_bytes: 64 << 10, servers: known };
    let options = Options { chunk_bytes, timeout: Duration::from_secs(60), ..Options::default() };
    let store = Store::new(&description, token, options)?;
    let file = store.open("f", Mode { create: true, exclusive: false }, StripingHints::default())?;
    Ok((running, file))
}
