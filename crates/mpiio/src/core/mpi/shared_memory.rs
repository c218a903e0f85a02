//! Collective buffers: memory that the ranks of a node share.
//!
//! Each rank has one buffer a channel, a `memfd`: memory with a descriptor and no name, so that nothing is left behind
//! however a job ends. Others of the node open it through `/proc/PID/fd`. Before anyone touches a byte, it is reserved
//! by `fallocate`: what memory there is not is an error then, instead of a SIGBUS later.
//!
//! System calls are made directly, not through the C library: a recorder in the same process shall see the program's
//! I/O, not ours on memory.

use std::ffi::CString;

use pio_plan::{Hints, IoError};

use crate::core::mpi::signals;

const PAGE_BYTES: usize = 4096;
/// The kernel would try to reserve any length, and take all memory that there is before it fails. A buffer must also
/// fit a message, should ranks not share memory.
pub(crate) const MOST_BYTES: u64 = Hints::MOST_CB_BUFFER_SIZE;
/// Buffers grow in steps, so that operations of slowly growing size do not map anew each time.
const STEP_BYTES: usize = 256 << 10;

/// A private buffer begins so far into a page. Where two processes in turn read, change and write back the same part of a file,
/// they took 1.4 times as long with buffers that begin with a page, as the parts of the file do (AMD EPYC, a virtual machine).
const SKIPPED_BYTES: usize = PAGE_BYTES / 2;

/// Where the others of a node find a rank's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Process that has it open.
    pub(crate) process: u32,
    /// The descriptor there.
    pub(crate) descriptor: u32,
    /// Its inode: the program might have closed our descriptor and opened something else.
    pub(crate) inode: u64,
}

impl Address {
    /// As ranks tell each other.
    pub(crate) fn words(self) -> [u64; 3] {
        [self.process.into(), self.descriptor.into(), self.inode]
    }

    /// What another rank told.
    pub(crate) fn of_words([process, descriptor, inode]: [u64; 3]) -> Address {
        Address { process: process as u32, descriptor: descriptor as u32, inode }
    }
}

/// A buffer, ours or of another rank, as far as it is mapped into this process.
#[derive(Debug)]
pub(crate) struct Segment {
    source: Source,
    base: *mut u8,
    len: usize,
}

#[derive(Debug)]
enum Source {
    /// This rank's own, shared.
    Own(i32),
    /// Another rank's.
    Other(Address),
    /// This rank's own, not shared.
    Private,
}

// SAFETY: the mapping belongs to the segment; who may use which bytes when is settled by the strategies' messages.
unsafe impl Send for Segment {}

impl Segment {
    /// A buffer of this rank that others can map.
    pub(crate) fn shared() -> Result<(Segment, Address), IoError> {
        // SAFETY: the name is a C string; the flag is known since Linux 3.17.
        let fd = checked(unsafe {
            libc::syscall(libc::SYS_memfd_create, c"pioscope-collective-buffer".as_ptr(), libc::MFD_CLOEXEC)
        })? as i32;
        // Closed if it comes to nothing.
        let segment = Segment::new(Source::Own(fd));
        let address = Address { process: std::process::id(), descriptor: fd as u32, inode: inode_of(fd)? };
        Ok((segment, address))
    }

    /// The same for an open file, of which there may be many: not if the program would be short of descriptors then.
    ///
    /// It has one of the lower half of those that the process may have. A file takes five for memory, which stay when it is
    /// closed: with all of them, a program could open a sixth as many files as it may. The ranks of what is opened when the
    /// lower half is taken send each other all in messages.
    pub(crate) fn shared_by_file() -> Result<(Segment, Address), IoError> {
        Segment::shared_below(most_descriptors() / 2)
    }

    /// The same with a descriptor below this one.
    fn shared_below(descriptor: u64) -> Result<(Segment, Address), IoError> {
        let (segment, address) = Segment::shared()?;
        if u64::from(address.descriptor) >= descriptor {
            return Err(IoError { errno: libc::EMFILE });
        }
        Ok((segment, address))
    }

    /// A buffer of this rank alone.
    pub(crate) fn private() -> Segment {
        Segment::new(Source::Private)
    }

    /// The buffer of another rank of the node.
    pub(crate) fn of(address: Address) -> Segment {
        Segment::new(Source::Other(address))
    }

    fn new(source: Source) -> Segment {
        Segment { source, base: std::ptr::null_mut(), len: 0 }
    }

    /// The first `len` bytes, reserved and mapped.
    pub(crate) fn bytes(&mut self, len: u64) -> Result<&mut [u8], IoError> {
        if len > MOST_BYTES {
            return Err(IoError { errno: libc::ENOMEM });
        }
        let len = len as usize;
        if len > self.len {
            self.grow(len.next_multiple_of(if len < STEP_BYTES { PAGE_BYTES } else { STEP_BYTES }))?;
        }
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: so many bytes are mapped and reserved. Another process may write others of them meanwhile, but the
        // strategies' messages give every byte to one rank at a time.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.base, len) })
    }

