//! All tests of the crate from outside in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod advice;
mod any_trace;
mod automatic_choice;
mod central_queue;
mod circuit;
mod closed_forms;
mod dragonfly;
mod flow;
mod flow_packets;
mod generated;
mod io_node;
mod io_nodes;
mod parallel_files;
mod queueing;
mod rails;
mod strategies;
mod topology;
mod traffic;
mod wormhole;
mod wormhole_naive;
