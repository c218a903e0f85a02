//! What the kernel refuses: writes to all but the copies and places for temporary files.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules,
};

/// Where programs may write what is not meant to last.
pub(crate) fn places_for_temporary_files() -> impl Iterator<Item = PathBuf> {
    let of_system = ["/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp", "/var/run"];
    of_system.map(PathBuf::from).into_iter().chain([std::env::temp_dir()])
}

/// Rules by which only what is below `own` and the system's places can be changed; none if the kernel has no Landlock, or
/// one (before Linux 5.19) that would not let a job move a file from folder to folder.
pub(crate) fn rules(own: impl Iterator<Item = PathBuf>) -> Option<OwnedFd> {
    let places: Vec<_> = own.chain(places_for_temporary_files()).filter(|place| place.exists()).collect();
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
