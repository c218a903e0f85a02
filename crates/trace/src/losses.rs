//! What a trace lacks of its job, read from its notes: reports say it first.
//!
//! A recorder that lost calls, or started programs that it could not see, says so in notes of the trace. Their text is
//! for people; the numbers in it are for [`Losses`], which is the one place that writes and reads them.

use crate::error::Damage;
use crate::reader::Trace;
use crate::tables::ProcessId;

/// What a trace lacks of its job. [`Losses::default`] lacks nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// All calls of POSIX and of streams that the recorded processes made, whether the trace holds them or not: what `left_out` and
    /// `lost` are parts of. Calls that a filter left out are among them. None where nothing is missing, and in traces
    /// that do not say it.
    pub made: Option<CallsByKind>,
    /// Calls that a budget left out on purpose.
    pub left_out: CallsByKind,
    /// Of so many calls the budget kept one in the end; 0 or 1 if it kept all.
    pub keeps_one_in: u64,
    /// Calls that could not be recorded: no room on the disk or in the budget, or a signal at a bad moment.
    pub lost: CallsByKind,
    /// Ranks of the recorded MPI jobs of which nothing was recorded.
    pub missing_ranks: u64,
    /// The ranks that there were, with those; 0 in traces that do not say it.
    pub expected_ranks: u64,
    /// Processes of which nothing is left that can be read.
    pub lost_processes: u64,
    /// Of them, those that another version of the recorder recorded, in a form that cannot be read.
    pub other_versions: u64,
    /// Places in what the processes left that hold what cannot be; the calls after each are lost up to the next chunk
    /// of their thread.
    pub damaged_places: u64,
    /// Programs that were started and that the recorder could not see.
    pub unseen: Vec<Unseen>,
    /// Processes that ran on when the trace was made: it holds their calls up to then. They have no end, but were not
    /// killed.
    pub running: Vec<ProcessId>,
    /// Where the trace file stops being readable.
    pub damage: Option<Damage>,
}

/// Calls by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsByKind {
    /// Calls that read data.
    pub reads: Calls,
    /// Calls that wrote data.
    pub writes: Calls,
    /// Calls that move no data: opens, closes, seeks, calls on names. Calls of unknown kind count here too.
    pub others: u64,
}

/// Calls, and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of calls.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// A program that ran in the job and could not be seen: all its processes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The program's path, as it was started.
    pub program: String,
    /// Why it could not be seen.
    pub reason: Reason,
    /// How many processes ran it.
    pub processes: u64,
    /// Of them, those whose bytes are not known: `read_bytes` and `written_bytes` are sums of the others.
    pub unknown: u64,
    /// Bytes that they read by system calls, from files, pipes and sockets, with the programs that they started
    /// (`rchar` of `/proc/PID/io`). Where a ring was not seen: those read from devices (`read_bytes`), as what goes
    /// through rings does not count in the former.
    pub read_bytes: u64,
    /// Bytes that they wrote by system calls (`wchar`); where a ring was not seen, to devices (`write_bytes`).
    pub written_bytes: u64,
}

