//! A workload: for each rank, step by step, what it computes and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::{Direction, Hints};
use pio_trace::{Call, File, Flags, HandleId, ViewId};

use super::names::Named;
use crate::error::SimError;

/// Bytes of a call, at most: more than the memory of any node.
const MOST_BYTES: u64 = 1 << 44;

/// The I/O of a program: files, handles, views, and each rank's calls.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// What to call it.
    pub name: String,
    /// The files.
    pub files: Vec<File>,
    /// Those of them that are there before the program begins, and of which the memory of no node has the most.
    pub cold_files: BTreeSet<u32>,
    /// Every open of a file by a rank.
    pub handles: Vec<Open>,
    /// Those whose reads and writes go past the page cache ([`Flags::DIRECT`]), whose writes go on to the device ([`Flags::SYNC`]), or
    /// which cut off what the file had ([`Flags::TRUNCATE`]).
    pub modes: BTreeMap<HandleId, Flags>,
    /// The file views.
    pub views: Vec<View>,
    /// For each group of ranks that open files together: its ranks, ascending.
    pub groups: Vec<Vec<u32>>,
    /// The calls of each rank, in order.
    pub programs: Vec<Vec<Step>>,
    /// For how long each rank uses a processor between calls before it waits for something that is not simulated, and gives
    /// its processor away for that moment; empty, or none for a rank, where that is not known.
    pub stretches: Vec<Option<Duration>>,
    /// The time of each rank's I/O calls that are no steps (those that only name files, C streams, the work of libraries above
    /// MPI-IO), as it was where they were recorded; empty if there are none.
    pub unreplayed: Vec<Duration>,
    /// What those of them that read or write moved, all ranks together.
    pub unreplayed_moves: Moves,
    /// Those of them that only name a file and that some machines know, in the order in which each rank made them; empty if
    /// there are none.
    pub named: Vec<Vec<Named>>,
    /// How long all ranks together were in calls of MPI between those of the workload, if it is not known whether they used
    /// their processors: such time passes by itself.
    pub untold_waits: Duration,
    /// The hints that the program gives to MPI-IO, for each collective open with any.
    pub hints: BTreeMap<u64, Hints>,
    /// The hints of the file that `ROMIO_HINTS` names: what the program and whoever carries out its MPI-IO leave open.
    pub site_hints: Hints,
}

/// What reads and writes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Time with one of them under way on any rank, and no read or write that is a step.
    pub time: Duration,
}

/// One open of one file by one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Index of the file.
    pub file: u32,
    /// The rank that opens it.
    pub rank: u32,
    /// The group that opens it together through MPI-IO; none for an open through POSIX.
    pub group: Option<u32>,
    /// Equal for the opens of one collective call; 0 for none.
    pub collective: u64,
}

/// One call of one rank, and what the rank does before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Processor time between the previous call and this one.
    pub think: Duration,
    /// Time that passes between them whether the rank has a processor or not: it sleeps, or waits for what is not simulated.
    pub idle: Duration,
    /// The call.
    pub what: What,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Opens a handle's file.
    Open(HandleId),
    /// Closes it.
    Close(HandleId),
    /// Sets the view.
    SetView(HandleId, ViewId),
    /// Moves the file pointer.
    Seek(HandleId, Call),
    /// Gives the file this size, bytes; a call that preallocates, no smaller one than it has.
    Resize(HandleId, Call, u64),
    /// Waits until what was written to the file is on its device.
    Sync(HandleId, Call),
    /// Reads or writes through MPI-IO.
    Access {
        /// The handle.
        handle: HandleId,
        /// The function.
        call: Call,
        /// Whether the file is read or written.
        direction: Direction,
        /// The view in force.
        view: ViewId,
        /// Which of its data bytes.
        positions: Range<u64>,
        /// Whether all ranks of the group make it together.
        collective: bool,
    },
    /// Reads or writes through POSIX.
    Request {
        /// The handle.
        handle: HandleId,
        /// The function.
        call: Call,
        /// Whether the file is read or written.
        direction: Direction,
        /// First byte.
        offset: u64,
        /// Bytes that are moved.
        bytes: u64,
    },
    /// Names a file, and opens nothing: `stat`, `unlink`.
    Name {
        /// The function.
        call: Call,
        /// Index of the file.
        file: u32,
    },
    /// A broadcast from one rank to all.
    Broadcast {
        /// The rank that has the data.
        root: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// All ranks met, in messages that were not recorded: none goes on before all have come. It costs nothing of its own, for
    /// it is part of the time between recorded calls.
    Rendezvous,
    /// A collective call of MPI that no rank leaves before all have come: a barrier, or one in which each needs the others' data.
    Meet {
        /// The function.
        call: Call,
        /// How many bytes a rank gives to each other, or to all.
        bytes: u64,
    },
}

impl Workload {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Whether any call goes through MPI-IO: without one, all strategies are the same.
    pub fn has_mpi_io(&self) -> bool {
        self.handles.iter().any(|open| open.group.is_some())
    }

