//! Exports, read back by other people's readers.

use std::fs::File;

use crate::support::{self, small_job, tables, write};
use pio_trace::{Call, Event, FileId, Handle, Layer, Op, ProcessId, Splits, Target, Trace, export};

/// With two notes of the same name.
fn trace() -> Trace {
    let mut tables = tables();
    tables.notes.extend(["cb_nodes=4", "cb_nodes=8"].map(|hints| ("hints given".into(), hints.into())));
    Trace::from_bytes(write(tables, &small_job(), 10), "job.pio").unwrap()
}

#[test]
fn chrome_json_has_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.json");
    export::chrome(&trace(), &Splits::default(), &File::create(&path).unwrap(), &path, &mut |_| {}).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["otherData"]["job"], "mpiexec -n 2 venus --grid 64");
    assert_eq!(json["otherData"]["note: hints given"], "cb_nodes=4\ncb_nodes=8");
    let all = json["traceEvents"].as_array().unwrap();
    let (calls, names): (Vec<_>, Vec<_>) = all.iter().partition(|entry| entry["ph"] == "X");
    assert_eq!(names.len(), 4);
    assert_eq!(names[2]["args"]["name"], "rank 1 (node1, pid 4892): venus --grid 64");
    let events = small_job();
    assert_eq!(calls.len(), events.len());
    for (call, event) in calls.iter().zip(&events) {
        assert_eq!(call["name"], event.call.name());
        assert_eq!(call["pid"], event.process.0);
        assert_eq!(call["tid"], event.thread);
        assert_eq!((call["ts"].as_f64().unwrap() * 1000.0).round() as u64, event.start_ns);
        assert_eq!((call["dur"].as_f64().unwrap() * 1000.0).round() as u64, event.elapsed_ns);
        assert_eq!(call["args"]["size"], event.size);
        assert_eq!(call["args"]["result"], event.result);
        let file = event.handle.map(|handle| tables().file_of(handle).unwrap().path.clone());
        assert_eq!(call["args"].get("file").and_then(|file| file.as_str()), file.as_deref());
        if let Target::Extent { offset } = event.target {
            assert_eq!(call["args"]["offset"], offset);
        }
    }
}

/// Parts for the first collective call of [`small_job`].
fn splits(files_seen: bool) -> Splits {
    let mut splits = Splits::default();
    for block in small_job().chunks(10) {
        splits.begin_block();
        block.iter().for_each(|event| splits.add(event));
    }
    splits.set(0, [5, 3, 2]);
    splits.set_files_seen(files_seen);
    splits
}

#[test]
fn chrome_json_has_the_parts_of_a_collective_call() {
    let folder = tempfile::tempdir().unwrap();
    for files_seen in [true, false] {
        let path = folder.path().join("job.json");
        export::chrome(&trace(), &splits(files_seen), &File::create(&path).unwrap(), &path, &mut |_| {})
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let calls = json["traceEvents"].as_array().unwrap().iter().filter(|entry| entry["ph"] == "X");
        let with_parts: Vec<_> = calls.filter(|call| call["args"].get("late_ns").is_some()).collect();
        assert_eq!(with_parts.len(), 1);
        let arguments = &with_parts[0]["args"];
        assert_eq!((&arguments["late_ns"], &arguments["library_ns"]), (&5.into(), &3.into()));
        assert_eq!(arguments.get("files_ns").and_then(|part| part.as_u64()), files_seen.then_some(2));
    }
}

/// Calls of a thread that overlap would be dropped by a viewer if they were complete events.
#[test]
fn chrome_json_has_asynchronous_calls_as_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.json");
    let mut events = small_job();
    events.retain(|event| event.op() == Op::Write && matches!(event.target, Target::Extent { .. }));
    events.iter_mut().for_each(|event| event.call = Call::IoUringWrite);
    let trace = Trace::from_bytes(write(tables(), &events, 10), "job.pio").unwrap();
    export::chrome(&trace, &Splits::default(), &File::create(&path).unwrap(), &path, &mut |_| {}).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let of_kind = |kind: &str| -> Vec<_> {
        json["traceEvents"].as_array().unwrap().iter().filter(|entry| entry["ph"] == kind).collect()
    };
    let (begins, ends) = (of_kind("b"), of_kind("e"));
    assert_eq!((begins.len(), ends.len(), of_kind("X").len()), (events.len(), events.len(), 0));
    assert!(!events.is_empty());
    for ((begin, end), (number, event)) in begins.iter().zip(&ends).zip(events.iter().enumerate()) {
        for same in ["name", "cat", "pid", "tid", "id"] {
            assert_eq!(begin[same], end[same]);
        }
        assert_eq!((&begin["id"], &begin["args"]["size"]), (&number.into(), &event.size.into()));
        let ns = |entry: &serde_json::Value| (entry["ts"].as_f64().unwrap() * 1000.0).round() as u64;
        assert_eq!((ns(begin), ns(end)), (event.start_ns, event.start_ns + event.elapsed_ns));
    }
}

