//! The `pioscope` command: record, explain, predict and apply, over one description of I/O.
//!
//! A module a verb; each has its arguments and a `run`. What a verb does lives in the crates below.

mod advise;
mod apply;
mod benchmark;
mod calibrate_job;
mod calibrate_nodes;
mod calibrate_samples;
mod calibrate_shared;
mod calibrate_store;
mod commands;
mod compare;
mod condition;
mod convert;
mod diff;
mod disk;
mod explain;
mod fit;
mod flags;
mod gain;
mod here;
mod host_memory;
mod json;
mod learned;
mod machines;
mod measured;
mod median;
mod mpi;
mod output;
mod own_way;
mod predict;
mod progress;
mod record;
mod recorded_calls;
mod reproduce;
mod serve;
mod store;
mod sweep;
mod trace_name;
mod whole_file;
mod workload;
mod workload_traffic;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

pub use gain::predict_gains;
pub use here::{machine_of_folder, machine_of_store, machine_of_trace};
use output::print;

/// Where does my I/O time go, and what would fix it?
#[derive(Debug, Parser)]
#[command(name = "pioscope", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    /// Say only errors and warnings on standard error: no notes, no progress
    #[arg(short, long, global = true, display_order = 1000)]
    quiet: bool,
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  pioscope record -o run.pio -- mpiexec -n 8 ./collapse --iterations 20
  pioscope explain run.pio --html report.html
  pioscope predict run.pio --machine sp-argonne --strategy independent,two-phase
  pioscope apply --strategy two-phase -- mpiexec -n 8 ./collapse --iterations 20
  pioscope advise run.pio --no-run --machine here.toml";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a program, unmodified, and record every I/O call it makes
    Record(record::Arguments),
    /// Say what a recorded program does: tables, figures, a report
    Explain(explain::Arguments),
    /// Compare two runs: what changed, and what it costs now
    Diff(diff::Arguments),
    /// Run a command several times, and compare its I/O with a kept baseline
    Compare(compare::Arguments),
    /// Say how long a recorded program's I/O would take on other machines, under other strategies
    Predict(predict::Arguments),
    /// Run an MPI program, unmodified, with its MPI-IO carried out under a strategy
    Apply(apply::Arguments),
    /// Find the strategy and hints that save a program most I/O time, by prediction and by trying them
    Advise(advise::Arguments),
    /// Start I/O servers that keep files striped over their folders
    Serve(serve::Arguments),
    /// List, copy, remove and check files on I/O servers
    Store(store::Arguments),
    /// Repeat a published study, and print what was published beside what is computed
    Reproduce(reproduce::Arguments),
    /// Write a trace in another format: Parquet, or JSON for Chrome and Perfetto
    Convert(convert::Arguments),
    /// Replay a disk drive's measured requests, and compare its service times with the model's
    Disk(disk::Arguments),
    /// List generated workloads, and write one as a trace
    Workload(workload::Arguments),
    /// List, show and measure machine descriptions
    Machines(machines::Arguments),
    /// Compile, for a package, what record and apply load into programs of an MPI
    Shims(mpi::Arguments),
    /// Print what a shell needs to complete this command's words
    Completions(commands::CompletionsArguments),
    /// Write manual pages of this command
    Manual(commands::ManualArguments),
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    pio_record::outlive_file_size_limit();
    // As `parse` does it, with help in groups.
    let arguments = Arguments::from_arg_matches(&commands::command().get_matches())
        .unwrap_or_else(|error| error.format(&mut commands::command()).exit());
    if arguments.quiet {
        output::be_quiet();
    }
    output::find_screen();
    let outcome = match arguments.verb {
        Verb::Record(arguments) => record::run(arguments),
        Verb::Explain(arguments) => explain::run(arguments),
        Verb::Diff(arguments) => diff::run(arguments),
        Verb::Compare(arguments) => compare::run(arguments),
        Verb::Predict(arguments) => predict::run(arguments),
        Verb::Apply(arguments) => apply::run(arguments),
        Verb::Advise(arguments) => advise::run(arguments),
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Store(arguments) => store::run(arguments),
        Verb::Reproduce(arguments) => reproduce::run(arguments),
        Verb::Convert(arguments) => convert::run(arguments),
        Verb::Disk(arguments) => disk::run(arguments),
        Verb::Workload(arguments) => workload::run(arguments),
        Verb::Machines(arguments) => machines::run(arguments),
        Verb::Shims(arguments) => mpi::run(arguments),
        Verb::Completions(arguments) => commands::completions(arguments),
        Verb::Manual(arguments) => commands::manual(arguments),
    };
    match outcome {
        Ok(code) => code,
        // Whoever reads our output has seen enough: that is no error.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, each once: some errors already say their cause in their own words.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if cause.strip_prefix(&line).is_some_and(|rest| rest.starts_with(": ")) {
            // It names the file itself.
            line = cause;
        } else if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}

/// Whether nobody takes what is printed: a server that closes its connection, say, breaks a pipe, too.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = error.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe);
    broken && error.is::<output::NotPrinted>()
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use pio_store::StoreError;

    use super::*;

    /// A copy whose server was gone ended without a word, as if it had been made.
    #[test]
    fn a_server_that_is_gone_is_no_closed_output() {
        let closed = || io::Error::from(ErrorKind::BrokenPipe);
        let printing = Err::<(), _>(closed()).context(output::NotPrinted).unwrap_err();
        assert!(is_closed_pipe(&printing) && is_closed_pipe(&printing.context("of all")));
        let (address, source) = ("node1:4000".to_owned(), closed());
        let gone = StoreError::Unreachable { server: 1, address, seconds: 60, source };
        assert!(!is_closed_pipe(&gone.into()) && !is_closed_pipe(&closed().into()));
    }
}
