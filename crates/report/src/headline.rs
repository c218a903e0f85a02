//! The first lines of a report: what was not seen, what costs most, what would help, and what that would gain.

use std::collections::BTreeMap;

use pio_explain::findings::{Finding, Gain};
use pio_explain::{Explanation, Trouble};
use pio_trace::{CallsByKind, FileId, Layer, Op, Unseen};

use crate::units::{self, things};
use crate::{escape, findings};

/// What the lines about the costliest finding are about.
pub(crate) const OF_A_FINDING: [&str; 3] = ["Costliest", "Change", "Gain"];

/// The lines: what they are about, and what they say.
pub(crate) fn lines(found: &Explanation) -> Vec<(&'static str, String)> {
    lines_or(found, &|| where_time_goes(found))
}

/// The same; where there is no finding, `where_time_goes` says where the time goes.
pub(crate) fn lines_or(
    found: &Explanation,
    where_time_goes: &dyn Fn() -> String,
) -> Vec<(&'static str, String)> {
    // First: what is said of the calls is not said of these.
    let mut lines: Vec<_> = unseen(found).map(|unseen| ("Not seen", unseen)).into_iter().collect();
    match found.findings.first() {
        Some(finding) => {
            lines.push(("Costliest", cause(found, finding)));
            lines.push(("Change", findings::change_of(finding).to_owned()));
            lines.extend(finding.gains.iter().map(|gain| ("Gain", predicted(found, gain))));
        }
        None => lines.push(("No finding", where_time_goes())),
    }
    lines
}

/// What the trace lacks of the calls that were made: said before all else, as all numbers are of the rest.
pub(crate) fn lost(found: &Explanation) -> Option<String> {
    let losses = losses(&found.trouble);
    (!losses.is_empty())
        .then(|| format!("Incomplete: {}. Counts, bytes and times are lower bounds.", losses.join("; ")))
}

/// What a trace lacks of the calls that were made, in words; empty if it is whole.
pub fn losses(trouble: &Trouble) -> Vec<String> {
    const SHOWN: usize = 2;
    let mut lacks: Vec<String> = trouble.damage.iter().take(SHOWN).map(|damage| damaged(damage)).collect();
    if trouble.damage.len() > SHOWN {
        lacks.push(match trouble.damage.len() - SHOWN {
            1 => "one more place is damaged".to_owned(),
            more => format!("{more} more places are damaged"),
        });
    }
    if let Some(filter) = &trouble.filter {
        lacks.push(format!("a filter kept only some calls ({filter})"));
    }
    let losses = &trouble.losses;
    if !losses.left_out.is_zero() {
        lacks.push(format!("the budget left out {}", part(&losses.left_out, losses.made)));
    }
    if !losses.lost.is_zero() {
        let lost = part(&losses.lost, losses.made);
        lacks.push(format!(
            "{lost} could not be recorded (the disk or the budget was used up, or a signal came at a bad moment)"
        ));
    }
    if losses.missing_ranks > 0 {
        let (missing, all) = (units::count(losses.missing_ranks), units::count(losses.expected_ranks));
        lacks.push(format!("{missing} of {all} ranks were not recorded"));
    }
    let left_nothing = losses.lost_processes.saturating_sub(losses.other_versions);
    if left_nothing > 0 {
        let processes = things(left_nothing, "process", "processes");
        lacks.push(format!("{processes} left nothing that can be read"));
    }
    if losses.other_versions > 0 {
        let processes = things(losses.other_versions, "process", "processes");
        lacks.push(format!("another version of the recorder recorded {processes}, which cannot be read"));
    }
    if losses.damaged_places > 0 {
        let places = things(losses.damaged_places, "place", "places");
        lacks.push(format!("what followed {places} of the recorder's files could not be read"));
    }
    lacks.extend(trouble.dropped.iter().cloned());
    lacks
}

fn damaged(damage: &str) -> String {
    // Of the trace as a whole, or of a file that is named.
    if damage.starts_with("damaged") { format!("the trace is {damage}") } else { damage.to_owned() }
}

/// `236 of 256 MiB in 3,776 of 4,096 calls`.
fn part(calls: &CallsByKind, made: Option<CallsByKind>) -> String {
    let of = |all: Option<String>| all.map_or(String::new(), |all| format!(" of {all}"));
    let bytes = |calls: &CallsByKind| units::bytes(calls.bytes() as f64);
    let number = things(calls.calls(), "call", "calls");
    match calls.bytes() {
        0 => format!("{number}{}", of(made.map(|made| units::count(made.calls())))),
        _ => format!(
            "{}{} in {number}{}",
            bytes(calls),
            of(made.map(|made| bytes(&made))),
            of(made.map(|made| units::count(made.calls())))
        ),
    }
}

