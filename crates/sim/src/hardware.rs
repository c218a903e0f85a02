//! What the processes share beside processors (see [`crate::processors`]): the directory, and the I/O servers.

use pio_layout::Striping;
use pio_machine::{Duration, IoNodePlacement, Machine};

use crate::error::SimError;
use crate::kernel::{Queue, Time};
use crate::server::Server;

/// The machine at work.
pub(crate) struct Hardware {
    /// Compute nodes and I/O nodes.
    nodes: u32,
    /// Node of each compute node's number.
    compute: Vec<u32>,
    pub(crate) servers: Vec<Server>,
    /// Nodes of the I/O servers, those of a parallel file system included.
    pub(crate) io_nodes: Vec<u32>,
    directory: Queue,
    /// Closes, where they have a queue of their own.
    closes: Queue,
}

impl Hardware {
    pub(crate) fn new(machine: &Machine) -> Result<Hardware, SimError> {
        let io = machine.storage.io_nodes();
        let dedicated = io.filter(|io| io.dedicated).map_or(0, |io| io.count);
        let total = machine.nodes.count + dedicated;
        let servers: Vec<u32> = io.map_or_else(Vec::new, |io| {
            let place = |server: u32| match io.placement {
                IoNodePlacement::Clustered if io.count <= total => total - io.count + server,
                // The middle of the server's share of the nodes.
                IoNodePlacement::Distributed | IoNodePlacement::Clustered => {
                    ((u64::from(server) * 2 + 1) * u64::from(total) / (u64::from(io.count) * 2)) as u32
                }
            };
            (0..io.count).map(place).collect()
        });
        let is_apart = |node: &u32| dedicated == 0 || servers.binary_search(node).is_err();
        let places: Vec<Option<Server>> =
            servers.iter().map(|node| Server::new(machine, *node)).collect::<Result<_, _>>()?;
        let compute = (0..total).filter(is_apart).collect();
        Ok(Hardware {
            nodes: total,
            compute,
            servers: places.into_iter().flatten().collect(),
            io_nodes: servers,
            directory: Queue::default(),
            closes: Queue::default(),
        })
    }

    /// Compute nodes and I/O nodes.
    pub(crate) fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The nodes that are not compute nodes, ascending.
    pub(crate) fn dedicated(&self) -> Vec<u32> {
        (0..self.nodes).filter(|node| self.compute.binary_search(node).is_err()).collect()
    }

    /// The node that is compute node `number`.
    pub(crate) fn compute_node(&self, number: u32) -> u32 {
        self.compute[number as usize]
    }

    /// The directory server opens or closes a file: when it is done.
    pub(crate) fn directory(&mut self, now: Time, service: Duration) -> Time {
        self.directory.serve(now, service).1
    }

    /// The same of a close that waits only for other closes.
    pub(crate) fn separate_close(&mut self, now: Time, service: Duration) -> Time {
        self.closes.serve(now, service).1
    }
}

/// The parts of the interval from `offset` that each server has, as server, bytes, and those of them in its first strip:
/// one part a server, as the strips that follow each other on a server are contiguous there.
pub(crate) fn parts(
    striping: &Striping,
    offset: u64,
    bytes: u64,
) -> impl Iterator<Item = (u32, u64, u64)> + use<> {
    let striping = *striping;
    let end = offset.saturating_add(bytes);
    let strips = if bytes == 0 { 0 } else { (end - 1) / striping.unit - offset / striping.unit + 1 };
    let first = striping.server_of(offset);
    let touched = strips.min(u64::from(striping.factor)) as u32;
    (0..touched).map(move |step| {
        if touched == 1 {
            return (first, bytes, bytes.min(striping.unit - offset % striping.unit));
        }
        let server = (first + step) % striping.factor;
        let part = striping.len_of_server(server, end) - striping.len_of_server(server, offset);
        let begins = if step == 0 { offset % striping.unit } else { 0 };
        (server, part, part.min(striping.unit - begins))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_strips_summed_by_server() {
        for (unit, factor, first) in [(10, 4, 0), (10, 4, 3), (7, 1, 0), (1, 5, 2)] {
            let striping = Striping::new(unit, factor, first).unwrap();
            for offset in [0, 3, 10, 39, 41, 200] {
                for bytes in [0, 1, 7, 10, 38, 40, 41, 99] {
                    let mut expected = vec![(0, 0); factor as usize];
                    for strip in striping.strips(offset..offset + bytes) {
                        let (part, first) = &mut expected[strip.server as usize];
                        if *part == 0 {
                            *first = strip.len;
                        }
                        *part += strip.len;
                    }
                    let mut found = vec![(0, 0); factor as usize];
                    for (server, part, first) in parts(&striping, offset, bytes) {
                        assert!(part > 0 && found[server as usize] == (0, 0));
                        found[server as usize] = (part, first);
                    }
                    assert_eq!(found, expected, "{striping:?} {offset} {bytes}");
                }
            }
        }
    }

    #[test]
    fn dedicated_servers_are_no_compute_nodes() {
        let machine = Machine::built_in("sp-argonne").unwrap();
        let hardware = Hardware::new(&machine).unwrap();
        assert_eq!(hardware.compute.len(), 120);
        assert!(hardware.servers.iter().all(|server| !hardware.compute.contains(&server.node)));
    }
}
