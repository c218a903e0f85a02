"""The benchmark of Hong, You and Chung between nodes: measured on a cluster of namespaces, and predicted.

Clients on nodes of their own write and read every so-manyth 4-byte segment of a file together: on an I/O server behind a link
of the same bandwidth, under two-phase and ECIO, and by the MPI's own way on a slow shared file system that is as fast as that
link (to each client, and for all of them together), as that way knows no I/O servers. The runs of a case take turns. What was
measured is kept: a run that was stopped, or that ran out of --minutes, goes on where it was.

Predictions are made anew each time, from a recorded run under the MPI's own way and from what `pioscope machines calibrate` finds
in a job on the same cluster, which knows nothing of the benchmark; they are the model's alone, not corrected by earlier runs.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measured import keep_circumstances, kept_circumstances, page
from tree import OWN, ROOT, absolute, bytes_sent, cluster, end_by_exception, family, mpiexec, pioscope, run

BENCHMARK = ROOT / "papers/hong-2006/benchmark.c"
SEGMENTS = [4000 << doubled for doubled in range(9)]
SEGMENT_BYTES = 4
LINK, LINK_BANDWIDTH = "200mbit", "25 MB/s"
# What an idle link lets through at once: little, as no real link does.
BURST = "4kb"
# Small calls take turns with whatever else the machine does: many of them.
EXECUTIONS, MANY_EXECUTIONS, MANY_UP_TO = 10, 100, 64000
ON_SERVERS = ["two-phase", "ecio"]
WAYS = {"write": "MPI_File_write_at_all", "read": "MPI_File_read_at_all"}
UNITS = {unit: 1024 ** power for power, unit in enumerate(["B", "KiB", "MiB", "GiB"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=numbers, default=[2, 4], help="numbers of clients (%(default)s)")
    parser.add_argument("--segments", type=numbers, default=SEGMENTS, help="of all clients together (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="of each strategy (%(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="begin no further case after so long (%(default)s)")
    parser.add_argument("--kept", type=absolute, default=ROOT / "target/nodes", help="what was measured (%(default)s)")
    parser.add_argument("--profile", default="release", help="the build that is tried (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    if "PIOSCOPE_CLUSTER" in os.environ:
        return measure(arguments)
    arguments.kept.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + arguments.minutes * 60
    for clients in arguments.clients:
        if all(case.is_measured() for case in cases(arguments, clients)):
            continue
        left = (until - time.monotonic()) / 60
        if left > 0:
            start(arguments, clients, left)
    measured = [case for clients in arguments.clients for case in cases(arguments, clients) if case.is_measured()]
    if not measured:
        sys.exit(f"{arguments.kept}: nothing of these cases was measured")
    with page("nodes", wanted=arguments.write, kept=[kept_circumstances(case.folder) for case in measured]):
        report(measured, arguments)


def numbers(text):
    return [int(word) for word in text.split(",")]


def cases(arguments, clients):
    return [Case(arguments, clients, segments) for segments in arguments.segments]


def start(arguments, clients, minutes):
    """Runs this program on the login node of a cluster."""
    with tempfile.TemporaryDirectory(prefix="pioscope-nodes-") as folder:
        slow = Path(folder) / "slow"
        slow.mkdir()
        options = ["--nodes", clients, "--link", LINK, "--burst", BURST, "--servers", 1, "--slow", slow, "--bandwidth", LINK_BANDWIDTH,
                   "--total-bandwidth", LINK_BANDWIDTH]
        words = [sys.executable, Path(__file__).resolve(), "--clients", clients, "--segments", ",".join(map(str, arguments.segments)),
                 "--runs", arguments.runs, "--minutes", minutes, "--kept", arguments.kept, "--profile", arguments.profile]
        cluster(folder, options, words, profile=arguments.profile, check=True)


class Case:
    """A number of clients and segments: what was measured, and is predicted, of each strategy."""

    def __init__(self, arguments, clients, segments):
        self.kept, self.clients, self.segments, self.own = arguments.kept, clients, segments, OWN[family()]
        self.folder = self.kept / f"{self.own}-{clients}-{segments}"
        self.executions = MANY_EXECUTIONS if segments <= MANY_UP_TO else EXECUTIONS

    def is_measured(self):
        return self.folder.exists()

    def machine(self, storage):
        return self.kept / f"{storage}-{self.own}-{self.clients}.toml"

    def startup(self):
        """What a job's start and end send, by strategy."""
        return self.kept / f"startup-{self.own}-{self.clients}.json"

    def measured(self):
        """By strategy, the runs: seconds of all writes and of all reads, bytes on links, bytes to and from the file system."""
        startup = json.loads(self.startup().read_text())
        runs = json.loads((self.folder / "runs.json").read_text())
        for strategy, of_strategy in runs.items():
            usual = statistics.median(one["links"] for one in startup[strategy])
            for one in of_strategy:
                one["links"] -= usual
        return runs

    def predicted(self, command):
        """The same of the predictions: one each."""
        found = {}
        with tempfile.TemporaryDirectory() as output:
            for storage, strategies in [("servers", ON_SERVERS), ("slow", [self.own])]:
                # Alone in a folder: the runs that the description's history has would correct the predictions.
                machine = Path(shutil.copy(self.machine(storage), output))
                said = run([command, "predict", self.folder / "run.pio", "--machine", machine, "--strategy", ",".join(strategies),
                            "--output", output])
                rows = [re.split(r"  +", line.strip()) for line in said.splitlines()]
                columns = next(row for row in rows if row[0] == "machine")
                for row in rows:
                    if row[0] == machine.stem and row[1] in strategies:
                        one = times(command, Path(output) / f"run-{machine.stem}-{row[1]}.pio")
                        number, unit = row[columns.index("between nodes")].split()
                        found[row[1]] = one | {"links": float(number) * UNITS[unit]}
        return found


