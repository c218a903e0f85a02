//! Where the time of MPI-IO calls goes: small traces made by hand, with every number worked out; random ones against a look
//! at every instant; and programs, recorded as they run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use pio_explain::findings::{Detail, Finding, Kind, Reference, Source};
use pio_explain::{Explanation, NotKnown, TimeSplit};
use pio_record::{MPI_SHIM, Options, Settings, compile_shim, run};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Op, Process, ProcessId, Splits, Tables, Target, Trace,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A file that so many ranks have open together, by handles of their own numbers; and by one more of POSIX.
fn tables(ranks: u32) -> Tables {
    let process = |rank| Process {
        rank: Some(rank),
        pid: 100 + rank,
        host: "node1".into(),
        command: "app".into(),
        start_ns: 0,
        end_ns: Some(1000 * MS),
    };
    let together =
        |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks, collective: u64::from(ranks > 1) };
    let alone = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 1, collective: 0 };
    Tables {
        processes: (0..ranks).map(process).collect(),
        files: vec![File { path: "/data".into() }],
        handles: (0..ranks).map(together).chain((0..ranks).map(alone)).collect(),
        ..Tables::default()
    }
}

/// A rank's part of its operation number `operation`.
fn call(call: Call, rank: u32, operation: u64, start_ns: u64, end_ns: u64) -> Event {
    let mut event = Event::new(call, ProcessId(rank), start_ns);
    event.handle = Some(HandleId(rank));
    event.elapsed_ns = end_ns - start_ns;
    event.operation = operation;
    event.flags = Flags::COLLECTIVE;
    event
}

fn write_all(rank: u32, operation: u64, start_ms: u64, end_ms: u64) -> Event {
    let mut event = call(Call::MpiFileWriteAtAll, rank, operation, start_ms * MS, end_ms * MS);
    event.target = Target::Extent { offset: (operation * 100 + u64::from(rank)) << 20 };
    (event.size, event.result) = (1 << 20, 1 << 20);
    event
}

/// What the same operation does at the files.
fn at_files(ranks: u32, rank: u32, operation: u64, start_ns: u64, end_ns: u64) -> Event {
    let mut event = call(Call::Pwrite, rank, operation, start_ns, end_ns);
    event.handle = Some(HandleId(ranks + rank));
    event.target = Target::Extent { offset: 0 };
    (event.size, event.result) = (1 << 20, 1 << 20);
    event.flags = Flags::PHYSICAL;
    event
}

fn explained(tables: &Tables, mut events: Vec<Event>) -> Explanation {
    events.sort_by_key(|event| event.start_ns);
    Explanation::of(tables, events)
}

fn split_of(found: &Explanation, op: Op) -> [u64; 5] {
    let found = found.mpi_io.operations.iter().find(|(known, _)| *known == op);
    let TimeSplit { calls, late_ns, library_ns, files_ns, unknown_ns } =
        found.map(|found| found.1).unwrap_or_default();
    [calls, late_ns / MS, library_ns / MS, files_ns / MS, unknown_ns / MS]
}

#[test]
fn a_collective_call_is_late_ranks_then_library_and_files() {
    let file = |rank, start: u64, end: u64| at_files(3, rank, 1, start * MS, end * MS);
    let events = vec![
        write_all(0, 1, 0, 100),
        write_all(1, 1, 10, 100),
        write_all(2, 1, 30, 90),
        // Before the last rank came: files, not late ranks.
        file(0, 5, 8),
        // Two ranks at the files at a time count once, and for all three.
        file(0, 40, 60),
        file(1, 50, 70),
    ];
    let found = explained(&tables(3), events);
    // Rank 0: late 30 - 3, files 3 + 30, library 40. Rank 1: 20, 30, 40. Rank 2: 0, 30, 30.
    assert_eq!(split_of(&found, Op::Write), [3, 47, 110, 93, 0]);
    assert!(found.mpi_io.files_seen);
}

