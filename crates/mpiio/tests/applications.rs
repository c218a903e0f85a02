//! Programs of libraries that stand between people and MPI-IO: parallel HDF5 and PnetCDF, on plain files and on I/O
//! servers, with each strategy. What they wrote is read again without us, by the library alone.
//!
//! They need a library for an MPI with commands of its own name (`mpicc.mpich`, as Debian has them) and `pkg-config`;
//! without, the tests say so and pass.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{Mpi, Servers, assert_says};
use pio_plan::Strategy;

const RANKS: u32 = 2;
const SAYS: &str = "all is as MPI says";

#[test]
#[ignore = "slow"]
fn slow_hdf5() {
    with_library("hdf5", "data.h5", |mpi| match mpi.is_open_mpi() {
        true => vec!["hdf5-openmpi"],
        false => vec!["hdf5-mpich"],
    });
}

#[test]
#[ignore = "slow"]
fn slow_pnetcdf() {
    // One library, which does not say for which MPI it is.
    with_library("pnetcdf", "data.nc", |mpi| match mpi.is_open_mpi() {
        true => vec!["pnetcdf", "ompi"],
        false => vec![],
    });
}

fn with_library(program: &str, file: &str, packages: impl Fn(&Mpi) -> Vec<&'static str>) {
    let mut found = false;
    for mpi in Mpi::all().filter(Mpi::has_own_names) {
        let packages = packages(&mpi);
        let Some(options) = options_of(&packages) else { continue };
        found = true;
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        mpi.compile(&mpi.command("mpicc"), &format!("{program}.c"), &options, program);
        for strategy in Strategy::ALL {
            on_files(&mpi, program, strategy);
            on_servers(&mpi, program, file, strategy);
        }
    }
    if !found {
        eprintln!("skipped: pkg-config finds no {program} for an MPI");
    }
}

fn on_files(mpi: &Mpi, program: &str, strategy: Strategy) {
    let folder = tempfile::tempdir().unwrap();
    let argument = folder.path().to_str().unwrap();
    let variables = [("PIOSCOPE_STRATEGY", strategy.name())];
    assert_says(&mpi.run(RANKS, program, &[argument], &variables), SAYS);
    assert_says(&mpi.run_alone(RANKS, program, &[argument, "check"]), SAYS);
}

fn on_servers(mpi: &Mpi, program: &str, file: &str, strategy: Strategy) {
    let servers = Servers::start(2);
    let description = servers.description();
    let variables = [("PIOSCOPE_STRATEGY", strategy.name()), ("PIOSCOPE_STORE", description.as_str())];
    assert_says(&mpi.run(RANKS, program, &["/run"], &variables), SAYS);
    let folder = tempfile::tempdir().unwrap();
    servers.copy_out(&format!("run/{file}"), &folder.path().join(file));
    assert!(!Path::new("/run").join(file).exists(), "it was written to the servers");
    let argument = folder.path().to_str().unwrap();
    assert_says(&mpi.run_alone(RANKS, program, &[argument, "check"]), SAYS);
}

/// What a compiler needs to be told of packages; none if there are none, or one is not there.
fn options_of(packages: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("pkg-config").args(["--cflags", "--libs"]).args(packages).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !packages.is_empty())
        .then(|| said.split_whitespace().map(str::to_owned).collect())
}
