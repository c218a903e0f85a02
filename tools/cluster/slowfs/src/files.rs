//! One client's mount: every request of the kernel is carried out on the folder behind it, and answered when it is due.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    AccessFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{self, AtFlags, Dir, Mode, OFlags, Stat, Timespec, Timestamps};

use crate::inodes::{Inodes, status};
use crate::owners::Owners;
use crate::server::Server;
use crate::service::Access;

/// Attributes and names are not cached: other clients may change them.
const TTL: Duration = Duration::ZERO;
/// Bytes of a request, at most: what the kernel allows.
const LARGEST: u32 = 1 << 20;

/// In the root of every mount, but in no listing: what the clients have asked for, as text.
const COUNTS: &str = ".slowfs";
const COUNTS_NUMBER: INodeNo = INodeNo(u64::MAX);
const COUNTS_HANDLE: FileHandle = FileHandle(0);

pub(crate) struct Files {
    client: usize,
    server: Arc<Server>,
    inodes: Inodes,
    owners: Owners,
    cached: bool,
    open: Mutex<HashMap<u64, Arc<OwnedFd>>>,
    next_handle: AtomicU64,
    /// Locks of programs, by file and owner: each a descriptor of its own, as that is what the kernel's locks belong to.
    locks: Mutex<HashMap<(u64, u64), Arc<OwnedFd>>>,
}

