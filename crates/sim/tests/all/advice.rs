//! Programs that follow an advice make other calls for the same bytes, and take less time where that is known.

use std::collections::BTreeSet;

use pio_layout::View;
use pio_machine::{Duration, Machine};
use pio_plan::{Direction, Hints, Strategy};
use pio_sim::workload::{Open, Step, What};
use pio_sim::{Change, Options, Prediction, Workload, simulate};
use pio_trace::{Call, File, FileId, HandleId, ViewId};

/// Ranks that each have one file open, through MPI-IO or not, and make these calls, a microsecond apart.
fn workload(ranks: u32, together: bool, calls: impl Fn(u32, HandleId) -> Vec<What>) -> Workload {
    let handle = HandleId;
    let program = |rank| {
        let all =
            [vec![What::Open(handle(rank))], calls(rank, handle(rank)), vec![What::Close(handle(rank))]];
        let think = Duration::from_seconds(1e-6);
        all.concat().into_iter().map(|what| Step { think, idle: Duration::ZERO, what }).collect()
    };
    Workload {
        name: "test".into(),
        files: vec![File { path: "/d/a".into() }],
        handles: (0..ranks)
            .map(|rank| Open { file: 0, rank, group: together.then_some(0), collective: u64::from(together) })
            .collect(),
        views: vec![View::contiguous(0)],
        groups: vec![(0..ranks).collect()],
        programs: (0..ranks).map(program).collect(),
        ..Workload::default()
    }
}

fn request(handle: HandleId, direction: Direction, offset: u64, bytes: u64) -> What {
    let call = if direction == Direction::Read { Call::Pread } else { Call::Pwrite };
    What::Request { handle, call, direction, offset, bytes }
}

fn access(handle: HandleId, offset: u64, bytes: u64) -> What {
    let (call, direction) = (Call::MpiFileWriteAt, Direction::Write);
    What::Access {
        handle,
        call,
        direction,
        view: ViewId(0),
        positions: offset..offset + bytes,
        collective: false,
    }
}

fn changed(workload: &Workload, change: Change) -> Option<Workload> {
    workload.with_change(change, &BTreeSet::from([FileId(0)]))
}

fn predict(workload: &Workload) -> Prediction {
    let machine = Machine::find("sp-argonne").unwrap();
    let (hints, options) = (Hints::default(), Options::default());
    simulate(&machine, workload, Strategy::TwoPhase, &hints, &options, None, &mut |_| ()).unwrap()
}

/// The calls of a rank but its first and last, which open and close.
fn inner(workload: &Workload, rank: usize) -> Vec<What> {
    let program = &workload.programs[rank];
    program[1..program.len() - 1].iter().map(|step| step.what.clone()).collect()
}

fn think_s(workload: &Workload) -> f64 {
    workload.programs.iter().flatten().map(|step| step.think.seconds()).sum()
}

/// What Thakur's study is about: 4 bytes a rank in turn, a request to a server each, against one collective write.
#[test]
fn interleaved_writes_gain_by_being_collective() {
    let (ranks, pieces) = (8_u64, 256_u64);
    let turns = |rank: u32, handle| {
        (0..pieces).map(|piece| access(handle, (piece * ranks + u64::from(rank)) * 4, 4)).collect()
    };
    let recorded = workload(ranks as u32, true, turns);
    let together = changed(&recorded, Change::Collect).unwrap();
    for rank in 0..ranks as usize {
        let calls = inner(&together, rank);
        let [What::SetView(_, view), What::Access { view: of, positions, collective: true, .. }] = &calls[..]
        else {
            panic!("{calls:?}");
        };
        assert_eq!((view, positions.clone()), (of, 0..pieces * 4));
        let view = &together.views[view.index()];
        assert_eq!(view.extents(0..12).map(|it| (it.offset, it.len)).collect::<Vec<_>>(), {
            let first = rank as i64 * 4;
            [(first, 4), (first + 32, 4), (first + 64, 4)]
        });
    }
    assert!((think_s(&recorded) - think_s(&together)).abs() < 1e-9);
    let (before, after) = (predict(&recorded), predict(&together));
    assert_eq!((before.bytes_written, after.bytes_written), (8192, 8192));
    // Each piece costs at least the server's 2 ms and the call's 0.2 ms, by ranks that share 8 servers.
    assert!(before.io_time_mean.seconds() > 256.0 * 0.0022, "{:?}", before.io_time_mean);
    assert!(after.io_time_mean.seconds() < before.io_time_mean.seconds() / 5.0, "{:?}", after.io_time_mean);
}

