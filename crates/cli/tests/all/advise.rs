//! Advice, by prediction and by trying, and what applies it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pio_mpi::{Commands, Family, any_ranks};

use crate::gain::slow_messages;
use crate::here::calibrated;
use crate::jobs::WRITER;
use crate::servers::Servers;
use crate::support::{Place, mpiexec};

/// An MPI with ROMIO, which exchanges data: a loss on a machine with slow messages, so that there is something to try.
fn mpich() -> Option<Commands> {
    let found = [Commands::first(), Commands::with_suffix(".mpich")].into_iter().flatten();
    let found = found.into_iter().find(|mpi| mpi.family() == Family::Mpich);
    if found.is_none() {
        eprintln!("skipped: no MPICH on the PATH (mpicc or mpicc.mpich)");
    }
    found
}

/// Generates a small collective program as `run.pio`.
fn generate(place: &Place) {
    let mut words = vec!["workload", "collapse", "-o", "run.pio"];
    for parameter in ["ranks=4", "x=32", "y=32", "z=32", "iterations=5"] {
        words.extend(["--param", parameter]);
    }
    place.pioscope(words).succeeds();
}

/// The line of a table that begins with this, in words.
fn row<'t>(out: &'t str, name: &str) -> Vec<&'t str> {
    let found = out.lines().find(|line| line.trim_start().starts_with(name));
    found.unwrap_or_else(|| panic!("no '{name}': {out}")).split_whitespace().collect()
}

#[test]
fn the_best_prediction_is_kept_and_can_be_predicted_again() {
    let place = Place::new();
    generate(&place);
    // ROMIO exchanges data, which is a loss there.
    fs::write(place.join("slow.toml"), slow_messages()).unwrap();
    let done = place.pioscope(["advise", "run.pio", "--no-run", "-m", "slow.toml"]).succeeds();
    for strategy in ["independent", "sieving", "list", "two-phase", "view-based", "as it is (romio)"] {
        row(&done.out, strategy);
    }
    assert!(!done.out.contains("ecio"), "{}", done.out);
    // The table is in order, and its first row is what is kept.
    let first = done.out.lines().nth(3).unwrap();
    let tried = done.out.lines().find_map(|line| line.strip_prefix("Try ")).expect(&done.out);
    let (tried, _) = tried.split_once(": predicted to save ").expect(tried);
    assert!(first.trim_start().starts_with(tried), "{}", done.out);
    let kept = fs::read_to_string(place.join("advice.toml")).unwrap();
    let (strategy, hints) = tried.split_once(", ").unwrap_or((tried, ""));
    assert!(kept.contains(&format!("\nstrategy = \"{strategy}\"\n")), "{kept}");
    for pair in hints.split(", ").filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap();
        let written = [format!("{key} = {value}"), format!("{key} = \"{value}\"")];
        assert!(written.iter().any(|line| kept.contains(line)), "{kept}");
    }
    assert!(done.out.contains("pioscope apply --advice advice.toml -- COMMAND\n"), "{}", done.out);
    assert!(kept.contains("# Predicted on slow-messages: "), "{kept}");
    // What the command that predicts one setting says of it is what the search found.
    let hints = hints.replace(", ", ",");
    let words = ["predict", "run.pio", "-m", "slow.toml", "-s", strategy, "--hints", &hints];
    let predicted = place.pioscope(words).succeeds().out;
    let time = &row(first, tried)[tried.split(' ').count()..][..2].join(" ");
    assert!(predicted.contains(time), "{time}: {predicted}");
    // Advice takes the place of advice; where nothing is saved, there is none.
    place.pioscope(["advise", "run.pio", "--no-run", "-m", "slow.toml"]).succeeds();
    place.pioscope(["workload", "hacc-io", "-o", "one.pio", "--param", "ranks=1"]).succeeds();
    let words = ["advise", "one.pio", "--no-run", "-m", "sp-argonne", "--keep", "none.toml"];
    let done = place.pioscope(words).succeeds();
    assert!(done.out.contains("Leave the program as it is"), "{}", done.out);
    assert!(!place.join("none.toml").exists());
}

