//! `pioscope compare`: whether a command's I/O has become slower than it was when its baseline was kept, or than it may be.
//!
//! Single runs differ by more than what is looked for, so distributions are compared: a condition relative to the baseline
//! holds if the factor between the two says so and a rank test rules out that chance did it.

mod baseline;
mod rank;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use pio_record::Options;
use pio_report::Table;
use pio_report::units::things;
use tempfile::TempDir;

use crate::condition::{Comparison, Condition, FailIf, HOLDS, Limit, Numbers, percent};
use crate::explain;
use crate::flags::JsonFlag;
use crate::json;
use crate::median::median;
use crate::output::{self, note, warning};
use crate::record::{self, Job};
use crate::whole_file;
pub(crate) use baseline::Baseline;

/// Runs by default: of changes of 25 %, the test finds nearly all where runs differ by up to 10 %.
pub(crate) const RUNS: usize = 10;
/// Runs at least. With 5 and 5, the smallest probability is 1/252; with 4 and 4, 1/70 could never come below the level.
const LEAST: i64 = 5;
/// Beyond these, the test takes longer than it is worth.
const MOST: i64 = 100;
/// How probable it may be that runs which are alike seem as different as these.
pub(crate) const LEVEL: f64 = 0.01;
/// The exit code after wrong arguments, as of those that the parser of arguments finds.
const WRONG_ARGUMENTS: u8 = 2;
/// What makes a comparison fail if nothing is said. Work is counted, too: where times vary so much that they tell nothing, a program
/// that does more is found all the same.
const BY_DEFAULT: [&str; 3] = ["io_time > 110 %", "calls > 110 %", "bytes > 110 %"];

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope compare --baseline io.json --save -- ./program      (to be compared with later)
  pioscope compare --baseline io.json -- ./program
  pioscope compare -n 20 --baseline io.json --fail-if 'write.time > 105 %' -- ./program
  pioscope compare -n 5 --fail-if 'io_time > 2 s' -- ./program (no baseline: values alone)
  pioscope compare --baseline io.json --json -- ./program      (one JSON object; what the program says
                                                                goes to standard error)

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
    /// How many times to run the command, 5 to 100, after a first time that does not count
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = RUNS as i64,
        value_parser = clap::value_parser!(i64).range(LEAST..=MOST))]
    runs: i64,
    /// The file of the runs to compare with. Without, every condition must be about a value, as 'io_time > 2 s'
    #[arg(long, value_name = "FILE", required_unless_present = "conditions")]
    baseline: Option<PathBuf>,
    /// Keep these runs as the baseline, in place of what is there, and compare nothing
    #[arg(long, requires = "baseline", conflicts_with_all = ["conditions", "json"])]
    save: bool,
    #[command(flatten)]
    fail_if: FailIf,
    #[command(flatten)]
    json: JsonFlag,
    #[command(flatten)]
    job: Job,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { runs, baseline: path, save, fail_if, json: JsonFlag { json }, job } = arguments;
    // What is wrong comes out before the runs.
    if let (true, Some(path)) = (save, &path) {
        whole_file::check(path)?;
        return keep(path, runs as usize, &job);
    }
    let conditions = match fail_if.conditions.is_empty() {
        true => BY_DEFAULT
            .iter()
            .map(|condition| condition.parse())
            .collect::<Result<_, _>>()
            .map_err(anyhow::Error::msg)?,
        false => fail_if.conditions,
    };
    let relative = conditions.iter().find(|condition| matches!(condition.limit, Limit::OfFirst(_)));
    if let (None, Some(relative)) = (&path, relative) {
        output::error(&format!(
            "'{relative}' is relative to a baseline (expected --baseline FILE, or a value, as 'io_time > 2 s')"
        ));
        return Ok(ExitCode::from(WRONG_ARGUMENTS));
    }
    let baseline = path.as_deref().map(|path| Baseline::read(path, LEAST as usize)).transpose()?;
    let new = measure(&job, runs as usize, path.as_deref(), json)?;
    if let (Some(path), Some(baseline)) = (&path, &baseline) {
        tell_of_others(path, baseline, &new);
    }
    let checked: Vec<_> =
        conditions.iter().map(|condition| CheckedRuns::of(condition, baseline.as_ref(), &new)).collect();
    if json {
        let kept = path.as_deref().zip(baseline.as_ref());
        json::print(&json::compare::Compared::of(kept, &new, &checked))?;
    } else {
        crate::print(&table(&checked, baseline.as_ref(), &new).text())?;
    }
    let mut code = ExitCode::SUCCESS;
    for one in checked.iter().filter(|one| one.holds) {
        output::error(&format!("{} holds", one.condition));
        code = ExitCode::from(HOLDS);
    }
    Ok(code)
}

/// Makes a baseline of runs of the command.
fn keep(path: &Path, runs: usize, job: &Job) -> Result<ExitCode> {
    let new = measure(job, runs, Some(path), false)?;
    let before = if path.is_file() { ", in place of an earlier baseline" } else { "" };
    new.write(path)?;
    note!("{}: {}{before}", path.display(), things(new.runs.len() as u64, "run", "runs"));
    Ok(ExitCode::SUCCESS)
}

