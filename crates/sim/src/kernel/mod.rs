//! The kernel of the simulator: what every model stands on.
//!
//! Time is whole picoseconds; what happens at the same time happens in the order in which it was added. A model owns an
//! [`Events`] of its own kind of happening, so that nothing is allocated for one.

mod events;
mod queue;
mod time;

pub use events::Events;
pub(crate) use queue::Queue;
pub use time::Time;
