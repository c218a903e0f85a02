"""What the module has the command do."""

import contextlib
import io
import os
import pickle
import sys
from pathlib import Path
from unittest import mock

import pyarrow.compute as compute

import pioscope
from support import BIN, InFolder, needs

WRITER = """
import sys
with open("written", "wb", buffering=0) as file:
    for _ in range(5):
        file.write(bytes(1000))
print("a word on standard error", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""

MPI_WRITER = """
from mpi4py import MPI
file = MPI.File.Open(MPI.COMM_WORLD, "shared", MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Write_at_all(MPI.COMM_WORLD.rank * 4, b"four")
file.Close()
"""


def quietly(function, *arguments, **named):
    """What it gives, and what went to standard error."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        return function(*arguments, **named), said.getvalue()


class Command(InFolder):
    def test_a_program_is_recorded(self):
        trace, said = quietly(pioscope.record, [sys.executable, "-c", WRITER, "0"], output="writer.pio")
        self.assertEqual(trace.path, "writer.pio")
        events = trace.events
        writes = events.filter(compute.equal(events["file"], str(self.folder / "written")))
        self.assertEqual(compute.sum(writes.filter(compute.equal(writes["op"], "write"))["size"]).as_py(), 5000)
        self.assertIn("a word on standard error\n", said)

    def test_options_are_those_of_the_command(self):
        command = [sys.executable, "-c", WRITER, "0"]
        trace, _ = quietly(pioscope.record, command, output=Path("some.pio"), options=["--path", "*/written"])
        files = compute.unique(trace.events["file"].combine_chunks().dictionary_decode().drop_null())
        self.assertEqual(files.to_pylist(), [str(self.folder / "written")])

    def test_a_program_that_fails_is_told_and_its_trace_is_kept(self):
        command = [sys.executable, "-c", WRITER, "3"]
        with self.assertRaisesRegex(pioscope.CommandError, "a word on standard error") as raised:
            quietly(pioscope.record, command, output="failed.pio")
        self.assertEqual(raised.exception.returncode, 3)
        self.assertEqual(pickle.loads(pickle.dumps(raised.exception)).returncode, 3)
        self.assertGreater(len(pioscope.open("failed.pio")), 5)
        trace, _ = quietly(pioscope.record, command, output="failed.pio", check=False)
        self.assertGreater(len(trace), 5)

    def test_an_earlier_trace_is_not_taken_for_that_of_a_program_that_was_not_started(self):
        quietly(pioscope.record, [sys.executable, "-c", WRITER, "0"], output="stale.pio")
        for command, options in ((["no-such-program"], []), (["true"], ["--colour"])):
            with self.assertRaisesRegex(pioscope.CommandError, "no-such-program|'--colour'"):
                quietly(pioscope.record, command, output="stale.pio", options=options, check=False)
        with self.assertRaisesRegex(pioscope.CommandError, "no-such-strategy"):
            quietly(pioscope.apply, "no-such-strategy", ["true"], record="stale.pio", check=False)
        with self.assertRaisesRegex(pioscope.CommandError, "no-such-program"):
            quietly(pioscope.record, ["no-such-program"], output="never.pio", check=False)
        self.assertGreater(len(pioscope.open("stale.pio")), 5)

    def test_errors_are_those_of_the_command(self):
        with self.assertRaisesRegex(pioscope.CommandError, "^nowhere.pio: ") as raised:
            quietly(pioscope.convert, "nowhere.pio", "nowhere.parquet")
        self.assertIsInstance(raised.exception, pioscope.Error)
        with self.assertRaisesRegex(pioscope.CommandError, "unexpected argument '--colour'"):
            quietly(pioscope.record, ["true"], output="true.pio", options=["--colour"])
        with self.assertRaisesRegex(pioscope.CommandError, "no-such-program"):
            quietly(pioscope.record, ["no-such-program"], output="no.pio")
        with self.assertRaisesRegex(pioscope.CommandError, "pioscope record ended with exit code 1$"):
            quietly(pioscope.record, ["false"], output="false.pio")
        with self.assertRaisesRegex(TypeError, "list of words"):
            pioscope.record("ls -l", output="ls.pio")
        with self.assertRaisesRegex(TypeError, "list of words"):
            pioscope.record(["true"], output="true.pio", options="--ranks 0")

    def test_the_command_must_be_there(self):
        with mock.patch.dict(os.environ, PIOSCOPE="/nowhere/pioscope"):
            with self.assertRaisesRegex(pioscope.CommandError, "/nowhere/pioscope: cannot be started: No such file"):
                pioscope.convert("run.pio", "run.json")
        with mock.patch.dict(os.environ, PIOSCOPE="", PATH="/nowhere"):
            with self.assertRaisesRegex(pioscope.CommandError, "not installed: expected it .* PIOSCOPE"):
                pioscope.convert("run.pio", "run.json")
        (self.folder / "on-path").mkdir()
        (self.folder / "on-path/pioscope").symlink_to(os.environ["PIOSCOPE"])
        with mock.patch.dict(os.environ, PIOSCOPE="", PATH=str(self.folder / "on-path")):
            self.assertTrue(quietly(pioscope.convert, "run.pio", "run.json")[0].is_file())

    def test_another_tools_log_becomes_a_trace(self):
        Path("calls.csv").write_text("start_s,elapsed_s,call,rank,file,offset,size\n0,1,write,0,/d/f,0,4096\n")
        trace = pioscope.open(quietly(pioscope.convert, "calls.csv", "calls.pio")[0])
        self.assertEqual(trace.events["size"].to_pylist(), [4096])

    @needs("mpi4py")
    def test_a_strategy_is_applied(self):
        command = [BIN / "mpiexec", "-n", "2", sys.executable, "-c", MPI_WRITER]
        with mock.patch.dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}"):
            trace, said = quietly(pioscope.apply, "two-phase", command, {"cb_nodes": 1}, record="applied.pio")
        self.assertNotIn("nothing was applied", said)
        self.assertEqual(Path("shared").read_bytes(), b"fourfour")
        events = trace.events
        collective = events.filter(compute.equal(events["call"], "MPI_File_write_at_all"))
        self.assertEqual(sorted(collective["rank"].to_pylist()), [0, 1])
        self.assertIn("two-phase", " ".join(trace.notes.values()))

    def test_runs_are_compared(self):
        after = pioscope.open("run.pio")
        before = after.workload().save("asked.pio")
        difference = pioscope.diff(before, after)
        self.assertIn("I/O time, the mean of the processes", str(difference))
        self.assertEqual(str(difference), str(pioscope.diff("asked.pio", after.explain())))
        write, = (row for row in difference.operations.to_pylist() if row["operation"] == "write")
        self.assertEqual((write["calls_before"], write["calls_after"]), (1620, 1620))
        self.assertEqual(write["time_s_before"], 0)
        self.assertGreater(write["time_s_after"], 0)

    def test_a_machine_is_measured_as_told(self):
        # Measuring takes minutes and is tested elsewhere: here a script writes down what it was asked for.
        script = self.folder / "measure"
        script.write_text('#!/bin/sh\necho "$@" > asked\ncp described.toml "${6:-/dev/null}"\n')
        script.chmod(0o755)
        pioscope.machine("sp-argonne").save("described.toml")
        with mock.patch.dict(os.environ, PIOSCOPE=str(script)):
            machine = pioscope.calibrate(folder="/tmp", output="measured", launcher=["mpiexec", "-n", "4"])
            asked = Path("asked").read_text()
            self.assertEqual(asked, "machines calibrate --folder /tmp --output measured -- mpiexec -n 4\n")
            self.assertEqual(machine, pioscope.machine("sp-argonne"))
            # What is kept, the script does not write.
            with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache")):
                with self.assertRaisesRegex(pioscope.Error, f"not calibrated: .* --folder {self.folder}"):
                    pioscope.calibrate(folder=self.folder)
            self.assertEqual(Path("asked").read_text(), f"machines calibrate --folder {self.folder}\n")
            # It measured the servers, and gave the description of the folder.
            Path("store.toml").touch()
            with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache")):
                with self.assertRaisesRegex(pioscope.Error, f"not calibrated: .* --store {self.folder}/store.toml"):
                    pioscope.calibrate(store="store.toml")
            asked = "machines calibrate --folder . --store store.toml\n"
            self.assertEqual(Path("asked").read_text(), asked)
            for option, argument in (("--store", "store"), ("--store=x", "store"), ("-o", "output"), ("-ox", "output"),
                                     ("--output", "output"), ("--folder", "folder")):
                with self.assertRaisesRegex(pioscope.Error, f"{option}: expected the argument {argument} of calibrate"):
                    pioscope.calibrate(options=[option, "x"])
        self.assertEqual(Path("asked").read_text(), asked)
