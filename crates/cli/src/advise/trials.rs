//! Runs in turn: of the program as it is, and under the settings that are tried.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use pio_record::quoted;
use pio_report::units::time_s;
use pio_scratch::Scratch;
use tempfile::TempDir;

use super::belief::Belief;
use super::input::Input;
use super::search::Time;
use super::server_copies::ServerCopies;
use super::{Advice, worthwhile};
use crate::apply::{self, How};
use crate::explain;
use crate::learned::Run;
use crate::median::median;
use crate::output::note;
use crate::record::{self, Job, ScratchUse};

/// The runs of a setting.
#[derive(Clone)]
pub(super) struct Trial {
    /// None: the program as it is.
    pub advice: Option<Advice>,
    pub predicted: Time,
    /// I/O time of each run, seconds.
    pub runs: Vec<f64>,
    /// The same runs, for the machine's history.
    pub recorded: Vec<Run>,
    /// Why it cannot be kept, whatever was measured.
    pub problem: Option<String>,
    /// The longest run so far, with its recording.
    longest: Duration,
}

impl Trial {
    pub(super) fn new(advice: Option<Advice>, predicted: Time) -> Trial {
        let (runs, recorded) = (Vec::new(), Vec::new());
        Trial { advice, predicted, runs, recorded, problem: None, longest: Duration::ZERO }
    }

    /// Whether it may be how the program is run from now on. The program as it is, is in any case: its user runs it so, and its
    /// good runs tell what a setting saves, though one fails.
    fn can_be_kept(&self) -> bool {
        self.problem.is_none() || self.advice.is_none()
    }

    /// Median I/O time of the runs that went well; none without such a run, or if it cannot be kept.
    pub(super) fn median_s(&self) -> Option<f64> {
        let is_known = !self.runs.is_empty() && self.can_be_kept();
        is_known.then(|| median(self.runs.clone()))
    }
}

/// Where a program runs, with a folder for traces that goes with it.
pub(super) enum Place {
    /// In the user's folders.
    Own(TempDir),
    /// In copies of them.
    Scratch(Scratch),
}

impl Place {
    /// The user's own folders; traces go to a folder in the working folder, which the hosts of a job share.
    pub(super) fn own() -> Result<Place> {
        let working = std::env::current_dir().context("the working folder is gone")?;
        let folder = tempfile::Builder::new().prefix(".pioscope-advise-").tempdir_in(working);
        Ok(Place::Own(folder.context("cannot create a folder for traces in the working folder")?))
    }

    /// Copies of the working folder and of other folders.
    pub(super) fn scratch(outputs: &[PathBuf]) -> Result<Place> {
        let working = std::env::current_dir().context("the working folder is gone")?;
        let scratch = Scratch::new(&working, outputs);
        Ok(Place::Scratch(
            scratch.context("cannot make scratch copies for the program's files; --in-place does without")?,
        ))
    }

    /// What makes a job run there.
    pub(super) fn use_of(&self) -> Option<ScratchUse> {
        if let Place::Scratch(scratch) = self { Some(ScratchUse::of(scratch)) } else { None }
    }

    fn folder(&self) -> &Path {
        match self {
            Place::Own(folder) => folder.path(),
            Place::Scratch(scratch) => scratch.folder(),
        }
    }

    /// The same again, for another run.
    fn renew(&mut self) -> Result<()> {
        if let Place::Scratch(scratch) = self { Ok(scratch.renew()?) } else { Ok(()) }
    }

    /// Files that a run was refused to change.
    fn refused(&self) -> BTreeSet<PathBuf> {
        if let Place::Scratch(scratch) = self { scratch.refused() } else { BTreeSet::new() }
    }

    /// Whether files were copied within the calls of the run, whose times then are not the program's alone.
    fn has_copied(&self) -> bool {
        matches!(self, Place::Scratch(scratch) if !scratch.copied_in_calls().is_empty())
    }
}

/// Runs a program, recorded, and remembers how.
pub(super) struct Runner<'a> {
    job: &'a Job,
    store: Option<PathBuf>,
    place: Place,
    /// Of the store's files; none if runs are to change those themselves.
    server_copies: Option<ServerCopies>,
    input: Input,
    /// What was run, as a user would type it.
    typed: Vec<String>,
    /// What runs were refused to change so far, and has been said.
    refused: BTreeSet<PathBuf>,
}

