//! From calls of the system to events.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use super::descriptors::{Descriptor, Descriptors, OpenFile, OpenFileId};
use super::in_flight::{InFlight, Submission};
use super::line::{self, Line, Syscall, What};
use super::tasks::{Task, Tasks};
use crate::builder::Builder;
use crate::error::ImportError;
use crate::kinds::Kinds;
use crate::paths;
use crate::sort::Access;
use pio_trace::Flags;
use pio_trace::{Call, Op};
use pio_trace::{FileId, HandleId, ProcessId};

/// Everything known after some lines.
pub(super) struct Reading {
    pub(super) builder: Builder,
    tasks: Tasks,
    open_files: Vec<OpenFile>,
    handles: HashMap<(OpenFileId, ProcessId), HandleId>,
    /// The latest time of a line, as the log counts.
    last_ns: u64,
    /// Lines that are earlier than one before them, and by how much at most.
    earlier: u64,
    earlier_by_ns: u64,
    /// When the last call of each process ended.
    ends_ns: Vec<u64>,
    has_durations: bool,
    /// The thread that ended in the call of the line before.
    ended_within: Option<u32>,
    in_flight: InFlight,
    /// Calls on descriptors that were open before, of which only the number is known.
    nameless: u64,
    /// Calls on files of a kind that a trace does not have.
    passed_over: Kinds,
}

/// One call: who made it, and when.
struct Made<'a> {
    call: Syscall<'a>,
    tid: u32,
    process: ProcessId,
    thread: u32,
    /// Whose descriptors it uses.
    owner: usize,
    start_ns: u64,
}

impl<'a> Made<'a> {
    fn by(tid: u32, task: &Task, call: Syscall<'a>, start_ns: u64) -> Made<'a> {
        Made { call, tid, process: task.process, thread: task.thread, owner: task.owner, start_ns }
    }
}

/// What a call did to a file.
#[derive(Default)]
struct Done {
    handle: Option<HandleId>,
    /// The file that it names, if it has no handle.
    name: Option<FileId>,
    /// The other file, of calls on two paths.
    other: Option<FileId>,
    offset: Option<u64>,
    size: u64,
    flags: Flags,
}

/// Calls on descriptors that a trace does not have.
const NOT_IN_TRACES_ON_DESCRIPTORS: [&str; 16] = [
    "cachestat",
    "fchown",
    "fchown32",
    "fcntl",
    "fcntl64",
    "fgetxattr",
    "flistxattr",
    "fremovexattr",
    "fsetxattr",
    "fstatfs",
    "fstatfs64",
    "getdents",
    "getdents64",
    "ioctl",
    "readahead",
    "tee",
];

/// Calls on names that a trace does not have.
const NOT_IN_TRACES_ON_NAMES: [&str; 27] = [
    "chown",
    "chown32",
    "chroot",
    "fchownat",
    "futimesat",
    "getxattr",
    "inotify_add_watch",
    "lchown",
    "lchown32",
    "lgetxattr",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lsetxattr",
    "mknod",
    "mknodat",
    "mount",
    "name_to_handle_at",
    "removexattr",
    "setxattr",
    "statfs",
    "statfs64",
    "umount2",
    "utime",
    "utimensat",
    "utimensat_time64",
    "utimes",
];

/// What an open says of how a file is opened.
const OPENED: [(&str, Flags); 5] = [
    ("O_APPEND", Flags::APPEND),
    ("O_SYNC", Flags::SYNC),
    ("O_DSYNC", Flags::SYNC),
    ("O_DIRECT", Flags::DIRECT),
    ("O_TRUNC", Flags::TRUNCATE),
];

impl Reading {
    pub(super) fn new(path: &Path) -> Reading {
        Reading {
            builder: Builder::new(path, "strace"),
            tasks: Tasks::default(),
            open_files: Vec::new(),
            handles: HashMap::new(),
            last_ns: 0,
            earlier: 0,
            earlier_by_ns: 0,
            ends_ns: Vec::new(),
            has_durations: false,
            ended_within: None,
            in_flight: InFlight::default(),
            nameless: 0,
            passed_over: Kinds::default(),
        }
    }

