//! Open files as MPI has them: handles, views, file pointers, hints.

pub mod access;
pub mod handle;
pub mod hints;
mod open;
pub mod settings;
mod views;
