//! The rates that others are measured by.
//!
//! They are never assumed. What the trace's own large requests reach counts first, by file system as far as the trace
//! tells them apart; then what the recorder measured there ([`LargeRequests`]). Requests that the system serves from its
//! memory and requests that wait for a device or server have rates of their own: [`Regime`].

use pio_trace::{FileId, Flags, LargeRequests, Op, Tables};

use super::cost::Cost;
use super::limits::{CACHED_BYTE_NS, LARGE, PAGE, RATE_CALLS, WAITED_NS};
use crate::tally::{Amount, Seen};

/// Who serves requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regime {
    /// The system's memory.
    Cached,
    /// A device or server.
    Device,
}

impl Regime {
    /// That of one request: how long it took tells.
    pub(crate) fn of(event: &Seen<'_>) -> Regime {
        let cached_ns = WAITED_NS.saturating_add(event.bytes.saturating_mul(CACHED_BYTE_NS));
        if event.elapsed_ns > cached_ns { Regime::Device } else { Regime::Cached }
    }
}

/// What large requests reach, gathered.
pub(crate) struct Rates {
    /// What the recorder measured.
    measured: Vec<LargeRequests>,
    /// Of each file, which of `measured` holds for it.
    file_systems: Vec<Option<usize>>,
    /// Of each of `measured`: see [`Rates::part_ns`].
    parts_ns: Vec<Option<f64>>,
    /// By file system (the last is that of all other files), direction, and regime.
    own: Vec<[[Sum; 2]; 2]>,
}

/// Requests and what they took, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum(Amount, u64);

impl Sum {
    fn reference(&self) -> Option<Reference> {
        let Sum(amount, time_ns) = self;
        (amount.count >= RATE_CALLS && amount.bytes > 0 && *time_ns > 0).then(|| Reference {
            bytes_per_s: amount.bytes as f64 / *time_ns as f64 * 1e9,
            source: Source::Trace,
        })
    }
}

/// A rate, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Bytes per second of one process's call time.
    pub bytes_per_s: f64,
    /// Who reached it.
    pub source: Source,
}

/// Where a rate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The trace's own large requests.
    Trace,
    /// The recorder measured it when the job was over.
    Recorder,
    /// Other files of the same log, as its counters say.
    Counters,
}

impl Rates {
    pub(crate) fn new(tables: &Tables) -> Rates {
        let measured = LargeRequests::of(tables);
        let of = |path: &str| {
            let holding = measured.iter().enumerate().filter(|(_, rates)| rates.holds_for(path));
            holding.max_by_key(|(_, rates)| rates.folder.len()).map(|(index, _)| index)
        };
        let file_systems = if measured.is_empty() {
            Vec::new()
        } else {
            tables.files.iter().map(|file| of(&file.path)).collect()
        };
        let own = vec![Default::default(); measured.len() + 1];
        let parts_ns = measured.iter().map(part_ns).collect();
        Rates { measured, file_systems, parts_ns, own }
    }

    /// Takes note of a request of the program. A collective call waits for others, and an asynchronous one does not
    /// wait for its data: neither tells a rate.
    pub(crate) fn add(&mut self, event: &Seen<'_>, file: Option<FileId>) {
        let apart = event.flags.contains(Flags::COLLECTIVE) || event.flags.contains(Flags::ASYNC);
        // By what was moved: a short read at the end of a small file is no large request.
        if event.bytes < LARGE || apart || event.elapsed_ns == 0 {
            return;
        }
        let file_system = self.file_system(file).unwrap_or(self.measured.len());
        let writes = usize::from(event.op() == Op::Write);
        let Sum(amount, time_ns) = &mut self.own[file_system][writes][Regime::of(event) as usize];
        amount.add(event.bytes);
        *time_ns = time_ns.saturating_add(event.elapsed_ns);
    }

    fn file_system(&self, file: Option<FileId>) -> Option<usize> {
        file.and_then(|file| self.file_systems.get(file.index()).copied().flatten())
    }

