//! A sidecar that is a hidden file of the file system.
//!
//! The file system's record locks (`fcntl`) keep ranks of all nodes apart.
//!
//! | bytes | what |
//! |---|---|
//! | 8 `view` … 8 `view` + 7 | how far the shared pointer of the file's `view`-th view has moved, in etypes; not there: 0 |
//!
//! Locks of atomic mode are on the bytes of the sidecar that have the numbers of the bytes of the file; there need not
//! be such bytes.
//!
//! System calls are made directly, not through the C library: a recorder shall see the program's I/O, not ours.

use std::ffi::{CString, c_int, c_long};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use pio_plan::IoError;

use super::name::{folder_of, name};
use crate::core::mpi::status::Status;

/// A hidden file, open or not.
#[derive(Debug)]
pub(crate) struct HiddenFile {
    path: CString,
    fd: Option<i32>,
}

impl HiddenFile {
    /// The hidden file with a number, in a folder.
    pub(crate) fn new(folder: &Path, number: u64) -> Result<HiddenFile, Status> {
        // The program may change its folder before the sidecar is needed.
        let folder = std::path::absolute(folder).map_err(|_| Status::BadFile)?;
        let path = folder.join(name(number));
        let path = CString::new(path.into_os_string().into_vec()).map_err(|_| Status::BadFile)?;
        Ok(HiddenFile { path, fd: None })
    }

    /// Whether this process may create files beside the file at `path`.
    pub(crate) fn fits_beside(path: &Path) -> bool {
        let Ok(folder) = CString::new(folder_of(path).into_os_string().into_vec()) else { return false };
        // SAFETY: the path is a C string.
        checked(unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, folder.as_ptr(), libc::W_OK) })
            .is_ok()
    }

    /// How far the pointer of a view has moved.
    pub(crate) fn get(&mut self, view: u64) -> Result<u64, Status> {
        let (fd, bytes) = (self.descriptor()?, slot(view));
        let _lock = Lock::on(fd, bytes.clone(), true)?;
        read(fd, bytes.start)
    }

    /// Moves the pointer of a view on; where it was.
    pub(crate) fn fetch_add(&mut self, view: u64, etypes: u64) -> Result<u64, Status> {
        let (fd, bytes) = (self.descriptor()?, slot(view));
        let _lock = Lock::on(fd, bytes.clone(), false)?;
        let before = read(fd, bytes.start)?;
        let after = before.wrapping_add(etypes);
        write(fd, bytes.start, after)?;
        Ok(before)
    }

    /// Puts the pointer of a view somewhere.
    pub(crate) fn set(&mut self, view: u64, etypes: u64) -> Result<(), Status> {
        let (fd, bytes) = (self.descriptor()?, slot(view));
        let _lock = Lock::on(fd, bytes.clone(), false)?;
        write(fd, bytes.start, etypes)
    }

    /// Keeps others (if `shared`, those that write) out of the bytes `file` of the file as long as the lock lives.
    pub(crate) fn lock(&mut self, file: Range<u64>, shared: bool) -> Result<Lock<'_>, Status> {
        Lock::on(self.descriptor()?, file, shared)
    }

    /// Removes the hidden file, if there is one.
    pub(crate) fn remove(&self) {
        // SAFETY: the path is a C string.
        unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, self.path.as_ptr(), 0) };
    }

    fn descriptor(&mut self) -> Result<i32, Status> {
        if let Some(fd) = self.fd {
            return Ok(fd);
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let fd = checked(unsafe {
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, self.path.as_ptr(), flags, 0o600)
        })? as i32;
        self.fd = Some(fd);
        Ok(fd)
    }
}

impl Drop for HiddenFile {
    fn drop(&mut self) {
        if let Some(fd) = self.fd {
            // SAFETY: the descriptor is ours and not used again.
            unsafe { libc::syscall(libc::SYS_close, fd) };
        }
    }
}

