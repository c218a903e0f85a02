#!/usr/bin/env python3
"""Checks the program `collapse` against exact solutions, conservation laws, and itself on other numbers of processes.

One line a check; ends with the number passed and failed; the exit code is 0 if none failed. Standard library only.

    python3 check.py --program build-openmpi/collapse
    python3 check.py --mpiexec "mpiexec --oversubscribe" --ranks 1,2,4
"""

import argparse
import array
import filecmp
import math
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARRAYS = ("density", "momentum_x", "momentum_y", "momentum_z", "energy", "potential")
HEADER = struct.Struct("=6f")


class Checker:
    """Runs the program and keeps the score."""

    def __init__(self, program, mpiexec, ranks, folder):
        self.program, self.mpiexec, self.ranks, self.folder = program, mpiexec, ranks, folder
        self.passed = self.failed = 0

    def report(self, good, text):
        print(f"{'ok  ' if good else 'FAIL'}  {text}", flush=True)
        if good:
            self.passed += 1
        else:
            self.failed += 1

    def attempt(self, ranks, *arguments):
        """Runs the program to its end, well or not."""
        command = [*self.mpiexec, "-n", str(ranks), self.program, *map(str, arguments)]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)

    def run(self, name, *arguments, ranks=1):
        """Runs the program, which must succeed; its files' folder and what it said."""
        folder = self.folder / name
        done = self.attempt(ranks, "--output", folder, *arguments)
        if done.returncode != 0:
            sys.exit(f"check.py: {shlex.join(map(str, done.args))} failed:\n{done.stdout}{done.stderr}")
        return folder, done.stdout


class Dump:
    """An analysis or restart file."""

    def __init__(self, path, mesh):
        data = Path(path).read_bytes()
        zones = math.prod(mesh)
        expected = HEADER.size + 4 * zones * len(ARRAYS)
        if len(data) != expected:
            sys.exit(f"check.py: {path} has {len(data)} bytes, not {expected}")
        self.mesh = mesh
        self.time, self.dt, self.iteration, self.gamma, self.gravity, self.width = HEADER.unpack_from(data)
        values = array.array("f")
        values.frombytes(data[HEADER.size:])
        self.field = {name: values[n * zones:(n + 1) * zones] for n, name in enumerate(ARRAYS)}

    def line(self, name, axis):
        """The values along `axis` on the mesh's edge, and whether all other lines along it are equal."""
        strides = (1, self.mesh[0], self.mesh[0] * self.mesh[1])
        count, stride = self.mesh[axis], strides[axis]
        field = self.field[name]
        first = field[0:count * stride:stride]
        others = [a for a in range(3) if a != axis]
        same = all(
            field[start:start + (count - 1) * stride + 1:stride] == first
            for j in range(self.mesh[others[0]])
            for k in range(self.mesh[others[1]])
            for start in [j * strides[others[0]] + k * strides[others[1]]])
        return first, same


def plane_mesh(zones, axis):
    return tuple(zones if a == axis else 4 for a in range(3))


def text(mesh):
    return "x".join(map(str, mesh))


def order(sizes, errors):
    """Slope of the least-squares line through log(error) over log(1 / size)."""
    x = [-math.log(size) for size in sizes]
    y = [math.log(error) for error in errors]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


# ---- Sod's shock tube ----


