//! The page and the text, for made-up traces.

use std::path::PathBuf;
use std::process::Command;

use pio_explain::Explanation;
use pio_explain::findings::Involved;
use pio_learn::Interval;
use pio_report::Prediction;
use pio_trace::{Call, Event, File, FileId, Op, Process, Tables, Target, Trace, TraceWriter};

use crate::synthetic;

fn page(tables: &Tables, events: &[Event], predictions: &[Prediction]) -> String {
    let found = Explanation::of(tables, events.iter().cloned());
    let mut out = Vec::new();
    let splits = pio_explain::splits_of(tables, events);
    pio_report::html(tables, events.iter().cloned(), &splits, &found, predictions, &mut out)
        .expect("memory takes it");
    String::from_utf8(out).expect("the page is UTF-8")
}

fn trace(tables: &Tables, events: &[Event]) -> Trace {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, tables.clone()).expect("the tables are sound");
    events.iter().for_each(|event| writer.push(event).expect("events are in order"));
    writer.finish().expect("memory takes it");
    Trace::from_bytes(bytes, "trace").expect("the trace is whole")
}

fn data(page: &str) -> serde_json::Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(start).expect("there are data");
    let (json, _) = rest.split_once("</script>").expect("the data end");
    serde_json::from_str(json).expect("the data are JSON")
}

fn prediction(name: &str) -> Prediction {
    Prediction {
        machine: name.into(),
        strategy: name.into(),
        io_time_s: 2.9,
        modelled_s: 2.9,
        bandwidth_bytes_per_s: 72e6,
        breakdown: vec![(name.into(), 2.0)],
        measured_s: Some(2.5),
        interval: Some(Interval { low_s: 2.0, high_s: 4.0, reason: name.into() }),
        as_it_is: None,
        bytes_between_nodes: None,
        crowd: Some((8, 2)),
        of_any_strategy: false,
        beside: None,
    }
}

/// Where the text that a report must print lives; `UPDATE_GOLDEN=1` rewrites it.
fn check_golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(text, golden, "{name} changed; UPDATE_GOLDEN=1 accepts it");
}

#[test]
fn text_is_as_before_and_fits_the_terminal() {
    for (name, (tables, events)) in
        [("checkpoints.txt", synthetic::checkpoints(8, 25)), ("copy.txt", synthetic::copy())]
    {
        let text = pio_report::text(&Explanation::of(&tables, events));
        for line in text.lines() {
            assert!(line.chars().count() <= 110, "too wide: {line}");
        }
        check_golden(name, &text);
    }
}

/// A copy, its trace with these notes.
fn copy_with_notes(notes: &[(&str, &str)]) -> (Tables, Vec<Event>) {
    let (mut tables, events) = synthetic::copy();
    tables.notes.extend(notes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    (tables, events)
}

fn text(tables: &Tables, events: &[Event]) -> String {
    pio_report::text(&Explanation::of(tables, events.iter().cloned()))
}

#[test]
fn what_matters_most_comes_first() {
    let (tables, events) = synthetic::copy();
    let told = text(&tables, &events);
    let mut lines = told.lines();
    let cause = lines.next().unwrap_or_default();
    assert!(cause.starts_with("Costliest: the same bytes read again and again: 75.74 ms, 15 %"), "{told}");
    assert_eq!(lines.next(), Some("Change: keep them in memory after the first time."));
    let page = page(&tables, &events, &[]);
    let (before, _) = page.split_once("class=\"summary\"").expect("there is a summary");
    assert!(before.contains("<dt>Costliest</dt>") && before.contains("<dt>Change</dt>"));
    assert!(!before.contains("class=\"incomplete\""), "nothing is missing");

    let clean: Vec<Event> = events.into_iter().filter(|event| event.size >= 256 << 10).collect();
    let told = text(&tables, &clean);
    let first = told.lines().next().unwrap_or_default();
    assert!(first.starts_with("No finding: "), "{told}");
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("I/O takes") && words.contains("most in write of /home/ada/copy.dat."), "{told}");
}

