//! Traces and logs of other tools.

pub mod darshan;
