//! Moving messages between two processes: one small interface, shared memory behind it where both are on one machine, and
//! the plain TCP that needs nothing installed.

mod address;
mod choice;
mod connection;
mod follow;
mod segment;
mod shared;
mod stream;
mod tcp;
pub mod ucx;

pub use crate::summed::Summed;
pub use address::Address;
pub use choice::Transport;
pub use connection::{Breaker, Connection, Listener, Traffic};
pub use shared::{SharedConnection, SharedListener};
pub use tcp::{TcpConnection, TcpListener};
pub use ucx::{UcxConnection, UcxListener};
