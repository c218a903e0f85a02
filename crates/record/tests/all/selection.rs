//! What is kept of a job: by path, layer and size, within a budget; and what is shown of it while it runs.

use std::sync::Mutex;

use crate::common::{self, Job, command, compile, folder, record_in};
use pio_record::{Error, Filter, LEAST_BUDGET_BYTES, Look, Options, PathRule, Settings, run};
use pio_trace::{Call, Calls, Layer, Losses, Op};

fn patterns(pattern: &str, accesses: u64, change: impl FnOnce(&mut Options)) -> Job {
    let folder = folder();
    let program = compile("cc", "patterns", folder.path(), &["-O1"]);
    let (work, count) = (folder.path().to_path_buf(), accesses.to_string());
    let job = record_in(folder, vec![program.into(), pattern.into(), count.into(), work.into()], change);
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    job
}

fn filtered(filter: Filter) -> Job {
    patterns("venus", 6000, |options| options.settings.filter = filter)
}

#[test]
fn files_are_chosen_by_their_paths() {
    let rule = |keeps, pattern: &str| PathRule { keeps, pattern: pattern.to_owned() };
    let job = filtered(Filter { paths: vec![rule(true, "*/file-2")], ..Filter::default() });
    assert_eq!((job.on("/file-2").len(), job.on("/file-1").len()), (1001, 0), "an open and its writes");
    assert!(
        job.trace.tables().notes.iter().any(|(name, _)| name == "filter"),
        "the trace says that it is a part"
    );
    let job = filtered(Filter { paths: vec![rule(false, "*/file-2")], ..Filter::default() });
    assert_eq!((job.on("/file-2").len(), job.on("/file-1").len()), (0, 1001));
}

#[test]
fn calls_on_names_are_chosen_by_their_paths() {
    let folder = folder();
    let work = folder.path().canonicalize().expect("a folder");
    let name = work.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let script = format!(
        "cd {} && mkdir a b a/c && rmdir ./b a/../a/./c ../{name}//a && ! cat b/none",
        work.display()
    );
    let rule = PathRule { keeps: true, pattern: format!("{}/a", work.display()) };
    let job = record_in(folder, command(&["sh", "-c", &script]), |options| {
        options.settings.filter.paths.push(rule);
    });
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let events: Vec<_> = job.events.iter().collect();
    assert_eq!(common::counts(&events), [("mkdir", 1), ("rmdir", 1)]);
}

/// Opened files have the name that the kernel knows, and calls on names the one that they give: a pattern with a link in it
/// matched the latter alone, and one file was two.
#[test]
fn a_folder_behind_a_link_is_chosen_by_its_link() {
    let folder = folder();
    let work = folder.path().canonicalize().expect("a folder");
    std::fs::create_dir(work.join("real")).expect("a folder");
    std::os::unix::fs::symlink("real", work.join("link")).expect("a link");
    let script = "echo words >link/file; cat link/file; echo >other; chmod 600 link/file; rm link/file";
    let script = format!("cd {}; {script}", work.display());
    let rules = PathRule::of(true, "link/*", &work);
    let job = record_in(folder, command(&["sh", "-c", &script]), |options| {
        options.settings.filter.paths.extend(rules);
    });
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let file = work.join("real/file").display().to_string();
    let files: Vec<_> = job.trace.tables().files.iter().map(|file| &file.path).collect();
    assert_eq!(files, [&file]);
    assert_eq!((job.bytes("/file", Op::Write), job.bytes("/file", Op::Read)), (6, 6));
    let is_named = |call: Call| job.events.iter().any(|event| event.call == call && event.handle.is_none());
    assert!(is_named(Call::Chmod) && is_named(Call::Unlink));
}

#[test]
fn a_pattern_that_cannot_be_told_is_refused() {
    let folder = folder();
    for pattern in ["*/a\nb".to_owned(), "x".repeat(20_000)] {
        let filter =
            Filter { paths: vec![PathRule { keeps: true, pattern: pattern.clone() }], ..Filter::default() };
        let options = Options {
            command: command(&["true"]),
            output: folder.path().join("job.pio"),
            settings: Settings { filter, ..Settings::default() },
            ..Options::default()
        };
        let error = run(&options).expect_err("it cannot be told");
        assert!(matches!(error, Error::Patterns { .. }), "{error}");
    }
}

#[test]
fn calls_are_chosen_by_layer_and_size() {
    let job = filtered(Filter { layers: vec![Layer::Stdio], ..Filter::default() });
    assert_eq!(job.on("/file-1").len(), 0);
    assert!(job.outcome.summary.filtered > 6000);
    let job = filtered(Filter { least_bytes: 513, ..Filter::default() });
    assert_eq!(job.on("/file-1").len(), 1, "only the open is left");
    let job = filtered(Filter { least_bytes: 512, ..Filter::default() });
    assert_eq!(job.on("/file-1").len(), 1001);
}

