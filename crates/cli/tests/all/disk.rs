//! `pioscope disk`: a small drive's requests beside the model's, and what is said of files that are none.

use std::fs;

use crate::support::Place;

const TRACE: &str = "\
R Miss 0 4 9000.0 20000.0
R Hit 4 4 600.0 20000.0
W Hit 300 8 1900.0 50000.0
R Miss 350 1 12000.0 1000.0
";

/// A folder with a drive and a series of requests.
fn place() -> Place {
    let place = Place::new();
    for (name, text) in [
        ("test.diskspecs", include_str!("../../../machine/tests/drive/test.diskspecs")),
        ("test.model", include_str!("../../../machine/tests/drive/test.model")),
        ("test.seek", include_str!("../../../machine/tests/drive/test.seek")),
        ("test.trace", TRACE),
    ] {
        fs::write(place.join(name), text).unwrap();
    }
    place
}

const ASKED: [&str; 5] = ["disk", "--specs", "test.diskspecs", "--trace", "test.trace"];

/// The first read: 0.6 ms of overhead, sector 0 at 10 ms, a slipped sector among its four blocks, 0.1 ms on the bus. The
/// second is 0.2 ms and four blocks on the bus.
const EXPECTED: &str = "\
TEST: 2 surfaces, 20 cylinders, 356 blocks of 512 B, 6000 revolutions a minute
The specification says Block count = 400, its layout has 356 blocks: using the layout.

Service times, measured and in the model (ms)
  requests                  count    mean   model    p50  model     p90   model     p99   model  distance     %
  ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
  all                           4   5.875   5.963  1.900  1.800  12.000  15.100  12.000  15.100     2.040  34.7
  reads                         3   7.200   7.350  9.000  6.350  12.000  15.100  12.000  15.100     2.355  32.7
  reads measured as Hit         1   0.600   0.600  0.600  0.600   0.600   0.600   0.600   0.600     0.000   0.0
  reads measured as Miss        2  10.500  10.725  9.000  6.350  12.000  15.100  12.000  15.100     2.884  27.5
  reads, hit in the model       1   0.600   0.600  0.600  0.600   0.600   0.600   0.600   0.600     0.000   0.0
  reads, miss in the model      2  10.500  10.725  9.000  6.350  12.000  15.100  12.000  15.100     2.884  27.5
  writes                        1   1.900   1.800  1.900  1.800   1.900   1.800   1.900   1.800     0.100   5.3
  A block takes 0.10000 ms on the bus. Distance: root mean square of the horizontal distance
  between the two distributions, and the same in percent of the measured mean.
";

#[test]
fn measured_and_modelled_times_stand_side_by_side() {
    let place = place();
    let found = place.pioscope(ASKED).succeeds();
    assert_eq!((found.out.as_str(), found.err.as_str()), (EXPECTED, ""));
    let again = place.pioscope(ASKED.into_iter().chain(["--bus", "1 GB/s", "--svg", "out.svg"])).succeeds();
    assert_eq!(again.out, EXPECTED);
    assert!(fs::read_to_string(place.join("out.svg")).unwrap().starts_with("<svg"));
    let slow = place.pioscope(ASKED.into_iter().chain(["--bus", "512 kB/s"])).succeeds();
    assert!(slow.out.contains("reads measured as Hit         1   0.600   4.200"), "{}", slow.out);
    let apart =
        place.pioscope(ASKED.into_iter().chain(["--bus", "read=1 GB/s,write=512 kB/s"])).succeeds().out;
    assert!(apart.contains("reads measured as Hit         1   0.600   0.600"), "{apart}");
    assert!(apart.contains("0.10000 ms on the bus for reads and 1.00000 ms for writes."), "{apart}");
    let writes = |text: &str| text.lines().find(|line| line.starts_with("  writes ")).unwrap().to_owned();
    assert_eq!(writes(&apart), writes(&slow.out));
    assert_ne!(writes(&apart), writes(EXPECTED));
    for wrong in ["read=1 MB/s", "read=1 MB/s,write=2 MB/s,read=3 MB/s", "read=1 MB/s,write=2", "both=1 MB/s"]
    {
        assert_eq!(place.pioscope(ASKED.into_iter().chain(["--bus", wrong])).code, Some(2), "{wrong}");
    }
}