/// Says if the baseline is of another host or command.
fn tell_of_others(path: &Path, baseline: &Baseline, new: &Baseline) {
    if baseline.host != new.host {
        warning!("{}: the baseline is of host {}, and this is {}", path.display(), baseline.host, new.host);
    }
    if baseline.command != new.command {
        warning!("{}: the baseline is of another command: {}", path.display(), baseline.command);
    }
}

/// Runs the command so many times, and once before. What it says on standard output can go to standard error.
fn measure(job: &Job, runs: usize, baseline: Option<&Path>, stdout_to_stderr: bool) -> Result<Baseline> {
    let scratch = folder_for_traces(baseline)?;
    let trace = scratch.path().join("run.pio");
    let recorder = job.mpi_recorder()?;
    let options = Options { stdout_to_stderr, ..job.options(trace.clone(), recorder.as_ref()) };
    let mut numbers = Vec::new();
    for number in 0..=runs {
        let status = record::record(&options, true)?;
        // The command got the signal, and may have ended as if nothing were.
        ensure!(!pio_record::was_told_to_end(), "interrupted: nothing was compared, and nothing kept");
        if !status.success() {
            job.explain_refusal();
        }
        ensure!(status.success(), "the command failed ({status}): nothing was compared");
        let found = explain::explain(&explain::open(&trace)?)?;
        ensure!(found.process_count > 0, "nothing was recorded of the command: nothing was compared");
        // The first finds caches cold, and libraries to be loaded.
        if number > 0 {
            numbers.push(Numbers::of(&found));
        }
    }
    Ok(Baseline::new(command_text(job), pio_record::host(), numbers))
}

/// A folder for the traces of runs: beside the baseline, else in the working folder, both of which every host of the job can be
/// expected to reach, if that can be written to. A baseline that is only read may be where nobody writes, or come from a pipe.
fn folder_for_traces(baseline: Option<&Path>) -> Result<TempDir> {
    let within = |folder: &Path| tempfile::Builder::new().prefix(".pioscope-compare-").tempdir_in(folder);
    let working = Path::new(".");
    let beside = baseline.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    within(beside.unwrap_or(working))
        .or_else(|_| within(working))
        .or_else(|_| within(&std::env::temp_dir()))
        .context("cannot create a folder in the working folder or that for temporary ones")
}

fn command_text(job: &Job) -> String {
    job.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What a condition says of runs and their baseline.
pub(crate) struct CheckedRuns<'c> {
    pub condition: &'c Condition,
    /// Median of its metric in the baseline, if there is one.
    pub before: Option<f64>,
    /// The same of the runs.
    pub after: f64,
    /// Median of the quotients of a run and one of the baseline, if there is one.
    pub factor: Option<f64>,
    /// Of relative conditions: how probable it is that chance makes such a difference.
    pub p: Option<f64>,
    /// Whether it holds.
    pub holds: bool,
}

impl<'c> CheckedRuns<'c> {
    /// A condition that is relative to a baseline does not hold where there is none.
    fn of(condition: &'c Condition, baseline: Option<&Baseline>, new: &Baseline) -> CheckedRuns<'c> {
        let values = |runs: &[Numbers]| runs.iter().map(|run| condition.metric.of(run)).collect::<Vec<_>>();
        let after = values(&new.runs);
        let before = baseline.map(|baseline| values(&baseline.runs));
        let factor = before.as_deref().map(|before| rank::factor(before, &after));
        let p = match (condition.limit, condition.comparison, before.as_deref()) {
            (Limit::OfFirst(_), Comparison::Above { .. }, Some(before)) => {
                Some(rank::p_larger(before, &after))
            }
            (Limit::OfFirst(_), Comparison::Below { .. }, Some(before)) => {
                Some(rank::p_larger(&after, before))
            }
            _ => None,
        };
        let (before, after) = (before.map(median), median(after));
        let holds = condition.holds(after, factor.unwrap_or(f64::NAN)) && p.is_none_or(|p| p <= LEVEL);
        CheckedRuns { condition, before, after, factor, p, holds }
    }
}

fn table(checked: &[CheckedRuns<'_>], baseline: Option<&Baseline>, new: &Baseline) -> Table {
    let runs = new.runs.len();
    let Some(baseline) = baseline else {
        let row = |one: &CheckedRuns<'_>| {
            vec![one.condition.to_string(), one.condition.metric.text(one.after), holds(one)]
        };
        return Table {
            title: things(runs as u64, "run", "runs"),
            note: "Medians.".to_owned(),
            columns: vec!["condition", ">now", "holds"],
            rows: checked.iter().map(row).collect(),
        };
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let row = |one: &CheckedRuns<'_>| {
        vec![
            one.condition.to_string(),
            or_none(one.before.map(|before| one.condition.metric.text(before))),
            one.condition.metric.text(one.after),
            or_none(one.factor.map(percent)),
            or_none(one.p.map(|p| format!("{p:.4}"))),
            holds(one),
        ]
    };
    Table {
        title: format!("{} beside {} of the baseline", things(runs as u64, "run", "runs"), baseline.runs.len()),
        note: "Medians. The factor is the median of all quotients of a run and one of the baseline; by chance: how probable such a \
               difference is between runs that are alike (it counts up to 0.01)."
            .to_owned(),
        columns: vec!["condition", ">baseline", ">now", ">factor", ">by chance", "holds"],
        rows: checked.iter().map(row).collect(),
    }
}

fn holds(one: &CheckedRuns<'_>) -> String {
    if one.holds { "yes" } else { "no" }.to_owned()
}
