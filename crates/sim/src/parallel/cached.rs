//! What came into a client's cache, by age: who came first leaves first.

use std::collections::BTreeMap;

use super::stripes::{ObjectId, Piece};

/// Disjoint pieces of objects by age.
#[derive(Debug, Default)]
pub(super) struct Cached {
    /// Age and begin of each piece, in the order in which they came; object and end.
    by_age: BTreeMap<(u64, u64), (ObjectId, u64)>,
    /// Object and begin of each piece; end and age.
    by_place: BTreeMap<(ObjectId, u64), (u64, u64)>,
    next_age: u64,
}

impl Cached {
    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Adds a piece as the newest. Nothing of it may be here.
    pub(super) fn add(&mut self, piece: Piece) {
        let age = self.next_age;
        self.next_age += 1;
        self.insert(piece.object, piece.range.start, piece.range.end, age);
    }

    /// Takes out the oldest piece.
    pub(super) fn pop_oldest(&mut self) -> Option<Piece> {
        let ((_, start), (object, end)) = self.by_age.pop_first()?;
        self.by_place.remove(&(object, start));
        Some(Piece { object, range: start..end })
    }

    /// Takes out all that is here of a piece. What is left of pieces that overlap it keeps its age.
    pub(super) fn remove(&mut self, piece: &Piece) {
        let (object, range) = (piece.object, &piece.range);
        loop {
            let before = self.by_place.range((object, 0)..(object, range.end)).next_back();
            let Some((&(_, start), &(end, age))) = before.filter(|(_, (end, _))| *end > range.start) else {
                return;
            };
            self.by_place.remove(&(object, start));
            self.by_age.remove(&(age, start));
            if end > range.end {
                self.insert(object, range.end, end, age);
            }
            if start < range.start {
                self.insert(object, start, range.start, age);
            }
        }
    }

    fn insert(&mut self, object: ObjectId, start: u64, end: u64, age: u64) {
        self.by_place.insert((object, start), (end, age));
        self.by_age.insert((age, start), (object, end));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list of single bytes in the order in which they came.
        #[test]
        fn bytes_leave_in_the_order_in_which_they_came(
            steps in prop::collection::vec((any::<bool>(), 0..2_u32, 0..40_u64, 1..12_u64), 0..40),
        ) {
            let mut cached = Cached::default();
            let mut bytes: Vec<(u32, u64)> = Vec::new();
            for (adds, slot, start, length) in steps {
                let object = ObjectId { file: 0, component: 0, slot };
                let range = start..start + length;
                // Nothing may be added twice.
                cached.remove(&Piece { object, range: range.clone() });
                bytes.retain(|(of, byte)| *of != slot || !range.contains(byte));
                if adds {
                    bytes.extend(range.clone().map(|byte| (slot, byte)));
                    cached.add(Piece { object, range });
                }
            }
            let mut left = Vec::new();
            while let Some(Piece { object, range }) = cached.pop_oldest() {
                left.extend(range.map(|byte| (object.slot, byte)));
            }
            prop_assert_eq!(left, bytes);
            prop_assert_eq!((cached.len(), cached.by_place.len()), (0, 0));
        }
    }
}