#[test]
fn what_is_lost_is_the_headline() {
    let (tables, events) = copy_with_notes(&[
        (
            "thinned out",
            "the budget left out 9 reads of 0 bytes, 3760 writes of 247463936 bytes and 1 other calls; in the end one call in 64 was kept",
        ),
        ("ranks not recorded", "6 of 8"),
        ("lost processes", "3, 2 of them recorded by another version"),
        ("calls made", "409 reads of 0 bytes, 4160 writes of 268435456 bytes and 9 other calls"),
        (
            "not seen",
            "static, 2 processes, read 1024 bytes and wrote 12582912 bytes, not known of 0: /bin/busybox",
        ),
    ]);
    let told = text(&tables, &events);
    let first = told.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("Incomplete: the budget left out 236 MiB of 256 MiB in 3,770 calls of 4,578;"),
        "{told}"
    );
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let lacks = "; 6 of 8 ranks were not recorded; 1 process left nothing that can be read; another version of the recorder recorded 2 processes, which cannot be read.";
    assert!(words.contains(lacks), "{told}");
    assert!(told.contains("costs at least 75.74 ms") && told.contains("read at least 100.6 MiB"), "{told}");
    assert!(
        told.contains("Not seen: busybox × 2 (read 1 KiB, wrote 12 MiB: it is statically linked)."),
        "{told}"
    );
    let line = |about: &str| told.lines().position(|line| line.starts_with(about));
    assert!(line("Not seen") < line("Costliest"), "{told}");
    let page = page(&tables, &events, &[]);
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what} is not in the page"));
    assert!(at("Incomplete: the budget left out") < at("<h1"), "the page says it before all else");
    assert!(at("<dt>Not seen</dt>") < at("<dt>Costliest</dt>"));
    assert!(at("<dt>Not seen</dt>") < at("class=\"summary\""));
    assert!(page.contains("≥ 100.6 MiB"));

    let found = Explanation::of(&tables, events.iter().cloned());
    let compared = pio_report::diff_text(&found, &found);
    assert!(compared.contains("! not complete: the budget left out 236 MiB"), "{compared}");
    assert!(compared.contains("not seen: busybox × 2 (read 1 KiB, wrote 12 MiB"), "{compared}");

    // It told of these only where there was no finding, and then not that there was none.
    let brief = pio_report::brief(&found, None);
    assert!(brief.contains("Not seen: busybox × 2") && brief.contains("1. "), "{brief}");
    let brief = pio_report::brief(&Explanation { findings: Vec::new(), ..found }, None);
    assert!(brief.contains("Not seen: busybox × 2") && brief.contains("No finding: "), "{brief}");
    assert!(brief.lines().count() <= 10, "{brief}");
}

