//! Requests and the pages of a file: whose writes wait because a page must be fetched before a part of it is written.

use pio_explain::Explanation;
use pio_explain::findings::{Detail, Kind};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, LargeRequests, MeasuredRate, Process, ProcessId,
    Stripes, Tables, Target,
};

const US: u64 = 1000;
/// What a write takes if nothing must be fetched for it, and if a page must.
const QUICK: u64 = 5 * US;
const FETCH: u64 = 105 * US;

/// A file in which the write of a whole page takes so long, and that of a part of one, nanoseconds.
fn measured(whole_ns: f64, part_ns: f64) -> String {
    let rate = |bytes: f64, ns: f64| {
        let bytes_per_s = bytes / ns * 1e9;
        Some(MeasuredRate { bytes_per_s, low: bytes_per_s, high: bytes_per_s })
    };
    let rates = LargeRequests {
        folder: "/disk".into(),
        write: rate(2e9, 1e9),
        page_write: rate(4096.0, whole_ns),
        part_write: rate(LargeRequests::PART as f64, part_ns),
        ..LargeRequests::default()
    };
    rates.to_string()
}

/// What is found in writes of one process (offset, bytes, nanoseconds), made one behind the other.
fn found(note: Option<String>, opened: Flags, writes: &[(u64, u64, u64)]) -> Explanation {
    let process =
        Process { rank: None, pid: 1, host: "host".into(), command: "app".into(), start_ns: 0, end_ns: None };
    let tables = Tables {
        processes: vec![process],
        files: vec![File { path: "/disk/data".into() }],
        handles: vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 }],
        notes: note.into_iter().map(|note| (LargeRequests::NOTE.into(), note)).collect(),
        ..Tables::default()
    };
    let mut events = vec![Event::new(Call::Open, ProcessId(0), 0)];
    (events[0].handle, events[0].elapsed_ns, events[0].flags) = (Some(HandleId(0)), US, opened);
    let mut at_ns = 2 * US;
    for &(offset, bytes, elapsed_ns) in writes {
        let mut event = Event::new(Call::Pwrite, ProcessId(0), at_ns);
        event.handle = Some(HandleId(0));
        event.target = Target::Extent { offset };
        (event.size, event.result, event.elapsed_ns) = (bytes, bytes as i64, elapsed_ns);
        event.operation = events.len() as u64;
        events.push(event);
        at_ns += elapsed_ns + US;
    }
    Explanation::of(&tables, events)
}

fn kinds(found: &Explanation) -> Vec<Kind> {
    found.findings.iter().map(|finding| finding.kind).collect()
}

/// Of a local disk: whole pages wait for nothing.
fn disk() -> Option<String> {
    Some(measured(4_000.0, 104_000.0))
}

/// Offsets of `count` records of `bytes`, in an order without equal steps.
fn shuffled(count: u64, bytes: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| i * i % 1009 * bytes * 3)
}

#[test]
fn records_updated_in_order_wait_for_each_page_that_they_end_in() {
    for bytes in [10_000, 70_000] {
        let writes: Vec<_> = (0..1000).map(|i| (i * bytes, bytes, FETCH + bytes / 2)).collect();
        let found = found(disk(), Flags::NONE, &writes);
        assert_eq!(kinds(&found).first(), Some(&Kind::UnalignedRequests), "{bytes}");
        let finding = &found.findings[0];
        let lost_ms = finding.lost_ns.expect("a cost") / 1e6;
        assert!((100.0..110.0).contains(&lost_ms), "{lost_ms}");
        let Detail::Fetched { pages } = finding.detail else { panic!("{:?}", finding.detail) };
        assert!((900..=1000).contains(&pages), "{pages}");
    }
}

#[test]
fn small_pieces_wait_once_for_each_page() {
    let waits = |i: u64| (1..=100).contains(&((i + 1) * 100 % 4096));
    let writes: Vec<_> = (0..40_000).map(|i| (i * 100, 100, if waits(i) { FETCH } else { 1000 })).collect();
    let found = found(disk(), Flags::NONE, &writes);
    let finding = found.findings.iter().find(|one| one.kind == Kind::UnalignedRequests).expect("a finding");
    assert!((80e6..110e6).contains(&finding.lost_ns.expect("a cost")), "{finding:?}");
}

#[test]
fn records_updated_here_and_there_wait_for_two_pages() {
    let writes: Vec<_> = shuffled(500, 8000).map(|offset| (offset, 8000, 2 * FETCH)).collect();
    let found = found(disk(), Flags::NONE, &writes);
    assert_eq!(kinds(&found).first(), Some(&Kind::UnalignedRequests));
}

/// However slow a write is: no more is lost than the pages can have taken.
#[test]
fn other_waits_are_not_charged_to_alignment() {
    let writes: Vec<_> = (0..1000).map(|i| (i * 70_000, 70_000, 10_000 * US)).collect();
    let found = found(disk(), Flags::NONE, &writes);
    assert!(found.findings.iter().all(|one| one.lost_ns.expect("a cost") <= 4.0 * 1000.0 * 100_001.0));
}

