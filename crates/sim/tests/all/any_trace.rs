//! Whatever a trace says, it is predicted or refused: programs make odd calls, and recorders lose some.

use pio_layout::{Datatype, View};
use pio_machine::Machine;
use pio_plan::{Hints, Strategy as Way};
use pio_sim::{Options, Workload, simulate};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
    TraceWriter, ViewId,
};
use proptest::prelude::*;

const RANKS: u32 = 3;
const FILES: u32 = 2;
const VIEWS: u32 = 4;

/// An event, but for when it is and whether the tables have what it names.
#[derive(Clone, Debug)]
struct Odd {
    call: Call,
    process: u32,
    handle: Option<u32>,
    target: Target,
    size: u64,
    result: i64,
    after_ns: u64,
    elapsed_ns: u64,
    flags: u16,
    operation: u64,
}

/// The calls of each layer that a simulation knows, more often than others.
fn calls() -> impl Strategy<Value = Call> {
    let of = |kept: fn(&&Call) -> bool| {
        prop::sample::select(Call::ALL.iter().filter(kept).copied().collect::<Vec<_>>())
    };
    prop_oneof![
        of(|_| true),
        of(|call| call.name().starts_with("MPI_File_")),
        of(|call| ["open", "pread", "pwrite", "close", "fsync", "ftruncate"].contains(&call.name())),
    ]
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..100_u64, 1..200_000_u64]
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..100_000_u64, Just(i64::MAX as u64), Just(u64::MAX), u64::MAX - 200_000..u64::MAX]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        Just(Target::None),
        offset().prop_map(|offset| Target::Extent { offset }),
        (0..VIEWS, offset()).prop_map(|(view, position)| Target::View { view: ViewId(view), position }),
        (0..VIEWS, 0..1000_u64).prop_map(|(view, position)| Target::View { view: ViewId(view), position }),
        (0..RANKS + 2).prop_map(|rank| Target::Peer { rank }),
        (0..FILES).prop_map(|file| Target::Name { file: FileId(file), other: None }),
    ]
}

fn odd() -> impl Strategy<Value = Odd> {
    let what = (calls(), 0..RANKS, prop::option::weighted(0.9, 0..2_u32), target());
    let sizes = (bytes(), prop_oneof![bytes().prop_map(|bytes| bytes as i64), Just(-5), Just(i64::MIN)]);
    let times = (0..50_000_000_u64, prop_oneof![0..1_000_000_u64, Just(u64::MAX)]);
    (what, sizes, times, 0..1024_u16, 0..4_u64).prop_map(|(what, sizes, times, flags, operation)| {
        let ((call, process, handle, target), (size, result), (after_ns, elapsed_ns)) = (what, sizes, times);
        Odd { call, process, handle, target, size, result, after_ns, elapsed_ns, flags, operation }
    })
}

/// Two opens of each process: one by all together, one alone. One process has no events if none is of it.
fn tables(is_mpi: bool) -> Tables {
    let process = |rank: u32| Process {
        rank: is_mpi.then_some(2 * rank),
        pid: rank + 1,
        host: "node1".into(),
        command: "app".into(),
        start_ns: 0,
        end_ns: None,
    };
    let handle = |number: u32| Handle {
        file: FileId(number % FILES),
        process: ProcessId(number / 2),
        ranks: if number.is_multiple_of(2) { RANKS } else { 1 },
        collective: u64::from(number.is_multiple_of(2)) * 7,
    };
    let holes = Datatype::vector(3, 2, 5, &Datatype::bytes(7)).unwrap();
    let views = vec![
        View::contiguous(0),
        View::contiguous(i64::MAX as u64 - 10),
        View::new(3, 7, holes).unwrap(),
        View::new(0, 1, Datatype::bytes(1).resized(0, 1 << 40).unwrap()).unwrap(),
    ];
    Tables {
        job: "odd".into(),
        processes: (0..RANKS).map(process).collect(),
        files: ["/a", "/b"].map(|path| File { path: path.into() }).to_vec(),
        handles: (0..2 * RANKS).map(handle).collect(),
        views,
        notes: vec![("recorder".into(), String::new())],
        ..Tables::default()
    }
}

const FLAGS: [Flags; 9] = [
    Flags::PHYSICAL,
    Flags::COLLECTIVE,
    Flags::ASYNC,
    Flags::APPEND,
    Flags::UNFINISHED,
    Flags::SYNC,
    Flags::DIRECT,
    Flags::COLD,
    Flags::TRUNCATE,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_trace_is_predicted_or_refused(
        events in prop::collection::vec(odd(), 0..25),
        is_mpi in any::<bool>(),
        way in prop::sample::select(vec![Way::Independent, Way::Sieving, Way::List, Way::TwoPhase, Way::Auto]),
        machine in prop::sample::select(vec!["sp-argonne", "lustre", "gpfs", "nfs", "pios-64"]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd.pio");
        let mut writer = TraceWriter::create(&path, tables(is_mpi)).unwrap();
        let mut now = 0;
        for odd in events {
            now += odd.after_ns;
            let mut event = Event::new(odd.call, ProcessId(odd.process), now);
            event.handle = odd.handle.map(|number| HandleId(2 * odd.process + number));
            (event.target, event.size, event.result) = (odd.target, odd.size, odd.result);
            (event.elapsed_ns, event.operation) = (odd.elapsed_ns, odd.operation);
            event.think_ns = odd.after_ns / 2;
            for (bit, flag) in FLAGS.into_iter().enumerate() {
                if odd.flags >> bit & 1 == 1 {
                    event.flags = event.flags | flag;
                }
            }
            // What no trace can have is left out.
            _ = writer.push(&event);
        }
        writer.finish().unwrap();
        let machine = Machine::built_in(machine).unwrap();
        if let Ok(workload) = Workload::from_trace(&Trace::open(&path).unwrap()) {
            let out = folder.path().join("out.pio");
            let (hints, options) = (Hints::default(), Options::default());
            _ = simulate(&machine, &workload, way, &hints, &options, Some(&out), &mut |_| {});
        }
    }
}
