"""Prints how many times faster than libCacheSim our cache counts the misses of the same traces, and whether they agree.

Runs in turn, each side on the same records of libCacheSim's oracleGeneral format. Where requests are extents, libCacheSim
is given their blocks one by one (it knows nothing else) and we are given the extents. Its hash table has as many buckets
as the cache has blocks, which was the fastest of several sizes. Needs `pip install libcachesim`.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import libcachesim
import numpy

from measured import page
from tree import ROOT, end_by_exception

RECORD = numpy.dtype([("time", "<u4"), ("block", "<u8"), ("blocks", "<u4"), ("next", "<i8")])
POLICIES = {"lru": "LRU", "clock": "Clock", "slru": "SLRU", "arc": "ARC", "lirs": "LIRS"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (default %(default)s)")
    parser.add_argument("--requests", type=int, default=2_000_000, help="block requests of a trace (default %(default)s)")
    parser.add_argument("--policy", default=",".join(POLICIES), help="policies, separated by commas")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "pio-cache", "--example", "misses"], cwd=ROOT, check=True)
    with page("cache", wanted=arguments.write):
        compare_all(arguments)


def compare_all(arguments):
    print(f"libCacheSim {version('libcachesim')}, {arguments.pairs} pairs; million blocks a second of processor time")
    print(f"{'trace':<9} {'policy':<6} {'theirs':>8} {'ours':>9} {'ratio':>7} {'least – most':>15}  misses")
    with tempfile.TemporaryDirectory(prefix="pioscope-cache-") as folder:
        for name, extents, capacity in traces(arguments.requests):
            ours, theirs = Path(folder, "extents"), Path(folder, "blocks")
            extents.tofile(ours)
            total = split(extents).tofile(theirs) or int(extents["blocks"].sum())
            for policy in arguments.policy.split(","):
                compare(name, policy, capacity, total, ours, theirs, arguments.pairs)


def traces(requests):
    """Traces with the cache size in blocks that goes with each; capacities divide by 4, so that SLRU means the same."""
    random = numpy.random.default_rng(1)
    ranks, places = zipf(random, 500_000, requests)
    yield "small", records(places[ranks], 1), 2_000
    yield "zipf", records(places[ranks], 1), 50_000
    many_ranks, many_places = zipf(random, 4_000_000, requests)
    yield "large", records(many_places[many_ranks], 1), 500_000
    scan = numpy.arange(requests) % 60_000
    mixed = numpy.where(random.random(requests) < 0.5, places[ranks] + 60_000, scan)
    yield "mixed", records(mixed, 1), 40_000
    # Six files of 45 MiB read and written in turn, 456 KiB at a time, in blocks of 4 KiB (Miller and Katz's venus).
    extents = requests // 114
    rounds, files = numpy.divmod(numpy.arange(extents), 6)
    yield "extents", records(files * 100_000 + rounds % 101 * 114, 114), 40_000
    # Requests of 256 blocks anywhere in 4,000 aligned places.
    yield "random", records(random.integers(0, 4_000, requests // 256) * 256, 256), 400_000


def zipf(random, blocks, requests):
    """Ranks that follow Zipf's law with exponent 0.9, and where the blocks of each rank are."""
    weights = numpy.cumsum(1 / numpy.arange(1, blocks + 1) ** 0.9)
    ranks = numpy.searchsorted(weights / weights[-1], random.random(requests))
    return ranks, random.permutation(blocks)


def records(blocks, length):
    made = numpy.zeros(len(blocks), RECORD)
    made["block"], made["blocks"], made["next"] = blocks, length, -2
    return made


def split(extents):
    """The same requests, block by block."""
    lengths = extents["blocks"]
    starts = numpy.repeat(extents["block"], lengths)
    first = numpy.repeat(numpy.cumsum(lengths, dtype=numpy.int64) - lengths, lengths)
    return records(starts + (numpy.arange(len(starts)) - first).astype("u8"), 1)


def compare(name, policy, capacity, total, ours, theirs, pairs):
    speeds = []
    for _ in range(pairs):
        their_misses, their_s = run_theirs(policy, capacity, total, theirs)
        our_misses, our_s = run_ours(policy, capacity, ours)
        speeds.append((total / their_s / 1e6, total / our_s / 1e6))
    ratios = sorted(our / their for their, our in speeds)
    their, our = (statistics.median(side) for side in zip(*speeds))
    misses = f"{our_misses}, equal" if our_misses == their_misses else f"{our_misses}, theirs {their_misses}"
    spread = f"{ratios[0]:.1f} – {ratios[-1]:.1f}"
    print(f"{name:<9} {policy:<6} {their:>8.2f} {our:>9.1f} {statistics.median(ratios):>7.1f} {spread:>15}  {misses}", flush=True)


def run_theirs(policy, capacity, total, trace):
    cache = getattr(libcachesim, POLICIES[policy])(cache_size=capacity, hashpower=capacity.bit_length())
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(str(trace), libcachesim.TraceType.ORACLE_GENERAL_TRACE, parameters)
    start = time.process_time()
    ratio, _ = cache.process_trace(reader)
    return round(ratio * total), time.process_time() - start


def run_ours(policy, capacity, trace):
    command = [ROOT / "target/release/examples/misses", trace, policy, str(capacity)]
    hits, misses, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(misses), float(seconds)


if __name__ == "__main__":
    main()