/// The part of their lives was said to be one of the run, right above a finding with the part of the run.
#[test]
fn processes_that_live_shorter_than_the_run_spend_parts_of_their_lives() {
    let (mut tables, mut events) = synthetic::copy();
    let told = |tables: &Tables, events: &[Event]| {
        let found = Explanation::of(tables, events.iter().cloned());
        [text(tables, events), pio_report::brief(&found, None), page(tables, events, &[])]
    };
    for (told, part) in told(&tables, &events).iter().zip([" % of that in I/O.", " % of it.", "of it in I/O"])
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let last = events.last_mut().expect("there are events");
    last.process = pio_trace::ProcessId(1);
    let late = Process { start_ns: last.start_ns, ..tables.processes[0].clone() };
    tables.processes.push(late);
    let parts = [" % of their lives in I/O on average.", " % of their lives.", "of their lives in I/O"];
    for (told, part) in told(&tables, &events).iter().zip(parts) {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_filter_is_the_headline() {
    let (tables, events) = copy_with_notes(&[("filter", "path /home/*, at least 4096 bytes")]);
    let filtered = "a filter kept only some calls (path /home/*, at least 4096 bytes)";
    let told = text(&tables, &events);
    assert!(told.starts_with(&format!("Incomplete: {filtered}. Counts,")), "{told}");
    assert!(told.contains("read at least 100.6 MiB"), "{told}");
    assert!(page(&tables, &events, &[]).contains(filtered));
    let found = Explanation::of(&tables, events.iter().cloned());
    assert!(pio_report::brief(&found, None).starts_with(&format!("Incomplete: {filtered}")));
    assert!(pio_report::diff_text(&found, &found).contains("! not complete: a filter kept only some calls"));
    assert_eq!(pio_report::losses(&found.trouble), [filtered]);
    let nothing = text(&tables, &[]);
    assert!(nothing.starts_with("Incomplete: a filter"), "{nothing}");
    // What a filter left out may have been I/O.
    let few = text(&tables, &events[..1]);
    assert!(few.contains("No finding: at most "), "{few}");
}

#[test]
fn what_could_not_be_recorded_may_be_for_want_of_disk_or_budget() {
    let (tables, events) =
        copy_with_notes(&[("lost calls", "0 reads of 0 bytes, 0 writes of 0 bytes and 12 other calls")]);
    let told = text(&tables, &events).split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "12 calls could not be recorded (the disk or the budget was used up, or a signal came at a bad moment)";
    assert!(told.contains(why), "{told}");
}

#[test]
fn harmless_errors_are_at_the_end() {
    let (mut tables, mut events) = synthetic::copy();
    let failed = |call, error: i64| Event { call, result: -error, size: 0, ..events[0].clone() };
    let more = [failed(Call::Readlink, 22), failed(Call::Open, 20), failed(Call::Open, 13)];
    events.splice(0..0, more);
    tables.notes.push(("recorder".into(), "a test".into()));
    let told = text(&tables, &events);
    let at = |what: &str| told.find(what).unwrap_or_else(|| panic!("{what} is not in:\n{told}"));
    assert!(at("open failed: Permission denied") < at("Findings"), "{told}");
    for harmless in ["readlink failed: Invalid", "open failed: Not a directory", "open failed: No such file"]
    {
        assert!(at("Processes, one by one") < at(harmless), "{told}");
    }
    assert_eq!(told.matches("failed: ").count(), 4, "{told}");
}

#[test]
fn an_empty_trace_makes_a_report() {
    let text = pio_report::text(&Explanation::of(&Tables::default(), []));
    assert!(text.contains("0 processes ran for –"), "{text}");
    assert_eq!(data(&page(&Tables::default(), &[], &[]))["rows"].as_array().map(Vec::len), Some(0));
}

#[test]
fn the_largest_numbers_make_a_report() {
    let (mut tables, mut events) = synthetic::checkpoints(2, 1);
    tables.processes[0].start_ns = u64::MAX;
    for (index, event) in events.iter_mut().enumerate() {
        event.start_ns = u64::MAX / 40 * index as u64;
        event.elapsed_ns = u64::MAX;
        event.size = u64::MAX;
        event.result = if index % 3 == 0 { i64::MIN } else { i64::MAX };
        event.think_ns = u64::MAX;
    }
    assert!(pio_report::text(&Explanation::of(&tables, events.clone())).contains("ran for 5124095 h"));
    // As far as a script's numbers can tell.
    let data = data(&page(&tables, &events, &[]));
    assert_eq!(data["columns"]["size"], serde_json::json!(["all", events.len(), u64::MAX]));
}

#[test]
fn the_page_refers_to_nothing_outside() {
    let (tables, events) = synthetic::checkpoints(4, 3);
    let page = page(&tables, &events, &[prediction("two-phase")]).to_lowercase();
    for forbidden in [
        "http:",
        "https:",
        " src=",
        " href=",
        "url(",
        "@import",
        "xmlns",
        "fetch(",
        "xmlhttprequest",
        "websocket",
    ] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (tables, events) = synthetic::checkpoints(4, 3);
    assert_eq!(page(&tables, &events, &[]), page(&tables, &events, &[]));
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "/tmp/</script><script>alert(1)</script><!--\"'><img onerror=alert(2)>\u{1b}[2J\u{2028}";
    let (mut tables, events) = synthetic::checkpoints(2, 1);
    tables.files[0].path = hostile.into();
    tables.job = hostile.into();
    tables.notes = vec![(hostile.into(), hostile.into())];
    for process in &mut tables.processes {
        process.host = hostile.into();
    }
    let page = page(&tables, &events, &[prediction(hostile)]);
    assert_eq!(page.matches("<script").count(), 2, "a name became a script");
    assert_eq!(page.matches("</script>").count(), 2, "a name ended a script");
    assert!(!page.contains("<img") && !page.contains("<!--") && !page.contains('\u{1b}'));
    assert_eq!(data(&page)["files"][0], hostile, "the timeline shows the name as it is");

    let found = Explanation::of(&tables, events);
    assert!(!pio_report::text(&found).contains('\u{1b}'), "a name reached the terminal raw");
    assert!(!pio_report::predictions_text(&[prediction(hostile)]).contains('\u{1b}'));
}

#[test]
fn every_event_is_a_bar_while_they_are_few() {
    let (tables, events) = synthetic::checkpoints(8, 25);
    let data = data(&page(&tables, &events, &[]));
    // A row each, one byte each: base64 of all events.
    let rows = data["columns"]["row"][1].as_str().expect("base64");
    assert_eq!(data["columns"]["row"][0], "u8");
    assert_eq!(rows.trim_end_matches('=').len() * 3 / 4, events.len());
    assert_eq!(data["rows"][7], "rank 7");
    assert_eq!(data["duration_ns"].as_u64(), Explanation::of(&tables, events).duration_ns.into());
}

#[test]
fn threads_have_rows_of_their_own() {
    let (tables, mut events) = synthetic::checkpoints(2, 1);
    for (index, event) in events.iter_mut().enumerate() {
        // Rank 1 has two threads: the numbers between were of threads that made no call.
        event.thread = if event.process.0 == 1 { index as u32 % 2 * 7 } else { 0 };
    }
    let few = data(&page(&tables, &events, &[]));
    assert_eq!(few["rows"], serde_json::json!(["rank 0", "rank 1", "thread 7"]));
    assert_eq!(few["process_of_row"], serde_json::json!([0, 1, 1]));
    for (index, event) in events.iter_mut().enumerate() {
        event.thread = index as u32;
    }
    let many = data(&page(&tables, &events, &[]));
    let rows = many["rows"].as_array().expect("rows").len();
    assert!(rows <= 128, "a process has 64 rows at most: {rows}");
}

#[test]
fn findings_say_where_their_calls_are() {
    let (tables, events) = synthetic::copy();
    let page = page(&tables, &events, &[]);
    let (data, found) = (data(&page), Explanation::of(&tables, events));
    let scopes = data["findings"].as_array().expect("findings");
    assert_eq!(scopes.len(), found.findings.len());
    assert_eq!(page.matches("data-finding=").count(), scopes.len(), "each has its button");
    for (scope, finding) in scopes.iter().zip(&found.findings) {
        let files: Vec<_> = finding.files.iter().filter_map(|one| found.path(one.id)).collect();
        let number = |value: &serde_json::Value| value.as_u64().expect("a number") as usize;
        let named: Vec<_> = scope["files"].as_array().expect("files").iter().map(number).collect();
        let named: Vec<_> = named.iter().filter_map(|file| data["files"][file - 1].as_str()).collect();
        assert_eq!(named, files, "{scope}");
        assert_eq!(scope["until"].as_u64(), Some(finding.cost.until_ns));
    }
    assert_eq!(scopes[0]["ops"], serde_json::json!(["read"]), "{}", scopes[0]);
}

#[test]
fn a_page_names_a_bounded_number_of_files() {
    let (mut tables, events) = synthetic::copy();
    let (handle, file) = (tables.handles[0].clone(), tables.files.len());
    let opened =
        |number: u32| pio_trace::Handle { file: pio_trace::FileId(file as u32 + number), ..handle.clone() };
    let first = tables.handles.len() as u32;
    tables.handles.extend((0..5000).map(opened));
    tables.files.extend((0..5000).map(|number| pio_trace::File { path: format!("/many/{number}") }));
    let one = |number| Event { handle: Some(pio_trace::HandleId(first + number)), ..events[0].clone() };
    let data = data(&page(&tables, &(0..5000).map(one).collect::<Vec<_>>(), &[]));
    let files = data["files"].as_array().expect("files");
    assert_eq!((files.len(), files[2000].as_str()), (2001, Some("other files")));
}

/// A run that moves nothing has no rate and no mean, and an operation that is not there took no time: none of that is 0.
#[test]
fn what_was_not_measured_is_no_zero() {
    let (tables, events) = synthetic::copy();
    let names = |event: &&Event| matches!(event.op(), pio_trace::Op::Open | pio_trace::Op::Close);
    let empty: Vec<Event> = events.iter().filter(names).cloned().collect();
    assert!(!empty.is_empty());
    let (whole, empty) = (Explanation::of(&tables, events), Explanation::of(&tables, empty));

    let cells = |text: &str, row: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.trim_start().starts_with(row));
        let line = line.unwrap_or_else(|| panic!("no row '{row}' in {text}"));
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let told = pio_report::text(&empty);
    assert_eq!(cells(&told, "wall-clock time")[2..], ["–", "–", "0", "0", "–", "–"]);
    assert!(!told.contains("on average (Miller"), "no request has no mean size: {told}");

    let compared = pio_report::diff_text(&empty, &whole);
    for row in ["mean request", "read bandwidth", "write bandwidth", "consecutive accesses, of the program"] {
        assert_eq!(cells(&compared, row)[1], "–", "{compared}");
    }
    assert_eq!(cells(&compared, "requests")[1], "0", "this was counted: {compared}");
    assert!(compared.lines().any(|line| line.contains(" write ") && line.contains("  –  ")), "{compared}");
    assert!(!compared.contains(" 0 s "), "{compared}");

    let nothing = Prediction { bandwidth_bytes_per_s: 0.0, ..prediction("sp") };
    assert!(!pio_report::predictions_text(&[nothing]).contains("0 B/s"));
    assert!(pio_report::text(&Explanation::of(&Tables::default(), [])).contains("ran for –."));
}

/// It had parts and rates of nothing.
#[test]
fn a_run_of_no_time_has_no_rates() {
    let (mut tables, events) = synthetic::copy();
    let write = events.into_iter().find(|event| event.op() == Op::Write).expect("there is one");
    let events = [Event { start_ns: 0, elapsed_ns: 0, think_ns: 0, ..write }];
    tables.processes[0] = Process { start_ns: 0, end_ns: None, ..tables.processes[0].clone() };
    let found = Explanation::of(&tables, events.iter().cloned());
    assert_eq!(found.duration_ns, 0);
    let (told, brief) = (pio_report::text(&found), pio_report::brief(&found, None));
    assert!(told.starts_with("No finding: the run took no time.") && !told.contains("up to"), "{told}");
    assert!(brief.contains("I/O takes 0 s.\n"), "{brief}");
    assert!(!page(&tables, &events, &[]).contains("<b>up to"));
}

/// The values of a column of numbers with a point, as the page's script decodes them.
fn floats(column: &serde_json::Value) -> Vec<f32> {
    assert_eq!(column[0], "f32");
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = column[1].as_str().expect("base64").trim_end_matches('=');
    let bits = text.bytes().fold((Vec::new(), 0_u32, 0), |(mut bytes, mut held, mut count), letter| {
        (held, count) = (held << 6 | u32::from(digit(letter)), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count) as u8);
            held &= (1 << count) - 1;
        }
        (bytes, held, count)
    });
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bits.0.chunks_exact(4).map(number).collect()
}

