//! What ranks tell each other inside an MPI library, for strategies that are only predicted.
//!
//! An MPI library's own messages are in no trace. Here they have the sizes that its documentation and papers tell, and
//! carry what the far side's machine must know: the number of bytes is modelled, the content is symbolic. Collective calls
//! are carried out by recursive doubling (Thakur, Rabenseifner and Gropp 2005, section 4): log P steps a rank. Where P is
//! no power of two, the ranks above it first tell a neighbour, and are told at the end.

use std::ops::Range;
use std::sync::Arc;

use crate::access::{Access, Group, Rank};
use crate::machine::Action;
use crate::message::Message;

/// A message inside an MPI library.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    /// Which step of the operation it belongs to.
    pub stage: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// What it says.
    pub what: What,
    /// Whether it belongs to a reduction. Ranks of MPICH wait in these, as in a barrier, in shared memory of their own, and
    /// keep their processors meanwhile; in others they give them away (its `MPIDI_POSIX` collectives; 4 ranks on 2
    /// processors: 8 ms against 10 µs).
    pub reduces: bool,
}

/// What a message inside an MPI library says.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// That the sender is there.
    Nothing,
    /// Where the accesses of some ranks begin and end.
    Bounds(Bounds),
    /// Numbers by rank, ascending: what each rank has to expect. Those of the same rank are added.
    Sums(Vec<(Rank, u64)>),
    /// How many rounds there are, and where those of some aggregators begin in the file, by aggregator.
    Rounds(u64, Vec<(Rank, u64)>),
    /// Which bytes the sender has for the receiver.
    Access(Access),
    /// Which bytes some ranks have.
    Accesses(Accesses),
}

/// The accesses of some ranks: put together without copying them.
#[derive(Clone, Debug, PartialEq)]
pub struct Accesses {
    node: Arc<Node>,
    /// All bytes lie in this interval of the file.
    file: Range<u64>,
}

#[derive(Debug, PartialEq)]
enum Node {
    One(Rank, Access),
    Both(Accesses, Accesses),
}

impl Accesses {
    /// That of one rank.
    pub(crate) fn of(rank: Rank, access: Access) -> Accesses {
        let bounds = access.bounds();
        // Of one that ends where the file has no offset, it is not known where.
        let file = if bounds.is_empty() && access.bytes() > 0 { 0..u64::MAX } else { bounds };
        Accesses { node: Node::One(rank, access).into(), file }
    }

    /// Those with data in an interval of the file, in the order of ranks, and which: what lies elsewhere is not looked at.
    pub(crate) fn within(&self, file: &Range<u64>) -> Vec<(Rank, &Access, Range<u64>)> {
        let mut found = Vec::new();
        let mut left = vec![self];
        while let Some(some) = left.pop() {
            if some.file.end <= file.start || file.end <= some.file.start {
                continue;
            }
            match &*some.node {
                Node::One(rank, access) => found.push((*rank, access, access.within(file.clone()))),
                Node::Both(these, those) => left.extend([those, these]),
            }
        }
        found.retain(|(.., positions)| !positions.is_empty());
        found
    }

    /// With those of the ranks behind.
    fn and(self, behind: Accesses) -> Accesses {
        let file = match (self.file.is_empty(), behind.file.is_empty()) {
            (true, _) => behind.file.clone(),
            (_, true) => self.file.clone(),
            _ => self.file.start.min(behind.file.start)..self.file.end.max(behind.file.end),
        };
        Accesses { node: Node::Both(self, behind).into(), file }
    }
}

/// Where the accesses of ranks with consecutive numbers begin and end: file offsets of the first and the last byte. A
/// library may say of a rank without data that it ends before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of the first of these ranks.
    first: (i64, i64),
    /// Where the last of these ranks ends.
    last_end: i64,
    /// The lowest begin.
    pub(crate) start: i64,
    /// The highest end.
    pub(crate) end: i64,
    /// Whether a rank begins before the rank before it ends.
    pub(crate) is_interleaved: bool,
}

impl Bounds {
    /// Of one rank.
    pub(crate) fn of(start: i64, end: i64) -> Bounds {
        Bounds { first: (start, end), last_end: end, start, end, is_interleaved: false }
    }

    /// With those of the ranks behind.
    fn and(self, behind: Bounds) -> Bounds {
        let (start, end) = behind.first;
        Bounds {
            first: self.first,
            last_end: behind.last_end,
            start: self.start.min(behind.start),
            end: self.end.max(behind.end),
            is_interleaved: self.is_interleaved
                || behind.is_interleaved
                || (start < self.last_end && start <= end),
        }
    }
}

