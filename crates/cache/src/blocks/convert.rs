//! From runs to single blocks and back, with everything as it was.

use super::table::{Key, NONE, Slot};
use super::{AtWork, Blocks};
use crate::policy::{Policy, Replacer};
use crate::runs::{Data, Rail, Runs, Traits};

const RAILS: [Rail; 2] = [Rail::Main, Rail::Second];

impl Blocks {
    /// The blocks of runs that are all here or gone, one by one.
    pub(crate) fn from_runs(policy: Policy, capacity: u64, replacer: &Replacer, runs: &Runs) -> Blocks {
        let mut blocks = Blocks::new(policy, capacity);
        for rail in RAILS {
            // Of an ARC, what is remembered before what is here.
            for list in (0..runs.lists(rail)).rev() {
                for run in runs.in_list(rail, list) {
                    let run = runs.get(run);
                    for block in run.start..run.end() {
                        let slot = blocks.slot(Key { file: run.file, block });
                        blocks.policy.as_dyn_mut().put(&mut blocks.table, slot, rail, list, run.traits.mark);
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

    fn slot(&mut self, key: Key) -> Slot {
        super::make_room(self.policy.as_dyn_mut(), &mut self.table);
        let hash = key.hash();
        match self.table.find(key, hash) {
            Some(found) => found.slot,
            None => self.table.insert(key, hash, 0, 0),
        }
    }

    /// The same in runs, joined where they are alike.
    pub(crate) fn to_runs(&self, policy: Policy, capacity: u64) -> (Replacer, Runs) {
        let (mut replacer, mut runs) = Replacer::new(policy, capacity);
        let mut made = vec![NONE; self.table.slots()];
        for rail in RAILS {
            for list in 0..runs.lists(rail) {
                for slot in self.policy.as_dyn().in_order(rail, list) {
                    let run = &mut made[slot as usize];
                    if *run == NONE {
                        *run = self.add_to(&mut runs, slot);
                    }
                    runs.push(rail, list, *run);
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

    /// Adds a run of the block of a slot.
    fn add_to(&self, runs: &mut Runs, slot: Slot) -> u32 {
        let (policy, found) = (self.policy.as_dyn(), self.table.found(slot));
        let data = if policy.is_here(&found) { Data::Clean } else { Data::Gone };
        let Key { file, block } = self.table.key(slot);
        runs.add(file, block, 1, Traits { data, mark: policy.mark(found.state), ..Traits::CLEAN })
    }
}