#[test]
fn the_timeline_has_the_parts_of_each_collective_call() {
    let (tables, mut events) = synthetic::checkpoints(4, 3);
    let split = Explanation::of(&tables, events.clone()).mpi_io.total();
    let with_files = page(&tables, &events, &[]);
    let columns = &data(&with_files)["columns"];
    let expected = [split.late_ns, split.library_ns, split.files_ns];
    for (part, expected_ns) in expected.into_iter().enumerate() {
        let values = floats(&columns[format!("part{part}")]);
        assert_eq!(values.len(), events.len());
        let sum_ns: f64 = values.iter().map(|&value| f64::from(value)).sum();
        assert!((sum_ns - expected_ns as f64).abs() < 1e-5 * expected_ns as f64, "{sum_ns} {expected_ns}");
    }
    for name in ["waiting for late ranks", "library", "files"] {
        assert!(with_files.contains(&format!("</i>{name}</li>")), "the legend has {name}");
    }

    // Where the files were not seen, nobody knows what of the rest was theirs.
    events.retain(|event| !event.is_physical());
    let without = page(&tables, &events, &[]);
    assert_eq!(data(&without)["parts"], serde_json::json!(["waiting for late ranks", "library and files"]));
    assert!(without.contains("</i>library and files</li>"));

    let (tables, events) = synthetic::copy();
    let alone = page(&tables, &events, &[]);
    assert_eq!(data(&alone)["parts"], serde_json::json!([]));
    assert!(!alone.contains("class=\"keys parts\""), "no collective call, no legend");
}