/// Late ranks, library and files of each collective call, in order of the events, milliseconds.
fn splits_ms(tables: &Tables, mut events: Vec<Event>) -> Vec<Option<[u64; 3]>> {
    events.sort_by_key(|event| event.start_ns);
    let splits = pio_explain::splits_of(tables, &events);
    let mut walk = splits.walk();
    let of = |event: &Event| {
        let split = walk.of(event)?;
        Some([split.late_ns / MS, split.library_ns / MS, split.files_ns.unwrap_or_default() / MS])
    };
    let all: Vec<_> = events.iter().map(of).collect();
    events.iter().zip(all).filter(|(event, _)| Splits::has_one(event)).map(|(_, split)| split).collect()
}

#[test]
fn a_communicator_of_one_waits_for_nobody() {
    // Once the trace was said to lack calls of other ranks.
    let alone = |rank| Handle { file: FileId(rank), process: ProcessId(rank), ranks: 1, collective: 0 };
    let mut tables = Tables {
        files: (0..4).map(|file| File { path: format!("/data/{file}") }).collect(),
        handles: (0..4).map(|number| alone(number % 2)).collect(),
        ..tables(2)
    };
    let file = |rank, start: u64, end: u64| at_files(2, rank, 1, start * MS, end * MS);
    let events = vec![write_all(0, 1, 0, 50), write_all(1, 1, 100, 150), file(0, 10, 30), file(1, 110, 140)];
    let found = explained(&tables, events.clone());
    assert_eq!(split_of(&found, Op::Write), [2, 0, 50, 50, 0]);
    assert_eq!(found.mpi_io.not_known, None);
    // Other tools do not say which ranks opened a file together.
    tables.notes.push(("imported from".into(), "a log".into()));
    let found = explained(&tables, events);
    assert_eq!((split_of(&found, Op::Write)[4], found.mpi_io.not_known), (100, Some(NotKnown::Opens)));
}

#[test]
fn why_parts_are_not_known() {
    let why = |tables: &Tables, ranks: u32| {
        let events = (0..ranks).map(|rank| write_all(rank, 1, 0, 50)).collect();
        explained(tables, events).mpi_io.not_known
    };
    assert_eq!(why(&tables(2), 2), None);
    assert_eq!(why(&tables(2), 1), Some(NotKnown::Lacking));
    // Two jobs of two ranks that have the same file open: the recorder takes their opens for one.
    let mut both = tables(4);
    both.handles.iter_mut().for_each(|handle| handle.ranks = 2);
    assert_eq!(why(&both, 4), Some(NotKnown::Unmatched));
}

#[test]
fn each_ranks_call_has_its_own_parts() {
    let file = |rank, operation, start: u64, end: u64| at_files(3, rank, operation, start * MS, end * MS);
    let mut alone = call(Call::MpiFileWriteAt, 0, 9, 120 * MS, 130 * MS);
    alone.flags = Flags::NONE;
    let events = vec![
        write_all(0, 1, 0, 100),
        write_all(1, 1, 10, 100),
        write_all(2, 1, 30, 90),
        file(0, 1, 5, 8),
        file(0, 1, 40, 60),
        file(1, 1, 50, 70),
        alone,
        write_all(2, 2, 150, 170),
        write_all(0, 2, 160, 170),
        write_all(1, 2, 165, 170),
    ];
    let first = [Some([27, 40, 33]), Some([20, 40, 30]), Some([0, 30, 30])];
    let second = [Some([15, 5, 0]), Some([5, 5, 0]), Some([0, 5, 0])];
    assert_eq!(splits_ms(&tables(3), events.clone()), [first, second].concat());
    // What one rank alone does is known of nobody.
    let lacking: Vec<Event> = events.into_iter().filter(|event| event.process != ProcessId(2)).collect();
    assert_eq!(splits_ms(&tables(3), lacking), [None; 4]);
}

