//! An explanation in ten lines: the job, its time and bytes, and the costliest findings with what would fix them.

use pio_explain::{Counted, Explanation};

use crate::units::{self, things};
use crate::words::of_what;
use crate::{escape, findings, headline, screen};

/// Lines at most, and of them for findings: fewer where the run was not wholly seen.
const LINES: usize = 10;
const FINDINGS: usize = 3;

/// At most ten lines, each about one thing.
pub fn brief(found: &Explanation, counted: Option<&Counted>) -> String {
    let mut lines = Vec::new();
    if let Some(lost) = headline::lost(found) {
        lines.push(screen::warning(&escape::terminal(&lost)));
    }
    let say = |lines: &mut Vec<String>, about: &str, text: &str| {
        lines.push(format!("{} {}", screen::title(about), escape::terminal(text)));
    };
    say(&mut lines, "Job:", &escape::beginning(&found.job, 90));
    match counted.filter(|_| found.events == 0) {
        Some(counted) => {
            let sentences = crate::counted::summary(found, counted);
            for (sentence, about) in sentences.iter().zip(["Time:", "Bytes:"]) {
                say(&mut lines, about, sentence);
            }
        }
        None => {
            say(&mut lines, "Time:", &time(found));
            say(&mut lines, "Bytes:", &bytes(found));
        }
    }
    let headline = match counted {
        Some(counted) => crate::counted::headline_lines(found, counted),
        None => headline::lines(found),
    };
    // Findings follow, with their changes.
    for (about, line) in headline.iter().filter(|(about, _)| !headline::OF_A_FINDING.contains(about)) {
        say(&mut lines, &format!("{about}:"), line);
    }
    let told = FINDINGS.min(LINES.saturating_sub(lines.len()) / 2);
    for (number, finding) in found.findings.iter().take(told).enumerate() {
        say(&mut lines, &format!("{}.", number + 1), &headline::cause(found, finding));
        say(&mut lines, "   Change:", findings::change_of(finding));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// `2.37 s with 4 processes; I/O takes 1.64 s of each, 69 % of their time.`
fn time(found: &Explanation) -> String {
    let at_least = headline::at_least(found);
    let share = |of: &str| {
        let share = found.io_time.fraction().map(units::percent);
        share.map_or(String::new(), |share| format!(", {share} of {}", of_what(found, of)))
    };
    let (run, io) = (units::time_s(found.duration_s()), units::time_s(found.io_time_s()));
    match found.process_count {
        1 => format!("{run}; I/O takes {at_least}{io}{}.", share("it")),
        many => {
            let processes = things(many, "process", "processes");
            format!("{run} with {processes}; I/O takes {at_least}{io} of each{}.", share("their time"))
        }
    }
}

fn bytes(found: &Explanation) -> String {
    let (read, write) = (&found.workload.read, &found.workload.write);
    let at_least = headline::at_least(found);
    format!(
        "read {at_least}{} in {}, wrote {at_least}{} in {}, on {}.",
        units::bytes(read.bytes as f64),
        things(read.count, "call", "calls"),
        units::bytes(write.bytes as f64),
        things(write.count, "call", "calls"),
        things(found.workload.files, "file", "files"),
    )
}
