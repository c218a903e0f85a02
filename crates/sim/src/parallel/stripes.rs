//! How a file is dealt out to targets: in objects, one for each place in the round of each component.

use std::ops::{Range, RangeInclusive};

use pio_layout::Striping;
use pio_machine::ParallelFiles as Costs;

/// The strips at one place in the round of a file's component, all on one target: what its bytes are contiguous in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId {
    pub(super) file: u32,
    pub(super) component: u32,
    /// Which of the component's objects it is, in the order of the first strips.
    pub(super) slot: u32,
}

impl ObjectId {
    /// No object comes before this one, or after that: they are in the order of their files.
    pub(super) const FIRST: ObjectId = ObjectId { file: 0, component: 0, slot: 0 };
    pub(super) const LAST: ObjectId = ObjectId { file: u32::MAX, component: u32::MAX, slot: u32::MAX };

    /// All that a file can have.
    pub(super) fn of_file(file: u32) -> RangeInclusive<ObjectId> {
        ObjectId { file, ..ObjectId::FIRST }..=ObjectId { file, ..ObjectId::LAST }
    }
}

/// Some bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) object: ObjectId,
    /// Offsets in the object.
    pub(super) range: Range<u64>,
}

/// How one file is dealt out.
#[derive(Clone, Debug)]
pub(super) struct Stripes {
    file: u32,
    components: Vec<Component>,
    targets: u32,
}

#[derive(Clone, Debug)]
struct Component {
    /// Which part of the file it is.
    file: Range<u64>,
    striping: Striping,
    /// The target of its first strip.
    first: u32,
}

impl Stripes {
    /// How a file with this number is dealt out. Files begin one behind the other: each component on the target behind the
    /// last one of the file before, and a target further after each round, as Lustre's allocator does where all
    /// targets are equally full.
    pub(super) fn new(costs: &Costs, file: u32) -> Stripes {
        let targets = costs.targets();
        let last = (u64::MAX, costs.strip, costs.stripe_count);
        let parts =
            costs.components.iter().map(|part| (part.to, part.strip, part.stripe_count)).chain([last]);
        let mut begin = 0;
        let mut components = Vec::new();
        for (end, strip, count) in parts {
            let count = count.unwrap_or(targets);
            // A description has at least a target, and strips of at most a gigabyte: that always is a striping.
            if let Ok(striping) = Striping::new(strip, count, 0) {
                let dealt = u64::from(file) * u64::from(count);
                let first = ((dealt + dealt / u64::from(targets)) % u64::from(targets)) as u32;
                components.push(Component { file: begin..end, striping, first });
            }
            begin = end;
        }
        Stripes { file, components, targets }
    }

    /// The target that an object is on.
    pub(super) fn target(&self, object: ObjectId) -> u32 {
        (self.components[object.component as usize].first + object.slot) % self.targets
    }

    /// Bytes of an object, if the file has so many.
    pub(super) fn len(&self, object: ObjectId, file_bytes: u64) -> u64 {
        let part = &self.components[object.component as usize];
        part.striping.len_of_server(object.slot, part.file.end.min(file_bytes))
    }

    /// The strips of an interval of the file in order, each cut to it. Strips that follow each other in one object are one.
    pub(super) fn pieces(&self, range: &Range<u64>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (number, part, common) in self.parts(range) {
            for strip in part.striping.strips(common) {
                let object = ObjectId { file: self.file, component: number, slot: strip.server };
                let range = strip.server_offset..strip.server_offset + strip.len;
                match pieces.last_mut().filter(|last| last.object == object && last.range.end == range.start)
                {
                    Some(last) => last.range.end = range.end,
                    None => pieces.push(Piece { object, range }),
                }
            }
        }
        pieces
    }

    /// What each object has of an interval of the file, by object: in each, that is one extent.
    pub(super) fn objects(&self, range: &Range<u64>) -> Vec<Piece> {
        let mut objects = Vec::new();
        for (number, part, common) in self.parts(range) {
            for slot in part.slots(&common) {
                let own = |offset| part.striping.len_of_server(slot, offset);
                let range = own(common.start)..own(common.end);
                objects.push(Piece { object: ObjectId { file: self.file, component: number, slot }, range });
            }
        }
        objects
    }

