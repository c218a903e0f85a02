//! What the studies' commands have in common: the folder for the figures, and the last line.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use pio_report::chart::{self, Figure};

#[derive(Debug, Args)]
pub(super) struct Output {
    /// Folder for the figures, as SVG files [default: none are written]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Output {
    /// Refuses a folder that cannot be, before anything is simulated.
    pub(super) fn check(&self) -> Result<()> {
        self.output.as_deref().map_or(Ok(()), crate::whole_file::check_folder)
    }

    /// Writes the figures there, if there is such a folder.
    pub(super) fn write(&self, figures: &[Figure]) -> Result<()> {
        let Some(folder) = &self.output else { return Ok(()) };
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        for figure in figures {
            let path = folder.join(format!("{}.svg", figure.name));
            std::fs::write(&path, chart::svg(figure))
                .with_context(|| format!("{}: cannot write", path.display()))?;
        }
        Ok(())
    }
}

/// The last line: by what the numbers came about.
pub(super) fn footer(what: &str, seed: Option<u64>) -> String {
    let chance = seed.map_or_else(|| "nothing is random".to_owned(), |seed| format!("seed {seed}"));
    format!("\n  {what} · {chance} · pioscope {}\n", env!("CARGO_PKG_VERSION"))
}
