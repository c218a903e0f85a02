//! The cost model: what it must do whatever its terms are, and what it says of usual patterns.

use pio_plan::cost::{Behind, Estimate, Operation, Part, Setting, Terms, choose, estimate, possible};
use pio_plan::{Describe, Description, Direction, Guard, Hints, Nodes, Site, Strategy, Via, Views};
use proptest::prelude::*;

/// Ranks that own every P-th of `pieces` pieces each.
fn interleaved(direction: Direction, ranks: u64, pieces: u64, bytes: u64) -> Operation {
    let description = |rank: u64| {
        let bounds = rank * bytes..((pieces - 1) * ranks + rank + 1) * bytes;
        Description { bytes: pieces * bytes, pieces, bounds, told_us: 0, access: None }
    };
    Operation::of(direction, ranks as u32, &(0..ranks).map(description).collect::<Vec<_>>())
}

/// Ranks that have one piece each, one after the other.
fn apart(direction: Direction, ranks: u64, bytes: u64) -> Operation {
    let description = |rank: u64| Description {
        bytes,
        pieces: 1,
        bounds: rank * bytes..(rank + 1) * bytes,
        told_us: 0,
        access: None,
    };
    Operation::of(direction, ranks as u32, &(0..ranks).map(description).collect::<Vec<_>>())
}

fn setting(servers: u32, ranks: u32) -> Setting {
    let via = match servers {
        0 => Via::Kernel,
        _ => Via::Servers { factor: servers, unit: 64 << 10 },
    };
    // As on a cluster: each rank has its own processor, on a node of its own.
    let site = Site { ranks, nodes: None, processors: ranks, via, terms: Default::default() };
    let context = site.context(&Views::WHOLE, &Hints::default(), Direction::Write);
    Setting { views: true, ..Setting::of(&context, Direction::Write, ranks) }
}

fn best(operation: &Operation, servers: u32) -> Strategy {
    choose(operation, &setting(servers, operation.ranks), &Terms::MEASURED).strategy
}

const WAYS: [Direction; 2] = [Direction::Read, Direction::Write];

#[test]
fn small_pieces_are_exchanged_on_files_and_shipped_to_servers() {
    for pieces in [4_000, 64_000, 1_024_000] {
        // Two ranks may as well read and write both ranks' pieces as exchange them; sixteen may not.
        for direction in WAYS {
            let of_two = best(&interleaved(direction, 2, pieces, 4), 0);
            assert!(!matches!(of_two, Strategy::Independent | Strategy::List), "{of_two} for {pieces}");
        }
        let known = Setting { is_first: false, ..setting(0, 16) };
        let write = choose(&interleaved(Direction::Write, 16, pieces, 4), &known, &Terms::MEASURED).strategy;
        assert!(matches!(write, Strategy::TwoPhase | Strategy::ViewBased), "{write} for {pieces}");
        for direction in WAYS {
            assert_eq!(best(&interleaved(direction, 2, pieces, 4), 2), Strategy::Ecio);
        }
    }
}

#[test]
fn contiguous_data_go_straight_to_the_file() {
    for direction in WAYS {
        assert_eq!(best(&apart(direction, 4, 16 << 20), 0), Strategy::Independent);
    }
}

#[test]
fn one_rank_that_reads_small_pieces_sieves() {
    let operation = interleaved(Direction::Read, 2, 10_000, 8);
    let alone = Operation {
        ranks: 1,
        busy: 1,
        bytes: operation.most_bytes,
        pieces: 10_000,
        is_interleaved: false,
        ..operation
    };
    let alone = Operation { spans: alone.most_span, ..alone };
    let file = best(&alone, 0);
    assert!(matches!(file, Strategy::Sieving | Strategy::TwoPhase | Strategy::ViewBased), "{file}");
}

#[test]
fn the_limit_of_large_data_is_the_file() {
    let bytes = 1_u64 << 40;
    let operation = apart(Direction::Write, 1, bytes);
    let time =
        estimate(Strategy::Independent, &operation, &setting(0, 1), &Terms::MEASURED).unwrap().seconds();
    let limit = bytes as f64 / Terms::MEASURED.write_bytes_per_s;
    assert!((time / limit - 1.0).abs() < 1e-6);
    let servers = estimate(Strategy::Ecio, &operation, &setting(4, 1), &Terms::MEASURED).unwrap();
    assert!(servers.seconds() > limit / 4.0);
    assert!((servers.wire_bytes as f64) < 1.001 * bytes as f64);
}

