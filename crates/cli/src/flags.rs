//! Flags that several commands have: one definition of each.

use std::path::PathBuf;

use clap::Args;

/// Output for programs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct JsonFlag {
    /// Print one JSON object in place of the text; docs/json.md lists its fields
    #[arg(long)]
    pub json: bool,
}

/// The report as a page.
#[derive(Clone, Debug, Args)]
pub(crate) struct HtmlFlag {
    /// Also write the report as one HTML file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Which MPI a program is of.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MpiccFlag {
    /// The MPI compiler of the program's MPI [default: that of the MPI library that the program loads, else the launcher's,
    /// else the first on the PATH]
    #[arg(long, value_name = "PATH")]
    pub mpicc: Option<PathBuf>,
}

/// Random numbers that come again.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SeedFlag {
    /// Seed of what is random in a generated workload or a network
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
