//! What runs inside the program, in rooms. Each may use those before it:
//!
//! ```text
//! mpi ◀── storage ◀── run ◀── file ◀── boundary (what the shim calls)
//! ```

mod boundary;
mod file;
mod mpi;
mod run;
mod storage;
