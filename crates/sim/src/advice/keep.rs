//! Calls that need not be made by a program that keeps what it has.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use pio_plan::Direction;
use pio_trace::HandleId;

use super::ranges::Ranges;
use super::{Concern, Rewriting, without};
use crate::workload::{Step, What, Workload};

/// Bytes that a program moves before what it wrote counts as no longer at hand: as for the finding.
const SOON: u64 = 16 << 20;

/// Without reads of bytes that the rank has read before.
pub(super) fn without_rereads(program: &[Step], concerns: &Concern<'_>) -> Vec<Step> {
    let mut read: BTreeMap<u32, Ranges> = BTreeMap::new();
    without(program, |_, what| match concerns.piece(what) {
        Some((file, Direction::Read, bytes)) => {
            let known = read.entry(file).or_default();
            let is_known = known.covers(&bytes);
            known.insert(bytes);
            is_known
        }
        _ => false,
    })
}

/// Without reads of bytes that the rank has just written.
pub(super) fn without_reads_of_written(program: &[Step], concerns: &Concern<'_>) -> Vec<Step> {
    let mut written: BTreeMap<u32, Ranges> = BTreeMap::new();
    let mut recent: VecDeque<(u64, u32, Range<u64>)> = VecDeque::new();
    let mut moved = 0_u64;
    without(program, |_, what| {
        let Some((file, direction, bytes)) = concerns.piece(what) else { return false };
        moved = moved.saturating_add(bytes.end - bytes.start);
        while recent.front().is_some_and(|(when, _, _)| moved - when > SOON) {
            if let Some((_, file, old)) = recent.pop_front() {
                written.entry(file).or_default().remove(&old);
            }
        }
        let known = written.entry(file).or_default();
        if direction == Direction::Read {
            return known.covers(&bytes);
        }
        known.insert(bytes.clone());
        recent.push_back((moved, file, bytes));
        false
    })
}

/// Without writes of bytes that the rank writes again before it reads, syncs, closes or opens the file.
pub(super) fn without_overwritten(program: &[Step], concerns: &Concern<'_>) -> Vec<Step> {
    let mut again: BTreeMap<u32, Ranges> = BTreeMap::new();
    let mut is_vain = vec![false; program.len()];
    for (index, step) in program.iter().enumerate().rev() {
        match concerns.piece(&step.what) {
            Some((file, Direction::Write, bytes)) => {
                let later = again.entry(file).or_default();
                is_vain[index] = later.covers(&bytes);
                later.insert(bytes);
            }
            Some((file, Direction::Read, bytes)) => again.entry(file).or_default().remove(&bytes),
            None => {
                // Any other use may show what stands there.
                let handle = match &step.what {
                    What::Open(handle) | What::Close(handle) | What::Sync(handle, _) => Some(*handle),
                    What::Access { handle, .. } => Some(*handle),
                    _ => None,
                };
                handle.and_then(|handle| concerns.file(handle)).map(|file| again.remove(&file));
            }
        }
    }
    without(program, |index, _| is_vain[index])
}

/// Without opens after the first of a file, and closes before the last.
pub(super) fn opened_once(program: &[Step], concerns: &Concern<'_>) -> Vec<Step> {
    let is_posix = |handle: HandleId| {
        concerns.workload.handles.get(handle.index()).is_some_and(|open| open.group.is_none())
    };
    let file = |handle: HandleId| concerns.file(handle).filter(|_| is_posix(handle));
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    for (index, step) in program.iter().enumerate() {
        match step.what {
            What::Open(handle) => {
                file(handle).map(|file| first.entry(file).or_insert(index));
            }
            What::Close(handle) => {
                file(handle).map(|file| last.insert(file, index));
            }
            _ => {}
        }
    }
    without(program, |index, what| match what {
        What::Open(handle) => file(*handle).is_some_and(|file| first.get(&file) != Some(&index)),
        What::Close(handle) => file(*handle).is_some_and(|file| last.get(&file) != Some(&index)),
        _ => false,
    })
}

/// With reads by the first rank alone, which broadcasts what it has read. None unless all ranks read the same in the same
/// order: only then is it known what to send.
pub(super) fn read_once(workload: &Workload, concerns: &Concern<'_>) -> Option<Workload> {
    let read = |what: &What| match concerns.piece(what) {
        Some((file, Direction::Read, bytes)) => Some((file, bytes)),
        _ => None,
    };
    let reads = |program: &[Step]| program.iter().filter_map(|step| read(&step.what)).collect::<Vec<_>>();
    let first = reads(workload.programs.first()?);
    let alike = workload.programs.iter().all(|program| reads(program) == first);
    if first.is_empty() || workload.programs.len() < 2 || !alike {
        return None;
    }
    let mut programs = Vec::with_capacity(workload.programs.len());
    for (rank, program) in workload.programs.iter().enumerate() {
        let mut rest = Rewriting::default();
        for step in program {
            rest.before(step);
            match read(&step.what) {
                Some((_, bytes)) => {
                    if rank == 0 {
                        rest.call(step.what.clone());
                    }
                    rest.call(What::Broadcast { root: 0, bytes: bytes.end - bytes.start });
                }
                None => rest.call(step.what.clone()),
            }
        }
        programs.push(rest.steps);
    }
    Some(Workload { programs, ..workload.clone() })
}
