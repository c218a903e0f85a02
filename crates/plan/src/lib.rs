//! *Who moves which bytes*: the I/O strategies, as pure state machines.
//!
//! A strategy turns one operation of a program (a read or a write by one rank, or by all ranks of a communicator
//! together) into messages between ranks and requests to the file system. Here it is written once, as *event in, actions
//! out*: no clock, socket, thread, file or random number inside. The MPI-IO library drives it with MPI and real files,
//! the simulator with modelled ones; so what is predicted is what is run.
//!
//! A driver makes one [`StateMachine`] for each operation and rank, hands it [`Event::Start`], carries out the [`Action`]s it
//! asks for, and hands back what happened, until [`Action::Finish`].

mod access;
mod auto;
mod beside;
pub mod cost;
mod covered;
mod descriptions;
mod direct;
mod domain;
mod ecio;
mod ending;
mod expected;
mod guard;
mod hints;
mod independent;
mod inside;
mod leaders;
mod list;
mod machine;
mod memory;
mod merged;
mod message;
mod nodes;
mod ompio;
mod operation;
mod own_hints;
mod registry;
mod remembered;
mod romio;
mod rounds;
mod sieving;
mod site;
mod strategy;
mod summary;
mod through_leaders;
mod told_views;
mod tree;
mod two_phase;
mod views;
mod waiting;

pub use access::{Access, Direction, Group, IoError, Piece, Rank, Slot};
pub use auto::Auto;
pub use beside::Beside;
pub use ecio::Ecio;
pub use expected::Clients;
pub use guard::Guard;
pub use hints::{Describe, HintError, Hints};
pub use independent::Independent;
pub use inside::{Accesses, Bounds, Inside, What};
pub use leaders::{Leaders, Teams};
pub use list::{EXTENTS, List};
pub use machine::{Action, Choice, Event, Io, StateMachine};
pub use memory::{Memory, Shape};
pub use message::{DataPath, Description, Message, MessageError, Purpose};
pub use nodes::Nodes;
pub use ompio::Ompio;
pub use own_hints::{OwnHints, PerNode, Switch};
pub use remembered::{Recalled, Remembered, Took};
pub use romio::{REDUCTIONS_OF_A_WRITE, Romio};
pub use sieving::Sieving;
pub use site::{Context, Gaps, Site, Via, Views};
pub use strategy::Strategy;
pub use summary::Summary;
pub use told_views::ToldViews;
pub use tree::Tree;
pub use two_phase::TwoPhase;
pub use views::ViewExchange;
pub use waiting::Waiting;
