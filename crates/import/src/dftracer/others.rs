//! Events that a trace has no place for: those of the program itself, of MPI, of HDF5, of what counts in the background.

use std::collections::BTreeMap;

use crate::kinds::Kinds;

/// More are counted together: programs choose the names.
const MOST_CATEGORIES: usize = 32;

#[derive(Default)]
pub(super) struct Others {
    categories: BTreeMap<String, Kinds>,
    /// Those of further categories.
    more: u64,
}

impl Others {
    pub(super) fn add(&mut self, category: &str, name: &str) {
        if !self.categories.contains_key(category) {
            if self.categories.len() == MOST_CATEGORIES {
                self.more += 1;
                return;
            }
            self.categories.insert(category.to_owned(), Kinds::default());
        }
        if let Some(kinds) = self.categories.get_mut(category) {
            kinds.add(name);
        }
    }

    /// How many there were of which kind, the most first. None if there were none.
    pub(super) fn text(&self) -> Option<String> {
        let mut categories: Vec<_> = self.categories.iter().collect();
        categories.sort_by_key(|(_, category)| std::cmp::Reverse(category.count));
        let told: Vec<_> = categories
            .iter()
            .map(|(name, kinds)| {
                let name = if name.is_empty() { "no category" } else { name };
                format!("{} of {name} ({})", kinds.count, kinds.names())
            })
            .collect();
        let count = self.more + categories.iter().map(|(_, category)| category.count).sum::<u64>();
        let more =
            if self.more > 0 { format!("; {} of further categories", self.more) } else { String::new() };
        (count > 0).then(|| format!("{count} that are no calls on files: {}{more}", told.join("; ")))
    }
}
