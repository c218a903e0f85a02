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

/// It was refused when the job was over, and its exit code lost.
#[test]
fn a_trace_cannot_be_a_device() {
    let place = Place::new();
    let refused = place.pioscope(["record", "-o", "/dev/null", "--", "sh", "-c", "> ran; exit 5"]);
    refused.fails_with("/dev/null: cannot write the trace there: it is a device, pipe or socket (expected a");
    assert!(!place.join("ran").exists());
}

/// It was emptied, and a run of the same name as its prediction was lost.
#[test]
fn a_prediction_takes_the_place_of_nothing_but_a_prediction() {
    let place = Place::new();
    place.pioscope(["workload", "ior-easy", "-o", "run.pio", "--param", "ranks=2"]).succeeds();
    let recorded = place.join("run-sp-argonne-two-phase.pio");
    fs::copy(place.join("run.pio"), &recorded).unwrap();
    let predict = |strategies| place.pioscope(["predict", "run.pio", "-m", "sp-argonne", "-s", strategies]);
    predict("list,two-phase").fails_with("run-sp-argonne-two-phase.pio: is there, and is no simulated trace");
    assert_eq!(fs::read(&recorded).unwrap(), fs::read(place.join("run.pio")).unwrap());
    assert!(!place.join("run-sp-argonne-list.pio").exists());
    // One that was simulated may be simulated again.
    predict("list").succeeds();
    predict("list").succeeds();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
}

#[test]
fn filters_are_told_when_the_job_has_ended() {
    let place = Place::new();
    fs::write(place.join("in"), [7; 100]).unwrap();
    let filtered = ["record", "-o", "t.pio", "--path", "*/out", "--at-least", "4 KiB"];
    let said = place.pioscope(filtered.iter().chain(&["--", "cp", "in", "out"])).succeeds().err;
    let filters = "t.pio: recorded with filters (path */out, at least 4096 bytes): it lacks other calls";
    assert!(said.contains(filters), "{said}");
}

#[test]
fn what_calibrate_needs_is_checked_before_it_measures() {
    let place = Place::new();
    let calibrate = |words: &[&str]| {
        let command = ["machines", "calibrate", "-o", "new.toml"].iter().chain(words);
        place.pioscope(command)
    };
    calibrate(&["--store", "none.toml"]).fails_with("none.toml: cannot find the store's description");
    fs::write(place.join("foreign.toml"), "name = 3").unwrap();
    calibrate(&["--store", "foreign.toml"]).fails_with("foreign.toml");
    calibrate(&["--", "no-such-launcher"]).fails_with("no-such-launcher: not found");
    if let Some(mpi) = mpi() {
        let source = "#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n";
        place.compile(&mpi.mpicc, "job", source, &[]);
        let launcher = mpi.mpiexec.display().to_string();
        for words in [&["--", "./job"][..], &["--", &launcher, "-n", "2", "./job"]] {
            calibrate(words).fails_with("./job: a program of an MPI (expected a launcher and its options");
        }
    }
    assert!(!place.join("new.toml").exists());
}

#[test]
fn errors_say_what_was_expected() {
    let place = Place::new();
    place
        .pioscope(["shims", "--mpicc", "nosuch", "x"])
        .fails_with("cannot run the MPI compiler nosuch: No such");
    let fit = place.pioscope(["machines", "fit", "--machine", "sp-argonne", "-o", "x.toml", "nosuch.pio"]);
    fit.fails_with("pioscope: nosuch.pio: cannot");
    record_copy(&place);
    place
        .pioscope(["store", "--store", "run.pio", "ls"])
        .fails_with("run.pio: no description of a store (expected");
    // Twenty times the longest is as long as what takes long may take: more does not fit, and ended in a panic.
    for wrong in ["0", "86401", "18446744073709551615"] {
        let timeout = place.pioscope(["store", "--timeout", wrong, "ls"]).err;
        assert!(timeout.contains("expected a number of seconds from 1 to 86400"), "{timeout}");
    }
}