#[test]
fn without_a_machine_the_place_of_the_files_is_meant() {
    let place = Place::with_own_cache();
    generate(&place);
    let advice = "here: this place is not calibrated: run `pioscope machines calibrate --folder ";
    place.pioscope(["advise", "run.pio", "--no-run"]).fails_with(advice);
    place.pioscope(["advise", "--in-place", "--", "touch", "made"]).fails_with(advice);
    assert!(!place.join("made").exists());
    calibrated(&place);
    let done = place.pioscope(["advise", "run.pio", "--no-run"]).succeeds();
    assert!(done.out.contains("I/O time, mean of the processes, predicted on here\n"), "{}", done.out);
}

#[test]
fn ecio_is_advised_where_servers_take_views() {
    let place = Place::new();
    generate(&place);
    let known = place.pioscope(["machines", "show", "sp-argonne"]).succeeds().out;
    let servers = known.replacen("[storage]\n", "[storage]\ntakes-views = true\n", 1);
    assert_ne!(known, servers);
    fs::write(place.join("servers.toml"), servers).unwrap();
    let words = ["advise", "run.pio", "--no-run", "-m", "servers.toml", "--keep", "mine.toml"];
    let done = place.pioscope(words).succeeds();
    row(&done.out, "ecio");
    assert!(done.out.contains("apply it with --store"), "{}", done.out);
    assert!(place.join("mine.toml").exists() && !place.join("advice.toml").exists());
}

#[test]
fn what_cannot_be_advised_says_why() {
    let place = Place::new();
    generate(&place);
    let advise = |words: &[&str]| place.pioscope([&["advise", "-m", "sp-argonne"], words].concat());
    // Nothing is changed that may not be.
    let done = advise(&["--", "touch", "made"]);
    assert!(done.code == Some(1) && done.err.contains("no process opened a file by MPI-IO"), "{}", done.err);
    assert!(!place.join("made").exists());
    let refused = advise(&["run.pio"]);
    assert!(refused.code == Some(2) && refused.err.contains("--no-run"), "{}", refused.err);
    assert_eq!(advise(&["run.pio", "--no-run", "--", "true"]).code, Some(2));
    assert_eq!(advise(&["--in-place", "--budget", "10", "--", "true"]).code, Some(2));
    let for_ever = advise(&["--in-place", "--budget", "18446744073709551615s", "--", "true"]);
    for_ever.fails_with("--budget: this clock does not go so far");
    assert_eq!(advise(&["--in-place", "--runs", "0", "--", "true"]).code, Some(2));
    // A machine without servers says nothing about files on servers.
    fs::write(place.join("store.toml"), "").unwrap();
    advise(&["run.pio", "--no-run", "--store", "store.toml"])
        .fails_with("store.toml: the machine sp-argonne does not");
    assert_eq!(advise(&["--in-place", "--output", "there", "--", "true"]).code, Some(2));
    // A file that is no advice is not replaced.
    fs::write(place.join("advice.toml"), "precious = 1\n").unwrap();
    advise(&["run.pio", "--no-run"]).fails_with("advice.toml: is there and was not written by");
    assert_eq!(fs::read_to_string(place.join("advice.toml")).unwrap(), "precious = 1\n");
    // Programs without MPI-IO, and those that fail.
    fs::write(place.join("posix.csv"), "start_s,elapsed_s,call,file,size\n0,0.1,write,/d/a,4\n").unwrap();
    advise(&["posix.csv", "--no-run", "--keep", "a"]).fails_with("no process opened a file by MPI-IO");
    let failed = advise(&["--in-place", "--keep", "a", "--", "false"]);
    assert!(failed.code == Some(1) && failed.err.contains("failed: exit status: 1; nothing was tried"));
    assert!(!place.join("a").exists());
}

#[test]
fn advice_that_cannot_be_applied() {
    let place = Place::new();
    let apply = |text: &str, more: &[&str]| {
        fs::write(place.join("advice"), text).unwrap();
        place.pioscope([&["apply", "--advice", "advice"], more, &["--", "true"]].concat())
    };
    apply("strategy = \"three-phase\"", &[]).fails_with("advice: strategy: unknown strategy 'three-phase'");
    apply("strategy = \"list\"\nhint = 3", &[]).fails_with("advice: line 2: unknown field `hint`");
    apply("strategy = \"list\"\n[hints]\ncb_node = 3", &[]).fails_with("advice: unknown hint 'cb_node'");
    for more in [["--strategy", "list"], ["--hints", "cb_nodes=2"], ["--hints-file", "advice"]] {
        let clash = apply("strategy = \"list\"", &more);
        assert_eq!(clash.code, Some(2));
        assert!(clash.err.contains("cannot be used with"), "{}", clash.err);
    }
    assert_eq!(place.pioscope(["apply", "--", "true"]).code, Some(2));
    place.pioscope(["apply", "--advice", "none", "--", "true"]).fails_with("none: cannot read");
}