#[test]
fn nothing_is_said_of_alignment_without_a_cause() {
    let nothing = |note, opened, writes: &[_]| {
        let found = found(note, opened, writes);
        assert!(!kinds(&found).contains(&Kind::UnalignedRequests), "{:?}", found.findings);
    };
    let all = |bytes: u64, elapsed_ns: u64| -> Vec<_> {
        (0..1000).map(|i| (i * bytes, bytes, elapsed_ns)).collect()
    };
    // A new file: no page is fetched, but now and then a write waits for room in memory.
    let new: Vec<_> =
        (0..1000).map(|i| (i * 10_000, 10_000, if i % 8 == 5 { 8 * FETCH } else { QUICK })).collect();
    let holes: Vec<_> = shuffled(500, 8000).map(|offset| (offset, 8000, QUICK)).collect();
    nothing(disk(), Flags::NONE, &new);
    nothing(disk(), Flags::NONE, &holes);
    // Whole pages.
    nothing(disk(), Flags::NONE, &all(8192, FETCH));
    // Every write waits, whatever its size: no page is fetched for it.
    nothing(Some(measured(100_000.0, 104_000.0)), Flags::NONE, &all(10_000, FETCH));
    for flag in [Flags::SYNC, Flags::DIRECT, Flags::APPEND] {
        nothing(disk(), flag, &all(10_000, FETCH));
    }
    // What a page takes is not known.
    nothing(None, Flags::NONE, &all(10_000, FETCH));
    // Pages that were written a moment ago are in memory.
    let again: Vec<_> = (0..4).flat_map(|_| (0..300).map(|i| (i * 10_000, 10_000, QUICK))).collect();
    nothing(disk(), Flags::NONE, &again);
}

/// What is found in writes of processes on two hosts by turns, of `bytes` each, that take 10 ms; and in 8 large ones.
fn by_turns(hosts: [&str; 2], note: Option<&str>, bytes: u64) -> Explanation {
    let process = |host: &str| Process {
        rank: None,
        pid: 1,
        host: host.into(),
        command: "app".into(),
        start_ns: 0,
        end_ns: None,
    };
    let handle =
        |file, process| Handle { file: FileId(file), process: ProcessId(process), ranks: 1, collective: 0 };
    let tables = Tables {
        processes: hosts.map(process).into(),
        files: ["/scratch/shared", "/scratch/own"].map(|path| File { path: path.into() }).into(),
        handles: vec![handle(0, 0), handle(0, 1), handle(1, 0)],
        notes: note.into_iter().map(|note| (Stripes::NOTE.into(), note.into())).collect(),
        ..Tables::default()
    };
    let write = |handle: u32, at: u64, offset, bytes: u64| {
        let mut event = Event::new(Call::Pwrite, ProcessId(handle % 2), at * 10_100 * US);
        event.handle = Some(HandleId(handle));
        event.target = Target::Extent { offset };
        (event.size, event.result, event.elapsed_ns) = (bytes, bytes as i64, 10_000 * US);
        event.operation = at + 1;
        event
    };
    let shared = (0..400).map(|i| write(i as u32 % 2, i, i * bytes, bytes));
    let own = (0..8).map(|i| write(2, 400 + i, i * (16 << 20), 16 << 20));
    Explanation::of(&tables, shared.chain(own))
}

#[test]
fn hosts_that_write_parts_of_the_same_stripe_are_found_where_stripes_are_known() {
    let hosts = ["a", "b"];
    let mib = 1 << 20;
    for note in ["4194304 bytes, file /scratch/shared", "4194304 bytes, files in /scratch"] {
        // 256 KiB one behind the other are nothing remarkable by themselves, nor are 2 MiB.
        for bytes in [mib / 4, 2 * mib] {
            let found = by_turns(hosts, Some(note), bytes);
            let first = found.findings.first().unwrap_or_else(|| panic!("{note}, {bytes}"));
            assert_eq!(
                (first.kind, first.detail),
                (Kind::UnalignedSharing, Detail::Stripes { bytes: 4 * mib })
            );
        }
        assert!(
            !kinds(&by_turns(hosts, Some(note), 4 * mib)).contains(&Kind::UnalignedSharing),
            "whole stripes"
        );
        // One host has the lock on what both processes write.
        assert!(!kinds(&by_turns(["a"; 2], Some(note), mib / 4)).contains(&Kind::UnalignedSharing));
    }
    for note in
        [None, Some("4194304 bytes, file /scratch/own"), Some("4194304 bytes, files in /other"), Some("?")]
    {
        assert!(!kinds(&by_turns(hosts, note, mib / 4)).contains(&Kind::UnalignedSharing), "{note:?}");
    }
}
