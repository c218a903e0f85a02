//! The arm of a server's disk, where what several clients ask for lies beside each other.

use crate::error::MachineError;
use crate::quantity::Duration;
use crate::section::Section;

/// How a server goes about what waits with it, if its disk has an arm: one request's part after the other, each in one go.
/// Of those that wait it knows the first few, and goes on with the one that lies behind what it served last. If that one is
/// not among them, its arm moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Of how many parts that wait it knows where they lie.
    pub reach: u32,
    /// What it takes to move the arm to another part: seek and rotation.
    pub seek: Duration,
}

impl Arm {
    /// What a part takes beyond its bytes, where so many wait, itself counted. Parts come in no order, so the one that lies behind
    /// the last is among the first `reach` of `waiting` in `reach` of `waiting` cases. This is the mean.
    pub fn seek_among(&self, waiting: u64) -> Duration {
        let beyond = waiting.saturating_sub(u64::from(self.reach));
        let all = u128::from(self.seek.picoseconds()) * u128::from(beyond);
        Duration::from_picoseconds((all / u128::from(waiting.max(1))) as u64)
    }

    pub(crate) fn read(mut section: Section<'_>) -> Result<Arm, MachineError> {
        let arm =
            Arm { reach: section.number("reach", 1..=1 << 20)?, seek: section.duration("seek", "10 s")? };
        section.finish()?;
        Ok(arm)
    }

    pub(crate) fn text(&self) -> String {
        format!("{{ reach = {}, seek = \"{}\" }}", self.reach, self.seek)
    }
}
