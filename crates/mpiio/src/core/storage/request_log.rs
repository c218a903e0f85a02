//! Tells a recorder in the same process of our requests to I/O servers.
//!
//! A recorder that exports `pioscope_record_request` gets an event for each request that moves data: from when it is sent
//! until it is answered. They belong to the operation that the thread is in, as messages do.

use std::ffi::c_void;
use std::sync::OnceLock;

use pio_protocol::client::Direction;
use pio_store::client::{Moved, Store};

use crate::core::mpi::recorder;

type Record = unsafe extern "C" fn(
    call: u32,
    server: i32,
    offset: u64,
    bytes: u64,
    start_ns: u64,
    end_ns: u64,
    result: i64,
);

// What a request is, in the numbers of the trace's calls.
const READ: u32 = 384;
const WRITE: u32 = 385;

/// From now on the recorder is told of the store's requests; without a recorder, nothing is noted.
pub(crate) fn watch(store: &Store) {
    if record_function().is_some() {
        store.watch(record);
    }
}

fn record(moved: &Moved) {
    let Some(record) = record_function() else { return };
    let call = match moved.direction {
        Direction::Read => READ,
        Direction::Write => WRITE,
    };
    let end_ns = recorder::now_ns();
    let start_ns = end_ns.saturating_sub(moved.sent.elapsed().as_nanos() as u64);
    let result = moved.result.map_or_else(|errno| -i64::from(errno), |bytes| bytes as i64);
    // SAFETY: the recorder's function, of the agreed type; it takes numbers.
    unsafe { record(call, moved.server as i32, moved.offset, moved.bytes, start_ns, end_ns, result) };
}

fn record_function() -> Option<Record> {
    static RECORDER: OnceLock<Option<Record>> = OnceLock::new();
    *RECORDER.get_or_init(|| {
        let symbol = recorder::function(c"pioscope_record_request");
        // SAFETY: whoever exports this name gives it this type; null is None.
        unsafe { std::mem::transmute::<*mut c_void, Option<Record>>(symbol) }
    })
}
