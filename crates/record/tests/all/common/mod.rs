//! Compiles small programs, records them, and counts what the trace says.

pub(crate) mod strace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use pio_record::{Options, Outcome, run};
use pio_trace::{Call, Event, Trace};

/// A job's folder, trace and outcome.
pub(crate) struct Job {
    pub folder: tempfile::TempDir,
    pub outcome: Outcome,
    pub trace: Trace,
    pub events: Vec<Event>,
}

/// A folder outside `/tmp` is not needed: regular files anywhere are recorded.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

pub(crate) fn program_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles `tests/programs/NAME.c` into `folder`.
pub(crate) fn compile(compiler: &str, name: &str, folder: &Path, extra: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-g", "-Wall"])
        .arg(program_source(&format!("{name}.c")))
        .arg("-o")
        .arg(&program)
        .args(extra)
        .arg("-pthread")
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

pub(crate) fn command(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Records a command whose trace goes into `folder`.
pub(crate) fn record_in(
    folder: tempfile::TempDir,
    command: Vec<OsString>,
    change: impl FnOnce(&mut Options),
) -> Job {
    let mut options = Options { command, output: folder.path().join("job.pio"), ..Options::default() };
    change(&mut options);
    let outcome = run(&options).expect("the job is recorded");
    let trace = Trace::open(&options.output).expect("the trace opens");
    assert!(trace.damage().is_none(), "{:?}", trace.damage());
    let events: Vec<Event> = trace.events().map(|event| event.expect("an event")).collect();
    assert_eq!(events.len() as u64, outcome.summary.events);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".spool"))
        .collect();
    assert!(left.is_empty(), "spools are left: {left:?}");
    Job { folder, outcome, trace, events }
}

impl Job {
    /// The events on files whose path ends so.
    pub(crate) fn on<'a>(&'a self, suffix: &str) -> Vec<&'a Event> {
        let tables = self.trace.tables();
        let ends = |event: &&Event| {
            event.handle.and_then(|h| tables.file_of(h)).is_some_and(|file| file.path.ends_with(suffix))
        };
        self.events.iter().filter(ends).collect()
    }

    /// Bytes that these calls moved to or from files whose path ends so.
    pub(crate) fn bytes(&self, suffix: &str, op: pio_trace::Op) -> u64 {
        self.on(suffix).iter().filter(|e| e.op() == op).map(|e| e.transferred()).sum()
    }
}

/// How many of each call.
pub(crate) fn counts(events: &[&Event]) -> Vec<(&'static str, usize)> {
    let mut counts = Vec::new();
    for call in Call::ALL {
        let n = events.iter().filter(|e| e.call == *call).count();
        if n > 0 {
            counts.push((call.name(), n));
        }
    }
    counts
}
