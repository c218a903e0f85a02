//! What a cache promises, whatever happens in whatever order: see the driver.

use pio_cache::{Policy, ReadAhead, Settings, Writes};
use proptest::prelude::*;

use crate::driver::Driver;

#[derive(Clone, Debug)]
enum Step {
    Read(u32, u64, u64, u64),
    Write(u32, u64, u64, u64),
    Flush(u64),
    Size(u64, u64),
    Forget(u64),
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let extent = || (0..3u32, 0..2u64, 0..120u64, 0..60u64);
    prop_oneof![
        4 => extent().prop_map(|(process, file, offset, length)| Step::Read(process, file, offset, length)),
        4 => extent().prop_map(|(process, file, offset, length)| Step::Write(process, file, offset, length)),
        2 => (0..3u32, 0..2u64, 0..12u64).prop_map(|(process, file, place)| Step::Read(process, file, place * 16, 16)),
        1 => (0..2u64).prop_map(Step::Flush),
        1 => (0..2u64, 0..200u64).prop_map(|(file, bytes)| Step::Size(file, bytes)),
        1 => (0..2u64).prop_map(Step::Forget),
        9 => (0..20usize).prop_map(Step::End),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let policy = prop_oneof![
        Just(Policy::Lru),
        Just(Policy::Mru),
        Just(Policy::Clock),
        Just(Policy::Slru { segments: 2 }),
        Just(Policy::Arc),
        Just(Policy::Lirs)
    ];
    let writes = prop_oneof![
        Just(Writes::Through),
        (4..60u64).prop_map(|dirty_limit_bytes| Writes::Behind { dirty_limit_bytes }),
        (4..60u64).prop_map(|dirty_limit_bytes| Writes::Back { dirty_limit_bytes }),
    ];
    let read_ahead = prop_oneof![Just(ReadAhead::Off), Just(ReadAhead::JustRead)];
    let limit = prop_oneof![2 => Just(None), 1 => (4..60u64).prop_map(Some)];
    (8..100u64, 1..5u64, policy, read_ahead, writes, limit).prop_map(
        |(capacity_bytes, block_bytes, policy, read_ahead, writes, process_limit_bytes)| Settings {
            capacity_bytes,
            block_bytes,
            policy,
            read_ahead,
            writes,
            process_limit_bytes,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn hold(settings in settings(), steps in prop::collection::vec(step(), 1..120)) {
        let mut driver = Driver::new(settings);
        for step in steps {
            match step {
                Step::Read(process, file, offset, length) => driver.read(process, file, offset..offset + length),
                Step::Write(process, file, offset, length) => driver.write(process, file, offset..offset + length),
                Step::Flush(file) => driver.flush(file),
                // A size that was never true would make the cache overlook what is below.
                Step::Size(file, bytes) => driver.grow(file, bytes),
                Step::Forget(file) => driver.forget(file),
                Step::End(choice) => drop(driver.end_transfer(choice)),
            }
        }
        driver.finish();
        for file in 0..2 {
            driver.flush(file);
        }
        driver.finish();
        driver.check_below();
        let counted = driver.cache.statistics();
        prop_assert_eq!(counted.hit_bytes + counted.joined_bytes + counted.missed_bytes, counted.read_bytes);
        prop_assert!(counted.ahead_used_bytes + counted.ahead_wasted_bytes <= counted.ahead_bytes + 4 * counted.reads);
    }
}
