"""Two runs beside each other."""

from __future__ import annotations

import os

import pyarrow

from . import _native
from ._explanation import Explanation
from ._trace import Trace
from ._words import html_of_rows, seconds


class Difference:
    """What changed from one run to another; print() tells it as the command does.

    >>> difference = pioscope.diff("run.pio", "run.pio")
    >>> difference
    <pioscope.Difference: run ... to ..., findings ... to ...>
    >>> "about the same" in str(difference)
    True
    """

    def __init__(self, before: Explanation, after: Explanation) -> None:
        self.before = before
        self.after = after

    def __str__(self) -> str:
        return _native.diff_text(self.before._native, self.after._native)

    def __repr__(self) -> str:
        before, after = self.before, self.after
        return (f"<pioscope.Difference: run {seconds(before.duration_s)} to {seconds(after.duration_s)}, "
                f"findings {len(before.findings)} to {len(after.findings)}>")

    def _repr_html_(self) -> str:
        rows = [[f"{row['layer']} {row['operation']}", *(f"{row[f'calls_{run}']:,}" for run in _RUNS),
                 *(seconds(row[f"time_s_{run}"]) for run in _RUNS)] for row in self.operations.to_pylist()]
        title = f"run: {seconds(self.before.duration_s)} before, {seconds(self.after.duration_s)} after"
        return html_of_rows(title, ["operation", "calls before", "after", "time before", "after"], rows)

    @property
    def operations(self) -> pyarrow.Table:
        """Calls, bytes and time of every operation of both runs, in columns such as time_s_before and time_s_after; 0 where
        a run does not have it.

        >>> pioscope.diff("run.pio", "run.pio").operations.column_names[:5]
        ['layer', 'physical', 'operation', 'calls_before', 'calls_after']
        """
        key = ["layer", "physical", "operation"]
        runs = [{tuple(row[name] for name in key): row for row in explanation.operations.to_pylist()}
                for explanation in (self.before, self.after)]
        rows = []
        for of in dict.fromkeys([*runs[0], *runs[1]]):
            row = dict(zip(key, of, strict=True))
            for amount in ("calls", "bytes", "time_s"):
                for name, run in zip(_RUNS, runs, strict=True):
                    row[f"{amount}_{name}"] = run[of][amount] if of in run else 0
            rows.append(row)
        types = [("layer", pyarrow.string()), ("physical", pyarrow.bool_()), ("operation", pyarrow.string())]
        for amount, kind in [("calls", pyarrow.uint64()), ("bytes", pyarrow.uint64()), ("time_s", pyarrow.float64())]:
            types += [(f"{amount}_{name}", kind) for name in _RUNS]
        return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(types))


_RUNS = ("before", "after")


def diff(
    before: Trace | Explanation | str | os.PathLike[str], after: Trace | Explanation | str | os.PathLike[str]
) -> Difference:
    """Compares two runs: traces, explanations, or files."""
    return Difference(_explained(before), _explained(after))


def _explained(run: Trace | Explanation | str | os.PathLike[str]) -> Explanation:
    if isinstance(run, Explanation):
        return run
    return (run if isinstance(run, Trace) else Trace(run)).explain()
