//! Programs of libraries that stand between people and MPI-IO: parallel HDF5 and PnetCDF, on plain files and on I/O
//! servers, with each strategy. What they wrote is read again without us, by the library alone.
//!
//! They need a library for an MPI with commands of its own name (`mpicc.mpich`, as Debian has them), and HDF5 `pkg-config`;
//! without, the tests say so and pass.

// A test that cannot set up its scene fails there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Mpi, Servers, assert_says};
use object::elf;
use object::read::elf::ElfFile64;
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

/// On each kind of storage; all that the interface offers.
#[test]
fn pnetcdf() {
    let Some(mpi) = mpi_of_pnetcdf() else { return };
    for program in ["pnetcdf", "pnetcdf_calls"] {
        compile(&mpi, program, &["-lpnetcdf"]);
    }
    on_files(&mpi, "pnetcdf", Strategy::TwoPhase);
    on_servers(&mpi, "pnetcdf", "data.nc", Strategy::TwoPhase);
    for (ranks, strategy) in [(2, Strategy::TwoPhase), (3, Strategy::Ecio)] {
        all_calls_of_pnetcdf(&mpi, ranks, strategy);
    }
}

#[test]
#[ignore = "slow"]
fn slow_pnetcdf() {
    let Some(mpi) = mpi_of_pnetcdf() else { return };
    for program in ["pnetcdf", "pnetcdf_calls"] {
        compile(&mpi, program, &["-lpnetcdf"]);
    }
    for strategy in Strategy::ALL {
        on_files(&mpi, "pnetcdf", strategy);
        on_servers(&mpi, "pnetcdf", "data.nc", strategy);
        for ranks in [1, 2, 4, 8] {
            all_calls_of_pnetcdf(&mpi, ranks, strategy);
        }
    }
}

fn all_calls_of_pnetcdf(mpi: &Mpi, ranks: u32, strategy: Strategy) {
    let folder = tempfile::tempdir().unwrap();
    let strategy = ("PIOSCOPE_STRATEGY", strategy.name());
    let output = mpi.run(ranks, "pnetcdf_calls", &[folder.path().to_str().unwrap()], &[strategy]);
    assert_says(&output, SAYS);
    let servers = Servers::start(2);
    let variables = [strategy, ("PIOSCOPE_STORE", &servers.description())];
    assert_says(&mpi.run(ranks, "pnetcdf_calls", &["/run"], &variables), SAYS);
}

/// PnetCDF's library is for one MPI: the one whose library it loads.
fn mpi_of_pnetcdf() -> Option<Mpi> {
    let found = library_of_pnetcdf().and_then(|library| {
        let of_open_mpi = needs(&library, "libmpi.so");
        Mpi::all().find(|mpi| mpi.has_own_names() && mpi.is_open_mpi() == of_open_mpi)
    });
    if found.is_none() {
        eprintln!("skipped: no libpnetcdf.so, or no mpicc.mpich or mpicc.openmpi of the MPI that it is for");
    }
    found
}

/// Where the compiler finds it: not always where pkg-config says.
fn library_of_pnetcdf() -> Option<PathBuf> {
    let output = Command::new("cc").arg("-print-file-name=libpnetcdf.so").output().ok()?;
    let library = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    library.is_absolute().then_some(library)
}

/// Whether a library loads one whose name begins so.
fn needs(library: &Path, name: &str) -> bool {
    let bytes = std::fs::read(library).unwrap();
    let file: ElfFile64 = ElfFile64::parse(&bytes[..]).unwrap();
    let table = file.elf_dynamic_table().unwrap();
    let needed = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    needed.flat_map(|entry| table.string(entry)).any(|needed| needed.starts_with(name.as_bytes()))
}

fn with_library(program: &str, file: &str, packages: impl Fn(&Mpi) -> Vec<&'static str>) {
    let mut found = false;
    for mpi in Mpi::all().filter(Mpi::has_own_names) {
        let packages = packages(&mpi);
        let Some(options) = options_of(&packages) else { continue };
        found = true;
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        compile(&mpi, program, &options);
        for strategy in Strategy::ALL {
            on_files(&mpi, program, strategy);
            on_servers(&mpi, program, file, strategy);
        }
    }
    if !found {
        eprintln!("skipped: pkg-config finds no {program} for an MPI");
    }
}

fn compile(mpi: &Mpi, program: &str, options: &[&str]) {
    mpi.compile(mpi.mpicc(), &format!("{program}.c"), options, program);
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
