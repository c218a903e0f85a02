//! Flags that several commands have: one definition of each.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow};
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
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>)]
    pub seed: u64,
}

/// A number of things of which there must be one.
pub(crate) fn count(text: &str) -> Result<NonZeroU32> {
    text.parse().map_err(|_| anyhow!("expected a whole number from 1 to {}", u32::MAX))
}

/// A number that may be zero, of an unsigned type.
pub(crate) fn whole<N: FromStr>(text: &str) -> Result<N> {
    let most = u64::MAX >> (u64::BITS as usize - 8 * size_of::<N>());
    text.parse().map_err(|_| anyhow!("expected a whole number from 0 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_begin_with_zero() {
        assert_eq!(whole::<u64>("0").unwrap(), 0);
        for wrong in ["-1", "1.5", "18446744073709551616", "two", ""] {
            let message = whole::<u64>(wrong).unwrap_err().to_string();
            assert_eq!(message, "expected a whole number from 0 to 18446744073709551615", "{wrong}");
        }
        let message = whole::<u32>("4294967296").unwrap_err().to_string();
        assert_eq!(message, "expected a whole number from 0 to 4294967295");
    }

    #[test]
    fn counts_begin_with_one() {
        assert_eq!(count("3").unwrap().get(), 3);
        for wrong in ["0", "-1", "1.5", "4294967296", "two", ""] {
            let message = count(wrong).unwrap_err().to_string();
            assert_eq!(message, "expected a whole number from 1 to 4294967295", "{wrong}");
        }
    }
}
