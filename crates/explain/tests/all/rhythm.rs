//! Classes and cycles of programs whose classes and cycles are known, and of I/O that has none.

use pio_explain::rhythm::NoCycles;
use pio_explain::{Accumulator, Explanation, Purpose};
use pio_machine::Duration;
use pio_sim::Workload;
use pio_sim::workload::miller_katz::{self, Class, PUBLISHED, Profile};
use pio_sim::workload::{Collapse, What, collapse, write_trace};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
};

fn explain(workload: &Workload) -> Explanation {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("job.pio");
    write_trace(workload, &[], &path).expect("the trace is written");
    let trace = Trace::open(&path).expect("the trace opens");
    Explanation::of_trace(&trace, &mut |_| {}).expect("the trace can be read")
}

#[test]
fn the_seven_applications_have_their_classes_and_cycles() {
    for published in &PUBLISHED {
        // What makes a million calls is broken off.
        let many = ["bvi", "forma"].contains(&published.name);
        let profile = Profile { first_cycles: many.then_some(12), ..Profile::of(published) };
        let workload = miller_katz::application_with(published.name, &profile).expect("a workload");
        let found = explain(&workload);
        let main = found.purposes.first().expect("files are classified");
        println!("{}: {:?} {:?}", published.name, main, found.rhythm);
        if profile.class == Class::Required {
            assert_eq!(main.purpose, Purpose::Required, "{}", published.name);
            assert_eq!(found.rhythm.period_s, None, "{}", published.name);
            // At its start and its end; of upw, what it reads is next to nothing.
            assert!(found.rhythm.bursts <= 2, "{}", published.name);
        } else {
            assert_eq!(main.purpose, Purpose::Staging, "{}", published.name);
            assert_eq!(main.files, u64::from(profile.files), "{}", published.name);
            let (period, expected) = (found.rhythm.period_s, profile.cycle(published).seconds());
            let period = period.unwrap_or_else(|| panic!("{} is periodic", published.name));
            assert!(
                (period / expected - 1.0).abs() < 0.02,
                "{}: {period} s for {expected} s",
                published.name
            );
            for peak in [found.rhythm.spectrum, found.rhythm.autocorrelation] {
                let peak = peak.expect("a peak");
                assert!(found.rhythm.agrees(peak.period_s), "{}: {peak:?}", published.name);
            }
        }
        let parameters = found.files.iter().find(|file| file.path.ends_with("/parameters"));
        assert_eq!(parameters.expect("the file").purpose, Some(Purpose::Required));
    }
}

#[test]
fn the_collapse_saves_its_state_at_intervals() {
    let run = Collapse { iterations: 60, ..Collapse::SMALL };
    let mut workload = collapse(&run).expect("a workload");
    // It computes for ten seconds before every dump.
    for program in &mut workload.programs {
        for step in program {
            if let What::Open(handle) = step.what
                && workload.files[workload.handles[handle.index()].file as usize]
                    .path
                    .starts_with("/analysis")
            {
                step.think = Duration::from_seconds(10.0);
            }
        }
    }
    let found = explain(&workload);
    let purpose =
        |path: &str| found.files.iter().find(|file| file.path == path).and_then(|file| file.purpose);
    assert_eq!(purpose("/restart.in"), Some(Purpose::Required));
    assert_eq!(purpose("/restart.out"), Some(Purpose::Checkpoint), "written over");
    assert_eq!(purpose("/analysis.7"), Some(Purpose::Checkpoint), "one of a series");
    assert_eq!(purpose("/visualisation.12.3"), Some(Purpose::Checkpoint));
    assert_eq!(found.purposes[0].in_series, 60);
    let period = found.rhythm.period_s.expect("it is periodic");
    assert!((period / 10.0 - 1.0).abs() < 0.02, "{period}");
}

/// Numbers from 0 to 1 that look random: xorshift (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }

    /// Box and Muller (1958).
    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (2.0 * std::f64::consts::PI * self.next()).cos()
    }
}

