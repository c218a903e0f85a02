"""What a trace amounts to: tables, figures, the report."""

from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING

import pyarrow

from . import _native, _plots
from ._findings import Findings
from ._tables import TRAFFIC, table
from ._words import seconds, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Explanation:
    """Statistics of a trace. A notebook shows the report; print() gives it as text.

    >>> explanation = pioscope.open("run.pio").explain()
    >>> explanation
    <pioscope.Explanation of ...: ... events in ..., ... finding...>
    >>> "Findings" in str(explanation)
    True
    """

    def __init__(self, native: _native.Explanation) -> None:
        self._native = native

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        findings = [finding for finding in self.findings if finding.is_advised]
        costliest = f", first {findings[0].kind}" if findings else ""
        number = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
        return (f"<pioscope.Explanation of {shortened(self._native.job)!r}: {self._native.event_count:,} events in "
                f"{seconds(self.duration_s)}, {number}{costliest}>")

    def _repr_html_(self) -> str:
        return _frame(self.html(), 900)

    def html(self) -> str:
        """The report as one HTML page that needs nothing else."""
        return self._native.html()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes that page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    @property
    def duration_s(self) -> float:
        """Duration of the job."""
        return self._native.duration_s

    @property
    def read_bandwidth_bytes_per_s(self) -> float | None:
        """Bytes that the program read, over the time in which at least one process was reading. None if it read nothing."""
        return self._native.read_bandwidth_bytes_per_s

    @property
    def write_bandwidth_bytes_per_s(self) -> float | None:
        """The same of writes."""
        return self._native.write_bandwidth_bytes_per_s

    @property
    def figures(self) -> dict[str, Figure]:
        """The report's figures that have something to show, by name: time, rate, sizes, processes."""
        return {name: Figure(name, page) for name, page in self._native.figures()}

    @property
    def findings(self) -> Findings:
        """What costs time, costliest first: what is wrong, what it costs (lost_s, an estimate; None if unknown), what
        shows it, on which files and ranks, what helps, and what that gains on the machines given to explain(). Last come those
        whose change is predicted to gain nothing there (is_advised is False); without machines there are none."""
        return Findings(self._native.findings())

    @property
    def gains(self) -> pyarrow.Table:
        """What the findings' changes would gain on the machines given to explain(): time in I/O, mean of the processes, as
        recorded (before_s) and with what was simulated (after_s). Findings whose change no simulation carries out have none."""
        return table(self._native.gains(), "title", "machine", "simulated", "before_s", "after_s")

    @property
    def rate(self) -> pyarrow.Table:
        """Bytes a second that moved in each of up to 256 equal spans of time: what the program asked for, and what reached
        the files. A call's bytes are spread evenly over its time.

        >>> pioscope.open("run.pio").explain().rate.column_names[:2]
        ['start_s', 'span_s']
        """
        return table(self._native.rate(), "start_s", "span_s", *_RATES)

    @property
    def operations(self) -> pyarrow.Table:
        """A row for every operation of every layer; physical are those that an upper layer caused."""
        names = ["layer", "physical", "operation", "calls", "failed", "bytes", "time_s", "longest_s"]
        return table(self._native.operations(), *names)

    @property
    def mpi_io(self) -> pyarrow.Table:
        """Where the time of MPI-IO calls went, all processes together, a row for every operation: waiting for late ranks
        (late_s), inside the MPI library (library_s), at the files (files_s; None where the trace saw nothing of them: that
        time is in library_s then), and what is not known (unknown_s). The events have it call by call."""
        return table(self._native.mpi_io(), "operation", "calls", "late_s", "library_s", "files_s", "unknown_s")

    @property
    def files(self) -> pyarrow.Table:
        """A row for every file: what the program asked for, and what reached the file system."""
        return table(self._native.files(), "path", "size_bytes", "processes", "imbalance", *TRAFFIC)

    @property
    def processes(self) -> pyarrow.Table:
        """A row for every process by which the job is measured; a rank each, if it has ranks."""
        names = ["process", "rank", "pid", "program", "host", "lifetime_s", "io_s", "think_s"]
        return table(self._native.processes(), *names, *TRAFFIC)

    @property
    def apart(self) -> pyarrow.Table:
        """A row for every rank whose time in I/O was not as that of the others for a while, or for a host where half of the
        ranks were so: those by most time first, ten at most. The part of that time that they spent in I/O is their mean
        (io_fraction), beside that of the median of all ranks. Jobs of fewer than 65 ranks have none.

        >>> pioscope.open("run.pio").explain().apart.column_names[:3]
        ['host', 'ranks', 'is_whole_host']
        """
        names = ["host", "ranks", "is_whole_host", "from_s", "until_s", "io_fraction", "median_io_fraction"]
        return table(self._native.apart(), *names)

    @property
    def call_sites(self) -> pyarrow.Table:
        """A row for every line of a Python program that opened files, by itself or through a library: opens, what was read
        and written through them, and how long all their calls took, those that took the most time first.

        >>> pioscope.open("run.pio").explain().call_sites.column_names[:4]
        ['path', 'line', 'function', 'library']
        """
        moved = ("read_from_memory", "read_from_storage", "written")
        amounts = [f"{name}_{amount}" for name in moved for amount in ("calls", "bytes", "s")]
        return table(self._native.call_sites(), "path", "line", "function", "library", "opens", "open_s", *amounts, "time_s")

    def plot_rate(self, ax: Axes | None = None) -> Axes:
        """What the program read and wrote over time, bytes a second. Needs matplotlib."""
        rate = self.rate.to_pydict()
        ends = [start + span for start, span in zip(rate["start_s"], rate["span_s"], strict=True)]
        moved = {"read": rate["read_bytes_per_s"], "written": rate["written_bytes_per_s"]}
        amounts = {name: values for name, values in moved.items() if any(values)}
        title = f"Data rate of {shortened(self._native.job)}"
        return _plots.rates(ax, [*rate["start_s"][:1], *ends], amounts, title)

    def plot_findings(self, ax: Axes | None = None) -> Axes:
        """What the findings cost of the run, as bars; those whose cost is not known, or whose change is not advised, are left
        out. Needs matplotlib."""
        advised = (finding for finding in self.findings if finding.is_advised)
        costs = {finding.title: finding.lost_s for finding in advised if finding.lost_s is not None}
        title = f"What costs time, of {seconds(self.duration_s)}"
        return _plots.bars(ax, costs, title, "estimated cost, s of the run")


class Figure:
    """A figure of the report, which a notebook shows."""

    def __init__(self, name: str, page: str) -> None:
        self.name = name
        self.html = page

    def __repr__(self) -> str:
        return f"<pioscope.Figure {self.name}>"

    def _repr_html_(self) -> str:
        return _frame(self.html, 460, _AS_HIGH_AS_ITS_PAGE)


_RATES = [f"{level}{name}_bytes_per_s" for level in ("", "file_system_") for name in ("read", "written")]


# Where notebooks let a frame run it; else the frame keeps its height.
_AS_HIGH_AS_ITS_PAGE = ' onload="this.style.height = this.contentDocument.body.getBoundingClientRect().bottom + 24 + \'px\'"'


def _frame(page: str, height: int, more: str = "") -> str:
    """A page within a page: so that neither changes how the other looks."""
    page = html.escape(page, quote=True)
    return f'<iframe srcdoc="{page}" style="width: 100%; height: {height}px; border: 0"{more}></iframe>'
