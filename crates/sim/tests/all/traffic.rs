//! Open-loop traffic: what is measured of a network that is known.

use std::collections::VecDeque;

use pio_machine::Duration;
use pio_sim::kernel::{Model, Time};
use pio_sim::network::traffic::{Arrivals, Pattern, Permutation, Size, Span, Traffic, TrafficError};
use pio_sim::network::{Delivery, MessageId, Network};

/// Every node is a server for what it receives, a byte a nanosecond, first come, first served: an M/G/1 queue.
struct Servers {
    free_at: Vec<Time>,
    under_way: VecDeque<Delivery>,
}

impl Servers {
    fn new(nodes: usize) -> Servers {
        Servers { free_at: vec![Time(0); nodes], under_way: VecDeque::new() }
    }
}

impl Network for Servers {
    fn nodes(&self) -> u32 {
        self.free_at.len() as u32
    }

    fn send(&mut self, now: Time, message: MessageId, _from: u32, to: u32, bytes: u64) {
        let free_at = &mut self.free_at[to as usize];
        let first_byte = now.max(*free_at);
        *free_at = first_byte + Duration::from_picoseconds(1000 * bytes);
        let place = self.under_way.partition_point(|other| other.last_byte <= *free_at);
        self.under_way.insert(place, Delivery { message, first_byte, last_byte: *free_at });
    }
}

impl Model for Servers {
    type Out = Delivery;

    fn next_time(&self) -> Option<Time> {
        self.under_way.front().map(|delivery| delivery.last_byte)
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        if self.next_time().is_some_and(|time| time <= until) {
            delivered.extend(self.under_way.pop_front());
        }
    }
}

fn span(measured_ns: u64) -> Span {
    let ns = |ns: u64| Duration::from_picoseconds(1000 * ns);
    Span { warm_up: ns(measured_ns / 10), measured: ns(measured_ns) }
}

#[test]
fn waiting_times_are_those_of_the_queue() {
    // Pollaczek and Khinchine: the mean time in an M/G/1 queue is s + s rho (1 + c^2) / (2 (1 - rho)).
    let cases = [
        (Size::Fixed(100), 0.5, 150.0),
        (Size::Fixed(100), 0.8, 300.0),
        (Size::Exponential(100), 0.5, 200.0),
    ];
    for (size, load, expected_ns) in cases {
        let pattern = Pattern::Permutation(Permutation::Neighbour);
        let traffic = Traffic { pattern, arrivals: Arrivals::Exponential, size, messages_per_s: load * 1e7 };
        let point = traffic.run(&mut Servers::new(4), span(20_000_000), 1).expect("possible");
        let mean_ns = point.mean_s * 1e9;
        assert!((mean_ns - expected_ns).abs() < 0.03 * expected_ns, "{mean_ns} is not {expected_ns}");
        assert!(point.half_width_s * 1e9 < 0.05 * expected_ns, "{point:?}");
        assert!((point.accepted_bytes_per_s / (load * 1e9) - 1.0).abs() < 0.01, "{point:?}");
        assert!(!point.is_unstable);
    }
}

#[test]
fn a_network_that_does_not_keep_up_is_unstable_and_takes_what_it_can() {
    let traffic = Traffic {
        pattern: Pattern::HotSpot { nodes: vec![2], share: 1.0 },
        arrivals: Arrivals::Uniform,
        size: Size::Fixed(100),
        messages_per_s: 1e7,
    };
    let point = traffic.run(&mut Servers::new(4), span(1_000_000), 1).expect("possible");
    assert!(point.is_unstable);
    // One server for four nodes, of which three send.
    assert!((point.accepted_bytes_per_s / 0.25e9 - 1.0).abs() < 0.001, "{point:?}");
    assert!((point.offered_bytes_per_s / 0.75e9 - 1.0).abs() < 0.001, "{point:?}");
}

#[test]
fn impossible_traffic_is_refused_by_name() {
    let good = Traffic {
        pattern: Pattern::Uniform { to_self: false },
        arrivals: Arrivals::Exponential,
        size: Size::Fixed(1),
        messages_per_s: 1.0,
    };
    let slot = Duration::from_picoseconds(1_000_000);
    let cases = [
        (Traffic { messages_per_s: 0.0, ..good.clone() }, "0 messages a second from each node"),
        (Traffic { messages_per_s: f64::NAN, ..good.clone() }, "NaN messages a second"),
        (
            Traffic { arrivals: Arrivals::Bernoulli { slot }, messages_per_s: 2e6, ..good.clone() },
            "at most one a slot",
        ),
        (
            Traffic { pattern: Pattern::HotSpot { nodes: vec![6], share: 0.1 }, ..good.clone() },
            "hot spot at node 6",
        ),
        (
            Traffic { pattern: Pattern::HotSpot { nodes: vec![1], share: 1.5 }, ..good.clone() },
            "a share of 1.5",
        ),
        (
            Traffic { pattern: Pattern::HotSpot { nodes: vec![], share: 0.5 }, ..good.clone() },
            "at least one hot spot",
        ),
        (
            Traffic { pattern: Pattern::Permutation(Permutation::Shuffle), ..good.clone() },
            "shuffle traffic between 6",
        ),
    ];
    for (traffic, expected) in cases {
        let error = traffic.run(&mut Servers::new(6), span(1000), 1).expect_err("impossible");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let nothing = Span { warm_up: slot, measured: Duration::ZERO };
    assert_eq!(good.run(&mut Servers::new(6), nothing, 1), Err(TrafficError::Nothing));
}

#[test]
fn same_seed_same_result() {
    let traffic = Traffic {
        pattern: Pattern::Uniform { to_self: true },
        arrivals: Arrivals::Exponential,
        size: Size::Exponential(50),
        messages_per_s: 1e7,
    };
    let run = |seed| traffic.run(&mut Servers::new(5), span(100_000), seed).expect("possible");
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
