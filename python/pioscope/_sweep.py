"""Sweeps: a prediction at every combination of machines, strategies and hints."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow

from ._machine import Machine, found, several
from ._prediction import Prediction
from ._trace import Trace
from ._workload import Workload


class Executor(Protocol):
    """What carries out work elsewhere: an executor of concurrent.futures, mpi4py.futures.MPIPoolExecutor, a
    dask.distributed.Client, and what else is like these."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Begins a call, and gives something whose result() is what it returns."""


def sweep(
    what: Trace | Workload | str | os.PathLike[str],
    machines: Machine | str | os.PathLike[str] | Iterable[Machine | str | os.PathLike[str]],
    strategies: str | Iterable[str] = ("independent", "two-phase"),
    hints: Mapping[str, str | int | Iterable[str | int]] | None = None,
    executor: Executor | None = None,
    cpu_speed: float = 1.0,
    ranks_per_node: int | None = None,
) -> pyarrow.Table:
    """Predicts a program on every machine, under every strategy, with every combination of the hints' values. The program is a
    trace, the path of one, or a workload.

    Each hint has a value or several: {"cb_nodes": [1, 2, 4], "cb_buffer_size": 1 << 20}. The table has a row a prediction,
    machines outermost and hints innermost; columns for what was changed in the machines (Machine.with_()) and for the
    hints; and the numbers of a Prediction.

    All processors of this machine are used, or the workers of an executor: those of concurrent.futures,
    mpi4py.futures.MPIPoolExecutor, a dask.distributed.Client. Workers in other processes open the trace themselves, under
    the same path.

    >>> sp = pioscope.machine("sp-argonne")
    >>> machines = [sp.with_({"storage.io.count": count}) for count in [4, 8]]
    >>> table = pioscope.sweep("run.pio", machines, "two-phase", {"cb_nodes": [1, 2, 4]})
    >>> table.num_rows
    6
    >>> table.column_names[:4]
    ['machine', 'storage.io.count', 'strategy', 'cb_nodes']
    """
    if isinstance(what, (str, os.PathLike)):
        what = Trace(what)
    trace = what._native if isinstance(what, Trace) else what._trace
    each = [found(machine, trace) for machine in several(machines)]
    points = [
        Point(machine, strategy, combination, cpu_speed, ranks_per_node)
        for machine in each
        for strategy in _several(strategies)
        for combination in _combinations(hints or {})
    ]
    workload = what.workload() if isinstance(what, Trace) else what
    if executor is not None:
        return _table(points, _predicted_on(executor, workload, points))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return _table(points, _predicted_on(threads, workload, points))


@dataclasses.dataclass(frozen=True)
class Point:
    machine: Machine
    strategy: str
    hints: dict[str, str | int]
    cpu_speed: float
    ranks_per_node: int | None


# A task for each point would take longer to send than to do; with fewer tasks, workers would be idle at the end.
_TASKS = 128


def _predicted_on(executor: Executor, workload: Workload, points: Sequence[Point]) -> list[Prediction]:
    size = max(1, -(-len(points) // _TASKS))
    parts = [points[first:first + size] for first in range(0, len(points), size)]
    futures = [executor.submit(predicted, workload, part) for part in parts]
    try:
        return [prediction for future in futures for prediction in future.result()]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def predicted(workload: Workload, points: Sequence[Point]) -> list[Prediction]:
    return [
        workload.predict(point.machine, point.strategy, point.hints, point.cpu_speed, point.ranks_per_node)
        for point in points
    ]


def _several(values: Any) -> list[Any]:
    return [values] if isinstance(values, (str, int)) else list(values)


def _combinations(hints: Mapping[str, str | int | Iterable[str | int]]) -> list[dict[str, str | int]]:
    values = [_several(value) for value in hints.values()]
    return [dict(zip(hints, combination, strict=True)) for combination in itertools.product(*values)]


_NUMBERS = ["ranks", "makespan_s", "io_time_mean_s", "io_time_max_s", "bytes_read", "bytes_written", "bandwidth_bytes_per_s"]


def _table(points: Sequence[Point], predictions: Sequence[Prediction]) -> pyarrow.Table:
    changed = dict.fromkeys(key for point in points for key in point.machine.changes)
    hinted = dict.fromkeys(key for point in points for key in point.hints)
    columns: dict[str, list[Any]] = {"machine": [point.machine.name for point in points]}
    columns |= {key: _alike([point.machine.changes.get(key) for point in points]) for key in changed}
    columns["strategy"] = [point.strategy for point in points]
    columns |= {key: _alike([point.hints.get(key) for point in points]) for key in hinted}
    columns |= {name: [getattr(prediction, name) for prediction in predictions] for name in _NUMBERS}
    return pyarrow.table(columns)


def _alike(values: list[Any]) -> list[Any]:
    """Settings of different types, or lists, as texts: a column has one type."""
    types = {type(value) for value in values if value is not None}
    if len(types) <= 1 and types <= {bool, int, float, str} or types == {int, float}:
        return values
    return [value if value is None else str(value) for value in values]