#[test]
fn traces_that_are_none() {
    let place = Place::new();
    place.pioscope(["explain", "missing.pio"]).fails_with("missing.pio");
    fs::write(place.join("foreign.pio"), "this is no trace at all").unwrap();
    place
        .pioscope(["explain", "foreign.pio"])
        .fails_with("foreign.pio: neither a trace nor a log that is known (expected");
    fs::write(place.join("empty.pio"), "").unwrap();
    place.pioscope(["explain", "empty.pio"]).fails_with("empty.pio");
    place
        .pioscope(["explain", "."])
        .fails_with(".: a folder with no logs of DFTracer, Recorder or fio (expected");
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
    assert!(explained.out.starts_with("Incomplete: the trace is damaged at byte "), "{}", explained.out);
}

/// An empty report would look as if the program had done nothing.
#[test]
fn what_is_missing_is_named() {
    let place = Place::new();
    fs::write(place.join("calls.csv"), "rank,call,bytes\n0,read,100\n").unwrap();
    place
        .pioscope(["explain", "calls.csv"])
        .fails_with("calls.csv:1: a table of calls without the column 'start_s'");
    place
        .pioscope(["reproduce", "thakur", "--program", "nosuch"])
        .fails_with("nosuch: no such program (expected collapse, built)");
}

#[test]
fn a_trace_of_which_nothing_is_left_is_an_error() {
    let place = Place::new();
    record_copy(&place);
    let whole = fs::read(place.join("run.pio")).unwrap();
    let mut corrupt = whole.clone();
    corrupt[40] ^= 0xff;
    for (name, bytes) in [("cut.pio", &whole[..60]), ("corrupt.pio", &corrupt[..])] {
        fs::write(place.join(name), bytes).unwrap();
        let lost = format!("{name}: nothing can be read: damaged at byte 16");
        place.pioscope(["explain", name, "--html", "report.html"]).fails_with(&lost);
        place.pioscope(["diff", name, "run.pio"]).fails_with(&lost);
        place.pioscope(["predict", name, "-m", "sp-argonne"]).fails_with(&lost);
        place.pioscope(["convert", name, "-o", "run.parquet"]).fails_with(&lost);
    }
    assert!(!place.join("report.html").exists() && !place.join("run.parquet").exists());
}

/// Some commands went on behind a damaged block, and others stopped there.
#[test]
fn every_command_goes_on_behind_a_damaged_block() {
    let place = Place::new();
    let workload =
        ["workload", "ior-hard", "--param", "ranks=4", "--param", "segments=20000", "-o", "run.pio"];
    place.pioscope(workload).succeeds();
    let whole = fs::read(place.join("run.pio")).unwrap();
    let starts = whole.windows(4).enumerate().filter(|(_, word)| word == b"PBLK").map(|(at, _)| at);
    let starts: Vec<usize> = starts.collect();
    // The definitions; the first events, with which the files are opened; more events.
    for behind in &starts[2..4] {
        let mut bytes = whole.clone();
        bytes[behind - 1] ^= 0xff;
        fs::write(place.join("hurt.pio"), bytes).unwrap();
        let lost = "hurt.pio: incomplete: the trace is damaged at byte ";
        let explained = place.pioscope(["explain", "hurt.pio"]).succeeds();
        assert!(explained.out.starts_with("Incomplete: the trace is damaged at byte "), "{}", explained.out);
        assert!(explained.out.contains(" events in damaged blocks "), "{}", explained.out);
        for words in [
            &["diff", "hurt.pio", "run.pio"][..],
            &["predict", "hurt.pio", "-m", "sp-argonne", "--strategy", "independent"],
            &["convert", "hurt.pio", "-o", "hurt.json"],
            &["convert", "hurt.pio", "-o", "hurt.iolog"],
        ] {
            let done = place.pioscope(words).succeeds();
            assert!(done.err.starts_with("pioscope: ") && done.err.contains(lost), "{words:?}: {}", done.err);
            assert!(done.err.contains("are lower bounds"), "{words:?}: {}", done.err);
        }
    }
}

