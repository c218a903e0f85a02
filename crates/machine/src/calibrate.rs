//! Measures the machine that it runs on.
//!
//! Everything is measured from user space in a few seconds: memory copies, messages between two threads, and calls on a
//! file in a folder of the caller's choice. Each number is the middle of several runs. The data stay in the page cache:
//! a program that writes less than it holds does not notice the disk behind it, of which only syncs, write-back and cold reads
//! tell.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hint::{black_box, spin_loop};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use thiserror::Error;

use crate::call_costs::CallCosts;
use crate::machine::{ASKEW_REACH, Askew, CallCost, Calls, Copy, Machine, Messages, Nodes, Storage};
use crate::network::{Link, Network, Rails, Switching, Topology};
use crate::processor_cache::ProcessorCache;
use crate::quantity::{Bandwidth, Duration};
use crate::spreads::Spreads;
use crate::write_back::WriteBack;

mod after_work;
mod cold_reads;
mod direct;
mod names;
mod processor_cache;
mod processors;

use processors::{Processors, stay_on};

/// A measurement that failed.
#[derive(Debug, Error)]
#[error("{what}: {source}")]
pub struct CalibrateError {
    what: String,
    source: io::Error,
}

const RUNS: usize = 6;
/// Of calls: what disturbs the machine for a tenth of a second would spoil half of six.
const RUNS_OF_CALLS: usize = 10;
const BLOCK: usize = 1 << 20;
/// Where the cost of a call may leave the line between small and large ones: kernels take larger pages from about here on.
const MIDDLE: usize = 64 << 10;
/// Beyond which data are in no processor's cache: those of each call are the same memory, as programs fill one buffer anew.
const LARGE: usize = 16 << 20;
/// Threads that write at once, at most.
const MOST_WRITERS: u32 = 4;
/// Bytes of the file: well above processor caches, well below what makes a kernel write back.
const FILE_BYTES: usize = 32 << 20;
/// Calls of one size, at most.
const MOST_CALLS: usize = 4096;
/// Small writes seldom end with a page: the rest of a new one must be cleared.
const PART_OF_A_PAGE: usize = PAGE / 2;
/// Where large memory begins: so far into a page, as most C libraries have it, and half a page away from its place in the file. Memory
/// that begins with a page may be quicker, and memory [a little further into one](ASKEW) than its place slower.
const INTO_A_PAGE: usize = PAGE / 2 + 16;
const SMALL_CALLS: u64 = 20_000;
const SMALL_BYTES: usize = 8;
const PAGE: usize = 4096;
/// Bytes off its place in a page, and below how many more processors are no better at it: the last is where large memory has a page of
/// a file.
const ASKEW: [(usize, u64); 2] = [(8, 16), (16, ASKEW_REACH)];
const LEAST_ASKEW: f64 = 0.25;
/// 16 pages from one behind a boundary on lie in folios of 1, 2, 4, 8 and 1 of them.
const FOLIOS_MORE: f64 = 4.0;
/// Seconds. Where it is less in more than one run of six, file systems have no large folios.
const LEAST_OF_A_FOLIO: f64 = 2e-7;
/// Bytes that are written before they are synced.
const SYNCED: [usize; 3] = [PAGE, BLOCK, 16 * BLOCK];
/// What is written to learn the speed of the device: more than most take into a memory of their own, and not for long.
const BYTES_TO_DEVICE: usize = 256 << 20;
/// Times the least sync.
const CLEARLY_LONGER: f64 = 1.5;
const LONGEST_TO_DEVICE: std::time::Duration = std::time::Duration::from_secs(5);
const HOPS: u64 = 5_000;
const YIELDS: u64 = 20_000;
const WAKES: u64 = 4_000;
/// In which the length of a slice is found.
const STEPS_OF_A_QUANTUM: u32 = 12;
const TURNS_FOR: std::time::Duration = std::time::Duration::from_millis(300);
const A_TURN_AT_LEAST: std::time::Duration = std::time::Duration::from_micros(300);
const PIECE: usize = 64;
const PIECE_STRIDE: usize = 256;