/// Why a program cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It is statically linked.
    Static,
    /// It is written in Go, whose runtime makes its system calls itself.
    Go,
    /// It is linked with another C library than glibc, such as musl.
    OtherLibc,
    /// It is made for another processor, such as 32-bit programs on a 64-bit machine.
    OtherMachine,
    /// It gets more rights than who starts it (setuid, setgid, file capabilities): the loader ignores `LD_PRELOAD`.
    Privileged,
    /// A sanitizer's library insists on being the first, and cannot be put first.
    Sanitizer,
    /// It runs as a user who may not read the recorder.
    OtherUser,
    /// It does I/O through a ring of the kernel (io_uring) that could not be followed.
    Ring,
    /// It restricts its system calls (seccomp), and is not recorded from then on.
    Restricted,
    /// A recorder within the job records it: each program is of one recorder.
    Recorded,
    /// Another reason, of a newer Pioscope.
    Other,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 11] = [
        Reason::Static,
        Reason::Go,
        Reason::OtherLibc,
        Reason::OtherMachine,
        Reason::Privileged,
        Reason::Sanitizer,
        Reason::OtherUser,
        Reason::Ring,
        Reason::Restricted,
        Reason::Recorded,
        Reason::Other,
    ];

    /// Its name in notes: a word.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Static => "static",
            Reason::Go => "go",
            Reason::OtherLibc => "libc",
            Reason::OtherMachine => "machine",
            Reason::Privileged => "privileged",
            Reason::Sanitizer => "sanitizer",
            Reason::OtherUser => "user",
            Reason::Ring => "ring",
            Reason::Restricted => "seccomp",
            Reason::Recorded => "recorded",
            Reason::Other => "other",
        }
    }

    /// The reason of this name; [`Reason::Other`] for an unknown one.
    pub fn from_name(name: &str) -> Reason {
        Reason::ALL.into_iter().find(|reason| reason.name() == name).unwrap_or(Reason::Other)
    }

    /// What to say of a program: "PROGRAM is not seen: …".
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::Static => "it is statically linked",
            Reason::Go => "it is written in Go, which makes its system calls without the C library",
            Reason::OtherLibc => "it is linked with another C library than glibc",
            Reason::OtherMachine => "it is made for another processor (a 32-bit program, say)",
            Reason::Privileged => {
                "it gets more rights than who started it (setuid), so nothing can be loaded into it"
            }
            Reason::Sanitizer => "its sanitizer must be loaded first, and was not found",
            Reason::OtherUser => "its user may not read the recorder",
            Reason::Ring => "its io_uring could not be followed",
            Reason::Restricted => "once it restricts its system calls (seccomp), it is not recorded",
            Reason::Recorded => "another recorder, which the job started, records it",
            Reason::Other => "it could not be recorded",
        }
    }
}

impl Calls {
    /// None at all.
    pub fn is_zero(self) -> bool {
        self == Calls::default()
    }
}

impl CallsByKind {
    /// None at all.
    pub fn is_zero(&self) -> bool {
        *self == CallsByKind::default()
    }

    /// Calls of all kinds.
    pub fn calls(&self) -> u64 {
        self.reads.calls.saturating_add(self.writes.calls).saturating_add(self.others)
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes.saturating_add(self.writes.bytes)
    }

    /// Both together.
    pub fn plus(&self, other: &CallsByKind) -> CallsByKind {
        let sum = |a: Calls, b: Calls| Calls {
            calls: a.calls.saturating_add(b.calls),
            bytes: a.bytes.saturating_add(b.bytes),
        };
        CallsByKind {
            reads: sum(self.reads, other.reads),
            writes: sum(self.writes, other.writes),
            others: self.others.saturating_add(other.others),
        }
    }

    /// From its words: the numbers in them, in order.
    fn from_numbers(numbers: &[u64]) -> CallsByKind {
        match *numbers {
            [reads, read_bytes, writes, written_bytes, others, ..] => CallsByKind {
                reads: Calls { calls: reads, bytes: read_bytes },
                writes: Calls { calls: writes, bytes: written_bytes },
                others,
            },
            // A recorder that did not tell them apart.
            [calls, ..] => CallsByKind { others: calls, ..CallsByKind::default() },
            [] => CallsByKind::default(),
        }
    }
}

impl std::fmt::Display for CallsByKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CallsByKind { reads, writes, others } = self;
        write!(
            f,
            "{} reads of {} bytes, {} writes of {} bytes and {others} other calls",
            reads.calls, reads.bytes, writes.calls, writes.bytes
        )
    }
}

// Names of the notes. "lost calls", "lost processes" and "thinned out" are in old traces too.
const MADE: &str = "calls made";
const THINNED: &str = "thinned out";
const LOST_CALLS: &str = "lost calls";
const MISSING_RANKS: &str = "ranks not recorded";
const LOST_PROCESSES: &str = "lost processes";
const DAMAGED: &str = "damaged places";
const UNSEEN: &str = "not seen";
const RUNNING: &str = "runs on";

