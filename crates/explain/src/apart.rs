//! Ranks whose time in I/O was not as that of the others, and when.
//!
//! A sum over the whole run hides who was slow for a while. So the part of its time that each rank spent in I/O is kept in
//! some dozens of equal *slices* of the run, and in each slice ranks are compared with the median of all. What ranks
//! differ by anyway is the median of their distances from that median (Hampel's identifier): where half of them write
//! while the others compute, nobody stands apart. Ranks of one host that do so together are one entry: then it is the host.

use std::collections::BTreeMap;

use crate::bins::Bins;
use crate::explanation::ProcessStatistics;

/// Ranks from which on they are compared: of fewer, each has its own row in every figure.
pub const CROWD: usize = 65;
/// Slices, at most; at least half as many.
const SLICES: usize = 64;
/// Entries, at most.
const MOST: usize = 10;
/// The least distance from the median that is told: part of a slice.
const LEAST: f64 = 0.1;
/// What is told differs by at least this part of the run: less is how ranks begin and end.
const LEAST_OF_RUN: f64 = 0.02;
/// Distances of ranks that are alike are less than so many times their usual one: of a million values of a normal
/// distribution one or two are not.
const DEVIATIONS: f64 = 5.0;
/// The standard deviation of a normal distribution, of which the median distance is known.
const DEVIATION_OF_MEDIAN_DISTANCE: f64 = 1.4826;

/// One rank, or several of one host, whose part of time in I/O stands apart from that of the others for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    /// Indices in [`Explanation::processes`](crate::Explanation::processes), in their order.
    pub processes: Vec<usize>,
    /// How many processes the host has.
    pub of_host: usize,
    /// From when, nanoseconds since the start of the job.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
    /// The part of that time that they spent in I/O, their mean, 0 to 1.
    pub part: f64,
    /// The same of the median of all ranks.
    pub median: f64,
}

impl Apart {
    /// How much longer than the median each was in I/O; negative: shorter. Nanoseconds.
    pub fn more_ns(&self) -> f64 {
        (self.part - self.median) * (self.until_ns - self.from_ns) as f64
    }
}

/// Time in I/O of each rank, slice by slice.
pub(crate) struct Slices {
    bins: Bins,
    /// Of each rank, what is not in `bins` yet. Ranks have their turns one after the other: these few bytes of each stay in a
    /// processor's cache, where the slices of thousands do not.
    latest: Vec<Latest>,
}

/// Time in I/O within one slice.
#[derive(Clone, Copy, Default)]
struct Latest {
    /// A time within the slice.
    at_ns: u64,
    time_ns: u64,
}

impl Slices {
    /// For so many ranks: nothing is kept of few.
    pub(crate) fn new(ranks: usize) -> Slices {
        let ranks = if ranks < CROWD { 0 } else { ranks };
        Slices { bins: Bins::with(ranks, SLICES), latest: vec![Latest::default(); ranks] }
    }

    /// Adds time in I/O that nothing else covers.
    #[inline]
    pub(crate) fn add(&mut self, rank: usize, start_ns: u64, end_ns: u64) {
        let Some(latest) = self.latest.get_mut(rank) else { return };
        if self.bins.are_one(latest.at_ns, end_ns) {
            latest.time_ns += end_ns - start_ns;
            return;
        }
        self.bins.spread(rank, latest.at_ns, latest.at_ns, latest.time_ns as f64);
        self.bins.spread(rank, start_ns, end_ns, (end_ns - start_ns) as f64);
        *latest = Latest { at_ns: end_ns, time_ns: 0 };
    }

    /// Who stands apart, those by most time first. The ranks are `processes`, in the order of the rows.
    pub(crate) fn finish(mut self, processes: &[ProcessStatistics], duration_ns: u64) -> Vec<Apart> {
        for (rank, latest) in self.latest.iter().enumerate() {
            self.bins.spread(rank, latest.at_ns, latest.at_ns, latest.time_ns as f64);
        }
        let (slice_ns, times) = self.bins.finish(duration_ns);
        if times.len() < CROWD || times.len() != processes.len() {
            return Vec::new();
        }
        let slices = Compared::of(times, slice_ns, duration_ns);
        let runs: Vec<_> = (0..processes.len()).filter_map(|rank| slices.longest_apart(rank)).collect();
        let mut apart = slices.by_host(&runs, processes);
        apart.retain(|apart| apart.more_ns().abs() >= duration_ns as f64 * LEAST_OF_RUN);
        apart.sort_by(|one, other| {
            let weight = |apart: &Apart| apart.more_ns().abs() * apart.processes.len() as f64;
            weight(other).total_cmp(&weight(one)).then(one.processes.cmp(&other.processes))
        });
        apart.truncate(MOST);
        apart
    }
}