impl Runner<'_> {
    /// # Errors
    /// If there is no way to give each run the same standard input.
    pub(super) fn new(
        job: &Job,
        store: Option<PathBuf>,
        place: Place,
        server_copies: Option<ServerCopies>,
    ) -> Result<Runner<'_>> {
        let input = Input::of_command()?;
        Ok(Runner { job, store, place, server_copies, input, typed: Vec::new(), refused: BTreeSet::new() })
    }

    /// The first run of the program as it is; its trace, which lasts as long as this.
    ///
    /// # Errors
    /// If it fails: then nothing is to be tried.
    pub(super) fn first(&mut self, as_it_is: &mut Trial) -> Result<PathBuf> {
        self.run(as_it_is)?;
        if let Some(problem) = &as_it_is.problem {
            bail!("the program as it is: {problem}; nothing was tried");
        }
        Ok(self.trace())
    }

    /// Where these files of the program are on servers too, each run under a setting begins with copies of them there.
    ///
    /// # Errors
    /// If the servers cannot be asked.
    pub(super) fn begin_with(&mut self, paths: &[String]) -> Result<()> {
        match (&mut self.server_copies, &self.place) {
            (Some(copies), Place::Scratch(scratch)) => copies.begin_with(paths, scratch),
            _ => Ok(()),
        }
    }

    /// Runs, so many times at most, what is most likely to save something, as long as there is time. The first trial is the program
    /// as it is, and has run; what is believed is of the trials in their order.
    ///
    /// # Errors
    /// If a job cannot be started or its trace not be read. That the program fails is a problem of the setting.
    pub(super) fn measure(
        &mut self,
        trials: &mut [Trial],
        belief: &mut Belief,
        runs: usize,
        ends: Instant,
    ) -> Result<()> {
        for number in 0..runs {
            let left = ends.saturating_duration_since(Instant::now());
            let longest = trials.iter().map(|trial| trial.longest).max().unwrap_or_default();
            let takes = |trial: &Trial| if trial.runs.is_empty() { longest } else { trial.longest };
            // One setting is tried in any case.
            let has_time = |trial: &Trial| number == 0 || takes(trial) <= left;
            let may_run = |index: usize| trials[index].problem.is_none() && has_time(&trials[index]);
            let next = belief.next(|index| trials[index].can_be_kept(), may_run);
            let Some(index) = next else { break };
            self.run(&mut trials[index])?;
            if let Some(took_s) = trials[index].runs.last().filter(|_| trials[index].problem.is_none()) {
                belief.learn(index, *took_s);
            }
        }
        Ok(())
    }

    /// What was run, to print.
    pub(super) fn commands(&self) -> String {
        let place = match self.place {
            Place::Own(_) => "",
            Place::Scratch(_) => ", in scratch copies",
        };
        let mut text = format!("What was run, in this order{place}:\n");
        for line in &self.typed {
            text.push_str(&format!("  {line}\n"));
        }
        text
    }

    /// Runs it once; once more, if files had to be copied within its calls, which have been copied then before.
    fn run(&mut self, trial: &mut Trial) -> Result<()> {
        self.run_once(trial)?;
        if self.place.has_copied() && trial.problem.is_none() {
            note!(
                "files were copied before that run changed them: it is run again, with them copied beforehand"
            );
            trial.runs.pop();
            trial.recorded.pop();
            self.run_once(trial)?;
        }
        Ok(())
    }

    fn run_once(&mut self, trial: &mut Trial) -> Result<()> {
        let started = Instant::now();
        if !self.typed.is_empty() {
            self.place.renew()?;
        }
        if let (Some(copies), Some(_)) = (&mut self.server_copies, &trial.advice) {
            copies.renew()?;
        }
        self.input.renew()?;
        let trace = self.trace();
        let typed = self.type_out(trial.advice.as_ref());
        note!("running {typed}");
        self.typed.push(typed);
        let ended = match &trial.advice {
            None => (record::record_as_it_is(self.job, trace.clone())?, true),
            Some(Advice { strategy, hints }) => {
                let how = How {
                    strategy: *strategy,
                    hints: hints.clone(),
                    store: self.store.clone(),
                    machine: None,
                };
                let ended = apply::run_with(how, self.job, Some(trace.clone()))?;
                (ended.status, ended.applied)
            }
        };
        ensure!(!pio_record::was_told_to_end(), "interrupted: nothing was kept");
        trial.longest = trial.longest.max(started.elapsed());
        match ended {
            (status, _) if !status.success() => {
                trial.problem = Some(format!("failed: {status}"));
                self.tell_why_it_may_have_failed();
            }
            (_, false) => trial.problem = Some("was not applied".to_owned()),
            _ => {
                let run = recorded(&trace)?;
                trial.runs.push(run.io_time_s);
                trial.recorded.push(run);
            }
        }
        self.tell_refused();
        Ok(())
    }

    /// What of a program that ran in scratch copies may not be its own fault.
    fn tell_why_it_may_have_failed(&self) {
        if let Place::Scratch(scratch) = &self.place {
            note!(
                "it ran in a scratch copy of the working folder, {}, and could change nothing outside. \
                 --output FOLDER copies another folder in which it writes; --in-place runs it in the folders themselves",
                scratch.working_folder().display()
            );
        }
    }

    /// Names files that a run was refused to change, once.
    fn tell_refused(&mut self) {
        const MOST: usize = 5;
        let refused = self.place.refused();
        let new: Vec<_> = refused.difference(&self.refused).map(|path| path.display().to_string()).collect();
        if !new.is_empty() {
            let more = new.len().saturating_sub(MOST);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            note!(
                "the program may not change what is outside of its scratch copies, and was refused: {}{more} \
                 (--output FOLDER copies the folder where they are, too; --in-place lets it)",
                new.into_iter().take(MOST).collect::<Vec<_>>().join(", ")
            );
        }
        self.refused.extend(refused);
    }

    fn trace(&self) -> PathBuf {
        self.place.folder().join("run.pio")
    }

    /// The program's command.
    pub(super) fn command(&self) -> String {
        pio_record::typed(&self.job.command)
    }

    /// The command that does the same, but for the place of its trace, which is temporary.
    fn type_out(&self, advice: Option<&Advice>) -> String {
        let mut words = vec!["pioscope".to_owned()];
        match advice {
            None => words.extend(["record", "-o", "run.pio"].map(str::to_owned)),
            Some(advice) => {
                words.push("apply".to_owned());
                words.extend(advice.options());
                words.extend(["--record", "run.pio"].map(str::to_owned));
                words.extend(
                    self.store.iter().flat_map(|store| ["--store".to_owned(), quoted(store.as_os_str())]),
                );
            }
        }
        words.extend(
            self.job.mpicc.mpicc.iter().flat_map(|mpicc| ["--mpicc".to_owned(), quoted(mpicc.as_os_str())]),
        );
        words.extend(["--".to_owned(), self.command()]);
        words.join(" ")
    }
}

