//! Comparisons that scripts rely on: `diff --fail-if`, and `compare` with a kept baseline.

use std::fs;
use std::process::Command;

use crate::support::{Place, Transcript};

/// A place with the traces of two copies, of which the second has a tenth of the calls.
fn recorded() -> Place {
    let place = Place::new();
    fs::write(place.join("in.bin"), vec![7; 40_000]).unwrap();
    for (name, bytes) in [("small.pio", "bs=100"), ("large.pio", "bs=1000")] {
        let copy = ["dd", "if=in.bin", "of=out.bin", bytes, "status=none"];
        place.pioscope(["record", "-o", name, "--"].into_iter().chain(copy)).succeeds();
    }
    place
}

#[test]
fn diff_fails_if_a_condition_holds() {
    let place = recorded();
    let diff = |conditions: &[&str], [before, after]: [&str; 2]| {
        let conditions = conditions.iter().flat_map(|condition| ["--fail-if", condition]);
        place.pioscope(["diff", before, after].into_iter().chain(conditions))
    };
    let grows = ["large.pio", "small.pio"];
    let failed = diff(&["write.calls > 110 %", "bytes > 100 %"], grows);
    assert_eq!(failed.code, Some(3), "{}", failed.err);
    assert_eq!(failed.err, "pioscope: write.calls > 110 %: 1000 % (400 calls, was 40 calls)\n");
    assert!(failed.out.contains("Operations, by the change of their time"), "{}", failed.out);
    let shrinks = ["small.pio", "large.pio"];
    assert_eq!(diff(&["write.calls > 110 %", "bytes > 100 %"], shrinks).succeeds().err, "");
    assert_eq!(diff(&["write.bytes >= 40000", "read.calls < 3"], shrinks).code, Some(3));
    let wrong = diff(&["speed > 3"], grows);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("unknown metric 'speed'"), "{}", wrong.err);
    assert_eq!(place.pioscope(["diff", "small.pio", "missing.pio", "--fail-if", "calls > 1"]).code, Some(1));
}

/// Calls and bytes are the same in every run, so that this does not depend on how busy the machine is.
#[test]
fn compare_tells_more_calls_from_the_same() {
    let place = recorded();
    let compare = |options: &[&str], piece: &str| -> Transcript {
        let command = ["--", "dd", "if=in.bin", "of=out.bin", piece, "status=none"];
        place.pioscope([&["compare", "-n", "5", "--baseline", "io.json"], options, &command].concat())
    };
    compare(&[], "bs=1000")
        .fails_with("io.json: no baseline (expected one that `pioscope compare --save` wrote)");
    let saved = compare(&["--save"], "bs=1000").succeeds();
    assert_eq!(saved.err, "pioscope: io.json: 5 runs\n");
    let calls = ["--fail-if", "calls > 105 %", "--fail-if", "write_bytes > 1 MiB"];
    let same = compare(&calls, "bs=1000").succeeds();
    assert!(same.out.starts_with("5 runs beside 5 of the baseline\n"), "{}", same.out);
    let more = compare(&calls, "bs=500");
    assert_eq!(more.code, Some(3), "{}", more.err);
    assert!(more.err.ends_with("pioscope: calls > 105 % holds\n"), "{}", more.err);
    assert!(more.err.contains("the baseline is of another command: dd if=in.bin"), "{}", more.err);
    let row = more.out.lines().find(|line| line.contains("calls > 105 %")).unwrap();
    assert!(row.contains("0.0040") && row.ends_with("yes"), "one of 252 ways: {row}");
    let absolute = compare(&["--fail-if", "write.bytes >= 40000"], "bs=1000");
    assert_eq!(absolute.code, Some(3), "{}", absolute.err);
    // Conditions on values need no baseline; others do.
    let alone = |condition: &str| {
        let command = ["--", "dd", "if=in.bin", "of=out.bin", "bs=1000", "status=none"];
        place.pioscope([&["compare", "-n", "5", "--fail-if", condition][..], &command].concat())
    };
    let held = alone("write.bytes >= 40000");
    assert_eq!(held.code, Some(3), "{}", held.err);
    assert!(
        held.out.starts_with("5 runs\n") && held.err.ends_with("write.bytes >= 40000 holds\n"),
        "{}",
        held.err
    );
    assert!(alone("write.bytes > 40000").succeeds().out.contains("39.06 KiB  no"));
    alone("io_time > 110 %")
        .fails_with("'io_time > 110 %' is relative to a baseline (expected --baseline FILE");
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "no traces are left: {left:?}");
}

#[test]
fn baselines_that_are_none() {
    let place = Place::new();
    let compare = |options: &[&str], command: &[&str]| {
        let words = ["compare", "-n", "5", "--baseline", "io.json"];
        place.pioscope([&words[..], options, &["--"], command].concat())
    };
    compare(&["--save"], &["false"]).fails_with("the command failed (exit status: 1): nothing was compared");
    assert!(!place.join("io.json").exists());
    for (text, says) in [
        ("{", "io.json: not a baseline"),
        (
            r#"{"schema": "pioscope.baseline/2"}"#,
            "io.json: schema pioscope.baseline/2 (expected pioscope.baseline/1)",
        ),
        (r#"{"schema": "pioscope.baseline/1"}"#, "io.json: not a whole baseline"),
        (
            r#"{"schema": "pioscope.baseline/1", "command": "true", "host": "here", "runs": []}"#,
            "io.json: it holds 0 runs (expected 5 or more)",
        ),
    ] {
        fs::write(place.join("io.json"), text).unwrap();
        compare(&[], &["true"]).fails_with(says);
    }
    let few = place.pioscope(["compare", "-n", "4", "--baseline", "io.json", "--", "true"]);
    assert_eq!(few.code, Some(2), "{}", few.err);
    let without = place.pioscope(["compare", "-n", "5", "--fail-if", "calls > 3 %", "--", "true"]);
    without.fails_with("'calls > 3 %' is relative to a baseline (expected --baseline FILE");
    assert_eq!(without.code, Some(2));
}

/// What a program did until it was told to end is no run of it, though it ends well: it was counted, and kept.
#[test]
fn an_interrupted_run_is_not_kept() {
    let place = Place::new();
    let script = "trap 'exit 0' TERM; echo data > out.bin; kill -TERM $PPID; while :; do sleep 0.1; done";
    let words = ["compare", "-n", "5", "--baseline", "io.json", "--save", "--", "sh", "-c", script];
    let done = place.pioscope(words);
    done.fails_with("interrupted: nothing was compared, and nothing kept");
    assert!(!place.join("io.json").exists());
}

/// Traces of the runs were to be beside the baseline, wherever that was.
#[test]
fn a_baseline_may_be_where_nobody_can_write() {
    let place = Place::new();
    let words = ["compare", "-n", "5", "--baseline", "io.json"];
    let program = "dd if=/dev/zero of=out.bin bs=100 count=9 status=none";
    let command: Vec<&str> = program.split(' ').collect();
    place.pioscope([&words[..], &["--save", "--"], &command].concat()).succeeds();
    // In /proc, not even root makes folders.
    let compare =
        r#"cat io.json | "$0" compare -n 5 --baseline /proc/self/fd/0 --fail-if 'calls > 105 %' --"#;
    let mut piped = Command::new("sh");
    piped.args(["-c", &format!("{compare} {program}"), env!("CARGO_BIN_EXE_pioscope")]);
    let compared = place.run(&mut piped).succeeds();
    assert!(compared.out.starts_with("5 runs beside 5 of the baseline\n"), "{}", compared.out);
}