def times(command, trace):
    """Of a simulated trace: seconds of all writes and of all reads on the rank that takes longest, and bytes of requests."""
    run([command, "convert", trace, "-o", trace.with_suffix(".json")])
    events = json.loads(trace.with_suffix(".json").read_text())["traceEvents"]
    found = {"file": sum(event["args"]["result"] for event in events if event["name"] in ("pread", "pwrite"))}
    for way, name in WAYS.items():
        ranks = {}
        for event in events:
            if event["name"] == name:
                ranks[event["pid"]] = ranks.get(event["pid"], 0) + event["dur"] / 1e6
        found[way] = max(ranks.values())
    return found


def measure(arguments):
    """On the login node of a cluster, in its shared folder."""
    until = time.monotonic() + arguments.minutes * 60
    missing = [case for case in cases(arguments, *arguments.clients) if not case.is_measured()]
    job = Job(arguments, missing[0])
    for storage, words in [("servers", [".", *job.on_servers]), ("slow", ["slow"])]:
        if not job.case.machine(storage).exists():
            run([job.command, "machines", "calibrate", "--folder", *words, "-o", job.case.machine(storage), "--",
                 *mpiexec(job.case.clients)])
    if not job.case.startup().exists():
        runs = job.in_turn(arguments.runs, job.case.clients, 1)
        job.case.startup().write_text(json.dumps(runs))
    for case in missing:
        if time.monotonic() > until:
            return print("time is up: the next run goes on from here")
        # Complete, or not there.
        with tempfile.TemporaryDirectory(dir=arguments.kept) as folder:
            kept = Path(folder) / "runs"
            kept.mkdir()
            keep_circumstances(kept)
            job.run([job.command, "record", "-o", kept / "run.pio", "--"], case.segments, case.executions, "slow/data")
            (kept / "runs.json").write_text(json.dumps(job.in_turn(arguments.runs, case.segments, case.executions)))
            kept.rename(case.folder)
        print(f"measured: {case.clients} clients, {case.segments} segments", flush=True)


