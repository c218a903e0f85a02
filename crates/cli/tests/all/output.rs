//! What the command prints, and where: briefly, quietly, in colours, as wide as the terminal, and under which names.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Place, Transcript};

/// A place with a trace, in a folder with a long path.
fn recorded() -> Place {
    let place = Place::new();
    let folder = "a-folder/with-a-name/that-is-long/and-another-one-below-it";
    fs::create_dir_all(place.join(folder)).unwrap();
    fs::write(place.join("in.bin"), vec![7; 40_000]).unwrap();
    let out = format!("of={folder}/out.bin");
    let copy = ["dd", "if=in.bin", &out, "bs=10", "status=none"];
    place.pioscope(["record", "-o", "run.pio", "--"].into_iter().chain(copy)).succeeds();
    place
}

/// Runs the command with variables set.
fn with(place: &Place, variables: &[(&str, &str)], words: &[&str]) -> Transcript {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    command.args(words).envs(variables.iter().copied());
    place.run(&mut command)
}

#[test]
fn a_quiet_command_says_errors_and_what_is_missing_alone() {
    let place = recorded();
    let copy = ["dd", "if=in.bin", "of=out.bin", "status=none"];
    let quiet = place.pioscope(["--quiet", "record", "-o", "run.pio", "--"].into_iter().chain(copy));
    assert_eq!(quiet.succeeds().err, "");
    let whole = fs::read(place.join("run.pio")).unwrap();
    fs::write(place.join("cut.pio"), &whole[..whole.len() - 20]).unwrap();
    let explained = place.pioscope(["explain", "cut.pio", "-q", "--html", "cut.html"]).succeeds();
    assert!(explained.out.starts_with("Incomplete: "), "{}", explained.out);
    // Others do not say it in their results.
    let compared = place.pioscope(["diff", "run.pio", "cut.pio", "-q"]).succeeds();
    for err in [&explained.err, &compared.err] {
        assert!(err.starts_with("pioscope: cut.pio: incomplete: ") && err.lines().count() == 1, "{err}");
    }
    place.pioscope(["explain", "-q", "missing.pio"]).fails_with("missing.pio");
}

/// A report took the place of the recorded run that it was about.
#[test]
fn no_result_takes_the_place_of_a_trace() {
    let place = recorded();
    let before = fs::read(place.join("run.pio")).unwrap();
    fs::copy(place.join("run.pio"), place.join("copy.pio")).unwrap();
    let refused = |words: &[&str], why: &str| {
        place.pioscope(words).fails_with(why);
        assert!(fs::read(place.join("run.pio")).unwrap() == before, "{words:?}");
    };
    let (is_read, is_trace) =
        ("run.pio: is what is read", "run.pio: is there, and is a trace: expected another name");
    refused(&["explain", "run.pio", "--html", "run.pio"], is_read);
    refused(&["explain", "copy.pio", "--html", "run.pio"], is_trace);
    refused(&["convert", "run.pio", "--to", "chrome", "-o", "run.pio"], is_read);
    refused(&["convert", "copy.pio", "--to", "chrome", "-o", "run.pio"], is_trace);
    refused(&["predict", "copy.pio", "-m", "sp-argonne", "--html", "run.pio"], is_trace);
    refused(&["machines", "show", "sp-argonne", "--picture", "run.pio"], is_trace);
    refused(&["workload", "ior-easy", "-o", "run.pio"], "run.pio: is there, and was recorded");
    let table = "start_s,call,file,offset,size,elapsed_s\n0,write,a,0,100,0.1\n";
    fs::write(place.join("calls.json"), table).unwrap();
    place.pioscope(["convert", "calls.json", "-o", "calls.json"]).fails_with("calls.json: is what is read");
    assert_eq!(fs::read_to_string(place.join("calls.json")).unwrap(), table);
    refused(&["convert", "calls.json", "-o", "run.pio"], "run.pio: is there, and was recorded");
}

#[test]
fn what_cannot_be_read_or_written_is_told_by_its_name() {
    let place = recorded();
    fs::write(place.join("file"), "").unwrap();
    let words = ["predict", "run.pio", "-m", "sp-argonne", "-o", "file"];
    place.pioscope(words).fails_with("file: is no folder");
    // It was called an empty file.
    let program = env!("CARGO_BIN_EXE_pioscope");
    let shell = |line: &str| place.run(Command::new("sh").args(["-c", line, program]));
    shell("cat run.pio | $0 explain /dev/stdin").fails_with("/dev/stdin: is a pipe or device");
    shell("$0 explain run.pio > /dev/full").fails_with("cannot write to standard output: No space left");
}

