//! What one process does with one file.

use std::collections::HashMap;

use pio_trace::{Event, FileId, HandleId, ProcessId, Tables};

use super::alignment::Edges;
use super::class::Costs;
use super::mappings::Mapped;
use super::ranges::Ranges;
use super::streams::Streams;
use crate::call_sites::CallSiteId;

/// One process and one file that it used; or none, for its calls on names.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) file: Option<FileId>,
    pub(crate) process: ProcessId,
    pub(crate) costs: Costs,
    pub(crate) opens: u64,
    /// Where in the program it was opened, and how often there.
    pub(crate) call_sites: Vec<(CallSiteId, u64)>,
    pub(crate) appends: bool,
    /// By an open with `O_SYNC` or `O_DSYNC`, and by one with `O_DIRECT`.
    pub(crate) synced: bool,
    pub(crate) direct: bool,
    /// First byte and end of its MPI-IO, as offsets of the file.
    pub(crate) span: Option<(u64, u64)>,
    /// First byte and end of its reads here and there.
    pub(crate) reach: Option<(u64, u64)>,
    pub(crate) mapped: Option<Mapped>,
    pub(crate) read: bool,
    pub(crate) written: bool,
    pub(crate) reuse: Option<Box<Reuse>>,
    /// Of writes that begin or end within a page, where it is known what that takes.
    pub(crate) edges: Option<Box<Edges>>,
}

impl Slot {
    /// Lines that are kept of one process and file.
    const MOST_CALL_SITES: usize = 16;

    /// After an open.
    pub(crate) fn add_call_site(&mut self, event: &Event) {
        let Some(id) = CallSiteId::of(event) else { return };
        if let Some((_, opens)) = self.call_sites.iter_mut().find(|(known, _)| *known == id) {
            *opens += 1;
        } else if self.call_sites.len() < Slot::MOST_CALL_SITES {
            self.call_sites.push((id, 1));
        }
    }
}

/// Which bytes of a file a process has had, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reuse {
    /// Bytes read, and not written since by this process.
    pub(crate) read: Ranges,
    /// Extents written last, with the process's count of bytes at that time.
    pub(crate) recent: [(u64, u64, u64); 8],
    pub(crate) newest: u8,
    /// Start of the latest read.
    pub(crate) last_start: u64,
    /// Times that reading went back to what had been read.
    pub(crate) passes: u64,
    /// The process's count of bytes at the last such time, and the sum of the differences.
    pub(crate) pass_clock: u64,
    pub(crate) pass_bytes: u64,
    /// Bytes and time of what was read for the first time.
    pub(crate) first_bytes: u64,
    pub(crate) first_ns: u64,
}

/// What is known of one handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandleState {
    /// Its slot, and the process of that: to look there would be to wait for memory.
    slot: Option<(u32, ProcessId)>,
    /// Whether its open was not the first of its process and file.
    pub(crate) reopened: bool,
    /// Written since the last sync, bytes.
    pub(crate) unsynced: u64,
    /// Written since the last flush of its stream, bytes.
    pub(crate) unflushed: u64,
    pub(crate) streams: Option<Box<[Streams; 2]>>,
}

/// All slots, and which one each handle belongs to.
pub(crate) struct Slots {
    pub(crate) slots: Vec<Slot>,
    pub(crate) handles: Vec<HandleState>,
    known: HashMap<(Option<FileId>, ProcessId), u32>,
}

impl Slots {
    pub(crate) fn new(tables: &Tables) -> Slots {
        Slots {
            slots: Vec::new(),
            handles: vec![HandleState::default(); tables.handles.len()],
            known: HashMap::new(),
        }
    }

    /// The slot of a process's calls through a handle: a child goes on with its parent's, but in a slot of its own.
    pub(crate) fn of_handle(
        &mut self,
        tables: &Tables,
        handle: HandleId,
        process: ProcessId,
    ) -> Option<usize> {
        let state = self.handles.get(handle.index())?;
        if let Some((slot, of)) = state.slot
            && of == process
        {
            return Some(slot as usize);
        }
        let file = tables.handles.get(handle.index())?.file;
        let slot = self.find(Some(file), process);
        self.handles[handle.index()].slot = Some((slot as u32, process));
        Some(slot)
    }

    /// The slot of a process's calls on a name, or on those that the trace does not tell.
    pub(crate) fn of_name(&mut self, named: Option<FileId>, process: ProcessId) -> usize {
        self.find(named, process)
    }

    fn find(&mut self, file: Option<FileId>, process: ProcessId) -> usize {
        let next = self.slots.len() as u32;
        let slot = *self.known.entry((file, process)).or_insert(next);
        if slot == next {
            self.slots.push(Slot {
                file,
                process,
                costs: Costs::default(),
                opens: 0,
                call_sites: Vec::new(),
                appends: false,
                synced: false,
                direct: false,
                span: None,
                reach: None,
                mapped: None,
                read: false,
                written: false,
                reuse: None,
                edges: None,
            });
        }
        slot as usize
    }
}
