//! Runs that do not depend on each other, carried out over all processors, and put together to figures.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use pio_machine::circuit::Circuit as Switches;
use rayon::prelude::*;

use crate::coll::options::{MEGA, System};
use crate::coll::traffic::{Process, Window, run};

/// A figure, in the paper's own axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Its number in the paper.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Quantity and unit along the horizontal axis.
    pub x_label: String,
    /// Quantity and unit along the vertical axis.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Its lines.
    pub curves: Vec<Curve>,
}

/// A line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What tells it from the others.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where on the horizontal axis.
    pub x: f64,
    /// Where on the vertical axis: a mean, if it is random.
    pub y: f64,
    /// Half the width of its 95 % confidence interval.
    pub half_width: f64,
}

impl Curve {
    /// The highest point: what is accepted at most.
    pub fn highest(&self) -> f64 {
        self.points.iter().map(|point| point.y).fold(0.0, f64::max)
    }
}

/// A figure whose points are still to be found.
pub(super) struct Plan {
    pub plot: Plot,
    /// Of each curve: its runs.
    pub runs: Vec<(String, Vec<Run>)>,
}

/// One run.
pub(super) struct Run {
    pub x: f64,
    pub switches: Switches,
    pub processes: Vec<Process>,
    pub window: Window,
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
) -> Vec<Plot> {
    let total = plans.iter().flat_map(|plan| &plan.runs).map(|(_, runs)| runs.len()).sum();
    let done = AtomicUsize::new(0);
    let points = |one: Run| {
        let mut network = system.with(&one.switches);
        let outcome = run(&mut network, &one.processes, one.window, seed);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        let point = |x, which, each| {
            let rate = outcome.rate(which, one.window);
            let scale = 1.0 / (MEGA * each);
            Point { x, y: rate.mean * scale, half_width: rate.half_width * scale }
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
        Curve { name, points: points.concat() }
    };
    let plot = |plan: Plan| Plot { curves: plan.runs.into_par_iter().map(curve).collect(), ..plan.plot };
    plans.into_par_iter().map(plot).collect()
}
