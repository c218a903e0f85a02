//! A training program as DLIO's benchmark describes one: what is read in which batches, how long a step computes, what is
//! saved.

mod reading;

use std::collections::BTreeMap;
use std::fmt;

use pio_trace::FileId;

use crate::explanation::{Explanation, FileStatistics};
use reading::Reading;

/// Files of samples.
type Samples<'e> = BTreeMap<FileId, &'e FileStatistics>;

/// What DLIO's benchmark needs to know of a training program, from its calls and its marks.
///
/// Displayed, it is the benchmark's configuration of a workload (YAML).
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The script, or the program.
    pub name: String,
    /// Of the files that are read.
    pub format: &'static str,
    /// What is read to train.
    pub set: DataSet,
    /// What is read to evaluate, if anything is.
    pub evaluation: Option<Evaluation>,
    /// Mean size of a sample to train; a file is one sample.
    pub sample_bytes: u64,
    /// Standard deviation of that.
    pub sample_bytes_deviation: u64,
    /// Processes that read for each that trains; 0 if it reads by itself.
    pub readers: u64,
    /// Times that the files are read to train.
    pub epochs: u64,
    /// Checkpoints, and the mean bytes of one.
    pub checkpoints: u64,
    /// See `checkpoints`.
    pub checkpoint_bytes: u64,
    /// What the program does and the benchmark cannot be told, a sentence each.
    pub left_out: Vec<String>,
}

/// Files that are read in batches.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// How many, of the kind of which most is read; they are never written.
    pub files: u64,
    /// Samples in a batch of a process.
    pub batch: u64,
    /// From the time at which a batch is there to the time at which the next is asked for, seconds.
    pub computation_s: f64,
}

/// When and on what a program evaluates.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// What is read.
    pub set: DataSet,
    /// The epoch of training after which it is done first, from 1.
    pub after_epoch: u64,
    /// Epochs of training from one to the next.
    pub epochs_between: u64,
}

/// Endings of files, and what DLIO calls them.
const FORMATS: [(&str, &str); 12] = [
    ("npy", "npy"),
    ("npz", "npz"),
    ("h5", "hdf5"),
    ("hdf5", "hdf5"),
    ("tfrecord", "tfrecord"),
    ("tfrecords", "tfrecord"),
    ("csv", "csv"),
    ("jpg", "jpeg"),
    ("jpeg", "jpeg"),
    ("JPEG", "jpeg"),
    ("png", "png"),
    ("bin", "indexed_binary"),
];

/// Phases in which checkpoints are saved. The first that a program has is the checkpoint: it may have the later ones within it,
/// one for each part.
const SAVES: [&str; 3] = ["torch.distributed.checkpoint.save", "safetensors.save_file", "torch.save"];

/// Sizes that differ by more than this part are worth a word.
const OTHER_SIZE: f64 = 0.1;

/// The header of a file of NumPy, bytes.
const NPY_HEADER_BYTES: u64 = 128;

impl Training {
    /// What a trace says of a training program.
    ///
    /// # Errors
    /// If it read no files of a kind that the benchmark has, or marked no wait for a batch: then what is missing.
    pub fn of(found: &Explanation) -> Result<Training, &'static str> {
        let (format, samples) = samples(found).ok_or(
            "no files of samples (expected files that are read and never written, and end in .npy, .npz, .h5, .hdf5, \
             .tfrecord, .csv, .jpg, .png or .bin)",
        )?;
        let marked = &found.marked;
        marked.find("batch wait").ok_or("no phase `batch wait` (see docs/training.md)")?;
        let mut left_out = Vec::new();
        let (train, evaluate) =
            Reading::sets(found, &samples, &mut left_out).ok_or("no phase `epoch` (see docs/training.md)")?;
        let (mean, deviation) = sizes(&train, &samples);
        let header = if format == "npy" { NPY_HEADER_BYTES } else { 0 };
        let readers = train.readers();
        // The benchmark has one number for both.
        if let Some(evaluate) = &evaluate {
            if let Some(other) = evaluate.setting("workers").filter(|other| *other != readers) {
                left_out.push(format!("evaluation has {other} workers, DLIO as many as training: {readers}"));
            }
            let (other, _) = sizes(evaluate, &samples);
            if (other / mean - 1.0).abs() > OTHER_SIZE {
                left_out.push(format!(
                    "samples to evaluate have {other:.0} B, DLIO's as those to train: {mean:.0} B"
                ));
            }
        }
        // All processes that save a checkpoint do it together.
        let saves = SAVES.into_iter().find_map(|name| marked.find(name)).map(|save| &marked.names[save]);
        let checkpoints = saves.map_or(0, |name| ratio(name.sum.count, name.processes.len() as u64).max(1));
        let evaluation = evaluate.and_then(|set| set.evaluation(&train, &mut left_out));
        Ok(Training {
            name: name(found).to_owned(),
            format,
            set: train.data_set(),
            evaluation,
            sample_bytes: (mean as u64).saturating_sub(header).max(1),
            sample_bytes_deviation: deviation as u64,
            readers,
            epochs: train.epochs(),
            checkpoints,
            checkpoint_bytes: saves.map_or(0, |name| name.sum.moved.written.bytes / checkpoints.max(1)),
            left_out,
        })
    }
}

