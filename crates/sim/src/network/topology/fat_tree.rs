//! k-ary n-trees.
//!
//! Level 0 is next to the nodes. The switches of a level are numbered by `levels - 1` digits of base `arity`; a switch of
//! level `l` and one of level `l + 1` are linked if they agree in all digits but digit `l`. Node `n` is on switch
//! `n / arity` of level 0. Ports 0 to `arity` - 1 lead down: port `j` of level `l` to the switch whose digit `l` - 1 is
//! `j`, or to the node whose digit 0 is `j`. Ports `arity` + `j` lead up, to the switch whose digit `l` is `j`.

use super::error::{TopologyError, nodes_of, within};
use super::picture::{Place, rise};
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct FatTree {
    arity: u32,
    levels: u32,
    /// Switches of a level.
    width: u32,
    /// Powers of `arity`, from 0 to `levels`.
    powers: Vec<u32>,
}

impl FatTree {
    pub(super) fn wire(arity: u32, levels: u32) -> Result<(Wiring, FatTree), TopologyError> {
        const KIND: &str = "fat-tree";
        let arity = within(KIND, "arity", arity, 2..=1024)?;
        let levels = within(KIND, "levels", levels, 1..=20)?;
        let nodes = nodes_of(KIND, arity, levels, "levels")?;
        let powers: Vec<u32> = (0..=levels).map(|power| arity.pow(power)).collect();
        let width = nodes / arity;
        let tree = FatTree { arity, levels, width, powers };
        let mut wiring = Wiring::new(nodes, levels * width);
        for node in 0..nodes {
            wiring.link(Device::Node(node), Device::Switch(node / arity));
        }
        for level in 0..levels - 1 {
            let weight = tree.powers[level as usize];
            for lower in 0..width {
                let without_digit = lower - tree.digit(lower, level) * weight;
                for digit in 0..arity {
                    let upper = without_digit + digit * weight;
                    let lower = Device::Switch(level * width + lower);
                    wiring.link(lower, Device::Switch((level + 1) * width + upper));
                }
            }
        }
        Ok((wiring, tree))
    }

    fn digit(&self, number: u32, place: u32) -> u32 {
        number / self.powers[place as usize] % self.arity
    }

    /// The port down, if the destination is below the switch.
    fn down(&self, switch: u32, destination: u32) -> Option<u16> {
        let (level, number) = (switch / self.width, switch % self.width);
        let span = self.powers[level as usize];
        let is_below = number / span == destination / self.arity / span;
        is_below.then(|| self.digit(destination, level) as u16)
    }
}

impl Routing for FatTree {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        match self.down(switch, destination) {
            Some(port) => out.push(port),
            None => out.extend(self.arity as u16..2 * self.arity as u16),
        }
    }

    /// Up by the destination's digits (Zahavi's d-mod-k): what goes to one node meets early and disturbs no other, and
    /// shifts of all nodes by the same distance do not meet at all.
    fn port(&self, switch: u32, destination: u32) -> u16 {
        let up = || self.arity + self.digit(destination, switch / self.width);
        self.down(switch, destination).unwrap_or_else(|| up() as u16)
    }

    fn place(&self, device: Device) -> Place {
        let rise = rise(self.width * self.arity);
        let bottom = f64::from(self.levels - 1) * rise;
        match device {
            Device::Node(node) => Place::new(f64::from(node), bottom + rise.min(5.0)),
            Device::Switch(switch) => {
                let (level, number) = (switch / self.width, switch % self.width);
                let x = (f64::from(number) + 0.5) * f64::from(self.arity) - 0.5;
                Place::new(x, bottom - f64::from(level) * rise)
            }
        }
    }
}
