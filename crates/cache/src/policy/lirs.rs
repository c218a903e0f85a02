//! LIRS: blocks by the time between their last two uses (Jiang and Zhang, SIGMETRICS 2002, section 3).
//!
//! The names are the paper's: a block is LIR (low inter-reference recency; all these are here) or HIR. Stack S holds all
//! LIR blocks and those HIR blocks, here or gone, that were used since the least recently used LIR block was; its bottom
//! is always LIR. Queue Q holds the HIR blocks that are here. The paper leaves open how many gone blocks S may hold: here
//! S has at most twice as many blocks as the cache, and those that have been gone for longest are forgotten first.

use crate::index::{NONE, RunId};
use crate::policy::{Incoming, coldest};
use crate::runs::{Data, ListId, NO_LIST, Rail, Runs, Traits};

/// S is the only list of the main rail.
const S: ListId = 0;
/// Q on the second rail.
const Q: ListId = 0;
/// What is gone, on the second rail, in the order in which it went.
const GONE: ListId = 1;

pub(crate) struct Lirs {
    lir_capacity: u64,
    hir_capacity: u64,
    lir: u64,
    hir: u64,
}

impl Lirs {
    pub(crate) fn new(capacity: u64) -> Lirs {
        // 1 %, as in the paper, and at least one.
        let hir_capacity = (capacity / 100).max(1);
        Lirs { lir_capacity: capacity - hir_capacity, hir_capacity, lir: 0, hir: 0 }
    }

    pub(crate) fn resident(&self) -> u64 {
        self.lir + self.hir
    }

    pub(crate) fn hit(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        let done = if is_lir(runs, run) {
            let length = runs.get(run).length();
            runs.move_to(Rail::Main, S, run);
            runs.join(run);
            prune(runs);
            length
        } else if runs.get(run).list(Rail::Main) == NO_LIST {
            self.first_use(runs, run)
        } else {
            self.promote(runs, run)
        };
        self.limit_stack(runs);
        done
    }

    /// A HIR block that is here is used, and stays HIR.
    pub(crate) fn first_use(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        let length = runs.get(run).length();
        let lir = is_lir(runs, run);
        runs.move_to(Rail::Main, S, run);
        if !lir {
            runs.move_to(Rail::Second, Q, run);
        }
        runs.join(run);
        prune(runs);
        length
    }

    /// A HIR block that is here and in S is used: it becomes LIR.
    fn promote(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        let room = self.lir_capacity - self.lir;
        let bottom = if room > 0 { None } else { runs.first(Rail::Main, S) };
        let alike = bottom.map_or(room, |run| runs.get(run).length());
        let length = runs.get(run).length().min(alike);
        let run = runs.first_blocks(run, length);
        runs.unlink(Rail::Second, run);
        self.hir -= length;
        self.make_lir(runs, run);
        length
    }

    /// A run that is in no list of the second rail becomes LIR, and as many of the least recently used LIR become HIR.
    fn make_lir(&mut self, runs: &mut Runs, run: RunId) {
        let length = runs.get(run).length();
        let traits = runs.get(run).traits;
        runs.set_traits(run, Traits { mark: true, ..traits });
        runs.move_to(Rail::Main, S, run);
        runs.join(run);
        self.lir += length;
        while self.lir > self.lir_capacity {
            self.demote(runs, self.lir - self.lir_capacity);
        }
        prune(runs);
    }

    /// The least recently used LIR blocks, at most so many, become HIR.
    fn demote(&mut self, runs: &mut Runs, length: u64) {
        prune(runs);
        let Some(bottom) = runs.first(Rail::Main, S) else { return };
        let length = length.min(runs.get(bottom).length());
        let bottom = runs.first_blocks(bottom, length);
        let traits = runs.get(bottom).traits;
        runs.set_traits(bottom, Traits { mark: false, ..traits });
        runs.unlink(Rail::Main, bottom);
        runs.push(Rail::Second, Q, bottom);
        runs.join(bottom);
        self.lir -= length;
        self.hir += length;
        prune(runs);
    }

