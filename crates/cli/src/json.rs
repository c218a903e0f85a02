//! What commands print for programs: one JSON object each, with `--json`.
//!
//! An object names its schema, `pioscope.VERB/VERSION`. Times are in seconds and amounts in bytes, and names say so. A field
//! is always there, `null` where nothing is known, so that a reader meets all of them at once. Within a version fields are
//! added, and none is removed or changes its meaning. `docs/json.md` lists every field; a test compares.

mod call_sites;
pub(crate) mod compare;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod machines;
mod marked;
mod moved;
pub(crate) mod predict;
pub(crate) mod store;

use std::path::Path;

use anyhow::Result;
use pio_explain::Explanation;
use serde::Serialize;

/// Prints an object, and nothing else, on standard output.
pub(crate) fn print(object: &impl Serialize) -> Result<()> {
    crate::print(&format!("{}\n", serde_json::to_string_pretty(object)?))
}

/// A path as it was given. JSON holds Unicode alone: what is none is replaced.
fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Nanoseconds as seconds.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// What a program asked to be read and written.
#[derive(Serialize)]
struct Moved {
    read_calls: u64,
    read_bytes: u64,
    read_bandwidth_bytes_per_s: Option<f64>,
    write_calls: u64,
    write_bytes: u64,
    write_bandwidth_bytes_per_s: Option<f64>,
}

impl Moved {
    fn of(found: &Explanation) -> Moved {
        let (read, write) = (&found.workload.read, &found.workload.write);
        Moved {
            read_calls: read.count,
            read_bytes: read.bytes,
            read_bandwidth_bytes_per_s: found.transfers.read.bandwidth_bytes_per_s(),
            write_calls: write.count,
            write_bytes: write.bytes,
            write_bandwidth_bytes_per_s: found.transfers.write.bandwidth_bytes_per_s(),
        }
    }
}
