//! `pioscope reproduce thakur`: the study of Thakur, Gropp and Lusk (1996).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_explain::{Explanation, OperationTable, Sizes};
use pio_mpi::Commands;
use pio_plan::{Describe, Hints, Strategy};
use pio_report::Table;
use pio_studies::thakur;
use pio_trace::Op;

use crate::apply::{self, How};
use crate::explain;
use crate::output::note;
use crate::progress::Working;

/// Processes of the small case.
const PROCESSES: u32 = 8;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The application [default: apps/collapse, if it is built]
    #[arg(long, value_name = "COLLAPSE")]
    program: Option<PathBuf>,
    /// Only simulate; run nothing
    #[arg(long)]
    simulate_only: bool,
    /// Folder for the files of the run [default: a temporary one, removed afterwards]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    let mut text = String::new();
    let mut equal = true;
    if !arguments.simulate_only {
        let found = run_small_case(&arguments)?;
        let checks = checks(&found.operations.table);
        equal = checks.iter().all(|check| check.published == check.found);
        text.push_str(&checks_table(&checks).text());
        text.push('\n');
    }
    let working = Working::new("simulating");
    let rows = thakur::reproduce()?;
    drop(working);
    text.push_str(&thakur::table(&rows).text());
    crate::print(&text)?;
    if !equal {
        bail!("the run's counts are not the published ones");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the application for real, restarted, under two-phase with every process an aggregator, and explains the trace.
fn run_small_case(arguments: &Arguments) -> Result<Explanation> {
    let program = program(arguments.program.as_deref())?;
    let Commands { mpiexec, .. } =
        Commands::of_program(&program).context("no MPI to run it with (--simulate-only runs nothing)")?;
    let temporary = match &arguments.folder {
        Some(folder) => {
            tempfile::tempdir_in(folder).with_context(|| format!("{}: cannot write", folder.display()))?
        }
        None => tempfile::tempdir().context("no temporary folder")?,
    };
    let folder = temporary.path();
    let launch = |words: &[&OsStr]| -> Vec<OsString> {
        let ranks = PROCESSES.to_string();
        let start = [mpiexec.as_os_str(), OsStr::new("-n"), OsStr::new(&ranks), program.as_os_str()];
        start.iter().chain(words).map(|word| (*word).to_owned()).collect()
    };
    let mesh = [OsStr::new("--mesh"), OsStr::new("128x128x64"), OsStr::new("--iterations")];

    note!("making the restart file");
    let start = folder.join("start");
    let initial = [OsStr::new("0"), OsStr::new("--dump-initial"), OsStr::new("--output"), start.as_os_str()];
    let words = launch(&[&mesh[..], &initial].concat());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).envs(pio_mpi::any_ranks());
    let working = Working::new("running");
    if !pio_record::run_to_end(&mut command)?.success() {
        bail!("{}: could not make the restart file", program.display());
    }
    drop(working);

    note!("running 20 iterations on {PROCESSES} processes, which can take a minute or two");
    let (restart, output, trace) = (start.join("restart.dat"), folder.join("run"), folder.join("run.pio"));
    let rest = ["20", "--dump-every", "5", "--restart"].map(OsStr::new);
    let command = launch(
        &[&mesh[..], &rest, &[restart.as_os_str(), OsStr::new("--output"), output.as_os_str()]].concat(),
    );
    let hints = Hints {
        cb_nodes: Some(PROCESSES),
        describe: Some(Describe::All),
        ind_wr_buffer_size: Some(1),
        ..Hints::default()
    };
    let working = Working::new("running");
    apply::run_own(
        How { strategy: Strategy::TwoPhase, hints, store: None, machine: None },
        command,
        Some(trace.clone()),
    )?;
    drop(working);
    explain::explain(&explain::open(&trace)?)
}

/// The application: as given, or where this tree builds it.
fn program(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        let found = path.is_file().then(|| path.to_owned()).or_else(|| pio_mpi::on_path(path));
        return found
            .with_context(|| format!("{}: no such program (expected collapse, built)", path.display()));
    }
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let built = own.ancestors().nth(3).map(|root| root.join("apps/collapse/build/collapse"));
    built.filter(|path| path.is_file()).or_else(|| pio_mpi::on_path("collapse")).context(
        "collapse is not built: build apps/collapse and name it with --program (--simulate-only runs nothing)",
    )
}

/// A count that must be the published one.
struct Check {
    what: String,
    published: u64,
    found: u64,
}

fn checks(table: &OperationTable) -> Vec<Check> {
    let mut checks: Vec<Check> =
        [(Op::Open, 200), (Op::Close, 200), (Op::Read, 49), (Op::Write, 536), (Op::Communicate, 5608)]
            .map(|(op, published)| Check {
                what: op.name().to_owned(),
                published,
                found: table.tally(op).count,
            })
            .into();
    for (what, sizes, size, published) in [
        ("reads", &table.read_sizes, 24, 1),
        ("reads", &table.read_sizes, 128 << 10, 0),
        ("reads", &table.read_sizes, 512 << 10, 48),
        ("writes", &table.write_sizes, 24, 24),
        ("writes", &table.write_sizes, 128 << 10, 128),
        ("writes", &table.write_sizes, 512 << 10, 384),
    ] {
        let name = if size == 24 { "24 B".to_owned() } else { format!("{} KB", size >> 10) };
        checks.push(Check { what: format!("{what} of {name}"), published, found: requests_of(sizes, size) });
    }
    checks
}

fn requests_of(sizes: &Sizes, size: u64) -> u64 {
    let classes = sizes.classes();
    let class = classes.iter().find(|class| (class.from_bytes, class.to_bytes) == (size, size));
    class.map_or(0, |class| class.amount.count)
}

fn checks_table(checks: &[Check]) -> Table {
    let verdict = |check: &Check| if check.found == check.published { "equal" } else { "DIFFERENT" };
    let row = |check: &Check| {
        vec![
            check.what.clone(),
            check.published.to_string(),
            check.found.to_string(),
            verdict(check).to_owned(),
        ]
    };
    Table {
        title: "The small case, run here (Tables 1 and 2, counts)".to_owned(),
        note: "128 x 128 x 64 mesh on 8 processes, 20 iterations, dumps every 5, restarted first; two-phase, every \
               process an aggregator. The paper's 1225 seeks have no counterpart, since MPI-IO gives each request its \
               offset. Acknowledgements, by which a rank learns that its data are in the file, are no part of the \
               published protocol and are not counted."
            .to_owned(),
        columns: vec!["count", ">published", ">here", ""],
        rows: checks.iter().map(row).collect(),
    }
}
