//! k-ary n-flies.
//!
//! A wire keeps its number, `stages` digits of base `arity`, from stage to stage. Stage `s` joins the wires that differ in
//! digit `stages` - 1 - `s` alone in one switch, which sets that digit to the destination's: it is the output port's number.
//! The wire that leaves the last stage has the destination's number.

use super::error::{TopologyError, nodes_of, within};
use super::picture::{Place, rise};
use super::wiring::Wiring;
use super::{Device, Routing};

#[derive(Debug)]
pub(super) struct Fly {
    arity: u32,
    stages: u32,
    /// Switches of a stage.
    width: u32,
}

impl Fly {
    pub(super) fn wire(arity: u32, stages: u32) -> Result<(Wiring, Fly), TopologyError> {
        const KIND: &str = "fly";
        let arity = within(KIND, "arity", arity, 2..=1024)?;
        let stages = within(KIND, "stages", stages, 1..=20)?;
        let nodes = nodes_of(KIND, arity, stages, "stages")?;
        let fly = Fly { arity, stages, width: nodes / arity };
        let mut wiring = Wiring::new(nodes, stages * fly.width);
        for wire in 0..nodes {
            wiring.channel(Device::Node(wire), fly.switch(0, wire));
        }
        for stage in 1..stages {
            for wire in 0..nodes {
                wiring.channel(fly.switch(stage - 1, wire), fly.switch(stage, wire));
            }
        }
        for wire in 0..nodes {
            wiring.channel(fly.switch(stages - 1, wire), Device::Node(wire));
        }
        Ok((wiring, fly))
    }

    /// The switch of `stage` that `wire` goes through: the wire's number without the stage's digit.
    fn switch(&self, stage: u32, wire: u32) -> Device {
        let weight = self.weight(stage);
        let number = wire / (weight * self.arity) * weight + wire % weight;
        Device::Switch(stage * self.width + number)
    }

    /// How far to the right a stage is drawn.
    fn column(&self, stage: u32) -> f64 {
        4.0 + f64::from(stage) * rise(self.width * self.arity) * 2.0
    }

    fn weight(&self, stage: u32) -> u32 {
        self.arity.pow(self.stages - 1 - stage)
    }
}

impl Routing for Fly {
    fn candidates(&self, switch: u32, destination: u32, out: &mut Vec<u16>) {
        out.push(self.port(switch, destination));
    }

    fn port(&self, switch: u32, destination: u32) -> u16 {
        (destination / self.weight(switch / self.width) % self.arity) as u16
    }

    /// From the nodes on the left, through the stages, to the same nodes on the right.
    fn place(&self, device: Device) -> Place {
        match device {
            Device::Node(node) => Place::new(0.0, f64::from(node)),
            Device::Switch(switch) => {
                let (stage, number) = (switch / self.width, switch % self.width);
                Place::new(self.column(stage), (f64::from(number) + 0.5) * f64::from(self.arity) - 0.5)
            }
        }
    }

    fn receiver(&self, node: u32) -> Option<Place> {
        Some(Place::new(self.column(self.stages - 1) + 4.0, f64::from(node)))
    }
}
