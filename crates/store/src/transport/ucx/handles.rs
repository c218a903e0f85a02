//! What UCX hands out in its callbacks, to be given back to it later.

#![allow(unsafe_code, reason = "UCX's pointers go from one thread to another")]

use std::ffi::c_void;

use super::library;

/// A request of a client to be connected.
#[derive(Debug)]
pub(super) struct ConnectionRequest(pub(super) library::ConnectionRequest);

// SAFETY: it is handed from the listener's worker to that of the connection.
unsafe impl Send for ConnectionRequest {}

/// Data that are still with who sent them: to be [fetched](super::worker::Worker::fetch) or [discarded](super::worker::Worker::discard).
#[derive(Debug)]
pub(super) struct Descriptor(pub(super) *mut c_void);

// SAFETY: it stays with the worker that it came through.
unsafe impl Send for Descriptor {}
