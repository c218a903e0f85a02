//! What the I/O servers of a store cost this machine, as a machine description says it.

use std::hint::spin_loop;
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};
use pio_layout::{Datatype, View};
use pio_machine::{
    Bandwidth, CallCost, Duration, IoNodePlacement, IoNodes, Link, Machine, Service, Spreads, Storage,
};
use pio_protocol::waiting::look_out;
use pio_store::client::{Mode, Options, Store, StoreFile, StripingHints};
use pio_store::transport::Transport;

use crate::benchmark::refuse_to_go_on;
use crate::measured::processor_seconds;
use crate::median::median;
use crate::store;

use crowd::{Client, Kind};

mod crowd;

const SMALL_BYTES: usize = 8;
const MIDDLE_BYTES: usize = 64 << 10;
const LARGE_BYTES: usize = 1 << 20;
const SMALL_REQUESTS: Range<u64> = 0..500;
const LARGE_REQUESTS: Range<u64> = 0..32;
const SMALL_APART: u64 = 4096;
/// The first ones do not count: threads are still on their way to where they stay.
const WAKES: Range<u64> = 100..400;
/// For how long a client computes before its server is to be woken: until it sleeps; and as programs do between their phases of
/// I/O, when the core is fast asleep as well.
const COMPUTES: [Duration; 2] = [IoNodes::ASLEEP_AFTER, IoNodes::FAST_ASLEEP_AFTER];
const OPENS: usize = 20;
const RESIZES: u64 = 20;
const CONNECTIONS: usize = 15;
/// What is written through memory that is new; and what no file is called.
const CHANNEL_BYTES: usize = 256 << 10;
const NOBODYS_NAME: &str = ".pioscope-calibrate-nobody";
const NEW_FILES: usize = 15;
/// Of a file whose pages are new.
const FRESH_BYTES: usize = 32 << 20;
/// Bytes that are written before they are synced, and most of them: devices take little faster than much.
const SYNCED: usize = 16 << 20;
const MOST_SYNCED: usize = 64 << 20;
/// Of a piece that fills no block: servers must sum what is written so.
const PIECE_BYTES: usize = 40 << 10;
const SYNCS: usize = 5;
/// How often to look whether a signal came; and how long what was made may then take to go: a server may not answer.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
const CLEARING: std::time::Duration = std::time::Duration::from_secs(5);
/// So that a request is one server's.
const ON_ONE_SERVER: StripingHints = StripingHints { factor: 1, unit: 0 };

/// Above the numbers in the file, behind what is said of the machine itself.
pub(crate) const HOW_MEASURED: &str = "\n\
    storage: 8-byte and 1 MiB requests of one client to one server of the store (of several clients to all servers, if they\n\
    share cores), there and back, without the client's processor time, which is that of calls.read and calls.write. The way\n\
    to the server is part of its time, unless messages between nodes were measured, too: then it is that of network.link.\n\
    storage.create: what opening a file takes longer that is made.\n\
    storage.begin: what the first write to a new file takes longer than the next, to all servers at once.\n\
    storage.connect: what the first request of a client to each server takes longer.\n\
    storage.summing: what syncs take longer of files of 16 MiB that were written in pieces of 40 KiB, which fill no block.\n\
    storage.io.shares-cores: whether all servers can be reached through the memory of this machine. Then requests of 8\n\
    bytes cost what they do where as many clients as cores, and twice as many, make them of all servers in turn, in the\n\
    middle of both; storage.pieces: what 1 MiB takes longer there that lies in pieces of 4 KiB, or 256 bytes;\n\
    storage.io.wake: what a request, each to the next server, takes longer that finds the server asleep, or half of that if\n\
    by then the client is, too;\n\
    storage.io.deep-wake: after 2 ms.\n\
    storage.io.channel: what the first write of 256 KiB takes a client longer than the next.\n\
    storage.io.change: what a request takes longer in that crowd that is to another server than the one before.\n\
    calls.new-pages: what the first writes to pages take longer: of 8 bytes in that crowd, of 64 KiB and 1 MiB alone.\n\
    calls.sync: syncs of new files on the store after writes of 8 bytes and 1, 16 and 64 MiB; closing syncs, too.";

/// Puts the files of a measured machine on the servers of the store that a file describes.
///
/// # Errors
/// If a server cannot be reached, or does not do what it is asked; or if a signal says to end.
pub(crate) fn measure(machine: &mut Machine, spreads: &mut Spreads, description: &Path) -> Result<()> {
    let (mut new_machine, mut new_spreads) = (machine.clone(), spreads.clone());
    let description = description.to_owned();
    (*machine, *spreads) = before_the_end(move || {
        measure_files(&mut new_machine, &mut new_spreads, &description)?;
        Ok((new_machine, new_spreads))
    })?;
    Ok(())
}

