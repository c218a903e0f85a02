//! The MPI on the PATH, with the shim and the C programs of `tests/programs` compiled for it.

// Each test binary uses its part.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pio_mpiio::{Apply, SHIM, core_library};
use pio_plan::{Hints, Strategy};
use pio_store::auth::Token;
use pio_store::client::{Mode, Store, Striping};
use pio_store::serve::{self, Running};
use pio_store::transport::{Listener, TcpListener};
use pio_store::{Limits, config};

/// What a job may take before we call it a deadlock.
const LIMIT: Duration = Duration::from_secs(240);

/// The programs of the conformance suite.
pub const SUITE: [&str; 10] = [
    "atomic",
    "datatypes",
    "errors",
    "large_counts",
    "nonblocking",
    "openings",
    "progress",
    "representations",
    "shared",
    "threads",
];

pub fn assert_says(output: &Output, text: &str) {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(text), "{}\n{out}{errors}", output.status);
}

/// An MPI, with the shim and programs compiled for it.
pub struct Mpi {
    pub folder: tempfile::TempDir,
    pub shim: PathBuf,
    core: PathBuf,
    is_open_mpi: bool,
    /// What its commands' names end with: systems with several MPIs have `mpicc.mpich` and the like.
    suffix: &'static str,
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-std=gnu11"];

impl Mpi {
    /// None, and a word why, if there is none. One test at a time has it: ranks need the processors.
    pub fn get() -> Option<MutexGuard<'static, Mpi>> {
        static MPI: OnceLock<Option<Mutex<Mpi>>> = OnceLock::new();
        let mpi = MPI.get_or_init(|| {
            let mpi = Mpi::with_suffix("")?;
            mpi.compile_suite();
            Some(Mutex::new(mpi))
        });
        if mpi.is_none() {
            eprintln!("skipped: no mpicc and mpiexec on the PATH");
        }
        Some(mpi.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All MPIs that are found: the one on the PATH, and those beside it under names of their own.
    pub fn all() -> impl Iterator<Item = Mpi> {
        ["", ".mpich", ".openmpi"].into_iter().filter_map(Mpi::with_suffix)
    }

    /// With the shim alone.
    fn with_suffix(suffix: &'static str) -> Option<Mpi> {
        let version = Command::new(format!("mpiexec{suffix}")).arg("--version").output().ok()?;
        Command::new(format!("mpicc{suffix}")).arg("--version").output().ok()?;
        let is_open_mpi = ["Open", "OpenRTE"].iter().any(|name| {
            let said = String::from_utf8_lossy(&version.stdout);
            said.contains(name)
        });
        let folder = tempfile::tempdir().unwrap();
        let core = core_library(&std::env::current_exe().unwrap()).unwrap();
        let shim = folder.path().join("shim.so");
        let mpi = Mpi { folder, shim, core, is_open_mpi, suffix };
        mpi.compile_shim();
        Some(mpi)
    }

    /// The name of one of its commands.
    pub fn command(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// Whether its commands have names that no other MPI's have.
    pub fn has_own_names(&self) -> bool {
        !self.suffix.is_empty()
    }

    /// Whether it is Open MPI, and not MPICH or one that descends from that.
    pub fn is_open_mpi(&self) -> bool {
        self.is_open_mpi
    }

    /// As the command does.
    fn compile_shim(&self) {
        let mpicc = self.command("mpicc");
        let built = pio_record::compile_shim(mpicc.as_ref(), SHIM, self.folder.path()).unwrap();
        std::fs::rename(built, &self.shim).unwrap();
    }

    fn compile_suite(&self) {
        let mpicc = self.command("mpicc");
        self.compile("cc", "recorder.c", &["-shared", "-fPIC"], "recorder.so");
        self.compile("cc", "loader.c", &[], "loader");
        self.compile(&mpicc, "dumps.c", &["-shared", "-fPIC", "-Dmain=work"], "libdumps.so");
        for name in ["identity", "semantics", "dumps", "missing"].iter().chain(&SUITE) {
            self.compile(&mpicc, &format!("{name}.c"), &["-g", "-pthread"], name);
        }
    }

    /// Compiles a program of `tests/programs`; `options` come after it.
    pub fn compile(&self, compiler: &str, source: &str, options: &[&str], result: &str) {
        let mut compiler = Command::new(compiler);
        compiler.arg("-I").arg(sources()).args(["-O1"]).args(WARNINGS);
        compiler.arg("-o").arg(self.folder.path().join(result)).arg(sources().join(source));
        check(compiler.args(options).arg("-ldl"));
    }

    /// Compiles a Fortran program; false if there is no compiler for it.
    pub fn compile_fortran(&self, name: &str) -> bool {
        let mut compiler = Command::new(self.command("mpifort"));
        if Command::new(self.command("mpifort")).arg("--version").output().is_err() {
            return false;
        }
        compiler.arg("-o").arg(self.folder.path().join(name)).arg("-J").arg(self.folder.path());
        check(compiler.arg("-I").arg(sources()).arg(sources().join(name).with_extension("f90")));
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
        let mut job = self.job(ranks, program, arguments);
        job.envs(apply.environment()).envs(variables.iter().copied());
        finish(job.spawn().unwrap(), &format!("{program} on {ranks} ranks with {variables:?}"))
    }

    /// Without us.
    pub fn run_alone(&self, ranks: u32, program: &str, arguments: &[&str]) -> Output {
        finish(self.job(ranks, program, arguments).spawn().unwrap(), &format!("{program} on {ranks} ranks"))
    }

    pub fn job(&self, ranks: u32, program: &str, arguments: &[&str]) -> Command {
        let mut job = Command::new(self.command("mpiexec"));
        if self.is_open_mpi {
            job.arg("--oversubscribe");
            job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        job.args(["-n", &ranks.to_string()]).arg(self.folder.path().join(program)).args(arguments);
        job.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        job
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// I/O servers that run in this process, and end with it.
pub struct Servers {
    folder: tempfile::TempDir,
    _running: Vec<Running>,
}

impl Servers {
    pub fn start(servers: u32) -> Servers {
        let folder = tempfile::tempdir().unwrap();
        let description = folder.path().join("store.toml");
        let token = Token::load_or_create(&config::token_path(&description)).unwrap();
        let start = |index: u32| {
            let listener: Box<dyn Listener> = Box::new(TcpListener::bind("127.0.0.1:0").unwrap());
            let settings = serve::Settings {
                index,
                servers,
                folders: vec![folder.path().join(format!("server-{index}"))],
                token: token.clone(),
                limits: Limits::DEFAULT,
            };
            let running = serve::start(settings, vec![listener]).unwrap();
            let server = config::Server { address: running.addresses()[0].clone() };
            config::publish(&description, index, servers, &server, 4096).unwrap();
            running
        };
        let running = (0..servers).map(start).collect();
        Servers { folder, _running: running }
    }

    /// What names the store to programs.
    pub fn description(&self) -> String {
        self.folder.path().join("store.toml").to_str().unwrap().to_owned()
    }

    /// The names of the files of the store.
    pub fn files(&self) -> Vec<String> {
        let store = Store::connect(self.description().as_ref()).unwrap();
        store.list("").unwrap().into_iter().map(|(name, _)| name).collect()
    }

    /// Copies a file out of the store.
    pub fn copy_out(&self, name: &str, to: &Path) {
        let store = Store::connect(self.description().as_ref()).unwrap();
        let mode = Mode { create: false, exclusive: false };
        let file = store.open(name, mode, Striping::default()).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
}

/// The description, in `folder`, of a store whose only server is at `address`.
pub fn described(folder: &Path, address: &str) -> PathBuf {
    let description = folder.join("store.toml");
    Token::load_or_create(&config::token_path(&description)).unwrap();
    let server = config::Server { address: address.into() };
    config::publish(&description, 0, 1, &server, 4096).unwrap();
    description
}

/// The output of a job, which must end.
fn finish(mut job: Child, name: &str) -> Output {
    let start = Instant::now();
    while job.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            job.kill().unwrap();
            let output = job.wait_with_output().unwrap();
            panic!("{name} hangs: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    job.wait_with_output().unwrap()
}

fn check(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
