//! Logs of other tools that hold calls.

// A test that cannot set up its scene fails there.

use std::path::Path;
use std::process::Command;

use pio_import::{Format, Tool};
use pio_trace::{Call, Event, Flags, Target, Trace};
use proptest::prelude::*;

fn trace_of(tool: Tool, log: &[u8]) -> Trace {
    let mut bytes = Vec::new();
    pio_import::write_trace_from(tool, log, Path::new("log"), &mut bytes, Path::new("trace")).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Trace::open(file.path()).unwrap()
}

fn events(trace: &Trace) -> Vec<Event> {
    trace.events().map(Result::unwrap).collect()
}

fn notes<'a>(trace: &'a Trace, name: &'a str) -> Vec<&'a str> {
    trace.tables().notes.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
}

/// Call, path, offset, size, result.
type Row<'a> = (Call, &'a str, Option<u64>, u64, i64);

fn rows(trace: &Trace) -> Vec<Row<'_>> {
    let path = |event: &Event| match event.handle {
        Some(handle) => trace.tables().file_of(handle).unwrap().path.as_str(),
        None => "",
    };
    let offset = |event: &Event| match event.target {
        Target::Extent { offset } => Some(offset),
        _ => None,
    };
    events(trace)
        .iter()
        .map(|event| (event.call, path(event), offset(event), event.size, event.result))
        .collect()
}