impl What {
    /// What some ranks say, with what the ranks behind them say.
    fn and(self, behind: What) -> What {
        match (self, behind) {
            (What::Bounds(these), What::Bounds(those)) => What::Bounds(these.and(those)),
            (What::Sums(these), What::Sums(those)) => What::Sums(merged(these, those, |a, b| a + b)),
            (What::Rounds(few, these), What::Rounds(many, those)) => {
                What::Rounds(few.max(many), merged(these, those, u64::min))
            }
            (What::Accesses(these), What::Accesses(those)) => What::Accesses(these.and(those)),
            (this, _) => this,
        }
    }
}

fn merged(
    these: Vec<(Rank, u64)>,
    those: Vec<(Rank, u64)>,
    both: impl Fn(u64, u64) -> u64,
) -> Vec<(Rank, u64)> {
    let mut all: Vec<(Rank, u64)> = these.into_iter().chain(those).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.dedup_by(|second, first| {
        let is_same = first.0 == second.0;
        if is_same {
            first.1 = both(first.1, second.1);
        }
        is_same
    });
    all
}

/// What a collective call inside the library moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Every rank learns so many bytes of every other: a message has those of the ranks heard of.
    Gather(u64),
    /// Every rank learns a result of so many bytes.
    Reduce(u64),
    /// Every rank has so many bytes for every other: half of all are in each message.
    Exchange(u64),
}

/// A collective call inside the library, as one rank sees it; one after the other.
#[derive(Debug)]
pub(crate) struct Gathering {
    group: Group,
    stage: u64,
    traffic: Traffic,
    /// What is known so far, of ranks with consecutive numbers.
    known: What,
    waits_for: Waits,
    /// Came before their turn.
    early: Vec<(u64, Rank, What)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// For the rank below, which takes no part itself.
    Below,
    /// For the rank that differs in this bit.
    Partner(u32),
    /// For the result, which the rank above has.
    Above,
    Nobody,
}

impl Gathering {
    pub(crate) fn new(group: Group) -> Gathering {
        let (traffic, known) = (Traffic::Reduce(0), What::Nothing);
        Gathering { group, stage: 0, traffic, known, waits_for: Waits::Nobody, early: Vec::new() }
    }

    /// Begins the call of this stage with what this rank says.
    pub(crate) fn begin(&mut self, stage: u64, traffic: Traffic, says: What, actions: &mut Vec<Action>) {
        (self.stage, self.traffic, self.known) = (stage, traffic, says);
        let rank = self.group.rank.0;
        self.waits_for = if rank >= 2 * self.extra() {
            self.double(1, actions)
        } else if rank % 2 == 1 {
            Waits::Below
        } else {
            self.send(Rank(rank + 1), 1, actions);
            Waits::Above
        };
    }

    /// Takes in a message of this stage or a later one.
    pub(crate) fn take(&mut self, from: Rank, inside: Inside) {
        self.early.push((inside.stage, from, inside.what));
    }

    /// Goes on as far as messages are there. Whether the call is over.
    pub(crate) fn go_on(&mut self, actions: &mut Vec<Action>) -> bool {
        loop {
            let rank = self.group.rank;
            let from = match self.waits_for {
                Waits::Nobody => return true,
                Waits::Below => Rank(rank.0 - 1),
                Waits::Above => Rank(rank.0 + 1),
                Waits::Partner(bit) => self.partner(bit),
            };
            let here = self.early.iter().position(|(stage, who, _)| (*stage, *who) == (self.stage, from));
            let Some(here) = here else { return false };
            let (_, _, said) = self.early.swap_remove(here);
            let known = std::mem::replace(&mut self.known, What::Nothing);
            (self.known, self.waits_for) = match self.waits_for {
                Waits::Above => (said, Waits::Nobody),
                _ if from < rank => (said.and(known), self.waits_for),
                _ => (known.and(said), self.waits_for),
            };
            self.waits_for = match self.waits_for {
                Waits::Below => self.double(1, actions),
                Waits::Partner(bit) => self.double(bit << 1, actions),
                other => other,
            };
        }
    }

    /// What all ranks said together, once the call is over.
    pub(crate) fn result(&mut self) -> What {
        std::mem::replace(&mut self.known, What::Nothing)
    }

    /// Tells the rank that differs in a bit; or, beyond the last bit, the rank that takes no part.
    fn double(&mut self, bit: u32, actions: &mut Vec<Action>) -> Waits {
        if bit < self.core() {
            self.send(self.partner(bit), self.heard_of(bit), actions);
            return Waits::Partner(bit);
        }
        let rank = self.group.rank.0;
        if rank < 2 * self.extra() {
            self.send(Rank(rank - 1), self.group.ranks, actions);
        }
        Waits::Nobody
    }

