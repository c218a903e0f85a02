//! How fast one server takes and gives a contiguous stream, beside the least that its transport and the page cache can do;
//! and how many bytes go over the wire.
//!
//! `cargo bench -p pio-store --bench transports`. Ours and the limit take turns in one run. Both sides are threads of this
//! process: the processor time of both is in the ratios, which say something on a busy machine too. Files are in memory,
//! as a disk would be all there is to see.

#[path = "support/bare_ucx.rs"]
mod bare_ucx;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener as Raw, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bare_ucx::Bare;
use pio_layout::{Datatype, View};
use pio_store::Limits;
use pio_store::auth::Token;
use pio_store::client::{Mode, Options, Store, StoreFile, Striping};
use pio_store::config::{Description, STRIP_BYTES, Server};
use pio_store::serve::{self, Running, Settings};
use pio_store::transport::{Address, Listener, TcpListener, Way};
use rustix::time::{ClockId, clock_gettime};

const BYTES: usize = 128 << 20;
/// What the limits move at a time: as our client does.
const CHUNK: usize = 512 << 10;
const ROUNDS: usize = 9;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // `cargo test` runs benches too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let cores = thread::available_parallelism()?;
    println!(
        "pioscope {} · {} MiB to one server, {ROUNDS} rounds in turn, {cores} cores",
        env!("CARGO_PKG_VERSION"),
        BYTES >> 20
    );
    println!("the limit over tcp: a raw loopback socket and a pwrite or pread of each 512 KiB");
    println!("the limit through shared memory: one memcpy and a pwrite or pread of each 512 KiB");
    let bare = Bare::new()?;
    match &bare {
        Some(bare) => println!(
            "the limit through ucx {}: bare active messages and a pwrite or pread of each 512 KiB\n",
            bare.version()
        ),
        None => println!("ucx is not there: skipped\n"),
    }
    println!("{:<16} {:>12} {:>12} {:>14} {:>10} {:>14}", "", "ours", "limit", "speed", "", "wall");
    println!(
        "{:<16} {:>12} {:>12} {:>14} {:>10} {:>14}",
        "", "CPU s/GB", "CPU s/GB", "of the limit", "range", "of the limit"
    );
    let data: Vec<u8> = (0..BYTES).map(|at| (at / 5) as u8).collect();
    let bench = Bench::new(data, bare)?;
    for (way, name) in [(Way::Tcp, "tcp"), (Way::Shared, "shared memory"), (Way::Ucx, "ucx")] {
        if way == Way::Ucx && bench.bare.is_none() {
            continue;
        }
        let file = bench.client(way, &bench.address)?.open("stream", CREATE, Striping::default())?;
        let mut out = vec![0; BYTES];
        let write = compare(|| bench.limit_of_write(way), || Ok(file.write_at(0, &bench.data)?))?;
        write.print(&format!("{name} write"));
        let mut back = vec![0; BYTES];
        let read =
            compare(|| bench.limit_of_read(way, &mut out), || Ok(file.read_at(0, &mut back).map(drop)?))?;
        read.print(&format!("{name} read"));
        assert!(back == bench.data && out == bench.data);
    }
    println!();
    bench.wire()
}

const CREATE: Mode = Mode { create: true, exclusive: false };

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

/// What both sides cost, round by round.
struct Compared(Vec<(Cost, Cost)>);

fn compare(
    mut limit: impl FnMut() -> Outcome<()>,
    mut ours: impl FnMut() -> Outcome<()>,
) -> Outcome<Compared> {
    // The first touch of memory is nobody's.
    limit()?;
    ours()?;
    (0..ROUNDS).map(|_| Ok((cost(&mut ours)?, cost(&mut limit)?))).collect::<Outcome<_>>().map(Compared)
}

