"""The calls of a program, ready to be carried out on any machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from . import _native
from ._checks import U32, U64, mapping, positive, text, whole
from ._machine import Machine, found
from ._prediction import Hints, Prediction, hints_text
from ._words import html_of_pairs, ranks, shortened

if TYPE_CHECKING:
    from ._trace import Trace

# A trace's path (whatever folder is the current one), size and time of change, by which it is known again.
FileState: TypeAlias = "tuple[str, int, int]"
# Of a trace; or a generated workload's name, parameters and seed.
_Source: TypeAlias = "FileState | tuple[str, tuple[tuple[str, str], ...], int]"


class Workload:
    """The calls of a program: those of a trace (Trace.workload()), or generated (workload()). Predicting many cases from
    it reads the trace once. Can be sent to another process, which makes it again.

    >>> pioscope.workload("ior-hard", {"ranks": 4})
    <pioscope.Workload ior-hard ranks=4...: 2,064 calls of 4 ranks>
    """

    def __init__(self, native: _native.Workload, source: _Source, trace: _native.Trace | None = None) -> None:
        self._native = native
        self._source = source
        self._trace = trace

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def ranks(self) -> int:
        """Number of ranks; processes, if the program has no ranks."""
        return self._native.ranks

    def __len__(self) -> int:
        """Number of calls, of all ranks."""
        return self._native.call_count

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self._source,)

    def __repr__(self) -> str:
        return f"<pioscope.Workload {shortened(self.name)}: {len(self):,} calls of {ranks(self.ranks)}>"

    def _repr_html_(self) -> str:
        return html_of_pairs(self.name, [("ranks", self.ranks), ("calls", f"{len(self):,}")])

    def save(self, path: str | os.PathLike[str]) -> Trace:
        """Writes the calls as a trace in which they take no time, and opens it.

        >>> pioscope.workload("ior-hard", {"ranks": 4}).save("ior.pio").workload().ranks
        4
        """
        from ._trace import Trace

        name, parameters, number = self._source
        made = [("workload", name), ("seed", str(number)), *parameters] if isinstance(parameters, tuple) else []
        self._native.save(path, made)
        return Trace(path)

    def predict(
        self,
        machine: Machine | str | os.PathLike[str],
        strategy: str = "two-phase",
        hints: Hints | None = None,
        cpu_speed: float = 1.0,
        ranks_per_node: int | None = None,
    ) -> Prediction:
        """How long the program takes on a machine: a name of machines(), a file, or a Machine. "here" is the place where
        the trace's files are, as calibrate() measured it.

        hints is a dictionary as MPI_Info has them: {"cb_nodes": 4}. cpu_speed is how many times faster the program
        computes there than where it was recorded. Other threads can run meanwhile; sweep() predicts many cases at once.

        >>> workload = pioscope.workload("collapse", {"iterations": 20})
        >>> slow, fast = (workload.predict("sp-argonne", strategy) for strategy in ["independent", "two-phase"])
        >>> slow.io_time_mean_s > fast.io_time_mean_s
        True
        """
        machine = found(machine, self._trace)
        words = hints_text(hints)
        text("strategy", strategy, "two-phase")
        cpu_speed = positive("cpu_speed", cpu_speed)
        if ranks_per_node is not None:
            ranks_per_node = whole("ranks_per_node", ranks_per_node, 1, U32)
        return Prediction(**self._native.predict(machine._native, strategy, words, cpu_speed, ranks_per_node))


def workload(name: str, parameters: Mapping[str, str | int | float] | None = None, seed: int = 1) -> Workload:
    """A generated workload, of a name of workloads(); the command `pioscope workload show NAME` lists its parameters.

    >>> pioscope.workload("ior-easy", {"ranks": 4, "transfer": "1 MiB"}).ranks
    4
    """
    text("name", name, "ior-hard")
    given = mapping("parameters", parameters, "{'ranks': 64}")
    return _again((name, tuple((key, str(value)) for key, value in given.items()), whole("seed", seed, 0, U64)))


def workloads() -> dict[str, str]:
    """The workloads that can be generated: their names, and what each is.

    >>> "ior-hard" in pioscope.workloads()
    True
    """
    return dict(_native.workloads())


def of_trace(state: FileState, trace: _native.Trace) -> Workload:
    return Workload(trace.workload(), state, trace)


def state_of(path: str) -> FileState:
    state = os.stat(path)
    return os.path.abspath(path), state.st_size, state.st_mtime_ns


def opened_again(state: FileState) -> _native.Trace:
    """The trace whose file was opened before, maybe by another process. What is there now may be another one."""
    path = state[0]
    # Opened first: what takes its place after that does no harm.
    trace = _native.Trace(path)
    if state_of(path) != state:
        raise _native.Error(f"{path}: has changed since it was opened (expected the same trace: open it once more)")
    return trace


# A worker gets the same calls with every task of a sweep.
@functools.lru_cache(maxsize=2)
def _again(source: _Source) -> Workload:
    name, what, number = source
    if isinstance(what, tuple):
        return Workload(_native.Workload.generate(name, list(what), number), source)
    return of_trace((name, what, number), opened_again((name, what, number)))