impl Losses {
    /// Of a trace: by its notes and by its damage.
    pub fn of(trace: &Trace) -> Losses {
        Losses { damage: trace.damage().cloned(), ..Losses::from_notes(&trace.tables().notes) }
    }

    /// Whether the trace lacks nothing of what was done. Processes that run on are no loss.
    pub fn is_empty(&self) -> bool {
        self.missing().is_zero()
            && self.missing_ranks == 0
            && self.lost_processes == 0
            && self.damaged_places == 0
            && self.unseen.is_empty()
            && self.damage.is_none()
    }

    /// Calls that are known to be missing: left out and lost.
    pub fn missing(&self) -> CallsByKind {
        self.left_out.plus(&self.lost)
    }

    /// What notes say. What is not understood in them is ignored: they are text, and may be anybody's.
    pub fn from_notes(notes: &[(String, String)]) -> Losses {
        let mut losses = Losses::default();
        for (key, value) in notes {
            let numbers = numbers(value);
            let first = numbers.first().copied().unwrap_or(0);
            match key.as_str() {
                MADE => losses.made = Some(CallsByKind::from_numbers(&numbers)),
                THINNED => {
                    losses.left_out = CallsByKind::from_numbers(&numbers);
                    losses.keeps_one_in = numbers.get(5).copied().unwrap_or(0);
                }
                // Importers may note several.
                LOST_CALLS => losses.lost = losses.lost.plus(&CallsByKind::from_numbers(&numbers)),
                MISSING_RANKS => {
                    losses.missing_ranks = first;
                    losses.expected_ranks = numbers.get(1).copied().unwrap_or(0);
                }
                LOST_PROCESSES => {
                    losses.lost_processes = losses.lost_processes.saturating_add(first);
                    losses.other_versions = numbers.get(1).copied().unwrap_or(0);
                }
                DAMAGED => losses.damaged_places = first,
                UNSEEN => losses.unseen.extend(Unseen::from_note(value)),
                RUNNING => {
                    let ids = numbers.iter().filter_map(|&id| u32::try_from(id).ok());
                    losses.running.extend(ids.map(ProcessId));
                }
                _ => {}
            }
        }
        losses
    }

    /// The notes that say it, in the order in which they are best read; none for what is not missing. The trace's own
    /// damage has none.
    pub fn notes(&self) -> Vec<(String, String)> {
        let mut notes = Vec::new();
        let mut note = |key: &str, value: String| notes.push((key.to_owned(), value));
        for unseen in &self.unseen {
            note(UNSEEN, unseen.note());
        }
        if !self.left_out.is_zero() {
            note(
                THINNED,
                format!(
                    "the budget left out {}; in the end one call in {} was kept",
                    self.left_out,
                    self.keeps_one_in.max(1)
                ),
            );
        }
        if !self.lost.is_zero() {
            note(LOST_CALLS, self.lost.to_string());
        }
        if let Some(made) = self.made.filter(|_| !self.missing().is_zero()) {
            note(MADE, made.to_string());
        }
        if self.missing_ranks > 0 {
            note(MISSING_RANKS, format!("{} of {}", self.missing_ranks, self.expected_ranks));
        }
        match (self.lost_processes, self.other_versions) {
            (0, _) => {}
            (lost, 0) => note(LOST_PROCESSES, lost.to_string()),
            (lost, others) => {
                note(LOST_PROCESSES, format!("{lost}, {others} of them recorded by another version"));
            }
        }
        if self.damaged_places > 0 {
            note(DAMAGED, self.damaged_places.to_string());
        }
        if !self.running.is_empty() {
            let ids: Vec<String> = self.running.iter().map(|id| id.0.to_string()).collect();
            note(RUNNING, format!("processes {}", ids.join(", ")));
        }
        notes
    }
}