class Job:
    """The benchmark, ready to run."""

    def __init__(self, arguments, case):
        self.command, self.case = pioscope(arguments.profile), case
        self.on_servers = ["--store", os.environ["PIOSCOPE_CLUSTER_STORE"]]
        run(["mpicc", "-O2", "-o", "benchmark", BENCHMARK])

    def in_turn(self, runs, segments, executions):
        """Runs of all strategies in turn."""
        found = {strategy: [] for strategy in [*ON_SERVERS, self.case.own]}
        for _ in range(runs):
            for strategy, of_strategy in found.items():
                apply = [self.command, "apply", "--strategy", strategy, *self.on_servers, "--"]
                before, file = (apply, "pioscope:data") if strategy in ON_SERVERS else ([], "slow/data")
                of_strategy.append(self.run(before, segments, executions, file))
        return found

    def run(self, before, segments, executions, file):
        links, at_file = bytes_sent(), bytes_of_slow()
        run([*before, *mpiexec(self.case.clients), "./benchmark", segments, SEGMENT_BYTES, executions, file, "results"])
        found = {"links": bytes_sent() - links, "file": bytes_of_slow() - at_file}
        for line in Path("results").read_text().splitlines():
            way, seconds = line.split()
            found[way] = float(seconds)
        return found


def bytes_of_slow():
    """What the slow file system has read and written by now."""
    names, *rows = [line.split() for line in Path("slow/.slowfs").read_text().splitlines()]
    columns = [names.index("read-bytes"), names.index("written-bytes")]
    return sum(int(row[column]) for row in rows for column in columns)


def report(measured, arguments):
    print(f"{SEGMENT_BYTES}-byte segments of a file, written and read by all clients together in one call, {MANY_EXECUTIONS} times in a run with up to "
          f"{MANY_UP_TO} segments,\nelse {EXECUTIONS} times. Links, and the slow file system of the MPI's own way, of {LINK_BANDWIDTH}. ms: of a call, on "
          "the client that takes longest: median\nof the runs (least, most); predicted by the model alone. MB: of a write and a read; what went "
          "through links, and to and from\nthe file system, which is behind links of its own. Measured on links with headers, 66 of 1514 bytes.\n")
    row = "{:>7} {:>9} {:<10} {:<6} {:>11} {:>15} {:>12} {:>7} {:>8} {:>10}"
    print(row.format("clients", "segments", "strategy", "", "measured ms", "", "predicted ms", "error", "MB", "predicted"))
    errors, less = [], []
    for case in measured:
        predicted = case.predicted(pioscope(arguments.profile))
        middles = {}
        for strategy, runs in case.measured().items():
            guess = predicted[strategy]
            for way in WAYS:
                took = sorted(one[way] for one in runs)
                middle = middles[strategy, way] = statistics.median(took)
                spread = f"({took[0] / middle - 1:+.0%}, {took[-1] / middle - 1:+.0%})"
                moved = statistics.median(one["links"] + one["file"] for one in runs)
                error = guess[way] / middle - 1
                errors.append((strategy, abs(error)))
                found = [f"{1e3 * middle / case.executions:.2f}", spread, f"{1e3 * guess[way] / case.executions:.2f}", f"{error:+.0%}"]
                sizes = [f"{size / case.executions / 1e6:.3f}" for size in (moved, guess["links"] + guess["file"])]
                sizes = sizes if way == "write" else ["", ""]
                names = [case.clients, case.segments, strategy] if way == "write" else ["", "", ""]
                print(row.format(*names, way, *found, *sizes))
        less.append((case, {way: {other: 1 - middles["ecio", way] / middles[other, way] for other in ["two-phase", case.own]}
                            for way in WAYS}))
    print("\nHow much less time ECIO takes, measured:\n")
    for case, saved in less:
        told = [f"{way} {part:.0%} than {other}" for way, parts in saved.items() for other, part in parts.items()]
        print(f"{case.clients:>7} {case.segments:>9}  {', '.join(told)}")
    print("\nErrors of predicted times: median, 90th percentile\n")
    for strategy in dict(errors):
        ordered = sorted(error for name, error in errors if name == strategy)
        print(f"{strategy:<10} {statistics.median(ordered):.0%}, {ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]:.0%}")


if __name__ == "__main__":
    main()