#[test]
fn a_budget_is_kept_and_what_it_costs_is_told() {
    // 100,000 writes at 16 bytes are 1.6 MB.
    const WRITES: u64 = 100_000;
    let job = patterns("sequential", WRITES, |options| options.budget_bytes = Some(3 << 20));
    let summary = &job.outcome.summary;
    let kept = job.on("/file-0").iter().filter(|e| e.op() == Op::Write).count() as u64;
    assert_eq!(kept + summary.thinned_calls[1] + summary.lost_calls, WRITES, "{summary:?}");
    assert_eq!(summary.lost_calls, 0, "{summary:?}");
    assert!(kept > WRITES / 10 && summary.thinned_calls[1] > 0 && summary.keeps_one_in >= 4, "{summary:?}");
    assert_eq!(summary.thinned_bytes[1], summary.thinned_calls[1] * 512);
    let losses = Losses::of(&job.trace);
    let made = losses.made.expect("the trace says how many calls were made");
    assert_eq!((made.writes.calls, made.writes.bytes), (WRITES, WRITES * 512), "{losses:?}");
    let (calls, bytes) = (summary.thinned_calls[1], summary.thinned_bytes[1]);
    assert_eq!(losses.left_out.writes, Calls { calls, bytes }, "{losses:?}");
    // What is kept still stands where it was written, though the writes between are not there.
    let offsets: Vec<u64> = job
        .on("/file-0")
        .iter()
        .filter(|e| e.op() == Op::Write)
        .map(|e| match e.target {
            pio_trace::Target::Extent { offset } => offset,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(offsets.is_sorted() && offsets.last() > Some(&(WRITES * 512 * 9 / 10)), "{:?}", offsets.last());
}

#[test]
fn a_scarce_budget_is_used() {
    const WRITES: u64 = 100_000;
    let job = patterns("sequential", WRITES, |options| options.budget_bytes = Some(256 << 10));
    let summary = &job.outcome.summary;
    let kept = job.on("/file-0").iter().filter(|e| e.op() == Op::Write).count() as u64;
    assert_eq!(kept + summary.thinned_calls[1] + summary.lost_calls, WRITES, "{summary:?}");
    // A full chunk of 64 KiB, and more at the end; not the first 4 KiB alone, because a MiB is not left.
    assert!(kept > 4000 && summary.lost_calls == 0, "{kept} kept, {summary:?}");
}

/// What is too small for one process, or for all that come at once: they run, and who left nothing is counted.
#[test]
fn processes_that_find_no_room_in_a_budget_are_counted() {
    for (budget, most) in [(1, 0), (1 << 10, 0), (LEAST_BUDGET_BYTES, 1), (2 * LEAST_BUDGET_BYTES, 2)] {
        let folder = folder();
        let program = compile("cc", "patterns", folder.path(), &["-O1"]);
        let work = folder.path().display();
        let one = |name: u32| {
            format!("(mkdir {work}/{name}; exec {} sequential 5000 {work}/{name}) &", program.display())
        };
        let script = format!("{} wait", (0..8).map(one).collect::<Vec<_>>().join(" "));
        let job = record_in(folder, command(&["sh", "-c", &script]), |options| {
            options.budget_bytes = Some(budget);
        });
        let summary = &job.outcome.summary;
        assert!(job.outcome.status.success(), "{summary:?}");
        assert!(summary.processes <= most && summary.lost_processes >= 8 - most, "{budget}: {summary:?}");
        assert_eq!(Losses::of(&job.trace).lost_processes, summary.lost_processes as u64);
        for number in 0..8 {
            let written = std::fs::metadata(job.folder.path().join(format!("{number}/file-0")));
            assert_eq!(written.expect("the program wrote its file").len(), 5000 * 512);
        }
    }
}

static LOOKS: Mutex<Vec<Look>> = Mutex::new(Vec::new());

#[test]
fn a_running_job_is_shown() {
    let folder = folder();
    let program = compile("cc", "patterns", folder.path(), &["-O1"]);
    let work = folder.path().display();
    let script = format!("{0} sequential 5000 {work}; sleep 1.2; {0} random 5000 {work}", program.display());
    let job = record_in(folder, command(&["sh", "-c", &script]), |options| {
        options.live = Some(|look| LOOKS.lock().expect("no panic").push(*look));
    });
    assert!(job.outcome.status.success());
    let looks = LOOKS.lock().expect("no panic");
    let (first, last) = (looks.first().expect("a look"), looks.last().expect("a look"));
    assert!(looks.len() >= 2 && first.total.writes > 0 && first.total.writes < 10_000, "{looks:?}");
    assert_eq!((last.total.writes, last.total.written_bytes), (10_000, 10_000 * 512), "{looks:?}");
    let sum: u64 = looks.iter().map(|look| look.since_last.calls).sum();
    assert_eq!(sum, last.total.calls);
    // The last look comes when the job is over, and that is seldom a second after the one before.
    assert!(first.since_last_s >= 1.0 && last.since_last_s > 0.0, "{looks:?}");
    assert_eq!(last.per_second(300), 300.0 / last.since_last_s);
}