impl std::fmt::Display for Unseen {
    /// A sentence for people: which program, why, and how much it moved.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unseen { program, reason, processes, unknown, read_bytes, written_bytes } = self;
        write!(f, "{program} was not seen: {}", reason.sentence())?;
        if *processes > 1 {
            write!(f, "; {processes} processes")?;
        }
        let at_least = if *unknown > 0 { "at least " } else { "" };
        match unknown == processes {
            true => write!(f, "; how many bytes it moved is not known"),
            false => write!(
                f,
                "; by /proc it read {at_least}{read_bytes} bytes and wrote {at_least}{written_bytes} bytes"
            ),
        }
    }
}

impl Unseen {
    /// As one line: the program is last, as it may hold anything.
    fn note(&self) -> String {
        let Unseen { program, reason, processes, unknown, read_bytes, written_bytes } = self;
        format!(
            "{}, {processes} processes, read {read_bytes} bytes and wrote {written_bytes} bytes, not known of {unknown}: {program}",
            reason.name()
        )
    }

    fn from_note(text: &str) -> Option<Unseen> {
        let (head, program) = text.split_once(": ")?;
        let (reason, head) = head.split_once(", ")?;
        let [processes, read_bytes, written_bytes, unknown] = *numbers(head) else { return None };
        let reason = Reason::from_name(reason);
        Some(Unseen { program: program.to_owned(), reason, processes, unknown, read_bytes, written_bytes })
    }
}

/// The whole numbers in a text, in order; one that is too large counts as the largest.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().unwrap_or(u64::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_was_lost() {
        let by_kind = |n: u64| CallsByKind {
            reads: Calls { calls: n, bytes: n * 100 },
            writes: Calls { calls: n + 1, bytes: n * 200 },
            others: n + 2,
        };
        let unseen = |reason, program: &str| Unseen {
            program: program.to_owned(),
            reason,
            processes: 3,
            unknown: 1,
            read_bytes: 1 << 40,
            written_bytes: 7,
        };
        let losses = Losses {
            made: Some(by_kind(1000)),
            left_out: by_kind(10),
            keeps_one_in: 16,
            lost: by_kind(5),
            missing_ranks: 6,
            expected_ranks: 8,
            lost_processes: 2,
            other_versions: 1,
            damaged_places: 9,
            unseen: Reason::ALL.into_iter().map(|reason| unseen(reason, "/a b/64-bit: 12, c")).collect(),
            running: vec![ProcessId(3), ProcessId(12)],
            damage: None,
        };
        assert_eq!(Losses::from_notes(&losses.notes()), losses);
        assert!(!losses.is_empty());
        assert_eq!(losses.missing().calls(), (10 + 11 + 12) + (5 + 6 + 7));
        assert_eq!(losses.missing().bytes(), 15 * 300);
    }

    #[test]
    fn a_whole_trace_has_no_such_notes() {
        let whole =
            Losses { made: Some(CallsByKind { others: 4, ..CallsByKind::default() }), ..Losses::default() };
        assert!(whole.is_empty() && whole.notes().is_empty());
        assert!(!Losses { missing_ranks: 1, ..Losses::default() }.is_empty());
        assert!(Losses { running: vec![ProcessId(0)], ..Losses::default() }.is_empty());
    }

    #[test]
    fn notes_of_old_traces_and_of_others_are_read() {
        let notes = |notes: &[(&str, &str)]| {
            let owned: Vec<_> = notes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Losses::from_notes(&owned)
        };
        assert_eq!(notes(&[("lost calls", "17")]).lost.calls(), 17);
        let thinned = notes(&[(
            "thinned out",
            "the budget left out 1 reads of 2 bytes, 3 writes of 4 bytes and 5 other calls; in the end one call in 64 was kept",
        )]);
        assert_eq!((thinned.left_out.calls(), thinned.left_out.bytes(), thinned.keeps_one_in), (9, 6, 64));
        let strange = notes(&[("not seen", "by anybody"), ("runs on", ""), ("lost calls", ""), ("x", "9")]);
        assert_eq!(strange, Losses::default());
    }
}