class ExactRiemann:
    """The exact solution between two states (density, velocity, pressure), for any ideal gas (Toro 2009, chapter 4)."""

    def __init__(self, left, right, gamma):
        self.left, self.right, self.gamma = left, right, gamma
        low, high = 0.0, 10.0 * max(left[2], right[2])
        for _ in range(200):
            p = 0.5 * (low + high)
            if self._change(p, left) + self._change(p, right) + right[1] - left[1] > 0.0:
                high = p
            else:
                low = p
        self.p = 0.5 * (low + high)
        self.u = 0.5 * (left[1] + right[1] + self._change(self.p, right) - self._change(self.p, left))

    def _change(self, p, state):
        """Change of velocity across the wave that takes `state` to the pressure p."""
        rho, _, p0 = state
        g = self.gamma
        if p > p0:
            return (p - p0) * math.sqrt(2.0 / ((g + 1.0) * rho) / (p + (g - 1.0) / (g + 1.0) * p0))
        return 2.0 * math.sqrt(g * p0 / rho) / (g - 1.0) * ((p / p0) ** ((g - 1.0) / (2.0 * g)) - 1.0)

    def density(self, speed):
        """Density at x / t = speed."""
        if speed > self.u:  # the mirror image
            rho, u, p = self.right
            return self._density((rho, -u, p), -self.u, -speed)
        return self._density(self.left, self.u, speed)

    def _density(self, state, u_star, speed):
        rho, u, p = state
        g = self.gamma
        c = math.sqrt(g * p / rho)
        ratio = self.p / p
        if ratio > 1.0:
            shock = u - c * math.sqrt((g + 1.0) / (2.0 * g) * ratio + (g - 1.0) / (2.0 * g))
            k = (g - 1.0) / (g + 1.0)
            return rho if speed < shock else rho * (ratio + k) / (k * ratio + 1.0)
        if speed < u - c:
            return rho
        c_star = c * ratio ** ((g - 1.0) / (2.0 * g))
        if speed > u_star - c_star:
            return rho * ratio ** (1.0 / g)
        return rho * (2.0 / (g + 1.0) + (g - 1.0) / ((g + 1.0) * c) * (u - speed)) ** (2.0 / (g - 1.0))


def check_sod(checker):
    end, sizes, tolerance = 0.1, (64, 128, 256, 512), 0.0025
    exact = ExactRiemann((1.0, 0.0, 1.0), (0.125, 0.0, 0.1), 1.4)
    profiles = {}
    for axis in range(3):
        errors = []
        for zones in sizes:
            mesh = plane_mesh(zones, axis)
            folder, _ = checker.run(f"sod_{axis}_{zones}", "--problem", "sod", "--mesh", text(mesh), "--end-time", end,
                                    "--iterations", 10000, "--dump-every", 0)
            dump = Dump(folder / "restart.dat", mesh)
            line, same = dump.line("density", axis)
            profiles[axis, zones] = (line, same)
            error = 0.0
            for i, value in enumerate(line):
                # The average of the exact solution over the zone, by sixteen points.
                points = [(i + (n + 0.5) / 16) / zones for n in range(16)]
                average = sum(exact.density((abs(x - 0.5) - 0.25) / end) for x in points) / 16
                error += abs(value - average) / zones
            errors.append(error)
        slope = order(sizes, errors)
        checker.report(slope >= 0.8 and errors[-1] < tolerance,
                       f"sod along {'xyz'[axis]}: L1 density error {', '.join(f'{e:.5f}' for e in errors)} for "
                       f"{', '.join(map(str, sizes))} zones (last < {tolerance}), order {slope:.2f} (>= 0.8)")
    good = all(same and line == profiles[0, zones][0] for (_, zones), (line, same) in profiles.items())
    checker.report(good, "sod: bit for bit the same along x, y and z, and across the axis")
    line = profiles[0, 512][0]
    asymmetry = max(abs(a - b) for a, b in zip(line, reversed(line)))
    checker.report(asymmetry < 1e-6, f"sod: mirror images agree to {asymmetry:.1e} (< 1e-6)")


def check_entropy(checker):
    sizes, errors = (16, 32, 64, 128), []
    for zones in sizes:
        mesh = (zones, 4, 4)
        folder, _ = checker.run(f"entropy_{zones}", "--problem", "entropy", "--mesh", text(mesh), "--end-time", 1,
                                "--iterations", 10000, "--dump-every", 0, "--dump-initial")
        before, _ = Dump(folder / "analysis_0000.dat", mesh).line("density", 0)
        after, _ = Dump(folder / "restart.dat", mesh).line("density", 0)
        errors.append(sum(abs(a - b) for a, b in zip(after, before)) / zones)
    slope = order(sizes, errors)
    checker.report(slope >= 2.0, f"smooth wave carried once around: L1 error {', '.join(f'{e:.2e}' for e in errors)} for "
                   f"{', '.join(map(str, sizes))} zones, order {slope:.2f} (>= 2)")