/// Measures this machine, with files in `folder`, and tells `progress` what is being measured. The spread of each number
/// is noted. Measured again with the same spreads, numbers are the middles of all runs: a machine may be slower than it was for
/// as long as one measurement takes. How its kernel shares processors does not change: what was found `before` is taken.
///
/// # Errors
/// If a file in the folder cannot be created, written or read, or a thread cannot be started.
pub fn calibrate(
    folder: &Path,
    spreads: &mut Spreads,
    before: Option<&Machine>,
    progress: &mut dyn FnMut(&str),
) -> Result<Machine, CalibrateError> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let processors = &Processors::allowed(RUNS);
    let scratch = Scratch { path: folder.join(format!(".pioscope-calibrate-{}", std::process::id())) };
    let on_file = || failed(scratch.path.display().to_string());
    // Before anything that takes time.
    fresh(&scratch.path).map_err(on_file())?;
    progress("copying memory");
    let copy = measure_copy(processors, spreads);
    progress("passing messages between threads");
    let hop = measure_hop(cores, spreads);
    let switch = measure_switch(cores, spreads);
    let (quantum, slice) = match before {
        Some(Machine { nodes, .. }) => (nodes.quantum, nodes.slice),
        None => {
            progress("sharing processors");
            let quantum = measure_quantum(cores, spreads);
            (quantum, measure_slice(quantum).unwrap_or(quantum))
        }
    };
    let wake = measure_wake(cores, spreads);
    progress("opening and closing files");
    let names = names::measure(&scratch.path, processors, spreads).map_err(on_file())?;
    progress("seeking, writing and reading");
    let (seek, accesses) = measure_calls(&scratch.path, cores, processors, spreads).map_err(on_file())?;
    progress("syncing");
    let mut synced = measure_sync(&scratch.path, spreads).map_err(on_file())?;
    // What is as fast as memory is memory.
    let (mut write_back, mut cold_reads, mut direct) = (None, None, None);
    if CallCost::through(&synced).bandwidth < copy.bandwidth {
        let (_, least) = synced[0];
        let much;
        (write_back, much) = measure_write_back(&scratch.path, least, spreads).map_err(on_file())?.unzip();
        // Much at once is quicker or slower: devices have many queues, or memories of their own.
        synced.extend(much.filter(|(bytes, _)| *bytes > SYNCED[2]));
        progress("reading what is not in memory");
        cold_reads = cold_reads::measure(&scratch.path, cores, spreads).map_err(on_file())?;
        progress("reading and writing past the page cache");
        direct = direct::measure(&scratch.path, spreads).map_err(on_file())?;
    }
    progress("writing one file from several threads");
    let exclusive_writes = cores == 1 || measure_exclusion(&scratch.path, cores).map_err(on_file())?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let third = Duration::from_picoseconds(hop.picoseconds() / 3);
    Ok(Machine {
        name: "this-machine".to_owned(),
        source: Machine::source_of(host.trim(), folder),
        nodes: Nodes {
            count: 1,
            cores,
            switch,
            quantum,
            slice,
            wake,
            cooling: accesses.cooling,
            copy: copy.clone(),
        },
        messages: Messages { send: third, receive: third, local_latency: third },
        // One node: no message crosses a link.
        network: Network {
            topology: Topology::Flat,
            switching: Switching::Links,
            link: Link { bandwidth: copy.bandwidth, latency: Duration::ZERO },
            rails: Rails::default(),
        },
        storage: Storage::Local { exclusive_writes },
        io_node: None,
        calls: Calls {
            open: names.open,
            create: names.create,
            close: names.close,
            seek,
            resize: names.resize,
            stat: Some(names.stat),
            unlink: Some(names.unlink),
            dropped_pages: Some(names.dropped_pages),
            rewrites: Some(names.rewrites),
            sync: Some(CallCost::through(&synced)),
            read: accesses.read,
            write: accesses.write,
            new_pages: Some(accesses.new_pages),
            new_folio: accesses.new_folio,
            askew: accesses.askew,
            processor_cache: accesses.processor_cache,
            after_work: Some(accesses.after_work),
            direct,
            write_back,
            cold_reads,
            collective_waits: true,
            by_levels: false,
        },
        mpi_io: None,
    })
}

