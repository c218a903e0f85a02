//! Processes over buffers and disks, against what can be computed by hand.

use pio_machine::{Bandwidth, Computer, Duration};
use pio_plan::Direction;
use pio_sim::kernel::Stream;
use pio_studies::buffers::{Instance, Options, Outcome, Program, TimedAccess, run};

const US: u64 = 1_000_000;
const MS: u64 = 1_000 * US;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_picoseconds(milliseconds * MS)
}

/// One processor that costs nothing; a disk of 1 MB/s, 1 ms to go on and 10 ms to anywhere else; 1 MB of buffers that
/// neither read ahead nor write behind.
fn computer() -> Computer {
    let mut computer = Computer::cray_ymp().unwrap();
    computer.cpu.quantum = ms(10);
    for cost in [&mut computer.cpu.switch, &mut computer.cpu.system_call, &mut computer.cpu.interrupt] {
        *cost = Duration::ZERO;
    }
    (computer.buffers.size, computer.buffers.block) = (1_000_000, 1);
    computer.buffers.read_ahead = false;
    computer.buffers.write_behind = false;
    let disks = &mut computer.disks;
    (disks.count, disks.stripe, disks.queue) = (1, 1, false);
    disks.bandwidth = Bandwidth::from_bytes_per_second(1_000_000);
    (disks.sequential, disks.near, disks.far) = (ms(1), ms(10), ms(10));
    computer
}

fn access(direction: Direction, think: u64, file: u32, offset: u64, bytes: u64) -> TimedAccess {
    TimedAccess { think: ms(think), file, direction, offset, bytes, asynchronous: false }
}

fn program(accesses: Vec<TimedAccess>) -> Program {
    Program { name: "test".to_owned(), accesses, last: Duration::ZERO }
}

fn simulate(computer: &Computer, programs: &[Program]) -> Outcome {
    let processes: Vec<Instance<'_>> = programs
        .iter()
        .enumerate()
        .map(|(number, program)| Instance { program, first_file: 1000 * number as u64 })
        .collect();
    let outcome = run(computer, &processes, &Options::default()).unwrap();
    conserved(programs, &outcome);
    outcome
}

/// What is written gets to the disks; what is read was there or came from there; every processor's time is accounted for.
fn conserved(programs: &[Program], outcome: &Outcome) {
    let read: u64 = programs.iter().map(|program| program.bytes().0).sum();
    let written: u64 = programs.iter().map(|program| program.bytes().1).sum();
    let buffers = &outcome.buffers;
    assert_eq!((buffers.read_bytes, buffers.written_bytes), (read, written));
    assert_eq!(buffers.hit_bytes + buffers.joined_bytes + buffers.missed_bytes, read);
    assert_eq!(outcome.flow.disk_read_bytes, buffers.missed_bytes + buffers.ahead_bytes);
    assert!(outcome.flow.disk_written_bytes <= written);
    let think: u64 = programs.iter().map(|program| program.think().picoseconds()).sum();
    assert_eq!(outcome.think().picoseconds(), think);
    assert_eq!(outcome.usage.running, think + outcome.system().picoseconds());
    let rates = |rates: &pio_studies::buffers::Rates| rates.bytes.iter().sum::<f64>().round() as u64;
    assert_eq!(rates(&outcome.flow.disk_written), outcome.flow.disk_written_bytes);
    assert_eq!(rates(&outcome.flow.disk_read), outcome.flow.disk_read_bytes);
}

#[test]
fn one_process_alone_takes_the_sum_of_its_times() {
    use Direction::{Read, Write};
    // 5 + (10 + 4), 5 + (1 + 4) going on, 5 + (10 + 2) elsewhere, 5 + (10 + 3) written through to another file.
    let accesses = vec![
        access(Read, 5, 0, 0, 4000),
        access(Read, 5, 0, 4000, 4000),
        access(Read, 5, 0, 20_000, 2000),
        access(Write, 5, 1, 0, 3000),
    ];
    let outcome = simulate(&computer(), &[program(accesses)]);
    assert_eq!(outcome.elapsed, ms(19 + 10 + 17 + 18));
    assert_eq!(outcome.idle(), ms(64 - 20));
    assert_eq!(outcome.processes[0].waiting, 44 * MS);
    assert_eq!(outcome.flow.disk_requests, 4);
}

