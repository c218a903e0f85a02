//! A number for each pair of nodes that has something between them.
//!
//! Pairs are many, those with something between them are few: the table is as large as the most there were at once, not
//! as all pairs. It has open addresses, so that a pair is found with one look at memory; nothing walks through it, so that
//! its order reaches no result.

/// Numbers by pairs of nodes.
#[derive(Debug)]
pub(super) struct Pairs {
    places: Vec<Place>,
    count: usize,
    /// Bits of a hash that are not part of a place's index.
    shift: u32,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    from: u32,
    to: u32,
    /// [`NONE`] if nobody has the place.
    number: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Place = Place { from: 0, to: 0, number: NONE };

/// Places at first, as a power of two.
const FIRST_BITS: u32 = 6;

impl Pairs {
    /// Of none yet.
    pub(super) fn new() -> Pairs {
        Pairs { places: vec![EMPTY; 1 << FIRST_BITS], count: 0, shift: u64::BITS - FIRST_BITS }
    }

    /// How many pairs have a number.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of a pair, if it has one.
    #[inline]
    pub(super) fn get(&self, from: u32, to: u32) -> Option<u32> {
        let place = self.places[self.find(from, to)];
        (place.number != NONE).then_some(place.number)
    }

    /// Gives a pair a number, which is below the largest; gives the one it had.
    #[inline]
    pub(super) fn set(&mut self, from: u32, to: u32, number: u32) -> Option<u32> {
        assert!(number != NONE);
        let index = self.find(from, to);
        let before = std::mem::replace(&mut self.places[index], Place { from, to, number });
        if before.number != NONE {
            return Some(before.number);
        }
        self.count += 1;
        if self.count * 4 > self.places.len() * 3 {
            self.grow();
        }
        None
    }

    /// Takes a pair's number away; gives it.
    pub(super) fn remove(&mut self, from: u32, to: u32) -> Option<u32> {
        let mut hole = self.find(from, to);
        let removed = std::mem::replace(&mut self.places[hole], EMPTY);
        if removed.number == NONE {
            return None;
        }
        self.count -= 1;
        // Those behind that would not be found across the hole move into it (Knuth, volume 3, algorithm 6.4R).
        let mask = self.places.len() - 1;
        let mut next = (hole + 1) & mask;
        while self.places[next].number != NONE {
            let Place { from, to, .. } = self.places[next];
            let way = next.wrapping_sub(self.home(from, to)) & mask;
            if way >= next.wrapping_sub(hole) & mask {
                self.places[hole] = std::mem::replace(&mut self.places[next], EMPTY);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        Some(removed.number)
    }

    /// Reads where a pair is, if it is where it would be first.
    #[inline]
    pub(super) fn read_ahead(&self, from: u32, to: u32) -> u32 {
        self.places[self.home(from, to)].number
    }

    /// Where a pair is, or would be.
    #[inline]
    fn find(&self, from: u32, to: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut index = self.home(from, to);
        loop {
            let place = &self.places[index];
            if (place.from, place.to) == (from, to) || place.number == NONE {
                return index;
            }
            index = (index + 1) & mask;
        }
    }

    /// The place of a pair that finds it free.
    #[inline]
    fn home(&self, from: u32, to: u32) -> usize {
        // Knuth's multiplicative hashing, by the golden ratio; rotated once more, as nodes of a few low bits are usual.
        let key = u64::from(from) << 32 | u64::from(to);
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed.rotate_right(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    fn grow(&mut self) {
        let twice = vec![EMPTY; self.places.len() * 2];
        let before = std::mem::replace(&mut self.places, twice);
        self.shift -= 1;
        for place in before.into_iter().filter(|place| place.number != NONE) {
            let index = self.find(place.from, place.to);
            self.places[index] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn pairs_are_those_of_a_map() {
        let mut pairs = Pairs::new();
        let mut naive = BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (from, to) = ((state >> 33) as u32 % 40, (state >> 45) as u32 % 8 * 1000);
            // More come than go, then more go.
            if (state >> 60 < 9) == (step < 10_000) {
                assert_eq!(pairs.set(from, to, step), naive.insert((from, to), step));
            } else {
                assert_eq!(pairs.remove(from, to), naive.remove(&(from, to)));
            }
            assert_eq!(pairs.get(from, to), naive.get(&(from, to)).copied());
            assert_eq!(pairs.count(), naive.len());
        }
        for ((from, to), number) in &naive {
            assert_eq!(pairs.get(*from, *to), Some(*number));
        }
    }
}
