//! The published policies, on lists of single blocks and nothing else: slow, and short enough to be seen to be right.

use pio_cache::Policy;

/// A block: file and number.
pub(crate) type Block = (u64, u64);

/// A policy on lists of single blocks; the coldest block of a list is the first.
pub(crate) struct Naive {
    policy: Policy,
    capacity: usize,
    lists: Vec<Vec<Block>>,
    marked: Vec<Block>,
    p: f64,
}

impl Naive {
    pub(crate) fn new(policy: Policy, capacity: u64) -> Naive {
        let capacity = capacity as usize;
        Naive { policy, capacity, lists: vec![Vec::new(); 8], marked: Vec::new(), p: 0.0 }
    }

    /// Touches a block; whether it was here.
    pub(crate) fn touch(&mut self, block: Block) -> bool {
        match self.policy {
            Policy::Lru | Policy::Mru => self.recency(block),
            Policy::Clock => self.clock(block),
            Policy::Slru { segments } => self.slru(block, usize::from(segments)),
            Policy::Arc => self.arc(block),
            Policy::Lirs => self.lirs(block),
        }
    }

    pub(crate) fn resident(&self) -> usize {
        match self.policy {
            Policy::Arc => self.lists[T1].len() + self.lists[T2].len(),
            Policy::Lirs => self.marked.len() + self.lists[Q].len(),
            _ => self.lists.iter().map(Vec::len).sum(),
        }
    }

    fn recency(&mut self, block: Block) -> bool {
        let list = &mut self.lists[0];
        let hit = take(list, block);
        if !hit && list.len() == self.capacity {
            list.remove(if self.policy == Policy::Lru { 0 } else { list.len() - 1 });
        }
        list.push(block);
        hit
    }

    fn clock(&mut self, block: Block) -> bool {
        let list = &mut self.lists[0];
        if list.contains(&block) {
            if !self.marked.contains(&block) {
                self.marked.push(block);
            }
            return true;
        }
        while list.len() == self.capacity {
            let first = list.remove(0);
            if take(&mut self.marked, first) {
                list.push(first);
            }
        }
        list.push(block);
        false
    }

    fn slru(&mut self, block: Block, segments: usize) -> bool {
        let size = |list: usize| match list {
            0 => self.capacity - (self.capacity / segments) * (segments - 1),
            _ => self.capacity / segments,
        };
        if let Some(list) = (0..segments).find(|list| self.lists[*list].contains(&block)) {
            take(&mut self.lists[list], block);
            let above = (list + 1).min(segments - 1);
            self.lists[above].push(block);
            for list in (1..=above).rev() {
                if self.lists[list].len() > size(list) {
                    let falling = self.lists[list].remove(0);
                    self.lists[list - 1].push(falling);
                }
            }
            return true;
        }
        if self.resident() == self.capacity {
            let lowest = self.lists.iter_mut().find(|list| !list.is_empty()).unwrap();
            lowest.remove(0);
        }
        let list = (0..segments).find(|list| self.lists[*list].len() < size(*list)).unwrap();
        self.lists[list].push(block);
        false
    }

    fn arc(&mut self, block: Block) -> bool {
        if take(&mut self.lists[T1], block) || take(&mut self.lists[T2], block) {
            self.lists[T2].push(block);
            return true;
        }
        let (b1, b2) = (self.lists[B1].len() as f64, self.lists[B2].len() as f64);
        if take(&mut self.lists[B1], block) {
            self.p = (self.p + (b2 / b1).max(1.0)).min(self.capacity as f64);
            self.arc_replace(false);
            self.lists[T2].push(block);
            return false;
        }
        if take(&mut self.lists[B2], block) {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            self.arc_replace(true);
            self.lists[T2].push(block);
            return false;
        }
        let l1 = self.lists[T1].len() + self.lists[B1].len();
        if l1 == self.capacity {
            if self.lists[T1].len() < self.capacity {
                self.lists[B1].remove(0);
                self.arc_replace(false);
            } else {
                self.lists[T1].remove(0);
            }
        } else if self.resident() == self.capacity {
            if l1 + self.lists[T2].len() + self.lists[B2].len() == 2 * self.capacity {
                self.lists[B2].remove(0);
            }
            self.arc_replace(false);
        }
        self.lists[T1].push(block);
        false
    }

    fn arc_replace(&mut self, in_b2: bool) {
        let t1 = self.lists[T1].len();
        let from_t1 = t1 > 0 && (t1 as f64 > self.p || in_b2 && t1 as f64 == self.p);
        let (from, to) = if from_t1 || self.lists[T2].is_empty() { (T1, B1) } else { (T2, B2) };
        let block = self.lists[from].remove(0);
        self.lists[to].push(block);
    }

    /// `marked` are the LIR blocks.
    fn lirs(&mut self, block: Block) -> bool {
        let hirs = (self.capacity / 100).max(1);
        let in_s = take(&mut self.lists[S], block);
        let hit = self.marked.contains(&block) || self.lists[Q].contains(&block);
        if !hit {
            take(&mut self.lists[GONE], block);
            if self.resident() == self.capacity {
                let evicted = self.lists[Q].remove(0);
                if self.lists[S].contains(&evicted) {
                    self.lists[GONE].push(evicted);
                }
            }
        }
        self.lists[S].push(block);
        let lirs_are_missing = !hit && self.marked.len() < self.capacity - hirs;
        if !self.marked.contains(&block) {
            take(&mut self.lists[Q], block);
            if in_s || lirs_are_missing {
                self.marked.push(block);
                if self.marked.len() > self.capacity - hirs {
                    self.lirs_prune();
                    let bottom = self.lists[S].remove(0);
                    take(&mut self.marked, bottom);
                    self.lists[Q].push(bottom);
                }
            } else {
                self.lists[Q].push(block);
            }
        }
        self.lirs_prune();
        while self.lists[S].len() > 2 * self.capacity {
            let forgotten = self.lists[GONE].remove(0);
            take(&mut self.lists[S], forgotten);
        }
        hit
    }

    fn lirs_prune(&mut self) {
        while self.lists[S].first().is_some_and(|bottom| !self.marked.contains(bottom)) {
            let bottom = self.lists[S].remove(0);
            take(&mut self.lists[GONE], bottom);
        }
    }
}

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;
const S: usize = 0;
const Q: usize = 1;
const GONE: usize = 2;

/// Takes a block out of a list, if it is in it.
fn take(list: &mut Vec<Block>, block: Block) -> bool {
    let position = list.iter().position(|other| *other == block);
    position.map(|position| list.remove(position)).is_some()
}
