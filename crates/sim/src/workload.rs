//! What is simulated: for each rank the calls that a program makes, one after the other.

mod collapse;

use std::ops::Range;

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::Direction;
use pio_trace::{Call, File, HandleId, ViewId};

pub use collapse::{Collapse, collapse};

/// The I/O of a program: files, handles, views, and each rank's calls.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// What to call it.
    pub name: String,
    /// The files.
    pub files: Vec<File>,
    /// Every open of a file by a rank.
    pub handles: Vec<Open>,
    /// The file views.
    pub views: Vec<View>,
    /// For each group of ranks that open files together: its ranks, ascending.
    pub groups: Vec<Vec<u32>>,
    /// The calls of each rank, in order.
    pub programs: Vec<Vec<Step>>,
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

/// One call of one rank, and how long the rank computes before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Time between the previous call and this one.
    pub think: Duration,
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
    /// Reads or writes through MPI-IO.
    Access {
        /// The handle.
        handle: HandleId,
        /// The function.
        call: Call,
        /// Which way.
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
        /// Which way.
        direction: Direction,
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A broadcast from one rank to all.
    Broadcast {
        /// The rank that has the data.
        root: u32,
        /// How many bytes.
        bytes: u64,
    },
}

impl Workload {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }
}