#[test]
fn what_is_in_the_buffers_costs_nothing_and_every_call_costs_the_processor() {
    let mut computer = computer();
    computer.cpu.system_call = ms(1);
    computer.cpu.interrupt = ms(2);
    let accesses = vec![access(Direction::Read, 5, 0, 0, 4000); 3];
    let outcome = simulate(&computer, &[program(accesses)]);
    // 5 + 1, 14 of disk, 2 of its interrupt, then twice 5 + 1.
    assert_eq!(outcome.elapsed, ms(6 + 14 + 2 + 6 + 6));
    assert_eq!(outcome.buffers.hit_bytes, 8000);
    assert_eq!(outcome.system(), ms(3));
    assert_eq!(outcome.idle(), ms(14));
}

#[test]
fn reading_ahead_hides_the_disk_behind_computing() {
    let mut computer = computer();
    let accesses: Vec<_> =
        (0..10).map(|number| access(Direction::Read, 20, 0, number * 4000, 4000)).collect();
    let without = simulate(&computer, &[program(accesses.clone())]);
    assert_eq!(without.idle(), ms(14 + 9 * 5));
    computer.buffers.read_ahead = true;
    let with = simulate(&computer, &[program(accesses)]);
    assert_eq!(with.idle(), ms(14));
    assert_eq!(with.buffers.ahead_used_bytes, with.buffers.ahead_bytes);
    assert_eq!(with.buffers.ahead_bytes, 36_000);
}

#[test]
fn writing_behind_lets_the_writer_go_on_until_no_buffer_is_left() {
    let mut computer = computer();
    let accesses: Vec<_> =
        (0..10).map(|number| access(Direction::Write, 2, 0, number * 4000, 4000)).collect();
    computer.buffers.write_behind = true;
    let roomy = simulate(&computer, &[program(accesses.clone())]);
    assert_eq!((roomy.elapsed, roomy.idle()), (ms(20), Duration::ZERO));
    // Two writes fit. The first is on disk at 2 + 14 = 16 ms, each other, going on where the last ended, 5 ms after it is
    // made. The third, at 6, waits for the second until 9, the fourth, at 11, for the third until 14; then every other
    // one waits 1 ms for the one before the last.
    computer.buffers.size = 8000;
    let tight = simulate(&computer, &[program(accesses)]);
    assert_eq!((tight.elapsed, tight.idle()), (ms(29), ms(3 + 3 + 1 + 1 + 1)));
    assert!(tight.buffers.waits_for_room + tight.buffers.waits_for_dirty_limit > 0);
}

#[test]
fn asynchronous_reads_wait_only_for_the_one_before() {
    let computer = computer();
    let mut accesses: Vec<_> =
        (0..10).map(|number| access(Direction::Read, 3, 0, number * 4000, 4000)).collect();
    for one in &mut accesses {
        one.asynchronous = true;
    }
    let outcome = simulate(&computer, &[program(accesses)]);
    // The first is made at 3 and done at 17; the second is ready at 6, but made at 17; each then takes 5 and hides 3.
    assert_eq!(outcome.elapsed, ms(17 + 9 * 5));
}

#[test]
fn requests_that_queue_are_served_one_after_the_other() {
    let one = |file| program(vec![access(Direction::Read, 0, file, 0, 4000)]);
    let mut computer = computer();
    assert_eq!(simulate(&computer, &[one(0), one(0)]).elapsed, ms(14));
    computer.disks.queue = true;
    assert_eq!(simulate(&computer, &[one(0), one(0)]).elapsed, ms(28));
    // Files of two disks do not meet.
    (computer.disks.count, computer.disks.stripe) = (2, 1);
    assert_eq!(simulate(&computer, &[one(0), one(1)]).elapsed, ms(14));
}

