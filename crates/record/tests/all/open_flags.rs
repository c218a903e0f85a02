//! How a file was opened stands with its open: what helps against slow writes depends on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use pio_record::{Options, run};
use pio_trace::{Flags, Op, Trace};

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    static const int flags[] = {0, O_SYNC, O_DSYNC, O_APPEND, O_APPEND | O_SYNC, O_DIRECT, O_TRUNC, O_TRUNC | O_SYNC};
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
        close(open("data", O_CREAT | O_WRONLY | flags[i], 0644));
    return 0;
}
"#;

#[test]
fn opens_say_whether_writes_are_synchronous_direct_or_at_the_end_of_a_file_that_is_cut() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let program = compile(folder.path(), "opens", PROGRAM);
    let opened = flags_of_opens(folder.path(), &[program.into()]);
    let (sync, append, direct, cut) = (Flags::SYNC, Flags::APPEND, Flags::DIRECT, Flags::TRUNCATE);
    assert_eq!(opened, [Flags::NONE, sync, sync, append, append | sync, direct, cut, cut | sync]);
}

/// Streams that cut their file did not say so, and one that only appends was cold: its pages need not be read.
#[test]
fn streams_are_opened_as_their_modes_say() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let (streams, forgetter) =
        (compile(folder.path(), "streams", STREAMS), compile(folder.path(), "forgetter", FORGETTER));
    let data = folder.path().join("data");
    std::fs::write(&data, [1; 100]).expect("the file is written");
    std::fs::File::open(&data).and_then(|file| file.sync_all()).expect("it is on its device");
    let is_cold = Command::new(&forgetter).arg(&data).status().expect("it starts").success();
    let (append, cut) = (Flags::APPEND, Flags::TRUNCATE);
    let cold = if is_cold { Flags::COLD } else { Flags::NONE };
    let opened = flags_of_opens(folder.path(), &[streams.into()]);
    assert_eq!(opened, [append, cold, append | cold, cold, cut, cut, cut, Flags::NONE]);
}

const STREAMS: &str = r#"
#include <stdio.h>
int main(void) {
    static const char *const modes[] = {"a", "r+", "ab+", "r", "w", "w+b", "wex", "r,ccs=a+"};
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (i == 6)
            remove("data");
        FILE *stream = fopen("data", modes[i]);
        if (stream != NULL)
            fclose(stream);
    }
    return 0;
}
"#;

/// Memory has what was written just now, and not what the kernel was told to forget, unless the file system is memory.
#[test]
fn opens_say_whether_memory_has_the_file() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let (reader, forgetter) =
        (compile(folder.path(), "reader", READER), compile(folder.path(), "forgetter", FORGETTER));
    let data = folder.path().join("data");
    for (bytes, forgets) in [(100, false), (100, true), (64 << 20, false), (64 << 20, true)] {
        std::fs::write(&data, vec![1; bytes]).expect("the file is written");
        std::fs::File::open(&data).and_then(|file| file.sync_all()).expect("it is on its device");
        let is_cold = forgets && Command::new(&forgetter).arg(&data).status().expect("it starts").success();
        let cold = if is_cold { Flags::COLD } else { Flags::NONE };
        let opened = flags_of_opens(folder.path(), &[reader.clone().into()]);
        assert_eq!(opened, [Flags::NONE, cold, Flags::NONE], "{bytes} bytes, forgotten: {forgets}");
    }
}

/// Each rank that opened a file asked the server for its size, and before Linux 6.5 for nothing.
#[test]
fn opens_ask_no_server_for_the_size_and_an_old_kernel_once_what_memory_has() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: no strace");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let (reader, on_old_kernel) =
        (compile(folder.path(), "reader", READER), compile(folder.path(), "on_old_kernel", ON_OLD_KERNEL));
    std::fs::write(folder.path().join("data"), [1; 100]).expect("the file is written");
    let mut words: Vec<OsString> = ["strace", "-qq", "-y", "-o", "log"].map(Into::into).to_vec();
    words.extend([on_old_kernel.into(), reader.into()]);
    assert_eq!(flags_of_opens(folder.path(), &words), [Flags::NONE; 3]);
    let log = std::fs::read_to_string(folder.path().join("log")).expect("strace's log");
    let begins = |line: &str, names: &[&str]| names.iter().any(|name| line.starts_with(name));
    // An older strace does not know cachestat.
    let about_memory = log.lines().filter(|line| begins(line, &["cachestat(", "syscall_0x1c3("]));
    assert_eq!(about_memory.count(), 1, "{log}");
    let about_file = log.lines().filter(|line| begins(line, &["fstat(", "newfstatat(", "statx("]));
    for line in about_file.filter(|line| line.contains("/data>")) {
        assert!(line.contains("AT_STATX_DONT_SYNC"), "{line}");
    }
}

/// Starts a program whose kernel does not have cachestat.
const ON_OLD_KERNEL: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 451, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, rules};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    return execv(words[1], words + 1);
}
"#;

/// Opens to write, to read, which it does, and again.
const READER: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    char byte;
    close(open("data", O_WRONLY));
    int fd = open("data", O_RDONLY);
    while (read(fd, &byte, 1) == 1 && lseek(fd, 4095, SEEK_CUR) > 0) {}
    close(fd);
    return close(open("data", O_RDONLY));
}
"#;

/// Has the kernel forget a file; succeeds if it did, and can say so to the recorder (Linux 6.5).
const FORGETTER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    static unsigned char pages[1 << 20];
    struct stat file;
    unsigned long range[2] = {0, 4096}, found[5];
    int fd = open(words[count - 1], O_RDONLY);
    if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0 || fstat(fd, &file) != 0 || syscall(451, fd, range, found, 0) != 0)
        return 1;
    void *map = mmap(NULL, file.st_size, PROT_READ, MAP_SHARED, fd, 0);
    return map == MAP_FAILED || mincore(map, file.st_size, pages) != 0 || (pages[0] & 1);
}
"#;

fn compile(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, text).expect("the source is written");
    let compiled = Command::new("cc").arg(&source).arg("-o").arg(&program).status().expect("cc starts");
    assert!(compiled.success());
    program
}

fn flags_of_opens(folder: &Path, program: &[OsString]) -> Vec<Flags> {
    let command = [&["env".into(), "-C".into(), folder.into()], program].concat();
    let options = Options { command, output: folder.join("job.pio"), ..Options::default() };
    assert!(run(&options).expect("the job is recorded").status.success());
    let trace = Trace::open(&options.output).expect("the trace opens");
    let events = (0..trace.blocks().len()).flat_map(|block| trace.block(block).expect("a whole block"));
    let data = folder.join("data").display().to_string();
    let is_data =
        |event: &pio_trace::Event| trace.tables().file_of_event(event).is_some_and(|file| file.path == data);
    events.filter(|event| event.op() == Op::Open && is_data(event)).map(|event| event.flags).collect()
}
