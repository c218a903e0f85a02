//! Hints that only an MPI library's own way follows: none of the strategies that are applied.

use std::fmt;

use crate::hints::HintError;

/// Hints to an MPI library, under its names, for a prediction of what it does by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnHints {
    /// `romio_cb_read`: whether collective reads go through aggregators. Default: where the accesses are interleaved.
    pub cb_read: Option<Switch>,
    /// `romio_cb_write`: the same for writes.
    pub cb_write: Option<Switch>,
    /// `romio_ds_read`: whether a rank alone sieves what it reads. Default: it does.
    pub ds_read: Option<Switch>,
    /// `romio_ds_write`: the same for writes.
    pub ds_write: Option<Switch>,
    /// `cb_config_list`: how many ranks of each node aggregate at most. Default: one.
    pub aggregators_per_node: Option<PerNode>,
}

/// Whether a library does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Always.
    Enable,
    /// Never.
    Disable,
    /// As it sees fit.
    Automatic,
}

/// How many ranks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerNode {
    /// So many at most, `*:N`.
    Most(u32),
    /// All of them, `*:*`.
    All,
}

const SWITCHES: [(&str, Switch); 3] =
    [("enable", Switch::Enable), ("disable", Switch::Disable), ("automatic", Switch::Automatic)];

impl OwnHints {
    /// The names of these hints.
    pub const NAMES: [&str; 5] =
        ["romio_cb_read", "romio_cb_write", "romio_ds_read", "romio_ds_write", "cb_config_list"];

    /// Sets the hint `key`. Whether it is one of these.
    ///
    /// # Errors
    /// If the value is none that the hint can have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, HintError> {
        let switch = || {
            let known = SWITCHES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
            known
                .map(|(_, switch)| Some(switch))
                .ok_or_else(|| wrong(key, value, "enable, disable or automatic"))
        };
        match key {
            "romio_cb_read" => self.cb_read = switch()?,
            "romio_cb_write" => self.cb_write = switch()?,
            "romio_ds_read" => self.ds_read = switch()?,
            "romio_ds_write" => self.ds_write = switch()?,
            "cb_config_list" => {
                let each = PerNode::of(value)
                    .ok_or_else(|| wrong(key, value, "*:* or *:N, N ranks of each node"))?;
                self.aggregators_per_node = Some(each);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// These, completed by `others` where nothing is set.
    pub fn or(&self, others: &OwnHints) -> OwnHints {
        OwnHints {
            cb_read: self.cb_read.or(others.cb_read),
            cb_write: self.cb_write.or(others.cb_write),
            ds_read: self.ds_read.or(others.ds_read),
            ds_write: self.ds_write.or(others.ds_write),
            aggregators_per_node: self.aggregators_per_node.or(others.aggregators_per_node),
        }
    }

    /// Those that are set, as key and value.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let switch = |switch: Option<Switch>| switch.map(|switch| switch.to_string());
        let values = [
            switch(self.cb_read),
            switch(self.cb_write),
            switch(self.ds_read),
            switch(self.ds_write),
            self.aggregators_per_node.map(|each| each.to_string()),
        ];
        OwnHints::NAMES.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// How many ranks of a node aggregate at most; none: all of them.
    pub(crate) fn ranks_per_node(&self) -> Option<u32> {
        match self.aggregators_per_node {
            None => Some(1),
            Some(PerNode::Most(count)) => Some(count),
            Some(PerNode::All) => None,
        }
    }
}

impl PerNode {
    fn of(text: &str) -> Option<PerNode> {
        match text.strip_prefix("*:")? {
            "*" => Some(PerNode::All),
            count => count.parse().ok().filter(|count| *count > 0).map(PerNode::Most),
        }
    }
}

impl fmt::Display for PerNode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerNode::Most(count) => write!(out, "*:{count}"),
            PerNode::All => out.write_str("*:*"),
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = SWITCHES.into_iter().find(|(_, switch)| switch == self).map_or("", |(name, _)| name);
        out.write_str(name)
    }
}

fn wrong(key: &str, value: &str, expected: &'static str) -> HintError {
    HintError::Word { key: key.to_owned(), value: value.to_owned(), expected }
}
