//! The devices behind the nodes' own file systems.

use std::collections::BTreeMap;

use pio_machine::Duration;

use crate::kernel::Time;

/// Until when the device of each node is busy.
#[derive(Debug, Default)]
pub(super) struct Devices(BTreeMap<u32, Time>);

impl Devices {
    /// That of a node takes so long for what was asked for then. When it is through.
    pub(super) fn take(&mut self, node: u32, asked: Time, time: Duration) -> Time {
        let busy = self.0.entry(node).or_default();
        *busy = (*busy).max(asked) + time;
        *busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_serves_one_after_the_other() {
        let mut devices = Devices::default();
        let (at, takes) =
            (|seconds| Time::default() + Duration::from_seconds(seconds), Duration::from_seconds(2.0));
        assert_eq!(devices.take(0, at(1.0), takes), at(3.0));
        assert_eq!(devices.take(0, at(1.0), takes), at(5.0));
        assert_eq!(devices.take(0, at(9.0), takes), at(11.0));
        assert_eq!(devices.take(1, at(1.0), takes), at(3.0), "another node's");
    }
}
