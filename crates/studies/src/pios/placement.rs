//! Which nodes compute, and which do I/O.

use thiserror::Error;

/// Which nodes compute, and which do I/O. Half of all compute: those of odd numbers. The I/O nodes are evenly distributed
/// among the others; what remains is idle (Baylor et al. 1995, section III).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    nodes: u32,
    io_nodes: Vec<u32>,
}

/// A machine that cannot be divided so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlacementError {
    /// Half of the nodes, and at least two, must compute.
    #[error("{nodes} nodes: expected an even number from 4 on, of which half compute")]
    Nodes {
        /// Asked for.
        nodes: u32,
    },
    /// At most the other half can do I/O.
    #[error("{io_nodes} I/O nodes among {nodes} nodes: expected 1 to {most}, as half of the nodes compute")]
    IoNodes {
        /// Asked for.
        io_nodes: u32,
        /// Of so many nodes.
        nodes: u32,
        /// Most there can be.
        most: u32,
    },
}

impl Placement {
    /// So many I/O nodes among so many nodes.
    ///
    /// # Errors
    /// If the nodes cannot be halved, or there are no I/O nodes or more than half of the nodes.
    pub fn new(nodes: u32, io_nodes: u32) -> Result<Placement, PlacementError> {
        if nodes < 4 || !nodes.is_multiple_of(2) {
            return Err(PlacementError::Nodes { nodes });
        }
        let most = nodes / 2;
        if !(1..=most).contains(&io_nodes) {
            return Err(PlacementError::IoNodes { io_nodes, nodes, most });
        }
        let place = |number: u32| (u64::from(number) * u64::from(most) / u64::from(io_nodes)) as u32 * 2;
        Ok(Placement { nodes, io_nodes: (0..io_nodes).map(place).collect() })
    }

    /// How many nodes there are in all.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Nodes that do I/O, in ascending order.
    pub fn io_nodes(&self) -> &[u32] {
        &self.io_nodes
    }

    /// How many nodes compute.
    pub fn compute_nodes(&self) -> u32 {
        self.nodes / 2
    }

    /// The compute node of this number, counted from 0.
    pub fn compute_node(&self, number: u32) -> u32 {
        2 * number + 1
    }

    /// Which of the I/O nodes, counted from 0, `node` is; the nearest one, if it is none.
    pub(super) fn number_of_io_node(&self, node: u32) -> u32 {
        self.io_nodes.partition_point(|&io_node| io_node < node) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_nodes_are_spread_over_the_nodes_that_do_not_compute() {
        let placement = Placement::new(16, 6).unwrap();
        assert_eq!(placement.io_nodes(), [0, 2, 4, 8, 10, 12]);
        assert_eq!(placement.number_of_io_node(8), 3);
        let compute: Vec<u32> = (0..placement.compute_nodes()).map(|n| placement.compute_node(n)).collect();
        assert_eq!(compute, [1, 3, 5, 7, 9, 11, 13, 15]);
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        assert_eq!(Placement::new(7, 1).unwrap_err(), PlacementError::Nodes { nodes: 7 });
        let error = Placement::new(16, 9).unwrap_err();
        assert_eq!(
            error.to_string(),
            "9 I/O nodes among 16 nodes: expected 1 to 8, as half of the nodes compute"
        );
    }
}
