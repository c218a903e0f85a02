//! Distribution of request sizes.

use crate::tally::Amount;

/// Distinct sizes that are told apart before powers of two take over. Programs use few (Miller and Katz 1991, section
/// 5.2: "relatively constant within programs"; Thakur's Table 2 has three), so exact counts are the rule.
const EXACT: usize = 64;

/// How many requests there were of each size: exact while there are at most 64 distinct ones, then by powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Counts);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Counts {
    /// By size, ascending.
    Exact(Vec<(u64, Amount)>),
    Powers(Box<Powers>),
}

/// By [`power`].
type Powers = [Amount; 65];

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
        Sizes(Counts::Exact(Vec::new()))
    }
}

impl Sizes {
    /// Counts one request of `bytes` bytes.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.add_all(bytes, Amount { count: 1, bytes });
    }

    #[inline]
    fn add_all(&mut self, bytes: u64, amount: Amount) {
        match &mut self.0 {
            Counts::Exact(sizes) => match sizes.binary_search_by_key(&bytes, |(size, _)| *size) {
                Ok(index) => sizes[index].1.merge(amount),
                Err(index) => {
                    sizes.insert(index, (bytes, amount));
                    if sizes.len() > EXACT {
                        self.0 = Counts::Powers(Box::new(powers_of(sizes)));
                    }
                }
            },
            Counts::Powers(powers) => powers[power(bytes)].merge(amount),
        }
    }

    /// Both together.
    pub(crate) fn merged(&self, other: &Sizes) -> Sizes {
        let mut both = self.clone();
        match &other.0 {
            Counts::Exact(sizes) => sizes.iter().for_each(|(size, amount)| both.add_all(*size, *amount)),
            Counts::Powers(others) => {
                let mut sums = both.by_power();
                sums.iter_mut().zip(others.iter()).for_each(|(sum, amount)| sum.merge(*amount));
                both.0 = Counts::Powers(Box::new(sums));
            }
        }
        both
    }

    /// Whether [`classes`](Self::classes) lists single sizes.
    pub fn is_exact(&self) -> bool {
        matches!(self.0, Counts::Exact(_))
    }

    /// The sizes that occur, ascending: single sizes if they are few, else powers of two.
    pub fn classes(&self) -> Vec<SizeClass> {
        match &self.0 {
            Counts::Exact(sizes) => sizes
                .iter()
                .map(|&(bytes, amount)| SizeClass { from_bytes: bytes, to_bytes: bytes, amount })
                .collect(),
            Counts::Powers(_) => self.powers(),
        }
    }

    /// The powers of two that occur, ascending: `2^k ..= 2^(k+1) - 1`, and 0 by itself.
    pub fn powers(&self) -> Vec<SizeClass> {
        let powers = self.by_power().into_iter().enumerate().filter(|(_, amount)| amount.count > 0);
        powers
            .map(|(index, amount)| {
                let (from_bytes, to_bytes) = bounds(index);
                SizeClass { from_bytes, to_bytes, amount }
            })
            .collect()
    }

    /// All requests.
    pub fn total(&self) -> Amount {
        self.by_power().into_iter().fold(Amount::default(), |mut sum, amount| {
            sum.merge(amount);
            sum
        })
    }

    fn by_power(&self) -> Powers {
        match &self.0 {
            Counts::Exact(sizes) => powers_of(sizes),
            Counts::Powers(powers) => **powers,
        }
    }
}

fn powers_of(sizes: &[(u64, Amount)]) -> Powers {
    let mut powers = [Amount::default(); 65];
    for (size, amount) in sizes {
        powers[power(*size)].merge(*amount);
    }
    powers
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
