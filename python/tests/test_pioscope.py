"""The module as its users see it. The events are those of a generated workload, whose numbers are known."""

import concurrent.futures
import copy
import json
import sys
import tempfile
import unittest
from pathlib import Path

import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

import pioscope
from support import run


class Module(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.path = cls.folder / "checkpoint.pio"
        run("workload", "ior-hard", "--param", "ranks=4", "-o", cls.path)

    def setUp(self):
        self.trace = pioscope.open(self.path)

    def test_events_are_those_of_the_parquet_file(self):
        run("convert", self.path, "-o", self.folder / "events.parquet")
        expected = parquet.read_table(self.folder / "events.parquet")
        events = self.trace.events
        self.assertEqual(events.num_rows, len(self.trace))
        self.assertEqual(events.column_names, expected.column_names)
        for name in expected.column_names:
            self.assertEqual(events[name].to_pylist(), expected[name].to_pylist(), name)

    def test_a_name_is_one_entry_of_its_dictionary(self):
        for batch in self.trace.batches():
            for name in ["call", "host", "file"]:
                entries = batch[name].dictionary.to_pylist()
                self.assertEqual(len(set(entries)), len(entries), name)

    def test_batches_hold_the_same(self):
        self.assertEqual(sum(batch.num_rows for batch in self.trace.batches()), len(self.trace))

    def test_libraries_that_take_streams_of_arrow_take_a_trace(self):
        read = pyarrow.RecordBatchReader.from_stream(self.trace).read_all()
        self.assertEqual(read.unify_dictionaries(), self.trace.events)

    def test_explanation_counts_what_the_events_say(self):
        events, explanation = self.trace.events, self.trace.explain()
        writes = events.filter(compute.equal(events["op"], "write"))
        table = explanation.operations.to_pylist()
        self.assertGreater(writes.num_rows, 0)
        self.assertEqual(sum(row["calls"] for row in table if row["operation"] == "write"), writes.num_rows)
        self.assertEqual(sum(row["bytes"] for row in table if row["operation"] == "write"), compute.sum(writes["size"]).as_py())
        self.assertEqual(explanation.processes.num_rows, 4)
        self.assertIn("write", str(explanation))

    def test_collective_calls_say_where_their_time_went(self):
        workload = self.folder / "collapse.pio"
        run("workload", "collapse", "--param", "iterations=20", "-o", workload)
        run("predict", workload, "--machine", "sp-argonne", "--strategy", "two-phase", "--output", self.folder)
        trace = pioscope.open(self.folder / "collapse-sp-argonne-two-phase.pio")
        run("convert", trace.path, "-o", self.folder / "collapse.parquet")
        events = trace.events
        self.assertEqual(events.num_rows, parquet.read_table(self.folder / "collapse.parquet").num_rows)
        parts = ["late_ns", "library_ns", "files_ns"]
        for name in parts:
            exported = parquet.read_table(self.folder / "collapse.parquet", columns=[name])[name]
            self.assertEqual(events[name].to_pylist(), exported.to_pylist(), name)
        known = events.filter(compute.is_valid(events["late_ns"]))
        self.assertGreater(known.num_rows, 0)
        for row in known.select(["layer", "collective", "elapsed_ns", *parts]).to_pylist():
            self.assertEqual((row["layer"], row["collective"]), ("mpi-io", True))
            self.assertEqual(sum(row[name] for name in parts), row["elapsed_ns"])
        # Those of every rank and call add up to the explanation's table, which has calls of one rank alone, too.
        whole = 0
        for row in trace.explain().mpi_io.to_pylist():
            own = known.filter(compute.equal(known["op"], row["operation"]))
            total = {part: (compute.sum(own[part + "_ns"]).as_py() or 0) / 1e9 for part in ["late", "library", "files"]}
            self.assertEqual(row["unknown_s"], 0)
            self.assertAlmostEqual(total["late"], row["late_s"], places=6)
            if own.num_rows == row["calls"]:
                whole += 1
                self.assertAlmostEqual(total["library"], row["library_s"], places=6)
                self.assertAlmostEqual(total["files"], row["files_s"], places=6)
        self.assertGreater(whole, 1)

    def test_findings_are_those_of_the_text(self):
        run("predict", self.path, "--machine", "sp-argonne", "--strategy", "independent", "--output", self.folder)
        explanation = pioscope.open(self.folder / "checkpoint-sp-argonne-independent.pio").explain()
        findings = explanation.findings.to_pylist()
        self.assertGreater(len(findings), 0)
        self.assertEqual(findings, sorted(findings, key=lambda finding: -(finding["lost_s"] or 0)))
        for number, finding in enumerate(findings, 1):
            price = "costs" if finding["lost_s"] is not None else "takes"
            self.assertIn(f"{number}. {finding['title']}: {price}", str(explanation))

    def test_ranks_that_stand_apart_have_a_row(self):
        # Half of each millisecond in I/O; one rank all of it in the middle of the run, a host at all times.
        def part(rank, step):
            return 0.999 if rank // 10 == 3 or rank == 42 and 50 <= step < 80 else 0.5

        rows = [f"{step / 1000},{part(rank, step) / 1000},stat,{rank},node{rank // 10},/d/file"
                for step in range(100) for rank in range(100)]
        path = self.folder / "crowd.csv"
        path.write_text("\n".join(["start_s,elapsed_s,call,rank,host,file", *rows]))
        apart = pioscope.open(path).explain().apart
        host, rank = apart.to_pylist()
        self.assertEqual((host["host"], host["ranks"], host["is_whole_host"]), ("node3", list(range(30, 40)), True))
        self.assertEqual((rank["host"], rank["ranks"], rank["is_whole_host"]), ("node4", [42], False))
        self.assertEqual(host["from_s"], 0)
        # To the nearest of 64 slices at most, and of as many at least as are 32.
        self.assertAlmostEqual(rank["from_s"], 0.05, delta=0.1 / 32)
        self.assertAlmostEqual(rank["until_s"], 0.08, delta=0.1 / 32)
        for row in (host, rank):
            self.assertAlmostEqual(row["median_io_fraction"], 0.5, delta=0.05)
            self.assertGreater(row["io_fraction"], 0.9)
        none = self.trace.explain().apart
        self.assertEqual((none.num_rows, none.schema), (0, apart.schema))

    def test_lines_of_a_recorded_program_are_named(self):
        for number in range(300):
            (self.folder / f"sample.{number}").write_bytes(bytes(512))
        program = self.folder / "program.py"
        program.write_text(
            "def load(name):\n"
            "    with open(name, 'rb', buffering=0) as file:\n"
            "        while file.read(16): pass\n"
            f"for number in range(300): load({str(self.folder)!r} + f'/sample.{{number}}')\n"
        )
        path = self.folder / "lines.pio"
        run("record", "-o", path, "--path", f"{self.folder}/sample.*", "--", sys.executable, program)
        trace = pioscope.open(path)
        explanation = trace.explain()
        line, = explanation.call_sites.to_pylist()
        self.assertEqual((line["path"], line["line"], line["function"]), (str(program), 2, "load"))
        self.assertEqual((line["library"], line["opens"]), (None, 300))
        self.assertEqual(line["read_from_memory_bytes"] + line["read_from_storage_bytes"], 300 * 512)
        opens = trace.events.filter(compute.equal(trace.events["op"], "open"))
        self.assertEqual(set(opens["code"].to_pylist()), {str(program)})
        self.assertEqual(set(opens["line"].to_pylist()), {2})
        shown = f"{program}:2 load"
        for finding in explanation.findings:
            self.assertEqual(finding.call_sites, [shown], finding.kind)
        self.assertIn("By call site", str(explanation))

    def test_gains_are_predicted_on_machines(self):
        table = self.folder / "interleaved.csv"
        rows = [f"{piece * 0.0011},0.001,MPI_File_write_at,{rank},/d/shared,{(piece * 8 + rank) * 4},4"
                for piece in range(200) for rank in range(8)]
        table.write_text("\n".join(["start_s,elapsed_s,call,rank,file,offset,size", *rows]))
        trace = pioscope.open(table)
        self.assertEqual(trace.explain().gains.num_rows, 0)
        explanation = trace.explain(["sp-argonne"])
        gain, = explanation.gains.to_pylist()
        self.assertEqual((gain["title"], gain["machine"]), (explanation.findings["title"][0].as_py(), "sp-argonne"))
        self.assertLess(gain["after_s"], gain["before_s"] / 5)
        self.assertIn("Predicted on sp-argonne", str(explanation))
        with self.assertRaisesRegex(pioscope.Error, "nowhere"):
            trace.explain(["nowhere"])

    def test_findings_that_are_not_advised_are_those_of_the_command(self):
        """They were left out, though the text speaks of them and the command's JSON has them."""
        table = self.folder / "apart.csv"
        rows = [f"{piece * 0.0011},0.001,MPI_File_write_at,{rank},/d/shared,{(piece * 8 + rank) * 4},4"
                for piece in range(200) for rank in range(8)]
        table.write_text("\n".join(["start_s,elapsed_s,call,rank,file,offset,size", *rows]))
        # Messages take long and requests next to nothing: to work together is a loss.
        slow = self.folder / "slow.toml"
        slow.write_text(pioscope.machine("sp-argonne").with_({
            "messages.send": "50 ms", "messages.receive": "50 ms", "storage.read.request": "0 s",
            "storage.write.request": "0 s", "calls.read.call": "0 s", "calls.write.call": "0 s",
        }).to_toml())
        explanation = pioscope.open(table).explain([slow])
        findings = explanation.findings
        self.assertIn("predicted to gain nothing", " ".join(str(explanation).split()))
        self.assertEqual([(finding.is_advised, finding.gain_s < 0) for finding in findings], [(False, True)])
        expected = json.loads(run("explain", table, "--machine", slow, "--json"))["findings"]
        self.assertEqual([(one["kind"], one["is_advised"]) for one in expected],
                         [(finding.kind, finding.is_advised) for finding in findings])
        gain, = explanation.gains.to_pylist()
        self.assertEqual(gain["after_s"], expected[0]["gains"][0]["io_time_after_s"])
        self.assertIn("0 findings", repr(explanation))
        self.assertIn("not advised", findings[0]._repr_html_())
        self.assertTrue(all(finding.is_advised for finding in pioscope.open(table).explain().findings))

    def test_a_notebook_shows_the_report_and_its_figures(self):
        explanation = self.trace.explain()
        self.assertIn("<iframe srcdoc=", explanation._repr_html_())
        # A figure is as high as its page; the report is not.
        self.assertIn("onload=", next(iter(explanation.figures.values()))._repr_html_()[-200:])
        self.assertNotIn("onload=", explanation._repr_html_()[-200:])
        self.assertIn("sizes", explanation.figures)
        for figure in explanation.figures.values():
            self.assertIn("&lt;svg", figure._repr_html_())
        explanation.save(self.folder / "report.html")
        self.assertTrue((self.folder / "report.html").read_text().startswith("<!doctype html>"))

    def test_predictions_on_an_executor_are_those_one_by_one(self):
        machines = ["sp-argonne", "paragon-caltech"]
        alone = [self.trace.predict(machine) for machine in machines]
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            self.assertEqual(list(executor.map(self.trace.predict, machines)), alone)
        self.assertEqual([prediction.machine for prediction in alone], machines)
        self.assertGreater(alone[0].io_time_max_s, 0)
        fewer = self.trace.predict("sp-argonne", hints={"cb_nodes": 1})
        self.assertEqual(fewer.hints, "cb_nodes=1")
        self.assertEqual(len(copy.copy(self.trace)), len(self.trace))

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(pioscope.Error, "nowhere.pio") as raised:
            pioscope.open(self.folder / "nowhere.pio")
        self.assertEqual(str(raised.exception).count("No such file"), 1)
        (self.folder / "wrong.pio").write_bytes(b"no trace")
        with self.assertRaisesRegex(pioscope.Error, "wrong.pio"):
            pioscope.open(self.folder / "wrong.pio")
        with self.assertRaisesRegex(pioscope.Error, "no-such-machine"):
            self.trace.predict("no-such-machine")
        with self.assertRaisesRegex(pioscope.Error, "expected one of"):
            self.trace.predict("sp-argonne", strategy="fast")
        with self.assertRaisesRegex(TypeError, "expected a machine, .* not 3"):
            self.trace.predict(3)
        with self.assertRaisesRegex(TypeError, "expected a text, .* not None"):
            pioscope.machine("sp-argonne").with_({"storage.io.count": None})

    def test_one_machine_is_a_list_of_one(self):
        self.assertEqual(self.trace.explain("sp-argonne").gains, self.trace.explain(["sp-argonne"]).gains)


if __name__ == "__main__":
    unittest.main()
