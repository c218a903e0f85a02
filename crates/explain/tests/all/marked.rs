//! Epochs, waits and what was read in them, of a training program with two workers.

use pio_explain::{Explanation, Training};
use pio_trace::{
    Call, Event, File, FileId, FileSystem, FileSystemId, Flags, Handle, HandleId, MarkNameId, Placement,
    Process, ProcessId, Striping, Tables, Target,
};

const MS: u64 = 1_000_000;
const SAMPLE: u64 = 1 << 20;
const EPOCHS: u64 = 2;
const BATCHES: u64 = 4;

/// Process 0 computes for 10 ms a step and waits for 5 ms; 1 and 2 read its samples, from storage in the first epoch.
fn training() -> (Tables, Vec<Event>) {
    let process = |start_ns, end_ns| Process {
        rank: None,
        pid: 7,
        host: "node".into(),
        command: "python train.py".into(),
        start_ns,
        end_ns: Some(end_ns),
    };
    let samples = 2 * BATCHES as u32;
    let mut files: Vec<File> = (0..samples).map(|i| File { path: format!("/data/{i}.npy") }).collect();
    files.push(File { path: "/out/model.pt".into() });
    let on = |file| Placement {
        file: FileId(file),
        file_system: FileSystemId(u32::from(file == samples)),
        striping: (file < samples).then_some(Striping { unit_bytes: SAMPLE, targets: 4 }),
    };
    let file_system = |kind: &str, mount: &str| FileSystem { kind: kind.into(), mount: mount.into() };
    let mut tables = Tables {
        processes: vec![process(0, 200 * MS), process(10 * MS, 150 * MS), process(10 * MS, 150 * MS)],
        job: "mpiexec -n 2 python /home/ada/resnet.py --epochs 2".into(),
        mark_names: ["epoch, loader 1", "batch wait", "torch.save", "stage"].map(String::from).into(),
        file_systems: vec![file_system("lustre", "/data"), file_system("ext4", "/")],
        placements: (0..=samples).map(on).collect(),
        files,
        ..Tables::default()
    };
    let mut events = Vec::new();
    let mark = |call, name, number, start_ns, elapsed_ns| Event {
        target: Target::Mark { name: MarkNameId(name), number },
        elapsed_ns,
        ..Event::new(call, ProcessId(0), start_ns)
    };
    events.push(mark(Call::Mark, 3, 0, 0, 0));
    for epoch in 0..EPOCHS {
        let begins = (10 + 70 * epoch) * MS;
        events.push(mark(Call::Phase, 0, epoch, begins, 65 * MS));
        // The last wait brings the end.
        for step in 0..=BATCHES {
            events.push(mark(Call::Phase, 1, step, begins + 15 * MS * step, 5 * MS));
        }
        for sample in 0..samples {
            let handle = HandleId(tables.handles.len() as u32);
            let process = ProcessId(1 + sample % 2);
            tables.handles.push(Handle { file: FileId(sample), process, ranks: 1, collective: 0 });
            let at = begins + 7 * MS * u64::from(sample);
            let open = Event { handle: Some(handle), ..Event::new(Call::Open, process, at) };
            let cold = if epoch == 0 { Flags::COLD } else { Flags::NONE };
            let read = Event {
                target: Target::Extent { offset: 0 },
                size: SAMPLE + 128,
                result: SAMPLE as i64 + 128,
                elapsed_ns: if epoch == 0 { 4 * MS } else { MS },
                ..open.clone()
            };
            events.push(Event { flags: cold, ..open });
            events.push(Event { call: Call::Read, start_ns: at + 1000, ..read });
        }
    }
    events.push(mark(Call::Mark, 3, 1, 160 * MS, 0));
    events.push(mark(Call::Phase, 2, 0, 160 * MS, 20 * MS));
    let handle = HandleId(tables.handles.len() as u32);
    let process = ProcessId(0);
    tables.handles.push(Handle { file: FileId(samples), process, ranks: 1, collective: 0 });
    events.push(Event {
        handle: Some(handle),
        target: Target::Extent { offset: 0 },
        size: 5000,
        result: 5000,
        elapsed_ns: MS,
        ..Event::new(Call::Write, process, 161 * MS)
    });
    events.sort_by_key(|event| event.start_ns);
    (tables, events)
}

/// Processes, each with when it ends in milliseconds, and the names of marks.
fn job(ends_ms: &[u64], names: &[&str]) -> Tables {
    let process = |end_ms: &u64| Process {
        rank: None,
        pid: 7,
        host: "node".into(),
        command: "python train.py".into(),
        start_ns: 0,
        end_ns: Some(end_ms * MS),
    };
    Tables {
        processes: ends_ms.iter().map(process).collect(),
        mark_names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Tables::default()
    }
}