/// Who waited did not know whether anything was going on.
#[test]
fn long_work_shows_progress_on_a_terminal_alone() {
    let place = Place::new();
    let words = ["reproduce", "miller-katz", "--figure", "8"];
    // What takes seconds on one machine takes less than one on another.
    let shown = ["5", "15", "45"].into_iter().any(|instances| {
        let long = ["--policy", "lru", "--instances", instances];
        let seen = on_a_terminal(&place, &[&words[..], &long].concat());
        seen.is_none_or(|seen| seen.contains("simulating Figure 8"))
    });
    assert!(shown);
    let quick = ["--policy", "lru", "--cache", "4MW"];
    let quiet = place.pioscope(words.into_iter().chain(quick)).succeeds();
    assert_eq!(quiet.err, "");
}

/// A job's trace was made without a word, for as long as that took.
#[test]
fn making_a_large_trace_shows_progress_on_a_terminal_alone() {
    let place = Place::new();
    let copy = ["dd", "if=in.bin", "of=out.bin", "bs=1", "status=none"];
    let words = [&["record", "-o", "run.pio", "--"][..], &copy].concat();
    // Two calls a byte.
    let shown = [500_000, 2_500_000, 10_000_000, 40_000_000].into_iter().any(|bytes| {
        fs::write(place.join("in.bin"), vec![0_u8; bytes]).unwrap();
        let seen = on_a_terminal(&place, &words);
        seen.is_none_or(|seen| seen.contains("collecting what was recorded"))
    });
    assert!(shown);
    let quiet = place.pioscope(words).succeeds();
    assert_eq!(quiet.err.lines().count(), 1, "{}", quiet.err);
}

/// What a command shows on a terminal; none where there is nothing to make one with.
fn on_a_terminal(place: &Place, words: &[&str]) -> Option<String> {
    let typed = format!("{} {}", env!("CARGO_BIN_EXE_pioscope"), words.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &typed, "/dev/null"]).env("TERM", "xterm").current_dir(place.join(""));
    let Ok(seen) = terminal.output() else {
        eprintln!("skipped: no script (util-linux) here");
        return None;
    };
    Some(String::from_utf8_lossy(&seen.stdout).into_owned())
}

#[test]
fn what_a_budget_left_out_is_said_first() {
    let place = Place::new();
    let copy = ["dd", "if=/dev/zero", "of=out.bin", "bs=512", "count=100000"];
    let record = ["record", "-o", "run.pio", "--budget", "1MiB", "--"];
    place.pioscope(record.into_iter().chain(copy)).succeeds();
    let explained = place.pioscope(["explain", "run.pio", "--html", "report.html"]).succeeds();
    let first = explained.out.lines().next().unwrap();
    assert!(first.starts_with("Incomplete: the budget left out "), "{}", explained.out);
    assert!(explained.out.contains(" at least "), "{}", explained.out);
    assert!(explained.err.contains("run.pio: incomplete: the budget left out "), "{}", explained.err);
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.find("Incomplete: the budget").unwrap() < page.find("<h1").unwrap());
    let converted = place.pioscope(["convert", "run.pio", "-o", "run.parquet"]).succeeds();
    assert!(converted.err.contains("run.pio: incomplete: the budget left out "), "{}", converted.err);
}

