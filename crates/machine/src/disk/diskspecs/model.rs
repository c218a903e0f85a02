//! The block `dm_disk`: surfaces, layout and mechanics.

use super::fields::Fields;
use super::{indexed, mechanics, zoned};
use crate::disk::{Layout, Mechanics};
use crate::error::MachineError;

/// What a `dm_disk` says.
pub(super) struct Model {
    pub(super) name: String,
    pub(super) surfaces: u32,
    pub(super) cylinders: u32,
    pub(super) blocks: u64,
    pub(super) layout: Layout,
    pub(super) mechanics: Mechanics,
    pub(super) not_modelled: Vec<String>,
}

pub(super) fn read(fields: Fields<'_>) -> Result<Model, MachineError> {
    if fields.block.kind != "dm_disk" {
        return Err(fields.wrong_kind("dm_disk"));
    }
    let surfaces = fields.count("Number of data surfaces", 1..=1024)?;
    let cylinders = fields.count("Number of cylinders", 1..=100_000_000)?;
    let blocks = fields.integer("Block count", 1..=1 << 50)?;
    let (layout, mut not_modelled) = layout(fields.block_of("Layout Model", &[])?, surfaces, cylinders)?;
    let found = match &layout {
        Layout::Zoned(zoned) => zoned.cylinders(),
        Layout::Indexed(_) => 0,
    };
    if found > cylinders {
        not_modelled
            .push(format!("Number of cylinders = {cylinders}: its zones have {found}, which are taken"));
    }
    let cylinders = cylinders.max(found);
    let mechanical = Fields::new(fields.block_of("Mechanical Model", &[])?);
    let (mechanics, left_out) = mechanics::read(mechanical, cylinders)?;
    not_modelled.extend(left_out);
    let name = fields.block.name.clone();
    not_modelled.extend(fields.finish(&[])?);
    Ok(Model { name, surfaces, cylinders, blocks, layout, mechanics, not_modelled })
}

/// The layout, and what of it is not modelled.
fn layout(
    block: &super::Block,
    surfaces: u32,
    cylinders: u32,
) -> Result<(Layout, Vec<String>), MachineError> {
    let fields = Fields::new(block);
    match block.kind.as_str() {
        "dm_layout_g1" => {
            let (layout, not_modelled) = zoned::read(fields, surfaces, cylinders)?;
            Ok((Layout::Zoned(layout), not_modelled))
        }
        "dm_layout_g4" => Ok((Layout::Indexed(indexed::read(fields, surfaces, cylinders)?), Vec::new())),
        _ => Err(fields.wrong_kind("dm_layout_g1 or dm_layout_g4")),
    }
}