    /// Whether the line was understood.
    pub(super) fn read(&mut self, line: &Line) -> Result<bool, ImportError> {
        let mut now_ns = line.time_ns;
        if now_ns < DAY_NS {
            // Only the time of day (-tt): midnight has passed when it goes back by hours.
            while now_ns + DAY_NS / 2 < self.last_ns {
                now_ns += DAY_NS;
            }
        }
        if now_ns < self.last_ns {
            self.earlier += 1;
            self.earlier_by_ns = self.earlier_by_ns.max(self.last_ns - now_ns);
        }
        self.last_ns = self.last_ns.max(now_ns);
        if let Some(tid) = self.ended_within.take() {
            self.end_within(tid)?;
        }
        let tid = line.tid.unwrap_or(0);
        let Some(task) = self.tasks.get(tid, now_ns, &mut self.builder) else { return Ok(false) };
        match line.what {
            What::Call(text) => return self.call(tid, text, now_ns),
            What::Begin(text) => {
                task.begun = Some((text.to_owned(), now_ns));
                if makes_child(text) {
                    self.tasks.begins_child(tid);
                }
            }
            What::End(rest) => {
                let Some((begin, start_ns)) = task.begun.take() else { return Ok(false) };
                let understood = self.call(tid, &format!("{begin} {rest}"), start_ns)?;
                if self.ended_within.take().is_some() {
                    self.end_within(tid)?;
                }
                return Ok(understood);
            }
            What::Exited => self.exit(tid, Some(now_ns))?,
            What::Killed => self.exit(tid, None)?,
            What::Other => {}
        }
        Ok(true)
    }

    pub(super) fn finish(mut self, out: impl Write, name: &Path) -> Result<u64, ImportError> {
        for (tid, mut task) in self.tasks.drain() {
            self.unfinished(tid, &mut task)?;
        }
        for mut access in self.in_flight.rest() {
            access.flags = access.flags | Flags::UNFINISHED;
            let exit_ns = self.builder.process(access.process).and_then(|process| process.end_ns);
            access.elapsed_ns = exit_ns.unwrap_or(self.last_ns).saturating_sub(access.start_ns);
            self.put(access)?;
        }
        let processes = &self.builder.tables.processes;
        let program = |id: ProcessId| processes.get(id.index()).map_or("", |it| it.program()).to_owned();
        for (name, value) in self.in_flight.losses(program).notes() {
            self.builder.note(&name, value);
        }
        for (process, &end_ns) in self.builder.tables.processes.iter_mut().zip(&self.ends_ns) {
            // It may seem to end within a call: where the clock was set back, or lines of other tools were put in.
            process.end_ns = process.end_ns.map(|exit_ns| exit_ns.max(end_ns));
        }
        if self.earlier > 0 {
            let by_s = self.earlier_by_ns as f64 / 1e9;
            let value = format!(
                "{} lines are earlier than one before them, by up to {by_s} s: the clock was set back, or strace wrote lines later",
                self.earlier
            );
            self.builder.note("times", value);
        }
        if !self.has_durations && !self.builder.is_empty() {
            self.builder.note("durations", "none: strace was run without -T".into());
        }
        if self.nameless > 0 {
            let value = format!(
                "{} on descriptors 0 to 2 that were open before, or copies of them: strace -y names them",
                self.nameless
            );
            self.builder.note("lost calls", value);
        }
        let passed_over = &self.passed_over;
        if passed_over.count > 0 {
            let (count, names) = (passed_over.count, passed_over.names());
            self.builder
                .note("passed over", format!("{count} calls on files that a trace does not have ({names})"));
        }
        self.builder.begin_with_first_process();
        self.builder.write(out, name)
    }

    fn exit(&mut self, tid: u32, at_ns: Option<u64>) -> Result<(), ImportError> {
        let Some(mut task) = self.tasks.remove(tid) else { return Ok(()) };
        self.unfinished(tid, &mut task)?;
        if let Some(process) = self.builder.process(task.process).filter(|_| task.thread == 0) {
            process.end_ns = at_ns;
        }
        Ok(())
    }

    /// A thread ends in the call that it is in.
    fn end_within(&mut self, tid: u32) -> Result<(), ImportError> {
        let Some(mut task) = self.tasks.remove(tid) else { return Ok(()) };
        let ended = self.unfinished(tid, &mut task);
        self.tasks.put_back(tid, task);
        ended
    }

    /// The call that a task never returned from, if it is in one.
    fn unfinished(&mut self, tid: u32, task: &mut Task) -> Result<(), ImportError> {
        let Some((text, start_ns)) = task.begun.take() else { return Ok(()) };
        let whole = format!("{text}) = ?");
        let Some(call) = Syscall::of(&whole) else { return Ok(()) };
        let made = Made::by(tid, task, call, start_ns);
        let elapsed_ns = self.last_ns.saturating_sub(start_ns);
        for (call, done) in self.effects(&made).into_iter().flatten() {
            self.push(&made, call, done, 0, elapsed_ns, Flags::UNFINISHED)?;
        }
        Ok(())
    }

