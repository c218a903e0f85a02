//! `pioscope reproduce hong`: the study of Hong, You and Chung (2006).

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use pio_machine::Machine;
use pio_studies::hong::{self, Options, Other};

use super::output::{Output, footer};
use crate::flags::whole;
use crate::progress::Working;

mod measure;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Clients, at least 2, of an experiment that the paper did not make [default: 4]
    #[arg(long, value_name = "COUNT", value_parser = whole::<u32>)]
    clients: Option<u32>,
    /// Servers of such an experiment [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = whole::<u32>)]
    servers: Option<u32>,
    /// Bytes of a segment in such an experiment [default: 4]
    #[arg(long, value_name = "BYTES", value_parser = whole::<u64>)]
    piece: Option<u64>,
    /// The cluster that is simulated: a name or a file
    #[arg(long, value_name = "MACHINE", default_value = "infiniband-nthu")]
    machine: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    measure: measure::Measuring,
}

const MOST_CLIENTS: u32 = 4096;
const MOST_PIECE_BYTES: u64 = 1 << 20;

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.output.check()?;
    let other = other(&arguments)?;
    arguments.measure.check()?;
    let machine = Machine::find(&arguments.machine)?;
    let working = Working::new("simulating");
    let study = hong::reproduce(&Options { machine, other })?;
    drop(working);
    let mut text = hong::text(&study);
    text.push_str(&footer(&format!("machine {}", arguments.machine), None));
    crate::print(&text)?;
    arguments.output.write(&study.tables.iter().map(hong::figure).collect::<Vec<_>>())?;
    if arguments.measure.is_wanted() {
        let working = Working::new("running the benchmark");
        let measured = measure::run(&arguments.measure)?;
        drop(working);
        crate::print(&format!("\n{}", measured.text()))?;
        arguments.output.write(&measured.figures())?;
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
    if !(2..=MOST_CLIENTS).contains(&other.clients) {
        bail!(
            "--clients {}: expected 2 to {MOST_CLIENTS} (the study is of noncontiguous segments, and those of one client \
             alone are contiguous)",
            other.clients
        );
    }
    if !(1..=MOST_CLIENTS).contains(&other.servers) {
        bail!("--servers {}: expected 1 to {MOST_CLIENTS}", other.servers);
    }
    if !(1..=MOST_PIECE_BYTES).contains(&other.piece_bytes) {
        bail!("--piece {}: expected 1 to {MOST_PIECE_BYTES} bytes", other.piece_bytes);
    }
    Ok(Some(other))
}