#[test]
fn chrome_json_of_nothing_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.json");
    export::chrome(
        &Trace::from_bytes(write(Default::default(), &[], 1), "none.pio").unwrap(),
        &Splits::default(),
        &File::create(&path).unwrap(),
        &path,
        &mut |_| {},
    )
    .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["traceEvents"].as_array().unwrap().len(), 0);
}

#[test]
fn an_iolog_has_what_reached_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.iolog");
    let mut events = small_job();
    events.retain(|event| event.op() != Op::Communicate);
    // As of a pipe.
    let written = events.iter_mut().find(|event| event.layer() == Layer::Posix && event.op() == Op::Write);
    written.unwrap().target = Target::None;
    let trace = Trace::from_bytes(write(tables(), &events, 10), "job.pio").unwrap();
    let requests = export::fio(&trace, &File::create(&path).unwrap(), &path, &mut |_| {}).unwrap();
    let log = std::fs::read_to_string(&path).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("fio version 3 iolog"));
    let lines: Vec<Vec<_>> = lines.map(|line| line.split(' ').collect()).collect();
    assert!(lines.iter().all(|line| line.len() == 3 || line.len() == 5), "{log}");
    let is_io = |line: &&Vec<&str>| matches!(line[2], "read" | "write" | "sync" | "datasync");
    assert_eq!(lines.iter().filter(is_io).count() as u64, requests.written);
    assert_eq!(requests.nowhere, 1);
    let physical = events.iter().any(Event::is_physical);
    let moved: u64 = events
        .iter()
        .filter(|event| matches!(event.op(), Op::Read | Op::Write) && event.target != Target::None)
        .filter(|event| event.layer() != Layer::MpiIo || !physical)
        .map(Event::transferred)
        .sum();
    let written: u64 = lines.iter().filter(is_io).map(|line| line[4].parse::<u64>().unwrap()).sum();
    assert!(moved > 0);
    assert_eq!(written, moved);
}