    fn call(&mut self, tid: u32, text: &str, start_ns: u64) -> Result<bool, ImportError> {
        let Some(call) = Syscall::of(text) else { return Ok(false) };
        self.has_durations |= call.elapsed_ns.is_some();
        let Some(task) = self.tasks.get(tid, start_ns, &mut self.builder) else { return Ok(false) };
        if !call.returned {
            // What is one line lasted until the next one: strace would have put that into it.
            let begin = text.rsplit_once('=').map_or(text, |(begin, _)| begin.trim_end());
            let begin = begin.strip_suffix(')').unwrap_or(begin);
            let begin = begin.strip_suffix("<unfinished ...>").unwrap_or(begin).trim_end();
            task.begun = Some((begin.to_owned(), start_ns));
            self.ended_within = Some(tid);
            return Ok(true);
        }
        let (result, elapsed_ns) = (call.result.unwrap_or(0), call.elapsed_ns.unwrap_or(0));
        let made = Made::by(tid, task, call, start_ns);
        if makes_child(text) {
            let child =
                made.call.result.and_then(|result| u32::try_from(result).ok()).filter(|&child| child > 0);
            self.tasks.made_child(tid, child, text, start_ns, &mut self.builder);
            return Ok(true);
        }
        match made.call.name {
            "io_submit" => self.submit(&made),
            "io_getevents" | "io_pgetevents" | "io_pgetevents_time64" => self.complete(&made)?,
            "io_uring_enter" if result > 0 => {
                let asked = line::number(made.call.argument(1)).and_then(|asked| u64::try_from(asked).ok());
                let submitted = asked.unwrap_or(0).min(result.unsigned_abs());
                if submitted > 0 {
                    self.in_flight.submit_to_ring(made.process, submitted);
                }
            }
            // The kernel takes from it without a call.
            "io_uring_setup" if result >= 0 && made.call.argument(1).contains("IORING_SETUP_SQPOLL") => {
                self.in_flight.submit_to_ring(made.process, 0);
            }
            _ => {}
        }
        for (call, done) in self.effects(&made).into_iter().flatten() {
            self.push(&made, call, done, result, elapsed_ns, Flags::NONE)?;
        }
        Ok(true)
    }

    fn push(
        &mut self,
        made: &Made,
        call: Call,
        done: Done,
        result: i64,
        elapsed_ns: u64,
        flags: Flags,
    ) -> Result<(), ImportError> {
        // Descriptors, places and lengths of names are no bytes that were moved.
        let gives_no_bytes =
            matches!(call, Call::Open | Call::Creat | Call::Dup | Call::Lseek | Call::Mmap | Call::Readlink);
        self.put(Access {
            call,
            flags: flags | done.flags,
            process: made.process,
            thread: made.thread,
            handle: done.handle,
            name: done.name,
            other: done.other,
            offset: done.offset,
            size: done.size,
            result: if gives_no_bytes { result.min(0) } else { result },
            start_ns: made.start_ns,
            elapsed_ns,
            operation: 0,
        })
    }

    /// A call lies within the life of its process, whatever the log's clock did.
    fn put(&mut self, access: Access) -> Result<(), ImportError> {
        let (index, end_ns) = (access.process.index(), access.start_ns.saturating_add(access.elapsed_ns));
        if self.ends_ns.len() <= index {
            self.ends_ns.resize(index + 1, 0);
        }
        self.ends_ns[index] = self.ends_ns[index].max(end_ns);
        if let Some(process) = self.builder.process(access.process) {
            process.start_ns = process.start_ns.min(access.start_ns);
        }
        self.builder.push(access)
    }

    /// `io_submit(CONTEXT, COUNT, [{…}, …]) = SUBMITTED`
    fn submit(&mut self, made: &Made) {
        let submitted = made.call.result.and_then(|result| usize::try_from(result).ok()).unwrap_or(0);
        let context = made.call.argument(0);
        for submission in Submission::list(made.call.argument(2)).into_iter().take(submitted) {
            let open = self.open_file_of(made, submission.descriptor);
            let handle = open.and_then(|open| self.handle(open, made.process));
            let access = handle.zip(submission.call).map(|(handle, call)| Access {
                call,
                flags: Flags::ASYNC,
                process: made.process,
                thread: made.thread,
                handle: Some(handle),
                name: None,
                other: None,
                offset: submission.offset,
                size: submission.size,
                result: 0,
                start_ns: made.start_ns,
                elapsed_ns: 0,
                operation: 0,
            });
            self.in_flight.submit(made.owner, context, submission.data, access);
        }
    }

    /// `io_getevents(CONTEXT, LEAST, MOST, [{…}, …], TIMEOUT) = COUNT`
    fn complete(&mut self, made: &Made) -> Result<(), ImportError> {
        let end_ns = made.start_ns.saturating_add(made.call.elapsed_ns.unwrap_or(0));
        for mut access in self.in_flight.complete(made.owner, made.call.argument(0), made.call.argument(3)) {
            access.elapsed_ns = end_ns.saturating_sub(access.start_ns);
            self.put(access)?;
        }
        Ok(())
    }