#[test]
fn a_page_is_new_once() {
    let new = Terms { new_pages_s: 5e-6, new_byte_s: 1e-9, ..Terms::MEASURED };
    let added = |strategy, direction, bytes| {
        let operation = interleaved(direction, 4, 1024, bytes);
        let time = |terms| estimate(strategy, &operation, &setting(0, 4), terms).unwrap().seconds();
        (time(&new) - time(&Terms::MEASURED)) / 4096.0
    };
    let of_a_byte = |bytes: u64| bytes as f64 * 1e-9;
    for (strategy, bytes, expected) in [
        // Each of the 4096 pieces has a page, or four share one.
        (Strategy::Independent, 4096, 5e-6 + of_a_byte(4096)),
        (Strategy::Independent, 1024, 5e-6 / 4.0 + of_a_byte(1024)),
        // 8 windows of each rank, of the same 4 MiB.
        (Strategy::Sieving, 1024, 32.0 * 5e-6 / 4096.0 + of_a_byte(1024)),
    ] {
        let found = added(strategy, Direction::Write, bytes);
        assert!((found / expected - 1.0).abs() < 0.01, "{strategy} of {bytes}: {found} for {expected}");
    }
    assert_eq!(added(Strategy::Independent, Direction::Read, 1024), 0.0);
}

#[test]
fn long_pieces_are_accesses_of_their_own_to_servers() {
    let new = Terms { new_pages_s: 5e-6, placed_bytes_per_s: 2e9, share_processors: true, ..Terms::MEASURED };
    // 4 servers have the 2 processors of 2 ranks.
    let two = setting(4, 2);
    let time = |strategy, operation: &Operation, terms: &Terms| {
        estimate(strategy, operation, &two, terms).unwrap().seconds()
    };
    let (long, short) =
        (interleaved(Direction::Write, 2, 256, 8192), interleaved(Direction::Write, 2, 2048, 1024));
    let added = |strategy, operation| {
        time(strategy, operation, &new)
            - time(strategy, operation, &Terms { new_pages_s: 0.0, ..new.clone() })
    };
    // A piece more for each of 64 strips that may begin within one.
    for strategy in [Strategy::Ecio, Strategy::List] {
        assert!((added(strategy, &long) - 576.0 * 5e-6 / 2.0).abs() < 1e-9, "{strategy}");
    }
    // Short ones are put together: each of the 2 ranks has a request to each of 4 servers.
    assert!((added(Strategy::Ecio, &short) - 8.0 * 5e-6 / 2.0).abs() < 1e-9);
    // Of 8 KiB a page is placed, of 1 KiB all; 4 and 4 MiB.
    let placing = |operation| {
        let slow = Terms { placed_bytes_per_s: 1e9, ..new.clone() };
        time(Strategy::Ecio, operation, &slow) - time(Strategy::Ecio, operation, &new)
    };
    let a_second_less = 1.0 / 1e9 - 1.0 / 2e9;
    assert!((placing(&long) - 512.0 * 4096.0 / 2.0 * a_second_less).abs() < 1e-9);
    assert!((placing(&short) - 4096.0 * 1024.0 / 2.0 * a_second_less).abs() < 1e-9);
    // So they are exchanged, where small ones are shipped.
    assert!(choose(&long, &two, &new).strategy.sends_messages());
}

#[test]
fn a_server_beside_the_ranks_lets_one_at_a_time_write_whole_blocks() {
    let terms = Terms { share_processors: true, ..Terms::MEASURED };
    let store = |servers, ranks: u64, bytes, terms: &Terms| {
        let operation = apart(Direction::Write, ranks, bytes);
        let found = estimate(Strategy::Independent, &operation, &setting(servers, ranks as u32), terms);
        let parts = found.unwrap().parts;
        parts.iter().find(|(part, _)| *part == Part::Store).unwrap().1
    };
    // To one server; to four, four at a time.
    assert_eq!(store(1, 4, 64 << 20, &terms), store(1, 1, 256 << 20, &terms));
    assert_eq!(store(4, 4, 64 << 20, &terms), store(1, 4, 64 << 20, &terms) / 4.0);
    // Shorter runs are written at the same time.
    assert_eq!(store(1, 4, 60_000, &terms), store(1, 1, 240_000, &terms) / 4.0);
}

