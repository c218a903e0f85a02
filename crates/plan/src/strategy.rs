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
    /// What ROMIO, the MPI-IO of MPICH and of the libraries made from it, does by itself.
    Romio,
    /// What OMPIO, the MPI-IO of Open MPI, does by itself.
    Ompio,
}

impl Strategy {
    /// Every strategy that can be applied.
    pub const ALL: [Strategy; 7] = [
        Strategy::Independent,
        Strategy::Sieving,
        Strategy::List,
        Strategy::TwoPhase,
        Strategy::ViewBased,
        Strategy::Ecio,
        Strategy::Auto,
    ];

    /// What MPI libraries do by themselves: to apply them is to leave the library alone, but for hints.
    pub const OWN: [Strategy; 2] = [Strategy::Romio, Strategy::Ompio];

    /// The strategy with this name, one of [`Strategy::ALL`] or [`Strategy::OWN`]: all that can be predicted.
    ///
    /// # Errors
    /// The text names those that there are.
    pub fn to_predict(name: &str) -> Result<Strategy, String> {
        let all = || Strategy::ALL.into_iter().chain(Strategy::OWN);
        all().find(|strategy| strategy.name() == name).ok_or_else(|| unknown(name, all()))
    }

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
            Strategy::Romio => "romio",
            Strategy::Ompio => "ompio",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// One that Pioscope's own library carries out.
impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        if Strategy::OWN.iter().any(|strategy| strategy.name() == name) {
            return Err(format!(
                "'{name}' is what the MPI library does by itself: Pioscope's library does not carry it out"
            ));
        }
        let known = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        known.ok_or_else(|| unknown(name, Strategy::ALL))
    }
}

fn unknown(name: &str, known: impl IntoIterator<Item = Strategy>) -> String {
    let known: Vec<&str> = known.into_iter().map(Strategy::name).collect();
    format!("unknown strategy '{name}' (expected one of {})", known.join(", "))
}
