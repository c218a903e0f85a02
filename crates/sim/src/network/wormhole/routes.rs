//! Which output port a packet's head takes.

use std::collections::BTreeMap;

use pio_machine::Choice;

use crate::kernel::Stream;
use crate::network::topology::{Device, Topology};

/// A table of more entries would not pay, as each look at it would wait for memory: routes are worked out anew instead.
const MOST_ENTRIES: usize = 1 << 21;

/// Entries from here on are numbers of sets of ports, others are ports.
const SETS: u16 = 1 << 15;

/// The entry of the switch that the destination receives from.
const HOME: u16 = u16::MAX;

/// Output ports by switch and destination.
#[derive(Debug)]
pub(super) struct Routes {
    topology: Topology,
    choice: Choice,
    /// For each destination, the column of the table that has its ports: one for all nodes that receive from a switch
    /// where they have these ports in common, so that the table stays in the processor's cache.
    columns: Vec<u32>,
    /// For each destination, the port of the switch that it receives from.
    home_ports: Vec<u16>,
    /// How many columns there are.
    width: usize,
    /// For each switch and column, a port, a set of ports or [`HOME`]; empty if it would be too large.
    table: Vec<u16>,
    sets: Vec<Vec<u16>>,
    /// The candidates last worked out, where there is no table.
    candidates: Vec<u16>,
}

impl Routes {
    pub(super) fn of(topology: &Topology, choice: Choice) -> Routes {
        let mut routes = Routes {
            topology: topology.clone(),
            choice,
            columns: Vec::new(),
            home_ports: Vec::new(),
            width: 0,
            table: Vec::new(),
            sets: Vec::new(),
            candidates: Vec::new(),
        };
        let homes = routes.find_homes();
        if topology.switches() as usize * homes.len() <= MOST_ENTRIES {
            routes.fill(&homes);
        }
        routes
    }

    /// Gives each destination its column. For each column, one of its destinations, and the switch that all of them receive
    /// from; no switch where each destination has a column of its own.
    fn find_homes(&mut self) -> Vec<(u32, Option<u32>)> {
        // A static route may choose its way by the node.
        let is_by_switch = self.choice != Choice::Static && self.topology.is_by_switch();
        let mut of_switch: BTreeMap<u32, u32> = BTreeMap::new();
        let mut homes = Vec::new();
        for node in 0..self.topology.nodes() {
            let last = self.topology.incoming(Device::Node(node)).first();
            let end = last.map(|id| self.topology.channel(*id).from);
            let (column, port) = match end.map(|end| (end.device, end.number)) {
                Some((Device::Switch(switch), port)) if is_by_switch => {
                    let column = *of_switch.entry(switch).or_insert_with(|| {
                        homes.push((node, Some(switch)));
                        homes.len() as u32 - 1
                    });
                    (column, port)
                }
                _ => {
                    homes.push((node, None));
                    (homes.len() as u32 - 1, 0)
                }
            };
            self.columns.push(column);
            self.home_ports.push(port);
        }
        self.width = homes.len();
        homes
    }

    fn fill(&mut self, homes: &[(u32, Option<u32>)]) {
        let mut numbers: BTreeMap<Vec<u16>, u16> = BTreeMap::new();
        let mut ports = Vec::new();
        let mut table = Vec::new();
        for switch in 0..self.topology.switches() {
            for (destination, home) in homes {
                if *home == Some(switch) {
                    table.push(HOME);
                    continue;
                }
                self.work_out(switch, *destination, &mut ports);
                let next = SETS + numbers.len() as u16;
                let entry = match ports.as_slice() {
                    // Never asked for: the destination cannot be reached from here.
                    [] => 0,
                    [port] => *port,
                    _ => *numbers.entry(ports.clone()).or_insert(next),
                };
                table.push(entry);
                if SETS + numbers.len() as u16 == HOME {
                    return;
                }
            }
        }
        self.sets = vec![Vec::new(); numbers.len()];
        for (ports, number) in numbers {
            self.sets[usize::from(number - SETS)] = ports;
        }
        self.table = table;
    }

    fn work_out(&self, switch: u32, destination: u32, ports: &mut Vec<u16>) {
        if self.choice == Choice::Static {
            ports.clear();
            ports.push(self.topology.port(switch, destination));
        } else {
            self.topology.candidates(switch, destination, ports);
        }
    }

    /// Reads what [`Routes::port`] would look at, where that is a table.
    #[inline]
    pub(super) fn read_ahead(&self, switch: u32, destination: u32) -> u16 {
        let column = self.columns[destination as usize] as usize;
        self.table.get(switch as usize * self.width + column).copied().unwrap_or(0)
    }

    /// The output port of `switch` for a head to node `destination`; `load` tells what is on the way behind a port.
    #[inline]
    pub(super) fn port(
        &mut self,
        switch: u32,
        destination: u32,
        stream: &mut Stream,
        load: impl Fn(u16) -> u32,
    ) -> u16 {
        if self.table.is_empty() {
            let mut candidates = std::mem::take(&mut self.candidates);
            self.work_out(switch, destination, &mut candidates);
            let port = choose(self.choice, &candidates, stream, load);
            self.candidates = candidates;
            return port;
        }
        let column = self.columns[destination as usize] as usize;
        let entry = self.table[switch as usize * self.width + column];
        match entry {
            HOME => self.home_ports[destination as usize],
            SETS.. => choose(self.choice, &self.sets[usize::from(entry - SETS)], stream, load),
            port => port,
        }
    }
}

fn choose(choice: Choice, ports: &[u16], stream: &mut Stream, load: impl Fn(u16) -> u32) -> u16 {
    let any = |stream: &mut Stream| ports[stream.below(ports.len() as u64) as usize];
    match choice {
        _ if ports.len() == 1 => ports[0],
        Choice::Static => ports[0],
        Choice::Random => any(stream),
        Choice::TwoRandom => {
            let (first, second) = (any(stream), any(stream));
            if load(first) > load(second) { second } else { first }
        }
        Choice::LeastLoaded => {
            let least = ports.iter().map(|port| load(*port)).min().unwrap_or(0);
            let equal = ports.iter().filter(|port| load(**port) == least);
            let chosen = stream.below(equal.clone().count() as u64) as usize;
            equal.clone().nth(chosen).copied().unwrap_or(ports[0])
        }
    }
}
