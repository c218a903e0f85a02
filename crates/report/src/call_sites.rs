//! The lines of a program that opened files, and what was read and written through that.

use pio_explain::{CallSiteStatistics, Explanation, MarkedTime};
use pio_trace::CallSite;

use crate::escape;
use crate::sections::Limits;
use crate::table::Table;
use crate::units;

/// What one must know to read the table.
const NOTE: &str = "A line has the calls on all that was opened there, by itself or through a library. What libraries open in \
                    code that is not Python mostly has none.";

/// A line of the program, its path not longer than so many columns: `…/train.py:12 load`.
pub(crate) fn line(site: &CallSite<'_>, path: usize) -> String {
    CallSite { path: &escape::shorten(site.path, path), library: None, ..*site }.to_string()
}

/// Lines, those that took the most time first; nothing if none is known.
pub(crate) fn table(found: &Explanation, limits: &Limits) -> Table {
    let shown = found.call_sites.len().min(limits.rows);
    let amount = |bytes: u64| if bytes > 0 { units::bytes(bytes as f64) } else { String::new() };
    let rows = found.call_sites[..shown].iter().map(|one| {
        let site = one.call_site();
        vec![
            line(&site, limits.path),
            site.library.unwrap_or_default().to_owned(),
            units::count(one.opens.count),
            amount(one.moved.from_memory.bytes),
            amount(one.moved.from_storage.bytes),
            amount(one.moved.written.bytes),
            units::time_ns(one.all().time_ns),
            most_within(found, one).unwrap_or_default(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let rest = (found.call_sites.len() - shown) as u64;
    let more =
        if rest > 0 { format!(" {} more.", units::things(rest, "line", "lines")) } else { String::new() };
    let note = if rows.is_empty() { String::new() } else { format!("{NOTE}{more}") };
    let columns = vec![
        "call site",
        "through",
        ">opens",
        ">from memory",
        ">from storage",
        ">written",
        ">time",
        "most of it in",
    ];
    Table { title: "By call site".into(), note, columns, rows }
}

/// The line whose calls took the most of a phase, and how much: `train.py:12 load 1.2 s, 90 %`. None if no line is known.
pub(crate) fn most_of(found: &Explanation, time: &MarkedTime) -> Option<String> {
    let (id, tally) =
        time.by_site.iter().max_by_key(|(id, tally)| (tally.time_ns, std::cmp::Reverse(**id)))?;
    let site = found.call_site(*id)?;
    let file = site.path.rsplit('/').next().unwrap_or_default();
    let named = line(&CallSite { path: file, ..site }, 24);
    Some(share(&named, tally.time_ns, time.moved.all().time_ns))
}

/// In which phase most of the time of a line's calls was: `batch wait 1.2 s, 90 %`. One that has no others within it, if it has
/// half of the time.
fn most_within(found: &Explanation, one: &CallSiteStatistics) -> Option<String> {
    let names = &found.marked.names;
    let is_outer = |name: usize| names.get(name).is_some_and(|name| !name.sum.within_ns.is_empty());
    let all_ns = one.all().time_ns;
    let is_inner = |name: usize, ns: u64| !is_outer(name) && ns >= all_ns / 2;
    let most = one
        .within_ns
        .iter()
        .max_by_key(|(name, ns)| (is_inner(*name, *ns), *ns, std::cmp::Reverse(*name)))?;
    Some(share(&escape::shorten(&names.get(most.0)?.name, 16), most.1, all_ns))
}

fn share(what: &str, time_ns: u64, of_ns: u64) -> String {
    format!("{what} {}, {}", units::time_ns(time_ns), units::percent(time_ns as f64 / of_ns.max(1) as f64))
}
