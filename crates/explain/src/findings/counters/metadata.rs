//! Opens, names, seeks: calls that move nothing. Darshan keeps one time for all of them.

use super::super::limits::{CALLS, NAMES, OWN_FILES, SMALL, WAITING_SHARE};
use super::draft::{Draft, Part};
use super::{Judge, Kind, Seen, View};
use crate::counted::Counts;

/// Seeks among the calls that move nothing from which on their time is that of seeks.
const SEEKS: f64 = 0.9;

pub(super) fn drafts(judge: &Judge<'_>) -> Vec<Draft> {
    let own = Own::of(judge);
    let mut drafts = [
        Draft::new(Kind::SameNamesByAll, CALLS),
        Draft::new(Kind::OpenStorm, CALLS),
        Draft::new(Kind::FilePerProcess, OWN_FILES),
        Draft::new(Kind::ManySmallFiles, NAMES),
        Draft::new(Kind::MetadataStorm, NAMES),
        Draft::new(Kind::Seeks, CALLS),
        Draft::of_share(Kind::MetadataTime, WAITING_SHARE),
    ];
    for view in judge.views.values() {
        for seen in [view.posix, view.stdio, view.dfs].into_iter().flatten() {
            if seen.1.counts.metadata_s <= 0.0 {
                continue;
            }
            let (kind, calls, saved) = remark(judge, &own, view, seen);
            if let Some(draft) = drafts.iter_mut().find(|draft| draft.kind == kind) {
                let (index, file) = seen;
                let of = calls_on_names(seen).saturating_add(file.profile.seeks);
                let time_s = |counts: &Counts| counts.metadata_s;
                draft.add(
                    judge,
                    Part { index, file, calls, of, read_bytes: 0, write_bytes: 0, time_s, saved },
                );
            }
        }
    }
    drafts.into()
}

/// What the calls are charged to, how many they are, and the part of their time that would be saved.
fn remark(judge: &Judge<'_>, own: &Own, view: &View<'_>, seen: Seen<'_>) -> (Kind, u64, Option<f64>) {
    let (_, file) = seen;
    let (users, opens) = (judge.users(file), file.counts.opens);
    let (names, seeks) = (calls_on_names(seen), file.profile.seeks);
    let again = opens.saturating_sub(users);
    if seeks as f64 >= SEEKS * names.saturating_add(seeks) as f64
        && seeks.saturating_mul(2) >= file.counts.accesses()
        && seeks >= CALLS
    {
        return (Kind::Seeks, seeks, None);
    }
    if users > 1 && users >= judge.counted.processes && !view.is_written() {
        return (Kind::SameNamesByAll, names, Some(1.0 - 1.0 / users as f64));
    }
    // An open takes longer than a call that asks for a name: at least their part of the calls is saved.
    if again >= users && opens > 0 {
        return (Kind::OpenStorm, again, Some(again as f64 / names.max(1) as f64));
    }
    if users == 1 && opens > 0 {
        if own.of_ranks && view.is_written() {
            return (Kind::FilePerProcess, opens, None);
        }
        if own.small {
            return (Kind::ManySmallFiles, opens, None);
        }
    }
    if file.profile.stats > opens {
        return (Kind::MetadataStorm, file.profile.stats, None);
    }
    (Kind::MetadataTime, names, None)
}

fn calls_on_names((_, file): Seen<'_>) -> u64 {
    file.counts.opens.saturating_add(file.profile.stats)
}

/// Files that one process uses.
struct Own {
    /// Many, of several ranks that write them.
    of_ranks: bool,
    /// A great many, each for little.
    small: bool,
}

impl Own {
    fn of(judge: &Judge<'_>) -> Own {
        let (mut files, mut written, mut bytes) = (0_u64, 0_u64, 0_u64);
        for view in judge.views.values() {
            let Some((_, file)) = view.posix.or(view.stdio).or(view.dfs) else { continue };
            if judge.users(file) == 1 && file.counts.opens > 0 {
                files += 1;
                written += u64::from(view.is_written());
                bytes = bytes.saturating_add(file.counts.bytes());
            }
        }
        Own {
            of_ranks: judge.counted.processes > 1 && written >= OWN_FILES,
            small: files >= NAMES && bytes / files <= SMALL,
        }
    }
}
