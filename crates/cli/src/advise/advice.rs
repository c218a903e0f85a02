//! A strategy and its hints, and the file that `pioscope apply --advice` reads.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use pio_plan::{Hints, Strategy};
use serde::Deserialize;

/// How a program's MPI-IO is to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    pub strategy: Strategy,
    pub hints: Hints,
}

/// As it stands in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InFile {
    strategy: String,
    #[serde(default)]
    hints: BTreeMap<String, Value>,
}

/// Of a hint: a number or a word.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a word")]
enum Value {
    Number(u64),
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(out),
            Value::Word(word) => word.fmt(out),
        }
    }
}

impl Advice {
    /// Reads a file as [`Advice::to_toml`] writes it.
    ///
    /// # Errors
    /// If it cannot be read, is no such file, or names a strategy or a hint that nobody knows.
    pub(crate) fn read(path: &Path) -> Result<Advice> {
        let text = fs::read_to_string(path).with_context(|| format!("{}: cannot read", path.display()))?;
        Advice::parse(&text).map_err(|error| error.context(path.display().to_string()))
    }

    fn parse(text: &str) -> Result<Advice> {
        let InFile { strategy, hints } = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            anyhow!("line {line}: {}", error.message().replace('\n', " "))
        })?;
        let strategy = Strategy::to_predict(&strategy).map_err(|error| anyhow!("strategy: {error}"))?;
        let mut all = Hints::default();
        for (key, value) in hints {
            all = all.or(&Hints::parse(&format!("{key}={value}"))?);
        }
        Ok(Advice { strategy, hints: all })
    }

    /// As a file, with these lines as comments at its head.
    pub(crate) fn to_toml(&self, comments: &[String]) -> String {
        let mut text = String::new();
        for line in comments.iter().flat_map(|comment| comment.lines()) {
            // A comment of TOML holds no control characters; a command may.
            let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "strategy = \"{}\"", self.strategy);
        if self.hints != Hints::default() {
            text.push_str("\n[hints]\n");
        }
        for (key, value) in self.hints.all_pairs() {
            let quote = if value.parse::<u64>().is_ok() { "" } else { "\"" };
            let _ = writeln!(text, "{key} = {quote}{value}{quote}");
        }
        text
    }

    /// The options of `pioscope apply` that say the same.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut words = vec!["--strategy".to_owned(), self.strategy.name().to_owned()];
        if self.hints != Hints::default() {
            words.extend(["--hints".to_owned(), self.hints.to_text()]);
        }
        words
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.strategy)?;
        self.hints.all_pairs().iter().try_for_each(|(key, value)| write!(out, ", {key}={value}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    #[test]
    fn advice_goes_to_a_file_and_back() {
        for (strategy, hints) in [
            (Strategy::ViewBased, "cb_nodes=4,cb_buffer_size=1048576"),
            (Strategy::ViewBased, ""),
            (Strategy::Romio, "cb_buffer_size=4096,romio_cb_write=disable,cb_config_list=*:2"),
        ] {
            let advice = Advice { strategy, hints: Hints::parse(hints).unwrap() };
            let comments = ["mpiexec sh -c 'a\n\u{7}b'".to_owned(), "strategy = \"list\"".to_owned()];
            assert_eq!(Advice::parse(&advice.to_toml(&comments)).unwrap(), advice);
        }
    }

    #[test]
    fn what_is_wrong_is_named_on_one_line() {
        for (text, expected) in [
            ("", "missing field `strategy`"),
            ("strategy = \"two-phase\"\ncolour = 1", "line 2: unknown field `colour`"),
            ("strategy = \"three-phase\"", "strategy: unknown strategy 'three-phase'"),
            ("strategy = \"list\"\n[hints]\ncb_node = 1", "unknown hint 'cb_node'"),
            ("strategy = \"list\"\n[hints]\ncb_nodes = 0", "hint cb_nodes: '0' is not a number"),
            ("strategy = \"list\"\n[hints]\ncb_nodes = \"many\"", "hint cb_nodes: 'many' is not a number"),
            ("strategy = \"list\"\n[hints]\ncb_nodes = [1]", "line 3: expected a number or a word"),
            ("strategy = ", "line 1: "),
        ] {
            let error = format!("{:#}", Advice::parse(text).unwrap_err());
            assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
