//! Where an operation goes, and what the strategies were told.

use crate::access::Direction;
use crate::descriptions::{are_few, are_told_to_all};
use crate::domain::Domains;
use crate::guard::Guard;
use crate::leaders::Teams;
use crate::list::EXTENTS;
use crate::site::Context;

/// Where an operation goes, and what the strategies were told.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// I/O servers; 0 for a file that every rank reaches by its own calls.
    pub servers: u32,
    /// Bytes of a strip on the servers.
    pub strip: u64,
    /// Whether that is known, so that file domains begin where strips do.
    pub strips_are_known: bool,
    /// Processors that the ranks share.
    pub processors: u32,
    /// Nodes that the ranks are on; as many as ranks, if that is not known.
    pub nodes: u32,
    /// Ranks that aggregate.
    pub aggregators: u32,
    /// Bytes of an aggregator's collective buffer.
    pub collective_buffer: u64,
    /// Bytes of a rank's buffer to sieve in.
    pub sieve_buffer: u64,
    /// Extents that a request lists at most.
    pub list_extents: u64,
    /// Whether the ranks know each other's views.
    pub views: bool,
    /// What a rank does about others that may be sieving in the file.
    pub guard: Guard,
    /// Whether the ranks put their pieces straight into each other's collective buffers.
    pub shared_memory: bool,
    /// Whether the ranks describe their accesses to all others, not to aggregators alone.
    pub described_to_all: bool,
    /// Whether the ranks know before what part of the file they access together: then they add up once what aggregators are to know.
    pub bounds_are_known: bool,
    /// How ranks are dealt out to leaders, if there are such that may speak for them.
    pub teams: Option<Teams>,
    /// Whether every rank knows what all access together already: to choose, for example.
    pub described: bool,
    /// Whether it is the first of its kind, so that nobody knows how long ranks wait for each other.
    pub is_first: bool,
    /// Seconds that ranks which exchange data are to wait for those that come late, as far as that is known.
    pub waits_s: f64,
    /// Whether the ranks have exchanged data in such an operation before: then those seconds are by how much longer that took.
    pub has_exchanged: bool,
    /// Whether the ranks are likely to meet in the call after it: who is through first waits there for the last.
    pub meets_next: bool,
}

impl Setting {
    /// Strips, where nothing is said of them.
    const STRIP: u64 = 64 << 10;

    /// As `context` has it, for so many ranks; nothing described yet.
    pub fn of(context: &Context, direction: Direction, ranks: u32) -> Setting {
        let hints = &context.hints;
        let domains = Domains::new(context, ranks);
        Setting {
            servers: context.servers,
            strip: hints.striping_unit.unwrap_or(Setting::STRIP).max(1),
            strips_are_known: domains.are_aligned(),
            processors: context.processors.max(1),
            nodes: context.nodes.as_ref().map_or(ranks, |nodes| nodes.count()).max(1),
            aggregators: hints.aggregators(ranks),
            collective_buffer: domains.buffer_size(),
            sieve_buffer: hints.sieve_size(direction).max(1),
            list_extents: EXTENTS as u64,
            views: context.views.is_some(),
            guard: if context.servers == 0 { context.guard_of(direction) } else { Guard::Open },
            shared_memory: context.shared_memory,
            described_to_all: are_told_to_all(hints, ranks),
            bounds_are_known: false,
            teams: context.leaders.as_ref().map(|leaders| leaders.teams(hints)),
            described: false,
            is_first: true,
            waits_s: 0.0,
            has_exchanged: false,
            meets_next: false,
        }
    }

    /// That of the operation that leaders carry out: all of them aggregate, and nothing is described yet.
    pub(super) fn among(&self, teams: Teams) -> Setting {
        Setting {
            aggregators: teams.leaders,
            views: false,
            described_to_all: are_few(teams.leaders),
            bounds_are_known: true,
            teams: None,
            described: false,
            ..self.clone()
        }
    }
}