/// An event of a process and thread that goes on from one millisecond to another.
fn event(call: Call, (process, thread): (u32, u32), from_ms: u64, to_ms: u64) -> Event {
    let elapsed_ns = (to_ms - from_ms) * MS;
    Event { thread, elapsed_ns, ..Event::new(call, ProcessId(process), from_ms * MS) }
}

fn phase(name: u32, number: u64, of: (u32, u32), from_ms: u64, to_ms: u64) -> Event {
    let target = Target::Mark { name: MarkNameId(name), number };
    Event { target, ..event(Call::Phase, of, from_ms, to_ms) }
}

fn mark(name: u32, number: u64, of: (u32, u32), at_ms: u64) -> Event {
    Event { call: Call::Mark, ..phase(name, number, of, at_ms, at_ms) }
}

fn unfinished(phase: Event) -> Event {
    Event { flags: Flags::UNFINISHED, elapsed_ns: 0, ..phase }
}

/// Reads this many bytes.
fn read(bytes: u64, of: (u32, u32), at_ms: u64) -> Event {
    Event {
        target: Target::Extent { offset: 0 },
        size: bytes,
        result: bytes as i64,
        ..event(Call::Read, of, at_ms, at_ms)
    }
}

/// Of each number of a name: how long, and the bytes read meanwhile.
fn rows(found: &Explanation, name: &str) -> Vec<(u64, u64, u64)> {
    let name = &found.marked.names[found.marked.find(name).expect("the name")];
    let row = |(number, time): &(u64, pio_explain::MarkedTime)| {
        (*number, time.time_ns / MS, time.moved.from_memory.bytes + time.moved.from_storage.bytes)
    };
    name.numbers.iter().map(row).collect()
}

#[test]
fn workers_that_mark_count_for_what_they_did_not_mark() {
    // A program that prepared data, one that trains with a worker, which loads its samples with a marked function.
    let tables = job(&[50, 500, 400], &["prepare", "epoch", "torch.load"]);
    let (before, main, worker) = ((0, 1), (1, 1), (2, 1));
    let events = vec![
        mark(0, 0, before, 0),
        read(1, before, 10),
        phase(1, 0, main, 100, 200),
        phase(2, 0, worker, 110, 120),
        read(20, worker, 115),
        phase(1, 1, main, 200, 300),
        phase(2, 1, worker, 210, 220),
        read(300, worker, 215),
        read(4000, worker, 290),
        read(50000, worker, 350),
    ];
    let found = Explanation::of(&tables, events);
    assert_eq!(rows(&found, "prepare"), [(0, 50, 1)]);
    assert_eq!(rows(&found, "epoch"), [(0, 100, 20), (1, 100, 4300)]);
    assert_eq!(rows(&found, "torch.load"), [(0, 10, 20), (1, 10, 300)]);
    let by = |name: &str| found.marked.names[found.marked.find(name).expect("the name")].processes.clone();
    assert_eq!((by("epoch"), by("torch.load")), (vec![ProcessId(1)], vec![ProcessId(2)]));
}

#[test]
fn a_call_counts_once_for_a_name() {
    let tables = job(&[500], &["load shard"]);
    let mut events: Vec<Event> = (0..4).map(|i| phase(0, i, (0, i as u32), 10 + i, 100)).collect();
    events.extend((0..5).map(|i| read(10_u64.pow(i), (0, i), 50)));
    let found = Explanation::of(&tables, events);
    // The fifth thread has no phase of its own: it counts for the latest.
    assert_eq!(rows(&found, "load shard"), [(0, 90, 1), (1, 89, 10), (2, 88, 100), (3, 87, 11000)]);
    assert_eq!(found.marked.names[0].sum.moved.from_memory.bytes, 11111);
}

#[test]
fn time_within_others_is_cut_where_either_ends() {
    let tables = job(&[500], &["stage", "step", "wait"]);
    let of = (0, 1);
    let events = vec![
        mark(0, 0, of, 0),
        phase(2, 0, of, 90, 130), // over the end of the stage
        mark(0, 1, of, 100),
        phase(1, 0, of, 200, 250),
        phase(2, 1, of, 240, 270), // and of the step
        mark(1, 1, of, 400),       // within the last stage, both until the process ends
    ];
    let found = Explanation::of(&tables, events);
    let within = |outer: &str, number: usize, inner: &str| {
        let [outer, inner] = [outer, inner].map(|name| found.marked.find(name).expect("the name"));
        found.marked.names[outer].numbers[number].1.within_ns.get(&inner).map(|ns| ns / MS)
    };
    assert_eq!(within("stage", 0, "wait"), Some(10));
    assert_eq!(within("stage", 1, "wait"), Some(30));
    assert_eq!(within("step", 0, "wait"), Some(10));
    assert_eq!(within("stage", 1, "step"), Some(50 + 100));
    assert_eq!(rows(&found, "step"), [(0, 50, 0), (1, 100, 0)]);
}

