//! What the paper's figures are made of.

use pio_machine::Duration;
use pio_plan::Direction;
use pio_report::chart::{Point, Series};
use pio_sim::SimError;
use pio_sim::kernel::Time;

use super::{Case, Study};
use crate::buffers::{Outcome, Program, Rates};

const MB: f64 = 1e6;

/// Figures 3 and 4: data that a program asks for in each CPU second, over CPU time. MB a second over seconds.
pub fn demand(program: &Program, bin: Duration) -> Vec<Series> {
    let mut rates = [Rates::new(bin), Rates::new(bin)];
    let mut now = Time::default();
    for access in &program.accesses {
        now = now + access.think;
        rates[usize::from(access.direction == Direction::Write)].add(now, now, access.bytes);
    }
    let [read, written] = rates;
    with_sum(&read, &written)
}

/// Figures 6 and 7: what disks read and wrote over the first `until` of wall-clock time. MB a second over seconds.
pub fn to_disk(outcome: &Outcome, until: Duration) -> Vec<Series> {
    first(with_sum(&outcome.flow.disk_read, &outcome.flow.disk_written), until)
}

/// The same of what processes asked the buffers for.
pub fn to_buffers(outcome: &Outcome, until: Duration) -> Vec<Series> {
    first(with_sum(&outcome.flow.read, &outcome.flow.written), until)
}

/// What Figure 8 varies.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// The application.
    pub application: String,
    /// How many copies of it.
    pub copies: u32,
    /// Sizes of the buffers, bytes.
    pub caches: Vec<u64>,
    /// Replacement policies.
    pub policies: Vec<String>,
}

/// Figure 8: the processor's idle time over the size of the buffers, a line a policy; with every outcome, in order of
/// policy, then size.
///
/// # Errors
/// If the application or a policy is unknown, or a size cannot be.
pub fn idle_over_size(study: &Study, sizes: &Sizes) -> Result<(Vec<Series>, Vec<Outcome>), SimError> {
    let case = |policy: &String, bytes: &u64| -> Case {
        let mut case = study.case(&sizes.application, sizes.copies).cache(*bytes);
        case.computer.buffers.policy.clone_from(policy);
        case
    };
    let cases: Vec<Case> = sizes
        .policies
        .iter()
        .flat_map(|policy| sizes.caches.iter().map(move |bytes| case(policy, bytes)))
        .collect();
    let outcomes = study.run(&cases)?;
    let point = |(bytes, outcome): (&u64, &Outcome)| {
        Point::exact(*bytes as f64 / super::MEGAWORD as f64, outcome.idle().seconds())
    };
    let curves = sizes
        .policies
        .iter()
        .zip(outcomes.chunks(sizes.caches.len().max(1)))
        .map(|(policy, outcomes)| Series {
            name: policy.clone(),
            points: sizes.caches.iter().zip(outcomes).map(point).collect(),
        })
        .collect();
    Ok((curves, outcomes))
}

fn with_sum(read: &Rates, written: &Rates) -> Vec<Series> {
    let points =
        |rates: &Rates| rates.points().map(|(time, rate)| Point::exact(time, rate / MB)).collect::<Vec<_>>();
    let (mut read, mut written) = (points(read), points(written));
    let width = if read.len() > written.len() { &read } else { &written };
    let times: Vec<f64> = width.iter().map(|point| point.x).collect();
    for curve in [&mut read, &mut written] {
        let known = curve.len();
        curve.extend(times[known..].iter().map(|time| Point::exact(*time, 0.0)));
    }
    let both =
        read.iter().zip(&written).map(|(read, written)| Point::exact(read.x, read.y + written.y)).collect();
    [("read", read), ("written", written), ("both", both)]
        .map(|(name, points)| Series { name: name.to_owned(), points })
        .into()
}

fn first(mut curves: Vec<Series>, until: Duration) -> Vec<Series> {
    for curve in &mut curves {
        curve.points.retain(|point| point.x < until.seconds());
    }
    curves
}
