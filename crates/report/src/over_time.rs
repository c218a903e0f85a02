//! Ranks over time: a heat map of the time that they spent in I/O, and who was not as the others.

use pio_explain::{Apart, BusyRow, CROWD, Explanation};

use crate::escape;
use crate::figures::figure;
use crate::sections::process_name;
use crate::table::Table;
use crate::units;

/// Lines of text, and columns of each, at most.
const LINES: usize = 10;
const COLUMNS: usize = 64;

/// Whether there are so many processes that the timeline shows a few of them at a time: then the heat map comes before it.
pub(crate) fn is_crowd(found: &Explanation) -> bool {
    found.processes.len() >= CROWD
}

/// The heat map as text: a line for some processes each; nothing of few, nor without I/O.
pub(crate) fn text(found: &Explanation) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rows = &found.busy.rows;
    let bins = rows.iter().map(|row| row.fraction.len()).max().unwrap_or(0);
    if !is_crowd(found) || bins == 0 || found.io_time.process_ns == 0 {
        return String::new();
    }
    let columns = bins.min(COLUMNS);
    let mut text = format!(
        "\n{} over {}: the part of their time in I/O (full block: all of it), {} a column\n",
        if found.is_mpi { "Ranks" } else { "Processes" },
        units::time_ns(found.duration_ns),
        units::time_s(found.duration_s() / columns as f64),
    );
    for rows in rows.chunks(rows.len().div_ceil(LINES)) {
        let parts = fold(rows, columns, bins);
        let line: String = parts.iter().map(|part| BLOCKS[(part * 8.0).ceil().min(8.0) as usize]).collect();
        let mean = parts.iter().sum::<f64>() / columns as f64;
        text.push_str(&format!("  {:>14} ▏{line}▕ {}\n", range(found, rows), units::percent(mean)));
    }
    text
}

/// The part of the time in I/O of some rows together, in so many columns.
fn fold(rows: &[BusyRow], columns: usize, bins: usize) -> Vec<f64> {
    let processes: usize = rows.iter().map(|row| row.processes).sum();
    let mut sums = vec![0.0; columns];
    let mut counts = vec![0_usize; columns];
    for bin in 0..bins {
        counts[bin * columns / bins] += 1;
    }
    for row in rows {
        for (bin, part) in row.fraction.iter().enumerate() {
            let column = bin * columns / bins;
            sums[column] += part * row.processes as f64 / (processes * counts[column]).max(1) as f64;
        }
    }
    sums
}

/// `0–1249`: the ranks of some rows, or which of the processes they are.
fn range(found: &Explanation, rows: &[BusyRow]) -> String {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return String::new() };
    let name = |index: usize| match found.processes.get(index).and_then(|process| process.rank) {
        Some(rank) => rank.to_string(),
        None => (index + 1).to_string(),
    };
    format!("{}–{}", name(first.first), name(last.first + last.processes - 1))
}

/// Who was in I/O when: the script draws it, and chooses by it; nothing of a single process.
pub(crate) fn html(found: &Explanation) -> String {
    if found.busy.rows.len() < 2 {
        return String::new();
    }
    let many = if found.is_mpi { "ranks" } else { "processes" };
    let label = format!(
        "Heat map: part of its time that each of {} {many} spent in I/O, over {}. Arrows move, Enter chooses the {many} of a row, C \
         its time, Escape ends that.",
        units::count(found.process_count),
        units::time_ns(found.duration_ns)
    );
    let most = found.busy.rows.iter().map(|row| row.processes).max().unwrap_or(1);
    let row = match most {
        1 => String::new(),
        _ => format!(" A row is the mean of up to {most} {many}."),
    };
    let (frames, told) = match found.apart.len() {
        _ if !is_crowd(found) || !found.is_mpi => ("", ""),
        0 => ("", " No rank's time in I/O stands apart from that of the others."),
        _ => ("<li><i class=\"key apart\"></i>not as the others: the table below names them</li>", ""),
    };
    figure(
        "Who was in I/O when",
        &format!(
            "<div class=\"heat live stage\"><canvas id=\"busy\" tabindex=\"0\" role=\"application\" aria-label=\"{}\"></canvas>\
             <div class=\"tip\" role=\"status\" hidden></div></div>\
             <ul class=\"keys\"><li><i class=\"key heat-0\"></i>not in I/O</li>\
             <li><i class=\"key heat-1\"></i>all the time</li>{frames}</ul>",
            escape::html(&label)
        ),
        &format!(
            "Drag chooses a time for all figures and tables; a click chooses the {many} of a row, another ends that.{row}{told}"
        ),
    )
}

