//! Who may write where, of one object or file: no two clients may write the same, so that those who are in the way of a wish are
//! found without looking at all that have a lock.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint extents: where each ends and whose it is, by where it begins.
#[derive(Debug, Default)]
pub(super) struct Writers(BTreeMap<u64, (u64, u32)>);

impl Writers {
    /// A client has an extent, in which others have nothing. It takes the place of those that it had there.
    pub(super) fn put(&mut self, range: Range<u64>, client: u32) {
        self.remove(&range, client);
        if !range.is_empty() {
            self.0.insert(range.start, (range.end, client));
        }
    }

    /// A client has nothing of an extent any more.
    pub(super) fn remove(&mut self, range: &Range<u64>, client: u32) {
        let of_client = self.touched(range).filter(|(_, owner)| *owner == client);
        for (had, _) in of_client.collect::<Vec<_>>() {
            self.0.remove(&had.start);
            if had.start < range.start {
                self.0.insert(had.start, (range.start, client));
            }
            if had.end > range.end {
                self.0.insert(range.end, (had.end, client));
            }
        }
    }

    /// How many extents there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whose those are that share bytes with an extent.
    pub(super) fn of(&self, range: &Range<u64>) -> impl Iterator<Item = u32> + '_ {
        self.touched(range).map(|(_, client)| client)
    }

    /// Where the extent of one of these clients ends that is next before a byte.
    pub(super) fn end_before(&self, byte: u64, is_one: impl Fn(u32) -> bool) -> Option<u64> {
        self.0.range(..byte).rev().find(|(_, (_, client))| is_one(*client)).map(|(_, (end, _))| *end)
    }

    /// Where the extent of one of these clients begins that is next behind a byte, or with it.
    pub(super) fn begin_behind(&self, byte: u64, is_one: impl Fn(u32) -> bool) -> Option<u64> {
        self.0.range(byte..).find(|(_, (_, client))| is_one(*client)).map(|(begin, _)| *begin)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, u32)> + '_ {
        self.0.iter().map(|(begin, (end, client))| (*begin, *end, *client))
    }

    fn touched(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, u32)> + use<'_> {
        let Range { start, end } = *range;
        let before = self.0.range(..start).next_back().filter(move |(_, (last, _))| *last > start);
        let all = before.into_iter().chain(self.0.range(start..end.max(start)));
        all.filter(move |_| start < end).map(|(begin, (end, client))| (*begin..*end, *client))
    }
}
