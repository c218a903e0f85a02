//! All tests of this crate in one program: that is linked once, and runs on all cores. `signals` is
//! beside it, alone in its process.

mod asynchronous;
mod call_sites;
mod common;
mod damage;
mod headers;
mod libraries;
mod marks;
mod memory;
mod mpi_jobs;
mod open_flags;
mod posix;
mod processes;
mod python_marks;
mod recorded;
mod refusals;
mod selection;
mod sizes;
mod started;
mod streams;
mod used;
