"""How much of the time of nonblocking operations programs hide behind their own computing, on a slow device.

The device is an I/O server behind a link of limited bandwidth: the loopback device of a network namespace, with a token
bucket (tc tbf). Server and ranks are in the namespace. Where the kernel lets nobody make one, this part is skipped.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tree import ROOT, environment, mpiexec, pioscope, run

# So that each operation takes less than the program computes, and much more than beginning it and waiting.
RATE = "400mbit"
RANK_BYTES = 512 << 10
COMPUTE_MS = 50
RANKS = [1, 2]
PIECES = 64

# (what it says of the messages between ranks, environment)
NODES = [("one node", {}), ("several nodes", {"PIOSCOPE_SHARED_MEMORY": "off"})]
LEVELS = ["single", "funneled", "multiple"]
STRATEGIES = ["two-phase", "ecio"]
ROW = "{:<10} {:<18} {:<12} {:<11} {:<5} {:>11} {:>8} {:>7} {:>6} {:>8}"
# Packets of a real network's size: the bucket must hold the largest.
LIMITED = ["unshare", *([] if os.geteuid() == 0 else ["-U", "-r"]), "-n", "sh", "-c",
           'ip link set lo up mtu 1500 && tc qdisc add dev lo root tbf rate "$0" burst 64kb latency 400ms && exec "$@"',
           RATE]


def overlap(rounds):
    print(f"\noverlap: an I/O server behind a link of {RATE}/s, {RANK_BYTES >> 10} KiB a rank, {COMPUTE_MS} ms of computing")
    try:
        subprocess.run([*LIMITED, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no network namespace with a limited link here ({(getattr(error, 'stderr', b'') or b'').decode().strip() or error})")
        return
    # Printed here, where a page may be written of it.
    inner = subprocess.Popen([*LIMITED, sys.executable, __file__, str(rounds)], env=environment(), stdout=subprocess.PIPE, text=True)
    for line in inner.stdout:
        print(line, end="", flush=True)
    if inner.wait() != 0:
        sys.exit(f"overlap: exit code {inner.returncode}")


def inside(rounds):
    """In the namespace."""
    print("hidden: how much of the blocking call's time MPI_Wait does not take; computed: what the program computes "
          "meanwhile, over what it computes without I/O")
    print(ROW.format("strategy", "ranks on", "thread level", "calls", "", "blocking ms", "begin ms", "wait ms", "hidden",
                     "computed"), flush=True)
    with tempfile.TemporaryDirectory(prefix="pioscope-overlap-") as folder:
        folder = Path(folder)
        program = folder / "overlap"
        run(["mpicc", "-O2", "-o", program, ROOT / "crates/mpiio/bench/overlap.c"])
        os.environ["PIOSCOPE_TRANSPORT"] = "tcp"
        store = folder / "store.toml"
        words = ["serve", "--dir", folder / "data", "--listen", "127.0.0.1", "--store-file", store]
        server = subprocess.Popen([pioscope(), *words], stdout=subprocess.DEVNULL)
        try:
            while not store.exists():
                time.sleep(0.01)
            for strategy in STRATEGIES:
                for ranks in RANKS:
                    for where, variables in NODES if ranks > 1 else NODES[:1]:
                        for level in LEVELS:
                            measure(program, store, strategy, ranks, where, variables, level, rounds)
        finally:
            server.terminate()
            server.wait()


def measure(program, store, strategy, ranks, where, variables, level, rounds):
    os.environ |= variables
    job = [*mpiexec(ranks), program, "/overlap", "--level", level, "--rounds", rounds,
           "--bytes", RANK_BYTES, "--pieces", PIECES, "--compute-ms", COMPUTE_MS]
    out = run([pioscope(), "apply", "--strategy", strategy, "--store", store, "--", *job])
    for name in variables:
        del os.environ[name]
    for line in out.splitlines():
        if not line.startswith("calls="):
            continue
        figures = dict(word.split("=") for word in line.split())
        if figures["level"] != level:
            continue
        times = [f"{1e3 * float(figures[name]):.2f}" for name in ("blocking", "beginning", "waiting")]
        shares = [f"{100 * float(figures[name]):.0f} %" for name in ("hidden", "computed")]
        place = f"{ranks} on {where}" if ranks > 1 else "1"
        print(ROW.format(strategy, place, level, figures["calls"], figures["direction"], *times, *shares), flush=True)


if __name__ == "__main__":
    inside(int(sys.argv[1]))
