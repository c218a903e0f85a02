"""Predicts IOR easy of IO500 on the machines of machines/today, beside what was measured there.

    python3 tools/today.py            # all of them, printed
    python3 tools/today.py aurora     # one machine
    python3 tools/today.py --write    # also into machines/today/README.md, with a picture

IO500's phases take 300 seconds; so much is not simulated. Files are opened and closed in no time, which 300 seconds hide, and a
prediction is what twice the data take longer than once the data, so that getting under way does not count. Nothing here is
fitted: machines are as their files describe them, and the errors are printed as they come, the largest first.
"""

import argparse
import csv
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tree import ROOT, environment, pioscope

FOLDER = ROOT / "machines/today"
MEASURED = ROOT / "papers/scoreboards/io500.csv"
GIB = 1 << 30
BEGIN, END = "<!-- written by tools/today.py: from here -->", "<!-- to here -->"


@dataclass
class Run:
    """A submission: who, with so many clients, ranks on each, and bytes in a request; and how much a rank moves here, once."""

    machine: str
    family: str
    file_system: str
    clients: int
    ranks_per_node: int
    transfer_mib: float
    block_mib: int
    # Other runs of the family with so many clients are of other servers, and left out.
    matches: dict


ARGONNE = "Argonne National Laboratory / Aurora"
LRZ = "LRZ SuperMUC-NG Phase2"
HPE = "Hewlett Packard Enterprise / HPE-"
CAMBRIDGE = "Cambridge Data Accelerator"
JCAHPC = "JCAHPC Oakforest-PACS"
KAUST = "KAUST Shaheen II"
RUNS = [
    Run("hpe-dl320-ss400", HPE + "DL320-SS400", "DAOS", 10, 128, 4, 64, {}),
    Run("hpe-dl360-ndr", HPE + "DL360-NDR", "DAOS", 10, 32, 4, 128, {}),
    Run("riken-fx700", "Riken R-CCS / Riken-FX700", "DAOS", 10, 48, 1, 64, {}),
    Run("supermuc-ng-2", LRZ, "DAOS", 10, 112, 2, 64, {"storage_servers": "42"}),
    Run("supermuc-ng-2", LRZ, "DAOS", 90, 72, 1, 32, {"storage_servers": "42"}),
    Run("supermuc-ng-2", LRZ, "DAOS", 192, 112, 1, 16, {"storage_servers": "42"}),
    Run("aurora", ARGONNE, "DAOS", 10, 208, 4, 64, {}),
    Run("aurora", ARGONNE, "DAOS", 300, 104, 1, 16, {}),
    Run("borealis", "Intel / Borealis", "DAOS", 10, 104, 1, 64, {}),
    Run("cambridge-dac", CAMBRIDGE, "Lustre", 10, 32, 16, 256, {}),
    Run("cambridge-dac", CAMBRIDGE, "Lustre", 128, 16, 16, 128, {}),
    Run("cambridge-dac", CAMBRIDGE, "Lustre", 512, 16, 16, 128, {}),
    Run("leonardo", "EuroHPC-CINECA / Leonardo", "Lustre", 2000, 8, 16, 128, {}),
    Run("lise", "Zuse Institute Berlin / Lise", "DAOS", 10, 96, 1, 64, {}),
    Run("oakforest-pacs", JCAHPC, "IME", 512, 8, 2, 64, {"storage_servers": "25"}),
    Run("oakforest-pacs", JCAHPC, "IME", 2048, 2, 2, 64, {"io500_list": "sc20"}),
    Run("shaheen-2", KAUST, "DataWarp", 300, 8, 8, 128, {}),
    Run("shaheen-2", KAUST, "DataWarp", 1024, 8, 8, 128, {}),
]
PHASES = ("write", "read")


