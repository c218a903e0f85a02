"""Writes the pages of docs/measured: what a command measured, on which machine, when, and how to measure it again.

    python3 tools/measured.py models -- cargo bench --package pio-sim --bench speed

runs the command, shows what it prints, and writes that to docs/measured/models.md. The benchmarks in Python do the same by
`page`, when they are given --write.
"""

import argparse
import contextlib
import datetime
import io
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tree import ROOT

FOLDER = ROOT / "docs/measured"
TITLES = {
    "patterns": "Strategies on plain files",
    "messages": "What ranks of a two-phase write say to each other",
    "servers": "Strategies on the I/O servers",
    "truth": "Predictions beside runs",
    "truth-servers": "Predictions beside runs on I/O servers",
    "truth-cluster": "Predictions beside runs between nodes",
    "nodes": "Hong, You and Chung's benchmark between nodes",
    "advice": "What advise finds beside all settings",
    "overlap": "I/O that overlaps with computing",
    "recording": "What recording costs",
    "recorders": "What recorders cost",
    "readers": "What readers of Darshan logs take",
    "models": "Speed of the simulator's models",
    "large-jobs": "What predictions of large jobs cost",
    "transports": "The I/O servers beside their transports",
    "cache": "The extent cache beside libCacheSim",
    "explain": "Speed of explain",
    "report": "The page of a large trace",
    "traces": "Size and speed of traces",
    "width": "Merging the spools of many processes",
    "choices": "What the automatic choice loses on wide nodes",
    "wide-jobs": "Opening, views and small writes of many ranks",
    "baylor": "Baylor, Benveniste and Hsu 1995",
    "coll": "Coll, Petrini, Frachtenberg and Hoisie 2003",
    "hong": "Hong, You and Chung 2006",
    "miller-katz": "Miller and Katz 1991",
    "thakur": "Thakur, Gropp and Lusk 1996",
    "io500": "IO500",
    "mlperf-storage": "MLPerf Storage v1.0",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=TITLES, help="the page to write")
    parser.add_argument("command", nargs="+", help="the command, after --")
    arguments = parser.parse_args()
    with page(arguments.name, shlex.join(arguments.command)):
        child = subprocess.Popen(arguments.command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            print(line, end="", flush=True)
        if child.wait() != 0:
            sys.exit(f"{shlex.join(arguments.command)}: exit code {child.returncode}")


@contextlib.contextmanager
def page(name, command=None, wanted=True, mpis=None, kept=None):
    """What is printed within also becomes the page, if that is wanted and nothing fails. Names the MPI on the PATH, if not those
    that were measured. Of measurements that were kept, `kept` has what `circumstances` was with each."""
    if not wanted:
        yield
        return
    printed = Both(sys.stdout)
    with contextlib.redirect_stdout(printed):
        yield
    write(name, command or this_command(), printed.text(), circumstances(mpis) if kept is None else all_of(kept))


def write(name, command, printed, facts):
    """Writes a page of what a command printed."""
    text = f"# {TITLES[name]}\n\nWritten by `{command}`; run it again to write this page anew.\n\n"
    text += "".join(f"- {what}: {value}\n" for what, value in facts.items())
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.md").write_text(f"{text}\n```text\n{printed.strip()}\n```\n")


def circumstances(mpis=None):
    """What a reader must know of a measurement that is made now."""
    return {"processor": f"{len(os.sched_getaffinity(0))} × {processor()}", "kernel": f"Linux {platform.release()}",
            "MPI": mpis or mpi(), "commit": commit(), "date": datetime.date.today().isoformat()}


def keep_circumstances(folder):
    """Beside what is measured into a folder."""
    (folder / "circumstances.json").write_text(json.dumps(circumstances()))


def kept_circumstances(folder):
    """Those of what a folder has; nothing if they were not kept."""
    file = folder / "circumstances.json"
    return json.loads(file.read_text()) if file.exists() else {}


def all_of(kept):
    """The circumstances of several measurements, which may be of other builds and days than the report of them."""
    now = circumstances()
    facts = {what: " and ".join(sorted({one.get(what, "unknown") for one in kept})) for what in now}
    return facts | {"reported": f"{now['date']}, commit {now['commit']}"}


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def mpi(path=None):
    """The MPI whose mpiexec is first on a PATH."""
    launcher = shutil.which("mpiexec", path=path)
    if launcher is None:
        return "none"
    lines = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    version = next((line.split(":")[-1].strip() for line in lines if "Version" in line), lines[0] if lines else "unknown")
    return f"MPICH {version}" if version[:1].isdigit() else version.replace("mpiexec (Open MPI)", "Open MPI")


def commit():
    # No repository in an unpacked archive, and no git on many nodes.
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def this_command():
    program = Path(sys.argv[0]).resolve().relative_to(ROOT)
    return shlex.join(["python3", str(program), *sys.argv[1:]])


class Both(io.StringIO):
    """Passes on what is written, and keeps it."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream

    def write(self, text):
        self.stream.write(text)
        return super().write(text)

    def flush(self):
        self.stream.flush()

    def text(self):
        return self.getvalue()


if __name__ == "__main__":
    main()
