//! The rooms of `src/core`: each uses only those before it, and no files use each other in a circle.

// A test stops at what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// As `src/core.rs` draws them.
const ROOMS: [&str; 5] = ["mpi", "storage", "run", "file", "boundary"];

/// What a module of a room (`run::channel`) uses of the rooms.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn read(folder: &Path, module: &str, uses: &mut Uses) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        // What is in a folder of a room belongs to the module of its name.
        let depth = module.matches("::").count();
        let inner = match (module, depth) {
            ("", _) => name.trim_end_matches(".rs").to_owned(),
            (_, 0) => format!("{module}::{}", name.trim_end_matches(".rs")),
            _ => module.to_owned(),
        };
        if entry.file_type().unwrap().is_dir() {
            read(&entry.path(), &inner, uses);
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        let used = text.lines().filter_map(|line| line.strip_prefix("use crate::core::")).map(|path| {
            let parts: Vec<&str> = path.trim_end_matches(';').split("::").take(2).collect();
            parts.join("::")
        });
        uses.entry(inner.clone()).or_default().extend(used.filter(|used| *used != inner));
    }
}

fn room_of(module: &str) -> usize {
    let room = module.split("::").next().unwrap();
    ROOMS.iter().position(|known| *known == room).unwrap_or_else(|| panic!("{module} is in no room"))
}

#[test]
fn arrows_go_one_way() {
    let mut uses = Uses::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core"), "", &mut uses);
    assert!(uses.len() > 25, "{uses:?}");
    for (module, used) in &uses {
        for other in used {
            assert!(room_of(other) <= room_of(module), "{module} uses {other}, of a later room");
        }
    }
    // What uses nothing that is left cannot be in a circle.
    while let Some(free) = uses.iter().find(|(_, used)| used.iter().all(|used| !uses.contains_key(used))) {
        let free = free.0.clone();
        uses.remove(&free);
    }
    assert!(uses.is_empty(), "these use each other in a circle: {uses:?}");
}
