//! What is told.

use std::collections::BTreeMap;

use pio_trace::{FileId, Flags, ProcessId, Striping};

use super::cost::Cost;
use super::rates::References;
use super::slots::Slot;
use crate::call_sites::CallSiteId;

/// Processes that are named.
const NAMED: usize = 5;
/// How a file may be opened that matters to what helps.
const OPENED: [Flags; 3] = [Flags::SYNC, Flags::DIRECT, Flags::APPEND];

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Many small writes, one behind the other.
    SmallWrites,
    /// Many small reads, one behind the other.
    SmallReads,
    /// Tiny pieces through streams that have no buffer, or are flushed all the time.
    UnbufferedStream,
    /// Requests here and there in a file.
    RandomAccess,
    /// Small requests in equal steps, with what is between left out.
    StridedAccess,
    /// Pages of mapped files touched here and there.
    RandomMapping,
    /// A move of the file pointer before every request.
    Seeks,
    /// The same bytes read again by the same process.
    RedundantReads,
    /// The same data read again and again in long cycles that no cache held.
    CyclicRereads,
    /// The same bytes read by many ranks, each for itself.
    SameReadByAll,
    /// Bytes overwritten before anybody could have used them.
    Overwrites,
    /// Bytes read back right after they were written.
    ReadAfterWrite,
    /// Several processes write parts of the same pages or stripes.
    UnalignedSharing,
    /// Many processes append to one file.
    SharedAppend,
    /// Ranks access a file by turns, each for itself, instead of together.
    MissingCollective,
    /// MPI-IO moves a pattern piece by piece, instead of describing it.
    NoView,
    /// Data forced to the device every few bytes.
    SyncPerWrite,
    /// Many files, each forced to the device by itself.
    SyncPerFile,
    /// The same files opened and closed again and again.
    OpenStorm,
    /// A great many files, each opened for little.
    ManySmallFiles,
    /// A file for every rank and step.
    FilePerProcess,
    /// Calls on names and attributes.
    MetadataStorm,
    /// The same files opened and asked for by every rank.
    SameNamesByAll,
    /// The interpreter of Python looks up and reads its modules.
    Imports,
    /// Processes wait for each other's locks on files.
    LockWaits,
    /// One rank writes for all.
    OneWriter,
    /// One rank's I/O is far slower than that of the others.
    Straggler,
    /// Ranks move very different amounts.
    UnevenRanks,
    /// The program computes, then waits for its I/O, by turns.
    NoOverlap,
    /// In collective calls ranks wait for those that arrive last.
    LateRanks,
    /// Collective calls spend their time inside the MPI library, not at the files.
    InsideLibrary,
    /// A host runs more ranks than it gives them processors.
    TooManyRanks,
    /// Much data through streams, in pieces that are not large.
    StreamedData,
    /// Requests do not begin or end at a file's pages, blocks or stripes: the system fetches the rest of pages that are
    /// written in part, or locks what others write.
    UnalignedRequests,
    /// A large file of several ranks lies on one target.
    FewStripes,
    /// Files that fill one stripe lie on many targets.
    ManyStripes,
    /// The job opens files and asks for names longer than it should.
    MetadataTime,
    /// Collective calls take longer than any rank is at the files; counters do not tell why.
    BeyondFiles,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 38] = [
        Kind::SmallWrites,
        Kind::SmallReads,
        Kind::UnbufferedStream,
        Kind::RandomAccess,
        Kind::StridedAccess,
        Kind::RandomMapping,
        Kind::Seeks,
        Kind::RedundantReads,
        Kind::CyclicRereads,
        Kind::SameReadByAll,
        Kind::Overwrites,
        Kind::ReadAfterWrite,
        Kind::UnalignedSharing,
        Kind::SharedAppend,
        Kind::MissingCollective,
        Kind::NoView,
        Kind::SyncPerWrite,
        Kind::SyncPerFile,
        Kind::OpenStorm,
        Kind::ManySmallFiles,
        Kind::FilePerProcess,
        Kind::MetadataStorm,
        Kind::SameNamesByAll,
        Kind::Imports,
        Kind::LockWaits,
        Kind::OneWriter,
        Kind::Straggler,
        Kind::UnevenRanks,
        Kind::NoOverlap,
        Kind::LateRanks,
        Kind::InsideLibrary,
        Kind::TooManyRanks,
        Kind::StreamedData,
        Kind::UnalignedRequests,
        Kind::FewStripes,
        Kind::ManyStripes,
        Kind::MetadataTime,
        Kind::BeyondFiles,
    ];

    /// Its name in what programs read: `many-small-files`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

