//! The processors that this thread may use. They are not equally fast (one shares its core with another guest of the machine, or
//! is further from memory), and a job's ranks are on all of them: so runs of a measurement visit one after the other.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// This thread stays on a processor.
pub(super) fn stay_on(processor: usize) -> Result<(), Errno> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only)
}

/// Those that runs visit.
pub(super) struct Processors {
    allowed: CpuSet,
    visited: Vec<usize>,
}

impl Processors {
    /// So many at most, evenly spread over those that this thread may use; none if it may not say where it runs.
    pub(super) fn allowed(most: usize) -> Processors {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
        let count = all.len().min(most);
        let visited = (0..count).map(|index| all[index * all.len() / count]).collect();
        Processors { allowed, visited }
    }

    /// Their numbers.
    pub(super) fn visited(&self) -> &[usize] {
        &self.visited
    }

    /// Stays on the processor of this run's number while what is given is there. Threads that are begun meanwhile do, too.
    pub(super) fn visit(&self, run: usize) -> Option<Visit<'_>> {
        let processor = *self.visited.get(run % self.visited.len().max(1))?;
        stay_on(processor).ok()?;
        Some(Visit { back_to: &self.allowed })
    }
}

/// The stay of a thread on one processor.
pub(super) struct Visit<'a> {
    back_to: &'a CpuSet,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, self.back_to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_ends_where_it_began() {
        let before = sched_getaffinity(None).unwrap();
        let processors = Processors::allowed(3);
        for run in 0..4 {
            let visit = processors.visit(run);
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            drop(visit);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        }
        assert!(Processors::allowed(0).visit(5).is_none());
    }
}
