//! The C header under the MPI at hand: what it describes must be what MPI itself packs.

use std::path::{Path, PathBuf};
use std::process::Command;

use pio_layout::{DATATYPE_HEADER, Datatype};

const COPIES: u64 = 3;

#[test]
fn descriptions_agree_with_mpi() {
    if Command::new("mpicc").arg("--version").output().is_err() {
        println!("skipped: there is no mpicc on the PATH");
        return;
    }
    let program = compile();
    // As a single process, without a launcher, which not every machine lets run.
    let output = Command::new(&program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("done\n"), "{text}");
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| *line != "done") {
        match compare(line) {
            Ok(()) => count += 1,
            Err(message) => wrong.push(message),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} types:\n{text}");
}

/// Checks one line: `type NAME SIZE LOWER_BOUND EXTENT OFFSETS DESCRIPTION`.
fn compare(line: &str) -> Result<(), String> {
    let fields: Vec<&str> = line.split(' ').collect();
    let ["type", name, size, lower_bound, extent, offsets, description] = fields[..] else {
        return Err(format!("not understood: {line}"));
    };
    let datatype =
        Datatype::from_description(&unhex(description)).map_err(|error| format!("{name}: {error}"))?;
    let ours = (datatype.size(), datatype.lower_bound(), datatype.extent());
    let theirs = (size.parse().unwrap(), lower_bound.parse().unwrap(), extent.parse().unwrap());
    // Where there is no data, MPICH still makes up an extent for some constructors: nothing depends on it.
    if ours != theirs && (ours.0, theirs.0) != (0, 0) {
        return Err(format!("{name}: (size, lower bound, extent) is {ours:?}, MPI's {theirs:?}"));
    }
    let theirs: Vec<i64> = offsets
        .split(',')
        .filter(|offset| !offset.is_empty())
        .map(|offset| offset.parse().unwrap())
        .collect();
    let layout = datatype.repeated(COPIES).map_err(|error| format!("{name}: {error}"))?;
    let ours: Vec<i64> = layout.extents(0..layout.size()).flat_map(|part| part.offset..part.end()).collect();
    if ours != theirs {
        return Err(format!("{name}: bytes {ours:?}, MPI's {theirs:?}"));
    }
    Ok(())
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Compiles the C test with the header as this crate hands it out.
fn compile() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("pio_datatype.h"), DATATYPE_HEADER).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/describe.c");
    let program = folder.join("describe");
    let output = Command::new("mpicc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(folder)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}