/// Something that costs time for nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// What it costs, nanoseconds of the job: an estimate. None if nothing tells what the same would take otherwise.
    pub lost_ns: Option<f64>,
    /// What its calls took and moved, and when: the sum of all processes.
    pub cost: Cost,
    /// What the same would have taken otherwise, nanoseconds, the sum of all processes; 0 if that is not known.
    pub expected_ns: f64,
    /// What of that is not the moving of bytes, but waiting for what the system reads ahead or writes behind, nanoseconds.
    pub waits_ns: f64,
    /// The rates that this was reckoned by; nothing of findings that are not about the size of requests.
    pub references: References,
    /// Calls that were taken to go on at the same time, of processes and of their threads.
    pub together: f64,
    /// The files, those that took most first.
    pub files: Vec<Involved<FileId>>,
    /// The processes, those that took most first: some.
    pub processes: Vec<Involved<ProcessId>>,
    /// How many processes there are in all.
    pub process_count: u64,
    /// The lines of the program that opened the files, those that took most first, as far as they are known: of a file that a
    /// process opened at several, by how often it did so at each; the rest, of opens whose line is not known, is nobody's.
    pub call_sites: Vec<Involved<CallSiteId>>,
    /// What else is known.
    pub detail: Detail,
    /// How the files were opened on which most of its time was spent: of `SYNC`, `DIRECT` and `APPEND` those that held for
    /// half of it or more.
    pub opened: Flags,
    /// What a simulation made of it: empty unless machines were given, and for what no simulation can change.
    pub gains: Vec<Gain>,
    /// What counters say, of a finding made from them; none of one made from events. Then times and bytes of `cost` are
    /// sums over whole files and interfaces: what the calls took and moved at most.
    pub counters: Option<ByCounters>,
}

/// What counters say of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCounters {
    /// All calls of this sort on the same files; [`Cost::calls`] are those with which something is wrong.
    pub of: u64,
    /// Of these, calls on files that several ranks use.
    pub on_shared: u64,
    /// Alignment of [`Kind::UnalignedRequests`] (bytes), size of the file of [`Kind::FewStripes`] (bytes), stripes of
    /// [`Kind::ManyStripes`]; the largest, if files differ.
    pub measure: u64,
    /// The most bytes that these calls can have moved, by their sizes; none where sizes do not matter.
    pub most_bytes: Option<u64>,
    /// Requests whose bytes in memory were not aligned either, of [`Kind::UnalignedRequests`].
    pub in_memory: u64,
}

/// What a machine is predicted to take for the job's I/O, as recorded and with the change that would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Name of the machine.
    pub machine: String,
    /// Time in I/O as recorded, mean of the processes, seconds.
    pub before_s: f64,
    /// The same with the change.
    pub after_s: f64,
    /// What was changed in the simulation, in words.
    pub change: &'static str,
}

impl Finding {
    /// What it costs on each of its files, nanoseconds of the job: by the part of its time that went there. 0 if that is not
    /// known.
    pub fn lost_by_file_ns(&self) -> impl Iterator<Item = (FileId, f64)> + '_ {
        let (lost_ns, time_ns) = (self.lost_ns.unwrap_or(0.0), self.cost.time_ns.max(1) as f64);
        self.files.iter().map(move |one| (one.id, lost_ns * one.time_ns as f64 / time_ns))
    }

    /// What its calls took, nanoseconds of the job: it cannot cost more.
    pub fn time_ns(&self) -> f64 {
        (self.cost.time_ns as f64 / self.together.max(1.0)).min(self.cost.span_ns() as f64)
    }

    /// What findings are ordered by: their cost, or the most that it can be.
    pub(crate) fn weight_ns(&self) -> f64 {
        self.lost_ns.unwrap_or_else(|| self.time_ns())
    }
}

