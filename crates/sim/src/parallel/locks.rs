//! The locks of one object or file, as the server sees them that keeps them: who has which extent, who waits.
//!
//! A client that wants what no other has or waits for before it gets it at once; otherwise who has it is called, once for
//! each lock, and the client waits its turn. What has been called back is nobody's until it is back, not even of the client
//! that has it: its cache is written out and forgotten meanwhile. As Lustre's lock manager (`ldlm_extent.c`) and GPFS's token server (Schmuck
//! and Haskin 2002, section 3.2) do it.
//!
//! Where all of a lock is given back ([`Yields::Lock`]), a lock is one wish's, as Lustre's. It is in the way of other wishes of
//! its own client, too: those of ranks that found no lock that covers what they need when they asked. Who waits gets its
//! lock in turn: behind one that goes on waiting, nobody does (`ldlm_reprocess_queue`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_machine::{ExtentLocks, Grant, Yields};
use pio_plan::Direction;

use super::extents::Extents;

/// A client's wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The node of the client.
    pub(super) client: u32,
    /// Of whom: it is handed back with the lock.
    pub(super) rank: u32,
    /// To read others may have it too.
    pub(super) direction: Direction,
    pub(super) range: Range<u64>,
}

/// What a server says to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Who wished for it has it, and all of this.
    Granted(Wish, Range<u64>),
    /// This client is to give back what another wants: something of a lock that it has.
    CalledBack { client: u32, lock: Range<u64>, wanted: Range<u64> },
}

/// The locks of one object or file.
#[derive(Debug, Default)]
pub(super) struct LockTable {
    held: BTreeMap<u32, Held>,
    /// In the order in which they came.
    waiting: Vec<Wish>,
    /// Which parts have been called back from whom and are not back yet: those of one client are disjoint.
    called: Vec<(u32, Range<u64>)>,
    /// How many words each client has been told.
    told: BTreeMap<u32, u64>,
}

/// What one client has: to read, and to read and write.
#[derive(Debug, Default)]
struct Held {
    reads: Extents,
    writes: Extents,
}

impl LockTable {
    /// A client wishes for a lock.
    pub(super) fn ask(&mut self, wish: Wish, costs: &ExtentLocks, words: &mut Vec<Word>) {
        self.waiting.push(wish);
        self.look(vec![self.waiting.len() - 1], costs, words);
    }

    /// A client has given back all that it had of an extent.
    pub(super) fn give_back(
        &mut self,
        client: u32,
        range: &Range<u64>,
        costs: &ExtentLocks,
        words: &mut Vec<Word>,
    ) {
        if let Some(held) = self.held.get_mut(&client) {
            held.reads.remove(range.clone());
            held.writes.remove(range.clone());
        }
        if costs.yields == Yields::Lock {
            self.called.retain(|(who, called)| *who != client || !overlap(called, range));
            return self.look_in_turn(costs, words);
        }
        // Who wants another part of the same lock has not called it back anew.
        let mut touched = Extents::default();
        touched.add(range.clone());
        self.called.retain(|(who, called)| {
            let stays = *who != client || !overlap(called, range);
            if !stays {
                touched.add(called.clone());
            }
            stays
        });
        let waits = |place: &usize| touched.overlaps(&self.waiting[*place].range);
        self.look((0..self.waiting.len()).filter(waits).collect(), costs, words);
    }

    /// Whether a client may write anywhere in an extent.
    pub(super) fn may_write(&self, client: u32, range: &Range<u64>) -> bool {
        self.held.get(&client).is_some_and(|held| held.writes.overlaps(range))
    }

    /// The number of the next word to a client: words are heard in the order in which they were said, as over one connection.
    pub(super) fn number(&mut self, client: u32) -> u64 {
        let told = self.told.entry(client).or_default();
        *told += 1;
        *told - 1
    }

