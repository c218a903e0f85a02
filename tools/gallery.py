"""Reports of well-known programs, in target/site/gallery: each is run for real, recorded, and explained as a page of HTML."""

import argparse
import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tree import COLLAPSE, ROOT, environment, mpiexec, pioscope

GALLERY = ROOT / "target/site/gallery"
LARGEST_BYTES = 1_000_000
# In place of the words that start a job of 4 ranks.
JOB = "JOB"


@dataclass
class Entry:
    name: str
    needs: list
    does: str
    look: str
    command: str
    prepare: str = "true"
    record: str = ""
    # Programs of the command: name and text.
    files: dict | None = None
    applied: str = ""


SMALL_FILES = "mkdir data; for i in $(seq 400); do head -c 2000 /dev/zero > data/$i; done"
REPOSITORY = ("git init -q origin; cd origin; for i in $(seq 60); do echo $i > $i; git add $i; done; "
              "git -c user.name=a -c user.email=a@b commit -qm one; cd ..")
ROWS = "import sys\nprint('create table t (a integer, b text);')\n"
EACH = ROWS + "for i in range(300): print(f\"insert into t values ({i}, 'row {i}');\")\n"
ONCE = ROWS + "print('begin;')\nfor i in range(300): print(f\"insert into t values ({i}, 'row {i}');\")\nprint('commit;')\n"
NUMPY = """import numpy
array = numpy.lib.format.open_memmap("array.npy", mode="w+", dtype="f8", shape=(4096, 1024))
array[:] = 1
array.flush()
del array
file = open("array.npy", "rb")
total = 0.0
for row in numpy.random.default_rng(1).permutation(4096)[:1000]:
    file.seek(128 + int(row) * 8192)
    total += numpy.fromfile(file, "f8", 1024).sum()
print(total)
"""
HDF5 = """import h5py, numpy
with h5py.File("table.h5", "w") as file:
    table = file.create_dataset("table", (1000, 256), "f8", chunks=(1, 256), compression="gzip")
    for row in range(1000):
        table[row] = numpy.arange(256) * row
with h5py.File("table.h5") as file:
    print(sum(file["table"][row].sum() for row in range(0, 1000, 10)))
"""
WHEEL = """import zipfile
with zipfile.ZipFile("tiny-1-py3-none-any.whl", "w") as wheel:
    for number in range(50):
        wheel.writestr(f"tiny/part{number}.py", f"x = {number}\\n")
    wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
    wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: none\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny-1.dist-info/RECORD", "")
"""
MPI4PY = """from mpi4py import MPI
import numpy
world = MPI.COMM_WORLD
rows = numpy.full((256, 256 // world.size), world.rank, "f8")
file = MPI.File.Open(world, "matrix", MPI.MODE_CREATE | MPI.MODE_WRONLY)
for number, row in enumerate(rows):
    file.Write_at((number * world.size + world.rank) * row.nbytes, row)
file.Close()
"""
TEN_FILES = """for i in $(seq 10); do echo "int f$i(void) { return $i; }" > f$i.c; done
echo 'int main(void) { return 0; }' > main.c
printf 'program: main.o $(patsubst %%,f%%.o,1 2 3 4 5 6 7 8 9 10)\\n\\t$(CC) -o $@ $^\\n' > Makefile"""

