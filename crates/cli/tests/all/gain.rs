//! What a finding's change is predicted to gain, as a user would ask for it.

use std::fs;

use crate::support::Place;

/// Eight ranks write 4 bytes in turn, each for itself; a write takes so many seconds.
fn interleaved(elapsed_s: f64) -> String {
    let mut table = String::from("start_s,elapsed_s,call,rank,file,offset,size\n");
    for piece in 0..200 {
        for rank in 0..8 {
            let (start_s, offset) = (f64::from(piece) * elapsed_s * 1.1, (piece * 8 + rank) * 4);
            table.push_str(&format!("{start_s},{elapsed_s},MPI_File_write_at,{rank},/d/shared,{offset},4\n"));
        }
    }
    table
}

/// A machine on which messages take long and requests next to nothing: to work together is a loss there.
pub(crate) fn slow_messages() -> String {
    let changes = [
        ("name = \"sp-argonne\"", "name = \"slow-messages\""),
        ("send = \"25 us\"", "send = \"50 ms\""),
        ("receive = \"25 us\"", "receive = \"50 ms\""),
        ("request = \"2 ms\"", "request = \"0 s\""),
        ("call = \"0.2 ms\"", "call = \"0 s\""),
    ];
    let known = include_str!("../../../../machines/sp-argonne.toml").to_owned();
    changes.iter().fold(known, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// The words of a text, each behind one blank.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The two times of `12.3 s -> 1.9 s of I/O`, seconds.
fn times(line: &str) -> (f64, f64) {
    let (before, after) = line.split_once(": ").unwrap().1.split_once(" -> ").unwrap();
    let seconds = |text: &str| {
        let mut words = text.split(' ');
        let value: f64 = words.next().unwrap().parse().unwrap();
        value
            * [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6)]
                .iter()
                .find(|(unit, _)| Some(*unit) == words.clone().next())
                .unwrap()
                .1
    };
    (seconds(before), seconds(after))
}

#[test]
fn a_finding_says_what_its_change_would_gain() {
    let place = Place::new();
    fs::write(place.join("run.csv"), interleaved(0.001)).unwrap();
    let words = ["explain", "run.csv", "--machine", "sp-argonne,paragon-caltech", "--html", "run.html"];
    let out = place.pioscope(words).succeeds().out;
    assert!(out.contains("1. Ranks share a file without collective I/O"), "{out}");
    let text = unwrapped(&out);
    for machine in ["sp-argonne", "paragon-caltech"] {
        let from =
            text.find(&format!("Predicted on {machine} (collective calls, two-phase): ")).expect(&text);
        let (before_s, after_s) = times(&text[from..]);
        assert!(after_s < before_s / 5.0, "{machine}: {before_s} s, {after_s} s");
    }
    let page = fs::read_to_string(place.join("run.html")).unwrap();
    assert!(page.contains("Predicted on sp-argonne (collective calls, two-phase): "));
    let out = place.pioscope(["explain", "run.csv"]).succeeds().out;
    assert!(!out.contains("Predicted"), "{out}");
}

#[test]
fn what_would_gain_nothing_is_no_advice() {
    let place = Place::new();
    fs::write(place.join("run.csv"), interleaved(0.001)).unwrap();
    fs::write(place.join("slow.toml"), slow_messages()).unwrap();
    let out = place.pioscope(["explain", "run.csv", "--machine", "slow.toml"]).succeeds().out;
    assert!(out.starts_with("No finding: "), "{out}");
    assert!(!out.contains("Change: ") && !out.contains("Findings: "), "{out}");
    let text = unwrapped(&out);
    let from = text.find("predicted to gain nothing: Ranks share a file without collective I/O (");
    let (before, rest) = text[from.expect(&out)..].split_once(" -> ").unwrap();
    let (before, after) =
        (before.rsplit('(').next().unwrap(), rest.split(" on slow-messages").next().unwrap());
    let (before_s, after_s) = times(&format!("Predicted: {before} -> {after}"));
    assert!(after_s > before_s, "{before_s} s, {after_s} s");
    // It helps on one of two machines: it is advice, and says both.
    let out = place.pioscope(["explain", "run.csv", "--machine", "slow.toml,sp-argonne"]).succeeds().out;
    assert!(out.contains("1. Ranks share a file without collective I/O"), "{out}");
    let text = unwrapped(&out);
    assert!(text.contains("Predicted on slow-messages") && text.contains("Predicted on sp-argonne"), "{out}");
    assert!(!text.contains("predicted to gain nothing"), "{out}");
}

/// How far the prediction of the run as it was is from the recorded one is the uncertainty of the other.
#[test]
fn a_gain_says_how_uncertain_it_is_where_the_machine_is_like_that_of_the_trace() {
    let place = Place::new();
    let gain = |elapsed_s: f64| {
        fs::write(place.join("run.csv"), interleaved(elapsed_s)).unwrap();
        let out = place.pioscope(["explain", "run.csv", "--machine", "sp-argonne"]).succeeds().out;
        out.lines().find(|line| line.starts_with("Gain: ")).expect(&out).to_owned()
    };
    let seconds = |text: &str| text.trim().trim_end_matches(" s").parse::<f64>().unwrap();
    // There, a write takes 14 to 16 ms.
    for elapsed_s in [0.012, 0.015, 0.02] {
        let line = gain(elapsed_s);
        let (before, rest) = line.split_once("instead of ").unwrap().1.split_once(" ± ").expect(&line);
        let (percent, rest) = rest.split_once(" %, predicted on sp-argonne (recorded: ").unwrap();
        let (before_s, recorded_s) = (seconds(before), seconds(rest.trim_end_matches(").")));
        assert!((recorded_s - 200.0 * elapsed_s).abs() < 0.01, "{line}");
        let off = (before_s / recorded_s - 1.0).abs() * 100.0;
        assert!((percent.parse::<f64>().unwrap() - off).abs() < 1.0, "{line}: {off} %");
    }
    // Of a machine that is many times as fast, it is not known.
    assert!(!gain(0.001).contains('±'));
}

/// What the simulator cannot carry out has no prediction, and no simulation.
#[test]
fn what_cannot_be_simulated_says_nothing() {
    let place = Place::new();
    let mut table = String::from("start_s,elapsed_s,call,file\n");
    for number in 0..2000 {
        table.push_str(&format!("{},0.001,stat,/d/{number}\n", f64::from(number) * 0.001_1));
    }
    fs::write(place.join("run.csv"), table).unwrap();
    let out = place.pioscope(["explain", "run.csv", "--machine", "sp-argonne"]).succeeds().out;
    assert!(out.contains("1. Too many calls on names and attributes"), "{out}");
    assert!(!out.contains("Predicted"), "{out}");
}
