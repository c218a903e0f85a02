//! Queueing networks against the closed forms of the theory, within the confidence intervals of the simulation.
//!
//! An interval of 95 % misses one time in twenty (of the 15 here, those of other seeds miss none to two): the seed is
//! fixed, so a test that passes passes always. That such a test can fail is checked too: the intervals are narrow, and
//! those of one queue do not hold another's value.

use pio_machine::Duration;
use pio_sim::kernel::{Estimate, Stop, Time};
use pio_sim::queueing::{Class, Options, Outcome, Place, QueueingNetwork, Service, Source, Visit, run};

const SEED: u64 = 4;
const JOBS: u64 = 300_000;

fn ms(number: f64) -> Duration {
    Duration::from_seconds(number * 1e-3)
}

fn exponential(mean_ms: f64) -> Service {
    Service::Exponential(ms(mean_ms))
}

fn simulate(model: &QueueingNetwork, jobs: u64) -> Outcome {
    let stop = Stop { count: Some(jobs), ..Stop::default() };
    let options = Options { seed: SEED, warm_up: Some(Time(2_000_000_000_000)), stop };
    run(model, &options, &mut |_| {}).expect("a model that can be")
}

/// Jobs that come at random, one every `interval_ms` on average, to one station.
fn single(place: Place, interval_ms: f64, service: Service) -> QueueingNetwork {
    let source = Source::Open(exponential(interval_ms));
    let class = Class { name: "job".to_owned(), source, visits: vec![Visit::last(0, service)] };
    QueueingNetwork { name: "single".to_owned(), stations: vec![place], classes: vec![class] }
}

fn response(outcome: &Outcome) -> Estimate {
    outcome.classes[0].response_mean.expect("many jobs")
}

/// The interval is narrow and holds the value.
fn assert_holds(estimate: Estimate, expected: f64) {
    assert!(estimate.relative_half_width() < 0.04, "too wide to say anything: {estimate:?}");
    assert!(estimate.contains(expected), "{expected} is not in {estimate:?}");
}

/// Pollaczek and Khinchine's mean response time, seconds.
fn pollaczek_khinchine(interval_ms: f64, service: Service) -> f64 {
    let rate = 1e3 / interval_ms;
    let load = rate * service.mean_s();
    service.mean_s() + rate * service.mean_square_s2() / (2.0 * (1.0 - load))
}

#[test]
fn m_m_1() {
    let outcome = simulate(&single(Place::servers("cpu", 1), 10.0, exponential(7.0)), JOBS);
    // 1 / (service rate - arrival rate).
    let expected = 1.0 / (1.0 / 0.007 - 1.0 / 0.010);
    assert_holds(response(&outcome), expected);
    let station = &outcome.stations[0];
    assert!((station.busy / 0.7 - 1.0).abs() < 0.01, "{station:?}");
    assert!((station.throughput / 100.0 - 1.0).abs() < 0.01, "{station:?}");
    // Little's law, for the same jobs over the same time.
    let little = station.throughput * response(&outcome).mean;
    assert!((station.population / little - 1.0).abs() < 0.01, "{station:?}");
    // The response time is exponential.
    let p99 = outcome.classes[0].response.percentile(99.0) as f64 * 1e-12;
    assert!((p99 / (expected * 100.0_f64.ln()) - 1.0).abs() < 0.05, "{p99}");
}

#[test]
fn m_d_1_and_not_m_m_1() {
    let service = Service::Constant(ms(7.0));
    let outcome = simulate(&single(Place::servers("disk", 1), 10.0, service), JOBS);
    assert_holds(response(&outcome), pollaczek_khinchine(10.0, service));
    assert!(!response(&outcome).contains(pollaczek_khinchine(10.0, exponential(7.0))));
    // Two per cent more load can be told.
    assert!(!response(&outcome).contains(pollaczek_khinchine(9.8, service)));
}

#[test]
fn m_g_1_of_every_distribution() {
    let services = [
        Service::Uniform(ms(1.0), ms(11.0)),
        Service::Erlang { stages: 3, mean: ms(6.0) },
        Service::Hyperexponential { share: 0.9, first: ms(4.0), second: ms(20.0) },
        Service::Lognormal { mean: ms(5.0), standard_deviation: ms(6.0) },
    ];
    for service in services {
        let outcome = simulate(&single(Place::servers("disk", 1), 10.0, service), JOBS);
        assert_holds(response(&outcome), pollaczek_khinchine(10.0, service));
    }
}

#[test]
fn m_m_c() {
    let (servers, load) = (4, 3.2_f64);
    let outcome = simulate(&single(Place::servers("disks", servers), 10.0, exponential(load * 10.0)), JOBS);
    // Erlang's C: the probability to wait.
    let term = |count: u32| (1..=count).map(|index| load / f64::from(index)).product::<f64>();
    let all_busy = term(servers) * f64::from(servers) / (f64::from(servers) - load);
    let waits = all_busy / ((0..servers).map(term).sum::<f64>() + all_busy);
    let service_s = load * 0.010;
    assert_holds(response(&outcome), service_s + waits * service_s / (f64::from(servers) - load));
}

