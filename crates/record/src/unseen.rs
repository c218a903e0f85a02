//! Programs that ran and could not be seen: the notes that are left about them, one file a process.
//!
//! `c/pio_unseen.c` writes most of them, the command those about its own child. A file `HOST-PID.unseen` holds lines:
//!
//! ```text
//! start REASON TIME READ WRITTEN PARENT PROGRAM    it starts; so much had the process moved before
//! failed                                           it did not start after all
//! end [READ WRITTEN]                               it has ended; so much had the process moved, if that may be known
//! ```

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pio_trace::{Reason, Unseen, names};

use crate::members::{self, Account, Moved};
use crate::paths::text_of;
use crate::program::Program;

/// What one process did while it ran one unseen program.
struct Run {
    program: String,
    reason: Reason,
    /// By the boot's clock.
    start_ns: u64,
    before: Moved,
    /// None while it is not known.
    after: Option<Moved>,
    has_ended: bool,
}

/// The notes about the process `pid` of this host in the folder of spools.
fn notes_of(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{}-{pid}.unseen", members::host()))
}

/// Whether there are notes about the process `pid` of this host.
pub(crate) fn is_noted(folders: &[PathBuf], pid: u32) -> bool {
    folders.iter().any(|folder| notes_of(folder, pid).exists())
}

/// Notes that the job's own command cannot be seen, right after its start.
pub(crate) fn note_start(folder: &Path, pid: u32, program: &Program) -> io::Result<()> {
    let Some(reason) = program.unseen else { return Ok(()) };
    let path = text_of(&program.path).replace('\n', "?");
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(notes_of(folder, pid))?;
    let line =
        format!("start {} {} 0 0 {} {path}\n", reason.name(), members::monotonic_ns(), std::process::id());
    file.write_all(line.as_bytes())
}

/// Notes what a process has moved that has ended and is still there, if it has notes.
pub(crate) fn note_end(folders: &[PathBuf], pid: u32, account: &Account) {
    for folder in folders {
        let notes =
            OpenOptions::new().append(true).custom_flags(libc::O_NOFOLLOW).open(notes_of(folder, pid));
        if let Ok(mut file) = notes {
            let line = account.moved().map_or_else(
                || "end\n".to_owned(),
                |moved| format!("end {} {}\n", moved.read_bytes, moved.written_bytes),
            );
            // Not to be written is to be unknown.
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// All programs that were not seen, those of one name and reason together, most bytes first.
///
/// `became` says whether the process went on as a program that was recorded, after a moment of the boot's clock: what it
/// moved from then on is in the trace.
pub(crate) fn unseen(folders: &[PathBuf], became: impl Fn(u32, u64) -> bool) -> io::Result<Vec<Unseen>> {
    let mut programs: BTreeMap<(String, Reason), Unseen> = BTreeMap::new();
    for folder in folders {
        for path in members::files_of(folder, "unseen")? {
            let pid = path.file_stem().and_then(|stem| stem.to_str()?.rsplit_once('-')?.1.parse().ok());
            let is_here = path
                .file_stem()
                .and_then(|stem| Some(stem.to_str()?.rsplit_once('-')?.0 == members::host()))
                .unwrap_or(false);
            let mut text = Vec::new();
            // Small by nature; whatever else lies there is not read whole.
            File::open(&path)?.take(1 << 20).read_to_end(&mut text)?;
            for run in runs(&names::of_bytes(&text)) {
                add(&mut programs, run, pid.filter(|_| is_here), &became);
            }
        }
    }
    let mut programs: Vec<Unseen> = programs.into_values().collect();
    programs.sort_by_key(|unseen| std::cmp::Reverse(unseen.read_bytes.saturating_add(unseen.written_bytes)));
    Ok(programs)
}

fn add(
    programs: &mut BTreeMap<(String, Reason), Unseen>,
    run: Run,
    pid: Option<u32>,
    became: &impl Fn(u32, u64) -> bool,
) {
    let after = match pid {
        Some(pid) if became(pid, run.start_ns) => None,
        // It runs on: what it has moved so far.
        Some(pid) if !run.has_ended && members::is_alive(pid, run.start_ns) => Account::open(pid).moved(),
        _ => run.after,
    };
    let unseen = programs.entry((run.program.clone(), run.reason)).or_insert(Unseen {
        program: run.program,
        reason: run.reason,
        processes: 0,
        unknown: 0,
        read_bytes: 0,
        written_bytes: 0,
    });
    unseen.processes += 1;
    match after {
        Some(after) => {
            let add = |sum: &mut u64, after: u64, before: u64| {
                *sum = sum.saturating_add(after.saturating_sub(before));
            };
            add(&mut unseen.read_bytes, after.read_bytes, run.before.read_bytes);
            add(&mut unseen.written_bytes, after.written_bytes, run.before.written_bytes);
        }
        None => unseen.unknown += 1,
    }
}

/// What the lines say. What cannot be understood is passed over.
fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "start" => {
                let Some(run) = started(rest) else { continue };
                if let Some(last) = runs.last_mut().filter(|last| !last.has_ended) {
                    last.has_ended = true;
                    last.after = Some(run.before);
                }
                runs.push(run);
            }
            "failed" => drop(runs.pop_if(|last| !last.has_ended)),
            "end" => {
                if let Some(last) = runs.last_mut().filter(|last| !last.has_ended) {
                    last.has_ended = true;
                    last.after = two_numbers(rest);
                }
            }
            _ => {}
        }
    }
    runs
}

fn started(text: &str) -> Option<Run> {
    let mut words = text.splitn(6, ' ');
    let reason = Reason::from_name(words.next()?);
    let mut number = || words.next()?.parse::<u64>().ok();
    let (start_ns, read_bytes, written_bytes, _parent) = (number()?, number()?, number()?, number()?);
    let before = Moved { read_bytes, written_bytes };
    Some(Run { program: words.next()?.to_owned(), reason, start_ns, before, after: None, has_ended: false })
}

fn two_numbers(text: &str) -> Option<Moved> {
    let (read, written) = text.split_once(' ')?;
    Some(Moved { read_bytes: read.parse().ok()?, written_bytes: written.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_anything_else_is_passed_over() {
        let text = "start static 5 10 20 1 /a b\nstart go 6 30 21 1 /c\nend 40 100\nfailed\nstart libc 7 0 0 1 /d\n\
                    failed\nstart machine 8 0 0 1 /e\nend\nnonsense\nstart\nend 1\nstart user x 0 0 1 /f\n";
        let found: Vec<_> = runs(text)
            .into_iter()
            .map(|run| {
                (run.program, run.reason, run.after.map(|moved| (moved.read_bytes, moved.written_bytes)))
            })
            .collect();
        assert_eq!(
            found,
            [
                ("/a b".to_owned(), Reason::Static, Some((30, 21))),
                ("/c".to_owned(), Reason::Go, Some((40, 100))),
                ("/e".to_owned(), Reason::OtherMachine, None),
            ]
        );
    }
}
