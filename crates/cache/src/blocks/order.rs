//! What LRU, MRU and SLRU need of an order of blocks, whichever way it is kept.

use super::table::{Found, Slot, Table};

/// Blocks in an order: the first is the coldest.
pub(crate) trait Order {
    /// An empty order of blocks of a table.
    fn of(table: &Table) -> Self;

    /// Number of blocks.
    fn length(&self) -> u64;

    /// What is to be noted of the next block that is put in as its position.
    fn next(&self) -> u32;

    /// Puts a block, of which that was noted, at the hot end.
    fn push_new(&mut self, slot: Slot);

    /// Puts a block at the hot end.
    fn push(&mut self, table: &mut Table, slot: Slot);

    /// Puts a block that is in at the hot end.
    fn renew(&mut self, table: &mut Table, found: Found);

    /// Takes out a block.
    fn take(&mut self, found: Found);

    /// Takes out the coldest block.
    fn pop_first(&mut self, table: &Table) -> Option<Slot>;

    /// Takes out the hottest block.
    fn pop_last(&mut self) -> Option<Slot>;

    /// The blocks, the coldest first.
    fn iter(&self) -> impl Iterator<Item = Slot>;

    /// Makes room for the blocks of the next [`super::GROUP`] touches.
    fn make_room(&mut self, table: &mut Table);

    /// The table has grown: blocks have new slots.
    fn renumber(&mut self, table: &Table, moved: &[Slot]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::links::Links;
    use super::super::log::Log;
    use super::super::table::Key;
    use super::*;

    /// Blocks that are known at most.
    const MOST: u64 = 40;

    /// Does the steps (a block each, and what becomes of it) in an order that is kept so and in a plain list.
    fn is_as_a_list<O: Order>(steps: &[(u64, u8)]) -> Result<(), TestCaseError> {
        let mut table = Table::new(1, MOST);
        let mut order = O::of(&table);
        let mut list: Vec<u64> = Vec::new();
        for (block, what) in steps {
            order.make_room(&mut table);
            let key = Key { file: 0, block: *block };
            match (table.find(key, key.hash()), what) {
                (None, _) => {
                    order.push_new(table.insert(key, key.hash(), 0, order.next()));
                    list.push(*block);
                }
                (Some(found), 0) => {
                    order.take(found);
                    table.remove(found.slot);
                    list.retain(|other| other != block);
                }
                (Some(found), 1) => {
                    order.take(found);
                    order.push(&mut table, found.slot);
                    list.retain(|other| other != block);
                    list.push(*block);
                }
                (Some(found), _) => {
                    order.renew(&mut table, found);
                    list.retain(|other| other != block);
                    list.push(*block);
                }
            }
            match what {
                3 => {
                    let popped = order.pop_first(&table).map(|slot| leave(&mut table, slot));
                    prop_assert_eq!(popped, (!list.is_empty()).then(|| list.remove(0)));
                }
                4 => {
                    let popped = order.pop_last().map(|slot| leave(&mut table, slot));
                    prop_assert_eq!(popped, list.pop());
                }
                5 => {
                    let moved = table.grow();
                    order.renumber(&table, &moved);
                }
                _ => {}
            }
            prop_assert_eq!(order.length(), list.len() as u64);
            let blocks: Vec<u64> = order.iter().map(|slot| table.key(slot).block).collect();
            prop_assert_eq!(&blocks, &list);
        }
        Ok(())
    }

    fn leave(table: &mut Table, slot: Slot) -> u64 {
        let block = table.key(slot).block;
        table.remove(slot);
        block
    }

    proptest! {
        #[test]
        fn logs_and_links_are_as_lists(steps in prop::collection::vec((0..MOST, 0..9u8), 1..400)) {
            is_as_a_list::<Log>(&steps)?;
            is_as_a_list::<Links>(&steps)?;
        }
    }
}
