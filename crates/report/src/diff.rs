//! Two runs side by side.

use pio_explain::{Diff, DiffFile, DiffFinding, DiffOperation, Explanation, Tally, Transfer};

use crate::findings::title_of;
use crate::table::{Table, wrap};
use crate::{escape, units};

/// Files that are shown.
const FILES: usize = 12;
/// Times and rates that differ by less are the same run on another day.
const NOISE: f64 = 0.1;

/// Two explanations side by side, as text: `before`, then `after`.
pub fn diff_text(before: &Explanation, after: &Explanation) -> String {
    let mut text = String::new();
    for (name, found) in [("before", before), ("after ", after)] {
        let job = escape::terminal(&escape::beginning(&found.job, escape::TITLE_COLUMNS));
        text.push_str(&format!("{name}  {job}\n"));
        let lacks = crate::headline::losses(&found.trouble).into_iter();
        let empty =
            (found.events == 0).then(|| "it holds no calls, so there is nothing to compare".to_owned());
        let unseen = crate::headline::unseen(found).map(|unseen| format!("not seen: {unseen}"));
        for line in lacks.chain(empty).chain(unseen) {
            text.push_str(&wrap(&escape::terminal(&format!("! not complete: {line}")), 98, "        "));
        }
    }
    text.push('\n');
    for sentence in sentences(before, after) {
        text.push_str(&wrap(&sentence, 98, ""));
    }
    let diff = Diff::of(before, after);
    for table in
        [totals(before, after), operations(&diff.operations), findings(&diff.findings), files(&diff.files)]
    {
        if !table.rows.is_empty() {
            text.push('\n');
            text.push_str(&table.text());
        }
    }
    text
}

/// What matters most.
fn sentences(before: &Explanation, after: &Explanation) -> Vec<String> {
    let mut sentences = Vec::new();
    let compare = |what: &str, a: f64, b: f64| {
        let change = match change(Some(a), Some(b)) {
            _ if (a - b).abs() <= NOISE * a.max(b) => "about the same".to_string(),
            change => change,
        };
        format!("{what} went from {} to {} ({change}).", units::time_s(a), units::time_s(b))
    };
    sentences.push(compare("The run", before.duration_s(), after.duration_s()));
    sentences.push(compare("I/O time, the mean of the processes,", before.io_time_s(), after.io_time_s()));
    if before.process_count != after.process_count {
        sentences.push(format!(
            "The runs have {} and {} processes: sums are not of the same.",
            units::count(before.process_count),
            units::count(after.process_count)
        ));
    }
    let moved = |found: &Explanation| (found.workload.read.bytes, found.workload.write.bytes);
    if moved(before) == moved(after) && moved(before) != (0, 0) {
        sentences.push("Both moved the same number of bytes.".into());
    }
    sentences
}

/// One number of each run, if that was measured, and how it changed; no row if neither has it.
fn row(name: &str, a: Option<f64>, b: Option<f64>, unit: fn(f64) -> String) -> Option<Vec<String>> {
    (a.is_some() || b.is_some())
        .then(|| vec![name.to_string(), units::if_known(a, unit), units::if_known(b, unit), change(a, b)])
}

/// An amount of each run: 0 is none of it. No row if neither has any.
fn amount(name: &str, a: f64, b: f64, unit: fn(f64) -> String) -> Option<Vec<String>> {
    let some = |value: f64| (value != 0.0).then_some(value);
    let change = change(some(a), some(b));
    (a != 0.0 || b != 0.0).then(|| vec![name.to_string(), unit(a), unit(b), change])
}

/// `+12 %`, `-40 %`, `3.2 ×`; `new`, `gone` of what only one run has. Of a number that is 0 in one run there is no factor.
fn change(a: Option<f64>, b: Option<f64>) -> String {
    let (a, b) = match (a, b) {
        (None, None) => return units::NOTHING.into(),
        (None, _) => return "new".into(),
        (_, None) => return "gone".into(),
        (Some(a), Some(b)) => (a, b),
    };
    if a == b {
        return "=".into();
    }
    if a <= 0.0 || b <= 0.0 {
        return if a <= 0.0 { "from 0" } else { "to 0" }.into();
    }
    let factor = b / a;
    if !(0.5..2.0).contains(&factor) {
        let (sign, factor) = if factor < 1.0 { ("1/", 1.0 / factor) } else { ("", factor) };
        return format!("× {sign}{}", units::significant((factor * 10.0).round() / 10.0));
    }
    let percent = (factor - 1.0) * 100.0;
    match percent.abs() {
        0.0..0.005 => "=".into(),
        0.005..0.05 => format!("{percent:+.2} %"),
        _ => format!("{percent:+.1} %"),
    }
}

fn number(value: f64) -> String {
    units::significant(value)
}

