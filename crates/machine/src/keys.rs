//! Every key that a description can have, whatever its kind: tells a misspelt key from one that is missing.

use toml::de::{DeTable, DeValue};

use crate::error::MachineError;
use crate::section::Source;

/// What a description is of, if it is none of a machine: the folder of machines has such files, too.
pub(crate) fn of_another_kind(source: &Source<'_>, table: &DeTable<'_>) -> Option<MachineError> {
    let has = |key: &str| table.contains_key(key);
    let file = source.file.to_owned();
    if ["nodes", "network", "storage"].into_iter().any(has) {
        None
    } else if has("buffers") && has("disks") {
        Some(MachineError::Computer { file })
    } else if has("io-node") && table.len() == 1 {
        Some(MachineError::IoNode { file })
    } else {
        None
    }
}

/// The keys of each table, by the table's name.
const KEYS: &[(&str, &[&str])] = &[
    ("", &["name", "source", "nodes", "messages", "network", "storage", "io-node", "calls", "mpi-io"]),
    ("nodes", &["count", "cores", "switch", "quantum", "slice", "wake", "cooling", "copy"]),
    ("nodes.copy", &["bandwidth", "piece"]),
    ("messages", &["send", "receive", "local-latency"]),
    (
        "network",
        &[
            "kind",
            "switching",
            "radix",
            "arity",
            "levels",
            "downlinks",
            "uplinks",
            "stages",
            "dimensions",
            "nodes-per-switch",
            "switches-per-group",
            "links-per-switch",
            "groups",
            "routing",
            "switches",
            "flow",
            "central-queue",
            "circuit",
            "router",
            "rails",
            "link",
        ],
    ),
    ("network.rails", &["nodes", "servers", "piece"]),
    ("network.flow", &["routes", "congestion"]),
    (
        "network.central-queue",
        &["packet", "input", "bypass", "latency", "chunks", "chunk", "reserved", "adapter"],
    ),
    ("network.central-queue.adapter", &["bandwidth", "buffer"]),
    (
        "network.circuit",
        &["flow-through", "virtual-channels", "buffer", "arbitration", "age-step", "packet", "adapter"],
    ),
    ("network.circuit.packet", &["flit", "transaction", "transactions", "transaction-overhead", "overhead"]),
    (
        "network.circuit.adapter",
        &[
            "memory",
            "library",
            "start",
            "matching",
            "transaction-out",
            "transaction-in",
            "gap",
            "slice",
            "partners",
            "bus",
        ],
    ),
    ("network.circuit.adapter.partners", &["known", "other"]),
    ("network.circuit.adapter.bus", &["bandwidth", "packet", "turn"]),
    (
        "network.router",
        &[
            "flit",
            "payload",
            "header",
            "virtual-channels",
            "buffer",
            "reuse",
            "allocator",
            "iterations",
            "arbitration",
            "choice",
            "pipeline",
        ],
    ),
    (
        "network.router.pipeline",
        &["injection", "routing", "vc-allocation", "switch-allocation", "switch-traversal", "credit"],
    ),
    ("network.link", &["bandwidth", "latency"]),
    (
        "storage",
        &[
            "kind",
            "exclusive-writes",
            "io",
            "strip",
            "request",
            "read",
            "write",
            "cache",
            "open",
            "close",
            "pieces",
            "takes-views",
            "memory",
            "arm",
            "separate-closes",
            "begin",
            "connect",
            "summing",
            "sync",
            "bandwidth",
            "streams",
            "callback",
            "lock-strip",
            "exclusive",
            "handover",
            "components",
            "stripe-count",
            "servers",
            "client",
            "locks",
            "metadata",
            "create",
            "resize",
            "lock",
            "stat",
            "unlink",
        ],
    ),
    (
        "storage.cache",
        &[
            "size",
            "block",
            "policy",
            "shared",
            "process-limit-percent",
            "read-ahead",
            "write-behind",
            "dirty-limit-percent",
        ],
    ),
    ("storage.servers", &["targets", "read", "write", "threads", "link", "memory", "journal"]),
    ("storage.servers.read", &["request", "bandwidth"]),
    ("storage.servers.write", &["request", "bandwidth"]),
    ("storage.client", &["request", "in-flight", "cache"]),
    ("storage.client.cache", &["size", "page", "dirty", "read-ahead", "flush-on-close"]),
    ("storage.locks", &["on", "grant", "yields", "unit", "request", "callback", "sync"]),
    (
        "storage.metadata",
        &["servers", "directories", "open", "create", "close", "resize", "lock", "stat", "unlink"],
    ),
    (
        "storage.io",
        &["count", "placement", "dedicated", "shares-cores", "wake", "deep-wake", "change", "channel"],
    ),
    ("storage.arm", &["reach", "seek"]),
    ("storage.pieces", &["read", "write", "server"]),
    ("storage.pieces.server", &["bandwidth", "piece"]),
    ("storage.read", &["request", "bandwidth"]),
    ("storage.write", &["request", "bandwidth"]),
    ("storage.sync", &["request", "bandwidth"]),
    ("io-node", &["adapter", "cpu", "bus", "channel", "buffer", "unit", "disk"]),
    ("io-node.cpu", &["request", "response"]),
    (
        "io-node.disk",
        &["count", "seek", "bandwidth", "specs", "solid-state", "flash", "queue", "array", "raid"],
    ),
    ("io-node.disk.raid", &["level", "group", "failed", "rebuild"]),
    ("io-node.disk.raid.rebuild", &["rate", "bytes"]),
    (
        "io-node.disk.flash",
        &[
            "capacity",
            "filled",
            "channels",
            "dies",
            "planes",
            "blocks",
            "pages",
            "page",
            "mapping",
            "read",
            "program",
            "erase",
            "bus",
            "link",
            "latency",
            "controller",
            "buffer",
            "depth",
            "half-duplex",
            "burst",
        ],
    ),
    ("io-node.disk.flash.half-duplex", &["command"]),
    ("io-node.disk.flash.burst", &["size", "program", "idle"]),
    ("io-node.disk.solid-state", &["read", "write", "bandwidth", "channels"]),
    (
        "calls",
        &[
            "open",
            "create",
            "close",
            "seek",
            "resize",
            "stat",
            "unlink",
            "dropped-pages",
            "rewrites",
            "sync",
            "read",
            "write",
            "new-pages",
            "new-folio",
            "askew",
            "askew-reach",
            "processor-cache",
            "after-work",
            "direct",
            "write-back",
            "cold-reads",
            "collective-waits",
            "by-levels",
        ],
    ),
    ("calls.after-work", &["read", "write"]),
    ("calls.after-work.read", &["call", "bandwidth", "sizes"]),
    ("calls.after-work.write", &["call", "bandwidth", "sizes"]),
    ("calls.rewrites", &["open", "close"]),
    ("calls.rewrites.open", &["call", "bandwidth", "sizes"]),
    ("calls.rewrites.close", &["call", "bandwidth", "sizes"]),
    ("calls.direct", &["read", "write"]),
    ("calls.direct.read", &["call", "bandwidth", "sizes"]),
    ("calls.direct.write", &["call", "bandwidth", "sizes"]),
    ("calls.cold-reads", &["request", "stream", "bandwidth"]),
    ("calls.processor-cache", &["size", "read", "write", "read-miss", "write-miss"]),
    ("calls.write-back", &["background", "limit", "age", "bandwidth"]),
    ("calls.read", &["call", "bandwidth", "sizes"]),
    ("calls.write", &["call", "bandwidth", "sizes"]),
    ("calls.sync", &["call", "bandwidth", "sizes"]),
    ("calls.new-pages", &["call", "bandwidth", "sizes"]),
    ("mpi-io", &["library", "spins", "pioscope", "own"]),
    ("mpi-io.pioscope", &["call", "fresh", "piece", "together"]),
    ("mpi-io.own", &["call", "fresh", "piece", "together"]),
];

