"""What other tools make of the files that are written for them, each read by the tool itself."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import pioscope
from support import COMMAND, InFolder, needs, run

# A file of its own for each of two ranks, pieces of a few sizes, and a sync.
ROWS = [
    "start_s,elapsed_s,call,rank,file,offset,size",
    *[f"{step * 0.002},0.001,pwrite,{rank},{{folder}}/own.{rank},{step * 4096},{4096 - rank * 512}"
      for step in range(50) for rank in range(2)],
    "0.2,0.01,fsync,0,{folder}/own.0,,",
    *[f"{0.3 + step * 0.002},0.001,pread,{rank},{{folder}}/own.{rank},{step * 4096},4096"
      for step in range(20) for rank in range(2)],
]


def needs_fio():
    lacks = shutil.which("fio") is None
    if lacks:
        print("skipped: fio is not installed", file=sys.stderr)
    return unittest.skipIf(lacks, "fio is not installed")


class OtherReaders(InFolder):
    @needs("duckdb")
    def test_duckdb_reads_parquet_and_writes_a_table_that_is_read_again(self):
        import duckdb

        run("convert", "run.pio", "-o", "run.parquet")
        trace = pioscope.open("run.pio")
        question = "select op, count(*), sum(size), sum(elapsed_ns), count(distinct rank) from {} group by op order by op"
        found = duckdb.sql(question.format("'run.parquet'")).fetchall()
        events = trace.events
        self.assertEqual(found, duckdb.sql(question.format("events")).fetchall())
        self.assertEqual(sum(row[1] for row in found), len(trace))
        duckdb.sql(
            "copy (select start_ns / 1e9 as start_s, elapsed_ns / 1e9 as elapsed_s, call, rank, file, \"offset\", size "
            "from 'run.parquet') to 'again.csv' (header)"
        )
        again = pioscope.open("again.csv").events
        self.assertEqual(found, duckdb.sql(question.format("again")).fetchall())
        columns = ["call", "rank", "file", "offset", "size", "start_ns", "elapsed_ns"]
        self.assertEqual(again.select(columns).to_pylist(), events.select(columns).to_pylist())

    @needs_fio()
    def test_fio_replays_every_request(self):
        table = Path("own.csv")
        table.write_text("\n".join(ROWS).format(folder=self.folder))
        run("convert", table, "-o", "own.iolog")
        for rank in range(2):
            Path(f"own.{rank}").write_bytes(bytes(50 * 4096))
        replay = ["fio", "--name=replay", "--read_iolog=own.iolog", "--output-format=json", "--replay_no_stall=1"]
        done = subprocess.run(replay, check=True, capture_output=True, text=True)
        job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
        self.assertEqual(job["error"], 0)
        self.assertEqual((job["write"]["total_ios"], job["write"]["io_bytes"]), (100, 50 * (4096 + 3584)))
        self.assertEqual((job["read"]["total_ios"], job["read"]["io_bytes"]), (40, 40 * 4096))
        self.assertEqual(job["sync"]["total_ios"], 1)

    @needs_fio()
    def test_what_fio_logs_is_read(self):
        for offsets in (0, 1):
            folder = Path(f"logs-{offsets}")
            folder.mkdir()
            job = ["fio", "--name=job", "--size=256k", "--bs=4k", "--rw=randrw", "--numjobs=2", "--unlink=1",
                   "--write_lat_log=job", "--write_bw_log=job", f"--log_offset={offsets}", "--output-format=json"]
            done = subprocess.run(job, check=True, capture_output=True, text=True, cwd=folder)
            jobs = json.loads(done.stdout[done.stdout.index("{"):])["jobs"]
            run("convert", folder, "-o", f"logs-{offsets}.pio")
            rows = pioscope.open(f"logs-{offsets}.pio").events.select(["process", "op", "size", "offset", "elapsed_ns"]).to_pylist()
            self.assertEqual(len({row["process"] for row in rows}), 2)
            for op in ("read", "write"):
                of_op = [row for row in rows if row["op"] == op]
                self.assertEqual(len(of_op), sum(job[op]["total_ios"] for job in jobs))
                self.assertEqual(sum(row["size"] for row in of_op), sum(job[op]["io_bytes"] for job in jobs))
                mean = sum(row["elapsed_ns"] for row in of_op) / len(of_op)
                said = sum(job[op]["lat_ns"]["mean"] * job[op]["total_ios"] for job in jobs) / len(of_op)
                self.assertAlmostEqual(mean / said, 1, places=3)
            self.assertEqual({row["offset"] is None for row in rows}, {offsets == 0})
            refused = subprocess.run(
                [COMMAND, "convert", folder / "job_bw.1.log", "-o", "bw.pio"], capture_output=True, text=True
            )
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("job_bw.1.log: no calls for a trace in it", refused.stderr)
            self.assertIn("fio --write_lat_log", refused.stderr)

    def test_the_events_are_those_of_the_trace_event_format(self):
        run("convert", "run.pio", "-o", "run.json")
        trace = json.loads(Path("run.json").read_text())
        self.assertEqual(trace["displayTimeUnit"], "ns")
        named, calls = set(), []
        for event in trace["traceEvents"]:
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["name"], str)
            if event["ph"] == "M":
                named.add((event["pid"], event["name"]))
                kind = {"process_name": ("name", str), "process_sort_index": ("sort_index", int)}[event["name"]]
                self.assertIsInstance(event["args"][kind[0]], kind[1])
                continue
            self.assertEqual(event["ph"], "X")
            self.assertIsInstance(event["tid"], int)
            self.assertIsInstance(event["cat"], str)
            self.assertIsInstance(event["args"], dict)
            for time in ("ts", "dur"):
                self.assertIsInstance(event[time], (int, float))
                self.assertGreaterEqual(event[time], 0)
            calls.append(event)
        self.assertEqual(len(calls), len(pioscope.open("run.pio")))
        self.assertEqual({(event["pid"], "process_name") for event in calls} - named, set())
        self.assert_nested(calls)

    def assert_nested(self, calls):
        """A viewer draws an event of a thread within another or beside it: it drops one that is half in another."""
        for call in calls:
            call["until"] = call["ts"] + call["dur"]
        open_calls = {}
        for call in sorted(calls, key=lambda call: (call["ts"], -call["until"])):
            above = open_calls.setdefault((call["pid"], call["tid"]), [])
            while above and above[-1]["until"] <= call["ts"] + 1e-4:
                above.pop()
            if above:
                self.assertLessEqual(call["until"], above[-1]["until"] + 1e-4, (above[-1], call))
            above.append(call)