const STRACE: &str = r#"10 1700000000.000000 execve("/bin/a", ["a", "in put"], 0x7ff /* 3 vars */) = 0 <0.000500>
10 1700000000.001000 openat(AT_FDCWD, "/d/in", O_RDONLY|O_CLOEXEC) = 3 <0.000100>
10 1700000000.002000 read(3, "abc"..., 4096) = 4096 <0.000050>
10 1700000000.003000 openat(AT_FDCWD, "/d/none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000020>
10 1700000000.004000 openat(AT_FDCWD, "/d/out", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4 <0.000100>
10 1700000000.005000 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
11 1700000000.005500 write(4, "x"..., 100 <unfinished ...>
10 1700000000.005600 <... clone resumed>, child_tidptr=0x7f) = 11 <0.000600>
10 1700000000.005700 read(3, "def"..., 4096) = 10 <0.000050>
11 1700000000.005800 <... write resumed>) = 100 <0.000300>
11 1700000000.006000 dup2(4, 1) = 1 <0.000010>
11 1700000000.006100 execve("/bin/b", ["b"], 0x7ff /* 3 vars */) = 0 <0.000500>
11 1700000000.007000 write(1, "y", 1) = 1 <0.000300>
11 1700000000.007100 read(3, "", 1) = -1 EBADF (Bad file descriptor) <0.000300>
11 1700000000.007500 +++ exited with 0 +++
10 1700000000.008000 pwrite64(4, "z"..., 8192, 65536) = 8192 <0.000300>
10 1700000000.008400 write(4, "w", 1) = 1 <0.000300>
10 1700000000.009000 lseek(3, 0, SEEK_SET) = 0 <0.000002>
10 1700000000.009100 pipe2([5, 6], O_CLOEXEC) = 0 <0.000002>
10 1700000000.009200 write(6, "p", 1) = 1 <0.000002>
10 1700000000.009300 copy_file_range(3, [16], 4, NULL, 512, 0) = 512 <0.000200>
10 1700000000.009600 fsync(4) = 0 <0.010000>
10 1700000000.019700 close(3) = 0 <0.000002>
10 1700000000.019800 fsync(4 <unfinished ...>
10 1700000000.500000 +++ killed by SIGKILL +++
"#;

#[test]
fn strace_becomes_files_offsets_and_processes() {
    let trace = trace_of(Tool::Strace, STRACE.as_bytes());
    let (input, output) = ("/d/in", "/d/out");
    assert_eq!(
        rows(&trace),
        [
            (Call::Open, input, None, 0, 0),
            (Call::Read, input, Some(0), 4096, 4096),
            (Call::Open, "", None, 0, -2),
            (Call::Open, output, None, 0, 0),
            (Call::Write, output, Some(0), 100, 100),
            (Call::Read, input, Some(4096), 4096, 10),
            (Call::Dup, output, None, 0, 0),
            // The position is shared with the parent, and the read end was closed by exec.
            (Call::Write, output, Some(100), 1, 1),
            (Call::Read, "descriptor 3 of process 11", None, 1, -9),
            (Call::Pwrite, output, Some(65536), 8192, 8192),
            (Call::Write, output, Some(101), 1, 1),
            (Call::Lseek, input, Some(0), 0, 0),
            (Call::Read, input, Some(16), 512, 512),
            (Call::Write, output, Some(102), 512, 512),
            (Call::Fsync, output, None, 0, 0),
            (Call::Close, input, None, 0, 0),
            (Call::Fsync, output, None, 0, 0),
        ]
    );
    let tables = trace.tables();
    assert_eq!(tables.epoch_ns, 1_700_000_000_000_000_000);
    let processes: Vec<_> =
        tables.processes.iter().map(|it| (it.pid, it.command.as_str(), it.end_ns)).collect();
    assert_eq!(processes, [(10, "a in put", None), (11, "b", Some(7_500_000))]);
    let events = events(&trace);
    assert_eq!((events[4].start_ns, events[4].elapsed_ns), (5_500_000, 300_000));
    assert_eq!([0, 3, 4].map(|event| events[event].flags), [Flags::NONE, Flags::TRUNCATE, Flags::NONE]);
    let last = events.last().unwrap();
    assert_eq!((last.flags, last.elapsed_ns), (Flags::UNFINISHED, 480_200_000));
    assert_eq!(notes(&trace, "lost lines"), [""; 0]);
}

#[test]
fn what_is_no_line_of_strace_is_told() {
    let text = format!("{STRACE}rubbish\n10 1700000001.0 what is this\n");
    let trace = trace_of(Tool::Strace, text.as_bytes());
    let told = notes(&trace, "lost lines");
    assert_eq!(told, ["2 not understood: line 26 'rubbish'; line 27 '10 1700000001.0 what is this'"]);
}

/// With a real strace, where there is one: `dd` reads and writes what it was told to.
#[test]
fn a_real_strace_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let run = |argument: &str| {
        Command::new("strace")
            .args(["-f", "-ttt", "-T", argument, "-o"])
            .arg(&log)
            .args(["dd", "if=/dev/zero", "bs=4096", "count=16", "status=none"])
            .arg(format!("of={}", folder.path().join("out").display()))
            .status()
    };
    for argument in ["-y", "-q"] {
        if !run(argument).is_ok_and(|status| status.success()) {
            eprintln!("skipped: no strace here, or it may not trace");
            return;
        }
        assert_eq!(pio_import::recognise(&log).unwrap(), Some(Format::Calls(Tool::Strace)));
        let trace = trace_of(Tool::Strace, &std::fs::read(&log).unwrap());
        let writes: Vec<_> = rows(&trace).into_iter().filter(|row| row.0 == Call::Write).collect();
        assert_eq!(writes.len(), 16);
        for (index, (_, path, offset, size, result)) in writes.into_iter().enumerate() {
            assert!(path.ends_with("/out"), "{path}");
            assert_eq!((offset, size, result), (Some(index as u64 * 4096), 4096, 4096));
        }
        assert_eq!(notes(&trace, "lost lines"), [""; 0]);
    }
}

#[test]
fn fio_version_3_has_times() {
    let log = "fio version 3 iolog\n48 /tmp/a b.0 add\n260 /tmp/a b.0 open\n267 /tmp/a b.0 read 16384 4096\n\
               750 /tmp/a b.0 datasync 0 0\n760 /tmp/a b.0 close\nnonsense\n";
    let trace = trace_of(Tool::Fio, log.as_bytes());
    let path = "/tmp/a b.0";
    assert_eq!(
        rows(&trace),
        [
            (Call::Open, path, None, 0, 0),
            (Call::Pread, path, Some(16384), 4096, 4096),
            (Call::Fdatasync, path, None, 0, 0),
            (Call::Close, path, None, 0, 0),
        ]
    );
    assert_eq!(events(&trace)[1].start_ns, 267_000);
    assert_eq!(notes(&trace, "lost lines"), ["1 not understood: line 7 'nonsense'"]);
}

#[test]
fn fio_version_2_has_pauses() {
    let log = "fio version 2 iolog\n/a add\n/a open\n/a write 0 512\n/a wait 1500 0\n/a write 512 512\n";
    let trace = trace_of(Tool::Fio, log.as_bytes());
    let starts: Vec<_> = events(&trace).iter().map(|event| event.start_ns).collect();
    assert_eq!(starts, [0, 0, 1_500_000]);
}

#[test]
fn jobs_of_fio_with_one_log_each_begin_anew() {
    let job = "fio version 3 iolog\n1 /a add\n2 /a open\n3 /a read 0 4096\n9 /a close\n";
    let trace = trace_of(Tool::Fio, format!("{job}{job}").as_bytes());
    let seen: Vec<_> = events(&trace).iter().map(|event| (event.process.0, event.start_ns / 1000)).collect();
    assert_eq!(seen, [(0, 2), (1, 2), (0, 3), (1, 3), (0, 9), (1, 9)]);
    let processes: Vec<_> =
        trace.tables().processes.iter().map(|one| (one.pid, one.command.as_str(), one.end_ns)).collect();
    assert_eq!(processes, [(1, "fio", Some(9000)), (2, "fio", Some(9000))]);
    assert_eq!(notes(&trace, "lost lines"), [""; 0]);
}

#[test]
fn latencies_of_fio_are_put_one_after_the_other() {
    let read = |name: &str, log: &str| {
        let mut bytes = Vec::new();
        pio_import::write_trace_from(
            Tool::FioLatency,
            log.as_bytes(),
            Path::new(name),
            &mut bytes,
            Path::new("trace"),
        )
        .map(|_| Trace::from_bytes(bytes, "trace").unwrap())
    };
    // The second ends in the millisecond of the first, the third cannot: it ran at the same time.
    let log = "5, 400000, 0, 4096, 8192, 0\n5, 300000, 1, 512, 0, 0\n5, 900000, 2, 4096, 4096, 0\n\
               9, 10, 3, 0, 0, 0x0004\nnonsense\n";
    let trace = read("job_lat.1.log", log).unwrap();
    let file = "file of job_lat.1.log";
    assert_eq!(
        rows(&trace),
        [
            (Call::Fallocate, file, Some(4096), 4096, 0),
            (Call::Pread, file, Some(8192), 4096, 4096),
            (Call::Pwrite, file, Some(0), 512, 512),
            (Call::Fsync, file, Some(0), 0, 0),
        ]
    );
    let times: Vec<_> = events(&trace).iter().map(|event| (event.start_ns, event.elapsed_ns)).collect();
    assert_eq!(times, [(0, 900_000), (500_000, 400_000), (900_000, 300_000), (4_899_990, 10)]);
    assert_eq!(notes(&trace, "lost lines"), ["1 not understood: line 5 'nonsense'"]);
    assert_eq!(notes(&trace, "offsets"), [""; 0]);

    let without = read("job_clat.1.log", "5, 400000, 0, 4096, 0\n").unwrap();
    assert_eq!(rows(&without), [(Call::Pread, "file of job_clat.1.log", None, 4096, 4096)]);
    assert_eq!(notes(&without, "offsets"), ["none: fio was run without --log_offset=1"]);

    // Before fio 3.18 there was no priority: the offset was taken for it.
    let older = read("job_lat.1.log", "5, 400, 0, 4096, 0\n6, 400, 0, 4096, 4096\n").unwrap();
    let offsets: Vec<_> = rows(&older).iter().map(|row| row.2).collect();
    assert_eq!(offsets, [Some(0), Some(4096)]);
    assert_eq!(notes(&older, "offsets"), [""; 0]);

    let averaged = "10, 310237, 0, 0, 0, 0\n20, 7571, 1, 0, 0, 0\n";
    for (name, log, expected) in [
        ("job_lat.1.log", averaged, "fio without --log_avg_msec"),
        ("job_bw.1.log", log, "fio --write_lat_log"),
        ("job_iops.1.log", log, "fio --write_lat_log"),
        ("job_slat.1.log", log, "fio --write_lat_log"),
    ] {
        let told = read(name, log).err().unwrap().to_string();
        assert!(told.starts_with(name) && told.contains(expected), "{told}");
    }
}

#[test]
fn each_job_of_fio_is_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, log: &str| std::fs::write(folder.path().join(name), log).unwrap();
    write("a_lat.1.log", "1, 5000, 0, 4096, 0\n1, 6000, 0, 4096, 0\n1, 6000, 0, 4096, 0\n");
    write("a_clat.1.log", "1, 4000, 0, 4096, 0\n");
    write("a_bw.1.log", "1, 4000, 0, 4096, 0\n");
    write("a_clat.2.log", "2, 4000, 1, 512, 0\n");
    write("out.txt", "no log\n");
    assert_eq!(pio_import::recognise(folder.path()).unwrap(), Some(Format::FioFolder));
    let trace = pio_import::open(folder.path()).unwrap();
    let calls: Vec<_> = events(&trace).iter().map(|event| (event.process.0, event.size)).collect();
    assert_eq!(calls, [(0, 4096), (0, 4096), (0, 4096), (1, 512)]);
    let log = folder.path().join("a_bw.1.log");
    assert_eq!(pio_import::recognise(&log).unwrap(), Some(Format::Calls(Tool::FioLatency)));
}