#[test]
fn settings_are_tried_and_the_best_is_kept() {
    let Some(mpi) = mpich() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    let job = [&mpiexec(&mpi, 2)[..], &["./writer", "data", "20"].map(str::to_owned)].concat();
    let with = |words: &[&str]| {
        place.pioscope(words.iter().map(|word| (*word).to_owned()).chain(job.iter().cloned()))
    };
    let mpicc = mpi.mpicc.display().to_string();
    fs::write(place.join("slow.toml"), slow_messages()).unwrap();
    // What is there is as it was, though each run writes it.
    fs::write(place.join("data"), "precious").unwrap();
    fs::write(place.join("slow.runs.jsonl"), PAIR).unwrap();
    let words = ["advise", "-m", "slow.toml", "--mpicc", &mpicc, "--runs", "2", "--budget", "40s", "--"];
    let done = with(&words).succeeds();
    assert_eq!(fs::read_to_string(place.join("data")).unwrap(), "precious");
    // What was measured is kept for later predictions, which the earlier pairs corrected.
    let said = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("80 % interval") && said.contains("by earlier runs on the machine ("),
        "{}",
        done.out
    );
    let pairs = fs::read_to_string(place.join("slow.runs.jsonl")).unwrap();
    assert!(pairs.lines().count() > 2 && pairs.contains("./writer data 20"), "{pairs}");
    let base = row(&done.out, "as it is (");
    assert_ne!(base[base.len() - 3], "–", "{}", done.out);
    // It says what it ran: first as it is, twice, as the file had to be copied within the first run; then at least the
    // setting that is predicted best.
    let typed: Vec<&str> = done.out.lines().filter(|line| line.starts_with("  pioscope ")).collect();
    assert!(typed[0].starts_with("  pioscope record -o run.pio "), "{}", done.out);
    assert!(typed[1].starts_with("  pioscope record -o run.pio "), "{}", done.out);
    assert!(typed[2].starts_with("  pioscope apply --strategy "), "{}", done.out);
    assert!(typed.iter().all(|line| line.ends_with("./writer data 20")), "{}", done.out);
    // What is kept has been measured to save something; what does not is not kept.
    match done.out.lines().find_map(|line| line.strip_prefix("Keep ")) {
        Some(kept) => {
            let (kept, saved) = kept.split_once(": measured to save ").unwrap();
            assert!(!saved.starts_with('-') && row(&done.out, kept).len() > 4, "{}", done.out);
            let text = fs::read_to_string(place.join("advice.toml")).unwrap();
            assert!(text.contains("# Measured on this machine: "), "{text}");
            with(&["apply", "--advice", "advice.toml", "--mpicc", &mpicc, "--"]).succeeds();
            assert_eq!(fs::metadata(place.join("data")).unwrap().len(), 20 * 2048);
        }
        None => {
            assert!(done.out.contains("Leave the program as it is"), "{}", done.out);
            assert!(!place.join("advice.toml").exists());
        }
    }
    let left = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with('.')), "a folder is left");
}

