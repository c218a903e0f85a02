//! A description is adjusted to recorded runs, if that holds for runs that were held back.

use std::fs;

use pio_machine::{Duration, Machine};

use crate::here::calibrated;
use crate::support::{Place, Transcript};

/// A machine whose costs are known.
pub(crate) const TRUTH: &str = r#"
name = "truth"
source = "made up"
[nodes]
count = 1
cores = 8
switch = "2 us"
copy = { bandwidth = "5 GB/s", piece = "10 ns" }
[messages]
send = "1 us"
receive = "1 us"
local-latency = "1 us"
[network]
kind = "flat"
link = { bandwidth = "5 GB/s", latency = "0 s" }
[storage]
kind = "local"
exclusive-writes = false
[calls]
open = "20 us"
close = "5 us"
seek = "1 us"
read = { call = "2 us", bandwidth = "4 GB/s" }
write = { call = "30 us", bandwidth = "2 GB/s" }
collective-waits = true
[mpi-io]
spins = true
[mpi-io.pioscope]
call = "1 us"
together = [{ ranks = 4, first-open = "400 us", open = "200 us", close = "100 us", view = "50 us", barrier = "5 us" }]
[mpi-io.own]
call = "1 us"
together = [{ ranks = 4, first-open = "800 us", open = "300 us", close = "150 us", view = "80 us", barrier = "5 us" }]
"#;

/// Programs and what they do.
const PROGRAMS: [&str; 5] = [
    "ior-easy,ranks=4,transfer=256KiB,block=2MiB",
    "ior-hard,ranks=4,segments=40",
    "bt-io,ranks=4,mesh=12,dumps=3,compute=0s",
    "flash-io,ranks=4,blocks=2,compute=0s",
    "hacc-io,ranks=4,particles=2000,compute=0s",
];

