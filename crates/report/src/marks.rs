//! What the program marked, for the timeline: epochs, steps and waits as bands above the rows.

use pio_explain::{Explanation, MarkedName, MarkedSpan};

use crate::columns::Column;
use crate::escape;
use crate::rows::Rows;

/// Names that have a band: of those that took most time. The table of marks has all.
const MOST: usize = 6;

/// A JSON list: an object a name, the longest first, as outer phases take longer than those within; with the phases of the
/// first process that marked it, times in `unit_ns`.
pub(crate) fn json(found: &Explanation, rows: &Rows, unit_ns: u64) -> String {
    let names = shown(found);
    let names = names.iter().map(|one| {
        let process = one.processes.first().and_then(|process| rows.process(*process));
        let column = |of: fn(&MarkedSpan) -> u64| Column::Unsigned(one.spans.iter().map(of).collect()).json();
        let times = |of: fn(&MarkedSpan) -> u64| {
            Column::Unsigned(one.spans.iter().map(|span| of(span) / unit_ns).collect()).json()
        };
        format!(
            "{{\"name\":{},\"process\":{},\"number\":{},\"count\":{},\"start\":{},\"end\":{},\"time\":{}}}",
            escape::json(&one.name),
            process.map_or("null".to_owned(), |process| process.to_string()),
            column(|span| span.number),
            column(|span| span.count),
            times(|span| span.start_ns),
            times(|span| span.end_ns),
            times(|span| span.time_ns),
        )
    });
    format!("[{}]", names.collect::<Vec<_>>().join(","))
}

/// What the bands are, in words; empty if there are none.
pub(crate) fn note(found: &Explanation) -> String {
    let (shown, all) = (shown(found).len(), all(found).count());
    if shown == 0 {
        return String::new();
    }
    let rest = if shown < all { format!(" {shown} of {all} names have one.") } else { String::new() };
    format!(
        "Bands above the rows: what the program marked, of the first process that did, by the number of each.{rest} A click on a \
         band chooses its time."
    )
}

fn shown(found: &Explanation) -> Vec<&MarkedName> {
    let mut names: Vec<&MarkedName> = all(found).collect();
    // Sorting keeps the order of first use among equals.
    names.sort_by_key(|one| std::cmp::Reverse(one.spans.iter().map(|span| span.time_ns).sum::<u64>()));
    names.truncate(MOST);
    names
}

fn all(found: &Explanation) -> impl Iterator<Item = &MarkedName> {
    found.marked.names.iter().filter(|one| !one.is_setting() && !one.spans.is_empty())
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, MarkNameId, Process, ProcessId, Tables, Target};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A process that marks a phase of each of these names, the later the shorter.
    fn found(names: &[String]) -> (Tables, Explanation) {
        let process = Process {
            rank: Some(3),
            pid: 7,
            host: "node".into(),
            command: "train".into(),
            start_ns: 0,
            end_ns: Some(100 * MS),
        };
        let tables = Tables { processes: vec![process], mark_names: names.to_vec(), ..Tables::default() };
        let phase = |name: u32| Event {
            target: Target::Mark { name: MarkNameId(name), number: 5 },
            elapsed_ns: (50 - u64::from(name)) * MS,
            ..Event::new(Call::Phase, ProcessId(0), u64::from(name) * MS)
        };
        let events: Vec<Event> = (0..names.len() as u32).map(phase).collect();
        let found = Explanation::of(&tables, events);
        (tables, found)
    }

    #[test]
    fn bands_are_those_of_the_longest_and_their_number_is_bounded() {
        let names: Vec<String> = (0..20).map(|number| format!("phase {number}")).collect();
        let (tables, found) = found(&names);
        let rows = Rows::of(&tables, &found, &[]);
        let json = json(&found, &rows, 1);
        assert_eq!(json.matches("\"name\"").count(), MOST);
        assert!(json.starts_with("[{\"name\":\"phase 0\",\"process\":0,"), "{json}");
        assert!(json.contains("\"phase 5\"") && !json.contains("\"phase 6\""), "{json}");
        assert!(note(&found).contains("6 of 20 names"), "{}", note(&found));
    }

    #[test]
    fn what_a_loader_was_told_is_no_phase_and_without_marks_nothing_is_said() {
        let (tables, found) = found(&["loader 1, batch size".to_owned()]);
        let rows = Rows::of(&tables, &found, &[]);
        assert_eq!((json(&found, &rows, 1).as_str(), note(&found).as_str()), ("[]", ""));
    }
}