/// A record lock.
#[derive(Debug)]
pub(crate) struct Lock<'a> {
    fd: i32,
    bytes: Range<u64>,
    /// The sidecar, which is not to be used otherwise: unlocking its bytes would undo this lock.
    _sidecar: std::marker::PhantomData<&'a mut HiddenFile>,
}

impl Lock<'_> {
    fn on<'a>(fd: i32, bytes: Range<u64>, shared: bool) -> Result<Lock<'a>, Status> {
        let kind = if shared { libc::F_RDLCK } else { libc::F_WRLCK };
        set_lock(fd, &bytes, kind)?;
        Ok(Lock { fd, bytes, _sidecar: std::marker::PhantomData })
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = set_lock(self.fd, &self.bytes, libc::F_UNLCK);
    }
}

/// Locks of open file descriptions: those of processes would go when the program closes any descriptor of the file.
fn set_lock(fd: i32, bytes: &Range<u64>, kind: c_int) -> Result<(), Status> {
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: all zeros is a valid lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = bytes.start.min(i64::MAX as u64) as _;
    lock.l_len = (bytes.end - bytes.start).min(i64::MAX as u64 - bytes.start.min(i64::MAX as u64)) as _;
    loop {
        // SAFETY: the structure is ours.
        let result = checked(unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_OFD_SETLKW, &lock) });
        match result {
            Err(error) if error.errno == libc::EINTR => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

fn slot(view: u64) -> Range<u64> {
    view * 8..view * 8 + 8
}

fn read(fd: i32, offset: u64) -> Result<u64, Status> {
    let mut bytes = [0_u8; 8];
    // SAFETY: the buffer is ours and so long. What is not there yet stays zero.
    checked(unsafe { libc::syscall(libc::SYS_pread64, fd, bytes.as_mut_ptr(), 8_usize, offset as i64) })?;
    Ok(u64::from_le_bytes(bytes))
}

fn write(fd: i32, offset: u64, value: u64) -> Result<(), Status> {
    let bytes = value.to_le_bytes();
    // SAFETY: the buffer is ours and so long.
    match checked(unsafe { libc::syscall(libc::SYS_pwrite64, fd, bytes.as_ptr(), 8_usize, offset as i64) })? {
        8 => Ok(()),
        _ => Err(Status::NoSpace),
    }
}

fn checked(result: c_long) -> Result<c_long, IoError> {
    if result >= 0 {
        return Ok(result);
    }
    Err(IoError { errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number() -> u64 {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
    }

    #[test]
    fn pointers_of_views_move_on_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let number = number();
        let mut one = HiddenFile::new(folder.path(), number).unwrap();
        let mut other = HiddenFile::new(folder.path(), number).unwrap();
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "made by the first use");
        assert_eq!(one.fetch_add(0, 5), Ok(0));
        assert_eq!(other.fetch_add(0, 2), Ok(5));
        assert_eq!(one.get(0), Ok(7));
        assert_eq!(one.get(3), Ok(0));
        assert_eq!(other.set(3, 100), Ok(()));
        assert_eq!(one.fetch_add(3, 1), Ok(100));
        assert_eq!(one.get(0), Ok(7));
        one.remove();
        other.remove();
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let folder = tempfile::tempdir().unwrap();
        let number = number();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut sidecar = HiddenFile::new(folder.path(), number).unwrap();
                    for _ in 0..200 {
                        sidecar.fetch_add(1, 3).unwrap();
                    }
                });
            }
        });
        assert_eq!(HiddenFile::new(folder.path(), number).unwrap().get(1), Ok(2400));
    }

    #[test]
    fn a_lock_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let number = number();
        let mut one = HiddenFile::new(folder.path(), number).unwrap();
        let shared = std::sync::Mutex::new(0);
        let lock = one.lock(100..200, false).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = HiddenFile::new(folder.path(), number).unwrap();
                drop(other.lock(0..100, false).unwrap());
                let _lock = other.lock(150..160, true).unwrap();
                assert_eq!(*shared.lock().unwrap(), 1);
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            *shared.lock().unwrap() = 1;
            drop(lock);
        });
    }
}
