//! Runs that do not depend on each other, carried out over all processors, and put together to figures.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use pio_machine::circuit::Circuit as Switches;
use pio_report::chart::{Figure, Point, Series};
use pio_sim::open_loop::Span;
use rayon::prelude::*;

use crate::coll::options::{MEGA, System};
use crate::coll::traffic::{Process, run};

/// A figure whose points are still to be found.
pub(super) struct Plan {
    pub plot: Figure,
    /// Of each curve: its runs.
    pub runs: Vec<(String, Vec<Run>)>,
}

/// One run.
pub(super) struct Run {
    pub x: f64,
    pub switches: Switches,
    pub processes: Vec<Process>,
    pub window: Span,
    pub watched: Watched,
}

/// Who is watched, and what becomes of it.
pub(super) enum Watched {
    /// These together: one point, megabytes a second for each of so many.
    Together { which: Range<usize>, each: f64 },
    /// Each for itself: a point for each process, over its node.
    Each,
}

/// Carries out all runs; `progress` hears how many of how many are done. The result does not depend on who does what.
pub(super) fn carry_out(
    system: &System,
    plans: Vec<Plan>,
    seed: u64,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Figure> {
    let total = plans.iter().flat_map(|plan| &plan.runs).map(|(_, runs)| runs.len()).sum();
    let done = AtomicUsize::new(0);
    let points = |one: Run| {
        let mut network = system.with(&one.switches);
        let outcome = run(&mut network, &one.processes, one.window, seed);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        let point = |x, which, each| {
            let rate = outcome.rate(which, one.window);
            let scale = 1.0 / (MEGA * each);
            Point::within(x, rate.mean * scale, rate.half_width * scale)
        };
        match one.watched {
            Watched::Together { which, each } => vec![point(one.x, which, each)],
            Watched::Each => {
                let processes = one.processes.iter().enumerate();
                processes
                    .map(|(index, process)| point(f64::from(process.node), index..index + 1, 1.0))
                    .collect()
            }
        }
    };
    let curve = |(name, runs): (String, Vec<Run>)| {
        let points: Vec<Vec<Point>> = runs.into_par_iter().map(points).collect();
        Series { name, points: points.concat() }
    };
    let plot = |plan: Plan| Figure { series: plan.runs.into_par_iter().map(curve).collect(), ..plan.plot };
    plans.into_par_iter().map(plot).collect()
}
