//! What runs inside the program.

mod boundary;
mod cache;
mod channel;
mod common;
mod communicator;
mod driver;
mod file;
mod memory;
mod message_log;
mod pieces;
mod requests;
mod segment;
mod settings;
mod status;
mod storage;
