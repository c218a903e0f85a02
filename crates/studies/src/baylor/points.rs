//! Which simulations each of the figures 6 to 13 needs.

use super::{Options, Point};

pub(super) const FLOPS_PER_BYTE: [f64; 5] = [114.5, 57.25, 28.63, 14.32, 7.16];
pub(super) const LOADS: [f64; 3] = [0.0, 0.1, 0.4];
pub(super) const LARGE: u64 = 32_768;
pub(super) const SMALL: u64 = 4096;
/// A label of Figure 9: as much data a second in small requests as the highest label has in large ones.
pub(super) const EQUAL_DATA: f64 = 14.3125;
/// Rates of Figure 6, requests a second: "from 5 to over 850" (section III).
pub(super) const IO_NODE_RATES: [f64; 18] = [
    5.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 450.0, 500.0, 550.0, 600.0, 650.0, 750.0,
    850.0, 950.0, 1050.0,
];

pub(super) fn nodes(options: &Options, else_nodes: u32) -> Vec<u32> {
    options.nodes.clone().unwrap_or_else(|| vec![else_nodes])
}

/// An eighth, a quarter, three eighths and half of the nodes.
pub(super) fn io_nodes(options: &Options, nodes: u32) -> Vec<u32> {
    options.io_nodes.clone().unwrap_or_else(|| (1..=4).map(|eighths| nodes * eighths / 8).collect())
}

pub(super) fn labels(options: &Options) -> Vec<f64> {
    options.flops_per_byte.clone().unwrap_or_else(|| FLOPS_PER_BYTE.into())
}

/// Labels of Figure 10: all but the highest.
pub(super) fn labels_of_systems(options: &Options) -> Vec<f64> {
    options.flops_per_byte.clone().unwrap_or_else(|| FLOPS_PER_BYTE[1..].into())
}

pub(super) fn loads(options: &Options) -> Vec<f64> {
    options.loads.clone().unwrap_or_else(|| LOADS.into())
}

pub(super) fn sizes(options: &Options) -> Vec<u64> {
    options.request_bytes.clone().unwrap_or_else(|| vec![LARGE])
}

/// Request sizes of Figure 9 with their labels.
pub(super) fn equal_data(options: &Options) -> Vec<(u64, Vec<f64>)> {
    match &options.request_bytes {
        Some(sizes) => sizes.iter().map(|size| (*size, labels(options))).collect(),
        None => {
            let of = |label| options.flops_per_byte.clone().unwrap_or_else(|| vec![label]);
            vec![(SMALL, of(EQUAL_DATA)), (LARGE, of(FLOPS_PER_BYTE[0]))]
        }
    }
}

/// Numbers of nodes and compute nodes for each I/O node of Figure 10.
pub(super) const SYSTEMS: [u32; 4] = [16, 32, 64, 128];
pub(super) const RATIOS: [u32; 2] = [1, 4];

/// The rates and sizes at which Figure 6 needs the I/O node alone.
pub(super) fn io_node_rates(options: &Options) -> Vec<(u64, f64)> {
    let sizes = options.request_bytes.clone().unwrap_or_else(|| vec![SMALL, LARGE]);
    sizes.into_iter().flat_map(|size| IO_NODE_RATES.map(|per_s| (size, per_s))).collect()
}

/// The simulations that a figure needs.
pub(super) fn points(figure: u32, options: &Options) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |nodes, io_nodes, flops_per_byte, request_bytes, load| {
        points.push(Point { nodes, io_nodes, flops_per_byte, request_bytes, load });
    };
    match figure {
        7 | 8 => {
            for nodes in nodes(options, 64) {
                for io_nodes in io_nodes(options, nodes) {
                    for size in sizes(options) {
                        labels(options)
                            .iter()
                            .for_each(|label| add(nodes, io_nodes, Some(*label), size, 0.0));
                    }
                }
            }
        }
        9 => {
            for nodes in nodes(options, 64) {
                for io_nodes in io_nodes(options, nodes) {
                    for (size, labels) in equal_data(options) {
                        labels.iter().for_each(|label| add(nodes, io_nodes, Some(*label), size, 0.0));
                    }
                }
            }
        }
        10 => {
            for nodes in options.nodes.clone().unwrap_or_else(|| SYSTEMS.into()) {
                for ratio in RATIOS {
                    for size in sizes(options) {
                        labels_of_systems(options)
                            .iter()
                            .for_each(|label| add(nodes, nodes / 2 / ratio, Some(*label), size, 0.0));
                    }
                }
            }
        }
        11..=13 => {
            for nodes in nodes(options, 32) {
                for io_nodes in io_nodes(options, nodes) {
                    for load in loads(options) {
                        for size in sizes(options) {
                            labels(options)
                                .iter()
                                .for_each(|label| add(nodes, io_nodes, Some(*label), size, load));
                        }
                    }
                }
                if figure == 13 {
                    for load in loads(options).into_iter().filter(|load| *load > 0.0) {
                        sizes(options).into_iter().for_each(|size| add(nodes, nodes / 2, None, size, load));
                    }
                }
            }
        }
        _ => {}
    }
    points
}
