//! What is swept: a key and its values.

use std::str::FromStr;

use anyhow::{Result, bail};
use pio_machine::{Bandwidth, Duration, parse_size};
use pio_plan::Hints;

use super::Source;
use crate::workload_traffic;

/// A key and the values that it takes one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub key: String,
    pub values: Vec<String>,
}

/// What a key is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The machine's description.
    Machine,
    /// The hints.
    Hint,
    /// The workload.
    Parameter,
    /// The run: its random streams.
    Seed,
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        let Some((key, values)) = text.split_once('=') else {
            return Err(format!("'{text}': expected KEY=VALUE,VALUE,…"));
        };
        let (key, values) = (key.trim(), split(values));
        if key.is_empty() || values.iter().any(String::is_empty) {
            return Err(format!("'{text}': expected KEY=VALUE,VALUE,… without an empty key or value"));
        }
        if let Some(twice) =
            values.iter().enumerate().find(|(number, value)| values[..*number].contains(value))
        {
            return Err(format!("'{text}': the value {} is there twice", twice.1));
        }
        Ok(Axis { key: key.to_owned(), values })
    }
}

/// The values between commas, those within brackets left alone.
fn split(values: &str) -> Vec<String> {
    let mut split = vec![String::new()];
    let mut depth = 0_u32;
    for letter in values.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                split.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = split.last_mut() {
            last.push(letter);
        }
    }
    split.iter().map(|value| value.trim().to_owned()).collect()
}

impl Axis {
    /// What the key is of, where this is predicted.
    pub(crate) fn kind(&self, source: &Source) -> Result<Kind> {
        let key = self.key.as_str();
        let parameters: Vec<&str> = match source {
            Source::Trace(_) => Vec::new(),
            Source::Generated(named) => {
                named.entry()?.parameters.iter().map(|parameter| parameter.name).collect()
            }
            Source::Traffic(_) => workload_traffic::PARAMETERS.iter().map(|(name, ..)| *name).collect(),
        };
        if key.contains('.') {
            return Ok(Kind::Machine);
        }
        if parameters.contains(&key) {
            return Ok(Kind::Parameter);
        }
        if key == "seed" {
            return Ok(Kind::Seed);
        }
        if key == "striping_factor" {
            bail!(
                "--sweep {key}: a prediction takes the number of servers from the machine: --sweep storage.io.count=…"
            );
        }
        // Whether its values can be is found out when they are set.
        if !matches!(source, Source::Traffic(_)) && !matches!(Hints::default().set(key, "1"), Ok(false)) {
            return Ok(Kind::Hint);
        }
        let more = if parameters.is_empty() { String::new() } else { format!(", {}", parameters.join(", ")) };
        bail!(
            "--sweep {key}: unknown (expected a key of the machine with its tables, as storage.io.count; \
             a hint; or seed{more})"
        )
    }
}

/// A value as a number, in its basic unit, if it is one.
pub(super) fn place(value: &str) -> Option<f64> {
    let number = f64::from_str(value).ok().filter(|number| number.is_finite());
    let size = || parse_size(value).map(|bytes| bytes as f64);
    let time = || Duration::parse(value).map(Duration::seconds);
    // The time of so many bytes, as a bandwidth tells no number of its own.
    let bandwidth =
        || Bandwidth::parse(value).map(|bandwidth| 1e9 / bandwidth.time_of(1_000_000_000).seconds());
    number.or_else(size).or_else(time).or_else(bandwidth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_at_commas_outside_brackets() {
        let axis: Axis = "network.dimensions = [8,8], [4,16]".parse().unwrap();
        assert_eq!(axis.key, "network.dimensions");
        assert_eq!(axis.values, ["[8,8]", "[4,16]"]);
    }

    #[test]
    fn what_is_no_axis_is_refused() {
        let refused = |text: &str| text.parse::<Axis>().unwrap_err();
        assert!(refused("load").contains("expected KEY=VALUE"));
        assert!(refused("load=").contains("without an empty key or value"));
        assert!(refused("load=0.1,,0.2").contains("without an empty key or value"));
        assert!(refused("=1").contains("without an empty key or value"));
        assert!(refused("load=0.1,0.1").contains("0.1 is there twice"));
    }

    #[test]
    fn values_with_units_are_numbers() {
        assert_eq!(place("0.25"), Some(0.25));
        assert_eq!(place("2 KiB"), Some(2048.0));
        assert_eq!(place("5 ms"), Some(0.005));
        assert_eq!(place("10 MB/s"), Some(1e7));
        assert_eq!(place("clustered"), None);
    }
}