#[test]
fn ranks_that_would_take_turns_with_each_piece_list_them_instead() {
    // Pieces so long that it costs the same, whoever writes them: only one at a time writes a file.
    let long = interleaved(Direction::Write, 2, 128, 8192);
    let guarded = Setting { guard: Guard::Alone, ..setting(0, 2) };
    let best = |operation: &Operation, setting: &Setting, is_remote| {
        choose(operation, setting, &Terms { is_remote, ..Terms::MEASURED }).strategy
    };
    assert_eq!(best(&long, &guarded, false), Strategy::List);
    // Where they share their locks, and elsewhere, they write side by side; and who reads, is apart or alone does not wait for others.
    let shared = Setting { guard: Guard::Shared, ..setting(0, 2) };
    assert_ne!(best(&long, &shared, false), Strategy::List);
    assert_ne!(best(&long, &guarded, true), Strategy::List);
    assert_ne!(best(&long, &setting(0, 2), false), Strategy::List);
    assert_ne!(best(&apart(Direction::Write, 2, 1 << 20), &guarded, false), Strategy::List);
    assert_ne!(best(&interleaved(Direction::Read, 2, 128, 8192), &guarded, false), Strategy::List);
}

#[test]
fn requests_queue_at_the_servers_behind_the_kernel_that_have_their_strips() {
    let behind = |servers| Terms {
        behind: Some(Behind { servers, strip: 1 << 20 }),
        read_s: 20e-6,
        write_s: 20e-6,
        asking_read_s: 0.0,
        ..Terms::MEASURED
    };
    let file = |strategy, operation: &Operation, servers| {
        let setting = setting(0, operation.ranks);
        let parts = estimate(strategy, operation, &setting, &behind(servers)).unwrap().parts;
        parts.iter().find(|(part, _)| *part == Part::Store).unwrap().1
    };
    let is_about = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.03;
    // 256 ranks, 64 pieces of 40 B each: all within a strip, so that one server has all 16,384 requests.
    let small = interleaved(Direction::Read, 256, 64, 40);
    for servers in [1, 448] {
        let found = file(Strategy::Independent, &small, servers);
        assert!(is_about(found, 16_384.0 * 20e-6), "{found}");
    }
    // A list of each, and what they read.
    let found = file(Strategy::List, &small, 448);
    assert!(is_about(found, 256.0 * 20e-6), "{found}");
    // 16 MiB of 4096 pieces, on 16 servers at most.
    let large = interleaved(Direction::Read, 64, 64, 4096);
    for (servers, busy) in [(1, 1.0), (8, 8.0), (16, 16.0), (448, 16.0)] {
        let found = file(Strategy::Independent, &large, servers);
        let strips = 1.0 + 4096.0 / f64::from(1 << 20);
        let wide = if servers == 1 { 1.0 } else { strips };
        let expected = (4096.0 * wide * 20e-6 + large.bytes as f64 / 13e9) / busy;
        assert!(is_about(found, expected), "{servers} servers: {found}, {expected}");
    }
    // A rank by itself waits for its own requests alone, however many servers there are.
    let (one, alone) = (apart(Direction::Read, 1, 1 << 30), 1 << 30);
    let found = file(Strategy::Independent, &one, 448);
    assert!(found >= 20e-6 + f64::from(alone) / 448.0 / 13e9, "{found}");
    // So ranks put small pieces together, which on files of which nothing is known they read each for itself.
    let chosen = |terms: &Terms| choose(&small, &setting(0, 256), terms).strategy;
    assert!(!matches!(chosen(&behind(448)), Strategy::Independent | Strategy::Sieving));
}

#[test]
fn the_ranks_of_a_node_share_its_link_to_servers_behind_the_kernel() {
    let terms = Terms { behind: Some(Behind { servers: 448, strip: 1 << 20 }), ..Terms::MEASURED };
    let operation = apart(Direction::Read, 256, 1 << 20);
    let transfer = |nodes| {
        let setting = Setting { nodes, ..setting(0, 256) };
        let parts = estimate(Strategy::Independent, &operation, &setting, &terms).unwrap().parts;
        parts.iter().find(|(part, _)| *part == Part::Transfer).unwrap().1
    };
    assert_eq!(transfer(2) / transfer(256), 128.0);
}

