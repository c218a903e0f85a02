//! Switches that hold virtual channels at their inputs and pass flits on by credit: wormhole and virtual cut-through
//! switching. What each key does to a flit: `docs/design/networks-wormhole.md`.

use std::fmt::{self, Write};

use crate::error::MachineError;
use crate::quantity::size_text;
use crate::section::Section;

/// How switches with virtual channels and credits pass on packets. The network's link gives the length of a cycle: the
/// time of one flit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wormhole {
    /// Bytes of a flit, the unit of flow control: one crosses a link in one cycle.
    pub flit: u64,
    /// Bytes of a message in one packet, at most.
    pub payload: u64,
    /// Bytes added to every packet.
    pub header: u64,
    /// Virtual channels of each channel.
    pub virtual_channels: u32,
    /// Flits that an input can hold for each of its virtual channels.
    pub buffer: u32,
    /// Whether a packet goes on only into a buffer that has room for all of it (virtual cut-through).
    pub cut_through: bool,
    /// When a virtual channel is free for the next packet.
    pub reuse: Reuse,
    /// How outputs and inputs are matched.
    pub allocator: Allocator,
    /// Rounds of the matching in one cycle.
    pub iterations: u32,
    /// Who goes first.
    pub arbitration: Arbitration,
    /// Which way to go where there are several.
    pub choice: Choice,
    /// How long each stage takes.
    pub pipeline: Pipeline,
}

/// When a virtual channel is free for the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// When the last packet's tail has been sent into it: a buffer may hold several packets.
    TailSent,
    /// When the last packet has left it and the credits are back.
    TailCredit,
}

/// How outputs and inputs are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// Outputs grant first, then inputs accept; who was accepted is last the next time (McKeown 1999).
    Islip,
    /// Inputs ask for one output each first, then outputs grant (Dally and Towles 2004, section 19.3).
    SeparableInputFirst,
}

/// Who goes first of those that want the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Each in turn.
    RoundRobin,
    /// The packet of the message that was sent first.
    Age,
}

/// Which way to go where several are equally short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Always the static route.
    Static,
    /// Each as likely.
    Random,
    /// Of two at random, the one with fewer flits on it and in the buffers behind it.
    TwoRandom,
    /// The one with the fewest; of several, each as likely.
    LeastLoaded,
}

/// How many cycles each stage takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// A node puts a flit on its link.
    pub injection: u32,
    /// The route of a packet's head is found.
    pub routing: u32,
    /// A head gets a virtual channel of the output, if one is free.
    pub vc_allocation: u32,
    /// A flit gets the switch.
    pub switch_allocation: u32,
    /// And crosses it.
    pub switch_traversal: u32,
    /// A credit is taken in, beside its way over the link.
    pub credit: u32,
}

/// Virtual channels of a channel at most: one word of bits.
const MOST_VIRTUAL_CHANNELS: u32 = 64;
const MOST_CYCLES: u32 = 1000;
const MOST_BUFFER: u32 = 1 << 14;
/// More iterations than a switch has ports match nothing more.
const MOST_PORTS: u32 = 64;

const REUSES: &[(&str, Reuse)] = &[("tail-sent", Reuse::TailSent), ("tail-credit", Reuse::TailCredit)];
const ALLOCATORS: &[(&str, Allocator)] =
    &[("islip", Allocator::Islip), ("separable-input-first", Allocator::SeparableInputFirst)];
const ARBITRATIONS: &[(&str, Arbitration)] =
    &[("round-robin", Arbitration::RoundRobin), ("age", Arbitration::Age)];
const CHOICES: &[(&str, Choice)] = &[
    ("static", Choice::Static),
    ("random", Choice::Random),
    ("two-random", Choice::TwoRandom),
    ("least-loaded", Choice::LeastLoaded),
];

impl Wormhole {
    /// Flits of a packet that carries so many bytes of its message.
    pub fn flits(&self, bytes: u64) -> u64 {
        (self.header + bytes).div_ceil(self.flit).max(1)
    }

