//! Queueing networks: stations with one or more servers, finite room, and jobs that go from one to the next.
//!
//! A [`Model`] is described, checked and run ([`run`]); a [`Station`] alone can be part of another model's event loop.
//! Where the theory has closed forms (M/M/c, M/G/1, Jackson, mean value analysis), `tests/queueing.rs` checks against
//! them.

mod model;
mod outcome;
mod run;
mod service;
mod station;

pub use model::{Class, Model, Place, Source, Visit};
pub use outcome::{ClassOutcome, Outcome, StationOutcome};
pub use run::{Options, run};
pub use service::Service;
pub use station::Station;
