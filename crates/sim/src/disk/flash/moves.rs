//! The part of a flash device that carries out what garbage collection decides.

use super::collector::Step;
use super::dies::Job;
use super::{FlashActions, FlashModel, Read};
use crate::kernel::Time;

impl FlashModel {
    /// Begins what garbage collection has to do by now.
    pub(super) fn collect(&mut self, now: Time, out: &mut FlashActions) {
        let mut units = std::mem::take(&mut self.units);
        loop {
            units.clear();
            match self.collector.next(&mut self.mapping, &mut units) {
                Some(Step::Read { page }) => {
                    let bytes = units.len() as u64 * self.flash.mapping;
                    let read = Read::Moved { page, units: units.len() as u32 };
                    let job = Job::Read { read, bytes };
                    self.dies.add(now, page, job, &mut out.later);
                }
                Some(Step::Erase { line }) => {
                    self.erasing.insert(line, self.flash.all_dies());
                    self.dies.erase(now, line, &mut out.later);
                }
                None => break,
            }
        }
        self.units = units;
    }

    /// The same in no time.
    pub(super) fn collect_at_once(&mut self) {
        let mut units = std::mem::take(&mut self.units);
        loop {
            units.clear();
            match self.collector.next(&mut self.mapping, &mut units) {
                Some(Step::Read { .. }) => {
                    for unit in &units {
                        let place = self.mapping.append(*unit);
                        assert!(place.is_some(), "lines are erased at once, so one is free");
                        self.collector.moved();
                    }
                    self.done.moved += units.len() as u64;
                }
                Some(Step::Erase { line }) => self.release(line),
                None => break,
            }
        }
        self.units = units;
    }

    /// The units of a page that were read to be moved are written again, if they were not overwritten on the way.
    pub(super) fn move_page(&mut self, now: Time, page: u32, read: u32, out: &mut FlashActions) {
        let mut units = std::mem::take(&mut self.units);
        units.clear();
        let pages_of_line = self.flash.pages * self.flash.all_dies();
        self.mapping.valid_in(page / pages_of_line, page % pages_of_line, &mut units);
        for _ in units.len() as u32..read {
            self.collector.moved();
        }
        for unit in units.iter().copied() {
            if let Some(place) = self.mapping.held(unit) {
                self.rewrite(now, unit, place, out);
            }
        }
        self.units = units;
        self.take_writes(now, out);
    }

    /// Writes a unit again that was at this place, if it still is there.
    pub(super) fn rewrite(&mut self, now: Time, unit: u32, place: u32, out: &mut FlashActions) {
        if !self.mapping.is_at(unit, place) {
            return self.collector.moved();
        }
        match self.mapping.append(unit) {
            Some(new) => {
                self.collector.moved();
                self.done.moved += 1;
                self.fill(now, self.mapping.page_of(new), 1, 0, out);
            }
            None => self.homeless.push_back((unit, place)),
        }
    }

    pub(super) fn release(&mut self, line: u32) {
        self.mapping.release(line);
        let pages = self.flash.pages * self.flash.all_dies();
        if let Some(burst) = &mut self.burst {
            burst.forget(line * pages..(line + 1) * pages);
        }
        self.collector.erased();
        self.done.erased += 1;
    }
}
