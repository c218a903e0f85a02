//! `pioscope compare`: whether a command's I/O has become slower than it was when its baseline was kept.
//!
//! Single runs differ by more than what is looked for, so distributions are compared: a condition relative to the baseline
//! holds if the factor between the two says so and a rank test rules out that chance did it.

mod baseline;
mod rank;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use pio_report::Table;

use crate::condition::{Comparison, Condition, FailIf, HOLDS, Limit, Numbers, percent};
use crate::explain;
use crate::here;
use crate::output::{self, note};
use crate::record::{self, Job};
use crate::whole_file;
use baseline::Baseline;

/// Runs by default: of changes of 25 %, the test finds nearly all where runs differ by up to 10 %.
pub(crate) const RUNS: usize = 10;
/// Runs at least. With 5 and 5, the smallest probability is 1/252; with 4 and 4, 1/70 could never come below the level.
const LEAST: i64 = 5;
/// Beyond these, the test takes longer than it is worth.
const MOST: i64 = 100;
/// How probable it may be that runs which are alike seem as different as these.
pub(crate) const LEVEL: f64 = 0.01;
/// What makes a comparison fail if nothing is said. Work is counted, too: where times vary so much that they tell nothing, a program
/// that does more is found all the same.
const BY_DEFAULT: [&str; 3] = ["io_time > 110 %", "calls > 110 %", "bytes > 110 %"];

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope compare --baseline io.json --save -- ./program      (to be compared with later)
  pioscope compare --baseline io.json -- ./program
  pioscope compare -n 20 --baseline io.json --fail-if 'write.time > 105 %' -- ./program

A condition with % holds if the factor between the runs and the baseline (the median of all
quotients) says so, and a one-sided rank test gives a probability of 1 % or less that chance did it.
The test is exact: with 5 runs beside 5, the smallest probability is 1/252. Ten beside ten, the
default, find 25 % more I/O time in 99 of 100 cases if single runs differ by 10 %; if they differ by
more, take more. A condition without % is about the median of the runs.

Without --fail-if, the conditions are io_time > 110 %, calls > 110 % and bytes > 110 %: a program
that does more I/O is found however much the times of a busy machine vary.

The exit code is 3 if a condition holds, 0 if none does, and 1 or 2 after an error; a program that
fails is one.")]
pub(crate) struct Arguments {
    /// How many times to run the command, after a first time that does not count
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = RUNS as i64,
        value_parser = clap::value_parser!(i64).range(LEAST..=MOST))]
    runs: i64,
    /// The file of the runs to compare with
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Keep these runs as the baseline, in place of what is there, and compare nothing
    #[arg(long, conflicts_with = "conditions")]
    save: bool,
    #[command(flatten)]
    fail_if: FailIf,
    #[command(flatten)]
    job: Job,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { runs, baseline: path, save, fail_if, job } = arguments;
    // What is wrong comes out before the runs.
    let baseline = if save {
        whole_file::check(&path)?;
        None
    } else {
        Some(Baseline::read(&path, LEAST as usize)?)
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let numbers = measure(Job { quiet: true, ..job.clone() }, runs as usize, folder)?;
    let new = Baseline::new(command_text(&job), here::host(), numbers);
    let Some(baseline) = baseline else {
        let before = if path.is_file() { ", in place of an earlier baseline" } else { "" };
        new.write(&path)?;
        note!("{}: {} runs{before}", path.display(), new.runs.len());
        return Ok(ExitCode::SUCCESS);
    };
    if baseline.host != new.host {
        note!("{}: the baseline is of host {}, and this is {}", path.display(), baseline.host, new.host);
    }
    if baseline.command != new.command {
        note!("{}: the baseline is of another command: {}", path.display(), baseline.command);
    }
    let conditions = match fail_if.conditions.is_empty() {
        true => BY_DEFAULT
            .iter()
            .map(|condition| condition.parse())
            .collect::<Result<_, _>>()
            .map_err(anyhow::Error::msg)?,
        false => fail_if.conditions,
    };
    let checked: Vec<_> =
        conditions.iter().map(|condition| Checked::of(condition, &baseline, &new)).collect();
    crate::print(&table(&checked, &baseline, &new).text())?;
    let mut code = ExitCode::SUCCESS;
    for one in checked.iter().filter(|one| one.holds) {
        output::error(&format!("{} holds", one.condition));
        code = ExitCode::from(HOLDS);
    }
    Ok(code)
}

/// Runs the command so many times, and once before.
fn measure(job: Job, runs: usize, folder: &Path) -> Result<Vec<Numbers>> {
    // Beside the baseline: where it is, every host of the job can be expected to reach.
    let scratch = tempfile::Builder::new()
        .prefix(".pioscope-compare-")
        .tempdir_in(folder)
        .with_context(|| format!("{}: cannot create a folder", folder.display()))?;
    let trace = scratch.path().join("run.pio");
    let mut numbers = Vec::new();
    for number in 0..=runs {
        let status = record::record_as_it_is(&job, trace.clone())?;
        if !status.success() {
            job.explain_refusal();
        }
        ensure!(status.success(), "the command failed ({status}): nothing was compared");
        let found = explain::explain(&explain::open(&trace)?)?;
        // The first finds caches cold, and libraries to be loaded.
        if number > 0 {
            numbers.push(Numbers::of(&found));
        }
    }
    Ok(numbers)
}

fn command_text(job: &Job) -> String {
    job.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What a condition says of runs and their baseline.
struct Checked<'c> {
    condition: &'c Condition,
    before: f64,
    after: f64,
    factor: f64,
    /// Of relative conditions: how probable it is that chance makes such a difference.
    p: Option<f64>,
    holds: bool,
}

impl<'c> Checked<'c> {
    fn of(condition: &'c Condition, baseline: &Baseline, new: &Baseline) -> Checked<'c> {
        let values = |runs: &[Numbers]| runs.iter().map(|run| condition.metric.of(run)).collect::<Vec<_>>();
        let (before, after) = (values(&baseline.runs), values(&new.runs));
        let factor = rank::factor(&before, &after);
        let p = matches!(condition.limit, Limit::OfFirst(_)).then(|| match condition.comparison {
            Comparison::Above { .. } => rank::p_larger(&before, &after),
            Comparison::Below { .. } => rank::p_larger(&after, &before),
        });
        let (before, after) = (rank::median(before), rank::median(after));
        let holds = condition.holds(after, factor) && p.is_none_or(|p| p <= LEVEL);
        Checked { condition, before, after, factor, p, holds }
    }
}

fn table(checked: &[Checked<'_>], baseline: &Baseline, new: &Baseline) -> Table {
    let row = |one: &Checked<'_>| {
        vec![
            one.condition.to_string(),
            one.condition.metric.text(one.before),
            one.condition.metric.text(one.after),
            percent(one.factor),
            one.p.map_or("–".to_owned(), |p| format!("{p:.4}")),
            if one.holds { "yes" } else { "no" }.to_owned(),
        ]
    };
    Table {
        title: format!("{} runs beside {} of the baseline", new.runs.len(), baseline.runs.len()),
        note: "Medians. The factor is the median of all quotients of a run and one of the baseline; by chance: how probable such a \
               difference is between runs that are alike (it counts up to 0.01)."
            .to_owned(),
        columns: vec!["condition", ">baseline", ">now", ">factor", ">by chance", "holds"],
        rows: checked.iter().map(row).collect(),
    }
}
