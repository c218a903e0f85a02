//! Runs the command as a user would, in a folder of its own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pio_mpi::{Commands, any_ranks};
use tempfile::TempDir;

/// What a command printed, and how it ended.
pub(crate) struct Transcript {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Transcript {
    /// It failed with one line that begins with the command's name and contains `expected`.
    #[track_caller]
    pub(crate) fn fails_with(&self, expected: &str) {
        assert_ne!(self.code, Some(0), "it succeeded: {}", self.err);
        let ours: Vec<&str> = self.err.lines().filter(|line| line.starts_with("pioscope:")).collect();
        assert!(
            matches!(&ours[..], [line] if line.contains(expected)),
            "expected one line with '{expected}': {}",
            self.err
        );
    }

    /// It succeeded.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Transcript {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self
    }
}

/// A folder to run commands in.
pub(crate) struct Place {
    folder: TempDir,
    cache: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a temporary folder"), cache: cache() }
    }

    /// With a cache of its own, for what is kept between commands.
    pub(crate) fn with_own_cache() -> Place {
        let place = Place::new();
        Place { cache: place.join("cache"), ..place }
    }

    /// The user's cache of its commands.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Runs `pioscope` with these words.
    pub(crate) fn pioscope<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Transcript {
        self.run(Command::new(env!("CARGO_BIN_EXE_pioscope")).args(words))
    }

    pub(crate) fn run(&self, command: &mut Command) -> Transcript {
        command.envs(any_ranks());
        let output = command.current_dir(self.path()).env("XDG_CACHE_HOME", &self.cache).output();
        let Output { status, stdout, stderr } = output.expect("the command starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Transcript { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Compiles a C program with `compiler`.
    pub(crate) fn compile(
        &self,
        compiler: impl AsRef<OsStr>,
        name: &str,
        source: &str,
        flags: &[&str],
    ) -> PathBuf {
        let (program, file) = (self.join(name), self.join(&format!("{name}.c")));
        fs::write(&file, source).expect("the folder is writable");
        let mut command = Command::new(compiler);
        self.run(command.arg("-O1").args(flags).arg("-o").arg(&program).arg(&file)).succeeds();
        program
    }
}

/// One cache of compiled shims for all tests of this build.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// The MPI to test with; none, and a word why, if there is none.
pub(crate) fn mpi() -> Option<Commands> {
    Commands::first().map_err(|missing| eprintln!("skipped: {missing}")).ok()
}

/// The words that start a job of so many ranks.
pub(crate) fn mpiexec(mpi: &Commands, ranks: u32) -> [String; 3] {
    [mpi.mpiexec.display().to_string(), "-n".to_owned(), ranks.to_string()]
}
