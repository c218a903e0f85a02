//! `pioscope reproduce hong`: the study of Hong, You and Chung (2006).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_machine::Machine;
use pio_report::chart;
use pio_studies::hong::{self, Options, Other};

use crate::progress::Working;

mod figures;
mod measure;
mod tables;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Clients, of an experiment that the paper did not make [default: 4]
    #[arg(long, value_name = "COUNT")]
    clients: Option<u32>,
    /// Servers of such an experiment [default: 1]
    #[arg(long, value_name = "COUNT")]
    servers: Option<u32>,
    /// Bytes of a segment in such an experiment [default: 4]
    #[arg(long, value_name = "BYTES")]
    piece: Option<u64>,
    /// The cluster that is simulated: a name or a file
    #[arg(long, value_name = "MACHINE", default_value = "infiniband-nthu")]
    machine: String,
    /// Folder for the figures, as SVG files [default: none are written]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    measure: measure::Measuring,
}

const MOST_CLIENTS: u32 = 4096;
const MOST_PIECE_BYTES: u64 = 1 << 20;

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.output.as_deref().map_or(Ok(()), crate::whole_file::check_folder)?;
    let other = other(&arguments)?;
    arguments.measure.check()?;
    let machine = Machine::find(&arguments.machine)?;
    let working = Working::new("simulating");
    let study = hong::reproduce(&Options { machine, other })?;
    drop(working);
    let mut text = tables::text(&study);
    text.push_str(&format!(
        "\n  machine {} · nothing is random · pioscope {}\n",
        arguments.machine,
        env!("CARGO_PKG_VERSION")
    ));
    crate::print(&text)?;
    if let Some(folder) = &arguments.output {
        write(folder, &study.tables.iter().map(figures::of_table).collect::<Vec<_>>())?;
    }
    if arguments.measure.is_wanted() {
        let working = Working::new("running the benchmark");
        let measured = measure::run(&arguments.measure)?;
        drop(working);
        crate::print(&format!("\n{}", measured.text()))?;
        if let Some(folder) = &arguments.output {
            write(folder, &measured.figures())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn other(arguments: &Arguments) -> Result<Option<Other>> {
    let Arguments { clients, servers, piece, .. } = arguments;
    if clients.is_none() && servers.is_none() && piece.is_none() {
        return Ok(None);
    }
    let other = Other {
        clients: clients.unwrap_or(4),
        servers: servers.unwrap_or(1),
        piece_bytes: piece.unwrap_or(4),
    };
    if !(1..=MOST_CLIENTS).contains(&other.clients) {
        bail!("--clients {}: expected 1 to {MOST_CLIENTS}", other.clients);
    }
    if !(1..=MOST_CLIENTS).contains(&other.servers) {
        bail!("--servers {}: expected 1 to {MOST_CLIENTS}", other.servers);
    }
    if !(1..=MOST_PIECE_BYTES).contains(&other.piece_bytes) {
        bail!("--piece {}: expected 1 to {MOST_PIECE_BYTES} bytes", other.piece_bytes);
    }
    Ok(Some(other))
}

fn write(folder: &Path, figures: &[(String, chart::Figure)]) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    for (name, figure) in figures {
        let path = folder.join(format!("{name}.svg"));
        std::fs::write(&path, chart::svg(figure))
            .with_context(|| format!("{}: cannot write", path.display()))?;
    }
    Ok(())
}
