//! A plain file: one descriptor a rank, whole requests.

use std::ffi::{CStr, CString, OsStr};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use pio_plan::IoError;

use crate::core::mpi::signals;
use crate::core::storage::bounce_buffer;
use crate::core::storage::mode::{Creates, Mode};

/// An open file.
#[derive(Debug)]
pub(crate) struct PlainFile {
    /// [`CLOSED`] at the end.
    fd: AtomicI32,
    /// False if the file could only be opened for writing.
    readable: bool,
    /// From the root on: the program may change its folder before the file is closed.
    path: CString,
}

/// No descriptor.
const CLOSED: i32 = -1;

impl Drop for PlainFile {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.close();
    }
}

impl PlainFile {
    /// Opens the file. The `first` rank creates it, if it is to be created: it alone can tell whether it is new.
    pub(crate) fn open(path: &CStr, mode: Mode, first: bool) -> Result<PlainFile, IoError> {
        let create = match mode.creates(first) {
            Creates::No => 0,
            Creates::IfMissing => libc::O_CREAT,
            Creates::New => libc::O_CREAT | libc::O_EXCL,
        };
        let flags = create | libc::O_CLOEXEC;
        let opened = |fd: i32, readable| PlainFile { fd: fd.into(), readable, path: absolute(path) };
        if !mode.writes() {
            return Ok(opened(open(path, flags | libc::O_RDONLY)?, true));
        }
        // To fill gaps, one must read them first: even a file that is only written is opened for both if possible.
        match open(path, flags | libc::O_RDWR) {
            Err(error) if error.errno == libc::EACCES && !mode.reads() => {
                Ok(opened(open(path, flags | libc::O_WRONLY)?, false))
            }
            Ok(fd) => Ok(opened(fd, true)),
            Err(error) => Err(error),
        }
    }

    /// Whether the descriptor can be read from.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Closes the descriptor. What is asked of the file from then on is an error.
    pub(crate) fn close(&self) -> Result<(), IoError> {
        match self.fd.swap(CLOSED, Relaxed) {
            CLOSED => Ok(()),
            // SAFETY: the descriptor is ours and not used again.
            fd => check(unsafe { libc::close(fd) }.into()).map(drop),
        }
    }

    fn fd(&self) -> i32 {
        self.fd.load(Relaxed)
    }

    /// Removes the file, which is open, unless another has its name by now.
    pub(crate) fn remove(&self) -> Result<(), IoError> {
        // SAFETY: all zeros is a valid stat.
        let mut named: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the path is a C string, and the kernel fills in no more than one stat.
        check(unsafe { libc::stat(self.path.as_ptr(), &mut named) }.into())?;
        let open = self.stat()?;
        if (named.st_dev, named.st_ino) != (open.st_dev, open.st_ino) {
            return Err(IoError { errno: libc::ENOENT });
        }
        remove(&self.path)
    }

    /// Reads until the buffer is full or the file ends; returns the bytes read.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<u64, IoError> {
        let mut done = 0;
        while done < buffer.len() {
            let (at, rest) = (offset + done as u64, &mut buffer[done..]);
            let moved = if bounce_buffer::is_quicker_to_read(at, rest) {
                bounce_buffer::read(at, rest, |block| self.read_once(at, block))
            } else {
                self.read_once(at, rest)
            };
            match moved {
                Ok(0) => break,
                Ok(moved) => done += moved,
                Err(error) if error.errno == libc::EINTR => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done as u64)
    }

