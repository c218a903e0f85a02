//! What a training program reads to train and what to evaluate.
//!
//! Loaders that share more than half of all their files are one: programs make a new loader for each evaluation. Of further
//! ones, the two of which most is read count. That whose epochs all begin within epochs of the other evaluates, else that of
//! which less is read: programs evaluate before, after or while they train, in each epoch or now and then, and on less data.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::{FileId, ProcessId};

use super::{DataSet, Evaluation, SAVES, Samples, ratio};
use crate::explanation::{Explanation, FileStatistics, ProcessStatistics};
use crate::loaders::{Loader, Within};
use crate::marked::{MarkedName, OWN_EPOCHS};

/// Epochs of loaders that have no name of their own: nothing says which are of one loader.
const OTHER_LOADERS: &str = "epoch, other loaders";

/// Loaders that read the same files.
pub(super) struct Reading<'e> {
    found: &'e Explanation,
    /// By their place among all loaders.
    loaders: BTreeMap<usize, &'e Loader>,
    /// Of samples.
    pub files: BTreeSet<FileId>,
    opens: u64,
    read_bytes: u64,
}

impl<'e> Reading<'e> {
    /// What is read to train, and to evaluate; none if there are no epochs. What is read besides is said in `left_out`.
    pub(super) fn sets(
        found: &'e Explanation,
        samples: &Samples<'_>,
        left_out: &mut Vec<String>,
    ) -> Option<(Reading<'e>, Option<Reading<'e>>)> {
        let mut sets: Vec<Reading<'e>> = Vec::new();
        for (place, loader) in found.marked.loaders.all.iter().enumerate() {
            let name = &found.marked.names[loader.epochs];
            if name.name == OTHER_LOADERS {
                left_out.push(format!("what further loaders read is left out (epochs: {})", name.sum.count));
                continue;
            }
            let one = Reading::of(found, (place, loader), samples);
            match sets.iter_mut().find(|known| known.is_same(&one)) {
                Some(known) => known.merge(one),
                None => sets.push(one),
            }
        }
        // What a program reads before its first epoch is nobody's, if several read.
        if sets.iter().all(|set| set.files.is_empty()) {
            sets.truncate(1);
        }
        if let [only] = &mut sets[..] {
            let opens = |file: &&FileStatistics| file.file_system.open.count.max(file.program.open.count);
            only.files = samples.keys().copied().collect();
            only.opens = samples.values().map(opens).sum();
        }
        // The sort is stable: of those of which as much is read, the first comes first.
        sets.sort_by_key(|set| std::cmp::Reverse(set.read_bytes));
        let mut sets = sets.into_iter().filter(|set| !set.files.is_empty());
        let (most, next) = (sets.next()?, sets.next());
        left_out.extend(sets.map(|set| {
            let [files, epochs] = [set.files.len() as u64, set.all_epochs()];
            let names: Vec<&str> = set.names().map(|name| name.name.as_str()).collect();
            format!("what is read in `{}` is left out (files: {files}, epochs: {epochs})", names.join("`, `"))
        }));
        Some(match next {
            Some(next) if most.is_within(&next) && !next.is_within(&most) => (next, Some(most)),
            next => (most, next),
        })
    }

    fn of(
        found: &'e Explanation,
        (place, loader): (usize, &'e Loader),
        samples: &Samples<'_>,
    ) -> Reading<'e> {
        let used = loader.files.iter().filter(|(file, _)| samples.contains_key(file));
        Reading {
            found,
            loaders: [(place, loader)].into(),
            files: used.clone().map(|(file, _)| *file).collect(),
            opens: used.clone().map(|(_, used)| used.opens).sum(),
            read_bytes: used.map(|(_, used)| used.reads.bytes).fold(0, u64::saturating_add),
        }
    }

    fn is_same(&self, other: &Reading<'_>) -> bool {
        let both = self.files.intersection(&other.files).count();
        2 * both > self.files.len() + other.files.len() - both
    }

    fn merge(&mut self, other: Reading<'e>) {
        self.loaders.extend(other.loaders);
        self.files.extend(other.files);
        self.opens += other.opens;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
    }

    /// Whether all its epochs begin within epochs of the other.
    fn is_within(&self, other: &Reading<'_>) -> bool {
        let own = |name: usize| self.loaders.values().any(|loader| loader.epochs == name);
        other.sum(own).count == self.all_epochs()
    }

