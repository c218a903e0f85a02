//! What the ranks of a job have in common: MPI, as the shim hands it to us, the memory that ranks of a node share, and
//! waiting for each other.

pub(crate) mod backoff;
pub(crate) mod communicator;
pub(crate) mod mailbox;
pub(crate) mod memory;
pub(crate) mod processors;
pub(crate) mod progress;
pub(crate) mod progress_thread;
pub(crate) mod recorder;
pub(crate) mod shared_memory;
pub(crate) mod signals;
pub(crate) mod status;
pub(crate) mod table;
