"""Traces."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow

from . import _native
from ._checks import U64, whole
from ._explanation import Explanation
from ._machine import Machine, found, several
from ._prediction import Hints, Prediction
from ._words import html_of_pairs, seconds, shortened
from ._workload import FileState, Workload, of_trace, opened_again, state_of


def open(path: str | os.PathLike[str]) -> Trace:
    """Opens a trace, or a log of another tool.

    That is a log of Darshan, DFTracer, strace, fio or blktrace, a folder of logs of DFTracer, Recorder or fio, or a
    table of calls (CSV).

    >>> trace = pioscope.open("run.pio")
    >>> trace.events.num_rows == len(trace)
    True
    >>> pioscope.open("nowhere.pio")
    Traceback (most recent call last):
    ...
    pioscope.Error: nowhere.pio: ...
    """
    return Trace(path)


class Trace:
    """A recorded program. Can be sent to another process, which opens the file again; that it has not changed is made sure.

    >>> pioscope.open("run.pio")
    <pioscope.Trace 'run.pio': ... events in ... of ...>
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        # Before it is opened: what takes its place meanwhile is seen to be another. Why there is none, the opening says.
        with contextlib.suppress(OSError, ValueError):
            self._state = state_of(self.path)
        self._native = _native.Trace(self.path)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self._state,)

    def __len__(self) -> int:
        """Number of events."""
        return self._native.event_count

    def __repr__(self) -> str:
        job = shortened(self.job)
        return f"<pioscope.Trace {self.path!r}: {len(self):,} events in {seconds(self.duration_s)} of {job!r}>"

    def _repr_html_(self) -> str:
        return html_of_pairs(self.path, [
            ("job", self.job),
            ("events", f"{len(self):,}"),
            ("duration", seconds(self.duration_s)),
            ("damage", self.damage),
        ])

    @property
    def job(self) -> str:
        """Name of the job: its command."""
        return self._native.job

    @property
    def notes(self) -> dict[str, str]:
        """What the trace says of itself, as a dictionary. Notes of the same name are the lines of one text."""
        return dict(self._native.notes)

    @property
    def duration_s(self) -> float:
        """From the start of the job to the end of its last call."""
        return self._native.duration_s

    @property
    def damage(self) -> str | None:
        """Where the trace stops being readable, in words; None if it is whole."""
        return self._native.damage

    @property
    def events(self) -> pyarrow.Table:
        """All events as a pyarrow.Table, in order of their start. Needs about 185 bytes of memory an event.

        Of collective calls of MPI-IO, late_ns, library_ns and files_ns say where this rank's elapsed_ns went: waiting for
        ranks that came later, inside the MPI library, at the files. They are null for all other calls, and where the trace
        does not tell (files_ns alone: where it saw nothing of the files, whose time is then in library_ns).

        >>> import pyarrow.compute as pc
        >>> events = pioscope.open("run.pio").events
        >>> events.filter(pc.equal(events["op"], "write")).num_rows > 0
        True
        """
        return pyarrow.Table.from_batches(self.batches(), schema=_schema()).unify_dictionaries()

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The same, batch by batch (pyarrow.RecordBatch), in memory that does not grow with the trace.

        >>> trace = pioscope.open("run.pio")
        >>> sum(batch.num_rows for batch in trace.batches()) == len(trace)
        True
        """
        schema = _schema()
        for index in range(self._native.batch_count):
            rows, columns = self._native.batch(index)
            yield pyarrow.RecordBatch.from_arrays([_array(rows, *column) for column in columns], schema=schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The same for any library that takes streams of Arrow (its PyCapsule protocol): polars.DataFrame(trace)."""
        reader = pyarrow.RecordBatchReader.from_batches(_schema(), self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_parquet(
        self, folder: str | os.PathLike[str], partition_by: str | Sequence[str] = (), rows_per_file: int = 1 << 22
    ) -> None:
        """Writes the events as Parquet files of at most so many rows into a new folder. It gets a folder COLUMN=VALUE for
        every value of the columns of partition_by, as DuckDB, dask, Spark and Polars read them. Columns of partition_by
        that have no value in any event, as the ranks of a program without MPI, stay columns of the files.

        Needs memory for some 65,000 rows of each partition, however long the trace is.

        >>> pioscope.open("run.pio").to_parquet("events", partition_by=["layer", "rank"])
        >>> sorted(os.listdir("events"))[0]
        'layer=mpi-io'
        """
        import pyarrow.dataset

        partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        schema = _plain_schema().with_metadata(self._metadata())
        for name in partition_by:
            if name not in schema.names:
                raise _native.Error(f"partition_by: no column {name!r}: expected some of {', '.join(schema.names)}")
            if partition_by.count(name) > 1:
                raise _native.Error(f"partition_by: {name!r} is there twice: expected each column once")
        rows_per_file = whole("rows_per_file", rows_per_file, 1, U64)
        if os.path.isdir(folder) and os.listdir(folder):
            raise _native.Error(f"{os.fspath(folder)}: is not empty: expected a new folder")
        plain = (batch.cast(_plain_schema()) for batch in self.batches())
        # A column of folders that all stand for no value has no type, and pyarrow and dask refuse such folders.
        without_values = self._without_values(partition_by)
        partitions = pyarrow.schema([schema.field(name) for name in partition_by if name not in without_values])
        pyarrow.dataset.write_dataset(
            pyarrow.RecordBatchReader.from_batches(schema, plain),
            folder,
            format="parquet",
            file_options=pyarrow.dataset.ParquetFileFormat().make_write_options(compression="zstd"),
            partitioning=pyarrow.dataset.partitioning(partitions, flavor="hive"),
            # A job may have more ranks than a process may have open files.
            max_partitions=1 << 20,
            max_open_files=256,
            max_rows_per_file=rows_per_file,
            min_rows_per_group=min(_ROWS_PER_GROUP, rows_per_file),
            max_rows_per_group=min(16 * _ROWS_PER_GROUP, rows_per_file),
        )

    def explain(
        self, machines: Machine | str | os.PathLike[str] | Iterable[Machine | str | os.PathLike[str]] = ()
    ) -> Explanation:
        """Statistics of the trace, and the report.

        machines are one or several names of machines(), files, or Machines: what the findings' changes would gain there is predicted.

        >>> explanation = pioscope.open("run.pio").explain(["sp-argonne"])
        >>> explanation.operations.num_rows > 0
        True
        """
        return Explanation(self._native.explain([found(machine, self._native)._native for machine in several(machines)]))

    def workload(self) -> Workload:
        """The calls that the program made, ready to be predicted on any machine: many cases at once, or one by one."""
        return of_trace(self._state, self._native)

    def predict(
        self,
        machine: Machine | str | os.PathLike[str],
        strategy: str = "two-phase",
        hints: Hints | None = None,
        cpu_speed: float = 1.0,
        ranks_per_node: int | None = None,
    ) -> Prediction:
        """How long the program takes on a machine: as Workload.predict() says.

        >>> pioscope.open("run.pio").predict("sp-argonne", hints={"cb_nodes": 2}).hints
        'cb_nodes=2'
        """
        return self.workload().predict(machine, strategy, hints, cpu_speed, ranks_per_node)

    def _without_values(self, names: Sequence[str]) -> set[str]:
        """Those of the columns that are null in every event. Looks at no more batches than it takes to find a value of each."""
        found = set(names)
        batches = self.batches()
        while found and (batch := next(batches, None)) is not None:
            found = {name for name in found if batch.column(name).null_count == batch.num_rows}
        return found

    def _metadata(self) -> dict[str, str]:
        """As the command's Parquet files have it."""
        notes = {f"pioscope.note.{name}": value for name, value in self.notes.items()}
        return {"pioscope.job": self.job, "pioscope.epoch_ns": str(self._native.epoch_ns), **notes}


def _again(state: FileState) -> Trace:
    trace = Trace.__new__(Trace)
    trace.path, trace._state, trace._native = state[0], state, opened_again(state)
    return trace


# Those of a block of a trace.
_ROWS_PER_GROUP = 1 << 16
_TEXT = pyarrow.dictionary(pyarrow.uint32(), pyarrow.string())
_TYPES = {"text": _TEXT, "uint64": pyarrow.uint64(), "int64": pyarrow.int64(), "bool": pyarrow.bool_()}


def _schema() -> pyarrow.Schema:
    return pyarrow.schema([(name, _TYPES[kind]) for name, kind in _native.columns()])


def _plain_schema() -> pyarrow.Schema:
    """The same with texts that stand for themselves: every file of a folder would have dictionaries of its own."""
    plain = {**_TYPES, "text": pyarrow.string()}
    return pyarrow.schema([(name, plain[kind]) for name, kind in _native.columns()])


def _array(rows: int, _name: str, kind: str, valid: bytes | None, values: bytes, names: list[str] | None) -> Any:
    buffers = [valid and pyarrow.py_buffer(valid), pyarrow.py_buffer(values)]
    if kind != "text":
        return pyarrow.Array.from_buffers(_TYPES[kind], rows, buffers)
    numbers = pyarrow.Array.from_buffers(_TEXT.index_type, rows, buffers)
    return pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(names, pyarrow.string()))
