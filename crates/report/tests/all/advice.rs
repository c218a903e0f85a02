//! Advice is never given against what is known of the calls.

use pio_explain::Explanation;
use pio_report::{Told, findings_in_words, text};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, LargeRequests, PageFaults, Process, ProcessId,
    Stripes, Tables, Target,
};

const MS: u64 = 1_000_000;

fn tables(ranks: u32) -> Tables {
    let process = |rank| Process {
        rank: (ranks > 1).then_some(rank),
        pid: 100 + rank,
        host: "node1".into(),
        command: "app".into(),
        start_ns: 0,
        end_ns: Some(2500 * MS),
    };
    let collective = u64::from(ranks > 1);
    let handle = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks, collective };
    Tables {
        processes: (0..ranks).map(process).collect(),
        files: vec![File { path: "/data".into() }],
        handles: (0..ranks).map(handle).collect(),
        ..Tables::default()
    }
}

/// A thousand requests of 4 KiB, 2 ms each, in steps of `step` bytes.
fn requests(call: Call, rank: u32, step: u64, flags: Flags) -> impl Iterator<Item = Event> {
    (0..1000_u64).map(move |i| {
        let mut event = Event::new(call, ProcessId(rank), 2 * MS * i + MS);
        event.handle = Some(HandleId(rank));
        event.target = Target::Extent { offset: i * step + u64::from(rank) * 4096 };
        (event.size, event.result, event.elapsed_ns, event.flags) = (4096, 4096, 2 * MS, flags);
        event.operation = i + 1;
        event
    })
}

fn opened(flags: Flags) -> Event {
    let mut open = Event::new(Call::Open, ProcessId(0), 0);
    (open.handle, open.elapsed_ns, open.flags) = (Some(HandleId(0)), 1000, flags);
    open
}

fn told(tables: &Tables, mut events: Vec<Event>) -> Vec<Told> {
    events.sort_by_key(|event| event.start_ns);
    findings_in_words(&Explanation::of(tables, events))
}

fn only(told: Vec<Told>) -> Told {
    let [one] = &told[..] else { panic!("{told:?}") };
    one.clone()
}

#[test]
fn small_writes_to_a_file_that_is_opened_synchronously_or_directly_have_their_own_remedy() {
    let change = |flags| {
        let writes = requests(Call::Pwrite, 0, 4096, Flags::NONE);
        only(told(&tables(1), std::iter::once(opened(flags)).chain(writes).collect())).change
    };
    assert!(change(Flags::SYNC).contains("without O_SYNC"));
    assert!(change(Flags::DIRECT).contains("O_DIRECT") && change(Flags::DIRECT).contains("aligned"));
    assert!(!change(Flags::NONE).contains("O_"));
}

/// Waits were once added to what the bytes take at the rate that is named.
#[test]
fn waits_that_larger_requests_would_meet_are_told_apart() {
    let mut tables = tables(1);
    tables.processes[0].end_ns = Some(100 * MS);
    tables.notes.push((LargeRequests::NOTE.into(), "write 1000 (900-1100) MB/s, in /".into()));
    let events = requests(Call::Pwrite, 0, 4096, Flags::NONE).enumerate().map(|(i, event)| {
        let waits = i % 100 == 50;
        let start_ns = i as u64 * 10_000 + (i as u64 + 49) / 100 * 5 * MS;
        Event { start_ns, elapsed_ns: if waits { 5 * MS } else { 10_000 }, operation: 0, ..event }
    });
    let told = only(told(&tables, events.collect()));
    let comparison = "the same bytes would take 4.096 ms. 50 ms more was spent waiting, as for the system's read-ahead or \
                      write-behind: larger requests would wait as long.";
    assert!(told.evidence.contains(comparison), "{told:?}");
}