    fn grow(&mut self, len: usize) -> Result<(), IoError> {
        let base = match self.source {
            Source::Own(fd) => map(Some(fd), len)?,
            Source::Private => map(None, len + SKIPPED_BYTES)?.wrapping_add(SKIPPED_BYTES),
            Source::Other(address) => {
                let fd = open(address)?;
                let mapped = map(Some(fd), len);
                close(fd);
                mapped?
            }
        };
        if matches!(self.source, Source::Private) && self.len > 0 {
            // SAFETY: two mappings of ours, the new one longer. (A shared buffer keeps its bytes by itself.)
            unsafe { std::ptr::copy_nonoverlapping(self.base, base, self.len) };
        }
        self.unmap();
        (self.base, self.len) = (base, len);
        Ok(())
    }

    fn unmap(&mut self) {
        if self.len > 0 {
            let skipped = if matches!(self.source, Source::Private) { SKIPPED_BYTES } else { 0 };
            // SAFETY: the mapping is ours, and no reference into it lives longer than a borrow of the segment.
            unsafe { libc::syscall(libc::SYS_munmap, self.base.wrapping_sub(skipped), self.len + skipped) };
            self.len = 0;
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.unmap();
        if let Source::Own(fd) = self.source {
            // The program may have closed our descriptor; what has its number now is not ours to close.
            close(fd);
        }
    }
}

/// How many descriptors the process may have.
fn most_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills in no more than one limit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    if known { limit.rlim_cur } else { u64::MAX }
}

/// Whether the buffer of another rank of the node can be opened: not in every container.
pub(crate) fn is_reachable(address: Address) -> bool {
    open(address).map(close).is_ok()
}

fn open(address: Address) -> Result<i32, IoError> {
    let path = format!("/proc/{}/fd/{}", address.process, address.descriptor);
    let path = CString::new(path).map_err(|_| IoError { errno: libc::EINVAL })?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the path is a C string.
    let fd =
        checked(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) })? as i32;
    match inode_of(fd) {
        Ok(inode) if inode == address.inode => Ok(fd),
        _ => {
            close(fd);
            Err(IoError { errno: libc::ESTALE })
        }
    }
}

fn close(fd: i32) {
    // SAFETY: a number; the caller owns the descriptor.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

fn inode_of(fd: i32) -> Result<u64, IoError> {
    // SAFETY: all zeros is a valid stat, and the kernel fills in no more than one.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    checked(unsafe { libc::syscall(libc::SYS_fstat, fd, &mut stat) })?;
    Ok(stat.st_ino)
}

/// Reserves and maps the first `len` bytes; all pages at once, which costs a tenth of a fault for each.
fn map(fd: Option<i32>, len: usize) -> Result<*mut u8, IoError> {
    let flags = match fd {
        Some(fd) => {
            // SAFETY: numbers only.
            let reserve = || checked(unsafe { libc::syscall(libc::SYS_fallocate, fd, 0, 0_i64, len as i64) });
            signals::uninterrupted(reserve)?;
            libc::MAP_SHARED | libc::MAP_POPULATE
        }
        None => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let base = checked(unsafe {
        libc::syscall(libc::SYS_mmap, 0_usize, len, protection, flags, fd.unwrap_or(-1), 0_i64)
    })?;
    Ok(base as *mut u8)
}

fn checked(result: libc::c_long) -> Result<libc::c_long, IoError> {
    if result == -1 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(IoError { errno });
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_see_what_is_written() {
        let (mut own, address) = Segment::shared().unwrap();
        let mut other = Segment::of(address);
        other.bytes(10_000).unwrap()[9_999] = 7;
        assert_eq!(own.bytes(10_000).unwrap()[9_999], 7);
        own.bytes(1 << 20).unwrap()[1 << 19] = 8;
        assert_eq!(other.bytes(1 << 20).unwrap()[1 << 19], 8);
        assert_eq!(other.bytes(1 << 20).unwrap()[9_999], 7);
    }

    #[test]
    fn a_private_buffer_keeps_its_bytes_when_it_grows() {
        let mut own = Segment::private();
        own.bytes(5_000).unwrap()[4_999] = 7;
        assert_eq!(own.bytes(1 << 20).unwrap()[4_999], 7);
    }

    #[test]
    fn what_is_not_the_buffer_is_not_mapped() {
        let (own, address) = Segment::shared().unwrap();
        assert!(is_reachable(address));
        assert!(!is_reachable(Address { inode: address.inode + 1, ..address }));
        drop(own);
        assert!(!is_reachable(address));
    }

    /// A program that may have 256 descriptors could open no more than 40 files.
    #[test]
    fn the_program_keeps_the_upper_half_of_its_descriptors() {
        let (_segment, address) = Segment::shared_by_file().unwrap();
        assert!(u64::from(address.descriptor) < most_descriptors() / 2);
        assert!(Segment::shared_below(u64::MAX).is_ok());
        assert_eq!(Segment::shared_below(0).err(), Some(IoError { errno: libc::EMFILE }));
    }

    #[test]
    fn more_than_a_buffer_may_have_is_an_error() {
        let (mut own, _) = Segment::shared().unwrap();
        assert!(own.bytes(MOST_BYTES + 1).is_err());
        assert!(own.bytes(100).is_ok());
    }
}
