use pio_machine::disk::{AccessModel, BusBlock, ExtraDisconnect, Overheads, ReadAhead};

use super::*;
use crate::disk::example::{drive, us};

/// Serves requests, each at a time in µs: when they are done, in µs, and what became of them.
fn served(drive: &Drive, requests: &[(u64, Direction, u64, u64)]) -> Vec<(f64, Outcome)> {
    let mut model = DriveModel::new(drive);
    let serve = |(now, direction, block, blocks): &(u64, Direction, u64, u64)| {
        let request = Request { direction: *direction, block: *block, blocks: *blocks };
        let served = model.serve(Time(now * 1_000_000), request).unwrap();
        (served.done.0 as f64 / 1e6, served.outcome)
    };
    requests.iter().map(serve).collect()
}

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

#[test]
fn a_read_is_seek_rotation_transfer_and_the_last_block_on_the_bus() {
    // Sector 5 of the first track passes from 5 to 6 ms; three sectors.
    assert_eq!(served(&drive(), &[(0, READ, 5, 3)]), [(8_100.0, Outcome::Miss)]);
    // Cylinder 10: 2 ms + 1 ms of seek. Its first sector is 10 × (1 + 3) sectors askew: it passes at 10 ms.
    assert_eq!(served(&drive(), &[(0, READ, 200, 1)]), [(11_100.0, Outcome::Miss)]);
    // Just late: the head is there at 3 ms; sector 2 of that track began to pass at 2 ms.
    assert_eq!(served(&drive(), &[(0, READ, 202, 1)]), [(13_100.0, Outcome::Miss)]);
    assert_eq!(served(&drive(), &[(0, READ, 203, 1)]), [(4_100.0, Outcome::Miss)]);
}

#[test]
fn a_slow_bus_is_waited_for() {
    let drive = Drive { bus_block: BusBlock::both(us(3_000)), ..drive() };
    assert_eq!(served(&drive, &[(0, READ, 5, 3)]), [(6_000.0 + 9_000.0, Outcome::Miss)]);
}

#[test]
fn skew_lets_sequential_reads_go_on_across_tracks() {
    // Ten sectors; the head switches while one sector passes; ten more; a seek of one cylinder takes 2.1 of 3 ms.
    assert_eq!(
        served(&drive(), &[(0, READ, 0, 25)])[0].0,
        10_000.0 + 1_000.0 + 10_000.0 + 3_000.0 + 5_000.0 + 100.0
    );
}

#[test]
fn rotation_goes_on_between_requests() {
    let all = served(&drive(), &[(0, READ, 0, 1), (5_500, READ, 1, 1), (37_000, READ, 6, 1)]);
    assert_eq!(all.iter().map(|(done, _)| *done).collect::<Vec<_>>(), [1_100.0, 12_100.0, 47_100.0]);
}

#[test]
fn mean_rotational_latency_is_half_a_revolution() {
    let mut model = DriveModel::new(&drive());
    let mut sum = 0.0;
    for step in 0..1000 {
        // Times spread evenly over the revolution; all on one track.
        let now = Time(step * 100_000_000_000 + step * 10_000_000);
        let request = Request { direction: READ, block: step % 2, blocks: 1 };
        sum += model.serve(now, request).unwrap().done.since(now).seconds() - 1.1e-3;
    }
    assert!((sum / 1000.0 - 5e-3).abs() < 0.02e-3, "{sum}");
}

#[test]
fn what_was_read_is_a_hit_until_its_segment_is_needed() {
    let overheads = Overheads { read_hit: [us(30), us(70)], ..drive().overheads };
    let drive = Drive { overheads, ..drive() };
    let requests = [(0, READ, 0, 4), (20_000, READ, 1, 3), (30_000, READ, 100, 1), (60_000, READ, 1, 3)];
    let outcomes = served(&drive, &requests);
    assert_eq!(outcomes[1], (20_000.0 + 30.0 + 300.0, Outcome::Hit));
    assert_eq!(outcomes[3].1, Outcome::Miss);
}

#[test]
fn read_ahead_fills_the_segment_and_no_more() {
    let mut drive = drive();
    drive.buffer.read_ahead = ReadAhead::Segment;
    // Blocks 0 to 41 but no more are wanted; the segment holds the last 40.
    let requests = [(0, READ, 0, 2), (100_000, READ, 2, 40), (110_000, READ, 1, 1)];
    let outcomes = served(&drive, &requests);
    assert_eq!(outcomes[1], (100_000.0 + 4_000.0, Outcome::Hit));
    assert_eq!(outcomes[2].1, Outcome::Miss);
    drive.buffer.read_ahead = ReadAhead::Track;
    let requests = [(0, READ, 0, 2), (100_000, READ, 2, 8), (150_000, READ, 9, 2)];
    let outcomes = served(&drive, &requests);
    assert_eq!(outcomes[1].1, Outcome::Hit);
    assert_eq!(outcomes[2].1, Outcome::PartialHit);
}

#[test]
fn a_read_joins_the_read_ahead_that_is_on_its_way() {
    let mut drive = drive();
    drive.buffer.read_ahead = ReadAhead::Segment;
    // At 4.5 ms sectors 0 to 3 are there; 4 to 5 come until 6 ms, and the last is sent.
    assert_eq!(served(&drive, &[(0, READ, 0, 1), (4_500, READ, 2, 4)])[1], (6_100.0, Outcome::PartialHit));
}

