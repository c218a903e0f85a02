//! The automatic choice where I/O servers are behind calls to the kernel: small requests queue at the few servers that have a small
//! file's strips.

#[path = "../../examples/choices.rs"]
#[allow(dead_code, reason = "it is a program of its own")]
mod choices;

use pio_machine::Machine;
use pio_plan::Strategy;

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
