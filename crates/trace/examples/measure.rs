//! How small and how fast: bytes an event and events a second for traces of common kinds.
//!
//! `cargo run --release -p pio-trace --example measure [EVENTS]`

use std::time::Instant;

use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
    TraceWriter,
};

/// A linear congruential generator: good enough for jitter, the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Where the next access of a rank goes: (rank, its how-many-th access, random numbers) to an offset.
type Pattern = fn(u64, u64, &mut Random) -> u64;

const SIZE: u64 = 4096;
const RANKS: u64 = 16;

const PATTERNS: [(&str, u64, Pattern); 4] = [
    ("sequential, 1 rank", 1, |_, i, _| i * SIZE),
    ("cyclic, 16 ranks", RANKS, |rank, i, _| (i * RANKS + rank) * SIZE),
    ("strided, 16 ranks", RANKS, |rank, i, _| rank * (1 << 36) + (i / 64) * (1 << 22) + (i % 64) * 3 * SIZE),
    ("random, 16 ranks", RANKS, |_, _, random| random.below(1 << 22) * SIZE),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(2_000_000), |count| count.parse())?;
    println!("{count} events of {SIZE} bytes; clock with jitter (as recorded) and without (as simulated)\n");
    println!(
        "{:<20} {:<7} {:>12} {:>16} {:>16}",
        "pattern", "clock", "bytes/event", "write Mevents/s", "read Mevents/s"
    );
    for (name, ranks, pattern) in PATTERNS {
        for jitter in [false, true] {
            measure(name, &events(count, ranks, pattern, jitter), ranks, jitter)?;
        }
    }
    Ok(())
}

fn measure(name: &str, events: &[Event], ranks: u64, jitter: bool) -> Result<(), pio_trace::TraceError> {
    let mut bytes = Vec::new();
    let start = Instant::now();
    let mut writer = TraceWriter::new(&mut bytes, tables(ranks))?;
    for event in events {
        writer.push(event)?;
    }
    writer.finish()?;
    let write_s = start.elapsed().as_secs_f64();
    let len = bytes.len() as f64;
    let trace = Trace::from_bytes(bytes, name)?;
    let start = Instant::now();
    let mut moved = 0;
    for block in 0..trace.blocks().len() {
        moved += trace.block(block)?.iter().map(Event::transferred).sum::<u64>();
    }
    let read_s = start.elapsed().as_secs_f64();
    assert_eq!(moved, events.len() as u64 * SIZE);
    let count = events.len() as f64;
    println!(
        "{name:<20} {:<7} {:>12.3} {:>16.1} {:>16.1}",
        if jitter { "jitter" } else { "steady" },
        len / count,
        count / write_s / 1e6,
        count / read_s / 1e6
    );
    Ok(())
}

fn tables(ranks: u64) -> Tables {
    let processes = (0..ranks as u32).map(|rank| Process {
        rank: Some(rank),
        pid: 1000 + rank,
        host: format!("node{}", rank / 4),
        command: "measure".into(),
        start_ns: 0,
        end_ns: None,
    });
    let handles = (0..ranks as u32).map(|rank| Handle {
        file: FileId(0),
        process: ProcessId(rank),
        ranks: 1,
        collective: 0,
    });
    Tables {
        job: "measure".into(),
        processes: processes.collect(),
        files: vec![File { path: "/data/a".into() }],
        handles: handles.collect(),
        ..Tables::default()
    }
}

/// Every rank in a loop: think about 20 µs, then an access of about 10 µs.
fn events(count: u64, ranks: u64, pattern: Pattern, jitter: bool) -> Vec<Event> {
    let mut random = Random(7);
    let mut free_ns: Vec<u64> = (0..ranks).map(|rank| rank * 100).collect();
    let mut events = Vec::with_capacity(count as usize);
    for i in 0..count {
        let rank = i % ranks;
        // Jitter in the recorder's own overhead, the program's thinking and the device's answer.
        let mut about = |mean: u64| if jitter { mean - mean / 20 + random.below(mean / 10) } else { mean };
        let (overhead_ns, think_ns, elapsed_ns) = (about(200), about(20_000), about(10_000));
        let start_ns = free_ns[rank as usize] + overhead_ns + think_ns;
        free_ns[rank as usize] = start_ns + elapsed_ns;
        events.push(Event {
            call: Call::Pwrite,
            process: ProcessId(rank as u32),
            thread: 0,
            handle: Some(HandleId(rank as u32)),
            target: Target::Extent { offset: pattern(rank, i / ranks, &mut random) },
            memory: None,
            size: SIZE,
            result: SIZE as i64,
            start_ns,
            elapsed_ns,
            think_ns,
            used_ns: None,
            flags: Flags::NONE,
            operation: 0,
        });
    }
    events.sort_by_key(|event| event.start_ns);
    events
}