impl Machine {
    /// How [`calibrate`] found the numbers, to stand above them in a file.
    pub fn how_measured() -> &'static str {
        "Measured by calibrating the machine itself; every number is the middle of several runs, those of one thread\n\
         on one processor after the other. Where jobs were measured as well, half of the runs came after them (not of\n\
         nodes.quantum and nodes.slice).\n\
         Behind a line: half of what lies between the quartiles of its runs, in percent.\n\
         nodes.copy: 1 MiB copies, and what pieces of 64 bytes cost beyond their bytes.\n\
         nodes.switch: threads, two a core, that do nothing but let each other go first.\n\
         nodes.quantum: threads, two a core, that compute: how long one goes on until another has its turn.\n\
         nodes.slice: of two threads on one core, how long one has had it when the other takes it as soon as it is woken.\n\
         nodes.wake: two threads that wake each other and sleep.\n\
         nodes.cooling: from what a write of 64 KiB takes longer after 2 ms of going through memory than after 10, 2 to 10 ms.\n\
         messages: a number passed between two spinning threads, in three equal shares; an MPI library adds to it.\n\
         calls.create: opens of files that are not there, in a folder with few; the soonest of several runs.\n\
         calls.resize: an empty file is made longer and cut again.\n\
         calls.stat, calls.unlink: of files of a page that were just written.\n\
         calls.dropped-pages: what it takes longer to cut a file of 32 MiB that was just written.\n\
         calls.rewrites: what opens (O_TRUNC) and closes of a file take longer that is written anew with 4 KiB, 64 KiB, 1 MiB and\n\
         16 MiB, and synced before the next time.\n\
         calls.sync: fsync after writes of 4 KiB, 1 MiB and 16 MiB; and of as much as for calls.write-back.\n\
         calls: calls of 8 bytes, 64 KiB, 1 MiB and 16 MiB one after the other on a file in the page cache, each from and to\n\
         the same memory, which begins half a page and 16 bytes further into a page than their place in the file.\n\
         calls.new-pages: what writes of half a page, 64 KiB and 1 MiB to an empty file take beyond that; those of half\n\
         a page on up to four cores at once.\n\
         calls.new-folio: what writes of 64 KiB to an empty file take longer that begin a page later, for each of 4 folios more.\n\
         calls.askew: what reads of 64 KiB take longer whose memory is 16 bytes further into a page than their place in the file (or,\n\
         where that costs nothing, 8: then it reaches to 16).\n\
         calls.processor-cache: calls of 64 KiB that go through 1 MiB of a file again and again; size: how many they go through,\n\
         of 1 to 32 MiB, where they take half-way to those that go through 32, and the memory of one; miss: what calls of 512 bytes\n\
         here and there in those 32 take beyond that.\n\
         calls.after-work: what the first call after 10 ms of going through other memory takes longer than the two right behind it:\n\
         reads, and writes of new pages, of 2 KiB, 64 KiB and 1 MiB from or to one memory.\n\
         calls.write-back: bandwidth: fsync after writes of 256 MiB, or of what the kernel keeps, beyond what one of 4 KiB takes; the\n\
         rest is what the kernel says that it does.\n\
         calls.cold-reads: of a file of 256 MiB that the kernel was told to forget: a page here and there (request); one reader,\n\
         and two a core (up to 16), going through it.\n\
         calls.direct: reads and writes of 4 KiB, 64 KiB, 1 MiB and 16 MiB of a file that is on its device (O_DIRECT), one after\n\
         the other.\n\
         calls.collective-waits: not measured; so it is in Pioscope's MPI-IO.\n\
         storage.exclusive-writes: whether a thread's small writes wait while another makes a large one to the same file."
    }
}

fn measure_copy(processors: &Processors, spreads: &mut Spreads) -> Copy {
    let from = vec![1_u8; 32 * BLOCK];
    let mut to = vec![0_u8; 32 * BLOCK];
    let whole = spreads.of_runs("nodes.copy.bandwidth", |run| {
        let _there = processors.visit(run);
        let start = Instant::now();
        for (to, from) in to.chunks_exact_mut(BLOCK).zip(from.chunks_exact(BLOCK)) {
            black_box(to).copy_from_slice(black_box(from));
        }
        start.elapsed().as_secs_f64() / from.len() as f64
    });
    let pieces = spreads.of_runs("nodes.copy.piece", |run| {
        let _there = processors.visit(run);
        let start = Instant::now();
        let places = to.chunks_exact_mut(PIECE).zip(from.chunks_exact(PIECE_STRIDE));
        let mut count = 0_u32;
        for (to, from) in places {
            black_box(to).copy_from_slice(black_box(&from[..PIECE]));
            count += 1;
        }
        start.elapsed().as_secs_f64() / f64::from(count)
    });
    let bandwidth = rate(whole);
    Copy { bandwidth, piece: time(pieces - PIECE as f64 * whole) }
}

/// A message between two threads that wait for it actively: one way.
fn measure_hop(cores: u32, spreads: &mut Spreads) -> Duration {
    time(spreads.of_runs("messages.local-latency", |_| {
        let baton = Baton::default();
        thread::scope(|scope| {
            scope.spawn(|| baton.answer(cores));
            let start = Instant::now();
            baton.serve(cores);
            start.elapsed().as_secs_f64() / (2 * HOPS) as f64
        })
    }))
}

/// Goes forth and back between two threads: afterwards both run, each on a core of its own if there are two.
#[derive(Default)]
struct Baton(AtomicU64);

impl Baton {
    fn serve(&self, cores: u32) {
        for hop in 0..HOPS {
            self.0.store(2 * hop + 1, Ordering::Release);
            self.wait_for(2 * hop + 2, cores);
        }
    }

    fn answer(&self, cores: u32) {
        for hop in 0..HOPS {
            self.wait_for(2 * hop + 1, cores);
            self.0.store(2 * hop + 2, Ordering::Release);
        }
    }

