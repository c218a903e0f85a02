//! The event queue: what happens next.
//!
//! Events lie in buckets as wide as a power of 64 picoseconds: those that differ from the present only in the last
//! digit of their time (to base 64) in buckets of 1 ps, those that differ in the last but one in buckets of 64 ps, and
//! so on. When the bucket that comes next holds few events, they are sorted; when it holds many, they are dealt out to
//! narrower buckets first (a ladder queue as of Tang, Goh and Thng 2005, with the rungs of a radix heap). So an event
//! is moved a few times, from one piece of memory to the next, and compared with few others, however many wait and
//! whatever their distances are: nothing has to be tuned. No move changes the order of equal times, so ties need no
//! number.
//!
//! While few events wait in all, as in a queue with one server, they are kept sorted and never see a bucket.

use super::time::Time;

/// Events in order of time; those of the same time in the order in which they were added.
#[derive(Debug)]
pub struct Events<T> {
    /// What comes next, the last first: everything before `near_end`, or everything there is.
    near: Vec<Entry<T>>,
    near_end: u64,
    all_near: bool,
    /// The buckets of all levels, those of one level together.
    buckets: Vec<Vec<Entry<T>>>,
    /// Events in buckets.
    waiting: usize,
    /// For each level, a bit for each bucket that is not empty; and a bit for each level that has any.
    occupied: [u64; LEVELS],
    levels: u32,
    /// The time against which the levels of waiting events were found.
    base: u64,
    /// The earliest time in the buckets, if nothing is near.
    least: u64,
    /// The time of the last event that was taken out.
    now: u64,
}

#[derive(Debug)]
struct Entry<T> {
    time: u64,
    what: T,
}

/// Bits of a digit.
const BITS: u32 = 6;
/// Buckets of a level.
const DIGITS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// A bucket of at most so many events is sorted as it is.
const FEW: usize = 24;
/// When so many are near (as others were added to them), they go back into buckets.
const MANY: usize = 96;
/// A bucket that is empty keeps its memory for so many events at most.
const KEPT: usize = 4096;

impl<T> Events<T> {
    /// None yet.
    pub fn new() -> Events<T> {
        Events {
            near: Vec::new(),
            near_end: 0,
            all_near: false,
            buckets: (0..LEVELS * DIGITS).map(|_| Vec::new()).collect(),
            waiting: 0,
            occupied: [0; LEVELS],
            levels: 0,
            base: 0,
            least: u64::MAX,
            now: 0,
        }
    }

    /// Adds what is to happen at `time`.
    ///
    /// # Panics
    /// If `time` is before that of the last event that was taken out: the past does not change.
    #[inline]
    pub fn add(&mut self, time: Time, what: T) {
        let Time(time) = time;
        assert!(time >= self.now, "an event at {time} ps is added at {} ps", self.now);
        let entry = Entry { time, what };
        if time < self.near_end || self.all_near {
            if self.near.len() < MANY {
                return self.insert(entry);
            }
            self.spread();
        }
        self.least = self.least.min(time);
        self.waiting += 1;
        self.put(entry);
    }

    /// When something happens next; nothing if there is nothing left.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        match self.near.last() {
            Some(entry) => Some(Time(entry.time)),
            None => (self.levels != 0).then_some(Time(self.least)),
        }
    }

    /// Takes out what happens next.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, T)> {
        if self.near.is_empty() {
            self.refill();
        }
        let Entry { time, what } = self.near.pop()?;
        self.now = time;
        if self.near.is_empty() {
            self.least = self.find_least();
        }
        Some((Time(time), what))
    }

    /// Puts an event that is near in its place: it comes after those of the same time.
    fn insert(&mut self, entry: Entry<T>) {
        let place = self.near.partition_point(|other| other.time > entry.time);
        self.near.insert(place, entry);
    }

    /// Puts an event that is not near into its bucket, behind those that are in it.
    #[inline]
    fn put(&mut self, entry: Entry<T>) {
        let differs = (entry.time ^ self.base) | 1;
        let level = (u64::BITS - 1 - differs.leading_zeros()) / BITS;
        let digit = entry.time >> (level * BITS) & (DIGITS as u64 - 1);
        self.occupied[level as usize] |= 1 << digit;
        self.levels |= 1 << level;
        self.buckets[level as usize * DIGITS + digit as usize].push(entry);
    }

    /// Makes the first events of the buckets near, of which there are none.
    fn refill(&mut self) {
        if self.waiting <= FEW {
            return self.gather();
        }
        self.all_near = false;
        while let Some((level, digit)) = self.take_first_bucket() {
            let shift = level as u32 * BITS;
            self.base = (self.base >> shift >> BITS << BITS | digit as u64) << shift;
            let bucket = &mut self.buckets[level * DIGITS + digit];
            if level == 0 {
                // All at the same time. What is added at this time comes behind: into the bucket again.
                std::mem::swap(&mut self.near, bucket);
                self.near.reverse();
                self.near_end = self.base;
            } else if bucket.len() <= FEW {
                std::mem::swap(&mut self.near, bucket);
                sort(&mut self.near);
                self.near_end = self.base.saturating_add(1 << shift);
            } else {
                let mut entries = std::mem::take(bucket);
                for entry in entries.drain(..) {
                    self.put(entry);
                }
                self.buckets[level * DIGITS + digit] = entries;
            }
            let bucket = &mut self.buckets[level * DIGITS + digit];
            if bucket.capacity() > KEPT {
                *bucket = Vec::new();
            }
            if !self.near.is_empty() {
                self.waiting -= self.near.len();
                return;
            }
        }
    }

    /// Makes all events near: so few are sorted faster than put into buckets.
    fn gather(&mut self) {
        while let Some((level, digit)) = self.take_first_bucket() {
            self.near.append(&mut self.buckets[level * DIGITS + digit]);
        }
        sort(&mut self.near);
        self.waiting = 0;
        self.all_near = true;
    }

    /// Level and digit of the bucket that comes next.
    #[inline]
    fn first_bucket(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// The same, which from now on counts as empty.
    #[inline]
    fn take_first_bucket(&mut self) -> Option<(usize, usize)> {
        let (level, digit) = self.first_bucket()?;
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
        Some((level, digit))
    }

    fn find_least(&self) -> u64 {
        match self.first_bucket() {
            None => u64::MAX,
            Some((0, digit)) => self.base & !(DIGITS as u64 - 1) | digit as u64,
            Some((level, digit)) => {
                let times = self.buckets[level * DIGITS + digit].iter().map(|entry| entry.time);
                times.fold(u64::MAX, u64::min)
            }
        }
    }

    /// Puts what is near back into buckets. The present is in the range of what is near, as it was taken from there: so
    /// the other events stay where they are when it becomes the base.
    #[cold]
    fn spread(&mut self) {
        self.base = self.now;
        self.near_end = self.now;
        self.all_near = false;
        self.least = self.near.last().map_or(u64::MAX, |entry| entry.time);
        self.waiting += self.near.len();
        let mut near = std::mem::take(&mut self.near);
        for entry in near.drain(..).rev() {
            self.put(entry);
        }
        self.near = near;
    }
}

