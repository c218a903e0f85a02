//! Which output port a packet's head takes.

use std::collections::BTreeMap;

use pio_machine::Choice;

use crate::kernel::Stream;
use crate::network::topology::Topology;

/// A table of more entries would not pay: routes are worked out anew instead.
const MOST_ENTRIES: usize = 1 << 25;

/// Entries from here on are numbers of sets of ports, others are ports.
const SETS: u16 = 1 << 15;

/// Output ports by switch and destination.
#[derive(Debug)]
pub(super) struct Routes {
    topology: Topology,
    choice: Choice,
    destinations: usize,
    /// For each switch and destination, a port or a set of ports; empty if it would be too large.
    table: Vec<u16>,
    sets: Vec<Vec<u16>>,
    /// The candidates last worked out, where there is no table.
    candidates: Vec<u16>,
}

impl Routes {
    pub(super) fn of(topology: &Topology, choice: Choice) -> Routes {
        let destinations = topology.nodes() as usize;
        let entries = topology.switches() as usize * destinations;
        let mut routes = Routes {
            topology: topology.clone(),
            choice,
            destinations,
            table: Vec::new(),
            sets: Vec::new(),
            candidates: Vec::new(),
        };
        if entries <= MOST_ENTRIES {
            routes.fill();
        }
        routes
    }

    fn fill(&mut self) {
        let mut numbers: BTreeMap<Vec<u16>, u16> = BTreeMap::new();
        let mut ports = Vec::new();
        let mut table = Vec::new();
        for switch in 0..self.topology.switches() {
            for destination in 0..self.topology.nodes() {
                self.work_out(switch, destination, &mut ports);
                let next = SETS + numbers.len() as u16;
                let entry = match ports.as_slice() {
                    // Never asked for: the destination cannot be reached from here.
                    [] => 0,
                    [port] => *port,
                    _ => *numbers.entry(ports.clone()).or_insert(next),
                };
                table.push(entry);
                if numbers.len() >= usize::from(SETS) {
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
        let entry = self.table[switch as usize * self.destinations + destination as usize];
        if entry < SETS {
            return entry;
        }
        choose(self.choice, &self.sets[usize::from(entry - SETS)], stream, load)
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
