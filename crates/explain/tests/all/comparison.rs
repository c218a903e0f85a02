//! Runs beside predictions made of them: the calls that are simulated, and no others.

use pio_explain::{Comparison, Explanation};
use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::{Options, SimulatedCalls, Workload, simulate};
use pio_trace::{
    Call, Event, File, FileId, Flags, Handle, HandleId, Process, ProcessId, Tables, Target, Trace,
    TraceWriter,
};

const MS: u64 = 1_000_000;

/// A call of 10 ms of the program, or for another with its number.
fn call(call: Call, start_ms: u64, operation: u64) -> Event {
    let event = Event::new(call, ProcessId(0), start_ms * MS);
    Event { elapsed_ns: 10 * MS, operation, ..event }
}

fn below(event: Event) -> Event {
    Event { flags: Flags::PHYSICAL, elapsed_ns: 6 * MS, ..event }
}

fn on(handle: u32, event: Event) -> Event {
    Event { handle: Some(HandleId(handle)), ..event }
}

fn moves(event: Event) -> Event {
    Event { target: Target::Extent { offset: 0 }, size: 4096, result: 4096, ..event }
}

/// A run of these calls compared with a prediction of itself: whether calls are the program's, predicted, and measured.
fn compare(events: &[Event], machine: &str) -> (Comparison, Vec<(Call, bool, u64, u64)>) {
    let handle = |collective| Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective };
    let process = Process {
        rank: Some(0),
        pid: 1,
        host: "node".into(),
        command: "app".into(),
        start_ns: 0,
        end_ns: Some(1000 * MS),
    };
    let tables = Tables {
        processes: vec![process],
        files: vec![File { path: "/f".into() }],
        handles: vec![handle(1), handle(0)],
        ..Tables::default()
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [run, simulated] = ["run.pio", "simulated.pio"].map(|name| folder.path().join(name));
    let mut writer = TraceWriter::create(&run, tables).expect("the folder is there");
    events.iter().for_each(|event| writer.push(event).expect("it is written"));
    writer.finish().expect("it is written");
    let (run, machine) =
        (Trace::open(&run).expect("the run opens"), Machine::built_in(machine).expect("it is known"));
    let (workload, options) = (Workload::from_trace(&run).expect("it is read"), Options::default());
    let (strategy, hints) = (Strategy::Independent, Hints::default());
    simulate(&machine, &workload, strategy, &hints, &options, Some(&simulated), &mut |_| {})
        .expect("it works");
    let found = Explanation::of_trace(&run, &mut |_| {}).expect("it works");
    let mut calls = SimulatedCalls::of(&run, &machine).expect("it is read");
    let predicted = Trace::open(&simulated).expect("it opens");
    let compared =
        Comparison::of(&predicted, 1.0, &run, &found, &mut |event| calls.next(event)).expect("both are read");
    let one = |call: &pio_explain::ComparedCall| {
        (call.call, call.by_program, call.predicted_count, call.measured_count)
    };
    let mut counts: Vec<_> = compared.calls.iter().map(one).collect();
    counts.sort_by_key(|(call, by_program, ..)| (!by_program, call.name()));
    (compared, counts)
}

#[test]
fn what_a_library_asks_of_files_is_compared_and_the_rest_of_it_taken_as_recorded() {
    let name = Target::Name { file: FileId(0), other: None };
    let events = [
        call(Call::H5Fcreate, 10, 1),
        on(1, below(call(Call::Open, 12, 1))),
        call(Call::H5Dwrite, 30, 2),
        moves(on(1, below(call(Call::Pwrite, 32, 2)))),
        call(Call::Mkdir, 50, 3),
        call(Call::Fopen, 70, 4),
        Event { target: name, ..below(call(Call::Stat, 90, 0)) },
        // Nobody knows of which file.
        call(Call::Stat, 110, 6),
        call(Call::H5Fclose, 130, 7),
        on(1, below(call(Call::Close, 132, 7))),
    ];
    let requests = [(Call::Close, true, 1, 1), (Call::Open, true, 1, 1), (Call::Pwrite, true, 1, 1)];
    let (compared, counts) = compare(&events, "sp-argonne");
    assert_eq!(counts, requests, "a machine that does not say what stat takes");
    assert!((compared.io.measured_s - 0.018).abs() < 1e-9, "{:?}", compared.io);
    let [(0, of_rank)] = compared.ranks[..] else { panic!("{:?}", compared.ranks) };
    assert!((of_rank.measured_s - 0.018).abs() < 1e-9, "{of_rank:?}");
    assert!((compared.io_time_s - 0.066).abs() < 1e-9, "{}", compared.io_time_s);
    let (_, counts) = compare(&events, "lustre");
    let asked = [&requests[..], &[(Call::Stat, true, 1, 1)]].concat();
    assert_eq!(counts, asked, "one that does");
}

#[test]
fn mpi_io_below_another_library_is_compared_with_what_it_does_below() {
    let (_, counts) = compare(
        &[
            call(Call::NcmpiCreate, 10, 1),
            on(0, below(call(Call::MpiFileOpen, 12, 2))),
            on(1, Event { elapsed_ns: MS, ..below(call(Call::Open, 13, 2)) }),
            call(Call::NcmpiIputVara, 30, 3),
            call(Call::NcmpiWaitAll, 50, 4),
            Event {
                flags: Flags::PHYSICAL | Flags::COLLECTIVE,
                ..moves(on(0, below(call(Call::MpiFileWriteAtAll, 52, 5))))
            },
            moves(on(1, Event { elapsed_ns: MS, ..below(call(Call::Pwrite, 53, 5)) })),
        ],
        "sp-argonne",
    );
    let expected = [
        (Call::MpiFileOpen, true, 1, 1),
        (Call::MpiFileWriteAtAll, true, 1, 1),
        (Call::Open, false, 1, 1),
        (Call::Pwrite, false, 1, 1),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn calls_whose_data_move_in_a_wait_are_left_out() {
    for begins in [Call::MpiFileIwriteAt, Call::MpiFileWriteAtAllBegin] {
        let opened = on(0, call(Call::MpiFileOpen, 10, 1));
        let written = [
            on(1, Event { elapsed_ns: MS, ..below(call(Call::Open, 11, 1)) }),
            moves(on(0, call(begins, 30, 2))),
            call(Call::MpiWait, 50, 3),
            moves(on(1, below(call(Call::Pwrite, 52, 2)))),
        ];
        let (compared, counts) = compare(&[&[opened], &written[..]].concat(), "sp-argonne");
        let expected =
            [(Call::MpiFileOpen, true, 1, 1), (Call::Open, false, 1, 1), (Call::Pwrite, false, 1, 1)];
        assert_eq!(counts, expected, "{begins:?}");
        assert_eq!(compared.parts, None, "{begins:?}");
    }
}
