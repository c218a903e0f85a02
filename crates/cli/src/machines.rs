//! `pioscope machines`.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use pio_machine::{Computer, Machine, calibrate};
use pio_sim::network::topology::Topology;
use pio_store::client::Store;

use crate::calibrate_job;
use crate::calibrate_store;
use crate::progress::Working;
use crate::whole_file;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope machines list
  pioscope machines show sp-argonne > my-machine.toml
  pioscope machines show my-machine.toml --picture network.svg
  pioscope machines calibrate --folder /scratch/me -o here.toml
  pioscope machines calibrate --folder /scratch/me -o here.toml -- mpiexec -n 16
  pioscope machines calibrate --store /scratch/me/store/store.toml -o servers.toml")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Name the descriptions that come with Pioscope
    List,
    /// Print a description, to start your own from
    Show {
        /// Its name, or a file
        machine: String,
        /// Draw its network instead: switches, links and nodes, as an SVG file
        #[arg(long, value_name = "FILE")]
        picture: Option<PathBuf>,
    },
    /// Measure this machine and write its description
    Calibrate {
        /// A folder on the file system to measure
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// Files are on the I/O servers that this file describes (pioscope serve writes it): measure them, too
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
        /// The description to write; its name becomes the machine's
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// The launcher and its options, without a program: how your jobs are started [default: jobs of several sizes on this
        /// machine, if it has an MPI]
        #[arg(last = true, value_name = "LAUNCHER")]
        launch: Vec<OsString>,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.what {
        What::List => {
            let mut text = String::new();
            for name in Machine::built_in_names() {
                text.push_str(&format!("{name:20} {}\n", Machine::built_in(name)?.source));
            }
            let computer = Computer::cray_ymp()?;
            text.push_str(&format!(
                "{:20} {} (a computer with buffers: for `pioscope reproduce miller-katz`)\n",
                computer.name, computer.source
            ));
            crate::print(&text)?;
        }
        What::Show { machine, picture: None } if machine == Computer::cray_ymp()?.name => {
            crate::print(Computer::CRAY_YMP.1)?;
        }
        What::Show { machine, picture: None } => {
            crate::print(&Machine::find(&machine)?.to_toml(""))?;
        }
        What::Show { machine, picture: Some(file) } => {
            let machine = Machine::find(&machine)?;
            let topology = Topology::described(&machine.network.topology, machine.all_nodes())?;
            fs::write(&file, topology.svg()).with_context(|| format!("{}: cannot write", file.display()))?;
            eprintln!("pioscope: drew {topology} into {}", file.display());
        }
        What::Calibrate { folder, store, output, launch } => {
            whole_file::check(&output)?;
            let working = Working::new("measuring");
            let mut machine = calibrate(&folder, &mut |what| working.now(what))?;
            let mut how = Machine::how_measured().to_owned();
            if let Some(store) = &store {
                working.now("writing to and reading from the I/O servers");
                calibrate_store::measure(&mut machine, &Store::connect(store)?)?;
                how.push_str(calibrate_store::HOW_MEASURED);
            }
            let store = store.map(|store| store.canonicalize()).transpose()?;
            let mut tell = |what: &str| working.now(what);
            if calibrate_job::measure(&mut machine, &launch, &folder, store.as_deref(), &mut tell)? {
                how.push_str(calibrate_job::HOW_MEASURED);
            }
            drop(working);
            if let Some(name) = output.file_stem() {
                machine.name = name.to_string_lossy().into_owned();
            }
            fs::write(&output, machine.to_toml(&how))
                .with_context(|| format!("{}: cannot write", output.display()))?;
            eprintln!("pioscope: wrote {}", output.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