/// Holds back a signal that ends this process until `work` has failed because of it, and so removed the files that it has on
/// servers: of these, who removes what lies on this machine knows nothing.
fn before_the_end<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        // Nobody listens any more if it took too long to end.
        let _ = tell.send(work());
    });
    let wait = || {
        let mut was_told = None;
        loop {
            match told.recv_timeout(LOOK) {
                Ok(done) => return done,
                Err(RecvTimeoutError::Disconnected) => bail!("the servers' measurement broke off"),
                Err(RecvTimeoutError::Timeout) if !pio_record::was_told_to_end() => {}
                Err(RecvTimeoutError::Timeout) => {
                    if was_told.get_or_insert_with(Instant::now).elapsed() > CLEARING {
                        refuse_to_go_on()?;
                    }
                }
            }
        }
    };
    pio_record::hold_back_the_end(wait)?
}

fn measure_files(machine: &mut Machine, spreads: &mut Spreads, description: &Path) -> Result<()> {
    let store = &store::connect(description, None)?;
    let path = format!(".pioscope-calibrate-{}", std::process::id());
    let mode = Mode { create: true, exclusive: true };
    let shares_cores = are_here(description);
    let file = store.open(&path, mode, ON_ONE_SERVER)?;
    let measured = requests(&file).and_then(|(write, read)| {
        let shared = match shares_cores {
            true => {
                let crowd = crowd::measure(description, &path)?;
                let awake = crowd.took(Kind::Write).all;
                let [soon, later] = COMPUTES;
                let client = Client::open(description, format!("{path}-in-turn"))?;
                let wake = time_to_wake(&client, awake, soon, None)?;
                Some((wake, time_to_wake(&client, awake, later, Some(wake))?.max(wake), crowd))
            }
            false => None,
        };
        file.close()?;
        let (makes, begin) = new_files(store, &format!("{path}-new"))?;
        let (open, close) = opens(store, &path)?;
        let connections = connections(description, &path)?;
        let create = Duration::from_seconds((makes - open.seconds()).max(0.0));
        Ok((write, read, shared, [open, create, close], resizes(store, &path)?, begin, connections))
    });
    let removed = store.remove(&path);
    let (mut write, mut read, shared, [open, create, close], resize, begin, (connect, channel)) = measured?;
    removed?;
    let (mut wake, mut deep_wake, mut change) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut pieces, mut of_new_pages) = (None, None);
    let (sync, summing) = syncs(store, &path)?;
    machine.calls.sync = Some(sync);
    let link = Some(machine.network.link.clone()).filter(|_| machine.nodes.count > 1);
    if let Some((soon, later, crowd)) = shared {
        (wake, deep_wake) = (soon, later);
        // A request has two ways, and two switches that the scheduler counts.
        let switches = 2.0 * machine.nodes.switch.seconds();
        // As many as a large request goes to.
        let servers = (LARGE_BYTES as u64).div_ceil(store.strip_bytes()).min(store.servers().into()) as f64;
        write = in_crowd(crowd.took(Kind::Write), crowd.took(Kind::LargeWrite), servers, switches);
        read = in_crowd(crowd.took(Kind::Read), crowd.took(Kind::LargeRead), servers, switches);
        // Of requests that each take the next server.
        if store.servers() > 1 {
            let most = [&write, &read].map(|requests| requests.of_server(link.as_ref()).request);
            change = most.into_iter().fold(Duration::from_seconds(crowd.change()), Duration::min);
        }
        pieces = Some(crowd.pieces());
        let longer = (crowd.took(Kind::FirstWrite).all - crowd.took(Kind::Write).all).max(0.0);
        of_new_pages = Some(new_pages(store, &path, longer)?);
    }
    machine.calls.new_pages = of_new_pages;
    (machine.calls.write, machine.calls.read) = (write.own(), read.own());
    // What is known of these is of files on this machine.
    (machine.calls.askew, machine.calls.processor_cache) = (None, None);
    machine.calls.after_work = None;
    (machine.calls.write_back, machine.calls.cold_reads) = (None, None);
    (machine.calls.dropped_pages, machine.calls.rewrites) = (None, None);
    [
        "calls.read",
        "calls.write",
        "calls.sync",
        "calls.new-pages",
        "calls.askew",
        "calls.processor-cache",
        "calls.dropped-pages",
        "calls.rewrites",
        "calls.after-work",
        "calls.write-back",
        "calls.cold-reads",
    ]
    .into_iter()
    .for_each(|key| spreads.forget(key));
    let [write, read] = [&write, &read]
        .map(|requests| requests.of_server(link.as_ref()))
        .map(|service| Service { request: service.request.saturating_sub(change), ..service });
    machine.source.push_str(&format!(", on {} servers of a store", store.servers()));
    machine.storage = Storage::Striped {
        io: IoNodes {
            count: store.servers(),
            placement: IoNodePlacement::Distributed,
            dedicated: !shares_cores,
            shares_cores,
            wake,
            deep_wake,
            change,
            channel: channel.filter(|_| shares_cores),
        },
        strip: store.strip_bytes(),
        read,
        write,
        open,
        create,
        close,
        resize,
        begin,
        connect,
        summing,
        pieces,
        takes_views: true,
        memory: 0,
        arm: None,
        separate_closes: false,
    };
    Ok(())
}

