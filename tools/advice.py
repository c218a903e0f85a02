"""What `pioscope advise` finds, beside all that could have been found: programs are measured under every setting of a grid.

Each program is advised once, with three runs after the first, by a description of the place that was made before. Then each
setting of the grid runs twice, in turn with the others. The settings that took least, the one that advise chose and the program
as it is run again in turn: by the first of these runs and those of the grid one is the best, by the others they are compared,
so that a setting that was lucky is no better for it. A search at random with as many runs is computed from the runs of the grid,
and compared with the same best: what the setting that it keeps takes says a run that the search did not see.
A program's times are kept in the folder --kept as soon as it is measured: a run that was stopped, or that ran out of
--minutes, goes on where it was.
"""

import argparse
import itertools
import json
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measured import circumstances, page
from tree import OWN, ROOT, absolute, end_by_exception, family
from truth import KERNELS, Lab, memory_at_hand, time_of, told, words

# Programs as the benches have them, smaller, and their ranks.
KERNEL = ["--compute", 1, "--steps", 6]
PROGRAMS = [
    ("bt-io", 2, []), ("bt-io", 4, []), ("bt-io", 8, ["--mesh", 24]), ("s3d-io", 2, []), ("s3d-io", 8, ["--mesh", 24]),
    ("hacc-io", 2, []), ("hacc-io", 4, []), ("ior", 2, []), ("segments", 4, []), ("small", 2, []), ("small", 8, []),
    ("transpose", 2, []), ("transpose", 4, []), ("phases", 2, []), ("late", 4, []), ("log", 4, []),
    ("collapse", 2, ["--mesh", "32x32x32"]), ("collapse", 4, ["--mesh", "48x48x48"]), ("collapse", 8, ["--mesh", "32x32x32"]),
    ("interleaved", 2, []), ("interleaved", 4, ["--pieces", 20000]), ("subarray", 2, []), ("subarray", 4, []),
    ("contiguous", 8, []),
]
AS_IT_IS = "as it is"
BUFFERS = [1 << 20, 16 << 20]
STRIPS = [64 << 10, 1 << 20]
GRID_RUNS = 2
# Of these, some say which is the best, the others what each takes.
FINAL_RUNS = 10
CHOOSING_RUNS = 3
FINALISTS = 4
# Settings that advise may run after the first run, and so a search at random.
TRIED = 3
DRAWS = 2000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=words, default=["disk"], help="where files are: disk, memory, servers (%(default)s)")
    parser.add_argument("--only", type=words, help="of the programs those with these names")
    parser.add_argument("--minutes", type=float, default=30, help="begin no further program after so long (%(default)s)")
    parser.add_argument("--kept", type=absolute, default=ROOT / "target/advice", help="what was measured (%(default)s)")
    parser.add_argument("--profile", default="release", help="the build that is tried (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured")
    arguments = parser.parse_args()
    end_by_exception()
    arguments.runs = GRID_RUNS
    until = time.monotonic() + arguments.minutes * 60
    arguments.kept.mkdir(parents=True, exist_ok=True)
    own = family()
    cases = [Case(arguments.kept, place, own, *program) for place in arguments.places for program in PROGRAMS
             if not arguments.only or program[0] in arguments.only]
    for place in arguments.places:
        missing = [case for case in cases if case.place == place and not case.file.exists()]
        if not missing or time.monotonic() > until:
            continue
        with memory_at_hand(), Bench(place, arguments) as bench:
            for case in missing:
                if time.monotonic() > until:
                    print("time is up: the next run goes on from here")
                    break
                bench.measure(case)
                print(f"measured: {case}", flush=True)
    found = [(case, json.loads(case.file.read_text())) for case in cases if case.file.exists()]
    if not found:
        sys.exit(f"{arguments.kept}: nothing of these programs was measured")
    with page("advice", wanted=arguments.write, kept=[cell.get("circumstances", {}) for _, cell in found]):
        report(found, len(cases))


class Case:
    """A program, and the file of its times."""

    def __init__(self, kept, place, mpi, name, ranks, options):
        self.kept, self.place, self.mpi, self.program, self.ranks, self.options = kept, place, mpi, name, ranks, options
        size = "".join(f"-{word}".replace("--", "") for word in options)
        self.file = kept / f"{place}-{mpi}-{name}-{ranks}{size}.json"

    def __str__(self):
        return " ".join(str(word) for word in [self.program, *self.options])

    def machine(self):
        return self.kept / f"{self.place}-{self.mpi}.toml"


