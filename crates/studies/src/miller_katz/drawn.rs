//! The figures, each with whatever the user changes.

use pio_machine::Duration;
use pio_report::Table;
use pio_report::chart::{Figure, Series};
use pio_report::units::{self, significant};
use pio_sim::SimError;

use super::figures::{Sizes, demand, idle_over_size, to_buffers, to_disk};
use super::{Case, MEGAWORD, Study};
use crate::buffers::Outcome;

/// The figures that have data.
pub const FIGURES: [u32; 5] = [3, 4, 6, 7, 8];

/// What a user changes of the figures. Whatever is empty is as the figure has it.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The applications.
    pub applications: Vec<String>,
    /// How many copies of an application run.
    pub copies: u32,
    /// Sizes of the buffers in main memory, bytes; Figures 6 and 7 have one.
    pub caches: Vec<u64>,
    /// Replacement policies; Figures 6 and 7 have one.
    pub policies: Vec<String>,
    /// Size of a solid-state disk instead of buffers in main memory, bytes.
    pub ssd: Option<u64>,
    /// How much of the run Figures 6 and 7 show.
    pub shown: Duration,
}

/// A figure as a table, and as drawings.
pub struct Drawn {
    /// Its numbers.
    pub table: Table,
    /// Its drawings: none where there is nothing to draw.
    pub figures: Vec<Figure>,
}

/// Sizes of Figure 8, megawords.
const SIZES: [f64; 9] = [0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0];
/// ARC and LIRS take much longer to simulate: only if they are asked for.
const POLICIES: [&str; 4] = ["lru", "clock", "slru", "mru"];

/// The applications that a figure shows: its own, unless others are asked for.
pub fn applications(number: u32, changes: &Changes) -> Vec<String> {
    match &changes.applications[..] {
        [] => vec![if number == 4 { "les" } else { "venus" }.to_owned()],
        given => given.to_vec(),
    }
}

/// A figure, once for each application.
///
/// # Errors
/// If an application or a policy is unknown, or a size cannot be.
pub fn draw(number: u32, study: &Study, changes: &Changes) -> Result<Vec<Drawn>, SimError> {
    applications(number, changes)
        .iter()
        .map(|application| match number {
            3 | 4 => demand_figure(number, study, application),
            6 | 7 => rate_figure(number, study, application, changes),
            _ => idle_figure(study, application, changes),
        })
        .collect()
}

fn demand_figure(number: u32, study: &Study, application: &str) -> Result<Drawn, SimError> {
    let curves = demand(study.program(application)?, Duration::from_seconds(1.0));
    let title = format!("Figure {number}: data rate of {application} over CPU time");
    let figure = Figure {
        name: format!("figure-{number}-{application}"),
        title: title.clone(),
        x_label: "CPU seconds".to_owned(),
        y_label: "MB per CPU second".to_owned(),
        // Reads and writes come together: their lines would hide each other.
        series: vec![curves[2].clone()],
        ..Figure::default()
    };
    let note = "The generated trace's. The paper prints only a picture, which is not in its text.";
    let rows = curves.iter().map(|curve| summary("asked for", curve)).collect();
    let table = summaries(title, note.to_owned(), rows);
    Ok(Drawn { table, figures: vec![figure] })
}

fn rate_figure(number: u32, study: &Study, application: &str, changes: &Changes) -> Result<Drawn, SimError> {
    let own = if number == 6 { 2 * MEGAWORD } else { 16 * MEGAWORD };
    let bytes = match &changes.caches[..] {
        [] => own,
        [one, ..] => *one,
    };
    let case = study.case(application, changes.copies);
    let (mut case, where_) = match changes.ssd {
        Some(ssd) => (case.ssd(ssd), format!("a solid-state disk of {}", megawords(ssd))),
        None => (case.cache(bytes), format!("a cache of {}", megawords(bytes))),
    };
    if let Some(policy) = changes.policies.first() {
        case.computer.buffers.policy.clone_from(policy);
    }
    let outcome = study.run_one(&case)?;
    let until = changes.shown;
    let (disk, buffers) = (to_disk(&outcome, until), to_buffers(&outcome, until));
    let title = format!("Figure {number}: data rate to disk, {} of {application}, {where_}", changes.copies);
    let mut rows: Vec<Vec<String>> = disk.iter().map(|curve| summary("disk", curve)).collect();
    rows.extend(buffers.iter().map(|curve| summary("cache", curve)));
    let note = format!(
        "First {} s of wall-clock time, in bins of 1 s. {}",
        significant(changes.shown.seconds()),
        in_words(&outcome)
    );
    let draw = |name: &str, title: &str, y_label: &str, curves: &[Series]| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: "seconds".to_owned(),
        y_label: y_label.to_owned(),
        series: curves.to_vec(),
        ..Figure::default()
    };
    let name = format!("figure-{number}-{application}");
    let figures = vec![
        draw(&name, &title, "MB/s to and from disk", &disk),
        draw(&format!("{name}-asked"), &title.replace("to disk", "asked for"), "MB/s asked for", &buffers),
    ];
    Ok(Drawn { table: summaries(title, note, rows), figures })
}

