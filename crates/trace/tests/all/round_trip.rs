//! What is written is what is read.

use crate::support::{all_events, any_events, any_tables, event, small_job, tables, write};
use pio_trace::{
    Event, File, FileId, Handle, HandleId, ProcessId, Tables, Target, Trace, TraceError, TraceWriter, ViewId,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_trace_returns(
        (tables, events) in any_tables().prop_flat_map(|tables| (Just(tables.clone()), any_events(&tables))),
        block in 1..40usize,
    ) {
        let trace = Trace::from_bytes(write(tables.clone(), &events, block), "any.pio").unwrap();
        prop_assert_eq!(trace.tables(), &tables);
        prop_assert_eq!(trace.event_count(), events.len() as u64);
        prop_assert_eq!(trace.damage(), None);
        let last_end = events.iter().map(Event::end_ns).chain(tables.processes.iter().filter_map(|p| p.end_ns)).max();
        prop_assert_eq!(trace.duration_ns(), last_end.unwrap_or(0));
        // Those that start together come in order of process, within a block.
        let mut expected = events;
        expected.chunks_mut(block).for_each(|block| block.sort_by_key(|event| (event.start_ns, event.process)));
        prop_assert_eq!(all_events(&trace), expected);
    }
}

#[test]
fn blocks_say_what_they_hold() {
    let events = small_job();
    let trace = Trace::from_bytes(write(tables(), &events, 10), "job.pio").unwrap();
    assert_eq!(trace.blocks().len(), events.len().div_ceil(10));
    for (i, expected) in events.chunks(10).enumerate() {
        let block = trace.blocks()[i];
        assert_eq!(trace.block(i).unwrap(), expected);
        assert_eq!(block.event_count(), expected.len());
        assert_eq!(block.first_start_ns(), expected[0].start_ns);
        assert_eq!(block.last_start_ns(), expected[expected.len() - 1].start_ns);
        assert_eq!(Some(block.end_ns()), expected.iter().map(Event::end_ns).max());
    }
}

#[test]
fn long_traces_are_cut_into_blocks() {
    let events: Vec<Event> = (0..150_000u64)
        .map(|i| Event { target: Target::Extent { offset: i * 4096 }, ..event(i * 1_400) })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.pio");
    let mut writer = TraceWriter::create(&path, tables()).unwrap();
    for event in &events {
        writer.push(event).unwrap();
    }
    writer.finish().unwrap();
    let trace = Trace::open(&path).unwrap();
    let counts: Vec<usize> = trace.blocks().iter().map(|block| block.event_count()).collect();
    assert_eq!(counts, [65_536, 65_536, 18_928]);
    assert!(all_events(&trace) == events);
}

#[test]
fn a_trace_without_events_is_whole() {
    let trace = Trace::from_bytes(write(tables(), &[], 1), "empty.pio").unwrap();
    assert_eq!((trace.event_count(), trace.duration_ns(), trace.damage()), (0, 0, None));
    assert_eq!(trace.tables(), &tables());
}

#[test]
fn threads_read_blocks_side_by_side() {
    let events = small_job();
    let trace = Trace::from_bytes(write(tables(), &events, 7), "job.pio").unwrap();
    let blocks: Vec<Vec<Event>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..trace.blocks().len())
            .map(|i| {
                scope.spawn({
                    let trace = &trace;
                    move || trace.block(i).unwrap()
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert_eq!(blocks.concat(), events);
}

#[test]
fn tables_grow_while_events_are_written() {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, tables()).unwrap();
    writer.push(&event(0)).unwrap();
    writer.flush().unwrap();
    writer.tables_mut().files.push(File { path: "/data/new".into() });
    writer.tables_mut().handles.push(Handle {
        file: FileId(2),
        process: ProcessId(1),
        ranks: 1,
        collective: 0,
    });
    writer.tables_mut().notes.push(("dropped events".into(), "0".into()));
    let on_new = Event { process: ProcessId(1), handle: Some(HandleId(3)), ..event(5) };
    writer.push(&on_new).unwrap();
    writer.tables_mut().processes[1].end_ns = Some(77_777);
    let expected = writer.tables().clone();
    writer.finish().unwrap();
    let trace = Trace::from_bytes(bytes, "grown.pio").unwrap();
    assert_eq!(trace.tables(), &expected);
    assert_eq!(trace.duration_ns(), 77_777);
    assert_eq!(all_events(&trace), [event(0), on_new]);
}

#[test]
fn written_entries_must_stay() {
    type Change = fn(&mut Tables);
    let changes: [(Change, &str); 6] = [
        (|t| t.job.push('x'), "the job's name"),
        (|t| t.epoch_ns += 1, "the job's start"),
        (|t| t.notes[0].1.clear(), "the list of notes"),
        (|t| t.processes[0].pid += 1, "the list of processes"),
        (
            |t| {
                t.files.pop();
            },
            "the list of files",
        ),
        (|t| t.handles.swap(0, 2), "the list of handles"),
    ];
    for (change, expected) in changes {
        let mut writer = TraceWriter::new(std::io::sink(), tables()).unwrap();
        writer.push(&event(0)).unwrap();
        writer.flush().unwrap();
        change(writer.tables_mut());
        let error = writer.finish().unwrap_err();
        assert!(matches!(&error, TraceError::TablesChanged { what, .. } if *what == expected), "{error}");
    }
}

#[test]
fn events_out_of_order_or_of_unknown_things_are_refused_and_leave_no_trace() {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, tables()).unwrap();
    writer.push(&event(10)).unwrap();
    let refused =
        |event: Event, writer: &mut TraceWriter<&mut Vec<u8>>| writer.push(&event).unwrap_err().to_string();
    assert_eq!(
        refused(event(9), &mut writer),
        "trace: event 1 starts at 9 ns, before its predecessor (10 ns): events must be pushed in order of their start"
    );
    assert_eq!(
        refused(Event { process: ProcessId(2), ..event(20) }, &mut writer),
        "trace: process 2 is not in the tables (2 known)"
    );
    assert_eq!(
        refused(Event { handle: Some(HandleId(3)), ..event(20) }, &mut writer),
        "trace: handle 3 is not in the tables (3 known)"
    );
    let unknown_view = Target::View { view: ViewId(1), position: 0 };
    assert_eq!(
        refused(Event { target: unknown_view, ..event(20) }, &mut writer),
        "trace: view 1 is not in the tables (1 known)"
    );
    writer.push(&event(11)).unwrap();
    writer.finish().unwrap();
    assert_eq!(all_events(&Trace::from_bytes(bytes, "t.pio").unwrap()), [event(10), event(11)]);
}

#[test]
fn a_handle_of_an_unknown_file_is_refused() {
    let mut tables = tables();
    tables.handles[1].file = FileId(9);
    let mut writer = TraceWriter::new(std::io::sink(), tables).unwrap();
    writer.push(&event(0)).unwrap();
    assert_eq!(writer.finish().unwrap_err().to_string(), "trace: file 9 is not in the tables (2 known)");
}

/// A device that fills up.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_written() {
    let mut writer = TraceWriter::new(Full(700), tables()).unwrap();
    let mut outcomes = Vec::new();
    for i in 0..10 {
        writer.push(&event(i)).unwrap();
        outcomes.push(writer.flush());
    }
    let first = outcomes.iter().position(Result::is_err).unwrap();
    assert!(matches!(outcomes[first], Err(TraceError::Io { .. })));
    assert!(outcomes[first + 1..].iter().all(|outcome| matches!(outcome, Err(TraceError::Broken { .. }))));
}
