//! A table of a machine description that is being read: knows file and line of everything, and which keys were asked
//! for, so that the rest can be refused.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::MachineError;
use crate::quantity::{Bandwidth, Duration, parse_size, size_text};

/// The text that is being read.
pub(crate) struct Source<'t> {
    pub(crate) file: &'t str,
    pub(crate) text: &'t str,
    /// Whether the user sees the text, and finds a line in it by its number.
    pub(crate) is_seen: bool,
}

/// One table of it.
pub(crate) struct Section<'t> {
    source: &'t Source<'t>,
    table: &'t DeTable<'t>,
    /// Where the table begins in the text.
    at: usize,
    /// Its name with a dot behind it; empty for the whole file.
    prefix: String,
    asked: BTreeSet<&'static str>,
}

/// The text of a description, and the name of its file in errors.
pub(crate) fn read_file(path: &Path) -> Result<(String, String), MachineError> {
    let bytes = std::fs::read(path).map_err(|source| MachineError::File { path: path.to_owned(), source })?;
    let file = path.display().to_string();
    match String::from_utf8(bytes) {
        Ok(text) => Ok((file, text)),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let lines = before.iter().filter(|byte| **byte == b'\n').count();
            let line = Some(NonZeroUsize::MIN.saturating_add(lines));
            let message = "expected a description in TOML, found bytes that are no text".to_owned();
            Err(MachineError::Syntax { file, line, message })
        }
    }
}

impl<'t> Source<'t> {
    /// What the text says.
    pub(crate) fn table(&self) -> Result<Spanned<DeTable<'t>>, MachineError> {
        DeTable::parse(self.text).map_err(|error| MachineError::Syntax {
            file: self.file.to_owned(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', ", "),
        })
    }

    /// The line of this place in the text, for an error.
    pub(crate) fn line(&self, at: usize) -> Option<NonZeroUsize> {
        let before = || self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        self.is_seen.then(|| NonZeroUsize::MIN.saturating_add(before()))
    }
}

