//! Traces made up for tests and samples, the same each time: a collective checkpoint, one process, and a long run.

use pio_layout::{Datatype, View};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, ViewId,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Numbers that look random: a linear congruential generator (Knuth's constants).
struct Jitter(u64);

impl Jitter {
    /// Between `from` and `to`.
    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + (self.0 >> 33) % (to - from + 1)
    }
}

fn event(call: Call, process: usize, handle: Option<usize>, start_ns: u64, elapsed_ns: u64) -> Event {
    Event {
        call,
        process: ProcessId(process as u32),
        thread: 0,
        handle: handle.map(|handle| HandleId(handle as u32)),
        target: Target::None,
        memory: None,
        size: 0,
        result: 0,
        start_ns,
        elapsed_ns,
        think_ns: 0,
        used_ns: None,
        flags: Flags::NONE,
        operation: 0,
    }
}

fn processes(count: usize, hosts: usize, ranked: bool, end_ns: u64) -> Vec<Process> {
    let process = |rank: usize| Process {
        rank: ranked.then_some(rank as u32),
        pid: 4000 + rank as u32,
        host: format!("node{:02}", rank * hosts / count + 1),
        command: "collapse --mesh 128 128 64".into(),
        start_ns: 0,
        end_ns: Some(end_ns),
    };
    (0..count).map(process).collect()
}

/// `ranks` processes write `files` files, each together: every rank sends each other rank its part, then writes a
/// contiguous 1/ranks of the file.
pub(crate) fn checkpoints(ranks: usize, files: usize) -> (Tables, Vec<Event>) {
    let mut jitter = Jitter(1);
    let file_bytes = (128 * 128 * 64 * 8) as u64;
    let share = file_bytes / ranks as u64;
    let (mut events, mut handles) = (Vec::new(), Vec::new());
    let mut operations = vec![0_u64; ranks];
    let mut now = 3 * MS;
    for file in 0..files {
        now += jitter.between(40 * MS, 90 * MS);
        let first = handles.len();
        for rank in 0..ranks {
            let collective = file as u64 + 1;
            handles.push(Handle {
                file: FileId(file as u32),
                process: ProcessId(rank as u32),
                ranks: ranks as u32,
                collective,
            });
            handles.push(Handle {
                file: FileId(file as u32),
                process: ProcessId(rank as u32),
                ranks: 1,
                collective: 0,
            });
        }
        let (mpi, posix) = (|rank: usize| Some(first + 2 * rank), |rank: usize| Some(first + 2 * rank + 1));
        let flags = Flags::COLLECTIVE;
        let opened = now + 6 * MS;
        let write = opened + MS;
        let done = write + jitter.between(90 * MS, 130 * MS);
        for (rank, operation) in operations.iter_mut().enumerate() {
            let mut own = |events: &mut Vec<Event>, mut event: Event, caused: &[Event]| {
                *operation += 1;
                event.operation = *operation;
                events.push(event);
                for mut inner in caused.iter().cloned() {
                    inner.operation = *operation;
                    inner.flags = Flags::PHYSICAL;
                    events.push(inner);
                }
            };
            let start = now + jitter.between(0, 2 * MS);
            let think = jitter.between(30 * MS, 40 * MS);
            let open = Event {
                flags,
                think_ns: think,
                ..event(Call::MpiFileOpen, rank, mpi(rank), start, opened - start)
            };
            own(
                &mut events,
                open,
                &[event(Call::Open, rank, posix(rank), start + 200 * US, jitter.between(MS, 3 * MS))],
            );
            let view = event(Call::MpiFileSetView, rank, mpi(rank), opened + 50 * US, 30 * US);
            own(
                &mut events,
                Event { flags, target: Target::View { view: ViewId(rank as u32), position: 0 }, ..view },
                &[],
            );

            let start = write + jitter.between(0, 3 * MS);
            let mut inner = Vec::new();
            let mut at = start + 300 * US;
            for step in 1..ranks {
                let peer = Target::Peer { rank: ((rank + step) % ranks) as u32 };
                let took = jitter.between(40 * US, 120 * US);
                inner.push(Event {
                    target: peer,
                    size: 96,
                    result: 96,
                    ..event(Call::StrategyDescribe, rank, None, at, took)
                });
                at += took;
            }
            for step in 1..ranks {
                let peer = Target::Peer { rank: ((rank + step) % ranks) as u32 };
                let took = jitter.between(2 * MS, 5 * MS);
                let size = share / ranks as u64;
                inner.push(Event {
                    target: peer,
                    size,
                    result: size as i64,
                    ..event(Call::StrategyData, rank, None, at, took)
                });
                at += took;
            }
            let pieces = 2;
            for piece in 0..pieces {
                let size = share / pieces;
                let took =
                    ((done - at) / (pieces - piece)).saturating_sub(jitter.between(MS, 4 * MS)) * 9 / 10;
                let target = Target::Extent { offset: rank as u64 * share + piece * size };
                inner.push(Event {
                    target,
                    size,
                    result: size as i64,
                    ..event(Call::Pwrite, rank, posix(rank), at, took)
                });
                at += took + 100 * US;
            }
            inner.push(Event {
                target: Target::Peer { rank: 0 },
                size: 16,
                result: 16,
                ..event(Call::StrategyAcknowledge, rank, None, at, done - 100 * US - at)
            });
            let whole = Event {
                flags,
                target: Target::View { view: ViewId(rank as u32), position: 0 },
                size: share,
                result: share as i64,
                think_ns: jitter.between(100 * US, 900 * US),
                ..event(Call::MpiFileWriteAll, rank, mpi(rank), start, done - start)
            };
            own(&mut events, whole, &inner);
            let close = event(Call::MpiFileClose, rank, mpi(rank), done + 40 * US, MS);
            own(
                &mut events,
                Event { flags, ..close },
                &[event(Call::Close, rank, posix(rank), done + 100 * US, 300 * US)],
            );
        }
        now = done + 2 * MS;
    }
    events.sort_by_key(|event| event.start_ns);
    let views = (0..ranks as u64).map(|rank| {
        let row = Datatype::bytes(128 * 8 / 2);
        let rows = Datatype::vector(128 * 64 / 4, 1, 8, &row);
        rows.and_then(|rows| View::new(rank * 512, 8, rows)).unwrap_or(View::contiguous(0))
    });
    let tables = Tables {
        job: format!("mpiexec -n {ranks} collapse --mesh 128 128 64"),
        notes: vec![("recorder".into(), "pioscope 0.1.0".into()), ("seed".into(), "1".into())],
        processes: processes(ranks, 2, true, now + 30 * MS),
        files: (0..files).map(|file| File { path: format!("/scratch/run-17/field.{file:04}") }).collect(),
        handles,
        views: views.collect(),
        ..Tables::default()
    };
    (tables, events)
}

