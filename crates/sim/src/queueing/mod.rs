//! Queueing networks: stations with one or more servers, finite room, and jobs that go from one to the next.
//!
//! A [`QueueingNetwork`] is described, checked and run ([`run()`]); a [`Station`] alone can be part of another model's
//! event loop.
//! Where the theory has closed forms (M/M/c, M/G/1, Jackson, mean value analysis), `tests/all/queueing.rs` checks against
//! them.
//!
//! ```
//! use pio_machine::Duration;
//! use pio_sim::kernel::{Stop, Time};
//! use pio_sim::queueing::{Class, QueueingNetwork, Options, Place, Service, Source, Visit, run};
//!
//! let us = |count: u64| Duration::from_picoseconds(count * 1_000_000);
//! // Three requests in ten miss the cache, and go on to one of four disks.
//! let request = Class {
//!     name: "request".to_owned(),
//!     source: Source::Open(Service::Exponential(us(500))),
//!     visits: vec![
//!         Visit { station: 0, service: Service::Constant(us(20)), next: vec![(0.3, 1)] },
//!         Visit::last(1, Service::Exponential(us(900))),
//!     ],
//! };
//! let node = QueueingNetwork {
//!     name: "I/O node".to_owned(),
//!     stations: vec![Place::servers("cpu", 1), Place::servers("disks", 4)],
//!     classes: vec![request],
//! };
//! let stop = Stop { relative_half_width: Some(0.05), ..Stop::default() };
//! let options = Options { seed: 1, warm_up: Some(Time(1_000_000_000_000)), stop };
//! let outcome = run(&node, &options, &mut |_share_done| {})?;
//! // 20 µs and 0.3 times 900 µs, and hardly any wait.
//! let response = outcome.classes[0].response_mean.expect("many requests");
//! assert!((response.mean / 290.5e-6 - 1.0).abs() < 0.05);
//! # Ok::<(), pio_sim::SimError>(())
//! ```

mod network;
mod outcome;
mod run;
mod service;
mod station;

pub use network::{Class, Place, QueueingNetwork, Source, Visit};
pub use outcome::{ClassOutcome, Outcome, StationOutcome};
pub use run::{Options, run};
pub use service::Service;
pub use station::Station;
