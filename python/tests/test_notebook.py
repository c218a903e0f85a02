"""The notebook of the manual, run as it is."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pioscope
from support import needs

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/notebooks/first.ipynb"

CHECK = """
import json
print(json.dumps({
    "opens": sum(file["opens"] for file in explanation.files.to_pylist()),
    "files": elsewhere["files"].io_time_mean_s,
    "shards": elsewhere["shards"].io_time_mean_s,
    "bytes": [prediction.bytes_read for prediction in predictions.values()],
}))
"""


@needs("nbclient", "ipykernel", "matplotlib")
class Notebook(unittest.TestCase):
    def test_it_is_kept_without_outputs(self):
        import nbformat

        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            self.assertEqual(cell.get("outputs", []), [], cell.id)
            self.assertIsNone(cell.get("execution_count"), cell.id)

    def test_it_runs_and_shards_are_faster(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell(CHECK))
        with tempfile.TemporaryDirectory() as folder:
            # Without an MPI, calibration takes half a minute instead of some.
            places = {"PYTHONPATH": str(Path(pioscope.__file__).parent.parent), "PATH": "/usr/bin:/bin", "TMPDIR": folder}
            with mock.patch.dict(os.environ, places):
                nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=folder)
        found = json.loads(notebook.cells[-1].outputs[0].text)
        self.assertEqual(found["opens"], 4000)
        self.assertEqual(*found["bytes"])
        # Opens of a millisecond: 2,000 of each worker, or 32.
        self.assertGreater(found["files"], 2)
        self.assertLess(found["shards"], found["files"] / 3)
        shown = {cell.id: str(cell.get("outputs", "")) for cell in notebook.cells}
        self.assertIn("image/png", shown["rate"])
        self.assertIn("<table>", shown["explain"])
        self.assertIn("pioscope.Machine here", shown["machine"])
