//! `--json`: one object on standard output, with the fields that `docs/json.md` lists, and no others.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::servers::Servers;
use crate::support::{Place, Transcript};

/// The fields of a schema as the manual lists them: path, and type.
fn documented(schema: &str) -> BTreeMap<String, String> {
    let page = include_str!("../../../../docs/json.md");
    let heading = format!("## `{schema}`\n");
    let (_, section) = page.split_once(&heading).unwrap_or_else(|| panic!("no section of {schema}"));
    let section = section.split("\n## ").next().unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        Some((cells.next()?.trim_end_matches('`').to_owned(), cells.next()?.to_owned()))
    };
    section.lines().filter_map(row).collect()
}

/// Whether a value is of a type of the manual.
fn is_a(value: &Value, kind: &str) -> bool {
    kind.split(" or ").any(|kind| match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "list" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("no such type: {other}"),
    })
}

/// Every field of `value` is in the manual with its type, and every field that the manual has of it is there.
fn compare(value: &Value, path: &str, fields: &BTreeMap<String, String>) {
    match value {
        Value::Object(object) => {
            let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
            for (key, value) in object {
                let path = format!("{prefix}{key}");
                let kind = fields.get(&path).unwrap_or_else(|| panic!("docs/json.md does not list {path}"));
                assert!(is_a(value, kind), "{path}: {value} is no {kind}");
                compare(value, &path, fields);
            }
            let own =
                |name: &&String| name.strip_prefix(&prefix).is_some_and(|rest| !rest.contains(['.', '[']));
            for name in fields.keys().filter(own) {
                assert!(object.contains_key(&name[prefix.len()..]), "{name} is not there");
            }
        }
        Value::Array(list) => list.iter().for_each(|one| compare(one, &format!("{path}[]"), fields)),
        _ => {}
    }
}

/// What a command printed is one object of this schema, as the manual has it.
#[track_caller]
fn object(printed: Transcript, schema: &str) -> Value {
    let printed = printed.succeeds();
    let value: Value =
        serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {}", printed.out));
    assert_eq!(value["schema"], schema);
    compare(&value, "", &documented(schema));
    value
}

/// A place with a trace of a small copy with defects.
fn recorded() -> Place {
    let place = Place::new();
    std::fs::write(place.join("in.bin"), vec![7; 40_000]).unwrap();
    for (name, bytes) in [("run.pio", "bs=10"), ("other.pio", "bs=4000")] {
        let copy = ["dd", "if=in.bin", "of=out.bin", bytes, "status=none"];
        place.pioscope(["record", "-o", name, "--"].into_iter().chain(copy)).succeeds();
    }
    place
}

#[test]
fn explain_prints_what_it_found() {
    let place = recorded();
    let found = object(
        place.pioscope(["explain", "run.pio", "--json", "--machine", "sp-argonne", "--html", "run.html"]),
        "pioscope.explain/1",
    );
    assert_eq!((&found["trace"], &found["write_bytes"]), (&"run.pio".into(), &40_000.into()));
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["gains"][0]["machine"] == "sp-argonne"), "{found}");
    assert!(
        found["files"].as_array().unwrap().iter().any(|file| {
            file["path"].as_str().unwrap().ends_with("/out.bin") && file["write_calls"] == 4000
        })
    );
    assert!(found["io_time_s"].as_f64().unwrap() > 0.0);
    assert!(place.join("run.html").is_file());
}

/// Writes in two phases of an epoch.
const MARKS: &str = r#"
#include <stdint.h>
#include <stdio.h>
struct pio_phase { void *record; uint32_t process; };
extern void pio_mark(const char *name, uint64_t number) __attribute__((weak));
extern struct pio_phase pio_phase_begin(const char *name, uint64_t number) __attribute__((weak));
extern void pio_phase_end(struct pio_phase phase) __attribute__((weak));
int main(void) {
    pio_mark("epoch", 3);
    for (int step = 0; step < 2; step++) {
        struct pio_phase phase = pio_phase_begin("save", step);
        FILE *file = fopen("out.txt", "a");
        fputs("0123456789", file);
        fclose(file);
        pio_phase_end(phase);
    }
    return 0;
}
"#;

#[test]
fn explain_prints_what_was_marked() {
    let place = Place::new();
    let program = place.compile("cc", "marks", MARKS, &[]);
    place.pioscope(["record", "-o", "run.pio", "--", program.to_str().unwrap()]).succeeds();
    let found = object(place.pioscope(["explain", "run.pio", "--json"]), "pioscope.explain/1");
    let [epoch, save] = &found["marks"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&epoch["name"], &epoch["numbers"][0]["number"]), (&"epoch".into(), &3.into()));
    assert_eq!((&epoch["write_bytes"], &epoch["within"][0]["name"]), (&20.into(), &"save".into()));
    assert_eq!((&save["count"], &save["numbers"][1]["write_bytes"]), (&2.into(), &10.into()));
    let written = found["file_systems"].as_array().unwrap().iter().map(|one| one["write_bytes"].as_u64());
    assert_eq!(written.flatten().sum::<u64>(), 20, "{found}");
}

