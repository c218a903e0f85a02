"""Compares what Pioscope reads of Darshan logs with what PyDarshan reads: every counter, segment, name and layout.

Runs in an environment that has PyDarshan from PyPI. Without arguments the logs are those that PyDarshan ships, and logs
made here of random numbers: every version of every module, in both byte orders, compressed and not.

What PyDarshan is known to get wrong is left out, counter by counter: see `lost_by_conversion` and `not_swapped`. The made
logs have no layouts with spare components and no heat maps that are a bin short, of which it shows bytes from elsewhere.
"""

import json
import random
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy
from darshan.backend import cffi_backend as pydarshan

from tree import ROOT

warnings.simplefilter("ignore")

RANK_TIMES = ("POSIX_F_FASTEST_RANK_TIME", "POSIX_F_SLOWEST_RANK_TIME")
VARIANCES = ("POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES")


def lost_by_conversion(module, version):
    """Counters that PyDarshan 3.5.0 shows as 0: it moves too few bytes when it converts old records."""
    return {("POSIX", 2): RANK_TIMES + VARIANCES, ("POSIX", 3): VARIANCES}.get((module, version), ())


def not_swapped(module, version):
    """Counters that PyDarshan 3.5.0 shows with bytes in the wrong order, in logs of the other byte order."""
    if module == "POSIX" and version < 4:
        return ("POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME")
    return ("PNETCDF_FILE_OPENS",) if module == "PNETCDF_FILE" and version < 3 else ()


class Differences:
    def __init__(self):
        self.found, self.compared, self.left_out = [], 0, {}

    def check(self, where, ours, theirs):
        self.compared += 1
        if ours != theirs:
            self.found.append(f"{where}: Pioscope {str(ours)[:200]}, PyDarshan {str(theirs)[:200]}")

    def leave_out(self, name):
        self.left_out[name] = self.left_out.get(name, 0) + 1


