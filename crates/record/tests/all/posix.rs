//! Every hook, with exact counts, offsets and sizes.

use crate::common::{Job, command, compile, counts, folder, record_in};
use pio_trace::{Call, Event, Flags, Op, Target};

fn hooks() -> Job {
    let folder = folder();
    let program = compile("cc", "hooks", folder.path(), &[]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    job
}

fn extents(events: &[&Event], op: Op) -> Vec<(&'static str, u64, u64, i64)> {
    let of_op = events.iter().filter(|e| e.op() == op);
    of_op.map(|e| (e.call.name(), offset(e), e.size, e.result)).collect()
}

fn offset(event: &Event) -> u64 {
    match event.target {
        Target::Extent { offset } => offset,
        other => panic!("{event:?} has {other:?}"),
    }
}

#[test]
fn every_hook_is_recorded_with_its_offset_and_size() {
    let job = hooks();

    assert_eq!(counts(&job.on("/opens")), [("open", 8), ("creat", 2), ("close", 10)]);
    let handles = job
        .trace
        .tables()
        .handles
        .iter()
        .filter(|h| job.trace.tables().files[h.file.index()].path.ends_with("/opens"));
    assert_eq!(handles.count(), 10, "opening ten times gives ten handles");

    let data = job.on("/data");
    assert_eq!(
        extents(&data, Op::Write),
        [
            ("write", 0, 1000, 1000),
            ("writev", 1000, 30, 30),
            ("pwrite", 2000, 7, 7),
            ("pwrite", 3000, 8, 8),
            ("pwritev", 4000, 30, 30),
            ("pwritev", 4100, 30, 30),
            ("pwritev", 4200, 30, 30),
            ("pwritev", 1030, 30, 30),
            ("write", 1060, 5, 5),
        ]
    );
    assert_eq!(
        extents(&data, Op::Read),
        [
            ("read", 200, 11, 11),
            ("read", 211, 12, 12),
            ("readv", 223, 30, 30),
            ("pread", 300, 13, 13),
            ("pread", 301, 14, 14),
            ("pread", 302, 15, 15),
            ("pread", 303, 16, 16),
            ("preadv", 304, 30, 30),
            ("preadv", 305, 30, 30),
            ("preadv", 306, 30, 30),
            ("preadv", 253, 30, 30),
            ("read", 283, 17, 17),
            ("read", 300, 18, 18),
            ("read", 318, 1, -14),
            // Another open of the file, by which it is copied.
            ("read", 0, 100, 100),
            ("read", 100, 200, 200),
            ("pread", 1000, 300, 300),
        ]
    );
    assert_eq!(extents(&data, Op::Seek), [("lseek", 100, 0, 0), ("lseek", 200, 0, 0)]);
    let rest = data
        .iter()
        .filter(|e| !matches!(e.op(), Op::Read | Op::Write | Op::Seek))
        .copied()
        .collect::<Vec<_>>();
    assert_eq!(
        counts(&rest),
        [
            ("open", 2),
            ("close", 7),
            ("fsync", 1),
            ("fdatasync", 1),
            ("ftruncate", 2),
            ("dup", 5),
            ("fallocate", 2)
        ]
    );

    let append = extents(&job.on("/append"), Op::Write);
    assert_eq!(
        append,
        [("pwrite", 0, 50, 50), ("write", 50, 6, 6), ("pwrite", 100, 50, 50), ("write", 150, 6, 6)]
    );
    let opened = job.on("/append").into_iter().find(|e| e.call == Call::Open).expect("an open");
    assert!(opened.flags.contains(Flags::APPEND));

    let copied = extents(&job.on("/copy"), Op::Write);
    assert_eq!(copied, [("write", 0, 100, 100), ("write", 100, 200, 200), ("write", 300, 300, 300)]);

    assert_eq!(
        extents(&job.on("/stream"), Op::Write),
        [
            ("fwrite", 0, 200, 200),
            ("fwrite", 200, 3, 3),
            ("fwrite", 203, 6, 6),
            ("fwrite", 209, 6, 6),
            ("fwrite", 215, 2, 2)
        ]
    );
    assert_eq!(
        extents(&job.on("/stream"), Op::Read),
        [
            ("fread", 5, 9, 9),
            ("fread", 14, 8, 8),
            ("fread", 22, 7, 7),
            ("fread", 203, 99, 6),
            ("fread", 209, 6, 6)
        ]
    );

    let named: Vec<_> = job.events.iter().filter(|e| e.handle.is_none()).collect();
    assert_eq!(counts(&named), [("open", 1), ("truncate", 2), ("unlink", 2), ("rename", 1)]);
    let missing = named.iter().find(|e| e.call == Call::Open).expect("the failed open");
    assert_eq!(missing.result, -i64::from(libc::ENOENT));
    assert!(
        job.trace.tables().files.iter().all(|f| !f.path.starts_with("/proc") && !f.path.starts_with("/dev"))
    );
}

#[test]
fn times_and_processes_make_sense() {
    let job = hooks();
    let [process] = job.trace.tables().processes.as_slice() else { panic!("one process") };
    let end_ns = process.end_ns.expect("it ended normally");
    assert_eq!(process.rank, None);
    assert!(process.command.contains("hooks"), "{}", process.command);
    let mut last_end_ns = 0;
    for event in &job.events {
        assert!(event.start_ns >= last_end_ns, "calls of one thread do not overlap: {event:?}");
        // The first think time counts from the start of the process, before its first instruction is ours to see.
        let is_first = last_end_ns == 0;
        assert!(is_first || event.think_ns <= event.start_ns - last_end_ns, "{event:?}");
        last_end_ns = event.end_ns();
    }
    assert!(last_end_ns <= end_ns);
    let now_ns =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    let age_ns = now_ns - u128::from(job.trace.tables().epoch_ns);
    assert!(age_ns < 600_000_000_000, "the job began {age_ns} ns ago");
}

#[test]
fn what_is_done_to_names_and_behind_the_scenes_is_recorded() {
    let folder = folder();
    let program = compile("cc", "more", folder.path(), &["-O2"]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);

    let named: Vec<_> = job.events.iter().filter(|e| e.handle.is_none()).collect();
    assert_eq!(
        counts(&named),
        [
            ("unlink", 5),
            ("rename", 3),
            ("stat", 5),
            ("msync", 1),
            ("access", 3),
            ("mkdir", 2),
            ("rmdir", 1),
            ("link", 2),
            ("symlink", 1),
            ("readlink", 1),
            ("chmod", 1),
            ("opendir", 1),
        ]
    );
    let names_of = |call: &str| -> Vec<String> {
        let of_call = named.iter().filter(|e| e.call.name() == call);
        let names = of_call.map(|e| job.trace.tables().file_of_event(e).expect("a name").path.clone());
        names.map(|path| path.rsplit('/').next().unwrap_or("").to_owned()).collect()
    };
    assert_eq!(names_of("unlink")[..4], ["b2", "c2", "s2", "none"]);
    assert_eq!(names_of("rename"), ["b", "c", "s"], "the old one of both names");
    // The new name was lost: what a program wrote under a temporary one could not be found again.
    let others_of = |call: &str| -> Vec<String> {
        let of_call = named.iter().filter(|e| e.call.name() == call);
        let others =
            of_call.map(|e| job.trace.tables().other_file_of_event(e).expect("a second name").path.clone());
        others.map(|path| path.rsplit('/').next().unwrap_or("").to_owned()).collect()
    };
    assert_eq!(others_of("rename"), ["b2", "c2", "s2"]);
    assert_eq!(others_of("link"), ["b", "c"]);
    assert_eq!(others_of("symlink"), ["a"]);
    assert!(named.iter().filter(|e| e.call == Call::Rename).all(|e| e.size == 0));
    assert_eq!(names_of("stat"), ["a", "a", "a", "a", "none"]);
    assert_eq!(names_of("opendir"), ["d"]);
    assert_eq!(names_of("symlink"), ["s"]);
    let failed: Vec<_> = named.iter().filter(|e| e.result < 0).map(|e| (e.call.name(), e.result)).collect();
    let missing = -i64::from(libc::ENOENT);
    assert_eq!(failed, [("unlink", missing), ("access", missing), ("stat", missing)]);

    let a = job.on("/a");
    let rest = [
        ("open", 1),
        ("close", 1),
        ("ftruncate", 1),
        ("stat", 2),
        ("mmap", 1),
        ("aio_read", 3),
        ("aio_write", 2),
        ("sync_file_range", 1),
        ("sync", 1),
        ("chmod", 1),
        ("posix_fadvise", 1),
        ("flock", 2),
    ];
    assert_eq!(counts(&a), rest);
    assert_eq!(extents(&a, Op::Write), [("aio_write", 0, 1000, 1000), ("aio_write", 20, 10, 10)]);
    assert_eq!(
        extents(&a, Op::Read),
        [("aio_read", 0, 1000, 1000), ("aio_read", 8000, 1000, 192), ("aio_read", 40, 30, 30)]
    );
    assert!(a.iter().filter(|e| e.call == Call::AioRead).all(|e| e.flags.contains(Flags::ASYNC)));

    let number = job.on("/number");
    assert_eq!(counts(&number), [("open", 1), ("close", 1), ("pread", 1), ("write", 1)]);
    assert_eq!(job.bytes("/characters", Op::Write), 20_107);
    assert_eq!(job.bytes("/characters", Op::Read), 20_107);
    // However many calls the macros are told as, they follow each other without a gap.
    let mut next = 0;
    for (_, offset, _, bytes) in extents(&job.on("/characters"), Op::Write) {
        assert_eq!(offset, next);
        next += bytes as u64;
    }
    let rebuffered = job.on("/rebuffered");
    assert_eq!(extents(&rebuffered, Op::Write), [("fwrite", 0, 7, 7), ("fwrite", 7, 5, 5)]);
    assert_eq!(extents(&rebuffered, Op::Read), [("fread", 0, 99, 7), ("fread", 7, 99, 5)]);
    assert_eq!(job.bytes("/first", Op::Write), 10);
    assert_eq!(counts(&job.on("/first")), [("fopen", 1), ("fclose", 1), ("fwrite", 1)]);
    assert_eq!(extents(&job.on("/second"), Op::Read), [("fread", 0, 2, 2)]);
    assert_eq!(job.events.iter().filter(|e| e.transferred() == 77).count(), 1, "to a file without a name");
    assert_eq!(job.events.iter().filter(|e| e.transferred() == 88).count(), 1);
}

/// The C library writes by itself what is printed to a descriptor.
#[test]
fn what_is_printed_to_a_descriptor_is_written() {
    for fortified in ["-D_FORTIFY_SOURCE=2", "-U_FORTIFY_SOURCE"] {
        let folder = folder();
        let program = compile("cc", "printed", folder.path(), &["-O2", fortified]);
        let work = folder.path().to_path_buf();
        let job = record_in(folder, vec![program.into(), work.into()], |_| {});
        assert!(job.outcome.status.success(), "{:?}", job.outcome);
        let (written, refused): (Vec<_>, Vec<_>) = job.on("/data").into_iter().partition(|e| e.result >= 0);
        assert_eq!(
            extents(&written, Op::Write),
            [("write", 0, 8, 8), ("write", 8, 20_000, 20_000), ("write", 20_008, 3, 3)]
        );
        assert_eq!(counts(&refused), [("write", 1)]);
    }
}

/// Whatever a call returns, and leaves in errno, with room for its record and without.
#[test]
fn programs_are_told_the_same_as_without_the_recorder() {
    let alone = folder();
    let program = compile("cc", "errors", alone.path(), &[]);
    let status = std::process::Command::new(&program).arg(alone.path()).status();
    assert!(status.expect("the program starts").success());
    let said =
        |folder: &std::path::Path| std::fs::read_to_string(folder.join("said")).expect("what it was told");
    for budget_bytes in [None, Some(1), Some(64 << 10)] {
        let folder = folder();
        let work = folder.path().to_path_buf();
        let job = record_in(folder, vec![program.clone().into(), work.clone().into()], |options| {
            options.budget_bytes = budget_bytes;
        });
        assert!(job.outcome.status.success(), "{:?}", job.outcome);
        assert_eq!(said(&work), said(alone.path()), "{budget_bytes:?}");
    }
}

/// They and the recorder called each other without end.
#[test]
fn functions_of_a_program_s_own_may_make_their_calls_by_number() {
    let folder = folder();
    let program = compile("cc", "own_names", folder.path(), &["-rdynamic"]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
}

/// A library that stands for the functions saw calls that the program made by number.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_by_number_are_passed_on_as_such() {
    let folder = folder();
    let program = compile("cc", "by_number", folder.path(), &[]);
    let between = compile("cc", "between", folder.path(), &["-shared", "-fPIC"]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |o| o.preload = vec![between]);
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(job.bytes("/data", Op::Write), 30 + 30 + 5 + 6);
}

/// What was read from the one file counted for the other, where a descriptor was changed so.
#[cfg(target_arch = "x86_64")] // others lack some of the numbers
#[test]
fn calls_by_their_numbers_are_recorded_as_the_functions_are() {
    let folder = folder();
    let program = compile("cc", "by_number", folder.path(), &[]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(job.trace.tables().processes[0].end_ns.map(|_| ()), Some(()), "it ended by itself");
    let data = job.on("/data");
    assert_eq!(
        extents(&data, Op::Write),
        [("pwritev", 100, 30, 30), ("pwritev", 200, 30, 30), ("write", 0, 5, 5), ("write", 230, 6, 6)]
    );
    assert_eq!(extents(&data, Op::Read), [("preadv", 101, 30, 30), ("preadv", 102, 30, 30)]);
    let others: Vec<_> = counts(&data)
        .into_iter()
        .filter(|(name, _)| !name.contains("read") && !name.contains("write"))
        .collect();
    assert_eq!(
        others,
        [
            ("open", 1),
            ("close", 1),
            ("ftruncate", 1),
            ("fallocate", 1),
            ("stat", 1),
            ("mmap", 1),
            ("sync_file_range", 1),
            ("chmod", 1),
            ("posix_fadvise", 2),
            ("flock", 1),
        ]
    );
    let sizes =
        |suffix| job.on(suffix).iter().filter(|e| e.op() == Op::Write).map(|e| e.size).collect::<Vec<_>>();
    assert_eq!((sizes("/first"), sizes("/second")), (vec![1, 2], vec![4, 8, 16]));
    let names: Vec<_> = job.events.iter().filter(|event| event.handle.is_none()).collect();
    assert_eq!(
        counts(&names),
        [
            ("truncate", 1),
            ("unlink", 2),
            ("rename", 3),
            ("stat", 3),
            ("msync", 1),
            ("access", 2),
            ("mkdir", 2),
            ("rmdir", 2),
            ("link", 2),
            ("symlink", 2),
            ("readlink", 2),
            ("chmod", 2),
        ]
    );
}

/// Linux appends by pwrite, too, and a stream that was opened to append writes at the end wherever it stands.
#[test]
fn what_is_appended_is_at_the_end() {
    let folder = folder();
    let program = compile("cc", "appends", folder.path(), &["-O2"]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(
        extents(&job.on("/opened"), Op::Write),
        [
            ("pwrite", 0, 1000, 1000),
            ("pwrite", 1000, 1000, 1000),
            ("pwritev", 2000, 300, 300),
            ("pwrite", 2300, 10, 10),
            ("pwrite", 5, 20, 20),
            ("pwrite", 2310, 30, 30)
        ]
    );
    assert_eq!(
        extents(&job.on("/told"), Op::Write),
        [
            ("pwritev", 0, 300, 300),
            ("pwritev", 300, 300, 300),
            ("pwritev", 600, 300, 300),
            ("pwritev", 10, 300, 300),
            ("pwritev", 900, 300, 300),
            ("write", 1200, 50, 50)
        ]
    );
    let stream = extents(&job.on("/stream"), Op::Write);
    let expected: Vec<_> = (0..3)
        .flat_map(|round| {
            let at = 5000 + round * 20_000;
            [("fwrite", at, 19_990, 19_990), ("fwrite", at + 19_990, 10, 10)]
        })
        .collect();
    assert_eq!(stream[0], ("fwrite", 0, 5000, 5000));
    assert_eq!(stream[1..], expected);
    assert!(extents(&job.on("/stream"), Op::Read).iter().all(|read| *read == ("fread", 0, 16, 16)));
    // However many calls the macros are told as, they follow each other without a gap.
    let mut next = 0;
    for (_, offset, _, bytes) in extents(&job.on("/characters"), Op::Write) {
        assert_eq!(offset, next);
        next += bytes as u64;
    }
    assert_eq!(next, 20 + 10 + 6000 + 2);
}

#[test]
fn locks_are_recorded_with_their_range_and_wait() {
    let folder = folder();
    let program = compile("cc", "locks", folder.path(), &[]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let locks: Vec<_> = job.on("/file").into_iter().filter(|e| e.call == Call::FcntlLock).collect();
    let of = |child: bool| -> Vec<(u64, u64, i64)> {
        let own = locks.iter().filter(|e| (e.process != locks[0].process) == child);
        own.map(|e| (offset(e), e.size, e.result)).collect()
    };
    let contended = -i64::from(libc::EAGAIN);
    assert_eq!(
        of(false),
        [(100, 50, 0), (150, 50, 0), (150, 0, 0), (900, 100, 0), (900, 100, 0), (100, 50, 0)]
    );
    assert_eq!(of(true), [(100, 50, contended), (100, 50, 0)]);
    let waited = locks.iter().filter(|e| e.process != locks[0].process).nth(1).expect("the second");
    let released = locks.iter().rfind(|e| e.process == locks[0].process).expect("the last");
    assert!(waited.end_ns() >= released.start_ns, "it waited for the other: {waited:?} {released:?}");
}

#[test]
fn names_beyond_many_are_counted_without() {
    const NAMES: usize = 20_000;
    let folder = folder();
    let program = compile("cc", "names", folder.path(), &["-O1"]);
    let words = vec![program.into(), folder.path().into(), NAMES.to_string().into()];
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let stats: Vec<_> = job.events.iter().filter(|e| e.call == Call::Stat).collect();
    assert_eq!(stats.len(), 2 * NAMES);
    let named = |events: &[&Event]| events.iter().filter(|e| e.target != Target::None).count();
    let first = named(&stats[..NAMES]);
    assert!((16_000..NAMES).contains(&first), "{first}");
    assert_eq!(named(&stats[NAMES..]), first, "the second time, the same ones");
    assert_eq!(job.trace.tables().files.len(), first + 1);
}

/// What could not be written at first was taken for written: no later call on that name, and none through that view, could say what
/// it was.
#[test]
fn what_could_not_be_described_at_first_is_described_later() {
    const NAMES: usize = 1000;
    let folder = folder();
    let headers = format!("-I{}", std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("c").display());
    let program = compile("cc", "definitions", folder.path(), &[&headers, "-I", env!("OUT_DIR"), "-ldl"]);
    let words = vec![program.into(), folder.path().into(), NAMES.to_string().into()];
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert!(job.outcome.summary.lost_calls > 0, "it lacked descriptors");
    let stats: Vec<_> = job.events.iter().filter(|event| event.call == Call::Stat).collect();
    let nameless = stats.iter().filter(|event| event.target == Target::None).count();
    assert_eq!((stats.len() > NAMES, nameless), (true, 0), "{} of {}", nameless, stats.len());
    let views: Vec<_> = job.trace.tables().views.iter().map(pio_layout::View::displacement).collect();
    assert!(views.contains(&4096), "{views:?}");
}

/// What was written to the second file counted for the first, whose number it had got.
#[test]
fn a_copy_of_a_descriptor_that_is_too_high_is_looked_at() {
    let folder = folder();
    let program = compile("cc", "high", folder.path(), &[]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    if job.outcome.status.code() == Some(77) {
        eprintln!("skipped: not so many descriptors are allowed here");
        return;
    }
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!((job.bytes("/first", Op::Write), job.bytes("/second", Op::Write)), (1, 4));
}

fn shell(line: &str) -> Job {
    let folder = folder();
    let script = format!("cd {} && {line}", folder.path().display());
    let job = record_in(folder, command(&["sh", "-c", &script]), |_| {});
    assert!(job.outcome.status.success(), "{line}: {:?}", job.outcome);
    job
}

#[test]
fn everyday_programs_have_the_right_totals() {
    let job =
        shell("dd if=/dev/zero of=a bs=4096 count=25 2>/dev/null && cp a b && sort b > c && cat a b > d");
    assert_eq!(job.bytes("/a", Op::Write), 102_400);
    assert_eq!(job.bytes("/a", Op::Read), 2 * 102_400, "by cp and cat");
    assert_eq!(job.bytes("/b", Op::Write), 102_400);
    assert_eq!(job.bytes("/b", Op::Read), 2 * 102_400, "by sort and cat");
    // Zeros are one line without an end: sort adds it.
    assert_eq!(job.bytes("/c", Op::Write), 102_401);
    assert_eq!(job.bytes("/d", Op::Write), 204_800);
}

#[test]
fn output_that_was_redirected_before_the_program_began_is_its_own() {
    let job = shell("(printf one; cat /etc/hostname; printf two) > out");
    let size = std::fs::metadata(job.folder.path().join("out")).expect("out").len();
    assert_eq!(job.bytes("/out", Op::Write), size);
    // Shell and cat write in turn at one position, and neither sees the other.
    let mut extents: Vec<_> =
        job.on("/out").iter().filter(|e| e.op() == Op::Write).map(|e| (offset(e), e.transferred())).collect();
    extents.sort_unstable();
    let mut next = 0;
    for (offset, bytes) in extents {
        assert_eq!(offset, next);
        next += bytes;
    }
    assert_eq!(next, size);
}

#[test]
fn handlers_with_little_stack_are_recorded() {
    let folder = folder();
    let program = compile("cc", "small_stack", folder.path(), &["-O1", "-Wl,-z,now"]);
    let file = folder.path().join("file");
    std::fs::write(&file, [b'x'; 100]).expect("a file");
    let line = format!("{} {1} < {1}", program.display(), file.display());
    let job = record_in(folder, command(&["sh", "-c", &format!("exec {line}")]), |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(counts(&job.on("/file")), [("open", 2), ("close", 2), ("read", 2), ("dup", 1)]);
}

/// They had all been one file.
#[test]
fn files_whose_names_are_not_utf_8_stay_apart() {
    let job =
        shell(r#"for end in '\376' '\377'; do name=$(printf "end-$end"); echo a >"$name"; rm "$name"; done"#);
    let files = job.trace.tables().files.iter().map(|file| file.path.rsplit('/').next().unwrap_or_default());
    let mut ours: Vec<_> = files.filter(|name| name.starts_with("end-")).collect();
    ours.sort_unstable();
    assert_eq!(ours, [r"end-\xfe", r"end-\xff"]);
    assert_eq!((job.bytes(r"/end-\xfe", Op::Write), job.bytes(r"/end-\xff", Op::Write)), (2, 2));
}

#[test]
fn a_lack_of_descriptors_passes() {
    const WRITES: u64 = 40_000;
    let folder = folder();
    let program = compile("cc", "descriptors", folder.path(), &["-O1"]);
    let words = vec![program.into(), folder.path().join("file").into(), WRITES.to_string().into()];
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let writes = extents(&job.on("/file"), Op::Write);
    let lost = job.outcome.summary.lost_calls;
    assert_eq!(writes.len() as u64 + lost, WRITES);
    // Of the quarter in which it lacked them, and a few until it was asked again.
    assert!(lost > 0 && lost <= WRITES / 4 + 1, "{lost} lost");
    assert_eq!(writes.last().expect("writes").1, 4 * (WRITES - 1));
}

#[test]
#[ignore = "slow"]
fn slow_a_pause_of_seconds_is_as_long_as_it_was() {
    // Longer than 32 bits of nanoseconds.
    let job = shell(
        "python3 -c \"import os, time; f = os.open('out', os.O_CREAT | os.O_WRONLY); os.write(f, b'a'); time.sleep(4.6); os.write(f, b'b')\"",
    );
    let writes: Vec<&Event> = job.on("/out").into_iter().filter(|e| e.op() == Op::Write).collect();
    let pause_ns = writes[1].start_ns - writes[0].end_ns();
    assert!((4_600_000_000..6_000_000_000).contains(&pause_ns), "{pause_ns}");
    assert!(writes[1].think_ns < 1_000_000_000, "it slept: {}", writes[1].think_ns);
}

/// A name that the kernel cannot read is no reason to end the program.
#[test]
fn names_that_cannot_be_read_are_the_program_s_own_affair() {
    let folder = folder();
    let program = compile("cc", "pointers", folder.path(), &["-w"]);
    let file = folder.path().join("file");
    std::fs::write(&file, "text").expect("the file is written");
    let alone = std::process::Command::new(&program).arg(&file).output().expect("the program starts");
    assert!(alone.status.success());
    let said = folder.path().join("said");
    let script = format!("'{}' '{}' > '{}'", program.display(), file.display(), said.display());
    let job = record_in(folder, vec!["sh".into(), "-c".into(), script.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let recorded = std::fs::read_to_string(&said).expect("what it said");
    assert_eq!(recorded, String::from_utf8_lossy(&alone.stdout));
}