# ---- Jeans ----


def wave_amplitude(dump, name, axis):
    """Amplitude of cos(k x) along the axis."""
    line, _ = dump.line(name, axis)
    count = len(line)
    return 2.0 / count * math.fsum(v * math.cos(2.0 * math.pi * (i + 0.5) / count) for i, v in enumerate(line))


def check_jeans(checker):
    zones, k, four_pi = 64, 2.0 * math.pi, 4.0 * math.pi
    sound, end = 0.3, 0.5
    expected = math.sqrt(four_pi - (k * sound) ** 2)
    for axis in range(3):
        mesh = plane_mesh(zones, axis)
        folder, _ = checker.run(f"jeans_{axis}", "--problem", "jeans", "--sound-speed", sound, "--mesh", text(mesh),
                                "--end-time", end, "--iterations", 10000, "--dump-every", 0, "--dump-initial")
        first, last = Dump(folder / "analysis_0000.dat", mesh), Dump(folder / "restart.dat", mesh)
        growth = math.log(wave_amplitude(last, "density", axis) / wave_amplitude(first, "density", axis)) / last.time
        error = growth / expected - 1.0
        checker.report(abs(error) < 0.02, f"Jeans along {'xyz'[axis]}, unstable: growth rate {growth:.4f}, "
                       f"sqrt(4 pi G rho - k^2 c^2) = {expected:.4f}, off by {100 * error:+.2f} % (< 2 %)")
        if axis == 0:
            # The seven-point Laplacian's own k^2.
            eigenvalue = (2.0 * zones * math.sin(math.pi / zones)) ** 2
            phi, rho = wave_amplitude(first, "potential", axis), wave_amplitude(first, "density", axis)
            error = phi / (-four_pi * rho / eigenvalue) - 1.0
            checker.report(abs(error) < 1e-5, f"Poisson: a plane wave's potential {phi:.6e} is off by {error:+.1e} (< 1e-5)")

    mesh, sound = (zones, 4, 4), 1.0
    expected = math.sqrt((k * sound) ** 2 - four_pi)
    folder, _ = checker.run("jeans_stable", "--problem", "jeans", "--sound-speed", sound, "--mesh", text(mesh),
                            "--end-time", 2.6, "--iterations", 10000, "--dump-every", 4)
    dumps = sorted((Dump(path, mesh) for path in folder.glob("analysis_*.dat")), key=lambda dump: dump.time)
    points = [(dump.time, wave_amplitude(dump, "density", 0)) for dump in dumps]
    crossings = [t0 + (t1 - t0) * a0 / (a0 - a1) for (t0, a0), (t1, a1) in zip(points, points[1:]) if a0 * a1 < 0]
    frequency = math.pi * (len(crossings) - 1) / (crossings[-1] - crossings[0])
    error = frequency / expected - 1.0
    checker.report(abs(error) < 0.02 and len(crossings) >= 4,
                   f"Jeans, stable: frequency {frequency:.4f}, sqrt(k^2 c^2 - 4 pi G rho) = {expected:.4f}, off by "
                   f"{100 * error:+.2f} % (< 2 %), {len(crossings)} zero crossings")


