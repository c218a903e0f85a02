//! What runs inside the program.

mod access;
mod boundary;
mod cache;
mod channel;
mod common;
mod communicator;
mod companion;
mod coroutine;
mod detour;
mod driver;
mod file;
mod hints;
mod memory;
mod message_log;
mod opening;
mod pieces;
mod plain;
mod remote;
mod requests;
mod segment;
mod settings;
mod status;
mod storage;
mod turns;
mod views;
