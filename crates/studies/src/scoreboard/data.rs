//! Measured runs as CSV files: those that the project carries, and folders of a user's own.
//!
//! A column that is missing or misspelt would make every number in it unknown, and a number that cannot be would make a
//! prediction that cannot be. So both are errors, with the place. Some columns a table may lack. A blank cell is a number that nobody knows: rows that lack
//! what the models need are left out, and counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use serde::de::DeserializeOwned;

use super::ScoreError;

/// Where the carried tables are, for errors.
const CARRIED: &str = "papers/scoreboards";

/// The most that is taken for a count of nodes, hosts or accelerators.
const MOST_COUNTED: f64 = 10_000_000.0;

/// A row of a table.
pub(super) trait Row: DeserializeOwned {
    /// The columns that the table needs.
    const COLUMNS: &'static [Column];
    /// Those of them that it may lack, as if all their cells were blank.
    const MAY_LACK: &'static [&'static str] = &[];

    /// Why it cannot be used, as the end of "3 …"; none if it can.
    fn left_out(&self) -> Option<String>;
}

/// A column: its name, and what its cells may hold.
pub(super) struct Column(pub(super) &'static str, pub(super) Cells);

/// What the cells of a column may hold. Blank ones are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    Text,
    /// 0 or 1; blank is 0.
    Flag,
    /// A finite number above 0.
    Above0,
    /// A whole number from 1 to [`MOST_COUNTED`].
    Count,
}

impl Cells {
    /// What was expected instead, if the text cannot be.
    fn refuse(self, text: &str) -> Option<&'static str> {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        let is_count = |number: f64| number.fract() == 0.0 && (1.0..=MOST_COUNTED).contains(&number);
        match self {
            _ if text.is_empty() => None,
            Cells::Text => None,
            Cells::Flag => (!matches!(text, "0" | "1")).then_some("0, 1 or nothing"),
            Cells::Above0 => number.is_none().then_some("a number above 0"),
            Cells::Count => (!number.is_some_and(is_count)).then_some("a whole number from 1 to 10,000,000"),
        }
    }
}

/// The rows of some tables that can be used, and how many others there are, by the reason.
pub(super) struct Usable<T> {
    pub(super) rows: Vec<T>,
    left_out: BTreeMap<String, usize>,
}

impl<T: Row> Usable<T> {
    fn none() -> Usable<T> {
        Usable { rows: Vec::new(), left_out: BTreeMap::new() }
    }

    fn add(&mut self, table: Vec<T>, path: &Path) -> Result<(), ScoreError> {
        let mut here = Usable::none();
        for row in table {
            match row.left_out() {
                Some(why) => *here.left_out.entry(why).or_default() += 1,
                None => here.rows.push(row),
            }
        }
        if here.rows.is_empty() {
            return Err(ScoreError::NothingUsable { path: path.to_owned(), why: here.left_out_text() });
        }
        self.rows.append(&mut here.rows);
        for (why, rows) in here.left_out {
            *self.left_out.entry(why).or_default() += rows;
        }
        Ok(())
    }

    /// How many rows were left out, and why: a sentence.
    pub(super) fn left_out_text(&self) -> String {
        let left_out: usize = self.left_out.values().sum();
        let all = self.rows.len() + left_out;
        if left_out == 0 {
            return format!("None of {all} rows was left out.");
        }
        let reasons: Vec<String> = self.left_out.iter().map(|(why, rows)| format!("{rows} {why}")).collect();
        format!("Left out of {all} rows: {}.", reasons.join(", "))
    }
}

/// Reads a table that the project carries.
pub(super) fn carried<T: Row>(file: &str, text: &str) -> Result<Usable<T>, ScoreError> {
    let path = Path::new(CARRIED).join(file);
    let mut all = Usable::none();
    all.add(rows(text.as_bytes(), &path)?, &path)?;
    Ok(all)
}

/// Reads the table `file` of each folder, or of its folder `kind` (`io500`, …). Columns go by their names; others may be
/// there.
pub(super) fn of_folders<T: Row>(
    folders: &[PathBuf],
    kind: &str,
    file: &str,
) -> Result<Usable<T>, ScoreError> {
    let mut all = Usable::none();
    for folder in folders {
        let path = [folder.join(file), folder.join(kind).join(file)]
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| ScoreError::NoTable { folder: folder.clone(), file: file.to_owned() })?;
        let text = std::fs::File::open(&path)
            .map_err(|source| ScoreError::Unreadable { path: path.clone(), source: source.into() })?;
        all.add(rows(text, &path)?, &path)?;
    }
    Ok(all)
}

fn rows<T: Row>(text: impl std::io::Read, path: &Path) -> Result<Vec<T>, ScoreError> {
    let unreadable = |source| ScoreError::Unreadable { path: path.to_owned(), source };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let headers = reader.headers().map_err(unreadable)?.clone();
    let places = places::<T>(&headers, path)?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        for (Column(name, cells), place) in T::COLUMNS.iter().zip(&places) {
            let text = place.and_then(|place| record.get(place)).unwrap_or_default();
            if let Some(expected) = cells.refuse(text) {
                return Err(ScoreError::Refused {
                    path: path.to_owned(),
                    line: record.position().map_or(0, csv::Position::line),
                    column: name,
                    text: text.to_owned(),
                    expected,
                });
            }
        }
        rows.push(record.deserialize(Some(&headers)).map_err(unreadable)?);
    }
    Ok(rows)
}

/// Where the columns are.
fn places<T: Row>(headers: &StringRecord, path: &Path) -> Result<Vec<Option<usize>>, ScoreError> {
    let names = || T::COLUMNS.iter().map(|column| column.0);
    let needed = || names().filter(|name| !T::MAY_LACK.contains(name));
    let place = |name: &str| headers.iter().position(|header| header == name);
    let missing: Vec<&str> = needed().filter(|name| place(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(names().map(place).collect());
    }
    Err(ScoreError::NoColumns {
        path: path.to_owned(),
        missing: missing.join(", "),
        needed: needed().collect::<Vec<_>>().join(", "),
    })
}

/// A rate, a size or a count as a model can use it: finite and above 0.
pub(super) fn usable(number: Option<f64>) -> Option<f64> {
    number.filter(|number| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cells_may_hold() {
        for text in ["1", "10", "1e7", ""] {
            assert_eq!(Cells::Count.refuse(text), None, "{text}");
        }
        for text in ["0", "0.5", "-1", "1e300", "10000001", "nan", "inf", "ten"] {
            assert!(Cells::Count.refuse(text).is_some(), "{text}");
        }
        for text in ["0", "-1", "nan", "inf", "-"] {
            assert!(Cells::Above0.refuse(text).is_some(), "{text}");
        }
        assert_eq!(Cells::Above0.refuse("0.5"), None);
        assert_eq!((Cells::Flag.refuse(""), Cells::Flag.refuse("0")), (None, None));
        assert!(Cells::Flag.refuse("no").is_some());
    }
}