/// One process that writes `requests` of a MiB at each of these times (seconds), in `width` seconds.
fn writes_at(times: &[f64], requests: u64, width: f64) -> Explanation {
    let tables = Tables {
        processes: vec![Process {
            rank: None,
            pid: 1,
            host: "node1".into(),
            command: "app".into(),
            start_ns: 0,
            end_ns: None,
        }],
        files: vec![File { path: "/out".into() }],
        handles: vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 }],
        ..Tables::default()
    };
    let mut starts: Vec<u64> = times
        .iter()
        .flat_map(|time| {
            (0..requests).map(move |k| ((time + width * k as f64 / requests as f64) * 1e9) as u64)
        })
        .collect();
    starts.sort_unstable();
    let mut accumulator = Accumulator::new(&tables);
    for (index, start_ns) in starts.into_iter().enumerate() {
        accumulator.add(&Event {
            call: Call::Pwrite,
            process: ProcessId(0),
            thread: 0,
            handle: Some(HandleId(0)),
            target: Target::Extent { offset: (index as u64) << 20 },
            memory: None,
            size: 1 << 20,
            result: 1 << 20,
            start_ns,
            elapsed_ns: (width / requests as f64 * 0.9e9) as u64,
            think_ns: 0,
            used_ns: None,
            flags: Flags::NONE,
            operation: 0,
        });
    }
    accumulator.finish()
}

/// Seeds that look random themselves.
fn seeded(seed: u64) -> Random {
    Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))
}

/// Random arrivals, of which at most 1 in 100 may be called periodic; few and many, short and long.
#[test]
fn random_arrivals_are_not_periodic() {
    let poisson: fn(&mut Random) -> f64 = Random::exponential;
    let lognormal: fn(&mut Random) -> f64 = |random| random.normal().exp();
    let narrow: fn(&mut Random) -> f64 = |random| (0.5 * random.normal()).exp();
    for (gaps, gap) in [("Poisson", poisson), ("lognormal", lognormal), ("narrow lognormal", narrow)] {
        for (count, requests, width) in
            [(6, 1, 0.01), (9, 5, 1.0), (12, 8, 1.0), (40, 1, 0.01), (40, 10, 2.0), (200, 4, 0.5)]
        {
            let of_seed = |seed| {
                let mut random = seeded(seed);
                let mut now = 0.0;
                let mut next = || {
                    now += 10.0 * gap(&mut random);
                    now
                };
                let times: Vec<f64> = (0..count).map(|_| next()).collect();
                writes_at(&times, requests, width).rhythm.period_s
            };
            let wrong = (1..=100).filter(|seed| of_seed(*seed).is_some()).count();
            println!("{count} {gaps} arrivals of {requests} requests in {width} s: {wrong} periodic");
            assert!(
                wrong <= 1,
                "{count} {gaps} arrivals of {requests} requests in {width} s: {wrong} periodic"
            );
        }
    }
}

/// Bursts that come early or late: short and long ones, few and many, off a clock and off each other.
#[test]
fn cycles_with_jitter_are_periodic() {
    for (count, jitter, requests, width) in [
        (8, 0.05, 5, 1.0),
        (12, 0.2, 5, 1.0),
        (12, 0.2, 1, 0.01),
        (12, 0.2, 10, 3.0),
        (30, 0.2, 5, 1.0),
        (100, 0.2, 1, 0.01),
    ] {
        for by_clock in [true, false] {
            let of_seed = |seed| {
                let mut random = seeded(seed);
                let mut now = 0.0;
                let mut next = |cycle| {
                    let late = 10.0 * jitter * (random.next() - 0.5);
                    now = if by_clock { 10.0 * f64::from(cycle) } else { now + 10.0 + late };
                    if by_clock { now + late } else { now }
                };
                let times: Vec<f64> = (1..=count).map(&mut next).collect();
                writes_at(&times, requests, width).rhythm.period_s
            };
            let is_right = |period: f64| (period / 10.0 - 1.0).abs() < 0.05;
            let right = (1..=40).filter(|seed| of_seed(*seed).is_some_and(is_right)).count();
            let what = format!("{count} cycles with a jitter of {jitter}, {requests} requests in {width} s");
            println!("{what}, by a clock: {by_clock}: {right} of 40 seen");
            assert!(right >= 38, "{what}, by a clock: {by_clock}: {right} of 40 seen");
        }
    }
}