    /// Looks at some of those that wait, in order: who can have what it wishes for gets it. Of those behind it that wanted a
    /// part of the same, who has that has changed: they are looked at again.
    fn look(&mut self, places: Vec<usize>, costs: &ExtentLocks, words: &mut Vec<Word>) {
        let mut places = BTreeSet::from_iter(places);
        while let Some(place) = places.pop_first() {
            let wish = self.waiting[place].clone();
            let is_held = self.call_back(&wish, costs, words);
            let is_awaited = self.waiting[..place].iter().any(|other| other.conflicts(&wish, costs));
            if is_held || is_awaited {
                continue;
            }
            self.waiting.remove(place);
            self.grant(&wish, costs, words);
            let behind = |later: &usize| self.waiting[*later].conflicts(&wish, costs);
            let moved = places.iter().map(|later| later - 1);
            places = moved.chain((place..self.waiting.len()).filter(behind)).collect();
        }
    }

    /// Those that wait get their locks in turn, up to the first that goes on waiting.
    fn look_in_turn(&mut self, costs: &ExtentLocks, words: &mut Vec<Word>) {
        while let Some(wish) = self.waiting.first().cloned() {
            if self.call_back(&wish, costs, words) {
                return;
            }
            self.waiting.remove(0);
            self.grant(&wish, costs, words);
            for other in self.waiting.clone().iter().filter(|other| other.conflicts(&wish, costs)) {
                self.call_back(other, costs, words);
            }
        }
    }

    /// A client gets what it wishes for, and what there is around it.
    fn grant(&mut self, wish: &Wish, costs: &ExtentLocks, words: &mut Vec<Word>) {
        let range = match costs.grant {
            Grant::Widest => self.widest(wish, costs),
            Grant::Asked => wish.range.clone(),
        };
        let held = self.held.entry(wish.client).or_default();
        match wish.direction {
            Direction::Read => _ = held.reads.add(range.clone()),
            Direction::Write => add_writes(&mut held.writes, range.clone(), costs.yields),
        }
        words.push(Word::Granted(wish.clone(), range));
    }

    /// Calls back what is in the way of a wish, unless that has been done. Whether there is any, or the client itself is to
    /// give back a part.
    fn call_back(&mut self, wish: &Wish, costs: &ExtentLocks, words: &mut Vec<Word>) -> bool {
        let mut is_held = called_from(&self.called, wish.client).any(|called| overlap(called, &wish.range));
        for (client, held) in self.held.iter().filter(|(client, _)| wish.is_against(**client, costs)) {
            let of_readers = (wish.direction == Direction::Write).then_some(&held.reads);
            for extents in of_readers.into_iter().chain([&held.writes]) {
                for part in extents.within(&wish.range) {
                    is_held = true;
                    let is_called = called_from(&self.called, *client).any(|called| overlap(called, &part));
                    if let Some(lock) = extents.around(part.start).filter(|_| !is_called) {
                        let lock = between(lock, &part, called_from(&self.called, *client));
                        self.called.push((*client, lock.clone()));
                        words.push(Word::CalledBack { client: *client, lock, wanted: wish.range.clone() });
                    }
                }
            }
        }
        is_held
    }

    /// What a client can have around its wish: up to what another has, or waits for, or it is itself to give back. What many
    /// want does not grow far, as others will want that, too.
    fn widest(&self, wish: &Wish, costs: &ExtentLocks) -> Range<u64> {
        let Range { start, end } = wish.range;
        let all = 0..u64::MAX;
        let Range { start: mut low, end: mut high } =
            between(all, &wish.range, called_from(&self.called, wish.client));
        let mut granted = 0;
        for (_, held) in self.held.iter().filter(|(client, _)| wish.is_against(**client, costs)) {
            let of_readers = (wish.direction == Direction::Write).then_some(&held.reads);
            for extents in of_readers.into_iter().chain([&held.writes]) {
                granted += extents.len();
                low = low.max(extents.end_before(start).unwrap_or(0));
                high = high.min(extents.begin_behind(end).unwrap_or(u64::MAX));
            }
        }
        let against = |other: &&Wish| wish.is_against(other.client, costs) && !both_read(other, wish);
        let mut awaited = 0;
        for other in self.waiting.iter().filter(against) {
            awaited += 1;
            if other.range.end <= start {
                low = low.max(other.range.end);
            } else if other.range.start >= end {
                high = high.min(other.range.start);
            }
        }
        if costs.yields == Yields::Lock && granted.max(awaited) > FEW {
            low = start;
        }
        if costs.yields == Yields::Lock && granted.max(awaited) > MANY && wish.direction == Direction::Write {
            high = high.min(start.saturating_add(MOST_GROWN));
        }
        low.min(start)..high.max(end)
    }
}

