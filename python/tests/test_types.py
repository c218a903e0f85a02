"""Types: those of the module, of its native half, and what a program of a user sees of them."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import needs

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
from concurrent.futures import ProcessPoolExecutor
import pioscope

trace: pioscope.Trace = pioscope.open("run.pio")
machine: pioscope.Machine = pioscope.machine("sp-argonne").with_({"storage.io.count": 16, "network.dimensions": [8, 8]})
time_s: float = trace.predict(machine, hints={"cb_nodes": 4}).io_time_max_s
for finding in trace.explain([machine, "pios-64"]).findings:
    kind: str = finding.kind
    lost_s: float | None = finding.lost_s
with ProcessPoolExecutor() as executor:
    rows: int = pioscope.sweep(trace, machine, hints={"cb_nodes": [1, 2]}, executor=executor).num_rows
recorded: pioscope.Trace = pioscope.record(["./program"], output="run.pio")
applied: pioscope.Trace = pioscope.apply("two-phase", ["./program"], record="run.pio")
try:
    pioscope.convert("run.pio", "run.parquet")
except pioscope.CommandError as error:
    code: int | None = error.returncode
    base: pioscope.Error = error
"""

# A line of a program, and what is wrong with it.
WRONG = {
    'pioscope.open(7)': "arg-type",
    'pioscope.open("run.pio").predict("sp-argonne", hints=[4])': "arg-type",
    'pioscope.open("run.pio").predict("sp-argonne").io_time': "attr-defined",
    'trace: pioscope.Trace = pioscope.apply("two-phase", ["./program"])': "assignment",
    'pioscope.sweep(pioscope.open("run.pio"), "sp-argonne", executor=4)': "arg-type",
}


def run(*words):
    cache = str(Path(sys.prefix) / "mypy-cache")
    environment = {**os.environ, "MYPYPATH": str(ROOT / "python"), "MYPY_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-m", *map(str, words)], cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@needs("mypy")
class Types(unittest.TestCase):
    def test_a_program_of_a_user_passes_the_strictest_check(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            program.write_text(PROGRAM)
            code, said = run("mypy", "--strict", program)
            self.assertEqual(code, 0, said)

    def test_what_does_not_fit_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            program.write_text("\n".join(["import pioscope", *WRONG]))
            _, said = run("mypy", "--strict", program)
            for number, error in enumerate(WRONG.values(), 2):
                self.assertRegex(said, rf"program\.py:{number}: error: .*\[{error}\]")

    def test_the_package_passes_it_for_the_oldest_python(self):
        code, said = run("mypy", "--strict", "--python-version", "3.10", "python/pioscope")
        self.assertEqual(code, 0, said)

    def test_the_native_half_is_what_its_stub_says(self):
        code, said = run("mypy.stubtest", "pioscope._native", "--mypy-config-file", "pyproject.toml")
        self.assertEqual(code, 0, said)
