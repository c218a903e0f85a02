//! The [`Site`] of an operation: what Pioscope's library would see of the machine.

use pio_layout::Striping;
use pio_machine::{Machine, Storage};
use pio_plan::{Hints, Nodes, Site, Strategy, Via};

use crate::process::Process;

/// Whether the servers take requests by view. A strategy that cannot do without takes it for granted.
pub(super) fn take_views(storage: &Storage, strategy: Strategy) -> bool {
    let says_so = matches!(storage, Storage::Striped { takes_views: true, .. });
    says_so || (strategy == Strategy::Ecio && storage.io_nodes().is_some())
}

/// How a new file is dealt out to the I/O nodes, if there are such: file after file begins on the next one, so that the
/// first strips of many small files are not all on one. Servers like ours follow the hint.
pub(super) fn striping_of(
    machine: &Machine,
    strategy: Strategy,
    hints: &Hints,
    file: usize,
) -> Option<Striping> {
    let (io, strip) = (machine.storage.io_nodes()?, machine.storage.strip()?);
    let wanted = hints.striping_unit.filter(|_| take_views(&machine.storage, strategy));
    let first = (file as u64 % u64::from(io.count)) as u32;
    Striping::new(wanted.unwrap_or(strip), io.count, first).ok()
}

/// Of ranks that open files together, whose files are reached through the kernel.
pub(super) fn of_group(machine: &Machine, processes: &[Process], members: &[u32]) -> Site {
    let nodes = Nodes::of(members.iter().map(|member| processes[*member as usize].node));
    let processors = nodes.each().map(|ranks| machine.nodes.cores.min(ranks.len() as u32)).sum();
    Site { ranks: members.len() as u32, nodes: Some(nodes.into()), processors, via: Via::Kernel }
}
