//! What the shim does for the core: MPI, as a table of functions.

use std::ffi::{c_int, c_void};

/// `struct pio_mpi`: what the shim does for us.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MpiTable {
    pub(crate) duplicate: unsafe extern "C" fn(*const c_void, *mut *mut c_void) -> c_int,
    pub(crate) release: unsafe extern "C" fn(*mut c_void, c_int),
    pub(crate) size: unsafe extern "C" fn(*const c_void, *mut c_int, *mut c_int) -> c_int,
    pub(crate) node: unsafe extern "C" fn(*const c_void, *mut c_int) -> c_int,
    pub(crate) send: unsafe extern "C" fn(*const c_void, c_int, c_int, *const c_void, u64, *mut u64) -> c_int,
    pub(crate) test: unsafe extern "C" fn(*mut u64, *mut c_int) -> c_int,
    pub(crate) probe:
        unsafe extern "C" fn(*const c_void, c_int, *mut c_int, *mut c_int, *mut u64, *mut u64) -> c_int,
    pub(crate) receive: unsafe extern "C" fn(*mut u64, *mut c_void, u64) -> c_int,
    pub(crate) broadcast: unsafe extern "C" fn(*const c_void, *mut c_void, u64, c_int, *mut u64) -> c_int,
    pub(crate) barrier: unsafe extern "C" fn(*const c_void, *mut u64) -> c_int,
    pub(crate) gather:
        unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, u64, *mut u64) -> c_int,
    pub(crate) for_threads: unsafe extern "C" fn() -> c_int,
    pub(crate) parts_of_etypes: unsafe extern "C" fn() -> c_int,
    pub(crate) complete: unsafe extern "C" fn(*mut c_void, c_int, u64),
}
