//! IOR on one Lustre cluster: rates of MPI-IO from those of POSIX.
//!
//! One node of four ranks reads and writes; files lie on one to four of the cluster's targets, and the rate is the same.
//! So one thing limits all of them, and it is what all share: the client, its link, or what stands before the targets.
//! Then the rate at which data reach the targets is one number for all runs that share a limit, whatever the interface, the
//! transfer and the number of files. Which runs do was chosen with this cluster's runs in view:
//!
//! - **sustained writes** (to the end of fsync: until then the page cache holds a part) of runs that write in order, at
//!   random by whole MiB, or through collective calls, which hand the file system whole pieces in order.
//! - **interleaved writes**: 47,008 B each, ranks in turn, without collective calls: each write takes the lock of a piece
//!   of the file away from another rank, and waits for the data under it to be written. One number too, from other such runs.
//! - **hard reads** of 47,008 B, of more than the page cache holds, and **random reads**, of which it holds a part.
//!
//! Easy reads come from the page cache, and are not predicted: how much of it was free was not measured. Each number is the
//! median over the POSIX runs, without the run that is predicted; runs by MPI-IO are never fitted to while one of POSIX is
//! there. All is of one cluster: the numbers say nothing of another.

use std::path::PathBuf;

use serde::Deserialize;

use super::ScoreError;
use super::data::{self, Cells, Column, Row, usable};
use super::leave_out::{Case, median, predict_each};
use super::show::{Line, Scoreboard, Section};

#[derive(Clone, Debug, Deserialize)]
struct Run {
    run: String,
    workload: String,
    api: String,
    files: String,
    collective_used: String,
    #[serde(rename = "transfer_B")]
    transfer_bytes: Option<f64>,
    #[serde(rename = "write_and_sync_MB_s")]
    write_mb_per_s: Option<f64>,
    #[serde(rename = "read_MB_s")]
    read_mb_per_s: Option<f64>,
}

impl Row for Run {
    const COLUMNS: &'static [Column] = &[
        Column("run", Cells::Text),
        Column("workload", Cells::Text),
        Column("api", Cells::Text),
        Column("files", Cells::Text),
        Column("collective_used", Cells::Flag),
        Column("transfer_B", Cells::Above0),
        Column("write_and_sync_MB_s", Cells::Above0),
        Column("read_MB_s", Cells::Above0),
    ];

    fn left_out(&self) -> Option<String> {
        let has_rate = Limit::ALL.into_iter().any(|limit| self.rate(limit).is_some());
        (!has_rate).then(|| "without a rate that is predicted".to_owned())
    }
}

/// What is one number on this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    SustainedWrite,
    InterleavedWrite,
    HardRead,
    RandomRead,
}

impl Limit {
    const ALL: [Limit; 4] =
        [Limit::SustainedWrite, Limit::InterleavedWrite, Limit::HardRead, Limit::RandomRead];

    fn name(self) -> &'static str {
        match self {
            Limit::SustainedWrite => "sustained writes, MB/s",
            Limit::InterleavedWrite => "interleaved writes of 47,008 B, MB/s",
            Limit::HardRead => "hard reads, MB/s",
            Limit::RandomRead => "random reads, MB/s",
        }
    }

    /// The difference of the one pair of runs with the same set-up, parts of the larger: both are of IOR hard.
    fn noise(self) -> Option<f64> {
        match self {
            Limit::InterleavedWrite => Some(0.46),
            Limit::HardRead => Some(0.007),
            Limit::SustainedWrite | Limit::RandomRead => None,
        }
    }
}

impl Run {
    fn is_collective(&self) -> bool {
        self.collective_used == "1"
    }

    /// Its rate under a limit, MB/s, if that is its limit.
    fn rate(&self, limit: Limit) -> Option<f64> {
        let is_hard = self.workload == "ior-hard";
        match limit {
            Limit::InterleavedWrite if is_hard && !self.is_collective() => usable(self.write_mb_per_s),
            Limit::SustainedWrite if !is_hard || self.is_collective() => usable(self.write_mb_per_s),
            Limit::HardRead if is_hard => usable(self.read_mb_per_s),
            Limit::RandomRead if self.workload.starts_with("ior-rnd") => usable(self.read_mb_per_s),
            _ => None,
        }
    }

    fn interface(&self) -> &str {
        if self.is_collective() { "MPI-IO, collective" } else { &self.api }
    }
}

/// A run whose rate is predicted; it is its own family, for there is one system.
struct Rated<'a> {
    run: &'a Run,
    mb_per_s: f64,
}

impl Case for Rated<'_> {
    fn family(&self) -> &str {
        &self.run.run
    }

    fn measured(&self) -> f64 {
        self.mb_per_s
    }
}