#[test]
fn a_call_at_the_files_may_span_the_last_arrival_and_the_end_of_others() {
    let file = |rank, start: u64, end: u64| at_files(3, rank, 1, start * MS, end * MS);
    let events =
        vec![write_all(0, 1, 0, 50), write_all(1, 1, 0, 25), write_all(2, 1, 20, 50), file(0, 10, 40)];
    let found = explained(&tables(3), events);
    // Rank 0: late 10, files 30, library 10. Rank 1: late 20, files 5. Rank 2: files 20, library 10.
    assert_eq!(split_of(&found, Op::Write), [3, 30, 20, 55, 0]);
}

#[test]
fn who_leaves_before_the_last_comes_did_not_wait_for_it() {
    let events = vec![
        write_all(0, 1, 0, 10),
        write_all(1, 1, 4, 12),
        write_all(2, 1, 50, 60),
        at_files(3, 0, 1, 6 * MS, 8 * MS),
    ];
    let found = explained(&tables(3), events);
    // Rank 0 may have waited for rank 1: late 4, files 2, library 4. Rank 1: library 8. Rank 2: library 10.
    assert_eq!(split_of(&found, Op::Write), [3, 4, 22, 2, 0]);
}

#[test]
fn opens_views_and_closes_are_split_too_and_calls_alone_wait_for_nobody() {
    let mut alone = call(Call::MpiFileWriteAt, 0, 4, 60 * MS, 70 * MS);
    alone.flags = Flags::NONE;
    let events = vec![
        call(Call::MpiFileOpen, 0, 1, 0, 20 * MS),
        call(Call::MpiFileOpen, 1, 1, 5 * MS, 20 * MS),
        at_files(2, 0, 1, 10 * MS, 15 * MS),
        call(Call::MpiFileSetView, 0, 2, 30 * MS, 42 * MS),
        call(Call::MpiFileSetView, 1, 2, 40 * MS, 42 * MS),
        alone,
        at_files(2, 0, 4, 61 * MS, 64 * MS),
        call(Call::MpiFileClose, 0, 5, 80 * MS, 91 * MS),
        call(Call::MpiFileClose, 1, 5, 90 * MS, 91 * MS),
    ];
    let found = explained(&tables(2), events);
    assert_eq!(split_of(&found, Op::Open), [2, 5, 20, 10, 0]);
    assert_eq!(split_of(&found, Op::View), [2, 10, 4, 0, 0]);
    assert_eq!(split_of(&found, Op::Write), [1, 0, 7, 3, 0]);
    assert_eq!(split_of(&found, Op::Close), [2, 10, 2, 0, 0]);
}

#[test]
fn nothing_is_guessed_where_ranks_or_calls_are_missing() {
    let both = || vec![write_all(0, 1, 0, 100), write_all(1, 1, 10, 100)];
    // A rank that a filter left out.
    let mut lacking = tables(3);
    lacking.handles.retain(|handle| handle.process != ProcessId(2));
    assert_eq!(split_of(&explained(&lacking, both()), Op::Write), [2, 0, 0, 0, 190]);
    // A call that one rank alone made.
    let mut events = both();
    events.push(write_all(0, 2, 200, 300));
    assert_eq!(split_of(&explained(&tables(2), events), Op::Write), [3, 10, 180, 0, 100]);
    // Ranks that make different calls.
    let events = vec![write_all(0, 1, 0, 100), call(Call::MpiFileSync, 1, 1, 0, 100 * MS)];
    let found = explained(&tables(2), events);
    assert_eq!((split_of(&found, Op::Write)[4], split_of(&found, Op::Sync)[4]), (100, 100));
    // A budget that left out calls here and there.
    let mut thinned = tables(2);
    thinned.notes.push(("thinned out".into(), "some".into()));
    assert_eq!(split_of(&explained(&thinned, both()), Op::Write), [2, 0, 0, 0, 190]);
    // Logs of other tools do not say who opened together.
    let mut imported = tables(2);
    imported.handles.iter_mut().for_each(|handle| (handle.ranks, handle.collective) = (1, 0));
    imported.notes.push(("imported from".into(), "a log".into()));
    assert_eq!(split_of(&explained(&imported, both()), Op::Write), [2, 0, 0, 0, 190]);
}

