//! Hints that a program gave to MPI-IO, as notes of the trace.

use std::fmt;
use std::str::FromStr;

use crate::large_requests::NoRates;
use crate::tables::{HandleId, Tables};

/// What a program asked of MPI-IO for an open file: by `MPI_File_open`, and later by `MPI_File_set_view` or
/// `MPI_File_set_info`. Of a key that it gave several values, the last.
///
/// Of a collective open that gave the same hints in all ranks, the trace has one note, of one of its handles.
///
/// As a note's text: `handle 12: cb_nodes=4, romio_cb_write=enable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenHints {
    /// The handle of the open file.
    pub handle: HandleId,
    /// Keys and values, in the order in which the keys were first given.
    pub pairs: Vec<(String, String)>,
}

impl GivenHints {
    /// The name of such a note.
    pub const NOTE: &str = "hints given";

    /// All that a trace's notes say; a note that is none, or of a handle that the trace does not have, is left out.
    pub fn of(tables: &Tables) -> Vec<GivenHints> {
        let notes = tables.notes.iter().filter(|(name, _)| name == GivenHints::NOTE);
        let given = notes.filter_map(|(_, value)| value.parse::<GivenHints>().ok());
        given.filter(|given| given.handle.index() < tables.handles.len()).collect()
    }

    /// The hints without the handle, as `key=value` words.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        words.join(", ")
    }
}

impl fmt::Display for GivenHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handle {}: {}", self.handle.0, self.words())
    }
}

impl FromStr for GivenHints {
    type Err = NoRates;

    fn from_str(text: &str) -> Result<GivenHints, NoRates> {
        let (handle, words) =
            text.strip_prefix("handle ").and_then(|rest| rest.split_once(": ")).ok_or(NoRates)?;
        let handle = HandleId(handle.parse().map_err(|_| NoRates)?);
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in words.split(", ") {
            match (word.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.to_owned(), value.to_owned())),
                // A comma and a blank within a value.
                (None, Some((_, value))) => {
                    value.push_str(", ");
                    value.push_str(word);
                }
                (None, None) => return Err(NoRates),
            }
        }
        Ok(GivenHints { handle, pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_it_was_written_from() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for pairs in [
            vec![pair("cb_nodes", "4")],
            vec![pair("cb_config_list", "n1:2,n2:1"), pair("x", ""), pair("striping_unit", "1048576")],
            vec![pair("cb_config_list", "n1:2, n2:1"), pair("cb_nodes", "2")],
        ] {
            let given = GivenHints { handle: HandleId(12), pairs };
            assert_eq!(given.to_string().parse(), Ok(given));
        }
        for text in ["", "handle", "handle x: a=b", "handle 3", "handle 3: ", "handle 3: a"] {
            assert_eq!(text.parse::<GivenHints>(), Err(NoRates), "{text}");
        }
    }
}
