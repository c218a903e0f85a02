//! What a program says of itself, and what its files are on.

use std::process::Command;
use std::sync::Mutex;

use crate::common::{command, compile, folder, record_in};
use pio_record::Look;
use pio_trace::{Call, Flags, Layer, Target};

#[test]
fn marks_and_phases_are_in_the_trace() {
    let folder = folder();
    let program = compile("cc", "marks", folder.path(), &[]);
    let alone = Command::new(&program).output().expect("the program starts");
    assert_eq!(alone.stdout, b"not recorded\n", "{alone:?}");

    let home = folder.path().display().to_string();
    let job = record_in(folder, command(&["env", "-C", &home, &program.display().to_string()]), |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome.status);
    let tables = job.trace.tables();
    let marks: Vec<_> = job.events.iter().filter(|event| event.layer() == Layer::Mark).collect();
    let named = |name: &str| -> Vec<_> {
        marks.iter().filter(|event| tables.mark_of_event(event) == Some(name)).copied().collect()
    };
    let number = |event: &pio_trace::Event| match event.target {
        Target::Mark { number, .. } => number,
        _ => panic!("{event:?} is no mark"),
    };

    let (epochs, waits) = (named("epoch"), named("batch wait"));
    assert_eq!(
        epochs.iter().map(|event| (event.call, number(event))).collect::<Vec<_>>(),
        [(Call::Mark, 0), (Call::Mark, 1), (Call::Phase, 2),]
    );
    assert!(epochs[2].flags.contains(Flags::UNFINISHED));
    assert!(epochs[..2].iter().all(|event| event.elapsed_ns == 0 && event.flags == Flags::NONE));
    assert_eq!(waits.iter().map(|event| number(event)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);

    // Each phase has the calls within it, and the marks lie between them; times of calls are told to some microseconds.
    const NEAR_NS: u64 = 10_000;
    let calls = job.on("/data");
    assert_eq!(calls.len(), 18);
    for (wait, calls) in waits.iter().zip(calls.chunks(3)) {
        assert!(
            wait.start_ns <= calls[0].start_ns + NEAR_NS && calls[2].end_ns() <= wait.end_ns() + NEAR_NS,
            "{wait:?} {calls:?}"
        );
    }
    assert!(epochs[1].start_ns >= waits[2].end_ns() && epochs[1].start_ns <= waits[3].start_ns);

    let outer = named("outer");
    assert_eq!((outer.len(), number(outer[0]), outer[0].flags), (1, u64::MAX, Flags::NONE));
    // The child did not end what its parent began.
    let (ours, childs) = (named("of the parent"), named("in the child"));
    assert!(ours[0].elapsed_ns >= 20_000_000, "{ours:?}");
    assert_eq!((childs.len(), number(childs[0])), (1, 5));
    assert_ne!(childs[0].process, ours[0].process);

    assert_eq!(named(&"x".repeat(255)).len(), 1);
    assert_eq!(named("name 900").len(), 1);
    assert!(tables.mark_names.len() <= 1024 + 1, "{}", tables.mark_names.len());
    let summary = &job.outcome.summary;
    assert_eq!((summary.lost_calls, summary.damaged, summary.unfinished), (0, 0, 0));
}

static LAST_LOOK: Mutex<Option<Look>> = Mutex::new(None);

#[test]
fn calls_within_a_phase_are_counted_while_it_goes_on() {
    let folder = folder();
    let program = compile("cc", "marks", folder.path(), &[]);
    let home = folder.path().display().to_string();
    let command = command(&["env", "-C", &home, &program.display().to_string(), "for ever"]);
    let job = record_in(folder, command, |options| {
        options.live = Some(|look| *LAST_LOOK.lock().expect("no panic") = Some(*look));
    });
    assert_eq!(job.on("/data").len(), 3);
    let total = LAST_LOOK.lock().expect("no panic").expect("a look").total;
    // The write, and the file's open and close.
    assert_eq!((total.calls, total.writes, total.others), (3, 1, 2));
}

#[test]
fn files_are_on_file_systems() {
    let folder = folder();
    let (file, other) = (folder.path().join("file"), folder.path().join("other"));
    std::fs::write(&file, "text").expect("the file is written");
    // The shell opens, and cat finds a file open or opens it.
    let script = format!("cat {0} > {1}; cat < {1} > /dev/null", file.display(), other.display());
    let job = record_in(folder, command(&["sh", "-ec", &script]), |_| {});
    let tables = job.trace.tables();
    let kind_of = |path: &std::path::Path| {
        let path = path.display().to_string();
        let file = tables.files.iter().position(|file| file.path == path).expect("the file is in the trace");
        tables
            .file_system_of(pio_trace::FileId(file as u32))
            .map(|found| (found.kind.clone(), found.mount.clone()))
    };
    let expected = |path: &str| {
        let output = Command::new("findmnt").args(["-n", "-o", "FSTYPE,TARGET", "-T", path]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let (kind, mount) = text.lines().last()?.split_once(' ')?;
        Some((kind.to_owned(), mount.trim().to_owned()))
    };
    let found = kind_of(&file);
    assert!(found.is_some(), "{:?}", tables.file_systems);
    assert_eq!(found, kind_of(&other));
    if let Some(expected) = expected(&file.display().to_string()) {
        assert_eq!(found, Some(expected));
    } else {
        println!("skipped: no findmnt");
    }
}
