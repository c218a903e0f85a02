"""Builds the wheel, for pip: the Python module, and with it the command and the library that it applies strategies with.

pyproject.toml names these hooks (PEP 517, PEP 660). maturin compiles and packs the module; the other two are compiled
first, in the same target folder, and put where maturin takes a wheel's data from. pip installs them as `bin/pioscope`
and `lib/pioscope/libpio_mpiio.so`, which is where the command looks for it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# pyproject.toml names this folder, too.
DATA = ROOT / "target/wheel"
# Where each of them goes under an environment's folder (PEP 427).
INSTALLED = {"pioscope": "scripts", "libpio_mpiio.so": "data/lib/pioscope"}
CARGO = {"cargo": "Rust 1.90 or newer (rustup installs it)"}

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings=None):
    check()
    return maturin.get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    check()
    DATA.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    check()
    collect()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    check()
    collect()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def get_requires_for_build_sdist(config_settings=None):
    check_programs(CARGO)
    return maturin.get_requires_for_build_sdist(config_settings)


def build_sdist(sdist_directory, config_settings=None):
    """Packs the sources. Nothing is compiled, but cargo lists the crates."""
    check_programs(CARGO)
    # maturin asks for the folder, though nothing in it belongs to the sources.
    DATA.mkdir(parents=True, exist_ok=True)
    return maturin.build_sdist(sdist_directory, config_settings)


def check():
    """Ends where nothing can be compiled. It comes before maturin's hooks: they would download a Rust that the command and the
    library are not compiled with."""
    try:
        glibc = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        glibc = None
    if not glibc:
        sys.exit(
            "Pioscope needs Linux with the GNU C library (glibc 2.28 or newer), and this Python runs on another (musl, perhaps): its "
            "recorder is loaded into programs by glibc's loader, and stands for glibc's functions"
        )
    compiler = [*os.environ.get("CC", "").split(), "cc"][0]
    check_programs(CARGO | {compiler: "a C compiler (gcc, for one)"})


def check_programs(needed):
    """Names, in one message, what is needed and not found."""
    lacking = [what for program, what in needed.items() if not shutil.which(program)]
    if lacking:
        sys.exit(f"Pioscope is built with {' and '.join(lacking)}, not found on the PATH; its wheels need no compiler")


def collect():
    """Compiles the command and the library, and puts them where maturin takes a wheel's data from."""
    shutil.rmtree(DATA, ignore_errors=True)
    packages = ["--package", "pio-cli", "--package", "pio-mpiio"]
    # With a target named, as conda names one, Cargo builds for it in a folder of its own.
    variables = {name: value for name, value in os.environ.items() if name != "CARGO_BUILD_TARGET"}
    command = ["cargo", "build", "--profile", "dist", *packages]
    built = subprocess.run(command, cwd=ROOT, env=variables, check=False)
    if built.returncode != 0:
        sys.exit("cargo could not compile Pioscope: its message is above")
    for name, place in INSTALLED.items():
        folder = DATA / place
        folder.mkdir(parents=True)
        shutil.copy2(TARGET / "dist" / name, folder / name)