fn recorded(trace: &Path) -> Result<Run> {
    let trace = explain::open(trace)?;
    let found = explain::explain(&trace)?;
    ensure!(found.process_count > 0, "{}: no process was recorded", trace.path().display());
    Ok(Run::of(trace.tables(), &found))
}

/// The trial to keep, its place and its median: of those that took less than the program as it is by more than noise, that which is
/// expected to take least.
pub(super) fn best<'a>(trials: &'a [Trial], belief: &Belief) -> Option<(&'a Trial, usize, f64)> {
    let before_s = trials.iter().find(|trial| trial.advice.is_none())?.median_s()?;
    let tried = trials.iter().enumerate().filter(|(_, trial)| trial.advice.is_some());
    let measured = tried.filter_map(|(index, trial)| Some((index, trial, trial.median_s()?)));
    let better = measured.filter(|(.., after_s)| *after_s < worthwhile(before_s));
    let expected_s = |index: usize| belief.expected_s(index);
    let best = better.min_by(|one, other| expected_s(one.0).total_cmp(&expected_s(other.0)));
    best.map(|(index, trial, after_s)| (trial, index, after_s))
}

/// The settings that failed, and how; none if none did.
pub(super) fn problems(trials: &[Trial]) -> Option<String> {
    let of = |trial: &Trial| {
        let problem = trial.problem.as_ref()?;
        Some(format!("{} ({})", trial.advice.as_ref()?, problem.trim_start_matches("failed: ")))
    };
    let problems: Vec<_> = trials.iter().filter_map(of).collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// Where the program as it is failed when it was run once more: says so, as a sentence, for whoever reads what was measured.
pub(super) fn failed_again(as_it_is: &Trial) -> Option<String> {
    let problem = as_it_is.problem.as_ref()?;
    let ended = problem.trim_start_matches("failed: ");
    Some(format!(
        "The program as it is failed when it was run again ({ended}): its times are of the runs before."
    ))
}

/// What was measured, as a sentence.
pub(super) fn comment(kept: &Trial, as_it_is: &Trial) -> String {
    let told = |trial: &Trial| {
        let median = trial.median_s().map_or("no time".to_owned(), time_s);
        format!("{median} of I/O (median of {})", trial.runs.len())
    };
    let failed = failed_again(as_it_is).map_or_else(String::new, |sentence| format!(" {sentence}"));
    format!("{}, as it is {}.{failed}", told(kept), told(as_it_is))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_plan::{Hints, Strategy};

    fn trial(strategy: Option<Strategy>, runs: &[f64]) -> Trial {
        let advice = strategy.map(|strategy| Advice { strategy, hints: Hints::default() });
        Trial {
            runs: runs.to_vec(),
            longest: Duration::from_secs(5),
            ..Trial::new(advice, Time { modelled_s: 1.0, interval: None })
        }
    }

    #[test]
    fn what_was_measured_slower_or_failed_is_never_kept() {
        let kept = |trials: &[Trial]| {
            let predicted = trials.iter().map(|trial| (None, trial.predicted.clone()));
            let mut belief = Belief::new(predicted);
            for (index, trial) in trials.iter().enumerate() {
                trial.runs.iter().for_each(|took_s| belief.learn(index, *took_s));
            }
            best(trials, &belief).map(|(.., median_s)| median_s)
        };
        let base = || trial(None, &[1.0, 2.0, 9.0]);
        assert_eq!(kept(&[base(), trial(Some(Strategy::List), &[1.0])]), Some(1.0));
        assert_eq!(kept(&[base(), trial(Some(Strategy::List), &[2.5])]), None);
        assert_eq!(kept(&[base(), trial(Some(Strategy::List), &[1.99])]), None);
        assert_eq!(kept(&[base(), trial(Some(Strategy::List), &[])]), None);
        let failed = || Trial { problem: Some("failed".to_owned()), ..trial(Some(Strategy::List), &[0.1]) };
        assert_eq!(kept(&[base(), failed()]), None);
        let others = [trial(Some(Strategy::List), &[1.0]), trial(Some(Strategy::Sieving), &[0.5])];
        assert_eq!(kept(&[&[base(), failed()][..], &others].concat()), Some(0.5));
        assert_eq!(trial(None, &[4.0, 1.0]).median_s(), Some(2.5));
    }

    /// What was measured of it, and of all settings, was thrown away.
    #[test]
    fn a_program_that_fails_when_run_again_was_measured_before() {
        let as_it_is = Trial { problem: Some("failed: exit status: 7".to_owned()), ..trial(None, &[2.0]) };
        let trials = [as_it_is, trial(Some(Strategy::List), &[1.0])];
        let mut belief = Belief::new(trials.iter().map(|trial| (None, trial.predicted.clone())));
        trials.iter().enumerate().for_each(|(index, trial)| belief.learn(index, trial.runs[0]));
        let (kept, ..) = best(&trials, &belief).expect("it saves half");
        let told = comment(kept, &trials[0]);
        assert!(told.starts_with("1 s of I/O (median of 1), as it is 2 s of I/O (median of 1). "), "{told}");
        assert!(told.contains("as it is failed when it was run again (exit status: 7)"), "{told}");
    }
}
