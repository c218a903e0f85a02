"""Traces as folders of Parquet files, read by what reads such folders."""

import os
from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet as parquet

import pioscope
from support import InFolder, needs, run


class Parquet(InFolder):
    def setUp(self):
        self.trace = pioscope.open("run.pio")

    def rows(self, table):
        rows = table.select(["process", "start_ns", "call", "size", "file"]).to_pylist()
        return sorted(rows, key=lambda row: tuple(map(str, row.values())))

    @needs("duckdb")
    def test_duckdb_reads_the_partitions_that_it_needs(self):
        import duckdb

        self.trace.to_parquet("by-layer", partition_by=["layer", "rank"])
        self.assertEqual(len(list(Path("by-layer").glob("layer=mpi-io/rank=*"))), 8)
        events = self.trace.events
        question = "select rank, count(*), sum(size) from {} where layer = 'mpi-io' group by rank order by rank"
        found = duckdb.sql(question.format("'by-layer/**/*.parquet'"))
        self.assertEqual(found.fetchall(), duckdb.sql(question.format("events")).fetchall())
        self.assertEqual(events.num_rows, len(self.trace))

    @needs("dask", "pandas")
    def test_dask_reads_it(self):
        import dask.dataframe

        self.trace.to_parquet("by-op", partition_by="op")
        frame = dask.dataframe.read_parquet("by-op")
        self.assertEqual(len(frame), len(self.trace))
        events = self.trace.events.to_pandas()
        written = frame[frame["op"] == "write"]["size"].sum().compute()
        self.assertEqual(written, events[events["op"] == "write"]["size"].sum())

    def test_it_holds_the_events(self):
        self.trace.to_parquet("whole")
        table = pyarrow.dataset.dataset("whole").to_table()
        self.assertEqual(self.rows(table), self.rows(self.trace.events))
        self.assertEqual(table.column_names, self.trace.events.column_names)
        self.assertEqual(table.schema.metadata[b"pioscope.job"].decode(), self.trace.job)

    def test_its_files_say_of_the_job_what_the_commands_say(self):
        run("convert", "run.pio", "-o", "run.parquet")
        self.trace.to_parquet("told")
        ours, commands = ({name: text for name, text in parquet.read_schema(file).metadata.items() if b"pioscope" in name}
                          for file in (next(Path("told").iterdir()), "run.parquet"))
        self.assertIn(b"pioscope.epoch_ns", ours)
        self.assertEqual(ours, commands)

    def test_columns_without_values_stay_in_the_files(self):
        """dask refused folders `rank=__HIVE_DEFAULT_PARTITION__` without any other."""
        run("record", "-o", "posix.pio", "--", "sh", "-c", "echo > written")
        trace = pioscope.open("posix.pio")
        trace.to_parquet("posix", partition_by=["layer", "rank"])
        self.assertEqual([folder.name for folder in Path("posix").iterdir()], ["layer=posix"])
        self.assertTrue(list(Path("posix/layer=posix").glob("*.parquet")))
        table = pyarrow.dataset.dataset("posix", partitioning="hive").to_table()
        self.assertEqual(self.rows(table), self.rows(trace.events))
        self.assertEqual(table["rank"].null_count, len(trace))
        trace.to_parquet("ranks", partition_by="rank")
        self.assertEqual(pyarrow.dataset.dataset("ranks").to_table().num_rows, len(trace))

    @needs("dask", "pandas")
    def test_dask_reads_a_program_without_ranks(self):
        import dask.dataframe

        run("record", "-o", "alone.pio", "--", "sh", "-c", "echo > written")
        trace = pioscope.open("alone.pio")
        trace.to_parquet("alone", partition_by=["layer", "rank"])
        self.assertEqual(len(dask.dataframe.read_parquet("alone")), len(trace))

    def test_files_have_no_more_rows_than_told(self):
        self.trace.to_parquet("small", rows_per_file=100)
        sizes = [parquet.read_metadata(file).num_rows for file in Path("small").iterdir()]
        self.assertEqual((sum(sizes), max(sizes)), (len(self.trace), 100))

    @needs("duckdb")
    def test_events_without_the_value_have_a_partition_too(self):
        import duckdb

        with open("calls.csv", "w") as file:
            file.write("start_s,elapsed_s,call,rank,file,offset,size\n0,1,write,0,/d/f,0,4\n2,1,MPI_Barrier,0,,,\n")
        trace = pioscope.open("calls.csv")
        trace.to_parquet("by-file", partition_by="file")
        files = duckdb.sql("select file, count(*) from 'by-file/**/*.parquet' group by all order by file")
        self.assertEqual(files.fetchall(), [("/d/f", 1), (None, 1)])

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(pioscope.Error, "no column 'node': expected some of layer, call"):
            self.trace.to_parquet("by-node", partition_by=["node"])
        with self.assertRaisesRegex(pioscope.Error, "partition_by: 'layer' is there twice: expected each column once"):
            self.trace.to_parquet("twice", partition_by=["layer", "layer"])
        os.makedirs("full/of")
        with self.assertRaisesRegex(pioscope.Error, "full: is not empty"):
            self.trace.to_parquet("full")
        with self.assertRaisesRegex(pioscope.Error, "rows_per_file: expected a whole number from 1 to .*, not 0"):
            self.trace.to_parquet("none", rows_per_file=0)
