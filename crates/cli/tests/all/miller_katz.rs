//! `pioscope reproduce miller-katz`: one figure at a time, with what a user changes.

use crate::support::Place;

const START: [&str; 2] = ["reproduce", "miller-katz"];

fn words<'w>(rest: &[&'w str]) -> Vec<&'w str> {
    [&START, rest].concat()
}

#[test]
fn a_figure_with_other_parameters() {
    let place = Place::new();
    let run = || {
        let figure = ["--figure", "8", "--cache", "2MW,16MW", "--policy", "lru,mru", "-o", "figures"];
        place.pioscope(words(&figure)).succeeds().out
    };
    let first = run();
    let rows: Vec<&str> = first.lines().filter(|line| line.contains(" MW ")).collect();
    assert_eq!(rows.len(), 4, "{first}");
    assert!(place.join("figures/figure-8-venus.svg").exists());
    assert_eq!(run(), first, "the same command, the same text");
}

#[test]
fn rates_with_a_solid_state_disk_and_a_changed_computer() {
    let place = Place::new();
    let figure = ["--figure", "6", "--ssd", "32MW", "--instances", "1", "--set", "disks.far=20 ms"];
    let out = place.pioscope(words(&figure)).succeeds().out;
    assert!(out.contains("1 of venus, a solid-state disk of 32 MW"), "{out}");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    let refused = |rest: &[&str], expected: &str| place.pioscope(words(rest)).fails_with(expected);
    refused(&["--figure", "5"], "--figure 5: expected 3, 4, 6, 7 or 8");
    refused(&["--cache", "2MW"], "name it with --figure");
    refused(&["--figure", "8", "--instances", "0"], "--instances 0: expected 1 to 1000");
    refused(&["--figure", "8", "--application", "mars"], "name = mars: expected bvi, ccm");
    refused(&["--figure", "6", "--policy", "fifo"], "no replacement policy is called `fifo`");
    refused(
        &["--figure", "6", "--set", "disks.fer=1 ms"],
        "cannot change 'disks.fer': no such key (known here: bandwidth, ",
    );
    refused(&["--figure", "6", "--set", "disks.far=1"], "disks.far = \"1\": expected a time");
    refused(&["--figure", "6", "--computer", "nowhere.toml"], "nowhere.toml: cannot read");
    refused(&["--figure", "6", "--cache", "1MW,2MW"], "Figure 6 has one size");
    // A bin of the figure is a second.
    for wrong in ["0", "0.5", "1.5"] {
        let error = place.pioscope(words(&["--figure", "6", "--seconds", wrong])).err;
        assert!(error.contains("--seconds <SECONDS>': expected a whole number from 1 to"), "{error}");
    }
    refused(&["--figure", "6", "--seconds", "1000001"], "--seconds 1000001: expected at most 1000000");
}
