//! Logs of other tools that hold calls: strace, fio, blktrace, CSV.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pio_trace::import::{self, Tool};

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, log)) = bytes.split_first() else { return };
    let tool = [Tool::Strace, Tool::Fio, Tool::Blktrace, Tool::Csv][usize::from(which % 4)];
    import::write_trace_from(tool, log, Path::new("log"), std::io::sink(), Path::new("trace"))
        .expect("a sink takes everything");
});