    /// What a call is in the trace, and what it did: two things if it copies from file to file.
    fn effects(&mut self, made: &Made) -> [Option<(Call, Done)>; 2] {
        let call = &made.call;
        self.learn_folder(made);
        let (from, to, size) = match call.name {
            "copy_file_range" | "splice" => {
                let (from, to) = (Place::behind(call.argument(1)), Place::behind(call.argument(3)));
                ((0, from), (2, to), call.argument(4))
            }
            "sendfile" | "sendfile64" => {
                ((1, Place::behind(call.argument(2))), (0, Place::Position), call.argument(3))
            }
            _ => return [self.effect(made), None],
        };
        let size = line::number(size).and_then(|size| u64::try_from(size).ok());
        [self.moved(made, Call::Read, from.0, from.1, size), self.moved(made, Call::Write, to.0, to.1, size)]
    }

    /// strace -y shows the working folder only where a call has an argument for a folder: it holds for the others, too.
    fn learn_folder(&mut self, made: &Made) {
        let shown = made.call.arguments.iter().find(|argument| argument.starts_with("AT_FDCWD<"));
        if let Some(path) = shown.and_then(|argument| line::path_behind(argument))
            && let Some(folder) = self.tasks.folders.get_mut(made.owner)
        {
            *folder = Some(path);
        }
    }

