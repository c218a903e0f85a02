//! Every policy on runs of blocks, against the published one on single blocks: the replacement alone with extents and with
//! blocks, and the whole cache with blocks.

use pio_cache::{
    Action, Cache, Event, FileId, Policy, ProcessId, ReadAhead, Replacement, RequestId, Settings, Writes,
};
use proptest::prelude::*;

use crate::naive::Naive;

/// Requests of a few kinds: scans of a region, single blocks, and blocks used often.
fn requests() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let extent = prop_oneof![
        (0..60u64, 1..40u64),
        (0..60u64, Just(1)),
        (0..6u64, 1..3u64),
        (0..4u64).prop_map(|scan| (scan * 10, 30)),
    ];
    prop::collection::vec((0..2u64, extent).prop_map(|(file, (start, length))| (file, start, length)), 1..120)
}

fn agrees(policy: Policy, capacity: u64, requests: &[(u64, u64, u64)]) -> Result<(), TestCaseError> {
    let mut fast = Replacement::new(policy, capacity).unwrap();
    let mut slow = Naive::new(policy, capacity);
    for (number, &(file, start, length)) in requests.iter().enumerate() {
        let touched = fast.touch(FileId(file), start..start + length);
        let hits = (start..start + length).filter(|block| slow.touch((file, *block))).count() as u64;
        prop_assert_eq!(
            touched.hits,
            hits,
            "hits of request {} with {}, {} blocks",
            number,
            policy,
            capacity
        );
        prop_assert_eq!(touched.misses, length - hits);
        prop_assert!(fast.resident() <= capacity);
        prop_assert_eq!(fast.resident(), slow.resident() as u64, "resident after request {}", number);
    }
    Ok(())
}

/// Reads blocks of one byte through the whole cache, whose fetches end at once: it has the hits of the policy.
fn cache_agrees(policy: Policy, capacity: u64, blocks: &[(u64, u64)]) -> Result<(), TestCaseError> {
    let settings = Settings {
        capacity_bytes: capacity,
        block_bytes: 1,
        policy,
        read_ahead: ReadAhead::Off,
        writes: Writes::Through,
        process_limit_bytes: None,
    };
    let mut cache = Cache::new(settings).unwrap();
    let mut slow = Naive::new(policy, capacity);
    let mut actions = Vec::new();
    for (number, &(file, offset)) in (0..).zip(blocks) {
        let hits_before = cache.statistics().reads_hit;
        let (request, process, file_id) = (RequestId(number), ProcessId(0), FileId(file));
        cache.handle(Event::Read { request, process, file: file_id, offset, length: 1 }, &mut actions);
        while let Some(action) = actions.pop() {
            if let Action::Fetch { transfer, .. } = action {
                cache.handle(Event::Fetched { transfer }, &mut actions);
            }
        }
        let hit = cache.statistics().reads_hit > hits_before;
        prop_assert_eq!(
            hit,
            slow.touch((file, offset)),
            "read {} with {}, {} blocks",
            number,
            policy,
            capacity
        );
        prop_assert_eq!(cache.resident_bytes(), slow.resident() as u64);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Single blocks, some of them used often, some next to each other, some far apart.
    #[test]
    fn blocks(
        capacity in 5..150u64,
        policy in 0..Policy::ALL.len(),
        blocks in prop::collection::vec(
            (0..2u64, prop_oneof![0..12u64, 0..200u64, (0..300u64).prop_map(|far| far * 1000)]),
            1..700,
        ),
    ) {
        let policy = Policy::ALL[policy];
        let requests: Vec<_> = blocks.iter().map(|&(file, block)| (file, block, 1)).collect();
        agrees(policy, capacity, &requests)?;
        cache_agrees(policy, capacity, &blocks)?;
    }

    #[test]
    fn lru(capacity in 1..70u64, requests in requests()) {
        agrees(Policy::Lru, capacity, &requests)?;
    }

    #[test]
    fn mru(capacity in 1..70u64, requests in requests()) {
        agrees(Policy::Mru, capacity, &requests)?;
    }

    #[test]
    fn clock(capacity in 1..70u64, requests in requests()) {
        agrees(Policy::Clock, capacity, &requests)?;
    }

    #[test]
    fn slru(capacity in 5..70u64, segments in 1..6u8, requests in requests()) {
        agrees(Policy::Slru { segments }, capacity, &requests)?;
    }

    #[test]
    fn arc(capacity in 1..70u64, requests in requests()) {
        agrees(Policy::Arc, capacity, &requests)?;
    }

    #[test]
    fn lirs(capacity in 2..70u64, requests in requests()) {
        agrees(Policy::Lirs, capacity, &requests)?;
    }
}

/// With more than a hundred blocks, LIRS has more than one for blocks of long inter-reference recency.
#[test]
fn lirs_with_a_longer_queue() {
    let mut state = 12345u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let requests: Vec<_> = (0..600).map(|_| (random(2), random(40) * random(30), 1 + random(60))).collect();
    for capacity in [150, 400, 700] {
        agrees(Policy::Lirs, capacity, &requests).unwrap();
    }
}