impl Files {
    /// A client's mount of a folder.
    pub(crate) fn new(client: usize, server: Arc<Server>, folder: &Path, cached: bool) -> io::Result<Files> {
        let root = fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Files {
            client,
            server,
            inodes: Inodes::new(root),
            owners: Owners::new()?,
            cached,
            open: Mutex::default(),
            next_handle: AtomicU64::new(COUNTS_HANDLE.0 + 1),
            locks: Mutex::default(),
        })
    }

    /// Carries out a request without data.
    fn plain<T>(&self, carry_out: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.server.plain(self.client, carry_out)
    }

    fn open_file(&self, handle: FileHandle) -> io::Result<Arc<OwnedFd>> {
        lock(&self.open).get(&handle.0).cloned().ok_or(io::Error::from_raw_os_error(libc::EBADF))
    }

    fn keep(&self, descriptor: OwnedFd) -> FileHandle {
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(handle, Arc::new(descriptor));
        FileHandle(handle)
    }

    fn reopen(&self, number: INodeNo, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(fs::open(self.inodes.path(number)?, flags | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn how_opened(&self) -> FopenFlags {
        if self.cached {
            FopenFlags::empty()
        } else {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
        }
    }

    fn attributes(&self, number: INodeNo, handle: Option<FileHandle>) -> io::Result<FileAttr> {
        let stat = match handle.map(|handle| self.open_file(handle)) {
            Some(Ok(open)) => status(&*open)?,
            _ => status(&*self.inodes.get(number)?)?,
        };
        Ok(FileAttr { ino: number, ..attributes(&stat, self.owners) })
    }

    /// Removes a name, and what is remembered of the file if it was the last.
    fn remove(&self, folder: INodeNo, name: &OsStr, flags: AtFlags) -> io::Result<()> {
        let folder = self.inodes.get(folder)?;
        let stat = fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        fs::unlinkat(&*folder, name, flags)?;
        if stat.st_nlink == 1 {
            self.server.forget(stat.st_ino);
        }
        Ok(())
    }

    /// The descriptor that holds an owner's locks on a file.
    fn locks_of(&self, number: INodeNo, owner: LockOwner) -> io::Result<Arc<OwnedFd>> {
        if let Some(descriptor) = lock(&self.locks).get(&(number.0, owner.0)) {
            return Ok(Arc::clone(descriptor));
        }
        let descriptor =
            self.reopen(number, OFlags::RDWR).or_else(|_| self.reopen(number, OFlags::RDONLY))?;
        Ok(Arc::clone(lock(&self.locks).entry((number.0, owner.0)).or_insert(Arc::new(descriptor))))
    }

    fn entry(&self, reply: ReplyEntry, found: io::Result<Stat>) {
        match found {
            Ok(stat) => reply.entry(&TTL, &attributes(&stat, self.owners), Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn counts_attributes() -> FileAttr {
        FileAttr {
            ino: COUNTS_NUMBER,
            size: 0,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: 0o444,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What a kernel lacks of these is not needed. Programs map files, as the recorder does, even where nothing is cached.
        let mapped = InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        for wish in
            [InitFlags::FUSE_ASYNC_READ, InitFlags::FUSE_PARALLEL_DIROPS, InitFlags::FUSE_ASYNC_DIO, mapped]
        {
            let _ = config.add_capabilities(wish);
        }
        for locks in [InitFlags::FUSE_POSIX_LOCKS, InitFlags::FUSE_FLOCK_LOCKS] {
            let _ = config.add_capabilities(locks);
        }
        let _ = config.set_max_write(LARGEST);
        let _ = config.set_max_readahead(LARGEST);
        Ok(())
    }

    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if folder == INodeNo::ROOT && name == COUNTS {
            return reply.entry(&TTL, &Self::counts_attributes(), Generation(0));
        }
        self.entry(reply, self.plain(|| self.inodes.lookup(folder, name)));
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        self.inodes.forget(number, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        if number == COUNTS_NUMBER {
            return reply.attr(&TTL, &Self::counts_attributes());
        }
        attr(reply, self.plain(|| self.attributes(number, handle)));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || {
            let path = self.inodes.path(number)?;
            if let Some(size) = size {
                match handle.map(|handle| self.open_file(handle)) {
                    Some(Ok(open)) => fs::ftruncate(&*open, size)?,
                    _ => fs::ftruncate(self.reopen(number, OFlags::WRONLY)?, size)?,
                }
            }
            if let Some(mode) = mode {
                fs::chmod(&path, Mode::from_raw_mode(mode & 0o7777))?;
            }
            if uid.is_some() || gid.is_some() {
                std::os::unix::fs::chown(&path, uid, gid)?;
            }
            if atime.is_some() || mtime.is_some() {
                let times = Timestamps { last_access: time(atime), last_modification: time(mtime) };
                fs::utimensat(fs::CWD, &path, &times, AtFlags::empty())?;
            }
            self.attributes(number, handle)
        };
        attr(reply, self.plain(set));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let read = || Ok(fs::readlinkat(&*self.inodes.get(number)?, "", Vec::new())?);
        match self.plain(read) {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mkdir(&self, _: &Request, folder: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let make = || {
            fs::mkdirat(&*self.inodes.get(folder)?, name, Mode::from_raw_mode(mode & !umask & 0o7777))?;
            self.inodes.lookup(folder, name)
        };
        self.entry(reply, self.plain(make));
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.plain(|| self.remove(folder, name, AtFlags::empty())));
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.plain(|| self.remove(folder, name, AtFlags::REMOVEDIR)));
    }

    fn symlink(&self, _: &Request, folder: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let make = || {
            fs::symlinkat(target, &*self.inodes.get(folder)?, name)?;
            self.inodes.lookup(folder, name)
        };
        self.entry(reply, self.plain(make));
    }

    fn rename(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        new_folder: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = fs::RenameFlags::from_bits_retain(flags.bits());
        let rename = || {
            let (from, to) = (self.inodes.get(folder)?, self.inodes.get(new_folder)?);
            Ok(fs::renameat_with(&*from, name, &*to, new_name, flags)?)
        };
        empty(reply, self.plain(rename));
    }

    fn link(&self, _: &Request, number: INodeNo, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let link = || {
            let (path, to) = (self.inodes.path(number)?, self.inodes.get(folder)?);
            fs::linkat(fs::CWD, path, &*to, name, AtFlags::SYMLINK_FOLLOW)?;
            self.inodes.lookup(folder, name)
        };
        self.entry(reply, self.plain(link));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if number == COUNTS_NUMBER {
            return reply.opened(COUNTS_HANDLE, FopenFlags::FOPEN_DIRECT_IO);
        }
        match self.plain(|| self.reopen(number, carried(flags.0))) {
            Ok(descriptor) => reply.opened(self.keep(descriptor), self.how_opened()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let create = || {
            let flags =
                carried(flags) | OFlags::CREATE | (OFlags::from_bits_retain(flags as u32) & OFlags::EXCL);
            let mode = Mode::from_raw_mode(mode & !umask & 0o7777);
            let folder_descriptor = self.inodes.get(folder)?;
            let descriptor = fs::openat(&*folder_descriptor, name, flags | OFlags::CLOEXEC, mode)?;
            Ok((self.inodes.lookup(folder, name)?, descriptor))
        };
        match self.plain(create) {
            Ok((stat, descriptor)) => {
                let handle = self.keep(descriptor);
                reply.created(
                    &TTL,
                    &attributes(&stat, self.owners),
                    Generation(0),
                    handle,
                    self.how_opened(),
                );
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if number == COUNTS_NUMBER {
            let text = self.server.counts();
            let from = text.len().min(offset as usize);
            return reply.data(&text.as_bytes()[from..text.len().min(from + size as usize)]);
        }
        let read = || {
            let mut data = vec![0; size as usize];
            let got = rustix::io::pread(&*self.open_file(handle)?, data.as_mut_slice(), offset)?;
            data.truncate(got);
            Ok(data)
        };
        // What the file has decides what is moved, so it is read first.
        let data: io::Result<Vec<u8>> = read();
        let bytes = data.as_ref().map_or(0, |data| data.len() as u64);
        let access = Access { client: self.client, file: number.0, offset, bytes, writes: false };
        match self.server.access(access, || data) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write =
            || -> io::Result<usize> { Ok(rustix::io::pwrite(&*self.open_file(handle)?, data, offset)?) };
        let access =
            Access { client: self.client, file: number.0, offset, bytes: data.len() as u64, writes: true };
        match self.server.access(access, write) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    /// A descriptor was closed: its process gives up the locks that belong to it.
    fn flush(&self, _: &Request, number: INodeNo, _: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        lock(&self.locks).remove(&(number.0, owner.0));
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        owner: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(owner) = owner {
            lock(&self.locks).remove(&(number.0, owner.0));
        }
        lock(&self.open).remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let sync = || {
            let open = self.open_file(handle)?;
            Ok(if data_only { fs::fdatasync(&*open) } else { fs::fsync(&*open) }?)
        };
        empty(reply, self.plain(sync));
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.plain(|| self.reopen(number, OFlags::RDONLY | OFlags::DIRECTORY)) {
            Ok(descriptor) => reply.opened(self.keep(descriptor), FopenFlags::empty()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let list = || {
            let entries = Dir::read_from(&*self.open_file(handle)?)?;
            Ok(entries.collect::<Result<Vec<_>, _>>()?)
        };
        match self.plain(list) {
            Ok(entries) => {
                for (place, entry) in entries.iter().enumerate().skip(offset as usize) {
                    let name = OsStr::from_bytes(entry.file_name().to_bytes());
                    if reply.add(INodeNo(entry.ino()), place as u64 + 1, kind(entry.file_type()), name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        lock(&self.open).remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        match self.plain(|| Ok(fs::fstatvfs(&*self.inodes.get(number)?)?)) {
            Ok(all) => reply.statfs(
                all.f_blocks,
                all.f_bfree,
                all.f_bavail,
                all.f_files,
                all.f_ffree,
                all.f_bsize as u32,
                all.f_namemax as u32,
                all.f_frsize as u32,
            ),
            Err(error) => reply.error(error.into()),
        }
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn getlk(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let look = || {
            let mut range = range(start, end, typ);
            fcntl(&*self.locks_of(number, owner)?, FcntlArg::F_OFD_GETLK(&mut range))?;
            Ok(range)
        };
        match self.plain(look) {
            Ok(found) => {
                let end = if found.l_len == 0 { u64::MAX } else { (found.l_start + found.l_len - 1) as u64 };
                reply.locked(found.l_start as u64, end, i32::from(found.l_type), pid);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn setlk(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        _: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let set = || {
            let range = range(start, end, typ);
            let how = if sleep { FcntlArg::F_OFD_SETLKW(&range) } else { FcntlArg::F_OFD_SETLK(&range) };
            fcntl(&*self.locks_of(number, owner)?, how)?;
            Ok(())
        };
        empty(reply, self.plain(set));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let flags = fs::FallocateFlags::from_bits_retain(mode as u32);
        empty(reply, self.plain(|| Ok(fs::fallocate(&*self.open_file(handle)?, flags, offset, length)?)));
    }
}

/// What is asked of the file behind: the kernel above looks after the position and the page cache.
fn carried(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags as u32) & (OFlags::ACCMODE | OFlags::TRUNC | OFlags::SYNC | OFlags::DSYNC)
}

fn range(start: u64, end: u64, typ: i32) -> libc::flock {
    let length = if end >= i64::MAX as u64 { 0 } else { (end - start + 1) as i64 };
    libc::flock {
        l_type: typ as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: start as i64,
        l_len: length,
        l_pid: 0,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attr(reply: ReplyAttr, found: io::Result<FileAttr>) {
    match found {
        Ok(attributes) => reply.attr(&TTL, &attributes),
        Err(error) => reply.error(error.into()),
    }
}

fn empty(reply: ReplyEmpty, done: io::Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

fn attributes(stat: &Stat, owners: Owners) -> FileAttr {
    let (uid, gid) = owners.show(stat.st_uid, stat.st_gid);
    FileAttr {
        ino: INodeNo(stat.st_ino),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: since_epoch(stat.st_atime, stat.st_atime_nsec),
        mtime: since_epoch(stat.st_mtime, stat.st_mtime_nsec),
        ctime: since_epoch(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(fs::FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid,
        gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

fn since_epoch(seconds: i64, nanoseconds: u64) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds);
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds) + part,
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + part,
    }
}

fn time(time: Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() }
        }
    }
}

fn kind(of: fs::FileType) -> FileType {
    match of {
        fs::FileType::Directory => FileType::Directory,
        fs::FileType::Symlink => FileType::Symlink,
        fs::FileType::Fifo => FileType::NamedPipe,
        fs::FileType::Socket => FileType::Socket,
        fs::FileType::CharacterDevice => FileType::CharDevice,
        fs::FileType::BlockDevice => FileType::BlockDevice,
        fs::FileType::RegularFile | fs::FileType::Unknown => FileType::RegularFile,
    }
}