@dataclass
class Row:
    run: Run
    phase: str
    measured: float
    published: str
    predicted: float
    limit: str

    def error(self):
        return self.predicted / self.measured - 1

    def factor(self):
        return max(self.predicted / self.measured, self.measured / self.predicted)

    def cells(self):
        run = self.run
        error = self.error()
        return [f"`{run.machine}`", f"{run.clients} x {run.ranks_per_node}", f"{run.transfer_mib:g} MiB", self.phase,
                f"{number(self.measured)} ({self.published})", number(self.predicted),
                f"{error * 100:+.0f} %" if error < 1 else f"x {error + 1:.1f}", self.limit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="*", help="only these")
    parser.add_argument("--write", action="store_true", help="write machines/today/README.md and its picture")
    parser.add_argument("--profile", default="release", help="the build that predicts")
    arguments = parser.parse_args()
    if arguments.write and arguments.machines:
        parser.error("--write is of all machines")
    unknown = set(arguments.machines) - {run.machine for run in RUNS}
    if unknown:
        parser.error(f"no submission of {', '.join(sorted(unknown))}: expected {', '.join(sorted({run.machine for run in RUNS}))}")
    runs = [run for run in RUNS if not arguments.machines or run.machine in arguments.machines]
    measured = list(csv.DictReader(MEASURED.open()))
    rows = []
    for run in runs:
        for phase in PHASES:
            rows.append(row(run, phase, measured, arguments.profile))
            print("  ".join(rows[-1].cells()), flush=True)
    rows.sort(key=lambda row: -row.factor())
    text = table(rows)
    print("\n" + text)
    if arguments.write:
        (FOLDER / "predicted.svg").write_text(picture(rows))
        readme = FOLDER / "README.md"
        before, rest = readme.read_text().split(BEGIN)
        readme.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}")


def row(run, phase, measured, profile):
    found = [line for line in measured if is_of(run, line) and line[f"ior_easy_{phase}_GiB_s"]]
    if not found:
        sys.exit(f"{MEASURED}: no {phase} of {run.family} with {run.clients} clients (expected one)")
    published = sorted({f"{line['io500_list']}, verified" if line["io500_list"] else
                        f"issue {line['io500_version'].removeprefix('io500-') or 'unknown'}" for line in found})
    middle = statistics.median(float(line[f"ior_easy_{phase}_GiB_s"]) for line in found)
    return Row(run, phase, middle, "; ".join(published), predict(run, phase, profile), limit(run, phase))


def is_of(run, line):
    return (line["system_family"] == run.family and line["file_system"] == run.file_system
            and float(line["client_nodes"] or 0) == run.clients
            and all(line[key] == value for key, value in run.matches.items()))


def predict(run, phase, profile):
    """GiB/s of IOR easy, once it is under way."""
    ranks = run.clients * run.ranks_per_node
    moved = [ranks * block / 1024 for block in (run.block_mib, 2 * run.block_mib)]
    once, twice = (gib / bandwidth(run, phase, block, profile) for gib, block in
                   zip(moved, (run.block_mib, 2 * run.block_mib), strict=True))
    return (moved[1] - moved[0]) / (twice - once)


def bandwidth(run, phase, block_mib, profile):
    """GiB/s of IOR easy with so many MiB a rank."""
    workload = (f"ior-easy,ranks={run.clients * run.ranks_per_node},transfer={run.transfer_mib:g} MiB,"
                f"block={block_mib} MiB,shift={run.ranks_per_node},phases={phase}")
    description = (FOLDER / f"{run.machine}.toml").read_text()
    with tempfile.TemporaryDirectory() as folder:
        machine = Path(folder) / f"{run.machine}.toml"
        machine.write_text(re.sub(r'^(open|close) = ".*"', r'\1 = "0 s"', description, flags=re.MULTILINE))
        command = [pioscope(profile), "predict", "--workload", workload, "--machine", machine,
                   "--strategy", "independent", "--ranks-per-node", str(run.ranks_per_node), "--json", "--quiet",
                   "--output", folder]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode != 0:
        sys.exit(f"{run.machine}: {done.stderr.strip()}")
    return json.loads(done.stdout)["predictions"][0]["bandwidth_bytes_per_s"] / GIB


