//! `pioscope advise`: which strategy and hints would help a program most, by prediction and then by trying them.

mod advice;
mod belief;
mod beyond_hints;
mod input;
mod keeping;
mod outcome;
mod search;
mod server_copies;
mod trials;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use pio_plan::Strategy;
use pio_report::Table;
use pio_report::units::time_s;
use pio_sim::Options;
use pio_trace::Trace;

pub(crate) use advice::Advice;
use belief::Belief;
use outcome::{Row, predicted_table, tried_table};
use search::{Found, Predicted, Time};
use server_copies::ServerCopies;
use trials::{Place, Runner, Trial};

use crate::explain;
use crate::flags::{MpiccFlag, count};
use crate::gain::NOISE;
use crate::here::{self, Here};
use crate::learned::{self, Asked};
use crate::output::note;
use crate::own_way;
use crate::predict;
use crate::record::Job;
use crate::recorded_calls::{machine_of_run, way_of_run};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope advise run.pio --no-run                (here: after pioscope machines calibrate)
  pioscope advise -- mpiexec -n 8 ./collapse --iterations 20
  pioscope advise --output /scratch/me/run --budget 30min --runs 6 -- mpiexec -n 8 ./yours
  pioscope apply --advice advice.toml -- mpiexec -n 8 ./collapse

