//! What findings cost, of calls whose waste is known exactly.

use pio_explain::Explanation;
use pio_explain::findings::{Finding, Kind};
use pio_trace::{Call, Event, File, FileId, Handle, HandleId, Process, ProcessId, Tables, Target};

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Ranks, each with a file of its own (handle and file are its number) and the one that all share (handle `ranks` + its number).
fn tables(ranks: u32) -> Tables {
    let process = |rank| Process {
        rank: Some(rank),
        pid: rank,
        host: "host".into(),
        command: "app".into(),
        start_ns: 0,
        end_ns: None,
    };
    let handle = |number| Handle {
        file: FileId(u32::min(number, ranks)),
        process: ProcessId(number % ranks),
        ranks: 1,
        collective: 0,
    };
    Tables {
        processes: (0..ranks).map(process).collect(),
        files: (0..=ranks).map(|file| File { path: format!("/data/{file}") }).collect(),
        handles: (0..2 * ranks).map(handle).collect(),
        ..Tables::default()
    }
}

/// A call on the rank's own file.
fn call(call: Call, rank: u32, start_ns: u64, elapsed_ns: u64) -> Event {
    Event { handle: Some(HandleId(rank)), elapsed_ns, ..Event::new(call, ProcessId(rank), start_ns) }
}

/// The same, of a call that moves bytes.
fn moving(call_of: Call, rank: u32, (start_ns, elapsed_ns): (u64, u64), offset: u64, bytes: u64) -> Event {
    Event {
        target: Target::Extent { offset },
        size: bytes,
        result: bytes as i64,
        ..call(call_of, rank, start_ns, elapsed_ns)
    }
}

/// What is found in calls, in any order.
fn found(ranks: u32, mut events: Vec<Event>) -> Explanation {
    events.sort_by_key(|event| event.start_ns);
    for (index, event) in events.iter_mut().enumerate() {
        event.operation = index as u64 + 1;
    }
    Explanation::of(&tables(ranks), events)
}

fn of_kind(found: &Explanation, kind: Kind) -> Option<&Finding> {
    found.findings.iter().find(|finding| finding.kind == kind)
}

/// What a finding costs, milliseconds.
fn lost_ms(found: &Explanation, kind: Kind) -> f64 {
    let finding = of_kind(found, kind).unwrap_or_else(|| panic!("{kind:?}: {:?}", found.findings));
    finding.lost_ns.expect("a cost") / 1e6
}

/// Writes of 1 MiB: of the first rank by four threads side by side, of the others one behind the other.
fn writes_of_threads(elapsed_ns: u64) -> Explanation {
    let of_first = (0..40).map(|i| {
        let times = (i / 4 * elapsed_ns, elapsed_ns);
        Event { thread: (i % 4) as u32, ..moving(Call::Pwrite, 0, times, i * MIB, MIB) }
    });
    let of_others = (1..4).flat_map(|rank| {
        (0..40).map(move |i| moving(Call::Pwrite, rank, (i * 10 * MS, 10 * MS), i * MIB, MIB))
    });
    found(4, of_first.chain(of_others).collect())
}

/// Every rank is in I/O for 400 ms; but the first one's calls take four times as long as those of the others.
#[test]
fn a_rank_whose_threads_write_side_by_side_is_no_straggler() {
    assert_eq!(of_kind(&writes_of_threads(40 * MS), Kind::Straggler), None);
}

#[test]
fn a_straggler_with_threads_is_told_by_its_time_in_io() {
    let found = writes_of_threads(100 * MS);
    assert_eq!(lost_ms(&found, Kind::Straggler), 600.0);
    assert_eq!(of_kind(&found, Kind::Straggler).map(|one| one.cost.time_ns), Some(1000 * MS));
}

/// Each call moves 2 MiB and the next begins 1 MiB further: half of its bytes are new.
#[test]
fn calls_that_move_half_of_their_bytes_again_cost_half_of_their_time() {
    for (call, kind) in [(Call::Pread, Kind::RedundantReads), (Call::Pwrite, Kind::Overwrites)] {
        let calls = (0..40).map(|i| moving(call, 0, (i * 10 * MS, 9 * MS), i * MIB, 2 * MIB));
        let found = found(1, calls.collect());
        assert_eq!(lost_ms(&found, kind), 39.0 * 9.0 / 2.0);
    }
}

#[test]
fn attributes_of_open_files_are_charged_to_the_files() {
    let own = (0..2000).map(|i| call(Call::Stat, 0, i * MS, MS / 2)).collect();
    let found_own = found(1, own);
    let storm = of_kind(&found_own, Kind::MetadataStorm).expect("a finding");
    assert_eq!(storm.files.iter().map(|file| file.id).collect::<Vec<_>>(), [FileId(0)]);
    // Of the file that all ranks have open.
    let shared = (0..4).flat_map(|rank| {
        let ask = move |i| call(Call::Stat, rank, i * MS, MS / 2);
        (0..500).map(move |i| Event { handle: Some(HandleId(4 + rank)), ..ask(i) })
    });
    let found_shared = found(4, shared.collect());
    let by_all = of_kind(&found_shared, Kind::SameNamesByAll).expect("a finding");
    assert_eq!(by_all.files.iter().map(|file| file.id).collect::<Vec<_>>(), [FileId(4)]);
}

#[test]
fn reading_what_others_read_at_the_same_time_costs_their_part_of_the_time() {
    // One rank must go on reading: three quarters of what four take at a time, 360 ms, are lost.
    let reads = (0..4).flat_map(|rank| {
        let read = move |i| moving(Call::Pread, rank, (i * 9 * MS, 9 * MS), i * MIB, MIB);
        (0..40).map(move |i| Event { handle: Some(HandleId(4 + rank)), ..read(i) })
    });
    assert_eq!(lost_ms(&found(4, reads.collect()), Kind::SameReadByAll), 270.0);
}

#[test]
fn seeks_that_fail_and_those_of_files_without_requests_come_before_none() {
    let seek = |i: u64| call(Call::Lseek, 0, i * 2 * MS, MS);
    let read = |i: u64| moving(Call::Pread, 0, (i * 2 * MS + MS, MS / 2), i * MIB, MIB);
    let seeks = |result: i64, reads: u64| {
        let seeks = (0..300).map(|i| Event { result, ..seek(i) });
        found(1, seeks.chain((0..reads).map(read)).collect())
    };
    assert_eq!(lost_ms(&seeks(0, 300), Kind::Seeks), 300.0);
    for (result, reads) in [(-29, 0), (-29, 300), (0, 0)] {
        assert_eq!(of_kind(&seeks(result, reads), Kind::Seeks), None, "{result}, {reads} reads");
    }
}
