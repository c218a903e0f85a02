//! The file: one descriptor a rank, whole requests.

use std::ffi::{CStr, CString};
use std::ops::Range;

use pio_plan::{Direction, IoError};

/// MPI's access modes, in the shim's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub i32);

impl Mode {
    const READ_ONLY: i32 = 1;
    const WRITE_ONLY: i32 = 2;
    const READ_WRITE: i32 = 4;
    const CREATE: i32 = 8;
    const EXCLUSIVE: i32 = 16;
    const DELETE_ON_CLOSE: i32 = 32;
    const SEQUENTIAL: i32 = 128;
    const APPEND: i32 = 256;

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// Exactly one of read only, write only, read and write; nothing created or demanded new by who only reads.
    pub fn is_valid(self) -> bool {
        let access = self.0 & (Mode::READ_ONLY | Mode::WRITE_ONLY | Mode::READ_WRITE);
        access.count_ones() == 1 && !(self.has(Mode::READ_ONLY) && self.has(Mode::CREATE | Mode::EXCLUSIVE))
    }

    /// Whether the file may be read.
    pub fn reads(self) -> bool {
        !self.has(Mode::WRITE_ONLY)
    }

    /// Whether the file may be written.
    pub fn writes(self) -> bool {
        !self.has(Mode::READ_ONLY)
    }

    /// Whether positions begin at the end of the file.
    pub fn appends(self) -> bool {
        self.has(Mode::APPEND)
    }

    /// Whether the file is one that can only be passed through.
    pub fn is_sequential(self) -> bool {
        self.has(Mode::SEQUENTIAL)
    }

    /// Whether the file goes with its handle.
    pub fn deletes_on_close(self) -> bool {
        self.has(Mode::DELETE_ON_CLOSE)
    }
}

/// An open file.
#[derive(Debug)]
pub struct Storage {
    fd: i32,
    /// False if the file could only be opened for writing.
    readable: bool,
    path: CString,
}

impl Storage {
    /// Opens the file. The `first` rank creates it, if it is to be created: it alone can tell whether it is new.
    pub fn open(path: &CStr, mode: Mode, first: bool) -> Result<Storage, IoError> {
        let path = without_prefix(path).to_owned();
        let create = if !mode.has(Mode::CREATE) {
            0
        } else if !mode.has(Mode::EXCLUSIVE) {
            libc::O_CREAT
        } else if first {
            libc::O_CREAT | libc::O_EXCL
        } else {
            0
        };
        let flags = create | libc::O_CLOEXEC;
        if !mode.writes() {
            return Ok(Storage { fd: open(&path, flags | libc::O_RDONLY)?, readable: true, path });
        }
        // To fill gaps, one must read them first: even a file that is only written is opened for both if possible.
        match open(&path, flags | libc::O_RDWR) {
            Err(error) if error.errno == libc::EACCES && !mode.reads() => {
                Ok(Storage { fd: open(&path, flags | libc::O_WRONLY)?, readable: false, path })
            }
            Ok(fd) => Ok(Storage { fd, readable: true, path }),
            Err(error) => Err(error),
        }
    }

    /// Whether the descriptor can be read from.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Closes the descriptor.
    pub fn close(self) -> Result<(), IoError> {
        // SAFETY: the descriptor is ours and not used again.
        check(unsafe { libc::close(self.fd) }.into()).map(drop)
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), IoError> {
        // SAFETY: the path is a C string.
        check(unsafe { libc::unlink(self.path.as_ptr()) }.into()).map(drop)
    }

