//! How fast traces are explained: writes traces of a given number of events (default 10 million) of several kinds to a
//! temporary folder, explains each, and prints events per second, CPU time (which does not depend on who else is there),
//! and the memory that the process needed at most.

use std::time::Instant;

use pio_explain::Explanation;
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
    TraceWriter,
};

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(10_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for kind in ["sequential", "interleaved", "random", "mpi"] {
        let path = folder.path().join(kind);
        write(&path, kind, count);
        let trace = Trace::open(&path).expect("the trace opens");
        let before_s = cpu_s();
        let decoded: u64 =
            (0..trace.blocks().len()).map(|b| trace.block(b).expect("a block").len() as u64).sum();
        let (decode_s, start) = (cpu_s() - before_s, Instant::now());
        let before_s = cpu_s();
        let found = Explanation::of_trace(&trace, &mut |_| {}).expect("the trace can be read");
        let (elapsed_s, used_s) = (start.elapsed().as_secs_f64(), cpu_s() - before_s);
        assert_eq!(found.events, decoded);
        println!(
            "{kind:12} {:6.2} million events/s ({elapsed_s:.2} s); {:.0} ns of CPU an event, {:.0} ns to decode it; {} findings, {} MiB at most",
            count as f64 / elapsed_s / 1e6,
            used_s / count as f64 * 1e9,
            decode_s / count as f64 * 1e9,
            found.findings.len(),
            most_memory_kib() / 1024
        );
    }
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

fn write(path: &std::path::Path, kind: &str, count: u64) {
    let (processes, files) = match kind {
        "sequential" => (1, 1),
        "interleaved" => (1, 6),
        _ => (64, 1),
    };
    let handles_of = |ranks, collective| {
        let of = move |process| {
            let process = ProcessId(process);
            (0..files).map(move |file| Handle { file: FileId(file), process, ranks, collective })
        };
        (0..processes).flat_map(of)
    };
    let mut handles: Vec<Handle> = handles_of(1, 0).collect();
    if kind == "mpi" {
        handles.extend(handles_of(processes, 1));
    }
    let process = |rank| Process {
        rank: (processes > 1).then_some(rank),
        pid: 100 + rank,
        host: format!("node{}", rank / 8),
        command: "app".into(),
        start_ns: 0,
        end_ns: Some(count * 2000),
    };
    let tables = Tables {
        job: kind.into(),
        processes: (0..processes).map(process).collect(),
        files: (0..files).map(|file| File { path: format!("/data/{file}") }).collect(),
        handles: handles.clone(),
        ..Tables::default()
    };
    let mut writer = TraceWriter::create(path, tables).expect("the trace is created");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for index in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let event = if kind == "mpi" {
            through_mpi(index, random, u64::from(processes))
        } else {
            let handle = index % handles.len() as u64;
            let offset =
                if kind == "random" { random % (1 << 34) } else { index / handles.len() as u64 * 1024 };
            let call = if index % 4 == 0 { Call::Pread } else { Call::Pwrite };
            let process = handles[handle as usize].process;
            request(call, process, HandleId(handle as u32), offset, 1024, index * 2000, random)
        };
        writer.push(&event).expect("an event");
    }
    writer.finish().expect("the trace is finished");
}

/// Calls of MPI-IO, of one rank after the other, each followed by the call that it makes.
fn through_mpi(index: u64, random: u64, processes: u64) -> Event {
    let (asked, is_made) = (index / 2, index % 2 == 1);
    let (rank, start_ns) = ((asked % processes) as u32, asked * 4000);
    let handle = |number| HandleId(rank + number * processes as u32);
    let operation = asked / processes + 1;
    let process = ProcessId(rank);
    if is_made {
        let made = request(Call::Pwrite, process, handle(0), asked * 4096, 4096, start_ns + 600, random);
        Event { think_ns: 0, flags: Flags::PHYSICAL, operation, ..made }
    } else {
        let asked = request(Call::MpiFileWriteAt, process, handle(1), asked * 4096, 4096, start_ns, random);
        Event { elapsed_ns: 2000 + asked.elapsed_ns, operation, ..asked }
    }
}

fn request(
    call: Call,
    process: ProcessId,
    handle: HandleId,
    offset: u64,
    size: u64,
    from_ns: u64,
    random: u64,
) -> Event {
    Event {
        call,
        process,
        thread: 0,
        handle: Some(handle),
        target: Target::Extent { offset },
        memory: None,
        size,
        result: size as i64,
        start_ns: from_ns + random % 500,
        elapsed_ns: 400 + random % 300,
        think_ns: 100 + random % 50,
        used_ns: None,
        flags: Flags::NONE,
        operation: 0,
    }
}
