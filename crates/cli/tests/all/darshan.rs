//! Logs of Darshan that hold counters only.

use std::fs;

use pio_import::darshan::Module;
use serde_json::Value;

use super::support::Place;
use writer::{Compression, LogWriter};

#[allow(dead_code, reason = "another test uses the rest")]
#[path = "../../../import/tests/support/darshan.rs"]
mod writer;

/// A file of all 4 ranks, of which rank 2 spends 8 of 9.25 s on it, the others 1 s.
fn log() -> LogWriter {
    let mut writer = LogWriter::new("3.41", false, Compression::Zlib);
    writer.names = vec![(1, "/scratch/shared")];
    let names = Module::Posix.counters();
    let mut integers = vec![0i64; names.integers.len()];
    let mut times = vec![0f64; names.floats.len()];
    for (name, value) in [
        ("OPENS", 4),
        ("WRITES", 400),
        ("BYTES_WRITTEN", 800 << 20),
        ("MAX_BYTE_WRITTEN", (800 << 20) - 1),
        ("SEQ_WRITES", 396),
        ("CONSEC_WRITES", 396),
        ("SIZE_WRITE_1M_4M", 400),
        ("SLOWEST_RANK", 2),
        ("SLOWEST_RANK_BYTES", 200 << 20),
    ] {
        integers[names.integer(&format!("POSIX_{name}")).unwrap()] = value;
    }
    for (name, value) in [
        ("WRITE_TIME", 11.0),
        ("SLOWEST_RANK_TIME", 8.0),
        ("WRITE_START_TIMESTAMP", 0.5),
        ("WRITE_END_TIMESTAMP", 9.0),
    ] {
        times[names.float(&format!("POSIX_F_{name}")).unwrap()] = value;
    }
    let mut words = writer.words();
    words.u64(1).i64(-1);
    integers.into_iter().for_each(|value| {
        words.i64(value);
    });
    times.into_iter().for_each(|value| {
        words.f64(value);
    });
    writer.modules = vec![(1, 4, words.bytes)];
    writer
}

#[test]
fn counters_alone_have_findings() {
    let place = Place::new();
    fs::write(place.join("job.darshan"), log().bytes()).unwrap();
    let told = place.pioscope(["explain", "job.darshan", "--html", "job.html"]).succeeds();
    let expected = "\
Costliest: one rank's I/O is far slower than that of the others: 5.25 s, 57 % of the run, on
  /scratch/shared.
Change: look at what is special about its host, its target or its requests.

/bin/app --size 3
═════════════════

4 ranks ran for 9.25 s. Darshan counted their calls, but traced none.
By POSIX they read 0 B and wrote 800 MiB in 400 accesses of 2 MiB on average, on 1 file, in 30 %
of the ranks' time.

Findings: what costs time, costliest first
  1. One rank's I/O is far slower than that of the others: costs 5.25 s, 57 % of the run
     The rank moved 200 MiB. Its calls took 8 s, between 500 ms and 9 s. The mean of all ranks
     is 2.75 s, its own 2.9 times that.
     File: /scratch/shared (100 %). Rank: 2 (100 %).
     Change: look at what is special about its host, its target or its requests.
";
    assert!(told.out.starts_with(expected), "{}", told.out);
    let page = fs::read_to_string(place.join("job.html")).unwrap();
    assert!(
        page.contains("One rank&#39;s I/O is far slower") || page.contains("One rank's I/O is far slower")
    );

    // A trace keeps the sums only, and says so.
    place.pioscope(["convert", "job.darshan", "-o", "job.pio"]).succeeds();
    let told = place.pioscope(["explain", "job.pio"]).succeeds();
    let first = told.out.split("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "No finding: the trace holds no calls, only sums of a Darshan log's counters: explain the log itself.";
    assert_eq!(first, expected);

    // To programs, too.
    for file in ["job.darshan", "job.pio"] {
        let printed = place.pioscope(["explain", file, "--json"]).succeeds();
        let found: Value = serde_json::from_str(&printed.out).unwrap();
        assert_eq!(found["is_complete"], false, "{file}");
        let lacks = found["incomplete"][0].as_str().unwrap();
        assert!(lacks.starts_with("calls were counted, but not kept"), "{file}: {lacks}");
    }
}