    fn wait_for(&self, turn: u64, cores: u32) {
        let mut spins = 0_u32;
        while self.0.load(Ordering::Acquire) != turn {
            spins += 1;
            // With one core the other thread needs it.
            if cores == 1 || spins > 10_000 {
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
    }
}

/// A change of process on a core: threads, twice as many as cores, that do nothing but let others go first, as ranks do
/// that wait for messages.
fn measure_switch(cores: u32, spreads: &mut Spreads) -> Duration {
    let threads = 2 * cores;
    let ready = Barrier::new(threads as usize);
    let give_way = || {
        ready.wait();
        let start = Instant::now();
        (0..YIELDS).for_each(|_| thread::yield_now());
        start.elapsed().as_secs_f64()
    };
    let runs = (0..RUNS).map(|_| {
        let times = thread::scope(|scope| {
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(give_way)).collect();
            started.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<f64>>()
        });
        // Each core makes this many changes in this time.
        middle(times) * f64::from(cores) / (u64::from(threads) * YIELDS) as f64
    });
    time(spreads.middle("nodes.switch", runs.collect()))
}

/// How long a thread keeps its core while others want it: threads, twice as many as cores, that do nothing but look at the
/// clock, which jumps when another had its turn.
fn measure_quantum(cores: u32, spreads: &mut Spreads) -> Duration {
    let ready = Barrier::new(2 * cores as usize);
    let run_lengths = || {
        ready.wait();
        let start = Instant::now();
        let (mut lengths, mut begun, mut last) = (Vec::new(), start, start);
        while last.duration_since(start) < TURNS_FOR {
            let now = Instant::now();
            if now.duration_since(last) > A_TURN_AT_LEAST {
                lengths.push(last.duration_since(begun).as_secs_f64());
                begun = now;
            }
            last = now;
        }
        lengths
    };
    let mut lengths: Vec<f64> = thread::scope(|scope| {
        let started: Vec<_> = (0..2 * cores).map(|_| scope.spawn(run_lengths)).collect();
        started.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    });
    // Interruptions by what else runs here are shorter than turns.
    lengths.retain(|length| *length > A_TURN_AT_LEAST.as_secs_f64());
    if lengths.is_empty() { Nodes::USUAL_QUANTUM } else { time(spreads.middle("nodes.quantum", lengths)) }
}

/// How long a thread must have had a core for another that is woken to take it at once: tried in steps, with two threads on
/// one core. None if this process may not say where its threads run, or has one core.
fn measure_slice(quantum: Duration) -> Option<Duration> {
    let processors = Processors::allowed(2);
    let [shared, apart] = *processors.visited() else { return None };
    let quantum = std::time::Duration::from_secs_f64(quantum.seconds());
    let sleepers: [Sleeper; 2] = Default::default();
    thread::scope(|scope| {
        let threads = sleepers.each_ref().map(|sleeper| {
            scope.spawn(move || stay_on(shared).is_ok().then(|| sleeper.compute_when_woken(2 * quantum)))
        });
        let [first, second] = threads.each_ref().map(|started| started.thread().clone());
        let sleepers = &sleepers;
        let waker = scope.spawn(move || {
            let waits = |head_start| {
                let mut waits = Vec::new();
                for _ in 0..RUNS {
                    sleepers[0].wake(&first);
                    let begun = Instant::now();
                    while begun.elapsed() < head_start {
                        spin_loop();
                    }
                    let woken = Instant::now();
                    sleepers[1].wake(&second);
                    // Both sleep again by then, and are owed nothing.
                    waits.push(sleepers[1].began_after(woken, 7 * quantum));
                }
                middle(waits)
            };
            let at_once = |head_start| waits(head_start) < quantum.as_secs_f64() / 8.0;
            if stay_on(apart).is_err() || !at_once(2 * quantum) {
                return None;
            }
            // One step that something else disturbed makes it wrong by no more than that.
            let step = quantum / STEPS_OF_A_QUANTUM;
            let waited = (0..STEPS_OF_A_QUANTUM).filter(|number| !at_once(*number * step)).count();
            Some(time(step.as_secs_f64() * waited as f64))
        });
        let found = waker.join().ok().flatten();
        for (sleeper, thread) in sleepers.iter().zip(&threads) {
            sleeper.is_over.store(true, Ordering::Release);
            sleeper.wake(thread.thread());
        }
        found
    })
}

/// A thread that sleeps, and computes for a while when it is woken.
#[derive(Default)]
struct Sleeper {
    is_woken: AtomicBool,
    is_over: AtomicBool,
    /// When it last began to compute.
    began: Mutex<Option<Instant>>,
}

impl Sleeper {
    fn compute_when_woken(&self, time: std::time::Duration) {
        loop {
            while !self.is_woken.swap(false, Ordering::AcqRel) {
                thread::park();
            }
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let begun = Instant::now();
            if let Ok(mut began) = self.began.lock() {
                *began = Some(begun);
            }
            while begun.elapsed() < time {
                spin_loop();
            }
        }
    }

    fn wake(&self, thread: &thread::Thread) {
        self.is_woken.store(true, Ordering::Release);
        thread.unpark();
    }

