"""How often `pioscope compare` catches a regression, and how often it takes noise for one.

A small program writes and reads back a file. Each round keeps a baseline of it, compares the same program with that, and
then one that does 25 % more I/O (more pieces, not slower ones: no sleep). Prints both rates, those of each condition, and
fails if fewer regressions are caught, or more false alarms raised, than is promised. A round takes about 33 runs.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tree import environment, pioscope

PIECES = 4000
MORE = 1.25
CAUGHT, FALSE_ALARMS = 0.95, 0.02
HOLDS = 3
ANY = "any condition"

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
  static char piece[16384];
  int pieces = count > 1 ? atoi(words[1]) : 0;
  int file = open("data", O_CREAT | O_TRUNC | O_RDWR, 0600);
  for (int index = 0; index < pieces; index++) {
    memset(piece, index, sizeof piece);
    if (pwrite(file, piece, sizeof piece, (off_t)(index % 512) * sizeof piece) != sizeof piece) return 1;
    if (pread(file, piece, sizeof piece, (off_t)(index % 512) * sizeof piece) != sizeof piece) return 1;
  }
  return close(file);
}
"""


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--runs", type=int, help="runs of each comparison [default: that of the command]")
    arguments.add_argument("--pieces", type=int, default=PIECES)
    arguments.add_argument("--more", type=float, default=MORE, help="how many times the pieces the regression has")
    arguments.add_argument("--profile", default="release")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "program.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O2", "-o", "program", "program.c"], cwd=folder, check=True)
        check(folder, chosen)


def check(folder, chosen):
    more = round(chosen.pieces * chosen.more)
    caught, false_alarms, spreads = Counter(), Counter(), []
    for number in range(1, chosen.rounds + 1):
        compare(folder, chosen, chosen.pieces, "--save")
        times = [run["io_time_s"] for run in json.loads((folder / "baseline.json").read_text())["runs"]]
        spreads.append(statistics.stdev(times) / statistics.mean(times))
        false_alarms.update(compare(folder, chosen, chosen.pieces))
        caught.update(compare(folder, chosen, more))
        print(f"round {number}: {caught[ANY]} regressions caught, {false_alarms[ANY]} false alarms, "
              f"runs of the baseline differ by {spreads[-1]:.0%}", file=sys.stderr)
    rounds = chosen.rounds
    print(f"{chosen.more - 1:.0%} more I/O, {rounds} rounds; standard deviation of single runs: "
          f"{statistics.median(spreads):.0%} in the median round, {max(spreads):.0%} at most")
    for condition in [ANY, *sorted((caught + false_alarms).keys() - {ANY})]:
        print(f"  {condition}: caught {caught[condition] / rounds:.0%}, false alarms {false_alarms[condition] / rounds:.0%}")
    sys.exit(0 if caught[ANY] / rounds >= CAUGHT and false_alarms[ANY] / rounds <= FALSE_ALARMS else 1)


def compare(folder, chosen, pieces, *options):
    """The conditions that hold."""
    runs = ["-n", str(chosen.runs)] if chosen.runs else []
    command = [pioscope(chosen.profile), "compare", *runs, "--baseline", "baseline.json", *options, "--", "./program", str(pieces)]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    if done.returncode not in (0, HOLDS):
        sys.exit(f"pioscope compare failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    held = re.findall(r"^  (\S+ > \d+ %) .* yes$", done.stdout, re.MULTILINE)
    return [ANY, *held] if done.returncode == HOLDS else []


if __name__ == "__main__":
    main()
