//! Buffered streams: what is recorded of them, and that they stay the program's.

use crate::common::{Job, compile, folder, record_in};

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
