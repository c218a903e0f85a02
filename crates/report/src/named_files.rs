//! The files that a page names: not more than a reader can choose from, and a page of bounded size can hold.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pio_explain::Explanation;
use pio_trace::{Event, FileId, Tables, Target};

use crate::bars::{Files, OTHER_FILES};
use crate::sections::time_on;

/// Most files that a page names.
const MOST_FILES: usize = 2_000;
/// Most bytes of all their names.
const MOST_BYTES: usize = 500_000;

/// Gives files their numbers in the page, from 1: those of most time have the first, then come others that are named.
pub(crate) struct NamedFiles<'a> {
    tables: &'a Tables,
    /// By file; 0 for one that is not named. Each event asks.
    numbers: Vec<u32>,
    order: Vec<FileId>,
    bytes: usize,
}

impl<'a> NamedFiles<'a> {
    pub(crate) fn of(tables: &'a Tables, found: &Explanation) -> NamedFiles<'a> {
        let mut named = NamedFiles::none(tables);
        let mut files: Vec<_> = found.files.iter().collect();
        files.sort_by_key(|file| (Reverse(time_on(file)), file.file));
        for file in files.into_iter().take(MOST_FILES) {
            named.number(file.file);
        }
        named
    }

    /// In order of first use, if there are so few that a page names all.
    pub(crate) fn of_few(tables: &'a Tables) -> Option<NamedFiles<'a>> {
        let bytes: usize = tables.files.iter().map(|file| file.path.len()).sum();
        (tables.files.len() <= MOST_FILES && bytes <= MOST_BYTES).then(|| NamedFiles::none(tables))
    }

    fn none(tables: &'a Tables) -> NamedFiles<'a> {
        NamedFiles { tables, numbers: vec![0; tables.files.len()], order: Vec::new(), bytes: 0 }
    }

    /// Those of a call.
    pub(crate) fn of_event(&mut self, event: &Event) -> Files {
        let (file, other) = self.ids(event);
        let mut number = |file: Option<FileId>| file.map_or(0, |file| self.number(file));
        Files { file: number(file), other: number(other) }
    }

    /// The same; none if the call is the first on a file that will be named then.
    pub(crate) fn of_later_event(&self, event: &Event) -> Option<Files> {
        let (file, other) = self.ids(event);
        let number = |file: Option<FileId>| match file.map(|file| self.numbers.get(file.index())) {
            None => Some(0),
            Some(Some(0)) if self.order.len() < MOST_FILES => None,
            Some(Some(0) | None) => Some(OTHER_FILES),
            Some(Some(&number)) => Some(number),
        };
        Some(Files { file: number(file)?, other: number(other)? })
    }

    /// The files that a call is on.
    fn ids(&self, event: &Event) -> (Option<FileId>, Option<FileId>) {
        match event.target {
            Target::Name { file, other } => (Some(file), other),
            _ => {
                let handle = event.handle.and_then(|handle| self.tables.handles.get(handle.index()));
                (handle.map(|handle| handle.file), None)
            }
        }
    }

    /// The number of a file; [`OTHER_FILES`] if there is no room to name it.
    pub(crate) fn number(&mut self, file: FileId) -> u32 {
        match self.numbers.get(file.index()) {
            Some(0) => self.name(file),
            Some(&number) => number,
            None => OTHER_FILES,
        }
    }

    fn name(&mut self, file: FileId) -> u32 {
        let length = self.path(file).len();
        if self.order.len() >= MOST_FILES || self.bytes + length > MOST_BYTES {
            return OTHER_FILES;
        }
        self.bytes += length;
        self.order.push(file);
        let number = self.order.len() as u32;
        self.numbers[file.index()] = number;
        number
    }

    /// Their paths, in order of their numbers, and what stands for all others.
    pub(crate) fn paths(&self) -> Vec<&str> {
        self.order.iter().map(|file| self.path(*file)).chain(["other files"]).collect()
    }

    /// Those that have a number, in order of it.
    pub(crate) fn named(&self) -> impl Iterator<Item = FileId> {
        self.order.iter().copied()
    }

    /// A number as the page has it.
    pub(crate) fn in_page(&self, number: u32) -> u64 {
        if number == OTHER_FILES { self.order.len() as u64 + 1 } else { number.into() }
    }

    /// The numbers in the page of all that are named.
    pub(crate) fn numbers(&self) -> BTreeMap<FileId, u64> {
        self.order.iter().copied().zip(1..).collect()
    }

    fn path(&self, file: FileId) -> &str {
        self.tables.files.get(file.index()).map_or("", |file| &file.path)
    }
}
