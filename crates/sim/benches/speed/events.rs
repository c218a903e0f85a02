//! The event queue itself against the standard library's heap: as many events waiting all the time, other distances.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pio_sim::kernel::{Events, Stream, Time};

use crate::measure::{Part, ROUNDS, distances, millions, rate};

pub(crate) const PART: Part = Part { name: "events", run };

const EVENTS: u64 = 2_000_000;

fn run() {
    for (name, distances) in mixes() {
        for pending in [100, 1_000, 10_000, 100_000, 1_000_000] {
            let (mut queue, mut heap) = (0.0_f64, 0.0_f64);
            for _ in 0..ROUNDS {
                heap = heap.max(with_heap(pending, &distances));
                queue = queue.max(with_queue(pending, &distances));
            }
            println!(
                "  {name:<12} {pending:>9} waiting {:>10} events/s · std heap {:>9} · {:.2} : 1",
                millions(queue),
                millions(heap),
                queue / heap
            );
        }
    }
}

/// Distances of an event from the one that adds it.
fn mixes() -> [(&'static str, Vec<u64>); 4] {
    let mut stream = Stream::named(1, "mixes");
    let mut draw = |distance: &mut dyn FnMut(&mut Stream) -> u64| -> Vec<u64> {
        (0..1 << 16).map(|_| distance(&mut stream)).collect()
    };
    [
        ("exponential", distances()),
        // A network of 5 ns cycles: many ties.
        ("cycles", draw(&mut |stream| 5_000 * (1 + stream.below(20)))),
        // Messages and disks: five orders of magnitude apart.
        (
            "two scales",
            draw(&mut |stream| {
                if stream.chance(0.9) { stream.below(100_000) } else { stream.below(10_000_000_000) }
            }),
        ),
        ("equal", vec![1_000_000]),
    ]
}

/// Events a second; those that fill the queue do not count.
fn with_queue(pending: u64, distances: &[u64]) -> f64 {
    let mut events = Events::new();
    let distance = |index: u64| distances[index as usize % distances.len()];
    (0..pending).for_each(|index| events.add(Time(distance(index)), [index; 2]));
    let mut turn = |first: u64, count: u64| {
        for index in first..first + count {
            let Some((now, what)) = events.pop() else { break };
            events.add(Time(now.0 + distance(index)), what);
        }
        count
    };
    turn(pending, pending);
    rate(|| turn(2 * pending, EVENTS))
}

fn with_heap(pending: u64, distances: &[u64]) -> f64 {
    let mut events = BinaryHeap::new();
    let distance = |index: u64| distances[index as usize % distances.len()];
    (0..pending).for_each(|index| events.push(Reverse((distance(index), index, [index; 2]))));
    let mut turn = |first: u64, count: u64| {
        for index in first..first + count {
            let Some(Reverse((now, _, what))) = events.pop() else { break };
            events.push(Reverse((now + distance(index), index, what)));
        }
        count
    };
    turn(pending, pending);
    rate(|| turn(2 * pending, EVENTS))
}