#[test]
fn a_prefetch_ends_with_its_sector() {
    let mut drive = drive();
    drive.buffer.read_ahead = ReadAhead::Segment;
    // At 4.5 ms the arm reads sector 4, until 5 ms. Then 3 ms of seek to cylinder 10: sector 8 passes at 8 ms.
    assert_eq!(served(&drive, &[(0, READ, 0, 1), (4_500, READ, 208, 1)])[1].0, 9_100.0);
    drive.buffer.stop_in_sector = true;
    // At 7.5 ms there already.
    assert_eq!(served(&drive, &[(0, READ, 0, 1), (4_500, READ, 207, 1)])[1].0, 18_100.0);
    assert_eq!(served(&drive, &[(0, READ, 0, 1), (3_900, READ, 207, 1)])[1].0, 8_100.0);
}

#[test]
fn a_write_through_settles_and_is_done_on_the_surface() {
    // 3 ms of seek and 0.5 ms more: sector 3 has begun to pass, sector 4 is taken.
    assert_eq!(served(&drive(), &[(0, WRITE, 204, 1)]), [(5_000.0, Outcome::Miss)]);
    assert_eq!(served(&drive(), &[(0, WRITE, 203, 1)]), [(14_000.0, Outcome::Miss)]);
    // On its track there is nothing to settle, but the first block must be there: sector 0 passes again at 10 ms.
    assert_eq!(served(&drive(), &[(0, WRITE, 0, 2)]), [(12_000.0, Outcome::Miss)]);
}

#[test]
fn a_fast_write_is_done_in_the_buffer_and_the_next_waits_for_the_surface() {
    let mut drive = drive();
    drive.buffer.fast_writes = true;
    drive.buffer.segments = 3;
    let requests = [(0, WRITE, 204, 2), (1_000, READ, 0, 1), (50_000, READ, 204, 2)];
    let outcomes = served(&drive, &requests);
    assert_eq!(outcomes[0], (200.0, Outcome::Hit));
    // Written until 6 ms, back at cylinder 0 at 9 ms, sector 0 at 10 ms.
    assert_eq!(outcomes[1], (11_100.0, Outcome::Miss));
    assert_eq!(outcomes[2], (50_200.0, Outcome::Hit));
}

#[test]
fn writes_that_continue_each_other_do_not_lose_a_revolution() {
    let mut drive = drive();
    drive.buffer.fast_writes = true;
    let requests = [(0, WRITE, 1, 3), (500, WRITE, 4, 3), (1_000, READ, 50, 1)];
    let outcomes = served(&drive, &requests);
    assert_eq!(outcomes[1], (800.0, Outcome::Hit));
    // Sectors 1 to 6 pass from 1 to 7 ms; 2.2 ms to cylinder 2; block 50 is 4 + 4 + 1 sectors askew: 9 ms.
    assert_eq!(outcomes[2].0, 20_100.0);
    drive.buffer.combine_writes = false;
    assert!(served(&drive, &requests)[1].0 > 4_000.0);
}

#[test]
fn a_track_in_any_order_takes_one_revolution() {
    let mut drive = drive();
    drive.buffer.zero_latency_read = true;
    // From the next whole sector on: 4 to 14 ms. Block 3 passes last; those after it are there, and follow it.
    assert_eq!(served(&drive, &[(3_500, READ, 0, 10)])[0].0, 14_000.0 + 7.0 * 100.0);
    assert_eq!(served(&drive, &[(3_500, READ, 5, 2)])[0].0, 7_100.0);
}

#[test]
fn an_extra_disconnect_costs_a_write_that_follows_another() {
    let extra = ExtraDisconnect {
        command: us(600),
        first: us(50),
        pause: us(400),
        second: us(130),
        arm_delay: us(250),
    };
    let overheads = Overheads {
        extra_disconnect: Some(extra),
        write_miss: [us(800); 2],
        reselect: us(160),
        ..drive().overheads
    };
    let drive = Drive { overheads, ..drive() };
    let requests = [(0, WRITE, 3, 1), (20_000, WRITE, 1, 1), (40_000, WRITE, 2, 1)];
    let outcomes = served(&drive, &requests);
    assert_eq!(outcomes[0].0, 4_000.0 + 160.0);
    // Data on the bus from 600 + 50 + 400 + 160 µs on: sector 1 passes 10 ms later.
    assert_eq!(outcomes[1].0, 32_000.0);
    // What continues the last write does not suffer from it.
    assert_eq!(outcomes[2].0, 43_000.0 + 160.0);
}

#[test]
fn plain_access_models() {
    let mut drive = drive();
    drive.mechanics.access = AccessModel::Constant(us(8_000));
    assert_eq!(served(&drive, &[(0, READ, 777, 3)])[0].0, 8_000.0 + 300.0);
    drive.mechanics.access = AccessModel::AverageRotation;
    assert_eq!(served(&drive, &[(0, READ, 207, 2)])[0].0, 3_000.0 + 5_000.0 + 2_000.0 + 100.0);
}

#[test]
fn blocks_beyond_the_end_are_refused() {
    let mut model = DriveModel::new(&drive());
    for (block, blocks) in [(2000, 1), (1999, 2), (0, 0), (u64::MAX, 2)] {
        let request = Request { direction: READ, block, blocks };
        let error = model.serve(Time(0), request).unwrap_err();
        assert_eq!(error, DiskError::NoSuchBlocks { request, blocks: 2000 });
    }
    assert!(model.serve(Time(0), Request { direction: READ, block: 1999, blocks: 1 }).is_ok());
}
