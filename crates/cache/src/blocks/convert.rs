//! From runs to single blocks and back, with everything as it was.

use super::nodes::{Key, ListId, MAIN, NONE, NodeId, Nodes, SECOND};
use super::{AtWork, Blocks};
use crate::policy::{Policy, Replacer};
use crate::runs::{Data, Rail, Runs, Traits};

/// The rails, as runs and as nodes call them.
const RAILS: [(Rail, usize); 2] = [(Rail::Main, MAIN), (Rail::Second, SECOND)];

impl Blocks {
    /// The blocks of runs that are all here or gone, one by one.
    pub(crate) fn from_runs(policy: Policy, capacity: u64, replacer: &Replacer, runs: &Runs) -> Blocks {
        let mut blocks = Blocks::new(policy, capacity);
        let in_lists = policy != Policy::Clock;
        for (from, to) in RAILS {
            for list in 0..runs.lists(from) {
                for run in runs.in_list(from, list) {
                    let run = runs.get(run);
                    for block in run.start..run.end() {
                        let node = blocks.node(Key { file: run.file, block });
                        blocks.nodes.get_mut(node).mark = run.traits.mark;
                        blocks.nodes.get_mut(node).gone = run.traits.data == Data::Gone;
                        if in_lists {
                            blocks.nodes.push(to, list, node);
                        }
                    }
                }
            }
        }
        match (&mut blocks.policy, replacer) {
            (AtWork::Arc(to), Replacer::Arc(from)) => to.p = from.p(),
            (AtWork::Lirs(to), Replacer::Lirs(from)) => to.lir = from.lir(),
            _ => {}
        }
        blocks
    }

    fn node(&mut self, key: Key) -> NodeId {
        let hash = key.hash();
        self.nodes.find(key, hash).unwrap_or_else(|| self.nodes.add(key, hash))
    }

    /// The same in runs, joined where they are alike.
    pub(crate) fn to_runs(&self, policy: Policy, capacity: u64) -> (Replacer, Runs) {
        let (mut replacer, mut runs) = Replacer::new(policy, capacity);
        let mut made = vec![NONE; self.nodes.slots()];
        for (to, from) in RAILS {
            for list in 0..runs.lists(to) {
                for node in self.in_order(from, list) {
                    let run = &mut made[node as usize];
                    if *run == NONE {
                        *run = add(&mut runs, &self.nodes, node);
                    }
                    runs.push(to, list, *run);
                }
            }
        }
        runs.join_all();
        let resident = self.resident();
        match (&mut replacer, &self.policy) {
            (Replacer::Arc(to), AtWork::Arc(from)) => to.go_on(from.p),
            (Replacer::Lirs(to), AtWork::Lirs(from)) => to.go_on(from.lir, resident - from.lir),
            (Replacer::Segmented(to), _) => to.go_on(resident),
            _ => {}
        }
        (replacer, runs)
    }

    /// The nodes of a list, the coldest first; for clock, from the hand on.
    fn in_order(&self, rail: usize, list: ListId) -> Box<dyn Iterator<Item = NodeId> + '_> {
        match &self.policy {
            AtWork::Clock(clock) => {
                let all = self.nodes.count() as NodeId;
                Box::new((clock.hand..all).chain(0..clock.hand))
            }
            _ => Box::new(self.nodes.in_list(rail, list)),
        }
    }
}

/// A run of the block of a node.
fn add(runs: &mut Runs, nodes: &Nodes, node: NodeId) -> u32 {
    let node = nodes.get(node);
    let data = if node.gone { Data::Gone } else { Data::Clean };
    let Key { file, block } = node.key();
    runs.add(file, block, 1, Traits { data, mark: node.mark, ..Traits::CLEAN })
}
