//! What all studies speak in: a statement of a paper, what is computed for it, how the two compare, and what the
//! comparison is worth.

/// The day on which the results that the models had not been given were looked up. Whatever has [`Published::Nothing`]
/// although its paper prints it was predicted before, and is as it was then.
pub const LOOKED_UP: &str = "23 November 2026";

/// A result that a paper states, and what is computed for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where the paper has it: a section, a table, a figure, or a case that it runs.
    pub place: &'static str,
    /// What it is about; empty if the published words say that themselves.
    pub what: String,
    /// What the paper says.
    pub published: Published,
    /// What is computed.
    pub computed: Computed,
    /// How the two compare.
    pub verdict: Verdict,
    /// What the comparison is worth.
    pub basis: Basis,
}

/// What a paper says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A number, in the unit of what is computed.
    Number(f64),
    /// A bound from below, in the unit of what is computed.
    AtLeast(f64),
    /// Words.
    Words(&'static str),
    /// Nothing that we knew: it was predicted before it was looked up ([`LOOKED_UP`]), or was never printed.
    Nothing,
}

/// What is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// A number and its unit; the unit is empty for counts and ratios.
    Number(f64, &'static str),
    /// Several numbers, or how they go together, in words.
    Words(String),
}

/// How published and computed compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The computed number is off by this part of the published one.
    Error(f64),
    /// It is as the paper says.
    Holds,
    /// It is not.
    Fails,
    /// Nothing is published to compare with, or nothing that a number could contradict.
    Open,
}

/// How a computed result came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It follows from the description: no parameter can change it.
    Exact,
    /// A parameter was fitted to what is published.
    Calibrated,
    /// Nothing was fitted to it.
    Predicted,
}

impl Statement {
    /// A published number, and the computed one in the same unit.
    pub fn number(
        place: &'static str,
        what: impl Into<String>,
        published: f64,
        computed: f64,
        unit: &'static str,
        basis: Basis,
    ) -> Statement {
        Statement {
            place,
            what: what.into(),
            published: Published::Number(published),
            computed: Computed::Number(computed, unit),
            verdict: Verdict::error(published, computed),
            basis,
        }
    }

    /// How far the computed number is off, as a part of the published one, if both are numbers.
    pub fn error(&self) -> Option<f64> {
        match self.verdict {
            Verdict::Error(error) => Some(error),
            _ => None,
        }
    }

    /// The same as tables have it: a dash where there is nothing to compare.
    pub(crate) fn error_cell(&self) -> String {
        self.error().map_or_else(|| "–".to_owned(), |error| format!("{:+.1} %", error * 100.0))
    }

    /// The verdict as tables have it.
    pub(crate) fn verdict_cell(&self) -> String {
        match self.verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Fails => "DOES NOT HOLD".to_owned(),
            Verdict::Error(_) | Verdict::Open => self.error_cell(),
        }
    }
}

impl Computed {
    /// The number, if it is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Computed::Number(value, _) => Some(*value),
            Computed::Words(_) => None,
        }
    }
}

impl From<String> for Computed {
    fn from(words: String) -> Computed {
        Computed::Words(words)
    }
}

impl Verdict {
    /// How far a computed number is off; open beside a published 0, of which nothing is a part.
    pub fn error(published: f64, computed: f64) -> Verdict {
        if published == 0.0 { Verdict::Open } else { Verdict::Error(computed / published - 1.0) }
    }

    /// Whether it is as the paper says.
    pub fn of(it_holds: bool) -> Verdict {
        if it_holds { Verdict::Holds } else { Verdict::Fails }
    }
}

impl Basis {
    /// Its name, as tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Exact => "exact",
            Basis::Calibrated => "calibrated",
            Basis::Predicted => "predicted",
        }
    }
}
