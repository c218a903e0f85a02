//! Buffered streams: what is recorded of them, and that they stay the program's.

use crate::common::{Job, compile, folder, record_in};
use pio_trace::{Op, Target};

fn program(name: &str, bytes: usize) -> Job {
    let folder = folder();
    let program = compile("cc", name, folder.path(), &["-O1"]);
    let file = folder.path().join("file");
    std::fs::write(&file, vec![b'1'; bytes]).expect("a file");
    let job = record_in(folder, vec![program.into(), file.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    job
}

/// The stream stayed with the thread that was no more: the next call on it waited for ever.
#[test]
fn a_thread_that_is_cancelled_gives_its_stream_back() {
    program("cancelled", 100_000);
}

/// What was behind the last whole item, or a zero byte of a line, was not counted, and the next calls were put before their place.
#[test]
fn parts_of_items_and_lines_with_zero_bytes_are_counted() {
    let job = program("parts", 1500);
    let on_file = job.on("/file").into_iter().filter(|event| matches!(event.op(), Op::Read | Op::Write));
    let seen = on_file.map(|event| match event.target {
        Target::Extent { offset } => (event.call.name(), offset, event.size, event.result),
        other => panic!("{event:?} has {other:?}"),
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            ("fread", 0, 10_000, 1500),
            ("fread", 1500, 10_000, 0),
            ("fwrite", 0, 10, 10),
            ("fread", 0, 99, 6),
            ("fread", 6, 2, 2),
            ("fread", 8, 99, 1),
            ("fread", 9, 99, 1),
            ("fread", 10, 99, 0),
            ("fwrite", 0, 10_000, 1500),
        ]
    );
}

/// The next file with the number of a folder's or a pipe's descriptor was taken for none of the job's.
#[cfg(target_arch = "x86_64")] // it opens by an instruction
#[test]
fn what_closes_a_descriptor_inside_the_c_library_gives_its_number_free() {
    let job = program("numbers", 10);
    assert_eq!(job.bytes("/file", Op::Read), 20);
}
