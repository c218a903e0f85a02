//! Where data came from and went, in the object of `pioscope explain --json`.

use serde::Serialize;

/// Bytes, and the time of the calls that moved them; and that of the calls that moved none.
#[derive(Serialize)]
pub(super) struct Moved {
    read_from_memory_bytes: u64,
    read_from_memory_time_s: f64,
    read_from_storage_bytes: u64,
    read_from_storage_time_s: f64,
    write_bytes: u64,
    write_time_s: f64,
    other_time_s: f64,
}

impl Moved {
    pub(super) fn of(moved: &pio_explain::Moved) -> Moved {
        Moved {
            read_from_memory_bytes: moved.from_memory.bytes,
            read_from_memory_time_s: moved.from_memory.time_s(),
            read_from_storage_bytes: moved.from_storage.bytes,
            read_from_storage_time_s: moved.from_storage.time_s(),
            write_bytes: moved.written.bytes,
            write_time_s: moved.written.time_s(),
            other_time_s: moved.other.time_s(),
        }
    }
}
