//! The MPI that is first on the PATH, with the shim and the C programs of `tests/programs` compiled for it.

// Each test binary uses its part.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pio_mpi::{Commands, Family, any_ranks};
use pio_mpiio::{Apply, SHIM, core_library};
use pio_plan::{Hints, Strategy};
use pio_protocol::Limits;
use pio_store::auth::Token;
use pio_store::client::{Mode, Store, StripingHints};
use pio_store::config;
use pio_store::serve::{self, Running};
use pio_store::transport::{Listener, TcpListener};

/// What a job may take before we call it a deadlock.
const LIMIT: Duration = Duration::from_secs(240);

/// The programs of the conformance suite.
pub(crate) const SUITE: [&str; 12] = [
    "atomic",
    "beside",
    "datatypes",
    "errors",
    "large_counts",
    "nonblocking",
    "openings",
    "overlap",
    "progress",
    "representations",
    "shared",
    "threads",
];

pub(crate) fn assert_says(output: &Output, text: &str) {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(text), "{}\n{out}{errors}", output.status);
}

/// An MPI, with the shim and programs compiled for it.
pub(crate) struct Mpi {
    commands: Commands,
    pub folder: tempfile::TempDir,
    pub shim: PathBuf,
    core: PathBuf,
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-std=gnu11"];

impl Mpi {
    /// None, and a word why, if there is none. One test at a time has it: ranks need the processors.
    pub(crate) fn get() -> Option<MutexGuard<'static, Mpi>> {
        static MPI: OnceLock<Option<Mutex<Mpi>>> = OnceLock::new();
        let mpi = MPI.get_or_init(|| {
            let commands = Commands::first().map_err(|missing| eprintln!("no MPI: {missing}")).ok()?;
            let mpi = Mpi::new(commands);
            mpi.compile_suite();
            Some(Mutex::new(mpi))
        });
        if mpi.is_none() {
            eprintln!("skipped: no MPI on the PATH");
        }
        Some(mpi.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All MPIs that are found: the first on the PATH, and those with commands of their own names.
    pub(crate) fn all() -> impl Iterator<Item = Mpi> {
        let mut found: Vec<Commands> = Vec::new();
        for commands in ["", ".mpich", ".openmpi"].map(Commands::with_suffix).into_iter().flatten() {
            if !found.contains(&commands) {
                found.push(commands);
            }
        }
        found.into_iter().map(Mpi::new)
    }

    /// With the shim alone.
    fn new(commands: Commands) -> Mpi {
        let folder = tempfile::tempdir().unwrap();
        let core = core_library(&std::env::current_exe().unwrap()).unwrap();
        let shim = folder.path().join("shim.so");
        let mpi = Mpi { commands, folder, shim, core };
        mpi.compile_shim();
        mpi
    }

    /// Its C compiler.
    pub(crate) fn mpicc(&self) -> &Path {
        &self.commands.mpicc
    }

    /// Whether its commands have names that no other MPI's have.
    pub(crate) fn has_own_names(&self) -> bool {
        self.commands.mpicc.extension().is_some()
    }

    /// Whether it is Open MPI, and not MPICH or one that descends from that.
    pub(crate) fn is_open_mpi(&self) -> bool {
        self.commands.family() == Family::OpenMpi
    }

    /// As the command does.
    fn compile_shim(&self) {
        let built = pio_record::compile_shim(self.mpicc(), SHIM, self.folder.path()).unwrap();
        std::fs::rename(built, &self.shim).unwrap();
    }

    fn compile_suite(&self) {
        let mpicc = self.mpicc();
        self.compile("cc", "recorder.c", &["-shared", "-fPIC"], "recorder.so");
        self.compile("cc", "loader.c", &[], "loader");
        self.compile(mpicc, "dumps.c", &["-shared", "-fPIC", "-Dmain=work"], "libdumps.so");
        for name in ["identity", "semantics", "dumps", "missing"].iter().chain(&SUITE) {
            self.compile(mpicc, &format!("{name}.c"), &["-g", "-pthread"], name);
        }
    }

    /// Compiles a program of `tests/programs`; `options` come after it.
    pub(crate) fn compile(&self, compiler: impl AsRef<OsStr>, source: &str, options: &[&str], result: &str) {
        let mut compiler = Command::new(compiler);
        compiler.arg("-I").arg(sources()).args(["-O1"]).args(WARNINGS);
        compiler.arg("-o").arg(self.folder.path().join(result)).arg(sources().join(source));
        check(compiler.args(options).arg("-ldl"));
    }

    /// Compiles a Fortran program; false if this MPI has no compiler for it.
    pub(crate) fn compile_fortran(&self, name: &str) -> bool {
        let Some(compiler) = self.commands.fortran() else { return false };
        let mut compiler = Command::new(compiler);
        compiler.arg("-o").arg(self.folder.path().join(name)).arg("-J").arg(self.folder.path());
        check(compiler.arg("-I").arg(sources()).arg(sources().join(name).with_extension("f90")));
        true
    }

    pub(crate) fn run(
        &self,
        ranks: u32,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Output {
        let apply = Apply {
            strategy: Strategy::TwoPhase,
            hints: Hints::default(),
            store: None,
            places: pio_mpiio::Places::default(),
            verbose: false,
            applied: self.folder.path().join("applied"),
            core: self.core.clone(),
        };
        let mut job = self.job(ranks, program, arguments);
        job.env("LD_PRELOAD", &self.shim).envs(apply.settings()).envs(variables.iter().copied());
        finish(job.spawn().unwrap(), &format!("{program} on {ranks} ranks with {variables:?}"))
    }

    /// Without us.
    pub(crate) fn run_alone(&self, ranks: u32, program: &str, arguments: &[&str]) -> Output {
        finish(self.job(ranks, program, arguments).spawn().unwrap(), &format!("{program} on {ranks} ranks"))
    }

    pub(crate) fn job(&self, ranks: u32, program: &str, arguments: &[&str]) -> Command {
        let mut job = Command::new(&self.commands.mpiexec);
        job.envs(any_ranks()).args(["-n", &ranks.to_string()]);
        job.arg(self.folder.path().join(program)).args(arguments);
        job.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        job
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// I/O servers that run in this process, and end with it.
pub(crate) struct Servers {
    folder: tempfile::TempDir,
    _running: Vec<Running>,
}

impl Servers {
    pub(crate) fn start(servers: u32) -> Servers {
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
    pub(crate) fn description(&self) -> String {
        self.folder.path().join("store.toml").to_str().unwrap().to_owned()
    }

    /// The names of the files of the store.
    pub(crate) fn files(&self) -> Vec<String> {
        let store = Store::connect(self.description().as_ref()).unwrap();
        store.list("").unwrap().into_iter().map(|(name, _)| name).collect()
    }

    /// Copies a file out of the store.
    pub(crate) fn copy_out(&self, name: &str, to: &Path) {
        let store = Store::connect(self.description().as_ref()).unwrap();
        let mode = Mode { create: false, exclusive: false };
        let file = store.open(name, mode, StripingHints::default()).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
}

/// The description, in `folder`, of a store whose only server is at `address`.
pub(crate) fn described(folder: &Path, address: &str) -> PathBuf {
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
