"""What a prediction says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _plots
from ._checks import mapping
from ._words import html_of_pairs, ranks, seconds, shortened, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Hints: TypeAlias = "Mapping[str, str | int]"
"""Hints as MPI_Info has them: {"cb_nodes": 4}."""


@dataclasses.dataclass(frozen=True, repr=False)
class Prediction:
    """How long a program's I/O takes on a machine under a strategy. I/O time is that in calls of the program.

    >>> prediction = pioscope.workload("ior-hard", {"ranks": 4}).predict("sp-argonne", hints={"cb_nodes": 2})
    >>> prediction
    <pioscope.Prediction ior-hard ... on sp-argonne, two-phase (cb_nodes=2): ... of I/O, 4 ranks>
    >>> prediction.io_time_mean_s <= prediction.io_time_max_s <= prediction.makespan_s
    True
    """

    workload: str
    machine: str
    strategy: str
    hints: str
    ranks: int
    makespan_s: float
    """When the last rank is done."""
    io_time_mean_s: float
    """Time in I/O calls, mean of the ranks."""
    io_time_max_s: float
    """The same of the rank that has most."""
    bytes_read: int
    bytes_written: int
    bandwidth_bytes_per_s: float
    """Bytes read and written, over the time with a read or write under way on any rank."""
    time_by_operation_s: dict[str, float]
    """What reaches the file system, and the messages, all ranks together."""
    breakdown_s: dict[str, float]
    """Where the mean I/O time of a rank goes."""

    def __repr__(self) -> str:
        hints = f" ({self.hints})" if self.hints else ""
        return (f"<pioscope.Prediction {shortened(self.workload)} on {self.machine}, {self.strategy}{hints}: "
                f"{seconds(self.io_time_mean_s)} of I/O, {ranks(self.ranks)}>")

    def _repr_html_(self) -> str:
        moved = f"{size(self.bytes_read)} read, {size(self.bytes_written)} written"
        parts = ", ".join(f"{part} {seconds(time_s)}" for part, time_s in self.breakdown_s.items())
        return html_of_pairs(f"{self.workload} on {self.machine}", [
            ("strategy", self.strategy),
            ("hints", self.hints or None),
            ("ranks", self.ranks),
            ("I/O time", f"mean {seconds(self.io_time_mean_s)}, longest {seconds(self.io_time_max_s)}"),
            ("of which", parts or None),
            ("run", seconds(self.makespan_s)),
            ("moved", f"{moved}, at {size(self.bandwidth_bytes_per_s)}/s"),
        ])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Where the mean I/O time of a rank goes, as bars. Needs matplotlib."""
        title = f"{shortened(self.workload)} on {self.machine}, {self.strategy}"
        return _plots.bars(ax, self.breakdown_s, f"{title}: {seconds(self.io_time_mean_s)} of I/O", "mean of the ranks, s")


def hints_text(hints: Hints | None) -> str:
    return ",".join(f"{key}={value}" for key, value in checked_hints(hints).items())


def checked_hints(hints: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return mapping("hints", hints, "{'cb_nodes': 4}")
