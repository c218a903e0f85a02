//! What is done when: bursts of one nature that follow one another.

use super::bursts::Burst;

/// Part of a burst's bytes from which on it is all reading, or all writing.
const NEARLY_ALL: f64 = 0.95;
/// Phases that are told: more is no structure.
const MOST: usize = 24;

/// What a phase moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// It reads.
    Reads,
    /// It writes.
    Writes,
    /// It does both.
    Both,
}

/// Bursts of one nature that follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// What they move.
    pub moves: Moves,
    /// How many bursts.
    pub bursts: u64,
    /// Start of the first, nanoseconds since the start of the job.
    pub from_ns: u64,
    /// End of the last.
    pub until_ns: u64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub write_bytes: f64,
    /// Whether it sums up all that follow the one before it, as there were too many to be told.
    pub is_rest: bool,
}

pub(super) fn of(bursts: &[Burst], bin_ns: u64, duration_ns: u64) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for burst in bursts {
        let phase = Phase {
            moves: moves(burst),
            bursts: 1,
            from_ns: burst.first as u64 * bin_ns,
            until_ns: (burst.end as u64).saturating_mul(bin_ns).min(duration_ns),
            read_bytes: burst.read_bytes,
            write_bytes: burst.write_bytes,
            is_rest: false,
        };
        let full = phases.len() == MOST;
        match phases.last_mut() {
            Some(last) if last.moves == phase.moves || full => {
                if last.moves != phase.moves {
                    last.moves = Moves::Both;
                    last.is_rest = true;
                }
                last.bursts += 1;
                last.until_ns = phase.until_ns;
                last.read_bytes += phase.read_bytes;
                last.write_bytes += phase.write_bytes;
            }
            _ => phases.push(phase),
        }
    }
    phases
}

fn moves(burst: &Burst) -> Moves {
    let all = burst.read_bytes + burst.write_bytes;
    if burst.read_bytes >= NEARLY_ALL * all {
        Moves::Reads
    } else if burst.write_bytes >= NEARLY_ALL * all {
        Moves::Writes
    } else {
        Moves::Both
    }
}
