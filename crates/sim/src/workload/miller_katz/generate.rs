//! From tables and profile to calls.

use pio_machine::Duration;
use pio_plan::Direction;
use pio_trace::{Call, File, HandleId};

use super::profile::{Class, Profile};
use super::tables::Published;
use crate::workload::steps::{Open, Step, What, Workload};

/// Sizes are multiples of the largest of these that changes them by no more than [`ALIGNMENT_ERROR`]: programs on the
/// Cray made requests of whole sectors (of 4096 B), where they could.
const ALIGNMENTS: [f64; 4] = [4096.0, 2048.0, 1024.0, 512.0];
const ALIGNMENT_ERROR: f64 = 0.01;
/// Requests to the small files, bytes: what the program is told at its start, and prints after every cycle. The tables
/// leave no room for more.
const SMALL: u64 = 512;

/// The program of one process.
pub(super) fn workload(application: &Published, profile: &Profile) -> Workload {
    let plan = Plan::of(application, profile);
    let mut program = Program::new(application.name);
    for name in &plan.names {
        program.open(name);
    }
    let (parameters, printed) = (program.open("parameters"), program.open("printed"));
    let request = |handle, direction, offset| Request { handle, direction, offset, bytes: SMALL };
    program.call(Duration::ZERO, request(parameters, Direction::Read, 0), false);
    let phases = profile.first_cycles.map_or(plan.phases.len(), |cycles| cycles as usize);
    for (number, phase) in plan.phases.iter().take(phases).enumerate() {
        let requests = plan.requests(phase);
        for (index, one) in requests.iter().enumerate() {
            let think = share(phase.burst, index as u64, requests.len() as u64);
            program.call(think, *one, profile.asynchronous);
        }
        program.call(phase.rest, request(printed, Direction::Write, number as u64 * SMALL), false);
    }
    program.finish()
}

/// One call that moves data.
#[derive(Clone, Copy)]
struct Request {
    handle: HandleId,
    direction: Direction,
    offset: u64,
    bytes: u64,
}

/// A part of the program: I/O in a burst, then computing alone.
struct Phase {
    reads: u64,
    writes: u64,
    burst: Duration,
    rest: Duration,
}

/// What the large files are, and how they are gone through.
struct Plan {
    names: Vec<String>,
    phases: Vec<Phase>,
    run: usize,
    read_bytes: u64,
    write_bytes: u64,
    /// File and number of each piece of the data, in the order in which a pass reads them.
    read_order: Vec<(u32, u64)>,
    write_order: Vec<(u32, u64)>,
}

impl Plan {
    fn of(application: &Published, profile: &Profile) -> Plan {
        let volume = application.volume();
        let (read_bytes, reads) = requests(volume.read_bytes, volume.reads);
        let (write_bytes, writes) = requests(volume.write_bytes, volume.writes);
        let data = application.data_mb * 1e6;
        let whole = Duration::from_seconds(application.cpu_s);
        let part = |part: f64| Duration::from_seconds(application.cpu_s * part);
        let run = profile.run as usize;
        match profile.class {
            Class::Required => {
                let (first, last) = (part(profile.burst), part(profile.burst));
                let computing = whole.saturating_sub(first).saturating_sub(last);
                Plan {
                    names: vec!["state".to_owned()],
                    phases: vec![
                        Phase { reads, writes: 0, burst: first, rest: computing },
                        Phase { reads: 0, writes, burst: last, rest: Duration::ZERO },
                    ],
                    run,
                    read_bytes,
                    write_bytes,
                    read_order: pass(&[pieces(data, read_bytes)], run),
                    write_order: pass(&[pieces(data, write_bytes)], run),
                }
            }
            Class::Staging => {
                let cycles = u64::from(profile.cycles(application));
                let phase = |cycle| {
                    let time = share(whole, cycle, cycles);
                    let burst = Duration::from_seconds(time.seconds() * profile.burst);
                    let (reads, writes) = (part_of(reads, cycle, cycles), part_of(writes, cycle, cycles));
                    Phase { reads, writes, burst, rest: time.saturating_sub(burst) }
                };
                let all = pieces(data, write_bytes);
                let files = u64::from(profile.files);
                let written: Vec<u64> = (0..files).map(|file| part_of(all, file, files)).collect();
                let read: Vec<u64> =
                    written.iter().map(|count| (count * write_bytes / read_bytes).max(1)).collect();
                Plan {
                    names: (1..=files).map(|file| format!("data-{file}")).collect(),
                    phases: (0..cycles).map(phase).collect(),
                    run,
                    read_bytes,
                    write_bytes,
                    read_order: pass(&read, run),
                    write_order: pass(&written, run),
                }
            }
        }
    }

    /// The requests of a phase: runs of reads and of writes by turns, reads first, both evenly over the whole; each
    /// direction begins at the start of the data, and begins again there when it has come to the end.
    fn requests(&self, phase: &Phase) -> Vec<Request> {
        let (mut reads, mut writes) = (0, 0);
        let mut requests = Vec::new();
        while reads < phase.reads || writes < phase.writes {
            let reading = u128::from(reads) * u128::from(phase.writes);
            let writing = u128::from(writes) * u128::from(phase.reads);
            let read_next = writes == phase.writes || (reads < phase.reads && reading <= writing);
            let (done, all) = if read_next { (&mut reads, phase.reads) } else { (&mut writes, phase.writes) };
            let until = all.min(*done + self.run as u64);
            for number in *done..until {
                requests.push(self.request(read_next, number));
            }
            *done = until;
        }
        requests
    }