#[test]
fn a_solid_state_disk_costs_processor_time_and_no_waiting() {
    let mut computer = computer();
    computer.buffers.size = 0;
    computer.ssd.size = 1_000_000;
    computer.ssd.setup = ms(1);
    computer.ssd.bandwidth = Bandwidth::from_bytes_per_second(4_000_000);
    let accesses = vec![access(Direction::Read, 5, 0, 0, 4000); 3];
    let outcome = simulate(&computer, &[program(accesses.clone())]);
    // 14 of disk once; 1 + 1 of the processor for each of the three.
    assert_eq!(outcome.elapsed, ms(15 + 14 + 6));
    assert_eq!(outcome.idle(), ms(14));
    // Under 2 kB of memory buffers, each read comes again from the solid-state disk. It comes from there, not from disk.
    computer.buffers.size = 2000;
    let alternating: Vec<_> = (0..6).map(|n| access(Direction::Read, 5, 0, n % 3 * 2000, 2000)).collect();
    let program = program(alternating);
    let outcome =
        run(&computer, &[Instance { program: &program, first_file: 0 }], &Options::default()).unwrap();
    assert_eq!(outcome.flow.disk_read_bytes, 6000);
    assert_eq!(outcome.buffers.missed_bytes, 12_000);
    // Six transfers of 1 + 0.5 ms; three disk requests of 12, 3 and 3 ms.
    assert_eq!(outcome.system(), Duration::from_picoseconds(9 * MS));
    assert_eq!(outcome.idle(), ms(18));
}

#[test]
fn machine_repairman() {
    // N processes think for an exponential time, without a processor to share (one each), then queue at one disk whose
    // service is exponential, too: sizes are drawn, positioning is none. Throughput from the closed form.
    const N: usize = 4;
    let (think_s, service_s) = (0.040, 0.010);
    let mut computer = computer();
    computer.cpu.count = N as u32;
    computer.disks.queue = true;
    computer.disks.bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000);
    let disks = &mut computer.disks;
    (disks.sequential, disks.near, disks.far) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    computer.buffers.size = 1 << 30;
    let programs: Vec<Program> = (0..N)
        .map(|number| {
            let mut stream = Stream::named(1991, &format!("process {number}"));
            let mut offset = 0;
            let accesses = (0..20_000)
                .map(|_| {
                    let bytes = (stream.exponential(service_s * 1e9) as u64).max(1);
                    offset += bytes;
                    let think = stream.duration_exponential(Duration::from_seconds(think_s));
                    TimedAccess { think, ..access(Direction::Read, 0, 0, offset - bytes, bytes) }
                })
                .collect();
            program(accesses)
        })
        .collect();
    let outcome = simulate(&computer, &programs);
    // P0 of M/M/1//N: 1 / sum N!/(N-k)! r^k.
    let ratio = service_s / think_s;
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 0..N {
        term *= (N - k) as f64 * ratio;
        sum += term;
    }
    let utilisation = 1.0 - 1.0 / sum;
    let found = outcome.disk_time.seconds() / outcome.elapsed.seconds();
    // 80,000 requests: the means of think and service are known to about 0.4 %; the end, when not all run, adds 0.5 %.
    assert!((found / utilisation - 1.0).abs() < 0.015, "{found} for {utilisation}");
}

#[test]
fn the_same_run_gives_the_same_result() {
    let accesses: Vec<_> = (0..200)
        .map(|n| {
            access(
                if n % 3 == 0 { Direction::Write } else { Direction::Read },
                n % 7,
                (n % 2) as u32,
                n * 999,
                3000,
            )
        })
        .collect();
    let mut computer = Computer::cray_ymp().unwrap();
    (computer.buffers.size, computer.buffers.block) = (20_000, 1);
    let programs = [program(accesses.clone()), program(accesses)];
    assert_eq!(simulate(&computer, &programs), simulate(&computer, &programs));
}

#[test]
fn what_cannot_be_is_refused() {
    let none = run(&computer(), &[], &Options::default()).unwrap_err();
    assert!(none.to_string().contains("has no process"), "{none}");
}