    pub(crate) fn admit(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        let mut incoming = incoming;
        let capacity = self.lir_capacity + self.hir_capacity;
        let free = capacity - self.resident();
        if incoming.history.is_some() {
            incoming.length = incoming.length.min(self.renewable(runs));
        }
        if free > 0 && incoming.evict_from.is_none() {
            incoming.length = incoming.length.min(free);
        } else {
            let Some(victim) = self.victim(runs, incoming.evict_from) else { return 0 };
            incoming.length = incoming.length.min(runs.get(victim).length());
            if incoming.history.is_some() && is_lir(runs, victim) {
                incoming.length = 1;
            }
            let victim = runs.first_blocks(victim, incoming.length);
            self.evict(runs, victim);
        }
        let added = self.add(runs, incoming);
        self.limit_stack(runs);
        added
    }

    /// How many blocks that are remembered may become LIR at once, as one after the other: as many as there are in the
    /// run at the bottom of S, which become HIR for them, so that nothing else leaves S before the last has come.
    fn renewable(&self, runs: &Runs) -> u64 {
        if self.lir < self.lir_capacity || runs.blocks(Rail::Main, S) > self.stack_limit() {
            return 1;
        }
        let bottom = runs.first(Rail::Main, S).filter(|run| is_lir(runs, *run));
        bottom.map_or(1, |run| runs.get(run).length())
    }

    /// Blocks that S may hold.
    fn stack_limit(&self) -> u64 {
        2 * (self.lir_capacity + self.hir_capacity)
    }

    /// Adds blocks for which there is room.
    fn add(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        let lir_room = self.lir_capacity - self.lir;
        // What was gone may have been forgotten just now, when others went.
        let history = runs.find(incoming.file, incoming.start);
        let becomes_lir = lir_room > 0 || history.is_some();
        let mut length = incoming.length;
        if let Some(history) = history {
            runs.remove_first(history, length);
        } else if becomes_lir {
            length = length.min(lir_room);
        }
        let run = runs.add(incoming.file, incoming.start, length, incoming.traits);
        let added = runs.get(run).length();
        runs.push(Rail::Main, S, run);
        if becomes_lir {
            self.make_lir(runs, run);
        } else {
            runs.push(Rail::Second, Q, run);
            self.hir += added;
            runs.join(run);
            prune(runs);
        }
        added
    }

    /// The HIR blocks that have been in Q for longest; LIR blocks only if no other may be evicted.
    fn victim(&self, runs: &Runs, evict_from: Option<u32>) -> Option<RunId> {
        coldest(runs, Rail::Second, Q, evict_from).or_else(|| coldest(runs, Rail::Main, S, evict_from))
    }

    fn evict(&mut self, runs: &mut Runs, victim: RunId) {
        let length = runs.get(victim).length();
        runs.note_evicted(victim, length);
        if is_lir(runs, victim) {
            self.lir -= length;
            runs.remove(victim);
            prune(runs);
            return;
        }
        self.hir -= length;
        runs.unlink(Rail::Second, victim);
        if runs.get(victim).list(Rail::Main) == NO_LIST {
            runs.remove(victim);
            return;
        }
        runs.set_traits(victim, Traits { data: Data::Gone, owner: 0, transfer: NONE, ..Traits::CLEAN });
        runs.push(Rail::Second, GONE, victim);
        runs.join(victim);
    }

    pub(crate) fn forget(&mut self, runs: &mut Runs, run: RunId) {
        let length = runs.get(run).length();
        if is_lir(runs, run) {
            self.lir -= length;
        } else {
            self.hir -= length;
        }
        runs.remove(run);
        prune(runs);
    }

    /// Forgets what has been gone for longest, if S is too large.
    fn limit_stack(&mut self, runs: &mut Runs) {
        let limit = self.stack_limit();
        while let Some(excess) = runs.blocks(Rail::Main, S).checked_sub(limit).filter(|excess| *excess > 0) {
            let Some(oldest) = runs.first(Rail::Second, GONE) else { return };
            let length = excess.min(runs.get(oldest).length());
            runs.remove_first(oldest, length);
        }
    }
}

fn is_lir(runs: &Runs, run: RunId) -> bool {
    runs.get(run).traits.mark
}

/// Takes HIR blocks off the bottom of S until it is LIR.
fn prune(runs: &mut Runs) {
    while let Some(bottom) = runs.first(Rail::Main, S) {
        if is_lir(runs, bottom) {
            return;
        }
        if runs.get(bottom).traits.data == Data::Gone {
            runs.remove(bottom);
        } else {
            runs.unlink(Rail::Main, bottom);
        }
    }
}
