"""What recording a call costs: the same calls with nothing, an empty wrapper, two time stamps, Pioscope and strace.

Each side runs in turn, many times, and counts by its fastest: a call takes no less time than that. Times are the CPU time
of the calling thread; strace's is the wall clock's, since most of it goes by in another process.
"""

import os
import shutil
import statistics
import subprocess

from tree import ROOT, pioscope

SOURCES = ROOT / "crates/record/bench"
OPERATIONS = ["pread", "pwrite", "write", "fwrite", "fread", "lseek"]
# Of each thread: a tenth of them, a round, fills its chunk of the recorder's memory more than once.
CALLS = 200_000
# strace stops the program twice a call.
CALLS_UNDER_STRACE = 5_000


def calls(folder, pairs):
    print("\nrecording: time of a call of 1 KiB, ns, and what each side adds to it")
    program = folder / "calls"
    subprocess.run(["cc", "-O2", "-o", program, SOURCES / "calls.c", "-pthread"], check=True)
    wrappers = {}
    for name, options in (("wrapper", []), ("two stamps", ["-DSTAMPS"])):
        wrappers[name] = folder / f"{name.replace(' ', '-')}.so"
        command = ["cc", "-O2", "-shared", "-fPIC", *options, "-o", wrappers[name], SOURCES / "wrapper.c", "-ldl"]
        subprocess.run(command, check=True)
    sides = ["nothing", *wrappers, "Pioscope"] + (["strace"] if shutil.which("strace") else [])
    print(f"{'call':<8} {'threads':>7} {'nothing':>8}" + "".join(f" {side:>12}" for side in sides[1:]) + f" {'spread':>8}")
    added = {}
    for threads in (1, 8):
        for operation in OPERATIONS:
            found = {side: [] for side in sides}
            for _ in range(max(pairs, 5)):
                for side in sides:
                    found[side].append(one(folder, program, side, wrappers, operation, threads))
            cpu = {side: min(pair[0] for pair in found[side]) for side in sides}
            wall = {side: min(pair[1] for pair in found[side]) for side in sides}
            columns = [f"{cpu[side] - cpu['nothing']:+.0f}" if side != "strace" else f"{wall[side] - wall['nothing']:+.0f}"
                       for side in sides[1:]]
            times = sorted(pair[0] for pair in found["Pioscope"])
            spread = times[len(times) // 2] / times[0]
            added[operation, threads] = cpu["Pioscope"] - cpu["nothing"]
            print(f"{operation:<8} {threads:>7} {cpu['nothing']:>8.0f}" + "".join(f" {column:>12}" for column in columns)
                  + f" {spread:>8.2f}", flush=True)
    print(f"added by Pioscope: median {statistics.median(added.values()):.0f} ns, most {max(added.values()):.0f} ns"
          " (spread: the median of its runs over the fastest)")


def one(folder, program, side, wrappers, operation, threads):
    """CPU and wall time of one call, ns."""
    count = CALLS_UNDER_STRACE if side == "strace" else CALLS // 2 if threads > 1 else CALLS
    command = [program, operation, str(threads), str(count), folder]
    environment = dict(os.environ)
    if side in wrappers:
        environment["LD_PRELOAD"] = str(wrappers[side])
    elif side == "Pioscope":
        command = [pioscope(), "record", "-o", folder / "calls.pio", "--", *command]
    elif side == "strace":
        command = ["strace", "-f", "-qq", "-o", "/dev/null", *command]
    result = subprocess.run([str(word) for word in command], env=environment, check=True, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    cpu, wall = result.stdout.split()
    return float(cpu), float(wall)
