//! Synthetic traffic on the network of a machine alone, by name: latency and accepted throughput at a load.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pio_machine::{Duration, Machine, Switching, parse_size};
use pio_sim::network::described;
use pio_sim::network::traffic::{Arrivals, LoadPoint, Pattern, Permutation, Size, Span, Traffic};

use crate::workload::Setting;

const PERMUTATIONS: [Permutation; 6] = [
    Permutation::Transpose,
    Permutation::BitComplement,
    Permutation::BitReverse,
    Permutation::Shuffle,
    Permutation::Tornado,
    Permutation::Neighbour,
];

/// The patterns by name, and what they are.
pub(crate) const PATTERNS: &[(&str, &str)] = &[
    ("uniform", "every message to any node, each as likely"),
    ("hot-spot", "a share of the messages to some nodes, the others to any"),
    ("transpose", "upper and lower half of the bits of the node's number exchanged"),
    ("bit-complement", "every bit of the node's number flipped"),
    ("bit-reverse", "the bits of the node's number in the opposite order"),
    ("shuffle", "the bits of the node's number rotated left by one"),
    ("tornado", "half way round"),
    ("neighbour", "to the next node"),
    ("shift", "to the node so many further"),
];

/// What can be chosen: name, what it means and can be, default.
pub(crate) const PARAMETERS: &[(&str, &str, &str)] = &[
    ("load", "share of a node's link that its packets take, their headers included: above 0", "0.1"),
    ("bytes", "size of a message, with its unit", "what one packet carries, or 4 KiB"),
    ("sizes", "fixed, or exponential with this mean", "fixed"),
    (
        "arrivals",
        "bernoulli (in each cycle), exponential or uniform",
        "bernoulli; without cycles exponential",
    ),
    ("to-self", "uniform: whether nodes send to themselves through the network, yes or no", "yes"),
    ("hot", "hot-spot: numbers of the nodes, joined by +", "0"),
    ("share", "hot-spot: share of the messages to these nodes, from 0 to 1", "0.1"),
    ("by", "shift: how many nodes further; the nodes of a group are a dragonfly's worst", "1"),
    ("warm-up", "simulated time not measured, with its unit", "10000 cycles, or 1000 messages on a link"),
    ("measured", "simulated time measured, with its unit", "30000 cycles, or 5000 messages on a link"),
];

/// The names of the patterns.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|(name, _)| *name)
}

/// Whether a workload is traffic.
pub(crate) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// What a network does at a load.
pub(crate) struct Found {
    /// As the network measured it.
    pub point: LoadPoint,
    /// Offered and accepted as shares of a node's link.
    pub offered: f64,
    pub accepted: f64,
}

/// Sends the traffic of this name through a machine's network; of parameters given twice the last counts.
pub(crate) fn run(name: &str, parameters: &[Setting], machine: &Machine, seed: u64) -> Result<Found> {
    let given = Given { traffic: name, parameters };
    given.check_names()?;
    let nodes = machine.nodes.count;
    let network = described(&machine.network, nodes, &[], seed);
    let mut network = network.with_context(|| format!("machine {}", machine.name))?;
    let wire = Wire::of(machine);
    let bytes = given
        .read("bytes", "a size with its unit, above 0", |text| parse_size(text).filter(|size| *size > 0))?;
    let bytes = bytes.unwrap_or(wire.packet_bytes);
    let load = given.positive("load")?.unwrap_or(0.1);
    let bandwidth = wire.bytes_per_s;
    // Of the link's bytes, so many are a message's own.
    let own_share = bytes as f64 / wire.bytes_of(bytes) as f64;
    let traffic = Traffic {
        pattern: given.pattern()?,
        arrivals: given.arrivals(wire.cycle)?,
        size: match given.word("sizes", &["fixed", "exponential"])? {
            Some("exponential") => Size::Exponential(bytes),
            _ => Size::Fixed(bytes),
        },
        messages_per_s: load * bandwidth * own_share / bytes as f64,
    };
    let unit = wire.cycle.map_or(1e4 * bytes as f64 / bandwidth / 10.0, |cycle| 1e4 * cycle.seconds());
    let most = |text: &str| Duration::parse(text);
    let expected = "a time with its unit";
    let span = Span {
        warm_up: given.read("warm-up", expected, most)?.unwrap_or_else(|| Duration::from_seconds(unit)),
        measured: given.read("measured", expected, most)?.unwrap_or_else(|| {
            Duration::from_seconds(if wire.cycle.is_some() { 3.0 * unit } else { 5.0 * unit })
        }),
    };
    let made = traffic.messages_per_s * span.measured.seconds() * f64::from(nodes);
    ensure!(
        made >= 1.0,
        "{name} on {}: {made:.2} messages are made in the time that is measured, {}: expected a longer time (measured), smaller \
         messages (bytes) or more load",
        machine.name,
        span.measured
    );
    let point =
        traffic.run(&mut network, span, seed).with_context(|| format!("{name} on {}", machine.name))?;
    let share = |bytes_per_s: f64| bytes_per_s / own_share / bandwidth;
    let (offered, accepted) = (share(point.offered_bytes_per_s), share(point.accepted_bytes_per_s));
    Ok(Found { point, offered, accepted })
}

/// What a message takes of a node's link.
struct Wire<'m> {
    switching: &'m Switching,
    bytes_per_s: f64,
    /// The time of a flit, where there are flits.
    cycle: Option<Duration>,
    /// What one packet carries.
    packet_bytes: u64,
}

