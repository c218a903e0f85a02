//! The MPI on the PATH, with the shim and the C programs of `tests/programs` compiled for it.

// Each test binary uses its part.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pio_mpiio::{Apply, SHIM, core_library};
use pio_plan::{Hints, Strategy};

/// What a job may take before we call it a deadlock.
const LIMIT: Duration = Duration::from_secs(240);

/// The programs of the conformance suite.
pub const SUITE: [&str; 8] =
    ["atomic", "datatypes", "errors", "large_counts", "nonblocking", "representations", "shared", "threads"];

pub fn assert_says(output: &Output, text: &str) {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(text), "{}\n{out}{errors}", output.status);
}

/// The MPI on the PATH, with the shim and the programs compiled for it.
pub struct Mpi {
    pub folder: tempfile::TempDir,
    pub shim: PathBuf,
    core: PathBuf,
    is_open_mpi: bool,
}

impl Mpi {
    /// None, and a word why, if there is none. One test at a time has it: ranks need the processors.
    pub fn get() -> Option<MutexGuard<'static, Mpi>> {
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
        for name in ["identity", "semantics", "dumps"].iter().chain(&SUITE) {
            compile("mpicc", &format!("{name}.c"), &["-g", "-pthread"], name);
        }
        let core = core_library(&std::env::current_exe().unwrap()).unwrap();
        Mpi { folder, shim, core, is_open_mpi }
    }

    /// Compiles a Fortran program; false if there is no compiler for it.
    pub fn compile_fortran(&self, name: &str) -> bool {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let mut compiler = Command::new("mpifort");
        compiler.arg("-o").arg(self.folder.path().join(name)).arg("-J").arg(self.folder.path());
        if Command::new("mpifort").arg("--version").output().is_err() {
            return false;
        }
        check(compiler.arg(sources.join(name).with_extension("f90")));
        true
    }

    pub fn run(&self, ranks: u32, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
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
