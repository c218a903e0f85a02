//! LIRS (Jiang and Zhang, SIGMETRICS 2002, section 3), in the paper's names.

use super::order::Order;
use super::table::{MAIN, SECOND, Slot, State, Table};
use super::{BlockPolicy, ListId, Missing, Slots, hir_capacity};

/// States: which list of each rail a block is in, and whether it is LIR.
const IN_S: State = 1;
const LIR: State = 2;
const IN_Q: State = 4;
const GONE: State = 8;

/// The lists of the second rail: Q, and what is gone in the order in which it went.
const Q_LIST: ListId = 0;

pub(crate) struct Lirs {
    lir_capacity: u64,
    hir_capacity: u64,
    pub lir: u64,
    s: Order<MAIN>,
    q: Order<SECOND>,
    gone: Order<SECOND>,
}

impl BlockPolicy for Lirs {
    #[inline]
    fn is_here(&self, state: State) -> bool {
        state & GONE == 0
    }

    #[inline]
    fn hit(&mut self, table: &mut Table, slot: Slot) {
        let state = table.state(slot);
        if state & LIR != 0 {
            let was_bottom = self.s.first(table) == Some(slot);
            self.s.renew(table, slot);
            if was_bottom {
                self.prune(table);
            }
        } else if state & IN_S == 0 {
            table.set_state(slot, state | IN_S);
            self.s.push(table, slot);
            self.q.renew(table, slot);
            self.prune(table);
        } else {
            self.q.take(table, slot);
            self.s.take(table, slot);
            self.make_lir(table, slot);
        }
        self.limit_stack(table);
    }

    #[inline]
    fn miss(&mut self, table: &mut Table, missing: Missing) {
        if self.resident() == self.lir_capacity + self.hir_capacity {
            self.evict(table);
        }
        match missing.history {
            Some(slot) => {
                self.gone.take(table, slot);
                self.s.take(table, slot);
                self.make_lir(table, slot);
            }
            None => {
                let slot = table.insert(missing.key, missing.hash, IN_S | IN_Q);
                if self.lir < self.lir_capacity {
                    self.make_lir(table, slot);
                } else {
                    self.s.push(table, slot);
                    self.q.push(table, slot);
                    self.prune(table);
                }
            }
        }
        self.limit_stack(table);
    }

    fn resident(&self) -> u64 {
        self.lir + self.q.length()
    }

    #[inline]
    fn make_room(&mut self, table: &mut Table) {
        self.s.make_room(table);
        self.q.make_room(table);
        self.gone.make_room(table);
    }

    fn renumber(&mut self, moved: &[Slot]) {
        self.s.renumber(moved);
        self.q.renumber(moved);
        self.gone.renumber(moved);
    }

    fn put(&mut self, table: &mut Table, slot: Slot, rail: usize, list: ListId, mark: bool) {
        let state = table.state(slot);
        if rail == MAIN {
            table.set_state(slot, state | IN_S | if mark { LIR } else { 0 });
            self.s.push(table, slot);
        } else if list == Q_LIST {
            table.set_state(slot, state | IN_Q);
            self.q.push(table, slot);
        } else {
            table.set_state(slot, state | GONE);
            self.gone.push(table, slot);
        }
    }

    fn in_order(&self, rail: usize, list: ListId) -> Slots<'_> {
        match (rail, list) {
            (MAIN, _) => Box::new(self.s.iter()),
            (_, Q_LIST) => Box::new(self.q.iter()),
            _ => Box::new(self.gone.iter()),
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
            s: Order::new(),
            q: Order::new(),
            gone: Order::new(),
        }
    }

    /// A block that is in no list becomes LIR, and if that is one too many, the least recently used LIR block becomes
    /// HIR.
    #[inline]
    fn make_lir(&mut self, table: &mut Table, slot: Slot) {
        table.set_state(slot, IN_S | LIR);
        self.s.push(table, slot);
        self.lir += 1;
        self.prune(table);
        if self.lir > self.lir_capacity
            && let Some(bottom) = self.s.pop_first(table)
        {
            table.set_state(bottom, IN_Q);
            self.q.push(table, bottom);
            self.lir -= 1;
            self.prune(table);
        }
    }

    /// The HIR block that has been in Q for longest leaves.
    #[inline]
    fn evict(&mut self, table: &mut Table) {
        let Some(victim) = self.q.pop_first(table) else { return };
        if table.state(victim) & IN_S == 0 {
            table.remove(victim);
        } else {
            table.set_state(victim, IN_S | GONE);
            self.gone.push(table, victim);
        }
    }

    /// Takes HIR blocks off the bottom of S until it is LIR.
    #[inline]
    fn prune(&mut self, table: &mut Table) {
        while let Some(bottom) = self.s.first(table) {
            let state = table.state(bottom);
            if state & LIR != 0 {
                return;
            }
            self.s.take(table, bottom);
            if state & GONE != 0 {
                self.gone.take(table, bottom);
                table.remove(bottom);
            } else {
                table.set_state(bottom, IN_Q);
            }
        }
    }

    /// Forgets what has been gone for longest, if S is too large.
    #[inline]
    fn limit_stack(&mut self, table: &mut Table) {
        while self.s.length() > 2 * (self.lir_capacity + self.hir_capacity) {
            let Some(oldest) = self.gone.pop_first(table) else { return };
            self.s.take(table, oldest);
            table.remove(oldest);
        }
    }
}
