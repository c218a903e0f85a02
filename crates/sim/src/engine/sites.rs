//! The [`Site`] of an operation: what Pioscope's library would see of the machine.

use std::sync::Arc;

use pio_layout::Striping;
use pio_machine::{Machine, Storage};
use pio_plan::cost::Terms;
use pio_plan::{Hints, Nodes, Site, Strategy, Via};
use pio_protocol::{Name, Placement};

use super::store_requests::speak_protocol;
use crate::process::Process;

/// Whether the servers take requests by view. A strategy that cannot do without takes it for granted; to an MPI library's own
/// way they are a file system.
pub(super) fn take_views(storage: &Storage, strategy: Strategy) -> bool {
    if Strategy::OWN.contains(&strategy) {
        return false;
    }
    let says_so = matches!(storage, Storage::Striped { takes_views: true, .. });
    let is_file_system = matches!(storage, Storage::Parallel(_));
    says_so || (strategy == Strategy::Ecio && storage.io_nodes().is_some() && !is_file_system)
}

/// How a file is dealt out to I/O nodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dealt {
    /// As Pioscope's store does it. Requests are those of its client.
    ByStore(Placement),
    /// Round all of them, of which each gets its part of a request.
    Round(Striping),
}

impl Dealt {
    /// Servers that have a part of the file, and bytes of a strip.
    pub(super) fn over(&self) -> (u32, u64) {
        let striping = match self {
            Dealt::ByStore(placement) => placement.striping(),
            Dealt::Round(striping) => *striping,
        };
        (striping.factor, striping.unit)
    }
}

/// How a new file is dealt out to the I/O nodes, if requests go to such by themselves.  Pioscope's own servers follow the hints, and the file's
/// name says where it begins. On others file after file begins on the next one, so that the first strips of many small files
/// are not all on one.
pub(super) fn dealt(
    machine: &Machine,
    strategy: Strategy,
    hints: &Hints,
    path: &str,
    file: usize,
) -> Option<Dealt> {
    if matches!(machine.storage, Storage::Parallel(_)) {
        return None;
    }
    let (io, strip) = (machine.storage.io_nodes()?, machine.storage.strip()?);
    let wanted = hints.striping_unit.filter(|_| take_views(&machine.storage, strategy));
    let unit = wanted.unwrap_or(strip);
    if speak_protocol(&machine.storage)
        && let Some(name) = Name::new(path)
    {
        let factor = hints.striping_factor.unwrap_or(0);
        return Placement::of_new_file(&name, unit, factor, io.count).map(Dealt::ByStore);
    }
    let first = (file as u64 % u64::from(io.count)) as u32;
    Striping::new(unit, io.count, first).ok().map(Dealt::Round)
}

/// Of ranks that open files together, whose files are reached through the kernel.
pub(super) fn of_group(
    machine: &Machine,
    terms: &Arc<Terms>,
    processes: &[Process],
    members: &[u32],
) -> Site {
    let nodes = Nodes::of(members.iter().map(|member| processes[*member as usize].node));
    let processors = nodes.each().map(|ranks| machine.nodes.cores.min(ranks.len() as u32)).sum();
    let (ranks, nodes) = (members.len() as u32, Some(nodes.into()));
    Site { ranks, nodes, processors, via: Via::Kernel, terms: terms.clone() }
}
