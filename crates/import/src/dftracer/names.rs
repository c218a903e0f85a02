//! What the hashes of logs stand for.

use std::borrow::Cow;
use std::collections::HashMap;

/// Names by their hashes, of one kind: files, hosts, or other texts.
///
/// A hash stands for the same name in all logs, but those of early versions have 16 bits: what a log says itself goes before
/// what others say.
#[derive(Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    pub(super) fn learn(&mut self, hash: &str, name: &str) {
        self.0.insert(hash.to_owned(), name.to_owned());
    }

    pub(super) fn get(&self, hash: &str) -> Option<&str> {
        self.0.get(hash).map(String::as_str)
    }
}

/// A path as whole as can be known: names are relative to the working folder.
pub(super) fn whole<'a>(path: &'a str, folder: Option<&str>) -> Cow<'a, str> {
    match folder {
        Some(folder) if !path.starts_with('/') => {
            let path = path.strip_prefix("./").unwrap_or(path);
            Cow::Owned(format!("{}/{path}", folder.trim_end_matches('/')))
        }
        _ => Cow::Borrowed(path),
    }
}
