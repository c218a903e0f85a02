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
//! As a Rust library, the crate is for the launcher: [`Apply`] says which environment makes a program use it.

// The core talks to C (the shim and the system) and works on the program's memory and on shared memory.
#![allow(unsafe_code)]

mod apply;
mod core;

pub use apply::{Apply, CoreNotFound, SHIM, core_library};
