//! Draws the networks of `docs/design/networks.md`: `cargo run -p pio-sim --example draw_networks -- docs/design/networks`.

use std::path::PathBuf;

use pio_machine::{Dragonfly, DragonflyRouting, GraphSwitch};
use pio_sim::network::topology::Topology;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("expected a folder to draw into")?);
    std::fs::create_dir_all(&folder)?;
    let dragonfly = Dragonfly {
        nodes_per_switch: 2,
        switches_per_group: 4,
        links_per_switch: 2,
        groups: 9,
        routing: DragonflyRouting::Minimal,
    };
    for (name, topology) in [
        ("flat", Topology::flat(16)?),
        ("omega-16", Topology::omega(16)?),
        ("omega-32", Topology::omega(32)?),
        ("omega-64", Topology::omega(64)?),
        ("omega-128", Topology::omega(128)?),
        ("fat-tree", Topology::fat_tree(4, 3)?),
        ("fly", Topology::fly(4, 3)?),
        ("mesh", Topology::mesh(&[8, 4])?),
        ("torus", Topology::torus(&[6, 4])?),
        ("dragonfly", Topology::dragonfly(&dragonfly)?),
        ("graph", Topology::graph(&leaf_spine())?),
    ] {
        std::fs::write(folder.join(format!("{name}.svg")), topology.svg())?;
    }
    Ok(())
}

/// The graph that `docs/design/networks.md` describes.
fn leaf_spine() -> Vec<GraphSwitch> {
    let switch = |name: &str, nodes: std::ops::Range<u32>, links: &[&str]| GraphSwitch {
        name: name.to_owned(),
        nodes: nodes.collect(),
        links: links.iter().map(|link| (*link).to_owned()).collect(),
    };
    vec![
        switch("leaf-1", 0..8, &["spine-1", "spine-2"]),
        switch("leaf-2", 8..16, &["spine-1", "spine-2"]),
        switch("storage", 16..20, &["spine-1", "spine-1", "spine-2", "spine-2"]),
        switch("spine-1", 0..0, &[]),
        switch("spine-2", 0..0, &[]),
    ]
}
