//! RAID groups against closed forms, and what requests at random read and write.

use std::collections::BTreeMap;
use std::ops::Range;

use pio_machine::IoNode;
use pio_machine::disk::Raid;
use pio_plan::Direction::{self, Read, Write};

use super::layout::Part;
use super::*;
use crate::kernel::{Events, Stream};

/// Disks of 10 ms and 1 MB/s, strips of 1 kB.
fn disks(count: u32, raid: &str) -> Disks {
    let text = format!(
        "[io-node]\nadapter = \"1 GB/s\"\ncpu = {{ request = \"0 s\", response = \"0 s\" }}\nbus = \"1 GB/s\"\n\
         channel = \"1 GB/s\"\nbuffer = \"1 GiB\"\nunit = \"1 kB\"\n\
         disk = {{ count = {count}, seek = \"10 ms\", bandwidth = \"1 MB/s\", raid = {{ {raid} }} }}\n"
    );
    IoNode::parse("test.toml", &text).unwrap().disks
}

const UNIT: u64 = 1000;

/// What disks do for one request: the operations by direction, and milliseconds until it is done.
fn operations(count: u32, raid: &str, direction: Direction, offset: u64, bytes: u64) -> (usize, usize, u64) {
    let disks = disks(count, raid);
    let layout = Layout::new(disks.raid.as_ref().unwrap(), count, UNIT);
    let failures = Failures::new(disks.raid.as_ref(), UNIT, None);
    let (mut reads, mut writes, mut at, mut left) = (0, 0, offset, bytes);
    while left > 0 {
        let (row, parts, here) = layout.first_row(at, left);
        let is_there = |disk| failures.is_there(disk, layout.offset(row));
        let steps = match direction {
            Read => layout.read(row, &parts, is_there, |_| 0),
            Write => layout.write(row, &parts, is_there),
        };
        reads += steps.reads.len();
        writes += steps.writes.len();
        (at, left) = (at + here, left - here);
    }
    let mut group = DiskGroup::new(&disks, UNIT, Bandwidth::from_bytes_per_second(1_000_000_000_000));
    let end = ends(&mut group, &[(direction, offset, bytes)])[0];
    (reads, writes, end.0 / 1_000_000_000)
}

/// When requests that come at 0 are done; everything until nothing is left to do.
fn ends(group: &mut DiskGroup, requests: &[(Direction, u64, u64)]) -> Vec<Time> {
    let (mut events, mut out) = (Events::new(), GroupActions::default());
    for (id, (direction, offset, bytes)) in requests.iter().copied().enumerate() {
        group.arrive(Time(0), id as u32, Extent { direction, offset, bytes }, &mut out);
    }
    let mut ends = vec![Time::NEVER; requests.len()];
    loop {
        for (time, event) in out.later.drain(..) {
            events.add(time, event);
        }
        let Some((now, event)) = events.pop() else { return ends };
        group.handle(now, event, &mut out);
        for id in out.done.drain(..) {
            ends[id as usize] = now;
        }
    }
}

#[test]
fn small_writes_are_four_operations_of_level_5_and_six_of_level_6() {
    // 500 bytes: 10.5 ms for each of a read and, where no seek is saved, a write after it. The disk's arm stands behind
    // what it read, so the write seeks again.
    assert_eq!(operations(5, "level = 5", Write, 0, 500), (2, 2, 21));
    assert_eq!(operations(6, "level = 6", Write, 0, 500), (3, 3, 21));
    assert_eq!(operations(4, "level = 10", Write, 0, 500), (0, 2, 10));
    assert_eq!(operations(3, "level = 1", Write, 0, 500), (0, 3, 10));
    assert_eq!(operations(4, "level = 0", Write, 0, 500), (0, 1, 10));
    // Three disks: the one other strip is read in the place of two.
    assert_eq!(operations(3, "level = 5", Write, 0, 500), (1, 2, 21));
}

#[test]
fn a_write_of_whole_rows_reads_nothing() {
    assert_eq!(operations(5, "level = 5", Write, 0, 4 * UNIT), (0, 5, 11));
    assert_eq!(operations(6, "level = 6", Write, 4 * UNIT, 4 * UNIT), (0, 6, 11));
    // Two rows: a second strip on each disk, behind the first. Without seek it takes 1 ms.
    assert_eq!(operations(5, "level = 5", Write, 0, 8 * UNIT), (0, 10, 12));
    // All but one strip: that one is read in the place of four and parity.
    assert_eq!(operations(5, "level = 5", Write, 0, 3 * UNIT), (1, 4, 22));
}

