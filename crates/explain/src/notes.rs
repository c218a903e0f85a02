//! What a trace says of itself, for people: where its notes name handles, the files.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::{GivenHints, Tables};

/// Files that are named one by one, where the program gave the same hints for several.
const NAMED: usize = 3;

/// The notes, in order; behind them the hints that the program gave, with the files for which it gave them.
pub(crate) fn of(tables: &Tables) -> Vec<(String, String)> {
    let others = tables.notes.iter().filter(|(name, _)| name != GivenHints::NOTE).cloned();
    let mut files: BTreeMap<String, (BTreeSet<&str>, Vec<&str>)> = BTreeMap::new();
    for given in GivenHints::of(tables) {
        let Some(file) = tables.file_of(given.handle) else { continue };
        let (known, in_order) = files.entry(given.words()).or_default();
        if known.insert(&file.path) && in_order.len() < NAMED {
            in_order.push(&file.path);
        }
    }
    let hints = files.into_iter().map(|(words, (known, in_order))| {
        let files = match known.len() {
            0..=NAMED => in_order.join(", "),
            many => format!("{many} files"),
        };
        (format!("{} for {files}", GivenHints::NOTE), words)
    });
    others.chain(hints).collect()
}

#[cfg(test)]
mod tests {
    use pio_trace::{File, FileId, Handle, HandleId, ProcessId};

    use super::*;

    #[test]
    fn hints_are_told_of_files() {
        let handle = |file| Handle { file: FileId(file), process: ProcessId(0), ranks: 2, collective: 1 };
        let given = |handle, nodes: &str| {
            let pairs = vec![("cb_nodes".to_owned(), nodes.to_owned())];
            let given = GivenHints { handle: HandleId(handle), pairs };
            (GivenHints::NOTE.to_owned(), given.to_string())
        };
        let tables = Tables {
            files: (0..6).map(|file| File { path: format!("/f{file}") }).collect(),
            handles: [0, 1, 2, 3, 4, 5, 0].map(handle).to_vec(),
            notes: vec![
                given(0, "4"),
                ("recorder".to_owned(), "pioscope".to_owned()),
                given(1, "4"),
                given(6, "4"),
                given(2, "1"),
                given(3, "1"),
                given(4, "1"),
                given(5, "1"),
            ],
            ..Tables::default()
        };
        let note = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            note("recorder", "pioscope"),
            note("hints given for 4 files", "cb_nodes=1"),
            note("hints given for /f0, /f1", "cb_nodes=4"),
        ];
        assert_eq!(of(&tables), expected);
    }
}
