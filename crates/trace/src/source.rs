//! Where a trace or a log is read from: a file, read a block at a time, or memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes at offsets, from any thread.
pub enum Source {
    /// A file.
    File {
        /// Opened for reading.
        file: File,
        /// Its bytes when it was opened.
        len: u64,
    },
    /// What was read already.
    Memory(Vec<u8>),
}

impl Source {
    /// A file that is open for reading.
    ///
    /// # Errors
    /// If the system does not tell its length.
    pub fn file(file: File) -> io::Result<Source> {
        let len = file.metadata()?.len();
        Ok(Source::File { file, len })
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        match self {
            Source::File { len, .. } => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes from `offset`, `len` of them or up to the end. Takes no more memory than there are bytes.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let available = self.len().saturating_sub(offset);
        let len = len.min(usize::try_from(available).unwrap_or(usize::MAX));
        match self {
            Source::File { file, .. } => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            Source::Memory(all) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
                Ok(all[from..from + len].to_vec())
            }
        }
    }
}
