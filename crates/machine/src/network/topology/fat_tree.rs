//! The shape of a fat tree: as many links up as down, or fewer.

use std::fmt::{self, Write};
use std::ops::RangeInclusive;

use super::{ARITIES, LEVELS, check_power};
use crate::error::MachineError;
use crate::machine::MOST_NODES;
use crate::section::Section;

/// The links of a fat tree's switches: the extended generalised fat tree of Öhring et al. (IPPS 1995), of which the k-ary
/// n-tree is the case with as many links on either side at all levels. The nodes are the product of `downlinks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Links of a switch to the level below it, from the level next to the nodes to the top.
    pub downlinks: Vec<u32>,
    /// Links of a switch to the level above it, one number for each level but the top. Where they are fewer than
    /// `downlinks` of that level, the level is oversubscribed.
    pub uplinks: Vec<u32>,
}

const UPLINKS: RangeInclusive<u32> = 1..=1024;

impl FatTree {
    /// The k-ary n-tree: `arity`^`levels` nodes.
    pub fn k_ary(arity: u32, levels: u32) -> FatTree {
        let above = levels.saturating_sub(1) as usize;
        FatTree { downlinks: vec![arity; levels as usize], uplinks: vec![arity; above] }
    }

    /// Arity, at least 2, and levels of a k-ary n-tree; none if it is not one.
    pub fn as_k_ary(&self) -> Option<(u32, u32)> {
        let arity = *self.downlinks.first()?;
        let is_k_ary = arity > 1 && self.downlinks.iter().chain(&self.uplinks).all(|links| *links == arity);
        is_k_ary.then_some((arity, self.downlinks.len() as u32))
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u64 {
        product(&self.downlinks)
    }

    /// How many switches there are, level by level.
    pub fn switches(&self) -> impl Iterator<Item = u64> {
        let above = |level: usize| product(&self.downlinks[level + 1..]);
        let each = |level: usize| product(&self.uplinks[..level.min(self.uplinks.len())]);
        (0..self.downlinks.len()).map(move |level| above(level).saturating_mul(each(level)))
    }

    pub(super) fn read(section: &mut Section<'_>) -> Result<FatTree, MachineError> {
        let mut tree = if section.has("downlinks") {
            let downlinks = section.numbers("downlinks", 1..=20, UPLINKS)?;
            if product(&downlinks) > MOST_NODES.into() {
                return Err(section.conflict("downlinks", format!("a product of at most {MOST_NODES}")));
            }
            let uplinks = downlinks[..downlinks.len() - 1].to_vec();
            FatTree { downlinks, uplinks }
        } else {
            let (arity, levels) = (section.number("arity", ARITIES)?, section.number("levels", LEVELS)?);
            check_power(section, "levels", arity, levels)?;
            FatTree::k_ary(arity, levels)
        };
        if section.has("uplinks") {
            let above = tree.uplinks.len();
            tree.uplinks = section.numbers("uplinks", above..=above, UPLINKS)?;
        }
        // Those of a k-ary tree are fewer than its nodes times its levels.
        let switches = tree.switches().fold(0, u64::saturating_add);
        if tree.as_k_ary().is_none() && switches > MOST_NODES.into() {
            let key = if section.has("uplinks") { "uplinks" } else { size_key(section) };
            return Err(section.conflict(key, format!("at most {MOST_NODES} switches in all")));
        }
        Ok(tree)
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "kind = \"fat-tree\"")?;
        match self.as_k_ary() {
            Some((arity, levels)) => writeln!(out, "arity = {arity}\nlevels = {levels}"),
            None => writeln!(out, "downlinks = {:?}\nuplinks = {:?}", self.downlinks, self.uplinks),
        }
    }
}

/// The key that says how large a described tree is.
pub(super) fn size_key(section: &mut Section<'_>) -> &'static str {
    if section.has("downlinks") { "downlinks" } else { "levels" }
}

fn product(factors: &[u32]) -> u64 {
    factors.iter().fold(1, |product, factor| u64::from(*factor).saturating_mul(product))
}
