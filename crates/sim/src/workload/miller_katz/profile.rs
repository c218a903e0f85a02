//! How the I/O of each application goes: what Miller and Katz's text says of it, and what must be assumed.
//!
//! *From the text.* venus interleaves its accesses to six files; les alone reads and writes asynchronously; upw and gcm do
//! only required I/O: initial state in, final state out, nothing between; the others stage their data in cycles that
//! resemble each other ("remarkably similar", "evenly spaced"), and write every section of the data once a cycle, so
//! that the number of cycles is the data written over the size of the data set. Sizes are constant within a program.
//! Somewhere, requests come at more than 200 MB/s for several CPU seconds: of those with cycles long enough, les does
//! so if its I/O comes within a quarter of each cycle, and that quarter is taken for all.
//!
//! *Assumed.* That quarter; one file for les, gcm and upw and two for the others; all the I/O of a cycle before its
//! computing; runs of 16 requests of one direction to one file (venus: 1); re-reads a whole pass later, not at once; one
//! percent of the CPU time in each phase of required I/O, whose final state overwrites the initial one.

use pio_machine::Duration;

use super::tables::Published;

/// Miller and Katz's classes of I/O (section 5.1): why it must be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// To read the first state and to write the last.
    Required,
    /// Because memory does not hold the problem: in every cycle.
    Staging,
}

/// How the I/O of an application goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Why its large files are read and written.
    pub class: Class,
    /// Its large files.
    pub files: u32,
    /// Requests of one direction to one file, before another has its turn.
    pub run: u32,
    /// Part of the CPU time of a cycle (or, if its I/O is required, of the whole run for each phase) in which its I/O
    /// comes.
    pub burst: f64,
    /// Whether it goes on before its requests are carried out.
    pub asynchronous: bool,
    /// After how many of its cycles it is broken off, if it is.
    pub first_cycles: Option<u32>,
}

impl Profile {
    /// The profile of an application.
    pub fn of(application: &Published) -> Profile {
        let staging = Profile {
            class: Class::Staging,
            files: 2,
            run: 16,
            burst: 0.25,
            asynchronous: false,
            first_cycles: None,
        };
        match application.name {
            "venus" => Profile { files: 6, run: 1, ..staging },
            "les" => Profile { files: 1, asynchronous: true, ..staging },
            "gcm" | "upw" => Profile { class: Class::Required, files: 1, burst: 0.01, ..staging },
            _ => staging,
        }
    }

    /// Cycles of the program: as many as each can write the whole data set. Required I/O makes one.
    pub fn cycles(&self, application: &Published) -> u32 {
        match self.class {
            Class::Required => 1,
            Class::Staging => {
                let written = application.volume().write_bytes;
                ((written / (application.data_mb * 1e6)) as u32).max(1)
            }
        }
    }

    /// CPU time of one cycle.
    pub fn cycle(&self, application: &Published) -> Duration {
        Duration::from_seconds(application.cpu_s / f64::from(self.cycles(application)))
    }
}