    /// Sends what is known, of so many ranks.
    fn send(&self, to: Rank, ranks: u32, actions: &mut Vec<Action>) {
        let bytes = match self.traffic {
            Traffic::Gather(bytes) => bytes.saturating_mul(u64::from(ranks)),
            Traffic::Reduce(bytes) => bytes,
            Traffic::Exchange(bytes) => bytes.saturating_mul(u64::from(self.group.ranks)).div_ceil(2),
        };
        let reduces = matches!(self.traffic, Traffic::Reduce(_));
        let inside = Inside { stage: self.stage, bytes, what: self.known.clone(), reduces };
        actions.push(Action::Send { to, message: Message::Inside(inside) });
    }

    /// Ranks that take part themselves: a power of two.
    fn core(&self) -> u32 {
        1 << self.group.ranks.max(1).ilog2()
    }

    /// Those above it. Of the lowest ranks every second one stands for one of them.
    fn extra(&self) -> u32 {
        self.group.ranks.max(1) - self.core()
    }

    /// This rank's number among those that take part.
    fn number(&self) -> u32 {
        let (rank, extra) = (self.group.rank.0, self.extra());
        if rank < 2 * extra { rank / 2 } else { rank - extra }
    }

    fn partner(&self, bit: u32) -> Rank {
        let (number, extra) = (self.number() ^ bit, self.extra());
        Rank(if number < extra { 2 * number + 1 } else { number + extra })
    }

    /// How many ranks this one has heard of, itself included, before it tells the one that differs in `bit`.
    fn heard_of(&self, bit: u32) -> u32 {
        let first = self.number() & !(bit - 1);
        bit + self.extra().saturating_sub(first).min(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all ranks know after a call, and the bytes that each sent.
    fn call(ranks: u32, traffic: Traffic, says: impl Fn(u32) -> What) -> Vec<(What, Vec<u64>)> {
        let mut all: Vec<Gathering> =
            (0..ranks).map(|rank| Gathering::new(Group { rank: Rank(rank), ranks })).collect();
        let mut sent = vec![Vec::new(); ranks as usize];
        let mut actions: Vec<Vec<Action>> = vec![Vec::new(); ranks as usize];
        for rank in 0..ranks {
            all[rank as usize].begin(7, traffic, says(rank), &mut actions[rank as usize]);
        }
        loop {
            let mail: Vec<(u32, Action)> = (0..ranks)
                .flat_map(|rank| {
                    std::mem::take(&mut actions[rank as usize]).into_iter().map(move |it| (rank, it))
                })
                .collect();
            if mail.is_empty() {
                break;
            }
            for (from, action) in mail {
                let Action::Send { to, message: Message::Inside(inside) } = action else {
                    panic!("{action:?}")
                };
                sent[from as usize].push(inside.bytes);
                all[to.index()].take(Rank(from), inside);
            }
            for (machine, actions) in all.iter_mut().zip(&mut actions) {
                machine.go_on(actions);
            }
        }
        all.iter_mut()
            .zip(sent)
            .map(|(machine, sent)| {
                assert!(machine.go_on(&mut Vec::new()), "{ranks} ranks: one still waits");
                (machine.result(), sent)
            })
            .collect()
    }

    #[test]
    fn all_ranks_learn_of_all() {
        for ranks in 1..=17 {
            let sums = call(ranks, Traffic::Exchange(4), |rank| What::Sums(vec![(Rank(rank % 3), 1)]));
            for (what, sent) in &sums {
                let What::Sums(sums) = what else { panic!("{what:?}") };
                assert_eq!(sums.iter().map(|(_, count)| count).sum::<u64>(), u64::from(ranks), "{sums:?}");
                assert!(sent.len() <= ranks.ilog2() as usize + 1, "{sent:?}");
            }
            // In the order of ranks: none begins before the one before it ends.
            let apart = call(ranks, Traffic::Gather(8), |rank| {
                What::Bounds(Bounds::of(i64::from(rank) * 10, i64::from(rank) * 10 + 10))
            });
            for (what, _) in apart {
                let What::Bounds(bounds) = what else { panic!("{what:?}") };
                assert_eq!((bounds.start, bounds.end), (0, i64::from(ranks) * 10));
                assert!(!bounds.is_interleaved, "{ranks} ranks");
            }
        }
        let (what, _) =
            call(6, Traffic::Gather(8), |rank| What::Bounds(Bounds::of(i64::from(rank), 20))).remove(3);
        assert!(matches!(what, What::Bounds(Bounds { is_interleaved: true, .. })));
    }

    #[test]
    fn a_gathering_sends_what_was_heard_of() {
        let sent =
            |ranks, rank: usize| call(ranks, Traffic::Gather(8), |_| What::Nothing).swap_remove(rank).1;
        assert_eq!(sent(8, 3), [8, 16, 32]);
        assert_eq!(sent(6, 0), [8], "takes no part itself");
        assert_eq!(sent(6, 1), [16, 32, 48], "for two; and tells the other the result");
        assert_eq!(sent(6, 5), [8, 16]);
        assert_eq!(sent(1, 0), [0_u64; 0]);
    }
}
