//! The writes of this rank that are under way through one handle: see [`pio_plan::Beside`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pio_plan::Beside;

/// How many there are.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Of this rank alone, begun by the program with no collective one there: they may sieve.
    alone: usize,
    /// Of this rank alone, begun beside a collective one: they lock what they write, and write nothing else.
    beside: usize,
    /// Those in which ranks write each other's data: the other ranks may know of them, or they wait until they may.
    collective: usize,
}

/// A write that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    writes: Arc<Writes>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Alone,
    Beside,
    Collective,
}

impl Writes {
    /// An independent write begins.
    pub(crate) fn begin_independent(self: &Arc<Self>) -> UnderWay {
        let mut counts = self.lock();
        let kind = if counts.collective > 0 { Kind::Beside } else { Kind::Alone };
        self.begin(kind, &mut counts)
    }

    /// A collective write, in which ranks write each other's data, is to begin as soon as it [may be
    /// told](UnderWay::may_be_told). Independent ones that begin from now on do not hold it up.
    pub(crate) fn announce_collective(self: &Arc<Self>) -> UnderWay {
        self.begin(Kind::Collective, &mut self.lock())
    }

    /// Whether a collective one has been announced.
    #[cfg(test)]
    pub(super) fn is_collective_announced(&self) -> bool {
        self.lock().collective > 0
    }

    fn begin(self: &Arc<Self>, kind: Kind, counts: &mut Counts) -> UnderWay {
        *counts.of(kind) += 1;
        UnderWay { writes: self.clone(), kind }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    /// What an independent write goes on beside.
    pub(crate) fn beside(&self) -> Beside {
        // In machines of tests, as in the simulator, a rank carries out one operation after the other.
        let is_beside = self.kind == Kind::Beside && !cfg!(test);
        if is_beside { Beside::Collective } else { Beside::Nothing }
    }

    /// Whether this rank's part of a collective write, which goes on beside this, may be made known to the others: nothing that
    /// sieves is under way, and nothing at all if gaps are filled without a lock.
    pub(crate) fn may_be_told(&self, beside: Beside) -> bool {
        let counts = self.writes.lock();
        counts.alone == 0 && (beside == Beside::Independent || counts.beside == 0)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        *self.writes.lock().of(self.kind) -= 1;
    }
}

impl Counts {
    fn of(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Alone => &mut self.alone,
            Kind::Beside => &mut self.beside,
            Kind::Collective => &mut self.collective,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads whose writes overlap in time, one after the other without end.
    #[test]
    fn writes_that_begin_later_do_not_hold_up_a_collective_one() {
        let writes = Arc::new(Writes::default());
        let before = writes.begin_independent();
        let collective = writes.announce_collective();
        let later = writes.begin_independent();
        assert!(!collective.may_be_told(Beside::Independent), "one before it may sieve");
        drop(before);
        assert!(collective.may_be_told(Beside::Independent));
        assert_eq!((later.kind, writes.begin_independent().kind), (Kind::Beside, Kind::Beside));

        // The next one fills gaps without locks: the later write must be through.
        drop(collective);
        let collective = writes.announce_collective();
        assert!(!collective.may_be_told(Beside::Nothing));
        drop(later);
        assert!(collective.may_be_told(Beside::Nothing));
        drop(collective);
        assert_eq!(writes.begin_independent().kind, Kind::Alone);
    }
}
