//! The writes of this rank that are under way through one handle: see [`pio_plan::Beside`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_plan::Beside;

use crate::core::mpi::backoff::Backoff;

/// How many there are.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Begun by the program, and not complete.
    independent: usize,
    /// Of which the other ranks may know.
    collective: usize,
}

/// A write that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    writes: Arc<Writes>,
    count: fn(&mut Counts) -> &mut usize,
}

impl Writes {
    /// An independent write begins.
    pub(crate) fn begin_independent(self: &Arc<Self>) -> UnderWay {
        self.begin(|counts| &mut counts.independent, &mut self.lock())
    }

    /// This rank's part of a collective write, in which ranks write each other's data, may be made known to the others, unless
    /// independent ones are under way.
    pub(crate) fn begin_collective(self: &Arc<Self>) -> Option<UnderWay> {
        let mut counts = self.lock();
        (counts.independent == 0).then(|| self.begin(|counts| &mut counts.collective, &mut counts))
    }

    /// Waits until no independent write is under way.
    pub(crate) fn wait_for_independent(&self) {
        let mut backoff = Backoff::new();
        while self.lock().independent > 0 {
            backoff.wait_for_oneself();
        }
    }

    /// What an independent write goes on beside. In machines of tests, as in the simulator, a rank carries out one operation
    /// after the other.
    pub(crate) fn beside_independent(&self) -> Beside {
        let is_beside = !cfg!(test) && self.lock().collective > 0;
        if is_beside { Beside::Collective } else { Beside::Nothing }
    }

    fn begin(self: &Arc<Self>, count: fn(&mut Counts) -> &mut usize, counts: &mut Counts) -> UnderWay {
        *count(counts) += 1;
        UnderWay { writes: self.clone(), count }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        *(self.count)(&mut self.writes.lock()) -= 1;
    }
}