/// Of which no process could have recorded anything.
#[test]
fn a_budget_that_is_too_small_is_refused() {
    let place = Place::new();
    for budget in ["0", "1 B", "63 KiB"] {
        let record = ["record", "-o", "run.pio", "--budget", budget, "--", "true"];
        let refused = place.pioscope(record);
        assert!(refused.code == Some(2) && refused.err.contains("expected 64 KiB"), "{}", refused.err);
    }
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
fn keys_that_are_given_twice() {
    let place = Place::new();
    record_copy(&place);
    let apply = |hints| place.pioscope(["apply", "-s", "two-phase", "--hints", hints, "--", "true"]);
    apply("cb_nodes=1,cb_nodes=2").fails_with("--hints: the hint cb_nodes is given twice");
    apply("striping_factor=2").fails_with("hint striping_factor: the file system says over how many servers");
    fs::write(place.join("hints"), "cb_nodes=4 # here\ncb_nodes=4\n").unwrap();
    place
        .pioscope(["apply", "-s", "two-phase", "--hints-file", "hints", "--", "true"])
        .fails_with("hints: the hint cb_nodes is given twice");
    let predict =
        |more: &[&str]| place.pioscope([&["predict", "run.pio", "-m", "sp-argonne"], more].concat());
    predict(&["--hints", "striping_factor=2"]).fails_with("hint striping_factor: a prediction takes");
    predict(&["-s", "two-phase,two-phase"]).fails_with("--strategy two-phase is given twice");
    predict(&["--sweep", "seed=1,2", "--sweep", "seed=3"]).fails_with("--sweep seed: given twice");
    predict(&["--sweep", "striping_factor=1,2"]).fails_with("--sweep striping_factor: a prediction takes");
    let twice = "sp-argonne/two-phase=run.pio";
    predict(&["--measured", twice, "--measured", twice])
        .fails_with("--measured sp-argonne/two-phase is given twice");
    let workload = place.pioscope(["predict", "-w", "ior-easy,ranks=2,ranks=4", "-m", "sp-argonne"]);
    assert!(workload.code == Some(2) && workload.err.contains("ranks is given twice"), "{}", workload.err);
    place
        .pioscope(["workload", "ior-easy", "-o", "w.pio", "--param", "ranks=2", "--param", "ranks=4"])
        .fails_with("--param ranks is given twice");
}

/// Traces of machines of one name overwrote each other, and a name could lead anywhere.
#[test]
fn machines_whose_traces_would_not_be_their_own() {
    let place = Place::new();
    record_copy(&place);
    let description = place.pioscope(["machines", "show", "sp-argonne"]).succeeds().out;
    let named = |name: &str| description.replacen("name = \"sp-argonne\"", &format!("name = \"{name}\""), 1);
    fs::write(place.join("one.toml"), &description).unwrap();
    place
        .pioscope(["predict", "run.pio", "-m", "one.toml,sp-argonne", "-o", "out"])
        .fails_with("--machine one.toml,sp-argonne: both are named 'sp-argonne'");
    assert!(!place.join("out").exists());
    for name in ["../x", "a/b", "..", ".hidden"] {
        fs::write(place.join("one.toml"), named(name)).unwrap();
        let found = place.pioscope(["predict", "run.pio", "-m", "one.toml", "-o", "out"]);
        found.fails_with(&format!("name = \"{name}\": expected a text of 1 to 100 bytes without `/`"));
    }
}

/// Show printed them without a word, and predictions then failed with an error that named no file.
#[test]
fn networks_that_cannot_be() {
    let place = Place::new();
    let description = place.pioscope(["machines", "show", "fly-64"]).succeeds().out;
    let graph = "kind = \"graph\"\nswitches = [{ name = \"a\", nodes = \"0-63\", links = [\"b\"] }]";
    let torus = "kind = \"torus\"\ndimensions = [8, 8]";
    for (network, expected) in [
        (graph, "one.toml: network.switches: graph: switch a has a link to b, which is no switch"),
        (torus, "one.toml: network.router.virtual-channels: torus"),
    ] {
        let one_channel = [
            ("virtual-channels = 4", "virtual-channels = 1"),
            ("kind = \"fly\"\narity = 4\nstages = 3", network),
        ];
        let text = one_channel.iter().fold(description.clone(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        fs::write(place.join("one.toml"), text).unwrap();
        place.pioscope(["machines", "show", "one.toml"]).fails_with(expected);
        place.pioscope(["machines", "show", "one.toml", "--json"]).fails_with(expected);
    }
}

/// All descriptions that come with us, and each can be shown.
#[test]
fn machines_are_listed_all() {
    let place = Place::new();
    let listed = place.pioscope(["machines", "list"]).succeeds().out;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let machines = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let folders = [machines.clone(), machines.join("parallel")].map(|folder| fs::read_dir(folder).unwrap());
    let entries = folders.into_iter().flatten();
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut files: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    files.sort();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(sorted, files);
    for name in names {
        let shown = place.pioscope(["machines", "show", name]).succeeds().out;
        assert!(shown.contains(&format!("name = \"{name}\"")), "{shown}");
    }
}

/// The work was done first, and its result lost.
#[test]
fn outputs_are_looked_at_before_the_work() {
    let place = Place::new();
    record_copy(&place);
    let predicted =
        place.pioscope(["predict", "run.pio", "-m", "sp-argonne", "-o", "out", "--html", "no/r.html"]);
    predicted.fails_with("no/r.html: cannot create");
    assert!(!place.join("out").exists());
    let swept = ["predict", "run.pio", "-m", "sp-argonne", "--sweep", "seed=1,2"];
    for output in [["--svg", "no/r.svg"], ["--table", "no/r.csv"], ["--html", "no/r.html"]] {
        let found = place.pioscope([&swept[..], &output[..]].concat());
        found.fails_with(&format!("{}: cannot create", output[1]));
        assert_eq!(found.out, "");
    }
    let explained = place.pioscope(["explain", "run.pio", "--html", "no/r.html"]);
    explained.fails_with("no/r.html: cannot create");
    assert_eq!(explained.out, "");
    for study in ["baylor", "coll", "hong", "miller-katz"] {
        let found = place.pioscope(["reproduce", study, "--output", "in.bin"]);
        found.fails_with("in.bin: is no folder");
        assert_eq!(found.out, "");
    }
    place.pioscope(["machines", "calibrate", "-o", "no/m.toml"]).fails_with("no/m.toml: cannot create");
    // Before minutes of measuring.
    fs::write(place.join("file"), "").unwrap();
    place
        .pioscope(["machines", "calibrate", "-o", "m.toml", "--folder", "file"])
        .fails_with("file: is no folder");
    place
        .pioscope(["machines", "calibrate", "-o", "m.toml", "--folder", "none"])
        .fails_with("none: no such folder");
    place.pioscope(["workload", "ior-easy", "-o", "no/w.pio"]).fails_with("no/w.pio: cannot create");
}

/// These simulated for minutes first, or for ever.
#[test]
fn studies_of_what_cannot_be() {
    let place = Place::new();
    let baylor = |words: &[&str]| place.pioscope([&["reproduce", "baylor"], words].concat());
    baylor(&["--load", "1"]).fails_with("--load 1: expected a number from 0 to below 1");
    baylor(&["--load", "NaN"]).fails_with("--load NaN: expected");
    baylor(&["--fb", "1"]).fails_with("--fb 1: requests of 32768 B would be");
    baylor(&["--fb", "1e9"]).fails_with("--fb 1000000000: expected a number above 0 and at most 1145");
    baylor(&["--nodes", "4000000000"])
        .fails_with("--nodes 4000000000: expected an even number from 4 to 1024");
    baylor(&["--nodes", "64,63"]).fails_with("63 nodes: expected an even number");
    baylor(&["--io-nodes", "8,0"]).fails_with("0 I/O nodes among");
    baylor(&["--io-nodes", "8,1000"]).fails_with("1000 I/O nodes among");
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
    for verb in ["record", "explain", "predict", "apply", "advise", "reproduce", "convert", "machines"] {
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
