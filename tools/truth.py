"""How predictions come out: programs are recorded once, run under every strategy in turn, and predicted.

A case is a program, a number of ranks, a place for its files and an MPI. Its traces are kept in the folder --kept as soon as
it is measured, and it is not measured again: a run that was stopped, or that ran out of --minutes, goes on where it was. What
runs is of the MPI on the PATH; what is told is of all that is kept.
Predictions are made anew each time. No number of a machine's description comes from the runs that it is compared with: the
machine is calibrated once a place, before them. The places slow, nodes2 and nodes4 are clusters of namespaces (tools/cluster)
of one, two and four nodes, with files on a slow shared file system; they are calibrated from within a job of as many ranks.
"""

import argparse
import contextlib
import functools
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measured import keep_circumstances, kept_circumstances, page
from tree import (COLLAPSE, NOTHING_APPLIED, OWN, ROOT, Failed, absolute, cluster, end_by_exception, environment, family, mpiexec,
                  pioscope, run, serving)

# Where programs that are run as benchmarks have their common parts.
BENCH = ROOT / "crates/mpiio/bench"
KERNELS = ["bt-io", "s3d-io", "hacc-io", "ior", "segments", "small", "transpose", "phases", "late", "log"]
PROGRAMS = [*KERNELS, "collapse", "interleaved", "subarray"]
RANKS = [1, 2, 4, 8]
ON_FILES = ["independent", "sieving", "list", "two-phase", "view-based", "auto"]
ON_SERVERS = ["independent", "list", "two-phase", "view-based", "ecio", "auto"]
PLACES = ["disk", "memory", "slow", "server", "servers", "nodes2", "nodes4"]
# Nodes of the places that are clusters; their links and file system.
NODES = {"slow": 1, "nodes2": 2, "nodes4": 4}
CLUSTER = ["--link", "400mbit", "--burst", "4kb", "--latency", "200 us", "--bandwidth", "50 MB/s", "--total-bandwidth", "100 MB/s"]
# Times that a program writes: at least so often, and with few ranks, which are sooner done, so often in all. With fewer, one run
# differs from the next by more than is to be told.
LEAST_STEPS, STEPS_OF_A_RANK = 12, 48
# Where Linux has the devices by which a virtual machine leaves memory that is free to its host, and gets it again; and bytes that
# are left when memory is taken before anything is measured.
BALLOONS = Path("/sys/bus/virtio/drivers/virtio_balloon")
LEFT = 1 << 30
# Seconds until the machine is at rest.
SETTLE = 5
SMALL = {"programs": ["bt-io", "small"], "ranks": [2], "places": ["disk"], "runs": 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=words, default=PROGRAMS, help="which of %(default)s")
    parser.add_argument("--ranks", type=words, default=RANKS, help="numbers of ranks (%(default)s)")
    parser.add_argument("--places", type=words, default=["disk", "memory"], help=f"where files are, of {PLACES} (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each strategy (default %(default)s)")
    parser.add_argument("--small", action="store_true", help="a small fixed part, for tests")
    parser.add_argument("--minutes", type=float, default=30, help="begin no further case after so long (%(default)s)")
    parser.add_argument("--kept", type=absolute, default=ROOT / "target/truth", help="what was measured (%(default)s)")
    parser.add_argument("--profile", default="release", help="the build that is tried (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    if arguments.small:
        for name, value in SMALL.items():
            setattr(arguments, name, value)
    until = time.monotonic() + arguments.minutes * 60
    own = family()
    for place in arguments.places:
        missing = [case for case in cases(arguments, place, own) if not case.is_measured()]
        if is_inside() or place not in NODES:
            measure(place, missing, arguments, until)
            continue
        for ranks in sorted({case.ranks for case in missing}):
            measure_on_cluster(place, ranks, arguments, until)
    if is_inside():
        return
    known = (case for place in arguments.places for mpi in OWN for case in cases(arguments, place, mpi))
    measured = [case for case in known if case.is_measured()]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as side_by_side:
        predicted = side_by_side.map(lambda case: case.predict(pioscope(arguments.profile)), measured)
        found = list(zip(measured, predicted))
    if not found:
        sys.exit(f"{arguments.kept}: nothing of these cases was measured")
    with page(page_of(arguments.places), wanted=arguments.write, kept=[kept_circumstances(case.folder) for case in measured]):
        report(found)


def page_of(places):
    """Each kind of place has a page of its own."""
    if all(place.startswith("server") for place in places):
        return "truth-servers"
    return "truth-cluster" if all(place in NODES for place in places) else "truth"


def is_inside():
    """Whether this is the login node of a cluster."""
    return "PIOSCOPE_CLUSTER" in os.environ


def measure(place, missing, arguments, until):
    if not missing or time.monotonic() > until:
        return
    # Of a cluster this process may be killed, and who started it keeps the memory.
    hold = contextlib.nullcontext if arguments.small or is_inside() else memory_at_hand
    with hold(), Lab(place, arguments, in_job=arguments.small) as lab:
        for case in missing:
            if time.monotonic() > until:
                print("time is up: the next run goes on from here", flush=True)
                return
            lab.measure(case)
            print(f"measured: {case}", flush=True)


def measure_on_cluster(place, ranks, arguments, until):
    """Runs this program on the login node of a cluster that has the place, for jobs of so many ranks."""
    nodes, minutes = NODES[place], (until - time.monotonic()) / 60
    if minutes <= 0:
        return
    with memory_at_hand(), tempfile.TemporaryDirectory(prefix="pioscope-truth-") as folder:
        slow = Path(folder) / "slow"
        slow.mkdir()
        options = ["--nodes", nodes, "--ranks-per-node", -(-ranks // nodes), *CLUSTER, "--slow", slow]
        command = [sys.executable, Path(__file__).resolve(), "--places", place, "--ranks", ranks, "--minutes", minutes,
                   "--programs", ",".join(arguments.programs), "--runs", arguments.runs, "--kept", arguments.kept,
                   "--profile", arguments.profile]
        cluster(folder, options, command, profile=arguments.profile, check=True)


def words(text):
    return [int(word) if word.isdigit() else word for word in text.split(",")]


def cases(arguments, place, mpi):
    for program in arguments.programs:
        for ranks in arguments.ranks:
            yield Case(arguments.kept, place, mpi, program, ranks)


class Case:
    """A program to be run, and the traces of its runs."""

    def __init__(self, kept, place, mpi, program, ranks):
        self.kept, self.place, self.mpi, self.program, self.ranks = kept, place, mpi, program, ranks
        self.folder = kept / f"{place}-{mpi}-{program}-{ranks}"

    def __str__(self):
        return f"{self.program}, {self.ranks} ranks, {self.place}, {self.mpi}"

    def machine(self):
        job = f"-{self.ranks}" if self.place in NODES else ""
        return self.kept / f"{self.place}-{self.mpi}{job}.toml"

    def is_measured(self):
        return self.folder.exists()

    def predict(self, pioscope):
        """Predicted and measured seconds of I/O, by strategy."""
        runs = sorted(self.folder.glob("runs-*"))
        strategies = sorted(trace.stem for trace in runs[0].iterdir())
        with tempfile.TemporaryDirectory() as output:
            # What these runs say is not to help in predicting them.
            machine = Path(output) / self.machine().name
            for kept in self.machine(), self.machine().with_suffix(".runs.jsonl"):
                if kept.exists():
                    shutil.copy(kept, output)
            said = told([pioscope, "predict", self.folder / "run.pio", "--machine", machine, "--strategy", ",".join(strategies),
                         "--output", output])
        found = {}
        for one in said["predictions"]:
            said_of_runs = [told([pioscope, "explain", traces / f"{one['strategy']}.pio"]) for traces in runs]
            interval = one["interval_80_percent"]
            # There is none where nothing says how wide it is.
            found[one["strategy"]] = {"predicted": one["io_time_s"],
                                      "interval": interval and (interval["low_s"], interval["high_s"]),
                                      "measured": [run["io_time_s"] for run in said_of_runs],
                                      "run": [run["run_time_s"] for run in said_of_runs]}
        return found


def told(command):
    """What a command says, for programs."""
    words = [str(word) for word in [command[0], "--quiet", *command[1:], "--json"]]
    return json.loads(subprocess.run(words, env=environment(), stdout=subprocess.PIPE, check=True).stdout)


@contextlib.contextmanager
def memory_at_hand():
    """Keeps memory that is free, as far as this user may. Where it goes back to a host, a page that is taken again costs 8 us, and
    else 0.3: now and then writes are ten times as slow, for as long as a job, whatever the strategy. That is not what is to be
    told."""
    balloons = [path.name for path in BALLOONS.glob("virtio*")]
    try:
        for balloon in balloons:
            (BALLOONS / "unbind").write_text(balloon)
    except OSError as error:
        print(f"free memory goes back to the machine's host, and runs differ by that ({error})", flush=True)
    try:
        if balloons:
            memory = bytearray(max(0, memory_left() - LEFT))
            memory[:: mmap.PAGESIZE] = b"x" * (len(memory) // mmap.PAGESIZE)
            del memory
        yield
    finally:
        for balloon in balloons:
            with contextlib.suppress(OSError):
                (BALLOONS / "bind").write_text(balloon)


def memory_left():
    """Bytes that may be taken: what is free, within the limits of this control group and of those that it is in."""
    free = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
    group = Path("/sys/fs/cgroup") / Path("/proc/self/cgroup").read_text().split("::")[-1].strip().lstrip("/")
    for group in [group, *group.parents]:
        with contextlib.suppress(OSError, ValueError):
            limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
            free = min(free, limit - used)
    return free


class Lab:
    """A place for files, calibrated, with the programs beside it."""

    def __init__(self, place, arguments, in_job=False):
        self.place, self.runs, self.profile, self.kept = place, arguments.runs, arguments.profile, arguments.kept
        self.strategies = ON_SERVERS if place.startswith("server") else ON_FILES
        # In a job of the size that runs, and not in jobs of several sizes, which takes a minute longer.
        self.calibrated_in_job = place in NODES or in_job
        self.store = None

    def __enter__(self):
        self.open = contextlib.ExitStack()
        # Not in /tmp, which may be in memory, too.
        base = Path("/dev/shm") if self.place == "memory" else ROOT / "target"
        # On a cluster, nodes share the current folder.
        self.folder = Path.cwd() if self.place in NODES else Path(
            self.open.enter_context(tempfile.TemporaryDirectory(prefix="pioscope-truth-", dir=base)))
        self.files = self.folder / "slow" if self.place in NODES else self.folder
        # A file system in memory may be one that runs no programs, as in containers.
        self.programs = self.folder if self.place in NODES else Path(
            self.open.enter_context(tempfile.TemporaryDirectory(prefix="pioscope-truth-")))
        self.kernels = self.programs / "kernels"
        self.patterns = self.programs / "patterns"
        run(["mpicc", "-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-I", BENCH, "-o", self.kernels,
             ROOT / "apps/kernels/kernels.c"])
        run(["mpicc", "-O2", "-o", self.patterns, BENCH / "patterns.c"])
        if self.place.startswith("server"):
            count = 1 if self.place == "server" else 4
            self.store = self.open.enter_context(serving(self.pioscope(), count, self.folder / "store"))
        return self

    @functools.cached_property
    def collapse(self):
        """Compiled when it is first wanted, as it takes longer."""
        build = self.programs / "collapse-build"
        run(["make", "-C", COLLAPSE.parents[1], "CC=mpicc", f"BUILD={build}"])
        return build / "collapse"

    def calibrate(self, case):
        store = ["--store", self.store] if self.store else []
        job = ["--", *mpiexec(case.ranks)] if self.calibrated_in_job else []
        # What a place before left to be written and freed goes on for a while behind everybody's back.
        os.sync()
        time.sleep(SETTLE)
        # Complete, or not there: it ends with runs of its own, which say how wide intervals are.
        with tempfile.TemporaryDirectory(dir=self.kept) as folder:
            machine = Path(folder) / case.machine().name
            run([self.pioscope(), "machines", "calibrate", "--folder", self.files, *store, "-o", machine, *job])
            for part in sorted(Path(folder).iterdir(), key=lambda part: part.suffix == ".toml"):
                part.rename(self.kept / part.name)

    def __exit__(self, *failed):
        self.open.close()

    def pioscope(self):
        return pioscope(self.profile)

    def measure(self, case):
        """Calibrates the place, if that is not done, records the program, and runs it under each strategy in turn."""
        self.kept.mkdir(parents=True, exist_ok=True)
        if not case.machine().exists():
            self.calibrate(case)
        # Complete, or not there.
        with tempfile.TemporaryDirectory(dir=self.kept) as folder:
            traces = Path(folder) / "traces"
            traces.mkdir()
            keep_circumstances(traces)
            self.record(case, traces)
            traces.rename(case.folder)

    def record(self, case, traces):
        self.job([self.pioscope(), "record", "-o", traces / "run.pio"], case)
        for number in range(self.runs):
            (traces / f"runs-{number}").mkdir()
            for strategy in self.strategies:
                store = ["--store", self.store] if self.store else []
                path = traces / f"runs-{number}" / f"{strategy}.pio"
                self.job([self.pioscope(), "apply", "--strategy", strategy, "--machine", case.machine(), *store, "--record", path], case)
            if not self.store:
                self.job([self.pioscope(), "record", "-o", traces / f"runs-{number}" / f"{OWN[case.mpi]}.pio"], case)

    def job(self, before, case, tries=2):
        """Of thousands of jobs an MPI's launcher fails to start one now and then (Open MPI's: "listener thread failed to start"). That
        is shown, and no reason to stop."""
        data = Path(tempfile.mkdtemp(prefix="data-", dir=self.files))
        try:
            said = run([*before, "--", *mpiexec(case.ranks), *self.program(case, data)], cwd=self.folder)
        except Failed as failed:
            if tries == 1:
                raise
            print(f"{failed}\nonce more: {case}", flush=True)
            return self.job(before, case, tries - 1)
        if NOTHING_APPLIED in said:
            sys.exit(f"{case}: {said}")
        self.empty(data)
        return said

    def empty(self, data):
        """Makes room again. Before ext4 gives out an inode it looks at each that was freed within the last minutes: after a few
        runs whose files were removed, half a millisecond a file. So files are emptied, and stay until the end; what servers have
        of them, too, behind their backs, as nobody asks for it again."""
        if self.place in NODES:
            return shutil.rmtree(data)
        for path in [*data.rglob("*"), *self.folder.glob("store/server-*/parts/*.data")]:
            if path.is_file() and path.stat().st_size > 0:
                os.truncate(path, 0)

    def program(self, case, data):
        name, steps = case.program, max(LEAST_STEPS, STEPS_OF_A_RANK // case.ranks)
        if name in KERNELS:
            return [self.kernels, name, "--steps", steps, "--folder", data]
        if name == "collapse":
            return [self.collapse, "--mesh", "48x48x48", "--iterations", steps, "--dump-every", 2, "--output", data]
        return [self.patterns, "--pattern", name, "--repeat", steps, "--file", data / "patterns.dat"]


def error(found):
    return found["predicted"] / statistics.median(found["measured"]) - 1


def report(found):
    """Errors by group, how much longer than the best the chosen strategies take, and all cases."""
    processors = len(os.sched_getaffinity(0))
    groups = {}
    for case, cell in found:
        crowd = "≤ processors" if case.ranks <= processors else "> processors"
        groups.setdefault((case.place, case.mpi, crowd), []).append(cell)
    print("| place | MPI | ranks | predictions | median error | 90th percentile | bias | median error of a run | interval holds "
          "| its half width |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for is_own in False, True:
        for (place, mpi, crowd), cells in sorted(groups.items()):
            of = [one for cell in cells for strategy, one in cell.items() if (strategy == OWN[mpi]) == is_own]
            name = f"{mpi}'s own" if is_own else mpi
            if of:
                print(f"| {place} | {name} | {crowd} | {summary(of)} |")
    print("\nLoss: over the strategy that is best in the other runs, in the median of the runs. Ranks that are through with their I/O "
          "wait\nelsewhere for those that are not: one strategy may take longer than another in I/O, where the program runs as long. "
          "The whole run has\nthe MPI's start in it, with Open MPI a second.")
    for what, name in ("measured", "time in I/O"), ("run", "time of the whole run"):
        print(f"\n| {name} | MPI | ranks | programs | predicted best: median loss | worst | auto: median loss | worst "
              "| auto over the MPI's own: median | worst |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for (place, mpi, crowd), cells in sorted(groups.items()):
            chosen = losses([loss(cell, best_predicted(cell), what) for cell in cells])
            autos = [cell for cell in cells if "auto" in cell]
            auto = losses([loss(cell, "auto", what) for cell in autos])
            over = losses([cost(cell, "auto", what) / cost(cell, OWN[mpi], what) - 1 for cell in autos if OWN[mpi] in cell])
            print(f"| {place} | {mpi} | {crowd} | {len(cells)} | {chosen} | {auto} | {over} |")
    print("\nPredicted / measured median (least, most), error:\n")
    for case, cell in found:
        print(f"{case}")
        for strategy, one in cell.items():
            middle = cost(cell, strategy)
            print(f"  {strategy:12} {time_of(one['predicted']):>8} / {time_of(middle):>8}"
                  f" ({min(one['measured']) / middle - 1:+.0%}, {max(one['measured']) / middle - 1:+.0%})  {error(one):+.0%}")


def cost(cell, strategy, what="measured"):
    return statistics.median(cell[strategy][what])


def best_predicted(cell):
    """Of what a user may name: `auto` chooses for itself."""
    return min((strategy for strategy in cell if strategy != "auto"), key=lambda strategy: cell[strategy]["predicted"])


def loss(cell, strategy, what="measured"):
    """How much longer a strategy takes than the best. Which is the best, a run is not asked itself: the least of several times
    that scatter is less than what the best takes."""
    each = []
    for run, took in enumerate(cell[strategy][what]):
        others = {name: statistics.median(one[what][:run] + one[what][run + 1 :] or one[what])
                  for name, one in cell.items() if name != "auto"}
        each.append(took / cell[min(others, key=others.get)][what][run] - 1)
    return statistics.median(each)


def losses(each):
    return f"{statistics.median(each):.0%} | {max(each):.0%}" if each else "– | –"


def summary(predictions):
    """How many, the median error, the 90th percentile, which way they lean, how well a run predicts
    the others, and how many runs are in the intervals."""
    errors = [error(one) for one in predictions]
    ordered = sorted(abs(each) for each in errors)
    worst = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    bounded = [(one["interval"], one["measured"]) for one in predictions if one["interval"]]
    within = [low <= run <= high for (low, high), runs in bounded for run in runs]
    by_a_run = [error({"predicted": run, "measured": one["measured"][:index] + one["measured"][index + 1:]})
                for one in predictions if len(one["measured"]) > 1 for index, run in enumerate(one["measured"])]
    spread = f"{statistics.median(map(abs, by_a_run)):.0%}" if by_a_run else "–"
    holds = f"{sum(within) / len(within):.0%}" if within else "–"
    width = f"{statistics.median((high / low) ** 0.5 - 1 for (low, high), _ in bounded):.0%}" if bounded else "–"
    return (f"{len(errors)} | {statistics.median(ordered):.0%} | {worst:.0%} | {statistics.median(errors):+.0%}"
            f" | {spread} | {holds} | {width}")


def time_of(value):
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


if __name__ == "__main__":
    main()