/// A record of blktrace in either byte order.
fn block_record(
    swapped: bool,
    action: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    payload: &[u8],
) -> Vec<u8> {
    let word = |value: u32| if swapped { value.swap_bytes() } else { value }.to_ne_bytes();
    let long = |value: u64| if swapped { value.swap_bytes() } else { value }.to_ne_bytes();
    let half = |value: u16| if swapped { value.swap_bytes() } else { value }.to_ne_bytes();
    let mut record = Vec::new();
    record.extend(word(0x6561_7407));
    record.extend(word(1));
    record.extend(long(time_ns));
    record.extend(long(sector));
    record.extend([bytes, action, 4711, 8 << 20 | 1, 0].map(word).concat());
    record.extend(half(0));
    record.extend(half(payload.len() as u16));
    record.extend(payload);
    record
}

#[test]
fn blktrace_is_read_in_both_byte_orders() {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 2 << 16;
    const NOTIFY: u32 = 1 << 26;
    for swapped in [false, true] {
        let record =
            |action, time_ns, sector, bytes| block_record(swapped, action, time_ns, sector, bytes, b"");
        let mut log = block_record(swapped, NOTIFY, 0, 0, 0, b"venus\0\0\0");
        log.extend(record(READ | 1, 50, 64, 4096));
        log.extend(record(READ | 7, 100, 64, 4096));
        log.extend(record(WRITE | 7, 150, 8, 512));
        log.extend(record(READ | 8, 400, 64, 4096));
        log.extend(record(WRITE | 7, 500, 80, 512));
        log.extend(record(WRITE | 8, 600, 8, 512));
        let trace = trace_of(Tool::Blktrace, &log);
        let device = "device 8:1";
        assert_eq!(
            rows(&trace),
            [
                (Call::Pread, device, Some(64 * 512), 4096, 4096),
                (Call::Pwrite, device, Some(8 * 512), 512, 512),
                (Call::Pwrite, device, Some(80 * 512), 512, 0),
            ]
        );
        let events = events(&trace);
        assert_eq!(events.iter().map(|it| it.elapsed_ns).collect::<Vec<_>>(), [300, 450, 100]);
        assert_eq!(events[2].flags, Flags::UNFINISHED);
        assert_eq!(trace.tables().processes[0].command, "venus");
        log.truncate(log.len() - 10);
        let told = trace_of(Tool::Blktrace, &log);
        assert_eq!(notes(&told, "lost lines").len(), 1);
    }
}

/// The kernel counts from when the machine was started: a run of a second lasted for days.
#[test]
fn a_trace_of_blktrace_begins_with_its_first_request() {
    const UP_NS: u64 = 9 * 86_400 * 1_000_000_000;
    let record = |action: u32, time_ns| block_record(false, (1 << 16) + action, time_ns, 64, 4096, b"");
    let log =
        [record(7, UP_NS), record(8, UP_NS + 400), record(7, UP_NS + 500), record(8, UP_NS + 900)].concat();
    let trace = trace_of(Tool::Blktrace, &log);
    assert_eq!(events(&trace).iter().map(|event| event.start_ns).collect::<Vec<_>>(), [0, 500]);
    let process = &trace.tables().processes[0];
    assert_eq!((process.start_ns, process.end_ns), (0, Some(900)));
    assert_eq!(trace.tables().epoch_ns, 0);
}