    /// Seconds after which it began, when that is over; infinite if it did not.
    fn began_after(&self, woken: Instant, at_most: std::time::Duration) -> f64 {
        thread::sleep(at_most);
        let began = self.began.lock().ok().and_then(|began| *began);
        let after = began.and_then(|began| began.checked_duration_since(woken));
        after.map_or(f64::INFINITY, |after| after.as_secs_f64())
    }
}

/// From waking a thread that sleeps to its first step: two threads that do so by turns, on processors of their own.
fn measure_wake(cores: u32, spreads: &mut Spreads) -> Duration {
    if cores == 1 {
        return Duration::ZERO;
    }
    let turn = AtomicU64::new(0);
    let play = |first: u64, other: &thread::Thread| {
        for step in (first..WAKES).step_by(2) {
            while turn.load(Ordering::Acquire) != step {
                thread::park();
            }
            turn.store(step + 1, Ordering::Release);
            other.unpark();
        }
    };
    let runs = (0..RUNS).map(|_| {
        turn.store(0, Ordering::Release);
        let this = thread::current();
        thread::scope(|scope| {
            let partner = scope.spawn(|| play(1, &this));
            let start = Instant::now();
            play(0, partner.thread());
            start.elapsed().as_secs_f64() / WAKES as f64
        })
    });
    time(spreads.middle("nodes.wake", runs.collect()))
}

/// What an fsync takes by what was written before it.
fn measure_sync(path: &Path, spreads: &mut Spreads) -> io::Result<Vec<(usize, f64)>> {
    let data = vec![1_u8; SYNCED[2]];
    let mut syncs = BySize::default();
    for _ in 0..RUNS {
        for size in SYNCED {
            let file = fresh(path)?;
            file.write_all_at(&data[..size], 0)?;
            let start = Instant::now();
            file.sync_all()?;
            syncs.of(size).push(start.elapsed().as_secs_f64());
        }
    }
    Ok(syncs.middles("calls.sync", spreads))
}

/// When the kernel writes back, and how fast the device takes it, beyond what a sync takes at `least`; and what a sync of so many
/// bytes takes. None if the kernel does not say, or there is no room to try.
fn measure_write_back(
    path: &Path,
    least: f64,
    spreads: &mut Spreads,
) -> io::Result<Option<(WriteBack, (usize, f64))>> {
    let Some((background, limit, age)) = write_back_of_kernel() else { return Ok(None) };
    // No byte of it goes to the device before the sync.
    let bytes =
        BYTES_TO_DEVICE.min(usize::try_from(background / 2).unwrap_or(usize::MAX)).max(BLOCK) / BLOCK * BLOCK;
    let data = vec![1_u8; BLOCK];
    let begun = Instant::now();
    let mut speeds = Vec::new();
    while speeds.len() < RUNS && (speeds.is_empty() || begun.elapsed() < LONGEST_TO_DEVICE) {
        let file = fresh(path)?;
        match (0..bytes).step_by(BLOCK).try_for_each(|at| file.write_all_at(&data, at as u64)) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                return Ok(None);
            }
            written => written?,
        }
        let start = Instant::now();
        file.sync_all()?;
        let seconds = start.elapsed().as_secs_f64();
        // A sync that takes hardly longer than one of a page says little of the device.
        let moving = if seconds > least * CLEARLY_LONGER { seconds - least } else { seconds };
        speeds.push(bytes as f64 / moving);
    }
    let bandwidth = rate(1.0 / spreads.middle("calls.write-back", speeds));
    let seconds = least + bandwidth.time_of(bytes as u64).seconds();
    Ok(Some((WriteBack { background, limit, age, bandwidth }, (bytes, seconds))))
}

/// The thresholds of dirty pages, in bytes, and their age. The memory of a control group sets them lower, and that of each group
/// that it is in.
fn write_back_of_kernel() -> Option<(u64, u64, Duration)> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let counters = read("/proc/vmstat")?;
    let pages = |name: &str| {
        let line = counters.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.parse::<u64>().ok().map(|pages| pages * PAGE as u64)
    };
    let (background, limit) = (pages("nr_dirty_background_threshold")?, pages("nr_dirty_threshold")?);
    let centiseconds: f64 = read("/proc/sys/vm/dirty_expire_centisecs")?.trim().parse().ok()?;
    let percent = |name: &str| read(&format!("/proc/sys/vm/{name}"))?.trim().parse::<u64>().ok();
    let group = read("/proc/self/cgroup")?;
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let group = Path::new("/sys/fs/cgroup").join(group);
    let limits =
        group.ancestors().flat_map(|group| ["max", "high"].map(|name| group.join(format!("memory.{name}"))));
    let memory = limits.filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok()).min();
    let within = |bytes: u64, name: &str| {
        let of_group = memory.zip(percent(name)).map(|(memory, percent): (u64, u64)| memory / 100 * percent);
        of_group.filter(|bytes| *bytes > 0).map_or(bytes, |of_group| of_group.min(bytes))
    };
    let age = Duration::from_seconds(centiseconds / 100.0);
    let limit = within(limit, "dirty_ratio");
    // As Linux does with one that is not below the limit.
    let background = within(background, "dirty_background_ratio");
    Some((if background < limit { background } else { limit / 2 }, limit, age))
}