#[test]
fn phases_that_are_never_ended_end_at_the_next() {
    let tables = job(&[500], &["epoch"]);
    let events = vec![
        unfinished(phase(0, 0, (0, 1), 0, 0)),
        read(1, (0, 1), 50),
        unfinished(phase(0, 1, (0, 1), 100, 100)),
        unfinished(phase(0, 2, (0, 2), 110, 110)), // another thread's
        read(20, (0, 1), 150),
        read(300, (0, 2), 150),
        unfinished(phase(0, 3, (0, 1), 200, 200)),
    ];
    let found = Explanation::of(&tables, events);
    assert_eq!(rows(&found, "epoch"), [(0, 100, 1), (1, 100, 20), (2, 390, 300), (3, 300, 0)]);
}

#[test]
fn reads_past_the_page_cache_are_from_storage() {
    let mut tables = job(&[500], &["epoch"]);
    tables.files = vec![File { path: "/data/a".into() }];
    tables.handles = vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 }];
    let handle = Some(HandleId(0));
    let events = vec![
        phase(0, 0, (0, 1), 0, 100),
        Event { handle, flags: Flags::DIRECT, ..event(Call::Open, (0, 1), 10, 10) },
        Event { handle, ..read(4096, (0, 1), 20) },
    ];
    let sum = Explanation::of(&tables, events).marked.names[0].sum.clone();
    assert_eq!((sum.moved.from_storage.bytes, sum.moved.from_memory.bytes), (4096, 0));
}

#[test]
fn spans_are_those_of_the_first_process_that_marks() {
    let tables = job(&[500, 500], &["epoch", "step"]);
    let events = vec![
        phase(0, 0, (1, 1), 0, 40),
        mark(1, 7, (1, 1), 5),
        phase(0, 0, (0, 1), 10, 60),
        phase(0, 1, (1, 1), 50, 90),
        phase(0, 1, (0, 1), 70, 90),
    ];
    let found = Explanation::of(&tables, events);
    let spans = |name: &str| {
        let one = &found.marked.names[found.marked.find(name).expect("the name")];
        let span = |span: &pio_explain::MarkedSpan| (span.number, span.start_ns / MS, span.end_ns / MS);
        one.spans.iter().map(span).collect::<Vec<_>>()
    };
    assert_eq!(spans("epoch"), [(0, 10, 60), (1, 70, 90)]);
    assert_eq!(spans("step"), [(7, 5, 500)]);
}

#[test]
fn of_very_many_spans_neighbours_are_one() {
    let count = 100_000;
    let tables = job(&[10 * count], &["step"]);
    let found =
        Explanation::of(&tables, (0..count).map(|step| phase(0, step, (0, 1), 10 * step, 10 * step + 4)));
    let spans = &found.marked.names[0].spans;
    assert!((2048..=4096).contains(&spans.len()), "{}", spans.len());
    assert_eq!(spans.iter().map(|span| span.count).sum::<u64>(), count);
    assert_eq!(spans.iter().map(|span| span.time_ns).sum::<u64>(), count * 4 * MS);
    let mut next = 0;
    for span in spans {
        assert_eq!((span.number, span.start_ns), (next, 10 * next * MS), "in order");
        next += span.count;
        assert_eq!(span.end_ns, (10 * (next - 1) + 4) * MS);
    }
}

fn explained() -> Explanation {
    let (tables, events) = training();
    Explanation::of(&tables, events)
}

#[test]
fn epochs_have_their_waits_and_what_their_workers_read() {
    let found = explained();
    let [epoch, wait, save, stage] = ["epoch, loader 1", "batch wait", "torch.save", "stage"]
        .map(|name| found.marked.find(name).expect("the name"));
    let names = &found.marked.names;
    let sum = &names[epoch].sum;
    assert_eq!((sum.count, sum.time_ns, sum.longest_ns), (2, 130 * MS, 65 * MS));
    assert_eq!(sum.within_ns.get(&wait), Some(&(50 * MS)));
    let all = 8 * (SAMPLE + 128);
    let sources: Vec<_> = names[epoch]
        .numbers
        .iter()
        .map(|(_, time)| (time.moved.from_storage.bytes, time.moved.from_memory.bytes))
        .collect();
    assert_eq!(sources, [(all, 0), (0, all)]);
    assert_eq!(names[epoch].numbers[0].1.moved.from_storage.time_ns, 8 * 4 * MS);
    // The n-th wait of every epoch.
    let waits: Vec<_> = names[wait].numbers.iter().map(|(number, time)| (*number, time.count)).collect();
    assert_eq!(waits, (0..=BATCHES).map(|number| (number, EPOCHS)).collect::<Vec<_>>());
    assert_eq!((names[save].sum.count, names[save].sum.moved.written.bytes), (1, 5000));
    // A mark lasts until the next, the last until the process ends.
    let stages: Vec<_> = names[stage].numbers.iter().map(|(_, time)| time.time_ns).collect();
    assert_eq!(stages, [160 * MS, 40 * MS]);
    assert_eq!(names[stage].numbers[1].1.within_ns.get(&save), Some(&(20 * MS)));
}

