//! Strategies against a byte-by-byte reference.

use std::collections::BTreeMap;

use crate::world::{World, expected_file, hints, interleaved};
use pio_layout::{Datatype, View};
use pio_plan::{
    Access, Action, Describe, Direction, Event, Gaps, Group, Hints, Io, IoError, Message, Rank, Site,
    StateMachine, Strategy, Via, ViewExchange, Views,
};
use proptest::prelude::*;

/// The same, with ranks that describe their accesses as so many do, or to those that the hint names.
fn describing(hints: Hints, describe: Option<Describe>) -> Hints {
    Hints { describe, ..hints }
}

fn describe() -> impl proptest::strategy::Strategy<Value = Option<Describe>> {
    proptest::sample::select(vec![
        None,
        Some(Describe::All),
        Some(Describe::Aggregators),
        Some(Describe::Leaders),
    ])
}

fn strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    let others = proptest::sample::select([&Strategy::ALL[..], &Strategy::OWN].concat());
    prop_oneof![2 => others, 1 => Just(Strategy::TwoPhase)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn writes_leave_the_expected_file(
        strategy in strategy(),
        pieces in proptest::collection::vec(0u64..20, 1..7),
        piece in 1u64..9, gap in prop_oneof![Just(0u64), 1u64..40], displacement in 0u64..50,
        old in 0usize..900, cb_nodes in 1u32..8, buffer in 1u64..300, unit in proptest::option::of(1u64..64), describe in describe(), seed: u64,
    ) {
        let accesses = interleaved(pieces.len() as u64, piece, gap, displacement, &pieces);
        let old: Vec<u8> = (0..old).map(|at| at as u8 | 1).collect();
        let mut world = World::new(strategy, Direction::Write, accesses, old, &describing(hints(cb_nodes, buffer, unit), describe));
        let expected = expected_file(&world);
        world.run(seed);
        prop_assert_eq!(&world.file, &expected);
        for (result, access) in world.results[0].iter().zip(&world.accesses[0]) {
            prop_assert_eq!(result.unwrap(), Ok(access.bytes()));
        }
    }

    #[test]
    fn reads_bring_what_the_file_holds(
        strategy in strategy(),
        parts in proptest::collection::vec((0u64..60, 1u64..9, 0u64..30, 0u64..40), 1..7),
        size in 0usize..900, cb_nodes in 1u32..8, buffer in 1u64..300, describe in describe(), seed: u64,
    ) {
        // Accesses of a read may overlap and lie beyond the end of the file.
        let accesses: Vec<Access> = parts.iter().map(|(displacement, piece, gap, bytes)| {
            let tile = Datatype::bytes(*piece).resized(0, (piece + gap) as i64).unwrap();
            Access { view: View::new(*displacement, 1, tile).unwrap(), positions: 3..3 + bytes * 3 }
        }).collect();
        let file: Vec<u8> = (0..size).map(|at| at as u8 | 1).collect();
        let mut world = World::new(strategy, Direction::Read, accesses, file, &describing(hints(cb_nodes, buffer, None), describe));
        world.run(seed);
        for (rank, access) in world.accesses[0].iter().enumerate() {
            let held: Vec<u8> = access.positions.clone()
                .map_while(|position| world.file.get(access.view.offset_of(position).unwrap() as usize).copied()).collect();
            prop_assert_eq!(world.results[0][rank].unwrap(), Ok(held.len() as u64));
            prop_assert_eq!(&world.memory[0][rank][..held.len()], &held[..]);
            prop_assert!(world.memory[0][rank][held.len()..].iter().all(|byte| *byte == 0xEE));
        }
    }

    #[test]
    fn overlapping_writes_touch_nothing_else(
        strategy in strategy(),
        parts in proptest::collection::vec((0u64..60, 1u64..9, 0u64..30, 0u64..40), 2..6),
        cb_nodes in 1u32..8, buffer in 1u64..300, describe in describe(), seed: u64,
    ) {
        let accesses: Vec<Access> = parts.iter().map(|(displacement, piece, gap, bytes)| {
            let tile = Datatype::bytes(*piece).resized(0, (piece + gap) as i64).unwrap();
            Access { view: View::new(*displacement, 1, tile).unwrap(), positions: 0..*bytes }
        }).collect();
        let old = vec![0xAA; 700];
        let mut world = World::new(strategy, Direction::Write, accesses, old, &describing(hints(cb_nodes, buffer, None), describe));
        world.run(seed);
        let mut allowed: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (access, memory) in world.accesses[0].iter().zip(&world.memory[0]) {
            for (position, byte) in access.positions.clone().zip(memory) {
                allowed.entry(access.view.offset_of(position).unwrap()).or_default().push(*byte);
            }
        }
        for (offset, byte) in world.file.iter().enumerate() {
            match allowed.get(&(offset as u64)) {
                Some(bytes) => prop_assert!(bytes.contains(byte)),
                None => prop_assert_eq!(*byte, if offset < 700 { 0xAA } else { 0 }),
            }
        }
    }

    #[test]
    fn an_aggregator_that_cannot_write_is_known_to_its_clients(
        pieces in proptest::collection::vec(1u64..20, 2..7), buffer in 8u64..300, describe in describe(), seed: u64,
    ) {
        let ranks = pieces.len() as u64;
        let mut world = World::new(
            Strategy::TwoPhase, Direction::Write, interleaved(ranks, 4, 0, 0, &pieces), Vec::new(), &describing(hints(1, buffer, None), describe),
        );
        world.broken = Some(Rank(0));
        world.run(seed);
        for result in &world.results[0] {
            prop_assert_eq!(result.unwrap(), Err(IoError { errno: 28 }));
        }
    }
}

