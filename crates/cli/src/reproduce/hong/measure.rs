//! The paper's benchmark, for real, on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use pio_mpi::Commands;
use pio_plan::{Hints, Strategy};
use pio_report::Table;
use pio_report::chart::{Figure, Point, Series};
use pio_studies::hong::thousands;

use crate::apply::How;
use crate::benchmark::{self, Compiled};
use crate::flags::whole;
use crate::median::median;
use crate::output::note;

/// The program, which is compiled by the user's own `mpicc`.
const BENCHMARK: &str = include_str!("../../../../../papers/hong-2006/benchmark.c");

#[derive(Debug, Args)]
pub(super) struct Measuring {
    /// Also run the paper's benchmark here, for real, in the same table layout
    #[arg(long)]
    measure: bool,
    /// What is measured: strategies, or mpi for the MPI's own
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "mpi,two-phase",
        requires = "measure"
    )]
    measure_strategy: Vec<Carrier>,
    /// Numbers of clients that are measured
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "2", requires = "measure", value_parser = whole::<u32>)]
    measure_clients: Vec<u32>,
    /// Numbers of segments of all clients [default: the paper's]
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', requires = "measure", value_parser = whole::<u64>)]
    measure_segments: Vec<u64>,
    /// Bytes of a segment
    #[arg(long, value_name = "BYTES", default_value_t = 4, requires = "measure", value_parser = whole::<u64>)]
    measure_piece: u64,
    /// Executions that a time is for
    #[arg(long, value_name = "COUNT", default_value_t = 100, requires = "measure", value_parser = whole::<u32>)]
    executions: u32,
    /// Runs; the median is printed
    #[arg(long, value_name = "COUNT", default_value_t = 5, requires = "measure", value_parser = whole::<u32>)]
    runs: u32,
    /// Put the file on the I/O servers that this description names, under every strategy (mpi keeps its own file)
    #[arg(long, value_name = "FILE", requires = "measure")]
    store: Option<PathBuf>,
    /// Folder for the file [default: a temporary one]
    #[arg(long, value_name = "FOLDER", requires = "measure")]
    folder: Option<PathBuf>,
}

/// Who carries out the collective calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    /// The MPI's own MPI-IO.
    Mpi,
    /// Ours.
    Strategy(Strategy),
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(name: &str) -> Result<Carrier, String> {
        match name {
            "mpi" => Ok(Carrier::Mpi),
            _ => name.parse().map(Carrier::Strategy).map_err(|error: String| format!("{error}, or mpi")),
        }
    }
}

impl Carrier {
    fn name(self) -> &'static str {
        match self {
            Carrier::Mpi => "mpi",
            Carrier::Strategy(strategy) => strategy.name(),
        }
    }
}

const MOST_CLIENTS: u32 = 1024;
const SEGMENTS: std::ops::RangeInclusive<u64> = 1..=1 << 31;
const PIECE_BYTES: std::ops::RangeInclusive<u64> = 1..=1 << 20;

impl Measuring {
    /// Whether anything is to be measured.
    pub(super) fn is_wanted(&self) -> bool {
        self.measure
    }

    /// Refuses what cannot be, before anything is run.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(clients) = self.measure_clients.iter().find(|count| !(1..=MOST_CLIENTS).contains(*count))
        {
            bail!("--measure-clients {clients}: expected 1 to {MOST_CLIENTS}");
        }
        if let Some(segments) = self.measure_segments.iter().find(|count| !SEGMENTS.contains(*count)) {
            bail!("--measure-segments {segments}: expected 1 to {}", SEGMENTS.end());
        }
        if !PIECE_BYTES.contains(&self.measure_piece) {
            bail!("--measure-piece {}: expected 1 to {} bytes", self.measure_piece, PIECE_BYTES.end());
        }
        for (name, count) in [("--executions", self.executions), ("--runs", self.runs)] {
            if !(1..=10_000).contains(&count) {
                bail!("{name} {count}: expected 1 to 10000");
            }
        }
        Ok(())
    }

    fn segments(&self) -> Vec<u64> {
        let paper = || (0..9).map(|doubled| 4000 << doubled).collect();
        if self.measure_segments.is_empty() { paper() } else { self.measure_segments.clone() }
    }
}

/// What was measured.
pub(super) struct Measured {
    mpi: String,
    carriers: Vec<Carrier>,
    piece_bytes: u64,
    executions: u32,
    runs: u32,
    cases: Vec<Case>,
    on_servers: bool,
}