/// Programs that ran in the job and could not be seen, those that moved most first.
pub(crate) fn unseen(found: &Explanation) -> Option<String> {
    const SHOWN: usize = 3;
    let mut unseen: Vec<&Unseen> = found.trouble.losses.unseen.iter().collect();
    let bytes = |program: &Unseen| program.read_bytes.saturating_add(program.written_bytes);
    unseen.sort_by_key(|program| std::cmp::Reverse(bytes(program)));
    let more = unseen.len().saturating_sub(SHOWN);
    let mut named: Vec<String> = unseen.iter().take(SHOWN).map(|program| not_seen(program)).collect();
    if more > 0 {
        named.push(things(more as u64, "more program", "more programs"));
    }
    (!named.is_empty()).then(|| format!("{}.", named.join("; ")))
}

/// `busybox (read 3 MiB, wrote 12 MiB; it is statically linked)`.
fn not_seen(program: &Unseen) -> String {
    let name = program.program.rsplit('/').next().unwrap_or_default();
    let times = if program.processes > 1 {
        format!(" × {}", units::count(program.processes))
    } else {
        String::new()
    };
    let moved = match program.unknown >= program.processes {
        true => "bytes not known".to_owned(),
        false => format!(
            "read {}, wrote {}",
            units::bytes(program.read_bytes as f64),
            units::bytes(program.written_bytes as f64)
        ),
    };
    format!("{}{times} ({moved}: {})", escape::shorten(name, PATH_COLUMNS), program.reason.sentence())
}

/// Before a number that is too small where the trace is not whole.
pub(crate) fn at_least(found: &Explanation) -> &'static str {
    if found.trouble.is_incomplete() { "at least " } else { "" }
}

/// `many small writes: 1.2 s, 34 % of the run, most on /scratch/out`. No file is named where none has half of the time.
pub(crate) fn cause(found: &Explanation, finding: &Finding) -> String {
    let title = begun_small(findings::title_of(finding.kind));
    let place = finding.files.first().and_then(|one| Some((one, path_of(found, one.id)?)));
    let place = match (place, finding.files.len()) {
        (None, _) => String::new(),
        (Some((_, path)), 1) => format!(", on {path}"),
        (Some((one, path)), _) if is_most(one.time_ns, finding.cost.time_ns) => format!(", most on {path}"),
        (Some(_), many) => {
            let folder = common_folder(finding.files.iter().filter_map(|one| found.path(one.id)));
            let folder = folder
                .map_or(String::new(), |folder| format!(" in {}", escape::shorten(folder, PATH_COLUMNS)));
            format!(", on {}{folder}", things(many as u64, "file", "files"))
        }
    };
    let price = findings::price(found, finding);
    format!("{title}: {}{place}.", price.strip_prefix("costs ").unwrap_or(&price))
}

/// Whether a part is half of the time or more.
fn is_most(part_ns: u64, time_ns: u64) -> bool {
    part_ns > 0 && part_ns >= time_ns.div_ceil(2)
}

/// The innermost folder that all of these files are in; none if it is the root, or not known.
fn common_folder<'p>(paths: impl Iterator<Item = &'p str>) -> Option<&'p str> {
    let folders = paths.map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder));
    let is_in = |folder: &str, outer: &str| {
        let rest = folder.strip_prefix(outer);
        outer.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let common = folders.reduce(|mut outer, folder| {
        while !is_in(folder, outer) {
            outer = outer.rsplit_once('/').map_or("", |(outer, _)| outer);
        }
        outer
    });
    common.filter(|folder| !folder.is_empty())
}

fn path_of(found: &Explanation, id: FileId) -> Option<String> {
    Some(escape::shorten(found.path(id)?, PATH_COLUMNS))
}

/// Columns of a path.
pub(crate) const PATH_COLUMNS: usize = 40;

