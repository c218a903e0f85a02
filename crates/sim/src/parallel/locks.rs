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
use super::waiting::Waiting;

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
    /// Of the clients that have any.
    held: BTreeMap<u32, Held>,
    waiting: Waiting,
    /// Which parts have been called back from whom and are not back yet: those of one client are disjoint.
    called: Vec<(u32, Range<u64>)>,
    /// Whether those that wait may not have called back all that is in their way: of an extent of which a client had several
    /// locks, one was called back, and the others stayed. They call that back with the next lock that is granted.
    is_partly_called: bool,
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
        self.is_partly_called &= self.waiting.first().is_some();
        let number = self.waiting.push(wish);
        self.look(BTreeSet::from([number]), costs, words);
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
            self.is_partly_called |= held.reads.goes_beyond(range) || held.writes.goes_beyond(range);
            held.reads.remove(range.clone());
            held.writes.remove(range.clone());
            if held.reads.len() + held.writes.len() == 0 {
                self.held.remove(&client);
            }
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
        let mut numbers = BTreeSet::new();
        touched.iter().for_each(|extent| numbers.extend(self.waiting.overlapping(&extent)));
        self.look(numbers, costs, words);
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

    /// Looks at some of those that wait, in order: who can have what it wishes for gets it. Who waits behind it for a part of
    /// the same goes on waiting, and calls that back: when all of it has been, those behind have nothing to say.
    fn look(&mut self, mut numbers: BTreeSet<u64>, costs: &ExtentLocks, words: &mut Vec<Word>) {
        let mut granted: Vec<(Wish, Range<u64>)> = Vec::new();
        while let Some(number) = numbers.pop_first() {
            let Some(wish) = self.waiting.get(number).cloned() else { continue };
            let is_held = self.call_back(&wish, costs, words);
            if is_held || self.waiting.first_in_conflict(&wish, 0..number, costs).is_some() {
                granted.retain(|(granted, range)| !self.is_called(granted.client, range));
                for (granted, _) in granted.iter().filter(|(granted, _)| granted.conflicts(&wish, costs)) {
                    numbers.extend(self.waiting.first_in_conflict(granted, number + 1..u64::MAX, costs));
                }
                continue;
            }
            self.waiting.remove(number);
            let range = self.grant(&wish, costs, words);
            numbers.extend(self.waiting.first_in_conflict(&wish, 0..u64::MAX, costs));
            granted.push((wish, range));
        }
    }

    /// Those that wait get their locks in turn, up to the first that goes on waiting.
    fn look_in_turn(&mut self, costs: &ExtentLocks, words: &mut Vec<Word>) {
        while let Some((number, wish)) = self.waiting.first() {
            let wish = wish.clone();
            if self.call_back(&wish, costs, words) {
                return;
            }
            self.waiting.remove(number);
            let range = self.grant(&wish, costs, words);
            let mut behind = 0;
            while (self.is_partly_called || !self.is_called(wish.client, &range))
                && let Some(number) = self.waiting.first_in_conflict(&wish, behind..u64::MAX, costs)
                && let Some(other) = self.waiting.get(number).cloned()
            {
                self.call_back(&other, costs, words);
                behind = number + 1;
            }
        }
    }

    /// A client gets what it wishes for, and what there is around it: that.
    fn grant(&mut self, wish: &Wish, costs: &ExtentLocks, words: &mut Vec<Word>) -> Range<u64> {
        let range = match costs.grant {
            Grant::Widest => self.widest(wish, costs),
            Grant::Asked => wish.range.clone(),
        };
        let held = self.held.entry(wish.client).or_default();
        match wish.direction {
            Direction::Read => _ = held.reads.add(range.clone()),
            Direction::Write => add_writes(&mut held.writes, range.clone(), costs.yields),
        }
        words.push(Word::Granted(wish.clone(), range.clone()));
        range
    }

    /// Whether all of an extent has been called back from a client.
    fn is_called(&self, client: u32, range: &Range<u64>) -> bool {
        let mut all = Extents::default();
        called_from(&self.called, client).for_each(|called| _ = all.add(called.clone()));
        all.covers(range)
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
        let awaited = self.waiting.many_against(wish);
        low = low.max(self.waiting.end_before(wish, costs).unwrap_or(0));
        high = high.min(self.waiting.begin_behind(wish, costs).unwrap_or(u64::MAX));
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
    pub(super) fn conflicts(&self, other: &Wish, costs: &ExtentLocks) -> bool {
        self.is_against(other.client, costs) && !both_read(self, other) && overlap(&self.range, &other.range)
    }

    /// Whether what a client has or wants can be in the way of this wish.
    pub(super) fn is_against(&self, client: u32, costs: &ExtentLocks) -> bool {
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

    /// The same with a list of those that wait: each is compared with each, and looked at whenever one of them gets what it wants
    /// a part of, too.
    #[derive(Default)]
    struct Plain {
        table: LockTable,
        waiting: Vec<Wish>,
    }

    impl Plain {
        fn ask(&mut self, wish: Wish, costs: &ExtentLocks, words: &mut Vec<Word>) {
            self.waiting.push(wish);
            self.look(BTreeSet::from([self.waiting.len() - 1]), costs, words);
        }

        fn give_back(&mut self, client: u32, range: &Range<u64>, costs: &ExtentLocks, words: &mut Vec<Word>) {
            if let Some(held) = self.table.held.get_mut(&client) {
                held.reads.remove(range.clone());
                held.writes.remove(range.clone());
            }
            let mut touched = Extents::default();
            touched.add(range.clone());
            self.table.called.retain(|(who, called)| {
                let stays = *who != client || !overlap(called, range);
                if !stays {
                    touched.add(called.clone());
                }
                stays
            });
            if costs.yields == Yields::Lock {
                return self.look_in_turn(costs, words);
            }
            let waits = |place: &usize| touched.overlaps(&self.waiting[*place].range);
            self.look((0..self.waiting.len()).filter(waits).collect(), costs, words);
        }

        fn look(&mut self, mut places: BTreeSet<usize>, costs: &ExtentLocks, words: &mut Vec<Word>) {
            while let Some(place) = places.pop_first() {
                let wish = self.waiting[place].clone();
                let is_held = self.table.call_back(&wish, costs, words);
                if is_held || self.waiting[..place].iter().any(|other| other.conflicts(&wish, costs)) {
                    continue;
                }
                self.waiting.remove(place);
                self.grant(&wish, costs, words);
                let behind = |later: &usize| self.waiting[*later].conflicts(&wish, costs);
                let moved = places.iter().map(|later| later - 1);
                places = moved.chain((place..self.waiting.len()).filter(behind)).collect();
            }
        }

        fn look_in_turn(&mut self, costs: &ExtentLocks, words: &mut Vec<Word>) {
            while let Some(wish) = self.waiting.first().cloned() {
                if self.table.call_back(&wish, costs, words) {
                    return;
                }
                self.waiting.remove(0);
                self.grant(&wish, costs, words);
                for other in self.waiting.iter().filter(|other| other.conflicts(&wish, costs)) {
                    self.table.call_back(other, costs, words);
                }
            }
        }

        /// The table grants it, for which all that wait are put into it anew.
        fn grant(&mut self, wish: &Wish, costs: &ExtentLocks, words: &mut Vec<Word>) {
            self.table.waiting = Waiting::default();
            self.waiting.iter().for_each(|other| _ = self.table.waiting.push(other.clone()));
            self.table.grant(wish, costs, words);
            if costs.grant == Grant::Widest {
                let Some(Word::Granted(_, range)) = words.last() else { panic!("{words:?}") };
                let against = |other: &&Wish| wish.is_against(other.client, costs) && !both_read(other, wish);
                let others: Vec<&Wish> = self.waiting.iter().filter(against).collect();
                assert_eq!(
                    self.table.waiting.many_against(wish),
                    match costs.yields {
                        Yields::Lock => others.len(),
                        Yields::Extent => self.table.waiting.many_against(wish),
                    }
                );
                let before =
                    others.iter().map(|other| other.range.end).filter(|end| *end <= wish.range.start);
                let behind = others.iter().map(|other| other.range.start).filter(|at| *at >= wish.range.end);
                assert_eq!(self.table.waiting.end_before(wish, costs), before.max());
                assert_eq!(self.table.waiting.begin_behind(wish, costs), behind.min());
                assert!(
                    others
                        .iter()
                        .all(|other| overlap(&other.range, &wish.range) || !overlap(&other.range, range))
                );
            }
        }
    }

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
    fn a_hundred_thousand_ranks_have_their_turns_with_a_lock() {
        // Each was compared with all that waited: ten thousand million times.
        let count = 100_000;
        let costs = ExtentLocks { yields: Yields::Lock, ..LOCKS };
        let (mut table, mut words) = (LockTable::default(), Vec::new());
        (0..count).for_each(|client| table.ask(write(client, 0..10), &costs, &mut words));
        for client in 0..count {
            let turn = std::mem::take(&mut words);
            assert!(matches!(&turn[0], Word::Granted(wish, _) if wish.client == client), "{turn:?}");
            if let Some(Word::CalledBack { client, lock, .. }) = turn.get(1) {
                table.give_back(*client, lock, &costs, &mut words);
            }
        }
        assert_eq!(table.waiting.len(), 0);
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
        /// Words are the same as by comparing all, one after the other, however late clients answer.
        #[test]
        fn words_are_those_of_comparing_all(
            steps in prop::collection::vec((0..6_u32, any::<bool>(), 0..40_u64, 1..12_u64, 0..4_usize), 0..120),
            widest in any::<bool>(),
            yields_all in any::<bool>(),
        ) {
            let grant = if widest { Grant::Widest } else { Grant::Asked };
            let yields = if yields_all { Yields::Lock } else { Yields::Extent };
            let costs = ExtentLocks { grant, yields, ..LOCKS };
            let (mut table, mut plain) = (LockTable::default(), Plain::default());
            let mut called: Vec<(u32, Range<u64>, Range<u64>, u64)> = Vec::new();
            let mut answers = 0;
            for (client, writes, start, length, answered) in steps {
                let direction = if writes { Direction::Write } else { Direction::Read };
                let (mut words, mut expected) = (Vec::new(), Vec::new());
                table.ask(wish(client, direction, start..start + length), &costs, &mut words);
                plain.ask(wish(client, direction, start..start + length), &costs, &mut expected);
                prop_assert_eq!(&words, &expected);
                let hear = |words: Vec<Word>, called: &mut Vec<_>| {
                    for word in words {
                        if let Word::CalledBack { client, lock, wanted } = word {
                            called.push((client, lock, wanted, start));
                        }
                    }
                };
                hear(words, &mut called);
                for _ in 0..answered.min(called.len()) {
                    answers += 1;
                    let (client, lock, wanted, last) = called.swap_remove(answers * 7 % called.len());
                    let back = given_back(yields, &lock, &wanted, last);
                    let (mut words, mut expected) = (Vec::new(), Vec::new());
                    table.give_back(client, &back, &costs, &mut words);
                    plain.give_back(client, &back, &costs, &mut expected);
                    prop_assert_eq!(&words, &expected);
                    hear(words, &mut called);
                }
            }
            let waiting: Vec<Wish> = table.waiting.in_order().cloned().collect();
            prop_assert_eq!(waiting, plain.waiting);
        }

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
