"""Sweeps: a prediction at every combination of machines, strategies and hints."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow

from ._checks import U32, plain, positive, whole
from ._machine import Machine, found, several
from ._prediction import Prediction, checked_hints
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
    if not isinstance(what, (Trace, Workload)):
        raise TypeError(f"what: expected a trace, the path of one or a workload, not {what!r}")
    cpu_speed = positive("cpu_speed", cpu_speed)
    if ranks_per_node is not None:
        ranks_per_node = whole("ranks_per_node", ranks_per_node, 1, U32)
    trace = what._native if isinstance(what, Trace) else what._trace
    each = [found(machine, trace) for machine in several(machines)]
    values = {name: _several(value) for name, value in checked_hints(hints).items()}
    of_hints = [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
    points = [
        Point(machine, strategy, combination, cpu_speed, ranks_per_node)
        for machine, strategy, combination in itertools.product(each, _several(strategies), of_hints)
    ]
    settings = _settings(each, values)
    workload = what.workload() if isinstance(what, Trace) else what
    if executor is not None:
        return _table(points, settings, _predicted_on(executor, workload, points))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return _table(points, settings, _predicted_on(threads, workload, points))


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
    """One value is a list of one."""
    is_alone = isinstance(values, (str, bytes)) or not isinstance(values, Iterable)
    return [plain(value) for value in ([values] if is_alone else values)]


_Types: TypeAlias = dict[str, pyarrow.DataType]

_NUMBERS = {
    "ranks": pyarrow.int64(), "makespan_s": pyarrow.float64(), "io_time_mean_s": pyarrow.float64(),
    "io_time_max_s": pyarrow.float64(), "bytes_read": pyarrow.int64(), "bytes_written": pyarrow.int64(),
    "bandwidth_bytes_per_s": pyarrow.float64(),
}


def _settings(machines: Sequence[Machine], hints: Mapping[str, Sequence[Any]]) -> tuple[_Types, _Types]:
    """The types of what was changed in machines, and of hints: by what was given, also where there is no point."""
    changed = dict.fromkeys(key for machine in machines for key in machine.changes)
    return ({key: _type_of([machine.changes.get(key) for machine in machines]) for key in changed},
            {key: _type_of(values) for key, values in hints.items()})


def _type_of(values: Sequence[Any]) -> pyarrow.DataType:
    """A column has one type: settings of different types, or lists, are texts."""
    types = {type(value) for value in values if value is not None}
    if types and (len(types) == 1 and types <= {bool, int, float, str} or types == {int, float}):
        return pyarrow.infer_type(values)
    return pyarrow.string()


def _table(points: Sequence[Point], settings: tuple[_Types, _Types], predictions: Sequence[Prediction]) -> pyarrow.Table:
    of_machines, of_hints = settings
    columns = {"machine": _array([point.machine.name for point in points], pyarrow.string())}
    columns |= {key: _array([point.machine.changes.get(key) for point in points], kind) for key, kind in of_machines.items()}
    columns["strategy"] = _array([point.strategy for point in points], pyarrow.string())
    columns |= {key: _array([point.hints.get(key) for point in points], kind) for key, kind in of_hints.items()}
    columns |= {name: _array([getattr(prediction, name) for prediction in predictions], kind) for name, kind in _NUMBERS.items()}
    return pyarrow.table(columns)


def _array(values: list[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    if kind == pyarrow.string():
        values = [value if value is None else str(value) for value in values]
    return pyarrow.array(values, kind)