#[test]
fn a_brief_explanation_has_ten_lines_at_most() {
    let place = recorded();
    let brief = place.pioscope(["explain", "run.pio", "--brief"]).succeeds().out;
    let lines: Vec<&str> = brief.lines().collect();
    assert!(lines.len() <= 10, "{brief}");
    assert!(lines[0].starts_with("Job: dd if=in.bin"), "{brief}");
    assert!(lines[1].starts_with("Time: ") && lines[1].contains("I/O takes "), "{brief}");
    assert!(
        lines[2].starts_with("Bytes: read ") && lines[2].contains("wrote 39.06 KiB in 4,000 calls"),
        "{brief}"
    );
    assert!(lines[3].starts_with("1. ") && lines[4].starts_with("   Change: "), "{brief}");
    let whole = fs::read(place.join("run.pio")).unwrap();
    fs::write(place.join("cut.pio"), &whole[..whole.len() - 20]).unwrap();
    let brief = place.pioscope(["explain", "cut.pio", "--brief"]).succeeds().out;
    assert!(brief.starts_with("Incomplete: ") && brief.lines().count() <= 10, "{brief}");
}

#[test]
fn colours_are_for_terminals_and_whoever_asks() {
    let place = recorded();
    let explain =
        |variables: &[(&str, &str)]| with(&place, variables, &["explain", "run.pio"]).succeeds().out;
    let plain = explain(&[]);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let coloured = explain(&[("CLICOLOR_FORCE", "1")]);
    assert!(coloured.contains("\u{1b}[1m"), "{coloured}");
    assert_eq!(explain(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
    let failed = with(&place, &[("CLICOLOR_FORCE", "1")], &["explain", "missing.pio"]);
    assert!(failed.err.starts_with("\u{1b}[1m\u{1b}[31mpioscope:\u{1b}[0m missing.pio"), "{:?}", failed.err);
}

/// Lines of a table that are too long for a terminal were broken by it, and could not be read.
#[test]
fn tables_are_as_wide_as_the_terminal() {
    let place = recorded();
    let typed = format!("stty cols 80; {} diff run.pio run.pio", env!("CARGO_BIN_EXE_pioscope"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &typed, "/dev/null"]).env("NO_COLOR", "1").current_dir(place.path());
    let Ok(seen) = terminal.output() else {
        eprintln!("skipped: no script (util-linux) here");
        return;
    };
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    let rows: Vec<&str> = seen.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(rows.iter().any(|row| row.starts_with("  …") && row.contains("out.bin")), "{seen}");
    assert!(rows.iter().all(|row| row.trim_end().chars().count() <= 80), "{seen}");
}

#[test]
fn a_trace_that_nobody_named_replaces_nothing() {
    let place = Place::new();
    for (name, other) in [("sh.pio", "sh-2.pio"), ("sh-2.pio", "sh-3.pio")] {
        let said = place.pioscope(["record", "--", "sh", "-c", "cat /etc/passwd > /dev/null"]).succeeds().err;
        assert!(said.starts_with(&format!("pioscope: {name}: ")), "{said}");
        assert!(said.ends_with(" events of 1 process\n"), "{said}");
        assert!(place.join(name).is_file() && !place.join(other).exists());
    }
    place.pioscope(["record", "--", "./no-such-program"]).fails_with("no-such-program: not found");
    let left = fs::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 2, "what was not recorded leaves nothing");
    let said = place.pioscope(["record", "-o", "sh.pio", "--", "sh", "-c", "true"]).succeeds().err;
    assert!(said.ends_with("processes (in place of an earlier file)\n"), "{said}");
    // A recorder for each task: the last one's trace is what is left.
    let both = "'$P' record -o same.pio -- sh -c 'cat /etc/passwd > a; until [ -e same.pio ]; do sleep 0.05; done' & \
                '$P' record -o same.pio -- sh -c 'until [ -e a ]; do sleep 0.05; done; cat /etc/passwd > b'; wait"
        .replace("$P", env!("CARGO_BIN_EXE_pioscope"));
    let said = place.run(Command::new("sh").args(["-c", &both])).succeeds().err;
    assert!(said.contains("same.pio: in place of a file that was written while the job ran"), "{said}");
    assert_eq!(said.matches("while the job ran").count(), 1, "{said}");
}

#[test]
fn what_only_hands_a_script_on_is_told_so() {
    let place = Place::new();
    fs::write(place.join("sbatch"), "#!/bin/sh\ncat $1 > queue\n").unwrap();
    fs::set_permissions(place.join("sbatch"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.join("job.sh"), "#!/bin/sh\n").unwrap();
    let said = place.pioscope(["record", "-o", "s.pio", "--", "./sbatch", "job.sh"]).succeeds().err;
    assert!(said.contains("sbatch only hands a script on"), "{said}");
}

#[test]
fn a_folder_without_spools_is_no_recording() {
    let place = Place::new();
    fs::create_dir(place.join("empty")).unwrap();
    fs::write(place.join("empty/readme"), "hello").unwrap();
    fs::write(place.join("kept.pio"), "kept").unwrap();
    place
        .pioscope(["convert", "empty", "-o", "kept.pio"])
        .fails_with("empty: no spools (expected the folder");
    assert_eq!(fs::read_to_string(place.join("kept.pio")).unwrap(), "kept");
}

#[test]
fn a_trace_is_written_where_a_link_leads() {
    let place = Place::new();
    fs::create_dir(place.join("far")).unwrap();
    std::os::unix::fs::symlink("far/run.pio", place.join("run.pio")).unwrap();
    place.pioscope(["record", "-o", "run.pio", "--", "cat", "/etc/passwd"]).succeeds();
    assert!(place.join("run.pio").is_symlink());
    assert!(place.join("far/run.pio").metadata().unwrap().len() > 0);
}

/// Its own files lie in the folder of the job meanwhile.
/// The kernel maps no code of such a file system: the loader left the recorder out, and nothing was recorded.
#[test]
fn a_trace_may_lie_where_no_program_may() {
    let place = Place::new();
    let steps = "mount -t tmpfs -o noexec disk .; cd \"$PWD\"; \"$0\" record -o run.pio -- cat /etc/passwd >/dev/null; \
        \"$0\" explain --brief run.pio";
    let mut command = Command::new("unshare");
    command.args(["-r", "-m", "sh", "-ec", steps, env!("CARGO_BIN_EXE_pioscope")]);
    let told = place.run(&mut command).succeeds();
    assert!(told.out.contains("Job: cat /etc/passwd") && told.out.contains("on 1 file."), "{}", told.out);
}

#[test]
fn git_does_not_see_that_it_is_recorded() {
    let place = Place::new();
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: no git here");
        return;
    }
    fs::write(place.join("a"), "text").unwrap();
    place.run(Command::new("git").args(["init", "-q", "."])).succeeds();
    place.pioscope(["record", "--", "git", "add", "-A"]).succeeds();
    let added = place.run(Command::new("git").args(["ls-files"])).succeeds().out;
    assert!(added.starts_with("a\n") && !added.contains("spool"), "{added}");
}

#[test]
fn a_job_that_removes_its_recording_is_told_so() {
    let place = Place::new();
    fs::write(place.join("a"), "text").unwrap();
    let said = place.pioscope(["record", "-o", "run.pio", "--", "sh", "-c", "cat a > b; rm -rf .run.pio.*"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("which the job removed (expected -o or --spool in another folder)"),
        "{}",
        said.err
    );
}

/// With the libraries of both, each called the other's functions for the C library's, and the program ended by SIGSEGV.
#[test]
fn a_recorder_within_a_recorded_job_records_its_own_command() {
    let place = Place::new();
    fs::write(place.join("a"), "text").unwrap();
    for line in [
        "'$P' record -o inner.pio -- cp a b; cat a > c",
        "unset LD_PRELOAD; '$P' record -o inner.pio -- cp a b",
    ] {
        let line = line.replace("$P", env!("CARGO_BIN_EXE_pioscope"));
        let said = place.pioscope(["record", "-o", "outer.pio", "--", "sh", "-c", &line]).succeeds().err;
        let inner = said.lines().find(|line| line.starts_with("pioscope: inner.pio: ")).unwrap_or_default();
        assert!(inner.contains(" events of 1 process"), "{said}");
        assert!(
            said.contains("cp was not seen: another recorder, which the job started, records it"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(place.join("b")).unwrap(), "text");
    }
}

#[test]
fn an_interrupt_leaves_no_half_written_file() {
    let place = Place::new();
    // Seconds of work.
    let calls = (0..1_000_000).map(|at| format!("{at},read,/f,{at},1\n"));
    fs::write(place.join("log.csv"), format!("start_s,call,file,offset,size\n{}", calls.collect::<String>()))
        .unwrap();
    let mut writing = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["convert", "log.csv", "-o", "never.pio"])
        .current_dir(place.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let halves = || {
        let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
    };
    while halves() == 0 {
        assert!(writing.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SIGINT does the same, but is ignored where tests run in the background.
    Command::new("kill").args(["-TERM", &writing.id().to_string()]).status().unwrap();
    let ended = writing.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(15));
    assert_eq!(halves(), 0);
}