    pub(super) fn read(mut section: Section<'_>, cut_through: bool) -> Result<Wormhole, MachineError> {
        let wormhole = Wormhole {
            flit: section.size("flit", 1..=1 << 16)?,
            payload: section.size("payload", 1..=1 << 20)?,
            header: section.size("header", 0..=1 << 16)?,
            virtual_channels: section.number("virtual-channels", 1..=MOST_VIRTUAL_CHANNELS)?,
            buffer: section.number("buffer", 1..=MOST_BUFFER)?,
            cut_through,
            reuse: section.word("reuse", REUSES)?,
            allocator: section.word("allocator", ALLOCATORS)?,
            iterations: section.number("iterations", 1..=MOST_PORTS)?,
            arbitration: section.word("arbitration", ARBITRATIONS)?,
            choice: section.word("choice", CHOICES)?,
            pipeline: Pipeline::read(section.section("pipeline")?)?,
        };
        let longest = wormhole.flits(wormhole.payload);
        if cut_through && longest > u64::from(wormhole.buffer) {
            let expected = format!("at least the {longest} flits of a packet, for cut-through switching");
            return Err(section.conflict("buffer", expected));
        }
        section.finish()?;
        Ok(wormhole)
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let switching = if self.cut_through { "cut-through" } else { "wormhole" };
        writeln!(out, "switching = \"{switching}\"")?;
        for (key, bytes) in [("flit", self.flit), ("payload", self.payload), ("header", self.header)] {
            writeln!(out, "router.{key} = \"{}\"", size_text(bytes))?;
        }
        for (key, number) in [
            ("virtual-channels", self.virtual_channels),
            ("buffer", self.buffer),
            ("iterations", self.iterations),
        ] {
            writeln!(out, "router.{key} = {number}")?;
        }
        for (key, word) in [
            ("reuse", word(REUSES, self.reuse)),
            ("allocator", word(ALLOCATORS, self.allocator)),
            ("arbitration", word(ARBITRATIONS, self.arbitration)),
            ("choice", word(CHOICES, self.choice)),
        ] {
            writeln!(out, "router.{key} = \"{word}\"")?;
        }
        self.pipeline.write(out)
    }
}

impl Pipeline {
    fn read(mut section: Section<'_>) -> Result<Pipeline, MachineError> {
        let pipeline = Pipeline {
            injection: section.number("injection", 1..=MOST_CYCLES)?,
            routing: section.number("routing", 0..=MOST_CYCLES)?,
            vc_allocation: section.number("vc-allocation", 1..=MOST_CYCLES)?,
            switch_allocation: section.number("switch-allocation", 1..=MOST_CYCLES)?,
            switch_traversal: section.number("switch-traversal", 0..=MOST_CYCLES)?,
            credit: section.number("credit", 0..=MOST_CYCLES)?,
        };
        section.finish()?;
        Ok(pipeline)
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        for (key, cycles) in [
            ("injection", self.injection),
            ("routing", self.routing),
            ("vc-allocation", self.vc_allocation),
            ("switch-allocation", self.switch_allocation),
            ("switch-traversal", self.switch_traversal),
            ("credit", self.credit),
        ] {
            writeln!(out, "router.pipeline.{key} = {cycles}")?;
        }
        Ok(())
    }
}

/// The word that stands for a value.
fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, meaning)| *meaning == value).map_or("", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FatTree, Machine, Network, Rails, Switching, Topology};

    fn router(cut_through: bool) -> Wormhole {
        Wormhole {
            flit: 2,
            payload: 320,
            header: 58,
            virtual_channels: 2,
            buffer: 189,
            cut_through,
            reuse: Reuse::TailCredit,
            allocator: Allocator::SeparableInputFirst,
            iterations: 2,
            arbitration: Arbitration::Age,
            choice: Choice::LeastLoaded,
            pipeline: Pipeline {
                injection: 1,
                routing: 2,
                vc_allocation: 3,
                switch_allocation: 4,
                switch_traversal: 5,
                credit: 6,
            },
        }
    }

    /// A machine of 64 nodes on a 4-ary 3-tree.
    fn machine(router: Wormhole) -> Machine {
        let mut machine = Machine::built_in("paragon-caltech").expect("it is built in");
        machine.nodes.count = 48;
        machine.network = Network {
            topology: Topology::FatTree(FatTree::k_ary(4, 3)),
            switching: Switching::Wormhole(router),
            link: machine.network.link,
            rails: Rails::default(),
        };
        machine
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for cut_through in [false, true] {
            let machine = machine(router(cut_through));
            let text = machine.to_toml("a test");
            assert_eq!(Machine::parse("a.toml", &text).expect("a machine"), machine);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_file_line_and_what_is_allowed() {
        let text = machine(router(true)).to_toml("a test");
        let line_of =
            |key: &str| 1 + text.lines().position(|line| line.contains(key)).expect("the key is there");
        let refuse = |found: &str, instead: &str| {
            let error =
                Machine::parse("a.toml", &text.replace(found, instead)).expect_err("refused").to_string();
            (error, line_of(found))
        };
        let cases = [
            ("router.virtual-channels = 2", "router.virtual-channels = 65", "a whole number from 1 to 64"),
            (
                "router.buffer = 189",
                "router.buffer = 188",
                "at least the 189 flits of a packet, for cut-through",
            ),
            ("router.flit = \"2 B\"", "router.flit = \"0 B\"", "a size from \"1 B\" to \"64 KiB\""),
            ("router.choice = \"least-loaded\"", "router.choice = \"best\"", "\"static\" or \"random\""),
            (
                "router.pipeline.injection = 1",
                "router.pipeline.injection = 0",
                "a whole number from 1 to 1000",
            ),
            (
                "router.pipeline.credit = 6",
                "router.pipeline.credits = 6",
                "unknown key 'network.router.pipeline.credits'",
            ),
        ];
        for (found, instead, expected) in cases {
            let (error, line) = refuse(found, instead);
            assert!(error.starts_with(&format!("a.toml:{line}: ")) && error.contains(expected), "{error}");
        }
    }
}
