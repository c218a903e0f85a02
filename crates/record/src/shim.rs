//! The MPI recorder: shipped as source, since only the user's own `mpicc` knows the user's own MPI.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::Error;

/// The sources of the MPI recorder: file name and text.
pub const MPI_SHIM: &[(&str, &str)] = &[
    ("pio_mpi.c", include_str!("../c/pio_mpi.c")),
    ("pio_calls.h", include_str!(concat!(env!("OUT_DIR"), "/pio_calls.h"))),
    ("pio_path.h", include_str!("../c/pio_path.h")),
    ("pio_recorder.h", include_str!("../c/pio_recorder.h")),
    ("pio_spool.h", include_str!("../c/pio_spool.h")),
    ("pio_datatype.h", pio_layout::DATATYPE_HEADER),
    ("pio_other_mpi.h", pio_layout::OTHER_MPI_HEADER),
];

const COMPILE: [&str; 7] =
    ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-Wall", "-Wextra"];
/// What stands before the number of the sources in a library: see pio_other_mpi.h.
const MARK: &[u8; 16] = b"pioscope source\0";

/// Compiles `sources` (file name and text; of an MPI library of ours, such as [`MPI_SHIM`]) with `mpicc` into `folder`,
/// where the sources go, too, and returns the shared object.
///
/// In two steps: the MPI's compiler for the objects, the plain compiler beneath it for the link. The library must not be
/// linked to MPI, for it is loaded into every process of the job, shells and launchers included.
pub fn compile_shim(mpicc: &Path, sources: &[(&str, &str)], folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
    let mut objects = Vec::new();
    for (name, text) in sources {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::io(&path, "write"))?;
        if path.extension().is_some_and(|extension| extension == "c") {
            objects.push((path.with_extension("o"), path));
        }
    }
    let number = format!("-DPIO_SOURCES={:#x}ULL", number_of(sources));
    for (object, source) in &objects {
        let mut compiler = Command::new(mpicc);
        compiler.args(COMPILE).arg(&number).arg("-c").arg(source).arg("-o").arg(object);
        run(mpicc, &mut compiler)?;
    }
    let library = folder.join("shim.so");
    let linker = plain_compiler(mpicc);
    // The older table of symbols says how many there are: see pio_other_mpi.h.
    let link = ["-shared", "-Wl,-z,lazy", "-Wl,--hash-style=both", "-ldl", "-lpthread"];
    let objects = objects.iter().map(|(object, _)| object);
    run(&linker, Command::new(&linker).args(objects).arg("-o").arg(&library).args(link))?;
    Ok(library)
}

/// Whether a library was compiled from these sources, as this version of the command compiles them, and can be read: one that was left
/// by another version would not fit what it is loaded beside.
pub fn is_shim_of(library: &Path, sources: &[(&str, &str)]) -> bool {
    let marked = [&MARK[..], &number_of(sources).to_le_bytes()].concat();
    fs::read(library).is_ok_and(|bytes| bytes.windows(marked.len()).any(|window| window == marked))
}

/// By which sources and options are told from others.
fn number_of(sources: &[(&str, &str)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (COMPILE, sources).hash(&mut hasher);
    hasher.finish()
}

/// The compiler that `mpicc` calls: both families print it first when asked to show.
fn plain_compiler(mpicc: &Path) -> PathBuf {
    let shown = pio_mpi::show(mpicc).ok().filter(|output| output.status.success());
    let first = shown.and_then(|output| {
        String::from_utf8_lossy(&output.stdout).split_whitespace().next().map(PathBuf::from)
    });
    first.unwrap_or_else(|| PathBuf::from("cc"))
}

fn run(compiler: &Path, command: &mut Command) -> Result<(), Error> {
    let Output { status, stderr, .. } = command.output().map_err(Error::io(compiler, "run the compiler"))?;
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&stderr);
    let first = text.lines().find(|line| line.contains("error")).or_else(|| text.lines().next());
    Err(Error::Compile {
        compiler: compiler.to_path_buf(),
        message: first.unwrap_or("no message").to_owned(),
    })
}
