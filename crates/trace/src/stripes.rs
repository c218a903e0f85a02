//! How files lie on a parallel file system, as notes of the trace.

use std::fmt;
use std::str::FromStr;

use crate::large_requests::NoRates;
use crate::tables::Tables;

/// The unit of striping and of locks of a file on a parallel file system, or of several files of one folder.
///
/// As a note's text: `1048576 bytes, file /scratch/data`, or `1048576 bytes, files in /scratch` for those files of the folder
/// that several hosts opened, if it is the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripes {
    /// Bytes of a file from one target to the next (Lustre), or of a block (GPFS).
    pub unit_bytes: u64,
    /// The file, or the folder.
    pub path: String,
    /// Whether it is the folder.
    pub of_folder: bool,
}

impl Stripes {
    /// The name of such a note.
    pub const NOTE: &str = "stripes";

    /// All that a trace's notes say; a note that is none is left out.
    pub fn of(tables: &Tables) -> Vec<Stripes> {
        let notes = tables.notes.iter().filter(|(name, _)| name == Stripes::NOTE);
        notes.filter_map(|(_, value)| value.parse().ok()).collect()
    }

    /// The folder that a file is in.
    pub fn folder_of(path: &str) -> Option<&str> {
        let (folder, _) = path.rsplit_once('/')?;
        Some(if folder.is_empty() { "/" } else { folder })
    }
}

impl fmt::Display for Stripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.of_folder { "files in" } else { "file" };
        write!(f, "{} bytes, {whose} {}", self.unit_bytes, self.path)
    }
}

impl FromStr for Stripes {
    type Err = NoRates;

    fn from_str(text: &str) -> Result<Stripes, NoRates> {
        let (bytes, rest) = text.split_once(" bytes, ").ok_or(NoRates)?;
        let (of_folder, path) = match rest.strip_prefix("files in ") {
            Some(path) => (true, path),
            None => (false, rest.strip_prefix("file ").ok_or(NoRates)?),
        };
        let unit_bytes = bytes.parse().ok().filter(|bytes| *bytes > 0).ok_or(NoRates)?;
        let path = path.starts_with('/').then(|| path.to_owned()).ok_or(NoRates)?;
        Ok(Stripes { unit_bytes, path, of_folder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_note_says_what_it_was_written_from(unit_bytes in 1..u64::MAX, name in any::<String>(), of_folder: bool) {
            let stripes = Stripes { unit_bytes, path: format!("/{name}"), of_folder };
            prop_assert_eq!(stripes.to_string().parse(), Ok(stripes));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([0-9]{0,3} bytes, )?(file|files in) ?/?.*") {
            if let Ok(stripes) = text.parse::<Stripes>() {
                prop_assert_eq!(stripes.to_string().parse(), Ok(stripes));
            }
        }
    }

    #[test]
    fn other_text_says_nothing() {
        for text in [
            "",
            "0 bytes, file /a",
            "-1 bytes, file /a",
            "1 bytes, file a",
            "1 bytes, folder /a",
            "x bytes, file /",
        ] {
            assert_eq!(text.parse::<Stripes>(), Err(NoRates), "{text}");
        }
    }

    #[test]
    fn the_folder_of_a_file() {
        assert_eq!(Stripes::folder_of("/scratch/data"), Some("/scratch"));
        assert_eq!(Stripes::folder_of("/data"), Some("/"));
        assert_eq!(Stripes::folder_of("data"), None);
    }
}
