//! The strategies by name.

use std::fmt;
use std::str::FromStr;

/// The strategies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Every rank makes one request for each contiguous piece of its own access.
    Independent,
    /// Every rank reads (and for a write, writes back) large intervals, and picks its pieces out of them in memory.
    Sieving,
    /// Every rank makes requests that each list many pieces.
    List,
    /// Ranks exchange data so that a few aggregators make few, large, contiguous requests.
    TwoPhase,
    /// Two-phase, the views exchanged once, when they are set.
    ViewBased,
    /// Every rank sends its data and its view to the I/O servers, which put the pieces in place.
    Ecio,
    /// The cheapest of the others, operation by operation.
    Auto,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 7] = [
        Strategy::Independent,
        Strategy::Sieving,
        Strategy::List,
        Strategy::TwoPhase,
        Strategy::ViewBased,
        Strategy::Ecio,
        Strategy::Auto,
    ];

    /// The name users type and see.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Independent => "independent",
            Strategy::Sieving => "sieving",
            Strategy::List => "list",
            Strategy::TwoPhase => "two-phase",
            Strategy::ViewBased => "view-based",
            Strategy::Ecio => "ecio",
            Strategy::Auto => "auto",
        }
    }

    /// Whether the ranks tell each other their views when these are set.
    pub fn exchanges_views(self) -> bool {
        self == Strategy::ViewBased
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
            format!("unknown strategy '{name}' (expected one of {})", known.join(", "))
        })
    }
}
