//! UCX as a process uses it, and its errors in our words.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use crate::transport::ucx::hardware::has_hardware;
use crate::transport::ucx::library::{self, Api, Status};

/// UCX as this process uses it: one context.
pub(super) struct Context {
    pub(super) api: &'static Api,
    pub(super) raw: library::Context,
}

// SAFETY: the context was made for workers in several threads.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The context of this process.
pub(super) fn context() -> io::Result<&'static Context> {
    static CONTEXT: OnceLock<Result<Context, String>> = OnceLock::new();
    CONTEXT
        .get_or_init(make_context)
        .as_ref()
        .map_err(|why| io::Error::new(ErrorKind::Unsupported, why.as_str()))
}

fn make_context() -> Result<Context, String> {
    let api = library::library()?;
    let params = library::Params {
        field_mask: library::params::FEATURES | library::params::MT_WORKERS_SHARED,
        features: library::params::FEATURE_AM | library::params::FEATURE_WAKEUP,
        mt_workers_shared: 1,
        ..Default::default()
    };
    let (mut config, mut raw) = (null_mut(), null_mut());
    let (major, minor) = library::API_VERSION;
    // SAFETY: pointers to what is to be written, and null for "as the environment says".
    let status = unsafe { (api.ucp_config_read)(null(), null(), &mut config) };
    check(api, status).map_err(|error| format!("UCX cannot read its settings: {error}"))?;
    let mut settings = vec![
        // UCX's shared memory does not notice that a peer died, so that UCX never chooses it for us; to set it up for each
        // connection all the same takes tens of milliseconds.
        ("UCX_TLS", c"TLS", c"^sm"),
        // A server that was killed finds its port again.
        ("UCX_TCP_CM_REUSEADDR", c"CM_REUSEADDR", c"y"),
    ];
    if !has_hardware() {
        // Several ports of TCP are no faster than the one that was connected to, and take three times as long to connect.
        settings.push(("UCX_CM_USE_ALL_DEVICES", c"CM_USE_ALL_DEVICES", c"n"));
    }
    for (variable, name, value) in settings {
        if std::env::var_os(variable).is_none() {
            // It works without: an older UCX that does not know the name says so, and nobody needs to know.
            // SAFETY: the configuration that was read, and two C strings.
            unsafe { (api.ucp_config_modify)(config, name.as_ptr(), value.as_ptr()) };
        }
    }
    // SAFETY: the parameters that the mask names are set; the configuration was read above.
    let status = unsafe { (api.ucp_init_version)(major, minor, &params, config, &mut raw) };
    // SAFETY: the configuration is of no more use.
    unsafe { (api.ucp_config_release)(config) };
    check(api, status).map_err(|error| format!("UCX cannot start: {error}"))?;
    Ok(Context { api, raw })
}

/// Whether UCX can be used here; else why not.
pub fn available() -> io::Result<()> {
    context().map(drop)
}

/// An error of UCX, in our words where there are any.
pub(super) fn check(api: &Api, status: Status) -> io::Result<()> {
    if status >= 0 {
        return Ok(());
    }
    let kind = match status {
        library::CONNECTION_RESET | library::ENDPOINT_TIMEOUT => ErrorKind::UnexpectedEof,
        library::UNREACHABLE | library::REJECTED => ErrorKind::ConnectionRefused,
        library::NO_MEMORY => ErrorKind::OutOfMemory,
        _ => ErrorKind::ConnectionReset,
    };
    // SAFETY: a string that is never given back.
    let text = unsafe { CStr::from_ptr((api.ucs_status_string)(status)) };
    Err(io::Error::new(kind, format!("UCX: {}", text.to_string_lossy())))
}

/// A message that makes no sense.
pub(in crate::transport::ucx) fn malformed(expected: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed message: expected {expected}"))
}

pub(super) fn closed() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the connection is closed")
}
