//! What can be chosen of a generated workload: each parameter has a name, a unit and a range.

use std::collections::BTreeMap;
use std::fmt;

use pio_layout::LayoutError;
use pio_machine::{Duration, parse_size};

use crate::error::SimError;

/// Calls of a workload at most: some 1.2 GB.
const MOST_CALLS: u64 = 1 << 24;

/// A parameter of a generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// What it is by default, as a user would write it.
    pub default: &'static str,
}

/// What a parameter can be, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number.
    Count(u64, u64),
    /// A number without unit.
    Number(f64, f64),
    /// A size, with its unit, between these numbers of bytes.
    Size(u64, u64),
    /// A time, with its unit, between these.
    Time(&'static str, &'static str),
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The parameters of a workload to be built, all of them there and within their range.
#[derive(Clone, Debug)]
pub struct Values {
    workload: &'static str,
    seed: u64,
    values: BTreeMap<&'static str, Value>,
    /// What was given, or is by default, in the order of the parameters.
    texts: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Count(u64),
    Number(f64),
    Time(Duration),
    Word(&'static str),
}

impl Values {
    /// What was `given` as names and texts, and the defaults for what was not.
    ///
    /// # Errors
    /// If a name is not that of a parameter, or a text not what its parameter can be.
    pub(super) fn read(
        workload: &'static str,
        parameters: &[Parameter],
        given: &[(String, String)],
        seed: u64,
    ) -> Result<Values, SimError> {
        let known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
        if let Some((name, _)) = given.iter().find(|(name, _)| !known(name)) {
            let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
            return Err(SimError::UnknownParameter {
                workload: workload.to_owned(),
                name: name.clone(),
                known: known.join(", "),
            });
        }
        let mut values = BTreeMap::new();
        let mut texts = Vec::new();
        for parameter in parameters {
            // The last one counts, as with the options of commands.
            let text = given.iter().rev().find(|(name, _)| name == parameter.name);
            let text = text.map_or(parameter.default, |(_, text)| text.as_str());
            let value = parameter.kind.read(text).ok_or_else(|| SimError::Workload {
                workload: workload.to_owned(),
                what: parameter.name,
                found: text.to_owned(),
                expected: parameter.kind.expected(),
            })?;
            values.insert(parameter.name, value);
            texts.push((parameter.name, text.trim().to_owned()));
        }
        Ok(Values { workload, seed, values, texts })
    }

    /// The seed of the workload's random streams.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A whole number, or a size in bytes.
    ///
    /// # Panics
    /// As all of these: if the generator does not have the parameter, or as another kind.
    pub fn count(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Count(count) => count,
            other => self.mistaken(name, other),
        }
    }

    /// A whole number below 2^32, as the parameter's range guarantees.
    pub fn ranks(&self, name: &str) -> u32 {
        self.count(name).try_into().unwrap_or(u32::MAX)
    }

    /// A number.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => number,
            other => self.mistaken(name, other),
        }
    }

    /// A time.
    pub fn time(&self, name: &str) -> Duration {
        match self.value(name) {
            Value::Time(time) => time,
            other => self.mistaken(name, other),
        }
    }

    /// A word.
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Word(word) => word,
            other => self.mistaken(name, other),
        }
    }

    /// The error for a parameter that does not go with the others.
    pub fn wrong(&self, what: &'static str, found: impl ToString, expected: impl Into<String>) -> SimError {
        SimError::Workload {
            workload: self.workload.to_owned(),
            what,
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// The error for a layout that cannot be.
    pub(super) fn layout(&self, source: LayoutError) -> SimError {
        SimError::Layout { workload: self.workload.to_owned(), source }
    }

    /// Refuses a workload of more calls than memory should hold.
    pub(super) fn check_calls(&self, calls: u64) -> Result<(), SimError> {
        if calls > MOST_CALLS {
            return Err(self.wrong("calls", calls, format!("at most {MOST_CALLS}: a smaller workload")));
        }
        Ok(())
    }

    /// Refuses a file that is larger than files can be: the product of these numbers.
    pub(super) fn check_file(&self, factors: &[u64]) -> Result<(), SimError> {
        let size = factors.iter().try_fold(1_u64, |product, factor| product.checked_mul(*factor));
        if size.is_some_and(|size| i64::try_from(size).is_ok()) {
            return Ok(());
        }
        let found = factors.iter().map(u64::to_string).collect::<Vec<_>>().join(" * ");
        Err(self.wrong("bytes of a file", found, "less than 2^63"))
    }

    fn value(&self, name: &str) -> Value {
        let value = self.values.get(name).copied();
        value.unwrap_or_else(|| panic!("the generator {} has no parameter {name}", self.workload))
    }

    fn mistaken(&self, name: &str, found: Value) -> ! {
        panic!("the generator {} takes {name} for something else than {found:?}", self.workload)
    }
}

impl fmt::Display for Values {
    /// The workload's name, and its parameters: what a trace that is made of it says of itself.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.workload)?;
        self.texts.iter().try_for_each(|(name, text)| write!(out, " {name}={text}"))
    }
}

impl Kind {
    /// What a user is told to write.
    pub fn expected(&self) -> String {
        match self {
            Kind::Count(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Number(least, most) => format!("a number from {least} to {most}"),
            Kind::Size(least, most) => {
                format!("a size with its unit (B, kB, KiB, MB, MiB, ...) from {least} B to {most} B")
            }
            Kind::Time(least, most) => {
                format!("a time with its unit (s, ms, us, ns, ps) from {least} to {most}")
            }
            Kind::Word(words) => words.join(" or "),
        }
    }

    fn read(&self, text: &str) -> Option<Value> {
        match self {
            Kind::Count(least, most) => {
                let count = text.trim().parse().ok()?;
                (least..=most).contains(&&count).then_some(Value::Count(count))
            }
            Kind::Number(least, most) => {
                let number = text.trim().parse().ok()?;
                (least..=most).contains(&&number).then_some(Value::Number(number))
            }
            Kind::Size(least, most) => {
                let size = parse_size(text)?;
                (least..=most).contains(&&size).then_some(Value::Count(size))
            }
            Kind::Time(least, most) => {
                let time = Duration::parse(text)?;
                let range = Duration::parse(least)?..=Duration::parse(most)?;
                range.contains(&time).then_some(Value::Time(time))
            }
            Kind::Word(words) => {
                words.iter().find(|word| **word == text.trim()).map(|word| Value::Word(word))
            }
        }
    }
}
