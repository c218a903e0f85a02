//! Signals end the job, not the recorder. Alone in its process: the signal is for whoever runs the recorder.

#[path = "all/common/mod.rs"]
#[allow(dead_code, reason = "most of it is for the other tests")]
mod common;

use std::fs;
use std::process::Command;

use common::{compile, folder, record_in};
use pio_trace::Op;

#[test]
fn a_terminated_job_is_collected() {
    let folder = folder();
    let program = compile("cc", "endings", folder.path(), &[]);
    let file = folder.path().join("file");
    let watched = file.clone();
    // As a batch system does: the signal goes to the process that runs the recorder, which is this one.
    let terminator = std::thread::spawn(move || {
        while fs::metadata(&watched).map_or(0, |metadata| metadata.len()) < 100_000 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let own = std::process::id().to_string();
        assert!(Command::new("kill").args(["-TERM", &own]).status().expect("kill").success());
    });
    let job = record_in(folder, vec![program.into(), file.into(), "wait".into()], |_| {});
    terminator.join().expect("the terminator");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&job.outcome.status), Some(15));
    assert_eq!(job.bytes("/file", Op::Write), 100_000);
}
