"""What costs time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, overload

import pyarrow

from ._tables import table
from ._words import html_of_pairs, html_of_rows, seconds


@dataclasses.dataclass(frozen=True, repr=False)
class Finding:
    """Something that costs time, and what would help."""

    kind: str
    """Which sort it is of, such as small-writes. The title says it in words."""
    title: str
    is_advised: bool
    """False if its change is predicted to gain nothing on any of the machines given to explain()."""
    lost_s: float | None
    """What it costs of the run: an estimate. None if that is not known."""
    gain_s: float | None
    """What its change saves of a process's I/O, predicted: on that of the machines given to explain() where it saves most.
    None without a machine, and of changes that cannot be simulated."""
    files: list[str]
    """The files, those that took most first."""
    ranks: list[int]
    """The ranks that took most, five at most."""
    call_sites: list[str]
    """The lines of a Python program that opened the files, those that took most first, as far as they are known."""
    processes: int
    """How many processes there are in all."""
    evidence: str
    place: str
    """Files and processes in words."""
    change: str
    """What would help."""
    calls: int
    bytes: int
    time_s: float
    """What the calls took, all processes together."""

    def __repr__(self) -> str:
        return f"<pioscope.Finding {self.kind}: {self._price()}>"

    def _repr_html_(self) -> str:
        return html_of_pairs(self.title, [
            ("cost", self._price()),
            ("evidence", self.evidence),
            ("place", self.place or None),
            ("change", self._advice()),
            ("gain", None if self.gain_s is None else seconds(self.gain_s)),
        ])

    def _advice(self) -> str:
        return self.change if self.is_advised else f"not advised, for it is predicted to gain nothing: {self.change}"

    def _price(self) -> str:
        return "cost not known" if self.lost_s is None else f"costs {seconds(self.lost_s)}"


class Findings(Sequence[Finding]):
    """The findings of an explanation, costliest first, then those whose change is not advised. Libraries that take Arrow take them as the table that they are, too.

    >>> pioscope.workload("ior-hard", {"ranks": 4}).save("hard.pio").explain().findings.table.column_names[:4]
    ['kind', 'title', 'is_advised', 'lost_s']
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    @property
    def table(self) -> pyarrow.Table:
        """A row a finding, a column for each of its values."""
        return table(self._rows, *(field.name for field in dataclasses.fields(Finding)))

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dictionary a finding."""
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame."""
        return self.table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Findings: ...

    @overload
    def __getitem__(self, index: str) -> pyarrow.ChunkedArray: ...

    def __getitem__(self, index: int | slice | str) -> Finding | Findings | pyarrow.ChunkedArray:
        """A finding by its place, some by a slice, a column of the table by its name."""
        if isinstance(index, str):
            return self.table[index]
        if isinstance(index, slice):
            return Findings(self._rows[index])
        return Finding(**self._rows[index])

    def __iter__(self) -> Iterator[Finding]:
        return (Finding(**row) for row in self._rows)

    def __repr__(self) -> str:
        return f"<pioscope.Findings: {', '.join(map(repr, self)) or 'none'}>"

    def _repr_html_(self) -> str:
        names = ["finding", "cost", "gain", "place", "change"]
        rows = [[finding.title, finding._price(), "not known" if finding.gain_s is None else seconds(finding.gain_s),
                 finding.place, finding._advice()] for finding in self]
        return html_of_rows("Findings" if rows else "No findings", names, rows)
