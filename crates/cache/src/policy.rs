//! Replacement policies: which block leaves when another needs its place.
//!
//! Each is the published one, defined on single blocks and carried out on runs of them: a request touches its blocks in
//! ascending order, one after the other, and a policy handles as many at once as have the same fate.

mod arc;
mod clock;
mod lirs;
mod recency;
mod segmented;

use std::fmt;
use std::str::FromStr;

use crate::index::RunId;
use crate::runs::{Data, ListId, Rail, Run, Runs, Traits};
use crate::settings::SettingsError;

/// A replacement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Evicts what was not used for longest.
    Lru,
    /// Evicts what was used last: what a cyclic scan larger than the cache wants.
    Mru,
    /// A hand passes over the blocks in the order in which they came, and evicts the first that was not used since it
    /// last passed (second chance; Corbató 1968).
    Clock,
    /// LRU lists of equal size, one above the other: a hit moves a block up, what falls out of the lowest is evicted
    /// (Karedla, Love and Wherry 1994, with this many lists instead of two).
    Slru {
        /// How many lists, at least 1.
        segments: u8,
    },
    /// Balances recency and frequency by what it evicted lately and should not have (Megiddo and Modha, FAST 2003).
    Arc,
    /// Evicts by the time between the last two uses instead of the time since the last (Jiang and Zhang, SIGMETRICS
    /// 2002), with 1 % of the cache (at least a block) for blocks whose time is long, and at most twice as many blocks
    /// remembered as there are in the cache.
    Lirs,
}

impl Policy {
    /// Every policy, with the usual parameters.
    pub const ALL: [Policy; 6] = [
        Policy::Lru,
        Policy::Clock,
        Policy::Slru { segments: Policy::SEGMENTS },
        Policy::Arc,
        Policy::Lirs,
        Policy::Mru,
    ];

    /// Lists of an SLRU of which nothing else is said.
    const SEGMENTS: u8 = 4;
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Lru => "lru",
            Policy::Mru => "mru",
            Policy::Clock => "clock",
            Policy::Slru { segments: Policy::SEGMENTS } => "slru",
            Policy::Slru { segments } => return write!(f, "slru:{segments}"),
            Policy::Arc => "arc",
            Policy::Lirs => "lirs",
        })
    }
}

impl FromStr for Policy {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Policy, SettingsError> {
        let unknown = || SettingsError::UnknownPolicy(text.to_owned());
        Ok(match text {
            "lru" => Policy::Lru,
            "mru" => Policy::Mru,
            "clock" => Policy::Clock,
            "slru" => Policy::Slru { segments: Policy::SEGMENTS },
            "arc" => Policy::Arc,
            "lirs" => Policy::Lirs,
            _ => {
                let segments = text.strip_prefix("slru:").ok_or_else(unknown)?;
                Policy::Slru { segments: segments.parse().map_err(|_| unknown())? }
            }
        })
    }
}

/// Blocks that are to be taken in.
#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    pub file: u32,
    pub start: u64,
    pub length: u64,
    pub traits: Traits,
    /// What is remembered of them from an earlier stay: a run of exactly these blocks.
    pub history: Option<RunId>,
    /// Whose blocks have to make room, if not anybody's.
    pub evict_from: Option<u32>,
}

/// A policy at work.
pub(crate) enum Replacer {
    Recency(recency::Recency),
    Clock(clock::Clock),
    Segmented(segmented::Segmented),
    Arc(arc::Arc),
    Lirs(lirs::Lirs),
}

impl Replacer {
    /// A policy at work on `capacity` blocks (at least 1), and the lists it needs.
    pub(crate) fn new(policy: Policy, capacity: u64) -> (Replacer, Runs) {
        match policy {
            Policy::Lru => (Replacer::Recency(recency::Recency::least(capacity)), Runs::new([1, 0])),
            Policy::Mru => (Replacer::Recency(recency::Recency::most(capacity)), Runs::new([1, 0])),
            Policy::Clock => (Replacer::Clock(clock::Clock::new(capacity)), Runs::new([1, 0])),
            Policy::Slru { segments } => (
                Replacer::Segmented(segmented::Segmented::new(capacity, segments)),
                Runs::new([usize::from(segments), 0]),
            ),
            Policy::Arc => (Replacer::Arc(arc::Arc::new(capacity)), Runs::new([4, 0])),
            Policy::Lirs => (Replacer::Lirs(lirs::Lirs::new(capacity)), Runs::new([1, 2])),
        }
    }

    /// A request touches a run of blocks that are here: notes it for the first of them, and gives how many.
    pub(crate) fn hit(&mut self, runs: &mut Runs, run: RunId) -> u64 {
        match self {
            Replacer::Recency(policy) => policy.hit(runs, run),
            Replacer::Clock(policy) => policy.hit(runs, run),
            Replacer::Segmented(policy) => policy.hit(runs, run),
            Replacer::Arc(policy) => policy.hit(runs, run),
            Replacer::Lirs(policy) => policy.hit(runs, run),
        }
    }

    /// A request touches for the first time a run of blocks that were read ahead: they are as if they came in now.
    pub(crate) fn first_use(&mut self, runs: &mut Runs, run: RunId) {
        match self {
            Replacer::Clock(_) => {}
            Replacer::Recency(_) | Replacer::Segmented(_) | Replacer::Arc(_) => {
                let list = runs.get(run).list(Rail::Main);
                runs.move_to(Rail::Main, list, run);
                runs.join(run);
            }
            Replacer::Lirs(policy) => {
                policy.first_use(runs, run);
            }
        }
    }

    /// Takes in as many as it can at once of some blocks that are not here, and gives how many: none, if nothing may be
    /// evicted for them.
    pub(crate) fn admit(&mut self, runs: &mut Runs, incoming: Incoming) -> u64 {
        match self {
            Replacer::Recency(policy) => policy.admit(runs, incoming),
            Replacer::Clock(policy) => policy.admit(runs, incoming),
            Replacer::Segmented(policy) => policy.admit(runs, incoming),
            Replacer::Arc(policy) => policy.admit(runs, incoming),
            Replacer::Lirs(policy) => policy.admit(runs, incoming),
        }
    }

    /// Number of blocks that are here.
    pub(crate) fn resident(&self, runs: &Runs) -> u64 {
        match self {
            Replacer::Recency(_) | Replacer::Clock(_) => runs.blocks(Rail::Main, 0),
            Replacer::Segmented(policy) => policy.resident(),
            Replacer::Arc(policy) => policy.resident(runs),
            Replacer::Lirs(policy) => policy.resident(),
        }
    }

    /// Forgets a run of blocks that were here: they are not evicted but gone.
    pub(crate) fn forget(&mut self, runs: &mut Runs, run: RunId) {
        match self {
            Replacer::Segmented(policy) => policy.forget(runs, run),
            Replacer::Lirs(policy) => policy.forget(runs, run),
            Replacer::Recency(_) | Replacer::Clock(_) | Replacer::Arc(_) => runs.remove(run),
        }
    }
}

/// Whether a run may be evicted (for the sake of `evict_from`).
fn evictable(run: &Run, evict_from: Option<u32>) -> bool {
    run.traits.data == Data::Clean && evict_from.is_none_or(|owner| run.traits.owner == owner)
}

/// The coldest run of a list that may be evicted.
fn coldest(runs: &Runs, rail: Rail, list: ListId, evict_from: Option<u32>) -> Option<RunId> {
    let mut run = runs.first(rail, list)?;
    while !evictable(runs.get(run), evict_from) {
        run = runs.next(rail, run)?;
    }
    Some(run)
}
