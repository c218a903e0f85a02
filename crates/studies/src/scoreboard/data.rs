//! Measured runs as CSV files: those that the project carries, and folders of a user's own.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::ScoreError;

/// Where the carried tables are, for errors.
const CARRIED: &str = "papers/scoreboards";

/// Reads a table that the project carries.
pub(super) fn carried<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, ScoreError> {
    rows(csv::Reader::from_reader(text.as_bytes()), &Path::new(CARRIED).join(file))
}

/// Reads the table `file` of each folder, or of its folder `kind` (`io500`, …). Columns go by their names; others may be
/// there.
pub(super) fn of_folders<T: DeserializeOwned>(
    folders: &[PathBuf],
    kind: &str,
    file: &str,
) -> Result<Vec<T>, ScoreError> {
    let mut all = Vec::new();
    for folder in folders {
        let path = [folder.join(file), folder.join(kind).join(file)]
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| ScoreError::NoTable { folder: folder.clone(), file: file.to_owned() })?;
        let reader = csv::Reader::from_path(&path)
            .map_err(|source| ScoreError::Unreadable { path: path.clone(), source })?;
        all.extend(rows(reader, &path)?);
    }
    Ok(all)
}

fn rows<T: DeserializeOwned>(
    mut reader: csv::Reader<impl std::io::Read>,
    path: &Path,
) -> Result<Vec<T>, ScoreError> {
    let unreadable = |source| ScoreError::Unreadable { path: path.to_owned(), source };
    reader.deserialize().collect::<Result<Vec<T>, csv::Error>>().map_err(unreadable)
}

/// A rate, a size or a count as a model can use it: finite and above 0.
pub(super) fn usable(number: Option<f64>) -> Option<f64> {
    number.filter(|number| number.is_finite() && *number > 0.0)
}