/// Ten rounds of 50 ms; rank 1 computes for 40 ms before each.
fn late_trace() -> Vec<Event> {
    late_by(40)
}

/// Two jobs of two ranks, one after the other or side by side: what ranks wait is shared by those that wait together, not by
/// all of the trace.
#[test]
fn ranks_that_wait_are_those_of_the_collective_call() {
    let cost = |later_ns: u64| {
        let mut both = tables(4);
        for (number, handle) in both.handles.iter_mut().enumerate().take(4) {
            (handle.ranks, handle.collective) = (2, number as u64 / 2 + 1);
        }
        let mut events = late_trace();
        events.retain(|event| event.call == Call::MpiFileWriteAtAll);
        let other = events.clone().into_iter().map(|event| Event {
            process: ProcessId(event.process.0 + 2),
            handle: event.handle.map(|handle| HandleId(handle.0 + 2)),
            operation: event.operation + 100,
            start_ns: event.start_ns + later_ns,
            ..event
        });
        events.extend(other.collect::<Vec<_>>());
        let found = explained(&both, events);
        let finding = found.findings.iter().find(|finding| finding.kind == Kind::LateRanks);
        finding.and_then(|finding| finding.lost_ns).map(|lost_ns| (lost_ns / MS as f64).round())
    };
    // Each job loses 200 ms.
    assert_eq!(cost(1000 * MS), Some(400.0));
    assert_eq!(cost(0), Some(200.0));
}

/// The same, but that it computes for so many ms of the 40.
fn late_by(think_ms: u64) -> Vec<Event> {
    let rounds = (0..10).flat_map(move |i| {
        let start = 100 * i;
        let mut late = write_all(1, i + 1, start + 40, start + 50);
        late.think_ns = think_ms * MS;
        let file = |rank: u32| at_files(2, rank, i + 1, (start + 41) * MS, (start + 50) * MS);
        [write_all(0, i + 1, start, start + 50), late, file(0), file(1)]
    });
    rounds.collect()
}

#[test]
fn a_late_rank_is_named_and_costs_what_the_others_wait_on_average() {
    let found = explained(&tables(2), late_trace());
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!(finding.kind, Kind::LateRanks);
    // Rank 0 waits 400 ms: if both computed 20 ms, it would be 200 ms less.
    assert_eq!(finding.lost_ns, Some(200.0 * MS as f64));
    let expected = Detail::Last {
        process: ProcessId(1),
        calls: 10,
        of: 10,
        waited_ns: 400 * MS,
        think_ns: 400 * MS,
        io_ns: 0,
    };
    assert_eq!(finding.detail, expected);
}

/// Small pieces in equal steps by collective calls, for one of which another rank is waited for.
#[test]
fn waiting_for_late_ranks_is_charged_to_nothing_else() {
    let events = |wait: u64| -> Vec<Event> {
        let round = |i: u64| {
            let start = (wait + 4) * i;
            let mut parts = [
                write_all(0, i + 1, start, start + wait + 2),
                write_all(1, i + 1, start + wait, start + wait + 2),
            ];
            for (rank, part) in parts.iter_mut().enumerate() {
                part.target = Target::Extent { offset: (i * 2 + rank as u64) * 8192 };
                (part.size, part.result) = (4096, 4096);
            }
            let file = at_files(2, 0, i + 1, (start + wait + 1) * MS, (start + wait + 2) * MS);
            parts.into_iter().chain([file])
        };
        (0..200).flat_map(round).collect()
    };
    let cost = |wait| {
        let found = explained(&tables(2), events(wait));
        let pieces = found.findings.iter().find(|finding| finding.kind == Kind::NoView).cloned();
        pieces.map(|pieces: Finding| pieces.cost.time_ns)
    };
    // All but the first two, from which the steps are seen.
    assert_eq!(cost(0), Some(198 * 4 * MS));
    assert_eq!(cost(20), cost(0));
}

