//! Where a log stops being readable.

use std::fmt;

/// Bytes of a log that are not what they must be. What came before them in their region is used, and so are all other
/// regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// What was being read: `the job record`, `the names`, `module POSIX`.
    pub region: String,
    /// Offset in the file of the compressed bytes that could not be used.
    pub offset: u64,
    /// What should have been there, and what was instead if that helps.
    pub expected: String,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogDamage { region, offset, expected } = self;
        write!(f, "{region}, at byte {offset}: expected {expected}")
    }
}
