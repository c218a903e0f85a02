//! Files on the targets of Lustre: layouts, and how fast each target was.

use pio_explain::counted::{Counted, CountedFile, LayoutPart, Target};

use super::{data, time};
use crate::sections::Limits;
use crate::table::Table;
use crate::{escape, units};

/// Targets named of a file.
const MOST_NAMED: usize = 8;

/// A sentence on a target that explains why some files took longer.
pub(super) fn sentence(counted: &Counted) -> Option<String> {
    let slow = counted.layouts.slow_target()?;
    Some(format!(
        "Target {} of Lustre was slow: the {} that {} on it alone moved {}, half of the targets {} or more. Ask \
         for its state (lfs df, lfs check osts), or keep files off it (lfs setstripe).",
        slow.target.number,
        units::things(slow.target.alone, "file", "files"),
        if slow.target.alone == 1 { "lies" } else { "lie" },
        units::rate(slow.rate),
        units::rate(slow.median_rate),
    ))
}

pub(super) fn layouts(counted: &Counted, limits: &Limits) -> Table {
    let kinds = &counted.layouts.kinds;
    let shown = kinds.len().min(limits.rows);
    let rows = kinds[..shown].iter().map(|kind| {
        vec![
            parts(&kind.layout.parts),
            kind.layout.pool.clone(),
            units::count(kind.files),
            data(kind.counts.read_bytes),
            data(kind.counts.written_bytes),
            time(kind.counts.time_s()),
        ]
    });
    let note = match kinds.len() - shown {
        0 => String::new(),
        rest => format!("The {shown} of the most files; {} more.", units::count(rest as u64)),
    };
    Table {
        title: "Layouts of files on Lustre".into(),
        note,
        columns: vec!["stripes", "pool", ">files", ">read", ">written", ">time"],
        rows: rows.collect(),
    }
}

/// Targets, the slowest first, then those of which no rate is known.
pub(super) fn targets(counted: &Counted, limits: &Limits) -> Table {
    let mut targets: Vec<&Target> = counted.layouts.targets.iter().collect();
    targets.sort_by(|a, b| {
        let rate = |target: &Target| target.rate().unwrap_or(f64::INFINITY);
        rate(a).total_cmp(&rate(b)).then(b.files.cmp(&a.files)).then(a.number.cmp(&b.number))
    });
    let all = targets.len();
    targets.truncate(limits.rows);
    let rows = targets.iter().map(|target| {
        vec![
            target.number.to_string(),
            units::count(target.files),
            if target.alone > 0 { units::count(target.alone) } else { String::new() },
            data(target.counts.bytes()),
            time(target.counts.read_s + target.counts.write_s),
            target.rate().map_or(String::new(), units::rate),
        ]
    });
    let mut note = "Bytes, time and rate are those of files that lie on no other target.".to_owned();
    if targets.len() < all {
        note.push_str(&format!(" The {} of {all}, slowest first.", targets.len()));
    }
    Table {
        title: "Targets of Lustre".into(),
        note,
        columns: vec![">target", ">files", ">on it alone", ">bytes", ">time", ">rate"],
        rows: rows.collect(),
    }
}

/// How a file lies, in a cell.
pub(super) fn of_file(file: &CountedFile) -> String {
    let Some(layout) = &file.layout else { return String::new() };
    let mut text = parts(&layout.parts);
    if !file.targets.is_empty() {
        let named: Vec<_> = file.targets.iter().take(MOST_NAMED).map(i64::to_string).collect();
        let more = if file.targets.len() > MOST_NAMED { ", …" } else { "" };
        text.push_str(&format!(" on {}{more}", named.join(", ")));
    }
    if !layout.pool.is_empty() {
        text.push_str(&format!(" ({})", escape::shorten(&layout.pool, 16)));
    }
    text
}

/// `2 × 1 MiB`; of a composite layout, each part with where it begins.
fn parts(parts: &[LayoutPart]) -> String {
    let part = |part: &LayoutPart| match part.stripes {
        Some(stripes) => format!("{} × {}", units::count(stripes), units::bytes(part.stripe_bytes as f64)),
        None => "no target".into(),
    };
    match parts {
        [only] => part(only),
        _ => parts
            .iter()
            .map(|one| format!("{} from {}", part(one), units::bytes(one.start as f64)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
