//! The processors of the nodes that have ranks: a scheduler each. Threads of servers may share them: to a scheduler, ranks and
//! threads are alike, and here both are called ranks, the threads with numbers behind those of the ranks.

use std::collections::BTreeMap;

use pio_machine::{Cpu, Duration, Machine};

use crate::cpu::{Next, Scheduler, Turn};
use crate::kernel::Time;

/// A turn of a rank on a processor, that ends: give it back with [`Processors::end_turn`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankTurn {
    node: u32,
    turn: Turn,
}

impl RankTurn {
    /// When it ends.
    pub(crate) fn at(&self) -> Time {
        self.turn.at
    }
}

/// All of them.
pub(crate) struct Processors {
    nodes: Vec<Node>,
    /// For each rank: its node here, and its number there.
    places: Vec<(u32, u32)>,
    /// For each rank: the turn in which its demand was met, while it decides what it does next.
    met: Vec<Option<RankTurn>>,
    /// For each rank: whether it waits without giving its processor away.
    spinning: Vec<bool>,
    begun: Vec<Turn>,
}

struct Node {
    scheduler: Scheduler,
    ranks: Vec<u32>,
}

impl Processors {
    /// Those of a machine whose first tick is then; which node each rank is on.
    pub(crate) fn new(machine: &Machine, on: &[u32], tick: Duration) -> Processors {
        let mut ranks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (rank, node) in on.iter().enumerate() {
            ranks.entry(*node).or_default().push(rank as u32);
        }
        let mut places = vec![(0, 0); on.len()];
        for (node, ranks) in ranks.values().enumerate() {
            for (slot, rank) in ranks.iter().enumerate() {
                places[*rank as usize] = (node as u32, slot as u32);
            }
        }
        let costs = Cpu {
            count: machine.nodes.cores,
            quantum: machine.nodes.quantum,
            switch: machine.nodes.switch,
            system_call: Duration::ZERO,
            interrupt: Duration::ZERO,
        };
        let node = |ranks: Vec<u32>| Node {
            scheduler: Scheduler::new(
                &costs,
                Next::Least { slice: machine.nodes.slice, tick },
                ranks.len() as u32,
            ),
            ranks,
        };
        Processors {
            nodes: ranks.into_values().map(node).collect(),
            places,
            met: vec![None; on.len()],
            spinning: vec![false; on.len()],
            begun: Vec::new(),
        }
    }

    /// A rank needs a processor for so long: the one that it has, if its last demand was met just now, or if it spins and has
    /// one. Turns that begin are handed to `begin`.
    pub(crate) fn compute(&mut self, rank: u32, now: Time, demand: Duration, begin: impl FnMut(RankTurn)) {
        let (node, slot) = self.places[rank as usize];
        let scheduler = &mut self.nodes[node as usize].scheduler;
        match self.met[rank as usize].take() {
            Some(met) => scheduler.go_on(now, met.turn, demand, &mut self.begun),
            None if std::mem::take(&mut self.spinning[rank as usize]) => {
                scheduler.stop(now, slot, demand, &mut self.begun);
            }
            None => scheduler.demand(now, slot, demand, &mut self.begun),
        }
        self.tell(node, begin);
    }

    /// The end of a turn has come. The rank whose demand is met, if one is: it keeps its processor for the moment, until
    /// [`Processors::compute`] or [`Processors::release`].
    pub(crate) fn end_turn(&mut self, now: Time, over: RankTurn, begin: impl FnMut(RankTurn)) -> Option<u32> {
        let node = &mut self.nodes[over.node as usize];
        let met =
            node.scheduler.end_turn(now, over.turn, &mut self.begun).map(|slot| node.ranks[slot as usize]);
        if let Some(rank) = met {
            self.met[rank as usize] = Some(over);
        }
        self.tell(over.node, begin);
        met
    }

    /// A rank whose demand was met waits for something else, unless it asked for more.
    pub(crate) fn release(&mut self, rank: u32, now: Time, begin: impl FnMut(RankTurn)) {
        let Some(met) = self.met[rank as usize].take() else { return };
        self.nodes[met.node as usize].scheduler.leave(now, met.turn, &mut self.begun);
        self.tell(met.node, begin);
    }

    /// A rank whose demand was met waits without giving its processor away, until it needs that for something.
    pub(crate) fn spin(&mut self, rank: u32, now: Time, begin: impl FnMut(RankTurn)) {
        let Some(met) = self.met[rank as usize].take() else { return };
        self.spinning[rank as usize] = true;
        self.nodes[met.node as usize].scheduler.spin(now, met.turn, &mut self.begun);
        self.tell(met.node, begin);
    }

    /// A rank that spins gives its processor away, or its place among those who want one.
    pub(crate) fn block(&mut self, rank: u32, now: Time, begin: impl FnMut(RankTurn)) {
        if std::mem::take(&mut self.spinning[rank as usize]) {
            let (node, slot) = self.places[rank as usize];
            self.nodes[node as usize].scheduler.block(now, slot, &mut self.begun);
            self.tell(node, begin);
        }
    }

    /// Whether a rank waits without giving its processor away, if it has one.
    pub(crate) fn is_spinning(&self, rank: u32) -> bool {
        self.spinning[rank as usize]
    }

    /// Whether a rank is on a processor.
    pub(crate) fn is_running(&self, rank: u32) -> bool {
        let (node, slot) = self.places[rank as usize];
        self.nodes[node as usize].scheduler.is_running(slot)
    }

    /// Who is on a processor of the node that this rank is on.
    pub(crate) fn beside(&self, rank: u32) -> impl Iterator<Item = u32> {
        let (node, _) = self.places[rank as usize];
        let Node { scheduler, ranks } = &self.nodes[node as usize];
        scheduler.on_processors().map(|slot| ranks[slot as usize])
    }

    fn tell(&mut self, node: u32, begin: impl FnMut(RankTurn)) {
        self.begun.drain(..).map(|turn| RankTurn { node, turn }).for_each(begin);
    }
}