#[test]
fn marks_are_no_calls() {
    let (tables, events) = training();
    let calls: Vec<Event> =
        events.iter().filter(|event| event.op() != pio_trace::Op::Mark).cloned().collect();
    let (with, without) = (Explanation::of(&tables, events), Explanation::of(&tables, calls));
    assert_eq!(with.io_time, without.io_time);
    assert_eq!(with.layers, without.layers);
    assert_eq!(with.findings, without.findings);
    assert_eq!(with.events, without.events);
}

#[test]
fn files_are_counted_by_file_system() {
    let found = explained();
    let by: Vec<_> = found
        .file_systems
        .iter()
        .map(|one| {
            (one.file_system.as_ref().map(|of| of.mount.as_str()), one.files, one.traffic.data().count)
        })
        .collect();
    assert_eq!(by, [(Some("/data"), 8, 16), (Some("/"), 1, 1)]);
    assert_eq!(found.files[0].striping, Some(Striping { unit_bytes: SAMPLE, targets: 4 }));
}

#[test]
fn a_training_program_becomes_a_workload_of_dlio() {
    let training = Training::of(&explained()).expect("a training program");
    assert_eq!(training.name, "resnet");
    assert_eq!((training.format, training.set.files, training.epochs), ("npy", 8, EPOCHS));
    assert_eq!((training.sample_bytes, training.sample_bytes_deviation), (SAMPLE, 0));
    assert_eq!((training.set.batch, training.readers), (2, 2));
    // 65 ms less five waits of 5 ms, for four batches.
    assert!((training.set.computation_s - 0.010).abs() < 1e-9, "{training:?}");
    assert_eq!((training.checkpoints, training.checkpoint_bytes), (1, 5000));
    let text = training.to_string();
    for line in [
        "  num_files_train: 8",
        "  record_length_bytes: 1048576",
        "  record_length: 1048576",
        "  model_size: 5000",
        "  batch_size: 2",
        "  computation_time: 0.010000",
        "  epochs_between_checkpoints: 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}

#[test]
fn starting_workers_and_saving_is_no_computing_and_a_checkpoint_counts_once() {
    let (mut tables, mut events) = training();
    tables
        .mark_names
        .extend(["loader start", "torch.distributed.checkpoint.save", "epoch"].map(String::from));
    tables.files.iter_mut().for_each(|file| file.path = file.path.replace(".npy", ".tfrecord"));
    // The last of each is after the epochs; the checkpoint saves its parts by torch.save, which is there once more.
    for begins in [10, 80, 158] {
        events.push(phase(4, 0, (0, 0), begins, begins + 2));
        events.push(phase(5, 0, (0, 0), begins + 2, begins + 6));
        events.push(phase(2, 0, (0, 0), begins + 3, begins + 4));
    }
    events.push(mark(6, 7, (0, 0), 9)); // the program's own
    events.sort_by_key(|event| event.start_ns);
    let training = Training::of(&Explanation::of(&tables, events)).expect("a training program");
    // Of 40 ms in each of two epochs, 6 ms are none; there are four batches in each.
    assert!((training.set.computation_s - 34e-3 / 4.0).abs() < 1e-9, "{training:?}");
    assert_eq!((training.checkpoints, training.checkpoint_bytes), (3, 5000 / 3));
    assert_eq!((training.epochs, training.readers), (EPOCHS, 2));
    let text = training.to_string();
    assert!(text.contains("framework: tensorflow\n") && text.contains("data_loader: tensorflow\n"), "{text}");
}

#[test]
fn what_is_no_training_program_says_why() {
    let (mut tables, events) = training();
    let calls = events.iter().filter(|event| event.op() != pio_trace::Op::Mark).cloned().collect::<Vec<_>>();
    let refused = Training::of(&Explanation::of(&tables, calls.clone())).expect_err("no marks");
    assert!(refused.contains("batch wait"), "{refused}");
    tables.files.iter_mut().for_each(|file| file.path.push_str(".txt"));
    let refused = Training::of(&Explanation::of(&tables, calls)).expect_err("no samples");
    assert!(refused.contains("no files of samples"), "{refused}");
}
