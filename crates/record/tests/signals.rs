//! Signals end the job, not the recorder. Alone in its process: the signal is for whoever runs the recorder.

#[path = "all/common/mod.rs"]
#[allow(dead_code, reason = "most of it is for the other tests")]
mod common;

use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use common::{compile, folder, record_in};
use pio_trace::Op;

/// A signal to this process is for one job.
static ONE_JOB: Mutex<()> = Mutex::new(());

#[test]
fn a_terminated_job_is_collected() {
    let _one = ONE_JOB.lock().unwrap_or_else(PoisonError::into_inner);
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

/// As batch systems tell a job to write a checkpoint before its time is over.
#[test]
fn signals_that_a_job_handles_are_handed_on_and_end_nothing() {
    let _one = ONE_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder();
    let file = folder.path().join("file");
    let watched = file.clone();
    let teller = std::thread::spawn(move || {
        let own = std::process::id().to_string();
        for (signal, lines) in [("-USR1", 1), ("-USR2", 2), ("-HUP", 3)] {
            while fs::read_to_string(&watched).map_or(0, |text| text.lines().count()) < lines {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            assert!(Command::new("kill").args([signal, &own]).status().expect("kill").success());
        }
    });
    let script = format!(
        "for s in USR1 USR2; do trap \"echo got $s >> '{file}'\" $s; done; trap \"echo end >> '{file}'; exit 6\" HUP; \
         echo ready >> '{file}'; while :; do sleep 0.02; done",
        file = file.display()
    );
    let job = record_in(folder, vec!["sh".into(), "-c".into(), script.into()], |_| {});
    teller.join().expect("the teller");
    assert_eq!(job.outcome.status.code(), Some(6));
    assert!(job.bytes("/file", Op::Write) > 0);
}