/// Beyond so many locks in its way a lock does not grow down, and beyond so many others not far up
/// (`ldlm_extent_internal_policy_granted`, `_waiting` and `_fixup` of Lustre 2.13).
const FEW: usize = 4;
const MANY: usize = 32;
const MOST_GROWN: u64 = 32 << 20;

/// Adds a lock to write to those of a client: apart from the others, if all of one is given back.
pub(super) fn add_writes(writes: &mut Extents, range: Range<u64>, yields: Yields) {
    match yields {
        Yields::Lock => writes.add_apart(range),
        Yields::Extent => _ = writes.add(range),
    }
}

/// What has been called back from a client and is not back yet.
fn called_from(called: &[(u32, Range<u64>)], client: u32) -> impl Iterator<Item = &Range<u64>> {
    called.iter().filter(move |(who, _)| *who == client).map(|(_, range)| range)
}

/// What there is of a range around a part of it, up to the next of others, none of which overlaps the part.
fn between<'a>(
    range: Range<u64>,
    part: &Range<u64>,
    others: impl Iterator<Item = &'a Range<u64>>,
) -> Range<u64> {
    others.fold(range, |Range { start, end }, other| {
        if other.end <= part.start { start.max(other.end)..end } else { start..end.min(other.start) }
    })
}

impl Word {
    /// To whom it is said.
    pub(super) fn client(&self) -> u32 {
        match self {
            Word::Granted(wish, _) => wish.client,
            Word::CalledBack { client, .. } => *client,
        }
    }
}

impl Wish {
    fn conflicts(&self, other: &Wish, costs: &ExtentLocks) -> bool {
        self.is_against(other.client, costs) && !both_read(self, other) && overlap(&self.range, &other.range)
    }

    /// Whether what a client has or wants can be in the way of this wish.
    fn is_against(&self, client: u32, costs: &ExtentLocks) -> bool {
        costs.yields == Yields::Lock || client != self.client
    }
}

fn both_read(one: &Wish, other: &Wish) -> bool {
    one.direction == Direction::Read && other.direction == Direction::Read
}

