"""What predictions of large jobs cost: processor time and memory of `pioscope predict` against the number of ranks, 128 on each node
of the machine dragonfly-2048, from making the workload to the simulated trace.

    python3 tools/large_jobs.py            prints it, for up to 100,000 ranks: some minutes
    python3 tools/large_jobs.py --write    also writes docs/measured/large-jobs.md and its figure
"""

import argparse
import math
import os
import subprocess
import tempfile
from pathlib import Path

import measured
from tree import environment, pioscope

MACHINE = "dragonfly-2048"
SERVERS = 448
RANKS_PER_NODE = 128
BT_IO = "bt-io,mesh=162,dumps=41,verify=no"
SQUARES = [4, 16, 64, 256, 1024, 4096, 16_384]
POWERS = [2, 16, 128, 1024, 4096, 16_384, 100_000]
# What is shown, the workload with its parameters, strategy, servers, and numbers of ranks.
CASES = [
    ("bt-io, two-phase", BT_IO, "two-phase", SERVERS, SQUARES),
    ("bt-io, ecio", BT_IO, "ecio", 64, SQUARES),
    ("flash-io, independent", "flash-io", "independent", SERVERS, POWERS),
    ("ior-hard, independent", "ior-hard,segments=64", "independent", SERVERS, POWERS),
]
COLOURS = ["#0b6e99", "#b3541e", "#4c7a34", "#7a4b94"]
FIGURE = measured.FOLDER / "large-jobs.svg"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also write the page of docs/measured, and the figure")
    parser.add_argument("--most", type=int, default=100_000, metavar="RANKS", help="leave out larger jobs")
    arguments = parser.parse_args()
    with measured.page("large-jobs", wanted=arguments.write):
        lines = measure(arguments.most)
    if arguments.write:
        FIGURE.write_text(figure(lines))
        page = measured.FOLDER / "large-jobs.md"
        page.write_text(page.read_text() + f"\n![Processor time against ranks]({FIGURE.name})\n")


def measure(most):
    """Prints a table; of each case the points (ranks, seconds)."""
    print(f"pioscope predict on {MACHINE}, {RANKS_PER_NODE} ranks a node: processor time of one core, and memory\n")
    print(f"{'workload, strategy':<22} {'servers':>7} {'ranks':>7} {'time':>9} {'a rank':>9} {'memory':>9} {'I/O time predicted':>19}")
    lines = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, workload, strategy, servers, ranks in CASES:
            machine = Path(folder) / f"{servers}.toml"
            text = subprocess.run([pioscope(), "machines", "show", MACHINE], check=True, capture_output=True, text=True).stdout
            machine.write_text(text.replace(f"count = {SERVERS}", f"count = {servers}"))
            for count in (count for count in ranks if count <= most):
                seconds, mebibytes, predicted = predict(folder, f"{workload},ranks={count}", strategy, machine)
                lines.setdefault(name, []).append((count, seconds))
                print(f"{name:<22} {servers:>7} {count:>7} {seconds:>7.2f} s {seconds / count * 1e6:>6.0f} us {mebibytes:>5.0f} MiB"
                      f" {predicted:>19}", flush=True)
    return lines


def predict(folder, workload, strategy, machine):
    """Processor seconds, MiB, and the time that is predicted."""
    command = [pioscope(), "predict", "--quiet", "-w", workload, "-m", machine, "-s", strategy, "--ranks-per-node",
               str(RANKS_PER_NODE), "-o", folder]
    # Its generated trace and the simulated ones are written there.
    child = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {child.returncode}")
    row = next(line for line in printed.splitlines() if f" {strategy} " in line)
    value, unit = row.split(strategy, 1)[1].split()[:2]
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, f"{value} {unit}"


def figure(lines):
    """Processor time against ranks, both logarithmic."""
    width, height, left, bottom, top, right = 640, 400, 64, 48, 16, 168
    points = [point for line in lines.values() for point in line]
    low_x, high_x = 0, math.ceil(math.log10(max(ranks for ranks, _ in points)))
    low_y = math.floor(math.log10(min(seconds for _, seconds in points)))
    high_y = math.ceil(math.log10(max(seconds for _, seconds in points)))
    at_x = lambda ranks: left + (math.log10(ranks) - low_x) / (high_x - low_x) * (width - left - right)
    at_y = lambda seconds: height - bottom - (math.log10(seconds) - low_y) / (high_y - low_y) * (height - top - bottom)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(low_x, high_x + 1):
        x = at_x(10**power)
        out.append(f'<path d="M{x:.1f} {top}V{height - bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{10**power:,}</text>')
    for power in range(low_y, high_y + 1):
        y = at_y(10.0**power)
        out.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    # At equal cost a rank, a line would run along this one.
    most = 10**high_x
    first = 10.0**high_y / most
    start = max(1, 10.0**low_y / first)
    out.append(f'<path d="M{at_x(start):.1f} {at_y(first * start):.1f}L{at_x(most):.1f} {at_y(first * most):.1f}" stroke="#aaa"'
               ' stroke-dasharray="4 4" fill="none"/>')
    names = sorted(lines, key=lambda name: -lines[name][-1][1])
    label = top
    for name in names:
        colour = COLOURS[list(lines).index(name) % len(COLOURS)]
        path = " ".join(f"{at_x(ranks):.1f},{at_y(seconds):.1f}" for ranks, seconds in lines[name])
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{at_x(ranks):.1f}" cy="{at_y(seconds):.1f}" r="3" fill="{colour}"/>' for ranks, seconds in lines[name]]
        label = max(label + 16, at_y(lines[name][-1][1]) + 4)
        out.append(f'<text x="{width - right + 8}" y="{label:.1f}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{(left + width - right) / 2:.0f}" y="{height - 8}" text-anchor="middle">ranks</text>')
    out.append(f'<text x="{width - right + 8}" y="{height - bottom}" fill="#777">dashed: as the ranks</text></svg>')
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
