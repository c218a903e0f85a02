//! Explain: statistics of a trace, in one pass.
//!
//! An [`Accumulator`] takes events in order of their start and keeps counters only: per layer and operation, per file,
//! per handle and per process, and a fixed number of time bins. Its memory does not grow with the number of events.
//! [`Accumulator::finish`] gives the [`Explanation`], from which reports are made.
//!
//! Two *levels* appear everywhere, because MPI-IO has two faces:
//!
//! - the **program** level is what the program asked for: every event that no upper layer caused (Miller and Katz's
//!   *logical* records);
//! - the **file-system** level is what reached the files: every POSIX and stdio call, whoever made it. It is where
//!   Thakur et al. counted, inside their I/O library.
//!
//! For a program without MPI-IO the two are the same.

mod accumulator;
mod apart;
mod bandwidth;
mod bins;
mod call_sites;
pub mod classes;
mod collectives;
mod comparison;
pub mod counted;
mod diff;
mod explanation;
mod file_systems;
pub mod findings;
mod loaders;
mod marked;
mod notes;
mod operations;
mod order;
mod pass;
mod pattern;
pub mod rhythm;
mod sizes;
mod tally;
mod totals;
mod training;
mod trouble;
mod workload;

pub use accumulator::Accumulator;
pub use apart::{Apart, CROWD};
pub use bandwidth::{Later, Transfer, Transfers};
pub use call_sites::{CallSiteId, CallSiteStatistics, Moved};
pub use classes::{ClassTotal, Purpose};
pub use collectives::{MpiIoTime, NotKnown, TimeSplit, splits, splits_of};
pub use comparison::{Both, ComparedCall, Comparison, InOrder, IsOwn, Place, call_times};
pub use counted::Counted;
pub use diff::{Diff, DiffFile, DiffFinding, DiffOperation};
pub use explanation::{
    Busy, BusyRow, DataRate, Explanation, FileStatistics, Imbalance, InMpi, IoTime, LayerTable,
    ProcessStatistics,
};
pub use file_systems::OnFileSystem;
pub use findings::Finding;
pub use loaders::{Loader, Loaders, Used, Within};
pub use marked::{Marked, MarkedName, MarkedSpan, MarkedTime};
pub use operations::{OperationTable, OperationView};
pub use order::Order;
pub use pattern::Pattern;
pub use rhythm::Rhythm;
pub use sizes::{SizeClass, Sizes};
pub use tally::{Amount, Tally, Traffic};
pub use training::{DataSet, Evaluation, Training};
pub use trouble::{Failure, Trouble};
pub use workload::{Rates, Workload};
