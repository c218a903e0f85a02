//! What the page of a large trace takes: writes traces of a given number of events (default 10 million), of 64 ranks with two
//! threads each that read and write 200 files at random, and of 10 000 ranks that write one file alike; explains them, writes their pages, to files `large-64.html` and
//! `large-10000.html` of a folder if one is named (`large_report 10000000 folder`), and prints sizes, CPU times and memory.

use std::fs::File as OutFile;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
    TraceWriter,
};

/// What a trace is of.
#[derive(Clone, Copy)]
struct Job {
    ranks: u32,
    threads: u32,
    files: u32,
}

const JOBS: [Job; 2] =
    [Job { ranks: 64, threads: 2, files: 200 }, Job { ranks: 10_000, threads: 1, files: 1 }];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(10_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pages = arguments.next().map_or(folder.path().to_path_buf(), PathBuf::from);
    for job in JOBS {
        measure(job, count, folder.path(), &pages.join(format!("large-{}.html", job.ranks)));
    }
}

fn measure(job: Job, count: u64, folder: &Path, page: &Path) {
    let path = folder.join("large.pio");
    write(&path, job, count);
    let trace = Trace::open(&path).expect("the trace opens");
    let before_s = cpu_s();
    let (found, gathering) =
        pio_report::explain_for_page(&trace, &mut |_| {}).expect("the trace can be read");
    let (explained_s, explained_kib) = (cpu_s(), most_memory_kib());
    let mut out = BufWriter::new(OutFile::create(page).expect("the page can be written"));
    pio_report::html_of_trace(&trace, &found, gathering, &[], &mut out).expect("the page can be written");
    drop(out);
    println!(
        "{count} events of {} ranks: a page of {:.1} MB; {:.2} s of CPU to explain, {:.2} s to write the page; {} MiB of memory, {} MiB \
         before the page",
        job.ranks,
        std::fs::metadata(page).map_or(0, |page| page.len()) as f64 / 1e6,
        explained_s - before_s,
        cpu_s() - explained_s,
        most_memory_kib() / 1024,
        explained_kib / 1024
    );
}

/// CPU time of this process, seconds.
fn cpu_s() -> f64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = status.rsplit_once(") ").map_or("", |(_, rest)| rest).split_whitespace();
    // Clock ticks in user and kernel mode, a hundredth of a second each on Linux.
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn most_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn write(path: &Path, job: Job, count: u64) {
    let handle = |number| Handle {
        file: FileId(number % job.files),
        process: ProcessId(number / job.files),
        ranks: 1,
        collective: 0,
    };
    let process = |rank| Process {
        rank: Some(rank),
        pid: 100 + rank,
        host: format!("node{}", rank / 8),
        command: "app".into(),
        start_ns: 0,
        end_ns: Some(count * 2000),
    };
    let tables = Tables {
        job: "large".into(),
        processes: (0..job.ranks).map(process).collect(),
        files: (0..job.files)
            .map(|file| File { path: format!("/scratch/ada/run/field.{file:04}.dat") })
            .collect(),
        handles: (0..job.ranks * job.files).map(handle).collect(),
        ..Tables::default()
    };
    let mut writer = TraceWriter::create(path, tables).expect("the trace is created");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for index in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let event =
            if job.files == 1 { alike(job, index, random) } else { at_random(job, index, count, random) };
        writer.push(&event).expect("an event");
    }
    writer.finish().expect("the trace is finished");
}

/// Ranks that write their pieces of a shared file, step after step: no two at quite the same time.
fn alike(job: Job, index: u64, random: u64) -> Event {
    const PIECE: u64 = 47_008;
    const SYNC_EVERY: u64 = 50;
    let ranks = u64::from(job.ranks);
    // 7919 is a prime, so each rank has its turn in each step.
    let (step, rank) = (index / ranks, (index % ranks * 7919 % ranks) as u32);
    let process = ProcessId(rank);
    let handle = Some(HandleId(rank));
    let elapsed_ns = 30_000 + (random >> 40 & 0x3fff);
    if step % SYNC_EVERY == SYNC_EVERY - 1 {
        return Event { handle, elapsed_ns, ..Event::new(Call::Fsync, process, index * 2000) };
    }
    Event {
        handle,
        target: Target::Extent { offset: (step * ranks + u64::from(rank)) * PIECE },
        size: PIECE,
        result: PIECE as i64,
        elapsed_ns,
        think_ns: 10_000 + (random >> 20 & 0x3ff),
        ..Event::new(Call::Pwrite, process, index * 2000)
    }
}

/// Ranks use one file after the other, each in its own order; every tenth call is no transfer.
fn at_random(job: Job, index: u64, count: u64, random: u64) -> Event {
    let rank = (random % u64::from(job.ranks)) as u32;
    let file = (index * u64::from(job.files) / count + u64::from(rank)) as u32 % job.files;
    let call = match random >> 20 & 15 {
        0 => Call::Fsync,
        1..=5 => Call::Pread,
        _ => Call::Pwrite,
    };
    let size = if call == Call::Fsync { 0 } else { [512, 4096, 65536, 1 << 20][(random >> 30 & 3) as usize] };
    let target =
        if call == Call::Fsync { Target::None } else { Target::Extent { offset: (random >> 32) * 512 } };
    Event {
        thread: (random >> 40) as u32 % job.threads,
        handle: Some(HandleId(rank * job.files + file)),
        target,
        size,
        result: size as i64,
        elapsed_ns: 400 + (random >> 40 & 0xffff),
        flags: Flags::NONE,
        ..Event::new(call, ProcessId(rank), index * 2000)
    }
}
