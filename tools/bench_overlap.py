"""How much of the time of nonblocking operations programs hide behind their own computing, on a slow device.

The devices are those of a cluster of namespaces (tools/cluster): an I/O server behind a link of limited bandwidth, and a slow
shared file system. Where the kernel lets nobody make namespaces, this part is skipped.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tree import ROOT, cluster, end_by_exception, mpiexec, pioscope, run

# So that each operation takes less than the program computes, and much more than beginning it and waiting.
LINK, SLOW = "400mbit", {"--latency": "200 us", "--bandwidth": "100 MB/s"}
RANK_BYTES = 512 << 10
COMPUTE_MS = 50
PIECES = 64

LEVELS = ["single", "funneled", "multiple"]
# On what, under which strategy, and with what words.
CASES = [("server", "two-phase"), ("server", "ecio"), ("slow files", "two-phase"), ("slow files", "independent")]
ROW = "{:<10} {:<11} {:<15} {:<12} {:<11} {:<5} {:>11} {:>8} {:>7} {:>6} {:>8}"


def overlap(rounds):
    slow = ", ".join(SLOW.values())
    print(f"\noverlap: an I/O server behind a link of {LINK}/s, or a file system of {slow}; {RANK_BYTES >> 10} KiB a rank, "
          f"{COMPUTE_MS} ms of computing")
    with tempfile.TemporaryDirectory(prefix="pioscope-overlap-") as folder:
        folder = Path(folder)
        (folder / "slow").mkdir()
        try:
            on_cluster(folder, 1, 1, ["true"], capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: no cluster of namespaces here ({(getattr(error, 'stderr', b'') or b'').decode().strip() or error})")
            return
        run(["mpicc", "-O2", "-o", folder / "overlap", ROOT / "crates/mpiio/bench/overlap.c"])
        print("hidden: how much of the blocking call's time MPI_Wait does not take; computed: what the program computes "
              "meanwhile, over what it computes without I/O")
        print(ROW.format("on", "strategy", "ranks", "thread level", "calls", "", "blocking ms", "begin ms", "wait ms", "hidden",
                         "computed"), flush=True)
        for ranks, nodes in [(1, 1), (2, 1), (2, 2)]:
            words = [sys.executable, __file__, rounds, ranks, nodes]
            # Printed here, where a page may be written of it.
            print(on_cluster(folder, nodes, ranks // nodes, words, stdout=subprocess.PIPE).stdout.decode(), end="", flush=True)


def on_cluster(folder, nodes, ranks_per_node, words, **options):
    """Runs a command on a cluster, in a folder that its nodes share."""
    cluster_options = ["--nodes", nodes, "--ranks-per-node", ranks_per_node, "--link", LINK, "--servers", 1,
                       "--slow", folder / "slow", *[word for option in SLOW.items() for word in option]]
    return cluster(folder, cluster_options, words, profile="release", check=True, **options)


def inside(rounds, ranks, nodes):
    """In the cluster."""
    place = {(1, 1): "1", (2, 1): "2 on one node", (2, 2): "2 on two nodes"}[ranks, nodes]
    for device, strategy in CASES:
        words = ["--store", os.environ["PIOSCOPE_CLUSTER_STORE"]] if device == "server" else []
        file = "/overlap" if device == "server" else "slow/overlap"
        for level in LEVELS:
            job = [*mpiexec(ranks), "./overlap", file, "--level", level, "--rounds", rounds,
                   "--bytes", RANK_BYTES, "--pieces", PIECES, "--compute-ms", COMPUTE_MS]
            for line in run([pioscope(), "apply", "--strategy", strategy, *words, "--", *job]).splitlines():
                if not line.startswith("calls="):
                    continue
                figures = dict(word.split("=") for word in line.split())
                if figures["level"] != level:
                    continue
                times = [f"{1e3 * float(figures[name]):.2f}" for name in ("blocking", "beginning", "waiting")]
                shares = [f"{100 * float(figures[name]):.0f} %" for name in ("hidden", "computed")]
                print(ROW.format(device, strategy, place, level, figures["calls"], figures["direction"], *times, *shares),
                      flush=True)


if __name__ == "__main__":
    end_by_exception()
    inside(*map(int, sys.argv[1:]))