impl<'t> Section<'t> {
    pub(crate) fn root(source: &'t Source<'t>, table: &'t DeTable<'t>) -> Section<'t> {
        Section { source, table, at: 0, prefix: String::new(), asked: BTreeSet::new() }
    }

    /// The table under `key`.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Section<'t>, MachineError> {
        let value = self.value(key, "a table")?;
        match value.get_ref() {
            DeValue::Table(table) => Ok(Section {
                source: self.source,
                table,
                at: value.span().start,
                prefix: format!("{}{key}.", self.prefix),
                asked: BTreeSet::new(),
            }),
            _ => Err(self.wrong(key, value, "a table".to_owned())),
        }
    }

    /// The tables of the list under `key`, at least one.
    pub(crate) fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'t>>, MachineError> {
        let expected = "a list of tables, at least one";
        let value = self.value(key, expected)?;
        let list = value.get_ref().as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| self.wrong(key, value, expected.to_owned()))?;
        let table = |(index, entry): (usize, &'t Spanned<DeValue<'t>>)| match entry.get_ref() {
            DeValue::Table(table) => Ok(Section {
                source: self.source,
                table,
                at: entry.span().start,
                prefix: format!("{}{key}[{index}].", self.prefix),
                asked: BTreeSet::new(),
            }),
            _ => Err(self.wrong(key, entry, "a table".to_owned())),
        };
        list.iter().enumerate().map(table).collect()
    }

    /// Whether there is anything under `key`, which may be left out.
    pub(crate) fn has(&mut self, key: &'static str) -> bool {
        self.asked.insert(key);
        self.table.get(key).is_some()
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Result<String, MachineError> {
        let value = self.value(key, "a text")?;
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(self.wrong(key, value, "a text that is not empty".to_owned())),
        }
    }

    /// A text that can be part of a file's name.
    pub(crate) fn file_name(&mut self, key: &'static str) -> Result<String, MachineError> {
        let expected = "a text of 1 to 100 bytes without `/`, that does not begin with a dot";
        let value = self.value(key, expected)?;
        let fits = |text: &&str| {
            let is_short = !text.trim().is_empty() && text.len() <= 100;
            is_short
                && !text.starts_with('.')
                && !text.contains(|sign: char| sign == '/' || sign.is_control())
        };
        let text = value.get_ref().as_str().filter(fits).map(str::to_owned);
        text.ok_or_else(|| self.wrong(key, value, expected.to_owned()))
    }

    /// A list of texts, none of them empty.
    pub(crate) fn texts(&mut self, key: &'static str) -> Result<Vec<String>, MachineError> {
        let expected = "a list of texts that are not empty";
        let value = self.value(key, expected)?;
        let list = value.get_ref().as_array();
        let list = list.ok_or_else(|| self.wrong(key, value, expected.to_owned()))?;
        let text = |entry: &Spanned<DeValue<'t>>| match entry.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(self.wrong(key, entry, "a text that is not empty".to_owned())),
        };
        list.iter().map(text).collect()
    }

    /// A list of so many whole numbers in this range.
    pub(crate) fn numbers(
        &mut self,
        key: &'static str,
        count: RangeInclusive<usize>,
        range: RangeInclusive<u32>,
    ) -> Result<Vec<u32>, MachineError> {
        let expected = format!(
            "a list of {} to {} whole numbers from {} to {}",
            count.start(),
            count.end(),
            range.start(),
            range.end()
        );
        let value = self.value(key, &expected)?;
        let list = value.get_ref().as_array().filter(|list| count.contains(&list.len()));
        let numbers = list.and_then(|list| list.iter().map(|entry| whole(entry, &range)).collect());
        numbers.ok_or_else(|| self.wrong(key, value, expected))
    }

    /// A text that `parse` can read.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, MachineError> {
        self.quantity(key, expected.to_owned(), parse)
    }

    /// A file, whose name is relative to the folder of the description.
    pub(crate) fn path(&mut self, key: &'static str) -> Result<PathBuf, MachineError> {
        let name = self.text(key)?;
        Ok(Path::new(self.source.file).parent().unwrap_or(Path::new("")).join(name))
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Result<bool, MachineError> {
        let value = self.value(key, "true or false")?;
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, value, "true or false".to_owned()))
    }

    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<u32, MachineError> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let value = self.value(key, &expected)?;
        whole(value, &range).ok_or_else(|| self.wrong(key, value, expected))
    }

    /// One of these words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<T, MachineError> {
        let names: Vec<String> = words.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let expected = names.join(" or ");
        let value = self.value(key, &expected)?;
        let found = value.get_ref().as_str().and_then(|text| words.iter().find(|(name, _)| *name == text));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| self.wrong(key, value, expected))
    }

    pub(crate) fn duration(&mut self, key: &'static str, most: &str) -> Result<Duration, MachineError> {
        let expected = format!("a time from \"0 s\" to \"{most}\" with its unit (s, ms, us, ns, ps)");
        let limit = Duration::parse(most);
        self.quantity(key, expected, |text| Duration::parse(text).filter(|found| Some(*found) <= limit))
    }

    /// The same of a key that may be left out.
    pub(crate) fn duration_or(
        &mut self,
        otherwise: Duration,
        key: &'static str,
        most: &str,
    ) -> Result<Duration, MachineError> {
        if self.has(key) { self.duration(key, most) } else { Ok(otherwise) }
    }

    /// What is under a key that may be left out.
    pub(crate) fn if_said<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'t>, &'static str) -> Result<T, MachineError>,
    ) -> Result<Option<T>, MachineError> {
        if self.has(key) { read(self, key).map(Some) } else { Ok(None) }
    }

    /// What is in the table under a key that may be left out.
    pub(crate) fn section_if_said<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Section<'t>) -> Result<T, MachineError>,
    ) -> Result<Option<T>, MachineError> {
        self.if_said(key, |section, key| read(section.section(key)?))
    }

    pub(crate) fn bandwidth(&mut self, key: &'static str) -> Result<Bandwidth, MachineError> {
        const LEAST: &str = "1 kB/s";
        const MOST: &str = "10000 GB/s";
        let expected =
            format!("a bandwidth from \"{LEAST}\" to \"{MOST}\" with its unit (B/s, kB/s, MiB/s, ...)");
        let (least, most) = (Bandwidth::parse(LEAST), Bandwidth::parse(MOST));
        let allowed = |found: &Bandwidth| (least..=most).contains(&Some(*found));
        self.quantity(key, expected, |text| Bandwidth::parse(text).filter(allowed))
    }

    pub(crate) fn size(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, MachineError> {
        let (least, most) = (size_text(*range.start()), size_text(*range.end()));
        let expected = format!("a size from \"{least}\" to \"{most}\" with its unit (B, KiB, MB, ...)");
        self.quantity(key, expected, |text| parse_size(text).filter(|found| range.contains(found)))
    }

    /// Refuses every key that was not asked for.
    pub(crate) fn finish(self) -> Result<(), MachineError> {
        let unknown = self.table.keys().find(|key| !self.asked.contains(key.get_ref().as_ref()));
        let Some(key) = unknown else { return Ok(()) };
        Err(MachineError::UnknownKey {
            file: self.source.file.to_owned(),
            line: self.source.line(key.span().start),
            key: format!("{}{}", self.prefix, key.get_ref()),
            known: self.asked.iter().copied().collect::<Vec<_>>().join(", "),
        })
    }

    /// The error for a value of `key` that does not go with others.
    pub(crate) fn conflict(&self, key: &'static str, expected: String) -> MachineError {
        match self.table.get(key) {
            Some(value) => self.wrong(key, value, expected),
            None => self.missing(key, &expected),
        }
    }

    /// A key with its tables, as errors name it.
    pub(crate) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn quantity<T>(
        &mut self,
        key: &'static str,
        expected: String,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, MachineError> {
        let value = self.value(key, &expected)?;
        value.get_ref().as_str().and_then(parse).ok_or_else(|| self.wrong(key, value, expected))
    }

    fn value(&mut self, key: &'static str, expected: &str) -> Result<&'t Spanned<DeValue<'t>>, MachineError> {
        self.asked.insert(key);
        self.table.get(key).ok_or_else(|| self.missing(key, expected))
    }

    fn missing(&self, key: &'static str, expected: &str) -> MachineError {
        MachineError::MissingKey {
            file: self.source.file.to_owned(),
            line: self.source.line(self.at),
            key: self.name(key),
            expected: expected.to_owned(),
        }
    }

    fn wrong(&self, key: &'static str, value: &Spanned<DeValue<'t>>, expected: String) -> MachineError {
        MachineError::Value {
            file: self.source.file.to_owned(),
            line: self.source.line(value.span().start),
            key: self.name(key),
            found: self.source.text.get(value.span()).unwrap_or_default().to_owned(),
            expected,
        }
    }
}

/// The word of [`Section::word`] that means this.
pub(crate) fn word_of<T: PartialEq>(words: &[(&'static str, T)], meaning: &T) -> &'static str {
    words.iter().find(|(_, known)| known == meaning).map_or("", |(name, _)| name)
}

/// The whole number that stands there, if it is one in this range.
fn whole(value: &Spanned<DeValue<'_>>, range: &RangeInclusive<u32>) -> Option<u32> {
    let digits = value.get_ref().as_integer()?;
    u32::from_str_radix(digits.as_str(), digits.radix()).ok().filter(|number| range.contains(number))
}