def check_poisson(checker):
    """The potential in a file against the density in it, by the seven-point Laplacian, in three dimensions."""
    for mesh in ((32, 32, 16), (33, 20, 17)):
        folder, _ = checker.run("poisson", "--mesh", text(mesh), "--iterations", 4, "--dump-every", 4, ranks=checker.ranks[-1])
        dump = Dump(folder / "restart.dat", mesh)
        rho, phi = dump.field["density"], dump.field["potential"]
        nx, ny, nz = mesh
        mean = math.fsum(rho) / len(rho)
        residual = greatest = 0.0
        for k in range(nz):
            for j in range(ny):
                row, north, south = nx * (j + ny * k), nx * ((j + 1) % ny + ny * k), nx * ((j - 1) % ny + ny * k)
                up, down = nx * (j + ny * ((k + 1) % nz)), nx * (j + ny * ((k - 1) % nz))
                for i in range(nx):
                    around = (phi[row + (i + 1) % nx] + phi[row + (i - 1) % nx] + phi[north + i] + phi[south + i]
                              + phi[up + i] + phi[down + i])
                    laplacian = (around - 6.0 * phi[row + i]) / dump.width ** 2
                    source = 4.0 * math.pi * dump.gravity * (rho[row + i] - mean)
                    residual = max(residual, abs(laplacian - source))
                    greatest = max(greatest, abs(source))
        # Single precision leaves 6e-8 of the potential, some 12 / width^2 times that in its Laplacian.
        allowed = 6e-8 * max(map(abs, phi)) * 12 / dump.width ** 2 / greatest
        checker.report(residual / greatest < allowed, f"Poisson, {text(mesh)} on {checker.ranks[-1]} processes: residual "
                       f"{residual / greatest:.1e} of the source (< {allowed:.1e}, the rounding of the file)")


# ---- conservation ----


def summary(output):
    found = re.search(r"^end: .*mass ([-+0-9.e]+), energy ([-+0-9.e]+),", output, re.M)
    return float(found[1]), float(found[2])


def check_conservation(checker):
    for mesh in ((32, 32, 16), (33, 20, 17)):
        _, output = checker.run("mass_0", "--mesh", text(mesh), "--iterations", 0)
        mass, _ = summary(output)
        _, output = checker.run("mass_20", "--mesh", text(mesh), "--iterations", 20, "--dump-every", 0)
        new_mass, _ = summary(output)
        error = new_mass / mass - 1.0
        checker.report(abs(error) < 1e-13, f"mass, {text(mesh)}, 20 iterations: {new_mass:.15g}, changed by {error:+.1e} "
                       "(< 1e-13)")


def check_energy(checker):
    """Gas energy and the energy of the gas in its own potential add up, as far as the mesh resolves the collapse."""
    sizes, errors = (32, 64), []
    for zones in sizes:
        mesh = ("--mesh", f"{zones}x{zones}x{zones // 2}", "--sound-speed", 0.2, "--dump-every", 0)
        _, output = checker.run("energy_0", *mesh, "--iterations", 0)
        _, energy = summary(output)
        _, output = checker.run("energy_1", *mesh, "--iterations", 10000, "--end-time", 0.4, ranks=2)
        _, new_energy = summary(output)
        errors.append(abs(new_energy / energy - 1.0))
    slope = order(sizes, errors)
    checker.report(slope > 1.5 and errors[-1] < 5e-4, f"energy of a collapsing cloud: changed by "
                   f"{', '.join(f'{e:.1e}' for e in errors)} (last < 5e-4) for {', '.join(map(str, sizes))} zones, order "
                   f"{slope:.2f} (> 1.5)")


# ---- files: the same on any number of processes ----


def same_files(first, second):
    names = sorted(os.listdir(first))
    if names != sorted(os.listdir(second)):
        return False, len(names)
    _, different, errors = filecmp.cmpfiles(first, second, names, shallow=False)
    return not different and not errors, len(names)


def check_ranks(checker):
    for mesh in ((32, 32, 16), (33, 20, 17), (5, 3, 40)):
        runs, restarts = {}, {}
        for ranks in checker.ranks:
            name = f"ranks_{text(mesh)}_{ranks}"
            (checker.folder / name).mkdir()
            # A longer file of an earlier run must not keep its end.
            (checker.folder / name / "restart.dat").write_bytes(b"stale" * 1_000_000)
            runs[ranks], _ = checker.run(name, "--mesh", text(mesh), "--iterations", 6, "--dump-every", 3, ranks=ranks)
        saved = checker.folder / f"saved_{text(mesh)}.dat"
        saved.write_bytes((runs[checker.ranks[0]] / "restart.dat").read_bytes())
        for ranks in checker.ranks:
            restarts[ranks], _ = checker.run(f"restarted_{text(mesh)}_{ranks}", "--mesh", text(mesh), "--restart", saved,
                                             "--iterations", 3, "--dump-every", 3, ranks=ranks)
        counted = ", ".join(map(str, checker.ranks))
        for what, folders in (("", runs), (" after a restart", restarts)):
            results = [same_files(folders[checker.ranks[0]], folders[ranks]) for ranks in checker.ranks]
            checker.report(all(same for same, _ in results),
                           f"{text(mesh)}{what}: all {results[0][1]} files the same on {counted} processes")

        checker.run(f"whole_{text(mesh)}", "--mesh", text(mesh), "--iterations", 9, "--dump-every", 9)
        whole = Dump(checker.folder / f"whole_{text(mesh)}" / "restart.dat", mesh).field["density"]
        again = Dump(restarts[checker.ranks[0]] / "restart.dat", mesh).field["density"]
        error = max(abs(a / b - 1.0) for a, b in zip(again, whole))
        checker.report(error < 1e-4, f"{text(mesh)}: restarted, density is within {error:.1e} (< 1e-4) of an uninterrupted run")