/// POSIX writers of parts of the same pages become ranks that opened the file together.
#[test]
fn requests_of_several_processes_become_collective() {
    let turns = |rank: u32, handle| {
        (0..50)
            .map(|piece| request(handle, Direction::Write, (piece * 4 + u64::from(rank)) * 1000, 1000))
            .collect()
    };
    let recorded = workload(4, false, turns);
    let together = changed(&recorded, Change::Collect).unwrap();
    assert_eq!(together.groups.last(), Some(&vec![0, 1, 2, 3]));
    assert!(inner(&together, 3).iter().any(|call| matches!(call, What::Access { collective: true, .. })));
    let (before, after) = (predict(&recorded), predict(&together));
    assert_eq!((before.bytes_written, after.bytes_written), (200_000, 200_000));
    assert!(after.io_time_mean < before.io_time_mean);
}

#[test]
fn ranks_that_take_no_part_come_along_with_nothing() {
    let recorded = workload(3, true, |rank, handle| match rank {
        1 => Vec::new(),
        _ => (0..10).map(|piece| access(handle, piece * 100 + u64::from(rank) * 50, 10)).collect(),
    });
    let together = changed(&recorded, Change::Collect).unwrap();
    let [What::SetView(..), What::Access { positions, collective: true, .. }] = &inner(&together, 1)[..]
    else {
        panic!("{:?}", inner(&together, 1));
    };
    assert!(positions.is_empty());
    assert_eq!(predict(&together).bytes_written, 200);
}

#[test]
fn what_cannot_be_done_together_stays() {
    // One rank has set a view that the others have not: they do not come to the same places.
    let recorded = workload(2, true, |rank, handle| {
        let mut calls =
            vec![access(handle, u64::from(rank) * 8, 8), access(handle, 100 + u64::from(rank) * 8, 8)];
        if rank == 0 {
            calls.insert(1, What::SetView(handle, ViewId(0)));
        }
        calls
    });
    assert_eq!(changed(&recorded, Change::Collect).map(|it| it.programs), None);
    // Nothing on this file.
    let recorded = workload(2, true, |_, handle| vec![access(handle, 0, 8), access(handle, 8, 8)]);
    assert!(recorded.with_change(Change::Collect, &BTreeSet::new()).is_none());
}

#[test]
fn requests_one_behind_the_other_are_gathered() {
    let recorded = workload(1, false, |_, handle| {
        let mut calls: Vec<What> =
            (0..2048).map(|piece| request(handle, Direction::Write, piece * 1024, 1024)).collect();
        calls.extend((0..10).map(|piece| request(handle, Direction::Read, piece * 100, 100)));
        calls.push(request(handle, Direction::Read, 5000, 100));
        calls
    });
    let gathered = changed(&recorded, Change::Gather).unwrap();
    let mib = 1 << 20;
    let handle = HandleId(0);
    assert_eq!(
        inner(&gathered, 0),
        [
            request(handle, Direction::Write, 0, mib),
            request(handle, Direction::Write, mib, mib),
            request(handle, Direction::Read, 0, 1000),
            request(handle, Direction::Read, 5000, 100),
        ]
    );
    assert!((think_s(&recorded) - think_s(&gathered)).abs() < 1e-9);
    assert!(predict(&gathered).io_time_mean.seconds() < predict(&recorded).io_time_mean.seconds() / 10.0);
    let ranges = changed(&recorded, Change::GatherWithGaps).unwrap();
    assert_eq!(inner(&ranges, 0).last(), Some(&request(handle, Direction::Read, 0, 5100)));
    assert!(changed(&gathered, Change::Gather).is_none());
}