struct Accesses {
    read: CallCost,
    write: CallCost,
    new_pages: CallCost,
    new_folio: Duration,
    askew: Option<Askew>,
    processor_cache: Option<ProcessorCache>,
    cooling: Duration,
    after_work: CallCosts,
}

fn measure_calls(
    path: &Path,
    cores: u32,
    processors: &Processors,
    spreads: &mut Spreads,
) -> io::Result<(Duration, Accesses)> {
    let writers = cores.min(MOST_WRITERS) as usize;
    let mut memory = vec![1_u8; LARGE + 2 * PAGE];
    let begin = memory.as_ptr().align_offset(PAGE) + INTO_A_PAGE;
    let memory = &mut memory[begin..begin + LARGE];
    let (mut seeks, mut folios, mut askew) = (Vec::new(), Vec::new(), ASKEW.map(|_| Vec::new()));
    let (mut reads, mut writes, mut new_pages) = (BySize::default(), BySize::default(), BySize::default());
    let mut cached = processor_cache::Calls::default();
    let mut after_work = after_work::Calls::default();
    for run in 0..RUNS_OF_CALLS {
        new_pages.of(PAGE).push(parts_of_new_pages(path, writers)?);
        let _there = processors.visit(run);
        for size in [MIDDLE, BLOCK, LARGE] {
            let (file, data) = (fresh(path)?, &mut memory[..size]);
            let new = in_turn(data, size, |data, offset| file.write_all_at(data, offset))?;
            // A page costs the same in a larger call; and what two such calls take is mostly how long one of them was disturbed.
            if size < LARGE {
                new_pages.of(size).push(new);
            }
            writes.of(size).push(in_turn(data, size, |data, offset| file.write_all_at(data, offset))?);
            let straight = in_turn(data, size, |data, offset| file.read_exact_at(data, offset))?;
            reads.of(size).push(straight);
            if size == MIDDLE {
                // Right behind the others: what else is measured between leaves other things in the processors' caches.
                for ((off, _), askew) in ASKEW.iter().zip(&mut askew) {
                    let data = &mut memory[PAGE - INTO_A_PAGE + *off..][..size];
                    let slanting = in_turn(data, size, |data, offset| file.read_exact_at(data, offset))?;
                    askew.push(slanting - straight);
                }
                cached.measure(path, &mut memory[..size])?;
                let mut from = |begin: usize| {
                    let file = fresh(path)?;
                    let behind = |data: &mut [u8], offset| file.write_all_at(data, offset + begin as u64);
                    in_turn(&mut memory[..size], size, behind)
                };
                folios.push((from(PAGE)? - from(0)?) / FOLIOS_MORE);
            }
        }
        after_work.measure(path, memory)?;
        // Pages that large writes made are large themselves, and cost small writes more than those that small ones made.
        let mut file = fresh(path)?;
        let (small, place) = (&mut memory[..SMALL_BYTES], |index: u64| index * SMALL_BYTES as u64);
        each(SMALL_CALLS, |index| file.write_all_at(small, place(index)))?;
        let written = each(SMALL_CALLS, |index| file.write_all_at(small, place(index)))?;
        writes.of(SMALL_BYTES).push(written);
        let read = each(SMALL_CALLS, |index| file.read_exact_at(small, place(index)))?;
        reads.of(SMALL_BYTES).push(read);
        seeks.push(each(SMALL_CALLS, |index| {
            io::Seek::seek(&mut file, io::SeekFrom::Start(index)).map(drop)
        })?);
    }
    let read = CallCost::through(&reads.middles("calls.read", spreads));
    let write = CallCost::through(&writes.middles("calls.write", spreads));
    // Where it is less than this part, it is the measurement's own error. Processors that reach further are as slow all the way.
    let most = askew.iter().map(|longer| middle(longer.clone())).fold(0.0, f64::max);
    let least = (read.of(MIDDLE as u64).seconds() * LEAST_ASKEW).max(most / 2.0);
    let counts = |(_, longer): &(_, Vec<f64>)| middle(longer.clone()) > least;
    let askew = ASKEW.iter().zip(askew).rev().find(counts).map(|((_, reach), longer)| {
        let bandwidth = rate(spreads.middle("calls.askew", longer) / MIDDLE as f64);
        Askew { bandwidth, reach: *reach }
    });
    let processor_cache = cached.found(&read, &write, spreads);
    let (cooling, after_work) = after_work.found(spreads);
    // In five runs of six: new pages take more at one time than at another.
    let shows = folios.iter().filter(|seconds| **seconds > LEAST_OF_A_FOLIO).count() * 6 >= folios.len() * 5;
    let new_folio = if shows { time(spreads.middle("calls.new-folio", folios)) } else { Duration::ZERO };
    // The write itself is in what was measured.
    let mut beyond = new_pages.middles("calls.new-pages", spreads);
    for (size, seconds) in &mut beyond {
        let bytes = if *size == PAGE { PART_OF_A_PAGE } else { *size };
        *seconds -= write.call.seconds() + write.moving(bytes as u64).seconds();
    }
    Ok((
        time(spreads.middle("calls.seek", seeks)),
        Accesses {
            read,
            write,
            new_pages: CallCost::through(&beyond),
            new_folio,
            askew,
            processor_cache,
            cooling,
            after_work,
        },
    ))
}

