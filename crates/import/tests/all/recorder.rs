//! Traces of Recorder.

// A test that cannot set up its scene fails there.

#[path = "../support/recorder.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;

use pio_import::recorder::{self, Folder};
use pio_import::{Format, ImportError};
use pio_trace::{Call, Event, Flags, Target, Trace};
use proptest::prelude::*;
use support::{Called, Form, folder};

type Files = BTreeMap<String, Vec<u8>>;

fn trace_of(files: Files) -> Result<Trace, ImportError> {
    let mut bytes = Vec::new();
    recorder::write_trace(&Folder::in_memory(files, "folder"), &mut bytes, Path::new("trace"))?;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Ok(Trace::open(file.path())?)
}

fn events(trace: &Trace) -> Vec<Event> {
    trace.events().map(Result::unwrap).collect()
}

fn notes<'a>(trace: &'a Trace, name: &'a str) -> Vec<&'a str> {
    trace.tables().notes.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
}

/// Rank, call, path, offset, size, start in units of 100 ns, physical.
type Row = (u32, Call, String, Option<u64>, u64, u64, bool);

fn rows(trace: &Trace) -> Vec<Row> {
    let row = |event: Event| {
        let path = event.handle.map_or("", |handle| trace.tables().file_of(handle).unwrap().path.as_str());
        let offset = match event.target {
            Target::Extent { offset } => Some(offset),
            _ => None,
        };
        let rank = event.process.0;
        (rank, event.call, path.to_owned(), offset, event.size, event.start_ns / 100, event.is_physical())
    };
    events(trace).into_iter().map(row).collect()
}

fn called(depth: u8, function: &'static str, arguments: &str, start: i64, end: i64) -> Called {
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    Called { thread: 0, function, depth, arguments, start, end }
}

/// What rank `rank` of two did: POSIX, a stream, and MPI-IO with POSIX below.
fn program(rank: i64) -> Vec<Called> {
    let own = format!("/d/out.{rank}");
    let mut calls = vec![called(0, "open", &format!("{own} 577 420"), 10, 20)];
    for step in 0..5 {
        calls.push(called(0, "write", &format!("{own} % 100"), 30 + 10 * step, 35 + 10 * step));
    }
    calls.extend([
        called(0, "lseek64", &format!("{own} 4096 0"), 90, 91),
        called(0, "read", &format!("{own} % 50"), 100, 105),
        called(0, "lseek64", &format!("{own} -10 1"), 106, 107),
        called(0, "read", &format!("{own} % 7"), 108, 109),
        called(0, "pwrite64", &format!("{own} % 512 65536"), 110, 120),
        called(0, "umask", "18", 121, 122),
        called(0, "close", &own, 123, 124),
        called(0, "fopen", "/d/log a", 130, 131),
        called(0, "fwrite", "% 4 25 /d/log", 132, 133),
        called(0, "fclose", "/d/log", 134, 135),
        called(0, "MPI_File_open", "MPI_COMM_WORLD /d/shared 5 % 0-0", 200, 260),
        called(1, "open", "/d/shared 66 420", 210, 220),
        called(0, "MPI_File_write_at_all", &format!("0-0 {} % 8 MPI_DOUBLE ", rank * 64), 300, 390),
        called(1, "MPI_Barrier", "MPI_COMM_WORLD", 310, 320),
        called(1, "pwrite64", &format!("/d/shared % 64 {}", rank * 64), 330, 380),
        called(0, "MPI_File_set_view", "0-0 1000 MPI_INT MPI_INT % %", 400, 401),
        called(0, "MPI_File_write", "0-0 % 3 MPI_INT ", 402, 404),
        called(0, "MPI_File_write", "0-0 % 1 MPI_TYPE_UNKNOWN ", 406, 408),
        called(0, "MPI_File_close", "0-0", 500, 510),
        called(1, "close", "/d/shared", 501, 502),
        called(0, "H5Dwrite", "1 2 3 4 5 %", 600, 610),
        called(1, "pwrite64", "/d/shared % 1 9", 601, 602),
    ]);
    calls
}

