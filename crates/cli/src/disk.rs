//! `pioscope disk`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pio_machine::disk::{BusBlock, Drive, diskspecs};
use pio_machine::{Bandwidth, Duration, parse_size};
use pio_report::Table;
use pio_report::chart::{self, Figure, Point, Series};
use pio_sim::disk::{Class, DiskTrace, DriveModel, Replayed, ServiceTimes, replay};

use crate::output::note;
use crate::progress::Working;
use crate::whole_file;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope disk --specs cheetah9LP.diskspecs --trace cheetah9LP.trace
  pioscope disk --specs cheetah9LP.diskspecs --trace cheetah9LP.trace --svg cheetah.svg
  pioscope disk --specs hp_c2247a.diskspecs --trace hp_c2247a.trace --bus 'read=3.01 MB/s,write=2.74 MB/s'")]
pub(crate) struct Arguments {
    /// The drive: a DiskSim 4.0 specification (it names its .model file, and that its .seek file)
    #[arg(long, value_name = "FILE")]
    specs: PathBuf,
    /// Its requests, one a line: R or W, Hit, Miss, Doub or Trip, first block, blocks, measured us, us to the next request
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// The bus between host and drive, as `5 MB/s`, or `read=5 MB/s,write=4 MB/s` [default: no slower than the drive; 10 MB/s
    /// if the drive leaves it to the bus]
    #[arg(long, value_name = "BANDWIDTH", value_parser = bus)]
    bus: Option<Bus>,
    /// Also draw both distributions
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.svg.as_deref().map_or(Ok(()), whole_file::check)?;
    let mut drive = diskspecs::load(&arguments.specs)?;
    let assumed = arguments.bus.is_none() && drive.bus_block == BusBlock::both(Duration::ZERO);
    let bus = arguments.bus.or_else(|| assumed.then(|| Bus { read: fast_scsi(), write: fast_scsi() }));
    if let Some(Bus { read, write }) = bus {
        drive = drive.on_bus(read, write);
    }
    let working = Working::new("replaying the requests");
    let trace = DiskTrace::load(&arguments.trace)?;
    let replayed = replay(&drive, &trace)?;
    drop(working);
    crate::print(&text(&drive, assumed, &replayed))?;
    if assumed {
        note!("the specification leaves the bus out; assumed {}: --bus says otherwise", fast_scsi());
    }
    if let Some(path) = &arguments.svg {
        fs::write(path, chart::svg(&figure(&drive, &replayed.classes[0])))
            .with_context(|| format!("{}: cannot write", path.display()))?;
        note!("wrote {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Fast SCSI-2, on eight wires: what a drive had whose specification says nothing.
fn fast_scsi() -> Bandwidth {
    Bandwidth::from_bytes_per_second(10_000_000)
}

/// How fast the bus is to the host, and from it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bus {
    read: Bandwidth,
    write: Bandwidth,
}

fn bus(text: &str) -> Result<Bus, String> {
    if !text.contains('=') {
        return bandwidth(text).map(|both| Bus { read: both, write: both });
    }
    let expected = || "expected read=BANDWIDTH,write=BANDWIDTH, each once".to_owned();
    let (mut read, mut write) = (None, None);
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(expected)?;
        let way = match key.trim() {
            "read" => &mut read,
            "write" => &mut write,
            _ => return Err(expected()),
        };
        if way.replace(bandwidth(value)?).is_some() {
            return Err(expected());
        }
    }
    Ok(Bus { read: read.ok_or_else(expected)?, write: write.ok_or_else(expected)? })
}

fn bandwidth(text: &str) -> Result<Bandwidth, String> {
    let size = text.trim().strip_suffix("/s").and_then(parse_size).filter(|size| *size > 0);
    size.map(Bandwidth::from_bytes_per_second).ok_or("expected a bandwidth such as \"10 MB/s\"".to_owned())
}

fn text(drive: &Drive, assumed_bus: bool, replayed: &Replayed) -> String {
    let blocks = DriveModel::new(drive).blocks();
    let mut text = format!(
        "{}: {} surfaces, {} cylinders, {blocks} blocks of {} B, {:.0} revolutions a minute\n\n",
        drive.name,
        drive.surfaces,
        drive.cylinders,
        drive.block_bytes,
        60.0 / drive.mechanics.period.seconds()
    );
    if drive.blocks != blocks {
        let known = drive.blocks;
        text.pop();
        text.push_str(&format!(
            "The specification says Block count = {known}, its layout has {blocks} blocks: using the layout.\n\n"
        ));
    }
    let table = Table {
        title: "Service times, measured and in the model (ms)".to_owned(),
        note: format!(
            "{} Distance: root mean square of the horizontal distance between the two distributions, and the same in \
             percent of the measured mean.",
            bus_note(drive, assumed_bus)
        ),
        columns: vec![
            "requests",
            ">count",
            ">mean",
            ">model",
            ">p50",
            ">model",
            ">p90",
            ">model",
            ">p99",
            ">model",
            ">distance",
            ">%",
        ],
        rows: replayed.classes.iter().map(row).collect(),
    };
    text.push_str(&table.text());
    if !drive.not_modelled.is_empty() {
        text.push_str("\nThe specification says, and the model leaves out:\n");
        for key in &drive.not_modelled {
            text.push_str(&format!("  {key}\n"));
        }
    }
    text
}

/// What the times of the model were computed with.
fn bus_note(drive: &Drive, assumed: bool) -> String {
    let BusBlock { read, write } = drive.bus_block;
    let ms = |time: Duration| format!("{:.5} ms", time.seconds() * 1e3);
    let why = if assumed { ", assumed, as the specification leaves it out" } else { "" };
    match read == write {
        true => format!("A block takes {} on the bus{why}.", ms(read)),
        false => {
            format!("A block takes {} on the bus for reads and {} for writes{why}.", ms(read), ms(write))
        }
    }
}

fn row(class: &Class) -> Vec<String> {
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let mut cells = vec![class.name.clone(), class.measured.times().len().to_string()];
    let pair = |of: &dyn Fn(&ServiceTimes) -> f64| [ms(of(&class.measured)), ms(of(&class.modelled))];
    cells.extend(pair(&ServiceTimes::mean_s));
    for part in [0.5, 0.9, 0.99] {
        cells.extend(pair(&|times| times.quantile_s(part)));
    }
    cells.push(ms(class.measured.distance_s(&class.modelled)));
    cells.push(format!("{:.1}", class.relative_distance() * 100.0));
    cells
}

/// Both distributions: of each time, how many requests took at most so long.
fn figure(drive: &Drive, class: &Class) -> Figure {
    const STEPS: u32 = 400;
    let series = |name: &str, times: &ServiceTimes| Series {
        name: name.to_owned(),
        points: (0..=STEPS)
            .map(|step| f64::from(step) / f64::from(STEPS))
            .map(|part| Point::exact(times.quantile_s(part) * 1e3, part * 100.0))
            .collect(),
    };
    Figure {
        title: format!("{}: service times of {} requests", drive.name, class.measured.times().len()),
        x_label: "service time, ms".to_owned(),
        y_label: "requests that took at most so long, %".to_owned(),
        series: vec![series("measured", &class.measured), series("model", &class.modelled)],
        ..Figure::default()
    }
}