/// A file or process, and its part in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Involved<Id> {
    /// The file or process, by its number in the trace.
    pub id: Id,
    /// Its calls.
    pub calls: u64,
    /// What they took, nanoseconds.
    pub time_ns: u64,
}

/// What only one kind of finding can say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detail {
    /// Nothing more.
    None,
    /// Of [`Kind::CyclicRereads`]: bytes that a process moved from one pass to the next, and passes.
    Cycle {
        /// Bytes from pass to pass.
        bytes: u64,
        /// Times that reading began anew.
        passes: u64,
    },
    /// Of [`Kind::RandomMapping`]: what the processes mapped of the files.
    Mapped {
        /// Bytes of all mappings.
        bytes: u64,
    },
    /// Of [`Kind::UnalignedRequests`]: what the system had to fetch.
    Fetched {
        /// Pages of which a part was written.
        pages: u64,
    },
    /// Of [`Kind::UnalignedSharing`]: how the file of most time lies on a parallel file system.
    Stripes {
        /// From one target to the next (Lustre), or of a block (GPFS).
        bytes: u64,
    },
    /// Of [`Kind::FewStripes`] and [`Kind::ManyStripes`], of events: how the largest of the files lies.
    Placed {
        /// Its size as far as the trace tells, bytes.
        size_bytes: u64,
        /// How it lies on the file system's targets.
        striping: Striping,
    },
    /// Of [`Kind::OneWriter`]: part of all bytes, 0 to 1.
    Part(f64),
    /// Of [`Kind::Straggler`] and [`Kind::UnevenRanks`]: the largest, and what it is compared with, nanoseconds or bytes.
    Against {
        /// The largest.
        largest: u64,
        /// The median (of a straggler) or the mean.
        others: u64,
    },
    /// Of [`Kind::NoOverlap`]: times that computing and I/O took turns.
    Turns(u64),
    /// Of [`Kind::LateRanks`]: the rank that comes last most.
    Last {
        /// The process that the others wait for.
        process: ProcessId,
        /// Collective calls in which it was the last.
        calls: u64,
        /// Collective calls of this kind in all.
        of: u64,
        /// What the others waited for it, the sum of all processes, nanoseconds.
        waited_ns: u64,
        /// CPU time that it used itself before these calls, since its last collective one, nanoseconds.
        think_ns: u64,
        /// Time in I/O of its own in between, nanoseconds.
        io_ns: u64,
    },
    /// Of [`Kind::InsideLibrary`] and [`Kind::BeyondFiles`]: what the same calls did at the files.
    AtFiles {
        /// Time that they spent there, the sum of all processes, nanoseconds.
        time_ns: u64,
        /// Mean size of the requests that the library made there, bytes; 0 if it made none.
        mean_request_bytes: u64,
    },
    /// Of [`Kind::TooManyRanks`]: ranks of the fullest host, and the processors that it gave them.
    Crowded {
        /// Ranks on the host.
        ranks: u64,
        /// Processors that they may use.
        processors: u64,
        /// Time of all MPI-IO calls inside the MPI library, nanoseconds.
        library_ns: u64,
        /// What they waited for ranks that had no processor, nanoseconds.
        starved_ns: u64,
    },
}

/// A finding in the making.
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) cost: Cost,
    pub(crate) expected_ns: f64,
    pub(crate) waits_ns: f64,
    pub(crate) references: References,
    pub(crate) detail: Detail,
    files: BTreeMap<FileId, (u64, u64)>,
    /// Time on files opened with each of [`OPENED`], nanoseconds.
    opened_ns: [u64; 3],
    pub(crate) by_process: BTreeMap<ProcessId, (u64, u64)>,
    call_sites: BTreeMap<CallSiteId, (u64, u64)>,
}