    /// None if it has nothing to do with the job's files.
    fn effect(&mut self, made: &Made) -> Option<(Call, Done)> {
        let call = &made.call;
        let size = |index| line::number(call.argument(index)).and_then(|it| u64::try_from(it).ok());
        let sized = |size: Option<u64>| size.unwrap_or(0);
        let at = |index| Place::of(call.argument(index));
        match call.name {
            "open" => self.open(made, Call::Open, 0, None, call.argument(1)),
            "creat" => self.open(made, Call::Creat, 0, None, "O_WRONLY|O_CREAT|O_TRUNC"),
            "openat" | "openat2" => self.open(made, Call::Open, 1, Some(0), call.argument(2)),
            "close" => self.close(made),
            "close_range" => {
                let bound = |index| i32::try_from(line::number(call.argument(index))?).ok();
                if call.result == Some(0) {
                    let (first, last) = (bound(0)?, bound(1).unwrap_or(i32::MAX));
                    self.descriptors(made)?.close_range(first, last);
                }
                None
            }
            "dup" | "dup2" | "dup3" => self.dup(made, call.argument(2).contains("O_CLOEXEC")),
            "fcntl" | "fcntl64" if call.argument(1).starts_with("F_DUPFD") => {
                self.dup(made, call.argument(1) == "F_DUPFD_CLOEXEC")
            }
            "fcntl" | "fcntl64" if is_lock(call.argument(1)) => self.lock(made),
            "fcntl" | "fcntl64" if matches!(call.argument(1), "F_SETFL" | "F_SETFD") => {
                if call.result == Some(0) {
                    self.set_flags(made);
                }
                None
            }
            "flock" => self.on_handle(made, Call::Flock, 0, 0),
            "read" => self.moved(made, Call::Read, 0, Place::Position, size(2)),
            "write" => self.moved(made, Call::Write, 0, Place::Position, size(2)),
            "pread64" | "pread" => self.moved(made, Call::Pread, 0, at(3), size(2)),
            "pwrite64" | "pwrite" => self.moved(made, Call::Pwrite, 0, at(3), size(2)),
            "readv" => self.moved(made, Call::Readv, 0, Place::Position, line::vector_len(call.argument(1))),
            "writev" => {
                self.moved(made, Call::Writev, 0, Place::Position, line::vector_len(call.argument(1)))
            }
            "preadv" | "preadv2" => {
                self.moved(made, Call::Preadv, 0, at(3), line::vector_len(call.argument(1)))
            }
            "pwritev" | "pwritev2" => {
                self.moved(made, Call::Pwritev, 0, at(3), line::vector_len(call.argument(1)))
            }
            "lseek" | "_llseek" => self.seek(made),
            "fsync" | "syncfs" => self.on_handle(made, Call::Fsync, 0, 0),
            "fdatasync" => self.on_handle(made, Call::Fdatasync, 0, 0),
            "sync_file_range" => self.on_range(made, Call::SyncFileRange, 0, at(1), size(2)),
            "fadvise64" | "fadvise64_64" => self.on_range(made, Call::Fadvise, 0, at(1), size(2)),
            // Of which file, strace does not show.
            "sync" => Some((Call::Sync, Done::default())),
            "msync" => Some((Call::Msync, Done { size: sized(size(1)), ..Done::default() })),
            "ftruncate" | "ftruncate64" => self.on_handle(made, Call::Ftruncate, 0, sized(size(1))),
            "fallocate" => self.on_range(made, Call::Fallocate, 0, at(2), size(3)),
            "fstat" | "fstat64" => self.on_handle(made, Call::Stat, 0, 0),
            "newfstatat" | "statx" | "fstatat64" if call.argument(1) == "\"\"" => {
                self.on_handle(made, Call::Stat, 0, 0)
            }
            "mmap" | "mmap2" => self.on_range(made, Call::Mmap, 4, at(5), size(1)),
            "truncate" | "truncate64" => self.on_path(made, Call::Truncate, 0, None, sized(size(1))),
            "unlink" => self.on_path(made, Call::Unlink, 0, None, 0),
            "unlinkat" if call.argument(2).contains("AT_REMOVEDIR") => {
                self.on_path(made, Call::Rmdir, 1, Some(0), 0)
            }
            "unlinkat" => self.on_path(made, Call::Unlink, 1, Some(0), 0),
            "rmdir" => self.on_path(made, Call::Rmdir, 0, None, 0),
            "mkdir" => self.on_path(made, Call::Mkdir, 0, None, 0),
            "mkdirat" => self.on_path(made, Call::Mkdir, 1, Some(0), 0),
            "access" => self.on_path(made, Call::Access, 0, None, 0),
            "faccessat" | "faccessat2" => self.on_path(made, Call::Access, 1, Some(0), 0),
            "readlink" => self.on_path(made, Call::Readlink, 0, None, 0),
            "readlinkat" => self.on_path(made, Call::Readlink, 1, Some(0), 0),
            "chmod" => self.on_path(made, Call::Chmod, 0, None, 0),
            "fchmodat" | "fchmodat2" => self.on_path(made, Call::Chmod, 1, Some(0), 0),
            "fchmod" => self.on_handle(made, Call::Chmod, 0, 0),
            "rename" => self.on_two_paths(made, Call::Rename, (0, None), (1, None)),
            "renameat" | "renameat2" => self.on_two_paths(made, Call::Rename, (1, Some(0)), (3, Some(2))),
            "link" => self.on_two_paths(made, Call::Link, (0, None), (1, None)),
            "linkat" => self.on_two_paths(made, Call::Link, (1, Some(0)), (3, Some(2))),
            "symlink" => self.on_link(made, 1, None),
            "symlinkat" => self.on_link(made, 2, Some(1)),
            "stat" | "lstat" | "stat64" | "lstat64" => self.on_path(made, Call::Stat, 0, None, 0),
            "newfstatat" | "statx" | "fstatat64" => self.on_path(made, Call::Stat, 1, Some(0), 0),
            "execve" | "execveat" => {
                self.exec(made);
                None
            }
            "chdir" => {
                if call.result == Some(0) {
                    let folder = self.path(made, 0, None);
                    *self.tasks.folders.get_mut(made.owner)? = folder;
                }
                None
            }
            "fchdir" => {
                if call.result == Some(0) {
                    let folder = self.folder_of(made, call.argument(0));
                    *self.tasks.folders.get_mut(made.owner)? = folder;
                }
                None
            }
            "socket" | "accept" | "accept4" | "epoll_create" | "epoll_create1" | "eventfd" | "eventfd2"
            | "timerfd_create" | "signalfd" | "signalfd4" | "inotify_init" | "inotify_init1"
            | "memfd_create" | "pidfd_open" | "userfaultfd" | "perf_event_open" | "io_uring_setup" => {
                let fd = descriptor_of(call.result)?;
                self.descriptors(made)?.set(fd, Descriptor::Other);
                None
            }
            "pipe" | "pipe2" | "socketpair" => {
                let pair = call.argument(if call.name == "socketpair" { 3 } else { 0 });
                for fd in pair.trim_matches(['[', ']']).split(',') {
                    if let Some(fd) = line::descriptor(fd.trim()) {
                        self.descriptors(made)?.set(fd, Descriptor::Other);
                    }
                }
                None
            }
            _ => {
                self.pass_over(made);
                None
            }
        }
    }

    /// Counts a call of a kind that a trace does not have, if it is on a file of the job.
    fn pass_over(&mut self, made: &Made) {
        let call = &made.call;
        let is_counted = if NOT_IN_TRACES_ON_DESCRIPTORS.contains(&call.name) {
            let known = line::descriptor(call.argument(0))
                .and_then(|fd| self.descriptors(made)?.get(fd))
                .map(|what| matches!(what, Descriptor::File { .. } | Descriptor::Folder(_)));
            let path = line::path_behind(call.argument(0));
            known.unwrap_or_else(|| path.is_some_and(|path| path.starts_with('/') && !is_foreign(&path)))
        } else if NOT_IN_TRACES_ON_NAMES.contains(&call.name) {
            let name = call.arguments.iter().find_map(|argument| line::unquoted(argument));
            name.is_some_and(|name| !is_foreign(&name))
        } else {
            false
        };
        if is_counted {
            self.passed_over.add(call.name);
        }
    }