impl Compared {
    fn print(&self, what: &str) {
        let median = |of: &dyn Fn(&(Cost, Cost)) -> f64| {
            let mut values: Vec<f64> = self.0.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let per_gb = |cpu: f64| cpu / (BYTES as f64 / 1e9);
        let (ours, ..) = median(&|(ours, _)| per_gb(ours.cpu));
        let (limit, ..) = median(&|(_, limit)| per_gb(limit.cpu));
        let (ratio, least, most) = median(&|(ours, limit)| limit.cpu / ours.cpu);
        let (wall, ..) = median(&|(ours, limit)| limit.wall / ours.wall);
        let range = format!("{least:.2}–{most:.2}");
        println!("{what:<20} {ours:>8.3} {limit:>12.3} {ratio:>14.2} {range:>10} {wall:>14.2}");
    }
}

/// A server and what its limits are measured with.
struct Bench {
    data: Vec<u8>,
    _folder: tempfile::TempDir,
    token: Token,
    address: String,
    bare: Option<Bare>,
    /// What the limits write to and read from.
    plain: File,
    _running: Running,
}

impl Bench {
    fn new(data: Vec<u8>, bare: Option<Bare>) -> Outcome<Bench> {
        let folder = tempfile::tempdir_in("/dev/shm")?;
        let token = Token::load_or_create(&folder.path().join("token"))?;
        let listener: Box<dyn Listener> = Box::new(TcpListener::bind("127.0.0.1:0")?);
        let mut address = listener.address().to_owned();
        let near = Way::Shared.listen(&token, &address).ok_or("no shared memory here")?;
        let mut listeners = vec![listener, near];
        if bare.is_some()
            && let Some(through_ucx) = Way::Ucx.listen_through_ucx(&address)?
        {
            address = through_ucx.address().to_owned();
            listeners.push(through_ucx);
        }
        let settings = Settings {
            index: 0,
            servers: 1,
            folders: vec![folder.path().join("server")],
            token: token.clone(),
            limits: Limits::DEFAULT,
        };
        let running = serve::start(settings, listeners)?;
        let plain = plain(folder.path())?;
        Ok(Bench { data, _folder: folder, token, address, bare, plain, _running: running })
    }

    fn client(&self, way: Way, address: &str) -> Outcome<Store> {
        let server = Server { address: address.into() };
        let description =
            Description { token: "token".into(), strip_bytes: STRIP_BYTES, servers: vec![server] };
        let options = Options { transport: Some(way), ..Options::default() };
        Ok(Store::new(&description, self.token.clone(), options)?)
    }

    fn limit_of_write(&self, way: Way) -> Outcome<()> {
        let mut chunk = vec![0; CHUNK];
        if way == Way::Shared {
            for (number, data) in self.data.chunks(CHUNK).enumerate() {
                chunk.copy_from_slice(data);
                self.plain.write_all_at(&chunk, (number * CHUNK) as u64)?;
            }
            return Ok(());
        }
        if let (Way::Ucx, Some(bare)) = (way, &self.bare) {
            let next = |number: usize| {
                let piece = &self.data[number * CHUNK..][..CHUNK];
                Ok((piece.as_ptr(), piece.len()))
            };
            return Ok(bare.stream(BYTES / CHUNK, 4, next, |number, take| {
                take(&mut chunk)?;
                self.plain.write_all_at(&chunk, (number * CHUNK) as u64)
            })?);
        }
        let listener = Raw::bind("127.0.0.1:0")?;
        let mut near = TcpStream::connect(listener.local_addr()?)?;
        let (mut far, _) = listener.accept()?;
        thread::scope(|scope| {
            let sender = scope.spawn(move || near.write_all(&self.data));
            for number in 0..BYTES / CHUNK {
                far.read_exact(&mut chunk)?;
                self.plain.write_all_at(&chunk, (number * CHUNK) as u64)?;
            }
            Ok(sender.join().map_err(|_| "the sender failed")??)
        })
    }