#[test]
fn on_servers_nobody_sieves_to_write() {
    let operation = interleaved(Direction::Write, 2, 1000, 64);
    let parts = |strategy| estimate(strategy, &operation, &setting(2, 2), &Terms::MEASURED).unwrap().parts;
    assert_eq!(parts(Strategy::Sieving), parts(Strategy::Independent));
}

#[test]
fn a_choice_holds_while_to_ask_costs_more_than_may_be_gained() {
    let asked = |ranks, waits_s| Setting { is_first: false, waits_s, ..setting(0, ranks) };
    let holds = |operation: &Operation, waits_s| {
        let setting = asked(operation.ranks, waits_s);
        choose(operation, &setting, &Terms::MEASURED).holds
    };
    // Nothing may be gained.
    assert_eq!(holds(&apart(Direction::Write, 4, 16 << 20), 0.0), u32::MAX);
    // One that only waiting decides is not; nor one of an operation in which not all ranks have data.
    let exchanged = interleaved(Direction::Write, 8, 128, 2048);
    let late = choose(&exchanged, &asked(8, 1.0), &Terms::MEASURED);
    assert!(!late.strategy.sends_messages());
    let seconds =
        |strategy| estimate(strategy, &exchanged, &setting(0, 8), &Terms::MEASURED).unwrap().seconds();
    let gain_s = seconds(late.strategy) - seconds(Strategy::TwoPhase).min(seconds(Strategy::ViewBased));
    assert_eq!(late.holds, (1.0 / gain_s * 10.0) as u32);
    assert_eq!(holds(&exchanged, 10.0) / late.holds, 10);
    assert_eq!(holds(&Operation { ranks: 5, ..apart(Direction::Write, 4, 16 << 20) }, 0.0), 0);
}

#[test]
fn who_waits_long_for_others_goes_alone() {
    let operation = interleaved(Direction::Write, 8, 128, 2048);
    let chosen = |is_first, waits_s| {
        choose(&operation, &Setting { is_first, waits_s, ..setting(0, 8) }, &Terms::MEASURED).strategy
    };
    let time = |strategy| estimate(strategy, &operation, &setting(0, 8), &Terms::MEASURED).unwrap().seconds();
    let saved = time(Strategy::Independent) - time(Strategy::ViewBased);
    assert!(chosen(false, 0.5 * saved).sends_messages());
    assert_eq!(chosen(false, saved), Strategy::Independent);
    // The first time, by when they come.
    assert!(chosen(true, 0.0).sends_messages());
    assert_eq!(chosen(true, saved), Strategy::Independent);
}

#[test]
fn small_pieces_far_from_each_other_are_not_foreseen() {
    let missed = Terms { read_miss_s: 2e-7, write_miss_s: 3e-7, ..Terms::MEASURED };
    let longer = |operation: &Operation, setting: &Setting| {
        let time = |terms| estimate(Strategy::Independent, operation, setting, terms).unwrap().seconds();
        time(&missed) - time(&Terms::MEASURED)
    };
    // 100 pieces of each of 8 ranks, 8 times as far apart: 7 times 40 bytes are less than a processor foresees, 4096 more.
    let [near, far] = [40, 4096].map(|bytes| interleaved(Direction::Read, 8, 100, bytes));
    let all = |operation: &Operation| longer(operation, &setting(0, 8));
    assert!((all(&near) / (100.0 * 2e-7) - 7.0 * 40.0 / 1280.0).abs() < 0.01);
    assert!((all(&far) / (100.0 * 2e-7) - 1.0).abs() < 0.01);
    let shared = Setting { processors: 2, ..setting(0, 8) };
    assert!((longer(&near, &shared) / all(&near) - 4.0).abs() < 1e-9);
    // Writers take turns; one that makes a page has it.
    let near = Operation { direction: Direction::Write, ..near };
    let made = near.span.div_ceil(4096) as f64;
    assert!((all(&near) / ((800.0 - made) * 3e-7) - 7.0 * 40.0 / 1280.0).abs() < 0.01);
    assert_eq!(all(&Operation { direction: Direction::Write, ..far }), 0.0);
    // Servers have other costs.
    assert_eq!(longer(&near, &setting(2, 8)), 0.0);
}