impl Wire<'_> {
    fn of(machine: &Machine) -> Wire<'_> {
        let link = &machine.network.link;
        let (cycle, packet_bytes) = match &machine.network.switching {
            Switching::Wormhole(wormhole) => (Some(link.bandwidth.time_of(wormhole.flit)), wormhole.payload),
            Switching::CentralQueue(queue) => (None, queue.packet.into()),
            Switching::Circuit(circuit) => (None, payload(&circuit.packet)),
            Switching::Links | Switching::Flow(_) => (None, 4096),
        };
        let second = link.bandwidth.time_of(1 << 30).seconds();
        let bytes_per_s = match &machine.network.switching {
            // A flit takes a whole cycle, whatever it is rounded to.
            Switching::Wormhole(wormhole) => {
                wormhole.flit as f64 / link.bandwidth.time_of(wormhole.flit).seconds()
            }
            _ => f64::from(1 << 30) / second,
        };
        Wire { switching: &machine.network.switching, bytes_per_s, cycle, packet_bytes }
    }

    /// Bytes that a message of so many takes, with all that is added to it.
    fn bytes_of(&self, bytes: u64) -> u64 {
        match self.switching {
            Switching::Links | Switching::Flow(_) | Switching::CentralQueue(_) => bytes,
            Switching::Circuit(circuit) => {
                let packet = &circuit.packet;
                let packets = bytes.div_ceil(payload(packet));
                let transactions = bytes.div_ceil(packet.transaction);
                bytes + transactions * packet.transaction_overhead + packets * packet.overhead
            }
            Switching::Wormhole(wormhole) => {
                let (whole, rest) = (bytes / wormhole.payload, bytes % wormhole.payload);
                let last = if rest > 0 { wormhole.flits(rest) } else { 0 };
                (whole * wormhole.flits(wormhole.payload) + last) * wormhole.flit
            }
        }
    }
}

/// Bytes of data in a packet that keeps its circuit.
fn payload(packet: &pio_machine::circuit::Packet) -> u64 {
    packet.transaction * u64::from(packet.transactions)
}

/// The parameters that were given.
struct Given<'g> {
    traffic: &'g str,
    parameters: &'g [Setting],
}

impl<'g> Given<'g> {
    fn check_names(&self) -> Result<()> {
        let known = |name: &str| PARAMETERS.iter().any(|(known, ..)| *known == name);
        let Some(unknown) = self.parameters.iter().find(|setting| !known(&setting.name)) else {
            return Ok(());
        };
        let names: Vec<&str> = PARAMETERS.iter().map(|(name, ..)| *name).collect();
        bail!("{}: no parameter '{}': expected one of {}", self.traffic, unknown.name, names.join(", "))
    }

    fn text(&self, name: &str) -> Option<&'g str> {
        self.parameters
            .iter()
            .rev()
            .find(|setting| setting.name == name)
            .map(|setting| setting.value.as_str())
    }

    fn wrong(&self, name: &str, text: &str, expected: &str) -> anyhow::Error {
        anyhow!("{}: {name} = {text}: expected {expected}", self.traffic)
    }

    fn read<T>(&self, name: &str, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let read = |text| parse(text).ok_or_else(|| self.wrong(name, text, expected));
        self.text(name).map(read).transpose()
    }

    fn positive(&self, name: &str) -> Result<Option<f64>> {
        let above_0 = |number: &f64| *number > 0.0 && number.is_finite();
        self.read(name, "a number above 0", |text| f64::from_str(text).ok().filter(above_0))
    }

    fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>> {
        let expected = words.join(" or ");
        self.read(name, &expected, |text| words.iter().copied().find(|word| *word == text))
    }

    fn pattern(&self) -> Result<Pattern> {
        Ok(match self.traffic {
            "uniform" => Pattern::Uniform { to_self: self.word("to-self", &["yes", "no"])? != Some("no") },
            "hot-spot" => {
                let numbers = |text: &str| text.split('+').map(|node| node.trim().parse().ok()).collect();
                let nodes = self.read("hot", "numbers of nodes, joined by +", numbers)?;
                let share = self.read("share", "a number from 0 to 1", |text| f64::from_str(text).ok())?;
                Pattern::HotSpot { nodes: nodes.unwrap_or_else(|| vec![0]), share: share.unwrap_or(0.1) }
            }
            "shift" => {
                let by = self.read("by", "a whole number", |text| text.parse().ok())?;
                Pattern::Permutation(Permutation::Shift(by.unwrap_or(1)))
            }
            name => {
                let found = PERMUTATIONS.iter().find(|permutation| permutation.name() == name);
                Pattern::Permutation(*found.ok_or_else(|| anyhow!("no traffic '{name}'"))?)
            }
        })
    }

    fn arrivals(&self, cycle: Option<Duration>) -> Result<Arrivals> {
        Ok(match (self.word("arrivals", &["bernoulli", "exponential", "uniform"])?, cycle) {
            (None | Some("bernoulli"), Some(slot)) => Arrivals::Bernoulli { slot },
            (Some("bernoulli"), None) => {
                return Err(self.wrong(
                    "arrivals",
                    "bernoulli",
                    "exponential or uniform, as this network has no cycles",
                ));
            }
            (Some("uniform"), _) => Arrivals::Uniform,
            _ => Arrivals::Exponential,
        })
    }
}