/// One process copies a file in blocks, then reads some records at random; one open fails.
pub(crate) fn copy() -> (Tables, Vec<Event>) {
    let mut jitter = Jitter(2);
    let mut events = vec![Event { result: -2, ..event(Call::Open, 0, None, MS, 8 * US) }];
    let mut now = 2 * MS;
    let mut push = |mut event: Event, jitter: &mut Jitter| {
        event.start_ns = now;
        event.think_ns = jitter.between(20 * US, 90 * US);
        now += event.elapsed_ns + event.think_ns;
        events.push(event);
    };
    push(event(Call::Open, 0, Some(0), 0, 60 * US), &mut jitter);
    push(event(Call::Open, 0, Some(1), 0, 90 * US), &mut jitter);
    let block = 256 << 10;
    for index in 0..400_u64 {
        let target = Target::Extent { offset: index * block };
        for (call, handle, slow) in [(Call::Read, 0, 120), (Call::Write, 1, 350)] {
            let elapsed = jitter.between(slow * US, 2 * slow * US);
            push(
                Event {
                    target,
                    size: block,
                    result: block as i64,
                    ..event(call, 0, Some(handle), 0, elapsed)
                },
                &mut jitter,
            );
        }
    }
    for _ in 0..150 {
        let target = Target::Extent { offset: jitter.between(0, 24_000) * 4096 };
        let elapsed = jitter.between(80 * US, 900 * US);
        push(
            Event { target, size: 4096, result: 4096, ..event(Call::Pread, 0, Some(0), 0, elapsed) },
            &mut jitter,
        );
    }
    push(event(Call::Close, 0, Some(0), 0, 20 * US), &mut jitter);
    push(event(Call::Fsync, 0, Some(1), 0, 80 * MS), &mut jitter);
    push(event(Call::Close, 0, Some(1), 0, 30 * US), &mut jitter);
    let tables = Tables {
        job: "cp big.dat copy.dat".into(),
        processes: processes(1, 1, false, now + MS),
        files: vec![File { path: "/home/ada/big.dat".into() }, File { path: "/home/ada/copy.dat".into() }],
        handles: (0..2)
            .map(|file| Handle { file: FileId(file), process: ProcessId(0), ranks: 1, collective: 0 })
            .collect(),
        ..Tables::default()
    };
    (tables, events)
}

/// `count` small writes by `ranks` processes, each to its own file, in bursts.
pub(crate) fn long_run(ranks: usize, count: usize) -> (Tables, Vec<Event>) {
    let mut jitter = Jitter(3);
    let each = count / ranks;
    let mut events = Vec::with_capacity(count);
    let mut last = 0;
    for rank in 0..ranks {
        let mut now = jitter.between(0, 5 * MS);
        for index in 0..each {
            let elapsed = jitter.between(5 * US, 60 * US);
            let size = 1 << jitter.between(10, 16);
            let call = if index % 5 == 4 { Call::Pread } else { Call::Pwrite };
            let target = Target::Extent { offset: index as u64 * 65_536 };
            events.push(Event {
                target,
                size,
                result: size as i64,
                ..event(call, rank, Some(rank), now, elapsed)
            });
            now += elapsed
                + if index % 1000 == 999 {
                    jitter.between(20 * MS, 60 * MS)
                } else {
                    jitter.between(US, 9 * US)
                };
        }
        last = last.max(now);
    }
    events.sort_by_key(|event| event.start_ns);
    let tables = Tables {
        job: "mpiexec -n 64 writer".into(),
        processes: processes(ranks, 8, true, last),
        files: (0..ranks).map(|rank| File { path: format!("/scratch/out/part-{rank:03}.bin") }).collect(),
        handles: (0..ranks as u32)
            .map(|rank| Handle { file: FileId(rank), process: ProcessId(rank), ranks: 1, collective: 0 })
            .collect(),
        ..Tables::default()
    };
    (tables, events)
}