#[test]
fn a_block_distributed_array_costs_thakurs_messages() {
    // 128 x 128 x 64 reals over 2 x 2 x 2 processes, after a header of 24 bytes (Thakur et al. 1996, section 4).
    let element = Datatype::bytes(4);
    let accesses: Vec<Access> = (0..8_u64)
        .map(|rank| {
            let starts = [(rank % 2) * 64, (rank / 2 % 2) * 64, rank / 4 * 32];
            let tile = Datatype::subarray(
                &[128, 128, 64],
                &[64, 64, 32],
                &starts,
                pio_layout::Order::Fortran,
                &element,
            )
            .unwrap();
            Access { view: View::new(24, 4, tile).unwrap(), positions: 0..64 * 64 * 32 * 4 }
        })
        .collect();
    let mut world = World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &Hints::default());
    let expected = expected_file(&world);
    world.run(1);
    assert!(world.file == expected);
    assert_eq!(world.sent("describe"), 8 * 7);
    assert_eq!(world.sent("data"), 8 * 3);
    assert_eq!(world.sent("acknowledge"), 8 * 3);
    assert_eq!(world.sent("grant") + world.sent("release"), 0);
    // Of each slab, four ranks have data: the others may be sieving.
    assert_eq!(world.locked, 8);
    // "a single write operation each": 512 KB.
    world.requests.sort_by_key(|(rank, _)| *rank);
    let slabs: Vec<_> = (0..8)
        .map(|rank| (Rank(rank), 24 + u64::from(rank) * 524_288..24 + u64::from(rank + 1) * 524_288))
        .collect();
    assert_eq!(world.requests, slabs);
}

/// A rank that was through early once sieved over what an aggregator was still to write for others.
#[test]
fn who_is_through_may_sieve_while_others_write() {
    let describes = [None, Some(Describe::All), Some(Describe::Aggregators), Some(Describe::Leaders)];
    for (ranks, describe) in [4, 9].into_iter().flat_map(|ranks| describes.map(|describe| (ranks, describe)))
    {
        // Two pieces of each rank, and as many domains as ranks: each has data in two of them. Rank 0 writes its own anew.
        let together = interleaved(ranks, 4, 0, 0, &vec![2; ranks as usize]);
        let mut hints = describing(hints(ranks as u32, 64, None), describe);
        hints.ind_wr_buffer_size = Some(4096);
        let mut alone = together.clone();
        alone.iter_mut().skip(1).for_each(|access| access.positions = 0..0);
        for seed in 0..300 {
            let accesses = vec![together.clone(), alone.clone()];
            let mut world =
                World::of_operations(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &hints);
            world.alone_from = 1;
            world.memory[1][0].iter_mut().for_each(|byte| *byte = !*byte);
            let expected = expected_file(&world);
            world.run(seed);
            assert_eq!(world.file, expected, "{ranks} ranks, {describe:?}, seed {seed}");
        }
    }
}

/// Both were once taken for "nothing can be locked here": the data of a rank that sieved beside could be lost without a word.
#[test]
fn a_lock_that_fails_or_was_lost_is_an_error_of_all_whose_data_it_kept() {
    let lost = |io: &Io| matches!(io, Io::Unlock { .. }).then_some(37);
    let unreachable = |io: &Io| matches!(io, Io::Lock { .. }).then_some(110);
    let no_locks = |io: &Io| matches!(io, Io::Lock { .. }).then_some(95);
    let written = |refuses: fn(&Io) -> Option<i32>| {
        let accesses = interleaved(4, 4, 0, 0, &[2; 4]);
        let mut world =
            World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &hints(4, 64, None));
        world.refuses = refuses;
        world.run(1);
        let results = world.results[0].iter().map(|result| result.unwrap()).collect::<Vec<_>>();
        (results, world.requests.len())
    };
    assert!(written(|_| None).1 > 0);
    assert_eq!(written(unreachable), (vec![Err(IoError { errno: 110 }); 4], 0));
    assert_eq!(written(lost).0, vec![Err(IoError { errno: 37 }); 4]);
    assert_eq!(written(no_locks), (vec![Ok(8); 4], written(|_| None).1));
}

