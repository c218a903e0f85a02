//! A recorder in the same process: where its functions are, and its clock.

use std::ffi::{CStr, c_int, c_void};

/// A function that a recorder exports by this name; null where nothing records.
pub(crate) fn function(name: &CStr) -> *mut c_void {
    #[cfg(test)]
    if name == c"pioscope_operation_switch" {
        return of_tests::operation_switch as *mut c_void;
    }
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Now, by the clock of recorders.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    let _: c_int = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A recorder in the process of the tests. All it does is to know which of their calls a step belongs to.
#[cfg(test)]
pub(crate) mod of_tests {
    use std::cell::Cell;

    thread_local! {
        static OPERATION: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) unsafe extern "C" fn operation_switch(operation: u64) -> u64 {
        OPERATION.replace(operation)
    }

    /// The call that this thread is in; 0 for none.
    pub(crate) fn operation() -> u64 {
        OPERATION.get()
    }

    /// Makes a call of this number, from 1.
    pub(crate) fn calling<T>(operation: u64, call: impl FnOnce() -> T) -> T {
        let before = OPERATION.replace(operation);
        let result = call();
        OPERATION.set(before);
        result
    }
}
