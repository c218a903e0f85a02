//! Groups in which ranks describe their accesses to aggregators alone: against a byte-by-byte reference, and counted.

#[path = "../../examples/messages.rs"]
#[allow(dead_code)]
mod messages;

use crate::world::{World, expected_file, hints, interleaved};
use messages::{Job, Pattern, RANKS_PER_NODE};
use pio_plan::{Access, Describe, Direction, Hints, Strategy, Tree};
use proptest::prelude::*;

/// Some operations one after the other, each of the next pieces under the same views.
fn operations(ranks: u64, piece: u64, gap: u64, counts: &[u64]) -> Vec<Vec<Access>> {
    let mut start = 0;
    let mut operation = |count: &u64| {
        let mut accesses = interleaved(ranks, piece, gap, 5, &vec![0; ranks as usize]);
        for (rank, access) in accesses.iter_mut().enumerate() {
            // Some ranks have nothing now and then.
            let bytes = if (rank as u64 + count).is_multiple_of(7) { 0 } else { count * piece };
            access.positions = start..start + bytes;
        }
        start += count * piece;
        accesses
    };
    counts.iter().map(&mut operation).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn fast_ranks_in_later_operations_change_nothing(
        strategy in proptest::sample::select(vec![Strategy::TwoPhase, Strategy::ViewBased, Strategy::Auto]),
        ranks in proptest::sample::select(vec![9u64, 16, 17, 33]), direction: bool,
        piece in 1u64..9, gap in prop_oneof![Just(0u64), 1u64..40],
        counts in proptest::collection::vec(1u64..9, 1..4),
        cb_nodes in 1u32..40, buffer in 40u64..900, unit in proptest::option::of(1u64..64),
        describe in proptest::sample::select(vec![None, Some(Describe::Aggregators), Some(Describe::Leaders)]), seed: u64,
    ) {
        let direction = if direction { Direction::Read } else { Direction::Write };
        let accesses = operations(ranks, piece, gap, &counts);
        let old: Vec<u8> = (0..3000).map(|at| at as u8 | 1).collect();
        let hints = Hints { describe, ..hints(cb_nodes, buffer, unit) };
        let mut world = World::of_operations(strategy, direction, accesses, old.clone(), &hints);
        let expected = if direction == Direction::Write { expected_file(&world) } else { old.clone() };
        world.run(seed);
        prop_assert!(world.file == expected);
        for (operation, accesses) in world.accesses.iter().enumerate() {
            for (rank, access) in accesses.iter().enumerate() {
                let held = access.positions.clone().filter(|position| {
                    direction == Direction::Write || access.view.offset_of(*position).unwrap() < 3000
                });
                let held = held.count();
                prop_assert_eq!(world.results[operation][rank].unwrap(), Ok(held as u64));
                if direction == Direction::Read {
                    for (position, byte) in access.positions.clone().zip(&world.memory[operation][rank]).take(held) {
                        prop_assert_eq!(*byte, old[access.view.offset_of(position).unwrap() as usize]);
                    }
                }
            }
        }
    }

    #[test]
    fn all_ranks_hear_of_an_error_where_there_are_gaps(
        ranks in 9u64..20, piece in 1u64..9, broken in 0u32..9, led: bool, seed: u64,
    ) {
        let accesses = interleaved(ranks, piece, 3, 0, &vec![9; ranks as usize]);
        let hints = if led { led_by_three() } else { hints(40, 60, None) };
        let mut world = World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &hints);
        // Of the three nodes, the first three ranks are the leaders.
        world.broken = Some(pio_plan::Rank(if led { broken % 3 } else { broken }));
        world.run(seed);
        prop_assert_eq!(world.sent("place") > 0, led);
        let error = pio_plan::IoError { errno: 28 };
        prop_assert!(world.results[0].iter().all(|result| *result == Some(Err(error))));
    }

    #[test]
    fn a_leader_without_room_costs_its_team_the_operation_and_nobody_else(
        ranks in 9u64..20, piece in 1u64..9, leader in 0u32..3, reads: bool, seed: u64,
    ) {
        let direction = if reads { Direction::Read } else { Direction::Write };
        let accesses = interleaved(ranks, piece, 0, 0, &vec![9; ranks as usize]);
        let old: Vec<u8> = (0..3000).map(|at| at as u8 | 1).collect();
        let mut world = World::new(Strategy::TwoPhase, direction, accesses, old.clone(), &led_by_three());
        let expected = expected_file(&world);
        world.crowded = Some(pio_plan::Rank(leader));
        world.run(seed);
        let is_lost = |rank: usize| rank as u32 % 3 == leader;
        for (rank, access) in world.accesses[0].iter().enumerate() {
            let result = if is_lost(rank) { Err(pio_plan::IoError { errno: 12 }) } else { Ok(access.bytes()) };
            prop_assert_eq!(world.results[0][rank], Some(result));
            for (position, byte) in access.positions.clone().zip(&world.memory[0][rank]) {
                let offset = access.view.offset_of(position).unwrap() as usize;
                match direction {
                    Direction::Read if is_lost(rank) => prop_assert_eq!(*byte, 0xEE),
                    Direction::Read => prop_assert_eq!(*byte, old[offset]),
                    Direction::Write if is_lost(rank) => prop_assert_eq!(world.file[offset], old[offset]),
                    Direction::Write => prop_assert_eq!(world.file[offset], expected[offset]),
                }
            }
        }
    }
}

