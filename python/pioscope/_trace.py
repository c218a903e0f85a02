"""Traces and predictions."""

import dataclasses
import os

import pyarrow

from . import _native
from ._explanation import Explanation


def open(path):
    """Opens a trace, or a log of Darshan, strace, fio or blktrace, a folder of Recorder, or a table of calls (CSV)."""
    return Trace(path)


class Trace:
    """A recorded program. Can be sent to another process, which opens the file again."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self._native = _native.Trace(self.path)

    def __reduce__(self):
        return Trace, (self.path,)

    def __len__(self):
        """Number of events."""
        return self._native.event_count

    def __repr__(self):
        return f"<pioscope.Trace {self.path!r}: {len(self):,} events in {self.duration_s:.3f} s of {self.job!r}>"

    @property
    def job(self):
        """Name of the job: its command."""
        return self._native.job

    @property
    def notes(self):
        """What the trace says of itself, as a dictionary."""
        return dict(self._native.notes)

    @property
    def duration_s(self):
        """From the start of the job to the end of its last call."""
        return self._native.duration_s

    @property
    def damage(self):
        """Where the trace stops being readable, in words; None if it is whole."""
        return self._native.damage

    @property
    def events(self):
        """All events as a pyarrow.Table, in order of their start. Needs about 185 bytes of memory an event.

        Of collective calls of MPI-IO, late_ns, library_ns and files_ns say where this rank's elapsed_ns went: waiting for
        ranks that came later, inside the MPI library, at the files. They are null for all other calls, and where the trace
        does not tell (files_ns alone: where it saw nothing of the files, whose time is then in library_ns)."""
        return pyarrow.Table.from_batches(self.batches(), schema=_schema()).unify_dictionaries()

    def batches(self):
        """The same, batch by batch (pyarrow.RecordBatch), in memory that does not grow with the trace."""
        schema = _schema()
        for index in range(self._native.batch_count):
            rows, columns = self._native.batch(index)
            yield pyarrow.RecordBatch.from_arrays([_array(rows, *column) for column in columns], schema=schema)

    def __arrow_c_stream__(self, requested_schema=None):
        """The same for any library that takes streams of Arrow (its PyCapsule protocol): polars.DataFrame(trace)."""
        reader = pyarrow.RecordBatchReader.from_batches(_schema(), self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def explain(self, machines=()):
        """Statistics of the trace, and the report.

        machines are names of pioscope.machines(), or files: what the findings' changes would gain there is predicted.
        """
        return Explanation(self._native.explain([os.fspath(machine) for machine in machines]))

    def predict(self, machine, strategy="two-phase", hints=None, cpu_speed=1.0, ranks_per_node=None):
        """How long the program takes on a machine (a name of pioscope.machines(), or a file).

        hints is a dictionary as MPI_Info has them: {"cb_nodes": 4}. cpu_speed is how many times faster the program
        computes there than where it was recorded. Other threads can run meanwhile: to predict many cases at once, map
        this over an executor of concurrent.futures.
        """
        words = ",".join(f"{key}={value}" for key, value in (hints or {}).items())
        return Prediction(**self._native.predict(os.fspath(machine), strategy, words, cpu_speed, ranks_per_node))


@dataclasses.dataclass(frozen=True)
class Prediction:
    """How long a program's I/O takes on a machine under a strategy. I/O time is that in calls of the program."""

    workload: str
    machine: str
    strategy: str
    hints: str
    ranks: int
    makespan_s: float
    io_time_mean_s: float
    io_time_max_s: float
    bytes_read: int
    bytes_written: int
    bandwidth_bytes_per_s: float
    time_by_operation_s: dict


_TEXT = pyarrow.dictionary(pyarrow.uint32(), pyarrow.string())
_TYPES = {"text": _TEXT, "uint64": pyarrow.uint64(), "int64": pyarrow.int64(), "bool": pyarrow.bool_()}


def _schema():
    return pyarrow.schema([(name, _TYPES[kind]) for name, kind in _native.columns()])


def _array(rows, _name, kind, valid, values, names):
    buffers = [valid and pyarrow.py_buffer(valid), pyarrow.py_buffer(values)]
    if kind != "text":
        return pyarrow.Array.from_buffers(_TYPES[kind], rows, buffers)
    numbers = pyarrow.Array.from_buffers(_TEXT.index_type, rows, buffers)
    return pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(names, pyarrow.string()))