class Bench(Lab):
    """A place for files, calibrated, with the programs beside it."""

    def measure(self, case):
        if not case.machine().exists():
            self.calibrate(case)
        advised = self.advise(case)
        chosen = advised["chosen"]
        grid = {setting: [] for setting in settings(case)}
        for _ in range(GRID_RUNS):
            for setting, runs in grid.items():
                runs.append(self.seconds(case, setting))
        best = sorted(grid, key=lambda setting: statistics.median(grid[setting]))[:FINALISTS]
        final = {setting: [] for setting in dict.fromkeys([*best, chosen, AS_IT_IS])}
        for _ in range(FINAL_RUNS):
            for setting, runs in final.items():
                runs.append(self.seconds(case, setting))
        measured = {"circumstances": circumstances(), "advised": advised, "grid": grid, "final": final}
        case.file.write_text(json.dumps(measured, indent=1))

    def program(self, case, data):
        name, options = case.program, case.options
        if name in KERNELS:
            return [self.kernels, name, "--folder", data, *KERNEL, *options]
        if name == "collapse":
            return [self.collapse, *options, "--iterations", 8, "--dump-every", 2, "--output", data]
        return [self.patterns, "--pattern", name, *options, "--repeat", 6, "--file", data / "patterns.dat"]

    def advise(self, case):
        """What it chooses, and how many runs that took. What it learns is of no use to the next program."""
        with tempfile.TemporaryDirectory() as folder:
            machine = self.copied(case, folder)
            kept = Path(folder) / "advice.toml"
            place = ["--store", self.store, "--in-place"] if self.store else []
            said = self.job([self.pioscope(), "advise", "--machine", machine, "--keep", kept, *place], case)
            ran = re.findall(r"^pioscope: running pioscope ", said, flags=re.MULTILINE)
            keeps = re.search(r"^Keep (.*): measured to save", said, flags=re.MULTILINE)
            return {"chosen": keeps[1].replace(", ", " ") if keeps else AS_IT_IS, "runs": len(ran), "said": said}

    def copied(self, case, folder):
        for kept in case.machine(), case.machine().with_suffix(".runs.jsonl"):
            if kept.exists():
                shutil.copy(kept, folder)
        return Path(folder) / case.machine().name

    def seconds(self, case, setting):
        """The I/O time of one run."""
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "run.pio"
            if setting == AS_IT_IS:
                how = ["record", "-o", trace]
            else:
                strategy, *hints = setting.split(" ")
                store = ["--store", self.store] if self.store and strategy not in OWN.values() else []
                how = ["apply", "--strategy", strategy, *hints_of(hints), *store, "--record", trace]
            self.job([self.pioscope(), *how], case)
            return told([self.pioscope(), "explain", trace])["io_time_s"]


def hints_of(words):
    return ["--hints", ",".join(words)] if words else []


