//! `pioscope machines`.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, thread};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use pio_machine::{Computer, IoNode, Machine, MachineError, Spreads, calibrate};
use pio_record::PassingFolder;
use pio_sim::SimError;
use pio_sim::network::of_machine;
use pio_sim::network::topology::Topology;
use pio_store::config::StoreDescription;

use crate::apply;
use crate::benchmark;
use crate::calibrate_job;
use crate::calibrate_nodes;
use crate::calibrate_samples;
use crate::calibrate_shared;
use crate::calibrate_store;
use crate::fit;
use crate::flags::JsonFlag;
use crate::here::{self, Here};
use crate::host_memory;
use crate::json;
use crate::learned;
use crate::output::note;
use crate::progress::Working;
use crate::whole_file::{self, WholeFile};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope machines calibrate --folder /scratch/me             (kept: pioscope predict finds it as here)
  pioscope machines list
  pioscope machines show sp-argonne > my-machine.toml
  pioscope machines show my-machine.toml --picture network.svg
  pioscope machines calibrate --folder /scratch/me -o here.toml
  pioscope machines calibrate --folder /scratch/me -o here.toml -- mpiexec -n 16
  pioscope machines calibrate --store /scratch/me/store/store.toml -o servers.toml
  pioscope machines calibrate --store /scratch/me/store/store.toml --like here.toml -o servers.toml
  pioscope machines fit runs/*.pio                             (here: after pioscope machines calibrate)
  pioscope machines fit --machine here.toml -o fitted.toml runs/*.pio")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Name the descriptions that come with Pioscope, and those that calibrate keeps of this host
    List(JsonFlag),
    /// Print a description, to start your own from
    Show {
        /// Its name, or a file; here is that of the current folder
        machine: String,
        /// Draw its network instead: switches, links and nodes, as an SVG file
        #[arg(long, value_name = "FILE", conflicts_with = "json")]
        picture: Option<PathBuf>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Measure this machine and write its description
    Calibrate {
        /// A folder on the file system to measure
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// Files are on the I/O servers that this file describes (pioscope serve writes it): measure them, too
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
        /// What this computer itself takes, beside the servers, is known from this description of it, and not measured again
        #[arg(long, value_name = "FILE", requires = "store")]
        like: Option<PathBuf>,
        /// The description to write; its name becomes the machine's [default: it is kept in your cache, and its name is here]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The launcher and its options, without a program: how your jobs are started [default: jobs of several sizes on this
        /// machine, if it has an MPI]
        #[arg(last = true, value_name = "LAUNCHER")]
        launch: Vec<OsString>,
    },
    /// Adjust a description to recorded runs, if that predicts runs better that were held back
    Fit(fit::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.what {
        What::List(JsonFlag { json }) => list(json)?,
        What::Show { machine, picture: None, json } => show(&machine, json)?,
        What::Show { machine, picture: Some(file), .. } => {
            let machine = find(&machine)?;
            let topology = topology(&machine)?;
            let picture = WholeFile::create(&file)?;
            fs::write(picture.place(), topology.svg())
                .with_context(|| format!("{}: cannot write", file.display()))?;
            picture.keep()?;
            note!("drew {topology} into {}", file.display());
        }
        What::Calibrate { folder, store, like, output, launch } => {
            // What is wrong comes out before anything is measured.
            let found = fs::metadata(&folder);
            let found = found.with_context(|| format!("{}: no such folder", folder.display()))?;
            ensure!(found.is_dir(), "{}: is no folder", folder.display());
            let folder = folder.canonicalize()?;
            let store = store.as_deref().map(apply::find_store).transpose()?;
            if let Some(store) = &store {
                StoreDescription::load(store)?;
            }
            let known = like.as_deref().map(Machine::load).transpose()?;
            let began = Instant::now();
            let is_kept = output.is_none();
            let output = output.map_or_else(|| kept_file(&folder, store.as_deref(), false), Ok)?;
            whole_file::check(&output)?;
            let working = Working::new("measuring");
            let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
            let launches = calibrate_job::launches(&launch, cores)?;
            let scratch = scratch_in(&folder)?;
            let job = match launches.last().filter(|_| !launch.is_empty()) {
                Some(launch) => {
                    working.now(&format!("passing messages under {}", launch.text()));
                    Some(calibrate_nodes::measure(launch, scratch.path())?)
                }
                None => None,
            };
            let many_nodes = job.as_ref().is_some_and(|job| job.nodes > 1);
            ensure!(
                job.as_ref().is_none_or(|job| job.is_shared),
                "{}: nodes do not see what others make there: name a folder that they share",
                folder.display()
            );
            let output = if is_kept && many_nodes {
                let output = kept_file(&folder, store.as_deref(), true)?;
                whole_file::check(&output)?;
                output
            } else {
                output
            };
            // Calls to files that are far away are measured in the job: here, those of the kernel alone. One node has its own
            // memory before them, if that takes what is written.
            let is_served = store.is_none() && !launches.is_empty() && calibrate_nodes::is_served(&folder);
            let is_far = is_served && (many_nodes || calibrate_nodes::makes_writers_wait(&folder)?);
            let near = if is_far { env::temp_dir() } else { folder.clone() };
            let near_scratch = is_far.then(|| scratch_in(&near)).transpose()?;
            let near_scratch = near_scratch.as_ref().unwrap_or(&scratch).path();
            let mut spreads = Spreads::default();
            let mut machine = match known {
                Some(known) => known,
                None => calibrate(near_scratch, &mut spreads, None, &mut |what| working.now(what))?,
            };
            if like.is_none() {
                // Not in the scratch folder, which goes; and the host by the name that traces have.
                machine.source = Machine::source_of(&pio_record::host(), &near);
            }
            let mut how = Machine::how_measured().to_owned();
            if let Some(job) = &job {
                job.describe(&mut machine, &mut spreads)?;
            }
            if many_nodes {
                how.push_str(calibrate_nodes::HOW_MEASURED);
            }
            if let Some(launch) = launches.last().filter(|_| is_far) {
                working.now(&format!("sharing files under {}", launch.text()));
                calibrate_shared::measure(&mut machine, &mut spreads, launch, &folder, scratch.path())?;
                how.push_str(calibrate_shared::HOW_MEASURED);
            }
            if let Some(store) = &store {
                working.now("writing to and reading from the I/O servers");
                calibrate_store::measure(&mut machine, &mut spreads, store)?;
                how.push_str(calibrate_store::HOW_MEASURED);
            }
            machine.name = match output.file_stem().filter(|_| !is_kept) {
                Some(name) => name.to_string_lossy().into_owned(),
                None => here::NAME.to_owned(),
            };
            let mut tell = |what: &str| working.now(what);
            let mut compared = Ok(Vec::new());
            if !launches.is_empty() {
                calibrate_job::measure(
                    &mut machine,
                    &mut spreads,
                    &launches,
                    scratch.path(),
                    store.as_deref(),
                    &mut tell,
                )?;
                how.push_str(calibrate_job::HOW_MEASURED);
                if like.is_none() && store.is_none() && !is_far {
                    let again = calibrate(near_scratch, &mut spreads, Some(&machine), &mut tell)?;
                    machine = Machine {
                        name: machine.name,
                        source: machine.source,
                        mpi_io: machine.mpi_io,
                        ..again
                    };
                    if let Some(job) = &job {
                        job.describe(&mut machine, &mut spreads)?;
                    }
                }
                let store = store.as_deref();
                compared =
                    calibrate_samples::compare(&machine, &launches, scratch.path(), store, began, &mut tell);
                benchmark::refuse_to_go_on()?;
            }
            drop(working);
            let whole = WholeFile::create(&output)?;
            write!(whole.file(), "{}", machine.to_toml_with(&how, &spreads))
                .with_context(|| format!("{}: cannot write", output.display()))?;
            whole.keep()?;
            note!("wrote {}", output.display());
            if let Some(warning) = host_memory::warning() {
                note!("{warning}");
            }
            if let Some(job) = job.filter(|job| job.processors != cores) {
                note!(
                    "the job has {} processors on a node, this host {cores}: what they take was measured on this \
                     host (to measure a node's, run this on one, in the job's script)",
                    job.processors
                );
            }
            // The description is good without.
            let pairs = compared.unwrap_or_else(|error| {
                note!("predictions were not compared with runs: {error:#}");
                Vec::new()
            });
            if !pairs.is_empty() {
                crate::print(&calibrate_samples::table(&machine, &pairs).text())?;
            }
            learned::begin_history(&output, pairs)?;
        }
        What::Fit(arguments) => fit::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A folder for all that measuring leaves in `folder`, which goes with it, also if that is interrupted.
fn scratch_in(folder: &Path) -> Result<PassingFolder> {
    PassingFolder::within(folder, ".pioscope-calibrate-")
        .with_context(|| format!("{}: cannot write in this folder", folder.display()))
}

fn list(json: bool) -> Result<()> {
    let built_in = |name: &str| Ok((name.to_owned(), Machine::built_in(name)?.source));
    let machines = Machine::built_in_names().map(built_in).collect::<Result<Vec<_>>>()?;
    let computer = Computer::cray_ymp()?;
    // One that cannot be read is listed, too: it is in the way.
    let source =
        |file: &Path| Machine::load(file).map_or_else(|error| error.to_string(), |machine| machine.source);
    let kept = here::kept().into_iter().map(|file| (here::NAME.to_owned(), source(&file), file));
    if json {
        let computers = [(computer.name, computer.source)];
        return json::print(&json::machines::Listed::of(machines, computers, kept));
    }
    let entry = |name: &str, said: &str| pio_report::entry(name, said, 20);
    let mut text: String = machines.iter().map(|(name, source)| entry(name, source)).collect();
    let use_of_computer = "(a computer with buffers: for `pioscope reproduce miller-katz`)";
    text.push_str(&entry(&computer.name, &format!("{} {use_of_computer}", computer.source)));
    for (name, source, file) in kept {
        text.push_str(&entry(&name, &format!("{source}: {}", file.display())));
    }
    crate::print(&text)
}

fn show(name: &str, JsonFlag { json }: JsonFlag) -> Result<()> {
    let machine = match Machine::find(name) {
        Err(MachineError::Computer { .. }) => {
            ensure!(
                !json,
                "{name}: no JSON of a computer with buffers (expected another machine, or no --json)"
            );
            return show_checked(name, |file, text| Computer::parse(file, text).map(drop));
        }
        Err(MachineError::IoNode { .. }) => {
            ensure!(!json, "{name}: no JSON of an I/O node alone (expected a whole machine, or no --json)");
            return show_checked(name, |file, text| IoNode::parse(file, text).map(drop));
        }
        _ => find(name)?,
    };
    check_network(name, &machine)?;
    if json {
        let topology = topology(&machine).ok().map(|topology| topology.to_string());
        return json::print(&json::machines::Shown::of(&machine, topology));
    }
    // As it stands: its comments say where the numbers are from.
    crate::print(&text(name)?)
}

/// Shows a description that is not of a machine, if it is a good one of its kind.
fn show_checked(name: &str, check: impl Fn(&str, &str) -> Result<(), MachineError>) -> Result<()> {
    let (file, text) = Machine::find_text(name)?;
    check(&file, &text)?;
    crate::print(&text)
}

/// Whether there can be such a network: what its keys say together, the reader of descriptions does not know.
fn check_network(name: &str, machine: &Machine) -> Result<()> {
    match of_machine(machine, 1) {
        Err(SimError::Network { source, .. }) => bail!("{name}: {source}"),
        Err(other) => bail!("{name}: {other}"),
        Ok(_) => Ok(()),
    }
}

fn topology(machine: &Machine) -> Result<Topology> {
    Ok(Topology::described(&machine.network.topology, machine.network_ends())?)
}

/// The text of the description that [`find`] finds.
fn text(name: &str) -> Result<String> {
    if name == here::NAME {
        let file = Here::of_folder(Path::new("."))?.file()?;
        return fs::read_to_string(&file).with_context(|| format!("{}: cannot read", file.display()));
    }
    Ok(Machine::find_text(name)?.1)
}

/// The machine of a name or file, or the current folder's place.
fn find(name: &str) -> Result<Machine> {
    if name == here::NAME { Here::of_folder(Path::new("."))?.load() } else { Ok(Machine::find(name)?) }
}

/// Where the description of a place is kept, measured on this host or on several nodes.
fn kept_file(folder: &Path, store: Option<&Path>, is_of_nodes: bool) -> Result<PathBuf> {
    let place = store.map_or_else(|| Here::of_folder(folder), Here::of_store)?;
    let file = place.file_to_make(is_of_nodes)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot create", folder.display()))?;
    }
    Ok(file)
}
