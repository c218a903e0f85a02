//! The report for the terminal.

use pio_explain::Explanation;

use crate::sections::{self, Limits};
use crate::table::{Table, wrap};
use crate::{escape, units, words};

/// An explanation as text, about 100 columns wide, without colours.
pub fn text(found: &Explanation) -> String {
    let limits = Limits { rows: 12, path: 22, wide: false };
    let mut text = format!("{}\n", escape::terminal(&found.job));
    text.push_str(&format!("{}\n\n", "═".repeat(escape::terminal(&found.job).chars().count().clamp(1, 100))));
    let trouble = words::trouble(&found.trouble);
    if !trouble.is_empty() {
        text.push_str("Attention\n");
        for line in trouble {
            let line = wrap(&escape::terminal(&line), 96, "    ");
            text.push_str(&format!("  ! {}", line.trim_start()));
        }
        text.push('\n');
    }
    for sentence in words::summary(found) {
        text.push_str(&wrap(&sentence, 98, ""));
    }
    text.push_str(&activity(found));
    let tables = [
        sections::operations(found),
        sections::asked_operations(found),
        sections::request_sizes(found),
        sections::layers(found),
        sections::workload(found),
        sections::patterns(found),
        sections::files(found, &limits),
        sections::processes(found, &limits),
    ];
    for table in tables.iter().filter(|table| has_rows(table)) {
        text.push('\n');
        text.push_str(&table.text());
    }
    if !found.notes.is_empty() {
        text.push_str("\nThe trace says of itself\n");
        for (key, value) in &found.notes {
            text.push_str(&format!("  {}: {}\n", escape::terminal(key), escape::terminal(value)));
        }
    }
    text
}

fn has_rows(table: &Table) -> bool {
    !table.rows.is_empty()
}

/// The data rate over time as two lines of blocks.
fn activity(found: &Explanation) -> String {
    const COLUMNS: usize = 64;
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rate = &found.rate;
    let bins = rate.program_read.len().max(1);
    let columns = COLUMNS.min(bins);
    let column_s = found.duration_s() / columns as f64;
    let mut text = String::new();
    for (name, series) in [("read", &rate.program_read), ("write", &rate.program_write)] {
        let mut sums = vec![0.0; columns];
        for (bin, bytes) in series.iter().enumerate() {
            sums[bin * columns / bins] += bytes;
        }
        let top = sums.iter().copied().fold(0.0, f64::max);
        if top <= 0.0 || column_s <= 0.0 {
            continue;
        }
        let line: String = sums.iter().map(|sum| BLOCKS[(sum / top * 8.0).ceil() as usize]).collect();
        text.push_str(&format!("  {name:<6}▏{line}▕ up to {}\n", units::rate(top / column_s)));
    }
    if text.is_empty() {
        return text;
    }
    format!("\nData rate over {}, as the program saw it\n{text}", units::time_ns(found.duration_ns))
}
