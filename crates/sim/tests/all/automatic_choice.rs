//! The automatic choice where I/O servers are behind calls to the kernel: small requests queue at the few servers that have a small
//! file's strips. And where ranks come late.

#[path = "../../examples/choices.rs"]
#[allow(dead_code, reason = "it is a program of its own")]
mod choices;

use pio_layout::{Datatype, View};
use pio_machine::{Duration, Machine, Nodes, Storage};
use pio_plan::{Direction, Hints, Strategy};
use pio_sim::workload::{Open, Step, What, Workload};
use pio_sim::{Options, simulate};
use pio_trace::{Call, File, HandleId, Op, ViewId};

/// Before ranks know how long they wait for each other, those that exchange data must be twice as fast; and it takes time to find out.
const FACTOR: f64 = 3.0;

#[test]
fn small_requests_of_many_ranks_to_few_servers_are_put_together() {
    let mut machine = Machine::built_in("dragonfly-2048").unwrap();
    let ranks = 256;
    for cores in [8, 128] {
        machine.nodes.cores = cores;
        let scenes = choices::scenes(ranks).unwrap();
        let small = scenes.iter().filter(|scene| scene.name.contains("64 x 40 B"));
        assert_eq!(small.clone().count(), 4);
        for scene in small {
            let time = |strategy| scene.time(&machine, ranks, strategy).unwrap();
            let best = [Strategy::Sieving, Strategy::List, Strategy::TwoPhase].map(time).into_iter();
            let (best, auto) = (best.fold(f64::INFINITY, f64::min), time(Strategy::Auto));
            assert!(auto <= FACTOR * best, "{}, {cores} cores a node: {auto} ms, {best} ms", scene.name);
        }
    }
}

/// Two ranks that write interleaved pieces to a file of their node so many times: each step one of them, in turn, comes later than the
/// other by so many milliseconds. What they do by themselves is in memory in half a millisecond.
fn late(steps: u64, late_ms: u64) -> Workload {
    let ms = |time: u64| Duration::from_picoseconds(time * 1_000_000_000);
    let (piece, pieces) = (512, 64);
    let tile = |rank: u64| {
        let gap = Datatype::bytes(piece).resized(0, 2 * piece as i64).unwrap();
        View::new(rank * piece, 1, gap).unwrap()
    };
    let open = |rank: u64| Open { file: 0, rank: rank as u32, group: Some(0), collective: 1 };
    let program = |rank: u64| {
        let (handle, view) = (HandleId(rank as u32), ViewId(rank as u32));
        let step = |think, what| Step { think, idle: Duration::ZERO, what };
        let write = |number: u64| {
            let bytes = piece * pieces;
            let positions = number * bytes..(number + 1) * bytes;
            let (call, direction) = (Call::MpiFileWriteAll, Direction::Write);
            let what = What::Access { handle, call, direction, view, positions, collective: true };
            step(ms(5 + if number % 2 == rank { late_ms } else { 0 }), what)
        };
        let begin = [What::Open(handle), What::SetView(handle, view)].map(|what| step(Duration::ZERO, what));
        begin.into_iter().chain((0..steps).map(write)).collect()
    };
    Workload {
        name: "late".to_owned(),
        files: vec![File { path: "/late".to_owned() }],
        handles: [0, 1].map(open).to_vec(),
        views: [0, 1].map(tile).to_vec(),
        groups: vec![vec![0, 1]],
        programs: [0, 1].map(program).to_vec(),
        ..Workload::default()
    }
}

#[test]
fn late_ranks_are_waited_for_once() {
    let mut machine = Machine::built_in("dragonfly-2048").unwrap();
    machine.storage = Storage::Local { exclusive_writes: true };
    machine.nodes = Nodes { count: 1, cores: 2, ..machine.nodes };
    let options = Options { ranks_per_node: Some(2), ..Options::default() };
    let messages = |late_ms| {
        let (workload, hints) = (late(40, late_ms), Hints::default());
        let found =
            simulate(&machine, &workload, Strategy::Auto, &hints, &options, None, &mut |_| {}).unwrap();
        found.operation(Op::Communicate).count
    };
    assert_eq!(messages(20), 2, "each rank describes its access once");
    assert!(messages(0) > 2, "who waits for nobody asks whether an exchange pays");
}