#[test]
fn a_million_events_make_a_page_of_bounded_size() {
    let (tables, events) = synthetic::long_run(64, 1_000_000);
    let page = page(&tables, &events, &[]);
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    assert!(page.contains("1,000,000 events are drawn as"), "the page must say that it merged");
}

/// Opens the page in a browser, if there is one: the script must run to its end and complain of nothing.
#[test]
fn a_browser_has_nothing_to_complain_of() {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    let Some(browser) = browser else {
        eprintln!("skipped: no chromium on the PATH");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder for the page");
    let empty = (Tables::default(), Vec::new());
    for (name, (tables, events)) in
        [("checkpoints", synthetic::checkpoints(8, 25)), ("copy", synthetic::copy()), ("empty", empty)]
    {
        let path = folder.path().join(format!("{name}.html"));
        std::fs::write(&path, page(&tables, &events, &[prediction("ecio")]))
            .expect("the page can be written");
        let output = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--no-first-run",
            ])
            .args(["--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("file://{}#t=0.1-0.2", path.display()))
            .output()
            .expect("the browser starts");
        let complaints = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<_> = complaints.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "{name}: {complaints:?}");
        let dom = String::from_utf8_lossy(&output.stdout);
        if name != "empty" {
            let canvas = dom.split("<canvas id=\"bars\"").nth(1).and_then(|rest| rest.split('>').next());
            assert!(
                canvas.is_some_and(|attributes| attributes.contains("height: ")),
                "{name}: nothing was drawn"
            );
        }
    }
}

