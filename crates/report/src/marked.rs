//! What the program marked: epochs, steps and waits.

use pio_explain::{Explanation, MarkedName, MarkedTime};

use crate::call_sites;
use crate::escape;
use crate::sections::Limits;
use crate::table::Table;
use crate::units;

/// Headings of phases within others: those of the most time have columns of their own.
const WITHIN: [&str; 3] = ["most of it in", "then in", "and in"];

/// Where read data came from, as far as the trace tells.
const SOURCES: &str = "Data come from storage if memory had less than half of the file when it was opened, or was read \
                       past it, else from memory (before Linux 6.5: all); calls of processes that do not mark a name \
                       themselves count for the first process that does.";

/// All names.
pub(crate) fn names(found: &Explanation) -> Table {
    let rows = found.marked.names.iter().filter(|one| !one.is_setting()).map(|one| {
        let sum = &one.sum;
        let mean_ns = sum.time_ns as f64 / sum.count.max(1) as f64;
        let mut row = vec![
            escape::shorten(&one.name, 24),
            units::count(sum.count),
            units::count(one.processes.len() as u64),
            units::time_s(of_each(sum.time_ns, sum, one)),
            units::time_s(mean_ns / 1e9),
            units::time_ns(sum.longest_ns),
            number_of_longest(one).map_or(String::new(), units::count),
        ];
        row.extend(moved(sum));
        row
    });
    let mut columns = vec!["marked", ">times", ">processes", ">time", ">mean", ">longest", ">its number"];
    columns.extend(MOVED);
    Table {
        title: "What the program marked".into(),
        note: if found.marked.names.is_empty() {
            String::new()
        } else {
            format!("Time is the mean of the processes that marked it. {SOURCES}")
        },
        columns,
        rows: rows.collect(),
    }
}

/// One table for each name that has others within: a row a number.
pub(crate) fn numbers(found: &Explanation, limits: &Limits) -> Vec<Table> {
    let outer = found.marked.names.iter().filter(|one| !one.sum.within_ns.is_empty());
    outer.map(|one| table_of(found, one, limits)).collect()
}

fn table_of(found: &Explanation, one: &MarkedName, limits: &Limits) -> Table {
    let marked = &found.marked;
    let mut within: Vec<(usize, u64)> = one.sum.within_ns.iter().map(|(name, ns)| (*name, *ns)).collect();
    within.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
    within.truncate(WITHIN.len());
    // `batch wait 3.2 s, 41 %`
    let part = |time: &MarkedTime, name: usize| {
        let Some(&ns) = time.within_ns.get(&name) else { return String::new() };
        let words = marked.names.get(name).map_or("", |name| name.name.as_str());
        let share = units::percent(ns as f64 / time.time_ns.max(1) as f64);
        format!("{} {}, {share}", escape::shorten(words, 16), units::time_s(of_each(ns, time, one)))
    };
    let shown = one.numbers.len().min(limits.rows);
    let has_sites = !one.sum.by_site.is_empty();
    let rows = one.numbers[..shown].iter().map(|(number, time)| {
        let mut row = vec![units::count(*number), units::time_s(of_each(time.time_ns, time, one))];
        row.extend(within.iter().map(|(name, _)| part(time, *name)));
        row.extend(moved(time));
        row.extend(has_sites.then(|| call_sites::most_of(found, time).unwrap_or_default()));
        row
    });
    let rows = rows.collect();
    let mut columns = vec![">number", ">time"];
    columns.extend(WITHIN.iter().take(within.len()));
    columns.extend(MOVED);
    columns.extend(has_sites.then_some("most I/O at"));
    let settings = match ["batch size", "workers"].map(|setting| marked.setting(&one.name, setting)) {
        [Some(batch), Some(workers)] => {
            let workers = units::things(workers, "worker", "workers");
            format!(" Batches of {}, by {workers}.", units::count(batch))
        }
        _ => String::new(),
    };
    let parts: Vec<String> = within.iter().map(|(name, _)| part(&one.sum, *name)).collect();
    let more = match (one.numbers.len() - shown, one.has_more) {
        (0, false) => String::new(),
        (rest, false) => format!(" {} more.", units::things(rest as u64, "number", "numbers")),
        (rest, true) => format!(" More than {} more.", units::things(rest as u64, "number", "numbers")),
    };
    Table {
        title: format!("By {}", escape::shorten(&one.name, 24)),
        note: format!(
            "Of {} in all: {}.{settings}{more}",
            units::time_s(of_each(one.sum.time_ns, &one.sum, one)),
            parts.join("; ")
        ),
        columns,
        rows,
    }
}