/// A title within a sentence.
fn begun_small(title: &str) -> String {
    let mut letters = title.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// What a machine is predicted to gain. How far the prediction of the run as it was is from what was measured is the
/// best that is known of its uncertainty, if the machine is like that of the trace.
fn predicted(found: &Explanation, gain: &Gain) -> String {
    let measured_s = found.io_time_s();
    let error = (gain.before_s - measured_s) / measured_s;
    let uncertainty = if error.is_finite() && error.abs() <= LIKE {
        format!(" ± {:.0} %", (error.abs() * 100.0).max(1.0))
    } else {
        String::new()
    };
    format!(
        "{} of I/O instead of {}{uncertainty}, predicted on {} (recorded: {}).",
        units::time_s(gain.after_s),
        units::time_s(gain.before_s),
        gain.machine,
        units::time_s(measured_s),
    )
}

/// Times that differ by more are of different machines, and tell nothing of each other's predictions.
const LIKE: f64 = 1.0;

/// What the notes begin with that hold a log's counters.
const COUNTED: &str = "counted by ";

/// Whether a trace holds sums over calls that a log's writer counted, and no call.
pub fn has_counters_alone(found: &Explanation) -> bool {
    found.events == 0 && found.notes.iter().any(|(name, _)| name.starts_with(COUNTED))
}

/// Where the time of a run without findings goes.
fn where_time_goes(found: &Explanation) -> String {
    if found.events == 0 {
        if has_counters_alone(found) {
            return "the trace holds no calls, only sums of a Darshan log's counters: explain the log itself.".to_owned();
        }
        return "the trace holds no calls.".to_owned();
    }
    if found.duration_ns == 0 {
        return "the run took no time.".to_owned();
    }
    let run_ns = found.duration_ns as f64;
    let io = found.io_time.any_ns as f64 / run_ns;
    let idle_ns = found.io_time.lifetime_ns.saturating_sub(found.io_time.process_ns);
    let computes = found.workload.cpu_s * 1e9 >= idle_ns as f64 / 2.0;
    let doing = if computes { "computing" } else { "outside I/O (computing or waiting)" };
    let at_most = if found.trouble.is_incomplete() { "at most " } else { "" };
    let mut sentence = format!(
        "{at_most}{} of the run is {doing}; I/O takes {}{} ({})",
        units::percent((1.0 - io).max(0.0)),
        at_least(found),
        units::time_ns(found.io_time.any_ns),
        units::percent(io.min(1.0)),
    );
    if let Some((op, path)) = most_time(found) {
        let path = path.map_or(String::new(), |path| format!(" of {}", escape::shorten(path, PATH_COLUMNS)));
        sentence.push_str(&format!(", most in {}{path}", op.name()));
    }
    sentence + "."
}

/// The operation of the program's that took most time; and the file, if half of that or more was on one. What moved data after its
/// call had returned counts as a read or a write, not as the wait for it.
fn most_time(found: &Explanation) -> Option<(Op, Option<&str>)> {
    let later = found.later;
    let asked = found.layers.iter().filter(|table| !table.physical && table.layer != Layer::Message);
    let mut operations = BTreeMap::from([(Op::Read, later.read_ns), (Op::Write, later.write_ns)]);
    for (op, tally) in asked.flat_map(|table| table.table.operations.iter()) {
        *operations.entry(op).or_default() += tally.time_ns;
    }
    operations.entry(Op::Sync).and_modify(|time_ns| *time_ns = time_ns.saturating_sub(later.in_syncs_ns));
    let (op, most_ns) = operations.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns)?;
    let time_ns = |file: &pio_explain::FileStatistics| match op {
        Op::Open => file.program.open.time_ns,
        Op::Read => file.program.read.time_ns,
        Op::Write => file.program.write.time_ns,
        _ => 0,
    };
    let file = found.files.iter().max_by_key(|file| time_ns(file));
    let file = file.filter(|file| is_most(time_ns(file), most_ns));
    Some((op, file.map(|file| file.path.as_str())))
}

#[cfg(test)]
mod tests {
    use super::common_folder;

    #[test]
    fn folders_that_files_are_in_together() {
        let common = |paths: &[&'static str]| common_folder(paths.iter().copied());
        assert_eq!(common(&["/d/x0", "/d/x1"]), Some("/d"));
        assert_eq!(common(&["/d/a/x0", "/d/a/x1", "/d/ab/x1"]), Some("/d"));
        assert_eq!(common(&["/d/a/x0", "/d/x1", "/d/a/x1"]), Some("/d"));
        assert_eq!(common(&["/d/x0", "/e/x1"]), None);
        assert_eq!(common(&["d/x0", "d/x1"]), Some("d"));
        assert_eq!(common(&["x0", "d/x1", "e/x1", "/d/x"]), None);
        assert_eq!(common(&[]), None);
    }
}