def compare(program, path, swapped=False):
    """All differences between the two readings of one log."""
    differences = Differences()
    lines = subprocess.run([program, path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    ours = {}
    for line in map(json.loads, lines):
        ours.setdefault((line["what"], line.get("module", "")), []).append(line)
    log = pydarshan.log_open(str(path))
    compare_job(differences, ours["job", ""][0], log)
    modules = pydarshan.log_get_modules(log)
    known = {key[1] for key in ours if key[0] == "module"}
    differences.check("modules", known, set(modules))
    for name, about in modules.items():
        line = ours["module", name][0]
        differences.check(f"{name} version", line["version"], about["ver"])
        if swapped:
            differences.leave_out("partial flags, which PyDarshan does not swap")
        else:
            differences.check(f"{name} partial", line["partial"], about["partial_flag"])
        differences.check(f"{name} length", line["len"], about["len"])
    names = {line["id"]: line["name"] for line in ours.get(("name", ""), [])}
    differences.check("names", names, pydarshan.log_get_name_records(log))
    for name, about in modules.items():
        if name in ("DXT_POSIX", "DXT_MPIIO"):
            compare_accesses(differences, name, ours.get(("accesses", name), []), log)
        elif name == "LUSTRE":
            compare_layouts(differences, ours.get(("layout", name), []), log)
        elif name == "HEATMAP":
            compare_heatmaps(differences, ours.get(("heatmap", name), []), log)
        elif name in ("BG/Q", "MDHIM", "APXC", "APMPI"):
            differences.leave_out(f"{name}: PyDarshan does not read it")
        else:
            compare_records(differences, name, about["ver"], swapped, ours.get(("record", name), []), log)
    for line in ours.get(("damage", ""), []):
        differences.found.append(line["damage"])
    pydarshan.log_close(log)
    return differences


def compare_job(differences, ours, log):
    job = pydarshan.log_get_job(log)
    start = job["start_time_sec"] * 10**9 + job["start_time_nsec"]
    end = job["end_time_sec"] * 10**9 + job["end_time_nsec"]
    wanted = {
        "version": job["log_ver"], "uid": job["uid"], "start_ns": start, "end_ns": end, "processes": job["nprocs"],
        "id": job["jobid"], "run_time_s": job["run_time"], "metadata": [list(item) for item in job["metadata"].items()],
        "command": pydarshan.log_get_exe(log),
    }
    mounts = sorted(map(list, pydarshan.log_get_mounts(log)))
    if not mounts:
        # Where the job record has no line break, PyDarshan gives no command either.
        differences.leave_out("command without mounts") if wanted["command"] == "" else None
        wanted["command"] = wanted["command"] or ours["command"]
    for key, value in wanted.items():
        differences.check(f"job {key}", ours[key], value)
    differences.check("mounts", sorted(ours["mounts"]), mounts)


def every(read):
    while (record := read()) is not None:
        yield record


def compare_records(differences, module, version, swapped, ours, log):
    theirs = list(every(lambda: pydarshan.log_get_record(log, module)))
    differences.check(f"{module} records", len(ours), len(theirs))
    integers, floats = pydarshan.counter_names(module), pydarshan.fcounter_names(module)
    lost = lost_by_conversion(module, version)
    wrong = not_swapped(module, version) if swapped else ()
    for index, (line, record) in enumerate(zip(ours, theirs)):
        where = f"{module} {index}"
        differences.check(f"{where} names", line["names"], [integers, floats])
        differences.check(f"{where} id", (line["id"], line["rank"]), (record["id"], record["rank"]))
        if "file_rec_id" in record:
            differences.check(f"{where} file", line["file"] or 0, record["file_rec_id"])
        values = line["integers"] + line["floats"]
        others = record["counters"].tolist() + record["fcounters"].view(numpy.uint64).tolist()
        for name, value, other in zip(integers + floats, values, others):
            if value != other and (name in wrong or name in lost and other == 0):
                differences.leave_out(f"{name} of version {version}")
            else:
                differences.check(f"{where} {name}", value, other)


def compare_accesses(differences, module, ours, log):
    def segments(rows):
        bits = lambda value: struct.unpack("<Q", struct.pack("<d", value))[0]
        return [[row["offset"], row["length"], bits(row["start_time"]), bits(row["end_time"])] for row in rows]

    theirs = list(every(lambda: pydarshan.log_get_dxt_record(log, module)))
    differences.check(f"{module} records", len(ours), len(theirs))
    for index, (line, record) in enumerate(zip(ours, theirs)):
        where = f"{module} {index}"
        about = (record["id"], record["rank"], record["hostname"])
        differences.check(f"{where} about", (line["id"], line["rank"], line["host"]), about)
        for kind in ("write", "read"):
            wanted = segments(record[f"{kind}_segments"])
            differences.check(f"{where} {kind}s", len(line[f"{kind}s"]), len(wanted))
            for number, (segment, other) in enumerate(zip(line[f"{kind}s"], wanted)):
                differences.check(f"{where} {kind} {number}", segment, other)


def compare_layouts(differences, ours, log):
    theirs = list(every(lambda: pydarshan.log_get_record(log, "LUSTRE")))
    differences.check("LUSTRE records", len(ours), len(theirs))
    for index, (line, record) in enumerate(zip(ours, theirs)):
        differences.check(f"LUSTRE {index} id", (line["id"], line["rank"]), (record["id"], record["rank"]))
        wanted = [
            [part["counters"].tolist(), part["pool_name"], part["ost_ids"].tolist()] for part in record["components"]
        ]
        differences.check(f"LUSTRE {index} components", line["components"], wanted)


def compare_heatmaps(differences, ours, log):
    theirs = list(every(lambda: pydarshan.log_get_record(log, "HEATMAP")))
    differences.check("HEATMAP records", len(ours), len(theirs))
    for index, (line, record) in enumerate(zip(ours, theirs)):
        width = struct.unpack("<Q", struct.pack("<d", record["bin_width_seconds"]))[0]
        wanted = (record["id"], record["rank"], width, record["write_bins"].tolist(), record["read_bins"].tolist())
        line = (line["id"], line["rank"], line["bin_s"], line["written"], line["read"])
        differences.check(f"HEATMAP {index}", line, wanted)


# Words of a record behind id and rank, as (whole numbers, times), for each version of a module.
LAYOUTS = {
    "POSIX": [(68, 15), (64, 15), (64, 17), (69, 17)],
    "MPI-IO": [(51, 15), (51, 15), (51, 17)],
    "H5F": [(1, 2), (1, 4), (3, 5)],
    "H5D": [(94, 17), (95, 17)],
    "PNETCDF_FILE": [(2, 2), (2, 4), (9, 8)],
    "PNETCDF_VAR": [(121, 17)],
    "STDIO": [(13, 15), (14, 15)],
    "DFS": [(52, 15)],
    "DAOS": [(64, 15)],
}
TRAILERS = {"DFS": 32, "DAOS": 48}
OLDEST = ["POSIX", "MPI-IO", "H5F", "PNETCDF_FILE", "BG/Q", "LUSTRE", "STDIO", "DXT_POSIX", "DXT_MPIIO", "MDHIM"]
MIDDLE = OLDEST[:3] + ["H5D"] + OLDEST[3:] + ["APXC", "APMPI", "HEATMAP"]
NEWEST = MIDDLE[:5] + ["PNETCDF_VAR"] + MIDDLE[5:] + ["DFS", "DAOS"]
NUMBERS = {"3.00": OLDEST, "3.10": OLDEST, "3.20": MIDDLE, "3.21": MIDDLE, "3.41": NEWEST}


class Writer:
    """Makes a log of random numbers."""

    def __init__(self, seed, version, order, compression):
        self.random = random.Random(seed)
        self.version, self.order, self.compression = version, order, compression
        self.ids = [self.random.getrandbits(64) for _ in range(5)]

    def pack(self, codes, *values):
        return struct.pack(self.order + codes, *values)

    def integer(self):
        return self.random.choice([0, 1, -1, self.random.getrandbits(20), self.random.getrandbits(62)])

    def float(self):
        return self.random.choice([0.0, self.random.random() * 100, 1e300])

    def counters(self, module, version):
        integers, floats = LAYOUTS[module][version - 1]
        records = b""
        for id in self.ids:
            values = [self.integer() for _ in range(integers)]
            if module == "POSIX" and version == 1:
                # Records with stdio in them are left out by both.
                values[6] = self.random.choice([0, 0, 0, 5])
            records += self.pack("Qq", id, self.random.randrange(-1, 9))
            records += self.pack(f"{integers}q", *values)
            records += self.pack(f"{floats}d", *(self.float() for _ in range(floats)))
            records += self.random.randbytes(TRAILERS.get(module, 0))
        return records

    def accesses(self):
        records = b""
        for rank, id in enumerate(self.ids):
            writes, reads = self.random.randrange(4), self.random.choice([0, 1, 3000])
            records += self.pack("Qqq", id, rank, 0) + b"host%d" % rank + bytes(59) + self.pack("qq", writes, reads)
            for _ in range(writes + reads):
                records += self.pack("qqdd", self.integer(), self.integer(), self.float(), self.float())
        return records

    def layouts(self, version):
        records = b""
        for id in self.ids:
            stripes = self.random.randrange(1, 7)
            targets = self.pack(f"{stripes}q", *range(stripes))
            if version == 1:
                records += self.pack("Qqqqqqq", id, -1, 248, 1, -1, 1 << 20, stripes) + targets
            else:
                records += self.pack("Qqqq", id, -1, 2, 2 * stripes)
                for part in range(2):
                    numbers = 1 << 20, stripes, 0, 16, part << 20, -1, 0
                    records += self.pack("7q", *numbers) + b"pool%d" % part + bytes(11)
                records += targets + targets
        return records

    def heatmaps(self):
        records = b""
        for rank, id in enumerate(self.ids):
            bins = 20 + self.random.randrange(2) * (rank > 0)
            records += self.pack("QqdqQQ", id, rank, 0.5, bins, 1, 2)
            records += self.pack(f"{2 * bins}q", *(self.integer() for _ in range(2 * bins)))
        return records

    def module(self, module, version):
        if module in LAYOUTS:
            return self.counters(module, version)
        if module.startswith("DXT"):
            return self.accesses()
        return self.layouts(version) if module == "LUSTRE" else self.heatmaps()

    def compress(self, data):
        if self.compression == 2:
            return data
        # Two streams, as of two processes.
        half = len(data) // 2
        return zlib.compress(data[:half]) + zlib.compress(data[half:])

    def job(self):
        wide = self.version == "3.41"
        times = (1000, 5, 2000, 999) if wide else (1000, 2000)
        numbers = self.pack(f"{3 + len(times)}q", 4711, *times, 16, 12345)
        metadata = b"lib_ver=3.x\nh=a=b;c=d\n"
        text = b"/bin/app with arguments\nlustre\t/scratch\nnfs\t/home/long\next4\t/"
        return (numbers + metadata.ljust(1024, b"\0") + text).ljust(4096, b"\0")

    def names(self):
        for index, id in enumerate(self.ids):
            name = b"/scratch/file.%d" % index
            if self.version == "3.00":
                yield self.pack("QI", id, len(name)) + name
            else:
                yield self.pack("Q", id) + name + b"\0"

    def log(self, versions):
        wide = self.version == "3.41"
        count = 64 if wide else 16
        head = 1328 if wide else 360
        body = self.compress(self.job())
        maps, numbers = [(head + len(body), 0)] + [(0, 0)] * count, [0] * count
        names = self.compress(b"".join(self.names()))
        maps[0] = (head + len(body), len(names))
        body += names
        for number, module in enumerate(NUMBERS[self.version], 1):
            if module in versions:
                region = self.compress(self.module(module, versions[module]))
                maps[number + 1] = (head + len(body), len(region))
                numbers[number] = versions[module]
                body += region
        start = self.version.encode().ljust(8, b"\0") + self.pack("q", 6567223) + bytes([self.compression])
        start += bytes(7) + self.pack("Q", 2) if wide else bytes(3) + self.pack("I", 2)
        start += self.pack(f"{2 * len(maps)}Q", *(number for extent in maps for number in extent))
        start += self.pack(f"{count}I", *numbers)
        assert len(start) == head
        return start + body


def made_logs(folder):
    newest = {name: len(layouts) for name, layouts in LAYOUTS.items()}
    newest |= {"LUSTRE": 2, "DXT_POSIX": 1, "DXT_MPIIO": 2, "HEATMAP": 1}
    for version in NUMBERS:
        for order in "<>":
            for compression in (0, 2):
                for back in range(4):
                    versions = {name: max(1, newest[name] - back) for name in newest}
                    path = folder / f"{version}-{'LE' if order == '<' else 'BE'}-{compression}-{back}.darshan"
                    path.write_bytes(Writer(path.name, version, order, compression).log(versions))
                    yield path, order == ">"


def shipped_logs():
    package = Path(pydarshan.__file__).parents[1]
    return [(path, False) for path in sorted(package.rglob("*.darshan"))]


def main():
    subprocess.run(["cargo", "build", "-q", "-p", "pio-import", "--example", "darshan"], cwd=ROOT, check=True)
    program = ROOT / "target/debug/examples/darshan"
    with tempfile.TemporaryDirectory() as folder:
        logs = [(Path(name), False) for name in sys.argv[1:]]
        logs = logs or [*shipped_logs(), *made_logs(Path(folder))]
        failed = 0
        for path, swapped in logs:
            differences = compare(program, path, swapped)
            failed += bool(differences.found)
            left_out = "".join(f"; left out: {count} × {name}" for name, count in differences.left_out.items())
            print(f"{path.name}: {differences.compared} numbers, {len(differences.found)} differ{left_out}")
            for line in differences.found[:10]:
                print(f"  {line}")
    print(f"{len(logs)} logs, {failed} read differently (PyDarshan {pydarshan.get_lib_version()})")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