/// What the kernel notes of a trace was passed over: it began in 1970.
#[test]
fn a_trace_of_blktrace_has_the_time_of_day() {
    const UP_NS: u64 = 9 * 86_400 * 1_000_000_000;
    const NOTIFY: u32 = 1 << 26;
    for swapped in [false, true] {
        let word = |value: u32| if swapped { value.swap_bytes() } else { value }.to_ne_bytes();
        let time_of_day = [word(1_700_000_000), word(500)].concat();
        let record = |action: u32, time_ns| block_record(swapped, (1 << 16) + action, time_ns, 64, 4096, b"");
        // As the kernel writes it, and as blkparse does: its times count from the first record that is no note.
        for moved_by_ns in [0, UP_NS + 2000] {
            let log = [
                block_record(swapped, NOTIFY | 1, UP_NS, 0, 0, &time_of_day),
                block_record(swapped, NOTIFY, UP_NS + 2000, 0, 0, b"venus\0\0\0"),
                record(1, UP_NS + 2000 - moved_by_ns),
                record(7, UP_NS + 3000 - moved_by_ns),
                record(8, UP_NS + 3400 - moved_by_ns),
            ];
            let trace = trace_of(Tool::Blktrace, &log.concat());
            assert_eq!(trace.tables().epoch_ns, 1_700_000_000_000_003_500);
            assert_eq!(events(&trace)[0].start_ns, 0);
        }
    }
}

#[test]
fn a_table_is_read_whatever_its_order() {
    let log = "rank,call,start_s,file,offset,size,elapsed_s,extra\n\
               1,pwrite,1700000000.5,\"/d/a,b\",4096,512,0.001,x\n\
               0,pread,1700000000.25,/d/c,0,100,0.002,y\n\
               0,nonsense,1,,,,,\n";
    let trace = trace_of(Tool::Csv, log.as_bytes());
    assert_eq!(
        rows(&trace),
        [(Call::Pread, "/d/c", Some(0), 100, 100), (Call::Pwrite, "/d/a,b", Some(4096), 512, 512)]
    );
    assert_eq!(events(&trace)[1].start_ns, 250_000_000);
    assert_eq!(trace.tables().processes[0].rank, Some(1));
    assert_eq!(notes(&trace, "lost lines"), ["1 not understood: line 4 (call)"]);
}

/// Calls of all ranks together were taken for those of each alone, and the advice was to make them collective.
#[test]
fn calls_of_a_table_are_collective_by_their_names() {
    let log = "start_s,call,file,offset,size,rank\n\
               0,MPI_File_open,/d/a,,,0\n\
               1,MPI_File_write_at_all,/d/a,0,512,0\n\
               2,MPI_File_write_at,/d/a,0,512,0\n\
               3,MPI_Barrier,,,,0\n\
               4,pwrite,/d/a,0,512,0\n";
    let trace = trace_of(Tool::Csv, log.as_bytes());
    let collective =
        events(&trace).iter().map(|event| event.flags.contains(Flags::COLLECTIVE)).collect::<Vec<_>>();
    assert_eq!(collective, [true, true, false, true, false]);
}

/// The rest of the table was one file's name, and the trace whole.
#[test]
fn a_quotation_mark_that_is_not_closed_is_damage() {
    let row = |name: &str| format!("0.5,read,{name},0,10\n");
    let table = |names: &[&str]| {
        let rows: String = names.iter().map(|name| row(name)).collect();
        trace_of(Tool::Csv, format!("start_s,call,file,offset,size\n{rows}").as_bytes())
    };
    for (names, told, count) in [
        // Up to the end of the table, of a line, or up to the next mark.
        (["/a", "\"/b", "/c", "/d"], "lines 3 to 5", 1),
        (["/a", "/b", "/c", "\"/d"], "line 5", 3),
        (["/a", "\"/b", "/c", "\"/d\""], "lines 3 to 5", 1),
    ] {
        let trace = table(&names);
        assert_eq!(events(&trace).len(), count, "{names:?}");
        let expected = format!("1 not understood: {told} (a quotation mark that is not closed)");
        assert_eq!(notes(&trace, "lost lines"), [expected]);
    }
    let trace = table(&["\"/a\nb\"", "/c"]);
    assert_eq!(rows(&trace)[0], (Call::Read, "/a\nb", Some(0), 10, 10));
    assert_eq!((events(&trace).len(), notes(&trace, "lost lines").len()), (2, 0));
}

/// The rest of a table of any size was read into memory.
#[test]
fn a_quotation_mark_that_is_not_closed_takes_in_no_more_than_a_mebibyte() {
    /// Counts what is read of it.
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            assert!(self.0 < 8 << 20, "it goes on and on");
            self.0 += buffer.len() as u64;
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let begin = "start_s,call,file\n0.5,read,/a\n0.5,read,\"";
    let log = std::io::BufReader::new(std::io::Read::chain(begin.as_bytes(), Endless(0)));
    let mut bytes = Vec::new();
    pio_import::write_trace_from(Tool::Csv, log, Path::new("log"), &mut bytes, Path::new("trace")).unwrap();
    let trace = Trace::from_bytes(bytes, "trace").unwrap();
    assert_eq!(events(&trace).len(), 1);
    let told = "1 not understood: all from line 3 on (a row of more than 1048576 bytes: a quotation mark that is not closed)";
    assert_eq!(notes(&trace, "lost lines"), [told]);
}