#[test]
fn m_m_1_with_room_for_five_loses_what_it_should() {
    let load = 0.9_f64;
    let place = Place::servers("buffer", 1).with_room(5);
    let outcome = simulate(&single(place, 10.0, exponential(load * 10.0)), JOBS);
    let class = &outcome.classes[0];
    let lost = class.lost as f64 / (class.lost + class.done) as f64;
    let expected = (1.0 - load) * load.powi(5) / (1.0 - load.powi(6));
    assert!((lost / expected - 1.0).abs() < 0.03, "{lost} is not {expected}");
    assert_eq!(outcome.stations[0].population_max, 5);
}

#[test]
fn machine_repairman() {
    // Ten machines run for 100 ms on average, then wait for the one repairman, who takes 15 ms.
    let (machines, run_ms, repair_ms) = (10, 100.0, 15.0);
    let class = Class {
        name: "machine".to_owned(),
        source: Source::Closed(machines),
        visits: vec![Visit::then(0, exponential(run_ms), 1), Visit::last(1, exponential(repair_ms))],
    };
    let stations = vec![Place::delay("running"), Place::servers("repairman", 1)];
    let outcome =
        simulate(&QueueingNetwork { name: "repairman".to_owned(), stations, classes: vec![class] }, JOBS);
    // The probability of k broken machines is that of none times N! / (N - k)! (repair / run)^k.
    let ratio = repair_ms / run_ms;
    let mut weights = vec![1.0];
    for broken in 0..machines {
        weights.push(weights[broken as usize] * f64::from(machines - broken) * ratio);
    }
    let busy = 1.0 - 1.0 / weights.iter().sum::<f64>();
    let throughput = busy / (repair_ms * 1e-3);
    assert_holds(response(&outcome), f64::from(machines) / throughput);
    assert!((outcome.stations[1].busy / busy - 1.0).abs() < 0.01);
}

#[test]
fn open_jackson_network() {
    // From the CPU, 60 % go to the disk, 30 % to the network, 10 % out; from both back to the CPU.
    let class = Class {
        name: "request".to_owned(),
        source: Source::Open(exponential(100.0)),
        visits: vec![
            Visit { station: 0, service: exponential(5.0), next: vec![(0.6, 1), (0.3, 2)] },
            Visit::then(1, exponential(10.0), 0),
            Visit::then(2, exponential(30.0), 0),
        ],
    };
    let stations = vec![Place::servers("cpu", 1), Place::servers("disk", 1), Place::servers("network", 2)];
    let outcome =
        simulate(&QueueingNetwork { name: "jackson".to_owned(), stations, classes: vec![class] }, 50_000);
    // Visits of a request: 10 to the CPU, 6 to the disk, 3 to the network. Loads 0.5, 0.6, and 0.9 of two servers.
    let m_m_1 = |service_s: f64, rate: f64| service_s / (1.0 - rate * service_s);
    let stays = [m_m_1(0.005, 100.0), m_m_1(0.010, 60.0), 0.030 / (1.0 - 0.45 * 0.45)];
    for (station, expected) in outcome.stations.iter().zip(stays) {
        assert_holds(station.stay.expect("many jobs"), expected);
    }
    assert_holds(response(&outcome), 10.0 * stays[0] + 6.0 * stays[1] + 3.0 * stays[2]);
}

#[test]
fn closed_network_by_mean_value_analysis() {
    let demands_ms = [5.0, 8.0, 3.0];
    let (think_ms, jobs) = (30.0, 8);
    let class = Class {
        name: "terminal".to_owned(),
        source: Source::Closed(jobs),
        visits: vec![
            Visit::then(3, exponential(think_ms), 1),
            Visit::then(0, exponential(demands_ms[0]), 2),
            Visit::then(1, exponential(demands_ms[1]), 3),
            Visit::last(2, exponential(demands_ms[2])),
        ],
    };
    let mut stations: Vec<Place> = ["cpu", "disk", "bus"].map(|name| Place::servers(name, 1)).to_vec();
    stations.push(Place::delay("think"));
    let outcome =
        simulate(&QueueingNetwork { name: "closed".to_owned(), stations, classes: vec![class] }, JOBS / 2);
    // Reiser and Lavenberg: a job that comes sees the others as if it were not there.
    let (mut lengths, mut cycle) = ([0.0; 3], 0.0);
    for count in 1..=jobs {
        let stays = [0, 1, 2].map(|station| demands_ms[station] * 1e-3 * (1.0 + lengths[station]));
        cycle = think_ms * 1e-3 + stays.iter().sum::<f64>();
        lengths = stays.map(|stay| f64::from(count) / cycle * stay);
    }
    assert_holds(response(&outcome), cycle);
    for (station, length) in outcome.stations.iter().zip(lengths) {
        assert!((station.population / length - 1.0).abs() < 0.02, "{station:?} is not {length}");
    }
}

