//! Queueing networks, statistics on.

use pio_machine::Duration;
use pio_sim::kernel::{Events, Queue, Stop, Stream, Time};
use pio_sim::queueing::{Class, Options, Place, QueueingNetwork, Service, Source, Station, Visit, run};

use crate::measure::{Part, against_bare_loop};

pub(crate) const PART: Part = Part { name: "queueing", run: measure };

const JOBS: u64 = 500_000;

fn measure() {
    let one = station();
    against_bare_loop("M/M/1, load 0.7", "events", || events(&one));
    let node = io_node();
    against_bare_loop("I/O node of 4 stations, 64 jobs going round", "events", || events(&node));
    against_bare_loop("4 stations that know when they are free", "jobs", by_time);
    against_bare_loop("4 stations that know who waits", "jobs", by_line);
}

fn events(model: &QueueingNetwork) -> u64 {
    let stop = Stop { count: Some(JOBS), ..Stop::default() };
    let options = Options { seed: 1, warm_up: None, stop };
    // Both models can be.
    run(model, &options, &mut |_| {}).map_or(0, |outcome| outcome.events)
}

fn us(count: u64) -> Duration {
    Duration::from_picoseconds(count * 1_000_000)
}

fn exponential(mean_us: u64) -> Service {
    Service::Exponential(us(mean_us))
}

fn station() -> QueueingNetwork {
    let class = Class {
        name: "job".to_owned(),
        source: Source::Open(exponential(10)),
        visits: vec![Visit::last(0, exponential(7))],
    };
    QueueingNetwork {
        name: "M/M/1".to_owned(),
        stations: vec![Place::servers("server", 1)],
        classes: vec![class],
    }
}

/// Compute nodes that think and ask; adapter, CPU, cache that hits seven times in ten, four disks.
fn io_node() -> QueueingNetwork {
    let class = Class {
        name: "request".to_owned(),
        source: Source::Closed(64),
        visits: vec![
            Visit::then(0, exponential(1_000), 1),
            Visit::then(1, Service::Constant(us(4)), 2),
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
    QueueingNetwork { name: "I/O node".to_owned(), stations, classes: vec![class] }
}

/// What the stations of an I/O node could be: four in a row, each busy for 0.7 of the time, as what they know.
const STATIONS: usize = 4;

/// An open load for them; for each job, when it comes.
fn arrivals() -> impl Iterator<Item = Time> {
    let mut stream = Stream::named(1, "arrivals");
    let mut now = Time::default();
    (0..JOBS).map(move |_| {
        now = now + stream.duration_exponential(us(10));
        now
    })
}

/// How many jobs pass stations of which each knows when it will be free.
fn by_time() -> u64 {
    let mut stations = vec![Queue::default(); STATIONS];
    let (mut events, mut coming, mut done) = (Events::new(), arrivals(), 0);
    coming.next().into_iter().for_each(|time| events.add(time, 0));
    while let Some((now, station)) = events.pop() {
        if station == 0 {
            coming.next().into_iter().for_each(|time| events.add(time, 0));
        }
        match stations.get_mut(station) {
            Some(queue) => events.add(queue.serve(now, us(7)).1, station + 1),
            None => done += 1,
        }
    }
    done
}

/// The same with stations that keep a line.
fn by_line() -> u64 {
    let mut stations: Vec<Station<()>> = (0..STATIONS).map(|_| Station::new(Some(1), None)).collect();
    let (mut events, mut coming, mut done) = (Events::<Option<usize>>::new(), arrivals(), 0);
    // A job comes from outside, or its service at a station is over.
    coming.next().into_iter().for_each(|time| events.add(time, None));
    while let Some((now, served)) = events.pop() {
        if served.is_none() {
            coming.next().into_iter().for_each(|time| events.add(time, None));
        }
        if let Some(station) = served
            && stations[station].leave(now).is_some()
        {
            events.add(now + us(7), Some(station));
        }
        let next = served.map_or(0, |station| station + 1);
        let Some(station) = stations.get_mut(next) else {
            done += 1;
            continue;
        };
        if station.arrive(now, ()).is_some() {
            events.add(now + us(7), Some(next));
        }
    }
    done
}