fn expected(rank: u32) -> Vec<Row> {
    let (own, log, shared) = (format!("/d/out.{rank}"), "/d/log", "/d/shared");
    let row = |call, path: &str, offset, size, start, physical| {
        (rank, call, path.to_owned(), offset, size, start, physical)
    };
    let mut rows = vec![row(Call::Open, &own, None, 0, 10, false)];
    rows.extend((0..5).map(|step| row(Call::Write, &own, Some(100 * step), 100, 30 + 10 * step, false)));
    let at = u64::from(rank) * 64;
    rows.extend([
        row(Call::Lseek, &own, Some(4096), 0, 90, false),
        row(Call::Read, &own, Some(4096), 50, 100, false),
        row(Call::Lseek, &own, Some(4136), 0, 106, false),
        row(Call::Read, &own, Some(4136), 7, 108, false),
        row(Call::Pwrite, &own, Some(65536), 512, 110, false),
        row(Call::Close, &own, None, 0, 123, false),
        row(Call::Fopen, log, None, 0, 130, false),
        row(Call::Fwrite, log, None, 100, 132, false),
        row(Call::Fclose, log, None, 0, 134, false),
        row(Call::MpiFileOpen, shared, None, 0, 200, false),
        row(Call::Open, shared, None, 0, 210, true),
        row(Call::MpiFileWriteAtAll, shared, Some(at), 64, 300, false),
        row(Call::MpiBarrier, "", None, 0, 310, true),
        row(Call::Pwrite, shared, Some(at), 64, 330, true),
        row(Call::MpiFileSetView, shared, None, 0, 400, false),
        row(Call::MpiFileWrite, shared, Some(1000), 12, 402, false),
        row(Call::MpiFileWrite, shared, Some(1012), 0, 406, false),
        row(Call::MpiFileClose, shared, None, 0, 500, false),
        row(Call::Close, shared, None, 0, 501, true),
        row(Call::H5Dwrite, "", None, 1, 600, false),
        row(Call::Pwrite, shared, Some(9), 1, 601, true),
    ]);
    rows
}

