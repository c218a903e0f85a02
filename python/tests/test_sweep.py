"""Sweeps, in this process and on the executors of others."""

import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

import pyarrow

import pioscope
from support import BIN, InFolder, needs


def thousand(trace):
    """What to predict at 1,000 points."""
    machine = pioscope.machine("sp-argonne")
    return {
        "what": trace,
        "machines": [machine.with_({"storage.io.count": count}) for count in range(1, 11)],
        "strategies": ["independent", "two-phase"],
        "hints": {"cb_nodes": [1, 2], "cb_buffer_size": [1024 * size for size in range(1, 26)]},
    }


class Sweep(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tiny = pioscope.workload("ior-hard", {"ranks": 2, "segments": 2}).save("tiny.pio")
        cls.alone = pioscope.sweep(**thousand(cls.tiny))

    @needs("pandas")
    def test_a_row_is_the_prediction_of_its_settings(self):
        table = self.alone
        self.assertEqual(table.num_rows, 1000)
        self.assertEqual(table.column_names[:5], ["machine", "storage.io.count", "strategy", "cb_nodes", "cb_buffer_size"])
        self.assertEqual(table["storage.io.count"].type, pyarrow.int64())
        for row in table.take([0, 123, 456, 999]).to_pylist():
            machine = pioscope.machine(row["machine"]).with_({"storage.io.count": row["storage.io.count"]})
            hints = {name: row[name] for name in ["cb_nodes", "cb_buffer_size"]}
            prediction = self.tiny.predict(machine, row["strategy"], hints)
            for name in table.column_names[5:]:
                self.assertEqual(row[name], getattr(prediction, name), name)
        self.assertEqual(table.to_pandas().groupby("strategy").size().to_dict(), {"independent": 500, "two-phase": 500})

    def test_a_path_is_a_trace(self):
        self.assertEqual(pioscope.sweep(Path("tiny.pio"), "sp-argonne"), pioscope.sweep(self.tiny, "sp-argonne"))

    def test_one_of_each_is_enough(self):
        table = pioscope.sweep(pioscope.workload("ior-hard", {"ranks": 2}), "pios-64", "two-phase")
        self.assertEqual(table.num_rows, 1)
        self.assertNotIn("cb_nodes", table.column_names)

    def test_settings_of_several_types_are_texts(self):
        machine = pioscope.machine("sp-argonne")
        machines = [machine, machine.with_({"storage.io.count": 4}), machine.with_({"storage.io.count": "2"})]
        table = pioscope.sweep(self.tiny, machines, "two-phase")
        self.assertEqual(table["storage.io.count"].to_pylist(), [None, "4", "2"])

    def test_executors_of_threads_and_processes_find_the_same(self):
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            self.assertEqual(pioscope.sweep(**thousand(self.tiny), executor=executor), self.alone)
        with concurrent.futures.ProcessPoolExecutor(2) as executor:
            self.assertEqual(pioscope.sweep(**thousand(self.tiny), executor=executor), self.alone)

    def test_a_table_without_rows_has_the_types_of_one_with_rows(self):
        machine = pioscope.machine("sp-argonne")
        of_case = {"machines": [machine.with_({"storage.io.count": 4, "network.link.bandwidth": "1 GB/s"})],
                   "strategies": ["two-phase"], "hints": {"cb_nodes": [1, 2], "romio_cb_write": "enable"}}
        whole = pioscope.sweep(self.tiny, **of_case).schema
        for nothing in [{"machines": []}, {"strategies": []}, {"strategies": iter([])}]:
            table = pioscope.sweep(self.tiny, **{**of_case, **nothing})
            self.assertEqual(table.num_rows, 0)
            # What was changed in no machine has no column.
            expected = whole if "machines" not in nothing else pioscope.sweep(self.tiny, machine, hints=of_case["hints"]).schema
            self.assertEqual(table.schema, expected)
        empty = pioscope.sweep(self.tiny, of_case["machines"], hints={**of_case["hints"], "cb_nodes": []})
        self.assertEqual((empty.num_rows, empty.column_names), (0, whole.names))

    def test_values_may_come_one_by_one(self):
        table = pioscope.sweep(self.tiny, iter(["sp-argonne", "pios-64"]), iter(["independent", "two-phase"]), {"cb_nodes": iter([1, 2])})
        self.assertEqual(table.num_rows, 8)

    @needs("numpy")
    def test_numbers_of_numpy_are_numbers(self):
        import numpy

        table = pioscope.sweep(self.tiny, "sp-argonne", "two-phase", {"cb_nodes": numpy.arange(1, 3)})
        self.assertEqual((table["cb_nodes"].to_pylist(), table["cb_nodes"].type), ([1, 2], pyarrow.int64()))

    def test_what_is_wrong_at_a_point_is_told(self):
        with self.assertRaisesRegex(pioscope.Error, "cb_nodes: '0'"):
            pioscope.sweep(self.tiny, "sp-argonne", hints={"cb_nodes": [1, 0]})
        with concurrent.futures.ProcessPoolExecutor(1) as executor:
            with self.assertRaisesRegex(pioscope.Error, "expected one of"):
                pioscope.sweep(self.tiny, "sp-argonne", ["two-phase", "fast"], executor=executor)

    @needs("dask", "distributed")
    def test_a_dask_cluster_finds_the_same(self):
        from dask.distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, Client(cluster) as client:
            self.assertEqual(pioscope.sweep(**thousand(self.tiny), executor=client), self.alone)
            self.assertEqual(pioscope.sweep(**thousand(self.tiny), executor=client.get_executor()), self.alone)

    @needs("mpi4py")
    def test_ranks_of_mpi_find_the_same(self):
        Path("sweep.py").write_text(ON_RANKS)
        command = [BIN / "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", "sweep.py"]
        places = [Path(pioscope.__file__).parent.parent, Path(__file__).parent]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        with pyarrow.ipc.open_file("found.arrow") as found:
            self.assertEqual(found.read_all(), self.alone)


ON_RANKS = """
import pyarrow
import pioscope
from mpi4py.futures import MPIPoolExecutor
from test_sweep import thousand

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == 2
        table = pioscope.sweep(**thousand(pioscope.open("tiny.pio")), executor=executor)
    with pyarrow.OSFile("found.arrow", "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
"""
