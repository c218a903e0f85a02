//! Disks: how long requests take.
//!
//! [`DriveModel`] is a whole drive: zones, arm, spindle, buffer. [`replay()`] runs a recorded series of requests through it
//! and sets what it says beside what was measured. `docs/design/disks.md` explains the model and what it leaves out.

mod arm;
mod device;
mod drive;
#[cfg(test)]
mod example;
mod flash;
mod geometry;
mod group;
mod replay;
mod request;
mod segments;
mod service_times;
mod station;
mod trace;
mod waiting;

pub use device::Device;
pub use drive::DriveModel;
pub use flash::{FlashActions, FlashEvent, FlashLoad, FlashModel, FlashRun, Read, Work};
pub use group::{DiskGroup, GroupActions, GroupEvent};
pub use replay::{Class, Replayed, replay};
pub use request::{DiskError, Outcome, Request, Served};
pub use service_times::ServiceTimes;
pub use station::{Extent, StationEvent};
pub use trace::{DiskTrace, DiskTraceError, Seen, TracedRequest};
pub use waiting::Waiting;