#[test]
fn a_full_station_blocks_the_one_before() {
    // Two servers in line with no room between, always something to do: each state (second idle, both busy, first
    // blocked) has probability 1/3, so the line does 2/3 of what one server could.
    let class = Class {
        name: "part".to_owned(),
        source: Source::Closed(3),
        visits: vec![Visit::then(0, exponential(10.0), 1), Visit::last(1, exponential(10.0))],
    };
    let stations = vec![Place::servers("first", 1), Place::servers("second", 1).with_room(1)];
    let outcome =
        simulate(&QueueingNetwork { name: "line".to_owned(), stations, classes: vec![class] }, JOBS / 2);
    assert_holds(response(&outcome), 3.0 / (100.0 * 2.0 / 3.0));
    assert!((outcome.stations[0].busy - 1.0).abs() < 1e-9);
}

#[test]
fn stations_that_wait_for_each_other_are_found() {
    let class = |name: &str, from, to| Class {
        name: name.to_owned(),
        source: Source::Closed(1),
        visits: vec![Visit::then(from, exponential(1.0), 1), Visit::last(to, exponential(1.0))],
    };
    let stations = ["left", "right"].map(|name| Place::servers(name, 1).with_room(1)).to_vec();
    let classes = vec![class("there", 0, 1), class("back", 1, 0)];
    let model = QueueingNetwork { name: "swap".to_owned(), stations, classes };
    let stop = Stop { count: Some(JOBS), ..Stop::default() };
    let options = Options { seed: SEED, warm_up: None, stop };
    let message = run(&model, &options, &mut |_| {}).unwrap_err().to_string();
    assert!(message.starts_with("queueing network swap: 2 jobs block each other for ever"), "{message}");
}

#[test]
fn same_seed_same_outcome_and_an_interval_may_end_a_run() {
    let model = single(Place::servers("cpu", 1), 10.0, exponential(5.0));
    let stop = Stop { relative_half_width: Some(0.02), ..Stop::default() };
    let with = |seed| {
        let mut shares = Vec::new();
        let options = Options { seed, warm_up: None, stop };
        let outcome = run(&model, &options, &mut |share| shares.push(share)).expect("a model that can be");
        assert_eq!(shares.last(), Some(&1.0));
        outcome
    };
    let (one, same, other) = (with(1), with(1), with(2));
    assert_eq!(one, same);
    assert_ne!(one, other);
    assert!(response(&one).relative_half_width() <= 0.02);
    let stop = Stop { time: Some(Time(5_000_000_000_000)), ..Stop::default() };
    let outcome = run(&model, &Options { seed: 1, warm_up: None, stop }, &mut |_| {}).expect("a model");
    assert_eq!(outcome.measured, Duration::from_seconds(5.0));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let good = single(Place::servers("cpu", 1), 10.0, exponential(5.0));
    let message = |change: &dyn Fn(&mut QueueingNetwork)| {
        let mut model = good.clone();
        change(&mut model);
        let stop = Stop { count: Some(1), ..Stop::default() };
        let options = Options { seed: 1, warm_up: None, stop };
        run(&model, &options, &mut |_| {}).expect_err("a model that cannot be").to_string()
    };
    assert_eq!(
        message(&|model| model.stations[0].servers = Some(0)),
        "queueing network single: servers of station cpu = 0: expected at least 1"
    );
    assert_eq!(
        message(&|model| model.classes[0].visits[0].station = 3),
        "queueing network single: station of visit 0 of class job = 3: expected one of 1 stations"
    );
    assert_eq!(
        message(&|model| model.classes[0].visits[0].next = vec![(0.7, 0), (0.7, 0)]),
        "queueing network single: probabilities after visit 0 of class job = 1.4: expected probabilities from 0 to 1 that sum to at most 1"
    );
    assert_eq!(
        message(&|model| model.classes[0].source = Source::Open(Service::Constant(Duration::ZERO))),
        "queueing network single: mean interval of class job = 0 s: expected more than 0 s"
    );
    assert_eq!(
        message(&|model| model.classes[0].source = Source::Closed(0)),
        "queueing network single: jobs of class job = 0: expected 1 to 16777216 with the other classes that begin at this station"
    );
    let no_time = Service::Constant(Duration::ZERO);
    let timeless = vec![
        Visit::then(0, exponential(1.0), 1),
        Visit { station: 0, service: no_time, next: vec![(0.5, 2)] },
        Visit::then(0, no_time, 1),
    ];
    assert_eq!(
        message(&|model| model.classes[0].visits = timeless.clone()),
        "queueing network single: service of visit 1 of class job = 0 s: expected a time above 0 in every cycle of visits"
    );
    let endless = Options { seed: 1, warm_up: None, stop: Stop::default() };
    let message_of_no_end = run(&good, &endless, &mut |_| {}).expect_err("no end").to_string();
    assert!(message_of_no_end.contains("expected a time, a count"), "{message_of_no_end}");
    assert!(message(&|model| model.classes.clear()).contains("at least one class of jobs"));
}