#[test]
fn who_writes_back_what_it_has_just_read_has_it_at_hand() {
    let operation = interleaved(Direction::Write, 2, 1000, 100);
    let time = |cached_bytes, sieve_buffer| {
        let terms = Terms { cached_bytes, cached_bytes_per_s: 1e12, ..Terms::MEASURED };
        let setting = Setting { sieve_buffer, ..setting(0, 2) };
        estimate(Strategy::Sieving, &operation, &setting, &terms).unwrap().seconds()
    };
    let window = operation.most_span;
    let saved = operation.spans as f64 * (1.0 / Terms::MEASURED.write_bytes_per_s - 1e-12);
    let found = time(0.0, window) - time(2.0 * window as f64, window);
    assert!((found / saved - 1.0).abs() < 1e-9, "{found} {saved}");
    assert_eq!(
        time(0.0, window),
        time(1.9 * window as f64, window),
        "the window and its memory do not fit in"
    );
}

#[test]
fn ranks_that_take_turns_wait_for_those_that_compute_meanwhile() {
    let operation = interleaved(Direction::Write, 8, 1000, 100);
    let time = |processors, meets_next| {
        let setting = Setting { processors, meets_next, ..setting(0, 8) };
        estimate(Strategy::Sieving, &operation, &setting, &Terms::MEASURED).unwrap().seconds()
    };
    assert_eq!(time(8, false), time(8, true));
    // Four share a processor, and a rank is through after nine sixteenths of the time in the mean.
    assert!((time(2, false) / time(2, true) - 2.5 * 9.0 / 16.0).abs() < 1e-9);
}

/// Eight ranks, each with pieces that lie between the others'.
#[test]
fn ranks_that_share_processors_leave_an_exchange_one_after_the_other() {
    let operation = interleaved(Direction::Write, 8, 4096, 128);
    let chosen = |setting: Setting| {
        let setting = Setting { described: true, is_first: false, ..setting };
        choose(&operation, &setting, &Terms::MEASURED).strategy
    };
    let crowded = Setting { processors: 2, ..setting(0, 8) };
    assert_eq!(chosen(setting(0, 8)), Strategy::TwoPhase);
    assert_eq!(chosen(crowded.clone()), Strategy::Sieving);
    // Where they meet next, they wait there; and if they have done it before, they know.
    assert_eq!(chosen(Setting { meets_next: true, ..crowded.clone() }), Strategy::TwoPhase);
    assert_eq!(chosen(Setting { has_exchanged: true, ..crowded }), Strategy::TwoPhase);
}

#[test]
fn what_was_told_already_costs_nothing_again() {
    let operation = interleaved(Direction::Write, 8, 1000, 4);
    let described = Setting { described: true, ..setting(0, 8) };
    let time =
        |setting| estimate(Strategy::TwoPhase, &operation, setting, &Terms::MEASURED).unwrap().seconds();
    let saved = time(&setting(0, 8)) - time(&described);
    assert!((saved - 7.0 * Terms::MEASURED.message_s).abs() < 1e-12);
}

/// Ranks on nodes of 128, which reach the file through the kernel.
fn on_nodes(ranks: u32, describe: Option<Describe>) -> Setting {
    let nodes = Some(Nodes::of((0..ranks).map(|rank| rank / 128)).into());
    let site = Site { ranks, nodes, processors: ranks, via: Via::Kernel, terms: Default::default() };
    let hints = Hints { describe, ..Hints::default() };
    Setting::of(&site.context(&Views::WHOLE, &hints, Direction::Write), Direction::Write, ranks)
}

