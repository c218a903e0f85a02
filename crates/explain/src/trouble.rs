//! What is wrong with the job or its trace: reports show it first.

use pio_trace::Call;

/// Failed and unfinished calls, and what the trace lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Failed calls, by function and error; most frequent first.
    pub failures: Vec<Failure>,
    /// Calls that had not returned when the trace ended, by function.
    pub unfinished: Vec<(Call, u64)>,
    /// Processes that did not end by themselves.
    pub killed_processes: u64,
    /// What the trace says of events that it lost, in its own words (its notes that name dropped or lost events).
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

impl Trouble {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self == &Trouble::default()
    }

    /// Failed calls in all.
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|failure| failure.count).sum()
    }

    /// Unfinished calls in all.
    pub fn unfinished(&self) -> u64 {
        self.unfinished.iter().map(|(_, count)| count).sum()
    }
}
