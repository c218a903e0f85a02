//! What a write does about others that may be sieving around it.

use std::ops::Range;

use crate::machine::Io;

/// How a write that does not sieve keeps out others that do: they write back what they read before its bytes came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nobody sieves there.
    Open,
    /// It locks what it writes for itself: ranks that write among each other go one after the other, and the first is through
    /// long before the last.
    Alone,
    /// It shares its lock with all that do not sieve. Who waits for a lock sleeps; where more ranks than processors are, those that
    /// wait for messages have the processors meanwhile, and it gets its turn late.
    Shared,
}

impl Guard {
    /// Where others may sieve, and so many ranks have so many processors.
    pub(crate) fn of(ranks: u32, processors: u32) -> Guard {
        if ranks > processors { Guard::Shared } else { Guard::Alone }
    }

    /// The lock of an interval, where somebody may sieve.
    pub(crate) fn lock(self, file: Range<u64>) -> Io {
        Io::Lock { file, shared: self == Guard::Shared }
    }
}
