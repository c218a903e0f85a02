//! Compiles the POSIX recorder and its exec hooks alone, which the crate embeds, and generates the calls' numbers for C from the trace's table.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

// The table alone: the trace crate's reader and writer are not needed to build C.
#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../trace/src/call.rs"]
mod call;

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=../trace/src/call.rs");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|library| library != "gnu") {
        fail(
            "Pioscope needs the GNU C library: its recorder is loaded by glibc's loader, and stands for glibc's functions",
        );
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    if let Err(error) = fs::write(out.join("pio_calls.h"), calls_header()) {
        fail(&format!("cannot write pio_calls.h to {}: {error}", out.display()));
    }
    let version_script = ["-Wl,--version-script=c/libaio.map"];
    compile_library(&out, "libpio_posix.so", &posix_sources(), &version_script);
    compile_library(&out, "libpio_starts.so", &STARTS_SOURCES.map(PathBuf::from), &["-DPIO_STARTS_ONLY"]);
    // What the recorder in the job decides about programs, the command decides alike: one source. It has no hooks that its
    // system calls must pass by.
    cc::Build::new()
        .file("c/pio_program.c")
        .define("_GNU_SOURCE", None)
        .define("KERNEL", "syscall")
        .warnings_into_errors(true)
        .compile("pio_program");
}

/// The exec hooks and what they need.
const STARTS_SOURCES: [&str; 7] = [
    "c/pio_starts.c",
    "c/pio_exec.c",
    "c/pio_environment.c",
    "c/pio_program.c",
    "c/pio_unseen.c",
    "c/pio_told.c",
    "c/pio_kernel.c",
];

/// Every C file but the main one of the exec hooks alone, and the MPI recorder, which only the user's own `mpicc` can compile
/// (`src/shim.rs`).
fn posix_sources() -> Vec<PathBuf> {
    let entries =
        fs::read_dir("c").unwrap_or_else(|error| fail(&format!("cannot read crates/record/c: {error}")));
    let mut sources: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "c")
                && !path.ends_with("pio_mpi.c")
                && !path.ends_with("pio_starts.c")
        })
        .collect();
    sources.sort();
    sources
}

fn calls_header() -> String {
    let mut text =
        String::from("/* Generated from pio_trace::Call: numbers of calls in spools and traces. */\n");
    text.push_str("#ifndef PIO_CALLS_H\n#define PIO_CALLS_H\n\nenum pio_call {\n");
    for call in call::Call::ALL {
        let _ = writeln!(text, "    PIO_CALL_{} = {},", call.name().to_uppercase(), call.number());
    }
    text.push_str("};\n\n#endif\n");
    text
}

/// A shared object, which the `cc` crate has no method for: its compiler, flags and target, our last step.
fn compile_library(out: &Path, name: &str, sources: &[PathBuf], options: &[&str]) {
    let compiler =
        cc::Build::new().opt_level(2).debug(false).warnings(false).cargo_metadata(false).get_compiler();
    let status = compiler
        .to_command()
        .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec"])
        .args(["-fno-strict-aliasing", "-fno-builtin"])
        // Headers define some of what we define, inline, and tell the compiler that a program passes no null pointer: it would
        // leave out what looks for one.
        .args(["-D__NO_INLINE__", "-D__nonnull(parameters)=", "-fno-delete-null-pointer-checks"])
        .args(["-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-U_FILE_OFFSET_BITS"])
        // GCC's name for a warning, and Clang's.
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unknown-warning-option"])
        .arg("-I")
        .arg(out)
        .args(sources)
        .arg("-o")
        .arg(out.join(name))
        .args(options)
        .args(["-Wl,-z,defs", "-Wl,-z,now", "-Wl,--strip-debug", "-ldl", "-lpthread"])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("the C compiler failed on the recorder (crates/record/c): {status}")),
        Err(error) => fail(&format!("cannot run the C compiler {}: {error}", compiler.path().display())),
    }
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
