"""mpi4py's own tests of files, unmodified, under `pioscope apply`: on plain files and on I/O servers, with each strategy.

Run by `make test-programs`, with the Python that has mpi4py and mpich; the tests are those of mpi4py's source archive.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

STRATEGIES = ["independent", "sieving", "list", "two-phase", "view-based", "ecio", "auto"]
# The suites that use files.
SUITES = ["test_io", "test_file"]
LIMIT_SECONDS = 600


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, required=True, help="mpi4py's source archive")
    parser.add_argument("--pioscope", type=Path, required=True)
    parser.add_argument("--ranks", default="1,2,4")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with tarfile.open(arguments.archive) as archive:
            archive.extractall(folder, filter="data")
        tests = next(folder.glob("mpi4py-*/test/main.py"))
        ranks = [int(count) for count in arguments.ranks.split(",")]
        for count in ranks:
            check(arguments.pioscope, tests, count, "two-phase", None)
        with servers(arguments.pioscope, folder) as store:
            for strategy in STRATEGIES:
                if strategy != "two-phase" or 2 not in ranks:
                    check(arguments.pioscope, tests, 2, strategy, None)
                check(arguments.pioscope, tests, 2, strategy, store)


class servers:
    """Two I/O servers, as long as the context lasts."""

    def __init__(self, pioscope, folder):
        self.store = folder / "store"
        self.command = [pioscope, "serve", "--servers", "2", "--dir", self.store]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "ready" in line:
                return self.store / "store.toml"
        raise OSError("the servers ended")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def check(pioscope, tests, ranks, strategy, store):
    where = ["--store", store] if store else []
    suites = [word for suite in SUITES for word in ("-i", suite)]
    bin = Path(sys.executable).parent
    command = [pioscope, "apply", "--strategy", strategy, *where, "--"]
    command += [bin / "mpiexec", "-n", str(ranks), sys.executable, tests, *suites]
    # The library of the mpich package lies beside the Python that has it.
    variables = dict(os.environ, MPI4PY_MPIABI="mpich", LD_LIBRARY_PATH=str(bin.parent / "lib"))
    start = time.monotonic()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    # What ranks say at the same moment may stand in one line.
    passed = done.returncode == 0 and done.stderr.count("OK") == ranks
    where, result = "servers" if store else "plain files", "ok" if passed else "FAILED"
    print(f"mpi4py, {ranks} ranks, {strategy}, {where}: {result} ({time.monotonic() - start:.0f} s)", flush=True)
    if not passed:
        sys.exit(done.stdout + done.stderr)


if __name__ == "__main__":
    main()