#[test]
fn a_folder_becomes_files_offsets_and_ranks() {
    for form in Form::ALL {
        let trace = trace_of(folder(form, &[program(0), program(1)], 1e-7, 6)).unwrap();
        let mut all = rows(&trace);
        all.sort_by_key(|row| row.0);
        let both: Vec<Row> = expected(0).into_iter().chain(expected(1)).collect();
        assert_eq!(all, both, "{form:?}");
        let tables = trace.tables();
        assert_eq!(tables.processes.iter().map(|it| it.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert_eq!(tables.processes[1].end_ns, Some(61_000));
        assert_eq!(tables.epoch_ns, 1_700_000_000_250_000_000);
        let together: Vec<_> = tables.handles.iter().filter(|it| it.collective != 0).collect();
        assert_eq!(together.iter().map(|it| it.ranks).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(together[0].collective, together[1].collective);
        let collective = events(&trace).into_iter().filter(|it| it.call == Call::MpiFileWriteAtAll);
        assert!(collective.into_iter().all(|it| it.flags == Flags::COLLECTIVE && it.elapsed_ns == 9000));
        let appends = events(&trace).into_iter().find(|it| it.call == Call::Fwrite).unwrap();
        assert_eq!(appends.flags, Flags::APPEND);
        let opens = events(&trace).into_iter().filter(|it| it.call == Call::Open && it.process.0 == 0);
        let opened: Vec<_> = opens.map(|it| it.flags).collect();
        assert_eq!(opened, [Flags::TRUNCATE, Flags::PHYSICAL]);
        let stream = events(&trace).into_iter().find(|it| it.call == Call::Fopen).unwrap();
        assert_eq!(stream.flags, Flags::APPEND);
        assert_eq!(notes(&trace, "passed over"), ["2 calls of other functions (NetCDF, H5Sclose, ftell, …)"]);
        assert_eq!(notes(&trace, "lost sizes"), ["2 calls: Recorder does not tell how large their data are"]);
        assert_eq!(notes(&trace, "lost by damage"), [""; 0]);
        assert_eq!(notes(&trace, "lost lines"), [""; 0]);
    }
}

/// Offsets that are a multiple of the rank may stand as a pattern, of the ranks that make the call.
#[test]
fn patterns_of_ranks_become_offsets() {
    let make =
        |_| vec![called(0, "open", "/d/a 66 420", 1, 2), called(0, "pwrite64", "/d/a % 10 4096*r+100", 3, 4)];
    let idle = vec![called(0, "open", "/d/a 66 420", 1, 2)];
    let ranks = [make(0), idle, make(2), make(3)];
    let offsets = |form| {
        let trace = trace_of(folder(form, &ranks, 1e-7, 1)).unwrap();
        rows(&trace).into_iter().filter_map(|row| row.3.map(|offset| (row.0, offset))).collect::<Vec<_>>()
    };
    assert_eq!(offsets(Form::Merged30), [(0, 100), (2, 4196), (3, 8292)]);
    assert_eq!(offsets(Form::Packed30), [(0, 100), (2, 8292), (3, 12388)]);
}

/// Libraries are known by name. What they move shows in the calls that they cause, which carry their operation, or that
/// of the call of MPI-IO between.
#[test]
fn libraries_move_what_the_calls_below_them_move() {
    let calls = vec![
        called(0, "H5Fcreate", "/d/a.h5 2 0 7", 10, 50),
        called(1, "MPI_File_open", "MPI_COMM_WORLD /d/a.h5 5 % 0-0", 11, 40),
        called(2, "open", "/d/a.h5 66 420", 12, 20),
        called(0, "H5Dcreate2", "1 data 2 3 0 0 0", 60, 70),
        called(0, "H5Dwrite", "1 2 3 4 5 %", 100, 190),
        called(1, "MPI_Barrier", "MPI_COMM_WORLD", 101, 102),
        called(1, "MPI_File_write_at", "0-0 4096 % 8 MPI_DOUBLE ", 110, 120),
        called(2, "pwrite64", "/d/a.h5 % 64 4096", 111, 119),
        called(1, "MPI_File_write_at", "0-0 8192 % 2 MPI_DOUBLE ", 130, 140),
        called(0, "H5Dwrite", "1 2 3 4 5 %", 200, 210),
        called(0, "H5Fclose", "1", 220, 230),
        called(0, "ncmpi_create", "% /d/b.nc 0 % 3", 300, 310),
        called(0, "ncmpi_put_vara_double_all", "3 0 % % %", 320, 350),
        called(1, "MPI_File_write_at_all", "0-0 0 % 5 MPI_DOUBLE ", 330, 340),
        called(0, "ncmpi_iput_var1_int", "3 0 % 7", 360, 370),
        called(0, "ncmpi_close", "3", 380, 390),
        called(0, "nc_put_var", "4 5 %", 400, 420),
        called(1, "pwrite64", "/d/c % 9 0", 401, 402),
    ];
    let trace = trace_of(folder(Form::Packed30, &[calls], 1e-7, 1)).unwrap();
    let (h5, nc, c) = ("/d/a.h5", "/d/b.nc", "/d/c");
    let row = |call, path: &str, offset, size, start, physical| {
        (0, call, path.to_owned(), offset, size, start, physical)
    };
    let expected = [
        row(Call::H5Fcreate, h5, None, 0, 10, false),
        row(Call::MpiFileOpen, h5, None, 0, 11, true),
        row(Call::Open, h5, None, 0, 12, true),
        row(Call::H5Dcreate, "", None, 0, 60, false),
        row(Call::H5Dwrite, h5, None, 80, 100, false),
        row(Call::MpiBarrier, "", None, 0, 101, true),
        row(Call::MpiFileWriteAt, h5, Some(4096), 64, 110, true),
        row(Call::Pwrite, h5, Some(4096), 64, 111, true),
        row(Call::MpiFileWriteAt, h5, Some(8192), 16, 130, true),
        row(Call::H5Dwrite, "", None, 0, 200, false),
        row(Call::H5Fclose, "", None, 0, 220, false),
        row(Call::NcmpiCreate, nc, None, 0, 300, false),
        row(Call::NcmpiPutVaraAll, nc, None, 40, 320, false),
        row(Call::MpiFileWriteAtAll, h5, Some(0), 40, 330, true),
        row(Call::NcmpiIputVar1, nc, None, 0, 360, false),
        row(Call::NcmpiClose, nc, None, 0, 380, false),
        row(Call::Pwrite, c, Some(0), 9, 401, false),
    ];
    assert_eq!(rows(&trace), expected);
    let operations: Vec<_> = events(&trace).iter().map(|it| it.operation).collect();
    assert_eq!(operations, [1, 2, 2, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0]);
    let moved = events(&trace).iter().filter(|it| it.call == Call::H5Dwrite).map(|it| it.result).sum::<i64>();
    assert_eq!(moved, 80);
    let put = events(&trace).into_iter().find(|it| it.call == Call::NcmpiPutVaraAll).unwrap();
    assert_eq!(put.flags, Flags::COLLECTIVE);
    assert_eq!(notes(&trace, "lost sizes"), ["2 calls: Recorder does not tell how large their data are"]);
    assert_eq!(notes(&trace, "passed over"), ["1 calls of other functions (NetCDF, H5Sclose, ftell, …)"]);
}

/// Of two threads that take turns, calls may stand behind others that began later.
#[test]
fn threads_have_numbers_and_their_own_order() {
    let mut calls = vec![
        called(0, "read", "/d/a % 10", 1000, 1010),
        called(0, "read", "/d/a % 10", 900, 2000),
        called(0, "read", "/d/a % 10", 3000, 3001),
    ];
    calls[1].thread = 7;
    let trace = trace_of(folder(Form::Plain25, &[calls], 1e-7, 1)).unwrap();
    let found: Vec<_> = events(&trace).iter().map(|it| (it.thread, it.start_ns, it.elapsed_ns)).collect();
    assert_eq!(found, [(1, 90_000, 110_000), (0, 100_000, 1000), (0, 300_000, 100)]);
}

#[test]
fn a_folder_on_disk_is_recognised() {
    let there = tempfile::tempdir().unwrap();
    assert_eq!(pio_import::recognise(there.path()).unwrap(), None);
    let files = folder(Form::Merged30, &[program(0)], 1e-7, 6);
    for (name, bytes) in &files {
        std::fs::write(there.path().join(name), bytes).unwrap();
    }
    assert_eq!(pio_import::recognise(there.path()).unwrap(), Some(Format::Recorder));
    let trace = pio_import::open(there.path()).unwrap();
    assert_eq!(rows(&trace), expected(0));
}

#[test]
fn what_is_not_known_is_an_error_with_its_place() {
    let whole = folder(Form::Plain25, &[program(0)], 1e-7, 6);
    let error = |name: &str, bytes: Option<&[u8]>| {
        let mut files = whole.clone();
        match bytes {
            Some(bytes) => files.insert(name.to_owned(), bytes.to_vec()),
            None => files.remove(name),
        };
        trace_of(files).err().map(|error| error.to_string())
    };
    let version = |found| {
        Some(format!("folder: trace of Recorder, version {found} (expected 2.3 to 3.0 in the file VERSION)"))
    };
    assert_eq!(error("VERSION", Some(b"2.2.1")), version("2.2.1"));
    assert_eq!(error("VERSION", None), version("unknown"));
    let damaged = "folder/recorder.mt: damaged at byte ";
    let expected = format!("{damaged}0: expected a number of processes, 1 or more");
    assert_eq!(error("recorder.mt", Some(&[0; 50])), Some(expected));
    let expected = format!("{damaged}2: expected the number of processes");
    assert_eq!(error("recorder.mt", Some(&[1, 0])), Some(expected));
}

/// Of a file that is cut, what lies before the cut is used, and the place is told.
#[test]
fn what_comes_before_damage_is_used() {
    let whole = folder(Form::Plain25, &[program(0)], 1e-7, 1);
    let damage = |name: &str, len: usize| {
        let mut files = whole.clone();
        files.get_mut(name).unwrap().truncate(len);
        let trace = trace_of(files).unwrap();
        (rows(&trace).len(), notes(&trace, "lost by damage").join("; "))
    };
    let all = expected(0).len();
    // Seven calls: the first of them are an open and five writes.
    let (left, note) = damage("0.ts", 7 * 8 + 3);
    assert_eq!(
        (left, note.as_str()),
        (7, "0.ts: damaged at byte 59: expected a time for every call of the grammar, found 7")
    );
    let (left, note) = damage("0.cfg", 40);
    assert_eq!((left, note.as_str()), (7, "0.cfg: damaged at byte 36: expected all symbols of rule 1 of 1"));
    let (left, note) = damage("0.cst", 300);
    assert!(0 < left && left < all, "{left}");
    assert!(note.starts_with("0.cst: damaged at byte ") && note.contains(" of signature "), "{note}");
    let mut files = whole.clone();
    files.remove("0.ts");
    let trace = trace_of(files).unwrap();
    let note = notes(&trace, "lost by damage").join("; ");
    assert!(note.starts_with("0.ts: damaged at byte 0: expected a file that can be read"), "{note}");
}

/// A grammar of few bytes can stand for more calls than there can ever be: the times bound them.
#[test]
fn a_grammar_without_end_ends_with_its_times() {
    let mut files = folder(Form::Plain25, &[program(0)], 1e-7, 1);
    let words = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let most = i32::MAX;
    files.insert("0.cfg".into(), words(&[3, -1, 1, -2, most, -2, 1, -3, most, -3, 2, 1, most, -9, 1]));
    let trace = trace_of(files).unwrap();
    assert_eq!(rows(&trace).len(), program(0).len());
    files = folder(Form::Plain25, &[program(0)], 1e-7, 1);
    files.insert("0.cfg".into(), words(&[2, -1, 2, -2, most, 0, 1, -2, 1, -1, 1]));
    let trace = trace_of(files).unwrap();
    assert_eq!(
        notes(&trace, "lost by damage"),
        ["0.cfg: damaged at byte 0: expected no rule that contains itself, as -1 does"]
    );
}

fn sequence() -> impl Strategy<Value = Vec<(usize, u32, u32)>> {
    prop::collection::vec((0usize..6, 0u32..50, 0u32..40), 0..120)
}

fn calls_of(steps: &[(usize, u32, u32)]) -> Vec<Called> {
    let mut start = 0;
    let call = |&(which, gap, length): &(usize, u32, u32)| {
        start += i64::from(gap);
        let (function, arguments) = [
            ("pwrite64", "/d/a % 10 0"),
            ("pwrite64", "/d/a % 10 10"),
            ("pread", "/d/b % 20 30"),
            ("pread", "/d/b % 20 50"),
            ("MPI_Barrier", "MPI_COMM_WORLD"),
            ("umask", "18"),
        ][which];
        called(0, function, arguments, start, start + i64::from(length))
    };
    steps.iter().map(call).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the grammar made of a sequence of calls, the same comes out.
    #[test]
    fn sequences_come_out_as_they_went_in(
        ranks in prop::collection::vec(sequence(), 1..4),
        form in prop::sample::select(Form::ALL.to_vec()),
        nesting in 1usize..8,
    ) {
        let ranks: Vec<_> = ranks.iter().map(|steps| calls_of(steps)).collect();
        let trace = trace_of(folder(form, &ranks, 1e-7, nesting)).unwrap();
        prop_assert_eq!(notes(&trace, "lost by damage"), [""; 0]);
        let mut found = vec![Vec::new(); ranks.len()];
        for event in events(&trace) {
            found[event.process.index()].push((event.call.name(), event.start_ns, event.elapsed_ns));
        }
        for (found, calls) in found.iter().zip(&ranks) {
            let name = |it: &Called| it.function.trim_end_matches("64");
            let expected: Vec<_> = calls
                .iter()
                .filter(|it| it.function != "umask")
                .map(|it| (name(it), it.start as u64 * 100, (it.end - it.start) as u64 * 100))
                .collect();
            prop_assert_eq!(found, &expected);
        }
    }

    /// Folders that were cut, changed or made up give a trace or an error, never a panic.
    #[test]
    fn damaged_folders_are_read(
        form in prop::sample::select(Form::ALL.to_vec()),
        which in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        rubbish in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut files = folder(form, &[program(0), program(1)], 1e-7, 4);
        let names: Vec<String> = files.keys().cloned().collect();
        let bytes = files.get_mut(which.get(&names)).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        bytes.extend(rubbish);
        match trace_of(files) {
            Ok(trace) => prop_assert!(events(&trace).len() <= 2 * program(0).len()),
            Err(error) => prop_assert!(
                matches!(error, ImportError::Damaged { .. } | ImportError::UnknownRecorderVersion { .. }),
                "{}", error
            ),
        }
    }
}
