//! Findings from counters alone, as a Darshan log without DXT has them.
//!
//! They are the same [`Finding`]s as those of events, of the same kinds, and are told alike. What differs is what is
//! known: sums over a file and interface, not calls. So
//!
//! - the *time of some calls* of a file is at most their part of its calls: small calls take no longer than large ones;
//! - a *cost* is given where other files of the log tell what large requests reach, or where the calls need not have been
//!   made at all; else the finding has none, and says what part of the run its calls take at most;
//! - *seconds of the job* are those of the process that spent most, as far as Darshan tells processes apart: files of
//!   single processes by their records, a file that all used by its slowest process.
//!
//! Like calls, the reads, writes and metadata calls of a file are charged to at most one of the findings about requests
//! and names; balance, alignment and stripes look at the same time from another side. What the trace's events cover
//! ([`Covered`]) is judged by them, and not again here.

mod balance;
mod draft;
mod metadata;
mod rates;
mod requests;
mod stripes;

use std::collections::{BTreeMap, BTreeSet};

use pio_import::darshan::Module;

use super::limits::LOST_NS;
use super::{Finding, Kind};
use crate::counted::{Counted, CountedFile, UsedBy};
pub(crate) use draft::Names;

use rates::Rates;

/// What events have told already.
pub(crate) struct Covered {
    /// Files whose reads and writes were traced.
    pub(crate) files: BTreeSet<String>,
    /// Kinds of findings that events led to.
    pub(crate) kinds: BTreeSet<Kind>,
}

/// What the findings are made from.
struct Judge<'a> {
    counted: &'a Counted,
    covered: &'a Covered,
    /// How each file was accessed by each interface.
    views: BTreeMap<&'a str, View<'a>>,
    rates: Rates<'a>,
    /// Bytes of all files' reads and writes, below MPI-IO; and of those by streams.
    moved_bytes: u64,
    streamed_bytes: u64,
}

/// One file: an index into [`Counted::files`], and what is there.
type Seen<'a> = (usize, &'a CountedFile);

/// One file, interface by interface.
#[derive(Clone, Copy, Default)]
struct View<'a> {
    posix: Option<Seen<'a>>,
    stdio: Option<Seen<'a>>,
    mpi_io: Option<Seen<'a>>,
    /// DAOS's own file system.
    dfs: Option<Seen<'a>>,
}

/// The findings, those that cost most first. `names` gives files and processes their ids.
pub(crate) fn findings<'c>(
    counted: &'c Counted,
    covered: &'c Covered,
    names: &mut Names<'_, 'c>,
) -> Vec<Finding> {
    let judge = Judge::of(counted, covered);
    let mut drafts = Vec::new();
    drafts.extend(requests::drafts(&judge));
    drafts.extend(metadata::drafts(&judge));
    drafts.extend(balance::drafts(&judge));
    drafts.extend(stripes::drafts(&judge));
    drafts.retain(|draft| !covered.kinds.contains(&draft.kind));
    let mut findings: Vec<Finding> =
        drafts.into_iter().filter_map(|draft| draft.finish(&judge, names)).collect();
    super::share_time(&mut findings, (judge.io_s() * 1e9) as u64);
    super::sort(&mut findings);
    findings
}

impl<'a> Judge<'a> {
    fn of(counted: &'a Counted, covered: &'a Covered) -> Judge<'a> {
        let mut views: BTreeMap<&str, View<'_>> = BTreeMap::new();
        for seen in counted.files.iter().enumerate() {
            let view = views.entry(&seen.1.name).or_default();
            match seen.1.module {
                Module::Posix => view.posix = Some(seen),
                Module::Stdio => view.stdio = Some(seen),
                Module::MpiIo => view.mpi_io = Some(seen),
                Module::Dfs => view.dfs = Some(seen),
                _ => {}
            }
        }
        let sum = |all: &mut dyn Iterator<Item = Seen<'_>>| {
            all.fold(0, |sum: u64, (_, file)| sum.saturating_add(file.counts.bytes()))
        };
        let moved_bytes =
            sum(&mut views.values().flat_map(|view| [view.posix, view.stdio, view.dfs]).flatten());
        let streamed_bytes = sum(&mut views.values().filter_map(|view| view.stdio));
        Judge { counted, covered, rates: Rates::of(counted), views, moved_bytes, streamed_bytes }
    }

    /// Files whose reads and writes no event has told of.
    fn untraced(&self) -> impl Iterator<Item = &View<'a>> {
        let views = self.views.iter().filter(|(name, _)| !self.covered.files.contains(**name));
        views.map(|(_, view)| view)
    }

    /// Processes that used a file.
    fn users(&self, file: &CountedFile) -> u64 {
        match file.used_by {
            UsedBy::All => self.counted.processes.max(1),
            UsedBy::Some(count) => count.max(1),
        }
    }

    fn is_shared(&self, file: &CountedFile) -> bool {
        self.users(file) > 1
    }

    /// How many processes were in calls on a file at a time, from what its slowest one took.
    fn together(&self, file: &CountedFile) -> f64 {
        let most = self.users(file) as f64;
        let slowest_s = file.slowest.map_or(0.0, |slowest| slowest.time_s);
        if slowest_s > 0.0 { (file.counts.time_s() / slowest_s).clamp(1.0, most) } else { most }
    }

    /// The least time that a finding must cost, seconds.
    fn least_s(&self, share: f64) -> f64 {
        (self.counted.run_time_s * share).max(LOST_NS / 1e9)
    }

    /// Time in I/O of the process that spent most, seconds, as far as it is known.
    fn io_s(&self) -> f64 {
        let mut spent = draft::Spent::default();
        for view in self.views.values() {
            // MPI-IO does its work by POSIX.
            let at_files = [view.mpi_io.or(view.posix), view.stdio, view.dfs];
            for (_, file) in at_files.into_iter().flatten() {
                spent.add(self, file, |counts| counts.time_s());
            }
        }
        spent.job_s(self)
    }
}

impl<'a> View<'a> {
    /// Whom the program called: MPI-IO before what it caused.
    fn program(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        let moved = |seen: &Seen<'_>| seen.1.counts.accesses() > 0;
        let by_mpi_io = self.mpi_io.filter(moved);
        [by_mpi_io.or(self.posix), self.dfs].into_iter().flatten().filter(moved)
    }

    /// Whether most of what moved went by collective calls: the library decides about the requests.
    fn is_collective(&self) -> bool {
        self.mpi_io.is_some_and(|(_, file)| file.profile.collective > file.profile.independent)
    }

    fn is_written(&self) -> bool {
        let all = [self.posix, self.stdio, self.mpi_io, self.dfs];
        all.into_iter().flatten().any(|(_, file)| file.counts.writes > 0)
    }
}
