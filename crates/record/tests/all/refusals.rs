//! What cannot be run, or cannot be written, is refused before anything runs, in one clear line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{command, compile, folder, program_source, record_in};
use pio_record::{Error, Options, cannot_see, check, run};
use pio_trace::{Calls, Losses};

fn refusal(words: &[&str], output: &Path) -> Error {
    let options = Options { command: command(words), output: output.to_path_buf(), ..Options::default() };
    match run(&options) {
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            error
        }
        Ok(outcome) => panic!("{words:?} was recorded: {outcome:?}"),
    }
}

#[test]
fn programs_that_are_not_there_or_not_programs() {
    let folder = folder();
    let output = folder.path().join("job.pio");
    assert!(matches!(refusal(&[], &output), Error::NoCommand));
    assert!(matches!(refusal(&["no-such-program-here"], &output), Error::NotFound { .. }));
    assert!(matches!(refusal(&["/no/such/program"], &output), Error::NotFound { .. }));
    let text = folder.path().join("text");
    fs::write(&text, "hello").expect("a file");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o644)).expect("permissions");
    assert!(matches!(refusal(&[text.to_str().expect("utf-8")], &output), Error::NotExecutable { .. }));
    let names: Vec<_> =
        fs::read_dir(folder.path()).expect("the folder").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(names, ["text"], "nothing is left behind");
}

#[test]
fn what_needs_to_be_loaded_is_not_into_static_programs() {
    let folder = folder();
    let program = folder.path().join("still");
    let source = program_source("threads.c");
    let compiled = Command::new("cc")
        .args(["-static", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status()
        .expect("cc");
    if !compiled.success() {
        println!("skipped: no static C library here");
        return;
    }
    let program = program.to_str().expect("utf-8");
    for words in [&[program][..], &["env", "A=B", program]] {
        let refused = check(words).expect_err("nothing can be loaded");
        assert!(
            matches!(&refused, Error::Unreachable { program, .. } if program.ends_with("still")),
            "{refused}"
        );
        assert!(refused.to_string().contains("statically linked"), "{refused}");
        // Said before the job as well: what runs on other nodes, no launcher's exec hook sees.
        let said = cannot_see(words).expect("it will not be seen");
        assert_eq!(said, format!("{program}: not seen: it is statically linked"));
    }
    assert!(check(&["env", "A=B", "cat"]).is_ok() && cannot_see(&["env", "A=B", "cat"]).is_none());
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = folder();
    for output in [folder.path().join("missing/job.pio"), folder.path().to_path_buf()] {
        let error = refusal(&["true"], &output);
        assert!(matches!(error, Error::Output { .. }), "{error}");
    }
}

#[test]
fn spools_that_cannot_be_written() {
    let folder = folder();
    let options = Options {
        command: command(&["true"]),
        output: folder.path().join("job.pio"),
        spool: Some("/dev/null/spool".into()),
        ..Options::default()
    };
    let error = run(&options).expect_err("no folder can be there");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

/// A small file system of its own, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<SmallDisk> {
        let folder = folder();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|output| output.status.success()).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_loses_calls_and_says_how_many() {
    let Some(disk) = SmallDisk::new() else {
        println!("skipped: may not mount a small file system");
        return;
    };
    let folder = folder();
    let program = compile("cc", "endings", folder.path(), &[]);
    let file = folder.path().join("file");
    let job = record_in(folder, vec![program.into(), file.into()], |options| {
        options.spool = Some(disk.0.path().join("spool"));
    });
    assert!(job.outcome.status.success(), "the program does not notice: {:?}", job.outcome);
    let left = fs::read_dir(disk.0.path().join("spool")).expect("the folder given stays").count();
    assert_eq!(left, 0, "but for what the recorder put there");
    let summary = &job.outcome.summary;
    assert!(summary.lost_calls > 0, "{summary:?}");
    assert_eq!(summary.events + summary.lost_calls, 1001, "an open and 1000 writes");
    let losses = Losses::of(&job.trace);
    let made = losses.made.expect("the trace says how many calls were made");
    assert_eq!((made.writes, made.others), (Calls { calls: 1000, bytes: 100_000 }, 1), "{losses:?}");
    assert_eq!(losses.lost.calls(), summary.lost_calls, "{losses:?}");
    assert_eq!(losses.lost.writes.bytes, losses.lost.writes.calls * 100, "{losses:?}");
    drop(job);
}

#[test]
fn the_exit_status_is_passed_on() {
    let job = record_in(folder(), command(&["sh", "-c", "exit 7"]), |_| {});
    assert_eq!(job.outcome.status.code(), Some(7));
    assert_eq!(job.outcome.summary.processes, 0, "a shell that touches no file is plumbing");
}
