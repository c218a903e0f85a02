//! How many there were of what, and the first kinds of them by name.

/// Kinds that are named.
const MOST_NAMES: usize = 3;

#[derive(Default)]
pub(super) struct Kinds {
    /// How many there were in all.
    pub(super) count: u64,
    names: Vec<String>,
    has_more: bool,
}

impl Kinds {
    pub(super) fn add(&mut self, name: &str) {
        self.count += 1;
        if self.names.iter().any(|known| known == name) {
            return;
        }
        if self.names.len() == MOST_NAMES {
            self.has_more = true;
        } else {
            self.names.push(name.to_owned());
        }
    }

    /// The names, for people: `chown, ioctl, statfs, …`
    pub(super) fn names(&self) -> String {
        let more = if self.has_more { ", …" } else { "" };
        format!("{}{more}", self.names.join(", "))
    }
}
