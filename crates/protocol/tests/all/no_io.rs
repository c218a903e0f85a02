//! The protocol is decided without sockets, files, threads and clocks: so the simulator can run the very same code.

use std::fs;
use std::path::{Path, PathBuf};

/// What would be I/O, or depend on when and where the code runs.
const FORBIDDEN: [&str; 10] = [
    "std::fs",
    "std::net",
    "std::thread",
    "std::sync",
    "std::process",
    "std::env",
    "std::os",
    "Instant",
    "SystemTime",
    // Each import by itself, that none of the above hides in a list.
    "use std::{",
];

/// All that the crate may use: no crate of these does I/O.
const DEPENDENCIES: [&str; 3] = ["crc32fast", "pio-layout", "thiserror"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_protocol_does_no_io() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for forbidden in FORBIDDEN {
            assert!(!text.contains(forbidden), "{} has {forbidden}", file.display());
        }
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("[dependencies]\n").unwrap();
    let dependencies = rest.split("\n\n").next().unwrap().lines();
    let names: Vec<&str> = dependencies.map(|line| line.split(['.', ' ']).next().unwrap()).collect();
    assert_eq!(names, DEPENDENCIES);
}