    /// The rate of large requests on a file; none if neither the trace nor the recorder can tell. Where no request was
    /// served as these are, those served otherwise tell: data that only pass through memory are as slow as the device.
    pub(crate) fn reference(&self, file: Option<FileId>, writes: bool, regime: Regime) -> Option<Reference> {
        let file_system = self.file_system(file);
        let own = &self.own[file_system.unwrap_or(self.measured.len())][usize::from(writes)];
        let measured = file_system.and_then(|index| {
            let rates = &self.measured[index];
            let rate = match (writes, regime) {
                (true, _) => rates.write,
                (false, Regime::Cached) => rates.cached_read,
                (false, Regime::Device) => rates.device_read,
            };
            rate.map(|rate| Reference { bytes_per_s: rate.bytes_per_s, source: Source::Recorder })
        });
        let other = if regime == Regime::Cached { Regime::Device } else { Regime::Cached };
        own[regime as usize].reference().or(measured).or_else(|| own[other as usize].reference())
    }

    /// What a page of a file takes that is read by itself and is not in memory, nanoseconds; none if it was not measured.
    pub(crate) fn page_ns(&self, file: Option<FileId>) -> Option<f64> {
        let measured = &self.measured[self.file_system(file)?];
        measured.page_read.map(|rate| PAGE as f64 / rate.bytes_per_s * 1e9)
    }

    /// How much longer it takes to write a part of a page of a file than the whole page, if it is not in memory, nanoseconds;
    /// none if it was not measured, or takes no longer: there is no cache, or it keeps parts of pages.
    pub(crate) fn part_ns(&self, file: Option<FileId>) -> Option<f64> {
        self.parts_ns[self.file_system(file)?]
    }

    /// Whether it is known of any file system how much longer parts of pages take.
    pub(crate) fn knows_parts(&self) -> bool {
        self.parts_ns.iter().any(Option::is_some)
    }

    /// What copying memory reaches: reads of what the system has in its own. None if none were made or measured.
    pub(crate) fn copy(&self, file: Option<FileId>) -> Option<Reference> {
        let file_system = self.file_system(file);
        let own =
            self.own[file_system.unwrap_or(self.measured.len())][0][Regime::Cached as usize].reference();
        let measured = file_system.and_then(|index| self.measured[index].cached_read);
        let measured =
            measured.map(|rate| Reference { bytes_per_s: rate.bytes_per_s, source: Source::Recorder });
        own.or(measured)
    }

    /// Time that the bytes of these calls would take in large requests on a file, nanoseconds, and the rates of reading
    /// and writing; none if nothing is known.
    pub(crate) fn time_ns(
        &self,
        file: Option<FileId>,
        cost: &Cost,
        regime: Regime,
    ) -> Option<(f64, References)> {
        let mut references = References::default();
        let mut time_ns = 0.0;
        for (writes, bytes) in [(false, cost.read_bytes), (true, cost.write_bytes)] {
            if bytes > 0 {
                let reference = self.reference(file, writes, regime)?;
                time_ns += bytes as f64 / reference.bytes_per_s * 1e9;
                *(if writes { &mut references.write } else { &mut references.read }) = Some(reference);
            }
        }
        Some((time_ns, references))
    }
}

/// A fetch that takes no longer than the write itself cannot be told from it.
fn part_ns(measured: &LargeRequests) -> Option<f64> {
    let whole_ns = PAGE as f64 / measured.page_write?.bytes_per_s * 1e9;
    let part_ns = LargeRequests::PART as f64 / measured.part_write?.bytes_per_s * 1e9;
    (part_ns >= 2.0 * whole_ns).then_some(part_ns - whole_ns)
}

/// The rates of reading and of writing that others are measured by, as far as they are needed and known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct References {
    /// Of reading; of copying memory where the time of an exchange of data is measured by it.
    pub read: Option<Reference>,
    /// Of writing.
    pub write: Option<Reference>,
}