/// Slices of one rank, one behind the other, in which it stands apart to the same side.
#[derive(Clone, Copy)]
struct Run {
    rank: usize,
    is_more: bool,
    first: usize,
    /// Behind the last.
    end: usize,
    /// Sum of its distances.
    weight: f64,
}

/// The parts of time in I/O, by rank and slice.
struct Compared {
    parts: Vec<Vec<f64>>,
    medians: Vec<f64>,
    /// From which distance on a rank stands apart.
    limits: Vec<f64>,
    slice_ns: u64,
    duration_ns: u64,
}

impl Compared {
    fn of(mut parts: Vec<Vec<f64>>, slice_ns: u64, duration_ns: u64) -> Compared {
        let count = parts.first().map_or(0, Vec::len);
        for row in &mut parts {
            for (slice, part) in row.iter_mut().enumerate() {
                // The last slice may reach beyond the end of the job.
                let width_ns = duration_ns.saturating_sub(slice as u64 * slice_ns).clamp(1, slice_ns);
                *part = (*part / width_ns as f64).min(1.0);
            }
        }
        let (mut medians, mut limits) = (Vec::new(), Vec::new());
        for slice in 0..count {
            let median = median(parts.iter().map(|row| row[slice]).collect());
            let distance = self::median(parts.iter().map(|row| (row[slice] - median).abs()).collect());
            medians.push(median);
            limits.push((distance * DEVIATION_OF_MEDIAN_DISTANCE * DEVIATIONS).max(LEAST));
        }
        Compared { parts, medians, limits, slice_ns, duration_ns }
    }

    /// Of the times in which a rank stands apart, that which weighs most.
    fn longest_apart(&self, rank: usize) -> Option<Run> {
        let mut most: Option<Run> = None;
        let mut current: Option<Run> = None;
        for (slice, part) in self.parts[rank].iter().enumerate() {
            let distance = part - self.medians[slice];
            if distance.abs() < self.limits[slice] {
                current = None;
                continue;
            }
            let is_more = distance > 0.0;
            let before = current.filter(|run| run.is_more == is_more);
            let run = before.unwrap_or(Run { rank, is_more, first: slice, end: slice, weight: 0.0 });
            let run = Run { end: slice + 1, weight: run.weight + distance.abs(), ..run };
            current = Some(run);
            if most.is_none_or(|most| run.weight > most.weight) {
                most = Some(run);
            }
        }
        most
    }

    /// The ranks one by one; but where half or more of a host's stand apart to the same side for a while, the host.
    fn by_host(&self, runs: &[Run], processes: &[ProcessStatistics]) -> Vec<Apart> {
        let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
        for process in processes {
            *of_host.entry(&process.host).or_default() += 1;
        }
        let mut together: BTreeMap<(&str, bool), Vec<&Run>> = BTreeMap::new();
        for run in runs {
            together.entry((&processes[run.rank].host, run.is_more)).or_default().push(run);
        }
        let mut apart = Vec::new();
        for ((host, _), mut runs) in together {
            let of_host = of_host.get(host).copied().unwrap_or(0);
            runs.sort_by_key(|run| run.first);
            for runs in at_one_time(&runs) {
                if runs.len() > 1 && runs.len() * 2 >= of_host && of_host < processes.len() {
                    apart.push(self.entry(runs, of_host));
                } else {
                    apart.extend(runs.iter().map(|run| self.entry(&[*run], of_host)));
                }
            }
        }
        apart
    }

    fn entry(&self, runs: &[&Run], of_host: usize) -> Apart {
        let first = runs.iter().map(|run| run.first).min().unwrap_or(0);
        let end = runs.iter().map(|run| run.end).max().unwrap_or(0);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let parts: Vec<f64> = runs.iter().map(|run| mean(&self.parts[run.rank][first..end])).collect();
        Apart {
            processes: runs.iter().map(|run| run.rank).collect(),
            of_host,
            from_ns: first as u64 * self.slice_ns,
            until_ns: (end as u64 * self.slice_ns).min(self.duration_ns),
            part: mean(&parts),
            median: mean(&self.medians[first..end]),
        }
    }
}