/// Seconds of one call, from or to the same memory and a file, where each is so far behind the one before.
fn in_turn(
    data: &mut [u8],
    stride: usize,
    mut call: impl FnMut(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<f64> {
    let count = (FILE_BYTES / stride).min(MOST_CALLS);
    each(count as u64, |index| call(data, index * stride as u64))
}

/// Seconds of one write of a part of a page to a file that was empty, where several threads write at once, to a file each:
/// they hinder each other where the kernel finds room for what they write.
fn parts_of_new_pages(path: &Path, writers: usize) -> io::Result<f64> {
    let ready = Barrier::new(writers);
    let write = |writer: usize| {
        let file = Scratch { path: path.with_extension(format!("writer-{writer}")) };
        let opened = fresh(&file.path);
        ready.wait();
        let opened = opened?;
        in_turn(&mut [1; PART_OF_A_PAGE], PAGE, |data, offset| opened.write_all_at(data, offset))
    };
    let write = &write;
    let each = thread::scope(|scope| {
        let started: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        let lost = || Err(io::Error::other("a thread that writes ended early"));
        started.into_iter().map(|one| one.join().unwrap_or_else(|_| lost())).collect::<io::Result<Vec<f64>>>()
    })?;
    Ok(each.iter().sum::<f64>() / writers as f64)
}

/// Seconds of each run, by the size of the calls.
#[derive(Default)]
struct BySize(BTreeMap<usize, Vec<f64>>);

impl BySize {
    fn of(&mut self, size: usize) -> &mut Vec<f64> {
        self.0.entry(size).or_default()
    }

    fn middles(self, key: &str, spreads: &mut Spreads) -> Vec<(usize, f64)> {
        let mut middle = |(size, runs)| (size, spreads.middle(&format!("{key}.{size} B"), runs));
        self.0.into_iter().map(&mut middle).collect()
    }
}

impl CallCost {
    /// What a call and its bytes take, from the seconds of calls of three sizes or more, ascending: the call lies on the line
    /// through the first two.
    ///
    /// # Panics
    /// With fewer sizes.
    pub fn through(seconds: &[(usize, f64)]) -> CallCost {
        let (&[small, second, ..], &[.., last, large]) = (seconds, seconds) else {
            panic!("three sizes are measured")
        };
        let slope =
            |low: (usize, f64), high: (usize, f64)| (high.1 - low.1).max(0.0) / (high.0 - low.0) as f64;
        let mut least = (small.1 - slope(small, second) * small.0 as f64).max(0.0);
        let call = time(least);
        let mut sizes = Vec::new();
        for (size, seconds) in &seconds[1..seconds.len() - 1] {
            least = least.max(*seconds);
            sizes.push((*size as u64, time(least)));
        }
        CallCost { call, bandwidth: rate(slope(last, large)), sizes }
    }
}

/// Whether the kernel lets one thread wait while another writes the same file: how many small writes a thread makes while
/// another makes a large one, to the same file and to two.
fn measure_exclusion(path: &Path, cores: u32) -> io::Result<bool> {
    let second = Scratch { path: path.with_extension("second") };
    let (mut same, mut apart) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (file, other) = (fresh(path)?, fresh(&second.path)?);
        apart.push(small_beside_large(&other, &file, cores)?);
        same.push(small_beside_large(&file, &file, cores)?);
    }
    Ok(middle(same) < middle(apart) / 4.0)
}

/// How many small writes are made to one file while a large one is made to another, or to the same.
fn small_beside_large(small: &File, large: &File, cores: u32) -> io::Result<f64> {
    let data = vec![1_u8; FILE_BYTES];
    let (baton, begins, is_over) = (Baton::default(), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            baton.answer(cores);
            begins.store(true, Ordering::Release);
            let written = large.write_all_at(&data, 0);
            is_over.store(true, Ordering::Release);
            written
        });
        baton.serve(cores);
        while !begins.load(Ordering::Acquire) {
            spin_loop();
        }
        let mut count = 0.0;
        while !is_over.load(Ordering::Acquire) {
            small.write_all_at(&[1], FILE_BYTES as u64)?;
            count += 1.0;
        }
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the large write ended early")))?;
        Ok(count)
    })
}