/// Bursts much shorter than a bin at the ticks of a clock, whose period is no whole number of bins.
#[test]
fn an_exact_clock_of_short_bursts_is_periodic() {
    for count in [12_u32, 50, 200] {
        let of_seed = |seed| {
            let period = 100.0 + 3900.0 * seeded(seed).next();
            let times: Vec<f64> = (0..count).map(|cycle| f64::from(cycle) * period).collect();
            let found = writes_at(&times, 1, period * 0.001).rhythm.period_s;
            found.is_some_and(|found| (found / period - 1.0).abs() < 0.02)
        };
        let right = (1..=20).filter(|seed| of_seed(*seed)).count();
        assert_eq!(right, 20, "of 20 clocks with {count} bursts");
    }
}

/// So many cycles that each is but two bins long.
#[test]
fn the_period_of_a_fast_clock_is_exact() {
    let period = 0.002_202;
    let times: Vec<f64> = (0..3000_u32).map(|cycle| f64::from(cycle) * period).collect();
    let rhythm = writes_at(&times, 1, period * 0.01).rhythm;
    let found = rhythm.period_s.expect("it is periodic");
    assert!((found / period - 1.0).abs() < 0.002, "{found}");
}

/// Bursts at the ticks of a clock, but too few to be a rhythm.
#[test]
fn a_handful_of_bursts_is_not_periodic() {
    for count in [2_u32, 4, 5, 6] {
        let times: Vec<f64> = (1..=count).map(|cycle| 10.0 * f64::from(cycle)).collect();
        let found = writes_at(&times, 5, 1.0);
        assert_eq!(found.rhythm.bursts, u64::from(count));
        assert_eq!(found.rhythm.period_s, None, "{count} bursts: {:?}", found.rhythm);
        // Not that the gaps vary: they do not.
        let why = (count > 3).then_some(NoCycles::Few);
        assert_eq!(found.rhythm.why_not(), why, "{count} bursts: {:?}", found.rhythm);
    }
    let uneven = [10.0, 15.0, 25.0, 45.0, 85.0, 105.0, 115.0, 120.0];
    assert_eq!(writes_at(&uneven, 5, 1.0).rhythm.why_not(), Some(NoCycles::Uneven));
}

/// The gaps are equal, but every third burst moves ten times as much: the rate of data has a period of its own, and what
/// is told must not contradict what stands beside it.
#[test]
fn cycles_are_not_told_against_the_rate_of_data() {
    let times: Vec<f64> = (0..36_u32)
        .flat_map(|burst| vec![f64::from(burst) * 10.0 + 10.0; if burst % 3 == 0 { 20 } else { 1 }])
        .collect();
    let found = writes_at(&times, 1, 1.0);
    let (gaps, rhythm) = (found.rhythm.gaps.expect("gaps"), &found.rhythm);
    assert!(gaps.is_regular() && gaps.mean_s < 11.0, "{gaps:?}");
    assert_eq!(rhythm.why_not(), rhythm.period_s.is_none().then_some(NoCycles::Disagree));
    for peak in [rhythm.spectrum, rhythm.autocorrelation] {
        let peak = peak.expect("a peak").period_s;
        assert!(rhythm.period_s.is_none_or(|period| (period / peak - 1.0).abs() < 0.1), "{rhythm:?}");
    }
}
