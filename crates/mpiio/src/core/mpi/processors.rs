//! Processors that the ranks of a node may run on.

use crate::core::mpi::communicator::Communicator;
use crate::core::mpi::status::Status;

/// Words of a set of processors, a bit each: as many as the C library's has.
const SET_WORDS: usize = 16;

/// How many processors the ranks of each node share, summed over the nodes, but no more than ranks: the same on all
/// ranks. `node` tells for each rank the least rank of its node. Collective.
///
/// Launchers may bind each rank to processors of its own: what counts is what all of a node may use together.
pub(crate) fn shared_by(communicator: &Communicator, node: &[u64]) -> Result<u32, Status> {
    let set = own_set();
    let count = set.iter().map(|word| word.count_ones()).sum::<u32>();
    // Less than the set has where a container is given less time.
    let usable = std::thread::available_parallelism().map_or(count, |usable| usable.get() as u32);
    let limit = if usable < count { usable } else { u32::MAX };
    let mut mine = [u64::from(limit); SET_WORDS + 1];
    mine[..SET_WORDS].copy_from_slice(&set);
    Ok(together(node, &communicator.gather(mine)?))
}

fn together(node: &[u64], all: &[[u64; SET_WORDS + 1]]) -> u32 {
    let mut sum = 0;
    for leader in node.iter().enumerate().filter(|(rank, leader)| *rank as u64 == **leader).map(|(_, l)| *l) {
        let of_node = || node.iter().zip(all).filter(|(of, _)| **of == leader).map(|(_, said)| said);
        let count = (0..SET_WORDS)
            .map(|word| of_node().fold(0, |set, said| set | said[word]).count_ones())
            .sum::<u32>();
        let limit = of_node().map(|said| said[SET_WORDS]).min().unwrap_or(0) as u32;
        sum += count.min(limit).clamp(1, of_node().count() as u32);
    }
    sum
}

/// The processors that this process may run on.
fn own_set() -> [u64; SET_WORDS] {
    let mut set = [0_u64; SET_WORDS];
    // SAFETY: the kernel fills in at most as many bytes as there are; if it cannot say, the set stays empty.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr().cast()) };
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(set: u64, limit: u32) -> [u64; SET_WORDS + 1] {
        let mut words = [0; SET_WORDS + 1];
        (words[0], words[SET_WORDS]) = (set, u64::from(limit));
        words
    }

    #[test]
    fn ranks_that_are_bound_have_what_all_have_together() {
        let bound = [said(1, u32::MAX), said(2, u32::MAX), said(4, u32::MAX)];
        assert_eq!(together(&[0, 0, 0], &bound), 3);
        let free = [said(3, u32::MAX); 4];
        assert_eq!(together(&[0; 4], &free), 2);
        assert_eq!(together(&[0, 1, 0, 1], &free), 4, "two nodes");
        assert_eq!(together(&[0; 2], &[said(0xFF, u32::MAX); 2]), 2, "no more than ranks");
        assert_eq!(together(&[0; 4], &[said(0xFF, 3); 4]), 3, "limited");
        assert_eq!(together(&[0; 2], &[said(0, u32::MAX); 2]), 1, "unknown");
    }
}