#[test]
fn leaders_that_speak_for_their_nodes_are_estimated_so() {
    let of = |part, ranks, describe, bytes| {
        let operation = interleaved(Direction::Write, ranks, 64, bytes);
        let setting = on_nodes(ranks as u32, describe);
        let parts = estimate(Strategy::TwoPhase, &operation, &setting, &Terms::MEASURED).unwrap().parts;
        parts.iter().find(|(known, _)| *known == part).unwrap().1
    };
    let messages = |seconds: f64| (seconds / Terms::MEASURED.message_s).round() as u32;
    let describing = |ranks, describe, bytes| messages(of(Part::Describe, ranks, describe, bytes));
    // A sum over the ranks; a leader hears 127 others and answers them; and the 8 leaders describe theirs to each other.
    assert_eq!(describing(1024, None, 40), 20 + 2 * 127 + 7);
    // 32 leaders add up what they have, and who has it, at once, and all have something for each, itself counted.
    assert_eq!(describing(4096, None, 40), 24 + 2 * 127 + 10 + 32);
    // To write, 127 put their data there and hear that they are written; the leaders exchange them in one round.
    let bytes = 64.0 * 40.0 * 128.0;
    let moving = bytes * 7.0 / 8.0 / Terms::MEASURED.network_bytes_per_s;
    assert_eq!(messages(of(Part::Exchange, 1024, None, 40) - moving), 2 * 127 + 7);
    // Without leaders each rank describes its access to the 8 aggregators, of which each hears of all.
    assert_eq!(describing(1024, Some(Describe::Aggregators), 40), 20 + 20 + 1023);
    // Nor do they speak for ranks that have much.
    assert_eq!(describing(1024, None, 4000), 20 + 20 + 1023);
}

#[test]
fn who_has_a_part_of_the_file_has_few_partners() {
    let ranks = 4096_u64;
    let description = |rank: u64| {
        let bounds = rank * 12_800_000..rank * 12_800_000 + 12_700_000;
        Description { bytes: 64 * 100_000, pieces: 64, bounds, told_us: 0, access: None }
    };
    let operation = Operation::of(Direction::Read, 4096, &(0..ranks).map(description).collect::<Vec<_>>());
    // Strips are known: what is large is exchanged, too.
    let setting = Setting { strips_are_known: true, ..on_nodes(4096, None) };
    let parts = estimate(Strategy::TwoPhase, &operation, &setting, &Terms::MEASURED).unwrap().parts;
    let describing = parts.iter().find(|(part, _)| *part == Part::Describe).unwrap().1;
    // 32 aggregators have 128 ranks each in their domains, and some that reach into the next.
    let partners = describing / Terms::MEASURED.message_s - 24.0 - 24.0;
    assert!((128.0..=256.0).contains(&partners), "{partners}");
}

#[test]
fn what_cannot_be_used_is_not_estimated() {
    let operation = interleaved(Direction::Write, 2, 100, 4);
    let file = Setting { views: false, ..setting(0, 2) };
    let strategies = |setting: &Setting| {
        possible(&operation, setting, &Terms::MEASURED).iter().map(|one| one.strategy).collect::<Vec<_>>()
    };
    assert_eq!(
        strategies(&file),
        [Strategy::Independent, Strategy::Sieving, Strategy::List, Strategy::TwoPhase]
    );
    assert_eq!(strategies(&setting(1, 2)).len(), 6);
}

#[test]
fn equal_costs_give_the_first_and_the_same_reason_again() {
    let nothing = Operation::of(Direction::Read, 4, &[]);
    let choice = choose(&nothing, &setting(2, 4), &Terms::MEASURED);
    assert_eq!((choice.strategy, choice.reason.as_str()), (Strategy::Independent, "no rank has data"));
    let operation = interleaved(Direction::Write, 2, 16_000, 4);
    let choice = choose(&operation, &setting(1, 2), &Terms::MEASURED);
    assert_eq!(choice, choose(&operation, &setting(1, 2), &Terms::MEASURED));
    assert!(choice.reason.starts_with("128000 bytes in 32000 pieces of 2 ranks: "), "{}", choice.reason);
    assert!(choice.reason.contains("independent"), "{}", choice.reason);
}

#[test]
fn ecio_sends_every_byte_once_and_two_phase_most_of_them_twice() {
    let operation = interleaved(Direction::Write, 4, 1_000_000, 4);
    let wire = |strategy| {
        let found = estimate(strategy, &operation, &setting(2, 4), &Terms::MEASURED).unwrap();
        found.wire_bytes as f64 / operation.bytes as f64
    };
    assert!(wire(Strategy::Ecio) < 1.001);
    assert!((wire(Strategy::TwoPhase) - 1.75).abs() < 0.01);
    assert!((wire(Strategy::List) - 5.0).abs() < 1.1);
}

fn scenes() -> impl Strategy_<Value = (Direction, u64, u64, u64, u32)> {
    (
        prop_oneof![Just(Direction::Read), Just(Direction::Write)],
        2_u64..64,
        2_u64..1 << 20,
        1_u64..1 << 16,
        0_u32..16,
    )
}

