//! What the paper states, beside what we compute; and what was predicted before it was looked up.

use pio_machine::Duration;
use pio_sim::SimError;
use pio_sim::workload::miller_katz::{Class, Profile, find};

use super::{Case, MEGAWORD, Study, figures};
use crate::buffers::Outcome;
use crate::{Basis, Computed, Published, Statement, Verdict};

/// Buffers of one processor's share while others have I/O, too: 2 MW of the machine's 16 (section 6.2).
const SHARE: u64 = 2 * MEGAWORD;
/// The largest main-memory buffers that the authors believe in (section 6.4).
const LARGEST: u64 = 4 * MEGAWORD;
/// A processor's share of the solid-state disk (section 6.3).
const SSD: u64 = 32 * MEGAWORD;
/// Less idle time than this part of the run is "little or no".
const LITTLE: f64 = 0.02;

/// Everything that the paper states and we can compute, in its order.
///
/// # Errors
/// If the study lacks one of the seven applications, or its computer cannot be.
pub fn statements(study: &Study) -> Result<Vec<Statement>, SimError> {
    let runs = Runs::of(study)?;
    let mut found = Vec::new();
    given(study, &mut found)?;
    idle_times(&runs, &mut found);
    main_memory(&runs, &mut found);
    solid_state(&runs, &mut found);
    unknown(&runs, &mut found);
    Ok(found)
}

/// All runs that statements need.
struct Runs {
    names: Vec<String>,
    /// Those that stage their data: the ones with much I/O.
    staging: Vec<usize>,
    /// Size of each one's data set, as the paper gives it.
    data_bytes: Vec<u64>,
    /// Each alone: with a processor's share of the buffers, with the largest, with its share of the solid-state disk.
    share: Vec<Outcome>,
    largest: Vec<Outcome>,
    ssd: Vec<Outcome>,
    /// Two copies of each, with the solid-state disk.
    ssd_two: Vec<Outcome>,
    /// Two copies of venus over its sizes: nothing, read-ahead, write-behind, both.
    venus: Vec<(u64, [Outcome; 4])>,
    /// Two copies of venus with 2 MW of which each may have half.
    limited: Outcome,
    /// gcm alone, 1 MW.
    gcm: Outcome,
}

/// Sizes at which read-ahead and write-behind are told apart, MW.
const TECHNIQUE_SIZES: [u64; 5] = [1, 2, 4, 16, 32];

impl Runs {
    fn of(study: &Study) -> Result<Runs, SimError> {
        let names: Vec<String> = study.applications().map(str::to_owned).collect();
        let staging = staging(&names)?;
        let data_bytes = names.iter().map(|name| Ok((find(name)?.data_mb * 1e6) as u64));
        let data_bytes = data_bytes.collect::<Result<Vec<u64>, SimError>>()?;
        let alone = |name: &String| study.case(name, 1);
        let mut cases: Vec<Case> = Vec::new();
        cases.extend(names.iter().map(|name| alone(name).cache(SHARE)));
        cases.extend(names.iter().map(|name| alone(name).cache(LARGEST)));
        cases.extend(names.iter().map(|name| alone(name).ssd(SSD)));
        cases.extend(names.iter().map(|name| study.case(name, 2).ssd(SSD)));
        for megawords in TECHNIQUE_SIZES {
            let case = study.case("venus", 2).cache(megawords * MEGAWORD);
            for (read_ahead, write_behind) in [(false, false), (true, false), (false, true), (true, true)] {
                cases.push(case.clone().techniques(read_ahead, write_behind));
            }
        }
        let mut limited = study.case("venus", 2).cache(SHARE);
        limited.computer.buffers.process_limit = 50;
        cases.push(limited);
        cases.push(study.case("gcm", 1).cache(MEGAWORD));
        let mut outcomes = study.run(&cases)?.into_iter();
        let mut next = |count: usize| outcomes.by_ref().take(count).collect::<Vec<_>>();
        let count = names.len();
        let (share, largest, ssd, ssd_two) = (next(count), next(count), next(count), next(count));
        let mut venus = Vec::new();
        for megawords in TECHNIQUE_SIZES {
            let four =
                <[Outcome; 4]>::try_from(next(4)).unwrap_or_else(|_| unreachable!("four cases a size"));
            venus.push((megawords, four));
        }
        let (limited, gcm) = (next(1).remove(0), next(1).remove(0));
        Ok(Runs { gcm, names, staging, data_bytes, share, largest, ssd, ssd_two, venus, limited })
    }

    fn position(&self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or(0)
    }

    /// Two copies of venus with so many megawords and everything on.
    fn venus_both(&self, megawords: u64) -> &Outcome {
        let at = self.venus.iter().find(|(size, _)| *size == megawords);
        &at.unwrap_or(&self.venus[0]).1[3]
    }
}

fn staging(names: &[String]) -> Result<Vec<usize>, SimError> {
    let mut staging = Vec::new();
    for (number, name) in names.iter().enumerate() {
        if Profile::of(find(name)?).class == Class::Staging {
            staging.push(number);
        }
    }
    Ok(staging)
}

