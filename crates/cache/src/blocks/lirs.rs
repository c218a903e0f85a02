//! LIRS (Jiang and Zhang, SIGMETRICS 2002, section 3), in the paper's names.

use super::log::Log;
use super::order::Order;
use super::table::{Found, Slot, State, Table};
use super::{BlockPolicy, Missing, Slots, hir_capacity};
use crate::runs::{ListId, Rail};

/// States: which list of each rail a block is in, and whether it is LIR.
const IN_S: State = 1;
const LIR: State = 2;
const IN_Q: State = 4;
const GONE: State = 8;

/// Number of Q among the lists of the second rail; the other holds what is gone, in the order in which it went.
const Q: ListId = 0;

pub(crate) struct Lirs {
    lir_capacity: u64,
    hir_capacity: u64,
    pub lir: u64,
    s: Log,
    q: Log,
    gone: Log,
}

impl BlockPolicy for Lirs {
    #[inline(always)]
    fn is_here(&self, found: &Found) -> bool {
        found.state & GONE == 0
    }

    #[inline(always)]
    fn hit(&mut self, table: &mut Table, Found { slot, state, position }: Found) {
        if state & LIR != 0 {
            let was_bottom = self.s.first(table) == Some(slot);
            *table.entry(slot).position = self.s.renew(position, slot);
            if was_bottom {
                self.prune(table);
            }
        } else if state & IN_S == 0 {
            let entry = table.entry(slot);
            *entry.state |= IN_S;
            *entry.position = self.s.push(slot);
            let second = table.second(slot);
            *second = self.q.renew(*second, slot);
            self.prune(table);
        } else {
            self.q.take(*table.second(slot));
            self.renew_as_lir(table, slot);
        }
        self.limit_stack(table);
    }

    #[inline(always)]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        if self.resident() == self.lir_capacity + self.hir_capacity {
            self.evict(table);
        }
        match missing.history {
            Some(Found { slot, .. }) => {
                self.gone.take(*table.second(slot));
                self.renew_as_lir(table, slot);
            }
            None => {
                let becomes_lir = self.lir < self.lir_capacity;
                let state = if becomes_lir { IN_S | LIR } else { IN_S | IN_Q };
                let slot = table.insert(missing.key, missing.hash, state, self.s.next());
                self.s.push(slot);
                if becomes_lir {
                    self.added_lir(table);
                } else {
                    *table.second(slot) = self.q.push(slot);
                    self.prune(table);
                }
            }
        }
        self.limit_stack(table);
    }

    fn resident(&self) -> u64 {
        self.lir + self.q.length()
    }

    #[inline(always)]
    fn make_room(&mut self, table: &mut Table) {
        self.s.make_room(|slot, position| *table.entry(slot).position = position);
        for order in [&mut self.q, &mut self.gone] {
            order.make_room(|slot, position| *table.second(slot) = position);
        }
    }

    fn renumber(&mut self, _: &Table, moved: &[Slot]) {
        self.s.renumber(moved);
        self.q.renumber(moved);
        self.gone.renumber(moved);
    }

    fn put(&mut self, table: &mut Table, slot: Slot, rail: Rail, list: ListId, mark: bool) {
        let entry = table.entry(slot);
        if rail == Rail::Main {
            *entry.state |= IN_S | if mark { LIR } else { 0 };
            *entry.position = self.s.push(slot);
            return;
        }
        let (state, order) = if list == Q { (IN_Q, &mut self.q) } else { (GONE, &mut self.gone) };
        *entry.state |= state;
        *table.second(slot) = order.push(slot);
    }

    fn in_order(&self, rail: Rail, list: ListId) -> Slots<'_> {
        match (rail, list) {
            (Rail::Main, _) => Box::new(self.s.iter()),
            (Rail::Second, Q) => Box::new(self.q.iter()),
            (Rail::Second, _) => Box::new(self.gone.iter()),
        }
    }

    fn mark(&self, state: State) -> bool {
        state & LIR != 0
    }
}

impl Lirs {
    pub(crate) fn new(capacity: u64) -> Lirs {
        let hir_capacity = hir_capacity(capacity);
        Lirs {
            lir_capacity: capacity - hir_capacity,
            hir_capacity,
            lir: 0,
            s: Log::new(),
            q: Log::new(),
            gone: Log::new(),
        }
    }

    /// A block that is in S, and on the second rail no more, becomes LIR.
    #[inline(always)]
    fn renew_as_lir(&mut self, table: &mut Table, slot: Slot) {
        let entry = table.entry(slot);
        *entry.position = self.s.renew(*entry.position, slot);
        *entry.state = IN_S | LIR;
        self.added_lir(table);
    }

    /// There is one more LIR block: if that is one too many, the least recently used becomes HIR.
    #[inline(always)]
    fn added_lir(&mut self, table: &mut Table) {
        self.lir += 1;
        self.prune(table);
        if self.lir > self.lir_capacity
            && let Some(bottom) = self.s.pop_first(table)
        {
            *table.entry(bottom).state = IN_Q;
            *table.second(bottom) = self.q.push(bottom);
            self.lir -= 1;
            self.prune(table);
        }
    }

    /// The HIR block that has been in Q for longest leaves.
    #[inline(always)]
    fn evict(&mut self, table: &mut Table) {
        let Some(victim) = self.q.pop_first(table) else { return };
        let state = table.entry(victim).state;
        if *state & IN_S == 0 {
            table.remove(victim);
        } else {
            *state = IN_S | GONE;
            *table.second(victim) = self.gone.push(victim);
        }
    }

    /// Takes HIR blocks off the bottom of S until it is LIR.
    #[inline(always)]
    fn prune(&mut self, table: &mut Table) {
        while let Some(bottom) = self.s.first(table) {
            let entry = table.entry(bottom);
            if *entry.state & LIR != 0 {
                return;
            }
            self.s.take(*entry.position);
            if *entry.state & GONE == 0 {
                *entry.state = IN_Q;
            } else {
                self.gone.take(*table.second(bottom));
                table.remove(bottom);
            }
        }
    }

    /// Forgets what has been gone for longest, if S is too large.
    #[inline(always)]
    fn limit_stack(&mut self, table: &mut Table) {
        while self.s.length() > 2 * (self.lir_capacity + self.hir_capacity) {
            let Some(oldest) = self.gone.pop_first(table) else { return };
            self.s.take(*table.entry(oldest).position);
            table.remove(oldest);
        }
    }
}
