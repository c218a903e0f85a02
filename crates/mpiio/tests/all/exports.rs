//! What our C libraries offer to the programs that they are loaded into.
//!
//! A function of ours stands for another only if the library exports it. Compilers hide what is not declared otherwise, and
//! nothing tells: the library loads, and the program finds the next function of that name.

// A test that cannot set up its scene fails there.

use std::collections::BTreeSet;

use crate::common::Mpi;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSymbol as _, SymbolFlags, SymbolKind, elf};

#[test]
fn libraries_for_an_mpi_export_what_they_stand_for() {
    let mut found = false;
    for mpi in Mpi::all() {
        found = true;
        let known =
            ["MPI_File_open", "PMPI_File_open", "ncmpi_inq_file_format", "mpi_file_create_errhandler_"];
        check(&std::fs::read(&mpi.shim).unwrap(), &known);
        let mpicc = mpi.mpicc();
        let folder = tempfile::tempdir().unwrap();
        let recorder = pio_record::compile_shim(mpicc, pio_record::MPI_SHIM, folder.path()).unwrap();
        check(&std::fs::read(recorder).unwrap(), &["MPI_File_open", "MPI_File_write_at_all"]);
    }
    if !found {
        eprintln!("skipped: no mpicc and mpiexec on the PATH");
    }
}

#[test]
fn the_recorder_exports_what_it_stands_for() {
    check(pio_record::POSIX_LIBRARY, &["open", "__read_chk", "fopen64", "H5Fopen", "ncmpi_open", "pio_mark"]);
    check(pio_record::STARTS_LIBRARY, &["execve", "execlp", "posix_spawnp", "popen"]);
}

/// What the recorder's files share of data is theirs alone: a program's own variable of that name must not become it.
#[test]
fn the_recorder_exports_no_data() {
    let library: ElfFile64 = ElfFile64::parse(pio_record::POSIX_LIBRARY).unwrap();
    let is_data = |kind| matches!(kind, SymbolKind::Data | SymbolKind::Tls);
    let shared =
        |name: &str| library.symbols().any(|symbol| symbol.name() == Ok(name) && is_data(symbol.kind()));
    assert!(shared("pio_descriptors") && shared("pio_self"), "the library was stripped: nothing is tested");
    let leaked: Vec<_> = library
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && is_data(symbol.kind()))
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    assert!(leaked.is_empty(), "exported, though they are the recorder's alone: {leaked:?}");
}

/// What programs call by its name: `crates/record/c/pio_mark.h`.
const FOR_PROGRAMS: [&str; 5] =
    ["pio_call_site_begin", "pio_call_site_end", "pio_mark", "pio_phase_begin", "pio_phase_end"];

/// Every function that the sources define for others to call is exported, some that are `known` among them, and nothing
/// else is: what the files of a library call of each other has a name with `pio_`, what our libraries call of each other
/// one with `pioscope_`.
#[track_caller]
fn check(library: &[u8], known: &[&str]) {
    let library: ElfFile64 = ElfFile64::parse(library).unwrap();
    // The compiler and the linker keep a hidden function in the full table, and say that it is hidden.
    let functions = library.symbols().filter(is_function);
    // It writes a version behind the name, as in io_cancel@LIBAIO_0.1.
    let defined: BTreeSet<&str> =
        functions.map(|symbol| symbol.name().unwrap().split('@').next().unwrap()).collect();
    let exported: BTreeSet<&str> =
        library.dynamic_symbols().filter(is_function).map(|symbol| symbol.name().unwrap()).collect();
    let of_the_linker = ["_init", "_fini"];
    let for_others: BTreeSet<&str> = defined
        .into_iter()
        .filter(|name| {
            FOR_PROGRAMS.contains(name) || !name.starts_with("pio_") && !of_the_linker.contains(name)
        })
        .collect();
    let hidden: Vec<_> = for_others.difference(&exported).collect();
    assert!(hidden.is_empty(), "hidden, so that no program finds them: {hidden:?}");
    let leaked: Vec<_> = exported.difference(&for_others).collect();
    assert!(leaked.is_empty(), "exported, though they are ours alone: {leaked:?}");
    for name in known {
        assert!(exported.contains(name), "{name} is not exported");
    }
}

/// A function that is defined here, and not `static`.
fn is_function<'a>(symbol: &impl object::ObjectSymbol<'a>) -> bool {
    let SymbolFlags::Elf { st_other, .. } = symbol.flags() else { return false };
    let is_static = symbol.is_local() && st_other.visibility() == elf::STV_DEFAULT;
    symbol.is_definition() && symbol.kind() == SymbolKind::Text && !is_static
}
