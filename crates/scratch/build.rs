//! Compiles the library that gives a job's files other names, which the crate embeds.

use std::path::PathBuf;
use std::{env, process};

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("libpio_scratch.so");
    let compiler =
        cc::Build::new().opt_level(2).debug(false).warnings(false).cargo_metadata(false).get_compiler();
    // Our own calls of what we replace are not for other libraries to see: -Bsymbolic.
    let status = compiler
        .to_command()
        .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-builtin"])
        // Headers tell the compiler that a program passes no null pointer: it would leave out what looks for one.
        .args(["-D__nonnull(parameters)=", "-fno-delete-null-pointer-checks"])
        .args(["-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-U_FILE_OFFSET_BITS"])
        // GCC's name for a warning, and Clang's.
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unknown-warning-option"])
        .args(["c/pio_scratch.c", "c/pio_scratch_hooks.c", "-o"])
        .arg(&out)
        .args(["-Wl,-Bsymbolic", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,--strip-debug", "-ldl"])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("the C compiler failed on crates/scratch/c: {status}")),
        Err(error) => fail(&format!("cannot run the C compiler {}: {error}", compiler.path().display())),
    }
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    process::exit(1);
}