#[test]
fn a_bus_that_is_not_specified_is_assumed_and_said() {
    let place = place();
    let specs = fs::read_to_string(place.join("test.diskspecs")).unwrap();
    fs::write(place.join("test.diskspecs"), specs.replace("transfer time = 0.1", "transfer time = 0.0"))
        .unwrap();
    let found = place.pioscope(ASKED).succeeds();
    assert!(found.err.contains("assumed 10 MB/s: --bus says otherwise"), "{}", found.err);
    let note = "A block takes 0.05120 ms on the bus, assumed, as the specification leaves it out.";
    assert!(found.out.contains(note), "{}", found.out);
}

/// As for the HP C2490A, whose specification gives the number of the last cylinder for how many there are, and the HP C2247A,
/// some of whose writes were seen to take the bus several times.
#[test]
fn older_drives_are_read() {
    let place = place();
    let replace = |name: &str, pairs: &[(&str, &str)]| {
        let mut text = fs::read_to_string(place.join(name)).unwrap();
        for (from, to) in pairs {
            assert!(text.contains(from));
            text = text.replacen(from, to, 1);
        }
        fs::write(place.join(name), text).unwrap();
    };
    let layout = [
        ("Block count = 400", "Block count = 372"),
        ("Last cylinder number = 19", "Last cylinder number = 20"),
    ];
    replace("test.model", &layout);
    replace(
        "test.trace",
        &[(
            "W Hit 300 8 1900.0",
            "W Doub 300 8 1900.0 1000.0\nW Trip 356 8 1950.0 1000.0\nW Trip 356 8 1950.0",
        )],
    );
    let found = place.pioscope(ASKED).succeeds().out;
    assert!(found.starts_with("TEST: 2 surfaces, 21 cylinders, 372 blocks of 512 B"), "{found}");
    assert!(!found.contains("Block count"), "{found}");
    assert!(found.contains("Number of cylinders = 20: its zones have 21, which are taken"), "{found}");
    let count = |row: &str| {
        let line = found.lines().find_map(|line| line.trim().strip_prefix(row))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    let counts = ["writes measured as Doub", "writes measured as Trip"].map(count);
    assert_eq!(counts, [Some("1".to_owned()), Some("2".to_owned())], "{found}");
    replace("test.model", &[("Last cylinder number = 20", "Last cylinder number = 21")]);
    place.pioscope(ASKED).fails_with("Last cylinder number = 21: expected a whole number from 10 to 20");
}

#[test]
fn wrong_files_are_named_with_line_and_what_is_expected() {
    let place = place();
    let with = |name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(place.join(name)).unwrap();
        fs::write(place.join(name), text.replacen(from, to, 1)).unwrap();
        let found = place.pioscope(ASKED);
        fs::write(place.join(name), text).unwrap();
        found
    };
    with("test.trace", "R Hit 4 4", "R Hit 4 x")
        .fails_with("test.trace:2: the number of blocks is 'x': expected");
    with("test.trace", "W Hit", "W Hot")
        .fails_with("test.trace:3: the outcome is 'Hot': expected Hit, Miss, Doub or Trip");
    with("test.trace", "350 1", "356 1")
        .fails_with("test.trace:4: 1 blocks from 356 on: expected at least 1 within");
    with("test.trace", "1900.0", "-1").fails_with("test.trace:3: the service time is '-1': expected");
    with("test.model", "cylinders = 20", "cylinders = 0")
        .fails_with("test.model:3: Number of cylinders = 0: expected");
    with("test.diskspecs", "test.model", "gone.model").fails_with("gone.model: No such file");
    fs::write(place.join("test.trace"), "\n# nothing\n").unwrap();
    place.pioscope(ASKED).fails_with("test.trace: expected at least one request a line");
}
