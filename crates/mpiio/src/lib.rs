//! Apply: MPI-IO under unmodified MPI programs.
//!
//! ```text
//!  program ──MPI_File_*──▶ shim (C, over the user's own MPI) ──plain values──▶ core (Rust) ──▶ strategy (pio-plan)
//!                            ▲                                      │
//!                            └────────── table of functions ◀───────┴──▶ files, shared memory
//! ```
//!
//! The shim is preloaded into the program. It is C that the user's own `mpicc` compiles, because a handle of `mpi.h` is
//! a number in one MPI and an address in another; it decides nothing. The core is this crate as a shared library,
//! which the shim loads at the first `MPI_File_open`. The core sees MPI through a table of functions, so one core serves
//! every MPI. It drives the strategies of `pio-plan` with real messages, shared memory and files.
//!
//! # What is carried out
//!
//! All of MPI's chapter on I/O: `docs/mpi-io.md` says how, and what has been run. A call under its `PMPI_` name is
//! carried out, too, because Fortran's functions of most MPIs use these.
//!
//! Independent operations are sieved (or under *independent* and *list*, what these say). Reading past the end moves the
//! file pointer by what was asked for, as MPI's text says (4.1, section 14.4.1), not by what was there.
//!
//! # Environment
//!
//! | variable | says |
//! |---|---|
//! | `PIOSCOPE_MPIIO_CORE` | where the core is |
//! | `PIOSCOPE_STRATEGY` | the strategy, by its name in `pio-plan` |
//! | `PIOSCOPE_HINTS` | hints where the program gives none: `cb_nodes=4,cb_buffer_size=65536` |
//! | `PIOSCOPE_STORE` | the description of the I/O servers that all files are on (else those named `pioscope:NAME`) |
//! | `PIOSCOPE_STORE_FOLDER` | a folder of the store that these files are in |
//! | `PIOSCOPE_TERMS` | what I/O costs at calibrated places, for `auto`: [`Places`] |
//! | `PIOSCOPE_VERBOSE` | set: what `auto` chooses, and why, goes to the standard error output |
//! | `PIOSCOPE_SHARED_MEMORY` | `off`: data go in messages between ranks of one node, too |
//!
//! As a Rust library, the crate is for the launcher: [`Apply`] says which environment makes a program use it.

// The core talks to C (the shim and the system) and works on the program's memory and on shared memory.
#![allow(unsafe_code)]

mod apply;
mod core;
mod places;
mod say;

pub use apply::{Apply, CoreNotFound, SHIM, core_library};
pub use places::Places;