fn totals(before: &Explanation, after: &Explanation) -> Table {
    let imbalance = |found: &Explanation| found.imbalance.and_then(|one| one.io_time);
    let bandwidth = |transfer: Transfer| transfer.bandwidth_bytes_per_s();
    let (old, new) = (before.transfers, after.transfers);
    let asked = |found: &Explanation| found.program_pattern.sequential_fraction();
    let differ = [before, after].iter().any(|found| found.program_pattern != found.file_system_pattern);
    let arrived = |found: &Explanation| found.file_system_pattern.sequential_fraction().filter(|_| differ);
    let (a, b) = (before, after);
    let (x, y) = (&a.workload, &b.workload);
    let rows = [
        amount("duration", a.duration_s(), b.duration_s(), units::time_s),
        amount("I/O time per process", a.io_time_s(), b.io_time_s(), units::time_s),
        row("busiest process over mean", imbalance(a), imbalance(b), number),
        amount("processes", a.process_count as f64, b.process_count as f64, number),
        amount("files", x.files as f64, y.files as f64, number),
        amount("requests", x.io_count() as f64, y.io_count() as f64, number),
        row("mean request", x.mean_io_bytes(), y.mean_io_bytes(), units::bytes),
        amount("read", x.read.bytes as f64, y.read.bytes as f64, units::bytes),
        amount("written", x.write.bytes as f64, y.write.bytes as f64, units::bytes),
        row("read bandwidth", bandwidth(old.read), bandwidth(new.read), units::rate),
        row("write bandwidth", bandwidth(old.write), bandwidth(new.write), units::rate),
        row("consecutive accesses, of the program", asked(a), asked(b), units::percent),
        row("consecutive accesses, at the file system", arrived(a), arrived(b), units::percent),
        row("cycle", a.rhythm.period_s, b.rhythm.period_s, units::time_s),
    ];
    Table {
        title: "Totals".into(),
        note: String::new(),
        columns: vec!["what", ">before", ">after", ">change"],
        rows: rows.into_iter().flatten().collect(),
    }
}

/// Calls and times by layer and operation; those whose time changed most first.
fn operations(all: &[DiffOperation]) -> Table {
    let count = |tally: &Tally| (tally.count > 0).then_some(tally.count as f64);
    let time_s = |tally: &Tally| (tally.count > 0).then(|| tally.time_s());
    let rows = all.iter().map(|DiffOperation { layer, physical, op, tallies: [a, b] }| {
        vec![
            if *physical { format!("{} (below)", layer.name()) } else { layer.name().to_string() },
            op.name().to_string(),
            units::count(a.count),
            units::count(b.count),
            change(count(a), count(b)),
            units::if_known(time_s(a), units::time_s),
            units::if_known(time_s(b), units::time_s),
            change(time_s(a), time_s(b)),
        ]
    });
    Table {
        title: "Operations, by the change of their time".into(),
        note: "Below: made by an upper layer. Times are sums over all processes.".into(),
        columns: vec!["layer", "operation", ">calls", ">after", ">change", ">time", ">after", ">change"],
        rows: rows.collect(),
    }
}

fn findings(all: &[DiffFinding]) -> Table {
    let cost = |found: bool, lost_s: Option<f64>| match lost_s {
        None if found => "not known".to_owned(),
        lost_s => units::if_known(lost_s, units::time_s),
    };
    let rows = all.iter().map(|one| {
        let ([in_a, in_b], [a, b]) = (one.found, one.lost_s);
        // A finding is new or gone whatever it costs.
        let change = match (in_a, in_b) {
            (false, _) => "new".to_owned(),
            (_, false) => "gone".to_owned(),
            _ => a.zip(b).map_or(units::NOTHING.to_owned(), |(a, b)| change(Some(a), Some(b))),
        };
        vec![title_of(one.kind).to_string(), cost(in_a, a), cost(in_b, b), change]
    });
    Table {
        title: "Findings, and what they cost".into(),
        note: String::new(),
        columns: vec!["finding", ">before", ">after", ">change"],
        rows: rows.collect(),
    }
}

/// Files of the same path, by the change of the time spent on them.
fn files(all: &[DiffFile<'_>]) -> Table {
    let time_s = |one: &Option<Tally>| one.map(|tally| tally.time_s());
    let bytes = |one: &Option<Tally>| units::if_known(one.map(|tally| tally.bytes as f64), units::bytes);
    let known = |one: &Option<Tally>| units::if_known(time_s(one), units::time_s);
    let rest = all.len().saturating_sub(FILES);
    let rows = all.iter().take(FILES).map(|DiffFile { path, tallies: [a, b] }| {
        vec![escape::shorten(path, 40), bytes(a), bytes(b), known(a), known(b), change(time_s(a), time_s(b))]
    });
    let note =
        if rest > 0 { format!("The {FILES} whose time changed most; {rest} more.") } else { String::new() };
    Table {
        title: "Files, by the change of their time".into(),
        note,
        columns: vec!["file", ">data", ">after", ">time", ">after", ">change"],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{amount, change, row};
    use crate::units;

    #[test]
    fn changes_in_words() {
        for (a, b, words) in [
            (1.0, 1.0, "="),
            (0.0, 0.0, "="),
            // Measured, both.
            (0.0, 2.0, "from 0"),
            (2.0, 0.0, "to 0"),
            (100.0, 112.0, "+12.0 %"),
            (100.0, 60.0, "-40.0 %"),
            (1.0, 3.2, "× 3.2"),
            (8.0, 2.0, "× 1/4"),
            // These were -0.0 %.
            (1.0, 0.9999, "-0.01 %"),
            (1.0, 0.99999, "="),
        ] {
            assert_eq!(change(Some(a), Some(b)), words, "{a} to {b}");
        }
        let of_one = [change(None, Some(0.0)), change(Some(0.0), None), change(None, None)];
        assert_eq!(of_one, ["new", "gone", "–"]);
    }

    #[test]
    fn amounts_of_none_are_no_measured_zeros() {
        let percent = |a, b| row("consecutive", a, b, units::percent).map(|cells| cells[1..].join(", "));
        assert_eq!(percent(Some(1.0), Some(0.0)).as_deref(), Some("100 %, 0 %, to 0"));
        assert_eq!(percent(Some(0.0), Some(0.0)).as_deref(), Some("0 %, 0 %, ="));
        assert_eq!(percent(None, None), None);
        let bytes = |a, b| amount("read", a, b, units::bytes).map(|cells| cells[1..].join(", "));
        assert_eq!(bytes(1024.0, 0.0).as_deref(), Some("1 KiB, 0 B, gone"));
        assert_eq!(bytes(0.0, 0.0), None);
    }
}
