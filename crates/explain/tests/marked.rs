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
        mark_names: ["epoch", "batch wait", "torch.save", "stage"].map(String::from).into(),
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

fn explained() -> Explanation {
    let (tables, events) = training();
    Explanation::of(&tables, events)
}

#[test]
fn epochs_have_their_waits_and_what_their_workers_read() {
    let found = explained();
    let [epoch, wait, save, stage] =
        ["epoch", "batch wait", "torch.save", "stage"].map(|name| found.marked.find(name).expect("the name"));
    let names = &found.marked.names;
    let sum = &names[epoch].sum;
    assert_eq!((sum.count, sum.time_ns, sum.longest_ns), (2, 130 * MS, 65 * MS));
    assert_eq!(sum.within_ns.get(&wait), Some(&(50 * MS)));
    let all = 8 * (SAMPLE + 128);
    let sources: Vec<_> = names[epoch]
        .numbers
        .iter()
        .map(|(_, time)| (time.from_storage.bytes, time.from_memory.bytes))
        .collect();
    assert_eq!(sources, [(all, 0), (0, all)]);
    assert_eq!(names[epoch].numbers[0].1.from_storage.time_ns, 8 * 4 * MS);
    // The n-th wait of every epoch.
    let waits: Vec<_> = names[wait].numbers.iter().map(|(number, time)| (*number, time.count)).collect();
    assert_eq!(waits, (0..=BATCHES).map(|number| (number, EPOCHS)).collect::<Vec<_>>());
    assert_eq!((names[save].sum.count, names[save].sum.written.bytes), (1, 5000));
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
    assert_eq!((training.format, training.files, training.epochs), ("npy", 8, EPOCHS));
    assert_eq!((training.sample_bytes, training.sample_bytes_deviation), (SAMPLE, 0));
    assert_eq!((training.batch, training.readers), (2, 2));
    // 65 ms less five waits of 5 ms, for four batches.
    assert!((training.computation_s - 0.010).abs() < 1e-9, "{training:?}");
    assert_eq!((training.checkpoints, training.checkpoint_bytes), (1, 5000));
    let text = training.to_string();
    for line in [
        "  num_files_train: 8",
        "  batch_size: 2",
        "  computation_time: 0.010000",
        "  epochs_between_checkpoints: 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
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
