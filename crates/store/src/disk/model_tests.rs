//! A part against a vector of bytes.

use pio_layout::{Datatype, View};
use pio_protocol::{Failure, FileId, Placement};
use proptest::prelude::*;

use super::part::{Part, Paths};
use crate::summed::BLOCK_BYTES;
use crate::transport::Summed;

const BOOT: u128 = 1;

fn open(folder: &std::path::Path, boot: u128, create: bool) -> Option<Part> {
    let placement = Placement::new(1 << 20, 1, 0, 1).unwrap();
    Part::open(Paths::new(folder, FileId(1)), placement, boot, create, None).ok().unwrap()
}

fn write(part: &Part, view: &View, data: &[u8]) {
    let placement = Placement::new(1 << 20, 1, 0, 1).unwrap();
    let strips = placement.strips_of(0, view, 0..data.len() as u64);
    // As over TCP every other time, and as through shared memory.
    let sums: Vec<u32> = data.chunks(BLOCK_BYTES as usize).map(crc32fast::hash).collect();
    let sums = if data.len().is_multiple_of(2) { &sums[..] } else { &[] };
    part.write(strips, Summed { data, sums }, &mut Vec::new()).ok().unwrap();
}

fn read(part: &Part, view: &View, len: usize) -> Result<Vec<u8>, Failure> {
    let placement = Placement::new(1 << 20, 1, 0, 1).unwrap();
    let strips = placement.strips_of(0, view, 0..len as u64);
    let mut out = vec![0xee; len];
    let valid = part.read(strips, &mut out, &mut Vec::new()).map_err(|trouble| trouble.0)?;
    out.truncate(valid as usize);
    Ok(out)
}

#[derive(Clone, Debug)]
enum Step {
    Write { at: u64, piece: u64, gap: u64, len: usize },
    Read { at: u64, piece: u64, gap: u64, len: usize },
    SetLen(u64),
    Preallocate(u64),
    Sync,
    Reopen,
    PowerLoss,
}

fn step() -> impl Strategy<Value = Step> {
    // Blocks written as a whole are a case of their own.
    let at = || prop_oneof![(0u64..5).prop_map(|block| block * BLOCK_BYTES), 0u64..300_000];
    let gap = || prop_oneof![Just(0), 0u64..9000];
    let access = || (at(), 1u64..9000, gap(), 0usize..200_000);
    prop_oneof![
        4 => access().prop_map(|(at, piece, gap, len)| Step::Write { at, piece, gap, len }),
        4 => access().prop_map(|(at, piece, gap, len)| Step::Read { at, piece, gap, len }),
        1 => (0u64..400_000).prop_map(Step::SetLen),
        1 => (1u64..400_000).prop_map(Step::Preallocate),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
        1 => Just(Step::PowerLoss),
    ]
}

fn view(at: u64, piece: u64, gap: u64) -> View {
    View::new(at, 1, Datatype::bytes(piece).resized(0, (piece + gap) as i64).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_part_is_a_vector_of_bytes(steps in proptest::collection::vec(step(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let mut boot = BOOT;
        let mut part = open(folder.path(), boot, true).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write { at, piece, gap, len } => {
                    let view = view(at, piece, gap);
                    let data: Vec<u8> = (0..len).map(|byte| (byte / 3 + number) as u8).collect();
                    write(&part, &view, &data);
                    for (position, byte) in data.iter().enumerate() {
                        let offset = view.offset_of(position as u64).unwrap() as usize;
                        model.resize(model.len().max(offset + 1), 0);
                        model[offset] = *byte;
                    }
                }
                Step::Read { at, piece, gap, len } => {
                    let view = view(at, piece, gap);
                    let offsets = (0..len as u64).map(|position| view.offset_of(position).unwrap() as usize);
                    let expected: Vec<u8> = offsets.map_while(|offset| model.get(offset).copied()).collect();
                    prop_assert!(read(&part, &view, len).unwrap() == expected);
                }
                Step::SetLen(len) => {
                    part.set_len(len).ok().unwrap();
                    model.resize(len as usize, 0);
                }
                Step::Preallocate(len) => {
                    part.preallocate(len).ok().unwrap();
                    prop_assert_eq!(part.len().ok().unwrap(), model.len() as u64);
                    part.extend(len).ok().unwrap();
                    model.resize(model.len().max(len as usize), 0);
                }
                Step::Sync => {
                    part.sync(|| ()).ok().unwrap();
                    prop_assert!(part.is_clean());
                }
                Step::Reopen => part = open(folder.path(), boot, true).unwrap(),
                // All of the data happened to reach the disk: what remains to see is that nobody calls it damage.
                Step::PowerLoss => {
                    boot += 1;
                    part = open(folder.path(), boot, true).unwrap();
                }
            }
            prop_assert_eq!(part.len().ok().unwrap(), model.len() as u64);
            prop_assert_eq!(part.check().ok().unwrap().1, Vec::<u64>::new());
        }
        part.sync(|| ()).ok().unwrap();
        prop_assert_eq!(part.check().ok().unwrap().1, Vec::<u64>::new());
        prop_assert!(read(&part, &View::contiguous(0), model.len()).unwrap() == model);
    }
}

#[test]
fn after_a_power_loss_a_torn_block_is_no_damage_and_a_sealed_part_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("0000000000000001.data");
    let tear = |at: usize| {
        let mut bytes = std::fs::read(&data).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&data, bytes).unwrap();
    };
    let part = open(folder.path(), BOOT, true).unwrap();
    write(&part, &View::contiguous(0), &vec![1; 3 * BLOCK_BYTES as usize]);
    part.sync(|| ()).ok().unwrap();
    write(&part, &View::contiguous(10), &[2; 10]);
    drop(part);
    // Only some of what was written since the sync reached the disk.
    tear(12);
    let part = open(folder.path(), BOOT + 1, false).unwrap();
    assert_eq!(read(&part, &View::contiguous(0), 10), Ok(vec![1; 10]));
    part.sync(|| ()).ok().unwrap();
    drop(part);
    tear(BLOCK_BYTES as usize + 5);
    let part = open(folder.path(), BOOT + 2, false).unwrap();
    assert_eq!(part.check().ok().unwrap(), (3, vec![1]));
    let found = read(&part, &View::contiguous(BLOCK_BYTES), 10);
    assert_eq!(found, Err(Failure::Damaged { block: 1 }));
}