#[test]
fn files_on_servers_stay_as_they_are() {
    let Some(mpi) = mpich() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    // Predicted to be faster than any real run, so that there is something to try.
    let machine = include_str!("../../../../machines/dragonfly-2048.toml");
    let machine = machine.replacen("kind = \"striped\"", "kind = \"striped\"\ntakes-views = true", 1);
    fs::write(place.join("fast.toml"), machine).unwrap();
    fs::write(place.join("precious"), "precious").unwrap();
    let _servers = Servers::start(&place.join("store"), &["--servers", "2", "--strip", "1 KiB"]);
    let store = |words: &[&str]| {
        place.pioscope([&["store", "--store", "store/store.toml"], words].concat()).succeeds().out
    };
    store(&["cp", "precious", "pioscope:data"]);
    store(&["cp", "precious", "pioscope:other"]);
    let mpicc = mpi.mpicc.display().to_string();
    let words =
        ["advise", "-m", "fast.toml", "--store", "store/store.toml", "--mpicc", &mpicc, "--runs", "1", "--"];
    let job = [&mpiexec(&mpi, 2)[..], &["./writer", "data", "20"].map(str::to_owned)].concat();
    let done = place.pioscope(words.iter().map(|word| (*word).to_owned()).chain(job)).succeeds();
    let typed = done.out.lines().filter(|line| line.starts_with("  pioscope apply --strategy "));
    assert_eq!(typed.filter(|line| line.contains(" --store ")).count(), 1, "{}", done.out);
    assert!(!done.err.contains("failed") && !done.err.contains("not applied"), "{}", done.err);
    assert_eq!(store(&["ls"]), "data\nother\n");
    store(&["cp", "pioscope:data", "read back"]);
    assert_eq!(fs::read_to_string(place.join("read back")).unwrap(), "precious");
}

/// A run that was compared with a prediction.
const PAIR: &str = concat!(
    r#"{"predicted_s":1.0,"measured_s":1.1,"strategy":"list","ranks":2,"crowded":false,"program":"other","started_ns":1}"#,
    "\n"
);

#[test]
fn what_cannot_be_redirected_is_refused() {
    // At a place for temporary files, programs may write.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let build = Place::new();
    let source = "#include <stdio.h>\nint main(int n, char **words) { FILE *file = fopen(words[1], \"w\"); \
                  if (!file) { perror(words[1]); return 9; } fputs(\"x\", file); return fclose(file); }";
    fs::write(build.join("probe.c"), "int main(void) { return 0; }").unwrap();
    let is_static =
        Command::new("cc").args(["-static", "-o", "probe", "probe.c"]).current_dir(build.path()).status();
    if !is_static.is_ok_and(|status| status.success()) || place.path().starts_with("/tmp") {
        eprintln!(
            "skipped: programs cannot be linked statically, or the build is at a place for temporary files"
        );
        return;
    }
    let advise = |program: &Path, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        command
            .args(["advise", "-m", "sp-argonne"])
            .args(words)
            .args(["--", "sh", "-c"])
            .arg(format!("{} data", program.display()));
        let done = command.current_dir(place.path()).env("XDG_CACHE_HOME", build.cache()).output().unwrap();
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let data = place.path().join("data");
    fs::write(&data, "precious").unwrap();
    let (fixed, usual) =
        (build.compile("cc", "fixed", source, &["-static"]), build.compile("cc", "usual", source, &[]));
    let said = advise(&usual, &[]);
    assert!(said.contains("no process opened a file by MPI-IO"), "{said}");
    // The kernel refuses what the library cannot redirect, if it can.
    let said = advise(&fixed, &[]);
    if said.contains("cannot keep") {
        eprintln!("skipped: this kernel has no Landlock");
        return;
    }
    assert!(said.contains("failed: exit status: 9") && said.contains("--in-place"), "{said}");
    assert_eq!(fs::read_to_string(&data).unwrap(), "precious");
    let said = advise(&fixed, &["--in-place"]);
    assert!(!said.contains("failed"), "{said}");
    assert_eq!(fs::read_to_string(&data).unwrap(), "x");
}

/// The recorder within took the library that redirects for a part of the one around it, and left it out.
#[test]
fn a_recorder_within_a_trial_changes_no_file_either() {
    // Where the kernel lets programs write.
    let place = Place::new();
    fs::write(place.join("data"), "precious").unwrap();
    for script in ["echo x > data", "unset LD_PRELOAD; cp new data"] {
        fs::write(place.join("new"), "other").unwrap();
        let pioscope = env!("CARGO_BIN_EXE_pioscope");
        let line = format!("'{pioscope}' record -o inner.pio -- sh -c '{script}'; wc -c data inner.pio >&2");
        let said = place.pioscope(["advise", "-m", "sp-argonne", "--", "sh", "-c", &line]).err;
        assert!(said.contains("no process opened a file by MPI-IO"), "{said}");
        assert!(said.contains("pioscope: inner.pio: ") && !said.contains("8 data"), "{script}: {said}");
        assert_eq!(fs::read_to_string(place.join("data")).unwrap(), "precious", "{script}");
        assert!(!place.join("inner.pio").exists());
    }
}

