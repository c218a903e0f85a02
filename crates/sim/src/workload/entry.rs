//! A workload that can be generated, by name and parameters.

use super::parameter::{Parameter, Values};
use super::steps::Workload;
use crate::error::SimError;

/// A workload that can be generated.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Where its pattern is described.
    pub source: &'static str,
    /// What can be chosen.
    pub parameters: &'static [Parameter],
    /// Builds it from parameters that are all there and in their ranges.
    pub(crate) build: fn(&Values) -> Result<Workload, SimError>,
}

impl Entry {
    /// Builds the workload with the parameters `given` as (name, text), the others as by default.
    ///
    /// # Errors
    /// If a parameter is unknown, out of its range, or does not go with another.
    pub fn build(&self, given: &[(String, String)], seed: u64) -> Result<Workload, SimError> {
        let workload = (self.build)(&Values::read(self.name, self.parameters, given, seed)?)?;
        workload.check()?;
        Ok(workload)
    }
}
