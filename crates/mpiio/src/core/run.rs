//! Carrying out operations: what a strategy asks for, with messages, shared memory and storage.

mod buffers;
pub mod channel;
pub mod channel_pool;
mod copy;
pub mod driver;
mod message_log;
pub mod queue;
mod transfer_path;
pub mod working_memory;