impl Draft {
    pub(crate) fn of<'a>(kind: Kind, parts: impl IntoIterator<Item = (&'a Slot, Cost)>) -> Draft {
        let mut draft = Draft::empty(kind);
        for (slot, cost) in parts {
            draft.cost.merge(&cost);
            if let Some(file) = slot.file {
                add(&mut draft.files, file, &cost);
            }
            add(&mut draft.by_process, slot.process, &cost);
            draft.add_call_sites(slot, &cost);
            for (sum, holds) in draft.opened_ns.iter_mut().zip([slot.synced, slot.direct, slot.appends]) {
                *sum = sum.saturating_add(if holds { cost.time_ns } else { 0 });
            }
        }
        draft
    }

    pub(crate) fn of_processes(kind: Kind, parts: impl IntoIterator<Item = (ProcessId, Cost)>) -> Draft {
        let mut draft = Draft::empty(kind);
        for (process, cost) in parts {
            draft.cost.merge(&cost);
            add(&mut draft.by_process, process, &cost);
        }
        draft
    }

    /// Of calls on files, each with its calls and what they took, nanoseconds.
    pub(crate) fn of_files(kind: Kind, cost: Cost, files: BTreeMap<FileId, (u64, u64)>) -> Draft {
        Draft { cost, files, ..Draft::empty(kind) }
    }

    pub(crate) fn processes(&self) -> usize {
        self.by_process.len()
    }

    /// The finding. No more can be saved than passes from the first call to the end of the last, however many threads
    /// made them.
    pub(crate) fn finish(self, lost_ns: f64, together: f64) -> Finding {
        let lost_ns = Some(lost_ns.min(self.cost.span_ns() as f64));
        Finding { lost_ns, ..self.finish_unknown(together) }
    }

    /// The finding, of which nobody can tell what it costs.
    pub(crate) fn finish_unknown(self, together: f64) -> Finding {
        let half_ns = (self.cost.time_ns / 2).max(1);
        let held = OPENED.into_iter().zip(self.opened_ns).filter(|(_, time_ns)| *time_ns >= half_ns);
        let opened = held.fold(Flags::NONE, |sum, (flag, _)| sum | flag);
        Finding {
            kind: self.kind,
            lost_ns: None,
            cost: self.cost,
            expected_ns: self.expected_ns,
            waits_ns: self.waits_ns,
            references: self.references,
            together,
            files: largest(self.files, usize::MAX),
            process_count: self.by_process.len() as u64,
            processes: largest(self.by_process, NAMED),
            call_sites: largest(self.call_sites, usize::MAX),
            detail: self.detail,
            opened,
            gains: Vec::new(),
            counters: None,
        }
    }

    fn empty(kind: Kind) -> Draft {
        Draft {
            kind,
            cost: Cost::default(),
            expected_ns: 0.0,
            waits_ns: 0.0,
            references: References::default(),
            detail: Detail::None,
            files: BTreeMap::new(),
            opened_ns: [0; 3],
            by_process: BTreeMap::new(),
            call_sites: BTreeMap::new(),
        }
    }

    fn add_call_sites(&mut self, slot: &Slot, cost: &Cost) {
        // Of opens without a line nobody knows where they are.
        let known: u64 = slot.call_sites.iter().map(|(_, opens)| opens).sum();
        let opens = slot.opens.max(known);
        for (site, count) in &slot.call_sites {
            let part =
                |amount: u64| (u128::from(amount) * u128::from(*count) / u128::from(opens.max(1))) as u64;
            let sum = self.call_sites.entry(*site).or_default();
            sum.0 = sum.0.saturating_add(part(cost.calls));
            sum.1 = sum.1.saturating_add(part(cost.time_ns));
        }
    }
}

fn add<Id: Ord>(sums: &mut BTreeMap<Id, (u64, u64)>, id: Id, cost: &Cost) {
    let sum = sums.entry(id).or_default();
    sum.0 += cost.calls;
    sum.1 = sum.1.saturating_add(cost.time_ns);
}

/// Those that took most, then in order of their ids.
fn largest<Id: Copy + Ord>(sums: BTreeMap<Id, (u64, u64)>, most: usize) -> Vec<Involved<Id>> {
    let mut all: Vec<_> =
        sums.into_iter().map(|(id, (calls, time_ns))| Involved { id, calls, time_ns }).collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.time_ns), one.id));
    all.truncate(most);
    all
}