    fn read_once(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, IoError> {
        // SAFETY: the buffer is ours and so long.
        let moved = unsafe {
            libc::pread(self.fd(), buffer.as_mut_ptr().cast(), buffer.len(), offset as libc::off_t)
        };
        check(moved as i64).map(|moved| moved as usize)
    }

    /// Writes the whole buffer.
    pub(crate) fn write(&self, offset: u64, buffer: &[u8]) -> Result<u64, IoError> {
        let mut done = 0;
        while done < buffer.len() {
            let (at, rest) = (offset + done as u64, &buffer[done..]);
            let moved = if bounce_buffer::is_quicker_to_write(at, rest) {
                bounce_buffer::write(at, rest, |block| self.write_once(at, block))
            } else {
                self.write_once(at, rest)
            };
            match moved {
                Ok(0) => return Err(IoError { errno: libc::EIO }),
                Ok(moved) => done += moved,
                Err(error) if error.errno == libc::EINTR => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done as u64)
    }

    fn write_once(&self, offset: u64, buffer: &[u8]) -> Result<usize, IoError> {
        // SAFETY: the buffer is ours and so long.
        let moved =
            unsafe { libc::pwrite(self.fd(), buffer.as_ptr().cast(), buffer.len(), offset as libc::off_t) };
        check(moved as i64).map(|moved| moved as usize)
    }

    /// Waits until nobody else has a lock on any of these bytes, or none but shared ones if this is `shared`, too, and locks
    /// them. Others are all other open files: of other processes, and of this one.
    pub(crate) fn lock(&self, file: Range<u64>, shared: bool) -> Result<(), IoError> {
        self.set_lock(libc::F_OFD_SETLKW, if shared { libc::F_RDLCK } else { libc::F_WRLCK }, file)
    }

    /// The same for itself, but not forever: the kernel does not keep those out who want a shared lock when another waits.
    pub(crate) fn lock_within(&self, file: Range<u64>, patience: Duration) -> Result<(), IoError> {
        let begun = Instant::now();
        loop {
            match self.set_lock(libc::F_OFD_SETLK, libc::F_WRLCK, file.clone()) {
                Err(IoError { errno: libc::EAGAIN | libc::EACCES }) if begun.elapsed() < patience => {
                    // Seldom where it takes long: the lock may be another host's to give.
                    let pause = begun.elapsed() / 8;
                    thread::sleep(pause.clamp(Duration::from_micros(100), Duration::from_millis(10)));
                }
                result => return result,
            }
        }
    }

    /// Gives the bytes free again.
    pub(crate) fn unlock(&self, file: Range<u64>) -> Result<(), IoError> {
        self.set_lock(libc::F_OFD_SETLKW, libc::F_UNLCK, file)
    }

    fn set_lock(&self, how: libc::c_int, kind: libc::c_int, file: Range<u64>) -> Result<(), IoError> {
        // SAFETY: all zeros is a valid lock: of no process, as locks of open files must be.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = file.start as libc::off_t;
        lock.l_len = (file.end - file.start) as libc::off_t;
        loop {
            // SAFETY: the descriptor is ours and the lock is on the stack.
            match check(unsafe { libc::fcntl(self.fd(), how, &lock) }.into()) {
                Err(error) if error.errno == libc::EINTR => {}
                result => return result.map(drop),
            }
        }
    }

    /// Bytes in the file.
    pub(crate) fn size(&self) -> Result<u64, IoError> {
        Ok(self.stat()?.st_size as u64)
    }

    /// Its inode: nodes may count devices differently, but not these.
    pub(crate) fn identity(&self) -> u64 {
        self.stat().map_or(0, |stat| stat.st_ino)
    }

    fn stat(&self) -> Result<libc::stat, IoError> {
        // SAFETY: all zeros is a valid stat, and the kernel fills in no more than one.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        check(unsafe { libc::fstat(self.fd(), &mut stat) }.into())?;
        Ok(stat)
    }

    /// Cuts or extends the file.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), IoError> {
        // SAFETY: numbers only.
        check(unsafe { libc::ftruncate(self.fd(), size as libc::off_t) }.into()).map(drop)
    }

    /// Makes sure that there is room for so many bytes; the file is at least so long then.
    pub(crate) fn preallocate(&self, size: u64) -> Result<(), IoError> {
        if size == 0 {
            return Ok(());
        }
        let (fd, size) = (self.fd(), size as libc::off_t);
        reserve(
            // SAFETY: numbers only.
            || check(unsafe { libc::fallocate(fd, 0, 0, size) }.into()).map(drop),
            // SAFETY: numbers only. It returns the error number.
            || match unsafe { libc::posix_fallocate(fd, 0, size) } {
                0 => Ok(()),
                errno => Err(IoError { errno }),
            },
        )
    }

    /// Makes the data durable.
    pub(crate) fn sync(&self) -> Result<(), IoError> {
        // SAFETY: numbers only.
        match check(unsafe { libc::fsync(self.fd()) }.into()) {
            // Pipes and devices need no syncing.
            Err(error) if error.errno == libc::EINVAL => Ok(()),
            result => result.map(drop),
        }
    }
}

/// Has the kernel reserve room, where no signal undoes it; on a file system that cannot (NFS before 4.2), writes to each block.
/// That may take hours, in which the program gets its signals: a user must be able to stop it.
fn reserve(
    by_kernel: impl FnMut() -> Result<(), IoError>,
    mut by_blocks: impl FnMut() -> Result<(), IoError>,
) -> Result<(), IoError> {
    match signals::uninterrupted(by_kernel) {
        Err(error) if error.errno == libc::EOPNOTSUPP => loop {
            match by_blocks() {
                Err(error) if error.errno == libc::EINTR => {}
                result => return result,
            }
        },
        result => result,
    }
}

/// Removes a file by name.
pub(crate) fn remove(path: &CStr) -> Result<(), IoError> {
    // SAFETY: the path is a C string.
    check(unsafe { libc::unlink(path.as_ptr()) }.into()).map(drop)
}

/// The same file, wherever the program goes. As it is, if nobody can tell: the folder that the program is in may be gone.
fn absolute(path: &CStr) -> CString {
    let all = std::path::absolute(Path::new(OsStr::from_bytes(path.to_bytes())));
    let all = all.ok().and_then(|all| CString::new(all.into_os_string().into_vec()).ok());
    all.unwrap_or_else(|| path.to_owned())
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

fn check(result: i64) -> Result<i64, IoError> {
    if result >= 0 {
        return Ok(result);
    }
    Err(IoError { errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read and write, and delete on close.
    const MODE: Mode = Mode(4 + 32);

    /// Whether this thread gets no signal that would end the program.
    fn is_deaf() -> bool {
        // SAFETY: all zeros is a valid set to fill in; a set that is not given changes nothing.
        unsafe {
            let mut mask = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
            libc::sigismember(&mask, libc::SIGTERM) == 1
        }
    }

    /// Two open files of the same name, which is gone.
    fn opened_twice() -> [PlainFile; 2] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = CString::new(file.path().as_os_str().as_bytes()).unwrap();
        [(); 2].map(|()| PlainFile::open(&name, Mode(4), true).unwrap())
    }

    /// Readers that hold shared locks by turns would keep a writer waiting for ever.
    #[test]
    fn who_does_not_wait_forever_for_a_lock_goes_without() {
        let [reader, writer] = opened_twice();
        let short = Duration::from_millis(2);
        for shared in [true, false] {
            reader.lock(0..100, shared).unwrap();
            let refused = writer.lock_within(99..200, short).unwrap_err();
            assert!(matches!(refused.errno, libc::EAGAIN | libc::EACCES), "{refused:?}");
            // Of what it asked for in vain it keeps nothing.
            reader.lock(100..200, false).unwrap();
            reader.unlock(100..200).unwrap();
            // What is free it has at once.
            assert_eq!(writer.lock_within(100..200, Duration::ZERO), Ok(()));
            writer.unlock(100..200).unwrap();
            reader.unlock(0..100).unwrap();
        }
        assert_eq!(writer.lock_within(0..100, Duration::ZERO), Ok(()));
    }

    #[test]
    fn who_waits_for_a_lock_has_it_when_it_is_free() {
        let [reader, writer] = opened_twice();
        reader.lock(0..100, true).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| writer.lock_within(0..100, Duration::from_secs(600)));
            thread::sleep(Duration::from_millis(5));
            reader.unlock(0..100).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
        assert!(reader.lock_within(0..1, Duration::ZERO).is_err(), "the other has it now");
    }

    /// Where glibc writes to each block, nothing could stop the program for hours.
    #[test]
    fn signals_are_put_off_only_while_the_kernel_reserves_room() {
        let mut interrupted = [Err(IoError { errno: libc::EINTR }), Ok(())].into_iter();
        let mut deaf = Vec::new();
        let by_kernel = || {
            assert!(is_deaf());
            Err(IoError { errno: libc::EOPNOTSUPP })
        };
        let reserved = reserve(by_kernel, || {
            deaf.push(is_deaf());
            interrupted.next().unwrap()
        });
        assert_eq!((reserved, deaf), (Ok(()), vec![false, false]));
        let full = IoError { errno: libc::ENOSPC };
        assert_eq!(reserve(|| Err(full), || panic!("the kernel can")), Err(full));
    }

    #[test]
    fn a_file_is_removed_under_its_own_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        let open = || {
            let path = CString::new(file.as_os_str().as_bytes()).unwrap();
            PlainFile::open(&path, MODE, true).unwrap()
        };
        std::fs::write(&file, "ours").unwrap();
        open().remove().unwrap();
        assert!(!file.exists());
        assert_eq!(absolute(c"file").to_bytes()[0], b'/');

        std::fs::write(&file, "ours").unwrap();
        let opened = open();
        std::fs::rename(&file, &other).unwrap();
        std::fs::write(&file, "another's").unwrap();
        assert_eq!(opened.remove(), Err(IoError { errno: libc::ENOENT }));
        assert!(file.exists() && other.exists());
    }
}