    fn open(
        &mut self,
        made: &Made,
        call: Call,
        path: usize,
        folder: Option<usize>,
        flags: &str,
    ) -> Option<(Call, Done)> {
        let name = made.call.result_path.clone().or_else(|| self.path(made, path, folder))?;
        let fd = descriptor_of(made.call.result);
        let is_folder = flags.contains("O_DIRECTORY") || flags.contains("O_PATH");
        if is_folder || is_foreign(&name) {
            if let Some(fd) = fd {
                let what = if is_folder { Descriptor::Folder(name) } else { Descriptor::Other };
                self.descriptors(made)?.set(fd, what);
            }
            return None;
        }
        let Some(fd) = fd else {
            return Some((call, Done { name: self.builder.name(&name), ..Done::default() }));
        };
        let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let known =
            OPENED.iter().filter(|(word, _)| flags.split(|one| !is_of_word(one)).any(|flag| flag == *word));
        let opened = known.fold(Flags::NONE, |all, (_, flag)| all | *flag);
        let open = self.add_open_file(&name, Some(0), opened.contains(Flags::APPEND));
        let closes_on_exec = flags.contains("O_CLOEXEC");
        self.descriptors(made)?.set(fd, Descriptor::File { open, closes_on_exec });
        let handle = self.handle(open, made.process);
        Some((call, Done { handle, flags: opened, ..Done::default() }))
    }

    fn add_open_file(&mut self, path: &str, position: Option<u64>, appends: bool) -> OpenFileId {
        let file = self.builder.file(path);
        self.open_files.push(OpenFile { file, position, appends });
        self.open_files.len() - 1
    }

    /// The handle by which a process uses an open file: one that is inherited is another.
    fn handle(&mut self, open: OpenFileId, process: ProcessId) -> Option<HandleId> {
        let file = self.open_files.get(open)?.file;
        let builder = &mut self.builder;
        Some(*self.handles.entry((open, process)).or_insert_with(|| builder.add_handle(file, process)))
    }

    fn descriptors(&mut self, made: &Made) -> Option<&mut Descriptors> {
        self.tasks.descriptors.get_mut(made.owner)
    }

    /// The open file behind a descriptor; none for what is no file of the job.
    fn open_file(&mut self, made: &Made, argument: usize) -> Option<OpenFileId> {
        self.open_file_of(made, made.call.argument(argument))
    }

    fn open_file_of(&mut self, made: &Made, descriptor: &str) -> Option<OpenFileId> {
        let fd = line::descriptor(descriptor)?;
        match self.descriptors(made)?.get(fd) {
            Some(Descriptor::File { open, .. }) => return Some(*open),
            Some(Descriptor::Nameless) => {
                self.nameless += 1;
                return None;
            }
            Some(_) => return None,
            None if fd < 0 => return None,
            None => {}
        }
        // Opened before strace came.
        let name = match line::path_behind(descriptor) {
            Some(path) if path.starts_with('/') && !is_foreign(&path) => path,
            Some(_) => {
                self.descriptors(made)?.set(fd, Descriptor::Other);
                return None;
            }
            None if fd <= 2 => {
                self.nameless += 1;
                return None;
            }
            None => format!("descriptor {fd} of process {}", made.tid),
        };
        let open = self.add_open_file(&name, None, false);
        self.descriptors(made)?.set(fd, Descriptor::File { open, closes_on_exec: false });
        Some(open)
    }

    fn close(&mut self, made: &Made) -> Option<(Call, Done)> {
        let fd = line::descriptor(made.call.argument(0))?;
        let Some(Descriptor::File { open, .. }) = self.descriptors(made)?.get(fd) else {
            self.descriptors(made)?.close(fd);
            return None;
        };
        let open = *open;
        self.descriptors(made)?.close(fd);
        Some((Call::Close, Done { handle: self.handle(open, made.process), ..Done::default() }))
    }

    fn dup(&mut self, made: &Made, closes_on_exec: bool) -> Option<(Call, Done)> {
        let old = line::descriptor(made.call.argument(0))?;
        let new = descriptor_of(made.call.result)?;
        let is_nameless = match self.descriptors(made)?.get(old) {
            Some(known) => *known == Descriptor::Nameless,
            None => (0..=2).contains(&old) && line::path_behind(made.call.argument(0)).is_none(),
        };
        if is_nameless {
            self.descriptors(made)?.set(new, Descriptor::Nameless);
            return None;
        }
        let Some(open) = self.open_file(made, 0) else {
            let what = self.descriptors(made)?.get(old).cloned();
            match what {
                Some(what) => self.descriptors(made)?.set(new, what),
                None => self.descriptors(made)?.close(new),
            }
            return None;
        };
        self.descriptors(made)?.set(new, Descriptor::File { open, closes_on_exec });
        Some((Call::Dup, Done { handle: self.handle(open, made.process), ..Done::default() }))
    }

