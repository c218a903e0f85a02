//! Traces. In a fuzzing build blocks are neither compressed nor checked by a checksum: what lies behind is to be reached.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use pio_layout::{Datatype, View};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
    TraceWriter, ViewId,
};

/// More than it takes to see every kind of block.
const MOST_BYTES: usize = 1 << 16;

fuzz_target!(
    init: {
        if let Some(path) = std::env::var_os("FUZZ_SEED") {
            seed(path.as_ref()).expect("a trace to begin with");
        }
    },
    |bytes: &[u8]| -> Corpus {
        if bytes.len() > MOST_BYTES {
            return Corpus::Reject;
        }
        if let Ok(trace) = Trace::from_bytes(bytes.to_vec(), "fuzz.pio") {
            trace.events().take(10_000).for_each(drop);
        }
        Corpus::Keep
    }
);

/// A small trace that has something of everything.
fn seed(path: &std::path::Path) -> Result<(), pio_trace::TraceError> {
    let filetype = Datatype::vector(5, 1, 25, &Datatype::bytes(4)).expect("it fits");
    let process = Process {
        rank: Some(0),
        pid: 1,
        host: "n".into(),
        command: "c".into(),
        start_ns: 0,
        end_ns: Some(9000),
    };
    let tables = Tables {
        job: "seed".into(),
        processes: vec![process],
        files: vec![File { path: "f".into() }],
        handles: vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 1 }],
        views: vec![View::new(0, 4, filetype).expect("whole etypes")],
        ..Tables::default()
    };
    let mut writer = TraceWriter::create(path, tables)?;
    let event = |call, target, start_ns| Event {
        call,
        process: ProcessId(0),
        thread: 0,
        handle: Some(HandleId(0)),
        target,
        memory: None,
        size: 20,
        result: 20,
        start_ns,
        elapsed_ns: 10,
        think_ns: 5,
        used_ns: (call == Call::MpiFileWriteAll).then_some(7),
        flags: Flags::COLLECTIVE,
        operation: 1,
    };
    for number in 0..4 {
        writer.push(&event(
            Call::MpiFileWriteAll,
            Target::View { view: ViewId(0), position: number },
            1000 * number + 100,
        ))?;
        writer.push(&event(Call::Pwrite, Target::Extent { offset: number * 20 }, 1000 * number + 200))?;
        writer.push(&event(Call::StrategyData, Target::Peer { rank: 1 }, 1000 * number + 300))?;
    }
    writer.finish()?;
    Ok(())
}
