//! What the shim does for the core: MPI, as a table of functions.

use std::ffi::{c_int, c_void};

/// `struct pio_mpi`: what the shim does for us.
#[derive(Debug)]
#[repr(C)]
pub struct MpiTable {
    pub duplicate: unsafe extern "C" fn(*const c_void, *mut *mut c_void) -> c_int,
    pub release: unsafe extern "C" fn(*mut c_void, c_int),
    pub size: unsafe extern "C" fn(*const c_void, *mut c_int, *mut c_int) -> c_int,
    pub node: unsafe extern "C" fn(*const c_void, *mut c_int) -> c_int,
    pub send: unsafe extern "C" fn(*const c_void, c_int, c_int, *const c_void, u64, *mut u64) -> c_int,
    pub test: unsafe extern "C" fn(*mut u64, *mut c_int) -> c_int,
    pub probe:
        unsafe extern "C" fn(*const c_void, c_int, *mut c_int, *mut c_int, *mut u64, *mut u64) -> c_int,
    pub receive: unsafe extern "C" fn(*mut u64, *mut c_void, u64) -> c_int,
    pub broadcast: unsafe extern "C" fn(*const c_void, *mut c_void, u64, c_int, *mut u64) -> c_int,
    pub barrier: unsafe extern "C" fn(*const c_void, *mut u64) -> c_int,
    pub gather: unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, u64, *mut u64) -> c_int,
    pub for_threads: unsafe extern "C" fn() -> c_int,
    pub complete: unsafe extern "C" fn(*mut c_void, c_int, u64),
}