/// Sorts few events, the last first; of those of the same time, the one that was before is now behind.
fn sort<T>(entries: &mut [Entry<T>]) {
    for end in 1..entries.len() {
        let mut place = end;
        while place > 0 && entries[place - 1].time <= entries[place].time {
            entries.swap(place - 1, place);
            place -= 1;
        }
    }
}

impl<T> Default for Events<T> {
    fn default() -> Events<T> {
        Events::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn earlier_first_and_ties_in_order_of_adding() {
        let mut events = Events::new();
        for (time, what) in [(5, 'd'), (1, 'a'), (5, 'e'), (1, 'b'), (3, 'c')] {
            events.add(Time(time), what);
        }
        let order: String = std::iter::from_fn(|| events.pop()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcde");
        assert_eq!(events.next_time(), None);
    }

    #[test]
    #[should_panic(expected = "an event at 4 ps is added at 5 ps")]
    fn the_past_does_not_change() {
        let mut events = Events::new();
        events.add(Time(5), ());
        events.pop();
        events.add(Time(4), ());
    }

    #[test]
    fn a_million_at_the_same_time_and_what_they_add_then() {
        let mut events = Events::new();
        (0..500_000).for_each(|number| events.add(Time(1 << 40), number));
        for number in 0..1_000_000 {
            assert_eq!(events.pop(), Some((Time(1 << 40), number)));
            if number < 500_000 {
                events.add(Time(1 << 40), 500_000 + number);
            }
        }
        assert_eq!(events.pop(), None);
    }

    /// What a model may do, with a time from now or a number of repetitions.
    #[derive(Clone, Debug)]
    enum Act {
        Add(u64),
        AddMany(u64, u64),
        Pop(u64),
    }

    fn act() -> impl Strategy<Value = Act> {
        let distance = prop_oneof![
            Just(0),
            0..4_u64,
            0..1_000_u64,
            0..1_000_000_u64,
            (0..64_u32).prop_map(|bit| 1 << bit),
            any::<u64>()
        ];
        prop_oneof![
            distance.clone().prop_map(Act::Add),
            (distance, 1..200_u64).prop_map(|(distance, count)| Act::AddMany(distance, count)),
            (1..200_u64).prop_map(Act::Pop),
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_a_heap_of_numbered_events(acts in prop::collection::vec(act(), 1..100)) {
            let mut events = Events::new();
            let mut heap = BinaryHeap::new();
            let mut now = 0_u64;
            let mut number = 0;
            for act in acts.into_iter().chain([Act::Pop(u64::MAX)]) {
                let (distance, count) = match act {
                    Act::Add(distance) => (distance, 1),
                    Act::AddMany(distance, count) => (distance, count),
                    Act::Pop(count) => {
                        for _ in 0..count {
                            prop_assert_eq!(events.next_time(), heap.peek().map(|Reverse((time, _))| *time));
                            let expected = heap.pop().map(|Reverse(event)| event);
                            prop_assert_eq!(events.pop(), expected);
                            let Some((Time(time), _)) = expected else { break };
                            now = time;
                        }
                        continue;
                    }
                };
                for index in 0..count {
                    // Some close together, some at the same time.
                    let time = Time(now.saturating_add(distance).saturating_add(index * index % 7));
                    events.add(time, number);
                    heap.push(Reverse((time, number)));
                    number += 1;
                }
            }
        }
    }
}
