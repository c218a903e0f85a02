//! The recorder compiles where the C library's and the kernel's headers are older than ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::folder;

/// What older headers do not define, by the header that does now.
const NEW: [(&str, &[&str]); 3] = [
    ("unistd.h", &["CLOSE_RANGE_CLOEXEC", "CLOSE_RANGE_UNSHARE"]),
    (
        "sys/syscall.h",
        &[
            "SYS_close_range",
            "SYS_openat2",
            "SYS_io_uring_setup",
            "SYS_io_uring_enter",
            "SYS_io_uring_register",
            "SYS_io_pgetevents",
            "SYS_cachestat",
        ],
    ),
    ("sys/prctl.h", &["PR_SET_SYSCALL_USER_DISPATCH"]),
];

/// A C library before 2.34 and a kernel before 5.9 did not define what `close_range` takes.
#[test]
fn the_recorder_compiles_with_headers_of_2018() {
    let folder = folder();
    for (header, names) in NEW {
        let path = folder.path().join(header);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let undefined: String = names.iter().map(|name| format!("#undef {name}\n")).collect();
        fs::write(path, format!("#pragma once\n#include_next <{header}>\n{undefined}")).expect("a header");
    }
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("c")).expect("the C files");
    let sources = sources.map(|entry| entry.expect("a file").path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "c") && !path.ends_with("pio_mpi.c")
    });
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-fsyntax-only",
            "-D_GNU_SOURCE",
            "-D__NO_INLINE__",
            "-U_FORTIFY_SOURCE",
            "-Werror",
        ])
        .arg("-I")
        .arg(folder.path())
        .args(["-I", env!("OUT_DIR")])
        .args(sources)
        .output()
        .expect("cc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
