//! Which MPI.
//!
//! A machine may have several. Their launchers, compilers and libraries have the same names, and none of them works with
//! another's: each job must be put together from the parts of one.

mod choose;
mod commands;
mod compiler;
mod header;
mod library;
mod refusal;

pub use choose::{Chosen, Found, NoCompiler, compiler_for, library_of, loaded_by};
pub use commands::{Commands, Family, Missing, any_ranks, for_own_job, is_launcher, on_path};
pub use compiler::show;
pub use header::Header;
pub use library::Library;
pub use refusal::refusal;
