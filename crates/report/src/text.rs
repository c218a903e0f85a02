//! The report for the terminal.

use pio_explain::Explanation;

use crate::sections::{self, Limits};
use crate::table::{Table, wrap};
use crate::{
    call_sites, collectives, crowd, escape, file_systems, findings, headline, marked, over_time, rhythm,
    screen, units, words,
};

/// Notes that are too long for a terminal: the HTML report has them.
const LONG_NOTES: [&str; 2] = ["mount", "counted by "];

/// An explanation as text, about 100 columns wide, without colours.
pub fn text(found: &Explanation) -> String {
    with_more(found, "")
}

/// The job's name, underlined.
pub(crate) fn title(found: &Explanation) -> String {
    let job = escape::terminal(&escape::beginning(&found.job, escape::TITLE_COLUMNS));
    let line = "═".repeat(job.chars().count().clamp(1, screen::text_columns(100)));
    format!("{}\n{}\n\n", screen::title(&job), screen::faint(&line))
}

/// The explanation as text, with more text between its tables and its notes.
pub(crate) fn with_more(found: &Explanation, more: &str) -> String {
    let limits = Limits { rows: 12, path: 22, wide: false };
    let mut text = headline(found, &headline::lines(found));
    text.push_str(&title(found));
    text.push_str(&attention(found));
    for sentence in words::summary(found) {
        text.push_str(&wrap(&sentence, 98, ""));
    }
    text.push_str(&findings::text(found));
    text.push_str(&activity(found));
    text.push_str(&over_time::text(found));
    let mut tables = marked::numbers(found, &limits);
    tables.push(marked::names(found));
    tables.push(call_sites::table(found, &limits));
    tables.extend([
        sections::operations(found),
        sections::asked_operations(found),
        collectives::table(found),
        sections::RequestSizes::of(found).table(),
        sections::layers(found),
        sections::workload(found),
        rhythm::purposes(found, &limits),
        rhythm::phases(found),
        sections::patterns(found),
        file_systems::table(found),
        sections::files(found, &limits),
        over_time::apart(found),
        crowd::hosts(found, &limits),
        crowd::outliers(found),
        sections::processes(found, &limits),
    ]);
    for table in tables.iter().filter(|table| has_rows(table)) {
        text.push('\n');
        text.push_str(&table.text());
    }
    text.push_str(more);
    text.push_str(&harmless(found));
    text.push_str(&notes(found));
    text
}

