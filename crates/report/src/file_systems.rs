//! The files by what they are on.

use pio_explain::{Explanation, FileStatistics, OnFileSystem};
use pio_trace::FileSystem;

use crate::escape;
use crate::table::Table;
use crate::units;

/// File systems, those that took the most time first.
pub(crate) fn table(found: &Explanation) -> Table {
    let rows = found.file_systems.iter().map(|one| {
        let OnFileSystem { file_system, files, largest_bytes, traffic } = one;
        let amount = |bytes: u64| if bytes > 0 { units::bytes(bytes as f64) } else { String::new() };
        vec![
            file_system.as_ref().map_or("not known".into(), |one| escape::shorten(&one.kind, 20)),
            file_system.as_ref().map_or(String::new(), |one| escape::shorten(&one.mount, 24)),
            units::count(*files),
            amount(*largest_bytes),
            units::count(traffic.open.count),
            units::count(traffic.data().count),
            units::count(traffic.other.count),
            amount(traffic.read.bytes),
            amount(traffic.write.bytes),
            units::time_ns(traffic.all().time_ns),
        ]
    });
    Table {
        title: "By file system".into(),
        note: String::new(),
        columns: vec![
            "file system",
            "mounted at",
            ">files",
            ">largest",
            ">opens",
            ">requests",
            ">other calls",
            ">read",
            ">written",
            ">time",
        ],
        rows: rows.collect(),
    }
}

/// What a file is on: `lustre, 4 × 1 MiB` where it is known how it lies there.
pub(crate) fn of_file(file: &FileStatistics) -> String {
    let Some(FileSystem { kind, .. }) = &file.on else { return String::new() };
    match file.striping {
        Some(striping) => {
            let unit = units::bytes(striping.unit_bytes as f64);
            format!("{}, {} × {unit}", escape::shorten(kind, 20), units::count(striping.targets.into()))
        }
        None => escape::shorten(kind, 20),
    }
}
