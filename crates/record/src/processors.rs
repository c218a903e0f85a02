//! How many processors the ranks of each host had: where they are fewer than ranks, ranks wait for processors.

use std::collections::BTreeMap;

use crate::spool::Header;

/// The note of the trace: `node1 16, node2 16`. None if no rank said which processors it may use.
///
/// Launchers may bind each rank to processors of its own: what counts is what all of a host may use together. A limit on
/// processor time (a control group's quota) is known of the host alone that this runs on.
pub(crate) fn note<'a>(headers: impl Iterator<Item = &'a Header>) -> Option<String> {
    let mut hosts: BTreeMap<&str, ([u64; 8], bool)> = BTreeMap::new();
    let here = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    for header in headers.filter(|header| header.rank.is_some()) {
        let (all, is_here) = hosts.entry(&header.host).or_default();
        all.iter_mut().zip(&header.processors).for_each(|(all, own)| *all |= own);
        *is_here |= !header.boot_id.is_empty() && header.boot_id.trim() == here.trim();
    }
    let quota = std::thread::available_parallelism().map_or(u64::MAX, |count| count.get() as u64);
    let told: Vec<String> = hosts
        .into_iter()
        .map(|(host, (all, is_here))| {
            let bound: u64 = all.iter().map(|word| u64::from(word.count_ones())).sum();
            (host, if is_here { bound.min(quota) } else { bound })
        })
        .filter(|(_, processors)| *processors > 0)
        .map(|(host, processors)| format!("{host} {processors}"))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}
