//! Where data are on the flash: a map from the host's units to places, kept by unit (a page-mapping FTL).
//!
//! Places are numbered line by line. A *line* is the blocks of one number in all planes of all dies; it is written from its
//! first place to its last, a page of all planes of one die after the other, channels first, and erased as a whole. A write
//! goes to the next place of the open line, whatever its unit: the place where the unit was is invalid from then on.
//!
//! What has never been written is where a write of everything in order would have put it. Memory follows what is written:
//! tables exist only for units and lines that were touched.

use std::collections::VecDeque;

use pio_machine::disk::Flash;

/// The map, and the state of each line.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    /// Units of a page of all planes of a die.
    page: u32,
    /// Units of a line.
    line: u32,
    /// Whether units that were not written in the simulation take up room on the flash.
    filled: bool,
    units: u32,
    /// The place of each unit, in chunks; [`UNTOUCHED`] if it was never written.
    places: Vec<Option<Box<[u32; CHUNK]>>>,
    lines: Vec<Line>,
    free: VecDeque<u32>,
    open: Option<Open>,
}

#[derive(Clone, Debug)]
struct Line {
    valid: u32,
    state: State,
    /// The unit of each place; nothing in a line that was never written in the simulation.
    owners: Option<Box<[u32]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Full,
    /// Its data are being moved away, or it is being erased.
    Leaving,
}

/// The line that is written, and its next place.
#[derive(Clone, Copy, Debug)]
struct Open {
    line: u32,
    next: u32,
}

const CHUNK: usize = 4096;
const UNTOUCHED: u32 = u32::MAX;

/// Where a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this place since it was written.
    Written(u32),
    /// Never written: where it would be if everything had been written in order.
    Initial(u32),
}

impl Mapping {
    /// That of a device as its description has it: empty, or filled in order.
    pub(super) fn new(flash: &Flash) -> Mapping {
        let (units, line) = (flash.units() as u32, flash.units_of_line() as u32);
        let filled = if flash.filled { units.div_ceil(line) } else { 0 };
        let first = |number: u32| Line {
            valid: if number < filled { line.min(units - number * line) } else { 0 },
            state: if number < filled { State::Full } else { State::Free },
            owners: None,
        };
        Mapping {
            page: flash.units_of_page() as u32,
            line,
            filled: flash.filled,
            units,
            places: vec![None; (units as usize).div_ceil(CHUNK)],
            lines: (0..flash.blocks).map(first).collect(),
            free: (filled..flash.blocks).collect(),
            open: None,
        }
    }

    /// Where a unit is.
    pub(super) fn place(&self, unit: u32) -> Place {
        match self.touched(unit) {
            UNTOUCHED => Place::Initial(unit),
            place => Place::Written(place),
        }
    }

    /// The page, counted over all lines, of a place.
    pub(super) fn page_of(&self, place: u32) -> u32 {
        place / self.page
    }

    /// Places that are left in the page of all planes that is being written; none between two pages.
    pub(super) fn left_in_page(&self) -> u32 {
        self.open.map_or(0, |open| (self.page - open.next % self.page) % self.page)
    }

    /// Lines with nothing in them.
    pub(super) fn free_lines(&self) -> usize {
        self.free.len()
    }

    /// Whether a line is open, so that a write needs no free one.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Writes a unit to the next place, which it gives; nothing if no line is free. It is up to the caller to keep one.
    pub(super) fn append(&mut self, unit: u32) -> Option<u32> {
        let Open { line, next } = match self.open {
            Some(open) => open,
            None => Open { line: self.open_line()?, next: 0 },
        };
        self.forget(unit);
        let place = line * self.line + next;
        let chunk = self.places[unit as usize / CHUNK].get_or_insert_with(|| Box::new([UNTOUCHED; CHUNK]));
        chunk[unit as usize % CHUNK] = place;
        let full = next + 1 == self.line;
        let written = &mut self.lines[line as usize];
        if let Some(owners) = &mut written.owners {
            owners[next as usize] = unit;
        }
        written.valid += 1;
        if full {
            written.state = State::Full;
        }
        self.open = (!full).then_some(Open { line, next: next + 1 });
        Some(place)
    }

    /// The full line with the least valid data, the first of them, and how many units that is.
    pub(super) fn emptiest(&self) -> Option<(u32, u32)> {
        let full = self.lines.iter().enumerate().filter(|(_, line)| line.state == State::Full);
        full.min_by_key(|(_, line)| line.valid).map(|(number, line)| (number as u32, line.valid))
    }

    /// The line's data will be moved away: nobody else takes it.
    pub(super) fn leave(&mut self, line: u32) {
        self.lines[line as usize].state = State::Leaving;
    }

    /// The valid units of a page of a line, both counted from 0.
    pub(super) fn valid_in(&self, line: u32, page: u32, units: &mut Vec<u32>) {
        let owners = &self.lines[line as usize].owners;
        let places = page * self.page..(page + 1) * self.page;
        units.extend(places.filter_map(|index| {
            let place = line * self.line + index;
            let unit = match owners {
                Some(owners) => owners[index as usize],
                None => place,
            };
            self.is_at(unit, place).then_some(unit)
        }));
    }

    /// Whether a unit's data are at this place.
    pub(super) fn is_at(&self, unit: u32, place: u32) -> bool {
        unit < self.units && self.held(unit) == Some(place)
    }

    /// The place of a unit that takes up room on the flash.
    pub(super) fn held(&self, unit: u32) -> Option<u32> {
        match self.place(unit) {
            Place::Written(place) => Some(place),
            Place::Initial(place) => self.filled.then_some(place),
        }
    }

    /// The line is erased.
    ///
    /// # Panics
    /// If valid data are in it.
    pub(super) fn release(&mut self, line: u32) {
        let erased = &mut self.lines[line as usize];
        assert!(erased.valid == 0 && erased.state == State::Leaving, "line {line} is erased: {erased:?}");
        erased.state = State::Free;
        erased.owners = None;
        self.free.push_back(line);
    }

    fn touched(&self, unit: u32) -> u32 {
        self.places[unit as usize / CHUNK].as_ref().map_or(UNTOUCHED, |chunk| chunk[unit as usize % CHUNK])
    }

    fn open_line(&mut self) -> Option<u32> {
        let line = self.free.pop_front()?;
        let opened = &mut self.lines[line as usize];
        opened.state = State::Open;
        // No unit has this number, so a place that is not yet written is not valid.
        opened.owners = Some(vec![UNTOUCHED; self.line as usize].into_boxed_slice());
        Some(line)
    }

    /// Where the unit was is invalid.
    fn forget(&mut self, unit: u32) {
        if let Some(place) = self.held(unit) {
            self.lines[(place / self.line) as usize].valid -= 1;
        }
    }
}