/// A name that is no UTF-8 was taken for none.
#[test]
fn tables_may_have_names_of_other_character_sets_and_a_mark_of_utf_8() {
    let log = b"\xef\xbb\xbfstart_s,call,file,size\n1,read,/a\xfc,10\n2,read, /a\xfd ,10\n3,read,/b,1\xb2\n";
    let trace = trace_of(Tool::Csv, log);
    assert_eq!(rows(&trace), [(Call::Read, r"/a\xfc", None, 10, 10), (Call::Read, r"/a\xfd", None, 10, 10)]);
    assert_eq!(notes(&trace, "lost lines"), ["1 not understood: line 4 (size)"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), log).unwrap();
    assert_eq!(pio_import::recognise(file.path()).unwrap(), Some(Format::Calls(Tool::Csv)));
}

#[test]
fn a_file_is_recognised_by_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let recognised = |bytes: &[u8]| {
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        pio_import::recognise(&path).unwrap()
    };
    assert_eq!(recognised(STRACE.as_bytes()), Some(Format::Calls(Tool::Strace)));
    assert_eq!(recognised(b"fio version 2 iolog\n"), Some(Format::Calls(Tool::Fio)));
    assert_eq!(recognised(&block_record(true, 7, 0, 0, 0, b"")), Some(Format::Calls(Tool::Blktrace)));
    assert_eq!(recognised(b"file,start_s,call\n"), Some(Format::Calls(Tool::Csv)));
    assert_eq!(
        recognised(b"rank,call,bytes\n"),
        Some(Format::Calls(Tool::Csv)),
        "to say which column is missing"
    );
    assert_eq!(recognised(b"PIOTRACE"), None);
    assert_eq!(recognised(b"Dear diary,\n12 34.5 today = tomorrow\n"), None);
    assert_eq!(recognised(b""), None);
}

/// It was only said that they are no trace of Pioscope.
#[test]
fn what_is_no_log_that_is_known_is_told_which_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for (bytes, found) in [
        (&b""[..], "found an empty file"),
        (b"fio version 9 iolog\n1 /a add\n", "found 'fio vers'"),
        (b"start_s;call;file\n0;read;/a\n", "found 'start_s;'"),
        (b"open(\"/a\", O_RDONLY) = 3\n", "found 'open(\\\"/a'"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let told = pio_import::open(&path).err().unwrap().to_string();
        let begin =
            format!("{}: neither a trace nor a log that is known (expected a trace of", path.display());
        assert!(told.starts_with(&begin) && told.ends_with(found), "{told}");
    }
    std::fs::write(&path, b"PIOTRACE, but cut").unwrap();
    assert!(!pio_import::open(&path).err().unwrap().to_string().contains("nor a log"));
}

