//! What a finding's change is predicted to gain, as a user would ask for it.

use std::fs;

use crate::support::Place;

/// Eight ranks write 4 bytes in turn, each for itself, 1 ms a write.
fn interleaved() -> String {
    let mut table = String::from("start_s,elapsed_s,call,rank,file,offset,size\n");
    for piece in 0..200 {
        for rank in 0..8 {
            let (start_s, offset) = (f64::from(piece) * 0.001_1, (piece * 8 + rank) * 4);
            table.push_str(&format!("{start_s},0.001,MPI_File_write_at,{rank},/d/shared,{offset},4\n"));
        }
    }
    table
}

/// The two times of `12.3 s -> 1.9 s of I/O`, seconds.
fn times(line: &str) -> (f64, f64) {
    let (before, after) = line.split_once(": ").unwrap().1.split_once(" -> ").unwrap();
    let seconds = |text: &str| {
        let mut words = text.split(' ');
        let value: f64 = words.next().unwrap().parse().unwrap();
        value
            * [("s", 1.0), ("ms", 1e-3)]
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
    fs::write(place.join("run.csv"), interleaved()).unwrap();
    let words = ["explain", "run.csv", "--machine", "sp-argonne,paragon-caltech", "--html", "run.html"];
    let out = place.pioscope(words).succeeds().out;
    assert!(out.contains("1. Ranks go through a file by turns, each for itself"), "{out}");
    let words: Vec<&str> = out.split_whitespace().collect();
    let text = words.join(" ");
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
    assert!(out.contains("1. Calls on names and attributes without end"), "{out}");
    assert!(!out.contains("Predicted"), "{out}");
}
