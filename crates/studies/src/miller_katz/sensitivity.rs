//! What the results would be if a parameter that the paper does not print, or an assumption, were another.

use pio_machine::{Bandwidth, Duration};
use pio_sim::SimError;
use pio_sim::workload::miller_katz::{Profile, application_with, find};

use super::{Case, MEGAWORD, Study};
use crate::buffers::Program;

/// Idle time of two copies of venus, under one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// What is changed, and to what.
    pub change: String,
    /// Seconds with 1, 2, 4 and 16 MW of buffers.
    pub idle_s: [f64; 4],
}

/// Sizes of the buffers, MW.
pub(super) const SIZES: [u64; 4] = [1, 2, 4, 16];

type Change = fn(&mut Case);
type ProgramChange = fn(&mut Profile);

/// Changes of the computer.
const CHANGES: &[(&str, Change)] = &[
    ("as described", |_| {}),
    ("quantum 10 ms", |case| case.computer.cpu.quantum = us(10_000)),
    ("quantum 1 s", |case| case.computer.cpu.quantum = us(1_000_000)),
    ("context switch 0", |case| case.computer.cpu.switch = us(0)),
    ("context switch 1 ms", |case| case.computer.cpu.switch = us(1000)),
    ("system call 0", |case| case.computer.cpu.system_call = us(0)),
    ("system call 1 ms", |case| case.computer.cpu.system_call = us(1000)),
    ("interrupt 0", |case| case.computer.cpu.interrupt = us(0)),
    ("interrupt 500 us", |case| case.computer.cpu.interrupt = us(500)),
    ("another file 7.5 ms", |case| case.computer.disks.far = us(7500)),
    ("another file 30 ms", |case| case.computer.disks.far = us(30_000)),
    ("same file 0", |case| case.computer.disks.near = us(0)),
    ("same file 7.5 ms", |case| case.computer.disks.near = us(7500)),
    ("going on 4.4 ms", |case| case.computer.disks.sequential = us(4400)),
    ("15 ms whatever the size", |case| {
        case.computer.disks.far = us(15_000);
        case.computer.disks.near = us(15_000);
        case.computer.disks.bandwidth = Bandwidth::from_bytes_per_second(10_000_000_000_000);
    }),
    ("files on single disks", |case| case.computer.disks.stripe = 1),
    ("files on eight disks each", |case| {
        (case.computer.disks.count, case.computer.disks.stripe) = (8, 8);
    }),
    ("requests queue, all disks one", |case| case.computer.disks.queue = true),
    ("requests queue, files on single disks", |case| {
        case.computer.disks.queue = true;
        case.computer.disks.stripe = 1;
    }),
    ("at most half of the buffers dirty", |case| case.computer.buffers.dirty_limit = 50),
    ("each process its own half", |case| case.computer.buffers.shared = false),
    ("at most half of the buffers a process's", |case| case.computer.buffers.process_limit = 50),
    ("no read-ahead", |case| case.computer.buffers.read_ahead = false),
    ("no write-behind", |case| case.computer.buffers.write_behind = false),
];

/// Changes of how venus goes.
const PROGRAM_CHANGES: &[(&str, ProgramChange)] = &[
    ("I/O in a tenth of each cycle", |profile| profile.burst = 0.1),
    ("I/O in half of each cycle", |profile| profile.burst = 0.5),
    ("I/O all through each cycle", |profile| profile.burst = 1.0),
    ("runs of 4 requests a file", |profile| profile.run = 4),
    ("one file", |profile| profile.files = 1),
    ("twelve files", |profile| profile.files = 12),
];

/// Two copies of venus, one parameter changed at a time.
///
/// # Errors
/// If the computer cannot be.
pub fn sensitivities(study: &Study) -> Result<Vec<Sensitivity>, SimError> {
    let mut study = study.clone();
    let published = find("venus")?;
    let mut cases: Vec<(String, Case)> = Vec::new();
    for (name, change) in CHANGES {
        for megawords in SIZES {
            let mut case = study.case("venus", 2).cache(megawords * MEGAWORD);
            change(&mut case);
            cases.push(((*name).to_owned(), case));
        }
    }
    for (name, change) in PROGRAM_CHANGES {
        let mut profile = Profile::of(published);
        change(&mut profile);
        let changed = Program::of(&application_with("venus", &profile)?)?;
        for program in changed {
            study.insert(name, program);
        }
        for megawords in SIZES {
            cases.push(((*name).to_owned(), study.case(name, 2).cache(megawords * MEGAWORD)));
        }
    }
    let (names, cases): (Vec<String>, Vec<Case>) = cases.into_iter().unzip();
    let outcomes = study.run(&cases)?;
    let rows = names.chunks(SIZES.len()).zip(outcomes.chunks(SIZES.len()));
    let row = |(names, outcomes): (&[String], &[crate::buffers::Outcome])| {
        let mut idle_s = [0.0; SIZES.len()];
        for (idle, outcome) in idle_s.iter_mut().zip(outcomes) {
            *idle = outcome.idle().seconds();
        }
        Sensitivity { change: names[0].clone(), idle_s }
    };
    Ok(rows.map(row).collect())
}

const fn us(microseconds: u64) -> Duration {
    Duration::from_picoseconds(microseconds * 1_000_000)
}