/// 65 ranks write for a second of two, but one for both.
#[test]
fn explain_prints_who_stands_apart() {
    let place = Place::new();
    let call = |rank: u32| {
        let elapsed_s = if rank == 7 { 2.0 } else { 1.0 };
        format!(
            "0,write,out.bin,{},8,{elapsed_s},{rank},node{}\n2,close,out.bin,0,0,0,{rank},node{}\n",
            rank * 8,
            rank / 8,
            rank / 8
        )
    };
    let calls: String = (0..65).map(call).collect();
    let text = format!("start_s,call,file,offset,size,elapsed_s,rank,host\n{calls}");
    std::fs::write(place.join("calls.csv"), text).unwrap();
    let found = object(place.pioscope(["explain", "calls.csv", "--json"]), "pioscope.explain/1");
    let [one] = &found["apart"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&one["host"], &one["ranks"]), (&"node0".into(), &vec![7].into()));
    assert_eq!(one["is_whole_host"], false);
    assert!(one["io_fraction"].as_f64().unwrap() > 0.9 && one["median_io_fraction"].as_f64().unwrap() < 0.1);
    assert!((one["from_s"].as_f64().unwrap() - 1.0).abs() < 0.05, "{one}");
}

#[test]
fn diff_prints_both_runs() {
    let place = recorded();
    let found = object(
        place.pioscope(["diff", "run.pio", "other.pio", "--json", "--fail-if", "calls > 100 %"]),
        "pioscope.diff/1",
    );
    let calls = |side: &str| found[side]["write_calls"].as_u64().unwrap();
    assert_eq!((calls("before"), calls("after")), (4000, 10));
    let findings = found["findings"].as_array().unwrap();
    assert!(!findings.is_empty(), "{found}");
    for finding in findings {
        let is_found = |side: &str| finding[format!("found_{side}")].as_bool().unwrap();
        assert!(is_found("before") || is_found("after"), "{finding}");
    }
}

#[test]
fn compare_prints_its_conditions_alone() {
    let place = Place::new();
    let compare = |options: &[&str]| {
        let program = ["--", "sh", "-c", "echo this is the program; cat /etc/passwd > out"];
        place.pioscope([&["compare", "-n", "5", "--baseline", "io.json"], options, &program].concat())
    };
    compare(&["--save"]).succeeds();
    let printed = compare(&["--json", "--fail-if", "calls > 105 %", "--fail-if", "bytes < 1"]);
    assert!(printed.err.contains("this is the program\n"), "{}", printed.err);
    let found = object(printed, "pioscope.compare/1");
    assert_eq!((&found["baseline"]["file"], &found["run_count"]), (&"io.json".into(), &5.into()));
    let [calls, bytes] = &found["conditions"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&calls["holds"], &calls["factor"]), (&false.into(), &1.0.into()));
    assert_eq!(calls["median"], calls["baseline_median"]);
    assert!(calls["probability"].is_number() && bytes["probability"].is_null(), "{found}");
    let alone = ["compare", "-n", "5", "--json", "--fail-if", "bytes < 1", "--", "cat", "/etc/passwd"];
    assert!(object(place.pioscope(alone), "pioscope.compare/1")["baseline"].is_null());
    let failed = compare(&["--json", "--fail-if", "bytes > 1"]);
    assert_eq!(failed.code, Some(3), "{}", failed.err);
    let found: Value = serde_json::from_str(&failed.out).unwrap();
    assert_eq!(found["conditions"][0]["holds"], true);
}

#[test]
fn predict_prints_every_prediction() {
    let place = Place::new();
    let workload = ["--workload", "ior-easy,ranks=4", "--machine", "sp-argonne"];
    let predict = |more: &[&str]| place.pioscope([&["predict", "--json"], &workload[..], more].concat());
    let found = object(predict(&["--strategy", "romio,two-phase"]), "pioscope.predict/1");
    let trace = found["predictions"][1]["simulated_trace"].as_str().unwrap().to_owned();
    assert!(place.join(&trace).is_file(), "{trace}");
    assert!(found["predictions"][1]["saved_fraction"].is_number(), "{found}");
    let measured = format!("sp-argonne/two-phase={trace}");
    let found = object(predict(&["--strategy", "two-phase", "--measured", &measured]), "pioscope.predict/1");
    let call = &found["predictions"][0]["measured_calls"][0];
    assert_eq!(call["predicted_calls"], call["measured_calls"], "{found}");
}