use proptest::strategy::Strategy as Strategy_;

fn all(operation: &Operation, setting: &Setting, terms: &Terms) -> Vec<Estimate> {
    possible(operation, setting, terms)
}

proptest! {
    #[test]
    fn more_work_never_takes_less((direction, ranks, pieces, bytes, servers) in scenes()) {
        let setting = setting(servers, ranks as u32);
        let few = all(&interleaved(direction, ranks, pieces, bytes), &setting, &Terms::MEASURED);
        for more in [interleaved(direction, ranks, pieces + 1, bytes), interleaved(direction, ranks, pieces, bytes + 1)] {
            for (few, more) in few.iter().zip(all(&more, &setting, &Terms::MEASURED)) {
                prop_assert!(more.seconds() >= few.seconds() * (1.0 - 1e-12), "{few:?} {more:?}");
            }
        }
    }

    #[test]
    fn better_hardware_never_takes_longer((direction, ranks, pieces, bytes, servers) in scenes()) {
        let operation = interleaved(direction, ranks, pieces, bytes);
        let setting = setting(servers, ranks as u32);
        let slow = Terms::MEASURED;
        let faster = [
            Terms { message_s: slow.message_s / 2.0, ..slow.clone() },
            Terms { network_bytes_per_s: slow.network_bytes_per_s * 2.0, ..slow.clone() },
            Terms { copy_bytes_per_s: slow.copy_bytes_per_s * 2.0, ..slow.clone() },
            Terms { piece_s: slow.piece_s / 2.0, ..slow.clone() },
            Terms { extent_s: slow.extent_s / 2.0, ..slow.clone() },
            Terms { read_s: slow.read_s / 2.0, write_s: slow.write_s / 2.0, ..slow.clone() },
            Terms { lock_s: slow.lock_s / 2.0, ..slow.clone() },
            Terms { read_bytes_per_s: slow.read_bytes_per_s * 2.0, ..slow.clone() },
            Terms { write_bytes_per_s: slow.write_bytes_per_s * 2.0, ..slow.clone() },
        ];
        for fast in faster {
            for (slow, fast) in all(&operation, &setting, &slow).iter().zip(all(&operation, &setting, &fast)) {
                prop_assert!(fast.seconds() <= slow.seconds(), "{slow:?} {fast:?}");
            }
        }
    }

    #[test]
    fn nothing_is_faster_than_the_file((direction, ranks, pieces, bytes, servers) in scenes()) {
        let operation = interleaved(direction, ranks, pieces, bytes);
        let setting = setting(servers, ranks as u32);
        let rate = match direction {
            Direction::Read => Terms::MEASURED.read_bytes_per_s,
            Direction::Write => Terms::MEASURED.write_bytes_per_s,
        };
        let parallel = f64::from(if servers > 0 { servers } else { ranks as u32 });
        let limit = operation.bytes as f64 / rate / parallel;
        let estimates = all(&operation, &setting, &Terms::MEASURED);
        for estimate in &estimates {
            prop_assert!(estimate.seconds().is_finite() && estimate.seconds() >= limit * 0.999_999, "{estimate:?}");
        }
        let choice = choose(&operation, &setting, &Terms::MEASURED);
        let best = estimates.iter().find(|one| one.strategy == choice.strategy).unwrap().seconds();
        // Who exchanges data must be twice as fast, and a tenth is nothing.
        let least = |one: &Estimate| best / 1.1 / if one.strategy.sends_messages() { 2.0 } else { 1.0 };
        prop_assert!(estimates.iter().all(|one| one.seconds() >= least(one)));
    }

    #[test]
    fn no_number_is_too_large(pieces in 1_u64..=u64::MAX, span in 1_u64..=u64::MAX, ranks in 1_u32..=u32::MAX, servers: u32) {
        let bytes = span.min(pieces.max(span / 3));
        let one = Description { bytes, pieces: pieces.min(bytes), bounds: 0..span, told_us: 0, access: None };
        for direction in WAYS {
            let operation = Operation::of(direction, ranks, &[one.clone(), one.clone()]);
            for estimate in all(&operation, &setting(servers, ranks), &Terms::MEASURED) {
                prop_assert!(estimate.seconds().is_finite());
            }
        }
    }
}
