"""What arguments must be: whoever gives another value is told the parameter, what is expected and what was given."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

from ._native import Error

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1


def whole(parameter: str, value: Any, least: int, most: int) -> int:
    """A whole number, be it of Python, NumPy or another library."""
    expected = f"{parameter}: expected a whole number from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{expected}, not {value!r}") from None
    if not least <= number <= most:
        raise Error(f"{expected}, not {number}")
    return number


def positive(parameter: str, value: Any) -> float:
    expected = f"{parameter}: expected a number above 0"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{expected}, not {value!r}") from None
    except OverflowError:
        raise Error(f"{expected} that a float can hold, not {value!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise Error(f"{expected}, not {number!r}")
    return number


def mapping(parameter: str, value: Any, example: str) -> Mapping[str, Any]:
    """None is nothing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{parameter}: expected a dictionary such as {example}, not {value!r}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{parameter}: expected names as keys, such as {example}, not {key!r}")
    return value


def text(parameter: str, value: Any, example: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{parameter}: expected a text such as {example!r}, not {value!r}")
    return value


def plain(value: Any) -> Any:
    """A scalar of NumPy as Python's."""
    return value.item() if hasattr(value, "item") and not getattr(value, "shape", True) else value