/// A sweep keeps some fields of the manual for traffic, others for programs.
#[test]
fn predict_prints_every_point_of_a_sweep() {
    let place = Place::new();
    let words =
        ["predict", "--json", "--workload", "ior-easy,ranks=4", "--machine", "sp-argonne", "--strategy"];
    let words = words.into_iter().chain(["two-phase", "--sweep", "storage.io.count=4,8"]);
    let printed = place.pioscope(words).succeeds();
    let found: Value = serde_json::from_str(&printed.out).unwrap();
    let fields = documented("pioscope.predict.sweep/1");
    assert_eq!(found["schema"], "pioscope.predict.sweep/1");
    assert_eq!(found["points"][1]["settings"]["storage.io.count"], "8");
    for (measure, value) in found["points"][1]["measures"].as_object().unwrap() {
        assert_eq!(fields[&format!("points[].measures.{measure}")], "number");
        assert!(value.is_number(), "{measure}");
    }
}

#[test]
fn machines_are_listed_and_shown() {
    let place = Place::with_own_cache();
    let found = object(place.pioscope(["machines", "list", "--json"]), "pioscope.machines.list/1");
    let names: Vec<_> = found["machines"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    for name in names.iter().filter(|name| **name != "cray-ymp") {
        let words = ["machines", "show", name.as_str().unwrap(), "--json"];
        let shown = object(place.pioscope(words), "pioscope.machines.show/1");
        assert_eq!(&shown["name"], *name);
    }
    assert!(names.len() > 3);
    let shown =
        object(place.pioscope(["machines", "show", "sp-argonne", "--json"]), "pioscope.machines.show/1");
    assert_eq!(shown["storage"]["strip_bytes"], 32_768);
    assert_eq!(shown["calls"]["write"]["bandwidth_bytes_per_s"], 35_000_000);
    for (name, switching) in [("tree-64", "wormhole"), ("cut.toml", "cut-through")] {
        // A packet of 9 flits is to find room.
        let text = place.pioscope(["machines", "show", "tree-64"]).succeeds().out;
        let text = text.replace("\"wormhole\"", "\"cut-through\"").replace("buffer = 8", "buffer = 9");
        std::fs::write(place.join("cut.toml"), text).unwrap();
        let shown = object(place.pioscope(["machines", "show", name, "--json"]), "pioscope.machines.show/1");
        assert_eq!(shown["network"]["switching"], switching);
    }
    place.pioscope(["machines", "show", "cray-ymp", "--json"]).fails_with("cray-ymp: no JSON of a computer");
}

#[test]
fn every_file_of_machines_is_shown_by_its_path() {
    let place = Place::with_own_cache();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let mut shown = 0;
    for folder in [root.clone(), root.join("io-nodes"), root.join("parallel"), root.join("today")] {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "toml")) {
            let said = place.pioscope(["machines", "show", file.to_str().unwrap()]).succeeds();
            assert_eq!(said.out, std::fs::read_to_string(&file).unwrap());
            shown += 1;
        }
    }
    assert!(shown > 30, "{shown}");
    let predict = |file: &str| {
        let file = root.join(file);
        place.pioscope(["predict", "--workload", "ior", "--machine", file.to_str().unwrap()])
    };
    predict("cray-ymp.toml").fails_with("cray-ymp.toml: a computer with buffers, for pioscope reproduce");
    predict("io-nodes/raid-6.toml").fails_with("raid-6.toml: the [io-node] of a machine alone");
}

#[test]
fn files_of_a_store_are_listed() {
    let place = Place::new();
    let _servers = Servers::start(&place.join("store"), &["--servers", "2", "--strip", "1 KiB"]);
    let store = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        command.arg("store").args(words).env("PIOSCOPE_STORE", place.join("store/store.toml"));
        place.run(&mut command)
    };
    std::fs::write(place.join("mesh"), vec![1; 5000]).unwrap();
    store(&["cp", "mesh", "pioscope:run/mesh"]).succeeds();
    let found = object(store(&["ls", "--json"]), "pioscope.store.ls/1");
    assert_eq!(
        (&found["files"][0]["path"], &found["files"][0]["size_bytes"]),
        (&"run/mesh".into(), &Value::Null)
    );
    let found = object(store(&["ls", "--long", "--json"]), "pioscope.store.ls/1");
    assert_eq!(found["files"][0]["size_bytes"], 5000);
    let found = object(store(&["stat", "run/mesh", "--json"]), "pioscope.store.stat/1");
    assert_eq!(found["files"][0]["strip_bytes"], 1024);
    let found = object(store(&["df", "--json"]), "pioscope.store.df/1");
    assert_eq!(found["servers"].as_array().unwrap().len(), 2);
    let used: u64 =
        found["servers"].as_array().unwrap().iter().map(|one| one["used_bytes"].as_u64().unwrap()).sum();
    assert_eq!(used, 5000);
}
