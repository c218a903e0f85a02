//! What is kept of the runs that later ones are compared with: a file of JSON.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pio_report::units::things;
use serde::{Deserialize, Serialize};

use crate::condition::Numbers;
use crate::whole_file::WholeFile;

const SCHEMA: &str = "pioscope.baseline/1";

/// Runs of a command.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Baseline {
    schema: String,
    /// What was run.
    pub command: String,
    /// Where.
    pub host: String,
    /// What came of each run.
    pub runs: Vec<Numbers>,
}

impl Baseline {
    /// To be kept.
    pub(crate) fn new(command: String, host: String, runs: Vec<Numbers>) -> Baseline {
        Baseline { schema: SCHEMA.to_owned(), command, host, runs }
    }

    /// Reads one.
    ///
    /// # Errors
    /// If the file cannot be read, or is none that [`Baseline::write()`] wrote, of so many runs at least.
    pub(crate) fn read(path: &Path, least: usize) -> Result<Baseline> {
        #[derive(Deserialize)]
        struct Versioned {
            schema: String,
        }
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("{name}: no baseline (expected one that `pioscope compare --save` wrote)")
        })?;
        let versioned: Versioned = serde_json::from_str(&text)
            .with_context(|| format!("{name}: not a baseline (expected a JSON object with a schema)"))?;
        ensure!(versioned.schema == SCHEMA, "{name}: schema {} (expected {SCHEMA})", versioned.schema);
        let baseline: Baseline =
            serde_json::from_str(&text).with_context(|| format!("{name}: not a whole baseline"))?;
        let count = baseline.runs.len();
        ensure!(
            count >= least,
            "{name}: it holds {} (expected {least} or more)",
            things(count as u64, "run", "runs")
        );
        Ok(baseline)
    }

    /// Writes it, in place of what was there.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let whole = WholeFile::create(path)?;
        writeln!(whole.file(), "{}", serde_json::to_string_pretty(self)?)
            .with_context(|| format!("{}: cannot write", path.display()))?;
        whole.keep()
    }
}