/// What parameters were chosen by.
fn given(study: &Study, found: &mut Vec<Statement>) -> Result<(), SimError> {
    let mut row = |place, what: &str, unit, (published, verdict), computed| {
        let (what, computed) = (what.to_owned(), Computed::Number(computed, unit));
        found.push(Statement { place, what, published, computed, verdict, basis: Basis::Calibrated });
    };
    let mut peak: f64 = 0.0;
    for name in study.applications() {
        peak = peak.max(sustained(study.program(name)?));
    }
    let what = "highest request rate sustained over 2 CPU seconds, all applications";
    row("5.1", what, "MB/s", at_least(200.0, peak), peak);
    let (ssd, disks) = (&study.computer.ssd, &study.computer.disks);
    let access = ssd.setup.seconds() + ssd.bandwidth.time_of(16 << 10).seconds();
    row("5.2", "solid-state disk: 16 KB", "us", is(16.0, access * 1e6), access * 1e6);
    let what = "large uncached transfer, before its first byte";
    row("6.2", what, "ms", is(15.0, disks.far.seconds() * 1e3), disks.far.seconds() * 1e3);
    Ok(())
}

/// The most that a program asks for in two CPU seconds, MB a second.
fn sustained(program: &crate::buffers::Program) -> f64 {
    let steps = 20;
    let curves = figures::demand(program, Duration::from_seconds(2.0 / steps as f64));
    let rates: Vec<f64> = curves[2].points.iter().map(|point| point.y).collect();
    rates.windows(steps).map(|window| window.iter().sum::<f64>() / steps as f64).fold(0.0, f64::max)
}

fn main_memory(runs: &Runs, found: &mut Vec<Statement>) {
    let mut row = |place, what: &str, unit, (published, verdict), computed| {
        let (what, computed) = (what.to_owned(), Computed::Number(computed, unit));
        found.push(Statement { place, what, published, computed, verdict, basis: Basis::Predicted });
    };
    let les = runs.position("les");
    let fits = |one: usize| runs.data_bytes[one] <= SHARE;
    let used = |one: usize| runs.share[one].utilisation();
    let best = runs.staging.iter().all(|one| fits(*one) || used(*one) <= used(les));
    let words = "closest to fully using a CPU by itself, of those whose data do not fit";
    row("6.2", "les alone, 2 MW: CPU used", "%", in_words(words, best), used(les) * 100.0);
    for (megawords, [nothing, ahead, behind, _]) in runs.venus.iter().filter(|(size, _)| *size <= 4) {
        let saved = |outcome: &Outcome| nothing.idle().seconds() - outcome.idle().seconds();
        let words = "venus gains from write-behind, not as much from prefetching";
        let gain = saved(ahead) / saved(behind);
        let what =
            format!("two venus, {megawords} MW: idle time saved by read-ahead over that by write-behind");
        row("6.2", &what, "", in_words(words, gain < 1.0 && saved(behind) > 0.0), gain);
    }
    let two = runs.venus_both(2);
    let (asked, to_disk) = (unevenness(two, false), unevenness(two, true));
    let words = "read-ahead and write-behind do not make the rate constant";
    let what = "Figure 6: deviation of the rate to disk over its mean, in 1 s of the first 100";
    row("6.2", what, "", in_words(words, to_disk > 0.5 * asked), to_disk);
    let (without, with) = (two.idle().seconds(), runs.limited.idle().seconds());
    let words = "a limit on a process's buffers does not help";
    let what = "two venus, 2 MW: idle time with a limit of half the buffers, over that without";
    row("6.2", what, "", in_words(words, with >= without), with / without);
    let waiting = runs.staging.iter().filter(|one| !is_little(&runs.largest[**one])).count();
    let words = "most programs with much I/O still wait";
    let what = "alone, 4 MW: of the five with much I/O, those idle for more than 2 % of their time";
    row("6.4", what, "", in_words(words, 2 * waiting > runs.staging.len()), waiting as f64);
}

fn solid_state(runs: &Runs, found: &mut Vec<Statement>) {
    let mut row = |place, what: &str, unit, (published, verdict), computed| {
        let (what, computed) = (what.to_owned(), Computed::Number(computed, unit));
        found.push(Statement { place, what, published, computed, verdict, basis: Basis::Predicted });
    };
    let most = runs.ssd.iter().map(idle_percent).fold(0.0, f64::max);
    let words = "little or no idle time for those that fit";
    let fits = runs.ssd.iter().all(is_little);
    row("6.3", "alone, SSD of 32 MW: most idle time of any", "%", in_words(words, fits), most);
    let sixteen = runs.venus_both(16);
    let words = "almost all reads are satisfied without a disk";
    let hit = sixteen.hit_ratio() * 100.0;
    row("6.3", "Figure 7, two venus, 16 MW: of read bytes, buffered", "%", in_words(words, hit > 95.0), hit);
    let words = "writes from cache to disk still come in bursts";
    let bursts = unevenness(sixteen, true);
    let what = "Figure 7: deviation of the rate to disk over its mean, in 1 s of the first 100";
    row("6.3", what, "", in_words(words, bursts > 0.5 * unevenness(sixteen, false)), bursts);
    let better = |(one, two): (&Outcome, &Outcome)| one.utilisation().max(two.utilisation());
    let least = runs.ssd.iter().zip(&runs.ssd_two).map(better).fold(1.0, f64::min) * 100.0;
    let words = "one or two processes keep a processor fully used";
    let what = "one or two copies, SSD of 32 MW: CPU used, least of the seven";
    row("7", what, "%", in_words(words, least > 98.0), least);
}