    /// Reads until the buffer is full or the file ends; returns the bytes read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<u64, IoError> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = &mut buffer[done..];
            // SAFETY: the buffer is ours and so long.
            let moved = unsafe {
                libc::pread(
                    self.fd,
                    rest.as_mut_ptr().cast(),
                    rest.len(),
                    (offset + done as u64) as libc::off_t,
                )
            };
            match check(moved as i64) {
                Ok(0) => break,
                Ok(moved) => done += moved as usize,
                Err(error) if error.errno == libc::EINTR => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done as u64)
    }

    /// Writes the whole buffer.
    pub fn write(&self, offset: u64, buffer: &[u8]) -> Result<u64, IoError> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = &buffer[done..];
            // SAFETY: the buffer is ours and so long.
            let moved = unsafe {
                libc::pwrite(self.fd, rest.as_ptr().cast(), rest.len(), (offset + done as u64) as libc::off_t)
            };
            match check(moved as i64) {
                Ok(0) => return Err(IoError { errno: libc::EIO }),
                Ok(moved) => done += moved as usize,
                Err(error) if error.errno == libc::EINTR => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done as u64)
    }

    /// Reads or writes an interval of the file; of what is read, bytes beyond the end of the file are zero.
    pub fn window(&self, direction: Direction, file: Range<u64>, buffer: &mut [u8]) -> Result<u64, IoError> {
        match direction {
            Direction::Write => self.write(file.start, buffer),
            Direction::Read => {
                let read = self.read(file.start, buffer)?;
                buffer[read as usize..].fill(0);
                Ok(read)
            }
        }
    }

    /// Waits until nobody else has a lock on any of these bytes, and locks them. Others are all other open files: of
    /// other processes, and of this one.
    pub fn lock(&self, file: Range<u64>) -> Result<(), IoError> {
        self.set_lock(libc::F_WRLCK, file)
    }

    /// Gives the bytes free again.
    pub fn unlock(&self, file: Range<u64>) -> Result<(), IoError> {
        self.set_lock(libc::F_UNLCK, file)
    }

    fn set_lock(&self, kind: libc::c_int, file: Range<u64>) -> Result<(), IoError> {
        // SAFETY: all zeros is a valid lock: of no process, as locks of open files must be.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = file.start as libc::off_t;
        lock.l_len = (file.end - file.start) as libc::off_t;
        loop {
            // SAFETY: the descriptor is ours and the lock is on the stack.
            match check(unsafe { libc::fcntl(self.fd, libc::F_OFD_SETLKW, &lock) }.into()) {
                Err(error) if error.errno == libc::EINTR => {}
                result => return result.map(drop),
            }
        }
    }

    /// I/O servers that take requests by view: none, for a file.
    pub fn servers(&self) -> u32 {
        0
    }

    /// Bytes in the file.
    pub fn size(&self) -> Result<u64, IoError> {
        // SAFETY: all zeros is a valid stat, and the kernel fills in no more than one.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        check(unsafe { libc::fstat(self.fd, &mut stat) }.into())?;
        Ok(stat.st_size as u64)
    }

    /// Cuts or extends the file.
    pub fn set_size(&self, size: u64) -> Result<(), IoError> {
        // SAFETY: numbers only.
        check(unsafe { libc::ftruncate(self.fd, size as libc::off_t) }.into()).map(drop)
    }

    /// Makes sure that there is room for so many bytes; the file is at least so long then.
    pub fn preallocate(&self, size: u64) -> Result<(), IoError> {
        if size == 0 {
            return Ok(());
        }
        // SAFETY: numbers only. It returns the error number.
        match unsafe { libc::posix_fallocate(self.fd, 0, size as libc::off_t) } {
            0 => Ok(()),
            errno => Err(IoError { errno }),
        }
    }

    /// Makes the data durable.
    pub fn sync(&self) -> Result<(), IoError> {
        // SAFETY: numbers only.
        match check(unsafe { libc::fsync(self.fd) }.into()) {
            // Pipes and devices need no syncing.
            Err(error) if error.errno == libc::EINVAL => Ok(()),
            result => result.map(drop),
        }
    }
}

/// Removes a file by name.
pub fn remove(path: &CStr) -> Result<(), IoError> {
    // SAFETY: the path is a C string.
    check(unsafe { libc::unlink(without_prefix(path).as_ptr()) }.into()).map(drop)
}

fn open(path: &CStr, flags: i32) -> Result<i32, IoError> {
    loop {
        // SAFETY: the path is a C string. The mode is cut by the program's umask.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o666) };
        match check(fd.into()) {
            Err(error) if error.errno == libc::EINTR => {}
            result => return result.map(|fd| fd as i32),
        }
    }
}

/// The path without what tells ROMIO which file system driver to use ("ufs:", "lustre:").
fn without_prefix(path: &CStr) -> &CStr {
    let bytes = path.to_bytes();
    match bytes.iter().position(|byte| *byte == b':') {
        // One letter might be a name of the user's; a slash before the colon makes it part of a path.
        Some(colon) if colon > 1 && bytes[..colon].iter().all(u8::is_ascii_lowercase) => {
            CStr::from_bytes_with_nul(&path.to_bytes_with_nul()[colon + 1..]).unwrap_or(path)
        }
        _ => path,
    }
}

fn check(result: i64) -> Result<i64, IoError> {
    if result >= 0 {
        return Ok(result);
    }
    Err(IoError { errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_prefixes_are_taken_off() {
        assert_eq!(without_prefix(c"ufs:/tmp/a"), c"/tmp/a");
        assert_eq!(without_prefix(c"lustre:a:b"), c"a:b");
        assert_eq!(without_prefix(c"/tmp/ufs:a"), c"/tmp/ufs:a");
        assert_eq!(without_prefix(c"a:b"), c"a:b");
        assert_eq!(without_prefix(c"2024:b"), c"2024:b");
    }

    #[test]
    fn modes_are_checked() {
        assert!(Mode(Mode::READ_ONLY).is_valid());
        assert!(!Mode(Mode::READ_ONLY | Mode::CREATE).is_valid());
        assert!(!Mode(Mode::READ_ONLY | Mode::READ_WRITE).is_valid());
        assert!(!Mode(Mode::CREATE).is_valid());
        assert!(Mode(Mode::WRITE_ONLY | Mode::CREATE | Mode::EXCLUSIVE).is_valid());
    }
}
