//! The conformance suite: MPI programs, one a subject, that check what MPI's text says of files. They run under the shim
//! with each strategy, and on the MPI's own files where that MPI does what the text says, so that they are checked, too.
//!
//! They need the `mpicc` and `mpiexec` of an MPI on the PATH; without, the tests say so and pass.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Mpi, SUITE, assert_says};
use pio_plan::Strategy;

#[test]
fn atomic_mode() {
    passes("atomic", &[1, 3]);
}

#[test]
fn datatypes() {
    passes("datatypes", &[1, 2]);
}

#[test]
fn errors() {
    passes("errors", &[1, 3]);
}

#[test]
fn large_counts() {
    passes("large_counts", &[1, 3]);
}

#[test]
fn nonblocking_operations() {
    passes("nonblocking", &[1, 3]);
}

#[test]
fn representations() {
    passes("representations", &[1, 2]);
}

#[test]
fn shared_file_pointers() {
    passes("shared", &[1, 3]);
}

#[test]
fn threads() {
    passes("threads", &[2]);
}

/// On two nodes, there is no memory that all ranks share.
#[test]
fn shared_file_pointers_without_shared_memory() {
    run("shared", 3, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
}

/// Fortran's functions reach the MPI's C functions under one name or the other.
#[test]
fn fortran() {
    let Some(mpi) = Mpi::get() else { return };
    if !mpi.compile_fortran("fortran08") {
        eprintln!("skipped: no mpifort on the PATH");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = mpi.run(2, "fortran08", &[folder.path().to_str().unwrap()], &[]);
    assert_says(&output, "all is as MPI says");
}

#[test]
#[ignore = "slow"]
fn slow_everything_passes_with_every_strategy() {
    for strategy in Strategy::ALL {
        for ranks in [1, 2, 4, 8] {
            for program in SUITE {
                run(program, ranks, &[("PIOSCOPE_STRATEGY", strategy.name())]);
                if strategy == Strategy::TwoPhase {
                    run(program, ranks, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
                    // MPICH can pretend that even and odd ranks are on two nodes.
                    run(program, ranks, &[("MPIR_CVAR_ODD_EVEN_CLIQUES", "1")]);
                }
            }
        }
    }
}

fn passes(program: &str, ranks: &[u32]) {
    for ranks in ranks {
        run(program, *ranks, &[]);
    }
}

fn run(program: &str, ranks: u32, variables: &[(&str, &str)]) {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = mpi.run(ranks, program, &[folder.path().to_str().unwrap()], variables);
    assert_says(&output, "all is as MPI says");
    // Hidden files go with the files that they belong to.
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}
