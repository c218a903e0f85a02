//! Who runs where: the mappings of the paper's Figures 2 and 3.

use crate::coll::CollError;

/// Where the I/O nodes are among all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoMapping {
    /// The last ones.
    Clustered,
    /// At equal distances: the last of each share of the nodes.
    Distributed,
}

/// Whether applications run on the I/O nodes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApplicationMapping {
    /// They do.
    Shared,
    /// They do not.
    Dedicated,
}

/// Which of two jobs has the first half of the nodes that applications run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FirstHalf {
    /// The compute job (the paper's Ic).
    Compute,
    /// The job that does I/O (Ii).
    Io,
}

impl IoMapping {
    /// Its name in options and figures.
    pub fn name(self) -> &'static str {
        match self {
            IoMapping::Clustered => "clustered",
            IoMapping::Distributed => "distributed",
        }
    }
}

impl ApplicationMapping {
    /// Its name in options and figures.
    pub fn name(self) -> &'static str {
        match self {
            ApplicationMapping::Shared => "shared",
            ApplicationMapping::Dedicated => "dedicated",
        }
    }
}

/// The nodes of each role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// I/O nodes.
    pub io: Vec<u32>,
    /// Nodes that applications run on, in their order.
    pub applications: Vec<u32>,
}

impl Placement {
    /// # Errors
    /// If there are not at least one I/O node and two nodes for applications.
    pub fn new(
        nodes: u32,
        io_nodes: u32,
        io: IoMapping,
        application: ApplicationMapping,
    ) -> Result<Placement, CollError> {
        if io_nodes == 0 || io_nodes + 2 > nodes {
            return Err(CollError::IoNodes { found: io_nodes, most: nodes.saturating_sub(2) });
        }
        let place = |number: u32| match io {
            IoMapping::Clustered => nodes - io_nodes + number,
            IoMapping::Distributed => {
                ((u64::from(number) + 1) * u64::from(nodes) / u64::from(io_nodes)) as u32 - 1
            }
        };
        let servers: Vec<u32> = (0..io_nodes).map(place).collect();
        let runs =
            |node: &u32| application == ApplicationMapping::Shared || servers.binary_search(node).is_err();
        Ok(Placement { applications: (0..nodes).filter(runs).collect(), io: servers })
    }

    /// The nodes of the compute job and those of the I/O job: half of the nodes each.
    pub fn halves(&self, first: FirstHalf) -> (&[u32], &[u32]) {
        let (low, high) = self.applications.split_at(self.applications.len() / 2);
        match first {
            FirstHalf::Compute => (low, high),
            FirstHalf::Io => (high, low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mappings_are_those_of_figures_2_and_3() {
        let place = |io, application| Placement::new(64, 8, io, application).unwrap();
        let clustered = place(IoMapping::Clustered, ApplicationMapping::Shared);
        assert_eq!(clustered.io, (56..64).collect::<Vec<u32>>());
        assert_eq!(clustered.applications.len(), 64);
        let distributed = place(IoMapping::Distributed, ApplicationMapping::Dedicated);
        assert_eq!(distributed.io, [7, 15, 23, 31, 39, 47, 55, 63]);
        assert_eq!(distributed.applications.len(), 56);
        let (compute, io) = distributed.halves(FirstHalf::Compute);
        assert_eq!((compute.len(), io.len(), compute[0]), (28, 28, 0));
        assert_eq!(distributed.halves(FirstHalf::Io), (io, compute));
    }

    #[test]
    fn without_io_nodes_or_applications_there_is_nothing_to_place() {
        for count in [0, 63, 64, 1000] {
            assert!(Placement::new(64, count, IoMapping::Clustered, ApplicationMapping::Dedicated).is_err());
        }
    }
}