/// What programs do on the machine that is known, as if it had been recorded there.
fn record(place: &Place) -> Vec<String> {
    fs::write(place.join("truth.toml"), TRUTH).unwrap();
    for program in PROGRAMS {
        let words =
            ["predict", "--workload", program, "-m", "truth.toml", "-s", "romio,two-phase", "-o", "runs"];
        place.pioscope(words).succeeds();
    }
    let names = fs::read_dir(place.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = names.map(|path| path.display().to_string()).collect();
    names.retain(|name| name.contains("-truth-"));
    names.sort();
    names
}

fn fit(place: &Place, words: &[&str], runs: &[String]) -> Transcript {
    let runs = runs.iter().map(String::as_str);
    place.pioscope(["machines", "fit"].into_iter().chain(words.iter().copied()).chain(runs))
}

/// Whether a time is another, but for a tenth.
fn is_near(found: Duration, expected: &str) -> bool {
    let expected = Duration::parse(expected).unwrap();
    (found.seconds() / expected.seconds() - 1.0).abs() < 0.1
}

#[test]
fn costs_are_found_again() {
    let place = Place::new();
    let runs = record(&place);
    assert_eq!(runs.len(), 2 * PROGRAMS.len());
    // Small writes twice too slow, opens of the MPI's own library half as slow as they are.
    let wrong = TRUTH.replace("\"truth\"", "\"wrong\"").replace("call = \"30 us\"", "call = \"60 us\"");
    let wrong = wrong.replace(
        "first-open = \"800 us\", open = \"300 us\", close = \"150 us\"",
        "first-open = \"400 us\", open = \"150 us\", close = \"75 us\"",
    );
    fs::write(place.join("wrong.toml"), format!("# By hand.\n{wrong}")).unwrap();
    let done = fit(&place, &["-m", "wrong.toml", "-o", "fitted.toml"], &runs).succeeds();
    assert_eq!(done.err, "pioscope: wrote fitted.toml\n");
    let fitted = Machine::load(&place.join("fitted.toml")).unwrap();
    assert_eq!((fitted.name.as_str(), fitted.source.as_str()), ("fitted", "made up; fitted to 10 runs"));
    let own = fitted.mpi_io.as_ref().unwrap().own.of(4);
    assert!(is_near(fitted.calls.write.call, "30 us"), "{}", done.out);
    assert!(is_near(own.first_open, "800 us") && is_near(own.close.again, "150 us"), "{}", done.out);
    // What was right is left as it was, or nearly.
    let pioscope = fitted.mpi_io.as_ref().unwrap().pioscope.of(4);
    assert!(
        is_near(pioscope.first_open, "400 us") && is_near(fitted.calls.read.call, "2 us"),
        "{}",
        done.out
    );
    let text = fs::read_to_string(place.join("fitted.toml")).unwrap();
    assert!(text.starts_with("# By hand.\n"), "{text}");
    // Its history begins with the errors of runs that were held back.
    let history = fs::read_to_string(place.join("fitted.runs.jsonl")).unwrap();
    assert_eq!(history.lines().count(), runs.len(), "{history}");
    // Before, fitted, and held back: each program alone tells less of the costs than all together.
    let errors = |row: &str| -> [f64; 3] {
        let words: Vec<&str> = row.trim_end().trim_end_matches(" %").split(" % ").map(str::trim).collect();
        let last = |word: &&str| word.rsplit(' ').next().unwrap_or_default().parse().unwrap();
        words.iter().map(last).collect::<Vec<f64>>().try_into().unwrap()
    };
    let rows = done.out.lines().filter(|line| line.contains(".pio "));
    let errors: Vec<[f64; 3]> = rows.map(errors).collect();
    assert!(
        errors.len() == runs.len() && errors.iter().all(|[_, fitted, _]| fitted.abs() <= 2.0),
        "{}",
        done.out
    );
    assert!(
        errors.iter().all(|[before, _, held_back]| held_back.abs() < before.abs().max(2.0)),
        "{}",
        done.out
    );
    assert_eq!(fit(&place, &["-m", "wrong.toml", "-o", "again.toml"], &runs).succeeds().out, done.out);
}

#[test]
fn a_description_that_is_right_is_kept() {
    let place = Place::new();
    let runs = record(&place);
    let kept = fit(&place, &["-m", "truth.toml", "-o", "fitted.toml"], &runs);
    kept.fails_with("truth: kept as it was");
    assert!(!place.join("fitted.toml").exists());
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let place = Place::with_own_cache();
    let runs = record(&place);
    let refused =
        |words: &[&str], runs: &[String], expected: &str| fit(&place, words, runs).fails_with(expected);
    let with = ["-m", "truth.toml", "-o", "fitted.toml"];
    let none = fit(&place, &with, &[]);
    assert!(none.code == Some(2) && none.err.contains("<RUN>"), "{}", none.err);
    refused(&["-m", "truth.toml"], &runs, "only here is replaced (expected -o FILE");
    refused(&with, &runs[..1], "so that none can be held back");
    refused(&with, &["gone.pio".to_owned()], "gone.pio");
    // As generated, it took no time; in another tool's log, nobody knows what passed between calls.
    let generated = place.join("runs/ior-hard.pio").display().to_string();
    refused(
        &with,
        &[generated],
        "ior-hard.pio: not recorded by Pioscope (expected a trace of pioscope record",
    );
    fs::write(place.join("calls.csv"), "start_s,call,file,offset,size,elapsed_s\n0,write,/tmp/a,0,9,0.1\n")
        .unwrap();
    refused(&with, &["calls.csv".to_owned()], "calls.csv: not recorded by Pioscope");
    // Cut, it is no whole run.
    let whole = fs::read(&runs[0]).unwrap();
    fs::write(place.join("cut.pio"), &whole[..whole.len() - 30]).unwrap();
    let cut = fit(&place, &with, &["cut.pio".to_owned()]);
    assert!(cut.err.contains("pioscope: cut.pio: incomplete: "), "{}", cut.err);
    assert_ne!(cut.code, Some(0));
    // A machine of one node is none for runs of two hosts.
    let two = TRUTH.replace("count = 1", "count = 2").replace("truth", "two");
    fs::write(place.join("two.toml"), two).unwrap();
    place.pioscope(["predict", "--workload", PROGRAMS[1], "-m", "two.toml", "-s", "romio"]).succeeds();
    refused(&with, &["ior-hard-two-romio.pio".to_owned()], "it ran on 2 hosts, and truth has 1 node");

    // Here is where the files are, on this host.
    refused(
        &[],
        &runs,
        "which is not on this host (expected a run of this host, or a machine with --machine)",
    );
    fs::write(place.join("in.bin"), vec![7; 1 << 20]).unwrap();
    // In folders of their own, which are one place.
    let copy = |folder: &str, block: &str| {
        fs::create_dir(place.join(folder)).unwrap();
        let (trace, out) = (format!("{folder}.pio"), format!("of={folder}/out.bin"));
        let block = format!("bs={block}");
        place.pioscope(["record", "-o", &trace, "--", "dd", "if=in.bin", &out, &block]).succeeds();
    };
    copy("one", "4k");
    copy("other", "64k");
    let recorded = ["one.pio".to_owned(), "other.pio".to_owned()];
    refused(&[], &recorded, "run `pioscope machines calibrate --folder ");
    let file = calibrated(&place);
    let before = fs::read_to_string(&file).unwrap();
    let fitted = fit(&place, &[], &recorded);
    let after = fs::read_to_string(&file).unwrap();
    // Whether two such runs teach anything is theirs to say.
    assert_eq!(fitted.code == Some(0), after != before, "{}{}", fitted.out, fitted.err);
    assert!(fitted.out.contains("other.pio"), "{}", fitted.out);
}
