//! Logs of DFTracer: all versions, alone and in folders, whole and damaged.

// A test that cannot set up its scene fails there.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use pio_import::{Format, ImportError, Tool};
use pio_trace::{Call, Event, Flags, Target, Trace};
use proptest::prelude::*;

fn write(log: &[u8]) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    pio_import::write_trace_from(Tool::Dftracer, log, Path::new("log"), &mut bytes, Path::new("trace"))?;
    Ok(bytes)
}

fn trace_of(log: &[u8]) -> Trace {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), write(log).unwrap()).unwrap();
    Trace::open(file.path()).unwrap()
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn notes<'a>(trace: &'a Trace, name: &str) -> Vec<&'a str> {
    trace.tables().notes.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
}

/// Call, path, offset, size, result.
type Row = (Call, String, Option<u64>, u64, i64);

fn rows(trace: &Trace) -> Vec<Row> {
    let row = |event: Event| {
        let path = trace.tables().file_of_event(&event).unwrap().path.clone();
        let offset = match event.target {
            Target::Extent { offset } => Some(offset),
            _ => None,
        };
        (event.call, path, offset, event.size, event.result)
    };
    trace.events().map(Result::unwrap).map(row).collect()
}

fn row(call: Call, path: &str, offset: impl Into<Option<u64>>, size: u64, result: i64) -> Row {
    (call, path.to_owned(), offset.into(), size, result)
}

