//! Training programs with several loaders as workloads of DLIO's benchmark: which loader trains, which evaluates, and when.

use std::ops::Range;

use pio_explain::{Explanation, Training};
use pio_trace::{
    Call, Event, File, FileId, Handle, HandleId, MarkNameId, Process, ProcessId, Tables, Target,
};

const MS: u64 = 1_000_000;
const SAMPLE: u64 = 1 << 20;
/// Each batch is waited for so long.
const WAIT_MS: u64 = 2;
const MAIN: u32 = 0;

/// A program that is written down as it runs: process 0 trains, the others read for it.
struct Program {
    tables: Tables,
    events: Vec<Event>,
    now_ms: u64,
}

impl Program {
    fn new(samples: u32) -> Program {
        let process = || Process {
            rank: None,
            pid: 7,
            host: "node".into(),
            command: "python train.py".into(),
            start_ns: 0,
            end_ns: Some(10_000 * MS),
        };
        let tables = Tables {
            processes: (0..3).map(|_| process()).collect(),
            files: (0..samples).map(|i| File { path: format!("/data/{i}.npy") }).collect(),
            ..Tables::default()
        };
        Program { tables, events: Vec::new(), now_ms: 1 }
    }

    fn phase(&mut self, name: &str, number: u64, from_ms: u64, to_ms: u64) {
        let names = &mut self.tables.mark_names;
        let known = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        self.events.push(Event {
            target: Target::Mark { name: MarkNameId(known as u32), number },
            elapsed_ns: (to_ms - from_ms) * MS,
            ..Event::new(Call::Phase, ProcessId(MAIN), from_ms * MS)
        });
    }

    fn read(&mut self, process: u32, file: u32, at_ms: u64) {
        let handle = HandleId(self.tables.handles.len() as u32);
        let process = ProcessId(process);
        self.tables.handles.push(Handle { file: FileId(file), process, ranks: 1, collective: 0 });
        let open = Event { handle: Some(handle), ..Event::new(Call::Open, process, at_ms * MS) };
        let read = Event {
            target: Target::Extent { offset: 0 },
            size: SAMPLE + 128,
            result: SAMPLE as i64 + 128,
            ..open.clone()
        };
        self.events.push(open);
        self.events.push(Event { call: Call::Read, start_ns: at_ms * MS + 1000, ..read });
    }

    /// What the recorder says of a loader before its first epoch.
    fn settings(&mut self, loader: u32, batch: u64, workers: u64) {
        let now_ms = self.now_ms;
        self.phase(&format!("loader {loader}, batch size"), batch, now_ms, now_ms);
        self.phase(&format!("loader {loader}, workers"), workers, now_ms, now_ms);
    }

    /// The batches of an epoch, each computed on for so long; the files are read while the first is waited for.
    fn batches(&mut self, by: u32, files: Range<u32>, batch: usize, step_ms: u64) {
        let files: Vec<u32> = files.collect();
        for (number, files) in files.chunks(batch).enumerate() {
            let now_ms = self.now_ms;
            self.phase("batch wait", number as u64, now_ms, now_ms + WAIT_MS);
            files.iter().for_each(|file| self.read(by, *file, now_ms + 1));
            self.now_ms += WAIT_MS + step_ms;
        }
    }

    /// An epoch of a loader, in which `run` goes on.
    fn epoch_with(&mut self, loader: u32, run: impl FnOnce(&mut Program)) {
        let from_ms = self.now_ms;
        run(self);
        // The last wait brings the end.
        self.phase("batch wait", 1000, self.now_ms, self.now_ms + 1);
        self.now_ms += 1;
        self.phase(&format!("epoch, loader {loader}"), from_ms, from_ms, self.now_ms);
        self.now_ms += 1;
    }

    /// Batches of 4 of 16 files, which process 1 reads; 10 ms a step.
    fn train(&mut self) {
        self.epoch_with(1, |program| program.batches(1, 0..16, 4, 10));
    }

    /// Batches of 3 of 7 files, which the program reads itself; 5 ms a step.
    fn evaluate(&mut self) {
        self.epoch_with(2, |program| program.batches(MAIN, 16..23, 3, 5));
    }

    fn training(mut self) -> Training {
        self.events.sort_by_key(|event| (event.start_ns, std::cmp::Reverse(event.elapsed_ns)));
        Training::of(&Explanation::of(&self.tables, self.events)).expect("a training program")
    }
}

#[test]
fn an_evaluation_set_is_no_part_of_the_training_set() {
    let mut program = Program::new(23);
    program.settings(1, 4, 2);
    program.settings(2, 3, 0);
    for _ in 0..3 {
        program.train();
        program.evaluate();
    }
    let training = program.training();
    assert_eq!((training.set.files, training.set.batch, training.epochs), (16, 4, 3));
    assert!((training.set.computation_s - 0.010).abs() < 1e-9, "{training:?}");
    let evaluation = training.evaluation.as_ref().expect("an evaluation");
    assert_eq!((evaluation.set.files, evaluation.set.batch), (7, 3));
    assert!((evaluation.set.computation_s - 0.005).abs() < 1e-9, "{training:?}");
    assert_eq!((evaluation.after_epoch, evaluation.epochs_between), (1, 1));
    assert_eq!(training.readers, 2);
    assert_eq!(training.left_out.len(), 1, "{training:?}");
    assert!(training.left_out[0].contains("0 workers"), "{training:?}");
    let text = training.to_string();
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "  evaluation: True",
        "  num_files_train: 16",
        "  num_files_eval: 7",
        "  batch_size: 4",
        "  batch_size_eval: 3",
        "  read_threads: 2",
        "  eval_time: 0.005000",
        "  eval_after_epoch: 1",
        "  epochs_between_evals: 1",
    ] {
        assert!(lines.contains(&line), "{line} is not in {text}");
    }
}