/// The ranks are dealt out to three nodes in turn: each has a leader.
fn led_by_three() -> Hints {
    Hints { describe: Some(Describe::Leaders), ..hints(3, 9000, None) }
}

#[test]
fn views_are_described_once_to_each_aggregator() {
    let mut world = World::of_operations(
        Strategy::TwoPhase,
        Direction::Write,
        operations(16, 4, 0, &[8, 8, 8]),
        Vec::new(),
        &hints(2, 512, None),
    );
    world.run(5);
    // Two of the aggregators are clients of the other one; in each operation some ranks have nothing.
    assert!(world.sent("describe") <= 15 + 15, "{}", world.sent("describe"));
    assert!(world.sent("take part") > 2 * world.sent("describe") / 3);
}

#[test]
fn messages_of_a_rank_grow_with_the_logarithm_of_the_ranks() {
    for (ranks, sums) in [(1000_u32, 2 * 10), (1024, 2 * 10)] {
        for (pattern, describe) in [Pattern::Everywhere, Pattern::Blocks]
            .into_iter()
            .flat_map(|pattern| [None, Some(Describe::Aggregators)].map(|describe| (pattern, describe)))
        {
            let group = (ranks, RANKS_PER_NODE);
            for job in Job::operations(Strategy::TwoPhase, group, pattern, describe, 2).unwrap() {
                for sent in &job.each {
                    assert!(sent.describing <= sums + sent.partners, "{pattern:?} {ranks}: {sent:?}");
                }
                let (most, mean) = job.most_and_mean(|sent| sent.ends);
                match describe {
                    // Leaders say it to those for whom they speak.
                    None => assert!(mean <= 1.1, "{mean}"),
                    // Where there are gaps, all end together; else aggregators acknowledge to their clients.
                    Some(_) => {
                        assert!(pattern == Pattern::Everywhere || (most <= 10 && mean < 2.0), "{most} {mean}")
                    }
                }
                let (_, mean) =
                    job.most_and_mean(|sent| sent.describing - sent.partners.min(sent.describing));
                assert!(mean < 3.5, "{mean}");
                assert!(job.steps <= 6 * 10 + 10, "{}", job.steps);
            }
        }
    }
}

/// Many leaders of few ranks, and few of many: a leader's messages are those of both operations. Its summary goes once through
/// the ranks, and once, with the numbers of clients, through the leaders.
#[test]
fn messages_of_a_leader_grow_with_the_logarithm_of_the_ranks() {
    for ranks_per_node in [16, 128] {
        let leaders = 4096 / ranks_per_node;
        let sums = u64::from(Tree::depth(4096) + Tree::depth(leaders));
        for pattern in [Pattern::Everywhere, Pattern::Blocks] {
            let group = (4096, ranks_per_node);
            for job in Job::operations(Strategy::TwoPhase, group, pattern, None, 2).unwrap() {
                let (most, _) = job.most_and_mean(|sent| sent.partners);
                assert!(most >= u64::from(ranks_per_node) - 1, "leaders tell their ranks where data belong");
                for sent in &job.each {
                    assert!(sent.describing <= sums + sent.partners, "{pattern:?} {leaders}: {sent:?}");
                }
            }
        }
    }
}

#[test]
fn leaders_send_what_crosses_between_nodes() {
    let [job] = &Job::operations(Strategy::TwoPhase, (1024, RANKS_PER_NODE), Pattern::Everywhere, None, 1)
        .unwrap()[..]
    else {
        panic!("one operation");
    };
    // Each member to its leader, each of the 8 leaders to all others.
    let data: u64 = job.each.iter().map(|sent| sent.data).sum();
    assert_eq!(data, 1024 - 8 + 8 * 7);
}
