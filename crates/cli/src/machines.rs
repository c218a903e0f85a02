//! `pioscope machines`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use pio_machine::Machine;
use pio_sim::calibrate;

use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope machines list
  pioscope machines show sp-argonne > my-machine.toml
  pioscope machines calibrate --folder /scratch/me -o here.toml")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Name the descriptions that come with Pioscope
    List,
    /// Print a description: a place to start one's own
    Show {
        /// Its name, or a file
        machine: String,
    },
    /// Measure this machine and write its description
    Calibrate {
        /// A folder on the file system to measure
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// The description to write; its name becomes the machine's
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.what {
        What::List => {
            let mut text = String::new();
            for name in Machine::built_in_names() {
                text.push_str(&format!("{name:20} {}\n", Machine::built_in(name)?.source));
            }
            crate::print(&text)?;
        }
        What::Show { machine } => {
            crate::print(&Machine::find(&machine)?.to_toml(""))?;
        }
        What::Calibrate { folder, output } => {
            let name = output.file_stem().map_or("here".into(), |stem| stem.to_string_lossy().into_owned());
            let progress = Progress::new("measuring this machine", 100);
            let calibration = calibrate::measure(&folder, &name, |percent| progress.set(percent))?;
            drop(progress);
            fs::write(&output, calibration.machine.to_toml(&calibration.comment))
                .with_context(|| format!("{}: cannot write", output.display()))?;
            eprintln!("pioscope: wrote {}", output.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
