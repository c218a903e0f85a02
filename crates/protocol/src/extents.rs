//! Lists of extents: which bytes of a file, one by one.
//!
//! A list request (Ching, Choudhary, Liao, Ross and Gropp, 2002) names its pieces, a view says how they follow from each
//! other. A list is ascending and names no byte twice, as a view does: then what both sides count from it is the same.

use pio_layout::{Datatype, View};

use crate::error::{Expected, Failure, ProtocolError};
use crate::wire::{Input, put};

/// Extents that one request names at most.
pub const MOST_EXTENTS: usize = 64;

/// Extents of a file as they came, or are to go: offset and length of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents(Vec<(u64, u64)>);

impl Extents {
    /// These extents, each an offset and a length.
    ///
    /// # Errors
    /// [`Expected::Extents`], unless there are 1 to [`MOST_EXTENTS`] of them, none of them empty, ascending, without a byte in
    /// common, and within 63 bits.
    pub fn new(extents: Vec<(u64, u64)>) -> Result<Extents, Failure> {
        let extents = Extents(extents);
        extents.view().map(|_| extents)
    }

    /// Offset and length of each.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Bytes of all.
    pub fn bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, len)| sum.saturating_add(*len))
    }

    /// The view whose first data bytes are those of the list.
    ///
    /// # Errors
    /// [`Expected::Extents`], if the list is none: see [`Extents::new`].
    pub(crate) fn view(&self) -> Result<View, Failure> {
        let wrong = Failure::Invalid(Expected::Extents);
        let mut end = 0;
        for &(offset, len) in &self.0 {
            let here = offset.checked_add(len).filter(|here| *here <= i64::MAX as u64).ok_or(wrong)?;
            if offset < end || len == 0 {
                return Err(wrong);
            }
            end = here;
        }
        if self.0.is_empty() || self.0.len() > MOST_EXTENTS {
            return Err(wrong);
        }
        let blocks: Vec<(u64, i64)> = self.0.iter().map(|(offset, len)| (*len, *offset as i64)).collect();
        let filetype = Datatype::hindexed(&blocks, &Datatype::bytes(1)).map_err(|_| wrong)?;
        View::new(0, 1, filetype).map_err(|_| wrong)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.0.len() as u64);
        self.0.iter().for_each(|(offset, len)| {
            put(out, *offset);
            put(out, *len);
        });
    }

    /// What is no list of extents, but bytes that say one, is for the server to refuse: it has words for it.
    pub(crate) fn decode(input: &mut Input) -> Result<Extents, ProtocolError> {
        let count = input.number("a number of extents")?;
        // Each takes two bytes at least.
        let room = input.rest.len() as u64 / 2;
        if count > room {
            return Err(ProtocolError::Malformed { expected: "no more extents than there are bytes" });
        }
        let mut extents = Vec::with_capacity(count as usize);
        for _ in 0..count {
            extents.push((input.number("an offset")?, input.number("a length")?));
        }
        Ok(Extents(extents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_list_is_refused() {
        let many = |count: u64| (0..count).map(|k| (10 * k, 4)).collect::<Vec<_>>();
        assert!(Extents::new(many(64)).is_ok());
        let last = i64::MAX as u64;
        assert!(Extents::new(vec![(last - 1, 1)]).is_ok());
        for bad in [
            many(65),
            Vec::new(),
            vec![(4, 4), (0, 2)],
            vec![(0, 4), (3, 4)],
            vec![(0, 4), (8, 0)],
            vec![(last, 1)],
            vec![(u64::MAX, 2)],
            vec![(1, u64::MAX)],
        ] {
            assert_eq!(Extents::new(bad.clone()), Err(Failure::Invalid(Expected::Extents)), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_list_is_its_extents(pieces in proptest::collection::vec((0u64..100, 1u64..50), 1..64)) {
            let mut end = 0;
            let extents: Vec<(u64, u64)> = pieces.iter().map(|(gap, len)| {
                let offset = end + gap;
                end = offset + len;
                (offset, *len)
            }).collect();
            let list = Extents::new(extents.clone()).unwrap();
            let mut bytes = Vec::new();
            list.encode(&mut bytes);
            let mut input = Input::new(&bytes);
            prop_assert_eq!(Extents::decode(&mut input), Ok(list.clone()));
            prop_assert!(input.rest.is_empty());
            let each: Vec<u64> = extents.iter().flat_map(|(offset, len)| *offset..offset + len).collect();
            let view = list.view().unwrap();
            let found: Vec<u64> = (0..list.bytes()).map(|position| view.offset_of(position).unwrap()).collect();
            prop_assert_eq!(found, each);
        }
    }
}