/// Their number is counted, what each takes is tried by the recorder: a sum of times that nobody measured.
#[test]
fn what_page_faults_take_is_an_estimate_beside_the_time_in_io() {
    let mut tables = tables(1);
    let rates = "device read 1000 (900-1100) MB/s, page read 40.96 (40.00-41.00) MB/s, in /";
    let faults = "process 0: 1000 major, 4096000 bytes from devices";
    tables.notes.extend(
        [(LargeRequests::NOTE, rates), (PageFaults::NOTE, faults)]
            .map(|(name, value)| (name.into(), value.into())),
    );
    let mut map = Event::new(Call::Mmap, ProcessId(0), MS);
    (map.handle, map.size, map.elapsed_ns) = (Some(HandleId(0)), 64 << 20, 1000);
    let found = Explanation::of(&tables, [map]);
    let told = only(findings_in_words(&found));
    assert!(told.evidence.contains("(3.906 MiB in all) are estimated to have taken 100 ms"), "{told:?}");
    assert!(!told.evidence.contains("in I/O at a time"), "{told:?}");
    let words = text(&found).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Page faults are no calls: what they cost is beside that time."), "{words}");
}

#[test]
fn sieving_of_reads_is_not_offered_for_writes() {
    let change = |call| only(told(&tables(1), requests(call, 0, 16384, Flags::NONE).collect())).change;
    assert!(change(Call::Pread).contains("sieving"));
    assert!(!change(Call::Pwrite).contains("sieving"));
}

#[test]
fn writes_of_parts_of_pages_are_to_be_aligned() {
    let mut tables = tables(1);
    let rates = "write 2000.0 (1900.0-2100.0) MB/s, page write 1000.0 (900.0-1100.0) MB/s, part write 1.0 (0.9-1.1) MB/s, in /";
    tables.notes.push((LargeRequests::NOTE.into(), rates.into()));
    let told = only(told(&tables, requests(Call::Pwrite, 0, 5000, Flags::NONE).collect()));
    assert_eq!(told.title, "Requests are not aligned to the file's blocks");
    assert!(told.evidence.contains("that had to be fetched from the device first"), "{told:?}");
    assert!(told.evidence.contains("Aligned to pages, they would take 2.044 ms"), "{told:?}");
    assert!(told.change.contains("multiple of 4 KiB"), "{told:?}");
}

#[test]
fn who_shares_stripes_is_told_how_large_they_are() {
    let mut tables = tables(2);
    for (process, host) in tables.processes.iter_mut().zip(["node1", "node2"]) {
        (process.rank, process.host) = (None, host.into());
    }
    tables.notes.push((Stripes::NOTE.into(), "1048576 bytes, file /data".into()));
    let events = (0..2).flat_map(|process| requests(Call::Pwrite, process, 8192, Flags::NONE));
    let told = only(told(&tables, events.collect()));
    assert_eq!(told.title, "Several processes write parts of the same pages or stripes");
    assert!(
        told.evidence.contains("in stripes of 1 MiB: writes that begin and end at multiples of 1 MiB"),
        "{told:?}"
    );
}

#[test]
fn nobody_is_told_to_make_collective_calls_collective() {
    let events = (0..2).flat_map(|rank| requests(Call::MpiFileWriteAtAll, rank, 8192, Flags::COLLECTIVE));
    let told = only(told(&tables(2), events.collect()));
    assert_eq!(told.title, "A pattern moved piece by piece");
    assert!(!told.change.contains("collectively") && told.change.contains("collective calls that are there"));
}

