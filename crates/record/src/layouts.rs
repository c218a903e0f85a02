//! Datatypes and views: a process's own ids, made one with every other process's.

use std::collections::{HashMap, HashSet};

use pio_layout::{Datatype, View};
use pio_trace::{DatatypeId, Tables, ViewId};

use crate::spool::PLAIN;

/// What one process defined. Contents are kept until [`Interner::intern`] takes them.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    descriptions: HashMap<u64, Vec<u8>>,
    /// Those of which not every piece has been seen, by the thread that writes them.
    partial: HashMap<(u32, u64), Vec<u8>>,
    views: HashMap<u64, (u64, u64, u64)>,
    /// Descriptions that calls use for memory: the others are views' filetypes.
    memory: HashSet<u64>,
}

impl Layouts {
    /// A piece of a description, `total` bytes long in all. Pieces of one thread come in order.
    pub(crate) fn add_piece(&mut self, thread: u32, id: u64, total: u64, start: u64, piece: &[u8]) {
        let partial = self.partial.entry((thread, id)).or_default();
        if start != partial.len() as u64 {
            return;
        }
        partial.extend_from_slice(piece);
        if partial.len() as u64 == total {
            let whole = self.partial.remove(&(thread, id)).unwrap_or_default();
            self.descriptions.entry(id).or_insert(whole);
        }
    }

    /// An MPI-IO call uses this view, and this datatype for memory.
    pub(crate) fn uses(&mut self, view: u64, memory: u64) {
        if view == PLAIN {
            self.views.insert(PLAIN, (0, 1, PLAIN));
        }
        if memory != PLAIN {
            self.memory.insert(memory);
        }
    }

    /// A view of a filetype.
    pub(crate) fn add_view(&mut self, id: u64, displacement: u64, etype_bytes: u64, filetype: u64) {
        self.views.entry(id).or_insert((displacement, etype_bytes, filetype));
    }
}

/// The ids in the trace of what one process defined.
#[derive(Debug, Default)]
pub(crate) struct Known {
    datatypes: HashMap<u64, DatatypeId>,
    views: HashMap<u64, ViewId>,
}

impl Known {
    /// The memory datatype of a process's id; none for plain bytes.
    pub(crate) fn datatype(&self, id: u64) -> Option<DatatypeId> {
        self.datatypes.get(&id).copied()
    }

    /// The view of a process's id; none if it cannot be.
    pub(crate) fn view(&self, id: u64) -> Option<ViewId> {
        self.views.get(&id).copied()
    }
}

/// Gives equal contents one id in the trace.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    datatypes: HashMap<Vec<u8>, DatatypeId>,
    views: HashMap<(u64, u64, Vec<u8>), ViewId>,
    /// Contents that describe no datatype or no view.
    pub invalid: u64,
}

impl Interner {
    /// Puts what a process defined into the tables, where it is not there yet.
    pub(crate) fn intern(&mut self, layouts: Layouts, tables: &mut Tables) -> Known {
        let mut known = Known::default();
        let mut views: Vec<_> = layouts.views.into_iter().collect();
        views.sort_unstable();
        for (id, (displacement, etype_bytes, filetype)) in views {
            let empty = Vec::new();
            let description = match filetype {
                PLAIN => Some(&empty),
                _ => layouts.descriptions.get(&filetype),
            };
            let Some(description) = description else {
                self.invalid += 1;
                continue;
            };
            if let Some(view) = self.view(displacement, etype_bytes, description, tables) {
                known.views.insert(id, view);
            }
        }
        let mut descriptions: Vec<_> = layouts.descriptions.into_iter().collect();
        descriptions.retain(|(id, _)| layouts.memory.contains(id));
        descriptions.sort_unstable();
        for (id, description) in descriptions {
            if let Some(datatype) = self.datatype(description, tables) {
                known.datatypes.insert(id, datatype);
            }
        }
        known
    }

    fn view(
        &mut self,
        displacement: u64,
        etype_bytes: u64,
        description: &[u8],
        tables: &mut Tables,
    ) -> Option<ViewId> {
        let key = (displacement, etype_bytes, description.to_vec());
        if let Some(id) = self.views.get(&key) {
            return Some(*id);
        }
        let filetype = match description {
            // Contiguous.
            [] => Ok(Datatype::bytes(etype_bytes)),
            description => Datatype::from_description(description),
        };
        let view =
            filetype.ok().and_then(|filetype| View::of_filetype(displacement, etype_bytes, filetype).ok());
        let Some(view) = view else {
            self.invalid += 1;
            return None;
        };
        let id = ViewId(tables.views.len() as u32);
        tables.views.push(view);
        self.views.insert(key, id);
        Some(id)
    }

    fn datatype(&mut self, description: Vec<u8>, tables: &mut Tables) -> Option<DatatypeId> {
        if let Some(id) = self.datatypes.get(&description) {
            return Some(*id);
        }
        let Ok(datatype) = Datatype::from_description(&description) else {
            self.invalid += 1;
            return None;
        };
        let id = DatatypeId(tables.datatypes.len() as u32);
        tables.datatypes.push(datatype);
        self.datatypes.insert(description, id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PnetCDF's for a variable: the header, and behind it a subarray, whose bounds count. Its views were taken for none.
    #[test]
    fn a_filetype_longer_than_its_extent_is_a_view() {
        const HINDEXED: i64 = 4;
        const RESIZED: i64 = 7;
        const BYTE: [i64; 3] = [1, 1, 1];
        let blocks = [HINDEXED, 3, 128, 10, 10, 0, 128, 148];
        let words = [&[RESIZED, 128, 40][..], &blocks, &BYTE].concat();
        let description: Vec<u8> = words.into_iter().flat_map(i64::to_le_bytes).collect();
        let mut layouts = Layouts::default();
        layouts.add_piece(0, 5, description.len() as u64, 0, &description);
        layouts.add_view(6, 0, 1, 5);
        let (mut interner, mut tables) = (Interner::default(), Tables::default());
        let known = interner.intern(layouts, &mut tables);
        assert_eq!(interner.invalid, 0);
        let view = &tables.views[known.view(6).unwrap().index()];
        assert_eq!(
            (view.offset_of(128), view.offset_of(147), view.offset_of(148)),
            (Some(128), Some(157), None)
        );
    }
}