    /// For each file, whether a rank writes to it before it reads from it: such a file counts as made by the program.
    pub(crate) fn made_files(&self) -> Vec<bool> {
        let mut made = vec![false; self.files.len()];
        for program in &self.programs {
            let mut used = BTreeSet::new();
            for step in program {
                let (What::Access { handle, direction, .. } | What::Request { handle, direction, .. }) =
                    &step.what
                else {
                    continue;
                };
                let file = self.handles[handle.index()].file;
                if used.insert(file) && *direction == Direction::Write {
                    made[file as usize] = true;
                }
            }
        }
        made
    }

    /// For each file, the end of what the programs read or write of it.
    pub(crate) fn ends(&self) -> Vec<u64> {
        let mut ends = vec![0; self.files.len()];
        for step in self.programs.iter().flatten() {
            let (handle, end) = match &step.what {
                What::Access { handle, view, positions, .. } => {
                    let view = &self.views[view.index()];
                    let last =
                        positions.end.min(view.limit()).checked_sub(1).and_then(|last| view.offset_of(last));
                    (handle, last.map_or(0, |last| last + 1))
                }
                What::Request { handle, offset, bytes, .. } => (handle, offset.saturating_add(*bytes)),
                _ => continue,
            };
            let known: &mut u64 = &mut ends[self.handles[handle.index()].file as usize];
            *known = end.max(*known);
        }
        ends
    }

    /// Whether all that the programs name is there, and calls move no more than they can, so that whoever runs them can take it for
    /// granted.
    ///
    /// # Errors
    /// The first step that names a file, a handle or a view that is not there, or moves more than [`MOST_BYTES`].
    pub fn check(&self) -> Result<(), SimError> {
        if self.programs.is_empty() {
            return Err(SimError::NoProcess { workload: self.name.clone() });
        }
        let wrong = |what, found: String, expected: String| {
            Err(SimError::Workload { workload: self.name.clone(), what, found, expected })
        };
        let ranks = self.ranks();
        let is_in_order =
            |group: &Vec<u32>| group.is_sorted_by(|one, next| one < next) && group.last() < Some(&ranks);
        if let Some(group) = self.groups.iter().find(|group| group.is_empty() || !is_in_order(group)) {
            return wrong("group", format!("{group:?}"), format!("ascending ranks below {ranks}"));
        }
        let is_file = |file: u32| (file as usize) < self.files.len();
        if let Some(named) = self.named.iter().flatten().find(|named| !is_file(named.file)) {
            return wrong("file", named.file.to_string(), format!("one of {} files", self.files.len()));
        }
        for (rank, program) in self.programs.iter().enumerate() {
            for step in program {
                if let What::Name { file, .. } = step.what
                    && !is_file(file)
                {
                    return wrong("file", file.to_string(), format!("one of {} files", self.files.len()));
                }
                if step.what.bytes() > MOST_BYTES {
                    let most = format!("at most {MOST_BYTES}: no node has memory for more");
                    return wrong("bytes of a call", step.what.bytes().to_string(), most);
                }
                let Some((handle, view)) = step.what.names() else { continue };
                let open =
                    self.handles.get(handle.index()).filter(|open| (open.file as usize) < self.files.len());
                let Some(open) = open else {
                    let expected = format!(
                        "one of {} handles, of one of {} files",
                        self.handles.len(),
                        self.files.len()
                    );
                    return wrong("handle", handle.0.to_string(), expected);
                };
                let members = open.group.and_then(|group| self.groups.get(group as usize));
                let is_member = members.is_some_and(|members| members.binary_search(&(rank as u32)).is_ok());
                let goes_through_mpi = view.is_some() || open.group.is_some();
                if goes_through_mpi && !is_member {
                    let expected = format!("a handle whose group has rank {rank}, which uses it");
                    return wrong("handle", handle.0.to_string(), expected);
                }
                if let Some(view) = view.filter(|view| view.index() >= self.views.len()) {
                    let expected = format!("one of {} views", self.views.len());
                    return wrong("view", view.0.to_string(), expected);
                }
            }
        }
        Ok(())
    }
}

impl What {
    /// What a call moves.
    fn bytes(&self) -> u64 {
        match self {
            What::Access { positions, .. } => positions.end.saturating_sub(positions.start),
            What::Request { bytes, .. } | What::Broadcast { bytes, .. } | What::Meet { bytes, .. } => *bytes,
            _ => 0,
        }
    }

    /// The handle that a call uses, and its view, if it goes through one.
    fn names(&self) -> Option<(HandleId, Option<ViewId>)> {
        match self {
            What::Open(handle)
            | What::Close(handle)
            | What::Seek(handle, _)
            | What::Resize(handle, ..)
            | What::Sync(handle, _) => Some((*handle, None)),
            What::SetView(handle, view) | What::Access { handle, view, .. } => Some((*handle, Some(*view))),
            What::Request { handle, .. } => Some((*handle, None)),
            What::Name { .. } | What::Rendezvous | What::Broadcast { .. } | What::Meet { .. } => None,
        }
    }
}
