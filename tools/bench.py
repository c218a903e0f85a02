"""Prints ratios, each from runs in turn: the MPI's own collective I/O over Pioscope's, and a recorded run over a plain one.

A ratio above 1 means that Pioscope is that many times faster (or, for recording, that the recorded run took longer).
The limit is one process that writes or reads the same bytes contiguously, by pwrite or pread.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tree import COLLAPSE, ROOT, environment, mpiexec, pioscope, run

PIECES = [4_000, 16_000, 64_000, 256_000, 1_024_000]
CPUS = os.cpu_count() or 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to put the files (default: a new temporary folder)")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (default %(default)s)")
    parser.add_argument("--only", choices=["patterns", "recording"], help="one part only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pioscope-bench-", dir=arguments.folder) as folder:
        folder = Path(folder)
        print(f"{CPUS} processors, {versions()}, files in {folder.parent}")
        if arguments.only != "recording":
            patterns(build_patterns(folder), folder, arguments.pairs)
        if arguments.only != "patterns":
            recording(folder, arguments.pairs)


def versions():
    own = run([pioscope(), "--version"]).strip()
    mpi = run([mpiexec(1)[0], "--version"]).strip().splitlines()
    version = next((line.split(":")[-1].strip() for line in mpi if "Version" in line), mpi[0])
    return f"{own}, MPI {version}"


def build_patterns(folder):
    program = folder / "patterns"
    run(["mpicc", "-O2", "-o", program, ROOT / "crates/mpiio/bench/patterns.c"])
    return program


def patterns(program, folder, pairs):
    print("\ntwo-phase: time of the MPI's own collective call over Pioscope's, and of Pioscope's over the limit")
    print(f"{'pattern':<12} {'ranks':>5} {'pieces':>9} {'call':>6} {'own MB/s':>9} {'ours MB/s':>10}"
          f" {'ratio':>7} {'least – most':>15} {'of the limit':>13}")
    for ranks in (2, 4):
        for pieces in PIECES:
            compare(program, folder, pairs, "interleaved", ranks, ["--pieces", pieces])
    for ranks in (2, 4, 8):
        compare(program, folder, pairs, "subarray", ranks, [])
        compare(program, folder, pairs, "contiguous", ranks, ["--pieces", 256_000])


def compare(program, folder, pairs, pattern, ranks, words):
    job = [*mpiexec(ranks), program, "--pattern", pattern, "--repeat", 5, "--file", folder / "data", *words]
    apply = [pioscope(), "apply", "--strategy", "two-phase", "--"]
    own, ours, limit = {}, {}, {}
    for _ in range(pairs):
        for results, command in ((own, job), (ours, [*apply, *job])):
            for mode, figures in measure(command, folder).items():
                results.setdefault(mode, []).append(figures)
        for mode, seconds in contiguous(folder / "limit", int(own["write"][-1]["bytes"])).items():
            limit.setdefault(mode, []).append(seconds)
    for mode in own:
        ratios = sorted(a["median"] / b["median"] for a, b in zip(own[mode], ours[mode]))
        rates = [statistics.median(one["bytes"] / one["median"] for one in side[mode]) / 1e6 for side in (own, ours)]
        share = statistics.median(a / b["median"] for a, b in zip(limit[mode], ours[mode]))
        pieces = own[mode][0]["pieces"]
        print(f"{pattern:<12} {ranks:>5} {pieces:>9} {mode:>6} {rates[0]:>9.1f} {rates[1]:>10.1f}"
              f" {statistics.median(ratios):>6.2f}x {ratios[0]:>6.2f} – {ratios[-1]:<6.2f} {share:>12.0%}", flush=True)


def measure(command, folder):
    """The figures that one run of the pattern program prints, by direction."""
    text = subprocess.run([str(word) for word in command], env=environment(), cwd=folder, check=True,
                          capture_output=True, text=True, timeout=600).stdout
    line = re.compile(r"^(\w+) (\w+) ranks=\d+ pieces=(\d+) MB=([\d.]+) min_s=[\d.]+ median_s=([\d.]+)", re.M)
    return {mode: {"pieces": int(pieces), "bytes": float(mb) * 1e6, "median": max(float(median), 1e-6)}
            for _, mode, pieces, mb, median in line.findall(text)}


def contiguous(path, size):
    """Seconds that one process takes to write, and to read, so many bytes in one call each: medians of five."""
    data = bytearray(os.urandom(size))
    times = {"write": [], "read": []}
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    for _ in range(5):
        for mode, call in (("write", lambda: os.pwrite(fd, data, 0)), ("read", lambda: os.preadv(fd, [data], 0))):
            began = time.perf_counter()
            assert call() == size
            times[mode].append(time.perf_counter() - began)
    os.close(fd)
    return {mode: statistics.median(seconds) for mode, seconds in times.items()}


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
