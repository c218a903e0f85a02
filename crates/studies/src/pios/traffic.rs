//! What compute nodes draw: requests and messages, and the times between them.
//!
//! Every node has its own streams for either, so that changing the load of one leaves what is drawn of the other as it is.

use pio_machine::Duration;
use pio_sim::kernel::{Stream, Time};
use pio_sim::open_loop::{Arrival, Sources};

use super::{Placement, Scenario};

/// What something on its way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read { is_hit: bool },
    Write { is_hit: bool },
    Message,
}

/// Something that was generated.
pub(super) struct Drawn {
    pub(super) kind: Kind,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Of the data, not of a message that asks for them.
    pub(super) bytes: u64,
}

/// What all compute nodes generate, and when. Source 2k is the I/O of compute node k, source 2k + 1 its messages.
pub(super) struct Traffic {
    scenario: Scenario,
    sources: Sources,
    streams: Vec<Stream>,
}

impl Traffic {
    pub(super) fn new(scenario: &Scenario) -> Traffic {
        let count = scenario.placement.compute_nodes();
        let stream =
            |what: &str, number| Stream::named(scenario.seed, &format!("{what} of compute node {number}"));
        let streams = (0..count).flat_map(|number| [stream("I/O", number), stream("messages", number)]);
        let mut traffic = Traffic {
            streams: streams.collect(),
            sources: Sources::new(2 * count, None),
            scenario: scenario.clone(),
        };
        for source in (0..2 * count).step_by(2).chain((1..2 * count).step_by(2)) {
            if traffic.per_s(source) > 0.0 {
                traffic.go_on(Time::default(), source);
            }
        }
        traffic
    }

    /// When something is generated next.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.sources.next_time()
    }

    /// What is generated next, and when.
    pub(super) fn next(&mut self) -> Option<(Time, Drawn)> {
        let Arrival { source, now, .. } = self.sources.pop()?;
        let drawn = self.draw(source);
        self.go_on(now, source);
        Some((now, drawn))
    }

    fn go_on(&mut self, now: Time, source: u32) {
        let mean = 1.0 / self.per_s(source);
        let gap = self.streams[source as usize].exponential(mean);
        self.sources.go_on(now, source, Duration::from_seconds(gap));
    }

    fn per_s(&self, source: u32) -> f64 {
        if is_io(source) { self.scenario.requests_per_s } else { self.scenario.messages_per_s }
    }

    fn draw(&mut self, source: u32) -> Drawn {
        let Scenario { placement, mix, .. } = &self.scenario;
        let number = source / 2;
        let from = placement.compute_node(number);
        let stream = &mut self.streams[source as usize];
        if is_io(source) {
            let to = placement.io_nodes()[stream.below(placement.io_nodes().len() as u64) as usize];
            let is_read = stream.chance(mix.read_probability);
            let is_hit = !stream.chance(mix.miss_ratio);
            let kind = if is_read { Kind::Read { is_hit } } else { Kind::Write { is_hit } };
            return Drawn { kind, from, to, bytes: self.scenario.request_bytes };
        }
        let to = other(placement, number, stream);
        let is_long = !stream.chance(mix.short_probability);
        Drawn { kind: Kind::Message, from, to, bytes: mix.message_bytes[usize::from(is_long)] }
    }
}

fn is_io(source: u32) -> bool {
    source.is_multiple_of(2)
}

/// A compute node other than that of this number.
fn other(placement: &Placement, number: u32, stream: &mut Stream) -> u32 {
    let drawn = stream.below(u64::from(placement.compute_nodes()) - 1) as u32;
    placement.compute_node(if drawn < number { drawn } else { drawn + 1 })
}