def limit(run, phase):
    """The part of the machine that could carry least, by its description alone."""
    machine = tomllib.loads((FOLDER / f"{run.machine}.toml").read_text())
    network, storage = machine["network"], machine["storage"]
    rails = network.get("rails", {"nodes": 1, "servers": 1})
    link, servers = rate(network["link"]["bandwidth"]), storage["io"]["count"]
    parts = {
        "clients' links": run.clients * rails["nodes"] * link,
        "servers' links": servers * rails["servers"] * link,
        "drives": servers * rate(storage[phase]["bandwidth"]),
    }
    least = min(parts, key=parts.get)
    return f"{least}: {number(parts[least] / GIB)}"


def rate(text):
    """Bytes a second of `12.5 GB/s`."""
    value, unit = re.fullmatch(r"([\d.]+) ([KMG]i?B)/s", text).groups()
    return float(value) * {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 10**6, "GB": 10**9}[unit]


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def table(rows):
    head = ["machine", "clients x ranks", "transfer", "phase", "measured, GiB/s", "predicted, GiB/s", "error",
            "what could carry least, GiB/s"]
    lines = [head, ["---"] * len(head), *(row.cells() for row in rows)]
    factors = sorted(row.factor() for row in rows)
    middle = statistics.median(factors)
    within = sum(factor <= 1.25 for factor in factors)
    summary = (f"{len(rows)} predictions: the median is off by a factor of {middle:.2f}, the worst by {factors[-1]:.1f}; "
               f"{within} are within 25 %.")
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{summary}\n"


WIDTH, HEIGHT, MARGIN = 640, 640, 60
STYLE = ("svg{color-scheme:light dark;--page:#fff;--ink:#1d2125;--soft:#5d666f;--line:#a9b2ba;--write:#d55e00;--read:#0072b2}"
         "@media(prefers-color-scheme:dark){svg{--page:#15181b;--ink:#e6e8ea;--soft:#9aa4ad;--line:#5b656e;--write:#ec7a28;"
         "--read:#3f9bdc}}text{font:12px system-ui,sans-serif;fill:var(--soft)}.page{fill:var(--page)}"
         ".line{stroke:var(--line)}.write{fill:var(--write)}.read{fill:var(--read)}")


def picture(rows):
    """Predicted over measured, both in GiB/s and in decades."""
    values = [value for row in rows for value in (row.measured, row.predicted)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def at(value):
        return MARGIN + (math.log10(value) - low) / (high - low) * (WIDTH - 2 * MARGIN)

    marks = []
    for decade in range(low, high + 1):
        place = at(10**decade)
        marks.append(f'<line class="line" x1="{place:.1f}" x2="{place:.1f}" y1="{MARGIN}" y2="{HEIGHT - MARGIN}" opacity=".4"/>'
                     f'<line class="line" y1="{HEIGHT - place:.1f}" y2="{HEIGHT - place:.1f}" x1="{MARGIN}" x2="{WIDTH - MARGIN}" opacity=".4"/>'
                     f'<text x="{place:.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{10**decade:,}</text>'
                     f'<text x="{MARGIN - 8}" y="{HEIGHT - place + 4:.1f}" text-anchor="end">{10**decade:,}</text>')
    marks.append(f'<line class="line" x1="{MARGIN}" y1="{HEIGHT - MARGIN}" x2="{WIDTH - MARGIN}" y2="{MARGIN}"/>')
    for row in rows:
        title = f"{row.run.machine}, {row.run.clients} clients, {row.phase}: {number(row.measured)} measured, {number(row.predicted)} predicted"
        marks.append(f'<circle class="{row.phase}" r="5" cx="{at(row.measured):.1f}" cy="{HEIGHT - at(row.predicted):.1f}">'
                     f"<title>{title}</title></circle>")
    marks.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">measured, GiB/s</text>'
                 f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">predicted, GiB/s</text>'
                 f'<text x="{MARGIN}" y="30">IOR easy on machines of today: <tspan class="write">write</tspan>, '
                 f'<tspan class="read">read</tspan></text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{STYLE}</style>'
            f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>{"".join(marks)}</svg>\n')


if __name__ == "__main__":
    main()
