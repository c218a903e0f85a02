//! Tells a recorder in the same process which of the program's calls the requests and messages of a step belong to.
//!
//! While the program is in one of our calls, the recorder knows. A nonblocking operation goes on after its call, in any
//! thread, or in the program's call for another operation.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::core::mpi::recorder;

/// Makes what the thread does from now on belong to an operation, by its id; returns the id of the one before, 0 for none.
type Switch = unsafe extern "C" fn(operation: u64) -> u64;

/// The program's call that an operation was begun by, as the recorder numbers it; nothing where none records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedOperation(u64);

impl RecordedOperation {
    /// That of the call that this thread is in.
    pub(crate) fn current() -> RecordedOperation {
        let operation = switch(0);
        switch(operation);
        RecordedOperation(operation)
    }

    /// Does something that belongs to it.
    pub(crate) fn during<T>(self, step: impl FnOnce() -> T) -> T {
        let before = switch(self.0);
        let result = step();
        switch(before);
        result
    }
}

fn switch(operation: u64) -> u64 {
    static SWITCH: OnceLock<Option<Switch>> = OnceLock::new();
    let found = SWITCH.get_or_init(|| {
        let symbol = recorder::function(c"pioscope_operation_switch");
        // SAFETY: whoever exports this name gives it this type; null is None.
        unsafe { std::mem::transmute::<*mut c_void, Option<Switch>>(symbol) }
    });
    // SAFETY: the recorder's function, of the agreed type; it takes a number.
    found.map_or(0, |switch| unsafe { switch(operation) })
}