def settings(case):
    """The grid: strategies, by how many ranks aggregate, by buffers; what the MPI library does by itself, with its hints; on I/O
    servers by strips, too."""
    aggregators = sorted({1, min(2, case.ranks), max(1, case.ranks // 2), case.ranks})
    aggregating = [f"{strategy} cb_nodes={count} cb_buffer_size={size}" for strategy, count, size
                   in itertools.product(["two-phase", "view-based"], aggregators, BUFFERS)]
    if case.place == "servers":
        plain = ["independent", "list", "ecio", *aggregating]
        strips = [f"{setting} striping_unit={strip}" for setting in ["independent", "list", "ecio", "two-phase"]
                  for strip in STRIPS]
        return [*plain, *strips]
    sieving = ["sieving", *(f"sieving {hint}={size}" for hint in ["ind_wr_buffer_size", "ind_rd_buffer_size"]
                            for size in [128 << 10, 2 << 20, 16 << 20])]
    buffers = [f"cb_buffer_size={size}" for size in BUFFERS]
    # What each follows of the hints.
    hints = {"romio": ["romio_cb_read=enable romio_cb_write=enable", "romio_cb_read=disable romio_cb_write=disable",
                       "romio_ds_read=disable romio_ds_write=disable",
                       "romio_cb_read=disable romio_cb_write=disable romio_ds_read=disable romio_ds_write=disable",
                       "cb_config_list=*:*", *buffers],
             "ompio": [*(f"cb_nodes={count}" for count in aggregators), *buffers]}
    own = OWN[case.mpi]
    return ["independent", "list", *sieving, *aggregating, AS_IT_IS, *(f"{own} {each}" for each in hints[own])]


def report(found, count):
    """What the chosen settings cost beside the best of the grid, of so many cases."""
    print(f"{len(found)} of {count} cases, of {len({case.program for case, _ in found})} programs. After its first run advise may run a program {TRIED} times. The grid's settings run {GRID_RUNS} times each; the best"
          f" {FINALISTS}, the chosen one and the program as it is {FINAL_RUNS} times more. The best is the one of the grid that had"
          f" the least median in the grid and the first {CHOOSING_RUNS} of these runs; times are medians of the others. Loss: over"
          " the best; less than nothing where the chosen one takes less than it. At random: the mean of searches that run"
          f" {TRIED} settings once, by another run of the one that each keeps, over the mean of the best. Spread: half of what lies between the quartiles of"
          " the chosen one's runs.\n")
    print("| program | ranks | place | settings | as it is | chosen | spread | best | loss: chosen | as it is | at random | after runs |"
          " chosen setting | best setting |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|")
    losses = {"advise": [], "as it is": [], "at random": []}
    slower = []
    for case, cell in found:
        final = {setting: statistics.median(runs[CHOOSING_RUNS:]) for setting, runs in cell["final"].items()}
        chosen, best = cell["advised"]["chosen"], best_of(cell)
        low, _, high = statistics.quantiles(cell["final"][chosen][CHOOSING_RUNS:], n=4)
        found_at_random = at_random(cell["grid"] | {AS_IT_IS: cell["final"][AS_IT_IS]})
        of = {"advise": final[chosen] / final[best] - 1, "as it is": final[AS_IT_IS] / final[best] - 1,
              "at random": found_at_random / statistics.mean(cell["final"][best][CHOOSING_RUNS:]) - 1}
        for kind, loss in of.items():
            losses[kind].append(loss)
        if final[chosen] > final[AS_IT_IS] * 1.02:
            slower.append(f"{case}, {case.ranks} ranks, {case.place}: {final[chosen] / final[AS_IT_IS] - 1:+.0%}")
        print(f"| {case} | {case.ranks} | {case.place} | {len(cell['grid'])} | {time_of(final[AS_IT_IS])} | {time_of(final[chosen])}"
              f" | {(high - low) / 2 / final[chosen]:.0%}"
              f" | {time_of(final[best])} | {of['advise']:.0%} | {of['as it is']:.0%} | {of['at random']:.0%}"
              f" | {cell['advised']['runs']} | {chosen} | {best} |")
    print("\n| loss | median | mean | worst |")
    print("|---|---:|---:|---:|")
    for kind, each in losses.items():
        if each:
            print(f"| {kind} | {statistics.median(each):.0%} | {statistics.mean(each):.0%} | {max(each):.0%} |")
    print(f"\nSlower than as it is: {'; '.join(slower) or 'none'}.")


def best_of(cell):
    """The setting that a search of the grid finds."""
    known = {setting: runs + cell["final"][setting][:CHOOSING_RUNS] for setting, runs in cell["grid"].items()
             if setting in cell["final"]}
    return min(known, key=lambda setting: statistics.median(known[setting]))


def at_random(grid):
    """What the program takes in the mean after a search at random: three settings run once, and the best is kept if it beats the
    program as it is. That run was kept for being short: how long the setting takes says another one."""
    source = random.Random(1)
    others = sorted(setting for setting in grid if setting != AS_IT_IS)
    seconds = []
    for _ in range(DRAWS):
        tried = source.sample(others, TRIED)
        drawn = {setting: source.sample(grid[setting], 2) for setting in [AS_IT_IS, *tried]}
        best = min(tried, key=lambda setting: drawn[setting][0])
        kept = best if drawn[best][0] < 0.98 * drawn[AS_IT_IS][0] else AS_IT_IS
        seconds.append(drawn[kept][1])
    return statistics.mean(seconds)


if __name__ == "__main__":
    main()
