//! The objects of `pioscope machines list` and `show` with `--json`.

use std::path::PathBuf;

use pio_machine::{CallCost, Duration, IoNodes, Machine, Storage, Switching};
use serde::Serialize;

use super::path;

/// The machines that there are.
#[derive(Serialize)]
pub(crate) struct Listed {
    schema: &'static str,
    machines: Vec<ListedMachine>,
}

/// A machine's name, and where its description is.
#[derive(Serialize)]
struct ListedMachine {
    name: String,
    source: String,
    file: Option<String>,
    has_buffers: bool,
}

impl Listed {
    /// The object of built-in machines, the built-in computers with buffers, and the kept descriptions of this host.
    pub(crate) fn of(
        machines: impl IntoIterator<Item = (String, String)>,
        computers: impl IntoIterator<Item = (String, String)>,
        kept: impl IntoIterator<Item = (String, String, PathBuf)>,
    ) -> Listed {
        let built_in =
            |has_buffers| move |(name, source)| ListedMachine { name, source, file: None, has_buffers };
        let kept = kept.into_iter().map(|(name, source, file)| ListedMachine {
            name,
            source,
            file: Some(path(&file)),
            has_buffers: false,
        });
        let machines = machines.into_iter().map(built_in(false));
        let computers = computers.into_iter().map(built_in(true));
        Listed {
            schema: "pioscope.machines.list/1",
            machines: machines.chain(computers).chain(kept).collect(),
        }
    }
}

/// A machine description: what most readers ask for in numbers, and all of it as the text of its file.
#[derive(Serialize)]
pub(crate) struct Shown<'m> {
    schema: &'static str,
    name: &'m str,
    source: &'m str,
    node_count: u32,
    cores_per_node: u32,
    quantum_s: f64,
    switch_s: f64,
    copy_bandwidth_bytes_per_s: u64,
    send_s: f64,
    receive_s: f64,
    local_latency_s: f64,
    network: Network,
    storage: Stored,
    calls: Calls,
    description_toml: String,
}

/// What connects the nodes.
#[derive(Serialize)]
struct Network {
    topology: Option<String>,
    switching: &'static str,
    link_bandwidth_bytes_per_s: u64,
    link_latency_s: f64,
}

/// Where files are.
#[derive(Serialize)]
struct Stored {
    kind: &'static str,
    server_count: Option<u32>,
    has_dedicated_nodes: Option<bool>,
    strip_bytes: Option<u64>,
}

/// What calls cost the process that makes them.
#[derive(Serialize)]
struct Calls {
    open_s: f64,
    create_s: f64,
    close_s: f64,
    seek_s: f64,
    resize_s: f64,
    read: Cost,
    write: Cost,
}

/// What a call costs, and its bytes.
#[derive(Serialize)]
struct Cost {
    call_s: f64,
    bandwidth_bytes_per_s: u64,
    sizes: Vec<Size>,
}

/// What a call of a size takes in all.
#[derive(Serialize)]
struct Size {
    size_bytes: u64,
    time_s: f64,
}

impl<'m> Shown<'m> {
    /// The object of a description; `topology` says the network's shape in words.
    pub(crate) fn of(machine: &'m Machine, topology: Option<String>) -> Shown<'m> {
        let (nodes, messages, calls) = (&machine.nodes, &machine.messages, &machine.calls);
        let link = &machine.network.link;
        Shown {
            schema: "pioscope.machines.show/1",
            name: &machine.name,
            source: &machine.source,
            node_count: nodes.count,
            cores_per_node: nodes.cores,
            quantum_s: nodes.quantum.seconds(),
            switch_s: nodes.switch.seconds(),
            copy_bandwidth_bytes_per_s: nodes.copy.bandwidth.bytes_per_second(),
            send_s: messages.send.seconds(),
            receive_s: messages.receive.seconds(),
            local_latency_s: messages.local_latency.seconds(),
            network: Network {
                topology,
                switching: switching(&machine.network.switching),
                link_bandwidth_bytes_per_s: link.bandwidth.bytes_per_second(),
                link_latency_s: link.latency.seconds(),
            },
            storage: stored(&machine.storage),
            calls: Calls {
                open_s: calls.open.seconds(),
                create_s: calls.create.seconds(),
                close_s: calls.close.seconds(),
                seek_s: calls.seek.seconds(),
                resize_s: calls.resize.seconds(),
                read: cost(&calls.read),
                write: cost(&calls.write),
            },
            description_toml: machine.to_toml(""),
        }
    }
}

fn switching(switching: &Switching) -> &'static str {
    match switching {
        Switching::Links => "links",
        Switching::Flow(_) => "flow",
        Switching::CentralQueue(_) => "central-queue",
        Switching::Circuit(_) => "circuit",
        Switching::Wormhole(wormhole) if wormhole.cut_through => "cut-through",
        Switching::Wormhole(_) => "wormhole",
    }
}

fn stored(storage: &Storage) -> Stored {
    let kind = match storage {
        Storage::Local { .. } => "local",
        Storage::Shared(_) => "shared",
        Storage::Parallel(_) => "parallel",
        Storage::Striped { .. } => "striped",
        Storage::IoNodes { .. } => "io-nodes",
    };
    let servers: Option<&IoNodes> = storage.io_nodes();
    Stored {
        kind,
        server_count: servers.map(|servers| servers.count),
        has_dedicated_nodes: servers.map(|servers| servers.dedicated),
        strip_bytes: storage.strip(),
    }
}

fn cost(cost: &CallCost) -> Cost {
    let size = |&(size_bytes, time): &(u64, Duration)| Size { size_bytes, time_s: time.seconds() };
    Cost {
        call_s: cost.call.seconds(),
        bandwidth_bytes_per_s: cost.bandwidth.bytes_per_second(),
        sizes: cost.sizes.iter().map(size).collect(),
    }
}
