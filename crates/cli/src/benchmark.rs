//! The programs that the command itself measures with.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use pio_machine::{Machine, Storage};
use pio_record::PassingFolder;

use crate::apply::{self, How};
use crate::calibrate_job::Launch;
use crate::mpi;
use crate::record;

/// What they have in common.
const RUNS: &str = include_str!("../c/runs.h");

/// A compiled program.
pub(crate) struct Compiled {
    pub path: PathBuf,
    /// Where it is if the folder that was asked for runs none.
    _elsewhere: Option<PassingFolder>,
}

/// Compiles the C program of this name with the user's own `mpicc`, into `folder`; or, if that is mounted with `noexec`, to where
/// the MPI's libraries of this user are, which all nodes see.
///
/// # Errors
/// If that cannot be done, with what the compiler says.
pub(crate) fn compile(mpicc: &Path, name: &str, program: &str, folder: &Path) -> Result<Compiled> {
    let elsewhere = match pio_record::may_run(folder) {
        true => None,
        false => Some(folder_for_programs()?),
    };
    let folder = elsewhere.as_ref().map_or(folder, PassingFolder::path);
    let (source, compiled) = (folder.join(name).with_extension("c"), folder.join(name));
    for (file, text) in [(&source, program), (&folder.join("runs.h"), RUNS)] {
        fs::write(file, text).with_context(|| format!("{}: cannot write", file.display()))?;
    }
    let mut command = Command::new(mpicc);
    command.args(["-O2", "-pthread", "-o"]).args([&compiled, &source]);
    let output =
        command.output().with_context(|| format!("cannot run the MPI compiler {}", mpicc.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: cannot compile the {name}: {}", mpicc.display(), said.trim());
    }
    Ok(Compiled { path: compiled, _elsewhere: elsewhere })
}

fn folder_for_programs() -> Result<PassingFolder> {
    let places = mpi::user_cache().into_iter().chain([env::temp_dir()]);
    let place = places.filter(|place| pio_record::may_run(place)).find_map(|place| {
        fs::create_dir_all(&place).ok()?;
        PassingFolder::within(&place, ".pioscope-calibrate-").ok()
    });
    place.context("no folder from which programs may run: set XDG_CACHE_HOME or TMPDIR to one")
}

/// Compiles the C program of this name and starts it as a job, with a folder of its own in `folder` and the file of its
/// results: what it wrote there.
///
/// # Errors
/// As [`compile`] and [`run`].
pub(crate) fn results_of(launch: &Launch, name: &str, program: &str, folder: &Path) -> Result<String> {
    let work = tempfile::tempdir_in(folder).with_context(|| format!("{}: cannot write", folder.display()))?;
    let program = compile(&launch.mpicc, name, program, work.path())?;
    let results = work.path().join("results");
    let mut command = launch.words.clone();
    command.extend([
        program.path.clone().into_os_string(),
        work.path().into(),
        results.clone().into_os_string(),
    ]);
    run(command, None, None, &results)
}

/// A folder for the traces of runs whose files are in `folder` on this machine: there, unless files are far away. What the
/// recorder writes while a program runs would take its time at the file system, so it goes where the MPI's libraries of this
/// user are, which all nodes see.
///
/// # Errors
/// If the folder cannot be made.
pub(crate) fn folder_for_traces(machine: &Machine, folder: &Path) -> Result<PassingFolder> {
    let near = matches!(machine.storage, Storage::Shared(_)).then(mpi::user_cache).flatten();
    let place = near.as_deref().filter(|near| near.is_dir()).unwrap_or(folder);
    PassingFolder::within(place, ".pioscope-calibrate-")
        .with_context(|| format!("{}: cannot write", place.display()))
}

/// Fails if SIGINT or SIGTERM came while a job ran: the job got it, and may have ended as if nothing were.
///
/// # Errors
/// If so.
pub(crate) fn refuse_to_go_on() -> Result<()> {
    ensure!(!pio_record::was_told_to_end(), "interrupted: nothing was kept");
    Ok(())
}

/// Runs a launcher's command line, its program's MPI-IO carried out in a given way or (without one) by the MPI itself, and
/// takes what it wrote into `results`. Recorded into `trace`, if that is named.
///
/// # Errors
/// If it fails, or writes nothing.
pub(crate) fn run(
    command: Vec<OsString>,
    how: Option<How>,
    trace: Option<&Path>,
    results: &Path,
) -> Result<String> {
    let trace = trace.map(Path::to_owned);
    match (how, trace) {
        (Some(how), trace) => {
            let ran = apply::run_own(how, command, trace);
            refuse_to_go_on()?;
            ran?;
        }
        (None, trace) => {
            let name = command[0].clone();
            let status = match trace {
                Some(trace) => record::record_as_it_is(&apply::own_job(command), trace)?,
                None => {
                    let mut plain = Command::new(&command[0]);
                    plain.args(&command[1..]).envs(pio_mpi::for_own_job(&command));
                    pio_record::run_to_end(&mut plain)?
                }
            };
            refuse_to_go_on()?;
            if !status.success() {
                bail!("{}: failed under the MPI's own MPI-IO: {status}", name.display());
            }
        }
    }
    let text = fs::read_to_string(results).with_context(|| format!("{}: cannot read", results.display()))?;
    fs::remove_file(results).with_context(|| format!("{}: cannot remove", results.display()))?;
    Ok(text)
}
