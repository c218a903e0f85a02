"""Rows as pyarrow tables whose columns are always the same, whatever was found."""

from __future__ import annotations

from typing import Any

import pyarrow

_TEXTS = {"kind", "title", "evidence", "place", "change", "machine", "simulated", "layer", "operation", "path", "host",
          "program", "function", "library"}
_LISTS = {"files": pyarrow.string(), "ranks": pyarrow.uint64(), "call_sites": pyarrow.string()}
_FLAGS = {"physical", "is_advised", "is_whole_host"}
_FRACTIONS = {"imbalance", "io_fraction", "median_io_fraction"}
TRAFFIC = [f"{level}{name}" for level in ("", "file_system_") for name in
           ("read_calls", "read_bytes", "read_s", "written_calls", "written_bytes", "written_s", "opens")]


def table(rows: list[dict[str, Any]], *names: str) -> pyarrow.Table:
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema([(name, _type(name)) for name in names]))


def _type(name: str) -> pyarrow.DataType:
    if name in _LISTS:
        return pyarrow.list_(_LISTS[name])
    if name in _TEXTS:
        return pyarrow.string()
    if name in _FLAGS:
        return pyarrow.bool_()
    return pyarrow.float64() if name in _FRACTIONS or name.endswith("_s") else pyarrow.uint64()
