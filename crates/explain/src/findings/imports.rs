//! Modules of Python: what the interpreter looks up, opens and reads by itself when it starts and imports.
//!
//! All of it is one finding, and no other finding has a part of it: small reads of modules are not for the program to gather, and
//! names are asked for by the interpreter. Where several processes import the same modules, what all but one took could be saved.
//! What a single process can save by importing less, nothing in a trace tells: such a finding has no cost, and comes last.

use std::collections::BTreeSet;

use pio_trace::{FileId, ProcessId, Tables};

use super::finding::Draft;
use super::limits::CALLS;
use super::slots::Slot;
use super::{Context, Cost, Finding, Kind};

/// The files that are modules of Python.
pub(super) struct Modules(Vec<bool>);

impl Modules {
    /// Of files that somebody writes, as an installation does, none is.
    pub(super) fn of(tables: &Tables, slots: &[Slot]) -> Modules {
        let is = |sort: fn(&str) -> bool| move |file: &pio_trace::File| sort(&file.path);
        let mut modules: Vec<bool> = tables.files.iter().map(is(is_module)).collect();
        let of_slot = |slot: &Slot| slot.file.map(FileId::index);
        let interpreters: BTreeSet<ProcessId> = slots
            .iter()
            .filter(|slot| of_slot(slot).is_some_and(|file| modules.get(file) == Some(&true)))
            .map(|slot| slot.process)
            .collect();
        let objects: Vec<bool> = tables.files.iter().map(is(is_shared_object)).collect();
        for slot in slots {
            let Some(file) = of_slot(slot).filter(|file| *file < modules.len()) else { continue };
            modules[file] |= objects[file] && interpreters.contains(&slot.process);
        }
        for file in slots.iter().filter(|slot| slot.written).filter_map(of_slot) {
            modules.get_mut(file).into_iter().for_each(|is_module| *is_module = false);
        }
        Modules(modules)
    }

    pub(super) fn has(&self, slot: &Slot) -> bool {
        slot.file.is_some_and(|file| self.0.get(file.index()) == Some(&true))
    }
}

/// In a folder of packages or of the standard library (`lib/python3.12`), or compiled.
fn is_module(path: &str) -> bool {
    let is_library = |folder: &str| {
        folder
            .strip_prefix("python3.")
            .is_some_and(|minor| minor.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    let is_of_modules = |folder: &str| {
        matches!(folder, "site-packages" | "dist-packages" | "__pycache__") || is_library(folder)
    };
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    path.ends_with(".pyc") || folders.split('/').any(is_of_modules)
}

/// `numpy.so`, `libm.so.6`: modules in C and their libraries, if an interpreter has them.
fn is_shared_object(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.ends_with(".so") || name.contains(".so.")
}

pub(super) fn finding(context: &Context<'_>) -> Option<Finding> {
    let slots: Vec<&Slot> =
        context.evidence.slots.slots.iter().filter(|slot| context.modules.has(slot)).collect();
    let mut users = vec![0_u64; context.evidence.tables.files.len()];
    let files = |slot: &Slot| slot.file.map(FileId::index);
    slots.iter().filter_map(|slot| files(slot)).for_each(|file| users[file] += 1);
    let parts: Vec<(&Slot, Cost)> = slots.iter().map(|slot| (*slot, slot.costs.sum())).collect();
    let needed_ns = parts.iter().map(|(slot, cost)| {
        let users = files(slot).map_or(1, |file| users[file].max(1));
        cost.time_ns as f64 / users as f64
    });
    let mut draft = Draft::of(Kind::Imports, parts.iter().copied());
    draft.expected_ns = needed_ns.sum();
    let saves = draft.expected_ns < draft.cost.time_ns as f64;
    if saves { context.told(draft, CALLS) } else { context.told_unknown(draft) }
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, File, Process, Target};

    use super::*;
    use crate::Explanation;

    const MS: u64 = 1_000_000;

    #[test]
    fn modules_are_known_by_their_paths() {
        for path in [
            "/usr/lib/python3.12/json/decoder.py",
            "/home/me/venv/lib/python3.10/site-packages/numpy/__init__.py",
            "/usr/lib/python3/dist-packages/yaml.py",
            "/home/me/__pycache__/train.cpython-312.pyc",
        ] {
            assert!(is_module(path), "{path}");
        }
        for path in
            ["/data/python3.txt", "/data/train.py", "/data/python3.d/x", "site-packages", "/lib/libm.so.6"]
        {
            assert!(!is_module(path), "{path}");
        }
        assert!(
            is_shared_object("/lib/libm.so.6")
                && is_shared_object("a/_ext.so")
                && !is_shared_object("a/b.sort")
        );
    }

    /// Processes that each ask for 200 modules, 0.1 ms each; one that is alone also for 2,000 names of its own, 0.01 ms each.
    fn found(processes: u32) -> Explanation {
        let process = |pid| Process {
            rank: None,
            pid,
            host: "node".into(),
            command: "python3 train.py".into(),
            start_ns: 0,
            end_ns: Some(100 * MS),
        };
        let paths = (0..200).map(|number| format!("/usr/lib/python3.12/m{number}.py"));
        let paths = paths.chain((0..2000).map(|number| format!("/data/{number}")));
        let tables = Tables {
            processes: (0..processes).map(process).collect(),
            files: paths.map(|path| File { path }).collect(),
            ..Tables::default()
        };
        let stat = |process, file: u32, start_ns, elapsed_ns| Event {
            target: Target::Name { file: FileId(file), other: None },
            elapsed_ns,
            ..Event::new(Call::Stat, ProcessId(process), start_ns)
        };
        let imports = (0..200).flat_map(move |file| {
            (0..processes).map(move |process| stat(process, file, u64::from(file) * MS / 5, MS / 10))
        });
        let own = if processes == 1 { 2000 } else { 0 };
        let own = (0..own).map(|file| stat(0, 200 + file, 40 * MS + u64::from(file) * MS / 40, MS / 100));
        Explanation::of(&tables, imports.chain(own))
    }

    fn kinds(found: &Explanation) -> Vec<Kind> {
        found.findings.iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn what_the_program_can_change_comes_before_the_imports_of_a_single_process() {
        let found = found(1);
        assert_eq!(kinds(&found), [Kind::MetadataStorm, Kind::Imports]);
        let (own, imports) = (&found.findings[0], &found.findings[1]);
        assert_eq!((own.cost.calls, imports.cost.calls), (2000, 200));
        // 20 ms each: the modules are in no other finding.
        assert_eq!(own.lost_ns, Some(20.0 * MS as f64));
        assert_eq!((imports.cost.time_ns, imports.lost_ns), (20 * MS, None));
    }

    #[test]
    fn imports_of_many_processes_cost_what_all_but_one_take() {
        let found = found(4);
        let imports = found.findings.iter().find(|finding| finding.kind == Kind::Imports).expect("a finding");
        assert_eq!(imports.cost.time_ns, 80 * MS);
        assert_eq!(imports.expected_ns, 20.0 * MS as f64);
        let lost_ns = imports.lost_ns.expect("a cost");
        assert!((lost_ns - 60.0 * MS as f64 / imports.together).abs() < 1.0, "{lost_ns}");
    }
}
