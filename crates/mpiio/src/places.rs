//! What I/O costs at the places that were calibrated, as the launcher tells it to the library.

use std::path::{Path, PathBuf};

use pio_plan::cost::Terms;

/// Places where files are, and what I/O costs there: for the automatic choice. None by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// Folders, and the costs of files below them, if no other folder here is nearer.
    pub folders: Vec<(PathBuf, Terms)>,
    /// The costs of files on I/O servers.
    pub servers: Option<Terms>,
}

/// The variable that has them, as [`Places::to_text`] writes it.
pub(crate) const VARIABLE: &str = "PIOSCOPE_TERMS";

impl Places {
    /// One word: no blanks, nothing that a shell or launcher takes for its own.
    pub fn to_text(&self) -> String {
        let folders = self.folders.iter().map(|(folder, terms)| {
            let bytes = folder.as_os_str().as_encoded_bytes();
            let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
            let path: String = bytes
                .iter()
                .map(|byte| if safe(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") })
                .collect();
            format!("{}@{path}", terms.to_text())
        });
        let servers = self.servers.iter().map(|terms| format!("{}@", terms.to_text()));
        folders.chain(servers).collect::<Vec<_>>().join("+")
    }

    /// What [`Places::to_text`] wrote.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub(crate) fn parse(text: &str) -> Result<Places, String> {
        let mut places = Places::default();
        for place in text.split('+').filter(|place| !place.is_empty()) {
            let (terms, path) =
                place.split_once('@').ok_or_else(|| format!("'{place}' (expected terms@folder)"))?;
            let terms = Terms::parse(terms)?;
            match path {
                "" => places.servers = Some(terms),
                path => places.folders.push((unescaped(path)?, terms)),
            }
        }
        Ok(places)
    }

    /// Those of a file, by number from 1; 0 if nobody told. `on_servers`: whether it is on I/O servers.
    pub(crate) fn number_of(&self, file: &Path, on_servers: bool) -> u64 {
        if on_servers {
            return if self.servers.is_some() { self.folders.len() as u64 + 1 } else { 0 };
        }
        if self.folders.is_empty() {
            return 0;
        }
        // The file need not be there yet, and a folder may be reached by several names.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let above = self.folders.iter().enumerate().filter(|(_, (place, _))| folder.starts_with(place));
        above.max_by_key(|(_, (place, _))| place.as_os_str().len()).map_or(0, |(index, _)| index as u64 + 1)
    }

    /// Those of a number.
    pub(crate) fn of_number(&self, number: u64) -> Option<&Terms> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        match self.folders.get(index) {
            Some((_, terms)) => Some(terms),
            None => self.servers.as_ref(),
        }
    }

    /// A number that other places hardly have: ranks that were told different ones would choose differently, and wait for
    /// each other.
    pub(crate) fn checksum(&self) -> u64 {
        // FNV-1a: the same on all hosts and in all builds.
        self.to_text()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

fn unescaped(path: &str) -> Result<PathBuf, String> {
    use std::os::unix::ffi::OsStringExt;
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("'{path}' (expected two hexadecimal digits after each %)"))?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(read_s: f64) -> Terms {
        Terms { read_s, ..Terms::MEASURED }
    }

    fn places() -> Places {
        let folders = [("/", 1.0), ("/tmp", 2.0), ("/tmp/a b;c%", 3.0)]
            .map(|(path, read_s)| (path.into(), terms(read_s)));
        Places { folders: folders.into(), servers: Some(terms(4.0)) }
    }

    #[test]
    fn a_text_says_all_of_them() {
        let text = places().to_text();
        assert!(!text.contains([' ', ';', '\n']), "{text}");
        assert_eq!(Places::parse(&text), Ok(places()));
        assert_eq!(Places::parse(""), Ok(Places::default()));
        for wrong in ["read=1", "read=x@/", "read=1@/%4"] {
            assert!(Places::parse(wrong).is_err(), "{wrong}");
        }
        assert_ne!(places().checksum(), Places::default().checksum());
    }

    #[test]
    fn the_nearest_folder_counts() {
        let places = places();
        let read_s = |path: &str, on_servers| {
            places.of_number(places.number_of(Path::new(path), on_servers)).map(|terms| terms.read_s)
        };
        assert_eq!(read_s("/usr/file", false), Some(1.0));
        assert_eq!(read_s("/tmp/file", false), Some(2.0));
        assert_eq!(read_s("/tmpfile", false), Some(1.0));
        assert_eq!(read_s("/no-such-folder/file", false), Some(1.0));
        assert_eq!(read_s("/tmp/file", true), Some(4.0));
        assert_eq!(Places::default().number_of(Path::new("/tmp/file"), true), 0);
        assert_eq!(Places::default().of_number(0), None);
    }
}
