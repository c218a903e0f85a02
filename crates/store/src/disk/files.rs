//! Files and folders of a server, and what may go wrong with them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pio_protocol::Failure;

/// Why work could not be done.
#[derive(Debug)]
pub(super) struct Trouble(pub(super) Failure);

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        let unknown = rustix::io::Errno::IO.raw_os_error();
        Trouble(Failure::Os(error.raw_os_error().unwrap_or(unknown)))
    }
}

/// Reads until `out` is full or the file ends; says how many bytes.
pub(super) fn read_up_to(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match file.read_at(&mut out[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Where a server's folder has its parts of files.
pub(super) fn parts_of(folder: &Path) -> PathBuf {
    folder.join("parts")
}
