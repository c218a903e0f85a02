//! What runs inside the program.

mod boundary;
mod cache;
mod channel;
mod communicator;
mod driver;
mod file;
mod memory;
mod message_log;
mod pieces;
mod segment;
mod settings;
mod status;
mod storage;
