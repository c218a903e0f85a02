"""Runs collapse under the MPI's own MPI-IO and under Pioscope's, in many ways, and compares every byte of every file."""

import argparse
import filecmp
import shutil
import sys
import tempfile
from pathlib import Path

from tree import COLLAPSE, NOTHING_APPLIED, end_by_exception, mpiexec, pioscope, run

# Of files that are not on I/O servers.
STRATEGIES = ["independent", "sieving", "list", "two-phase", "view-based", "auto"]
# Aligned: every rank has the same number of zones. Unaligned: no border of a rank's part is a round number.
MESHES = ["16x16x16", "33x20x17"]
# More ranks than this take minutes a run on few processors: not all hints are tried.
MANY = 64
# Of one run: 256 ranks on two processors take some minutes.
TIMEOUT_S = 600


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="1,2,4,8", help="numbers of ranks, powers of two (default %(default)s)")
    parser.add_argument("--own", type=int, help="ranks of the runs under the MPI's own MPI-IO (default: the same numbers)")
    parser.add_argument("--mesh", nargs="*", default=MESHES, help="cells in each dimension (default %(default)s)")
    parser.add_argument("--profile", default="debug", help="build profile of pioscope (default %(default)s)")
    parser.add_argument("--collapse", type=Path, default=COLLAPSE, help="the program, built with the MPI to test")
    arguments = parser.parse_args()
    end_by_exception()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="pioscope-identity-") as folder:
        for mesh in arguments.mesh:
            start = Path(folder) / f"start-{mesh}"
            collapse(arguments.collapse, 1, mesh, start, ["--iterations", 0, "--dump-initial"])
            for ranks in map(int, arguments.ranks.split(",")):
                own = Path(folder) / f"own-{mesh}-{ranks}"
                work = ["--iterations", 2, "--dump-every", 1, "--restart", start / "restart.dat"]
                collapse(arguments.collapse, arguments.own or ranks, mesh, own, work)
                for strategy, hints in ways(ranks):
                    prefix = [pioscope(arguments.profile), "apply", "--strategy", strategy]
                    prefix += ["--hints", hints] if hints else []
                    ours = Path(folder) / "ours"
                    collapse(arguments.collapse, ranks, mesh, ours, work, [*prefix, "--"])
                    difference = first_difference(own, ours)
                    shutil.rmtree(ours)
                    name = f"{mesh} on {ranks} ranks, {strategy} {hints}".rstrip()
                    if difference:
                        failed += 1
                        print(f"FAILED {name}: {difference}", flush=True)
                    else:
                        passed += 1
                        print(f"identical: {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


def ways(ranks):
    """Strategies and hints to try on so many ranks."""
    for strategy in STRATEGIES:
        yield strategy, ""
    numbers = {1, 2, 3, 5, ranks - 1, ranks} if ranks <= MANY else {ranks - 1}
    for cb_nodes in sorted(numbers & set(range(1, ranks + 1))):
        yield "two-phase", f"cb_nodes={cb_nodes},cb_buffer_size=4096"
    yield "two-phase", f"cb_nodes={ranks},cb_buffer_size=5000,striping_unit=1000"
    if ranks <= MANY:
        yield "two-phase", f"cb_nodes={ranks},cb_buffer_size=65536"


def collapse(program, ranks, mesh, output, words, prefix=()):
    said = run([*prefix, *mpiexec(ranks), program, "--mesh", mesh, "--output", output, *words], timeout=TIMEOUT_S)
    if NOTHING_APPLIED in said:
        sys.exit(said)


def first_difference(one, other):
    """What differs first between two folders; none if nothing does."""
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in other.iterdir()):
        return "not the same files"
    for name in names:
        if not filecmp.cmp(one / name, other / name, shallow=False):
            return f"{name} differs"
    return None


if __name__ == "__main__":
    main()