/// Advice for a script that goes before a program which writes, in the folder itself, on a machine where settings are tried.
fn advise_in_place(place: &Place, mpi: &Commands, script: &str) -> Command {
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    fs::write(place.join("slow.toml"), slow_messages()).unwrap();
    let script = format!("{script}; exec {} ./writer data 20 < /dev/null", mpiexec(mpi, 2).join(" "));
    let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    command.args(["advise", "-m", "slow.toml", "--in-place", "--runs", "2", "--mpicc"]).arg(&mpi.mpicc);
    command.args(["--", "sh", "-c", &script]).current_dir(place.path()).envs(any_ranks());
    command.env("XDG_CACHE_HOME", place.cache()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The first run read it all, and the others did something else.
#[test]
fn each_run_reads_the_same_standard_input() {
    let Some(mpi) = mpich() else { return };
    let place = Place::new();
    let seen = || {
        let text = fs::read_to_string(place.join("seen")).unwrap();
        fs::remove_file(place.join("seen")).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    fs::write(place.join("input"), "skipped\nfirst\nsecond\n").unwrap();
    let mut input = File::open(place.join("input")).unwrap();
    std::io::Read::read_exact(&mut input, &mut [0; 8]).unwrap();
    let done = advise_in_place(&place, &mpi, "paste -s >> seen").stdin(input).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let runs = seen();
    assert!(runs.len() > 1 && runs.iter().all(|line| line == "first\tsecond"), "{runs:?}");
    // More than a pipe holds.
    let bytes = vec![b'x'; 300_000];
    let mut job = advise_in_place(&place, &mpi, "wc -c >> seen").stdin(Stdio::piped()).spawn().unwrap();
    job.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(job.wait_with_output().unwrap().status.success());
    let runs = seen();
    assert!(runs.len() > 1 && runs.iter().all(|line| line == "300000"), "{runs:?}");
    // One that does not end holds nobody up.
    let mut job =
        advise_in_place(&place, &mpi, "read line; echo $line >> seen").stdin(Stdio::piped()).spawn().unwrap();
    let mut input = job.stdin.take().unwrap();
    input.write_all(b"first\nsecond\n").unwrap();
    assert!(job.wait_with_output().unwrap().status.success());
    drop(input);
    let runs = seen();
    assert!(runs.len() > 1 && runs.iter().all(|line| line == "first"), "{runs:?}");
}

#[test]
fn settings_that_all_failed_are_named() {
    let Some(mpi) = mpich() else { return };
    let place = Place::new();
    let fails_again = "if [ -e first ]; then exit 7; fi; touch first";
    let done = advise_in_place(&place, &mpi, fails_again).output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    let expected = "Leave the program as it is: every setting that was tried failed: ";
    assert!(out.contains(expected) && out.contains(" (exit status: 7)"), "{out}");
    assert!(!place.join("advice.toml").exists());
}

#[test]
fn an_interrupt_ends_it_all() {
    let Some(mpi) = mpich() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    fs::write(place.join("slow.toml"), slow_messages()).unwrap();
    let once = mpiexec(&mpi, 2).join(" ");
    // The first run writes; the second waits.
    let script = format!(
        "if [ -e first ]; then touch second; exec sleep 60; fi; touch first; {once} ./writer data 20"
    );
    let mut job = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["advise", "-m", "slow.toml", "--in-place", "--mpicc"])
        .arg(&mpi.mpicc)
        .args(["--", "sh", "-c", &script])
        .current_dir(place.path())
        .envs(any_ranks())
        .env("XDG_CACHE_HOME", place.cache())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !place.join("second").exists() && job.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(20));
    }
    // SIGINT does the same, but is ignored where tests run in the background.
    let sent = Command::new("kill").args(["-TERM", &job.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let done = job.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{err}");
    assert!(err.contains("pioscope: interrupted: nothing was kept"), "{err}");
    assert!(place.join("second").exists() && !place.join("advice.toml").exists(), "{err}");
}
