//! A training program as DLIO's benchmark describes one: what is read in which batches, how long a step computes, what is
//! saved.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use pio_trace::ProcessId;

use crate::explanation::{Explanation, FileStatistics, ProcessStatistics};
use crate::marked::MarkedName;

/// What DLIO's benchmark needs to know of a training program, from its calls and its marks.
///
/// Displayed, it is the benchmark's configuration of a workload (YAML).
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The script, or the program.
    pub name: String,
    /// Of the files that are read.
    pub format: &'static str,
    /// Files that are read and never written, of the kind of which most is read.
    pub files: u64,
    /// Mean size of a sample in them; a file is one sample.
    pub sample_bytes: u64,
    /// Standard deviation of that.
    pub sample_bytes_deviation: u64,
    /// Samples in a batch of a process.
    pub batch: u64,
    /// Processes that read for each that computes; 0 if it reads by itself.
    pub readers: u64,
    /// Times that the files are read.
    pub epochs: u64,
    /// From the time at which a batch is there to the time at which the next is asked for, seconds.
    pub computation_s: f64,
    /// Checkpoints, and the mean bytes of one.
    pub checkpoints: u64,
    /// See `checkpoints`.
    pub checkpoint_bytes: u64,
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

/// The header of a file of NumPy, bytes.
const NPY_HEADER_BYTES: u64 = 128;

impl Training {
    /// What a trace says of a training program.
    ///
    /// # Errors
    /// If it read no files of a kind that the benchmark has, or marked no wait for a batch: then what is missing.
    pub fn of(found: &Explanation) -> Result<Training, &'static str> {
        let (format, files) = data_set(found).ok_or(
            "no files of samples (expected files that are read and never written, and end in .npy, .npz, .h5, .hdf5, \
             .tfrecord, .csv, .jpg, .png or .bin)",
        )?;
        let sizes: Vec<f64> = files.iter().map(|file| file.size_bytes as f64).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
        let header = if format == "npy" { NPY_HEADER_BYTES } else { 0 };
        let marked = &found.marked;
        let wait = marked.find("batch wait").ok_or("no phase `batch wait` (see docs/training.md)")?;
        let epochs = epochs(&marked.names);
        let first = epochs.first().ok_or("no phase `epoch` (see docs/training.md)")?;
        let processes = first.processes.len().max(1) as u64;
        let iterators: u64 = epochs.iter().map(|name| name.sum.count).sum();
        // The last wait of an iterator brings its end, no batch.
        let batches = marked.names[wait].sum.count.saturating_sub(iterators).max(1);
        let samples: u64 =
            files.iter().map(|file| file.file_system.open.count.max(file.program.open.count)).sum();
        let epoch_ns: u64 = epochs.iter().map(|name| name.sum.time_ns).fold(0, u64::saturating_add);
        let save = SAVES.into_iter().find_map(|name| marked.find(name));
        let not_computing = [Some(wait), marked.find("loader start"), save];
        let other_ns = epochs
            .iter()
            .flat_map(|name| not_computing.iter().flatten().filter_map(|other| name.sum.within_ns.get(other)))
            .fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        // All processes that save a checkpoint do it together.
        let saves = save.map(|save| &marked.names[save]);
        let checkpoints = saves.map_or(0, |name| ratio(name.sum.count, name.processes.len() as u64).max(1));
        Ok(Training {
            name: name(found).to_owned(),
            format,
            files: files.len() as u64,
            sample_bytes: (mean as u64).saturating_sub(header).max(1),
            sample_bytes_deviation: variance.sqrt() as u64,
            batch: ratio(samples, batches).max(1),
            readers: readers(found, &epochs, epoch_ns / processes) / processes,
            epochs: ratio(first.sum.count, processes).max(1),
            computation_s: epoch_ns.saturating_sub(other_ns) as f64 / 1e9 / batches as f64,
            checkpoints,
            checkpoint_bytes: saves.map_or(0, |name| name.sum.moved.written.bytes / checkpoints.max(1)),
        })
    }
}

/// Of the script that was started, if the job says one (`mpiexec -n 2 python train.py`); else of the program.
fn name(found: &Explanation) -> &str {
    let words = found.job.split_whitespace().filter(|word| !word.starts_with('-'));
    let mut scripts = words.filter_map(|word| word.rsplit('/').next()?.strip_suffix(".py"));
    let script = scripts.find(|name| !name.is_empty());
    script
        .or_else(|| found.processes.first().map(|process| process.program_name.as_str()))
        .unwrap_or_default()
}

/// The epochs of loaders; where there are none, those that the program marks itself.
fn epochs(names: &[MarkedName]) -> Vec<&MarkedName> {
    let of_loaders: Vec<&MarkedName> = names.iter().filter(|name| name.name.starts_with("epoch, ")).collect();
    match of_loaders.is_empty() {
        true => names.iter().filter(|name| name.name == "epoch").collect(),
        false => of_loaders,
    }
}

/// Rounded to the nearest.
fn ratio(one: u64, other: u64) -> u64 {
    (one as f64 / other.max(1) as f64).round() as u64
}

/// The files of samples: of the kind of which most is read.
fn data_set(found: &Explanation) -> Option<(&'static str, Vec<&FileStatistics>)> {
    let mut kinds: BTreeMap<&'static str, Vec<&FileStatistics>> = BTreeMap::new();
    for file in &found.files {
        let ending = file.path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let format = FORMATS.iter().find(|(known, _)| *known == ending);
        let is_written = file.file_system.write.count + file.program.write.count > 0;
        if let Some((_, format)) = format.filter(|_| !is_written && read_bytes(file) > 0) {
            kinds.entry(format).or_default().push(file);
        }
    }
    kinds
        .into_iter()
        .max_by_key(|(_, files)| files.iter().map(|file| read_bytes(file)).fold(0, u64::saturating_add))
}

fn read_bytes(file: &FileStatistics) -> u64 {
    file.file_system.read.bytes.max(file.program.read.bytes)
}

/// Processes that read at a time, beside those that compute, which have epochs.
fn readers(found: &Explanation, epochs: &[&MarkedName], epoch_ns: u64) -> u64 {
    let computing: HashSet<ProcessId> = epochs.iter().flat_map(|name| &name.processes).copied().collect();
    let works = |process: &&ProcessStatistics| {
        process.program.read.bytes > 0 && !computing.contains(&process.process)
    };
    let lives = found.processes.iter().filter(works).map(|process| process.lifetime_ns);
    ratio(lives.fold(0, u64::saturating_add), epoch_ns)
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
        writeln!(f, "\nworkflow:\n  generate_data: False\n  train: True\n  checkpoint: {}", yes(saves))?;
        writeln!(f, "\ndataset:\n  data_folder: data/{name}\n  format: {}", self.format)?;
        writeln!(f, "  num_files_train: {}\n  num_samples_per_file: 1", self.files)?;
        // Version 2.0.0 of the benchmark has other names than later ones, which ignore them.
        for key in ["record_length_bytes", "record_length"] {
            writeln!(f, "  {key}: {}\n  {key}_stdev: {}", self.sample_bytes, self.sample_bytes_deviation)?;
        }
        writeln!(f, "\nreader:\n  data_loader: {framework}\n  batch_size: {}", self.batch)?;
        writeln!(f, "  read_threads: {}\n  file_shuffle: seed\n  sample_shuffle: seed", self.readers)?;
        writeln!(f, "\ntrain:\n  epochs: {}\n  computation_time: {:.6}", self.epochs, self.computation_s)?;
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