The program runs once as it is and up to --runs times more, each time in a fresh scratch copy of the working folder (and of
those of --output): its files stay as they are. With --no-run, nothing runs.")]
pub(crate) struct Arguments {
    /// A recorded program, to advise by prediction alone (with --no-run)
    #[arg(conflicts_with = "command", required_unless_present = "command", requires = "no_run")]
    trace: Option<PathBuf>,
    /// The machine: a name (pioscope machines list) or a file. here is the place where the program's files are, or the I/O
    /// servers of --store, as pioscope machines calibrate found it
    #[arg(short, long, default_value = here::NAME, value_name = "MACHINE")]
    machine: String,
    /// Only predict; run nothing
    #[arg(long, conflicts_with_all = ["command", "in_place", "output", "budget", "runs"])]
    no_run: bool,
    /// Another folder in which the program writes, to be copied as the working folder is; may be given several times
    #[arg(long, value_name = "FOLDER", conflicts_with = "in_place")]
    output: Vec<PathBuf>,
    /// Run in the folders themselves: each run overwrites the files that the program writes
    #[arg(long)]
    in_place: bool,
    /// Begin no further run that would end later than this after the start, such as `10min`; the program as it is, and one
    /// setting that is expected to save time, run in any case
    #[arg(long, value_name = "TIME", value_parser = budget, default_value = "10min")]
    budget: Duration,
    /// How many runs at most after that of the program as it is: fewer if no other run is expected to save anything
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = count)]
    runs: NonZeroU32,
    /// Try settings with all files on the I/O servers that this file describes (pioscope serve writes it). The machine must
    /// describe them, too
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Where to write the setting to keep, for pioscope apply --advice [default: advice.toml beside the trace, or in the
    /// working folder]
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    mpicc: MpiccFlag,
    /// The program and its arguments, as they would be typed without Pioscope
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A time such as `90 s`, `10min` or `2 h`.
fn budget(text: &str) -> Result<Duration> {
    let expected = || anyhow!("expected a time with its unit, such as `90s`, `10min` or `2h`");
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(expected)?;
    let number: u64 = text[..end].parse().map_err(|_| expected())?;
    let seconds = match text[end..].trim_start() {
        "s" => Some(number),
        "min" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        _ => None,
    };
    Ok(Duration::from_secs(seconds.ok_or_else(expected)?))
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let started = Instant::now();
    let store = crate::apply::store_of_job(arguments.store.as_deref())?;
    let asked = find_machine(&arguments, store.as_deref())?;
    let machine = &asked.machine;
    if let Some(store) = store.as_deref().filter(|_| !search::takes_views(machine)) {
        bail!(
            "{}: the machine {} does not describe servers as Pioscope's own (expected a description by `pioscope machines \
             calibrate --store`)",
            store.display(),
            machine.name
        );
    }
    let keep = keep_path(&arguments);
    keeping::check_place(&keep)?;
    match &arguments.trace {
        Some(path) => predict_only(path, &asked, store.as_deref(), &keep)?,
        None => {
            let is_here = arguments.machine == here::NAME;
            let Arguments { mpicc, command, budget, runs, in_place, output, .. } = arguments;
            let ends = started
                .checked_add(budget)
                .ok_or_else(|| anyhow!("--budget: this clock does not go so far"))?;
            pio_record::check(&command)?;
            let place = if in_place { Place::own()? } else { Place::scratch(&output)? };
            let servers = store.as_deref().filter(|_| !in_place).map(ServerCopies::new).transpose()?;
            let environment = servers.iter().map(ServerCopies::variable).collect();
            let scratch = place.use_of();
            if scratch.as_ref().is_some_and(|scratch| scratch.guard.is_none()) {
                note!(
                    "this kernel cannot keep programs that are linked statically from the user's files (expected \
                     Landlock, of Linux 5.19 and later); others are kept from them by a library"
                );
            }
            let command = if in_place { command } else { from_elsewhere(command) };
            let job = Job { mpicc, verbose: false, quiet: false, environment, scratch, spool: None, command };
            let runner = Runner::new(&job, store.clone(), place, servers)?;
            measure(runner, asked, is_here, store.as_deref(), &keep, ends, runs.get() as usize)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A command for a scratch copy of the working folder, which is elsewhere: names that lead out of the folder become absolute.
fn from_elsewhere(command: Vec<OsString>) -> Vec<OsString> {
    command.into_iter().map(|word| absolute(&word).unwrap_or(word)).collect()
}

/// The absolute form of a name of something that is there, if it leads out of the working folder. Links in it stay: under which
/// name a program is started matters, as to the Python of a virtual environment.
fn absolute(word: &OsStr) -> Option<OsString> {
    let mut rest = word.as_bytes();
    while let Some(behind) =
        rest.strip_prefix(b"..").filter(|behind| matches!(behind.first(), None | Some(b'/')))
    {
        let slashes = behind.iter().take_while(|byte| **byte == b'/').count();
        rest = &behind[slashes..];
    }
    let (up, below) = word.as_bytes().split_at(word.len() - rest.len());
    if up.is_empty() || !Path::new(word).exists() {
        return None;
    }
    let mut found = fs::canonicalize(OsStr::from_bytes(up)).ok()?.into_os_string();
    // As it was typed, to the last slash: some programs put names behind it.
    if !below.is_empty() || up.ends_with(b"/") {
        found.push("/");
    }
    found.push(OsStr::from_bytes(below));
    Some(found)
}

/// The machine that was named. Where a program's files will be is not known before it runs: the working folder stands for it, or
/// if that is not calibrated, a folder in its command line that is.
fn find_machine(arguments: &Arguments, store: Option<&Path>) -> Result<Asked> {
    if arguments.machine != here::NAME {
        return Asked::named(&arguments.machine);
    }
    let place = match (store, &arguments.trace) {
        (Some(store), _) => Here::of_store(store)?,
        (None, Some(path)) => Here::of_trace(Some(&explain::open(path)?))?,
        (None, None) => {
            let working = Here::of_folder(Path::new("."))?;
            let named = arguments.command.iter().filter_map(|word| folder_in(word));
            let mut others = named.filter_map(|folder| Here::of_folder(&folder).ok());
            if working.is_calibrated() {
                working
            } else {
                others.find(Here::is_calibrated).unwrap_or(working)
            }
        }
    };
    Asked::here(&place)
}

/// The folder that a word of a command line names, or in which the file is that it names.
fn folder_in(word: &OsStr) -> Option<PathBuf> {
    let text = word.to_str()?;
    let path = Path::new(text.rsplit_once('=').map_or(text, |(_, value)| value));
    let is_path = path.components().count() > 1;
    path.ancestors()
        .find(|folder| is_path && folder.parent().is_some() && folder.is_dir())
        .map(Path::to_owned)
}

/// The description of the place where a program that ran has its files; of the working folder, if that was not calibrated.
fn here_of(trace: &Trace, working_folder: Asked) -> Result<Asked> {
    let place = Here::of_trace(Some(trace))?;
    if place.is_calibrated() {
        return Asked::here(&place);
    }
    let why = place.load().err().map_or_else(String::new, |error| format!("{error:#}"));
    note!("the program's files are predicted as if in the working folder: {why}");
    Ok(working_folder)
}

fn keep_path(arguments: &Arguments) -> PathBuf {
    let default = || match &arguments.trace {
        Some(trace) => trace.with_file_name("advice.toml"),
        None => PathBuf::from("advice.toml"),
    };
    arguments.keep.clone().unwrap_or_else(default)
}

/// Why a program is best left as it is.
const IS_NOT_PREDICTED: &str = "nothing is predicted to save more than 2 % of its I/O time";
const IS_NOT_EXPECTED: &str = "by what it took, nothing is expected to save 1 % of its I/O time";
const WAS_NOT_MEASURED: &str = "nothing that was tried took at least 2 % less I/O time";

/// Advises by prediction alone.
fn predict_only(path: &Path, asked: &Asked, store: Option<&Path>, keep: &Path) -> Result<()> {
    let trace = explain::open(path)?;
    let case = Case::of(&trace, asked, store).map_err(|error| error.context(path.display().to_string()))?;
    print_table(predicted_table(&case.title(), &case.rows(), &case.notes()))?;
    crate::print(&case.strips)?;
    let is_worth_it = |best: &&Predicted| is_worthwhile(&best.time, &case.found.base);
    let best = case.found.settings.first().filter(is_worth_it);
    let Some(best) = best else {
        return crate::print(&format!("Leave the program as it is: {IS_NOT_PREDICTED}.\n"));
    };
    let saved = outcome::saved(best.time.expected_s(), case.found.base.expected_s());
    crate::print(&format!("Try {}: predicted to save {saved} of the I/O time.\n", best.advice))?;
    let source = format!("Predicted for {} on {}: nothing was run.", path.display(), asked.machine.name);
    let comments = [source, predicted_comment(best, &case)];
    crate::print(&keeping::keep(keep, &best.advice, &comments, &case.job, store)?)
}

/// Runs the program as it is, predicts, tries the best few, and keeps what was measured best.
fn measure(
    mut runner: Runner<'_>,
    asked: Asked,
    is_here: bool,
    store: Option<&Path>,
    keep: &Path,
    ends: Instant,
    runs: usize,
) -> Result<()> {
    let mut as_it_is = Trial::new(None, Time { modelled_s: 0.0, interval: None });
    let trace = runner.first(&mut as_it_is)?;
    let trace = explain::open(&trace)?;
    let asked = if is_here && store.is_none() { here_of(&trace, asked)? } else { asked };
    let case = Case::of(&trace, &asked, store)?;
    runner.begin_with(&case.files)?;
    as_it_is.predicted = case.found.base.clone();
    let settings = case.found.settings.iter();
    let settings = settings.map(|one| Trial::new(Some(one.advice.clone()), one.time.clone()));
    let mut trials: Vec<Trial> = std::iter::once(as_it_is).chain(settings).collect();
    let mut belief = case.belief(&trials);
    runner.measure(&mut trials, &mut belief, runs, ends)?;
    learn(&asked, &case, &trials)?;

    let rows = trials.iter().map(|trial| Row::of_trial(trial, &case.own)).collect();
    print_table(tried_table(&case.title(), rows, &case.notes()))?;
    crate::print(&runner.commands())?;
    crate::print(&case.strips)?;
    if let Some(sentence) = trials::failed_again(&trials[0]) {
        crate::print(&format!("{sentence}\n"))?;
    }
    let Some((best, place, best_s)) = trials::best(&trials, &belief) else {
        let has_run = trials[1..].iter().any(|trial| !trial.runs.is_empty());
        let why = match trials::problems(&trials[1..]) {
            _ if has_run => WAS_NOT_MEASURED.to_owned(),
            Some(problems) => format!("every setting that was tried failed: {problems}"),
            None => IS_NOT_EXPECTED.to_owned(),
        };
        return crate::print(&format!("Leave the program as it is: {why}.\n"));
    };
    let Some(advice) = &best.advice else { bail!("the program as it is cannot be advice") };
    let before_s = trials[0].median_s().unwrap_or_default();
    let saved = outcome::saved(best_s, before_s);
    let chance = if belief.is_surely_less(place, 0) { "" } else { "; by so few runs, it may be chance" };
    crate::print(&format!("Keep {advice}: measured to save {saved} of the I/O time{chance}.\n"))?;
    let source = format!("Measured on this machine: {}", trials::comment(best, &trials[0]));
    let predicted = Predicted { advice: advice.clone(), time: best.predicted.clone() };
    let comments = [source, predicted_comment(&predicted, &case)];
    crate::print(&keeping::keep(keep, advice, &comments, &runner.command(), store)?)
}

/// The command of a job that `pioscope record` recorded, which notes its MPI; a generated workload or a log has none.
fn command_of(trace: &Trace) -> String {
    let tables = trace.tables();
    if tables.mpi_library().is_some() { tables.job.clone() } else { "COMMAND".to_owned() }
}

/// Adds the runs to the machine's history, where it is that of a place which earlier runs correct: the next predictions know
/// what they took.
fn learn(asked: &Asked, case: &Case, trials: &[Trial]) -> Result<()> {
    let Some(mut history) = asked.history()?.filter(|history| asked.has_intervals(history)) else {
        return Ok(());
    };
    // Settings on servers are not what the program as it is, on its own files, was predicted for.
    let of_case = trials.iter().filter(|trial| !case.has_store || trial.advice.is_some());
    let pairs = of_case.flat_map(|trial| {
        let strategy = trial.advice.as_ref().map_or(case.own, |advice| advice.strategy);
        let predicted_s = trial.predicted.modelled_s;
        trial.recorded.iter().map(move |run| run.pair(predicted_s, strategy.name(), case.crowded))
    });
    learned::add(&mut history, pairs);
    Ok(())
}

/// Whether a setting is predicted to take so much less than the program as it is that it is worth a change.
fn is_worthwhile(setting: &Time, before: &Time) -> bool {
    setting.expected_s() < worthwhile(before.expected_s())
}

/// What a setting must take less than to be worth a change: less is within what predictions and runs are off.
fn worthwhile(before_s: f64) -> f64 {
    before_s * (1.0 - NOISE)
}

/// A recorded program and what is predicted for it.
struct Case {
    /// Its command.
    job: String,
    machine: String,
    /// What its MPI library does by itself.
    own: Strategy,
    /// How that is known.
    why: String,
    recorded_s: f64,
    /// Paths of those of its files that it opened by MPI-IO.
    files: Vec<String>,
    found: Found,
    /// Whether ranks share processors.
    crowded: bool,
    /// What predictions are corrected by, in words; none if nothing corrects them.
    corrected_by: Option<String>,
    on_servers: bool,
    has_store: bool,
    /// What Pioscope cannot set of how files are dealt out, in words.
    strips: String,
}

impl Case {
    fn of(trace: &Trace, asked: &Asked, store: Option<&Path>) -> Result<Case> {
        let machine = &asked.machine;
        let explanation = explain::explain(trace)?;
        let files: Vec<_> = explanation.files.iter().filter(|file| file.by_mpi_io).collect();
        ensure!(
            !files.is_empty(),
            "no process opened a file by MPI-IO, so no strategy can be applied (pioscope explain says what else costs time)"
        );
        let own = own_way::of_trace(trace.tables());
        own_way::tell_of_another(machine, trace.tables());
        let workload = predict::workload_of(trace)?;
        let way = way_of_run(trace.tables(), own.strategy).ok();
        let way = way.filter(|_| trace.damage().is_none() && Here::ran_on(trace, machine));
        let machine = &match &way {
            Some(way) => machine_of_run(machine, &explanation, &workload, way, &Options::default())?,
            None => machine.clone(),
        };
        let mut found = search::search(machine, &workload, own.strategy)?;
        let (ranks, program) = (workload.ranks(), learned::program(trace.tables()));
        let crowded = found.ranks_per_node > machine.nodes.cores;
        let history = asked.history()?.filter(|history| asked.has_intervals(history));
        if let Some(history) = &history {
            let interval = |strategy: Strategy, modelled_s| {
                let case = pio_learn::Case { strategy: strategy.name(), ranks, crowded, program: &program };
                history.interval(modelled_s, &case)
            };
            found = found.corrected(own.strategy, interval);
        }
        let corrected_by = found.base.interval.as_ref().map(|interval| interval.reason.clone());
        let strips = keeping::what_cannot_be_set(&found, trace.tables());
        Ok(Case {
            crowded,
            corrected_by,
            job: command_of(trace),
            machine: machine.name.clone(),
            own: own.strategy,
            why: own.why,
            recorded_s: explanation.io_time_s(),
            files: files.into_iter().map(|file| file.path.clone()).collect(),
            found,
            on_servers: search::takes_views(machine),
            has_store: store.is_some(),
            strips,
        })
    }

    fn title(&self) -> String {
        format!("I/O time, mean of the processes, predicted on {}", self.machine)
    }

    /// What predictions and the first run say of the program as it is and of each setting.
    fn belief(&self, trials: &[Trial]) -> Belief {
        let first_s = trials[0].runs.first().copied();
        let predicted = trials.iter().map(|trial| match &trial.advice {
            Some(advice) => (Some(advice.strategy), trial.predicted.clone()),
            // On its own files, it is not what was predicted for servers.
            None if self.has_store => {
                (None, Time { modelled_s: first_s.unwrap_or_default(), interval: None })
            }
            None => (Some(self.own), trial.predicted.clone()),
        });
        let mut belief = Belief::new(predicted);
        first_s.into_iter().for_each(|took_s| belief.learn(0, took_s));
        belief
    }

    /// The program as it is, and each setting.
    fn rows(&self) -> Vec<Row> {
        let base = Row::predicted(None, self.found.base.clone(), &self.own);
        let settings = self.found.settings.iter();
        std::iter::once(base)
            .chain(settings.map(|one| Row::predicted(Some(one.advice.clone()), one.time.clone(), &self.own)))
            .collect()
    }

    /// What one must know to read the table.
    fn notes(&self) -> String {
        let mut notes = format!(
            "{} {} predicted; each strategy is shown with its default hints, and with its best ones if \
             these help.",
            self.why,
            match self.found.predicted_count {
                1 => "One setting was".to_owned(),
                count => format!("{count} settings were"),
            },
        );
        if let Some(reason) = &self.corrected_by {
            notes.push_str(&format!(
                " Interval: the times of 4 runs in 5 are expected in it, by earlier runs on the machine ({reason})."
            ));
        }
        // A generated workload took no time.
        if self.recorded_s > 0.0 {
            notes.push_str(&format!(" Recorded as it is: {}.", time_s(self.recorded_s)));
        }
        if self.on_servers {
            notes.push_str(
                " All is predicted with files on the I/O servers of the machine, the program as it is, too.",
            );
        }
        if self.on_servers && !self.has_store {
            notes.push_str(" ecio needs Pioscope's I/O servers: apply it with --store.");
        }
        notes
    }
}

fn print_table(table: Table) -> Result<()> {
    crate::print(&table.text())
}

fn predicted_comment(best: &Predicted, case: &Case) -> String {
    format!(
        "Predicted on {}: {} of I/O, as it is ({}) {}.",
        case.machine,
        time_s(best.time.expected_s()),
        case.own,
        time_s(case.found.base.expected_s())
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    #[test]
    fn words_name_folders() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        for word in [folder.to_owned(), folder.join("not-there"), folder.join("nor/this")] {
            assert_eq!(folder_in(word.as_os_str()).as_deref(), Some(folder), "{}", word.display());
            let option = format!("--output={}", word.display());
            assert_eq!(folder_in(OsStr::new(&option)).as_deref(), Some(folder), "{option}");
        }
        for word in ["mpiexec", "-n", "4", "/", "nowhere/at/all"] {
            assert_eq!(folder_in(OsStr::new(word)), None, "{word}");
        }
    }

    #[test]
    fn budgets_have_units() {
        assert_eq!(budget("10min").unwrap(), Duration::from_secs(600));
        assert_eq!(budget(" 90 s ").unwrap(), Duration::from_secs(90));
        assert_eq!(budget("2h").unwrap(), Duration::from_secs(7200));
        for wrong in ["10", "min", "1.5h", "-3s", "99999999999999999999s", "9999999999999999999h", ""] {
            assert!(budget(wrong).unwrap_err().to_string().contains("`10min`"), "{wrong}");
        }
    }

    #[test]
    fn names_that_lead_out_of_the_working_folder_are_made_absolute() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let out = fs::canonicalize("..").unwrap();
        let out = out.to_str().unwrap();
        let found = from_elsewhere(words(&["mpiexec", "-n", "4", "..", "./here", "../there-is-none"]));
        assert_eq!(found, words(&["mpiexec", "-n", "4", out, "./here", "../there-is-none"]));
    }

    /// The Python of a virtual environment, a link to that of the system, was started as the latter, without its modules.
    #[test]
    fn names_that_lead_out_keep_their_links() {
        let place = tempfile::tempdir_in("..").unwrap();
        std::os::unix::fs::symlink("/bin/sh", place.path().join("python")).unwrap();
        let relative = Path::new("..").join(place.path().file_name().unwrap()).join("python");
        let place = fs::canonicalize(place.path()).unwrap();
        let found = from_elsewhere(vec![relative.clone().into(), relative.with_file_name("").into()]);
        assert_eq!(found, [place.join("python").into_os_string(), place.join("").into_os_string()]);
    }
}
