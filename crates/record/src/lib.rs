//! Record: the preload libraries and the collector that turns their spools into a trace.
//!
//! Programs are recorded unmodified. Two small C libraries are loaded into every process of a job: one sees the calls of
//! the C library ([`POSIX_LIBRARY`]), the other those of MPI ([`MPI_SHIM`], compiled by the user's own `mpicc`). What
//! they see goes to one *spool* a process, a mapped file that survives any death of the process. When the job is over,
//! [`collect()`] makes one trace of the spools. [`run()`] does it all.
//!
//! What is not seen: programs without the C library's symbols (static ones, Go), and rings of io_uring that cannot be followed,
//! which the trace names with the bytes that they moved; what goes on in mapped memory; and MPI-IO from Fortran where its
//! bindings call `PMPI_` names (Open MPI's do). A file that is copied inside the kernel counts as read and written.

mod collect;
mod error;
mod events;
mod filter;
mod layouts;
mod live;
mod loaded;
mod lustre;
mod marks;
mod members;
mod memory;
mod merge;
mod mounts;
mod paths;
mod placements;
mod plumbing;
mod preload;
mod processors;
mod program;
mod python;
mod rates;
mod rings;
mod run;
mod shim;
mod signals;
mod spool;
mod stripes;
mod survey;
mod times;
mod unseen;
mod whole_file;
mod words;

pub use collect::{Settings, Summary, collect, collect_with};
pub use error::Error;
pub use filter::{Filter, PathRule, Ranks};
pub use live::{Counts, Look, Watch};
pub use loaded::{Loaded, STARTS_LIBRARY, run_loaded};
pub use members::host;
pub use mounts::{Mount, mount_of, mounts};
pub use preload::{can_be_preloaded, may_run, preload_folder};
pub use program::{cannot_see, check, hands_on, is_launcher};
pub use run::{LEAST_BUDGET_BYTES, Options, Outcome, run, run_to_end, run_told};
pub use shim::{MPI_SHIM, compile_shim, is_shim_of};
pub use signals::{PassingFile, PassingFolder, hold_back_the_end, outlive_file_size_limit, was_told_to_end};
pub use whole_file::WholeFile;
pub use words::{quoted, typed};

/// The preload library that records POSIX calls and streams: a shared object for this machine, to be written to a file.
pub const POSIX_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libpio_posix.so"));
