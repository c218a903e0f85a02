//! Whatever a job starts runs as it would without us: it is recorded, or named with what it moved.
//!
//! All programs here write 1 MiB to a file, read it again, and end with 7. What is not installed is skipped by name.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Job, command, compile, folder, program_source, record_in};
use pio_trace::{Losses, Op, Reason, Unseen};

const BYTES: u64 = 1 << 20;
/// What a process reads besides its data: the kernel reads its program file, a loader its libraries.
const MORE_READ: u64 = 64 << 10;

/// Compiles moves.c; None, with a line, if that compiler or option is not there.
fn moves(compiler: &str, options: &[&str], folder: &Path) -> Option<PathBuf> {
    let program = folder.join("moves");
    let output = Command::new(compiler)
        .args(["-o"])
        .arg(&program)
        .arg(program_source("moves.c"))
        .args(options)
        .output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("skipped: no {compiler} {}", options.join(" "));
        return None;
    }
    Some(program)
}

fn is_there(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    if !found {
        println!("skipped: no {program}");
    }
    found
}

fn is_root() -> bool {
    let is = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is {
        println!("skipped: only root may do this");
    }
    is
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The job of a command; its exit code must be the program's own.
fn recorded(words: &[&str]) -> Job {
    recorded_with(words, &[])
}

fn recorded_with(words: &[&str], environment: &[(&str, &str)]) -> Job {
    let job = record_in(folder(), command(words), |options| {
        options.environment =
            environment.iter().map(|(n, v)| (OsString::from(n), OsString::from(v))).collect();
    });
    assert_eq!(job.outcome.status.code(), Some(7), "{words:?}: {:?}", job.outcome);
    job
}

/// Its program was recorded, call by call.
fn is_seen(job: &Job) {
    assert_eq!(
        (job.bytes("/data", Op::Write), job.bytes("/data", Op::Read)),
        (BYTES, BYTES),
        "{:?}",
        job.outcome
    );
    let losses = Losses::of(&job.trace);
    assert!(losses.is_empty(), "{losses:?}");
}

/// Its program was not, but is named, with its bytes.
fn is_named(job: &Job, reason: Reason) -> Unseen {
    let unseen = Losses::of(&job.trace).unseen;
    assert_eq!(unseen, job.outcome.summary.unseen);
    let [unseen] = &unseen[..] else { panic!("one program is named: {unseen:?}") };
    assert!(unseen.program.ends_with("/moves"), "{unseen:?}");
    assert_eq!((unseen.reason, unseen.processes), (reason, 1), "{unseen:?}");
    assert_eq!(job.bytes("/data", Op::Write), 0);
    unseen.clone()
}

fn is_named_with_bytes(job: &Job, reason: Reason) {
    let unseen = is_named(job, reason);
    assert_eq!((unseen.unknown, unseen.written_bytes), (0, BYTES), "{unseen:?}");
    assert!((BYTES..=BYTES + MORE_READ).contains(&unseen.read_bytes), "{unseen:?}");
}

/// A program that cannot be seen: the command itself; started by a shell, by one that becomes it, by `env -i`, and by
/// Python, which has other ways.
fn is_named_however_it_starts(program: &Path, reason: Reason) {
    let place = folder();
    let data = place.path().join("data");
    let (program, data) = (text(program), text(&data));
    is_named_with_bytes(&recorded(&[program, data]), reason);
    let in_shell = format!("cat /etc/passwd >/dev/null; {program} {data}; exit $?");
    is_named_with_bytes(&recorded(&["sh", "-c", &in_shell]), reason);
    is_named_with_bytes(&recorded(&["bash", "-c", &in_shell]), reason);
    is_named_with_bytes(&recorded(&["sh", "-c", &format!("exec {program} {data}")]), reason);
    is_named_with_bytes(&recorded(&["env", "-i", program, data]), reason);
    if is_there("python3") {
        let script = format!("import subprocess, sys; sys.exit(subprocess.call(['{program}', '{data}']))");
        is_named_with_bytes(&recorded(&["python3", "-c", &script]), reason);
    }
}

/// A program that can be seen, started in the same ways.
fn is_seen_however_it_starts(program: &Path) {
    let place = folder();
    let data = place.path().join("data");
    let (program, data) = (text(program), text(&data));
    is_seen(&recorded(&[program, data]));
    is_seen(&recorded(&["bash", "-c", &format!("{program} {data}; exit $?")]));
    is_seen(&recorded(&["env", "-i", program, data]));
    is_seen(&recorded(&["env", "-u", "LD_PRELOAD", program, data]));
    is_seen(&recorded(&["env", "LD_PRELOAD=libm.so.6", "PIOSCOPE_SPOOL=/nowhere", program, data]));
    is_seen(&recorded(&["bash", "-c", &format!("unset LD_PRELOAD; {program} {data}; exit $?")]));
}

#[test]
fn programs_of_glibc_are_seen_whatever_their_environment() {
    let place = folder();
    let Some(program) = moves("cc", &[], place.path()) else { return };
    is_seen_however_it_starts(&program);
    let data = place.path().join("data");
    let (program, data) = (text(&program), text(&data));
    if is_there("python3") {
        let start = |how: &str| {
            let script =
                format!("import os, subprocess, sys\nargs = ['{program}', '{data}']\n{how}", how = how);
            is_seen(&recorded(&["python3", "-c", &script]));
        };
        start("sys.exit(subprocess.call(args, env={}))");
        start("os.environ.clear(); sys.exit(os.waitstatus_to_exitcode(os.system(' '.join(args))))");
        start("os.execve(args[0], args, {})");
        start("os.execve(os.open(args[0], os.O_RDONLY), args, {})");
        start(
            "pid = os.posix_spawn(args[0], args, {}); sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        );
    }
}

#[test]
fn programs_of_musl_run_and_are_named() {
    let place = folder();
    let Some(program) = moves("musl-gcc", &[], place.path()) else { return };
    is_named_however_it_starts(&program, Reason::OtherLibc);
}

#[test]
fn static_programs_run_and_are_named() {
    let place = folder();
    for options in [&["-static"][..], &["-static-pie"]] {
        let Some(program) = moves("cc", options, place.path()) else { continue };
        is_named_however_it_starts(&program, Reason::Static);
    }
}

/// A program in the working folder, which is not searched for, was not looked at.
#[test]
fn a_program_that_is_spawned_by_a_name_without_folders_is_named() {
    let place = folder();
    let Some(program) = moves("cc", &["-static"], place.path()) else { return };
    if !is_there("python3") {
        return;
    }
    let script = format!(
        "import os, sys\nos.chdir('{}')\npid = os.posix_spawn('moves', ['moves', 'data'], os.environ)\n\
         sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        text(program.parent().expect("a folder"))
    );
    is_named_with_bytes(&recorded(&["python3", "-c", &script]), Reason::Static);
}

#[test]
fn programs_of_32_bit_run_and_are_named() {
    let place = folder();
    let Some(program) = moves("cc", &["-m32"], place.path()) else { return };
    is_named_however_it_starts(&program, Reason::OtherMachine);
}

#[test]
fn programs_in_go_run_and_are_named() {
    if !is_there("go") {
        return;
    }
    let place = folder();
    let program = place.path().join("moves");
    let built =
        Command::new("go").args(["build", "-o"]).arg(&program).arg(program_source("moves.go")).output();
    if !built.is_ok_and(|output| output.status.success()) {
        println!("skipped: go does not build");
        return;
    }
    is_named_however_it_starts(&program, Reason::Go);
}

#[test]
fn programs_with_sanitizers_are_seen() {
    for sanitizer in ["address", "thread", "undefined", "leak"] {
        let place = folder();
        let option = format!("-fsanitize={sanitizer}");
        if let Some(program) = moves("cc", &[&option], place.path()) {
            is_seen_however_it_starts(&program);
        }
    }
}

/// A call of the recorder's own ended them: strict mode does not let it read the processor's counter, and a filter none of the
/// clocks.
#[test]
fn programs_that_restrict_their_calls_run_and_are_named() {
    let place = folder();
    let program = compile("cc", "restricted", place.path(), &[]);
    let data = place.path().join("data");
    let (program, data) = (text(&program), text(&data));
    for how in ["strict", "prctl", "seccomp"] {
        for words in [&[program, how, data][..], &["sh", "-c", &format!("{program} {how} {data}; exit $?")]] {
            let job = recorded(words);
            assert_eq!(job.bytes("/data", Op::Write), 100, "{how}: what comes before is recorded");
            let unseen = Losses::of(&job.trace).unseen;
            let [unseen] = &unseen[..] else { panic!("{how}: one program is named: {unseen:?}") };
            assert!(unseen.program.ends_with("/restricted"), "{how}: {unseen:?}");
            assert_eq!(
                (unseen.reason, unseen.processes, unseen.unknown),
                (Reason::Restricted, 1, 0),
                "{how}"
            );
            assert_eq!(unseen.written_bytes, 1000, "{how}: {unseen:?}");
        }
    }
    // What it becomes is told of the recorder, and looked at like any other program.
    let to_data = format!("{data}.of-moves");
    if let Some(moves) = moves("cc", &[], place.path()) {
        let job = recorded(&[program, "lenient", data, text(&moves), &to_data]);
        assert_eq!(job.bytes(".of-moves", Op::Write), BYTES);
    }
    if let Some(moves) = moves("musl-gcc", &[], place.path()) {
        let job = recorded(&[program, "lenient", data, text(&moves), &to_data]);
        let reasons: Vec<_> = Losses::of(&job.trace).unseen.iter().map(|unseen| unseen.reason).collect();
        assert!(reasons.contains(&Reason::OtherLibc), "{reasons:?}");
    }
    let job = recorded(&[program, "none", data]);
    assert_eq!((job.bytes("/data", Op::Write), job.bytes("/data", Op::Read)), (1100, 50));
    assert!(Losses::of(&job.trace).is_empty(), "{:?}", job.outcome);
}

#[test]
fn a_sanitizer_that_the_user_preloads_stays_first() {
    let output = Command::new("cc").arg("-print-file-name=libasan.so").output().expect("cc");
    let library = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let Some(library) = library.canonicalize().ok().filter(|library| library.is_absolute()) else {
        println!("skipped: no libasan");
        return;
    };
    let place = folder();
    let Some(program) = moves("cc", &[], place.path()) else { return };
    let data = place.path().join("data");
    let preload = format!("LD_PRELOAD={}", text(&library));
    let words = ["env", &preload, "ASAN_OPTIONS=detect_leaks=0", text(&program), text(&data)];
    is_seen(&recorded(&words));
}

#[test]
fn programs_with_jemalloc_are_seen() {
    let library = ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2"];
    let Some(library) = library.into_iter().find(|library| Path::new(library).is_file()) else {
        println!("skipped: no libjemalloc.so.2");
        return;
    };
    let place = folder();
    let data = place.path().join("data");
    if let Some(program) = moves("cc", &[library], place.path()) {
        is_seen_however_it_starts(&program);
    }
    let Some(program) = moves("cc", &[], place.path()) else { return };
    is_seen(&recorded(&["env", &format!("LD_PRELOAD={library}"), text(&program), text(&data)]));
}

/// A folder that everybody may write to, unlike that of the trace.
fn open_folder() -> tempfile::TempDir {
    let place = folder();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
    place
}

#[test]
fn setuid_programs_run_and_are_named() {
    if !is_root() {
        return;
    }
    let place = open_folder();
    let Some(program) = moves("cc", &[], place.path()) else { return };
    let made = Command::new("chown").arg("65534").arg(&program).status().is_ok_and(|status| status.success());
    assert!(made, "root may give files away");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("permissions");
    let data = place.path().join("data");
    let job = recorded(&["sh", "-c", &format!("{} {}; exit $?", text(&program), text(&data))]);
    let unseen = is_named(&job, Reason::Privileged);
    assert!(unseen.unknown == 1 || unseen.written_bytes == BYTES, "{unseen:?}");
}

#[test]
fn programs_of_other_users_are_seen() {
    if !is_root() {
        return;
    }
    let place = open_folder();
    let Some(program) = moves("cc", &[], place.path()) else { return };
    let data = place.path().join("data");
    let line = format!("{} {}", text(&program), text(&data));
    let mut ways = vec![
        ("su", vec!["su", "nobody", "-s", "/bin/sh", "-c", &line]),
        ("su", vec!["su", "-", "nobody", "-s", "/bin/sh", "-c", &line]),
        ("runuser", vec!["runuser", "-u", "nobody", "--", text(&program), text(&data)]),
        ("setpriv", vec!["setpriv", "--reuid=65534", "--clear-groups", text(&program), text(&data)]),
    ];
    ways.retain(|(program, _)| is_there(program));
    let before = folders_for_others();
    for (_, words) in ways {
        let _ = fs::remove_file(&data);
        let job = recorded(&words);
        is_seen(&job);
    }
    // Other tests may run: theirs go when they end.
    let ours: Vec<_> = folders_for_others().into_iter().filter(|folder| !before.contains(folder)).collect();
    let until = Instant::now() + Duration::from_secs(60);
    while ours.iter().any(|folder| folder.exists()) {
        assert!(Instant::now() < until, "left behind: {ours:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where processes of other users leave what they record.
fn folders_for_others() -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).expect("the folder").flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".pioscope-"));
    ours.map(|entry| entry.path()).collect()
}

#[test]
fn what_does_not_start_is_not_named() {
    let place = folder();
    let Some(program) = moves("cc", &["-static"], place.path()) else { return };
    // Its file is good, but has no permission.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("permissions");
    let job = recorded(&["sh", "-c", &format!("{} x 2>/dev/null; exec 2>/dev/null; exit 7", text(&program))]);
    assert_eq!(Losses::of(&job.trace).unseen, []);
}

#[test]
fn what_outlives_the_command_runs_on_and_was_not_killed() {
    let place = folder();
    let Some(program) = moves("cc", &[], place.path()) else { return };
    let data = place.path().join("data");
    // A Python that has written, and stays until it is told to end.
    if !is_there("python3") {
        return;
    }
    let ready = place.path().join("ready");
    let script = format!(
        "import os, time\nos.setsid()\nf = open('{}', 'w'); f.write('x' * 100); f.flush()\nopen('{}', 'w')\n\
         while os.path.exists('{}'): time.sleep(0.02)\n",
        text(&data),
        text(&ready),
        text(&ready)
    );
    let daemon = place.path().join("daemon.py");
    fs::write(&daemon, script).expect("a script");
    let line = format!(
        "python3 {} >/dev/null 2>&1 & while ! [ -e {} ]; do sleep 0.05; done; {} {}",
        text(&daemon),
        text(&ready),
        text(&program),
        text(&data)
    );
    let job = recorded(&["sh", "-c", &line]);
    fs::remove_file(&ready).expect("the file of the daemon");
    let losses = Losses::of(&job.trace);
    let [running] = losses.running[..] else { panic!("one process runs on: {losses:?}") };
    let process = &job.trace.tables().processes[running.index()];
    assert!(process.command.contains("daemon.py") && process.end_ns.is_none(), "{process:?}");
    assert!(job.outcome.summary.problems().iter().any(|line| line.contains("runs on")));
}

/// Nothing was said of them: they have left no spool.
#[test]
fn what_outlives_the_command_and_has_made_no_call_is_counted() {
    let job = recorded(&["sh", "-c", "sleep 5 >/dev/null 2>&1 & exit 7"]);
    assert_eq!(job.outcome.summary.running_without_calls, 1, "{:?}", job.outcome);
    let problems = job.outcome.summary.problems();
    let said = "1 process outlived the command and runs on: no call on a file was recorded of it up to now";
    assert!(problems.iter().any(|line| line.starts_with(said)), "{problems:?}");
}

/// A launcher ends before the ranks that it kills.
#[test]
fn what_is_gone_a_moment_later_does_not_run_on() {
    let job = recorded(&["sh", "-c", "exec >/dev/null 2>&1; sleep 0.05 & exit 7"]);
    assert!(job.outcome.summary.problems().is_empty(), "{:?}", job.outcome);
}

#[test]
fn waiting_follows_what_outlives_the_command() {
    let place = folder();
    let Some(program) = moves("cc", &[], place.path()) else { return };
    let data = place.path().join("data");
    // It has opened nothing yet when the command ends.
    let line = format!("setsid {} {} 1 >/dev/null 2>&1 & exit 7", text(&program), text(&data));
    let begun = Instant::now();
    let job = record_in(folder(), command(&["sh", "-c", &line]), |options| options.wait = true);
    assert_eq!(job.outcome.status.code(), Some(7));
    assert!(begun.elapsed() >= Duration::from_secs(1), "it waited");
    is_seen(&job);
    assert!(Losses::of(&job.trace).running.is_empty());
    assert!(job.trace.tables().processes.iter().all(|process| process.end_ns.is_some()));
}

/// A word with blanks was taken apart by who typed it again.
#[test]
fn a_trace_names_its_command_as_it_would_be_typed() {
    let job = record_in(folder(), command(&["sh", "-c", "echo 'it is' > /dev/null; true"]), |_| {});
    assert_eq!(job.trace.tables().job, r"sh -c 'echo '\''it is'\'' > /dev/null; true'");
}
