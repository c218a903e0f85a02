//! Wrong input: one clear line, an exit code that is not 0, nothing lost.

use std::fs;
use std::process::Command;

use crate::support::{Place, mpi};

#[test]
fn programs_that_cannot_be_recorded() {
    let place = Place::new();
    place
        .pioscope(["record", "-o", "run.pio", "--", "no-such-program"])
        .fails_with("no-such-program: not found");
    fs::write(place.join("plain.txt"), "text").unwrap();
    place
        .pioscope(["record", "-o", "run.pio", "--", "./plain.txt"])
        .fails_with("./plain.txt: not executable");
    let source = "int main(void) { return 0; }";
    place.compile("cc", "fixed", source, &["-static"]);
    place.pioscope(["record", "-o", "run.pio", "--", "./fixed"]).fails_with("./fixed: statically linked");
    assert!(!place.join("run.pio").exists());
}

#[test]
fn places_that_cannot_be_written() {
    let place = Place::new();
    place
        .pioscope(["record", "-o", "nowhere/run.pio", "--", "true"])
        .fails_with("nowhere/run.pio: cannot write");
    record_copy(&place);
    place
        .pioscope(["explain", "run.pio", "--html", "nowhere/report.html"])
        .fails_with("nowhere/report.html: cannot create");
    place.pioscope(["explain", "run.pio", "--html", "/dev/full"]).fails_with("/dev/full: cannot write");
    place
        .pioscope(["convert", "run.pio", "-o", "/dev/full", "--to", "chrome"])
        .fails_with("No space left on device");
    place
        .pioscope(["convert", "run.pio", "-o", "run.xyz"])
        .fails_with("run.xyz: unknown format (expected .parquet, .json or .iolog");
}

#[test]
fn traces_that_are_none() {
    let place = Place::new();
    place.pioscope(["explain", "missing.pio"]).fails_with("missing.pio");
    fs::write(place.join("foreign.pio"), "this is no trace at all").unwrap();
    place.pioscope(["explain", "foreign.pio"]).fails_with("foreign.pio: not a Pioscope trace (expected");
    fs::write(place.join("empty.pio"), "").unwrap();
    place.pioscope(["explain", "empty.pio"]).fails_with("empty.pio");
    place.pioscope(["explain", "."]).fails_with(".: a folder with no log of Recorder (expected");
}

/// What is wrong with a log comes out when it is read.
#[test]
fn a_log_that_cannot_be_read_leaves_the_output_as_it_was() {
    let place = Place::new();
    let mut log = b"3.41\0\0\0\0".to_vec();
    log.extend(6_567_223u64.to_le_bytes());
    fs::write(place.join("cut.darshan"), log).unwrap();
    fs::write(place.join("run.pio"), "of an earlier run").unwrap();
    place.pioscope(["convert", "cut.darshan", "-o", "run.pio"]).fails_with("cut.darshan");
    assert_eq!(fs::read_to_string(place.join("run.pio")).unwrap(), "of an earlier run");
    place.pioscope(["convert", "cut.darshan", "-o", "other.pio"]).fails_with("cut.darshan");
    let left = fs::read_dir(place.join(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, ["cut.darshan", "run.pio"]);
}

#[test]
fn a_truncated_trace_gives_what_is_whole() {
    let place = Place::new();
    record_copy(&place);
    let whole = fs::read(place.join("run.pio")).unwrap();
    fs::write(place.join("cut.pio"), &whole[..whole.len() - 20]).unwrap();
    let explained = place.pioscope(["explain", "cut.pio"]).succeeds();
    assert!(explained.err.contains("cut.pio"), "{}", explained.err);
    assert!(explained.out.contains("out.bin"), "the events before the cut are there: {}", explained.out);
}

#[test]
fn machines_and_strategies_that_do_not_exist() {
    let place = Place::new();
    record_copy(&place);
    place.pioscope(["predict", "run.pio", "-m", "cray-2"]).fails_with("cray-2");
    let description = place.pioscope(["machines", "show", "sp-argonne"]).succeeds().out;
    let line = description.lines().count() + 1;
    fs::write(place.join("mine.toml"), format!("{}\ncolour = \"red\"\n", description.trim_end())).unwrap();
    let wrong = place.pioscope(["predict", "run.pio", "-m", "mine.toml"]);
    wrong.fails_with("colour");
    wrong.fails_with(&format!("mine.toml:{line}"));
    let wrong = place.pioscope(["predict", "run.pio", "-m", "sp-argonne", "-s", "three-phase"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains(
            "unknown strategy 'three-phase' (expected one of independent, sieving, list, two-phase, "
        ),
        "{}",
        wrong.err
    );
}

#[test]
fn hints_that_cannot_be_honoured() {
    let place = Place::new();
    let with = |hints| place.pioscope(["apply", "-s", "two-phase", "--hints", hints, "--", "true"]);
    with("cb_nodes=0").fails_with("hint cb_nodes: '0' is not a number from 1");
    with("cb_node=1").fails_with("unknown hint 'cb_node'");
    fs::write(place.join("hints"), "cb_nodes 4").unwrap();
    let from_file = place.pioscope(["apply", "-s", "two-phase", "--hints-file", "hints", "--", "true"]);
    from_file.fails_with("hints: hint 'cb_nodes': expected key=value");
}

#[test]
fn programs_that_are_not_mpi() {
    if mpi().is_none() {
        return;
    }
    let place = Place::new();
    let done = place.pioscope(["apply", "-s", "two-phase", "--", "true"]).succeeds();
    assert!(done.err.contains("nothing was applied"), "{}", done.err);
    assert!(fs::read_dir(place.path()).unwrap().next().is_none(), "something was left behind");
}

#[test]
fn help_has_examples() {
    let place = Place::new();
    for verb in ["record", "explain", "predict", "apply", "reproduce", "convert", "machines"] {
        let help = place.pioscope([verb, "--help"]).succeeds();
        assert!(help.out.contains(&format!("  pioscope {verb} ")), "{verb}: {}", help.out);
    }
}

/// Records a copy of a file as `run.pio`.
fn record_copy(place: &Place) {
    fs::write(place.join("in.bin"), vec![7; 1 << 20]).unwrap();
    let exists = place.run(Command::new("dd").args(["if=in.bin", "of=plain.bin", "bs=64k"]));
    exists.succeeds();
    place.pioscope(["record", "-o", "run.pio", "--", "dd", "if=in.bin", "of=out.bin", "bs=64k"]).succeeds();
    assert_eq!(fs::read(place.join("out.bin")).unwrap(), fs::read(place.join("plain.bin")).unwrap());
}