/// Which one took longest, if there are several, and all are known.
fn number_of_longest(one: &MarkedName) -> Option<u64> {
    let longest = one.numbers.iter().find(|(_, time)| time.longest_ns == one.sum.longest_ns);
    longest.filter(|_| one.numbers.len() > 1).map(|(number, _)| *number)
}

/// Headings of [`moved`].
const MOVED: [&str; 5] = [">from memory", ">time", ">from storage", ">time", ">written"];

fn moved(time: &MarkedTime) -> [String; 5] {
    let bytes = |bytes: u64| if bytes > 0 { units::bytes(bytes as f64) } else { String::new() };
    let time_ns = |ns: u64| if ns > 0 { units::time_ns(ns) } else { String::new() };
    [
        bytes(time.moved.from_memory.bytes),
        time_ns(time.moved.from_memory.time_ns),
        bytes(time.moved.from_storage.bytes),
        time_ns(time.moved.from_storage.time_ns),
        bytes(time.moved.written.bytes),
    ]
}

/// The mean of the processes that have it, seconds: some may end before the last number.
fn of_each(ns: u64, time: &MarkedTime, one: &MarkedName) -> f64 {
    ns as f64 / 1e9 / time.count.clamp(1, one.processes.len().max(1) as u64) as f64
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, MarkNameId, Process, ProcessId, Tables, Target};

    use super::*;

    const MS: u64 = 1_000_000;

    /// Three steps of 10 ms, of which the first waits for 2 ms, and the last for 6 ms.
    fn steps() -> Explanation {
        explained(
            &["step", "wait", "end"],
            &[(0, 0, 0, 10), (1, 0, 1, 2), (0, 1, 10, 10), (0, 2, 20, 10), (1, 2, 21, 6), (2, 0, 29, 1)],
        )
    }

    /// Phases, each by the place of its name, its number, start and time.
    fn explained(names: &[&str], phases: &[(u32, u64, u64, u64)]) -> Explanation {
        let process = Process {
            rank: None,
            pid: 7,
            host: "node".into(),
            command: "train".into(),
            start_ns: 0,
            end_ns: Some(30 * MS),
        };
        let tables = Tables {
            processes: vec![process],
            mark_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Tables::default()
        };
        let phase = |&(name, number, start_ms, elapsed_ms): &(u32, u64, u64, u64)| Event {
            target: Target::Mark { name: MarkNameId(name), number },
            elapsed_ns: elapsed_ms * MS,
            ..Event::new(Call::Phase, ProcessId(0), start_ms * MS)
        };
        Explanation::of(&tables, phases.iter().map(phase))
    }

    #[test]
    fn what_a_loader_was_told_is_in_the_note_of_its_epochs() {
        let found = explained(
            &["loader 1, batch size", "loader 1, workers", "epoch, loader 1", "batch wait"],
            &[(0, 16, 0, 0), (1, 1, 0, 0), (2, 0, 1, 10), (3, 0, 2, 5)],
        );
        let rows = names(&found).rows;
        let named: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(named, ["epoch, loader 1", "batch wait"]);
        let tables = numbers(&found, &Limits { rows: 10, path: 40, wide: true });
        assert_eq!(tables[0].note, "Of 10 ms in all: batch wait 5 ms, 50 %. Batches of 16, by 1 worker.");
    }

    #[test]
    fn the_number_of_the_longest_is_named() {
        let table = names(&steps());
        let column = table.columns.iter().position(|name| *name == ">its number").unwrap();
        let numbers: Vec<(&str, &str)> =
            table.rows.iter().map(|row| (row[0].as_str(), row[column].as_str())).collect();
        // All steps take as long: the first is named. Of a name with one number none is.
        assert_eq!(numbers, [("step", "0"), ("wait", "2"), ("end", "")]);
    }

    #[test]
    fn what_a_number_has_not_is_left_out() {
        let tables = numbers(&steps(), &Limits { rows: 10, path: 40, wide: true });
        let cells: Vec<&str> = tables[0].rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(cells, ["wait 2 ms, 20 %", "", "wait 6 ms, 60 %"]);
    }
}