#[test]
fn a_lost_strip_is_read_from_all_others() {
    // Row 0 of five disks: parity on the last, data from the first on.
    assert_eq!(operations(5, "level = 5, failed = [0]", Read, 0, 500), (4, 0, 10));
    assert_eq!(operations(5, "level = 5, failed = [1]", Read, 0, 500), (1, 0, 10));
    // Row 0 of six: parity on the last and the first. One lost strip needs one of the two, two lost ones need both.
    assert_eq!(operations(6, "level = 6, failed = [0]", Read, 0, 500), (1, 0, 10));
    assert_eq!(operations(6, "level = 6, failed = [1]", Read, 0, 500), (4, 0, 10));
    assert_eq!(operations(6, "level = 6, failed = [1, 2]", Read, 0, 500), (4, 0, 10));
    assert_eq!(operations(4, "level = 10, failed = [0]", Read, 0, 500), (1, 0, 10));
    // A write of a lost strip: the three others give the new parity.
    assert_eq!(operations(5, "level = 5, failed = [0]", Write, 0, 500), (3, 1, 21));
    // Parity is lost: there is nothing to keep up.
    assert_eq!(operations(5, "level = 5, failed = [4]", Write, 0, 500), (0, 1, 10));
}

#[test]
fn copies_share_reads() {
    let mut group = DiskGroup::new(&disks(2, "level = 1"), UNIT, Bandwidth::from_bytes_per_second(1 << 40));
    let found =
        ends(&mut group, &[(Read, 0, 1000), (Read, 5000, 1000), (Read, 9000, 1000), (Read, 12_000, 1000)]);
    assert_eq!(found.iter().map(|end| end.0 / 1_000_000_000).collect::<Vec<_>>(), [11, 11, 22, 22]);
}

#[test]
fn a_rebuild_takes_its_bytes_at_its_rate_and_disks_that_are_slower_their_time() {
    let rebuilt = |rate: &str| {
        let raid = format!("level = 5, failed = [2], rebuild = {{ rate = \"{rate}\", bytes = \"1 MB\" }}");
        let mut group = DiskGroup::new(&disks(5, &raid), UNIT, Bandwidth::from_bytes_per_second(1 << 40));
        ends(&mut group, &[(Read, 4000, 1)]);
        group.rebuilt().unwrap().since(Time(0)).seconds()
    };
    // 1000 strips of 1000 bytes: at 10 kB/s one in 100 ms; the last takes a read and a write of its own, at most 22 ms.
    let slow = rebuilt("10 kB/s");
    assert!((99.9..99.93).contains(&slow), "{slow}");
    // As fast as it goes: reads and writes go on where the last ended, 1 ms each.
    let fast = rebuilt("1 GB/s");
    assert!((2.0..2.05).contains(&fast), "{fast}");
}

#[test]
fn requests_wait_for_a_rebuild_and_are_whole_after_it() {
    let raid = "level = 5, failed = [0], rebuild = { rate = \"1 GB/s\", bytes = \"2 kB\" }";
    let mut group = DiskGroup::new(&disks(5, raid), UNIT, Bandwidth::from_bytes_per_second(1 << 40));
    let first = ends(&mut group, &[(Read, 0, 500)])[0];
    // The rebuild's strips of the same disks come behind.
    assert_eq!(first.0 / 1_000_000_000, 10);
    assert!(group.failures.is_there(0, 1000) && !group.failures.is_there(0, 2000));
    // Now one disk is enough.
    let busy = group.busy();
    let out = &mut GroupActions::default();
    group.arrive(group.rebuilt().unwrap(), 7, Extent { direction: Read, offset: 0, bytes: 500 }, out);
    assert_eq!((out.later.len(), group.busy() > busy), (1, true));
}

