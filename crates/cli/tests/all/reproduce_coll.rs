//! `pioscope reproduce coll`, as a user runs it.

use std::fs;

use crate::support::Place;

#[test]
fn one_figure_with_its_statements_drawn_and_the_same_again() {
    let place = Place::new();
    let first = place.pioscope(["reproduce", "coll", "--figure", "4", "-o", "figures"]).succeeds();
    assert!(first.out.contains("peak bandwidth, Elan memory"), "{}", first.out);
    assert!(first.out.contains("machine qsnet-64 · seed 2003"), "{}", first.out);
    for name in ["figure-4a.svg", "figure-4b.svg"] {
        let drawing = fs::read_to_string(place.join("figures").join(name)).unwrap();
        assert!(drawing.starts_with("<svg") && drawing.contains("Unidirectional ping"), "{name}");
    }
    let again = place.pioscope(["reproduce", "coll", "--figure", "4"]).succeeds();
    assert_eq!(first.out, again.out);
}

#[test]
fn mappings_can_be_chosen_by_name() {
    let place = Place::new();
    let short = ["--load", "300", "--measured", "1", "--warm-up", "1", "--io-message", "64"];
    let chosen =
        ["reproduce", "coll", "--figure", "7", "--mapping", "clustered,dedicated", "--io-nodes", "4"];
    let out = place.pioscope(chosen.iter().chain(&short)).succeeds().out;
    assert!(out.contains("Figure 7a") && !out.contains("Figure 7b"), "{out}");
    assert!(out.contains("dedicated") && !out.contains("shared"), "{out}");
}

#[test]
fn loads_may_be_given_in_any_order() {
    let place = Place::new();
    let with = |load: &str, io_load: &str| {
        let short = ["--measured", "1", "--warm-up", "1", "--io-message", "64", "--compute-message", "16"];
        let words = ["reproduce", "coll", "--figure", "7,10", "--load", load, "--io-load", io_load];
        place.pioscope(words.iter().chain(&short)).succeeds().out
    };
    let out = with("50,1600", "0.1,0.5");
    assert!(out.contains("Table 1") && out.contains("Figure 10:"), "{out}");
    assert!(!out.contains("Figure 9"), "{out}");
    assert_eq!(out, with("1600,50", "0.5,0.1"));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let place = Place::new();
    for (option, value, expected) in [
        ("--figure", "3", "--figure 3: expected numbers from 4 to 10"),
        ("--io-nodes", "63", "io-nodes = 63: expected 1 to 62"),
        ("--writes", "1.5", "--writes 1.5: expected a share from 0 to 1"),
        ("--load", "0", "--load 0: expected numbers from 0.001"),
        ("--load", "1000001", "--load 1000001: expected numbers from 0.001 to 1000000"),
        ("--io-load", "1.5", "--io-load 1.5: expected numbers from 0.001 to 1"),
        ("--outstanding", "0", "--outstanding 0: expected at least 1"),
        ("--measured", "NaN", "--measured NaN: expected milliseconds"),
        ("--machine", "sp-argonne", "machine sp-argonne: network.switching is not \"circuit\""),
    ] {
        let figure = if option == "--figure" { "4" } else { "7" };
        let words = ["reproduce", "coll", "--figure", figure, option, value];
        place.pioscope(words).fails_with(expected);
    }
}