/// The scoreboard of the runs in the tables `runs.csv` of these folders; what is to be predicted and what to fit to may be
/// in different ones.
///
/// # Errors
/// If there are no folders (the data have no licence, so none are carried), a table cannot be read, or nothing in them can be
/// predicted.
pub fn scoreboard(folders: &[PathBuf]) -> Result<Scoreboard, ScoreError> {
    if folders.is_empty() {
        return Err(ScoreError::NotCarried("lustre-ior"));
    }
    let table = data::of_folders::<Run>(folders, "lustre-ior", "runs.csv")?;
    let left_out = table.left_out_text();
    let score = Scoreboard {
        title: "IOR on one Lustre cluster: predicted from other runs, by POSIX".to_owned(),
        note: format!(
            "Each run is predicted from other runs of the same cluster. Reads from the page cache are left out. {left_out}"
        ),
        sections: Limit::ALL.map(|limit| section(limit, &table.rows)).into(),
    };
    score.with_cases("two runs with the same limit are needed", left_out)
}

fn section(limit: Limit, runs: &[Run]) -> Section {
    let cases: Vec<Rated<'_>> =
        runs.iter().filter_map(|run| Some(Rated { run, mb_per_s: run.rate(limit)? })).collect();
    let fit = |without: &[&str]| {
        let seen = || cases.iter().filter(|case| !without.contains(&case.family()));
        let posix = median(seen().filter(|case| case.run.api == "POSIX").map(Case::measured));
        if posix.is_nan() { median(seen().map(Case::measured)) } else { posix }
    };
    let predicted = predict_each(&cases, &[], fit, |rate, _| *rate);
    let line = |(case, predicted): (&Rated<'_>, _)| {
        let Run { workload, files, transfer_bytes, .. } = case.run;
        let system = format!("{workload}, {}, {files}", case.run.interface());
        let what = format!("transfers of {} B", transfer_bytes.unwrap_or_default());
        Line::new(&system, what, case.mb_per_s, predicted, String::new())
    };
    let lines = cases.iter().zip(predicted).map(line).filter(|line| line.predicted.is_finite()).collect();
    Section {
        name: limit.name().to_owned(),
        noise: limit.noise(),
        simple: Vec::new(),
        lines,
        parts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADINGS: &str =
        "run,workload,api,files,collective_used,transfer_B,write_and_sync_MB_s,read_MB_s,another\n";

    fn score(rows: &str) -> Result<Scoreboard, ScoreError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("runs.csv"), format!("{HEADINGS}{rows}")).unwrap();
        scoreboard(&[folder.path().to_owned()])
    }

    #[test]
    fn mpi_io_from_posix() {
        let score = score(
            "a,ior-easy,POSIX,shared,0,4096,80,3000,\n\
             b,ior-easy,POSIX,per-process,0,4096,84,400,\n\
             c,ior-hard,POSIX,shared,0,47008,40,88,\n\
             d,ior-hard,MPIIO,shared,1,47008,81,86,\n",
        )
        .unwrap();
        let [sustained, interleaved, hard_reads, random_reads] = &score.sections[..] else {
            panic!("{score:?}")
        };
        // The collective run has the rate of easy writes, and was not fitted to.
        let collective = &sustained.lines[2];
        assert_eq!((collective.measured, collective.predicted), (81.0, 82.0));
        assert_eq!(sustained.lines[0].predicted, 84.0);
        // Nothing is left to predict the only interleaved run from.
        assert!(interleaved.lines.is_empty());
        assert_eq!(hard_reads.lines[1].predicted, 88.0);
        assert!(random_reads.lines.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = score("a,ior-easy,POSIX,shared,0,many,80,3000,\n").unwrap_err().to_string();
        assert!(error.contains("runs.csv, line 2, column transfer_B"), "{error}");
        assert!(error.contains("\"many\" is not a number above 0"), "{error}");
        let error = score("a,ior-easy,POSIX,shared,0,4096,,3000,\n").unwrap_err().to_string();
        assert!(
            error.ends_with(
                "runs.csv: no row can be used. Left out of 1 rows: 1 without a rate that is predicted."
            ),
            "{error}"
        );
        let error = score("a,ior-easy,POSIX,shared,0,4096,80,3000,\n").unwrap_err().to_string();
        assert!(error.starts_with("nothing to predict: two runs"), "{error}");
        let error = scoreboard(&[]).unwrap_err().to_string();
        assert!(error.contains("--data"), "{error}");
        let nowhere = scoreboard(&[PathBuf::from("nowhere")]).unwrap_err().to_string();
        assert_eq!(nowhere, "nowhere: no runs.csv there");
    }
}
