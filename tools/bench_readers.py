"""Prints how long readers of Darshan logs take for the same logs, and what they write: Pioscope, PyDarshan and Drishti.

The logs are examples that come with PyDarshan: one with every access (DXT) of 4 ranks, and one with counters alone of 2,048 ranks.
Commands run in turn, and the fastest run of each counts, because others may use the machine. Needs the packages darshan and
drishti-io: `make bench` installs them.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from measured import page
from tree import end_by_exception, pioscope, run

ACCESSES = "ior_hdf5_example.darshan"
COUNTERS = "sample-badost.darshan"
# Programs beside this interpreter, so that those of this environment run.
BESIDE = Path(sys.executable).parent
# What is shown, what is run, and on which log.
COMMANDS = [
    ("pioscope explain LOG --html FILE", [pioscope(), "explain", ACCESSES, "--html", "report.html"]),
    ("python -m darshan summary LOG", [sys.executable, "-m", "darshan", "summary", ACCESSES]),
    ("drishti LOG", [BESIDE / "drishti", ACCESSES]),
    ("pioscope explain LOG --brief", [pioscope(), "explain", COUNTERS, "--brief"]),
    ("drishti --issues LOG", [BESIDE / "drishti", "--issues", COUNTERS]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command (default %(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    packages = ", ".join(f"{name} {version(name)}" for name in ["darshan", "drishti-io"])
    found = {shown: [] for shown, _ in COMMANDS}
    for _ in range(arguments.rounds):
        for shown, words in COMMANDS:
            found[shown].append(measured(words))
    with page("readers", wanted=arguments.write):
        print(f"{packages}; {arguments.rounds} rounds, the fastest")
        print(f"{'log':<25} {'command':<33} {'time, s':>8} {'lines':>6} {'pages':>6} {'MiB':>6}")
        for shown, words in COMMANDS:
            log = ACCESSES if ACCESSES in words else COUNTERS
            took, lines, pages, size = min(found[shown])
            print(f"{log:<25} {shown:<33} {took:>8.2f} {lines:>6} {pages:>6} {size / (1 << 20):>6.2f}", flush=True)


def measured(words):
    """Seconds that a command took, the lines that it printed, and the HTML pages that it wrote, with their bytes."""
    logs = Path(find_spec("darshan").submodule_search_locations[0]) / "examples/example_logs"
    with tempfile.TemporaryDirectory(prefix="readers-") as folder:
        for log in [ACCESSES, COUNTERS]:
            shutil.copy(logs / log, folder)
        began = time.perf_counter()
        printed = run(words, cwd=folder)
        took = time.perf_counter() - began
        pages = list(Path(folder).rglob("*.html"))
        lines = [line for line in re.sub(r"\x1b\[[\d;]*m", "", printed).splitlines() if line.strip()]
        return took, len(lines), len(pages), sum(page.stat().st_size for page in pages)


if __name__ == "__main__":
    main()