/// Whether all servers of a store are on this machine: then they can be reached through its memory.
fn are_here(description: &Path) -> bool {
    let timeout = std::time::Duration::from_secs(1);
    let options = Options { transport: Some(Transport::Shared), timeout, ..Options::default() };
    Store::connect_with(description, options).is_ok_and(|store| store.usage().is_ok())
}

/// Seconds of a request: from beginning to end, and those in which the client itself worked.
#[derive(Clone, Copy, Debug)]
struct Took {
    all: f64,
    own: f64,
}

/// A small and a large request.
struct Requests {
    small: Took,
    large: Took,
}

impl Requests {
    /// Processor time of the client.
    fn own(&self) -> CallCost {
        let Service { request, bandwidth } = service(self.small.own, self.large.own);
        CallCost { call: request, bandwidth, sizes: Vec::new() }
    }

    /// The rest: the server's time, and that on the way, unless the links of the network are known.
    fn of_server(&self, link: Option<&Link>) -> Service {
        let rest = |took: Took, bytes: usize| {
            let way = link.map_or(0.0, |link| {
                // There and back, over two links each; the bytes go one way.
                4.0 * link.latency.seconds() + link.bandwidth.time_of(bytes as u64).seconds()
            });
            (took.all - took.own - way).max(0.0)
        };
        service(rest(self.small, SMALL_BYTES), rest(self.large, LARGE_BYTES))
    }
}

/// Requests as many clients make them, the large one to so many servers at once: processor time of all, of which the `switches`
/// of each server's request are counted elsewhere.
fn in_crowd(small: Took, large: Took, servers: f64, switches: f64) -> Requests {
    let small = Took { all: (small.all - switches).max(small.own), ..small };
    let others = (servers - 1.0) * (small.all - small.own);
    Requests { small, large: Took { all: (large.all - servers * switches - others).max(large.own), ..large } }
}

fn requests(file: &StoreFile) -> Result<(Requests, Requests)> {
    let mut large = vec![1_u8; LARGE_BYTES];
    let mut small = [1_u8; SMALL_BYTES];
    let write_all = || timed(LARGE_REQUESTS, |index| Ok(file.write_at(index * LARGE_BYTES as u64, &large)?));
    // At first pages are new.
    write_all()?;
    let writes = write_all()?;
    let reads =
        timed(LARGE_REQUESTS, |index| Ok(file.read_at(index * LARGE_BYTES as u64, &mut large).map(drop)?))?;
    let small_writes = timed(SMALL_REQUESTS, |index| Ok(file.write_at(index * SMALL_APART, &small)?))?;
    let small_reads =
        timed(SMALL_REQUESTS, |index| Ok(file.read_at(index * SMALL_APART, &mut small).map(drop)?))?;
    Ok((Requests { small: small_writes, large: writes }, Requests { small: small_reads, large: reads }))
}

