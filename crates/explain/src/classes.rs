//! Why I/O is done: Miller and Katz's classes (1991, section 5.1).
//!
//! *Required* I/O reads a program's first state and writes its results. *Checkpoints* save its state at intervals.
//! *Staging* moves data out of memory that does not hold the problem, and back. A trace does not say which is which, but
//! each leaves marks: how often a file's bytes are read and written, and what comes first. Results that are written at
//! intervals (snapshots) leave the marks of checkpoints, and are counted as such.

use std::collections::BTreeMap;

use crate::explanation::FileStatistics;

/// How often a file's bytes are moved, on average, when they are moved *again*: between once and twice.
const AGAIN: f64 = 1.5;
/// Members of a series of files from which on it is one.
const SERIES: usize = 3;
/// How much a member's size may differ from the median.
const SAME_SIZE: f64 = 0.1;

/// Why a file is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Input that is read once, results that are written once.
    Required,
    /// State that is saved at intervals, in one file or a series.
    Checkpoint,
    /// Data that memory does not hold: written and read back, or read again and again.
    Staging,
}

impl Purpose {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Required => "required",
            Purpose::Checkpoint => "checkpoint",
            Purpose::Staging => "staging",
        }
    }
}

/// All files of one purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTotal {
    /// Why they are read and written.
    pub purpose: Purpose,
    /// How many files.
    pub files: u64,
    /// Sum of their sizes, bytes.
    pub size_bytes: u64,
    /// Bytes that the program read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub write_bytes: u64,
    /// The file with most bytes moved.
    pub largest: String,
    /// Files that belong to a series: equal in size and, but for numbers, in name, written one after the other.
    pub in_series: u64,
}

/// Gives every file that was read or written its purpose, and sums them up, those of most bytes first.
pub(crate) fn classify(files: &mut [FileStatistics]) -> Vec<ClassTotal> {
    for file in files.iter_mut() {
        file.purpose = by_itself(file);
    }
    let series = series(files);
    let mut totals: BTreeMap<Purpose, (ClassTotal, u64)> = BTreeMap::new();
    for (index, file) in files.iter_mut().enumerate() {
        let in_series = series.contains(&index);
        if in_series {
            file.purpose = Some(Purpose::Checkpoint);
        }
        let Some(purpose) = file.purpose else { continue };
        let (read, write) = (file.program.read.bytes, file.program.write.bytes);
        let (total, most) = totals.entry(purpose).or_insert_with(|| {
            let (files, size_bytes, read_bytes, write_bytes, in_series) = (0, 0, 0, 0, 0);
            let largest = String::new();
            (ClassTotal { purpose, files, size_bytes, read_bytes, write_bytes, largest, in_series }, 0)
        });
        total.files += 1;
        total.in_series += u64::from(in_series);
        total.size_bytes = total.size_bytes.saturating_add(file.size_bytes);
        total.read_bytes = total.read_bytes.saturating_add(read);
        total.write_bytes = total.write_bytes.saturating_add(write);
        if read.saturating_add(write) > *most {
            *most = read.saturating_add(write);
            total.largest.clone_from(&file.path);
        }
    }
    let mut totals: Vec<_> = totals.into_values().map(|(total, _)| total).collect();
    totals.sort_by_key(|total| {
        (std::cmp::Reverse(total.read_bytes.saturating_add(total.write_bytes)), total.purpose)
    });
    totals
}

/// What a file's own marks say.
fn by_itself(file: &FileStatistics) -> Option<Purpose> {
    let (read, write) = (file.program.read.bytes as f64, file.program.write.bytes as f64);
    if read + write == 0.0 {
        return None;
    }
    let size = (file.size_bytes as f64).max(1.0);
    let (times_read, times_written) = (read / size, write / size);
    // Many processes that read all of a file once each read an input, not one that was moved out.
    let by_each = times_read / file.processes.max(1) as f64;
    let staged = match (file.read_span, file.write_span) {
        (Some(reads), Some(writes)) => {
            let by_turns = reads.0 <= writes.1 && writes.0 <= reads.1;
            let back = writes.0 < reads.0 && times_read >= 0.5;
            back || (by_turns && (by_each >= AGAIN || times_written >= AGAIN))
        }
        _ => by_each >= AGAIN,
    };
    Some(if staged {
        Purpose::Staging
    } else if times_written >= AGAIN {
        Purpose::Checkpoint
    } else {
        Purpose::Required
    })
}

/// Files that are only written, once, each after the one before, and alike in name and size.
fn series(files: &[FileStatistics]) -> std::collections::BTreeSet<usize> {
    let mut families: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        if file.purpose == Some(Purpose::Required) && file.read_span.is_none() && file.write_span.is_some() {
            families.entry(without_numbers(&file.path)).or_default().push(index);
        }
    }
    let mut found = std::collections::BTreeSet::new();
    for mut family in families.into_values() {
        family.sort_by_key(|&index| files[index].size_bytes);
        let median = files[family[family.len() / 2]].size_bytes as f64;
        family.retain(|&index| (files[index].size_bytes as f64 - median).abs() <= SAME_SIZE * median);
        family.sort_by_key(|&index| files[index].write_span);
        let span = |index: usize| files[index].write_span.unwrap_or_default();
        // Files of one step are written side by side: steps count.
        let mut steps = 0;
        let mut end = None;
        for &index in &family {
            if end.is_none_or(|end| span(index).0 > end) {
                steps += 1;
            }
            end = end.max(Some(span(index).1));
        }
        if steps >= SERIES {
            found.extend(family);
        }
    }
    found
}

/// A path in which every number is `#`.
fn without_numbers(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !pattern.ends_with('#') {
            pattern.push(letter);
        }
    }
    pattern
}
