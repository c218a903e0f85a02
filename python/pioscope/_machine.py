"""Machines: what I/O costs on a computer."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from . import _native
from ._checks import mapping, plain
from ._checks import text as checked
from ._words import html_of_pairs

Value: TypeAlias = "str | int | float | bool | Sequence[str | int | float | bool]"
"""A value of a description: a text needs no quotes, a list is a list."""


class Machine:
    """A machine's description, which predict(), explain() and sweep() take. It never changes; make it by machine().

    >>> machine = pioscope.machine("sp-argonne")
    >>> machine
    <pioscope.Machine sp-argonne: 120 nodes of 1 core, 8 I/O nodes>
    >>> machine.with_({"storage.io.count": 16}).io_nodes
    16
    """

    def __init__(self, native: _native.Machine, changes: Mapping[str, Value] | None = None) -> None:
        self._native = native
        self._changes = dict(changes or {})

    @classmethod
    def from_toml(cls, text: str) -> Machine:
        """The machine that a text describes, as machine files are written.

        >>> pioscope.Machine.from_toml(pioscope.machine("sp-argonne").to_toml()) == pioscope.machine("sp-argonne")
        True
        """
        return cls(_native.Machine.parse("the description", checked("text", text, 'name = "mine"')))

    def with_(self, changes: Mapping[str, Value]) -> Machine:
        """This machine with some keys of its description changed. Tables are named with dots.

        >>> pioscope.machine("sp-argonne").with_({"network.link.bandwidth": "10 MB/s", "storage.io.count": 4}).changes
        {'network.link.bandwidth': '10 MB/s', 'storage.io.count': 4}
        """
        changes = mapping("changes", changes, "{'storage.io.count': 16}")
        texts = [(key, _text(key, value)) for key, value in changes.items()]
        return Machine(self._native.with_all(texts), {**self._changes, **changes})

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def source(self) -> str:
        """Where the numbers come from."""
        return self._native.source

    @property
    def nodes(self) -> int:
        """Number of compute nodes."""
        return self._native.nodes

    @property
    def cores(self) -> int:
        """Processor cores of each node."""
        return self._native.cores

    @property
    def io_nodes(self) -> int | None:
        """Number of I/O nodes or servers. None where files are in the nodes' own file system, or nothing is known of them."""
        return self._native.io_nodes

    @property
    def changes(self) -> dict[str, Value]:
        """What with_() changed."""
        return dict(self._changes)

    def to_toml(self) -> str:
        """The description, as machine files are written."""
        return self._native.to_toml()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the description to a file, which predict() and the command take as a machine."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_toml())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.name, self.to_toml(), tuple(self._changes.items()))

    def __repr__(self) -> str:
        return f"<pioscope.Machine {self.name}: {self._what()}>"

    def _repr_html_(self) -> str:
        changes = [(f"{key} (changed)", value) for key, value in self._changes.items()]
        return html_of_pairs(self.name, [("machine", self._what()), *changes, ("source", self.source)])

    def _what(self) -> str:
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        io_nodes = {None: "", 1: ", 1 I/O node"}.get(self.io_nodes, f", {self.io_nodes} I/O nodes")
        return f"{nodes} of {cores}{io_nodes}"


def machine(name: str | os.PathLike[str]) -> Machine:
    """The machine of a name of machines(), or of a file. "here" is the place where the current folder is, as calibrate()
    measured it.

    >>> pioscope.machine("sp-argonne").nodes
    120
    >>> pioscope.machine("nowhere")
    Traceback (most recent call last):
    ...
    pioscope.Error: no machine 'nowhere' (a path of a .toml file, or one of: ...)
    """
    return found(name)


def found(machine: Machine | str | os.PathLike[str], trace: _native.Trace | None = None) -> Machine:
    """The machine that somebody means; "here" is the place where the files of a trace are, or the current folder."""
    if isinstance(machine, Machine):
        return machine
    if not isinstance(machine, (str, os.PathLike)):
        raise TypeError(f"expected a machine, the name of one or the path of its file, not {machine!r}")
    if machine == "here":
        return Machine(_native.Machine.of_folder(os.curdir) if trace is None else _native.Machine.of_trace(trace))
    # Without a folder in it, the name of a file may look like that of a machine.
    name = machine if isinstance(machine, str) else os.path.join(os.curdir, machine)
    return Machine(_native.Machine.find(name))


# A worker gets the same machine with many of its tasks.
@functools.lru_cache(maxsize=64)
def _parsed(name: str, text: str) -> _native.Machine:
    return _native.Machine.parse(name, text)


def _restored(name: str, text: str, changes: tuple[tuple[str, Value], ...]) -> Machine:
    return Machine(_parsed(name, text), dict(changes))


def several(machines: Machine | str | os.PathLike[str] | Iterable[Machine | str | os.PathLike[str]]) -> list[
        Machine | str | os.PathLike[str]]:
    """One machine is a list of one."""
    # What is neither is told of where it is looked for.
    alone = isinstance(machines, (Machine, str, os.PathLike)) or not isinstance(machines, Iterable)
    return [machines] if alone else list(machines)  # type: ignore[list-item, arg-type]


def _text(key: str, value: Value) -> str:
    """As a description writes it. A text that stands alone is passed on as it is."""
    value = plain(value)
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value if isinstance(value, (bool, int, float)) else [plain(one) for one in value])
    except TypeError:
        raise TypeError(f"{key}: expected a text, a number, True or False, or a list of these, not {value!r}") from None