/// As version 2 writes: phases are numbers, names hashes, no descriptors.
const NEW: &str = r#"{"name":"HH","cat":"dftracer","type":1,"pid":10,"tid":10,"ph":4,"args":{"hhash":"68","name":"node1","value":"68"}}
{"name":"CM","cat":"dftracer","type":1,"pid":10,"tid":10,"ph":4,"args":{"hhash":"68","name":"time_metric","value":"US"}}
{"name":"FH","cat":"dftracer","type":1,"pid":10,"tid":10,"ph":4,"args":{"hhash":"68","name":"/w","value":"f4"}}
{"name":"SH","cat":"dftracer","type":1,"pid":10,"tid":10,"ph":4,"args":{"hhash":"68","name":"./p;-x","value":"6b"}}
{"id":1,"name":"start","cat":"dftracer","type":1,"pid":10,"tid":10,"ts":1795672541986920,"dur":0,"ph":1,"args":{"hhash":"68","ppid":1,"cmd_hash":"6b","version":20003,"cwd":"f4"}}
{"name":"FH","cat":"dftracer","type":1,"pid":10,"tid":10,"ph":4,"args":{"hhash":"68","name":"d/a","value":"b1"}}
{"id":2,"name":"open64","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987000,"dur":63,"ph":1,"args":{"hhash":"68","flags":66,"mode":420,"fhash":"b1"}}
{"id":3,"name":"write","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987100,"dur":28,"ph":1,"args":{"hhash":"68","ret":100,"count":4096,"fhash":"b1"}}
{"id":4,"name":"write","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987200,"dur":28,"ph":1,"args":{"hhash":"68","ret":-1,"count":4096,"fhash":"b1"}}
{"id":5,"name":"pwrite64","cat":"POSIX","type":3,"pid":10,"tid":11,"ts":1795672541987300,"dur":3,"ph":1,"args":{"hhash":"68","ret":60,"offset":1000,"count":60,"fhash":"b1"}}
{"id":6,"name":"writev","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987400,"dur":3,"ph":1,"args":{"hhash":"68","ret":30,"iovcnt":2,"fhash":"b1"}}
{"id":7,"name":"lseek64","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987500,"dur":1,"ph":1,"args":{"hhash":"68","ret":8192,"whence":0,"offset":8192,"fhash":"b1"}}
{"id":8,"name":"read","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987600,"dur":1,"ph":1,"args":{"hhash":"68","ret":0,"count":10,"fhash":"b1"}}
{"id":9,"name":"close","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541987700,"dur":4,"ph":1,"args":{"hhash":"68","ret":0,"fhash":"b1"}}
{"name":"FH","cat":"dftracer","type":1,"pid":10,"tid":10,"ph":4,"args":{"hhash":"68","name":"/s","value":"c1"}}
{"id":10,"name":"fopen64","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541987800,"dur":4,"ph":1,"args":{"hhash":"68","mode":"a+","fhash":"c1"}}
{"id":11,"name":"fwrite","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541987900,"dur":4,"ph":1,"args":{"hhash":"68","ret":100,"count":100,"size":8,"fhash":"c1"}}
{"id":12,"name":"rewind","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541988000,"dur":4,"ph":1,"args":{"hhash":"68","fhash":"c1"}}
{"id":13,"name":"fread","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541988100,"dur":4,"ph":1,"args":{"hhash":"68","ret":3,"count":10,"size":8,"fhash":"c1"}}
{"id":14,"name":"fgets","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541988200,"dur":4,"ph":1,"args":{"hhash":"68","num":100,"ret_len":7,"fhash":"c1"}}
{"id":15,"name":"fgets","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541988300,"dur":4,"ph":1,"args":{"hhash":"68","num":100,"fhash":"c1"}}
{"id":16,"name":"fclose","cat":"STDIO","type":3,"pid":10,"tid":10,"ts":1795672541988400,"dur":4,"ph":1,"args":{"hhash":"68","fhash":"c1"}}
{"id":17,"name":"rename","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541988500,"dur":27,"ph":1,"args":{"hhash":"68","newpath_hash":"b1","fhash":"c1"}}
{"id":18,"name":"step","cat":"epoch","type":6,"pid":10,"tid":10,"ts":1795672541986950,"dur":1600,"ph":1,"args":{"hhash":"68","more":{"a":[1,2]}}}
{"id":19,"name":"fork","cat":"POSIX","type":3,"pid":10,"tid":10,"ts":1795672541988600,"dur":11,"ph":1,"args":{"hhash":"68","ret":12}}
{"name":"cpu","cat":"sys","type":7,"ts":1795672541988600,"ph":2,"pid":10,"tid":0,"args":{"hhash":"68","user_pct":12.5}}
{"id":20,"name":"end","cat":"dftracer","type":1,"pid":10,"tid":10,"ts":1795672541989920,"dur":0,"ph":1,"args":{"hhash":"68","app":{},"num_events":20}}
"#;

fn of_new() -> Vec<Row> {
    let (file, stream) = ("/w/d/a", "/s");
    vec![
        row(Call::Open, file, None, 0, 0),
        row(Call::Write, file, 0, 4096, 100),
        row(Call::Write, file, 100, 4096, -5),
        row(Call::Pwrite, file, 1000, 60, 60),
        row(Call::Writev, file, 100, 30, 30),
        row(Call::Lseek, file, 8192, 0, 0),
        row(Call::Read, file, 8192, 10, 0),
        row(Call::Close, file, None, 0, 0),
        row(Call::Fopen, stream, None, 0, 0),
        row(Call::Fwrite, stream, None, 800, 800),
        row(Call::Fseek, stream, 0, 0, 0),
        row(Call::Fread, stream, 0, 80, 24),
        row(Call::Fread, stream, 24, 100, 7),
        row(Call::Fread, stream, 31, 100, 0),
        row(Call::Fclose, stream, None, 0, 0),
        row(Call::Rename, stream, None, 0, 0),
    ]
}

/// They were one file, whose name had a character for bytes that are none.
#[test]
fn names_that_are_no_utf_8_stay_different() {
    let mut log = b"[\n".to_vec();
    for (number, byte) in [0xfc, 0xfd].into_iter().enumerate() {
        let start = format!(
            r#"{{"id":"{number}","name":"open","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781412","dur":"10","ph":"X","args":{{"hostname":"a","ret":18,"flags":66,"fname":"/d/"#
        );
        log.extend(start.as_bytes());
        log.push(byte);
        log.extend(b"\",\"mode\":420}}\n");
    }
    let trace = trace_of(&log);
    let files: Vec<_> = trace.tables().files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, [r"/d/\xfc", r"/d/\xfd"]);
}

/// What is written to a file that was cut to nothing need not be read before.
#[test]
fn modes_of_streams_say_how_files_are_opened() {
    for (mode, opened) in [("w+", Flags::TRUNCATE), ("a", Flags::APPEND), ("r+", Flags::NONE)] {
        let trace = trace_of(NEW.replace("\"a+\"", &format!("\"{mode}\"")).as_bytes());
        let events = trace.events().map(Result::unwrap);
        let streams: Vec<_> =
            events.filter(|event| event.call == Call::Fopen).map(|event| event.flags).collect();
        assert_eq!(streams, [opened], "{mode}");
    }
}

#[test]
fn version_2_is_read() {
    let trace = trace_of(NEW.as_bytes());
    assert_eq!(rows(&trace), of_new());
    let tables = trace.tables();
    assert_eq!(tables.epoch_ns, 1_795_672_541_986_920_000);
    let [process] = tables.processes.as_slice() else { panic!("{:?}", tables.processes) };
    assert_eq!((process.pid, process.host.as_str(), process.command.as_str()), (10, "node1", "./p -x"));
    assert_eq!((process.start_ns, process.end_ns), (0, Some(3_000_000)));
    let events: Vec<_> = trace.events().map(Result::unwrap).collect();
    assert_eq!((events[0].start_ns, events[0].elapsed_ns), (80_000, 63_000));
    assert_eq!([2, 3, 4].map(|index: usize| events[index].thread), [0, 1, 0]);
    assert!(events[9].flags.contains(Flags::APPEND));
    assert_eq!(tables.other_file_of_event(&events[15]).unwrap().path, "/w/d/a");
    assert_eq!(
        notes(&trace, "other events"),
        ["2 that are no calls on files: 1 of epoch (step); 1 of sys (cpu)"]
    );
    assert_eq!(notes(&trace, "passed over").len(), 1, "fork");
    assert_eq!(notes(&trace, "lost lines"), [""; 0]);
    assert_eq!(rows(&trace_of(&packed(NEW.as_bytes()))), of_new());
}

#[test]
fn the_versions_before_are_read() {
    // 1: letters, and a list that may be closed or not. Before: numbers as texts, paths, descriptors.
    let numbers = NEW.replace(r#""ph":1,"#, r#""ph":"X","#).replace(r#""ph":4,"#, r#""ph":"M","#);
    let first = numbers.replace(r#""ph":2,"#, r#""ph":"C","#).replace(r#""type":3,"#, "");
    for log in
        [format!("[\n{first}]"), format!("[\n{first}"), format!("[{first}"), first.replace("}\n", "},\n")]
    {
        let trace = trace_of(log.as_bytes());
        assert_eq!(rows(&trace), of_new());
        assert_eq!(notes(&trace, "lost lines"), [""; 0]);
    }
    let oldest = r#"[
 {"id":"0","name":"open","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781412","dur":"3430","ph":"X","args":{"hostname":"a","ret":18,"flags":66,"fname":"/d/f","mode":420}}
{"id":"1","name":"open","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781512","dur":"10","ph":"X","args":{"hostname":"a","ret":19,"flags":66,"fname":"/d/f","mode":420}}
{"id":"2","name":"write","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781612","dur":"10","ph":"X","args":{"hostname":"a","ret":"10","count":"10","fname":"/d/f","fd":18}}
{"id":"3","name":"write","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781712","dur":"10","ph":"X","args":{"hostname":"a","ret":"20","count":"20","fname":"/d/f","fd":19}}
{"id":"4","name":"write","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781812","dur":"10","ph":"X","args":{"hostname":"a","ret":"10","count":"10","fname":"/d/f","fd":18}}
{"id":"5","name":"open","cat":"POSIX","pid":"7","tid":"14","ts":"1698080323781912","dur":"10","ph":"X","args":{"hostname":"a","ret":-1,"flags":66,"fname":"/d/g","mode":420}}
"#;
    let trace = trace_of(oldest.as_bytes());
    let file = "/d/f";
    let expected = [
        row(Call::Open, file, None, 0, 0),
        row(Call::Open, file, None, 0, 0),
        row(Call::Write, file, 0, 10, 10),
        row(Call::Write, file, 0, 20, 20),
        row(Call::Write, file, 10, 10, 10),
        row(Call::Open, "/d/g", None, 0, -5),
    ];
    assert_eq!(rows(&trace), expected);
    assert_eq!(trace.tables().processes[0].host, "a");
    assert_eq!(
        trace.tables().processes[0].end_ns,
        Some(3_430_000),
        "the end of its last call: it does not say when it began"
    );
}

/// A process that was forked knows what its parent calls a file; a killed one leaves a log of nothing.
#[test]
fn a_folder_is_one_trace() {
    let child = r#"{"name":"HH","cat":"dftracer","type":1,"pid":12,"tid":12,"ph":4,"args":{"hhash":"68","name":"node1","value":"68"}}
{"id":1,"name":"start","cat":"dftracer","type":1,"pid":12,"tid":12,"ts":1795672541988700,"dur":0,"ph":1,"args":{"hhash":"68","ppid":10,"cmd_hash":"6b","version":20003,"cwd":"f4"}}
{"id":2,"name":"read","cat":"POSIX","type":3,"pid":12,"tid":12,"ts":1795672541988800,"dur":1,"ph":1,"args":{"hhash":"68","ret":5,"count":10,"fhash":"b1"}}
{"id":3,"name":"read","cat":"POSIX","type":3,"pid":12,"tid":12,"ts":1795672541988900,"dur":1,"ph":1,"args":{"hhash":"68","ret":5,"count":10,"fhash":"dd"}}
{"name":"PR","cat":"dftracer","pid":12,"tid":12,"ph":4,"args":{"name":"rank","value":"3"}}
"#;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    assert_eq!(pio_import::recognise(folder.path()).unwrap(), None);
    file("a-fork.pfw.gz", &packed(child.as_bytes()));
    file("b-fork.pfw", b"");
    file("c-preload.pfw", NEW.as_bytes());
    // What it was compressed to, when the machine went down.
    file("c-preload.pfw.gz", b"\x1f\x8b\x08half");
    file("c-preload.pfw.gz.zindex", b"an index");
    assert_eq!(pio_import::recognise(folder.path()).unwrap(), Some(Format::DftracerFolder));
    let trace = pio_import::open(folder.path()).unwrap();
    let mut expected = of_new();
    expected.push(row(Call::Read, "/w/d/a", None, 10, 5));
    expected.push(row(Call::Read, "file of hash dd", None, 10, 5));
    let mut found = rows(&trace);
    // The hash of no name is relative to nothing.
    assert_eq!(found.split_off(16), expected.split_off(16));
    assert_eq!(found, expected);
    let processes: Vec<_> =
        trace.tables().processes.iter().map(|it| (it.pid, it.rank, it.command.as_str(), it.end_ns)).collect();
    assert_eq!(processes, [(10, None, "./p -x", Some(3_000_000)), (12, Some(3), "./p -x", None)]);
    assert_eq!(notes(&trace, "lost processes"), ["1 logs with nothing in them: their processes were killed"]);
    assert_eq!(notes(&trace, "lost names"), ["1 files of which the logs have only a hash"]);
    assert_eq!(notes(&trace, "lost by damage"), [""; 0]);
}

#[test]
fn threads_that_write_in_pieces_are_put_in_order() {
    let mut lines: Vec<&str> = NEW.lines().collect();
    // The open comes last.
    let open = lines.remove(6);
    lines.push(open);
    assert_eq!(rows(&trace_of(lines.join("\n").as_bytes())), of_new());
}

#[test]
fn damage_is_left_out_and_told() {
    let cut = &NEW[..NEW.find(r#""name":"fork""#).unwrap()];
    let trace = trace_of(cut.as_bytes());
    assert_eq!(rows(&trace), of_new());
    assert_eq!(notes(&trace, "lost lines"), [r#"1 not understood: line 25 '{"id":19'"#]);
    assert_eq!(trace.tables().processes[0].end_ns, None, "it does not say that it ended");

    let half = NEW.len() / 2;
    let [mut first, second] = [&NEW[..half], &NEW[half..]].map(|text| packed(text.as_bytes()));
    first.truncate(first.len() - 40);
    let broken = first.len();
    first.extend(second);
    let trace = trace_of(&first);
    assert_eq!(rows(&trace).last().unwrap().0, Call::Rename, "the member behind is read");
    let [told] = notes(&trace, "lost by damage")[..] else { panic!() };
    assert!(told.starts_with("damaged at byte ") && told.ends_with("expected data of gzip"), "{told}");
    let place: usize = told.split(' ').nth(3).unwrap().trim_end_matches(':').parse().unwrap();
    assert!(place <= broken + 100, "{place} of {broken}");
}

#[test]
fn logs_without_single_calls_are_refused() {
    let sums = r#"{"name":"write","cat":"POSIX","type":3,"ts":1795672723000000,"ph":3,"pid":1,"tid":1,"args":{"hhash":"68","ret_sum":40967,"dft_cnt":11}}"#;
    let before = sums.replace(r#""ph":3"#, r#""ph":"C""#);
    let bare = r#"{"id":2,"name":"write","cat":"POSIX","type":3,"pid":1,"tid":1,"ts":1795672723385426,"dur":11,"ph":1}"#;
    for (log, option) in [
        (sums, "DFTRACER_ENABLE_AGGREGATION=1"),
        (&before, "DFTRACER_ENABLE_AGGREGATION=1"),
        (bare, "DFTRACER_INC_METADATA=1"),
    ] {
        let told = write(log.as_bytes()).unwrap_err().to_string();
        assert!(told.starts_with("log: no calls for a trace in it") && told.contains(option), "{told}");
    }
    let both = trace_of(format!("{NEW}{sums}\n{bare}\n").as_bytes());
    assert_eq!(rows(&both), of_new());
    assert_eq!(notes(&both, "lost calls").len(), 2);
}

#[test]
fn other_json_is_not_taken_for_a_log() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let recognised = |bytes: &[u8]| {
        fs::write(file.path(), bytes).unwrap();
        pio_import::recognise(file.path()).unwrap()
    };
    assert_eq!(recognised(NEW.as_bytes()), Some(Format::Calls(Tool::Dftracer)));
    assert_eq!(recognised(&packed(NEW.as_bytes())), Some(Format::Calls(Tool::Dftracer)));
    assert_eq!(recognised(format!("[\n{NEW}").as_bytes()), Some(Format::Calls(Tool::Dftracer)));
    assert_eq!(recognised(&packed(b"Dear diary")), None);
    assert_eq!(recognised(b"\x1f\x8b\x08"), None);
    assert_eq!(recognised(br#"{"traceEvents":[{"name":"a","ph":"X","pid":1,"ts":1}]}"#), None);
    assert_eq!(recognised(br#"[{"name":"a","cat":"b","ph":"X","pid":1,"tid":1,"ts":1,"args":{}}]"#), None);
}

/// What a program does with its file, in the order of a log.
#[derive(Clone, Debug)]
enum Step {
    Write(u16, u16),
    Read(u16, u16),
    Pwrite(u16, u16),
    Seek(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (any::<u16>(), any::<u16>()).prop_map(|(size, moved)| Step::Write(size, moved.min(size))),
        (any::<u16>(), any::<u16>()).prop_map(|(size, moved)| Step::Read(size, moved.min(size))),
        (any::<u16>(), any::<u16>()).prop_map(|(offset, size)| Step::Pwrite(offset, size)),
        any::<u16>().prop_map(Step::Seek),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// The file pointer is that of a model of three lines, however lines are cut into members of gzip.
    #[test]
    fn offsets_follow_from_the_calls_before(steps in steps(), member in 1usize..500) {
        let mut log = r#"{"name":"FH","cat":"dftracer","ph":4,"pid":1,"tid":1,"args":{"name":"/f","value":"a"}}"#.to_owned();
        log += "\n{\"name\":\"open\",\"cat\":\"POSIX\",\"ph\":1,\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"fhash\":\"a\"}}\n";
        let (mut position, mut expected) = (0u64, vec![row(Call::Open, "/f", None, 0, 0)]);
        for (at, step) in (2u64..).zip(&steps) {
            let (name, arguments, known) = match *step {
                Step::Write(size, moved) | Step::Read(size, moved) => {
                    let (name, call) = match step {
                        Step::Write(..) => ("write", Call::Write),
                        _ => ("read", Call::Read),
                    };
                    let known = row(call, "/f", position, size.into(), moved.into());
                    position += u64::from(moved);
                    (name, format!(r#""count":{size},"ret":{moved}"#), known)
                }
                Step::Pwrite(offset, size) => (
                    "pwrite",
                    format!(r#""count":{size},"ret":{size},"offset":{offset}"#),
                    row(Call::Pwrite, "/f", u64::from(offset), size.into(), size.into()),
                ),
                Step::Seek(to) => {
                    position = to.into();
                    let known = row(Call::Lseek, "/f", position, 0, 0);
                    ("lseek", format!(r#""ret":{to},"offset":{to},"whence":0"#), known)
                }
            };
            log += &format!(
                "{{\"name\":\"{name}\",\"cat\":\"POSIX\",\"ph\":1,\"pid\":1,\"tid\":1,\"ts\":{at},\"dur\":1,\"args\":{{{arguments},\"fhash\":\"a\"}}}}\n"
            );
            expected.push(known);
        }
        let members: Vec<u8> = log.as_bytes().chunks(member).flat_map(packed).collect();
        prop_assert_eq!(rows(&trace_of(log.as_bytes())), expected.clone());
        prop_assert_eq!(rows(&trace_of(&members)), expected);
    }

    /// Logs that were cut or changed give a trace, or are refused because nothing is left; they never panic.
    #[test]
    fn damaged_logs_are_read(
        compressed in any::<bool>(),
        cut in 0usize..8000,
        changes in prop::collection::vec((0usize..8000, any::<u8>()), 0..20),
        rubbish in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut log = if compressed { packed(NEW.as_bytes()) } else { NEW.as_bytes().to_vec() };
        for (at, byte) in changes {
            if let Some(place) = log.get_mut(at) {
                *place = byte;
            }
        }
        log.truncate(cut);
        log.extend(rubbish);
        match write(&log) {
            Ok(_) | Err(ImportError::NoCalls { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
