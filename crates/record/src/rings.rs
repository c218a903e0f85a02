//! Programs with rings (io_uring) that could not be followed.

use std::collections::BTreeMap;

use pio_trace::{Reason, Unseen};

use crate::spool::Header;

/// A program each, with the bytes of all its processes: those that the kernel counts at the devices, as it does not count
/// what goes through rings among the bytes of system calls.
pub(crate) fn unseen_rings<'a>(processes: impl Iterator<Item = &'a Header>) -> Vec<Unseen> {
    let mut programs: BTreeMap<&str, Unseen> = BTreeMap::new();
    for header in processes.filter(|header| header.unseen_rings > 0) {
        let program = header.command.split(' ').next().unwrap_or("");
        let unseen = programs.entry(program).or_insert_with(|| Unseen {
            program: program.to_owned(),
            reason: Reason::Ring,
            processes: 0,
            unknown: 0,
            read_bytes: 0,
            written_bytes: 0,
        });
        unseen.processes += 1;
        match header.device_bytes {
            Some([read, written]) => {
                unseen.read_bytes = unseen.read_bytes.saturating_add(read);
                unseen.written_bytes = unseen.written_bytes.saturating_add(written);
            }
            None => unseen.unknown += 1,
        }
    }
    programs.into_values().collect()
}