/// What matters most, before all else.
pub(crate) fn headline(found: &Explanation, lines: &[(&str, String)]) -> String {
    let lost = headline::lost(found).map(|line| screen::warned(&hanging(&line, "  ")));
    let lines = lines.iter().map(|(about, line)| hanging(&format!("{about}: {line}"), "  "));
    let mut text: String = lost.into_iter().chain(lines.map(|line| screen::titled(&line))).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// A line; what of it does not fit is indented.
fn hanging(line: &str, indent: &str) -> String {
    wrap(&escape::terminal(line), 98, indent).trim_start().to_owned()
}

/// What is wrong.
pub(crate) fn attention(found: &Explanation) -> String {
    let mut text = String::new();
    let trouble = words::trouble(&found.trouble);
    if !trouble.is_empty() {
        text.push_str(&format!("{}\n", screen::warning("Attention")));
        for line in trouble {
            text.push_str(&format!("  ! {}", hanging(&line, "    ")));
        }
        text.push('\n');
    }
    text
}

/// Failed calls that tell of nothing wrong.
pub(crate) fn harmless(found: &Explanation) -> String {
    let failures = words::harmless(&found.trouble);
    let mut text = String::new();
    if !failures.is_empty() {
        text.push_str(&format!("\n{}\n", words::HARMLESS));
    }
    for line in failures {
        text.push_str(&format!("  {}", hanging(&line, "    ")));
    }
    text
}

/// What the trace says of itself.
pub(crate) fn notes(found: &Explanation) -> String {
    let is_long = |key: &str| LONG_NOTES.iter().any(|start| key.starts_with(start));
    let (long, short): (Vec<_>, Vec<_>) = found.notes.iter().partition(|(key, _)| is_long(key));
    let mut text = String::new();
    if !found.notes.is_empty() {
        text.push_str("\nThe trace says of itself\n");
    }
    for (key, value) in short {
        let line = format!("{}: {}", escape::terminal(key), escape::terminal(value));
        match screen::columns() {
            Some(columns) => text.push_str(&format!("  {}", wrap(&line, columns, "    ").trim_start())),
            None => text.push_str(&format!("  {line}\n")),
        }
    }
    if !long.is_empty() {
        text.push_str(&format!(
            "  and {} (in the HTML report)\n",
            units::things(long.len() as u64, "long note", "long notes")
        ));
    }
    text
}

fn has_rows(table: &Table) -> bool {
    !table.rows.is_empty()
}

/// The data rate over time as two lines of blocks.
fn activity(found: &Explanation) -> String {
    let rate = &found.rate;
    let (mut text, mut column) = (String::new(), String::new());
    // Of no time there is no rate.
    if found.duration_ns == 0 {
        return text;
    }
    for (name, series) in [("read", &rate.program_read), ("write", &rate.program_write)] {
        if let Some((line, top)) = blocks(series) {
            let column_s = found.duration_s() / line.chars().count() as f64;
            text.push_str(&format!("  {name:<6}▏{line}▕ up to {}\n", units::rate(top / column_s)));
            column = units::time_s(column_s);
        }
    }
    if text.is_empty() {
        return text;
    }
    let duration = units::time_ns(found.duration_ns);
    let title = format!("Data rate over {duration}, as the program saw it, each column the mean of {column}");
    format!("\n{}{text}", wrap(&title, 96, ""))
}

/// Bytes of equal spans of time as a line of blocks, at most 64, and the bytes of the highest. None without bytes.
pub(crate) fn blocks(series: &[f64]) -> Option<(String, f64)> {
    const COLUMNS: usize = 64;
    /// For what is written before the line and behind it.
    const BESIDE: usize = 32;
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let room = screen::text_columns(COLUMNS + BESIDE).saturating_sub(BESIDE).max(10);
    let columns = room.min(series.len()).max(1);
    let sums = spread(series, columns);
    let top = sums.iter().copied().fold(0.0, f64::max);
    (top > 0.0).then(|| (sums.iter().map(|sum| BLOCKS[(sum / top * 8.0).ceil() as usize]).collect(), top))
}

/// What falls into each of `columns` equal spans, at most as many as there are bins. Bins that lie in two spans are
/// shared: a column of three bins beside one of two would draw a constant rate as waves.
fn spread(series: &[f64], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for (bin, bytes) in series.iter().enumerate() {
        // In units of which a bin has `columns`, and a column as many as there are bins.
        let (start, end) = (bin * columns, (bin + 1) * columns);
        let (first, last) = (start / series.len(), (end - 1) / series.len());
        for (column, sum) in sums.iter_mut().enumerate().take(last + 1).skip(first) {
            let from = start.max(column * series.len());
            let to = end.min((column + 1) * series.len());
            *sum += bytes * (to - from) as f64 / columns as f64;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::{blocks, spread};

    #[test]
    fn a_constant_rate_is_drawn_as_one() {
        for bins in [1, 63, 64, 65, 100, 129, 140, 191, 256] {
            let (line, top) = blocks(&vec![1.0; bins]).expect("it has bytes");
            let columns = line.chars().count();
            assert!(line.chars().all(|block| block == '█'), "{bins}: {line}");
            assert!((top - bins as f64 / columns as f64).abs() < 1e-9, "{bins}: {top}");
        }
    }

    #[test]
    fn bins_in_two_columns_are_shared() {
        assert_eq!(spread(&[2.0, 4.0, 8.0], 2), [4.0, 10.0]);
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0], 2), [3.0, 7.0]);
    }
}
