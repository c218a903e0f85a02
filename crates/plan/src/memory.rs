//! What the automatic choice keeps in mind from one file to the next: programs write one checkpoint after another.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pio_layout::View;

use crate::cost::Terms;
use crate::hints::Hints;
use crate::remembered::Remembered;
use crate::site::{Site, Via};

/// A program that never sets its views twice does not fill the memory.
const MOST_SHAPES: usize = 32;

/// How views lie, wherever in the file they begin: those that lie alike have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape(u64);

impl Shape {
    /// That of one view. It is found without a walk through its pieces, so that some that differ have the same.
    pub fn of(view: &View) -> Shape {
        let filetype = view.filetype();
        let begins = view.offset_of(0).map(|offset| offset - view.displacement());
        let numbers = (view.etype_size(), filetype.size(), filetype.extent(), begins);
        let mut hasher = DefaultHasher::new();
        numbers.hash(&mut hasher);
        Shape(hasher.finish())
    }

    /// That of the views of all ranks, in their order.
    pub fn of_all(each: impl IntoIterator<Item = Shape>) -> Shape {
        let mut hasher = DefaultHasher::new();
        each.into_iter().for_each(|shape| hasher.write_u64(shape.0));
        Shape(hasher.finish())
    }

    /// For a message: see [`Shape::of_number`].
    pub fn number(self) -> u64 {
        self.0
    }

    /// What another rank said as a number.
    pub fn of_number(number: u64) -> Shape {
        Shape(number)
    }
}

/// What is kept in mind of the files that the same ranks opened one after the other, by the shapes of their views.
///
/// All ranks must hold the same. So whoever carries out operations has one for each of the ways by which the ranks of an open
/// file talk to each other, of which only one file at a time makes use, and looks into it only where all ranks are: where they
/// open a file, set its views, and close it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Where those files were, and the hints in force: elsewhere another choice is right.
    of: Option<(Via, Arc<Terms>, Hints)>,
    shapes: BTreeMap<Shape, Remembered>,
    /// The views that were in force last.
    latest: Remembered,
}

impl Memory {
    /// What is known of views of this shape in files at this site. If nothing is, the ranks are likely to meet as they did under the
    /// views before: programs set views for each operation, or for none.
    pub fn recall(&self, site: &Site, hints: &Hints, shape: Shape) -> Remembered {
        if !self.is_of(site, hints) {
            return Remembered::default();
        }
        self.shapes.get(&shape).copied().unwrap_or_else(|| self.latest.unknown_but_for_meeting()).met()
    }

    /// Keeps what was learned of views of this shape, instead of what was known of them.
    pub fn keep(&mut self, site: &Site, hints: &Hints, shape: Shape, remembered: Remembered) {
        if !self.is_of(site, hints) {
            let of = Some((site.via, site.terms.clone(), hints.clone()));
            *self = Memory { of, ..Memory::default() };
        }
        self.latest = remembered.left();
        self.shapes.insert(shape, self.latest);
        if self.shapes.len() > MOST_SHAPES {
            self.shapes.retain(|kept, _| *kept == shape);
        }
    }

    fn is_of(&self, site: &Site, hints: &Hints) -> bool {
        self.of.as_ref().is_some_and(|(via, terms, of)| {
            *via == site.via && (Arc::ptr_eq(terms, &site.terms) || *terms == site.terms) && of == hints
        })
    }
}

#[cfg(test)]
mod tests {
    use pio_layout::Datatype;

    use super::*;
    use crate::access::Direction;
    use crate::machine::Choice;
    use crate::remembered::Took;
    use crate::strategy::Strategy;

    fn site(terms: Terms) -> Site {
        Site { ranks: 2, nodes: None, processors: 2, via: Via::Kernel, terms: terms.into() }
    }

    /// After a choice for a strategy without messages.
    fn learned() -> Remembered {
        let mut remembered = Remembered::default();
        let choice = Choice { strategy: Strategy::List, holds: 0, expected_us: 0, reason: String::new() };
        remembered.learn(Direction::Write, &choice, Took::default());
        remembered
    }

    fn chosen(mut remembered: Remembered) -> Option<Strategy> {
        remembered.recall(Direction::Write, 0).strategy
    }

    #[test]
    fn shapes_are_of_what_lies_alike() {
        let view = |displacement, lower, extent| {
            let tile = Datatype::hindexed(&[(4, lower)], &Datatype::bytes(1)).unwrap();
            View::new(displacement, 4, tile.resized(0, extent).unwrap()).unwrap()
        };
        let shape = Shape::of(&view(0, 8, 16));
        assert_eq!(Shape::of(&view(1 << 20, 8, 16)), shape);
        assert_ne!(Shape::of(&view(0, 4, 16)), shape);
        assert_ne!(Shape::of(&view(0, 8, 32)), shape);
        let other = Shape::of(&view(0, 4, 16));
        assert_ne!(Shape::of_all([shape, other]), Shape::of_all([other, shape]));
        assert_eq!(Shape::of_number(shape.number()), shape);
    }

    #[test]
    fn the_next_file_goes_on_where_the_last_ended() {
        let (site, hints) = (site(Terms::MEASURED), Hints::default());
        let (one, other) = (Shape(1), Shape(2));
        let mut memory = Memory::default();
        assert_eq!(chosen(memory.recall(&site, &hints, one)), None);
        memory.keep(&site, &hints, one, learned());
        assert_eq!(chosen(memory.recall(&site, &hints, one)), Some(Strategy::List));
        assert_eq!(chosen(memory.recall(&site, &hints, other)), None);
    }

    #[test]
    fn ranks_are_likely_to_meet_as_under_the_views_before() {
        let (site, hints) = (site(Terms::MEASURED), Hints::default());
        let mut memory = Memory::default();
        let mut one = memory.recall(&site, &hints, Shape(1));
        assert!(!one.recall(Direction::Write, 0).meets_next);
        memory.keep(&site, &hints, Shape(1), one);
        let mut other = memory.recall(&site, &hints, Shape(2));
        let recalled = [(); 2].map(|()| other.recall(Direction::Write, 0));
        assert_eq!(recalled.map(|recalled| recalled.meets_next), [true, false]);
        assert!(recalled[0].is_first);
    }

    #[test]
    fn elsewhere_nothing_of_it_is_known() {
        let (here, hints) = (site(Terms::MEASURED), Hints::default());
        let mut memory = Memory::default();
        memory.keep(&here, &hints, Shape(1), learned());
        let there = site(Terms { read_s: 1.0, ..Terms::MEASURED });
        let asked = Hints { cb_nodes: Some(1), ..Hints::default() };
        assert_eq!(chosen(memory.recall(&there, &hints, Shape(1))), None);
        assert_eq!(chosen(memory.recall(&here, &asked, Shape(1))), None);
        assert_eq!(chosen(memory.recall(&site(Terms::MEASURED), &hints, Shape(1))), Some(Strategy::List));
        memory.keep(&there, &hints, Shape(2), learned());
        assert_eq!(chosen(memory.recall(&there, &hints, Shape(1))), None);
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let (site, hints) = (site(Terms::MEASURED), Hints::default());
        let mut memory = Memory::default();
        for shape in 0..100 {
            memory.keep(&site, &hints, Shape(shape), learned());
            assert!(memory.shapes.len() <= MOST_SHAPES);
            assert_eq!(chosen(memory.recall(&site, &hints, Shape(shape))), Some(Strategy::List));
        }
    }
}
