//! What ranks move each for themselves, moved together.
//!
//! Between two calls that all ranks of an open make together (or two broadcasts, or calls that sync the file or change its
//! size), what each moves is put into one view, and moved by one collective call: by as many as it takes to move no more than a rank has memory for at a time. Writes
//! move when the last piece is there, reads when the first is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pio_layout::{Datatype, LayoutError, View};
use pio_plan::Direction;
use pio_trace::{Call, FileId, HandleId, Layer, ViewId};

use super::Rewriting;
use crate::workload::{Open, Step, What, Workload};

/// As much as a rank moves at a time.
const MOST: u64 = 64 << 20;

/// An open of a file by several ranks.
struct Together {
    /// The handle of each, by rank.
    handles: BTreeMap<u32, HandleId>,
}

/// What a rank does between two calls that all make together.
#[derive(Default)]
struct Segment {
    /// Its reads and writes: which steps.
    pieces: Vec<usize>,
    /// Whether each was made by all ranks together.
    all_collective: bool,
    direction: Option<Direction>,
    is_mixed: bool,
    /// The step that ends it.
    end: usize,
}

/// None if there is nothing to move together, or ranks do not come to the same places.
pub(super) fn collected(workload: &Workload, files: &BTreeSet<FileId>) -> Option<Workload> {
    let mut changed = workload.clone();
    let mut opens = opened_together(workload, files);
    opens.extend(used_together(&mut changed, files));
    let mut any = false;
    for open in &opens {
        any |= collect(&mut changed, open).ok()?;
    }
    any.then_some(changed)
}

/// Whether several ranks made an open.
fn is_together(workload: &Workload, open: &Open) -> bool {
    let members = open.group.and_then(|group| workload.groups.get(group as usize));
    members.is_some_and(|members| members.len() > 1)
}

/// Opens by several ranks.
fn opened_together(workload: &Workload, files: &BTreeSet<FileId>) -> Vec<Together> {
    let mut opens: BTreeMap<u64, Together> = BTreeMap::new();
    for (index, open) in workload.handles.iter().enumerate() {
        if is_together(workload, open) && files.contains(&FileId(open.file)) {
            let together = opens.entry(open.collective).or_insert(Together { handles: BTreeMap::new() });
            together.handles.insert(open.rank, HandleId(index as u32));
        }
    }
    opens.into_values().filter(|open| open.handles.len() > 1).collect()
}

/// Files that several ranks use, each by one handle of its own: as if they had opened them together.
fn used_together(workload: &mut Workload, files: &BTreeSet<FileId>) -> Vec<Together> {
    let mut users: BTreeMap<u32, BTreeSet<(u32, HandleId)>> = BTreeMap::new();
    for (rank, program) in workload.programs.iter().enumerate() {
        for step in program {
            let (What::Request { handle, .. } | What::Access { handle, .. } | What::Open(handle)) =
                &step.what
            else {
                continue;
            };
            let open = workload.handles.get(handle.index()).filter(|open| files.contains(&FileId(open.file)));
            if let Some(open) = open.filter(|open| !is_together(workload, open)) {
                users.entry(open.file).or_default().insert((rank as u32, *handle));
            }
        }
    }
    let mut opens = Vec::new();
    for (file, users) in users {
        let handles: BTreeMap<u32, HandleId> = users.iter().copied().collect();
        let also = workload.handles.iter().any(|open| open.file == file && is_together(workload, open));
        if handles.len() < 2 || handles.len() != users.len() || also {
            continue;
        }
        let collective = workload.handles.iter().map(|open| open.collective).max().unwrap_or(0) + 1;
        workload.groups.push(handles.keys().copied().collect());
        let group = Some(workload.groups.len() as u32 - 1);
        for handle in handles.values() {
            let open = &mut workload.handles[handle.index()];
            (open.group, open.collective) = (group, collective);
        }
        opens.push(Together { handles });
    }
    opens
}

/// Whether anything changed.
fn collect(workload: &mut Workload, open: &Together) -> Result<bool, LayoutError> {
    let programs = &workload.programs;
    let segments: BTreeMap<u32, Vec<Segment>> = open
        .handles
        .iter()
        .map(|(&rank, &handle)| (rank, segments(&programs[rank as usize], handle)))
        .collect();
    let counts: BTreeSet<usize> = segments.values().map(Vec::len).collect();
    let [count] = counts.into_iter().collect::<Vec<_>>()[..] else { return Ok(false) };
    let mut emitted: BTreeMap<u32, Emitted> =
        open.handles.keys().map(|&rank| (rank, Emitted::default())).collect();
    for index in 0..count {
        let members: Vec<(u32, &Segment)> = segments.iter().map(|(&rank, all)| (rank, &all[index])).collect();
        let Some(direction) = worth_collecting(&members) else { continue };
        let bytes = |&(rank, segment): &(u32, &Segment)| {
            segment
                .pieces
                .iter()
                .map(|&step| moved(&workload.programs[rank as usize][step].what))
                .sum::<u64>()
        };
        let calls = members.iter().map(bytes).max().unwrap_or(0).div_ceil(MOST).max(1);
        for (rank, segment) in members {
            let Some(emitted) = emitted.get_mut(&rank) else { continue };
            let handle = open.handles[&rank];
            emit(workload, rank, handle, segment, direction, calls as usize, emitted)?;
        }
    }
    if emitted.values().all(|emitted| emitted.at.is_empty()) {
        return Ok(false);
    }
    for (rank, emitted) in emitted {
        let handle = open.handles[&rank];
        let program = std::mem::take(&mut workload.programs[rank as usize]);
        workload.programs[rank as usize] = emitted.rewrite(&program, handle);
    }
    Ok(true)
}

