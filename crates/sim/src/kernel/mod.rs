//! The kernel of the simulator: what every model stands on.
//!
//! Time is whole picoseconds; what happens at the same time happens in the order in which it was added. Each part of a
//! machine is a [`Model`]; [`run`] is the loop that lets several of them happen together. A model owns an [`Events`] of its
//! own kind of happening, so that nothing is allocated for one. What is random comes from named
//! [`Stream`]s; what is measured goes into a [`Histogram`] or [`BatchMeans`], whose size does not grow with a run.

mod elementary;
mod estimate;
mod events;
mod histogram;
mod level;
mod model;
mod queue;
mod random;
mod slab;
mod stop;
mod time;

pub use estimate::{BatchMeans, Estimate, WarmUp};
pub use events::Events;
pub use histogram::Histogram;
pub use level::Level;
pub use model::{Model, Simulation, advance_events, run};
pub use queue::Queue;
pub use random::Stream;
pub use slab::Slab;
pub use stop::Stop;
pub use time::Time;