/// A program that makes each piece durable wants to: gathered, 255 of 256 syncs had nothing to write, and 2.56 s became 10 ms.
#[test]
fn no_write_is_moved_behind_a_sync_or_a_change_of_size() {
    let write = |handle, piece: u64| request(handle, Direction::Write, piece * 4096, 4096);
    let between = |what: fn(HandleId) -> What| {
        workload(2, false, move |rank, handle| {
            let pieces = 0..256_u64;
            pieces.flat_map(|piece| [write(handle, 2 * piece + u64::from(rank)), what(handle)]).collect()
        })
    };
    let sync: fn(HandleId) -> What = |handle| What::Sync(handle, Call::Fsync);
    let resize: fn(HandleId) -> What = |handle| What::Resize(handle, Call::Ftruncate, 1 << 30);
    for what in [sync, resize] {
        let one_behind_the_other = workload(1, false, |_, handle| {
            (0..256).flat_map(|piece| [write(handle, piece), what(handle)]).collect()
        });
        assert!(changed(&one_behind_the_other, Change::Gather).is_none());
        // What is between two syncs may be moved together, and stays between them.
        let together = changed(&between(what), Change::Collect).unwrap();
        let calls = inner(&together, 1);
        assert_eq!(calls.len(), 3 * 256);
        for call in calls.chunks(3) {
            let [What::SetView(..), What::Access { collective: true, .. }, last] = call else {
                panic!("{call:?}");
            };
            assert_eq!(*last, what(HandleId(1)));
        }
        // If one rank alone makes a call between its pieces, the others are not at the same place.
        let mut alone = between(what);
        alone.programs[0].retain(|step| !matches!(step.what, What::Sync(..) | What::Resize(..)));
        assert!(changed(&alone, Change::Collect).is_none());
        // Before its first piece it may: nothing is moved across.
        let first = workload(2, false, |rank, handle| {
            let first = (rank == 0).then(|| what(handle));
            let pieces = (0..8).map(|piece| write(handle, 2 * piece + u64::from(rank)));
            first.into_iter().chain(pieces).collect()
        });
        let together = changed(&first, Change::Collect).unwrap();
        assert_eq!(inner(&together, 0)[0], what(HandleId(0)));
    }
    let again = workload(1, false, |_, handle| vec![write(handle, 0), sync(handle), write(handle, 0)]);
    assert!(changed(&again, Change::WriteOnce).is_none());
}

#[test]
fn what_a_program_has_it_need_not_move_again() {
    let (read, write) = (Direction::Read, Direction::Write);
    let calls = |change, calls: &[(Direction, u64, u64)]| {
        let recorded = workload(1, false, |_, handle| {
            calls
                .iter()
                .map(|&(direction, offset, bytes)| request(handle, direction, offset, bytes))
                .collect()
        });
        let kept = changed(&recorded, change).map(|changed| inner(&changed, 0));
        kept.map(|calls| {
            let offset = |call: &What| match call {
                What::Request { offset, .. } => *offset,
                _ => u64::MAX,
            };
            calls.iter().map(offset).collect::<Vec<_>>()
        })
    };
    let reads = [(read, 0, 100), (read, 100, 100), (read, 50, 100), (read, 150, 100), (read, 0, 200)];
    assert_eq!(calls(Change::KeepReads, &reads), Some(vec![0, 100, 150]));
    let back = [(write, 0, 100), (read, 10, 50), (read, 60, 60), (write, 200, 17 << 20), (read, 0, 10)];
    assert_eq!(calls(Change::KeepWritten, &back), Some(vec![0, 60, 200, 0]));
    let again = [(write, 0, 10), (write, 100, 10), (read, 100, 10), (write, 100, 10), (write, 0, 10)];
    assert_eq!(calls(Change::WriteOnce, &again), Some(vec![100, 100, 100, 0]));
    assert_eq!(calls(Change::KeepReads, &back), None);
}

#[test]
fn files_are_opened_once_and_pointers_left_alone() {
    let recorded = workload(1, false, |_, handle| {
        let once = [
            What::Seek(handle, Call::Lseek),
            request(handle, Direction::Read, 0, 10),
            What::Close(handle),
            What::Open(handle),
        ];
        once.iter().cloned().cycle().take(12).collect()
    });
    let once = changed(&recorded, Change::OpenOnce).unwrap();
    let opens = |workload: &Workload| {
        inner(workload, 0).iter().filter(|call| matches!(call, What::Open(_) | What::Close(_))).count()
    };
    assert_eq!((opens(&recorded), opens(&once)), (6, 0));
    assert!(predict(&once).io_time_mean < predict(&recorded).io_time_mean);
    let still = changed(&recorded, Change::NoSeeks).unwrap();
    assert_eq!(inner(&still, 0).len(), inner(&recorded, 0).len() - 3);
}

#[test]
fn one_rank_reads_for_all_if_all_read_the_same() {
    let same = |_, handle| {
        vec![request(handle, Direction::Read, 0, 1 << 20), request(handle, Direction::Read, 1 << 20, 9)]
    };
    let recorded = workload(8, false, same);
    let once = changed(&recorded, Change::ReadOnce).unwrap();
    assert_eq!(predict(&once).bytes_read, (1 << 20) + 9);
    assert_eq!(inner(&once, 5), [1 << 20, 9].map(|bytes| What::Broadcast { root: 0, bytes }));
    assert!(predict(&once).io_time_mean < predict(&recorded).io_time_mean);
    let other =
        workload(2, false, |rank, handle| vec![request(handle, Direction::Read, u64::from(rank), 100)]);
    assert!(changed(&other, Change::ReadOnce).is_none());
}
