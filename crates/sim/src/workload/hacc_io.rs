//! HACC-IO: the checkpoints of HACC, a cosmological N-body code (Habib et al. 2012; its I/O kernel in the CORAL
//! benchmarks).
//!
//! A particle has 38 bytes: position, velocity and potential (seven 4-byte numbers), an identity of 8 bytes and a mask
//! of 2. Each rank writes its particles variable by variable, to a file of its own or to a region of one shared file;
//! there the variables lie within the rank's region (`by-rank`), or each variable's array goes over all ranks
//! (`by-variable`). The restart reads it back.

use pio_layout::View;
use pio_plan::Direction;

use super::entry::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use super::steps::Workload;
use crate::error::SimError;

/// Bytes of each variable of a particle: x, y, z, vx, vy, vz, phi, identity, mask.
const VARIABLES: [u64; 9] = [4, 4, 4, 4, 4, 4, 4, 8, 2];

pub(super) const ENTRY: Entry = Entry {
    name: "hacc-io",
    about: "particles of a cosmology code, nine variables one after the other",
    source: "Habib et al. 2012; CORAL benchmark HACC I/O",
    parameters: &[
        Parameter { name: "ranks", about: "processes", kind: Kind::Count(1, 1 << 20), default: "16" },
        Parameter {
            name: "particles",
            about: "particles of a process",
            kind: Kind::Count(1, 1 << 36),
            default: "1000000",
        },
        Parameter {
            name: "file",
            about: "a file for each rank, or one for all whose regions are the ranks' or the variables'",
            kind: Kind::Word(&["per-rank", "by-rank", "by-variable"]),
            default: "by-variable",
        },
        Parameter {
            name: "restart",
            about: "whether the file is read back",
            kind: Kind::Word(&["yes", "no"]),
            default: "yes",
        },
        Parameter {
            name: "compute",
            about: "time before the checkpoint",
            kind: Kind::Time("0 s", "1000000 s"),
            default: "60 s",
        },
    ],
    build,
};

fn build(values: &Values) -> Result<Workload, SimError> {
    let (ranks, particles) = (values.ranks("ranks"), values.count("particles"));
    values.check_file(&[VARIABLES.iter().sum(), particles, u64::from(ranks)])?;
    values.check_calls(u64::from(ranks) * 2 * (VARIABLES.len() as u64 + 2))?;
    let mut programs = Programs::new(values, ranks);
    programs.all_think(values.time("compute"));
    let both = [Direction::Write, Direction::Read];
    let count = if values.word("restart") == "yes" { 2 } else { 1 };
    for direction in &both[..count] {
        match values.word("file") {
            "per-rank" => own_files(&mut programs, particles, *direction),
            place => shared_file(&mut programs, particles, *direction, place == "by-rank"),
        }
    }
    Ok(programs.finish())
}

fn own_files(programs: &mut Programs, particles: u64, direction: Direction) {
    for rank in 0..programs.ranks() {
        let handle = programs.open(rank, &format!("/hacc.{rank:08}"));
        let mut offset = 0;
        for bytes in VARIABLES.map(|bytes| bytes * particles) {
            programs.request(rank, handle, direction, offset, bytes);
            offset += bytes;
        }
        programs.close(rank, handle);
    }
}

fn shared_file(programs: &mut Programs, particles: u64, direction: Direction, is_by_rank: bool) {
    let file = programs.open_together("/hacc");
    let whole = programs.view(View::contiguous(0));
    let ranks = u64::from(programs.ranks());
    let region = VARIABLES.iter().sum::<u64>() * particles;
    let mut before = 0;
    for bytes in VARIABLES.map(|bytes| bytes * particles) {
        for rank in 0..programs.ranks() {
            let number = u64::from(rank);
            let offset = if is_by_rank { number * region + before } else { ranks * before + number * bytes };
            programs.independent(rank, file, direction, whole, offset..offset + bytes);
        }
        before += bytes;
    }
    programs.close_together(file);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests_support::{built, coverage};

    #[test]
    fn thirty_eight_bytes_a_particle_each_once() {
        for (place, files) in [("per-rank", 5), ("by-rank", 1), ("by-variable", 1)] {
            let workload = built("hacc-io", &[("ranks", "5"), ("particles", "1000"), ("file", place)]);
            for direction in [Direction::Write, Direction::Read] {
                let found = coverage(&workload, direction);
                assert_eq!(found.len(), files, "{place}");
                for (file, bytes) in found {
                    let length = 5 * 38_000 / files as u64;
                    assert_eq!((bytes.length, bytes.touched, bytes.pieces), (length, length, 1), "{file}");
                }
            }
        }
    }
}