ENTRIES = [
    Entry("tar", ["tar"], "tar packs 400 files of 2,000 bytes into an archive.",
          "The files' names cost more than their data: compare the time in open, stat and close with that in read.",
          "tar cf data.tar data", SMALL_FILES),
    Entry("git-clone", ["git"], "git clones a local repository with 60 files, and checks them out.",
          "Most calls are on names: locks, renames and look-ups in .git, beside small writes.",
          "git clone -q --no-hardlinks origin copy", REPOSITORY),
    Entry("pip-install", ["python3", "python:pip"], "pip installs a wheel with 50 modules into a folder.",
          "See how much is read before pip does anything; of the package, each module is written, renamed, read back and compiled.",
          "python3 -m pip install --quiet --disable-pip-version-check --no-index --target there tiny-1-py3-none-any.whl",
          "python3 wheel.py", "--not-path '*/__pycache__/*'", {"wheel.py": WHEEL}),
    Entry("gcc", ["gcc"], "gcc compiles two files, and links them.",
          "The linker makes nearly all requests, small ones with a seek before each; the temporary files of the steps are in /tmp.",
          "gcc -O2 -o program a.c b.c", files={"a.c": "#include <stdio.h>\nint b(void);\nint main(void) { printf(\"%d\\n\", b()); }\n",
                                               "b.c": "int b(void) { return 1; }\n"}),
    Entry("make", ["make", "gcc"], "make builds a program of eleven files, two at a time.",
          "The chart of the data rate shows each compiler's start; the processes of one file overlap those of the next.",
          "make -s -j2", TEN_FILES),
    Entry("sqlite-each", ["sqlite3"], "sqlite3 inserts 300 rows, each in a transaction of its own.",
          "Every row costs syncs of the database and its journal: the finding says what they take, and the next report what is left.",
          "sqlite3 rows.db < rows.sql", "python3 rows.py > rows.sql", files={"rows.py": EACH}),
    Entry("sqlite-once", ["sqlite3"], "sqlite3 inserts the same 300 rows in one transaction.",
          "The syncs are gone, and with them nearly all of the time: compare it with the report before.",
          "sqlite3 rows.db < rows.sql", "python3 rows.py > rows.sql", files={"rows.py": ONCE}),
    Entry("numpy", ["python3", "python:numpy"], "Python writes an array by a mapping, and reads 1,000 of its rows in random order.",
          "What it writes through the mapping is no call, and not in the numbers; each row that it reads is a seek and a request of 8 KiB.",
          "python3 rows.py", record="--path '*/array.npy'", files={"rows.py": NUMPY}),
    Entry("hdf5", ["python3", "python:h5py"], "h5py writes a compressed table in chunks of one row, and reads some of it.",
          "Compare the calls of layer hdf5 with those of POSIX below: each chunk is a write, and its index is more.",
          "python3 table.py", record="--path '*/table.h5'", files={"table.py": HDF5}),
    Entry("fio", ["fio"], "fio reads 4 KiB at random by io_uring, then writes 1 MiB at a time, and syncs.",
          "Requests of io_uring are followed from submission to completion, so the timeline shows how many are under way.",
          "fio --minimal jobs.fio",
          files={"jobs.fio": "[global]\nsize=8m\n[random]\nrw=randread\nbs=4k\nioengine=io_uring\niodepth=8\n"
                 "[stream]\nstonewall\nrw=write\nbs=1m\nioengine=psync\nend_fsync=1\n"}),
    Entry("sort", ["sort", "seq"], "sort orders a file that does not fit into its buffer of 24 KiB.",
          "It writes sorted parts to temporary files and merges them: class staging, written and read back.",
          "sort -S 24k -T . -o sorted numbers", "seq 4000 > ordered; sort -R ordered > numbers"),
    Entry("collapse", ["mpicc", "mpiexec"], "collapse, an MPI code, writes three-dimensional arrays collectively with the MPI's own MPI-IO.",
          "Each call's time is divided into late ranks, library and files; with more ranks than processors, little of it is the files'.",
          f"{JOB} {COLLAPSE} --mesh 32x32x32 --iterations 4 --dump-every 2 --output out"),
    Entry("collapse-two-phase", ["mpicc", "mpiexec"], "The same run with its MPI-IO carried out by Pioscope, under two-phase.",
          "The files are the same, byte for byte; compare the time of the collective calls with the report before.",
          f"{JOB} {COLLAPSE} --mesh 32x32x32 --iterations 4 --dump-every 2 --output out", applied="two-phase"),
    Entry("ior-hard", ["mpicc", "mpiexec"], "Four ranks write 47,008 bytes in turn into one file, as IOR's hard case does, and read them back.",
          "Each collective call moves one small piece of a rank: the finding says to describe the pattern as a view, and to move many at once.",
          f"{JOB} ./kernels segments --mesh 40",
          f"mpicc -O2 -D_POSIX_C_SOURCE=200809L -I {ROOT}/crates/mpiio/bench -o kernels {ROOT}/apps/kernels/kernels.c"),
    Entry("mpi4py", ["mpiexec", "python:mpi4py.MPI"], "Four ranks of mpi4py write a matrix row by row, each its part of the row.",
          "Each rank makes 256 independent writes of 512 bytes beside those of the others: look at the sizes, and at who waits for whom.",
          f"{JOB} python3 matrix.py", record="--path '*/matrix'", files={"matrix.py": MPI4PY}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="reports to make (default: all)")
    parser.add_argument("--profile", default="release", help="build of the command (default %(default)s)")
    parser.add_argument("--python", type=Path, help="the folder of the python3 that runs programs (default: that on the PATH)")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {entry.name for entry in ENTRIES}
    if unknown:
        sys.exit(f"no report is called {' or '.join(sorted(unknown))}")
    found = environment()
    folders = [pioscope(arguments.profile).parent, *([arguments.python.absolute()] if arguments.python else []), os.environ["PATH"]]
    found["PATH"] = os.pathsep.join(map(str, folders))
    GALLERY.mkdir(parents=True, exist_ok=True)
    made, left_out = [], []
    for entry in ENTRIES:
        if arguments.names and entry.name not in arguments.names:
            continue
        missing = [need for need in entry.needs if not is_there(need, found)]
        if missing:
            left_out.append((entry, missing))
            print(f"skipped: {entry.name}: there is no {' and no '.join(missing)}", flush=True)
            continue
        try:
            made.append((entry, report(entry, found)))
        except Failed as failed:
            # Containers forbid some of what programs do.
            left_out.append((entry, ["way to run it here"]))
            print(f"skipped: {entry.name}: {failed}", flush=True)
            continue
        print(f"{entry.name}: {made[-1][1]['size'] / 1e3:.0f} kB", flush=True)
    (GALLERY / "index.html").write_text(index(made, left_out))
    print(f"{len(made)} reports, {len(left_out)} left out: {GALLERY.relative_to(ROOT)}/index.html")


def is_there(need, found):
    if need.startswith("python:"):
        words = ["python3", "-c", f"import {need.removeprefix('python:')}"]
        return subprocess.run(words, env=found, check=False, capture_output=True).returncode == 0
    return shutil.which(need, path=found["PATH"]) is not None


def report(entry, found):
    """Runs a program and writes its report; gives what the index says of it."""
    # Not in /tmp, which may be in memory: what the index says of files is of a disk.
    with tempfile.TemporaryDirectory(prefix=f"{entry.name}-", dir=ROOT / "target", ignore_cleanup_errors=True) as folder:
        for name, text in (entry.files or {}).items():
            Path(folder, name).write_text(text)
        bash(entry.prepare, folder, found)
        launch = mpiexec(4)
        if str(COLLAPSE) in entry.command:
            # Of the MPI that it was compiled with: the folder of Python, which comes first, may have another.
            launch[0] = shutil.which(launch[0])
        command = entry.command.replace(JOB, " ".join(launch))
        how = f"apply --strategy {entry.applied} --record" if entry.applied else f"record {entry.record} -o"
        shell = f"sh -c '{command}'" if "<" in command else command
        bash(f"pioscope --quiet {how} {entry.name}.pio -- {shell}", folder, found)
        page = GALLERY / f"{entry.name}.html"
        told = bash(f"pioscope --quiet explain {entry.name}.pio --json --html {page}", folder, found)
    size = page.stat().st_size
    if size > LARGEST_BYTES:
        sys.exit(f"{page}: {size} bytes, more than {LARGEST_BYTES}")
    return json.loads(told) | {"size": size, "command": command}


class Failed(Exception):
    pass


def bash(words, folder, found):
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", words], cwd=folder, env=found, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failed(f"{words}\nfailed with exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def index(made, left_out):
    """The page that leads to all reports."""
    rows = []
    for entry, told in made:
        finding = told["findings"][0]["title"] if told["findings"] else "–"
        rows.append(f"<tr><td><a href='{entry.name}.html'>{entry.name}</a><td>{html.escape(entry.does)} {html.escape(entry.look)}"
                    f"<td class=n>{told['event_count']:,}<td class=n>{told['run_time_s']:.2f} s<td class=n>{100 * (told['io_fraction'] or 0):.0f} %"
                    f"<td>{html.escape(finding)}")
    missing = "".join(f"<li>{entry.name}: there is no {html.escape(' and no '.join(needs))}" for entry, needs in left_out)
    return HEAD + "\n".join(rows) + "</table>" + (f"<h2>Left out here</h2><ul>{missing}</ul>" if missing else "") + "\n"


HEAD = """<!doctype html>
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width"><title>Pioscope: gallery</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid #8886; }
.n { text-align: right; white-space: nowrap; }
td:nth-child(2) { min-width: 18rem; }
</style>
<h1>Reports of well-known programs</h1>
<p>Each program was run under <code>pioscope record</code>, and its report made by <code>pioscope explain --html</code>. Every page is one
file that needs no network. Times are those of the machine that made this page. <a href="../index.html">Manual</a></p>
<div><table><tr><th>report<th>what it does, and what to look at<th class=n>calls<th class=n>time<th class=n>in I/O<th>costliest
"""


if __name__ == "__main__":
    main()
