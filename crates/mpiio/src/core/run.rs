//! Carrying out operations: what a strategy asks for, with messages, shared memory and storage.

mod buffers;
pub(crate) mod channel;
pub(crate) mod channel_pool;
mod copy;
pub(crate) mod driver;
mod message_log;
pub(crate) mod queue;
mod recorded_operation;
mod transfer_path;
pub(crate) mod working_memory;
