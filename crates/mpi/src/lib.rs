//! Which MPI.
//!
//! A machine may have several. Their launchers, compilers and libraries have the same names, and none of them works with
//! another's: each job must be put together from the parts of one.

mod choose;
mod commands;
mod library;
mod refusal;

pub use choose::{Chosen, NoCompiler, compiler_for};
pub use commands::{Commands, Family, Missing, any_ranks, any_ranks_by_default, is_launcher, on_path};
pub use library::Library;
pub use refusal::refusal;
