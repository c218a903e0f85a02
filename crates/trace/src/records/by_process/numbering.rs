//! Numbers of handles and views that are the same in ranks that do alike.

use crate::event::{Event, Target};
use crate::tables::{HandleId, ProcessId, Tables, ViewId};
use crate::varint;

/// The first handle of each process. A process has its own handles in the same order as its neighbours, so their distance
/// from the first is the same.
#[derive(Default)]
pub(crate) struct FirstHandles {
    /// By process; none if it has no handle yet.
    first: Vec<Option<u32>>,
    known: usize,
}

impl FirstHandles {
    /// Takes note of the handles that the tables have beyond those that it knows.
    pub(crate) fn update(&mut self, tables: &Tables) {
        self.first.resize(tables.processes.len(), None);
        for (handle, id) in tables.handles.iter().zip(0..).skip(self.known) {
            if let Some(first) = self.first.get_mut(handle.process.index()) {
                first.get_or_insert(id);
            }
        }
        self.known = tables.handles.len();
    }

    fn of(&self, process: ProcessId) -> Option<u32> {
        self.first.get(process.index()).copied().flatten()
    }

    /// The number of an event's handle: 0 for none; odd if it is the process's own, and then 1 + twice its distance from the
    /// process's first; else 2 + twice its id.
    #[inline]
    pub(super) fn number(&self, event: &Event, tables: &Tables) -> u64 {
        let Some(handle) = event.handle else { return 0 };
        let is_own = tables.handles.get(handle.index()).is_some_and(|found| found.process == event.process);
        let from_first = self.of(event.process).and_then(|first| handle.0.checked_sub(first));
        match from_first.filter(|_| is_own) {
            Some(distance) => 1 + 2 * u64::from(distance),
            None => 2 + 2 * u64::from(handle.0),
        }
    }

    /// The handle of this number, or what was expected instead.
    #[inline]
    pub(super) fn handle(
        &self,
        number: u64,
        process: ProcessId,
        tables: &Tables,
    ) -> Result<Option<HandleId>, &'static str> {
        if number == 0 {
            return Ok(None);
        }
        let first = if number % 2 == 1 { self.of(process).ok_or("a process with handles")? } else { 0 };
        let id =
            u64::from(first).checked_add((number - 1) / 2).filter(|id| *id < tables.handles.len() as u64);
        Ok(Some(HandleId(id.ok_or("a handle of the tables")? as u32)))
    }
}

/// Views are numbered from a place that moves on with the process: ranks that do alike have as many views each, which differ.
#[derive(Clone, Copy)]
pub(super) struct Views {
    /// Views of a process.
    pub(super) step: u64,
}

impl Views {
    /// As most neighbours have it: the events are in order of process.
    pub(super) fn of<'a>(events: impl Iterator<Item = &'a Event>) -> Views {
        let mut first: Option<(ProcessId, u32)> = None;
        let mut least: Option<(ProcessId, u32)> = None;
        let mut steps = std::collections::BTreeMap::<u64, u32>::new();
        let mut note = |before: Option<(ProcessId, u32)>, now: Option<(ProcessId, u32)>| {
            if let (Some((process, view)), Some((next, next_view))) = (before, now)
                && let Some(distance) = next_view.checked_sub(view)
                && next.0 == process.0 + 1
            {
                *steps.entry(distance.into()).or_default() += 1;
            }
        };
        for event in events {
            let Target::View { view, .. } = event.target else { continue };
            match &mut least {
                Some((process, found)) if *process == event.process => *found = (*found).min(view.0),
                _ => {
                    note(first, least);
                    first = least;
                    least = Some((event.process, view.0));
                }
            }
        }
        note(first, least);
        let most = steps.into_iter().max_by_key(|&(step, count)| (count, std::cmp::Reverse(step)));
        Views { step: most.map_or(0, |(step, _)| step) }
    }

    /// The number of an event's view; 0 if it has none.
    #[inline]
    pub(super) fn number(self, event: &Event) -> u64 {
        match event.target {
            Target::View { view, .. } => {
                varint::fold(i64::from(view.0).wrapping_sub(self.base(event.process) as i64))
            }
            _ => 0,
        }
    }

    /// The view of this number.
    #[inline]
    pub(super) fn view(
        self,
        number: u64,
        process: ProcessId,
        tables: &Tables,
    ) -> Result<ViewId, &'static str> {
        let id = varint::unfold(number).wrapping_add(self.base(process) as i64);
        let known = u32::try_from(id).ok().filter(|id| (*id as usize) < tables.views.len());
        Ok(ViewId(known.ok_or("a view of the tables")?))
    }

    fn base(self, process: ProcessId) -> u64 {
        self.step.wrapping_mul(process.0.into())
    }
}