/// Requests at random to every level, with and without failures: what they read is enough, and what must be written is.
#[test]
fn what_is_read_is_enough_whatever_has_failed() {
    let mut stream = Stream::named(4, "raid");
    for (count, raid) in [
        (5, "level = 5"),
        (8, "level = 5, group = 4"),
        (6, "level = 6"),
        (4, "level = 1"),
        (6, "level = 10"),
        (5, "level = 5, failed = [3]"),
        (6, "level = 6, failed = [1, 4]"),
        (6, "level = 10, failed = [0, 5]"),
    ] {
        let raid = disks(count, raid).raid.unwrap();
        let layout = Layout::new(&raid, count, UNIT);
        for _ in 0..300 {
            let offset = stream.below(20_000);
            let bytes = 1 + stream.below(9_000);
            let (mut at, mut left) = (offset, bytes);
            let mut covered = 0;
            while left > 0 {
                let (row, parts, here) = layout.first_row(at, left);
                check(&layout, row, &parts, &raid);
                covered += parts.iter().map(|(_, bytes)| bytes.end - bytes.start).sum::<u64>();
                (at, left) = (at + here, left - here);
            }
            assert_eq!(covered, bytes);
        }
    }
}

/// What a request to a row reads is enough for it: each strip that it must know is read, or can be computed from as many
/// strips as the row has data.
fn check(layout: &Layout, row: layout::Row, parts: &[Part], raid: &Raid) {
    let is_there = |disk: u32| !raid.failed.contains(&disk);
    let data: Vec<u32> = (0..layout.data()).map(|strip| layout.copies(row, strip).start).collect();
    let parity: Vec<u32> = layout.parity(row).collect();
    let copies: Vec<Range<u32>> = (0..layout.data()).map(|strip| layout.copies(row, strip)).collect();
    let mut all: Vec<u32> = copies.iter().cloned().flatten().chain(parity.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as u32, raid.group, "a row is on every disk of its group once");
    // At each byte of the strips: which disks are known to whoever computes.
    let known = |strips: &Strips, byte: u64| -> Vec<u32> {
        let here = strips.iter().filter(|(_, bytes)| bytes.contains(&byte));
        here.map(|(disk, _)| *disk).collect()
    };
    let steps = layout.read(row, parts, is_there, |_| 0);
    assert!(steps.reads.iter().all(|(disk, _)| is_there(*disk)) && steps.writes.is_empty());
    let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
    steps.reads.iter().for_each(|(disk, _)| *seen.entry(*disk).or_default() += 1);
    assert!(seen.values().all(|count| *count == 1), "one operation a disk");
    for (strip, bytes) in parts {
        for byte in [bytes.start, bytes.end - 1] {
            let known = known(&steps.reads, byte);
            let direct = copies[*strip as usize].clone().any(|disk| known.contains(&disk));
            assert!(direct || known.len() as u32 >= layout.data(), "{row:?} {parts:?}: {steps:?}");
        }
    }
    let steps = layout.write(row, parts, is_there);
    for (strip, bytes) in parts {
        for disk in copies[*strip as usize].clone().filter(|disk| is_there(*disk)) {
            assert!(steps.writes.contains(&(disk, bytes.clone())));
        }
    }
    for byte in (0..UNIT).step_by(37) {
        let written: Vec<u32> =
            parts.iter().filter(|(_, bytes)| bytes.contains(&byte)).map(|(strip, _)| *strip).collect();
        if written.is_empty() {
            continue;
        }
        let known = known(&steps.reads, byte);
        for disk in parity.iter().filter(|disk| is_there(**disk)) {
            assert!(known_writes(&steps, byte).contains(disk), "parity is kept up");
            // The new parity: from the old one and the old data, or from all data, or by way of everything.
            let modifies =
                known.contains(disk) && written.iter().all(|strip| known.contains(&data[*strip as usize]));
            let mut others = (0..layout.data()).filter(|strip| !written.contains(strip));
            let reconstructs = others.all(|strip| known.contains(&data[strip as usize]));
            assert!(
                modifies || reconstructs || known.len() as u32 >= layout.data(),
                "{row:?} {parts:?}: {steps:?}"
            );
        }
    }
}

fn known_writes(steps: &Steps, byte: u64) -> Vec<u32> {
    steps.writes.iter().filter(|(_, bytes)| bytes.contains(&byte)).map(|(disk, _)| *disk).collect()
}
