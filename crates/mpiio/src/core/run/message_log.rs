//! Tells a recorder in the same process of our messages.
//!
//! A recorder that exports `pioscope_record_message` gets an event for each message and transfer of data that this rank
//! *sends*. Communication time must contain the waiting (Thakur, Gropp and Lusk 1996, table 2): so an event lasts from
//! the start of its packing until this rank's next message, its next request to the file system, or the end of its part
//! in the operation. What a rank waits after a request to the file system and before it sends again belongs to no event.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::core::mpi::recorder;

type Record = unsafe extern "C" fn(call: u32, peer: i32, bytes: u64, start_ns: u64, end_ns: u64, result: i64);

/// What a message is, in the numbers of the trace's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Describe = 320,
    Data = 321,
    Grant = 322,
    Acknowledge = 323,
}

/// The messages of one operation.
#[derive(Debug)]
pub(crate) struct MessageLog {
    record: Option<Record>,
    open: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    call: Call,
    peer: u32,
    bytes: u64,
    start_ns: u64,
}

impl MessageLog {
    /// Of an operation that begins. Without a recorder, it does nothing.
    pub(crate) fn new() -> MessageLog {
        MessageLog { record: record_function(), open: None }
    }

    /// A message is about to be made.
    pub(crate) fn begin(&mut self) -> u64 {
        if self.record.is_none() {
            return 0;
        }
        let now_ns = recorder::now_ns();
        self.close(now_ns);
        now_ns
    }

    /// It was sent.
    pub(crate) fn sent(&mut self, call: Call, peer: u32, bytes: u64, start_ns: u64) {
        if self.record.is_some() {
            self.open = Some(Entry { call, peer, bytes, start_ns });
        }
    }

    /// A request to the file system comes, or the operation is over.
    pub(crate) fn pause(&mut self) {
        if self.open.is_some() {
            self.close(recorder::now_ns());
        }
    }

    fn close(&mut self, end_ns: u64) {
        if let (Some(record), Some(entry)) = (self.record, self.open.take()) {
            // SAFETY: the recorder's function, of the agreed type; it takes numbers.
            unsafe {
                record(
                    entry.call as u32,
                    entry.peer as i32,
                    entry.bytes,
                    entry.start_ns,
                    end_ns,
                    entry.bytes as i64,
                );
            }
        }
    }
}

fn record_function() -> Option<Record> {
    static RECORDER: OnceLock<Option<Record>> = OnceLock::new();
    *RECORDER.get_or_init(|| {
        let symbol = recorder::function(c"pioscope_record_message");
        // SAFETY: whoever exports this name gives it this type; null is None.
        unsafe { std::mem::transmute::<*mut c_void, Option<Record>>(symbol) }
    })
}