#[test]
fn without_the_settings_of_loaders_batches_are_counted() {
    let mut program = Program::new(23);
    program.train();
    program.evaluate();
    let training = program.training();
    // Seven files in three batches are two a batch, rounded.
    assert_eq!((training.set.batch, training.evaluation.as_ref().map(|it| it.set.batch)), (4, Some(2)));
    assert!(training.left_out.is_empty(), "{training:?}");
}

/// Its waits are for batches alone: none brings an end.
#[test]
fn a_program_that_marks_its_own_waits_has_as_many_batches() {
    for (batch, step_ms) in [(16, 40), (4, 10)] {
        let mut program = Program::new(16);
        for epoch in 0..2 {
            let from_ms = program.now_ms;
            program.batches(MAIN, 0..16, batch, step_ms);
            program.phase("epoch", epoch, from_ms, program.now_ms);
            program.now_ms += 1;
        }
        let set = program.training().set;
        assert_eq!((set.files, set.batch), (16, batch as u64));
        assert!((set.computation_s - step_ms as f64 / 1e3).abs() < 1e-9, "{set:?}");
    }
}

#[test]
fn evaluations_have_the_epochs_after_which_they_are_done() {
    let mut program = Program::new(23);
    for epoch in 1..=7 {
        program.train();
        if epoch % 3 == 2 {
            program.evaluate();
        }
    }
    let evaluation = program.training().evaluation.expect("an evaluation");
    assert_eq!((evaluation.after_epoch, evaluation.epochs_between), (2, 3));

    let mut program = Program::new(23);
    for _ in 0..4 {
        program.train();
    }
    program.evaluate();
    let evaluation = program.training().evaluation.expect("an evaluation");
    // It is done once: the next would be after the end.
    assert_eq!((evaluation.after_epoch, evaluation.epochs_between), (4, 4));
}

#[test]
fn what_is_within_epochs_of_another_evaluates_however_much_it_reads() {
    let mut program = Program::new(60);
    for _ in 0..2 {
        program.epoch_with(1, |program| {
            program.batches(1, 0..8, 4, 10);
            // A worker that reads ahead for training meanwhile.
            program.read(1, 59, program.now_ms + 3);
            program.epoch_with(2, |program| program.batches(2, 16..46, 10, 100));
            program.epoch_with(2, |program| program.batches(2, 16..46, 10, 100));
            program.batches(1, 8..16, 4, 10);
        });
    }
    let training = program.training();
    assert_eq!((training.set.files, training.epochs), (17, 2));
    // Each epoch has four batches; 2 ms more go by after the evaluations.
    assert!((training.set.computation_s - 0.0105).abs() < 1e-9, "{training:?}");
    let evaluation = training.evaluation.expect("an evaluation");
    assert_eq!((evaluation.set.files, evaluation.after_epoch, evaluation.epochs_between), (30, 1, 1));
    assert_eq!(training.left_out.len(), 1, "{:?}", training.left_out);
    assert!(training.left_out[0].contains("4 times in 2"), "{:?}", training.left_out);
}

#[test]
fn an_evaluation_before_training_is_left_out() {
    let mut program = Program::new(23);
    program.evaluate();
    program.train();
    program.evaluate();
    let training = program.training();
    assert_eq!(training.set.files, 16);
    let evaluation = training.evaluation.expect("an evaluation");
    assert_eq!((evaluation.set.files, evaluation.after_epoch), (7, 1));
    assert!(training.left_out[0].contains("before training"), "{:?}", training.left_out);
}

#[test]
fn a_single_loader_trains() {
    let mut program = Program::new(23);
    program.evaluate();
    let training = program.training();
    assert_eq!((training.evaluation.as_ref(), training.set.batch), (None, 2));
    assert!(!training.to_string().contains("eval_"), "{training}");
    assert!(training.to_string().contains("evaluation: False"), "{training}");
}

#[test]
fn a_loader_that_is_made_anew_is_the_same_and_others_are_left_out() {
    let mut program = Program::new(30);
    for epoch in 0..3 {
        program.train();
        program.epoch_with(2 + epoch, |program| program.batches(MAIN, 16..23, 3, 5));
    }
    program.epoch_with(5, |program| program.batches(MAIN, 25..28, 3, 5));
    let training = program.training();
    let evaluation = training.evaluation.expect("an evaluation");
    assert_eq!((evaluation.set.files, evaluation.epochs_between), (7, 1));
    assert_eq!(training.left_out.len(), 1, "{:?}", training.left_out);
    assert!(training.left_out[0].contains("`epoch, loader 5`"), "{:?}", training.left_out);
}
