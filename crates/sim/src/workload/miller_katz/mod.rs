//! The seven applications of Miller and Katz (1991), as their tables and text describe them.
//!
//! Nobody has the traces any more. Sizes, numbers and times come from the paper's two tables ([`PUBLISHED`]), what comes
//! when from its text, and what that leaves open is assumed ([`Profile`]).

mod entries;
mod generate;
mod profile;
mod tables;

pub(super) use entries::ENTRIES;
pub use profile::{Class, Profile};
pub use tables::{PUBLISHED, Published};

use crate::error::SimError;
use crate::workload::steps::Workload;

/// One of the seven as a workload of one process, with think times.
///
/// # Errors
/// If none is called `name`.
pub fn application(name: &str) -> Result<Workload, SimError> {
    let published = find(name)?;
    Ok(generate::workload(published, &Profile::of(published)))
}

/// The same, its I/O going another way.
///
/// # Errors
/// If none is called `name`, or the profile's numbers make no program.
pub fn application_with(name: &str, profile: &Profile) -> Result<Workload, SimError> {
    let published = find(name)?;
    let wrong = |what, found: String, expected: &str| SimError::Workload {
        workload: name.to_owned(),
        what,
        found,
        expected: expected.to_owned(),
    };
    if !(1..=1024).contains(&profile.files) {
        return Err(wrong("files", profile.files.to_string(), "from 1 to 1024"));
    }
    if profile.run == 0 {
        return Err(wrong("run", profile.run.to_string(), "at least 1 request"));
    }
    let most = if profile.class == Class::Required { 0.5 } else { 1.0 };
    if !(profile.burst > 0.0 && profile.burst <= most) {
        return Err(wrong("burst", profile.burst.to_string(), &format!("above 0, at most {most}")));
    }
    Ok(generate::workload(published, profile))
}

/// What is printed of one of the seven.
///
/// # Errors
/// If none is called `name`.
pub fn find(name: &str) -> Result<&'static Published, SimError> {
    PUBLISHED.iter().find(|one| one.name == name).ok_or_else(|| SimError::Workload {
        workload: name.to_owned(),
        what: "name",
        found: name.to_owned(),
        expected: PUBLISHED.map(|one| one.name).join(", "),
    })
}