/// Until a core is awake: what a small write takes longer before which the client computes for so long; given is
/// what one takes in a crowd. If that is long, the client sleeps, too, before the answer is there: for as long as `clients` says,
/// or as its server's core takes.
///
/// Each goes to the next server. A client alone that asks one server again and again may have its thread on its own core, for a
/// whole run or not at all; of several servers' threads, the kernel and they themselves keep most apart from it, as in programs.
fn time_to_wake(client: &Client, awake: f64, pause: Duration, clients: Option<Duration>) -> Result<Duration> {
    let looks_out = look_out(0);
    let (mut data, mut seconds) = ([1; SMALL_BYTES], Vec::new());
    for index in 0..WAKES.end {
        refuse_to_go_on()?;
        let computes = Instant::now();
        while computes.elapsed().as_secs_f64() < pause.seconds() {
            spin_loop();
        }
        let start = Instant::now();
        client.request(Kind::Write, index % client.servers(), &mut data)?;
        if WAKES.contains(&index) {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    let longer = (median(seconds) - awake).max(0.0);
    let servers = clients.map_or(longer / 2.0, |clients| (longer - clients.seconds()).max(0.0));
    let both_sleep = servers + awake > looks_out.as_secs_f64();
    Ok(Duration::from_seconds(if both_sleep { servers } else { longer }))
}

/// Seconds in which a file is made, and what the first write to it takes longer than the next, on all servers at once.
fn new_files(store: &Store, path: &str) -> Result<(f64, Duration)> {
    let (servers, strip) = (u64::from(store.servers()), store.strip_bytes());
    let small = SMALL_BYTES as u64;
    let a_piece_a_server = |from| -> Result<View> {
        let pieces = Datatype::vector(servers, small, i64::try_from(strip)?, &Datatype::bytes(1))?;
        Ok(View::new(from, 1, pieces)?)
    };
    // Both are to new pages.
    let (first, next) =
        (a_piece_a_server(0)?, a_piece_a_server(SMALL_APART.div_ceil(strip) * strip * servers)?);
    let data = vec![1_u8; servers as usize * SMALL_BYTES];
    let (mut makes, mut begins) = (Vec::new(), Vec::new());
    for _ in 0..NEW_FILES {
        refuse_to_go_on()?;
        let start = Instant::now();
        let file = store.open(path, Mode { create: true, exclusive: true }, StripingHints::default())?;
        makes.push(start.elapsed().as_secs_f64());
        let write = |view: &View| -> Result<f64> {
            // No server is asleep.
            file.size()?;
            let start = Instant::now();
            file.write(view, 0..servers * small, &&data[..])?;
            Ok(start.elapsed().as_secs_f64())
        };
        let written = write(&first).and_then(|first| Ok(first - write(&next)?));
        let removed = store.remove(path);
        begins.push(written?);
        removed?;
    }
    Ok((median(makes), Duration::from_seconds(median(begins).max(0.0))))
}

/// What writes to a new file take longer than to one that has its pages; given is what a small one does.
fn new_pages(store: &Store, path: &str, of_a_page: f64) -> Result<CallCost> {
    let data = vec![1_u8; LARGE_BYTES];
    let mut beyond = vec![(SMALL_APART as usize, of_a_page)];
    for size in [MIDDLE_BYTES, LARGE_BYTES] {
        let file = store.open(path, Mode { create: true, exclusive: true }, ON_ONE_SERVER)?;
        let calls = 0..(FRESH_BYTES / size) as u64;
        let write = || timed(calls.clone(), |index| Ok(file.write_at(index * size as u64, &data[..size])?));
        let measured = write().and_then(|fresh| Ok((fresh, write()?)));
        store.remove(path)?;
        let (fresh, again) = measured?;
        beyond.push((size, (fresh.all - again.all).max(0.0)));
    }
    Ok(CallCost::through(&beyond))
}

/// First syncs of new files on all servers, by what was written before; and at which rate servers sum what was written in pieces
/// that fill no block.
fn syncs(store: &Store, path: &str) -> Result<(CallCost, Option<Bandwidth>)> {
    let data = vec![1_u8; MOST_SYNCED];
    let mut seconds = [
        (SMALL_BYTES, SMALL_BYTES),
        (LARGE_BYTES, LARGE_BYTES),
        (SYNCED, SYNCED),
        (MOST_SYNCED, MOST_SYNCED),
        (SYNCED, PIECE_BYTES),
    ]
    .map(|way| (way, Vec::new()));
    for _ in 0..SYNCS {
        for ((size, piece), runs) in &mut seconds {
            refuse_to_go_on()?;
            let file = store.open(path, Mode { create: true, exclusive: true }, StripingHints::default())?;
            let mut pieces = (0_u64..).step_by(*piece).zip(data[..*size].chunks(*piece));
            let synced = pieces.try_for_each(|(at, piece)| file.write_at(at, piece)).and_then(|()| {
                let start = Instant::now();
                file.sync()?;
                Ok(start.elapsed())
            });
            store.remove(path)?;
            runs.push(synced?.as_secs_f64());
        }
    }
    let [small, middling, large, largest, in_pieces] = seconds.map(|((size, _), runs)| (size, median(runs)));
    let longer = Some(in_pieces.1 - large.1).filter(|longer| *longer > 0.0);
    let summing = longer.map(|longer| Bandwidth::from_bytes_per_second((SYNCED as f64 / longer) as u64));
    Ok((CallCost::through(&[small, middling, large, largest]), summing))
}

/// Opening a file, and closing it when nothing was written.
fn opens(store: &Store, path: &str) -> Result<(Duration, Duration)> {
    let (mut opens, mut closes) = (Vec::new(), Vec::new());
    for _ in 0..OPENS {
        refuse_to_go_on()?;
        let start = Instant::now();
        let file = store.open(path, Mode::default(), StripingHints::default())?;
        opens.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        file.close()?;
        closes.push(start.elapsed().as_secs_f64());
    }
    Ok((Duration::from_seconds(median(opens)), Duration::from_seconds(median(closes))))
}

/// What the first request of a client takes longer to each server, and at which rate memory is made through which data go. The file
/// has pages.
fn connections(description: &Path, path: &str) -> Result<(Duration, Option<Bandwidth>)> {
    let (mut connects, mut makes) = (Vec::new(), Vec::new());
    let data = vec![1_u8; CHANNEL_BYTES];
    for _ in 0..CONNECTIONS {
        refuse_to_go_on()?;
        let store = store::connect(description, None)?;
        let ask_all = || -> Result<f64> {
            let start = Instant::now();
            for server in 0..store.servers() {
                store.list_on(server, NOBODYS_NAME)?;
            }
            Ok(start.elapsed().as_secs_f64())
        };
        connects.push((ask_all()? - ask_all()?) / f64::from(store.servers()));
        let file = store.open(path, Mode::default(), StripingHints::default())?;
        let write = || -> Result<f64> {
            let start = Instant::now();
            file.write_at(0, &data)?;
            Ok(start.elapsed().as_secs_f64())
        };
        makes.push(write()? - write()?);
    }
    let longer = Some(median(makes)).filter(|longer| *longer > 0.0);
    let channel =
        longer.map(|longer| Bandwidth::from_bytes_per_second((CHANNEL_BYTES as f64 / longer) as u64));
    Ok((Duration::from_seconds(median(connects).max(0.0)), channel))
}

/// Cutting a file of a few bytes, and making it larger again.
fn resizes(store: &Store, path: &str) -> Result<Duration> {
    let file = store.open(path, Mode::default(), StripingHints::default())?;
    let mut seconds = Vec::new();
    for index in 0..RESIZES {
        refuse_to_go_on()?;
        let start = Instant::now();
        file.set_size((index % 2) * SMALL_BYTES as u64)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    file.close()?;
    Ok(Duration::from_seconds(median(seconds)))
}

/// From the seconds of a small and of a large request.
fn service(small: f64, large: f64) -> Service {
    let per_byte = ((large - small) / (LARGE_BYTES - SMALL_BYTES) as f64).max(1e-12);
    Service {
        request: Duration::from_seconds((small - per_byte * SMALL_BYTES as f64).max(0.0)),
        bandwidth: Bandwidth::from_bytes_per_second((1.0 / per_byte) as u64),
    }
}

/// The middle of the seconds that each call took, and of those of them in which this thread worked.
fn timed(calls: Range<u64>, mut call: impl FnMut(u64) -> Result<()>) -> Result<Took> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    for index in calls {
        refuse_to_go_on()?;
        let (start, worked) = (Instant::now(), processor_seconds());
        call(index)?;
        own.push(processor_seconds() - worked);
        all.push(start.elapsed().as_secs_f64());
    }
    Ok(Took { all: median(all), own: median(own) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requests_time_is_the_clients_and_the_servers() {
        let bytes = (LARGE_BYTES - SMALL_BYTES) as f64;
        let requests = Requests {
            small: Took { all: 30e-6, own: 10e-6 },
            large: Took { all: 30e-6 + 3e-9 * bytes, own: 10e-6 + 1e-9 * bytes },
        };
        let (own, server) = (requests.own(), requests.of_server(None));
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(own.call.seconds(), 10e-6) && near(server.request.seconds(), 20e-6));
        assert!(near(own.moving(1 << 20).seconds(), 1e-9 * bytes));
        assert!(near(server.bandwidth.bytes_per_second() as f64, 0.5e9));
        // Of the 20 us of a small request 12 are the way's, of the 2 ns of a byte 1.
        let latency = Duration::from_picoseconds(3_000_000);
        let link = Link { bandwidth: Bandwidth::from_bytes_per_second(1_000_000_000), latency };
        let server = requests.of_server(Some(&link));
        assert!(near(server.request.seconds(), 8e-6), "{server:?}");
        assert!(near(server.bandwidth.bytes_per_second() as f64, 1e9), "{server:?}");
    }
}