proptest! {
    /// Logs that were cut, changed or made up give a trace or an error, never a panic.
    #[test]
    fn damaged_logs_are_read(
        which in 0usize..5,
        cut in 0usize..3000,
        changes in prop::collection::vec((0usize..3000, any::<u8>()), 0..20),
        rubbish in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (tool, mut log) = match which {
            0 => (Tool::Strace, STRACE.as_bytes().to_vec()),
            1 => (Tool::Fio, b"fio version 3 iolog\n1 /a add\n2 /a open\n3 /a read 0 4096\n".to_vec()),
            2 => (Tool::FioLatency, b"1, 5000, 0, 4096, 0, 0\n".repeat(9)),
            3 => (Tool::Blktrace, block_record(false, 0x10007, 5, 6, 7, b"abc").repeat(5)),
            _ => (Tool::Csv, b"start_s,call,file,size\n1,read,/a,7\n2,write,/b,8\n".to_vec()),
        };
        for (at, byte) in changes {
            if let Some(place) = log.get_mut(at) {
                *place = byte;
            }
        }
        log.truncate(cut);
        log.extend(rubbish);
        let path = Path::new("job_lat.1.log");
        match pio_import::write_trace_from(tool, &log[..], path, std::io::sink(), Path::new("trace")) {
            Ok(_) | Err(pio_import::ImportError::NoCalls { .. } | pio_import::ImportError::NoColumn { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

const LIBAIO: &str = r#"10 1700000000.000000 openat(AT_FDCWD, "/d/file", O_RDWR) = 3 <0.000100>
10 1700000000.001000 io_submit(0x7f00, 3, [{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</d/file>, aio_buf="a}, {\"b"..., aio_nbytes=4096, aio_offset=8192}, {aio_data=0x2, aio_lio_opcode=IOCB_CMD_PREADV, aio_fildes=3</d/file>, aio_buf=[{iov_base=0x1, iov_len=100}, {iov_base=0x2, iov_len=200}], aio_offset=50}, {aio_data=0x3, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=99, aio_buf=0x1, aio_nbytes=10, aio_offset=0}]) = 2 <0.000050>
10 1700000000.002000 io_getevents(0x7f00, 1, 16, [{data=0x2, obj=0x5, res=300, res2=0}], NULL) = 1 <0.001000>
10 1700000000.004000 io_submit(0x7f00, 1, [{aio_data=0x2, aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=3</d/file>}]) = 1 <0.000050>
10 1700000000.005000 io_getevents(0x7f00, 1, 16, [{data=0x1, obj=0x4, res=4000, res2=0}], NULL) = 1 <0.000500>
10 1700000000.006000 fcntl(3</d/file>, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=100, l_len=50}) = 0 <0.500000>
10 1700000000.600000 stat("/d/none", 0x7ffe) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.700000 +++ exited with 0 +++
"#;

#[test]
fn libaio_locks_and_names_are_read_from_strace() {
    let trace = trace_of(Tool::Strace, LIBAIO.as_bytes());
    let file = "/d/file";
    assert_eq!(
        rows(&trace),
        [
            (Call::Open, file, None, 0, 0),
            (Call::LibaioRead, file, Some(50), 300, 300),
            (Call::LibaioWrite, file, Some(8192), 4096, 4000),
            (Call::Fsync, file, None, 0, 0),
            (Call::FcntlLock, file, Some(100), 50, 0),
            (Call::Stat, "", None, 0, -2),
        ]
    );
    let events = events(&trace);
    assert_eq!(
        (events[1].start_ns, events[1].elapsed_ns),
        (1_000_000, 2_000_000),
        "submission to completion"
    );
    assert_eq!(events[2].elapsed_ns, 4_500_000);
    assert!(events[3].flags.contains(Flags::UNFINISHED), "nobody asked for it");
    assert_eq!(trace.tables().file_of_event(&events[5]).unwrap().path, "/d/none");
}

/// The second name was lost, and links were passed over.
#[test]
fn both_names_of_renames_and_links_are_read_from_strace() {
    let log = r#"10 1700000000.000000 openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3</d> <0.000010>
10 1700000000.001000 rename("/d/a.tmp", "/d/a") = 0 <0.000010>
10 1700000000.002000 renameat(3</d>, "b.tmp", AT_FDCWD</w>, "b") = 0 <0.000010>
10 1700000000.003000 renameat2(AT_FDCWD</w>, "c", 3</d>, "c", RENAME_NOREPLACE) = -1 EEXIST (File exists) <0.000010>
10 1700000000.004000 link("/d/a", "/d/a2") = 0 <0.000010>
10 1700000000.005000 linkat(AT_FDCWD</w>, "b", 3</d>, "b2", 0) = 0 <0.000010>
10 1700000000.006000 symlink("../w/b", "/d/s") = 0 <0.000010>
10 1700000000.007000 symlinkat("/d/a", 3</d>, "t") = 0 <0.000010>
10 1700000000.008000 unlinkat(3</d>, "t", 0) = 0 <0.000010>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let (tables, events) = (trace.tables(), events(&trace));
    let path = |file: Option<&pio_trace::File>| file.map_or("-", |file| file.path.as_str()).to_owned();
    let names: Vec<_> = events
        .iter()
        .filter(|event| event.handle.is_none())
        .map(|event| {
            let names = [tables.file_of_event(event), tables.other_file_of_event(event)].map(path);
            (event.call, names, event.result)
        })
        .collect();
    let named = |call, name: &str, other: &str, result| (call, [name.to_owned(), other.to_owned()], result);
    assert_eq!(
        names,
        [
            named(Call::Rename, "/d/a.tmp", "/d/a", 0),
            named(Call::Rename, "/d/b.tmp", "/w/b", 0),
            named(Call::Rename, "/w/c", "/d/c", -17),
            named(Call::Link, "/d/a", "/d/a2", 0),
            named(Call::Link, "/w/b", "/d/b2", 0),
            named(Call::Symlink, "/d/s", "/w/b", 0),
            named(Call::Symlink, "/d/t", "/d/a", 0),
            named(Call::Unlink, "/d/t", "-", 0),
        ]
    );
}

/// These were passed over without a word, though a trace has events for them.
#[test]
fn calls_on_names_and_on_ranges_are_read_from_strace() {
    let log = r#"10 1700000000.000000 openat(AT_FDCWD</w>, "a", O_RDWR) = 3</w/a> <0.000010>
10 1700000000.001000 access("/d/a", R_OK) = 0 <0.000010>
10 1700000000.002000 faccessat2(AT_FDCWD</w>, "b", F_OK, AT_EACCESS) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.003000 readlink("/d/link", "target", 4095) = 6 <0.000010>
10 1700000000.004000 mkdir("/d/new", 0777) = 0 <0.000010>
10 1700000000.005000 mkdirat(AT_FDCWD</w>, "new", 0777) = 0 <0.000010>
10 1700000000.006000 rmdir("/d/new") = 0 <0.000010>
10 1700000000.007000 unlinkat(AT_FDCWD</w>, "new", AT_REMOVEDIR) = 0 <0.000010>
10 1700000000.008000 chmod("/d/a", 0644) = 0 <0.000010>
10 1700000000.009000 fchmodat(AT_FDCWD</w>, "a", 0644) = 0 <0.000010>
10 1700000000.010000 fchmod(3</w/a>, 0644) = 0 <0.000010>
10 1700000000.011000 fadvise64(3</w/a>, 100, 200, POSIX_FADV_DONTNEED) = 0 <0.000010>
10 1700000000.012000 sync_file_range(3</w/a>, 300, 400, SYNC_FILE_RANGE_WRITE) = 0 <0.000010>
10 1700000000.013000 msync(0x7f0000000000, 4096, MS_SYNC) = 0 <0.000010>
10 1700000000.014000 sync() = 0 <0.000010>
10 1700000000.015000 access("/proc/self", R_OK) = 0 <0.000010>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let seen: Vec<_> = events(&trace)
        .iter()
        .skip(1)
        .map(|event| {
            let path = trace.tables().file_of_event(event).map_or("-", |file| file.path.as_str()).to_owned();
            (event.call, path, event.result)
        })
        .collect();
    let on = |call, path: &str, result| (call, path.to_owned(), result);
    assert_eq!(
        seen,
        [
            on(Call::Access, "/d/a", 0),
            on(Call::Access, "/w/b", -2),
            on(Call::Readlink, "/d/link", 0),
            on(Call::Mkdir, "/d/new", 0),
            on(Call::Mkdir, "/w/new", 0),
            on(Call::Rmdir, "/d/new", 0),
            on(Call::Rmdir, "/w/new", 0),
            on(Call::Chmod, "/d/a", 0),
            on(Call::Chmod, "/w/a", 0),
            on(Call::Chmod, "/w/a", 0),
            on(Call::Fadvise, "/w/a", 0),
            on(Call::SyncFileRange, "/w/a", 0),
            on(Call::Msync, "-", 0),
            on(Call::Sync, "-", 0),
        ]
    );
    let ranges: Vec<_> = rows(&trace)[11..14].iter().map(|row| (row.2, row.3)).collect();
    assert_eq!(ranges, [(Some(100), 200), (Some(300), 400), (None, 4096)]);
    assert_eq!(notes(&trace, "passed over"), [""; 0]);
}

#[test]
fn what_strace_shows_and_a_trace_does_not_have_is_counted() {
    let log = r#"10 1700000000.000000 openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3 <0.000010>
10 1700000000.001000 getdents64(3, 0x5 /* 3 entries */, 32768) = 80 <0.000010>
10 1700000000.002000 getdents64(3, 0x5 /* 0 entries */, 32768) = 0 <0.000010>
10 1700000000.003000 chown("/d/a", 0, 0) = 0 <0.000010>
10 1700000000.004000 utimensat(AT_FDCWD, "/d/a", NULL, 0) = 0 <0.000010>
10 1700000000.005000 statfs("/d", {f_type=EXT2_SUPER_MAGIC}) = 0 <0.000010>
10 1700000000.006000 statfs("/proc/x", {f_type=PROC_SUPER_MAGIC}) = 0 <0.000010>
10 1700000000.007000 ioctl(1</dev/pts/0>, TCGETS, {c_iflag=ICRNL}) = 0 <0.000010>
10 1700000000.008000 brk(NULL) = 0x5 <0.000010>
10 1700000000.009000 unlink("/d/a") = 0 <0.000010>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let expected = "5 calls on files that a trace does not have (getdents64, chown, utimensat, …)";
    assert_eq!(notes(&trace, "passed over"), [expected]);
}

/// The name in quotes and the path in angles of one file were two files.
#[test]
fn escapes_of_strace_are_read_in_names_and_paths_alike() {
    let log = r#"10 1700000000.000000 unlink("/d/\303\274 \"x\"\n") = 0 <0.000010>
10 1700000000.001000 openat(AT_FDCWD</d>, "\303\274 \"x\"\n", O_RDWR|O_CREAT, 0666) = 3</d/\303\274 \"x\"\n> <0.000010>
11 1700000000.002000 read(4</d/\303\274 \"x\"\n>, "", 10) = 0 <0.000010>
11 1700000000.003000 openat(5</d/\303\274>, "y", O_RDWR) = 6 <0.000010>
10 1700000000.004000 unlink("/d/\374") = 0 <0.000010>
10 1700000000.005000 unlink("/d/\375") = 0 <0.000010>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let files: Vec<_> = trace.tables().files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["/d/ü \"x\"\n", "/d/ü/y", r"/d/\xfc", r"/d/\xfd"]);
}

/// strace -y shows the working folder only where a call has an argument for a folder.
#[test]
fn a_folder_that_strace_shows_once_is_kept() {
    let log = r#"10 1700000000.000000 unlink("before") = 0 <0.000010>
10 1700000000.001000 openat(AT_FDCWD</w>, "/etc/x", O_RDONLY) = 3 <0.000010>
10 1700000000.002000 unlink("./b//../a") = 0 <0.000010>
10 1700000000.003000 rename("a", "/w/sub/../c") = 0 <0.000010>
10 1700000000.004000 fork() = 11 <0.000010>
11 1700000000.005000 unlink("../d") = 0 <0.000010>
11 1700000000.006000 fchdir(9) = -1 EBADF (Bad file descriptor) <0.000010>
11 1700000000.007000 unlink("e") = 0 <0.000010>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let files: Vec<_> = trace.tables().files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["before", "/etc/x", "/w/a", "/w/c", "/d", "/w/e"]);
}

/// Calls after midnight were put at the start of the trace, unless it had run for half a day.
#[test]
fn midnight_passes_in_times_of_day() {
    let log = "10 23:59:59.500000 unlink(\"/a\") = 0 <0.000010>\n10 00:00:00.250000 unlink(\"/b\") = 0 <0.000010>\n\
               10 00:00:01.000000 +++ exited with 0 +++\n";
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let starts: Vec<_> = events(&trace).iter().map(|event| event.start_ns).collect();
    assert_eq!(starts, [0, 750_000_000]);
    assert_eq!(trace.tables().processes[0].end_ns, Some(1_500_000_000));
    assert_eq!((trace.tables().epoch_ns, notes(&trace, "times").len()), (0, 0));
}

#[test]
fn a_clock_of_strace_that_goes_back_is_told() {
    let log = "10 1700000100.0 unlink(\"/a\") = 0 <0.5>\n10 1700000090.5 unlink(\"/b\") = 0 <0.5>\n\
               10 1700000092.0 +++ exited with 0 +++\n";
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let events = events(&trace);
    let names: Vec<_> =
        events.iter().map(|event| trace.tables().file_of_event(event).unwrap().path.as_str()).collect();
    assert_eq!(names, ["/b", "/a"]);
    assert_eq!([0, 1].map(|event| events[event].start_ns), [0, 9_500_000_000]);
    assert_eq!(trace.tables().epoch_ns, 1_700_000_090_500_000_000);
    let process = &trace.tables().processes[0];
    assert_eq!((process.start_ns, process.end_ns), (0, Some(10_000_000_000)));
    let [told] = notes(&trace, "times")[..] else { panic!("a note") };
    assert!(told.starts_with("2 lines are earlier than one before them, by up to 9.5 s"), "{told}");
}

/// The process was said to spend 10,000 % of its life in I/O.
#[test]
fn a_process_of_strace_ends_no_earlier_than_its_last_call() {
    let log = "10 1700000000.0 unlink(\"/a\") = 0 <100.0>\n10 1700000001.0 +++ exited with 0 +++\n";
    let trace = trace_of(Tool::Strace, log.as_bytes());
    assert_eq!(trace.tables().processes[0].end_ns, Some(100_000_000_000));
}

/// Ranges had no offset, what is set by fcntl was passed over, and copies of standard output were lost calls and then files.
#[test]
fn ranges_flags_and_copies_of_descriptors_are_read_from_strace() {
    let log = r#"10 1700000000.000000 execve("/bin/sh", ["sh"], 0x7ff /* 3 vars */) = 0 <0.000500>
10 1700000000.001000 openat(AT_FDCWD, "/d/a", O_RDWR) = 3 <0.000010>
10 1700000000.002000 fallocate(3, 0, 4096, 8192) = 0 <0.000010>
10 1700000000.003000 mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3, 0x1000) = 0x7f0000000000 <0.000010>
10 1700000000.004000 write(3, "x", 1) = 1 <0.000010>
10 1700000000.005000 fcntl(3, F_SETFL, O_RDWR|O_APPEND) = 0 <0.000010>
10 1700000000.006000 write(3, "x", 2) = 2 <0.000010>
10 1700000000.007000 fcntl(1, F_DUPFD, 10) = 10 <0.000010>
10 1700000000.008000 dup2(3, 1) = 1 <0.000010>
10 1700000000.009000 dup2(10, 1) = 1 <0.000010>
10 1700000000.010000 fcntl(3, F_SETFD, FD_CLOEXEC) = 0 <0.000010>
10 1700000000.011000 execve("/bin/b", ["b"], 0x7ff /* 3 vars */) = 0 <0.000500>
10 1700000000.012000 write(1, "x", 3) = 3 <0.000010>
10 1700000000.013000 openat(AT_FDCWD, "/d/b", O_RDWR) = 3 <0.000010>
10 1700000000.014000 fcntl(3, F_SETFD, 0) = 0 <0.000010>
10 1700000000.015000 fcntl(2, F_SETFL, O_RDWR|O_APPEND) = 0 <0.000010>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let (a, b) = ("/d/a", "/d/b");
    assert_eq!(
        rows(&trace),
        [
            (Call::Open, a, None, 0, 0),
            (Call::Fallocate, a, Some(4096), 8192, 0),
            (Call::Mmap, a, Some(4096), 8192, 0),
            (Call::Write, a, Some(0), 1, 1),
            (Call::Write, a, None, 2, 2),
            (Call::Dup, a, None, 0, 0),
            (Call::Open, b, None, 0, 0),
        ]
    );
    let flags: Vec<_> = events(&trace).iter().map(|event| event.flags).collect();
    assert_eq!((flags[3], flags[4]), (Flags::NONE, Flags::APPEND));
    let lost = notes(&trace, "lost calls");
    assert_eq!(
        lost,
        ["1 on descriptors 0 to 2 that were open before, or copies of them: strace -y names them"]
    );
    assert_eq!(notes(&trace, "passed over"), [""; 0]);
    // What closes when another program begins is another file there.
    let log = log.replace("openat(AT_FDCWD, \"/d/b\", O_RDWR) = 3", "read(3, \"\", 1) = 0");
    let trace = trace_of(Tool::Strace, log.as_bytes());
    assert_eq!(rows(&trace).last().unwrap().1, "descriptor 3 of process 10");
}

/// They were writes of no bytes that took no time, and returned.
#[test]
fn calls_of_strace_that_did_not_return_are_unfinished() {
    let log = r#"10 1700000000.000000 openat(AT_FDCWD, "/d/a", O_WRONLY) = 3 <0.000010>
10 1700000000.100000 write(3, "x"..., 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.250000>
10 1700000000.400000 --- SIGUSR1 {si_signo=SIGUSR1} ---
10 1700000000.500000 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 11 <0.000010>
11 1700000001.000000 write(3, "y"..., 99 <unfinished ...>
10 1700000002.000000 write(3, "z"..., 999)         = ?
11 1700000005.000000 <... write resumed> <unfinished ...>) = ?
10 1700000006.000000 +++ killed by SIGKILL +++
11 1700000006.000000 +++ killed by SIGKILL +++
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let writes: Vec<_> = events(&trace)
        .iter()
        .filter(|event| event.call == Call::Write)
        .map(|event| (event.size, event.result, event.elapsed_ns, event.flags))
        .collect();
    assert_eq!(
        writes,
        [
            (9, -4, 250_000_000, Flags::NONE),
            (99, 0, 4_000_000_000, Flags::UNFINISHED),
            (999, 0, 3_000_000_000, Flags::UNFINISHED),
        ]
    );
    assert_eq!(notes(&trace, "lost lines"), [""; 0]);
}

#[test]
fn what_strace_does_not_show_of_rings_is_told() {
    let log = r#"10 1700000000.000000 execve("/bin/ring", ["/bin/ring", "x"], 0x7ff /* 3 vars */) = 0 <0.000500>
10 1700000000.001000 io_uring_setup(8, {flags=0, sq_entries=8, cq_entries=16}) = 3 <0.000500>
10 1700000000.002000 io_uring_enter(3, 8, 0, 0, NULL, 8) = 8 <0.000050>
10 1700000000.003000 io_uring_enter(3, 5, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 5 <0.000050>
10 1700000000.004000 io_uring_enter(3, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 0 <0.000050>
"#;
    let trace = trace_of(Tool::Strace, log.as_bytes());
    let losses = pio_trace::Losses::of(&trace);
    assert_eq!(losses.lost.others, 13, "operations");
    let [unseen] = losses.unseen.as_slice() else { panic!("{losses:?}") };
    assert_eq!((unseen.program.as_str(), unseen.reason), ("/bin/ring", pio_trace::Reason::Ring));
    assert_eq!((unseen.processes, unseen.unknown), (1, 1));
}
