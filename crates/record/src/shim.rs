//! The MPI recorder: shipped as source, since only the user's own `mpicc` knows the user's own MPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::Error;

/// The sources of the MPI recorder: file name and text. The first is the one to compile.
pub const MPI_SHIM: &[(&str, &str)] = &[
    ("pio_mpi.c", include_str!("../c/pio_mpi.c")),
    ("pio_calls.h", include_str!(concat!(env!("OUT_DIR"), "/pio_calls.h"))),
    ("pio_recorder.h", include_str!("../c/pio_recorder.h")),
    ("pio_spool.h", include_str!("../c/pio_spool.h")),
    ("pio_datatype.h", pio_layout::DATATYPE_HEADER),
];

/// Compiles the MPI recorder with `mpicc` into `folder` (its sources go there, too) and returns the shared object.
///
/// In two steps: the MPI's compiler for the object, the plain compiler beneath it for the link. The library must not be
/// linked to MPI, for it is loaded into every process of the job, shells and launchers included.
pub fn compile_mpi_shim(mpicc: &Path, folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
    for (name, text) in MPI_SHIM {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::io(&path, "write"))?;
    }
    let object = folder.join("pio_mpi.o");
    let library = folder.join("libpio_mpi.so");
    let compile =
        ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-Wall", "-Wextra"];
    run(
        mpicc,
        Command::new(mpicc).args(compile).arg("-c").arg(folder.join(MPI_SHIM[0].0)).arg("-o").arg(&object),
    )?;
    let linker = plain_compiler(mpicc);
    let link = ["-shared", "-Wl,-z,lazy", "-ldl", "-lpthread"];
    run(&linker, Command::new(&linker).arg(&object).arg("-o").arg(&library).args(link))?;
    Ok(library)
}

/// The compiler that `mpicc` calls: both families print it first when asked to show.
fn plain_compiler(mpicc: &Path) -> PathBuf {
    let shown = Command::new(mpicc).arg("-show").output().ok().filter(|output| output.status.success());
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