/// The idle and elapsed times that the paper prints, and what was predicted of them before they were looked up.
fn idle_times(runs: &Runs, found: &mut Vec<Statement>) {
    let Some((_, [_, ahead, _, both])) = runs.venus.iter().find(|(size, _)| *size == 4) else { return };
    let idle = |outcome: &Outcome| outcome.idle().seconds();
    let elapsed = |outcome: &Outcome| outcome.elapsed.seconds();
    let busy = elapsed(both) - idle(both);
    let (fitted, predicted) = (Basis::Calibrated, Basis::Predicted);
    for (place, what, then, published, computed, basis) in [
        ("Figure 8", "two venus, 4 MW: time if there were no idle time", 767.8, 761.0, busy, fitted),
        ("6.2", "two venus, 4 MW, without write-behind: idle time", 111.9, 211.0, idle(ahead), fitted),
        ("6.2", "two venus, 4 MW, without write-behind: time", 887.6, 972.0, elapsed(ahead), fitted),
        ("6.2", "two venus, 4 MW, with write-behind: idle time", 22.6, 1.0, idle(both), predicted),
        ("6.2", "two venus, 4 MW, with write-behind: time", 794.6, 762.0, elapsed(both), predicted),
        ("6.3", "gcm alone, 1 MW: idle time", 0.02, 1.0, idle(&runs.gcm), predicted),
    ] {
        let what = format!("{what} (predicted before it was looked up: {then} s)");
        found.push(Statement::number(place, what, published, computed, "s", basis));
    }
}

/// What was predicted before it was looked up, or was never printed: ours, plainly.
fn unknown(runs: &Runs, found: &mut Vec<Statement>) {
    let mut row = |place, what: String, unit, computed| {
        let (published, computed) = (Published::Nothing, Computed::Number(computed, unit));
        found.push(Statement {
            place,
            what,
            published,
            computed,
            verdict: Verdict::Open,
            basis: Basis::Predicted,
        });
    };
    for (megawords, [nothing, ahead, behind, both]) in &runs.venus {
        let how = ["neither", "read-ahead only", "write-behind only", "both"];
        for (how, outcome) in how.into_iter().zip([nothing, ahead, behind, both]) {
            let what = format!("two venus, {megawords} MW, {how}: idle time");
            row("6.2, Fig. 8", what, "s", outcome.idle().seconds());
        }
    }
    for (number, name) in runs.names.iter().enumerate() {
        let (share, ssd) = (&runs.share[number], &runs.ssd[number]);
        row("6.3", format!("{name} alone, 2 MW: idle time"), "s", share.idle().seconds());
        row("6.3", format!("{name} alone, SSD of 32 MW: idle time"), "s", ssd.idle().seconds());
        row("6.3", format!("{name} alone, SSD of 32 MW: CPU used"), "%", ssd.utilisation() * 100.0);
        let faster = share.elapsed.seconds() / ssd.elapsed.seconds();
        row("6.3", format!("{name} alone: time with 2 MW over time with the SSD"), "", faster);
        let two = &runs.ssd_two[number];
        row("6.3", format!("two {name}, SSD of 32 MW: CPU used"), "%", two.utilisation() * 100.0);
    }
}

/// The paper gives a number.
fn is(published: f64, computed: f64) -> (Published, Verdict) {
    (Published::Number(published), Verdict::error(published, computed))
}

/// The paper gives a bound from below.
fn at_least(published: f64, computed: f64) -> (Published, Verdict) {
    (Published::AtLeast(published), Verdict::of(computed >= published))
}

/// The paper says it in words, and it is so here or not.
fn in_words(words: &'static str, it_holds: bool) -> (Published, Verdict) {
    (Published::Words(words), Verdict::of(it_holds))
}

fn idle_percent(outcome: &Outcome) -> f64 {
    (1.0 - outcome.utilisation()) * 100.0
}

fn is_little(outcome: &Outcome) -> bool {
    1.0 - outcome.utilisation() <= LITTLE
}

/// Standard deviation over mean of the rate in each of the first 100 seconds.
fn unevenness(outcome: &Outcome, at_disk: bool) -> f64 {
    let until = Duration::from_seconds(100.0);
    let curves = if at_disk { figures::to_disk(outcome, until) } else { figures::to_buffers(outcome, until) };
    let rates = &curves[2].points;
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().map(|point| point.y).sum::<f64>() / count;
    let variance = rates.iter().map(|point| (point.y - mean).powi(2)).sum::<f64>() / count;
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}