def check_header(checker):
    mesh = (16, 8, 12)
    folder, _ = checker.run("header", "--mesh", text(mesh), "--iterations", 3, "--dump-every", 3)
    dump = Dump(folder / "analysis_0003.dat", mesh)
    single = lambda x: struct.unpack("=f", struct.pack("=f", x))[0]
    good = (dump.iteration, dump.gamma, dump.gravity, dump.width) == (3, single(5 / 3), 1, 1 / 16)
    good = good and 0 < dump.dt < dump.time
    good = good and (folder / "restart.dat").read_bytes() == (folder / "analysis_0003.dat").read_bytes()
    pictures = [folder / f"vis_{name}_0003.dat" for name in ("density", "pressure", "speed", "potential")]
    for picture in pictures:
        data = picture.read_bytes()
        good = good and len(data) == HEADER.size + math.prod(mesh) and data[:HEADER.size] == HEADER.pack(
            dump.time, dump.dt, dump.iteration, dump.gamma, dump.gravity, dump.width)
        good = good and min(data[HEADER.size:]) == 0 and max(data[HEADER.size:]) == 255
    checker.report(good, "files: sizes, headers, range of the pictures, restart like analysis")


def check_errors(checker):
    wrong = (["--mesh", "8x8"], ["--problem", "none"], ["--gamma", "1"], ["--iterations", "-1"], ["extra"],
             ["--restart", "x", "--problem", "sod"], ["--unknown"])
    good = all(checker.attempt(1, *arguments).returncode != 0 for arguments in wrong)
    checker.report(good, f"{len(wrong)} wrong command lines are refused")
    short = checker.folder / "short.dat"
    short.write_bytes(b"\0" * 100)
    for what, arguments in (("a cut restart file", ["--restart", short]),
                            ("a missing restart file", ["--restart", checker.folder / "missing.dat"]),
                            ("an output folder that is a file", ["--output", short])):
        done = checker.attempt(2, "--mesh", "8x8x8", "--iterations", 5, *arguments)
        lines = [line for line in done.stderr.splitlines() if line.startswith("collapse: rank")]
        good = done.returncode != 0 and len(lines) == 1 and str(arguments[1]) in lines[0]
        checker.report(good, f"{what} ends the run with one line that names it")
        if not good:
            print(f"      exit code {done.returncode}, standard error:\n{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=Path(__file__).parent / "build/collapse", help="default: %(default)s")
    parser.add_argument("--mpiexec", default="mpiexec", help="how to start MPI programs, with options (default: %(default)s)")
    parser.add_argument("--ranks", default="1,2,4,8", help="numbers of processes to compare (default: %(default)s)")
    options = parser.parse_args()
    ranks = [int(n) for n in options.ranks.split(",")]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="collapse-check-") as folder:
        checker = Checker(os.path.abspath(options.program), shlex.split(options.mpiexec), ranks, Path(folder))
        for check in (check_sod, check_entropy, check_jeans, check_poisson, check_conservation, check_energy, check_header,
                      check_errors, check_ranks):
            check(checker)
    print(f"{checker.passed} passed, {checker.failed} failed, {time.monotonic() - begin:.0f} s")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
