//! What is wrong with the job or its trace: reports show it first.

use pio_trace::{Call, Layer, Losses, Op, Tables};

/// Failed and unfinished calls, and what the trace lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Failed calls, harmless ones too, by function and error; most frequent first.
    pub failures: Vec<Failure>,
    /// The MPI library, which says what error classes are; none if the trace does not name it.
    pub mpi_library: Option<String>,
    /// Calls that had not returned when the trace ended, by function.
    pub unfinished: Vec<(Call, u64)>,
    /// Processes that did not end by themselves, nor ran on when the trace was made.
    pub killed_processes: u64,
    /// What the trace lacks, as Pioscope's recorder says it.
    pub losses: Losses,
    /// What the recorder was told to keep, in its words, where that is not all.
    pub filter: Option<String>,
    /// What other tools say of events that they lost, in their own words (notes that name dropped or lost events).
    pub dropped: Vec<String>,
    /// Parts of the trace file that could not be read, in words.
    pub damage: Vec<String>,
}

/// Calls of one function that failed with one error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The function.
    pub call: Call,
    /// POSIX `errno`, or the MPI error class for the MPI layers.
    pub error: i64,
    /// How many calls.
    pub count: u64,
}

impl Failure {
    /// Whether healthy programs make such calls all the time: they look for a file along a path, ask what a name is, or
    /// try a call to learn whether it is possible. Below MPI-IO alone: there a program names the file it means.
    pub fn is_harmless(&self) -> bool {
        const ENOENT: i64 = 2;
        const EBADF: i64 = 9;
        const EAGAIN: i64 = 11;
        const EEXIST: i64 = 17;
        const ENOTDIR: i64 = 20;
        const EINVAL: i64 = 22;
        const ENOTTY: i64 = 25;
        const ESPIPE: i64 = 29;
        const ENODATA: i64 = 61;
        const EOPNOTSUPP: i64 = 95;
        if !matches!(self.call.layer(), Layer::Posix | Layer::Stdio) {
            return false;
        }
        match self.call.op() {
            // EINVAL: readlink of what is no link.
            Op::Metadata => {
                matches!(self.error, ENOENT | EEXIST | ENOTDIR | EINVAL | ENOTTY | ENODATA | EOPNOTSUPP)
            }
            Op::Open => matches!(self.error, ENOENT | EEXIST | ENOTDIR),
            Op::Read | Op::Write => self.error == EAGAIN,
            Op::Seek => self.error == ESPIPE,
            // Daemons close every number that could be open.
            Op::Close => self.error == EBADF,
            Op::Sync | Op::View | Op::Communicate | Op::Mark => false,
        }
    }
}

impl Trouble {
    /// Whether there is nothing to tell, but for calls whose failing is harmless.
    pub fn is_empty(&self) -> bool {
        self.failures.iter().all(Failure::is_harmless)
            && self.unfinished.is_empty()
            && self.killed_processes == 0
            && self.losses.unseen.is_empty()
            && !self.is_incomplete()
    }

    /// What the tables of a trace say of the job.
    pub fn of(tables: &Tables) -> Trouble {
        let losses = Losses::from_notes(&tables.notes);
        let without_end = tables.processes.iter().filter(|process| process.end_ns.is_none()).count();
        let dropped = |(key, value): &&(String, String)| {
            let name = key.to_lowercase();
            let is_known = matches!(key.as_str(), "lost calls" | "lost processes");
            (name.contains("dropped") || name.contains("lost")) && !is_known && value.trim() != "0"
        };
        Trouble {
            killed_processes: without_end.saturating_sub(losses.running.len()) as u64,
            dropped: tables
                .notes
                .iter()
                .filter(dropped)
                .map(|(key, value)| format!("{key}: {value}"))
                .collect(),
            losses,
            filter: tables.note("filter").map(str::to_owned),
            mpi_library: tables.mpi_library().map(str::to_owned),
            ..Trouble::default()
        }
    }

    /// Whether the trace lacks calls of the programs that it saw: then counts, bytes and times are at least so large.
    pub fn is_incomplete(&self) -> bool {
        let losses = &self.losses;
        !losses.missing().is_zero()
            || losses.missing_ranks > 0
            || losses.lost_processes > 0
            || losses.damaged_places > 0
            || self.filter.is_some()
            || !self.dropped.is_empty()
            || !self.damage.is_empty()
    }

    /// Failed calls in all, but for harmless ones.
    pub fn failed(&self) -> u64 {
        let harmful = self.failures.iter().filter(|failure| !failure.is_harmless());
        harmful.map(|failure| failure.count).sum()
    }

    /// Unfinished calls in all.
    pub fn unfinished(&self) -> u64 {
        self.unfinished.iter().map(|(_, count)| count).sum()
    }
}
