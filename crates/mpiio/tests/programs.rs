//! The C programs beside this file, unmodified MPI programs, run under the shim: against the MPI's own results, byte for
//! byte, and against the standard's text.
//!
//! They need the `mpicc` and `mpiexec` of an MPI on the PATH; without, the tests say so and pass.

// A test stops at what is wrong.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pio_mpiio::{Apply, SHIM, core_library};
use pio_plan::{Hints, Strategy};

/// What a job may take before we call it a deadlock.
const LIMIT: Duration = Duration::from_secs(240);

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

#[test]
fn files_behave_as_mpi_says() {
    let Some(mpi) = Mpi::get() else { return };
    for (ranks, variables) in [(1, &[][..]), (3, &[][..]), (2, &[("PIOSCOPE_STRATEGY", "independent")][..])] {
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

fn assert_says(output: &Output, text: &str) {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(text), "{}\n{out}{errors}", output.status);
}

/// The MPI on the PATH, with the shim and the programs compiled for it.
struct Mpi {
    folder: tempfile::TempDir,
    shim: PathBuf,
    core: PathBuf,
    is_open_mpi: bool,
}

impl Mpi {
    /// None, and a word why, if there is none. One test at a time has it: ranks need the processors.
    fn get() -> Option<MutexGuard<'static, Mpi>> {
        static MPI: OnceLock<Option<Mutex<Mpi>>> = OnceLock::new();
        let mpi = MPI.get_or_init(|| {
            let version = Command::new("mpiexec").arg("--version").output().ok()?;
            Command::new("mpicc").arg("--version").output().ok()?;
            let is_open_mpi = String::from_utf8_lossy(&version.stdout).contains("Open");
            Some(Mutex::new(Mpi::build(is_open_mpi)))
        });
        if mpi.is_none() {
            eprintln!("skipped: no mpicc and mpiexec on the PATH");
        }
        Some(mpi.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn build(is_open_mpi: bool) -> Mpi {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in SHIM {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let warnings = ["-Wall", "-Wextra", "-Werror", "-std=gnu11"];
        let mut link = Command::new("cc");
        let shim = folder.path().join("shim.so");
        link.args(["-shared", "-Wl,-z,lazy", "-o"]).arg(&shim);
        for (name, _) in SHIM.iter().filter(|(name, _)| name.ends_with(".c")) {
            let object = folder.path().join(name).with_extension("o");
            let source = folder.path().join(name);
            check(
                Command::new("mpicc")
                    .args(["-c", "-fPIC", "-O2"])
                    .args(warnings)
                    .arg("-o")
                    .arg(&object)
                    .arg(source),
            );
            link.arg(object);
        }
        check(link.args(["-ldl", "-lpthread"]));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let compile = |compiler: &str, source: &str, options: &[&str], result: &str| {
            let mut compiler = Command::new(compiler);
            compiler.arg("-I").arg(&sources);
            compiler.args(["-O1"]).args(warnings).args(options).arg("-o").arg(folder.path().join(result));
            check(compiler.arg(sources.join(source)).arg("-ldl"));
        };
        compile("cc", "recorder.c", &["-shared", "-fPIC"], "recorder.so");
        compile("cc", "loader.c", &[], "loader");
        compile("mpicc", "dumps.c", &["-shared", "-fPIC", "-Dmain=work"], "libdumps.so");
        for name in ["identity", "semantics", "dumps"] {
            compile("mpicc", &format!("{name}.c"), &["-g"], name);
        }
        let core = core_library(&std::env::current_exe().unwrap()).unwrap();
        Mpi { folder, shim, core, is_open_mpi }
    }

    fn run(&self, ranks: u32, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let apply = Apply {
            strategy: Strategy::TwoPhase,
            hints: Hints::default(),
            store: None,
            verbose: false,
            applied: self.folder.path().join("applied"),
            shim: self.shim.clone(),
            core: self.core.clone(),
        };
        let mut job = Command::new("mpiexec");
        if self.is_open_mpi {
            job.arg("--oversubscribe");
            job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        job.args(["-n", &ranks.to_string()]).arg(self.folder.path().join(program)).args(arguments);
        job.envs(apply.environment()).envs(variables.iter().copied());
        let child = job.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        finish(child)
    }
}

/// The output of a job, which must end.
fn finish(mut job: Child) -> Output {
    let start = Instant::now();
    while job.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            job.kill().unwrap();
            let output = job.wait_with_output().unwrap();
            panic!("the job hangs: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    job.wait_with_output().unwrap()
}

fn check(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
