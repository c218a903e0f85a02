//! When a program does its I/O: bursts, cycles and phases.
//!
//! The bytes that the program moves are kept over time in a few thousand bins. What is active without a long pause is a
//! *burst*. Whether bursts come in *cycles* is asked three ways that fail differently: how equal the gaps between their
//! starts are ([`gaps`]), the spectrum and the autocorrelation of the data rate ([`spectrum`]). There are cycles where
//! none of the three speaks against them and there are more than a handful: a few bursts at equal distances come about
//! by chance, and gaps may be equal where the rate of data has another period or none. Gaps that chance alone makes (a
//! Poisson process, whose gaps are exponential) are told apart by Moran's test. Cycles that come early or late are seen by
//! the autocorrelation only if it looks no closer than they keep time: it looks at the rate of data averaged over the
//! jitter of the gaps.

mod bursts;
mod gaps;
mod phases;
mod spectrum;

pub use gaps::Gaps;
pub use phases::{Moves, Phase};
pub use spectrum::Peak;

use pio_trace::Op;

use crate::bins::Bins;
use crate::tally::Seen;

/// Bins of time: a cycle in a thousand still has a few.
const BINS: usize = 8192;
/// Periods that differ by no more than this part of the larger are the same.
const AGREE: f64 = 0.1;
/// Where no gaps decide: cycles whose autocorrelation is at least this are seen by the spectrum alone.
const STRONG: f64 = 0.5;
/// Cycles from which on they are told: a handful of bursts is no rhythm.
const LEAST_CYCLES: u64 = 6;

/// Bursts, cycles and phases of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rhythm {
    /// Bursts of I/O.
    pub bursts: u64,
    /// Length of a cycle, seconds; none if the I/O is not periodic.
    pub period_s: Option<f64>,
    /// What the gaps between the bursts' starts say; none if there are too few.
    pub gaps: Option<Gaps>,
    /// The strongest period of the data rate's spectrum.
    pub spectrum: Option<Peak>,
    /// The first strong period of its autocorrelation.
    pub autocorrelation: Option<Peak>,
    /// What is done when.
    pub phases: Vec<Phase>,
}

/// Why bursts are not told to come in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCycles {
    /// The gaps between them differ too much.
    Uneven,
    /// Gaps that come about by chance are as equal.
    Chance,
    /// There are too few gaps.
    Few,
    /// Spectrum or autocorrelation of the data rate have another period, or none.
    Disagree,
}

impl Rhythm {
    /// Gaps between bursts from which on cycles are told.
    pub const LEAST_GAPS: u64 = LEAST_CYCLES;

    /// Why there are no cycles; none if there are, or too few bursts to ask.
    pub fn why_not(&self) -> Option<NoCycles> {
        let gaps = self.gaps.filter(|_| self.period_s.is_none())?;
        Some(match gaps {
            _ if !gaps.is_even() => NoCycles::Uneven,
            _ if gaps.count < LEAST_CYCLES => NoCycles::Few,
            _ if !gaps.is_regular() => NoCycles::Chance,
            _ => NoCycles::Disagree,
        })
    }

    /// Whether a way of looking found the period that is reported.
    pub fn agrees(&self, period_s: f64) -> bool {
        let jitter = self.gaps.filter(Gaps::is_regular).map_or(0.0, |gaps| gaps.variation);
        self.period_s.is_some_and(|period| same(period, period_s, jitter))
    }
}

/// The program's reads and writes over time.
pub(crate) struct Activity {
    bins: Bins,
    first_ns: u64,
    last_ns: u64,
}

impl Activity {
    pub(crate) fn new() -> Activity {
        Activity { bins: Bins::with(2, BINS), first_ns: u64::MAX, last_ns: 0 }
    }

    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        let row = match event.op() {
            Op::Read => 0,
            Op::Write => 1,
            _ => return,
        };
        let bytes = event.bytes;
        if event.is_physical() || bytes == 0 {
            return;
        }
        self.first_ns = self.first_ns.min(event.start_ns);
        self.last_ns = self.last_ns.max(event.start_ns);
        self.bins.spread(row, event.start_ns, event.end_ns(), bytes as f64);
    }

    pub(crate) fn finish(self, duration_ns: u64) -> Rhythm {
        if self.first_ns > self.last_ns {
            return Rhythm::default();
        }
        let (bin_ns, rows) = self.bins.finish(duration_ns);
        let both: Vec<f64> = rows[0].iter().zip(&rows[1]).map(|(read, write)| read + write).collect();
        let bursts = bursts::of(&rows[0], &rows[1]);
        let bin_s = bin_ns as f64 / 1e9;
        let gaps = gaps::of(&bursts, bin_s);
        let reach = gaps.filter(Gaps::is_regular).map_or(0, |gaps| gaps.reach(bin_s));
        let (spectrum, autocorrelation) = spectrum::of(active_part(&both), bin_s, reach);
        let active_s = (self.last_ns - self.first_ns) as f64 / 1e9;
        let period_s = spectrum.zip(autocorrelation).and_then(|(spectrum, autocorrelation)| {
            gap_period(gaps, spectrum, autocorrelation)
                .or_else(|| rate_period(spectrum, autocorrelation, active_s))
        });
        Rhythm {
            bursts: bursts.len() as u64,
            period_s,
            gaps,
            spectrum,
            autocorrelation,
            phases: phases::of(&bursts, bin_ns, duration_ns),
        }
    }
}

/// The series between its first and last bytes.
fn active_part(series: &[f64]) -> &[f64] {
    let first = series.iter().position(|bytes| *bytes > 0.0).unwrap_or(0);
    let end = series.iter().rposition(|bytes| *bytes > 0.0).map_or(0, |last| last + 1);
    series.get(first..end).unwrap_or(&[])
}

/// The period of regular gaps that both spectrum and autocorrelation see too.
fn gap_period(gaps: Option<Gaps>, spectrum: Peak, autocorrelation: Peak) -> Option<f64> {
    let gaps = gaps.filter(|gaps| gaps.is_regular() && gaps.count >= LEAST_CYCLES)?;
    let agreed =
        [spectrum, autocorrelation].iter().all(|peak| same(peak.period_s, gaps.mean_s, gaps.variation));
    agreed.then_some(gaps.mean_s)
}

/// The period on which spectrum and autocorrelation agree, if both see it clearly, and often enough.
fn rate_period(spectrum: Peak, autocorrelation: Peak, active_s: f64) -> Option<f64> {
    let clear = autocorrelation.strength >= STRONG && spectrum.chance < 1e-6;
    let often = autocorrelation.period_s * LEAST_CYCLES as f64 <= active_s;
    (clear && often && same(spectrum.period_s, autocorrelation.period_s, 0.0))
        .then_some(autocorrelation.period_s)
}

/// Whether two periods are the same, of cycles that differ among themselves by a part `jitter` of their length.
fn same(a: f64, b: f64, jitter: f64) -> bool {
    (a - b).abs() <= jitter.max(AGREE) * a.max(b)
}