fn fresh(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)
}

/// Seconds of one call.
fn each(count: u64, mut call: impl FnMut(u64) -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    (0..count).try_for_each(&mut call)?;
    Ok(start.elapsed().as_secs_f64() / count as f64)
}

impl Spreads {
    /// The middle of runs, by their numbers, and of those before, whose spread is that of this key.
    fn of_runs(&mut self, key: &str, run: impl FnMut(usize) -> f64) -> f64 {
        self.middle(key, (0..RUNS).map(run).collect())
    }

    /// The middle of runs, and of those before, whose spread is that of this key.
    fn middle(&mut self, key: &str, runs: Vec<f64>) -> f64 {
        let all = self.gather(key, runs);
        self.note_runs(key, &all);
        middle(all)
    }
}

/// The mean of the runs that lie in the middle, half of them at most: what disturbed every fourth run has no part in it, and if
/// some processors are faster than others, all have.
fn middle(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    let left_out = runs.len().div_ceil(4).min(runs.len().saturating_sub(1) / 2);
    let inner = &runs[left_out..runs.len() - left_out];
    inner.iter().sum::<f64>() / inner.len() as f64
}

/// Three digits: more is noise.
fn time(seconds: f64) -> Duration {
    Duration::from_seconds(three_digits(seconds))
}

fn rate(seconds_per_byte: f64) -> Bandwidth {
    // Faster than anything: the range of descriptions ends there.
    let bytes_per_second = (1.0 / seconds_per_byte.max(1e-13)).clamp(1e3, 1e13);
    Bandwidth::from_bytes_per_second(three_digits(bytes_per_second) as u64)
}

fn three_digits(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powi(2 - number.log10().floor() as i32);
    (number * scale).round() / scale
}

fn failed(what: String) -> impl FnOnce(io::Error) -> CalibrateError {
    move |source| CalibrateError { what, source }
}

/// A file that goes when it is not needed any more.
struct Scratch {
    path: PathBuf,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may not exist yet, and there is nobody to tell.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_measured_written_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut told = Vec::new();
        let mut spreads = Spreads::default();
        let machine =
            calibrate(folder.path(), &mut spreads, None, &mut |what| told.push(what.to_owned())).unwrap();
        // Reads from the device, and past the page cache, only where there is one.
        assert!([7, 9].contains(&told.len()), "{told:?}");
        let text = machine.to_toml_with(Machine::how_measured(), &spreads);
        assert!(text.contains("  # bandwidth ± ") && text.contains("write = { call"), "{text}");
        assert_eq!(Machine::parse("this", &text).unwrap(), machine, "{text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a scratch file is left");
        // Any machine that can build this copies faster than 50 MB/s and opens a file in less than a second.
        assert!(machine.nodes.copy.bandwidth.bytes_per_second() > 50_000_000, "{text}");
        assert!(machine.calls.open > Duration::ZERO && machine.calls.open.seconds() < 1.0, "{text}");
        assert!(machine.calls.write.call > Duration::ZERO, "{text}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = calibrate(Path::new("/no/such/folder"), &mut Spreads::default(), None, &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/no/such/folder/.pioscope-calibrate-"), "{error}");
    }

    #[test]
    fn a_call_costs_what_was_measured_of_its_size() {
        let measured = [(8, 1e-6 + 8e-9), (64 << 10, 66.536e-6), (1 << 20, 66.536e-6 + 983.04e-6 / 2.0)];
        let found = CallCost::through(&measured);
        let seconds = |bytes| found.call.seconds() + found.moving(bytes).seconds();
        for (bytes, expected) in [(0, 1e-6), (32 << 10, 33.77e-6), (64 << 10, 66.5e-6), (1 << 20, 558e-6)] {
            assert!((seconds(bytes) / expected - 1.0).abs() < 0.01, "{bytes}: {} {expected}", seconds(bytes));
        }
        // Noise makes a larger call cheaper: none takes less than a smaller one.
        let found = CallCost::through(&[(8, 3e-6), (64 << 10, 2e-6), (1 << 20, 1e-6)]);
        assert!(found.call == time(3e-6) && found.moving(1 << 19).seconds() < 1e-7, "{found:?}");
    }

    #[test]
    fn what_disturbs_some_runs_has_no_part_in_the_middle() {
        assert_eq!(middle(vec![3.0, 1.0, 9.0, 2.0, 2.0, 50.0]), 2.5);
        assert_eq!(middle(vec![1.0, 8.0, 2.0]), 2.0);
        assert_eq!(middle(vec![1.0, 2.0]), 1.5);
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(time(1.234_56e-6).picoseconds(), 1_230_000);
        assert_eq!(time(-1.0), Duration::ZERO);
        assert_eq!(rate(0.0).bytes_per_second(), 10_000_000_000_000);
    }
}