/// One row of a table.
struct Case {
    clients: u32,
    segments: u64,
    /// For each carrier, the times of each run, ascending: writes, reads.
    times: Vec<[Vec<f64>; 2]>,
}

const WAYS: [&str; 2] = ["write", "read"];

/// Compiles the benchmark and runs it. The carriers take turns, so that what disturbs the machine disturbs all of them.
pub(super) fn run(arguments: &Measuring) -> Result<Measured> {
    let Commands { mpicc, mpiexec } = Commands::first().context("--measure needs an MPI")?;
    let temporary = match &arguments.folder {
        Some(folder) => {
            tempfile::tempdir_in(folder).with_context(|| format!("{}: cannot write", folder.display()))?
        }
        None => tempfile::tempdir().context("no temporary folder")?,
    };
    let absolute = |path: &PathBuf| {
        path.canonicalize()
            .with_context(|| format!("{}: cannot find the store's description", path.display()))
    };
    let store = arguments.store.as_ref().map(absolute).transpose()?;
    let bench = Bench {
        program: benchmark::compile(&mpicc, "benchmark", BENCHMARK, temporary.path())?,
        mpiexec,
        folder: temporary.path(),
        store,
        arguments,
    };
    let mut cases = Vec::new();
    for &clients in &arguments.measure_clients {
        for segments in arguments.segments() {
            note!("measuring {segments} segments, {clients} clients");
            cases.push(bench.case(clients, segments)?);
        }
    }
    Ok(Measured {
        mpi: version(&bench.mpiexec),
        carriers: arguments.measure_strategy.clone(),
        piece_bytes: arguments.measure_piece,
        executions: arguments.executions,
        runs: arguments.runs,
        cases,
        on_servers: bench.store.is_some(),
    })
}

struct Bench<'a> {
    program: Compiled,
    mpiexec: PathBuf,
    folder: &'a Path,
    store: Option<PathBuf>,
    arguments: &'a Measuring,
}

impl Bench<'_> {
    fn case(&self, clients: u32, segments: u64) -> Result<Case> {
        let carriers = &self.arguments.measure_strategy;
        let mut times = vec![[Vec::new(), Vec::new()]; carriers.len()];
        for _ in 0..self.arguments.runs {
            for (carrier, times) in carriers.iter().zip(&mut times) {
                let found = self.once(*carrier, clients, segments)?;
                for (times, seconds) in times.iter_mut().zip(found) {
                    times.push(seconds);
                }
            }
        }
        times.iter_mut().flatten().for_each(|times| times.sort_by(f64::total_cmp));
        Ok(Case { clients, segments, times })
    }

    /// Seconds of all executions: writes, reads.
    fn once(&self, carrier: Carrier, clients: u32, segments: u64) -> Result<[f64; 2]> {
        let results = self.folder.join("results");
        let numbers = [segments, self.arguments.measure_piece, u64::from(self.arguments.executions)]
            .map(|one| one.to_string());
        let mut command: Vec<OsString> =
            vec![self.mpiexec.clone().into(), "-n".into(), clients.to_string().into()];
        command.push(self.program.path.clone().into());
        command.extend(numbers.map(OsString::from));
        command.extend([self.data(carrier), results.clone().into_os_string()]);
        let how = match carrier {
            Carrier::Mpi => None,
            Carrier::Strategy(strategy) => {
                Some(How { strategy, hints: Hints::default(), store: self.store.clone(), machine: None })
            }
        };
        let text = benchmark::run(command, how, None, &results)?;
        read_results(&text).with_context(|| format!("the benchmark's results '{}'", text.trim()))
    }
}

impl Bench<'_> {
    /// The name of the file that is written and read.
    fn data(&self, carrier: Carrier) -> OsString {
        match (carrier, &self.store) {
            // The process's number tells runs apart that share a store.
            (Carrier::Strategy(_), Some(_)) => format!("pioscope:hong-{}", std::process::id()).into(),
            _ => self.folder.join("data").into_os_string(),
        }
    }
}

fn read_results(text: &str) -> Result<[f64; 2]> {
    let mut found = [0.0; 2];
    for (way, seconds) in WAYS.iter().zip(&mut found) {
        let line =
            text.lines().find_map(|line| line.strip_prefix(way)).context("expected a line for each way")?;
        *seconds = line.trim().parse().context("expected seconds")?;
    }
    Ok(found)
}

/// What the launcher says of itself, in a line.
fn version(mpiexec: &Path) -> String {
    let output = Command::new(mpiexec).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let line =
        text.lines().find(|line| line.contains("Version")).or(text.lines().next()).unwrap_or("unknown MPI");
    line.rsplit(':').next().unwrap_or(line).trim().to_owned()
}

