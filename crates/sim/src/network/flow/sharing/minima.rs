//! The least of many numbers, most of which change a few times.

/// A tree of comparisons, like a tournament: above every two numbers is the lesser.
///
/// A change is played again up to the top, always as many rounds, and the winner of each is taken over without a branch. A
/// heap has fewer rounds, but the processor cannot guess where each leads.
#[derive(Debug, Default)]
pub(super) struct Minima {
    /// The top at 1; below each `n`, `2n` and `2n + 1`; the numbers from `leaves` on.
    tree: Vec<Entry>,
    leaves: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The bits of a number that is not negative: in the order of the numbers.
    bits: u64,
    place: u64,
}

impl Minima {
    /// Starts over with these numbers, at least one, none of them negative.
    pub(super) fn fill(&mut self, numbers: impl Iterator<Item = f64>) {
        self.tree.clear();
        let entry = |(place, number): (usize, f64)| Entry { bits: number.to_bits(), place: place as u64 };
        self.tree.extend(numbers.enumerate().map(entry));
        self.leaves = self.tree.len().next_power_of_two();
        let nothing = Entry { bits: u64::MAX, place: 0 };
        self.tree.resize(self.leaves, nothing);
        self.tree.resize(2 * self.leaves, nothing);
        self.tree.copy_within(..self.leaves, self.leaves);
        for at in (1..self.leaves).rev() {
            let (one, other) = (self.tree[2 * at], self.tree[2 * at + 1]);
            self.tree[at] = if other.bits < one.bits { other } else { one };
        }
    }

    /// The least, and its place: which of several follows from what was done before.
    #[inline]
    pub(super) fn least(&self) -> (f64, usize) {
        let Entry { bits, place } = self.tree[1];
        (f64::from_bits(bits), place as usize)
    }

    #[inline]
    pub(super) fn set(&mut self, place: usize, number: f64) {
        let tree = self.tree.as_mut_slice();
        let mut at = self.leaves + place;
        let mut winner = Entry { bits: number.to_bits(), place: place as u64 };
        tree[at] = winner;
        while at > 1 {
            let other = tree[at ^ 1];
            let is_less = other.bits < winner.bits;
            winner.bits = std::hint::select_unpredictable(is_less, other.bits, winner.bits);
            winner.place = std::hint::select_unpredictable(is_less, other.place, winner.place);
            at /= 2;
            tree[at] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_after_any_change() {
        for count in [1, 2, 5, 64, 100] {
            let mut naive: Vec<f64> = (0..count).map(|number| f64::from(number * 7 % 13)).collect();
            let mut minima = Minima::default();
            minima.fill(naive.iter().copied());
            let mut state = 1_u64;
            for _ in 0..2000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (place, draw) = ((state >> 33) as usize % count as usize, (state >> 50) % 64);
                naive[place] = if draw == 0 { f64::INFINITY } else { draw as f64 };
                minima.set(place, naive[place]);
                let (least, place) = minima.least();
                assert_eq!(least, naive.iter().copied().fold(f64::INFINITY, f64::min));
                assert_eq!(least, naive[place]);
            }
        }
    }
}
