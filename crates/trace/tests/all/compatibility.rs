//! Files of earlier versions stay readable.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::support::{all_events, event, small_job, tables, tables_of_version_9};
use pio_trace::{Call, Event, FileId, Flags, MarkNameId, Tables, Target, Trace, TraceWriter};

#[test]
fn version_1_is_read() {
    let trace = Trace::open(&path_of("version-1.pio")).unwrap();
    let mut expected = tables();
    expected.processes[0].end_ns = Some(3_000_000);
    assert_eq!(trace.tables(), &expected);
    assert_eq!(trace.damage(), None);
    assert_eq!(trace.blocks().len(), 2);
    assert_eq!(trace.duration_ns(), 3_000_000);
    assert_eq!(all_events(&trace), small_job());
}

/// A job with one call more of each of these numbers: those that came with a version.
fn calls_of(numbers: RangeInclusive<u16>) -> Vec<Event> {
    let calls = Call::ALL.iter().filter(|call| numbers.contains(&call.number()));
    let mut events = small_job();
    let start_ns = events.last().map_or(0, |event| event.start_ns);
    events.extend(calls.zip(1..).map(|(call, i)| Event {
        call: *call,
        handle: None,
        target: Target::None,
        size: 0,
        result: 0,
        ..event(start_ns + 1000 * i)
    }));
    events
}

fn calls_of_version_2() -> Vec<Event> {
    calls_of(26..=38)
}

/// HDF5 and PnetCDF.
fn calls_of_version_3() -> Vec<Event> {
    calls_of(512..=699)
}

/// Locks, libaio and io_uring; and names.
fn calls_of_version_4() -> Vec<Event> {
    let mut events = calls_of(39..=43);
    let start_ns = events.last().map_or(0, |event| event.start_ns);
    events.extend([1, 0, 1].into_iter().zip(1..).map(|(file, i)| Event {
        call: Call::Stat,
        handle: None,
        target: Target::Name { file: FileId(file), other: None },
        size: 0,
        result: 0,
        ..event(start_ns + 1000 * i)
    }));
    events
}

/// Calls with two names.
fn calls_of_version_5() -> Vec<Event> {
    let mut events = small_job();
    let start_ns = events.last().map_or(0, |event| event.start_ns);
    let names = [(Call::Rename, 0, Some(1)), (Call::Link, 1, Some(0)), (Call::Symlink, 1, None)];
    events.extend(names.into_iter().cycle().take(6).zip(1..).map(|((call, file, other), i)| Event {
        call,
        handle: None,
        target: Target::Name { file: FileId(file), other: other.map(FileId) },
        size: 0,
        result: 0,
        ..event(start_ns + 1000 * i)
    }));
    events
}

/// Requests to I/O servers.
fn calls_of_version_6() -> Vec<Event> {
    let mut events = small_job();
    let start_ns = events.last().map_or(0, |event| event.start_ns);
    let calls = [Call::ServerRead, Call::ServerWrite];
    events.extend(calls.into_iter().cycle().take(6).zip(1..).map(|(call, i)| Event {
        call,
        target: Target::Server { server: i as u32 % 3, offset: 8192 * i },
        size: 8192,
        result: 8192,
        ..event(start_ns + 1000 * i)
    }));
    events
}

/// An open of a file that memory did not have, beside one of a file that it had.
fn calls_of_version_7() -> Vec<Event> {
    [Flags::COLD, Flags::NONE, Flags::COLD | Flags::PHYSICAL]
        .into_iter()
        .zip(0..)
        .map(|(flags, i)| Event { flags, start_ns: 1000 * i, ..event(0) })
        .collect()
}

/// Calls that used a processor all the time, for a part of it, or not at all; and such of which that is not known.
fn calls_of_version_8() -> Vec<Event> {
    let used = [Some(1290), None, Some(1000), Some(0)];
    let calls = [Call::MpiFileWriteAtAll, Call::MpiBarrier, Call::Pread];
    calls
        .into_iter()
        .flat_map(|call| used.map(|used_ns| (call, used_ns)))
        .zip(0..)
        .map(|((call, used_ns), i)| Event { call, used_ns, ..event(1000 * i) })
        .collect()
}

