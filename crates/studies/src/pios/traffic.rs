//! What compute nodes draw: requests and messages, and the times between them.
//!
//! Every node has its own streams for either, so that changing the load of one leaves what is drawn of the other as it is.

use pio_machine::Duration;
use pio_sim::kernel::{Stream, Time};

use super::{Placement, Scenario};

/// What something on its way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read { is_hit: bool },
    Write { is_hit: bool },
    Message,
}

/// What generates: a compute node's I/O or its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    compute_node: u32,
    is_io: bool,
}

/// Something that was generated.
pub(super) struct Drawn {
    pub(super) kind: Kind,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Of the data, not of a message that asks for them.
    pub(super) bytes: u64,
}

/// The random numbers of all compute nodes.
pub(super) struct Traffic {
    scenario: Scenario,
    io: Vec<Stream>,
    messages: Vec<Stream>,
}

impl Traffic {
    pub(super) fn new(scenario: &Scenario) -> Traffic {
        let streams = |what: &str| {
            let name = |number| format!("{what} of compute node {number}");
            (0..scenario.placement.compute_nodes())
                .map(|number| Stream::named(scenario.seed, &name(number)))
                .collect()
        };
        Traffic { io: streams("I/O"), messages: streams("messages"), scenario: scenario.clone() }
    }

    /// When each source generates for the first time; only those that do.
    pub(super) fn first(&mut self) -> Vec<(Source, Time)> {
        let mut sources = Vec::new();
        for is_io in [true, false] {
            let per_s = if is_io { self.scenario.requests_per_s } else { self.scenario.messages_per_s };
            for compute_node in (0..self.scenario.placement.compute_nodes()).filter(|_| per_s > 0.0) {
                let source = Source { compute_node, is_io };
                sources.push((source, Time(0) + self.gap(source)));
            }
        }
        sources
    }

    /// The time to what a source generates next.
    pub(super) fn gap(&mut self, source: Source) -> Duration {
        let number = source.compute_node as usize;
        let (stream, per_s) = if source.is_io {
            (&mut self.io[number], self.scenario.requests_per_s)
        } else {
            (&mut self.messages[number], self.scenario.messages_per_s)
        };
        Duration::from_seconds(stream.exponential(1.0 / per_s))
    }

    /// What a source generates.
    pub(super) fn draw(&mut self, source: Source) -> Drawn {
        let Scenario { placement, mix, .. } = &self.scenario;
        let number = source.compute_node;
        let from = placement.compute_node(number);
        if source.is_io {
            let stream = &mut self.io[number as usize];
            let to = placement.io_nodes()[stream.below(placement.io_nodes().len() as u64) as usize];
            let is_read = stream.chance(mix.read_probability);
            let is_hit = !stream.chance(mix.miss_ratio);
            let kind = if is_read { Kind::Read { is_hit } } else { Kind::Write { is_hit } };
            return Drawn { kind, from, to, bytes: self.scenario.request_bytes };
        }
        let stream = &mut self.messages[number as usize];
        let to = other(placement, number, stream);
        let is_long = !stream.chance(mix.short_probability);
        Drawn { kind: Kind::Message, from, to, bytes: mix.message_bytes[usize::from(is_long)] }
    }
}

/// A compute node other than that of this number.
fn other(placement: &Placement, number: u32, stream: &mut Stream) -> u32 {
    let drawn = stream.below(u64::from(placement.compute_nodes()) - 1) as u32;
    placement.compute_node(if drawn < number { drawn } else { drawn + 1 })
}
