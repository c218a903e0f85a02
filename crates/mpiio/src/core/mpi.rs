//! What the ranks of a job have in common: MPI, as the shim hands it to us, the memory that ranks of a node share, and
//! waiting for each other.

pub mod backoff;
pub mod communicator;
pub mod mailbox;
pub mod memory;
pub mod processors;
pub mod progress;
pub mod progress_thread;
pub mod shared_memory;
pub mod status;
pub mod table;
