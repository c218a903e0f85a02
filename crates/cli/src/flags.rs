//! Flags that several commands have: one definition of each.

use clap::Args;

/// Output for programs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct JsonFlag {
    /// Print one JSON object in place of the text; docs/json.md lists its fields
    #[arg(long)]
    pub json: bool,
}
