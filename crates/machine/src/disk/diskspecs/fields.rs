//! The values of a block by key, checked.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use super::text::{Block, Item, Value, beside, syntax};
use crate::error::MachineError;
use crate::quantity::Duration;

/// A block that is being read: knows which keys were asked for, so that the rest can be refused.
pub(super) struct Fields<'b> {
    pub(super) block: &'b Block,
    asked: RefCell<BTreeSet<&'static str>>,
}

/// The longest time that a drive takes for anything.
const MOST_MS: f64 = 100_000.0;

impl<'b> Fields<'b> {
    pub(super) fn new(block: &'b Block) -> Fields<'b> {
        Fields { block, asked: RefCell::default() }
    }

    pub(super) fn has(&self, key: &'static str) -> bool {
        self.find(key).is_some()
    }

    pub(super) fn integer(&self, key: &'static str, range: RangeInclusive<u64>) -> Result<u64, MachineError> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let item = self.item(key, &expected)?;
        match integer(item) {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(self.wrong(key, item, &expected)),
        }
    }

    pub(super) fn count(&self, key: &'static str, range: RangeInclusive<u32>) -> Result<u32, MachineError> {
        let number = self.integer(key, u64::from(*range.start())..=u64::from(*range.end()))?;
        Ok(u32::try_from(number).unwrap_or(*range.end()))
    }

    pub(super) fn flag(&self, key: &'static str) -> Result<bool, MachineError> {
        Ok(self.integer(key, 0..=1)? == 1)
    }

    pub(super) fn number(&self, key: &'static str, range: RangeInclusive<f64>) -> Result<f64, MachineError> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        let item = self.item(key, &expected)?;
        match number(item) {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(self.wrong(key, item, &expected)),
        }
    }

    /// A time, given in milliseconds.
    pub(super) fn ms(&self, key: &'static str) -> Result<Duration, MachineError> {
        Ok(Duration::from_seconds(self.number(key, 0.0..=MOST_MS)? / 1e3))
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Result<T, MachineError> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let expected = names.join(" or ");
        let item = self.item(key, &expected)?;
        let found = match &item.value {
            Value::Word(word) => words.iter().find(|(name, _)| name == word),
            _ => None,
        };
        found.map(|(_, meaning)| *meaning).ok_or_else(|| self.wrong(key, item, &expected))
    }

    /// The path of a file that the block names.
    pub(super) fn path(&self, key: &'static str) -> Result<std::path::PathBuf, MachineError> {
        let item = self.item(key, "a file")?;
        match &item.value {
            Value::Word(name) => Ok(beside(&self.block.file, name)),
            _ => Err(self.wrong(key, item, "a file")),
        }
    }

    pub(super) fn list(&self, key: &'static str) -> Result<&'b [Item], MachineError> {
        let item = self.item(key, "a list [ ... ]")?;
        match &item.value {
            Value::List(items) => Ok(items),
            _ => Err(self.wrong(key, item, "a list [ ... ]")),
        }
    }

    /// Whole numbers.
    pub(super) fn integers(&self, key: &'static str) -> Result<Vec<u64>, MachineError> {
        let expected = "whole numbers from 0 on";
        self.list(key)?
            .iter()
            .map(|item| integer(item).ok_or_else(|| self.wrong(key, item, expected)))
            .collect()
    }

    /// The block under `key`, written there, or one of `named` whose name stands there.
    pub(super) fn block_of(&self, key: &'static str, named: &[&'b Block]) -> Result<&'b Block, MachineError> {
        let expected = "a block { ... }, a file (source NAME) or the name of a block";
        let item = self.item(key, expected)?;
        let found = match &item.value {
            Value::Block(block) => Some(block),
            Value::Word(name) => named.iter().find(|block| block.name == *name).copied(),
            Value::List(_) => None,
        };
        found.ok_or_else(|| self.wrong(key, item, expected))
    }

    /// Refuses every key that was not asked for, and gives back those of `left_out` whose value is not the one beside
    /// them, which asks for nothing.
    pub(super) fn finish(self, left_out: &[(&str, f64)]) -> Result<Vec<String>, MachineError> {
        let mut not_modelled = Vec::new();
        for param in &self.block.params {
            if self.asked.borrow().contains(param.key.as_str()) {
                continue;
            }
            match left_out.iter().find(|(key, _)| *key == param.key) {
                Some((_, nothing)) if number(&param.value) == Some(*nothing) => {}
                Some(_) => not_modelled.push(format!("{} = {}", param.key, show(&param.value))),
                None => return Err(self.unknown(&param.key, param.value.line, left_out)),
            }
        }
        Ok(not_modelled)
    }

    pub(super) fn wrong(&self, key: &str, item: &Item, expected: &str) -> MachineError {
        MachineError::Value {
            file: self.block.file.display().to_string(),
            line: NonZeroUsize::new(item.line),
            key: key.to_owned(),
            found: show(item),
            expected: expected.to_owned(),
        }
    }

    /// The error for the value of `key` that does not go with others.
    pub(super) fn conflict(&self, key: &'static str, expected: &str) -> MachineError {
        match self.find(key) {
            Some(item) => self.wrong(key, item, expected),
            None => self.missing(key, expected),
        }
    }

    /// The error for a block of a kind that does not belong here.
    pub(super) fn wrong_kind(&self, expected: &str) -> MachineError {
        let message = format!("found a block {}: expected {expected}", self.block.kind);
        syntax(&self.block.file, self.block.line, message)
    }

    fn unknown(&self, key: &str, line: usize, left_out: &[(&str, f64)]) -> MachineError {
        let asked = self.asked.borrow();
        let known: BTreeSet<&str> =
            asked.iter().copied().chain(left_out.iter().map(|(key, _)| *key)).collect();
        MachineError::UnknownKey {
            file: self.block.file.display().to_string(),
            line: NonZeroUsize::new(line),
            key: key.to_owned(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        }
    }

    fn item(&self, key: &'static str, expected: &str) -> Result<&'b Item, MachineError> {
        self.find(key).ok_or_else(|| self.missing(key, expected))
    }

    fn find(&self, key: &'static str) -> Option<&'b Item> {
        self.asked.borrow_mut().insert(key);
        self.block.params.iter().find(|param| param.key == key).map(|param| &param.value)
    }

    fn missing(&self, key: &str, expected: &str) -> MachineError {
        MachineError::MissingKey {
            file: self.block.file.display().to_string(),
            line: NonZeroUsize::new(self.block.line),
            key: key.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// A whole number, which may have a fraction of zeros.
pub(super) fn integer(item: &Item) -> Option<u64> {
    let Value::Word(word) = &item.value else { return None };
    let whole = word.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|digit| digit == b'0'));
    whole.map_or(word.as_str(), |(whole, _)| whole).parse().ok()
}

pub(super) fn signed(item: &Item) -> Option<i64> {
    match &item.value {
        Value::Word(word) => word.parse().ok(),
        _ => None,
    }
}

pub(super) fn number(item: &Item) -> Option<f64> {
    match &item.value {
        Value::Word(word) => word.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn show(item: &Item) -> String {
    match &item.value {
        Value::Word(word) => word.clone(),
        Value::List(items) => format!("[{} values]", items.len()),
        Value::Block(block) => format!("{} {{ ... }}", block.kind),
    }
}
