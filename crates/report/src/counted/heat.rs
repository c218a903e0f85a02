//! Bytes over time, rank by rank: the heat maps of Darshan.

use pio_explain::counted::Activity;

use crate::{escape, figures, units};

const COLUMNS: usize = 64;
/// Lines of text, at most.
const LINES: usize = 8;
const LEFT: f64 = 110.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 11.0;

/// Which ranks were busy when, as text: a line for some ranks each, all to one scale. Nothing for a single process.
pub(super) fn text(activity: &Activity, processes: u64) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rows = rows(activity);
    let a_line = rows.len().div_ceil(LINES).max(1);
    let bins = bins(activity);
    let columns = bins.min(COLUMNS);
    let lines: Vec<Vec<f64>> = rows
        .chunks(a_line)
        .map(|rows| {
            let mut sums = vec![0.0; columns];
            for row in rows {
                for (sum, bytes) in sums.iter_mut().zip(fold(row, bins, columns)) {
                    *sum += bytes;
                }
            }
            sums
        })
        .collect();
    let most = lines.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let mut text = format!("\nBytes of {} over time, by rank\n", escape::terminal(&activity.interface));
    for (number, sums) in lines.iter().enumerate() {
        let line: String = sums.iter().map(|sum| BLOCKS[(sum / most * 8.0).ceil() as usize]).collect();
        let label = ranks(activity, processes, number * a_line, a_line);
        let total = units::bytes(sums.iter().sum());
        text.push_str(&format!("  {label:<16}▏{line}▕ {total}\n"));
    }
    text
}

/// The same as a figure: the more bytes, the darker.
pub(super) fn figure(activity: &Activity, processes: u64) -> String {
    let rows = rows(activity);
    let bins = bins(activity);
    let columns = bins.min(COLUMNS);
    let folded: Vec<_> = rows.iter().map(|row| fold(row, bins, columns)).collect();
    let most = folded.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let width = (WIDTH - LEFT) / columns as f64;
    let mut body = String::new();
    for (number, row) in folded.iter().enumerate() {
        let y = number as f64 * ROW;
        let label = escape::html(&ranks(activity, processes, number, 1));
        body.push_str(&format!(
            "<text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            y + ROW - 2.0
        ));
        for (column, bytes) in row.iter().enumerate().filter(|(_, bytes)| **bytes > 0.0) {
            // The least that is there must be seen.
            let opacity = 0.15 + 0.85 * bytes / most;
            body.push_str(&format!(
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"currentColor\" \
                 fill-opacity=\"{opacity:.2}\"/>",
                LEFT + column as f64 * width,
                ROW - 1.0
            ));
        }
    }
    let title = format!("Bytes of {} over time, by rank", activity.interface);
    let span_s = activity.bin_s * activity.read.len().max(activity.written.len()) as f64;
    let note =
        format!("From left to right {}; the darkest cell is {}.", units::time_s(span_s), units::bytes(most));
    let height = folded.len() as f64 * ROW;
    let svg = format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"100%\">{body}</svg>",
        escape::html(&title)
    );
    figures::figure(&title, &svg, &note)
}

/// Rows of more than one process.
fn rows(activity: &Activity) -> &[Vec<u64>] {
    if activity.by_ranks.len() < 2 { &[] } else { &activity.by_ranks }
}

/// Bins of the whole time: a row ends where its last rank did.
fn bins(activity: &Activity) -> usize {
    let totals = [&activity.read, &activity.written];
    totals.into_iter().chain(&activity.by_ranks).map(Vec::len).max().unwrap_or(0)
}

/// The ranks of some rows. The last row may have fewer than the others.
fn ranks(activity: &Activity, processes: u64, row: usize, rows: usize) -> String {
    let first = row as u64 * activity.ranks_a_row;
    let end = (first + rows as u64 * activity.ranks_a_row).min(processes.max(first + 1));
    match end - first {
        1 => format!("rank {first}"),
        _ => format!("ranks {first} to {}", end - 1),
    }
}

/// The bins of a row in fewer columns, as many to each as of any other row.
fn fold(row: &[u64], bins: usize, columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for (bin, &bytes) in row.iter().enumerate() {
        sums[bin * columns / bins] += bytes as f64;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row for two of so many ranks, of these bins each.
    fn activity(rows: &[&[u64]]) -> Activity {
        let by_ranks: Vec<Vec<u64>> = rows.iter().map(|row| row.to_vec()).collect();
        Activity {
            interface: "POSIX".to_owned(),
            bin_s: 1.0,
            read: by_ranks.iter().max_by_key(|row| row.len()).cloned().unwrap_or_default(),
            written: Vec::new(),
            ranks_a_row: 2,
            by_ranks,
        }
    }

    #[test]
    fn the_last_row_may_have_fewer_ranks() {
        let activity = activity(&[&[1], &[1], &[1]]);
        for (processes, last) in [(6, "ranks 4 to 5"), (5, "rank 4")] {
            for shown in [text(&activity, processes), figure(&activity, processes)] {
                assert!(shown.contains("ranks 2 to 3") && shown.contains(last), "{shown}");
                assert!(!shown.contains("to 6"), "{shown}");
            }
        }
    }

    #[test]
    fn all_rows_have_the_time_of_the_longest() {
        // The first rank ended in half of the time of the other: what it did is in the first half of its line.
        let shown = text(&activity(&[&[8, 8], &[8, 8, 8, 8]]), 4);
        let lines: Vec<&str> = shown.lines().filter(|line| line.contains('▏')).collect();
        assert!(lines[0].contains("▏██  ▕") && lines[1].contains("▏████▕"), "{shown}");
    }
}
