//! The conformance suite: MPI programs, one a subject, that check what MPI's text says of files. They run under the shim
//! with each strategy, and on the MPI's own files where that MPI does what the text says, so that they are checked, too.
//!
//! They need the `mpicc` and `mpiexec` of an MPI on the PATH; without, the tests say so and pass.

// A test that cannot set up its scene fails there.

use crate::common::{self, Mpi, SUITE, Servers, assert_says};
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

/// Without threads on one node; and on two, if MPI is for threads.
#[test]
fn operations_go_on_whatever_the_program_does() {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for ranks in [2, 4] {
        assert_says(&mpi.run(ranks, "progress", &[folder], &[]), "all is as MPI says");
    }
    let apart = [("PIOSCOPE_SHARED_MEMORY", "off")];
    assert_says(&mpi.run(2, "progress", &[folder, "threads"], &apart), "all is as MPI says");
    assert_says(&mpi.run(3, "progress", &[folder, "looks"], &apart), "all is as MPI says");
}

/// At any thread level: what a thread of ours carries on needs no MPI, where ranks of one node share memory.
#[test]
fn operations_overlap_with_computing() {
    for (ranks, level) in [(1, "single"), (2, "funneled"), (4, "single"), (3, "multiple")] {
        run_with("overlap", ranks, &[level], &[]);
    }
    for level in ["single", "multiple"] {
        run_with("overlap", 2, &[level], &[("PIOSCOPE_SHARED_MEMORY", "off")]);
    }
}

#[test]
fn operations_on_servers_overlap_with_computing() {
    let Some(mpi) = Mpi::get() else { return };
    let servers = Servers::start(2);
    let store = servers.description();
    for (ranks, level, strategy) in
        [(1, "single", "ecio"), (2, "funneled", "two-phase"), (3, "multiple", "ecio")]
    {
        let variables = [("PIOSCOPE_STRATEGY", strategy), ("PIOSCOPE_STORE", &store)];
        assert_says(&mpi.run(ranks, "overlap", &["/suite", level], &variables), "all is as MPI says");
    }
}

/// On one node, on two, and on servers: under the strategies that let ranks write each other's data, and for whoever may call MPI.
#[test]
fn writes_beside_each_other_lose_nothing() {
    run_with("beside", 4, &["multiple"], &[]);
    run("beside", 2, &[("PIOSCOPE_STRATEGY", "auto")]);
    run("beside", 3, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
    let Some(mpi) = Mpi::get() else { return };
    let servers = Servers::start(2);
    for strategy in ["two-phase", "auto"] {
        let variables = [("PIOSCOPE_STRATEGY", strategy), ("PIOSCOPE_STORE", &*servers.description())];
        assert_says(&mpi.run(3, "beside", &["/suite", "multiple"], &variables), "all is as MPI says");
    }
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

/// Fortran's functions reach the MPI's C functions under one name or the other, and their error handlers are subroutines.
#[test]
fn fortran() {
    let mut found = false;
    for mpi in Mpi::all() {
        for program in ["fortran77", "fortran90", "fortran08"] {
            if mpi.compile_fortran(program) {
                found = true;
                let folder = tempfile::tempdir().unwrap();
                let output = mpi.run(2, program, &[folder.path().to_str().unwrap()], &[]);
                assert_says(&output, "all is as MPI says");
            }
        }
    }
    if !found {
        eprintln!("skipped: no MPI here has a Fortran compiler");
    }
}

/// On several nodes, shared pointers and the locks of atomic mode are the servers'.
#[test]
fn shared_pointers_and_locks_of_servers() {
    let Some(mpi) = Mpi::get() else { return };
    let servers = Servers::start(2);
    let variables = [
        ("PIOSCOPE_SHARED_MEMORY", "off"),
        ("PIOSCOPE_STORE", &servers.description()),
        ("PIOSCOPE_STRATEGY", "ecio"),
    ];
    for program in ["shared", "atomic"] {
        assert_says(&mpi.run(3, program, &["/suite"], &variables), "all is as MPI says");
    }
    let hidden: Vec<_> = servers.files().into_iter().filter(|name| name.contains("/.")).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

/// Each request to a server lists its pieces.
#[test]
fn lists_of_pieces_on_servers() {
    let Some(mpi) = Mpi::get() else { return };
    let servers = Servers::start(2);
    let variables = [("PIOSCOPE_STORE", &*servers.description()), ("PIOSCOPE_STRATEGY", "list")];
    for program in ["datatypes", "atomic", "representations"] {
        assert_says(&mpi.run(2, program, &["/suite"], &variables), "all is as MPI says");
    }
}

/// `ROMIO_HINTS` names a file of hints, which come after the program's own. ROMIO itself does the same: MPICH has no other.
#[test]
fn hints_of_the_site() {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let hints = folder.path().join("hints");
    let variables = [("ROMIO_HINTS", hints.to_str().unwrap())];
    let common = "# for all\ncb_nodes 1\nromio_cb_read enable\nind_rd_buffer_size 49\nind_rd_buffer_size 60\n\
        ind_wr_buffer_size 51\n# cb_buffer_size 4096\ncb_buffer_size 8192 # small\n";
    for (more, cb_read) in [("", "disable"), ("romio_no_indep_rw true\n", "enable")] {
        std::fs::write(&hints, format!("{common}{more}")).unwrap();
        let arguments = [folder.path().to_str().unwrap(), "site", cb_read];
        assert_says(&mpi.run(2, "openings", &arguments, &variables), "all is as MPI says");
        if !mpi.is_open_mpi() {
            let mut job = mpi.job(2, "openings", &arguments);
            assert_says(&job.envs(variables).output().unwrap(), "all is as MPI says");
        }
    }
}

/// Each rank waits once for servers that are not there, or that never answer, and one of them says so.
#[test]
fn servers_that_do_not_answer() {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (silent, address)).unwrap();
    // Where no other test listens.
    let nobody = std::net::TcpListener::bind("127.1.2.3:0").unwrap().local_addr().unwrap();
    for address in [silent.1, nobody] {
        let store = common::described(folder.path(), &address.to_string());
        let variables = [("PIOSCOPE_STORE", store.to_str().unwrap()), ("PIOSCOPE_TIMEOUT", "2")];
        let output = mpi.run(2, "openings", &["/run", "unreachable"], &variables);
        assert_says(&output, "all is as MPI says");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors.matches("did not answer within 2 s").count(), 1, "{errors}");
        // Each process says whom it waits for, while it can do no more than connect again and again.
        let waiting = errors.matches(&format!("server 0 at {address} does not answer")).count();
        assert_eq!(waiting, if address == nobody { 2 } else { 0 }, "{errors}");
    }
    let variables = [("PIOSCOPE_STORE", "/no/store.toml")];
    let errors = mpi.run(3, "openings", &["/run", "unreachable"], &variables).stderr;
    let errors = String::from_utf8_lossy(&errors);
    assert_eq!(errors.matches("/no/store.toml").count(), 1, "{errors}");
}

/// Every rank may ask for a file, or remove one, that is not there: the answer is MPI's error class, and no more.
#[test]
fn a_missing_file_on_servers_is_no_news() {
    let Some(mpi) = Mpi::get() else { return };
    let servers = Servers::start(2);
    let output = mpi.run(2, "missing", &["/run"], &[("PIOSCOPE_STORE", &servers.description())]);
    assert_says(&output, "all is as MPI says");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("pioscope"), "{errors}");
}