#[test]
fn time_inside_the_library_is_a_finding_of_its_own() {
    let events = || {
        let round = |i: u64| {
            let start = 100 * i;
            let file = |rank: u32| at_files(2, rank, i + 1, (start + 70) * MS, (start + 80) * MS);
            [write_all(0, i + 1, start, start + 80), write_all(1, i + 1, start, start + 80), file(0), file(1)]
        };
        (0..10).flat_map(round).collect()
    };
    let found = explained(&tables(2), events());
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!(
        (finding.kind, finding.detail),
        (Kind::InsideLibrary, Detail::AtFiles { time_ns: 200 * MS, mean_request_bytes: 1 << 20 })
    );
    assert_eq!(finding.cost.time_ns, 1400 * MS);
    assert_eq!(finding.lost_ns, None, "what an exchange would take is not assumed");
    // The recorder measured what copies take: four of the 20 MiB, of two ranks side by side.
    let mut measured = tables(2);
    measured.notes.push(("large requests".into(), "cached read 4000 (3900-4100) MB/s, in /".into()));
    let finding = explained(&measured, events()).findings.remove(0);
    let lost_ns = finding.lost_ns.expect("a cost");
    assert_eq!(
        finding.references.read,
        Some(Reference { bytes_per_s: 4e9, source: Source::Recorder }),
        "reports say what it was measured by"
    );
    let copies_ms = 4.0 * f64::from(20 << 20) / 4e9 * 1e3;
    assert!((lost_ns / MS as f64 - (1400.0 - copies_ms) / 2.0).abs() < 0.01, "{lost_ns}");
    measured.notes[0].1 = "cached read 100 (90-110) MB/s, in /".into();
    let found = explained(&measured, events());
    assert!(found.findings.is_empty(), "on such a machine, the library takes no longer than it must");
    // Where nobody saw the files, it cannot be told from their time.
    let unseen = (0..10)
        .flat_map(|i| [write_all(0, i, 100 * i, 100 * i + 80), write_all(1, i, 100 * i, 100 * i + 80)]);
    let found = explained(&tables(2), unseen.collect());
    assert!(!found.mpi_io.files_seen && found.findings.is_empty(), "{:?}", found.findings);
}