/// Ranks whose time in I/O was not as that of the others for a while; no rows if there are none.
pub(crate) fn apart(found: &Explanation) -> Table {
    let rows = found.apart.iter().map(|one| {
        vec![
            who(found, one),
            found.processes[one.processes[0]].host.clone(),
            units::time_ns(one.from_ns),
            units::time_ns(one.until_ns),
            units::percent(one.part),
            units::percent(one.median),
            more(one),
        ]
    });
    Table {
        title: "Ranks that stand apart for a while".into(),
        note: "Those whose part of time in I/O differs from the median of all ranks by more than chance makes it, by time; ten at most. \
               Where half or more of a host's ranks do so, they are one row."
            .into(),
        columns: vec!["rank", "host", ">from", ">until", ">in I/O", ">median", ">more in I/O"],
        rows: rows.collect(),
    }
}

/// `all 128`, `70 of 128` or the rank.
fn who(found: &Explanation, one: &Apart) -> String {
    match one.processes.len() {
        1 => process_name(&found.processes[one.processes[0]]),
        count if count == one.of_host => format!("all {}", units::count(count as u64)),
        count => format!("{} of {}", units::count(count as u64), units::count(one.of_host as u64)),
    }
}

fn more(one: &Apart) -> String {
    let sign = if one.more_ns() < 0.0 { "−" } else { "+" };
    let each = if one.processes.len() > 1 { " each" } else { "" };
    format!("{sign}{}{each}", units::time_s(one.more_ns().abs() / 1e9))
}

/// The same for the page's script: the first and last of the processes, from when until when, and who it is.
pub(crate) fn apart_json(found: &Explanation) -> String {
    let entries = found.apart.iter().flat_map(|one| {
        let host = &found.processes[one.processes[0]].host;
        let who = match one.processes.len() {
            1 => format!("rank {} on {host}", who(found, one)),
            _ => format!("{host}, {} ranks", who(found, one)),
        };
        let parts = format!("{} in I/O, the median {}", units::percent(one.part), units::percent(one.median));
        let words = escape::json(&format!("{who}: {parts}"));
        // Ranks may be dealt out to hosts in turn: those of one host are no neighbours then.
        let neighbours = one.processes.chunk_by(|process, next| process + 1 == *next);
        let of_neighbours = move |ranks: &[usize]| {
            let (first, last) = (ranks[0], ranks[ranks.len() - 1]);
            format!("[{first},{last},{},{},{words}]", one.from_ns, one.until_ns)
        };
        neighbours.map(of_neighbours)
    });
    format!("[{}]", entries.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, Process, ProcessId, Tables};

    use super::*;

    /// Ranks on hosts of 10 that spend half of each of 100 milliseconds in I/O; number 42 all of the second half.
    fn found(ranks: u32) -> Explanation {
        let process = |rank| Process {
            rank: Some(rank),
            pid: rank,
            host: format!("node{}", rank / 10),
            command: "app".into(),
            start_ns: 0,
            end_ns: Some(100_000_000),
        };
        let tables = Tables { processes: (0..ranks).map(process).collect(), ..Tables::default() };
        let call = |step: u64, rank: u32| Event {
            elapsed_ns: if rank == 42 && step >= 50 { 1_000_000 } else { 500_000 },
            ..Event::new(Call::Stat, ProcessId(rank), step * 1_000_000)
        };
        Explanation::of(&tables, (0..100).flat_map(|step| (0..ranks).map(move |rank| call(step, rank))))
    }

    #[test]
    fn lines_are_of_several_ranks() {
        let text = text(&found(100));
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('▏')).collect();
        assert_eq!(lines.len(), 10, "{text}");
        assert!(lines[0].trim_start().starts_with("0–9 ▏") && lines[0].ends_with("▕ 50 %"), "{text}");
        let part = |line: &str| line.rsplit_once('▕').map(|(_, part)| part.to_owned());
        assert_ne!(part(lines[4]), part(lines[3]), "rank 42 is among these: {text}");
    }

    #[test]
    fn who_stands_apart_is_named() {
        let found = found(100);
        let table = apart(&found);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0][..2], ["42", "node4"]);
        assert!(table.rows[0][6].starts_with('+'), "{:?}", table.rows[0]);
        assert!(apart_json(&found).starts_with("[[42,42,"), "{}", apart_json(&found));
        assert!(html(&found).contains("the table below names them"));
    }

    #[test]
    fn ranks_of_a_host_that_are_no_neighbours_are_framed_one_by_one() {
        let mut found = found(100);
        found.apart[0].processes = vec![3, 4, 13];
        let framed = apart_json(&found);
        assert!(framed.starts_with("[[3,4,") && framed.contains(",[13,13,"), "{framed}");
    }

    #[test]
    fn few_ranks_have_rows_of_their_own() {
        assert_eq!(text(&found(64)), "");
        assert!(apart(&found(64)).rows.is_empty());
    }
}
