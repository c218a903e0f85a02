"""Prints what recorders cost the same small programs, and how large what they write is: Pioscope, DFTracer and strace.

The programs make many writes of 1 KiB at one place (alike), or of other sizes at other places (mixed). Sides run in turn, and the
fastest run of each counts, because others may use the machine. A program measures its calls itself; *around* is what the command
takes beside them, to start and end. Needs `pip install dftracer`; strace is left out where it is not installed.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from measured import page
from tree import end_by_exception, environment, pioscope, run

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    static char block[8192];
    int file = open("data", O_RDWR | O_CREAT, 0644), calls = atoi(words[2]), mixed = !strcmp(words[1], "mixed");
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < calls; i++)
        if (pwrite(file, block, mixed ? 100 + i * 37 % 4000 : 1024, mixed ? i * 7919LL % 997 * 512 : 0) < 0)
            return count;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + end.tv_nsec - begin.tv_nsec) / calls);
    return 0;
}
"""
# strace is a hundred times slower: fewer calls tell as much.
FEWER = {"strace": 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=120, help="runs of each side (default %(default)s)")
    parser.add_argument("--calls", type=int, default=10_000, help="calls of a run (default %(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    with page("recorders", wanted=arguments.write), tempfile.TemporaryDirectory(prefix="recorders-", ignore_cleanup_errors=True) as folder:
        Path(folder, "calls.c").write_text(PROGRAM)
        run(["cc", "-O2", "-o", "calls", "calls.c"], cwd=folder)
        print(f"DFTracer {version('dftracer')}, strace {strace_version()}; {arguments.rounds} rounds of {arguments.calls:,} calls (strace: {arguments.calls // FEWER['strace']:,}), the fastest")
        print(f"{'program':<8} {'recorder':<9} {'ns a call':>10} {'added':>8} {'around, ms':>11} {'bytes a call':>13}")
        for kind in ["alike", "mixed"]:
            compare(kind, Path(folder), arguments)


def strace_version():
    return run(["strace", "--version"]).split("\n")[0].split()[-1] if shutil.which("strace") else "not installed"


def compare(kind, folder, arguments):
    sides = {"nothing": nothing, "Pioscope": ours, "DFTracer": dftracer} | ({"strace": strace_side} if shutil.which("strace") else {})
    found = {name: [] for name in sides}
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            calls = arguments.calls // FEWER.get(name, 1)
            for left in [*folder.glob("made*"), *folder.glob("data")]:
                left.unlink()
            began = time.perf_counter()
            took = side(folder, ["./calls", kind, str(calls)])
            around = time.perf_counter() - began - took * calls / 1e9
            size = sum(made.stat().st_size for made in folder.glob("made*"))
            found[name].append((took, around, size / calls))
    plain = min(took for took, _, _ in found["nothing"])
    for name, runs in found.items():
        took, around, size = map(min, zip(*runs))
        print(f"{kind:<8} {name:<9} {took:>10.0f} {took - plain:>8.0f} {around * 1e3:>11.0f} {size:>13.2f}", flush=True)


def nothing(folder, words):
    return start(words, folder)


def ours(folder, words):
    return start([pioscope(), "--quiet", "record", "-o", "made.pio", "--", *words], folder)


def dftracer(folder, words):
    import dftracer as module

    library = Path(module.__file__).parent / "lib64/libdftracer_preload.so"
    return start(words, folder, DFTRACER_ENABLE="1", DFTRACER_INIT="PRELOAD", DFTRACER_LOG_FILE=str(folder / "made"),
                 DFTRACER_DATA_DIR="all", LD_PRELOAD=str(library))


def strace_side(folder, words):
    return start(["strace", "-f", "-ttt", "-T", "-y", "-o", "made.strace", *words], folder)


def start(words, folder, **variables):
    done = subprocess.run([str(word) for word in words], cwd=folder, env=environment(words) | variables, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
