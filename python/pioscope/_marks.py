"""What a program says of itself while it is recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, SupportsIndex

from ._checks import U64, text, whole

# The recorder's functions; None before the first mark, False where nothing is recorded.
_recorder: Any = None


def mark(name: str, number: SupportsIndex = 0) -> None:
    """Marks this moment, which lasts until the next mark of the same name: an epoch, a step.

    Costs about a microsecond, and does nothing if the program is not recorded.

    >>> for epoch in range(3):
    ...     pioscope.mark("epoch", epoch)
    """
    label, value = _checked(name, number)
    recorder = _found()
    if recorder:
        recorder.pio_mark(label, value)


@contextmanager
def phase(name: str, number: SupportsIndex = 0) -> Iterator[None]:
    """A phase of the program, as a context or a decorator.

    >>> with pioscope.phase("checkpoint", 7):
    ...     pass
    """
    label, value = _checked(name, number)
    recorder = _found()
    going = recorder.pio_phase_begin(label, value) if recorder else None
    try:
        yield
    finally:
        if going is not None:
            recorder.pio_phase_end(going)


def _checked(name: str, number: SupportsIndex) -> tuple[bytes, int]:
    """The same, recorded or not."""
    return text("name", name, "epoch").encode("utf-8", "replace"), whole("number", number, 0, U64)


def _found() -> Any:
    global _recorder
    if _recorder is None:
        _recorder = _find() if "PIOSCOPE_SPOOL" in os.environ else False
    return _recorder


def _find() -> Any:
    import ctypes

    class Phase(ctypes.Structure):
        _fields_ = [("record", ctypes.c_void_p), ("process", ctypes.c_uint32)]

    try:
        functions = ctypes.PyDLL(None)
        functions.pio_mark.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        functions.pio_mark.restype = None
        functions.pio_phase_begin.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        functions.pio_phase_begin.restype = Phase
        functions.pio_phase_end.argtypes = [Phase]
        functions.pio_phase_end.restype = None
    except (AttributeError, OSError):  # started with the variable, but without the recorder
        return False
    return functions