/// What a rank does with the open, cut at what all do together, and at what pieces must not be moved across.
fn segments(program: &[Step], handle: HandleId) -> Vec<Segment> {
    let new = || Segment { all_collective: true, ..Segment::default() };
    let mut segments = vec![new()];
    for (index, step) in program.iter().enumerate() {
        let direction = match &step.what {
            What::Open(of) | What::Close(of) | What::SetView(of, _) if *of == handle => None,
            What::Rendezvous | What::Broadcast { .. } | What::Meet { .. } => None,
            What::Sync(of, call) | What::Resize(of, call, _) if *of == handle => {
                // Nothing moves across it. A rank that has nothing to move may make such a call of POSIX alone.
                let moves = segments.last().is_some_and(|segment| !segment.pieces.is_empty());
                if !moves && call.layer() != Layer::MpiIo {
                    continue;
                }
                None
            }
            What::Access { handle: of, direction, .. } | What::Request { handle: of, direction, .. }
                if *of == handle =>
            {
                Some(*direction)
            }
            _ => continue,
        };
        let Some(segment) = segments.last_mut() else { continue };
        let Some(direction) = direction else {
            segment.end = index;
            segments.push(new());
            continue;
        };
        segment.pieces.push(index);
        segment.all_collective &= matches!(step.what, What::Access { collective: true, .. });
        segment.is_mixed |= segment.direction.is_some_and(|before| before != direction);
        segment.direction = Some(direction);
    }
    if let Some(last) = segments.last_mut() {
        last.end = program.len();
    }
    segments
}

/// Which way data go, if all go the same way, and not by one collective call already.
fn worth_collecting(members: &[(u32, &Segment)]) -> Option<Direction> {
    let segments = || members.iter().map(|(_, segment)| segment);
    let directions: Vec<Direction> = segments().filter_map(|segment| segment.direction).collect();
    let direction = *directions.first()?;
    let is_one_way =
        directions.iter().all(|it| *it == direction) && segments().all(|segment| !segment.is_mixed);
    let is_done = segments().all(|segment| segment.all_collective && segment.pieces.len() <= 1);
    (is_one_way && !is_done).then_some(direction)
}

fn moved(what: &What) -> u64 {
    match what {
        What::Access { positions, .. } => positions.end - positions.start,
        What::Request { bytes, .. } => *bytes,
        _ => 0,
    }
}

/// Calls that a rank makes instead of those that are left out.
#[derive(Default)]
struct Emitted {
    /// Before the step of this number.
    at: BTreeMap<usize, Vec<What>>,
    left_out: BTreeSet<usize>,
}

impl Emitted {
    fn rewrite(mut self, program: &[Step], handle: HandleId) -> Vec<Step> {
        let mut rest = Rewriting::default();
        for (index, step) in program.iter().enumerate() {
            let is_left_out = self.left_out.contains(&index);
            if is_left_out {
                rest.before(step);
            }
            for what in self.at.remove(&index).unwrap_or_default() {
                rest.call(what);
            }
            // A call that says where it is needs no pointer.
            let is_seek = matches!(step.what, What::Seek(of, _) if of == handle);
            if !is_left_out {
                rest.before(step);
                if !is_seek {
                    rest.call(step.what.clone());
                }
            }
        }
        for what in self.at.into_values().flatten() {
            rest.call(what);
        }
        rest.steps
    }
}

fn emit(
    workload: &mut Workload,
    rank: u32,
    handle: HandleId,
    segment: &Segment,
    direction: Direction,
    calls: usize,
    emitted: &mut Emitted,
) -> Result<(), LayoutError> {
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); calls];
    let mut before = 0;
    for &step in &segment.pieces {
        let part = usize::try_from(before / MOST).unwrap_or(usize::MAX).min(calls - 1);
        parts[part].push(step);
        before += moved(&workload.programs[rank as usize][step].what);
    }
    emitted.left_out.extend(&segment.pieces);
    let mut place = None;
    for part in parts {
        let own = if direction == Direction::Write { part.last() } else { part.first() };
        place = own.copied().or(place);
        let (view, positions) = view_of(workload, rank, &part)?;
        workload.views.push(view);
        let view = ViewId(workload.views.len() as u32 - 1);
        let call = match direction {
            Direction::Read => Call::MpiFileReadAtAll,
            Direction::Write => Call::MpiFileWriteAtAll,
        };
        let access = What::Access { handle, call, direction, view, positions, collective: true };
        let calls = emitted.at.entry(place.unwrap_or(segment.end)).or_default();
        calls.extend([What::SetView(handle, view), access]);
    }
    Ok(())
}

/// A view of all bytes that these calls move, in the order of the file.
fn view_of(workload: &Workload, rank: u32, steps: &[usize]) -> Result<(View, Range<u64>), LayoutError> {
    let mut extents: Vec<(u64, u64)> = Vec::new();
    for &step in steps {
        match &workload.programs[rank as usize][step].what {
            What::Request { offset, bytes, .. } => extents.push((*offset, offset.saturating_add(*bytes))),
            What::Access { view, positions, .. } => {
                let all = workload.views[view.index()].extents(positions.clone());
                extents.extend(all.map(|extent| (extent.offset as u64, extent.offset as u64 + extent.len)));
            }
            _ => {}
        }
    }
    extents.retain(|(start, end)| start < end);
    extents.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in extents {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    let Some(&(first, _)) = joined.first() else { return Ok((View::contiguous(0), 0..0)) };
    let total: u64 = joined.iter().map(|(start, end)| end - start).sum();
    let blocks: Vec<(u64, i64)> =
        joined.iter().map(|(start, end)| (end - start, (start - first) as i64)).collect();
    let pieces = Datatype::hindexed(&blocks, &Datatype::bytes(1))?;
    Ok((View::new(first, 1, pieces)?, 0..total))
}
