//! Where the bytes of files are, plain files and files on I/O servers, and what ranks keep beside a file.

pub mod backend;
mod bounce_buffer;
pub mod mode;
mod path_prefix;
pub mod pieces;
mod posix;
pub mod servers;
pub mod sidecar;
