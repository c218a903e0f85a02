//! What the kernel refuses: writes to all but the copies and places for temporary files.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules,
};

/// Where programs may write what is not meant to last: `system_places` of `c/pio_scratch.c`.
const SYSTEM_PLACES: [&str; 7] = ["/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp", "/var/run"];

/// Rules by which only what is below `own` and the system's places can be changed; none if the kernel has no Landlock, or
/// one (before Linux 5.19) that would not let a job move a file from folder to folder.
pub(crate) fn rules(own: impl Iterator<Item = PathBuf>) -> Option<OwnedFd> {
    let system = SYSTEM_PLACES.iter().map(PathBuf::from).chain([std::env::temp_dir()]);
    let places: Vec<_> = own.chain(system).filter(|place| place.exists()).collect();
    let write = AccessFs::from_write(ABI::V3);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .ok()?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)
        .ok()?
        .create()
        .ok()?
        .add_rules(path_beneath_rules(places, write))
        .ok()?;
    rules.into()
}
