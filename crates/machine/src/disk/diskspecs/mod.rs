//! Reads a drive's specification in the format of DiskSim 4.0: a `.diskspecs` file, the `.model` file that it names, and
//! the `.seek` file that this names. `docs/design/disks.md` lists the keys.
//!
//! Every value is checked; an error names file, line, key and what is allowed. A key that DiskSim has and the drive model
//! does not know is kept by name in [`Drive::not_modelled`](super::Drive::not_modelled) unless its value asks for nothing.

mod controller;
mod curve;
mod fields;
mod indexed;
mod mechanics;
mod model;
mod text;
mod zoned;

use std::num::NonZeroUsize;
use std::path::Path;

use super::Drive;
use crate::error::MachineError;
use fields::Fields;
use text::Block;

/// Reads the one drive of a `.diskspecs` file.
///
/// # Errors
/// If a file cannot be read, or something in it is wrong: names file, line, and what is allowed.
pub fn load(path: &Path) -> Result<Drive, MachineError> {
    let blocks = text::read(path)?;
    let disks: Vec<&Block> = blocks.iter().filter(|block| block.kind == "disksim_disk").collect();
    let [disk] = disks.as_slice() else {
        return Err(MachineError::Syntax {
            file: path.display().to_string(),
            line: NonZeroUsize::new(disks.get(1).map_or(1, |second| second.line)),
            message: format!("{} disksim_disk blocks: expected one drive a file", disks.len()),
        });
    };
    let models: Vec<&Block> = blocks.iter().filter(|block| block.kind == "dm_disk").collect();
    controller::drive(Fields::new(disk), &models)
}
