//! Queueing networks, statistics on.

use pio_machine::Duration;
use pio_sim::kernel::Stop;
use pio_sim::queueing::{Class, Model, Options, Place, Service, Source, Visit, run};

use crate::measure::{Part, against_bare_loop};

pub(crate) const PART: Part = Part { name: "queueing", run: measure };

const JOBS: u64 = 500_000;

fn measure() {
    let one = station();
    against_bare_loop("M/M/1, load 0.7", "events", || events(&one));
    let node = io_node();
    against_bare_loop("I/O node of 4 stations, 64 jobs going round", "events", || events(&node));
}

fn events(model: &Model) -> u64 {
    let stop = Stop { count: Some(JOBS), ..Stop::default() };
    let options = Options { seed: 1, warm_up: None, stop };
    // Both models can be.
    run(model, &options, &mut |_| {}).map_or(0, |outcome| outcome.events)
}

fn exponential(us: u64) -> Service {
    Service::Exponential(Duration::from_picoseconds(us * 1_000_000))
}

fn station() -> Model {
    let class = Class {
        name: "job".to_owned(),
        source: Source::Open(exponential(10)),
        visits: vec![Visit::last(0, exponential(7))],
    };
    Model { name: "M/M/1".to_owned(), stations: vec![Place::servers("server", 1)], classes: vec![class] }
}

/// Compute nodes that think and ask; adapter, CPU, cache that hits seven times in ten, four disks.
fn io_node() -> Model {
    let class = Class {
        name: "request".to_owned(),
        source: Source::Closed(64),
        visits: vec![
            Visit::then(0, exponential(1_000), 1),
            Visit::then(1, Service::Constant(Duration::from_picoseconds(4_000_000)), 2),
            Visit { station: 2, service: exponential(5), next: vec![(0.3, 3)] },
            Visit::last(3, exponential(60)),
        ],
    };
    let stations = vec![
        Place::delay("compute nodes"),
        Place::servers("adapter", 1),
        Place::servers("cpu", 1),
        Place::servers("disks", 4),
    ];
    Model { name: "I/O node".to_owned(), stations, classes: vec![class] }
}