    fn limit_of_read(&self, way: Way, out: &mut [u8]) -> Outcome<()> {
        let mut chunk = vec![0; CHUNK];
        if way == Way::Shared {
            for (number, out) in out.chunks_mut(CHUNK).enumerate() {
                self.plain.read_exact_at(&mut chunk, (number * CHUNK) as u64)?;
                out.copy_from_slice(&chunk);
            }
            return Ok(());
        }
        if let (Way::Ucx, Some(bare)) = (way, &self.bare) {
            // One is filled while the others are under way.
            let mut chunks = [(); 4].map(|()| vec![0; CHUNK]);
            let next = |number: usize| {
                let chunk = &mut chunks[number % 4];
                self.plain.read_exact_at(chunk, (number * CHUNK) as u64)?;
                Ok((chunk.as_ptr(), CHUNK))
            };
            return Ok(bare
                .stream(BYTES / CHUNK, 1, next, |number, take| take(&mut out[number * CHUNK..][..CHUNK]))?);
        }
        let listener = Raw::bind("127.0.0.1:0")?;
        let mut near = TcpStream::connect(listener.local_addr()?)?;
        let (mut far, _) = listener.accept()?;
        thread::scope(|scope| {
            let sender = scope.spawn(move || -> std::io::Result<()> {
                for number in 0..BYTES / CHUNK {
                    self.plain.read_exact_at(&mut chunk, (number * CHUNK) as u64)?;
                    far.write_all(&chunk)?;
                }
                Ok(())
            });
            near.read_exact(out)?;
            Ok(sender.join().map_err(|_| "the sender failed")??)
        })
    }

    /// Counts what goes over the wire, in a proxy that passes everything on.
    fn wire(&self) -> Outcome<()> {
        let counted = Arc::new(AtomicU64::new(0));
        let proxy = proxy(Address::parse(&self.address).tcp, counted.clone())?;
        let store = self.client(Way::Tcp, &proxy)?;
        println!(
            "{:<36} {:>14} {:>14} {:>10}",
            "over tcp, both directions", "data bytes", "wire bytes", "ratio"
        );
        for (pieces, every) in [(4_000_u64, 8), (64_000, 8), (1_024_000, 8), (1_024_000, 400)] {
            let file: StoreFile = store.open(&format!("{pieces}-{every}"), CREATE, Striping::default())?;
            let len = pieces * 4;
            let view = View::new(0, 4, Datatype::bytes(4).resized(0, every)?)?;
            let mut out = vec![0; len as usize];
            let start = counted.load(Ordering::SeqCst);
            file.write(&view, 0..len, &&self.data[..len as usize])?;
            let written = counted.load(Ordering::SeqCst) - start;
            file.read(&view, 0..len, &mut &mut out[..])?;
            let read = counted.load(Ordering::SeqCst) - start - written;
            for (what, bytes) in [("write", written), ("read", read)] {
                let what = format!("{what} {pieces} pieces of 4 B every {every} B");
                println!("{what:<36} {len:>14} {bytes:>14} {:>10.5}", bytes as f64 / len as f64);
            }
            assert!(out[..] == self.data[..len as usize]);
        }
        Ok(())
    }
}

fn plain(folder: &Path) -> Outcome<File> {
    Ok(File::options().read(true).write(true).create_new(true).open(folder.join("plain"))?)
}

/// Listens, and passes what comes on to `address` and back; counts it.
fn proxy(address: &str, counted: Arc<AtomicU64>) -> Outcome<String> {
    let listener = Raw::bind("127.0.0.1:0")?;
    let here = listener.local_addr()?.to_string();
    let address = address.to_owned();
    thread::spawn(move || -> std::io::Result<()> {
        let (near, _) = listener.accept()?;
        let far = TcpStream::connect(address)?;
        for stream in [&near, &far] {
            stream.set_nodelay(true)?;
        }
        let back = (far.try_clone()?, near.try_clone()?, counted.clone());
        thread::spawn(move || pass(back.0, back.1, &back.2));
        pass(near, far, &counted)
    });
    Ok(here)
}

fn pass(mut from: TcpStream, mut to: TcpStream, counted: &AtomicU64) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let len = from.read(&mut buffer)?;
        if len == 0 {
            return to.shutdown(Shutdown::Write);
        }
        // Before it arrives, so that whoever got it finds it counted.
        counted.fetch_add(len as u64, Ordering::SeqCst);
        to.write_all(&buffer[..len])?;
    }
}
