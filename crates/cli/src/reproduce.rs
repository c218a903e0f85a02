//! `pioscope reproduce`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use pio_studies::scoreboard::{io500, lustre_ior, mlperf_storage};

mod baylor;
mod coll;
mod hong;
mod miller_katz;
mod output;
mod scoreboard;
mod thakur;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope reproduce baylor --output figures
  pioscope reproduce baylor --figure 8 --io-nodes 8,16 --fb 57.25,14.32
  pioscope reproduce miller-katz
  pioscope reproduce coll --output figures
  pioscope reproduce coll --figure 7 --mapping clustered,dedicated --io-nodes 4
  pioscope reproduce hong --output figures
  pioscope reproduce hong --measure --measure-segments 4000,64000,1024000
  pioscope reproduce thakur
  pioscope reproduce thakur --program ./collapse   (also runs the small case for real, on 8 processes)
  pioscope reproduce io500 --data FOLDER           (runs of your own, with the columns of papers/scoreboards)")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, Subcommand)]
enum Study {
    /// Baylor, Benveniste and Hsu 1995: parallel I/O on a massively parallel machine, with other traffic and without
    Baylor(baylor::Arguments),
    /// Miller and Katz 1991: I/O of seven applications on a Cray Y-MP, and the buffers that would serve it
    MillerKatz(miller_katz::Arguments),
    /// Coll, Petrini, Frachtenberg and Hoisie 2003: I/O traffic and the placement of I/O nodes on QsNET
    Coll(coll::Arguments),
    /// Hong, You and Chung 2006: noncontiguous I/O over InfiniBand, two-phase against ECIO
    Hong(hong::Arguments),
    /// Thakur, Gropp and Lusk 1996: two-phase I/O of a production application on the IBM SP and the Intel Paragon
    Thakur(thakur::Arguments),
    /// IO500: many clients from few on the same servers, and the hard patterns from the easy ones
    Io500(scoreboard::Arguments),
    /// MLPerf Storage: another model's bandwidth on the same storage, and the accelerators that it feeds
    MlperfStorage(scoreboard::Arguments),
    /// IOR on a Lustre cluster: MPI-IO from POSIX; needs --data
    LustreIor(scoreboard::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.study {
        Study::Baylor(arguments) => baylor::run(arguments),
        Study::MillerKatz(arguments) => miller_katz::run(arguments),
        Study::Coll(arguments) => coll::run(arguments),
        Study::Hong(arguments) => hong::run(arguments),
        Study::Thakur(arguments) => thakur::run(arguments),
        Study::Io500(arguments) => scoreboard::run(&arguments, io500::scoreboard),
        Study::MlperfStorage(arguments) => scoreboard::run(&arguments, mlperf_storage::scoreboard),
        Study::LustreIor(arguments) => scoreboard::run(&arguments, lustre_ior::scoreboard),
    }
}
