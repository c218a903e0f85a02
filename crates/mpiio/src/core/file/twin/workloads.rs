//! Random workloads and hints.

use pio_layout::{Datatype, View};
use pio_plan::{Describe, Direction, Hints};
use pio_sim::Workload;
use pio_sim::workload::{Open, Step, What};
use pio_trace::{Call, HandleId, ViewId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A random view: pieces of random lengths, of every rank's tile its share.
fn any_view(random: &mut Pcg64Mcg, rank: u32, ranks: u32) -> View {
    let displacement = random.random_range(0..1000);
    let most: u64 = [64, 700, 40_000][random.random_range(0..3)];
    match random.random_range(0..4) {
        0 => View::contiguous(displacement + u64::from(rank) * 50_000),
        // Every so many-th piece of one size.
        1 => {
            let bytes = random.random_range(1..=most);
            let stride = (u64::from(ranks) * bytes + random.random_range(0..200)) as i64;
            let tile = Datatype::bytes(bytes).resized(0, stride).unwrap();
            View::new(displacement + u64::from(rank) * bytes, 1, tile).unwrap()
        }
        // Pieces of several sizes, in order.
        _ => {
            let mut at = 0;
            let mut pieces = Vec::new();
            for _ in 0..random.random_range(1..12) {
                let bytes = random.random_range(1..=most / 4 + 1);
                at += random.random_range(0..most) as i64;
                pieces.push((bytes, at));
                at += bytes as i64;
            }
            let tile = Datatype::indexed(&pieces, &Datatype::bytes(1)).unwrap();
            let extent = tile.layout().upper_bound() + random.random_range(0..100);
            View::new(displacement, 1, tile.resized(0, extent).unwrap()).unwrap()
        }
    }
}

/// How a rank calls for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Blocking,
    /// It goes on with the next one.
    Nonblocking,
    /// The same, but for collective ones. A rank has at most one of these at a time.
    Split,
}

impl How {
    fn any(random: &mut Pcg64Mcg, collective: bool) -> How {
        match random.random_range(0..4) {
            0 if collective => How::Split,
            0 | 1 => How::Nonblocking,
            _ => How::Blocking,
        }
    }

    fn call(self, direction: Direction, collective: bool) -> Call {
        match (direction, collective, self) {
            (Direction::Write, true, How::Blocking) => Call::MpiFileWriteAtAll,
            (Direction::Write, true, How::Nonblocking) => Call::MpiFileIwriteAtAll,
            (Direction::Write, true, How::Split) => Call::MpiFileWriteAtAllBegin,
            (Direction::Write, false, How::Blocking) => Call::MpiFileWriteAt,
            (Direction::Write, false, _) => Call::MpiFileIwriteAt,
            (Direction::Read, true, How::Blocking) => Call::MpiFileReadAtAll,
            (Direction::Read, true, How::Nonblocking) => Call::MpiFileIreadAtAll,
            (Direction::Read, true, How::Split) => Call::MpiFileReadAtAllBegin,
            (Direction::Read, false, How::Blocking) => Call::MpiFileReadAt,
            (Direction::Read, false, _) => Call::MpiFileIreadAt,
        }
    }
}