fn idle_figure(study: &Study, application: &str, changes: &Changes) -> Result<Drawn, SimError> {
    if let Some(ssd) = changes.ssd {
        return ssd_idle(study, application, changes, ssd);
    }
    let caches = match &changes.caches[..] {
        [] => SIZES.map(|megawords| (megawords * MEGAWORD as f64) as u64).to_vec(),
        given => given.to_vec(),
    };
    let policies = match &changes.policies[..] {
        [] => POLICIES.map(str::to_owned).to_vec(),
        given => given.to_vec(),
    };
    let sizes = Sizes { application: application.to_owned(), copies: changes.copies, caches, policies };
    let (curves, outcomes) = idle_over_size(study, &sizes)?;
    let title = format!("Figure 8: idle time over cache size, {} of {application}", changes.copies);
    let figure = Figure {
        name: format!("figure-8-{application}"),
        title: title.clone(),
        x_label: "cache, MW (8 MiB)".to_owned(),
        y_label: "idle time, s".to_owned(),
        log_x: true,
        series: curves,
        ..Figure::default()
    };
    let row = |(number, outcome): (usize, &Outcome)| {
        let (policy, size) = (number / sizes.caches.len(), number % sizes.caches.len());
        let mut row = vec![sizes.policies[policy].clone(), megawords(sizes.caches[size])];
        row.extend(outcome_cells(outcome));
        row
    };
    let table = Table {
        title,
        note: "Predicted: nothing here was fitted to anything.".to_owned(),
        columns: outcome_columns(">cache"),
        rows: outcomes.iter().enumerate().map(row).collect(),
    };
    Ok(Drawn { table, figures: vec![figure] })
}

/// Figure 8's numbers with a solid-state disk: there is one size, and nothing to draw.
fn ssd_idle(study: &Study, application: &str, changes: &Changes, bytes: u64) -> Result<Drawn, SimError> {
    let policies = match &changes.policies[..] {
        [] => vec![study.computer.buffers.policy.clone()],
        given => given.to_vec(),
    };
    let case = |policy: &String| {
        let mut case: Case = study.case(application, changes.copies).ssd(bytes);
        case.computer.buffers.policy.clone_from(policy);
        case
    };
    let outcomes = study.run(&policies.iter().map(case).collect::<Vec<_>>())?;
    let row = |(policy, outcome): (&String, &Outcome)| {
        let mut row = vec![policy.clone(), megawords(bytes)];
        row.extend(outcome_cells(outcome));
        row
    };
    let table = Table {
        title: format!("Idle time with a solid-state disk, {} of {application}", changes.copies),
        note: "Predicted: nothing here was fitted to anything.".to_owned(),
        columns: outcome_columns(">SSD"),
        rows: policies.iter().zip(&outcomes).map(row).collect(),
    };
    Ok(Drawn { table, figures: Vec::new() })
}

fn outcome_columns(size: &'static str) -> Vec<&'static str> {
    let idle = ["policy", size, ">idle, s", ">elapsed, s", ">CPU used, %"];
    let bytes = [">read hits, %", ">read ahead in vain, %", ">disk reads, MB", ">disk writes, MB"];
    [&idle[..], &bytes].concat()
}

fn outcome_cells(outcome: &Outcome) -> Vec<String> {
    let per_cent = |part: f64, whole: u64| {
        units::if_known((whole > 0).then_some(part), |part| format!("{:.1}", part * 100.0))
    };
    let buffers = &outcome.buffers;
    let in_vain = buffers.ahead_wasted_bytes as f64 / buffers.ahead_bytes as f64;
    vec![
        format!("{:.1}", outcome.idle().seconds()),
        format!("{:.1}", outcome.elapsed.seconds()),
        format!("{:.1}", outcome.utilisation() * 100.0),
        per_cent(outcome.hit_ratio(), buffers.read_bytes),
        per_cent(in_vain, buffers.ahead_bytes),
        format!("{:.0}", outcome.flow.disk_read_bytes as f64 / 1e6),
        format!("{:.0}", outcome.flow.disk_written_bytes as f64 / 1e6),
    ]
}

fn in_words(outcome: &Outcome) -> String {
    let hits = match outcome.buffers.read_bytes {
        0 => "nothing is read".to_owned(),
        _ => format!(
            "{:.1} % of the bytes read are in the buffers or on their way there",
            outcome.hit_ratio() * 100.0
        ),
    };
    format!(
        "The whole run: {:.1} s, of which the processor is idle {:.1} s; {hits}.",
        outcome.elapsed.seconds(),
        outcome.idle().seconds(),
    )
}

fn summaries(title: String, note: String, rows: Vec<Vec<String>>) -> Table {
    let columns = vec!["rate", "", ">mean, MB/s", ">highest, MB/s", ">deviation / mean"];
    Table { title, note, columns, rows }
}

fn summary(what: &str, curve: &Series) -> Vec<String> {
    let rates: Vec<f64> = curve.points.iter().map(|point| point.y).collect();
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let deviation = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
    vec![
        what.to_owned(),
        curve.name.clone(),
        format!("{mean:.1}"),
        format!("{highest:.1}"),
        format!("{deviation:.2}"),
    ]
}

fn megawords(bytes: u64) -> String {
    format!("{} MW", significant(bytes as f64 / MEGAWORD as f64))
}