#[test]
fn nothing_is_locked_where_every_rank_waits_for_each_aggregator() {
    for aggregators in [1, 4] {
        let accesses = interleaved(4, 4, 0, 24, &[100; 4]);
        let hints = hints(aggregators, 256, None);
        let mut world = World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &hints);
        let expected = expected_file(&world);
        world.run(1);
        assert!(world.file == expected);
        assert_eq!(world.locked, 0);
    }
}

#[test]
fn large_contiguous_parts_are_written_where_they_are() {
    let accesses: Vec<Access> = (0..4_u64)
        .map(|rank| Access { view: View::contiguous(rank * 100_000), positions: 0..100_000 })
        .collect();
    let mut world = World::new(Strategy::TwoPhase, Direction::Write, accesses, Vec::new(), &Hints::default());
    let expected = expected_file(&world);
    world.run(1);
    assert!(world.file == expected);
    assert_eq!((world.sent("describe"), world.sent("data")), (12, 0));
}

#[test]
fn registered_views_are_not_said_again() {
    let accesses = interleaved(4, 4, 0, 24, &[50; 4]);
    let mut machines: Vec<ViewExchange> = (0..4)
        .map(|rank| {
            ViewExchange::new(Group { rank: Rank(rank), ranks: 4 }, accesses[rank as usize].view.clone())
        })
        .collect();
    let mut mail = Vec::new();
    for (rank, machine) in machines.iter_mut().enumerate() {
        let mut actions = Vec::new();
        machine.handle(Event::Start, &mut actions);
        mail.extend(actions.into_iter().map(|action| (Rank(rank as u32), action)));
    }
    let mut finished = 0;
    while let Some((from, action)) = mail.pop() {
        match action {
            Action::Send { to, message } => {
                let mut actions = Vec::new();
                machines[to.index()].handle(Event::Received { from, message }, &mut actions);
                mail.extend(actions.into_iter().map(|action| (to, action)));
            }
            Action::Finish { result } => {
                assert_eq!(result, Ok(0));
                finished += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(finished, 4);
    for machine in machines {
        let views = machine.views().unwrap();
        assert!(views.iter().eq(accesses.iter().map(|access| &access.view)));
    }

    let described = |strategy| {
        let mut world =
            World::new(strategy, Direction::Write, accesses.clone(), Vec::new(), &hints(4, 64, None));
        world.run(3);
        (world.sent("describe"), world.sent("take part"))
    };
    assert_eq!(described(Strategy::TwoPhase), (12, 0));
    assert_eq!(described(Strategy::ViewBased), (0, 12));
}

#[test]
fn a_window_is_exchanged_while_the_one_before_is_written() {
    // One aggregator, two clients, eight windows: while the aggregator has a request for a window outstanding, the
    // client is granted the next one but that.
    let accesses = interleaved(2, 4, 0, 0, &[128; 2]);
    let site = Site { ranks: 2, nodes: None, processors: 2, via: Via::Kernel, terms: Default::default() };
    let views = Views { each: None, gaps: Gaps::BetweenSmallPieces };
    let context = site.context(&views, &hints(1, 128, None), Direction::Write);
    let group = |rank| Group { rank: Rank(rank), ranks: 2 };
    let mut aggregator =
        Strategy::TwoPhase.collective(group(0), Direction::Write, accesses[0].clone(), &context);
    let mut client = Strategy::TwoPhase.collective(group(1), Direction::Write, accesses[1].clone(), &context);
    let (mut a, mut c) = (Vec::new(), Vec::new());
    aggregator.handle(Event::Start, &mut a);
    client.handle(Event::Start, &mut c);
    let (mut granted, mut outstanding, mut exchanged_meanwhile) = (Vec::new(), false, 0);
    loop {
        let mut moved = false;
        for action in std::mem::take(&mut a) {
            moved = true;
            match action {
                Action::Send { message, .. } => {
                    if let Message::Grant { index } = message {
                        granted.push(index);
                    }
                    client.handle(Event::Received { from: Rank(0), message }, &mut c);
                }
                Action::Io(_) => outstanding = true,
                _ => {}
            }
        }
        for action in std::mem::take(&mut c) {
            moved = true;
            match action {
                Action::Send { message, .. } => {
                    aggregator.handle(Event::Received { from: Rank(1), message }, &mut a)
                }
                Action::SendData { piece, error, .. } => {
                    exchanged_meanwhile += u32::from(outstanding);
                    aggregator.handle(Event::Data { from: Rank(1), piece, error }, &mut a);
                }
                _ => {}
            }
        }
        if !moved && !std::mem::take(&mut outstanding) {
            break;
        } else if !moved {
            aggregator.handle(Event::IoDone { result: Ok(128) }, &mut a);
        }
    }
    assert_eq!(granted, [2, 3, 4, 5, 6, 7]);
    assert!(exchanged_meanwhile >= 6, "{exchanged_meanwhile}");
}
