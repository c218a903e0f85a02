//! Logs of other tools that hold calls: strace, fio, blktrace, DFTracer, CSV, folders of Recorder.
#![no_main]

use std::collections::BTreeMap;
use std::io::{Write, sink};
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;

use pio_import::recorder::{self, Folder};
use pio_import::{ImportError, Tool};

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, log)) = bytes.split_first() else { return };
    let path = Path::new("trace");
    const TOOLS: [Tool; 6] =
        [Tool::Strace, Tool::Fio, Tool::Blktrace, Tool::Csv, Tool::Dftracer, Tool::FioLatency];
    match TOOLS.get(usize::from(which % 8)) {
        Some(&tool) => {
            // Of fio's logs the name tells which they are.
            match pio_import::write_trace_from(tool, log, Path::new("job_lat.1.log"), sink(), path) {
                Ok(_) | Err(ImportError::NoCalls { .. }) => {}
                Err(error) => panic!("a sink takes everything: {error}"),
            }
        }
        None => match recorder::write_trace(&Folder::in_memory(files(which, log), "folder"), sink(), path) {
            Ok(_) | Err(ImportError::Damaged { .. } | ImportError::UnknownRecorderVersion { .. }) => {}
            Err(error) => panic!("a sink takes everything: {error}"),
        },
    }
});

/// A folder of two processes whose files are parts of the input: a byte for the name (its highest bit: compressed), two
/// for the length, the bytes.
fn files(which: u8, mut input: &[u8]) -> BTreeMap<String, Vec<u8>> {
    const NAMES: [&str; 12] = [
        "0.cst",
        "0.cfg",
        "0.ts",
        "1.cst",
        "1.cfg",
        "1.ts",
        "recorder.cst",
        "ug.cfg",
        "ug.mt",
        "recorder.ts",
        "recorder.mt",
        "VERSION",
    ];
    let is_new = which & 64 != 0;
    let mut files = BTreeMap::new();
    files.insert("VERSION".to_owned(), if is_new { b"3.0.0" } else { b"2.3.1" }.to_vec());
    files.insert("recorder.mt".to_owned(), metadata(is_new, which & 128 != 0));
    while let [name, low, high, rest @ ..] = input {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (part, behind) = rest.split_at(len);
        let mut bytes = part.to_vec();
        if name & 128 != 0 {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part).expect("memory takes everything");
            let stored = encoder.finish().expect("memory takes everything");
            bytes = [&(stored.len() as u64).to_le_bytes(), &(len as u64).to_le_bytes(), &stored[..]].concat();
        }
        files
            .entry(NAMES[usize::from(name & 127) % NAMES.len()].to_owned())
            .or_insert_with(Vec::new)
            .extend(bytes);
        input = behind;
    }
    files
}

/// Of two processes.
fn metadata(is_new: bool, merged: bool) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    bytes.extend([1; 8]);
    if is_new {
        bytes.extend([0; 4]);
    } else {
        bytes.truncate(4);
        bytes.extend([0; 4]);
    }
    bytes.extend(1.7e9_f64.to_le_bytes());
    bytes.extend(1e-7_f64.to_le_bytes());
    if is_new {
        bytes.extend([0, 0, 4, 0, u8::from(merged), u8::from(merged), 1, 0]);
        bytes.resize(1024, 0);
    } else {
        bytes.extend([0; 8]);
        if merged {
            bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
    for name in [
        "open64",
        "write",
        "pread",
        "lseek",
        "fwrite",
        "close",
        "MPI_File_open",
        "MPI_File_write_at_all",
        "MPI_File_seek",
        "MPI_File_set_view",
        "MPI_File_read",
        "MPI_Bcast",
        "umask",
    ] {
        bytes.extend(name.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}