    /// `fcntl(3, F_SETFL, O_WRONLY|O_APPEND)`, `fcntl(3, F_SETFD, FD_CLOEXEC)`
    fn set_flags(&mut self, made: &Made) {
        let fd = line::descriptor(made.call.argument(0));
        let known = self.descriptors(made).and_then(|known| known.get(fd?));
        // It is no call of a trace: what has no name is not lost by it.
        if !matches!(known, Some(Descriptor::File { .. }))
            && line::path_behind(made.call.argument(0)).is_none()
        {
            return;
        }
        let Some(opened) = self.open_file(made, 0) else { return };
        let flags = made.call.argument(2);
        if made.call.argument(1) == "F_SETFL" {
            if let Some(file) = self.open_files.get_mut(opened) {
                file.appends = flags.split('|').any(|flag| flag == "O_APPEND");
            }
        } else if let Some(fd) = fd
            && let Some(descriptors) = self.descriptors(made)
        {
            descriptors
                .set(fd, Descriptor::File { open: opened, closes_on_exec: flags.contains("FD_CLOEXEC") });
        }
    }

    /// Data moved. Without an offset of its own, the call uses and moves the position of the open file.
    fn moved(
        &mut self,
        made: &Made,
        call: Call,
        descriptor: usize,
        place: Place,
        size: Option<u64>,
    ) -> Option<(Call, Done)> {
        let open = self.open_file(made, descriptor)?;
        let moved = made.call.result.and_then(|result| u64::try_from(result).ok()).unwrap_or(0);
        let file = self.open_files.get_mut(open)?;
        let appends = file.appends && call.op() == Op::Write;
        let offset = match place {
            // Where the end is, strace does not tell.
            _ if appends => None,
            Place::At(offset) => Some(offset),
            Place::Position => file.position,
            Place::Unknown => None,
        };
        if matches!(place, Place::Position) {
            file.position = offset.map(|offset| offset.saturating_add(moved));
        }
        let handle = self.handle(open, made.process);
        let flags = if appends { Flags::APPEND } else { Flags::NONE };
        Some((call, Done { handle, offset, size: size.unwrap_or(moved), flags, ..Done::default() }))
    }

    fn seek(&mut self, made: &Made) -> Option<(Call, Done)> {
        let open = self.open_file(made, 0)?;
        let reached = match made.call.name {
            // The position comes back in an argument, in brackets.
            "_llseek" if made.call.result == Some(0) => {
                line::number(made.call.argument(2).trim_matches(['[', ']']))
            }
            _ => made.call.result,
        };
        let position = reached.and_then(|reached| u64::try_from(reached).ok());
        if let (Some(position), Some(file)) = (position, self.open_files.get_mut(open)) {
            file.position = Some(position);
        }
        Some((
            Call::Lseek,
            Done { handle: self.handle(open, made.process), offset: position, ..Done::default() },
        ))
    }

    fn on_handle(&mut self, made: &Made, call: Call, argument: usize, size: u64) -> Option<(Call, Done)> {
        let open = self.open_file(made, argument)?;
        Some((call, Done { handle: self.handle(open, made.process), size, ..Done::default() }))
    }

    /// On a range of an open file.
    fn on_range(
        &mut self,
        made: &Made,
        call: Call,
        argument: usize,
        place: Place,
        size: Option<u64>,
    ) -> Option<(Call, Done)> {
        let (call, done) = self.on_handle(made, call, argument, size.unwrap_or(0))?;
        let offset = if let Place::At(offset) = place { Some(offset) } else { None };
        Some((call, Done { offset, ..done }))
    }

    fn on_path(
        &mut self,
        made: &Made,
        call: Call,
        path: usize,
        folder: Option<usize>,
        size: u64,
    ) -> Option<(Call, Done)> {
        let path = self.path(made, path, folder)?;
        (!is_foreign(&path)).then(|| (call, Done { size, name: self.builder.name(&path), ..Done::default() }))
    }

    /// A call on a path and another one; each is an argument, and that of the folder's descriptor that it is relative to.
    fn on_two_paths(
        &mut self,
        made: &Made,
        call: Call,
        (path, folder): (usize, Option<usize>),
        (other, other_folder): (usize, Option<usize>),
    ) -> Option<(Call, Done)> {
        let (call, done) = self.on_path(made, call, path, folder, 0)?;
        let other = self.path(made, other, other_folder).and_then(|path| self.builder.name(&path));
        Some((call, Done { other, ..done }))
    }

