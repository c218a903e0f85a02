//! `pioscope reproduce hong`, as a user runs it.

use std::fs;

use crate::support::{Place, mpi};

#[test]
fn published_beside_computed_drawn_and_the_same_again() {
    let place = Place::new();
    let first = place.pioscope(["reproduce", "hong", "-o", "figures"]).succeeds();
    for expected in [
        "Table 1: write of 4-byte segments, 2 clients + 1 server (calibrated)",
        "Table 2: write of 4-byte segments, 4 clients + 1 server (calibrated)",
        "predicted: before the table was looked up",
        "all with 4 clients",
        "machine infiniband-nthu · nothing is random",
    ] {
        assert!(first.out.contains(expected), "{expected}: {}", first.out);
    }
    assert!(!first.out.contains("DOES NOT HOLD"), "{}", first.out);
    for table in 1..=4 {
        let drawing = fs::read_to_string(place.join(&format!("figures/table-{table}.svg"))).unwrap();
        assert!(drawing.starts_with("<svg") && drawing.contains("ECIO, model"), "table {table}");
        assert!(drawing.contains("ECIO, published"), "table {table}");
    }
    assert_eq!(first.out, place.pioscope(["reproduce", "hong"]).succeeds().out);
}

#[test]
fn other_numbers_of_clients_and_servers() {
    let place = Place::new();
    let words = ["reproduce", "hong", "--clients", "8", "--servers", "2", "--piece", "64"];
    let out = place.pioscope(words).succeeds().out;
    assert!(out.contains("read of 64-byte segments, 8 clients + 2 servers (predicted)"), "{out}");
    assert!(!out.contains("Table 1"), "{out}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let place = Place::new();
    for (words, expected) in [
        (&["--clients", "0"][..], "--clients 0: expected 2 to 4096"),
        (&["--clients", "1"], "those of one client alone are contiguous"),
        (&["--servers", "5000"], "--servers 5000: expected 1 to 4096"),
        (&["--piece", "0"], "--piece 0: expected 1 to 1048576 bytes"),
        (&["--measure", "--runs", "0"], "--runs 0: expected 1 to 10000"),
        (&["--measure", "--measure-clients", "0"], "--measure-clients 0: expected 1 to 1024"),
        (&["--measure", "--measure-segments", "0"], "--measure-segments 0: expected 1 to 2147483648"),
        (&["--machine", "cray"], "no machine 'cray'"),
    ] {
        place.pioscope(["reproduce", "hong"].iter().chain(words)).fails_with(expected);
    }
}

#[test]
fn the_benchmark_runs_for_real_under_the_mpis_own_and_ours() {
    if mpi().is_none() {
        return;
    }
    let place = Place::new();
    let short = ["--measure", "--executions", "2", "--runs", "1", "--measure-segments", "101,1000"];
    let words = ["reproduce", "hong", "-o", "figures"];
    let out = place.pioscope(words.iter().chain(&short)).succeeds().out;
    assert!(out.contains("Measured here: read of 4-byte segments, 2 clients"), "{out}");
    assert!(out.contains("0.101") && out.contains("two-phase s"), "{out}");
    assert!(place.join("figures/measured-write-2.svg").is_file());
}
