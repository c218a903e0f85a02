//! What a killed recorder left.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|bytes: &[u8]| {
    let spools = FOLDER.path().join("spools");
    std::fs::create_dir_all(&spools).expect("a folder of our own");
    std::fs::write(spools.join("1.spool"), bytes).expect("room for a small file");
    let _ = pio_record::collect(&spools, &FOLDER.path().join("fuzz.pio"), "fuzz");
});