/// Holes and the end of a sealed part are zeros: whatever else is there came from somewhere else.
#[test]
fn bytes_that_nobody_wrote_are_a_damage() {
    let sealed = || {
        let folder = tempfile::tempdir().unwrap();
        let part = open(folder.path(), BOOT, true).unwrap();
        write(&part, &View::contiguous(0), &[1; 100]);
        part.sync(|| ()).ok().unwrap();
        write(&part, &View::contiguous(4 * BLOCK_BYTES), &[1; 100]);
        part.sync(|| ()).ok().unwrap();
        folder
    };
    let ends = [100, 2 * BLOCK_BYTES + 7, 4 * BLOCK_BYTES + 100, 5 * BLOCK_BYTES, 9 * BLOCK_BYTES + 1];
    for at in ends {
        let folder = sealed();
        let data = std::fs::OpenOptions::new().write(true).open(folder.path().join("0000000000000001.data"));
        std::os::unix::fs::FileExt::write_all_at(&data.unwrap(), &[1], at).unwrap();
        let part = open(folder.path(), BOOT, false).unwrap();
        let block = at / BLOCK_BYTES;
        assert_eq!(part.check().ok().unwrap().1, [block], "{at}");
        assert_eq!(
            read(&part, &View::contiguous(block * BLOCK_BYTES), 200),
            Err(Failure::Damaged { block }),
            "{at}"
        );
    }
    let folder = sealed();
    let part = open(folder.path(), BOOT, false).unwrap();
    assert_eq!(part.check().ok().unwrap(), (5, vec![]));
}

/// The server was killed when it had forgotten the checksums of what it was to cut off, and had not cut it yet.
#[test]
fn a_cut_that_was_stopped_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let part = open(folder.path(), BOOT, true).unwrap();
    write(&part, &View::contiguous(0), &vec![1; 4 * BLOCK_BYTES as usize]);
    part.sync(|| ()).ok().unwrap();
    let data = folder.path().join("0000000000000001.data");
    let bytes = std::fs::read(&data).unwrap();
    part.set_len(BLOCK_BYTES).ok().unwrap();
    std::fs::write(&data, bytes).unwrap();
    drop(part);
    let part = open(folder.path(), BOOT, false).unwrap();
    assert_eq!(part.check().ok().unwrap().1, [0_u64; 0]);
    assert_eq!(read(&part, &View::contiguous(3 * BLOCK_BYTES), 10), Ok(vec![1; 10]));
}

#[test]
fn checksums_that_are_gone_are_a_damage() {
    let folder = tempfile::tempdir().unwrap();
    let part = open(folder.path(), BOOT, true).unwrap();
    write(&part, &View::contiguous(0), &[1; 100]);
    drop(part);
    std::fs::remove_file(folder.path().join("0000000000000001.sums")).unwrap();
    let placement = Placement::new(1 << 20, 1, 0, 1).unwrap();
    let opened = Part::open(Paths::new(folder.path(), FileId(1)), placement, BOOT, true, None);
    assert!(matches!(opened.map_err(|trouble| trouble.0), Err(Failure::Damaged { block: 0 })));
}

/// Writers put pieces between each other's while somebody syncs, cuts what is behind them, and looks for damage.
#[test]
fn pieces_of_writers_at_the_same_time_are_all_there_and_sealed() {
    const WRITERS: u64 = 3;
    const BYTES: usize = 600_000;
    let folder = tempfile::tempdir().unwrap();
    let part = open(folder.path(), BOOT, true).unwrap();
    let view_of = |writer: u64| {
        let filetype = Datatype::bytes(4).resized(0, 4 * WRITERS as i64).unwrap();
        View::new(4 * writer, 1, filetype).unwrap()
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| {
            let mut damaged = Vec::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                part.sync(|| ()).ok().unwrap();
                part.set_len(4 * BYTES as u64).ok().unwrap();
                damaged.extend(part.check().ok().unwrap().1);
            }
            damaged
        });
        let writing = (0..WRITERS).map(|writer| {
            let (part, view) = (&part, view_of(writer));
            scope.spawn(move || {
                for round in 0..20 {
                    let data = vec![writer as u8 + round * WRITERS as u8; BYTES];
                    write(part, &view, &data);
                    assert!(read(part, &view, BYTES).unwrap() == data);
                }
            })
        });
        let writing: Vec<_> = writing.collect();
        writing.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(syncing.join().unwrap(), [0_u64; 0]);
    });
    part.sync(|| ()).ok().unwrap();
    drop(part);
    let part = open(folder.path(), BOOT, false).unwrap();
    assert_eq!(part.check().ok().unwrap().1, [0_u64; 0]);
    for writer in 0..WRITERS {
        assert!(
            read(&part, &view_of(writer), BYTES).unwrap() == vec![writer as u8 + 19 * WRITERS as u8; BYTES]
        );
    }
}
