//! Traces to test with.

use pio_layout::{Datatype, View};
use pio_trace::{
    Call, DatatypeId, Event, File, FileId, FileSystem, FileSystemId, Flags, Handle, HandleId, MarkNameId,
    Placement, Process, ProcessId, Striping, Tables, Target, Trace, TraceWriter, ViewId,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Two ranks, two files, three handles, a view and a datatype.
pub(crate) fn tables() -> Tables {
    let process = |rank| Process {
        rank: Some(rank),
        pid: 4891 + rank,
        host: format!("node{rank}"),
        command: "venus --grid 64".into(),
        start_ns: 0,
        end_ns: None,
    };
    let file = |path: &str| File { path: path.into() };
    let handle = |file, process, ranks, collective| Handle {
        file: FileId(file),
        process: ProcessId(process),
        ranks,
        collective,
    };
    Tables {
        job: "mpiexec -n 2 venus --grid 64".into(),
        notes: vec![("recorder".into(), "0.1.0".into()), ("seed".into(), "7".into())],
        epoch_ns: 1_700_000_000_000_000_000,
        processes: vec![process(0), process(1)],
        files: vec![file("/data/in \"quoted\"\\\n\u{1}ü.dat"), file("/data/out.dat")],
        handles: vec![handle(0, 0, 2, 9), handle(0, 1, 2, 9), handle(1, 0, 1, 0)],
        views: vec![View::new(64, 4, Datatype::vector(8, 2, 16, &Datatype::bytes(4)).unwrap()).unwrap()],
        datatypes: vec![Datatype::vector(4, 1, 3, &Datatype::bytes(8)).unwrap()],
        ..Tables::default()
    }
}

/// The same with what came in version 9: two names of marks, two file systems and what the files are on.
pub(crate) fn tables_of_version_9() -> Tables {
    let file_system = |kind: &str, mount: &str| FileSystem { kind: kind.into(), mount: mount.into() };
    let placement = |file, file_system, striping| Placement {
        file: FileId(file),
        file_system: FileSystemId(file_system),
        striping,
    };
    Tables {
        mark_names: vec!["epoch".into(), "batch \"wait\"".into()],
        file_systems: vec![file_system("lustre", "/scratch"), file_system("tmpfs", "")],
        placements: vec![
            placement(0, 0, Some(Striping { unit_bytes: 1 << 20, targets: 4 })),
            placement(1, 1, None),
        ],
        ..tables()
    }
}

/// An event of process 0, to be varied.
pub(crate) fn event(start_ns: u64) -> Event {
    Event {
        call: Call::Pread,
        process: ProcessId(0),
        thread: 0,
        handle: Some(HandleId(2)),
        target: Target::Extent { offset: 0 },
        memory: None,
        size: 4096,
        result: 4096,
        start_ns,
        elapsed_ns: 1290,
        think_ns: 100,
        used_ns: None,
        flags: Flags::NONE,
        operation: 0,
    }
}

/// A small job with every kind of event: views, messages, physical calls below MPI-IO, errors, an unfinished call.
pub(crate) fn small_job() -> Vec<Event> {
    let mut events = Vec::new();
    for step in 0..12u64 {
        for rank in 0..2u32 {
            let logical = Event {
                call: Call::MpiFileWriteAtAll,
                process: ProcessId(rank),
                handle: Some(HandleId(rank)),
                target: Target::View { view: ViewId(0), position: step * 512 },
                memory: Some(DatatypeId(0)),
                size: 512,
                result: 512,
                elapsed_ns: 50_000 + step * 7,
                think_ns: 10_000 * (step % 3),
                flags: Flags::COLLECTIVE,
                operation: step + 1,
                ..event(step * 100_000 + u64::from(rank))
            };
            let message = Event {
                call: Call::StrategyData,
                handle: None,
                target: Target::Peer { rank: 1 - rank },
                memory: None,
                size: 256,
                result: 256,
                start_ns: logical.start_ns + 1_000,
                elapsed_ns: 900,
                think_ns: 0,
                flags: Flags::PHYSICAL,
                ..logical
            };
            let physical = Event {
                call: Call::Pwrite,
                target: Target::Extent { offset: 64 + step * 1024 },
                memory: None,
                size: 512,
                result: if step == 5 { -28 } else { 512 },
                start_ns: logical.start_ns + 2_000,
                elapsed_ns: 40_000,
                think_ns: 0,
                flags: Flags::PHYSICAL,
                ..logical
            };
            events.extend([logical, message, physical]);
        }
    }
    events.push(Event {
        call: Call::Fsync,
        thread: 3,
        target: Target::None,
        size: 0,
        result: 0,
        flags: Flags::UNFINISHED,
        ..event(2_000_000)
    });
    events.sort_by_key(|event| event.start_ns);
    events
}

/// The file of a trace with a block for every `block` events.
pub(crate) fn write(tables: Tables, events: &[Event], block: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, tables).unwrap();
    for chunk in events.chunks(block) {
        for event in chunk {
            writer.push(event).unwrap();
        }
        writer.flush().unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// All events, which must be readable.
pub(crate) fn all_events(trace: &Trace) -> Vec<Event> {
    trace.events().collect::<Result<_, _>>().unwrap()
}

/// Any tables.
pub(crate) fn any_tables() -> impl Strategy<Value = Tables> {
    let text = "\\PC{0,12}";
    let process =
        (option::of(any::<u32>()), any::<u32>(), text, text, any::<u64>(), option::of(any::<u64>()))
            .prop_map(|(rank, pid, host, command, start_ns, end_ns)| Process {
                rank,
                pid,
                host,
                command,
                start_ns,
                end_ns,
            });
    let view = (0..1u64 << 40, 1..9u64, 1..20u64, 1..5u64, 5..50i64).prop_map(
        |(displacement, etype, count, len, stride)| {
            let filetype = Datatype::vector(count, len, stride, &Datatype::bytes(etype)).unwrap();
            View::new(displacement, etype, filetype).unwrap()
        },
    );
    let datatype = vec((1..9u64, 0..9i64), 1..6).prop_map(|blocks| {
        let apart: Vec<_> =
            blocks.iter().enumerate().map(|(i, (len, at))| (*len, i as i64 * 20 + at)).collect();
        Datatype::indexed(&apart, &Datatype::bytes(3)).unwrap()
    });
    let files = vec(text.prop_map(|path| File { path }), 1..4);
    let parts = (vec(process, 1..5), files, vec(view, 1..3), vec(datatype, 1..3));
    (
        text,
        vec((text, text), 0..3),
        any::<u64>(),
        parts,
        vec((any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>()), 1..6),
    )
        .prop_map(|(job, notes, epoch_ns, (processes, files, views, datatypes), handles)| {
            let handles = handles
                .into_iter()
                .map(|(file, process, ranks, collective)| Handle {
                    file: FileId(file % files.len() as u32),
                    process: ProcessId(process % processes.len() as u32),
                    ranks,
                    collective,
                })
                .collect();
            Tables { job, notes, epoch_ns, processes, files, handles, views, datatypes, ..Tables::default() }
        })
        .prop_flat_map(|tables| {
            let files = tables.files.len();
            let file_system = ("\\PC{0,8}", "\\PC{0,8}").prop_map(|(kind, mount)| FileSystem { kind, mount });
            let striping = option::of((1..100u32, any::<u64>()))
                .prop_map(|known| known.map(|(targets, unit_bytes)| Striping { targets, unit_bytes }));
            let placements = vec((any::<u32>(), striping), 0..=files);
            (Just(tables), vec("\\PC{0,8}", 1..4), vec(file_system, 1..4), placements)
        })
        .prop_map(|(tables, mark_names, file_systems, placements)| {
            let on = |index: u32| FileSystemId(index % file_systems.len() as u32);
            let placements = placements
                .into_iter()
                .zip(0..)
                .map(|((index, striping), file)| Placement {
                    file: FileId(file),
                    file_system: on(index),
                    striping,
                })
                .collect();
            Tables { mark_names, file_systems, placements, ..tables }
        })
}

/// Numbers small, large and repeated.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(4096), 4 => 0..1000u64, 2 => any::<u64>(), 1 => Just(u64::MAX)]
}

/// Any events that fit the tables, in order of start.
pub(crate) fn any_events(tables: &Tables) -> impl Strategy<Value = Vec<Event>> + use<> {
    let (processes, handles) = (tables.processes.len() as u32, tables.handles.len() as u32);
    let files = tables.files.len() as u32;
    let (views, datatypes) = (tables.views.len() as u32, tables.datatypes.len() as u32);
    let mark_names = tables.mark_names.len() as u32;
    let target = prop_oneof![
        Just(Target::None),
        number().prop_map(|offset| Target::Extent { offset }),
        (0..views, number()).prop_map(|(view, position)| Target::View { view: ViewId(view), position }),
        any::<u32>().prop_map(|rank| Target::Peer { rank }),
        (any::<u32>(), number()).prop_map(|(server, offset)| Target::Server { server, offset }),
        (0..files, proptest::option::of(0..files))
            .prop_map(|(file, other)| Target::Name { file: FileId(file), other: other.map(FileId) }),
        (0..mark_names, number()).prop_map(|(name, number)| Target::Mark { name: MarkNameId(name), number }),
    ];
    let who =
        (0..Call::ALL.len(), 0..processes, 0..3u32, option::of(0..handles), target, option::of(0..datatypes));
    let result = prop_oneof![3 => Just(4096i64), 1 => -100..0i64, 1 => any::<i64>()];
    let times = (number(), number(), option::of(number()));
    let what = (number(), result, times, (0..256_u16, any::<bool>()), number());
    let steps = prop_oneof![8 => 0..100_000u64, 1 => 0..u64::MAX / 128];
    vec((who, what, steps), 0..100).prop_map(|rows| {
        let mut start_ns = 0;
        rows.into_iter()
            .map(
                |(
                    (call, process, thread, handle, target, memory),
                    (size, result, (elapsed_ns, think_ns, used_ns), (flags, truncates), operation),
                    step,
                )| {
                    start_ns += step;
                    Event {
                        call: Call::ALL[call],
                        process: ProcessId(process),
                        thread,
                        handle: handle.map(HandleId),
                        target,
                        memory: memory.map(DatatypeId),
                        size,
                        result,
                        start_ns,
                        elapsed_ns,
                        think_ns,
                        used_ns,
                        flags: Flags::from_bits(flags)
                            | if truncates { Flags::TRUNCATE } else { Flags::NONE },
                        operation,
                    }
                },
            )
            .collect()
    })
}