#[test]
fn two_runs_are_set_side_by_side() {
    let explain = |files| {
        let (tables, events) = synthetic::checkpoints(8, files);
        Explanation::of(&tables, events)
    };
    let (before, after) = (explain(25), explain(5));
    let text = pio_report::diff_text(&before, &after);
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    for expected in ["The run went from 4.561 s to", "Totals", "200 MiB       40 MiB", "× 1/5", "gone"] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    let same = pio_report::diff_text(&before, &before);
    assert!(
        same.contains("about the same") && same.contains("Both moved the same number of bytes"),
        "{same}"
    );
}

/// Whose cost is not known were the same in both runs.
#[test]
fn findings_of_one_run_are_new_or_gone_whatever_they_cost() {
    let (tables, events) = synthetic::checkpoints(8, 25);
    let mut before = Explanation::of(&tables, events);
    before.findings.truncate(1);
    before.findings[0].lost_ns = None;
    let mut after = before.clone();
    after.findings.clear();
    let told = |before, after| {
        let text = pio_report::diff_text(before, after);
        let table = text.split("Findings, and what they cost").nth(1).expect("there is one").to_owned();
        let row = table.lines().find(|line| line.contains("not known")).expect("it is there");
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1).map(str::to_owned).collect()
    };
    let cells: Vec<String> = told(&before, &after);
    assert_eq!(cells, ["not known", "–", "gone"]);
    let cells: Vec<String> = told(&after, &before);
    assert_eq!(cells, ["–", "not known", "new"]);
    let cells: Vec<String> = told(&before, &before);
    assert_eq!(cells, ["not known", "not known", "–"]);
}