pub(super) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// What a client gives back of a lock of which another wants a part, if it last read or wrote at `last`.
pub(super) fn given_back(yields: Yields, lock: &Range<u64>, wanted: &Range<u64>, last: u64) -> Range<u64> {
    match yields {
        Yields::Lock => lock.clone(),
        // Files are written forwards: who writes behind goes on there.
        Yields::Extent if wanted.start >= last => wanted.start.max(lock.start)..lock.end,
        Yields::Extent => lock.start..last.max(wanted.end).clamp(lock.start, lock.end),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::LOCKS;
    use super::*;

    fn wish(client: u32, direction: Direction, range: Range<u64>) -> Wish {
        Wish { client, rank: client, direction, range }
    }

    fn write(client: u32, range: Range<u64>) -> Wish {
        wish(client, Direction::Write, range)
    }

    fn read(client: u32, range: Range<u64>) -> Wish {
        wish(client, Direction::Read, range)
    }

    fn ask(table: &mut LockTable, wish: Wish) -> Vec<Word> {
        let mut words = Vec::new();
        table.ask(wish, &LOCKS, &mut words);
        words
    }

    fn give_back(table: &mut LockTable, client: u32, range: Range<u64>) -> Vec<Word> {
        let mut words = Vec::new();
        table.give_back(client, &range, &LOCKS, &mut words);
        words
    }

    const ALL: Range<u64> = 0..u64::MAX;

    #[test]
    fn the_first_gets_all_and_the_next_has_it_called_back() {
        let mut table = LockTable::default();
        assert_eq!(ask(&mut table, write(0, 10..20)), [Word::Granted(write(0, 10..20), ALL)]);
        let call = Word::CalledBack { client: 0, lock: ALL, wanted: 20..30 };
        assert_eq!(ask(&mut table, write(1, 20..30)), [call]);
        assert_eq!(ask(&mut table, write(2, 40..50)), [], "it has been called back already");
        // What others wait for is theirs.
        let words = give_back(&mut table, 0, ALL);
        assert_eq!(
            words,
            [Word::Granted(write(1, 20..30), 0..40), Word::Granted(write(2, 40..50), 40..u64::MAX)]
        );
    }

    #[test]
    fn readers_share_and_a_writer_calls_all_of_them() {
        let mut table = LockTable::default();
        assert_eq!(ask(&mut table, read(0, 0..10)).len(), 1);
        assert_eq!(ask(&mut table, read(1, 0..10)), [Word::Granted(read(1, 0..10), ALL)]);
        let call = |client| Word::CalledBack { client, lock: ALL, wanted: 5..6 };
        assert_eq!(ask(&mut table, write(2, 5..6)), [call(0), call(1)]);
        assert_eq!(ask(&mut table, read(3, 5..6)), [], "a reader does not overtake the writer that waits");
        assert_eq!(give_back(&mut table, 0, ALL), []);
        let words = give_back(&mut table, 1, ALL);
        assert_eq!(words[0], Word::Granted(write(2, 5..6), ALL));
        assert_eq!(words[1], Word::CalledBack { client: 2, lock: ALL, wanted: 5..6 });
        // What is to be given back is not granted anew, and what others wait for is not given away.
        assert_eq!(ask(&mut table, write(2, 7..8)), []);
        assert_eq!(
            give_back(&mut table, 2, ALL),
            [Word::Granted(read(3, 5..6), 0..7), Word::Granted(write(2, 7..8), 7..u64::MAX)]
        );
    }

    #[test]
    fn what_is_on_its_way_back_is_not_granted_to_who_gives_it_back() {
        let mut table = LockTable::default();
        ask(&mut table, write(0, 0..10));
        let call = Word::CalledBack { client: 0, lock: ALL, wanted: 50..60 };
        assert_eq!(ask(&mut table, write(1, 50..60)), [call]);
        assert_eq!(ask(&mut table, write(0, 70..80)), [], "its other ranks wait until it is back");
        let words = give_back(&mut table, 0, ALL);
        assert_eq!(
            words,
            [Word::Granted(write(1, 50..60), 0..70), Word::Granted(write(0, 70..80), 70..u64::MAX)]
        );
    }

    #[test]
    fn who_waits_has_its_turn_behind_all_before() {
        let grants = |yields: Yields| {
            let costs = ExtentLocks { grant: Grant::Asked, yields, ..LOCKS };
            let (mut table, mut words) = (LockTable::default(), Vec::new());
            for wish in [write(0, 0..10), write(1, 20..30), write(2, 0..10), write(3, 20..30)] {
                table.ask(wish, &costs, &mut words);
            }
            words.clear();
            // Nobody has what 3 waits for, but 2, which came before, still waits.
            table.give_back(1, &(20..30), &costs, &mut words);
            words
        };
        assert_eq!(grants(Yields::Lock), []);
        assert_eq!(grants(Yields::Extent), [Word::Granted(write(3, 20..30), 20..30)]);
    }

    #[test]
    fn what_many_want_does_not_grow_far() {
        let mib = 1 << 20;
        // A client behind so many locks of others, each of a mebibyte with a gap of one behind it.
        let got = |others: u64| {
            let mut table = LockTable::default();
            for other in 0..others {
                let range = 2 * other * mib..(2 * other + 1) * mib;
                table.ask(
                    write(other as u32, range),
                    &ExtentLocks { grant: Grant::Asked, ..LOCKS },
                    &mut Vec::new(),
                );
            }
            let start = (2 * others + 1) * mib;
            let words = ask(&mut table, write(1000, start..start + mib));
            let [Word::Granted(_, range)] = &words[..] else { panic!("{words:?}") };
            (start - range.start, range.end.saturating_sub(start))
        };
        let all = |others: u64| u64::MAX - (2 * others + 1) * mib;
        assert_eq!(got(4), (2 * mib, all(4)));
        assert_eq!(got(5), (0, all(5)));
        assert_eq!(got(32), (0, all(32)));
        assert_eq!(got(33), (0, 32 * mib));
    }

    #[test]
    fn part_of_a_lock_or_all_of_it_is_given_back() {
        let of = |yields, wanted, last| given_back(yields, &(10..100), &wanted, last);
        assert_eq!(of(Yields::Lock, 50..60, 20), 10..100);
        assert_eq!(of(Yields::Extent, 50..60, 20), 50..100);
        assert_eq!(of(Yields::Extent, 5..15, 20), 10..20);
        assert_eq!(of(Yields::Extent, 5..30, 20), 10..30);
        assert_eq!(of(Yields::Extent, 0..15, 500), 10..100);
    }

    proptest! {
        /// Nobody has what another writes, whatever comes in whatever order; and in the end all have had their turn.
        #[test]
        fn nobody_shares_with_a_writer(
            wishes in prop::collection::vec((0..4_u32, any::<bool>(), 0..60_u64, 1..20_u64), 1..24),
            widest in any::<bool>(),
            yields_all in any::<bool>(),
        ) {
            let grant = if widest { Grant::Widest } else { Grant::Asked };
            let yields = if yields_all { Yields::Lock } else { Yields::Extent };
            let costs = ExtentLocks { grant, yields, ..LOCKS };
            let mut table = LockTable::default();
            let mut words = Vec::new();
            let mut granted = 0;
            let count = wishes.len();
            for (client, writes, start, length) in wishes {
                let direction = if writes { Direction::Write } else { Direction::Read };
                table.ask(wish(client, direction, start..start + length), &costs, &mut words);
                // Every second word is answered at once, the others later.
                let mut answers = Vec::new();
                for word in words.drain(..) {
                    match word {
                        Word::Granted(wish, range) => {
                            granted += 1;
                            prop_assert!(range.start <= wish.range.start && range.end >= wish.range.end);
                        }
                        Word::CalledBack { client, lock, wanted } => answers.push((client, lock, wanted)),
                    }
                }
                for (client, lock, wanted) in answers {
                    let back = given_back(yields, &lock, &wanted, wanted.start);
                    prop_assert!(overlap(&back, &wanted));
                    table.give_back(client, &back, &costs, &mut words);
                }
                for (client, held) in &table.held {
                    for (other, of_other) in table.held.iter().filter(|(other, _)| *other != client) {
                        for extent in held.writes.iter() {
                            let free = !of_other.writes.overlaps(&extent) && !of_other.reads.overlaps(&extent);
                            prop_assert!(free, "{client} and {other} at {extent:?}");
                        }
                    }
                }
            }
            while !words.is_empty() {
                for word in std::mem::take(&mut words) {
                    match word {
                        Word::Granted(..) => granted += 1,
                        Word::CalledBack { client, lock, wanted } => {
                            let back = given_back(yields, &lock, &wanted, wanted.start);
                            table.give_back(client, &back, &costs, &mut words);
                        }
                    }
                }
            }
            prop_assert_eq!((granted, table.waiting.len()), (count, 0));
        }
    }
}
