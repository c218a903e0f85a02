//! POSIX asynchronous I/O, libaio and io_uring: every operation from submission to completion, and what cannot be followed is named.

use std::path::Path;
use std::process::Command;

use crate::common::{self, Job, compile, counts, folder, program_source, record_in};
use pio_trace::{Call, Event, Flags, Losses, Op, Reason, Target};

/// Whether a program of `tests/programs` can be compiled here: its library may be missing.
fn has_library(name: &str, header: &str) -> bool {
    let found = ["/usr/include", "/usr/local/include"].iter().any(|at| Path::new(at).join(header).exists());
    if !found {
        eprintln!("skipped: no {header} for {}", program_source(&format!("{name}.c")).display());
    }
    found
}

/// Records one of the programs, and returns what it says itself: bytes read, bytes written, operations.
fn record_program(name: &str, library: &str, words: &[&str]) -> (Job, [u64; 3]) {
    let folder = folder();
    let program = compile("cc", name, folder.path(), &["-O1", library]);
    let out = folder.path().join("out");
    let line = format!(
        "exec {} {} {} > {}",
        program.display(),
        folder.path().display(),
        words.join(" "),
        out.display()
    );
    let job = record_in(folder, common::command(&["sh", "-c", &line]), |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let text = std::fs::read_to_string(out).expect("what the program says");
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    (job, numbers.try_into().expect("three numbers"))
}

/// Bytes read and written by these calls, and how many there are.
fn told(job: &Job, calls: [Call; 2]) -> [u64; 3] {
    let of = |call| job.events.iter().filter(move |e: &&Event| e.call == call);
    let bytes = |call| of(call).map(Event::transferred).sum();
    let count = calls.into_iter().map(|call| of(call).count() as u64).sum();
    [bytes(calls[0]), bytes(calls[1]), count]
}

const URING: [Call; 2] = [Call::IoUringRead, Call::IoUringWrite];
const LIBAIO: [Call; 2] = [Call::LibaioRead, Call::LibaioWrite];

#[test]
fn libaio_is_recorded_from_submission_to_completion() {
    if !has_library("libaio", "libaio.h") {
        return;
    }
    let (job, numbers) = record_program("libaio", "-laio", &[]);
    assert_eq!(told(&job, LIBAIO), [numbers[0], numbers[1], numbers[2]]);
    assert_eq!(job.outcome.summary.unfinished, 0);
    let file = job.on("/file");
    assert!(counts(&file).contains(&("fsync", 1)));
    let extent = |e: &&&Event| (e.target, e.size, e.result);
    let reads: Vec<_> = file.iter().filter(|e| e.call == Call::LibaioRead).collect();
    assert_eq!(extent(&reads[0]), (Target::Extent { offset: 1000 }, 4096, 4096));
    assert_eq!(extent(&reads[199]), (Target::Extent { offset: 199 * 4096 + 1000 }, 4096, 3096));
    assert_eq!(extent(&reads[200]), (Target::Extent { offset: 60 }, 300, 300));
    assert_eq!(extent(&reads[201]), (Target::Extent { offset: 1 << 40 }, 4096, 0));
    // Sixteen are submitted by one call: all are in flight before it returns.
    assert!(reads[1].start_ns < reads[0].end_ns() && reads[0].flags.contains(Flags::ASYNC));
}

/// Operations ended at their submission: what took 20 ms was over in microseconds.
#[test]
fn posix_aio_is_recorded_from_submission_until_it_is_seen_complete() {
    const REST_NS: u64 = 20_000_000;
    let folder = folder();
    let program = compile("cc", "aio", folder.path(), &["-O1", "-lrt"]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let file = job.on("/file");
    let is_moved = |e: &&&Event| matches!(e.call, Call::AioRead | Call::AioWrite);
    let moved: Vec<&Event> = file.iter().filter(is_moved).copied().collect();
    assert!(moved.iter().all(|e| e.flags.contains(Flags::ASYNC)));
    let whole = 4096;
    let results: Vec<i64> = moved.iter().map(|e| e.result).collect();
    let failed = [libc::EFAULT, libc::EINVAL].map(|error| -i64::from(error));
    assert_eq!(results, [&[whole; 6][..], &[3096], &failed, &[0]].concat());
    let rests: Vec<u64> = moved.iter().map(|e| e.elapsed_ns / REST_NS).collect();
    // By what asks first; the list that is waited for takes what it takes.
    for (index, least) in [(0, 1), (1, 1), (2, 5), (5, 1), (6, 1), (7, 1)] {
        assert!(rests[index] >= least, "{index}: {rests:?}");
    }
    // What it does after it knows is no part of it.
    for pair in [[0, 1], [1, 2], [3, 5], [4, 5]] {
        let [before, after] = pair.map(|index| moved[index]);
        assert!(before.end_ns() + REST_NS <= after.start_ns + REST_NS / 20, "{before:?} {after:?}");
    }
    let unfinished: Vec<bool> = moved.iter().map(|e| e.flags.contains(Flags::UNFINISHED)).collect();
    assert_eq!(unfinished.iter().position(|it| *it), Some(9));
    assert_eq!(job.outcome.summary.unfinished, 1);
    let sync = file.iter().find(|e| e.call == Call::Fsync).expect("a sync");
    assert!(sync.flags.contains(Flags::ASYNC) && sync.elapsed_ns >= REST_NS && sync.result == 0);
}

/// Programs that were linked long ago call io_getevents with one argument less: they ended in the wrong function.
#[test]
fn the_first_libaio_is_recorded_too() {
    if !has_library("libaio_old", "libaio.h") {
        return;
    }
    let (job, numbers) = record_program("libaio_old", "-laio", &[]);
    assert_eq!(numbers, [50 * 4096, 50 * 4096, 100]);
    assert_eq!(told(&job, LIBAIO), numbers);
    assert_eq!(job.outcome.summary.unfinished, 0);
}

fn has_rings() -> bool {
    kernel_has_rings() && has_library("uring", "liburing.h")
}

fn kernel_has_rings() -> bool {
    let allowed = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let is_off = allowed.is_ok_and(|text| text.trim() != "0");
    if is_off {
        eprintln!("skipped: the kernel does not allow io_uring here");
    }
    !is_off
}

#[test]
fn liburing_is_recorded_from_submission_to_completion() {
    if !has_rings() {
        return;
    }
    for ring in ["plain", "fixed"] {
        let (job, numbers) = record_program("uring", "-luring", &[ring]);
        assert_eq!(told(&job, URING), numbers, "{ring}");
        assert_eq!(job.outcome.summary.unfinished, 0, "{ring}");
        assert_eq!(Losses::of(&job.trace).unseen, [], "{ring}");
        // Each of its files has its own, though registered files lose their descriptors.
        let of_first = 300 * 4096;
        assert_eq!(job.bytes("/first", Op::Write), of_first);
        assert_eq!(job.bytes("/second", Op::Read), of_first - 1000);
        assert_eq!(job.bytes("/opened", Op::Write), 1234);
        assert_eq!(job.bytes("/file", Op::Write) + 2 * of_first + 1234, numbers[1]);
        assert_eq!(job.bytes("/another", Op::Write), 0);
        let file = counts(&job.on("/file"));
        assert!(file.contains(&("fdatasync", 1)) && file.contains(&("fallocate", 1)), "{file:?}");
        assert_eq!(counts(&job.on("/opened")), [("open", 1), ("close", 1), ("io_uring_write", 1)]);
        let missing = -i64::from(libc::ENOENT);
        let named: Vec<_> = job.events.iter().filter(|e| e.result == missing && e.handle.is_none()).collect();
        assert_eq!(counts(&named), [("open", 1), ("stat", 1)]);
    }
}

/// Files that are opened into a place of the ring never have a descriptor.
#[test]
fn files_that_are_opened_directly_are_told_apart() {
    if !has_rings() {
        return;
    }
    let folder = folder();
    let program = compile("cc", "uring_direct", folder.path(), &["-O1", "-luring"]);
    let work = folder.path().to_path_buf();
    let job = record_in(folder, vec![program.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    if told(&job, URING)[2] == 0 {
        eprintln!("skipped: the kernel opens no files directly");
        return;
    }
    assert_eq!(told(&job, URING), [0, 1111 + 2222 + 3333, 3]);
    for (name, bytes) in [("/named", 1111), ("/chosen", 2222), ("/updated", 3333)] {
        assert_eq!(job.bytes(name, Op::Write), bytes, "{name}");
    }
    assert_eq!(Losses::of(&job.trace).unseen, []);
}

#[test]
fn a_ring_that_the_kernel_polls_is_named() {
    if !has_rings() {
        return;
    }
    let (job, numbers) = record_program("uring", "-luring", &["sqpoll"]);
    // The rings of its threads are seen.
    assert_eq!(told(&job, URING)[2], 4 * 300);
    let losses = Losses::of(&job.trace);
    let [unseen] = losses.unseen.as_slice() else { panic!("{losses:?}") };
    assert_eq!((unseen.reason, unseen.processes, unseen.unknown), (Reason::Ring, 1, 0));
    assert!(unseen.program.ends_with("/uring"), "{unseen:?}");
    assert!(unseen.written_bytes >= numbers[1] / 2, "{unseen:?}");
}

/// What another thread submits while this one looks at the ring is seen once.
#[test]
fn a_ring_that_one_thread_fills_and_another_waits_for_is_recorded_once() {
    if !has_rings() {
        return;
    }
    let program_folder = folder();
    let program = compile("cc", "uring_waiter", program_folder.path(), &["-O1", "-luring", "-pthread"]);
    for _ in 0..10 {
        let folder = folder();
        let file = folder.path().join("waited");
        let job = record_in(folder, vec![program.clone().into(), file.into()], |_| {});
        assert!(job.outcome.status.success(), "{:?}", job.outcome);
        assert_eq!(counts(&job.on("/waited")), [("open", 1), ("close", 1), ("io_uring_write", 2000)]);
    }
}

/// A forked child does not have the recorder's mappings of its parent's rings: it died where its first call was one on a ring.
#[test]
fn a_forked_child_uses_the_ring_of_its_parent() {
    if !has_rings() {
        return;
    }
    // What the child submits to it is seen of neither, and the parent's ring is named.
    for (submits, named) in [("library", &[Reason::Ring][..]), ("number", &[])] {
        let folder = folder();
        let program = compile("cc", "uring_forked", folder.path(), &["-O1", "-luring"]);
        let words = vec![program.into(), folder.path().into(), submits.into()];
        let job = record_in(folder, words, |_| {});
        assert!(job.outcome.status.success(), "{submits}: {:?}", job.outcome);
        assert_eq!(job.bytes("/parent", Op::Write), 100, "{submits}");
        assert_eq!(job.bytes("/child", Op::Write), 300, "{submits}");
        let unseen = Losses::of(&job.trace).unseen;
        assert_eq!(unseen.iter().map(|it| it.reason).collect::<Vec<_>>(), named, "{submits}");
    }
}

/// Where close_range, closefrom or dup2 closed a ring, the next one got its descriptor and was taken for it: no call on it was seen.
#[test]
fn rings_are_left_whatever_call_closes_them() {
    if !has_rings() {
        return;
    }
    let (job, numbers) = record_program("uring_closed", "-luring", &[]);
    assert_eq!(told(&job, URING), numbers);
    assert_eq!(job.outcome.summary.unfinished, 0);
    assert_eq!(Losses::of(&job.trace).unseen, []);
}

/// Both ended by SIGSEGV: the ring was taken down while a thread was in a call on it; and what the kernel had not looked at was read.
#[test]
fn what_programs_may_do_does_not_end_them() {
    if !has_rings() {
        return;
    }
    for (what, written) in [("closes", 10 * 100), ("addresses", 100)] {
        let folder = folder();
        let program = compile("cc", "uring_odd", folder.path(), &["-O1", "-luring", "-pthread"]);
        let words = vec![program.into(), folder.path().into(), what.into()];
        let job = record_in(folder, words, |_| {});
        assert!(job.outcome.status.success(), "{what}: {:?}", job.outcome);
        assert_eq!(job.bytes("/file", Op::Write), written, "{what}");
        assert_eq!(Losses::of(&job.trace).unseen, [], "{what}");
    }
}

/// With the archive of liburing inside it, a program makes and enters rings without a function that could be seen.
#[test]
fn a_ring_that_is_made_without_the_c_library_is_named() {
    let archive = ["/usr/lib/x86_64-linux-gnu/liburing.a", "/usr/lib/liburing.a", "/usr/lib64/liburing.a"];
    if !has_rings() || !archive.iter().any(|at| Path::new(at).exists()) {
        eprintln!("skipped: no archive of liburing");
        return;
    }
    let (job, numbers) = record_program("uring", "-l:liburing.a", &["plain"]);
    assert!(numbers[0] > 0 && told(&job, URING) == [0, 0, 0]);
    let losses = Losses::of(&job.trace);
    let [unseen] = losses.unseen.as_slice() else { panic!("{losses:?}") };
    assert_eq!((unseen.reason, unseen.processes, unseen.unknown), (Reason::Ring, 1, 0));
    assert!(unseen.program.ends_with("/uring"), "{unseen:?}");
}

/// The trap for instructions of a program's own is set for the thread that makes the ring.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_ring_that_another_thread_enters_by_itself_is_named() {
    if !kernel_has_rings() {
        return;
    }
    let folder = folder();
    let program = compile("cc", "ring_in_thread", folder.path(), &["-O1"]);
    let words = vec![program.into(), folder.path().join("file").into()];
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(std::fs::read(job.folder.path().join("file")).expect("the file"), b"hello");
    let unseen = Losses::of(&job.trace).unseen;
    assert_eq!(unseen.iter().map(|it| it.reason).collect::<Vec<_>>(), [Reason::Ring]);
}

/// Its own handler took the trap's place: its calls were not made.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_may_ask_for_the_trap_s_signal_in_any_way() {
    if !kernel_has_rings() {
        return;
    }
    let folder = folder();
    let program = compile("cc", "ring_signal", folder.path(), &["-O1"]);
    let words = vec![program.into(), folder.path().join("file").into()];
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(std::fs::read(job.folder.path().join("file")).expect("the file"), b"hello");
    assert_eq!((job.bytes("/file", pio_trace::Op::Write), Losses::of(&job.trace).unseen.len()), (5, 0));
}

/// It was taken for what had its number before.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_file_that_a_ring_opens_is_seen_whatever_had_its_number() {
    if !kernel_has_rings() {
        return;
    }
    let folder = folder();
    let program = compile("cc", "uring_number", folder.path(), &["-O1"]);
    let file = folder.path().join("file");
    std::fs::write(&file, [b'x'; 10]).expect("a file");
    let job = record_in(folder, vec![program.into(), file.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(common::counts(&job.on("/file")), [("open", 1), ("close", 1), ("read", 1)]);
}

/// Runs fio under the recorder: the job, and bytes read and written as fio tells them.
fn record_fio(engine: &str, more: &[&str]) -> (Job, [u64; 2]) {
    let folder = folder();
    let report = folder.path().join("report");
    let words = [
        "fio",
        "--name=job",
        "--size=4m",
        "--bs=4k",
        "--rw=randrw",
        "--iodepth=16",
        "--thread",
        "--end_fsync=1",
        "--output-format=json",
    ];
    let mut words = common::command(&words);
    words.push(format!("--ioengine={engine}").into()); // its own options follow it
    words.extend(more.iter().map(Into::into));
    words.extend([
        format!("--filename={}", folder.path().join("data").display()).into(),
        format!("--output={}", report.display()).into(),
    ]);
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{engine}: {:?}", job.outcome);
    let text = std::fs::read_to_string(report).expect("fio's report");
    let bytes = |side: &str| -> u64 {
        let after = text.split(&format!("\"{side}\" : {{")).nth(1).expect("a side");
        let number = after.split("\"io_bytes\" : ").nth(1).and_then(|rest| rest.split(',').next());
        number.and_then(|number| number.parse().ok()).expect("its bytes")
    };
    let sides = [bytes("read"), bytes("write")];
    (job, sides)
}

/// Reads and writes of fio's file, but for those by which fio lays it out.
fn of_engine(job: &Job, calls: [Call; 2]) -> [u64; 2] {
    let on = job.on("/data");
    calls.map(|call| on.iter().filter(|e| e.call == call).map(|e| e.transferred()).sum())
}

#[test]
fn fio_counts_the_same_bytes() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("skipped: no fio");
        return;
    }
    let engines: [(&str, [Call; 2], &[&str]); 6] = [
        ("psync", [Call::Pread, Call::Pwrite], &[]),
        ("libaio", LIBAIO, &[]),
        ("libaio", LIBAIO, &["--iodepth_batch_submit=8", "--numjobs=2"]),
        ("io_uring", URING, &[]),
        ("io_uring", URING, &["--registerfiles=1", "--fixedbufs=1"]),
        ("io_uring", URING, &["--nonvectored=0", "--numjobs=2"]),
    ];
    for (engine, calls, more) in engines {
        if engine == "io_uring" && !has_rings() {
            continue;
        }
        let more = [more, &["--group_reporting=1"]].concat();
        let (job, bytes) = record_fio(engine, &more);
        assert!(bytes[0] > 0 && bytes[1] > 0, "{engine} {more:?}");
        assert_eq!(of_engine(&job, calls), bytes, "{engine} {more:?}");
        assert_eq!(Losses::of(&job.trace).unseen, [], "{engine} {more:?}");
    }
}

/// What goes through mapped memory is no call: the trace says what was mapped, and claims no bytes.
#[test]
fn mapped_files_are_recorded_as_mapped() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("skipped: no fio");
        return;
    }
    let (job, bytes) = record_fio("mmap", &[]);
    let mapped: Vec<_> = job.on("/data").into_iter().filter(|e| e.call == Call::Mmap).collect();
    assert!(!mapped.is_empty() && bytes[0] + bytes[1] == 4 << 20);
    assert!(mapped.iter().all(|e| e.size == 4 << 20), "{mapped:?}");
    assert_eq!(of_engine(&job, [Call::Pread, Call::Pwrite]), [0, 0]);
}