/// Of the script that was started, if the job says one (`mpiexec -n 2 python train.py`); else of the program.
fn name(found: &Explanation) -> &str {
    script(&found.job)
        .or_else(|| found.processes.first().map(|process| process.program_name.as_str()))
        .unwrap_or_default()
}

fn script(job: &str) -> Option<&str> {
    // Words are quoted that have blanks, as what a shell is given to do.
    let words = job.split_whitespace().map(|word| word.trim_matches('\''));
    let words = words.filter(|word| !word.starts_with('-'));
    let mut scripts = words.filter_map(|word| word.rsplit('/').next()?.strip_suffix(".py"));
    scripts.find(|name| !name.is_empty())
}

/// Rounded to the nearest.
fn ratio(one: u64, other: u64) -> u64 {
    (one as f64 / other.max(1) as f64).round() as u64
}

/// The files of samples: of the kind of which most is read.
fn samples(found: &Explanation) -> Option<(&'static str, Samples<'_>)> {
    let mut kinds: BTreeMap<&'static str, Samples<'_>> = BTreeMap::new();
    for file in &found.files {
        let ending = file.path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let format = FORMATS.iter().find(|(known, _)| *known == ending);
        let is_written = file.file_system.write.count + file.program.write.count > 0;
        if let Some((_, format)) = format.filter(|_| !is_written && read_bytes(file) > 0) {
            kinds.entry(format).or_default().insert(file.file, file);
        }
    }
    kinds
        .into_iter()
        .max_by_key(|(_, files)| files.values().map(|file| read_bytes(file)).fold(0, u64::saturating_add))
}

/// The mean of the sizes of a set's files, and their standard deviation, bytes.
fn sizes(set: &Reading<'_>, samples: &Samples<'_>) -> (f64, f64) {
    let sizes = set.files.iter().filter_map(|file| samples.get(file)).map(|file| file.size_bytes as f64);
    let files = set.files.len() as f64;
    let mean = sizes.clone().sum::<f64>() / files;
    let variance = sizes.map(|size| (size - mean).powi(2)).sum::<f64>() / files;
    (mean, variance.sqrt())
}

fn read_bytes(file: &FileStatistics) -> u64 {
    file.file_system.read.bytes.max(file.program.read.bytes)
}

impl fmt::Display for Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: String =
            self.name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' }).collect();
        let saves = self.checkpoints > 0;
        let yes = |yes: bool| if yes { "True" } else { "False" };
        writeln!(
            f,
            "# What `pioscope workload dlio` read from a trace, for DLIO's benchmark. A file is one sample."
        )?;
        writeln!(f, "model:\n  name: {name}")?;
        if saves {
            writeln!(f, "  model_size_bytes: {}", self.checkpoint_bytes)?;
        }
        // Its loader for PyTorch does not read this format.
        let framework = if self.format == "tfrecord" { "tensorflow" } else { "pytorch" };
        writeln!(f, "\nframework: {framework}")?;
        writeln!(f, "\nworkflow:\n  generate_data: False\n  train: True")?;
        writeln!(f, "  evaluation: {}\n  checkpoint: {}", yes(self.evaluation.is_some()), yes(saves))?;
        writeln!(f, "\ndataset:\n  data_folder: data/{name}\n  format: {}", self.format)?;
        writeln!(f, "  num_files_train: {}", self.set.files)?;
        if let Some(evaluation) = &self.evaluation {
            writeln!(f, "  num_files_eval: {}", evaluation.set.files)?;
        }
        writeln!(f, "  num_samples_per_file: 1")?;
        // Version 2.0.0 of the benchmark has other names than later ones, which ignore them.
        for key in ["record_length_bytes", "record_length"] {
            writeln!(f, "  {key}: {}\n  {key}_stdev: {}", self.sample_bytes, self.sample_bytes_deviation)?;
        }
        writeln!(f, "\nreader:\n  data_loader: {framework}\n  batch_size: {}", self.set.batch)?;
        if let Some(evaluation) = &self.evaluation {
            writeln!(f, "  batch_size_eval: {}", evaluation.set.batch)?;
        }
        writeln!(f, "  read_threads: {}\n  file_shuffle: seed\n  sample_shuffle: seed", self.readers)?;
        let computation_s = self.set.computation_s;
        writeln!(f, "\ntrain:\n  epochs: {}\n  computation_time: {computation_s:.6}", self.epochs)?;
        if let Some(Evaluation { set, after_epoch, epochs_between }) = &self.evaluation {
            writeln!(f, "\nevaluation:\n  eval_time: {:.6}", set.computation_s)?;
            writeln!(f, "  eval_after_epoch: {after_epoch}\n  epochs_between_evals: {epochs_between}")?;
        }
        if saves {
            let between = (self.epochs / self.checkpoints).max(1);
            writeln!(f, "\ncheckpoint:\n  checkpoint_folder: checkpoints/{name}")?;
            // Of version 2.0.0 alone, which adds 24 MB of layers if they are not said to be none.
            writeln!(f, "  model_size: {}\n  layer_parameters: []", self.checkpoint_bytes)?;
            writeln!(f, "  checkpoint_after_epoch: 1\n  epochs_between_checkpoints: {between}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_in_commands() {
        for (job, expected) in [
            ("mpiexec -n 2 python /home/ada/resnet.py --epochs 2", Some("resnet")),
            ("sh -c 'ulimit -n 64; exec python train.py'", Some("train")),
            ("python -m train", None),
        ] {
            assert_eq!(script(job), expected, "{job}");
        }
    }
}