/// Runs in the order of their beginnings, in parts that do not overlap in time.
fn at_one_time<'a, 'b>(runs: &'b [&'a Run]) -> Vec<&'b [&'a Run]> {
    let mut end = 0;
    let overlap = move |before: &&Run, next: &&Run| {
        end = before.end.max(end);
        next.first < end
    };
    runs.chunk_by(overlap).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use pio_trace::{Call, Event, Process, ProcessId, Tables};

    use crate::Explanation;

    const RANKS_OF_HOST: u32 = 10;
    const STEP_NS: u64 = 1_000_000;

    /// Ranks that spend half of each of 100 milliseconds in I/O, or as `part` says.
    fn found(ranks: u32, part: impl Fn(u32, u64) -> f64) -> Explanation {
        let process = |rank| Process {
            rank: Some(rank),
            pid: rank,
            host: format!("node{:02}", rank / RANKS_OF_HOST),
            command: "app".into(),
            start_ns: 0,
            end_ns: Some(100 * STEP_NS),
        };
        let tables = Tables { processes: (0..ranks).map(process).collect(), ..Tables::default() };
        let call = |step: u64, rank: u32| Event {
            elapsed_ns: (STEP_NS as f64 * part(rank, step)) as u64,
            ..Event::new(Call::Stat, ProcessId(rank), step * STEP_NS)
        };
        Explanation::of(&tables, (0..100).flat_map(|step| (0..ranks).map(move |rank| call(step, rank))))
    }

    #[test]
    fn ranks_of_a_host_that_are_slow_at_other_times_are_named_one_by_one() {
        // 20 to 24 are half of their host at one time, 26 to 28 are not at another.
        let found = found(80, |rank, step| match rank {
            20..=24 if step < 20 => 0.9,
            26..=28 if step >= 80 => 0.9,
            _ => 0.5,
        });
        let late = |from_ns| from_ns > 50 * STEP_NS;
        let apart = found.apart.iter().map(|apart| (apart.processes.len(), late(apart.from_ns)));
        assert_eq!(apart.collect::<Vec<_>>(), [(5, false), (1, true), (1, true), (1, true)]);
        assert!(found.apart[0].until_ns < 25 * STEP_NS);
    }

    #[test]
    fn a_rank_that_is_slow_for_a_while_is_named() {
        let apart =
            found(100, |rank, step| if rank == 42 && (50..80).contains(&step) { 1.0 } else { 0.5 }).apart;
        assert_eq!(apart.len(), 1, "{apart:?}");
        let one = &apart[0];
        assert_eq!((&one.processes, one.of_host), (&vec![42], 10));
        // To the nearest slices, of 2^21 ns.
        assert!((48..=52).contains(&(one.from_ns / STEP_NS)), "{one:?}");
        assert!((78..=82).contains(&(one.until_ns / STEP_NS)), "{one:?}");
        assert!((one.part - 1.0).abs() < 0.05 && (one.median - 0.5).abs() < 0.05, "{one:?}");
        assert!((one.more_ns() / 15e6 - 1.0).abs() < 0.1, "{one:?}");
    }

    #[test]
    fn a_host_that_is_slow_is_one_entry_and_a_rank_that_does_nothing_another() {
        let part = |rank: u32, _| match rank {
            30..40 => 0.9,
            7 => 0.0,
            _ => 0.5,
        };
        let apart = found(100, part).apart;
        let found: Vec<_> =
            apart.iter().map(|one| (one.processes.len(), one.processes[0], one.more_ns() > 0.0)).collect();
        assert_eq!(found, [(10, 30, true), (1, 7, false)]);
        assert_eq!((apart[0].from_ns, apart[0].until_ns), (0, 100 * STEP_NS));
    }

    #[test]
    fn where_half_write_while_the_others_compute_nobody_stands_apart() {
        let part =
            |rank: u32, step: u64| if (u64::from(rank) + step / 10).is_multiple_of(2) { 0.9 } else { 0.1 };
        assert_eq!(found(100, part).apart, []);
        let little = |rank: u32, step: u64| 0.5 + ((u64::from(rank) * 7 + step * 13) % 10) as f64 / 100.0;
        assert_eq!(found(100, little).apart, [], "all differ a little");
        assert_eq!(found(60, |rank, _| f64::from(rank) / 60.0).apart, [], "few are not compared");
    }
}