#[test]
fn the_parts_of_mpi_io_calls_are_told_first_and_as_a_table() {
    let call = |rank: u32, start: u64| {
        let mut event = Event::new(Call::MpiFileWriteAtAll, ProcessId(rank), start * MS);
        (event.handle, event.operation) = (Some(HandleId(rank)), 1);
        (event.elapsed_ns, event.flags) = ((100 - start) * MS, Flags::COLLECTIVE);
        event
    };
    let mut file = Event::new(Call::Pwrite, ProcessId(0), 60 * MS);
    (file.elapsed_ns, file.operation, file.flags) = (20 * MS, 1, Flags::PHYSICAL);
    let found = Explanation::of(&tables(2), [call(0, 0), call(1, 60), file]);
    let text = text(&found);
    // Of 140 ms: rank 0 waits 60 ms; both are at the files for 20 ms, and in the library for 20 ms.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence =
        "43 % was waiting for late ranks, 29 % was spent inside the MPI library and 29 % on the files.";
    assert!(words.contains(sentence), "{text}");
    let row = text.lines().find(|line| line.contains("write") && line.contains("60 ms (43 %)"));
    assert!(row.is_some_and(|row| row.contains("40 ms (29 %)")), "{text}");
}

/// What a program waits in barriers of its own was once the largest part of its I/O.
#[test]
fn messages_of_the_program_itself_are_no_part_of_its_io() {
    let of_rank = |rank: u32| {
        let event = |call, operation, start, elapsed| {
            let mut event = Event::new(call, ProcessId(rank), start * MS);
            (event.operation, event.elapsed_ns) = (operation, elapsed * MS);
            event
        };
        let of_file = |event| Event { handle: Some(HandleId(rank)), ..event };
        let mut pwrite = of_file(event(Call::Pwrite, 2, 10, 9));
        (pwrite.size, pwrite.result, pwrite.flags) = (1 << 20, 1 << 20, Flags::PHYSICAL);
        [
            of_file(event(Call::MpiFileOpen, 1, 0, 1)),
            of_file(event(Call::MpiFileWriteAt, 2, 10, 10)),
            pwrite,
            event(Call::MpiBarrier, 0, 20, 900),
            of_file(event(Call::MpiFileClose, 3, 950, 1)),
        ]
    };
    let mut events = [of_rank(0), of_rank(1)].concat();
    events.sort_by_key(|event| event.start_ns);
    let text = text(&Explanation::of(&tables(2), events));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let largest =
        "The largest part of the operations' time went to write calls (at the file system): 100 % of 18 ms.";
    assert!(words.contains(largest), "{text}");
    let note = "Not 2 messages that the program sent for itself, while it had files open, in 1.8 s.";
    assert!(words.contains(note), "{text}");
}

#[test]
fn time_inside_the_library_is_told_with_what_it_is_measured_by() {
    let mut tables = tables(2);
    let own = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 1, collective: 0 };
    tables.handles.extend((0..2).map(own));
    let events = || {
        let of_rank = |rank: u32, i: u64| {
            let event = |call, handle, start, elapsed| {
                let mut event = Event::new(call, ProcessId(rank), (100 * i + start) * MS);
                (event.handle, event.operation) = (Some(HandleId(handle)), i + 1);
                event.target = Target::Extent { offset: (i * 2 + u64::from(rank)) << 20 };
                (event.size, event.result, event.elapsed_ns) = (1 << 20, 1 << 20, elapsed * MS);
                event
            };
            let mut call = event(Call::MpiFileWriteAtAll, rank, 0, 80);
            let mut file = event(Call::Pwrite, 2 + rank, 70, 10);
            (call.flags, file.flags) = (Flags::COLLECTIVE, Flags::PHYSICAL);
            [call, file]
        };
        (0..10).flat_map(|i| [of_rank(0, i), of_rank(1, i)].concat()).collect()
    };
    let unknown = only(told(&tables, events()));
    assert_eq!(unknown.title, "Time is lost inside the MPI library");
    assert!(unknown.evidence.contains("tells what it takes to exchange the data"), "{unknown:?}");
    tables.notes.push((LargeRequests::NOTE.into(), "cached read 4000 (3900-4100) MB/s, in /".into()));
    let known = only(told(&tables, events()));
    let comparison = "With 4 copies of the data in memory, at 3.725 GiB/s (measured when it was recorded), and no \
                      small requests to the files, they would take 20.97 ms.";
    assert!(known.evidence.contains(comparison), "{known:?}");
}
