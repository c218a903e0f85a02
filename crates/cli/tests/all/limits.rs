//! Limits that the system sets, and signals: they end nothing without a word, and leave nothing behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::fit::TRUTH;
use crate::serve::Servers;
use crate::support::{Place, Transcript};

const SIGTERM: i32 = 15;
const SIGXFSZ: u32 = 25;
const PIOSCOPE: &str = env!("CARGO_BIN_EXE_pioscope");

/// Runs `pioscope` with these words in a shell that has done something first.
fn after(place: &Place, first: &str, words: &[&str]) -> Transcript {
    let line = format!("{first}; exec \"$@\"");
    place.run(Command::new("bash").args(["-c", &line, "bash", PIOSCOPE]).args(words))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// SIGXFSZ once killed the command, with what it was writing left behind and the program's exit code lost.
#[test]
fn a_limit_of_file_sizes_is_told_before_the_job() {
    let place = Place::new();
    let refused =
        after(&place, "ulimit -f 10", &["record", "-o", "t.pio", "--", "sh", "-c", "> ran; exit 9"]);
    refused.fails_with("cannot write the recorder to: File too large");
    assert_eq!((refused.code, names(place.path())), (Some(1), Vec::new()));
}

#[test]
fn a_trace_beyond_the_limit_of_file_sizes_keeps_what_was_recorded() {
    let place = Place::new();
    fs::write(place.join("in"), [7; 1000]).unwrap();
    // The job sets the limit of the command that records it, when that has begun.
    let job = |code: u8| {
        let script = format!("cat in > out && prlimit --pid $PPID --fsize=50 || exit 3; exit {code}");
        place.pioscope(["record", "-o", "t.pio", "--", "sh", "-c", &script])
    };
    let ended = job(0);
    if ended.code == Some(3) {
        eprintln!("skipped: no prlimit here");
        return;
    }
    ended.fails_with("File too large");
    ended.fails_with("; what was recorded is kept in ");
    assert_eq!(ended.code, Some(1));
    let left = names(place.path());
    assert!(matches!(&left[..], [spools, _, _] if spools.ends_with(".spool")), "{left:?}");
    place.pioscope(["convert", &left[0], "-o", "t.pio"]).succeeds();
    // A program that failed has failed, whatever became of its trace.
    let ended = job(9);
    ended.fails_with("; what was recorded is kept in ");
    assert_eq!(ended.code, Some(9));
}

/// Standard error is at the limit, too: that it could not be written to was a panic.
#[test]
fn what_cannot_be_said_is_no_failure() {
    let place = Place::new();
    fs::write(place.join("in"), [7; 1000]).unwrap();
    let script = "cat in > out && prlimit --pid $PPID --fsize=0 || exit 3; exit 9";
    let words = ["record", "-o", "t.pio", "--", "sh", "-c", script];
    let ended = after(&place, "exec 2> said", &words);
    assert!(matches!(ended.code, Some(3 | 9)), "{:?}", ended.code);
}

/// Programs inherit what is ignored.
#[test]
fn programs_find_the_signal_of_the_limit_as_they_would_without_us() {
    let place = Place::new();
    for first in ["true", "trap '' XFSZ"] {
        let of = |words: &[&str]| {
            let line = format!("{first}; exec \"$@\"");
            let mut command = Command::new("bash");
            command.args(["-c", &line, "bash"]).args(words).args(["grep", "SigIgn", "/proc/self/status"]);
            let said = place.run(&mut command).succeeds().out;
            let ignored = u64::from_str_radix(said.trim_start_matches("SigIgn:").trim(), 16).unwrap();
            ignored & 1 << (SIGXFSZ - 1) != 0
        };
        assert_eq!(of(&[PIOSCOPE, "record", "-o", "t.pio", "--"]), of(&["env"]), "{first}");
    }
}

#[test]
fn the_exit_code_is_the_programs_though_nothing_can_be_collected() {
    let place = Place::new();
    fs::write(place.join("in"), [7; 1000]).unwrap();
    // As soon as the job is over, nothing can be opened any more.
    let script = "cat in > out && prlimit --pid $PPID --nofile=3 || exit 3; exit 9";
    let ended = place.pioscope(["record", "-o", "t.pio", "--", "sh", "-c", script]);
    if ended.code == Some(3) {
        eprintln!("skipped: no prlimit here");
        return;
    }
    ended.fails_with("; what was recorded is kept in ");
    assert_eq!(ended.code, Some(9));
}

#[test]
fn a_working_folder_that_is_gone_is_no_obstacle_to_absolute_paths() {
    let place = Place::new();
    let trace = place.join("t.pio").display().to_string();
    let words = ["record", "-o", &trace, "--not-path", "/tmp/x", "--", "/bin/sh", "-c", "exit 9"];
    let ended = after(&place, "mkdir gone; cd gone; rmdir ../gone", &words);
    assert_eq!(ended.code, Some(9), "{}", ended.err);
    assert!(place.join("t.pio").is_file());
}

/// It once left up to 177 MB. SIGINT does the same, but is ignored where tests run in the background.
#[test]
fn an_interrupted_calibration_leaves_nothing() {
    let place = Place::with_own_cache();
    let folder = place.join("measured");
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new(PIOSCOPE);
    command.args(["machines", "calibrate", "-o", "here.toml", "--folder", "measured"]);
    // No MPI, whose jobs take longer.
    command.current_dir(place.path()).env("PATH", place.path()).env("XDG_CACHE_HOME", place.cache());
    end_when(&mut command, || names(&folder).iter().any(|scratch| !names(&folder.join(scratch)).is_empty()));
    assert_eq!((names(&folder), names(place.path())), (vec![], vec!["measured".to_owned()]));
}

/// Its files on the servers once stayed: they are no files of this machine.
#[test]
fn an_interrupted_calibration_leaves_nothing_on_servers() {
    let place = Place::with_own_cache();
    fs::write(place.join("known.toml"), TRUTH).unwrap();
    let _servers = Servers::start(&place.join("store"), &["--servers", "2"]);
    let files = || place.pioscope(["store", "--store", "store/store.toml", "ls"]).succeeds().out;
    // The first file, and those of many clients at once.
    for name in ["", "-1"] {
        let mut command = Command::new(PIOSCOPE);
        command.args(["machines", "calibrate", "--store", "store/store.toml", "--like", "known.toml"]);
        command.args(["-o", "servers.toml"]);
        command.current_dir(place.path()).env("PATH", place.path()).env("XDG_CACHE_HOME", place.cache());
        let is_there = |line: &str| {
            line.contains(".pioscope-calibrate-")
                && (name.is_empty() || line.split_whitespace().any(|word| word.ends_with(name)))
        };
        end_when(&mut command, || files().lines().any(is_there));
        assert_eq!(files(), "", "{name}");
        assert!(!place.join("servers.toml").exists());
    }
}

/// Starts a calibration, and ends it by SIGTERM as soon as something is so.
fn end_when(command: &mut Command, is_so: impl Fn() -> bool) {
    let mut calibration = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "nothing is measured");
        thread::sleep(Duration::from_millis(10));
    }
    let kill = format!("kill -{SIGTERM} {}", calibration.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(calibration.wait().unwrap().signal(), Some(SIGTERM));
}