/// All ranks write, together and alone, waiting for it or not, and read it back.
pub(super) fn any_workload(random: &mut Pcg64Mcg, ranks: u32) -> Workload {
    let mut workload = Workload {
        name: "random".into(),
        // The name says on which server it begins.
        files: vec![pio_trace::File { path: format!("/data-{}", random.random::<u32>()) }],
        groups: vec![(0..ranks).collect()],
        programs: vec![Vec::new(); ranks as usize],
        ..Workload::default()
    };
    let handle = |rank| HandleId(rank);
    workload.handles = (0..ranks).map(|rank| Open { file: 0, rank, group: Some(0), collective: 1 }).collect();
    let step = |what| Step { think: pio_machine::Duration::ZERO, idle: pio_machine::Duration::ZERO, what };
    for rank in 0..ranks {
        workload.programs[rank as usize].push(step(What::Open(handle(rank))));
    }
    for _ in 0..random.random_range(1..3) {
        // Different only for ranks of whom one has nothing, or other pieces.
        let seed: u64 = random.random();
        let alike = random.random_bool(0.7);
        // What all do, part by part of their data.
        let parts: Vec<(bool, How)> = (0..random.random_range(1..6))
            .map(|_| {
                let collective = random.random_bool(0.6);
                (collective, How::any(random, collective))
            })
            .collect();
        for rank in 0..ranks {
            let mut own = Pcg64Mcg::seed_from_u64(if alike { seed } else { seed ^ u64::from(rank) });
            let view = any_view(&mut own, rank, ranks);
            let is_contiguous = view == View::contiguous(view.displacement());
            let most = if is_contiguous { 60_000 } else { 30 * view.filetype().size() };
            workload.views.push(view);
            let id = ViewId(workload.views.len() as u32 - 1);
            let bytes = if own.random_bool(0.1) { 0 } else { own.random_range(1..=most) };
            let program = &mut workload.programs[rank as usize];
            program.push(step(What::SetView(handle(rank), id)));
            let cut = |part: usize| bytes * part as u64 / parts.len() as u64;
            let each = parts.iter().enumerate();
            let each: Vec<_> =
                each.map(|(part, (all, how))| (*all, *how, cut(part)..cut(part + 1))).collect();
            let whole = (true, How::Blocking, 0..bytes);
            let written = each.iter().cloned().map(|part| (Direction::Write, part));
            let read = each.iter().cloned().chain([whole]).map(|part| (Direction::Read, part));
            for (direction, (collective, how, positions)) in written.chain(read) {
                let (handle, call) = (handle(rank), how.call(direction, collective));
                program.push(step(What::Access { handle, call, direction, view: id, positions, collective }));
            }
        }
    }
    for rank in 0..ranks {
        workload.programs[rank as usize].push(step(What::Close(handle(rank))));
    }
    workload
}

/// Three nodes of four ranks, of which the first has nothing: the others of its node write and read some steps of interleaved
/// pieces.
pub(super) fn leaders_without_data() -> Workload {
    let ranks = 12;
    let handle = HandleId;
    let step = |what| Step { think: pio_machine::Duration::ZERO, idle: pio_machine::Duration::ZERO, what };
    let program = |rank: u32| {
        let view = ViewId(rank);
        let mut program = vec![step(What::Open(handle(rank))), step(What::SetView(handle(rank), view))];
        for direction in [Direction::Write, Direction::Read] {
            for number in 0..3 {
                let bytes = if rank.is_multiple_of(4) { 0 } else { 64_000 };
                program.push(step(What::Access {
                    handle: handle(rank),
                    call: How::Blocking.call(direction, true),
                    direction,
                    view,
                    positions: number * bytes..(number + 1) * bytes,
                    collective: true,
                }));
            }
        }
        program.push(step(What::Close(handle(rank))));
        program
    };
    let view = |rank: u32| {
        let tile = Datatype::bytes(64).resized(0, i64::from(ranks) * 64).unwrap();
        View::new(u64::from(rank) * 64, 1, tile).unwrap()
    };
    Workload {
        name: "leaders without data".into(),
        files: vec![pio_trace::File { path: "/led".into() }],
        groups: vec![(0..ranks).collect()],
        views: (0..ranks).map(view).collect(),
        handles: (0..ranks).map(|rank| Open { file: 0, rank, group: Some(0), collective: 1 }).collect(),
        programs: (0..ranks).map(program).collect(),
        ..Workload::default()
    }
}

/// Hints, for some of them values at which what is read and written goes in several parts.
pub(super) fn any_hints(random: &mut Pcg64Mcg, ranks: u32) -> Hints {
    let mut buffer = |sizes: [u64; 3]| {
        let chosen = random.random_range(0..4);
        sizes.get(chosen).copied()
    };
    Hints {
        cb_buffer_size: buffer([4096, 30_000, 1 << 20]),
        ind_rd_buffer_size: buffer([4096, 10_000, 1 << 20]),
        ind_wr_buffer_size: buffer([4096, 10_000, 1 << 20]),
        striping_unit: buffer([512, 4096, 65_536]),
        striping_factor: random.random_bool(0.5).then(|| random.random_range(1..=4)),
        cb_nodes: random.random_bool(0.5).then(|| random.random_range(1..=ranks)),
        describe: [None, Some(Describe::All), Some(Describe::Aggregators), Some(Describe::Leaders)]
            [random.random_range(0..4)],
        ..Hints::default()
    }
}
