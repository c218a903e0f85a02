//! Striped I/O servers and their client.
//!
//! A *store* is S servers. A file is dealt out to them in strips, round and round; each server keeps its part in an
//! ordinary file of its own. An access is a view and positions: the request is tens of bytes whatever the number of
//! pieces, and each server works out its own (Hong, You and Chung, "Efficient Collective I/O", 2006, is where the idea of
//! shipping the view to the server and scattering there comes from).
//!
//! What is said, and what both sides decide, is in `pio_protocol`, without socket, file, thread or clock; here, [`disk`] keeps
//! data and names, [`transport`] moves messages, and [`serve`] and [`client::Store`] drive it all.

pub mod auth;
pub mod client;
pub mod config;
pub mod disk;
mod error;
mod greet;
pub mod private;
pub mod process;
pub mod serve;
pub mod stand_in;
pub mod summed;
pub mod transport;

pub use error::StoreError;