/// Marks and phases, one of them unfinished, between calls.
fn calls_of_version_9() -> Vec<Event> {
    let mark = |call, name, number, i: u64| Event {
        call,
        handle: None,
        target: Target::Mark { name: MarkNameId(name), number },
        size: 0,
        result: 0,
        ..event(1000 * i)
    };
    vec![
        mark(Call::Mark, 0, 0, 0),
        mark(Call::Phase, 1, 0, 1),
        event(2000),
        mark(Call::Phase, 1, 1, 3),
        mark(Call::Mark, 0, 1, 4),
        Event { flags: Flags::UNFINISHED, elapsed_ns: 0, ..mark(Call::Phase, 1, u64::MAX, 5) },
    ]
}

/// What two processes do by turns, several of them starting together, through handles and views of their own.
fn calls_of_version_10() -> Vec<Event> {
    let mut events = calls_of_version_9();
    events.extend(small_job());
    events.extend(calls_of_version_8());
    // Readers put those that start together in order of process.
    events.sort_by_key(|event| (event.start_ns, event.process));
    events
}

/// Opens that say which line of a program they are at, beside one that does not.
fn calls_of_version_11() -> Vec<Event> {
    let site = |name, number| Target::Mark { name: MarkNameId(name), number };
    [site(0, 12), Target::None, site(1, u64::MAX)]
        .into_iter()
        .zip(0..)
        .map(|(target, i)| Event { target, start_ns: 1000 * i, ..event(0) })
        .collect()
}

/// An open that cuts its file, beside one that does not, and calls of other flags.
fn calls_of_version_12() -> Vec<Event> {
    [Flags::TRUNCATE, Flags::NONE, Flags::TRUNCATE | Flags::SYNC | Flags::PHYSICAL]
        .into_iter()
        .zip(0..)
        .map(|(flags, i)| Event { flags, used_ns: (i == 2).then_some(5), start_ns: 1000 * i, ..event(0) })
        .collect()
}

/// What the tables of a file of version 2 or later hold.
fn tables_of(name: &str) -> Tables {
    match name {
        "version-9.pio" | "version-10.pio" | "version-11.pio" | "version-12.pio" => tables_of_version_9(),
        _ => tables(),
    }
}

/// What the files of version 2 and later hold, oldest first.
fn later_versions() -> [(&'static str, Vec<Event>); 11] {
    [
        ("version-2.pio", calls_of_version_2()),
        ("version-3.pio", calls_of_version_3()),
        ("version-4.pio", calls_of_version_4()),
        ("version-5.pio", calls_of_version_5()),
        ("version-6.pio", calls_of_version_6()),
        ("version-7.pio", calls_of_version_7()),
        ("version-8.pio", calls_of_version_8()),
        ("version-9.pio", calls_of_version_9()),
        ("version-10.pio", calls_of_version_10()),
        ("version-11.pio", calls_of_version_11()),
        ("version-12.pio", calls_of_version_12()),
    ]
}

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Makes the file of the version that is written now. It must never change once that version is out:
/// `cargo test -p pio-trace --test all compatibility -- --ignored`
#[test]
#[ignore = "writes the golden file"]
fn make_newest_version() {
    let (name, events) = later_versions().into_iter().next_back().unwrap();
    let mut writer = TraceWriter::create(&path_of(name), tables_of(name)).unwrap();
    for event in events {
        writer.push(&event).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn later_versions_are_read() {
    for (name, expected) in later_versions() {
        let trace = Trace::open(&path_of(name)).unwrap();
        assert_eq!(trace.tables(), &tables_of(name), "{name}");
        assert_eq!(trace.damage(), None, "{name}");
        assert_eq!(all_events(&trace), expected, "{name}");
    }
}
