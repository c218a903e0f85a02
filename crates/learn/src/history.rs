//! The file of pairs: one JSON object a line, only ever added to.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A history that cannot be read or added to.
#[derive(Debug, Error)]
#[error("{path}: cannot {what}", path = path.display())]
pub struct HistoryError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

/// A run that was both predicted and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Predicted I/O time, seconds, above 0.
    pub predicted_s: f64,
    /// Measured I/O time, seconds, above 0.
    pub measured_s: f64,
    /// The strategy.
    pub strategy: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// Whether a node had more ranks than processors.
    pub crowded: bool,
    /// The program: what its trace calls the job, which is its command.
    pub program: String,
    /// When the measured run began, nanoseconds since 1970-01-01 UTC; 0 if its trace does not say.
    pub started_ns: u64,
}

impl Pair {
    /// The natural logarithm of measured over predicted.
    pub(crate) fn log_ratio(&self) -> f64 {
        (self.measured_s / self.predicted_s).ln()
    }

    /// Predicted minus measured, over measured: the error as tables of predictions show it.
    pub fn error(&self) -> f64 {
        self.predicted_s / self.measured_s - 1.0
    }

    /// Whether a logarithm can be taken of its times.
    fn makes_sense(&self) -> bool {
        [self.predicted_s, self.measured_s].iter().all(|time_s| time_s.is_finite() && *time_s > 0.0)
    }

    /// Whether both are of one run: it may be predicted anew, but not be counted twice.
    fn is_of_same_run(&self, other: &Pair) -> bool {
        (self.started_ns, &self.strategy, self.measured_s)
            == (other.started_ns, &other.strategy, other.measured_s)
    }
}

/// The pairs of one place, in the order in which they were added.
#[derive(Clone, Debug)]
pub struct History {
    path: PathBuf,
    pairs: Vec<Pair>,
    damaged: Vec<usize>,
}

impl History {
    /// Reads a history; one that does not exist is empty. Lines that hold no pair are skipped: see
    /// [`History::damaged_lines`].
    ///
    /// # Errors
    /// If the file is there and cannot be read.
    pub fn load(path: &Path) -> Result<History, HistoryError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(failed(path, "read"))?,
        };
        let mut history = History { path: path.to_owned(), pairs: Vec::new(), damaged: Vec::new() };
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            match serde_json::from_slice::<Pair>(line) {
                Ok(pair) if pair.makes_sense() => history.take(pair),
                // The end of the last line; the empty one that follows a line that was cut.
                Err(_) if line.is_empty() => {}
                _ => history.damaged.push(index + 1),
            }
        }
        Ok(history)
    }

    /// The pairs; of a run that was predicted more than once, the last.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The numbers, from 1, of the lines that were skipped.
    pub fn damaged_lines(&self) -> &[usize] {
        &self.damaged
    }

    /// Adds a pair to the file, unless it is there already or one of its times is not above 0. Says whether it was added.
    ///
    /// # Errors
    /// If the file, or its folder, cannot be written to.
    pub fn add(&mut self, pair: Pair) -> Result<bool, HistoryError> {
        if !pair.makes_sense() || self.pairs.contains(&pair) {
            return Ok(false);
        }
        self.append(&pair).map_err(failed(&self.path, "write"))?;
        self.take(pair);
        Ok(true)
    }

    fn append(&self, pair: &Pair) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::options().create(true).read(true).append(true).open(&self.path)?;
        // Whoever wrote the last line may have been killed at it.
        let mut line = if ends_a_line(&mut file)? { String::new() } else { "\n".to_owned() };
        line.push_str(&serde_json::to_string(pair)?);
        line.push('\n');
        // By one call: others may add at the same time.
        file.write_all(line.as_bytes())
    }

    fn take(&mut self, pair: Pair) {
        self.pairs.retain(|known| !known.is_of_same_run(&pair));
        self.pairs.push(pair);
    }
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> HistoryError {
    let path = path.to_owned();
    move |source| HistoryError { path, what, source }
}
