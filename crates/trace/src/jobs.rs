//! MPI jobs of a recording: a script may start several, one after the other or side by side.

use std::collections::BTreeSet;

use crate::tables::Tables;

/// What tells the processes of different MPI jobs apart.
#[derive(Clone, Copy, Debug)]
pub struct JobMember {
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Ranks of that; 0 if that is not known.
    pub ranks: u32,
    /// When it started, nanoseconds from anywhere.
    pub start_ns: i128,
    /// When it ended, if it ended by itself.
    pub end_ns: Option<i128>,
}

/// A job as far as its processes have started.
struct Job {
    number: usize,
    ranks: u32,
    seen: BTreeSet<u32>,
    first_end_ns: Option<i128>,
}

impl Job {
    fn is_over(&self, at_ns: i128) -> bool {
        self.first_end_ns.is_some_and(|end_ns| end_ns < at_ns)
    }

    fn add(&mut self, member: &JobMember) {
        self.seen.insert(member.rank);
        self.first_end_ns = [self.first_end_ns, member.end_ns].into_iter().flatten().min();
    }
}

/// The number of the MPI job of each process, from 0 by time; none for processes that are no ranks. In a job no rank is there twice,
/// and none starts when another has ended, as all meet in `MPI_Init`.
pub fn mpi_jobs(members: &[Option<JobMember>]) -> Vec<Option<usize>> {
    let mut by_start: Vec<(usize, &JobMember)> =
        members.iter().enumerate().filter_map(|(index, member)| Some((index, member.as_ref()?))).collect();
    by_start.sort_by_key(|(index, member)| (member.start_ns, *index));
    let mut numbers = vec![None; members.len()];
    let mut running: Vec<Job> = Vec::new();
    let mut count = 0;
    for (index, member) in by_start {
        running.retain(|job| !job.is_over(member.start_ns));
        let lacks = |job: &&mut Job| job.ranks == member.ranks && !job.seen.contains(&member.rank);
        let number = match running.iter_mut().find(lacks) {
            Some(job) => {
                job.add(member);
                job.number
            }
            None => {
                let mut job =
                    Job { number: count, ranks: member.ranks, seen: BTreeSet::new(), first_end_ns: None };
                job.add(member);
                running.push(job);
                count += 1;
                count - 1
            }
        };
        numbers[index] = Some(number);
    }
    numbers
}

impl Tables {
    /// Whether the ranks are of more than one MPI job.
    pub fn has_several_jobs(&self) -> bool {
        let ranks: Vec<_> = self.processes.iter().filter_map(|process| process.rank).collect();
        ranks.iter().collect::<BTreeSet<_>>().len() < ranks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(rank: u32, ranks: u32, start_ns: i128, end_ns: Option<i128>) -> Option<JobMember> {
        Some(JobMember { rank, ranks, start_ns, end_ns })
    }

    #[test]
    fn jobs_follow_each_other_and_run_side_by_side() {
        let one_by_one = [
            member(0, 2, 0, Some(50)),
            member(1, 2, 1, Some(60)),
            None,
            // Of the second job, rank 1 is there first.
            member(0, 2, 72, Some(100)),
            member(1, 2, 70, Some(100)),
        ];
        assert_eq!(mpi_jobs(&one_by_one), [Some(0), Some(0), None, Some(1), Some(1)]);
        let side_by_side = [
            member(0, 2, 0, Some(50)),
            member(1, 2, 3, Some(50)),
            member(0, 3, 1, Some(50)),
            member(1, 3, 2, Some(50)),
            member(2, 3, 4, Some(50)),
            member(0, 2, 10, Some(60)),
        ];
        assert_eq!(mpi_jobs(&side_by_side), [0, 0, 1, 1, 1, 2].map(Some));
    }

    #[test]
    fn a_rank_that_did_not_come_is_not_taken_from_the_next_job() {
        let lost = [member(0, 2, 0, Some(50)), member(0, 2, 60, Some(90)), member(1, 2, 61, None)];
        assert_eq!(mpi_jobs(&lost), [Some(0), Some(1), Some(1)]);
    }
}
