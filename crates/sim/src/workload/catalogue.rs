//! The generated workloads by name: `pioscope workload NAME`.

use super::collapse::{Collapse, collapse};
use super::entry::Entry;
use super::parameter::{Kind, Parameter};
use super::{bt_io, checkpoint, flash_io, hacc_io, ior, s3d_io};
use crate::error::SimError;

/// Every workload that can be generated.
pub fn catalogue() -> &'static [Entry] {
    // bvi, ccm, forma, gcm, les, upw, venus.
    use super::miller_katz::ENTRIES as SEVEN;
    const ENTRIES: &[Entry] = &[
        bt_io::ENTRY,
        checkpoint::ENTRY,
        COLLAPSE,
        flash_io::ENTRY,
        hacc_io::ENTRY,
        ior::EASY,
        ior::HARD,
        s3d_io::ENTRY,
        SEVEN[0],
        SEVEN[1],
        SEVEN[2],
        SEVEN[3],
        SEVEN[4],
        SEVEN[5],
        SEVEN[6],
    ];
    ENTRIES
}

/// The generator of this name.
///
/// # Errors
/// If there is none.
pub fn find(name: &str) -> Result<&'static Entry, SimError> {
    catalogue().iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<&str> = catalogue().iter().map(|entry| entry.name).collect();
        SimError::UnknownWorkload { name: name.to_owned(), known: known.join(", ") }
    })
}

const COLLAPSE: Entry = Entry {
    name: "collapse",
    about: "gravitational collapse on a three-dimensional mesh: collective dumps of distributed arrays",
    source: "Thakur, Gropp and Lusk 1996, section 3.2",
    parameters: &[
        Parameter {
            name: "ranks",
            about: "processes, a power of two",
            kind: Kind::Count(1, 1 << 16),
            default: "8",
        },
        Parameter {
            name: "x",
            about: "mesh points along the first dimension",
            kind: Kind::Count(1, 1 << 16),
            default: "128",
        },
        Parameter {
            name: "y",
            about: "mesh points along the second dimension",
            kind: Kind::Count(1, 1 << 16),
            default: "128",
        },
        Parameter {
            name: "z",
            about: "mesh points along the third dimension",
            kind: Kind::Count(1, 1 << 16),
            default: "64",
        },
        Parameter { name: "iterations", about: "iterations", kind: Kind::Count(1, 100_000), default: "20" },
        Parameter {
            name: "dump-every",
            about: "iterations from one dump to the next",
            kind: Kind::Count(1, 100_000),
            default: "5",
        },
        Parameter {
            name: "restart",
            about: "whether it begins by reading a restart file",
            kind: Kind::Word(&["yes", "no"]),
            default: "yes",
        },
    ],
    build: |values| {
        collapse(&Collapse {
            mesh: [values.count("x"), values.count("y"), values.count("z")],
            processes: values.ranks("ranks"),
            iterations: values.ranks("iterations"),
            dump_every: values.ranks("dump-every"),
            restart: values.word("restart") == "yes",
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn every_entry_can_be_built_as_it_is_and_its_defaults_are_its_own() {
        for entry in catalogue() {
            let workload = entry.build(&[], 1).unwrap_or_else(|error| panic!("{error}"));
            assert!(workload.programs.iter().any(|program| !program.is_empty()), "{}", entry.name);
            let same = catalogue().iter().filter(|other| other.name == entry.name).count();
            assert_eq!(same, 1, "{}", entry.name);
            assert!(!entry.about.is_empty() && !entry.source.is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let message = |name: &str, pairs: &[(&str, &str)]| {
            find(name).and_then(|entry| entry.build(&given(pairs), 1)).unwrap_err().to_string()
        };
        assert!(message("colapse", &[]).starts_with("no workload colapse: expected one of "));
        assert_eq!(
            message("collapse", &[("rank", "8")]),
            "workload collapse: no parameter rank: expected one of ranks, x, y, z, iterations, dump-every, restart"
        );
        assert_eq!(
            message("collapse", &[("ranks", "0")]),
            "workload collapse: ranks = 0: expected a whole number from 1 to 65536"
        );
        assert_eq!(
            message("collapse", &[("restart", "perhaps")]),
            "workload collapse: restart = perhaps: expected yes or no"
        );
    }

    #[test]
    #[ignore = "slow"]
    fn slow_the_largest_and_the_least_of_every_parameter_are_built_or_refused() {
        for entry in catalogue() {
            for parameter in entry.parameters {
                let texts = match parameter.kind {
                    Kind::Count(least, most) => [least.to_string(), most.to_string()],
                    Kind::Number(least, most) => [least.to_string(), most.to_string()],
                    Kind::Size(least, most) => [format!("{least} B"), format!("{most} B")],
                    Kind::Time(least, most) => [least.to_owned(), most.to_owned()],
                    Kind::Word(words) => [words[0].to_owned(), words[words.len() - 1].to_owned()],
                };
                for text in texts {
                    // Only that it comes back, and does not overflow: the ranks alone may be a million.
                    if parameter.name != "ranks" {
                        let _ = entry.build(&[(parameter.name.to_owned(), text)], 1);
                    }
                }
            }
        }
    }

    #[test]
    fn the_last_value_given_counts() {
        let entry = find("collapse").unwrap();
        let workload = entry.build(&given(&[("ranks", "2"), ("ranks", "4")]), 1).unwrap();
        assert_eq!(workload.ranks(), 4);
    }
}
