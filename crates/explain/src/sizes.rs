//! Distribution of request sizes.

use std::collections::BTreeMap;

use crate::tally::Amount;

/// Distinct sizes that are told apart before powers of two take over. Programs use few (Miller and Katz 1991, section
/// 5.2: "relatively constant within programs"; Thakur's Table 2 has three), so exact counts are the rule.
const EXACT: usize = 64;

/// How many requests there were of each size: exact while there are at most 64 distinct ones, then by powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    exact: Option<BTreeMap<u64, Amount>>,
    powers: [Amount; 65],
}

/// Requests of at least `from_bytes` and at most `to_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Smallest size of the class, bytes.
    pub from_bytes: u64,
    /// Largest size of the class, bytes: the same, if the class is one size.
    pub to_bytes: u64,
    /// How many requests, and the bytes they asked for.
    pub amount: Amount,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { exact: Some(BTreeMap::new()), powers: [Amount::default(); 65] }
    }
}

impl Sizes {
    /// Counts one request of `bytes` bytes.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.powers[power(bytes)].add(bytes);
        if let Some(exact) = &mut self.exact {
            exact.entry(bytes).or_default().add(bytes);
            if exact.len() > EXACT {
                self.exact = None;
            }
        }
    }

    /// Both together.
    pub(crate) fn merged(&self, other: &Sizes) -> Sizes {
        let add = |sum: &mut Amount, amount: &Amount| {
            sum.count += amount.count;
            sum.bytes = sum.bytes.saturating_add(amount.bytes);
        };
        let mut both = self.clone();
        for (sum, amount) in both.powers.iter_mut().zip(&other.powers) {
            add(sum, amount);
        }
        both.exact = both.exact.zip(other.exact.as_ref()).and_then(|(mut sums, amounts)| {
            for (bytes, amount) in amounts {
                add(sums.entry(*bytes).or_default(), amount);
            }
            (sums.len() <= EXACT).then_some(sums)
        });
        both
    }

    /// Whether [`classes`](Self::classes) lists single sizes.
    pub fn is_exact(&self) -> bool {
        self.exact.is_some()
    }

    /// The sizes that occur, ascending: single sizes if they are few, else powers of two.
    pub fn classes(&self) -> Vec<SizeClass> {
        match &self.exact {
            Some(exact) => exact
                .iter()
                .map(|(&bytes, &amount)| SizeClass { from_bytes: bytes, to_bytes: bytes, amount })
                .collect(),
            None => self.powers(),
        }
    }

    /// The powers of two that occur, ascending: `2^k ..= 2^(k+1) - 1`, and 0 by itself.
    pub fn powers(&self) -> Vec<SizeClass> {
        (0..self.powers.len())
            .filter(|&index| self.powers[index].count > 0)
            .map(|index| {
                let (from_bytes, to_bytes) = bounds(index);
                SizeClass { from_bytes, to_bytes, amount: self.powers[index] }
            })
            .collect()
    }

    /// All requests.
    pub fn total(&self) -> Amount {
        self.powers.iter().fold(Amount::default(), |sum, amount| Amount {
            count: sum.count + amount.count,
            bytes: sum.bytes.saturating_add(amount.bytes),
        })
    }
}

/// Index of the power of two that holds `bytes`: 0 for 0 bytes, `k + 1` for `2^k ..= 2^(k+1) - 1`.
fn power(bytes: u64) -> usize {
    64 - bytes.leading_zeros() as usize
}

/// Smallest and largest size of a power.
fn bounds(index: usize) -> (u64, u64) {
    match index {
        0 => (0, 0),
        64 => (1 << 63, u64::MAX),
        _ => (1 << (index - 1), (1 << index) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_are_exact() {
        let mut sizes = Sizes::default();
        for bytes in [24, 131_072, 524_288, 524_288] {
            sizes.add(bytes);
        }
        let found: Vec<_> =
            sizes.classes().iter().map(|c| (c.from_bytes, c.to_bytes, c.amount.count)).collect();
        assert_eq!(found, [(24, 24, 1), (131_072, 131_072, 1), (524_288, 524_288, 2)]);
        assert_eq!(sizes.total(), Amount { count: 4, bytes: 24 + 131_072 + 2 * 524_288 });
    }

    #[test]
    fn many_sizes_become_powers_of_two() {
        let mut sizes = Sizes::default();
        for bytes in 0..64 {
            sizes.add(bytes);
        }
        assert!(sizes.is_exact(), "64 distinct sizes are still exact");
        sizes.add(64);
        assert!(!sizes.is_exact());
        let found: Vec<_> =
            sizes.classes().iter().map(|c| (c.from_bytes, c.to_bytes, c.amount.count)).collect();
        let expected = [
            (0, 0, 1),
            (1, 1, 1),
            (2, 3, 2),
            (4, 7, 4),
            (8, 15, 8),
            (16, 31, 16),
            (32, 63, 32),
            (64, 127, 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_largest_size_has_a_class() {
        let mut sizes = Sizes::default();
        sizes.add(u64::MAX);
        assert_eq!(sizes.powers()[0].to_bytes, u64::MAX);
    }
}