/// `a b` and `a_b` were one file.
#[test]
fn files_of_an_iolog_have_names_of_their_own() {
    let paths = ["/d/a b", "/d/a_b", "/d/a\tb", "/d/a_b-2", "/d/c d", "/d/a b"];
    let tables = pio_trace::Tables {
        processes: tables().processes,
        files: paths.iter().map(|&path| pio_trace::File { path: path.into() }).collect(),
        handles: (0..6)
            .map(|file| Handle { file: FileId(file), process: ProcessId(0), ranks: 1, collective: 0 })
            .collect(),
        ..Default::default()
    };
    let events: Vec<_> = (0..6)
        .map(|file| Event {
            call: Call::Pread,
            process: ProcessId(0),
            handle: Some(pio_trace::HandleId(file)),
            target: Target::Extent { offset: 0 },
            ..support::event(u64::from(file) * 1000)
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.iolog");
    let trace = Trace::from_bytes(write(tables, &events, 10), "job.pio").unwrap();
    export::fio(&trace, &File::create(&path).unwrap(), &path, &mut |_| {}).unwrap();
    let log = std::fs::read_to_string(&path).unwrap();
    let names: Vec<_> = log
        .lines()
        .filter(|line| line.contains(" read "))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    let expected = ["/d/a_b-3", "/d/a_b", "/d/a_b-4", "/d/a_b-2", "/d/c_d", "/d/a_b-3"];
    assert_eq!(names, expected);
}

/// fio itself, where there is one, carries out what a log says.
#[test]
fn fio_carries_out_an_iolog() {
    let folder = tempfile::tempdir().unwrap();
    let (log, data) = (folder.path().join("job.iolog"), folder.path().join("data"));
    std::fs::write(&data, [0; 1 << 16]).unwrap();
    let mut tables = tables();
    tables.files[1].path = data.display().to_string();
    // A file that was asked about, and is not there.
    tables.files.push(pio_trace::File { path: folder.path().join("none").display().to_string() });
    let call = |call, start_ns, offset| Event {
        call,
        target: Target::Extent { offset },
        ..support::event(start_ns)
    };
    let events = [
        Event { target: Target::None, size: 0, result: 0, ..call(Call::Open, 1000, 0) },
        call(Call::Pwrite, 2000, 8192),
        call(Call::Pread, 3000, 0),
        call(Call::Pread, 4000, 4096),
        Event { target: Target::None, size: 0, result: 0, ..call(Call::Fsync, 5000, 0) },
        Event { target: Target::None, size: 0, result: 0, ..call(Call::Close, 6000, 0) },
    ];
    tables.files.remove(0);
    tables.handles = vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 }; 3];
    let trace = Trace::from_bytes(write(tables, &events, 10), "job.pio").unwrap();
    assert_eq!(export::fio(&trace, &File::create(&log).unwrap(), &log, &mut |_| {}).unwrap().written, 4);
    let fio = std::process::Command::new("fio")
        .args(["--name=job", "--ioengine=psync", "--output-format=json"])
        .arg(format!("--read_iolog={}", log.display()))
        .output();
    let Ok(done) = fio else {
        eprintln!("skipped: no fio here");
        return;
    };
    let text = String::from_utf8_lossy(&done.stdout);
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let job = &json["jobs"][0];
    assert_eq!(job["read"]["io_bytes"], 8192, "{json}");
    assert_eq!(job["write"]["io_bytes"], 4096);
    assert!(!folder.path().join("none").exists());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_every_event() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.parquet");
    export::parquet(&trace(), &splits(true), &File::create(&path).unwrap(), &path, &mut |_| {}).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let value =
        |key: &str| metadata.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_deref());
    assert_eq!(value("pioscope.job"), Some("mpiexec -n 2 venus --grid 64"));
    assert_eq!(value("pioscope.note.seed"), Some("7"));
    // Readers keep one value of a key.
    assert_eq!(value("pioscope.note.hints given"), Some("cb_nodes=4\ncb_nodes=8"));
    assert_eq!(reader.num_row_groups(), trace().blocks().len());

    let tables = tables();
    let events: Vec<Event> = small_job();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), events.len());
    let first = events.iter().position(Splits::has_one);
    for (index, (row, event)) in rows.iter().zip(&events).enumerate() {
        let cell = |name: &str| row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.clone();
        let text = |text: &str| Field::Str(text.into());
        let number = |number: Option<u64>| number.map_or(Field::Null, Field::ULong);
        assert_eq!(cell("layer"), text(event.layer().name()));
        assert_eq!(cell("call"), text(event.call.name()));
        assert_eq!(cell("op"), text(event.op().name()));
        assert_eq!(cell("rank"), number(Some(event.process.0.into())));
        assert_eq!(cell("host"), text(&format!("node{}", event.process.0)));
        assert_eq!(cell("thread"), number(Some(event.thread.into())));
        let path = event.handle.map(|handle| tables.file_of(handle).unwrap().path.clone());
        assert_eq!(cell("file"), path.map_or(Field::Null, Field::Str));
        let (offset, view, position, peer) = match event.target {
            Target::None => (None, None, None, None),
            Target::Extent { offset } => (Some(offset), None, None, None),
            Target::View { view, position } => (None, Some(view.0.into()), Some(position), None),
            Target::Peer { rank } => (None, None, None, Some(rank.into())),
            Target::Server { .. } | Target::Name { .. } | Target::Mark { .. } => (None, None, None, None),
        };
        assert_eq!(cell("offset"), number(offset));
        assert_eq!(cell("view"), number(view));
        assert_eq!(cell("position"), number(position));
        assert_eq!(cell("peer"), number(peer));
        assert_eq!(cell("memory"), number(event.memory.map(|memory| memory.0.into())));
        assert_eq!(cell("size"), number(Some(event.size)));
        assert_eq!(cell("result"), Field::Long(event.result));
        assert_eq!(cell("start_ns"), number(Some(event.start_ns)));
        assert_eq!(cell("elapsed_ns"), number(Some(event.elapsed_ns)));
        assert_eq!(cell("think_ns"), number(Some(event.think_ns)));
        assert_eq!(cell("used_ns"), number(event.used_ns));
        assert_eq!(cell("operation"), number(Some(event.operation)));
        for (name, part_ns) in [("late_ns", 5), ("library_ns", 3), ("files_ns", 2)] {
            assert_eq!(cell(name), number((Some(index) == first).then_some(part_ns)), "{name}");
        }
        assert_eq!(cell("physical"), Field::Bool(event.is_physical()));
        let flag = |flag| Field::Bool(event.flags.contains(flag));
        assert_eq!(cell("collective"), flag(pio_trace::Flags::COLLECTIVE));
        assert_eq!(cell("async"), flag(pio_trace::Flags::ASYNC));
        assert_eq!(cell("append"), flag(pio_trace::Flags::APPEND));
        assert_eq!(cell("unfinished"), flag(pio_trace::Flags::UNFINISHED));
    }
}
