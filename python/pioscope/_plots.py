"""Plots. matplotlib is needed by them alone, and loaded when the first is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return pyplot.subplots(layout="constrained")[1]


def bars(ax: Axes | None, amounts: Mapping[str, float], title: str, unit: str) -> Axes:
    """A bar for every name, the first at the top."""
    ax = _axes(ax)
    ax.barh(list(amounts), list(amounts.values()))
    ax.invert_yaxis()
    ax.set_title(title)
    ax.set_xlabel(unit)
    return ax


def steps(ax: Axes | None, edges: Sequence[float], amounts: Mapping[str, Sequence[float]], title: str,
          axes: tuple[str, str]) -> Axes:
    """Amounts that hold from one edge to the next, a line for every name."""
    ax = _axes(ax)
    for name, values in amounts.items():
        ax.stairs(list(values), list(edges), label=name)
    ax.set_title(title)
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    if amounts:
        ax.legend()
    return ax
