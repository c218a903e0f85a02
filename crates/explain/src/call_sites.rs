//! What each line of a program opened, and what was read and written through that.
//!
//! An open says where in the program it was made, if the recorder knows ([`pio_trace::CallSite`]). All calls through its handle
//! count for that line. They are counted at the file system, as what is done within phases is ([`crate::marked`]).

use std::collections::HashMap;

use pio_trace::{CallSite, Event, HandleId, MarkNameId, Op, Tables};

use crate::tally::{Seen, Tally};

/// Lines that are kept apart; a program has some hundreds. Those of further lines are not counted.
const MOST: usize = 1 << 16;

/// A line of the program, by its name and number in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallSiteId {
    /// Of its file, function and library.
    pub name: MarkNameId,
    /// The number of the line.
    pub line: u64,
}

impl CallSiteId {
    /// The call site of an open; none of all other events, and where it is not known.
    pub(crate) fn of(event: &Event) -> Option<CallSiteId> {
        event.call_site().map(|(name, line)| CallSiteId { name, line })
    }
}

/// What was opened at one line of the program, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSiteStatistics {
    /// By which findings name it.
    pub id: CallSiteId,
    /// Its path, function and library, as [`CallSite::of`] reads them.
    pub name: String,
    /// Opens that were made there.
    pub opens: Tally,
    /// What was done through its handles.
    pub moved: Moved,
    /// Of the time of all these calls, that of calls that began within phases or marks of a name, by its index in
    /// [`crate::Marked::names`]; nanoseconds.
    pub within_ns: Vec<(usize, u64)>,
}

impl CallSiteStatistics {
    /// The line.
    pub fn call_site(&self) -> CallSite<'_> {
        CallSite::of(&self.name, self.id.line)
    }

    /// All calls.
    pub fn all(&self) -> Tally {
        self.opens.merged(self.moved.all())
    }

    fn new(id: CallSiteId) -> CallSiteStatistics {
        CallSiteStatistics {
            id,
            name: String::new(),
            opens: Tally::default(),
            moved: Moved::default(),
            within_ns: Vec::new(),
        }
    }
}

/// Calls on files by what they move, and where from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Reads of files that memory had, as far as the kernel says it.
    pub from_memory: Tally,
    /// Reads of files of which memory had less than half when they were opened, and reads past the page cache.
    pub from_storage: Tally,
    /// Writes.
    pub written: Tally,
    /// Calls that move nothing.
    pub other: Tally,
}

impl Moved {
    /// All of them.
    pub fn all(&self) -> Tally {
        self.from_memory.merged(self.from_storage).merged(self.written).merged(self.other)
    }

    #[inline]
    pub(crate) fn add(&mut self, event: &Seen<'_>, is_cold: bool) {
        let tally = match event.op() {
            Op::Read if is_cold => &mut self.from_storage,
            Op::Read => &mut self.from_memory,
            Op::Write => &mut self.written,
            _ => &mut self.other,
        };
        tally.add(event);
    }
}

/// Takes calls at the file system, in order of their start.
#[derive(Default)]
pub(crate) struct CallSites {
    known: HashMap<CallSiteId, u32>,
    sites: Vec<CallSiteStatistics>,
    /// By handle: one more than the place in `sites` of where it was opened, 0 for none. Empty until the first is known.
    of_handles: Vec<u32>,
}

impl CallSites {
    /// Where a call's file was opened, for what [`Self::count`] wants: learns it from opens.
    #[inline]
    pub(crate) fn find(&mut self, event: &Event, tables: &Tables) -> Option<usize> {
        if let Some(id) = CallSiteId::of(event) {
            self.learn(id, event.handle, tables);
        }
        let HandleId(handle) = event.handle?;
        self.of_handles.get(handle as usize)?.checked_sub(1).map(|site| site as usize)
    }

    fn learn(&mut self, id: CallSiteId, handle: Option<HandleId>, tables: &Tables) {
        if self.of_handles.is_empty() {
            self.of_handles.resize(tables.handles.len(), 0);
        }
        let Some(of_handle) = handle.and_then(|handle| self.of_handles.get_mut(handle.index())) else {
            return;
        };
        let next = self.sites.len() as u32;
        if next as usize == MOST && !self.known.contains_key(&id) {
            return;
        }
        let site = *self.known.entry(id).or_insert(next);
        if site == next {
            self.sites.push(CallSiteStatistics::new(id));
        }
        *of_handle = site + 1;
    }

    /// Counts a call for a line.
    pub(crate) fn count(&mut self, site: usize, event: &Seen<'_>, is_cold: bool) {
        let site = &mut self.sites[site];
        match event.op() {
            Op::Open => site.opens.add(event),
            _ => site.moved.add(event, is_cold),
        }
    }

    /// Counts its time for the phases of a name.
    pub(crate) fn count_within(&mut self, site: usize, name: usize, elapsed_ns: u64) {
        let within = &mut self.sites[site].within_ns;
        match within.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(elapsed_ns),
            None => within.push((name, elapsed_ns)),
        }
    }

    /// The id of a place that [`Self::find`] told.
    pub(crate) fn id(&self, site: usize) -> CallSiteId {
        self.sites[site].id
    }

    /// Those that took the most time first.
    pub(crate) fn finish(self, tables: &Tables) -> Vec<CallSiteStatistics> {
        let mut sites = self.sites;
        for site in &mut sites {
            site.name = tables.mark_names.get(site.id.name.index()).cloned().unwrap_or_default();
            site.within_ns.sort_unstable();
        }
        sites.sort_by_key(|site| (std::cmp::Reverse(site.all().time_ns), site.id));
        sites
    }
}
