//! The seven in the catalogue of workloads.

use super::profile::{Class, Profile};
use super::{application_with, find};
use crate::error::SimError;
use crate::workload::entry::Entry;
use crate::workload::parameter::{Kind, Parameter, Values};
use crate::workload::steps::Workload;

const SOURCE: &str = "Miller and Katz 1991, Tables 1 and 2 and sections 3, 5 and 6";

const FILES: Parameter = Parameter {
    name: "files",
    about: "files that its data are staged through",
    kind: Kind::Count(1, 1024),
    default: "2",
};
const RUN: Parameter = Parameter {
    name: "run",
    about: "requests of one direction to one file before another has its turn",
    kind: Kind::Count(1, 1 << 20),
    default: "16",
};
const BURST: Parameter = Parameter {
    name: "burst",
    about: "part of a cycle's CPU time in which its I/O comes",
    kind: Kind::Number(0.001, 1.0),
    default: "0.25",
};
const CYCLES: Parameter = Parameter {
    name: "cycles",
    about: "cycles after which it is broken off; 0: none, it runs to its end",
    kind: Kind::Count(0, 1 << 20),
    default: "0",
};
const REQUIRED_BURST: Parameter = Parameter {
    name: "burst",
    about: "part of the CPU time in which it reads its first state, and that in which it writes its last",
    kind: Kind::Number(0.001, 0.5),
    default: "0.01",
};

/// Every one that stages data has the same parameters, with its own defaults.
pub(in crate::workload) const ENTRIES: [Entry; 7] = [
    Entry {
        name: "bvi",
        about: "vortices around a helicopter's blade: small requests, meant for a solid-state disk",
        source: SOURCE,
        parameters: &[FILES, RUN, BURST, CYCLES],
        build: |values| build("bvi", values),
    },
    Entry {
        name: "ccm",
        about: "climate model that stages its data",
        source: SOURCE,
        parameters: &[FILES, RUN, BURST, CYCLES],
        build: |values| build("ccm", values),
    },
    Entry {
        name: "forma",
        about: "structural dynamics with sparse matrices in blocks, which are read again and again",
        source: SOURCE,
        parameters: &[FILES, RUN, BURST, CYCLES],
        build: |values| build("forma", values),
    },
    Entry {
        name: "gcm",
        about: "climate model in memory, that only writes its results",
        source: SOURCE,
        parameters: &[REQUIRED_BURST],
        build: |values| build("gcm", values),
    },
    Entry {
        name: "les",
        about: "large-eddy simulation of turbulence: asynchronous I/O",
        source: SOURCE,
        parameters: &[Parameter { default: "1", ..FILES }, RUN, BURST, CYCLES],
        build: |values| build("les", values),
    },
    Entry {
        name: "upw",
        about: "polynomial factorisation: ten minutes of computing, then its answer",
        source: SOURCE,
        parameters: &[REQUIRED_BURST],
        build: |values| build("upw", values),
    },
    Entry {
        name: "venus",
        about: "climate of Venus: large requests that go round six files",
        source: SOURCE,
        parameters: &[Parameter { default: "6", ..FILES }, Parameter { default: "1", ..RUN }, BURST, CYCLES],
        build: |values| build("venus", values),
    },
];

fn build(name: &str, values: &Values) -> Result<Workload, SimError> {
    let mut profile = Profile { burst: values.number("burst"), ..Profile::of(find(name)?) };
    if profile.class == Class::Staging {
        profile.files = values.ranks("files");
        profile.run = values.ranks("run");
        profile.first_cycles = Some(values.ranks("cycles")).filter(|cycles| *cycles > 0);
    }
    application_with(name, &profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::miller_katz::{PUBLISHED, application};

    #[test]
    fn defaults_are_the_profiles() {
        for entry in ENTRIES.iter().filter(|entry| !["bvi", "forma"].contains(&entry.name)) {
            let built = entry.build(&[], 1).unwrap();
            assert_eq!(built.programs, application(entry.name).unwrap().programs, "{}", entry.name);
        }
        assert_eq!(ENTRIES.map(|entry| entry.name), PUBLISHED.map(|published| published.name));
    }
}
