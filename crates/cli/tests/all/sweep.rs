//! Sweeps and generated workloads, as a user would ask for them.

use std::fs;
use std::fs::File;

use crate::support::Place;
use parquet::file::reader::{FileReader, SerializedFileReader};

const CURVE: [&str; 11] = [
    "predict",
    "--workload",
    "uniform,warm-up=200 ns,measured=1 us",
    "--machine",
    "tree-64,fly-64",
    "--sweep",
    "load=0.1,0.3",
    "--sweep",
    "network.router.virtual-channels=1,4",
    "--seed",
    "7",
];

#[test]
fn the_same_bytes_on_any_number_of_processors() {
    let place = Place::new();
    let mut tables = Vec::new();
    for jobs in ["1", "2", "5"] {
        let words = ["--jobs", jobs, "--table", "curve.csv", "--html", "curve.html", "--svg", "curve.svg"];
        let out = place.pioscope(CURVE.into_iter().chain(words)).succeeds().out;
        let files = ["curve.csv", "curve.html", "curve-latency_mean_s.svg"]
            .map(|name| fs::read_to_string(place.join(name)).unwrap());
        tables.push((out, files));
    }
    assert_eq!(tables[0], tables[1]);
    assert_eq!(tables[0], tables[2]);
    let csv = &tables[0].1[0];
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 8, "{csv}");
    assert!(lines[0].starts_with("machine,load,network.router.virtual-channels,offered,accepted,"), "{csv}");
    assert!(lines[2].starts_with("tree-64,0.1,4,"), "{csv}");
    assert!(lines[8].starts_with("fly-64,0.3,4,"), "{csv}");
}

#[test]
fn a_swept_seed_is_told_in_its_rows_alone() {
    let place = Place::new();
    let out =
        |sweep: &str| place.pioscope(CURVE[..5].iter().copied().chain(["--sweep", sweep])).succeeds().out;
    assert!(out("load=0.1,0.3").contains("seed 1"));
    let swept = out("seed=4,5");
    assert!(!swept.contains("seed 1") && swept.contains("pioscope 0."), "{swept}");
}

#[test]
fn a_generated_workload_is_a_trace_and_predicts_the_same() {
    let place = Place::new();
    let generated = ["--workload", "collapse,ranks=2,iterations=2,x=8,y=8,z=8"];
    let sweep = ["--machine", "sp-argonne", "--sweep", "storage.io.count=1,4", "--table"];
    place.pioscope(["predict"].into_iter().chain(generated).chain(sweep).chain(["named.csv"])).succeeds();
    let parameters = ["ranks=2", "iterations=2", "x=8", "y=8", "z=8"];
    let parameters = parameters.iter().flat_map(|parameter| ["--param", parameter]);
    place.pioscope(["workload", "collapse", "-o", "collapse.pio"].into_iter().chain(parameters)).succeeds();
    place.pioscope(["predict", "collapse.pio"].into_iter().chain(sweep).chain(["traced.csv"])).succeeds();
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    assert_eq!(read("named.csv"), read("traced.csv"));
    assert_eq!(read("named.csv").lines().count(), 1 + 4);

    place.pioscope(["predict", "collapse.pio"].into_iter().chain(sweep).chain(["traced.parquet"])).succeeds();
    let parquet = SerializedFileReader::new(File::open(place.join("traced.parquet")).unwrap()).unwrap();
    assert_eq!(parquet.metadata().file_metadata().num_rows(), 4);
    let row = parquet.get_row_iter(None).unwrap().next().unwrap().unwrap().to_string();
    assert!(row.contains("machine: \"sp-argonne\"") && row.contains("storage.io.count: 1"), "{row}");
}

#[test]
fn what_cannot_be_swept_is_refused_by_name() {
    let place = Place::new();
    let refused = |sweep: &str, expected: &str| {
        let words = ["predict", "--workload", "uniform", "--machine", "fly-64", "--sweep", sweep];
        place.pioscope(words).fails_with(expected);
    };
    refused(
        "foo=1",
        "--sweep foo: unknown (expected a key of the machine with its tables, as storage.io.count",
    );
    refused("load=0", "load = 0: expected a number above 0");
    refused("storage.io.count=0", "storage.io.count = 0: expected a whole number");
    refused("storage.io.cuont=1", "unknown key 'storage.io.cuont'");
}

#[test]
fn workloads_are_listed_with_what_can_be_chosen() {
    let place = Place::new();
    let list = place.pioscope(["workload", "list"]).succeeds().out;
    assert!(list.contains("ior-easy") && list.contains("hot-spot"), "{list}");
    let show = place.pioscope(["workload", "show", "ior-easy"]).succeeds().out;
    assert!(show.contains("ranks") && show.contains("[default: "), "{show}");
    place
        .pioscope(["workload", "nothing", "-o", "x.pio"])
        .fails_with("no workload 'nothing': expected one of bt-io");
    place.pioscope(["workload", "uniform", "-o", "x.pio"]).fails_with("traffic on a network alone");
}
