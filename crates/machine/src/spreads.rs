//! How far apart the runs are of which a description's numbers are the middles.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::machine::Machine;

/// For some of a description's keys, how far its runs are apart: half of what lies between their quartiles, as a part of the
/// number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spreads {
    /// Tables and keys are joined by dots, as in `storage.read.request`.
    of: Vec<(String, f64)>,
    /// What is measured now and again: all its runs so far.
    runs: BTreeMap<String, Vec<f64>>,
}

impl Spreads {
    /// Notes one, in place of what was known of the key.
    pub fn note(&mut self, key: impl Into<String>, spread: f64) {
        let key = key.into();
        match self.of.iter_mut().find(|(of, _)| *of == key) {
            Some((_, known)) => *known = spread,
            None => self.of.push((key, spread)),
        }
    }

    /// All runs of a key, with these.
    pub(crate) fn gather(&mut self, key: &str, runs: Vec<f64>) -> Vec<f64> {
        let all = self.runs.entry(key.to_owned()).or_default();
        all.extend(runs);
        all.clone()
    }

    /// Nothing is known any more of a key, and of all that is in it.
    pub fn forget(&mut self, key: &str) {
        self.of.retain(|(of, _)| {
            of.strip_prefix(key).is_none_or(|rest| !rest.is_empty() && !rest.starts_with('.'))
        });
    }

    /// Notes that of the runs of a number, in any order; none of none.
    pub fn note_runs(&mut self, key: &str, runs: &[f64]) {
        if runs.is_empty() {
            return;
        }
        let mut runs = runs.to_vec();
        runs.sort_by(f64::total_cmp);
        let (low, high) = (runs[runs.len() / 4], runs[runs.len() - 1 - runs.len() / 4]);
        let middle = runs[runs.len() / 2];
        if middle > 0.0 {
            self.note(key, (high - low) / 2.0 / middle);
        }
    }

    /// What is to be said behind the line of a key.
    fn comment(&self, key: &str) -> String {
        let mut said = String::new();
        for (of, spread) in &self.of {
            let Some(within) = of.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with('.'))
            else {
                continue;
            };
            let _ = match within.strip_prefix('.') {
                None => write!(said, " ± {:.0} %", spread * 100.0),
                Some(name) => write!(said, " {name} ± {:.0} %,", spread * 100.0),
            };
        }
        if said.is_empty() { said } else { format!("  #{}", said.trim_end_matches(',')) }
    }
}

impl Machine {
    /// As [`Machine::to_toml`], with a comment behind each line whose numbers' spread is known.
    pub fn to_toml_with(&self, comment: &str, spreads: &Spreads) -> String {
        let mut table = String::new();
        let mut text = String::new();
        for line in self.to_toml(comment).lines() {
            let mut said = String::new();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                table = name.to_owned();
            } else if let Some((ranks, _)) =
                line.strip_prefix("    { ranks = ").and_then(|rest| rest.split_once(','))
            {
                said = spreads.comment(&format!("{table}.together.{ranks}"));
            } else if let Some((key, _)) =
                line.split_once(" = ").filter(|_| !line.starts_with('#') && !line.ends_with('['))
            {
                said = spreads.comment(&format!("{table}.{key}"));
            }
            text.push_str(line);
            text.push_str(&said);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi_io::{LibraryCosts, MpiIo, Together};

    #[test]
    fn lines_tell_the_spread_of_their_numbers() {
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        let mut spreads = Spreads::default();
        spreads.note_runs("nodes.switch", &[1.2, 1.0, 0.9, 5.0, 0.1]);
        spreads.note("nodes.copy.bandwidth", 0.01);
        spreads.note("nodes.copy.piece", 0.336);
        spreads.note("calls.write.call", 0.3);
        spreads.forget("calls.write");
        spreads.forget("calls.see");
        spreads.note("calls.seek", 0.5);
        // The spread of all runs, whenever they were.
        let first = spreads.gather("calls.open", vec![1.0, 1.0]);
        spreads.note_runs("calls.open", &first);
        let both = spreads.gather("calls.open", vec![2.0, 2.0]);
        assert_eq!(both, [1.0, 1.0, 2.0, 2.0]);
        spreads.note_runs("calls.open", &both);
        let costs = LibraryCosts {
            together: vec![Together { ranks: 2, ..Together::default() }],
            ..LibraryCosts::default()
        };
        machine.mpi_io = Some(MpiIo { own: costs.clone(), pioscope: costs, ..MpiIo::default() });
        spreads.note("mpi-io.own.together.2.open", 0.04);
        let text = machine.to_toml_with("nodes.switch = measured", &spreads);
        let told: Vec<&str> =
            text.lines().filter(|line| line.contains("4 %") && !line.contains("34 %")).collect();
        assert!(
            matches!(told[..], [row] if row.starts_with("    { ranks = 2,") && row.ends_with("# open ± 4 %")),
            "{told:?}"
        );
        let said = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
            line.split_once("  #").map_or("", |(_, said)| said).to_owned()
        };
        assert_eq!([said("switch"), said("copy")], [" ± 15 %", " bandwidth ± 1 %, piece ± 34 %"]);
        assert_eq!([said("seek"), said("write"), said("count")], [" ± 50 %", "", ""]);
        assert_eq!(spreads.comment("calls.open"), "  # ± 25 %");
        assert_eq!(Machine::parse("again", &text).unwrap(), machine);
    }
}
