//! IOR in the two forms in which the IO500 benchmark runs it (Kunkel, Bent, Lofstead and Markomanolis 2016; its
//! `ior-easy` and `ior-hard` phases): what a file system does best, and what it does worst.
//!
//! Easy: each rank writes a file of its own in large transfers, one behind the other. Hard: all write one file in
//! transfers of 47 008 bytes, each rank every so many-th of them, so that none is aligned to anything. To read, a rank
//! takes what another one wrote, so that no cache of its own helps. Left out are the barriers between the phases. Of
//! `phases`, `sync` is the `fsync` at the end of writing (IO500's `-e`): without it, a client's cache may keep what was
//! written.

use pio_plan::Direction;
use pio_trace::HandleId;

use super::entry::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use super::steps::Workload;
use crate::error::SimError;

const RANKS: Parameter =
    Parameter { name: "ranks", about: "processes", kind: Kind::Count(1, 1 << 20), default: "16" };
const PHASES: Parameter = Parameter {
    name: "phases",
    about: "what is done, in this order",
    kind: Kind::Word(&["write", "read", "write-read", "write-sync", "write-sync-read"]),
    default: "write-read",
};
const SHIFT: Parameter = Parameter {
    name: "shift",
    about: "a rank reads what the rank so many above it wrote (IO500: as many as a node has)",
    kind: Kind::Count(0, 1 << 20),
    default: "1",
};

/// `ior-easy`.
pub(super) const EASY: Entry = Entry {
    name: "ior-easy",
    about: "a file for each rank, in large sequential transfers",
    source: "IO500, phase ior-easy",
    parameters: &[
        RANKS,
        Parameter {
            name: "transfer",
            about: "bytes of a request",
            kind: Kind::Size(1, 1 << 34),
            default: "2 MiB",
        },
        Parameter {
            name: "block",
            about: "bytes of a rank, a multiple of the transfer",
            kind: Kind::Size(1, 1 << 44),
            default: "64 MiB",
        },
        PHASES,
        SHIFT,
    ],
    build: easy,
};

/// `ior-hard`.
pub(super) const HARD: Entry = Entry {
    name: "ior-hard",
    about: "one file for all ranks, in small transfers that are dealt out in turn",
    source: "IO500, phase ior-hard",
    parameters: &[
        RANKS,
        Parameter {
            name: "transfer",
            about: "bytes of a request",
            kind: Kind::Size(1, 1 << 34),
            default: "47008 B",
        },
        Parameter {
            name: "segments",
            about: "requests of a rank",
            kind: Kind::Count(1, 1 << 24),
            default: "256",
        },
        PHASES,
        SHIFT,
    ],
    build: hard,
};

fn easy(values: &Values) -> Result<Workload, SimError> {
    let (transfer, block) = (values.count("transfer"), values.count("block"));
    if !block.is_multiple_of(transfer) {
        return Err(values.wrong("block", format!("{block} B"), format!("a multiple of {transfer} B")));
    }
    let requests = block / transfer;
    phases(values, requests, |programs, rank, part, direction| {
        let handle = programs.open(rank, &format!("/ior-easy/ior_file_easy.{part:08}"));
        for request in 0..requests {
            programs.request(rank, handle, direction, request * transfer, transfer);
        }
        end(programs, values, rank, handle, direction);
    })
}

fn hard(values: &Values) -> Result<Workload, SimError> {
    let (transfer, segments) = (values.count("transfer"), values.count("segments"));
    let ranks = values.count("ranks");
    values.check_file(&[transfer, segments, ranks])?;
    phases(values, segments, |programs, rank, part, direction| {
        let handle = programs.open(rank, "/ior-hard/file");
        for segment in 0..segments {
            let offset = (segment * ranks + u64::from(part)) * transfer;
            programs.request(rank, handle, direction, offset, transfer);
        }
        end(programs, values, rank, handle, direction);
    })
}

/// The end of a rank's phase.
fn end(programs: &mut Programs, values: &Values, rank: u32, handle: HandleId, direction: Direction) {
    if direction == Direction::Write && values.word("phases").contains("sync") {
        programs.sync(rank, handle);
    }
    programs.close(rank, handle);
}

/// Each rank in each phase: `access` gets the rank, that whose part it takes, and the direction.
fn phases(
    values: &Values,
    requests: u64,
    access: impl Fn(&mut Programs, u32, u32, Direction),
) -> Result<Workload, SimError> {
    let ranks = values.ranks("ranks");
    let phases = values.word("phases");
    values.check_calls(u64::from(ranks).saturating_mul(2 * (requests + 3)))?;
    let mut programs = Programs::new(values, ranks);
    if phases.contains("write") {
        (0..ranks).for_each(|rank| access(&mut programs, rank, rank, Direction::Write));
    }
    if phases.contains("read") {
        let shift = values.count("shift");
        for rank in 0..ranks {
            let part = (u64::from(rank) + shift) % u64::from(ranks);
            access(&mut programs, rank, part as u32, Direction::Read);
        }
    }
    Ok(programs.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::What;
    use crate::workload::tests_support::{built, coverage};

    #[test]
    fn each_byte_is_written_once_and_read_once() {
        for name in ["ior-easy", "ior-hard"] {
            let workload = built(name, &[("ranks", "4")]);
            for direction in [Direction::Write, Direction::Read] {
                for (file, bytes) in coverage(&workload, direction) {
                    assert_eq!(bytes.pieces, 1, "{name}, {file}");
                    assert_eq!(bytes.touched, bytes.length, "{name}, {file}");
                }
            }
        }
        assert_eq!(coverage(&built("ior-hard", &[]), Direction::Write)[0].1.length, 16 * 256 * 47_008);
    }

    #[test]
    fn who_syncs_does_so_once_behind_its_last_write() {
        for name in ["ior-easy", "ior-hard"] {
            let count = |phases| {
                let workload = built(name, &[("ranks", "3"), ("phases", phases)]);
                let steps: Vec<_> = workload.programs.iter().flatten().map(|step| &step.what).collect();
                let syncs = steps.iter().filter(|what| matches!(what, What::Sync(..))).count();
                let behind = steps.windows(2).filter(|pair| {
                    let writes = matches!(pair[0], What::Request { direction: Direction::Write, .. });
                    writes && matches!(pair[1], What::Sync(..))
                });
                (syncs, behind.count())
            };
            assert_eq!(
                [count("write-read"), count("write-sync"), count("write-sync-read")],
                [(0, 0), (3, 3), (3, 3)]
            );
        }
    }

    #[test]
    fn a_rank_reads_what_its_neighbour_wrote() {
        let workload = built("ior-hard", &[("ranks", "4"), ("segments", "2")]);
        let offsets: Vec<u64> = workload.programs[3]
            .iter()
            .filter_map(|step| match step.what {
                What::Request { offset, .. } => Some(offset / 47_008),
                _ => None,
            })
            .collect();
        assert_eq!(offsets, [3, 7, 0, 4]);
    }
}