#[test]
fn openings_of_ranks_that_are_late() {
    passes("openings", &[1, 4]);
}

/// Needs 3 GB of memory, and 4 GB where temporary files are.
#[test]
#[ignore = "slow"]
fn slow_more_than_two_gibibytes_at_once() {
    let Some(mpi) = Mpi::get() else { return };
    mpi.compile(mpi.mpicc(), "large.c", &[], "large");
    drop(mpi);
    run("large", 1, &[]);
}

#[test]
#[ignore = "slow"]
fn slow_everything_passes_with_every_strategy() {
    for strategy in Strategy::ALL {
        for ranks in [1, 2, 4, 8] {
            for program in SUITE {
                run(program, ranks, &[("PIOSCOPE_STRATEGY", strategy.name())]);
                if strategy == Strategy::TwoPhase {
                    // Without memory that all share, only an MPI for threads goes on by itself.
                    let more: &[&str] = if program == "progress" { &["threads"] } else { &[] };
                    run_with(program, ranks, more, &[("PIOSCOPE_SHARED_MEMORY", "off")]);
                    // MPICH can pretend that even and odd ranks are on two nodes.
                    run_with(program, ranks, more, &[("MPIR_CVAR_ODD_EVEN_CLIQUES", "1")]);
                }
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn slow_everything_passes_on_servers() {
    for strategy in Strategy::ALL {
        let ranks: &[u32] = match strategy {
            Strategy::Ecio | Strategy::TwoPhase => &[1, 2, 4, 8],
            _ => &[2],
        };
        for &ranks in ranks {
            for program in SUITE {
                let Some(mpi) = Mpi::get() else { return };
                let servers = Servers::start(2);
                let variables =
                    [("PIOSCOPE_STRATEGY", strategy.name()), ("PIOSCOPE_STORE", &servers.description())];
                let output = mpi.run(ranks, program, &["/suite"], &variables);
                eprintln!("{program}, {ranks} ranks, {}", strategy.name());
                assert_says(&output, "all is as MPI says");
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
    run_with(program, ranks, &[], variables);
}

/// With more arguments behind the folder.
fn run_with(program: &str, ranks: u32, more: &[&str], variables: &[(&str, &str)]) {
    let Some(mpi) = Mpi::get() else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&[folder.path().to_str().unwrap()], more].concat();
    let output = mpi.run(ranks, program, &arguments, variables);
    assert_says(&output, "all is as MPI says");
    // Hidden files go with the files that they belong to.
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}