    fn parts<'a>(&'a self, range: &Range<u64>) -> impl Iterator<Item = (u32, &'a Component, Range<u64>)> {
        let range = range.clone();
        self.components.iter().enumerate().filter_map(move |(number, part)| {
            let common = part.file.start.max(range.start)..part.file.end.min(range.end);
            (!common.is_empty()).then_some((number as u32, part, common))
        })
    }
}

impl Component {
    /// The slots of the strips that an interval of the file touches, ascending.
    fn slots(&self, range: &Range<u64>) -> impl Iterator<Item = u32> + use<> {
        let Striping { unit, factor, .. } = self.striping;
        let strips = range.end.div_ceil(unit) - range.start / unit;
        let touched = strips.min(u64::from(factor)) as u32;
        let first = self.striping.server_of(range.start);
        let in_this_round = touched.min(factor - first);
        (0..touched - in_this_round).chain(first..first + in_this_round)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::costs;
    use super::*;

    /// 2 servers with 2 targets; 1 target to 40, 2 to 80 in strips of 10, then 3 in strips of 20.
    fn dealt(file: u32) -> Stripes {
        let mut costs = costs();
        let part = |to, count| pio_machine::Component { to, strip: 10, stripe_count: Some(count) };
        (costs.io.count, costs.servers.targets) = (2, 2);
        costs.components = vec![part(40, 1), part(80, 2)];
        (costs.strip, costs.stripe_count) = (20, Some(3));
        Stripes::new(&costs, file)
    }

    #[test]
    fn components_are_dealt_out_by_themselves() {
        let piece = |component, slot, range| Piece { object: ObjectId { file: 0, component, slot }, range };
        let expected = [
            piece(0, 0, 30..40),
            // Offsets in an object are those of a file that is dealt out so from its beginning: 40 is its fifth strip.
            piece(1, 0, 20..30),
            piece(1, 1, 20..30),
            piece(1, 0, 30..40),
            piece(1, 1, 30..40),
            piece(2, 1, 20..40),
            piece(2, 2, 20..25),
        ];
        assert_eq!(dealt(0).pieces(&(30..105)), expected);
    }

    #[test]
    fn files_begin_one_behind_the_other() {
        let first = |component: u32| {
            let of = |file| dealt(file).target(ObjectId { file, component, slot: 0 });
            [0, 1, 2, 3, 4].map(of)
        };
        assert_eq!(first(0), [0, 1, 2, 3, 1]);
        assert_eq!(first(1), [0, 2, 1, 3, 2]);
        assert_eq!(first(2), [0, 3, 3, 3, 3]);
        let wide = |file| dealt(file).target(ObjectId { file, component: 2, slot: 2 });
        assert_eq!([wide(0), wide(1)], [2, 1]);
    }

    #[test]
    fn a_file_may_have_several_objects_on_a_target() {
        let mut costs = costs();
        (costs.io.count, costs.servers.targets) = (2, 2);
        (costs.strip, costs.stripe_count) = (10, Some(6));
        let stripes = Stripes::new(&costs, 0);
        let pieces = stripes.pieces(&(0..60));
        let on: Vec<u32> = pieces.iter().map(|piece| stripes.target(piece.object)).collect();
        assert_eq!(on, [0, 1, 2, 3, 0, 1]);
        assert!(pieces.iter().all(|piece| piece.range == (0..10)), "each in an object of its own");
    }

    proptest! {
        /// Each byte is in one piece, and in the same place of the same object as when it is looked for alone.
        #[test]
        fn pieces_and_objects_are_the_bytes(start in 0..200_u64, length in 0..200_u64) {
            let stripes = dealt(1);
            let mut single: Vec<(ObjectId, u64)> = (start..start + length)
                .flat_map(|byte| stripes.pieces(&(byte..byte + 1)))
                .map(|piece| (piece.object, piece.range.start))
                .collect();
            let bytes = |pieces: Vec<Piece>| -> Vec<(ObjectId, u64)> {
                let all = |piece: Piece| piece.range.map(move |byte| (piece.object, byte));
                pieces.into_iter().flat_map(all).collect()
            };
            prop_assert_eq!(&bytes(stripes.pieces(&(start..start + length))), &single);
            single.sort();
            single.dedup();
            prop_assert_eq!(single.len() as u64, length);
            let mut objects = bytes(stripes.objects(&(start..start + length)));
            objects.sort();
            prop_assert_eq!(objects, single);
        }
    }
}
