//! Open files as MPI has them: handles, views, file pointers, hints.

pub(crate) mod access;
pub(crate) mod handle;
pub(crate) mod hints;
mod open;
pub(crate) mod settings;
#[cfg(test)]
mod twin;
mod views;
mod writes;