impl Measured {
    /// The tables, laid out as the paper's.
    pub(super) fn text(&self) -> String {
        self.each().map(|(clients, way)| self.table(clients, way).text()).collect::<Vec<_>>().join("\n")
    }

    /// The same as figures, each with its file's name.
    pub(super) fn figures(&self) -> Vec<Figure> {
        self.each().map(|(clients, way)| self.figure(clients, way)).collect()
    }

    fn each(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let mut clients: Vec<u32> = self.cases.iter().map(|case| case.clients).collect();
        clients.dedup();
        WAYS.iter()
            .enumerate()
            .flat_map(move |(way, _)| clients.clone().into_iter().map(move |count| (count, way)))
    }

    fn of(&self, clients: u32) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.clients == clients)
    }

    fn title(&self, clients: u32, way: usize) -> String {
        format!("Measured here: {} of {}-byte segments, {clients} clients", WAYS[way], self.piece_bytes)
    }

    fn table(&self, clients: u32, way: usize) -> Table {
        let row = |case: &Case| {
            let mb = case.segments as f64 * self.piece_bytes as f64 * f64::from(self.executions) / 1e6;
            let mut cells = vec![
                thousands(case.segments),
                format!("{mb:.1}"),
                format!("{:.1}", mb * f64::from(clients - 1) / f64::from(clients)),
            ];
            let first = median(case.times[0][way].clone());
            for (index, times) in case.times.iter().enumerate() {
                let times = &times[way];
                cells.push(format!("{:.4}", median(times.clone())));
                cells.push(format!("{:.4} – {:.4}", times[0], times[times.len() - 1]));
                if index > 0 {
                    cells.push(format!("{:.1}", 100.0 * (1.0 - median(times.clone()) / first)));
                }
            }
            cells
        };
        let mut columns = vec!["count 10^3", ">file MB", ">resent MB"];
        for (index, carrier) in self.carriers.iter().enumerate() {
            columns.push(match carrier {
                Carrier::Mpi => ">mpi s",
                Carrier::Strategy(strategy) => heading(strategy.name()),
            });
            columns.push(">least – most");
            if index > 0 {
                columns.push(">improvement %");
            }
        }
        Table {
            title: self.title(clients, way),
            note: format!(
                "Seconds of {} executions: median, least and most of {} runs, taken in turn. Improvement: over {}. mpi: \
                 the MPI's own ({}). Strategies: on {}.",
                self.executions,
                self.runs,
                self.carriers.first().map_or("nothing", |carrier| carrier.name()),
                self.mpi,
                if self.on_servers { "I/O servers" } else { "the same file" }
            ),
            columns,
            rows: self.of(clients).map(row).collect(),
        }
    }

    fn figure(&self, clients: u32, way: usize) -> Figure {
        let series = |(index, carrier): (usize, &Carrier)| {
            let point = |case: &Case| {
                let times = &case.times[index][way];
                Point {
                    x: case.segments as f64,
                    y: median(times.clone()),
                    low: times[0],
                    high: times[times.len() - 1],
                }
            };
            Series { name: carrier.name().to_owned(), points: self.of(clients).map(point).collect() }
        };
        Figure {
            name: format!("measured-{}-{clients}", WAYS[way]),
            title: self.title(clients, way),
            x_label: "segments of all clients".to_owned(),
            y_label: format!("seconds, {} executions", self.executions),
            log_x: true,
            log_y: true,
            series: self.carriers.iter().enumerate().map(series).collect(),
        }
    }
}

/// A strategy's column: tables keep their headings' text.
fn heading(name: &'static str) -> &'static str {
    match name {
        "independent" => ">independent s",
        "sieving" => ">sieving s",
        "list" => ">list s",
        "two-phase" => ">two-phase s",
        "view-based" => ">view-based s",
        "ecio" => ">ecio s",
        _ => ">auto s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_or_refused() {
        assert_eq!(read_results("write 1.5\nread 0.25\n").unwrap(), [1.5, 0.25]);
        assert!(read_results("write 1.5\n").is_err());
        assert!(read_results("write x\nread 1").is_err());
    }

    #[test]
    fn names_of_carriers() {
        assert_eq!("mpi".parse(), Ok(Carrier::Mpi));
        assert_eq!("two-phase".parse(), Ok(Carrier::Strategy(Strategy::TwoPhase)));
        assert!("own".parse::<Carrier>().unwrap_err().ends_with("or mpi"));
    }
}
