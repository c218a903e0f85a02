//! All tests of the command in one program: that is linked once, and runs on all cores.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod advise;
mod commands;
mod compare;
mod darshan;
mod disk;
mod faults;
mod fit;
mod gain;
mod here;
mod jobs;
mod json;
mod limits;
mod miller_katz;
mod mpi;
mod output;
mod own_way;
mod reproduce_coll;
mod reproduce_hong;
mod reproduce_scoreboards;
mod serve;
#[path = "support/servers.rs"]
mod servers;
mod store;
mod support;
mod sweep;
mod twins;
mod ucx;
mod wrong_input;