    fn request(&self, read: bool, number: u64) -> Request {
        let (direction, order, bytes) = if read {
            (Direction::Read, &self.read_order, self.read_bytes)
        } else {
            (Direction::Write, &self.write_order, self.write_bytes)
        };
        let (file, piece) = order[(number % order.len() as u64) as usize];
        Request { handle: HandleId(file), direction, offset: piece * bytes, bytes }
    }
}

/// One pass over files of so many pieces: `run` pieces of each by turns.
fn pass(pieces: &[u64], run: usize) -> Vec<(u32, u64)> {
    let most = pieces.iter().copied().max().unwrap_or(0);
    let mut order = Vec::new();
    for from in (0..most).step_by(run) {
        for (file, count) in pieces.iter().enumerate() {
            let until = (*count).min(from + run as u64);
            order.extend((from..until).map(|piece| (file as u32, piece)));
        }
    }
    order
}

/// Size and number of the requests that move so many bytes, about so many of them.
fn requests(bytes: f64, count: f64) -> (u64, u64) {
    let mean = bytes / count;
    let aligned = |unit: &f64| ((mean / unit).round() * unit).max(*unit);
    let close = |size: &f64| (size / mean - 1.0).abs() <= ALIGNMENT_ERROR;
    let size = ALIGNMENTS.iter().map(aligned).find(close).unwrap_or(aligned(&ALIGNMENTS[3]));
    (size as u64, (bytes / size).round().max(1.0) as u64)
}

fn pieces(bytes: f64, size: u64) -> u64 {
    ((bytes / size as f64).round() as u64).max(1)
}

/// The part with this number of `whole`, cut into `parts` that differ by no more than 1.
fn part_of(whole: u64, number: u64, parts: u64) -> u64 {
    let until = |number: u64| (u128::from(whole) * u128::from(number) / u128::from(parts)) as u64;
    until(number + 1) - until(number)
}

fn share(whole: Duration, number: u64, parts: u64) -> Duration {
    Duration::from_picoseconds(part_of(whole.picoseconds(), number, parts))
}

/// The workload of one process, as it is written.
struct Program {
    workload: Workload,
    steps: Vec<Step>,
}

impl Program {
    fn new(name: &str) -> Program {
        Program { workload: Workload { name: name.to_owned(), ..Workload::default() }, steps: Vec::new() }
    }

    fn open(&mut self, file: &str) -> HandleId {
        let number = self.workload.files.len() as u32;
        let path = format!("/{}/{file}", self.workload.name);
        self.workload.files.push(File { path });
        self.workload.handles.push(Open { file: number, rank: 0, group: None, collective: 0 });
        self.steps.push(Step {
            think: Duration::ZERO,
            idle: Duration::ZERO,
            what: What::Open(HandleId(number)),
        });
        HandleId(number)
    }

    fn call(&mut self, think: Duration, request: Request, asynchronous: bool) {
        let Request { handle, direction, offset, bytes } = request;
        let call = match (direction, asynchronous) {
            (Direction::Read, false) => Call::Pread,
            (Direction::Read, true) => Call::AioRead,
            (Direction::Write, false) => Call::Pwrite,
            (Direction::Write, true) => Call::AioWrite,
        };
        self.steps.push(Step {
            think,
            idle: Duration::ZERO,
            what: What::Request { handle, call, direction, offset, bytes },
        });
    }

    fn finish(mut self) -> Workload {
        for handle in 0..self.workload.handles.len() as u32 {
            self.steps.push(Step {
                think: Duration::ZERO,
                idle: Duration::ZERO,
                what: What::Close(HandleId(handle)),
            });
        }
        self.workload.programs.push(self.steps);
        self.workload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::miller_katz::{PUBLISHED, application};

    fn requests(workload: &Workload) -> impl Iterator<Item = (Direction, HandleId, u64, u64)> {
        workload.programs[0].iter().filter_map(|step| match step.what {
            What::Request { handle, direction, offset, bytes, .. } => {
                Some((direction, handle, offset, bytes))
            }
            _ => None,
        })
    }

    #[test]
    fn think_times_sum_up_to_the_published_running_time() {
        for published in &PUBLISHED {
            let workload = application(published.name).unwrap();
            workload.check().unwrap();
            let sum: u64 = workload.programs[0].iter().map(|step| step.think.picoseconds()).sum();
            assert_eq!(sum, Duration::from_seconds(published.cpu_s).picoseconds(), "{}", published.name);
        }
    }

    #[test]
    fn every_cycle_of_venus_goes_through_six_files_and_writes_each_piece_once() {
        let workload = application("venus").unwrap();
        let writes: Vec<(u32, u64)> = requests(&workload)
            .filter(|one| one.0 == Direction::Write && one.1.0 < 6)
            .map(|one| (one.1.0, one.2))
            .collect();
        let first: Vec<u32> = writes.iter().take(7).map(|one| one.0).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 5, 0]);
        let pieces = writes.iter().collect::<std::collections::BTreeSet<_>>().len();
        let cycles = f64::from(Profile::of(&PUBLISHED[6]).cycles(&PUBLISHED[6]));
        let times = writes.len() as f64 / pieces as f64;
        assert!((times / cycles - 1.0).abs() < 0.02, "{times} times in {cycles} cycles");
    }

    #[test]
    fn parts_add_up() {
        for (whole, parts) in [(7, 3), (3, 7), (u64::MAX, 10)] {
            assert_eq!((0..parts).map(|number| part_of(whole, number, parts)).sum::<u64>(), whole);
        }
    }
}