/// A rank that comes late without having computed waited for a processor, if its host has too few, and the kernel does not
/// say that it slept. No second is charged to both findings.
#[test]
fn who_comes_late_for_want_of_a_processor_is_not_late_by_its_own_doing() {
    let costs = |notes: &[(&str, &str)], think_ms| {
        let mut tables = tables(2);
        tables.notes.extend(notes.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        let found = explained(&tables, late_by(think_ms));
        let cost = |kind| {
            let finding = found.findings.iter().find(|finding| finding.kind == kind)?;
            Some((finding.lost_ns? / MS as f64).round())
        };
        (cost(Kind::LateRanks), cost(Kind::TooManyRanks))
    };
    let (alone, crowded) = (("processors", "node1 2"), ("processors", "node1 1, node2 8"));
    // Before the first round nobody knows what the rank did: 20 ms on average of both ranks.
    assert_eq!(costs(&[alone], 0), (Some(200.0), None));
    assert_eq!(costs(&[("processors", "node2 1")], 0), (Some(200.0), None));
    assert_eq!(costs(&[crowded], 40), (Some(200.0), None));
    assert_eq!(costs(&[crowded], 0), (None, Some(185.0)));
    let waits = |text| ("waits for a processor", text);
    assert_eq!(costs(&[crowded, waits("process 1: 400000000 ns")], 0), (None, Some(185.0)));
    // It slept.
    assert_eq!(costs(&[crowded, waits("process 1: 0 ns")], 0), (Some(200.0), None));
    let mut tables = tables(2);
    tables.notes.push((crowded.0.into(), crowded.1.into()));
    let found = explained(&tables, late_by(0));
    let Detail::Crowded { ranks: 2, processors: 1, library_ns, starved_ns } = found.findings[0].detail else {
        panic!("{:?}", found.findings)
    };
    // All time of the calls, as the tables have it; of that, what can be for want of a processor.
    assert_eq!(found.findings[0].cost.time_ns, found.mpi_io.total().total_ns());
    assert_eq!((library_ns, starved_ns), (found.mpi_io.total().library_ns, 360 * MS));
}

/// One rank's call: pause before it, length, and calls at the files as permille of the length.
type Part = (u64, u64, Vec<(u64, u64)>);

fn rounds() -> impl Strategy<Value = Vec<Vec<Part>>> {
    let part = (0..30_u64, 1..40_u64, prop::collection::vec((0..1000_u64, 0..500_u64), 0..3));
    (1..5_usize)
        .prop_flat_map(move |ranks| prop::collection::vec(prop::collection::vec(part.clone(), ranks), 1..6))
}

/// A call of a rank, and what it does at the files: start and end, nanoseconds.
type Span = (u64, u64);

/// The same, instant by instant.
fn naive(round: &[(Span, Vec<Span>)]) -> [u64; 3] {
    let mut split = [0; 3];
    for ((start, end), own) in round {
        let last = round.iter().map(|((start, _), _)| *start).filter(|start| start < end).max().unwrap_or(0);
        let all_came = round.iter().map(|((start, _), _)| *start).max().unwrap_or(0);
        let within =
            |spans: &[Span], at: u64| spans.iter().any(|(from, until)| (*from..*until).contains(&at));
        for at in *start..*end {
            let any = at >= all_came && round.iter().any(|(_, spans)| within(spans, at));
            let part = match () {
                () if within(own, at) => 2,
                () if at < last => 0,
                () if any => 2,
                () => 1,
            };
            split[part] += 1;
        }
    }
    split
}

proptest! {
    #[test]
    fn the_parts_are_those_of_every_instant(rounds in rounds()) {
        let ranks = rounds[0].len() as u32;
        let (mut events, mut expected) = (Vec::new(), [0; 3]);
        let mut free = vec![0; ranks as usize];
        for (number, round) in rounds.iter().enumerate() {
            let calls: Vec<Span> = round.iter().zip(&mut free).map(|((pause, length, _), free)| {
                let start = *free + pause;
                *free = start + length;
                (start, start + length)
            }).collect();
            let all_came = calls.iter().map(|call| call.0).max().unwrap_or(0);
            let mut spans = Vec::new();
            for ((start, end), (_, length, files)) in calls.iter().zip(round) {
                let at = |part: &u64| start + length * part / 1000;
                let mut own: Vec<Span> =
                    files.iter().map(|(from, long)| (at(from), at(&(from + long)).min(*end))).collect();
                // Of who leaves early it is kept when it was at the files first and last, no more.
                if *end <= all_came {
                    own.truncate(1);
                }
                spans.push(((*start, *end), own));
            }
            let sums = naive(&spans);
            (0..3).for_each(|part| expected[part] += sums[part]);
            for (rank, ((start, end), own)) in spans.into_iter().enumerate() {
                events.push(call(Call::MpiFileWriteAll, rank as u32, number as u64 + 1, start, end));
                for (from, until) in own {
                    events.push(at_files(ranks, rank as u32, number as u64 + 1, from, until));
                }
            }
        }
        let split = explained(&tables(ranks), events).mpi_io.total();
        prop_assert_eq!([split.late_ns, split.library_ns, split.files_ns, split.unknown_ns], [expected[0], expected[1], expected[2], 0]);
    }
}

/// What is found in a run of a program of `late.c` by two ranks; none (and a message) without MPI.
fn recorded(name: &str, rounds: u32) -> Option<Explanation> {
    if !Command::new("mpicc").arg("-show").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no mpicc in the PATH");
        return None;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let shim = compile_shim(Path::new("mpicc"), MPI_SHIM, &folder.path().join("shim"))
        .expect("the recorder compiles");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/late.c");
    let program: PathBuf = folder.path().join("late");
    let compiled = Command::new("mpicc").args(["-O1", "-Wall"]).arg(source).arg("-o").arg(&program).status();
    assert!(compiled.expect("mpicc starts").success());
    let version = Command::new("mpiexec").arg("--version").output().expect("mpiexec beside mpicc");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let mut words: Vec<OsString> = ["env", "-C"].map(OsString::from).to_vec();
    words.extend([folder.path().into(), "mpiexec".into()]);
    if version.contains("Open MPI") || version.contains("OpenRTE") {
        words.extend(["--allow-run-as-root", "--oversubscribe"].map(OsString::from));
    }
    words.extend(["-n".into(), "2".into(), program.into(), name.into(), rounds.to_string().into()]);
    let options = Options {
        command: words,
        output: folder.path().join("job.pio"),
        mpi_shim: Some(shim),
        settings: Settings { measure: true, ..Settings::default() },
        ..Options::default()
    };
    let outcome = run(&options).expect("the job is recorded");
    assert!(outcome.status.success(), "{:?}: {:?}", options.command, outcome.status);
    let trace = Trace::open(&options.output).expect("the trace opens");
    let found = Explanation::of_trace(&trace, &mut |_| {}).expect("the trace can be read");
    let findings: Vec<_> =
        found.findings.iter().map(|finding| (finding.kind, finding.lost_ns.unwrap_or(0.0) / 1e6)).collect();
    println!("{name}, {} ms: {findings:?} (ms), {:?}", found.duration_ns / 1_000_000, found.mpi_io);
    Some(found)
}

/// Findings but those of a machine with one processor for two ranks.
fn kinds(found: &Explanation) -> Vec<Kind> {
    found.findings.iter().map(|finding| finding.kind).filter(|kind| *kind != Kind::TooManyRanks).collect()
}

#[test]
fn a_rank_that_computes_before_each_write_is_found() {
    let Some(found) = recorded("late-rank", 120) else { return };
    assert!(found.notes.iter().any(|(key, _)| key == "processors"), "{:?}", found.notes);
    let finding = found.findings.iter().find(|finding| finding.kind == Kind::LateRanks).expect("late ranks");
    let Detail::Last { process, calls, think_ns, .. } = finding.detail else {
        panic!("{:?}", finding.detail)
    };
    assert_eq!(found.processes.iter().find(|one| one.process == process).and_then(|one| one.rank), Some(1));
    // Open MPI lets ranks write without waiting, and wait when they close.
    assert!(calls >= 20 || split_of(&found, Op::Close)[1] > 100, "{:?}", finding.detail);
    assert!(calls < 20 || think_ns >= calls * MS, "{:?}", finding.detail);
    assert_eq!(kinds(&found)[0], Kind::LateRanks, "{:?}", found.findings);
}

#[test]
fn pieces_under_the_mpis_own_collective_calls_lose_time_in_the_library() {
    let Some(found) = recorded("pieces", 2) else { return };
    assert_eq!(kinds(&found).first(), Some(&Kind::InsideLibrary), "{:?}", found.findings);
}

#[test]
fn large_balanced_collective_calls_have_no_finding() {
    let Some(found) = recorded("balanced", 8) else { return };
    assert!(!kinds(&found).contains(&Kind::InsideLibrary), "{:?}", found.findings);
    assert!(!kinds(&found).contains(&Kind::NoView), "{:?}", found.findings);
}
