//! Darshan logs: header, names, records, and the trace that is made of their accesses.
#![no_main]

use std::path::Path;

use libfuzzer_sys::{Corpus, fuzz_target};
use pio_import::darshan::{Log, write_trace};

/// More than it takes to see every module.
const MOST_BYTES: usize = 1 << 14;

fuzz_target!(
    init: {
        if let Some(path) = std::env::var_os("FUZZ_SEED") {
            std::fs::write(path, seed()).expect("a log to begin with");
        }
    },
    |bytes: &[u8]| -> Corpus {
        if bytes.len() > MOST_BYTES {
            return Corpus::Reject;
        }
        let Ok(log) = Log::from_bytes(bytes.to_vec(), "fuzz.darshan") else {
            return Corpus::Keep;
        };
        for region in log.modules() {
            if let Some(mut records) = log.records(region.module) {
                while records.next().is_some() {}
            }
        }
        log.lustre().into_iter().flatten().for_each(drop);
        log.heatmaps().into_iter().flatten().for_each(drop);
        write_trace(&log, std::io::sink(), Path::new("fuzz.pio")).expect("a sink takes everything");
        Corpus::Keep
    }
);

/// An uncompressed log of version 3.21 with room for a record in every module: what lies behind is to be reached.
fn seed() -> Vec<u8> {
    const HEADER_LEN: u64 = 360;
    const JOB_LEN: u64 = 4096;
    const REGION_LEN: u64 = 512;
    let mut bytes = b"3.21\0\0\0\0".to_vec();
    bytes.extend(6_567_223u64.to_le_bytes());
    bytes.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    for region in 0..17 {
        bytes.extend((HEADER_LEN + JOB_LEN + region * REGION_LEN).to_le_bytes());
        bytes.extend(REGION_LEN.to_le_bytes());
    }
    for version in [0u32, 4, 3, 3, 2, 3, 2, 2, 2, 1, 2, 1, 1, 1, 1, 1] {
        bytes.extend(version.to_le_bytes());
    }
    bytes.resize((HEADER_LEN + JOB_LEN + 17 * REGION_LEN) as usize, 0);
    bytes
}