/// The error for the first key in the text that no kind of machine has, if there is one.
pub(crate) fn unknown(source: &Source<'_>, root: &DeTable<'_>) -> Option<MachineError> {
    let (start, key, known) = first_unknown(root, "")?;
    Some(MachineError::UnknownKey {
        file: source.file.to_owned(),
        line: source.line(start),
        key,
        known: known.join(", "),
    })
}

/// Where in the text it is, its whole name, and the keys of its table.
fn first_unknown(table: &DeTable<'_>, name: &str) -> Option<(usize, String, &'static [&'static str])> {
    // What stands where no table belongs is a wrong value, not a wrong key.
    let known = KEYS.iter().find(|(table, _)| *table == name)?.1;
    let find = |key: &toml::Spanned<std::borrow::Cow<'_, str>>, value: &DeValue<'_>| {
        let dot = if name.is_empty() { "" } else { "." };
        let whole = format!("{name}{dot}{}", key.get_ref());
        if !known.contains(&key.get_ref().as_ref()) {
            return Some((key.span().start, whole, known));
        }
        match value {
            DeValue::Table(inner) => first_unknown(inner, &whole),
            _ => None,
        }
    };
    table.iter().filter_map(|(key, value)| find(key, value.get_ref())).min_by_key(|found| found.0)
}
