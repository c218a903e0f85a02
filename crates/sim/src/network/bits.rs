//! Sets as bits of words: how allocators know who asks, and who has something to do.

/// The bits that are set, ascending.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        // The mask says nothing new, but that indices need no check.
        let bit = self.0.trailing_zeros() as usize & 63;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// The first bit set in `word`, which is not 0, from `start` on, beginning again after the last: a round-robin arbiter.
#[inline]
pub(super) fn first_from(word: u64, start: usize) -> usize {
    let later = word & (!0_u64 << start);
    (if later == 0 { word } else { later }).trailing_zeros() as usize
}

/// As [`first_from`], in a set of several words that is not empty.
#[inline]
pub(super) fn first_from_in(words: &[u64], start: usize) -> usize {
    let (mut index, mut word) = (start / 64, words[start / 64] & (!0_u64 << (start % 64)));
    while word == 0 {
        index = if index + 1 == words.len() { 0 } else { index + 1 };
        word = words[index];
    }
    64 * index + word.trailing_zeros() as usize
}

/// The member of a set of several words that has but one.
#[inline]
pub(super) fn only_member(words: &[u64]) -> Option<usize> {
    let mut found = None;
    for (index, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        if found.is_some() || !word.is_power_of_two() {
            return None;
        }
        found = Some(64 * index + word.trailing_zeros() as usize);
    }
    found
}

/// A set of indices: which switches, channels or nodes have something to do.
#[derive(Debug)]
pub(super) struct Active {
    words: Vec<u64>,
    /// The words that are not empty.
    groups: Vec<u64>,
}

impl Active {
    pub(super) fn none_of(count: usize) -> Active {
        let words = count.div_ceil(64);
        Active { words: vec![0; words], groups: vec![0; words.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
        self.groups[index / 4096] |= 1 << (index / 64 % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, index: usize) {
        let word = &mut self.words[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.groups[index / 4096] &= !(1 << (index / 64 % 64));
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| *group == 0)
    }

    /// All members, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let words = (0..self.groups()).flat_map(|group| self.words(group));
        words.flat_map(|word| self.members(word))
    }

    /// How many groups of 64 words there are.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The words of a group that have members now.
    pub(super) fn words(&self, group: usize) -> impl Iterator<Item = usize> + use<> {
        Bits(self.groups[group]).map(move |bit| 64 * group + bit)
    }

    /// The members of a word, as they are now.
    pub(super) fn members(&self, word: usize) -> impl Iterator<Item = usize> + use<> {
        Bits(self.words[word]).map(move |bit| 64 * word + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_goes_round() {
        assert_eq!(first_from(0b1010, 0), 1);
        assert_eq!(first_from(0b1010, 2), 3);
        assert_eq!(first_from(0b1010, 4), 1);
        assert_eq!(first_from(1 << 63, 63), 63);
    }

    #[test]
    fn members_come_in_order() {
        let mut active = Active::none_of(10_000);
        assert!(active.is_empty());
        [9_999, 0, 4_096, 63, 64, 70].into_iter().for_each(|index| active.insert(index));
        [70, 4_096].into_iter().for_each(|index| active.remove(index));
        assert_eq!(active.iter().collect::<Vec<_>>(), [0, 63, 64, 9_999]);
    }

    #[test]
    fn round_robin_over_words_agrees_with_a_list() {
        let sets =
            [vec![0_u64, 1 << 9, 0], vec![1 << 5, 0, 1 << 63 | 1], vec![!0, !0, !0], vec![0b110, 0, 0]];
        for words in sets {
            let members: Vec<usize> =
                (0..192).filter(|index| words[index / 64] >> (index % 64) & 1 == 1).collect();
            for start in 0..192 {
                let expected =
                    members.iter().find(|member| **member >= start).or_else(|| members.first()).copied();
                assert_eq!(Some(first_from_in(&words, start)), expected);
            }
            assert_eq!(only_member(&words), (members.len() == 1).then_some(members[0]));
        }
    }
}
