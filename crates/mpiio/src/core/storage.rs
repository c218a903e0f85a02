//! Where the bytes of files are, plain files and files on I/O servers, and what ranks keep beside a file.

pub(crate) mod backend;
mod bounce_buffer;
pub(crate) mod mode;
mod path_prefix;
pub(crate) mod pieces;
mod posix;
mod request_log;
pub(crate) mod servers;
pub(crate) mod sidecar;
