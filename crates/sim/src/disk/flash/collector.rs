//! Garbage collection: which line is emptied next, and how fast.
//!
//! Greedy: the full line with the least valid data. Its valid units are read page by page and written again as if the host
//! had; then it is erased. Moves keep step with the host's writes: a line with `v` valid of `n` units gives room for `n - v`
//! of the host's, so for each of these `v / (n - v)` are moved, some ahead. In the steady state, then, the host's writes
//! neither wait for a whole line nor run out of room.

use pio_machine::disk::Flash;

use super::mapping::Mapping;

/// Collects when so few lines are free or on their way to it.
const LOW: usize = 3;

/// Garbage collection under way.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    /// Pages of a line.
    pages: u32,
    /// Units of a line.
    line: u32,
    /// Moves of so many units may be under way, or ahead of the host's writes.
    ahead: i64,
    victim: Option<Victim>,
    /// Lines that are being erased.
    erasing: usize,
    /// Of the host's writes since the victim was chosen, in units: less what earlier victims made room for.
    written: i64,
}

#[derive(Clone, Copy, Debug)]
struct Victim {
    line: u32,
    /// Valid units when it was chosen.
    valid: i64,
    /// The next page to be read.
    page: u32,
    /// Units that were read to be moved, and those that have been, or were overwritten on the way.
    read: i64,
    moved: i64,
}

/// What garbage collection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Reads the units, which it has added to those it was given, from this page of all pages.
    Read { page: u32 },
    /// The line has no valid data left.
    Erase { line: u32 },
}

impl Collector {
    pub(super) fn new(flash: &Flash) -> Collector {
        // Two pages of each die keep all of them busy.
        let ahead = 2 * flash.units_of_page() as i64 * i64::from(flash.all_dies());
        Collector {
            pages: flash.pages * flash.all_dies(),
            line: flash.units_of_line() as u32,
            ahead,
            victim: None,
            erasing: 0,
            written: 0,
        }
    }

    /// How many units the host may write before more are moved.
    pub(super) fn allowance(&mut self, mapping: &Mapping) -> i64 {
        // The last free line is for what is moved.
        if !mapping.is_open() && mapping.free_lines() <= 1 {
            return 0;
        }
        if !self.is_needed(mapping) {
            return i64::MAX;
        }
        let Some(victim) = self.victim else { return 0 };
        let room = i64::from(self.line) - victim.valid;
        if victim.valid == 0 {
            i64::MAX
        } else {
            (victim.moved + self.ahead) * room / victim.valid - self.written
        }
    }

    /// The host has written a unit.
    pub(super) fn wrote(&mut self) {
        self.written += i64::from(self.victim.is_some());
    }

    /// A unit that was read has been written again, or need not be.
    pub(super) fn moved(&mut self) {
        if let Some(victim) = &mut self.victim {
            victim.moved += 1;
        }
    }

    /// A line has been erased.
    pub(super) fn erased(&mut self) {
        self.erasing -= 1;
    }

    /// What is to be done now, if anything; `units` is empty, and takes those to be moved.
    pub(super) fn next(&mut self, mapping: &mut Mapping, units: &mut Vec<u32>) -> Option<Step> {
        if !self.is_needed(mapping) {
            return None;
        }
        if self.victim.is_none() {
            let (line, valid) = mapping.emptiest()?;
            mapping.leave(line);
            self.victim = Some(Victim { line, valid: i64::from(valid), page: 0, read: 0, moved: 0 });
        }
        let victim = self.victim.as_mut()?;
        while victim.page < self.pages {
            let room = i64::from(self.line) - victim.valid;
            // How many are to be read by now, were there none ahead: written * valid / room. More, if the host may not write
            // one until they are moved: it and this would wait for each other.
            let is_ahead = (victim.read - self.ahead) * room > self.written * victim.valid;
            if is_ahead && (victim.read + self.ahead) * room / victim.valid > self.written {
                return None;
            }
            let page = victim.page;
            victim.page += 1;
            mapping.valid_in(victim.line, page, units);
            if !units.is_empty() {
                victim.read += units.len() as i64;
                return Some(Step::Read { page: victim.line * self.pages + page });
            }
        }
        if victim.moved < victim.read {
            return None;
        }
        let Victim { line, valid, .. } = *victim;
        // What was written beyond, or less than, the room that this line gave counts for the next one.
        self.written -= i64::from(self.line) - valid;
        self.victim = None;
        self.erasing += 1;
        Some(Step::Erase { line })
    }

    fn is_needed(&self, mapping: &Mapping) -> bool {
        self.victim.is_some() || mapping.free_lines() + self.erasing <= LOW
    }
}
