"""What a trace amounts to: tables, figures, the report."""

import html

import pyarrow


class Explanation:
    """Statistics of a trace. A notebook shows the report; print() gives it as text."""

    def __init__(self, native):
        self._native = native

    def __str__(self):
        return self._native.text()

    def _repr_html_(self):
        return _frame(self.html(), 900)

    def html(self):
        """The report as one HTML page that needs nothing else."""
        return self._native.html()

    def save(self, path):
        """Writes that page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    @property
    def duration_s(self):
        """Duration of the job."""
        return self._native.duration_s

    @property
    def read_bandwidth_bytes_per_s(self):
        """Bytes that the program read, over the time in which at least one process was reading. None if it read nothing."""
        return self._native.read_bandwidth_bytes_per_s

    @property
    def write_bandwidth_bytes_per_s(self):
        """The same of writes."""
        return self._native.write_bandwidth_bytes_per_s

    @property
    def figures(self):
        """The report's figures that have something to show, by name: time, rate, sizes, processes."""
        return {name: Figure(page) for name, page in self._native.figures()}

    @property
    def findings(self):
        """What costs time, costliest first: what is wrong, what it costs (lost_s, an estimate; None if unknown), what shows it, what helps."""
        return _table(self._native.findings(), "title", "lost_s", "evidence", "place", "change", "calls", "bytes", "time_s")

    @property
    def gains(self):
        """What the findings' changes would gain on the machines given to explain(): time in I/O, mean of the processes, as
        recorded (before_s) and with what was simulated (after_s). Findings whose change no simulation carries out have none."""
        return _table(self._native.gains(), "title", "machine", "simulated", "before_s", "after_s")

    @property
    def operations(self):
        """A row for every operation of every layer; physical are those that an upper layer caused."""
        return _table(self._native.operations(), "layer", "physical", "operation", "calls", "failed", "bytes", "time_s", "longest_s")

    @property
    def mpi_io(self):
        """Where the time of MPI-IO calls went, all processes together, a row for every operation: waiting for late ranks
        (late_s), inside the MPI library (library_s), at the files (files_s; None where the trace saw nothing of them: that
        time is in library_s then), and what is not known (unknown_s). The events have it call by call."""
        return _table(self._native.mpi_io(), "operation", "calls", "late_s", "library_s", "files_s", "unknown_s")

    @property
    def files(self):
        """A row for every file: what the program asked for, and what reached the file system."""
        return _table(self._native.files(), "path", "size_bytes", "processes", "imbalance", *_TRAFFIC)

    @property
    def processes(self):
        """A row for every process by which the job is measured; a rank each, if it has ranks."""
        return _table(self._native.processes(), "process", "rank", "pid", "program", "host", "lifetime_s", "io_s", "think_s", *_TRAFFIC)


class Figure:
    """A figure of the report, which a notebook shows."""

    def __init__(self, page):
        self.html = page

    def _repr_html_(self):
        return _frame(self.html, 460)


_TEXTS = {"title", "evidence", "place", "change", "machine", "simulated", "layer", "operation", "path", "host", "program"}
_TRAFFIC = [f"{level}{name}" for level in ("", "file_system_") for name in
            ("read_calls", "read_bytes", "read_s", "written_calls", "written_bytes", "written_s", "opens")]


def _type(name):
    if name in _TEXTS:
        return pyarrow.string()
    if name == "physical":
        return pyarrow.bool_()
    return pyarrow.float64() if name == "imbalance" or name.endswith("_s") else pyarrow.uint64()


def _table(rows, *names):
    """The same columns, whatever was found."""
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema([(name, _type(name)) for name in names]))


def _frame(page, height):
    """A page within a page: so that neither changes how the other looks."""
    page = html.escape(page, quote=True)
    return f'<iframe srcdoc="{page}" style="width: 100%; height: {height}px; border: 0"></iframe>'