    /// `symlink("TARGET", "PATH")`: a target is relative to the link's folder.
    fn on_link(&mut self, made: &Made, path: usize, folder: Option<usize>) -> Option<(Call, Done)> {
        let (call, done) = self.on_path(made, Call::Symlink, path, folder, 0)?;
        let link = self.path(made, path, folder)?;
        let target = line::unquoted(made.call.argument(0));
        let other = target.map(|target| match link.rsplit_once('/').filter(|_| !target.starts_with('/')) {
            Some((beside, _)) => paths::normal(&format!("{beside}/{target}")),
            None => paths::normal(&target),
        });
        let other = other.and_then(|path| self.builder.name(&path));
        Some((call, Done { other, ..done }))
    }

    /// `fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=100, l_len=50})`
    fn lock(&mut self, made: &Made) -> Option<(Call, Done)> {
        let fields = line::fields(made.call.argument(2));
        let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let number = |name: &str| line::number(field(name)?);
        let (start, length) = (number("l_start"), number("l_len").unwrap_or(0));
        let start = start.filter(|_| field("l_whence") == Some("SEEK_SET"));
        // A negative length means the bytes before.
        let start = start.and_then(|start| u64::try_from(start.checked_add(length.min(0))?).ok());
        let (_, mut done) = self.on_handle(made, Call::FcntlLock, 0, length.unsigned_abs())?;
        done.offset = start;
        Some((Call::FcntlLock, done))
    }

    fn exec(&mut self, made: &Made) {
        if made.call.result != Some(0) {
            return;
        }
        let Some(process) = self.builder.process(made.process) else { return };
        let arguments = made.call.argument(if made.call.name == "execveat" { 2 } else { 1 });
        process.command = line::strings(arguments).join(" ");
        if let Some(descriptors) = self.descriptors(made) {
            descriptors.exec();
        }
    }

    /// The path that an argument names, as whole as can be known: names are relative to the working folder, or to that
    /// of a descriptor.
    fn path(&mut self, made: &Made, argument: usize, folder: Option<usize>) -> Option<String> {
        let name = line::unquoted(made.call.argument(argument))?;
        if name.starts_with('/') {
            return Some(paths::normal(&name));
        }
        let folder = folder.map(|argument| made.call.argument(argument));
        let base = match folder {
            Some(text) if !text.starts_with("AT_FDCWD") => self.folder_of(made, text),
            _ => self.tasks.folders.get(made.owner)?.clone(),
        };
        Some(match base {
            Some(base) => paths::normal(&format!("{base}/{name}")),
            None => paths::normal(&name),
        })
    }

    /// The folder behind a descriptor.
    fn folder_of(&mut self, made: &Made, text: &str) -> Option<String> {
        let fd = line::descriptor(text)?;
        if let Some(path) = line::path_behind(text) {
            return Some(path);
        }
        match self.descriptors(made)?.get(fd) {
            Some(Descriptor::Folder(path)) => Some(path.clone()),
            _ => None,
        }
    }
}

/// Where a call reads or writes.
#[derive(Clone, Copy)]
enum Place {
    /// At an offset of its own.
    At(u64),
    /// At the position of the open file.
    Position,
    /// At an offset that the line does not show.
    Unknown,
}

impl Place {
    /// From an argument; −1 stands for the position (`preadv2`).
    fn of(argument: &str) -> Place {
        match line::number(argument) {
            Some(-1) => Place::Position,
            offset => Place::at(offset),
        }
    }

    /// From an argument that points to the offset, which comes back moved: `NULL`, `[4096]`, `[0] => [4096]`.
    fn behind(argument: &str) -> Place {
        if argument == "NULL" {
            return Place::Position;
        }
        let before = argument.split_once("=>").map_or(argument, |(before, _)| before);
        Place::at(line::number(before.trim().trim_matches(['[', ']'])))
    }

    fn at(offset: Option<i64>) -> Place {
        offset.and_then(|offset| u64::try_from(offset).ok()).map_or(Place::Unknown, Place::At)
    }
}

const DAY_NS: u64 = 86_400_000_000_000;

fn is_lock(command: &str) -> bool {
    ["F_SETLK", "F_SETLKW", "F_SETLK64", "F_SETLKW64", "F_OFD_SETLK", "F_OFD_SETLKW"].contains(&command)
}

fn makes_child(text: &str) -> bool {
    ["clone(", "clone3(", "fork(", "vfork("].iter().any(|name| text.starts_with(name))
}

/// Not the job's files: the kernel's and devices.
fn is_foreign(path: &str) -> bool {
    ["/proc/", "/sys/", "/dev/"].iter().any(|prefix| path.starts_with(prefix))
}

fn descriptor_of(result: Option<i64>) -> Option<i32> {
    result.and_then(|result| i32::try_from(result).ok()).filter(|&fd| fd >= 0)
}
