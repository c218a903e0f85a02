//! Who does how much, and how fast. Of a file that all ranks used, Darshan knows the slowest and the sum; of files of
//! single ranks, everything. Files of collective calls are left out: there few ranks do the work of all, as they should.

use std::collections::BTreeMap;

use super::super::finding::Detail;
use super::super::limits::{BYTES, ONE_WRITER, SHARE, SLOWER, UNEVEN, WAITING_SHARE};
use super::draft::{Alone, Draft};
use super::{Judge, Kind, Seen};
use crate::counted::{Counts, RankShare, UsedBy};

pub(super) fn drafts(judge: &Judge<'_>) -> Vec<Draft> {
    if judge.counted.processes < 2 {
        return Vec::new();
    }
    let alone = || judge.untraced().filter(|view| !view.is_collective());
    let shared = alone().flat_map(|view| view.program()).filter(|(_, file)| file.used_by == UsedBy::All);
    let mut worst: BTreeMap<Kind, (f64, Draft)> = BTreeMap::new();
    let mut keep = |(lost_s, draft): (f64, Draft)| {
        if worst.get(&draft.kind).is_none_or(|(known_s, _)| lost_s > *known_s) {
            worst.insert(draft.kind, (lost_s, draft));
        }
    };
    shared.filter_map(|seen| of_shared(judge, seen)).for_each(&mut keep);
    let own: Vec<Seen<'_>> = alone()
        .flat_map(|view| view.program().chain(view.stdio))
        .filter(|(_, file)| file.used_by != UsedBy::All)
        .collect();
    of_own(judge, &own).into_iter().for_each(&mut keep);
    worst.into_values().map(|(_, draft)| draft).collect()
}

/// One file that all used.
fn of_shared(judge: &Judge<'_>, seen: Seen<'_>) -> Option<(f64, Draft)> {
    let (index, file) = seen;
    let slowest = file.slowest?;
    compare(judge, slowest, &file.counts, &[(index, file.counts)])
}

/// All files of single ranks. What lies in shared files is not in these sums: where that is more, they tell nothing.
fn of_own(judge: &Judge<'_>, own: &[Seen<'_>]) -> Option<(f64, Draft)> {
    let mut ranks: BTreeMap<i64, Counts> = BTreeMap::new();
    let mut sum = Counts::default();
    for (_, file) in own {
        for (rank, counts) in &file.profile.by_rank {
            // Opening files is what metadata findings are about.
            let moved = Counts { metadata_s: 0.0, opens: 0, ..*counts };
            ranks.entry(*rank).or_default().add(&moved);
            sum.add(&moved);
        }
    }
    let share = |(rank, counts): (&i64, &Counts)| RankShare {
        rank: *rank,
        time_s: counts.time_s(),
        bytes: counts.bytes(),
    };
    let slowest = ranks.iter().map(share).max_by(|a, b| a.time_s.total_cmp(&b.time_s))?;
    let all = judge.views.values().flat_map(|view| [view.posix, view.stdio, view.dfs]).flatten();
    let bytes = all.fold(0, |sum: u64, (_, file)| sum.saturating_add(file.counts.bytes()));
    if sum.bytes() < bytes.div_ceil(2) {
        return None;
    }
    let of_slowest =
        own.iter().filter_map(|(index, file)| Some((*index, *file.profile.by_rank.get(&slowest.rank)?)));
    compare(judge, slowest, &sum, &of_slowest.collect::<Vec<_>>())
}

/// The slowest rank against the mean of all, and what that costs, seconds.
fn compare(
    judge: &Judge<'_>,
    slowest: RankShare,
    sum: &Counts,
    files: &[(usize, Counts)],
) -> Option<(f64, Draft)> {
    let ranks = judge.counted.processes as f64;
    let (mean_s, mean_bytes) = (sum.time_s() / ranks, sum.bytes() as f64 / ranks);
    let lost_s = slowest.time_s - mean_s;
    let part = slowest.bytes as f64 / sum.bytes().max(1) as f64;
    let writes = sum.written_bytes >= sum.bytes().div_ceil(2);
    let (kind, detail, share) = if sum.bytes() >= BYTES && part >= ONE_WRITER {
        // One that reads and tells the others does well.
        (writes.then_some(Kind::OneWriter)?, Detail::Part(part.min(1.0)), SHARE)
    } else if sum.bytes() >= BYTES && slowest.bytes as f64 >= UNEVEN * mean_bytes {
        let detail = Detail::Against { largest: slowest.bytes, others: mean_bytes as u64 };
        (Kind::UnevenRanks, detail, SHARE)
    } else if slowest.time_s >= SLOWER * mean_s && mean_s > 0.0 {
        let nanoseconds = |time_s: f64| (time_s * 1e9) as u64;
        let detail = Detail::Against { largest: nanoseconds(slowest.time_s), others: nanoseconds(mean_s) };
        (Kind::Straggler, detail, WAITING_SHARE)
    } else {
        return None;
    };
    let alone = Alone { slowest, lost_s, sum: *sum, files };
    let mut draft = Draft::of_one(judge, kind, &alone);
    (draft.detail, draft.share) = (detail, share);
    (lost_s >= judge.least_s(share)).then_some((lost_s, draft))
}
