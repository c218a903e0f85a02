//! The C programs beside this file, unmodified MPI programs, run under the shim: against the MPI's own results, byte for
//! byte, and against the standard's text.
//!
//! They need the `mpicc` and `mpiexec` of an MPI on the PATH; without, the tests say so and pass.

// A test stops at what is wrong.

use std::process::Command;

use crate::common::{Mpi, assert_says};

#[test]
fn one_rank_agrees_with_the_mpi() {
    identity(1, 1, 40, &[]);
}

#[test]
fn two_ranks_agree_with_the_mpi() {
    identity(2, 2, 25, &[]);
}

#[test]
fn three_ranks_agree_with_the_mpi() {
    identity(3, 3, 8, &[]);
}

#[test]
fn four_ranks_agree_with_the_mpi() {
    identity(4, 4, 6, &[]);
}

#[test]
fn eight_ranks_agree_with_the_mpi() {
    identity(8, 5, 2, &[]);
}

#[test]
fn ranks_without_shared_memory_agree_with_the_mpi() {
    identity(2, 6, 15, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
    identity(4, 7, 4, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
}

/// MPICH can pretend that even and odd ranks are on two nodes; other MPIs pass over the variable.
#[test]
fn ranks_on_two_nodes_agree_with_the_mpi() {
    identity(4, 9, 5, &[("MPIR_CVAR_ODD_EVEN_CLIQUES", "1")]);
}

#[test]
fn the_independent_strategy_agrees_with_the_mpi() {
    identity(3, 8, 6, &[("PIOSCOPE_STRATEGY", "independent")]);
}

/// Many cases at many numbers of ranks, by hand or at night.
#[test]
#[ignore = "slow"]
fn slow_everything_agrees_with_the_mpi() {
    for seed in 100..104 {
        for ranks in [1, 2, 3, 4, 5, 6, 8] {
            identity(ranks, seed, 25, &[]);
            identity(ranks, seed, 25, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
        }
    }
}

/// Enough for outboxes, in one window and in several, and often enough that each way is tried. The program looks at every element.
#[test]
fn much_data_in_small_pieces_goes_from_rank_to_rank() {
    let Some(mpi) = Mpi::get() else { return };
    mpi.compile(mpi.mpicc(), "../../bench/patterns.c", &[], "patterns");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    let words = ["--repeat", "12", "--file", file.to_str().unwrap(), "--pieces"];
    for (ranks, more) in [
        (2, &["100000"][..]),
        (2, &["300000", "--hint", "cb_buffer_size=262144"]),
        (2, &["300000", "--hint", "cb_buffer_size=300000", "--hint", "cb_nodes=1"]),
        (3, &["100001", "--hint", "cb_nodes=2"]),
        (4, &["100000", "--hint", "cb_nodes=4"]),
    ] {
        let output = mpi.run(ranks, "patterns", &[&words[..], more].concat(), &[]);
        assert_says(&output, "interleaved read");
    }
}

#[test]
fn files_behave_as_mpi_says() {
    let Some(mpi) = Mpi::get() else { return };
    let no_store = [("PIOSCOPE_STORE", "")];
    let independent = [("PIOSCOPE_STRATEGY", "independent")];
    for (ranks, variables) in [(1, &[][..]), (3, &[]), (2, &independent), (2, &no_store)] {
        let folder = tempfile::tempdir().unwrap();
        let output = mpi.run(ranks, "semantics", &[folder.path().to_str().unwrap()], variables);
        assert_says(&output, "all is as MPI says");
    }
}

#[test]
fn a_fatal_error_handler_ends_the_program() {
    let Some(mpi) = Mpi::get() else { return };
    let output = mpi.run(2, "semantics", &["/tmp", "fatal"], &[]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("MPI_File_open"), "{errors}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("still there"));
}

#[test]
fn settings_that_make_no_sense_end_the_program_early() {
    let Some(mpi) = Mpi::get() else { return };
    for (variable, value, says) in [
        ("PIOSCOPE_HINTS", "cb_nodes=0", "PIOSCOPE_HINTS: hint cb_nodes: '0' is not a number from 1"),
        ("PIOSCOPE_STRATEGY", "fastest", "PIOSCOPE_STRATEGY: unknown strategy 'fastest'"),
        ("PIOSCOPE_MPIIO_CORE", "/no/core.so", "cannot load /no/core.so"),
    ] {
        let output = mpi.run(1, "semantics", &["/tmp"], &[(variable, value)]);
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(says), "{errors}");
    }
}

#[test]
fn the_shim_does_no_harm_to_programs_without_mpi() {
    let Some(mpi) = Mpi::get() else { return };
    let output = Command::new("sh")
        .args(["-c", "echo fine"])
        .env("LD_PRELOAD", &mpi.shim)
        .env("LD_BIND_NOW", "1")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fine\n");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Thakur, Gropp and Lusk's counts: a rank sends P − 1 descriptions an operation, and its data to each aggregator but
/// itself; an aggregator makes one request a window and acknowledges to its clients. A file is opened once a rank.
#[test]
fn a_recorder_sees_each_request_and_message_once() {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (ranks, aggregators, steps) = (4, 2, 200);
    let preload = format!("{}:{}", mpi.folder.path().join("recorder.so").display(), mpi.shim.display());
    let variables = [("LD_PRELOAD", preload.as_str()), ("PIOSCOPE_HINTS", "cb_nodes=2")];
    let arguments = [folder.path().to_str().unwrap(), &steps.to_string()];
    let output = mpi.run(ranks, "dumps", &arguments, &variables);
    assert_says(&output, "0 wrong");
    let text = String::from_utf8_lossy(&output.stdout);
    let counted: Vec<&str> = text.lines().filter(|line| line.starts_with("COUNTED")).collect();
    assert_eq!(counted.len(), ranks as usize, "{text}");
    let total = |name: &str| -> u32 {
        let value = |line: &&str| {
            let mut words = line.split(' ').skip_while(|word| *word != name);
            words.nth(1).unwrap().parse::<u32>().unwrap()
        };
        counted.iter().map(value).sum::<u32>() / steps
    };
    assert_eq!(total("opens"), ranks);
    assert_eq!(total("closes"), ranks);
    assert_eq!(total("writes"), aggregators);
    assert_eq!(total("reads"), aggregators);
    assert_eq!(total("describe"), 2 * ranks * (ranks - 1), "of a write and a read");
    assert_eq!(total("data"), 2 * aggregators * (ranks - 1));
    assert_eq!(total("acknowledge"), aggregators * (ranks - 1));
    assert_eq!(total("grant"), 0);
    assert!(text.lines().all(|line| !line.starts_with("COUNTED") || line.ends_with("overlaps 0")), "{text}");
}

#[test]
fn an_mpi_that_is_loaded_privately_is_found() {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let library = mpi.folder.path().join("libdumps.so");
    let arguments = [library.to_str().unwrap(), folder.path().to_str().unwrap(), "5"];
    assert_says(&mpi.run(2, "loader", &arguments, &[]), "0 wrong");
}

/// Random operations, by us and by the MPI.
fn identity(ranks: u32, seed: u32, cases: u32, variables: &[(&str, &str)]) {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (seed, count) = (seed.to_string(), cases.to_string());
    let output = mpi.run(ranks, "identity", &[folder.path().to_str().unwrap(), &seed, &count], variables);
    assert_says(&output, &format!("{cases} cases agree"));
}