#[test]
fn what_a_file_lost_is_the_sum_over_findings() {
    let (tables, events) = synthetic::checkpoints(8, 25);
    let mut found = Explanation::of(&tables, events.clone());
    let (file, path) = (found.files[0].file, found.files[0].path.clone());
    found.findings.truncate(1);
    let finding = &mut found.findings[0];
    finding.lost_ns = Some(4e9);
    // Three quarters of its time went by at the file.
    let time_ns = finding.cost.time_ns / 4 * 3;
    finding.cost.time_ns = time_ns / 3 * 4;
    finding.files = vec![Involved { id: file, calls: 1, time_ns }];
    found.findings.push(found.findings[0].clone());
    let mut out = Vec::new();
    let splits = pio_explain::splits_of(&tables, &events);
    pio_report::html(&tables, events.iter().cloned(), &splits, &found, &[], &mut out)
        .expect("memory takes it");
    let page = String::from_utf8(out).expect("the page is UTF-8");
    let (_, table) = page.split_once("Files, by time spent on them").expect("there is one");
    let row = table.split("<tr").find(|row| row.contains(&path)).expect("it is there");
    assert!(row.contains(">6 s<"), "{row}");
}

/// The pages of a trace: of what was gathered while it was explained, and without that; and whether anything was.
fn both_pages(tables: &Tables, events: &[Event]) -> (bool, String, String) {
    let trace = trace(tables, events);
    let (found, gathering) = pio_report::explain_for_page(&trace, &mut |_| {}).expect("memory can be read");
    assert_eq!(found, Explanation::of_trace(&trace, &mut |_| {}).expect("memory can be read"));
    let is_gathered = gathering.is_some();
    let [once, again] = [gathering, None].map(|gathering| {
        let mut out = Vec::new();
        pio_report::html_of_trace(&trace, &found, gathering, &[], &mut out).expect("memory takes it");
        String::from_utf8(out).expect("the page is UTF-8")
    });
    (is_gathered, once, again)
}

#[test]
fn a_page_is_the_same_whether_its_trace_is_read_once_or_again() {
    // More events than bars.
    let (mut tables, mut events) = synthetic::long_run(8, 120_000);
    // Files that only names are used of have the last numbers, in order of first use.
    tables.files.extend(["/etc/one", "/etc/other"].map(|path| File { path: path.into() }));
    let last = tables.files.len() as u32 - 1;
    for (index, id) in [(7, last), (900, last - 1), (901, last)] {
        let (process, start_ns) = (events[index].process, events[index].start_ns);
        let target = Target::Name { file: FileId(id), other: Some(FileId(last)) };
        events[index] = Event { target, elapsed_ns: 5, ..Event::new(Call::Stat, process, start_ns) };
    }
    let (is_gathered, once, again) = both_pages(&tables, &events);
    assert!(is_gathered && once == again);
    assert!(data(&once)["files"].to_string().contains("/etc/one"));

    // Without ranks, processes that make no call are not counted: known at the end.
    tables.processes.iter_mut().for_each(|process| process.rank = None);
    let idle = Process { end_ns: None, ..tables.processes[0].clone() };
    tables.processes.extend(std::iter::repeat_n(idle, 300));
    let (_, once, again) = both_pages(&tables, &events);
    assert!(once == again);

    // Where the time of collective calls went is known later than the calls.
    let (tables, events) = synthetic::checkpoints(4, 2);
    let (is_gathered, once, again) = both_pages(&tables, &events);
    assert!(once == again && is_gathered == tables.handles.iter().all(|handle| handle.collective == 0));
}