    /// How it is read.
    pub(super) fn data_set(&self) -> DataSet {
        // The last wait of a loader's iterator brings its end, no batch. A program's own waits are for batches.
        let of_loaders = self.names().filter(|name| name.name != OWN_EPOCHS);
        let ends: u64 = of_loaders.map(|name| name.sum.count).sum();
        let batches = self.within("batch wait").count.saturating_sub(ends).max(1);
        let files = self.files.len() as u64;
        // Of less than a batch, the benchmark reads nothing.
        let most = (files / self.processes().len().max(1) as u64).max(1);
        let batch = self.setting("batch size").unwrap_or_else(|| ratio(self.opens, batches));
        DataSet {
            files,
            batch: batch.clamp(1, most),
            computation_s: self.computation_ns() as f64 / 1e9 / batches as f64,
        }
    }

    /// When it is read, if that is to evaluate; none if it never is after training.
    pub(super) fn evaluation(&self, train: &Reading<'_>, left_out: &mut Vec<String>) -> Option<Evaluation> {
        let (mut trained, mut times) = (0, Vec::new());
        for place in &self.found.marked.loaders.order {
            if train.loaders.contains_key(place) {
                trained += 1;
            } else if self.loaders.contains_key(place) {
                times.push(trained);
            }
        }
        let all = times.len();
        times.retain(|after| *after > 0);
        let before = all - times.len();
        if before > 0 {
            left_out.push(format!("evaluations before training are left out: {before}"));
        }
        let within = times.len();
        times.dedup();
        if within > times.len() {
            let epochs = times.len();
            left_out.push(format!("DLIO evaluates once an epoch, the program {within} times in {epochs}"));
        }
        let (first, last) = (*times.first()?, *times.last()?);
        let epochs_between = match times.len() as u64 {
            1 => trained,
            evaluations => ratio(last - first, evaluations - 1),
        };
        Some(Evaluation { set: self.data_set(), after_epoch: first, epochs_between: epochs_between.max(1) })
    }

    /// Epochs of each process.
    pub(super) fn epochs(&self) -> u64 {
        ratio(self.all_epochs(), self.processes().len() as u64).max(1)
    }

    /// Processes that read for each that waits for batches.
    pub(super) fn readers(&self) -> u64 {
        self.setting("workers").unwrap_or_else(|| {
            let (computing, loaders) = (self.processes(), &self.found.marked.loaders);
            let works = |process: &&ProcessStatistics| {
                let reads_for = loaders.read_by(process.process);
                process.program.read.bytes > 0
                    && !computing.contains(&process.process)
                    && reads_for.is_none_or(|loader| self.loaders.contains_key(&loader))
            };
            let lives = self.found.processes.iter().filter(works).map(|process| process.lifetime_ns);
            let time_ns = self.names().map(|name| name.sum.time_ns).fold(0, u64::saturating_add);
            ratio(lives.fold(0, u64::saturating_add), time_ns)
        })
    }

    /// What its first loader was told.
    pub(super) fn setting(&self, setting: &str) -> Option<u64> {
        self.names().find_map(|name| self.found.marked.setting(&name.name, setting))
    }

    /// Time in its epochs that is no wait for input, no start of workers, no checkpoint and no other epoch, nanoseconds.
    fn computation_ns(&self) -> u64 {
        let marked = &self.found.marked;
        let save = SAVES.into_iter().find_map(|name| marked.find(name));
        let not = [marked.find("batch wait"), marked.find("loader start"), save];
        let is_epoch = |name: usize| marked.loaders.all.iter().any(|loader| loader.epochs == name);
        let other_ns = self.sum(|name| not.contains(&Some(name)) || is_epoch(name)).time_ns;
        let epochs_ns = self.names().map(|name| name.sum.time_ns).fold(0, u64::saturating_add);
        epochs_ns.saturating_sub(other_ns)
    }

    fn within(&self, name: &str) -> Within {
        let name = self.found.marked.find(name);
        self.sum(|other| name == Some(other))
    }

    /// Phases of some names within its epochs.
    fn sum(&self, is_counted: impl Fn(usize) -> bool) -> Within {
        let all = self.loaders.values().flat_map(|loader| &loader.within);
        all.filter(|(name, _)| is_counted(**name)).fold(Within::default(), |sum, (_, one)| Within {
            count: sum.count + one.count,
            time_ns: sum.time_ns.saturating_add(one.time_ns),
        })
    }

    /// Its epochs, of all processes.
    fn all_epochs(&self) -> u64 {
        self.names().map(|name| name.sum.count).sum()
    }

    fn processes(&self) -> BTreeSet<ProcessId> {
        self.names().flat_map(|name| &name.processes).copied().collect()
    }

    fn names(&self) -> impl Iterator<Item = &'e MarkedName> {
        let names = &self.found.marked.names;
        self.loaders.values().map(|loader| &names[loader.epochs])
    }
}
