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
    is_ours = ax is None
    ax = _axes(ax)
    ax.barh(list(amounts), list(amounts.values()))
    ax.invert_yaxis()
    ax.set_title(title, wrap=True)
    ax.set_xlabel(unit)
    if not amounts:
        if is_ours:
            ax.set(xticks=[], yticks=[])
        ax.text(0.5, 0.5, "none", transform=ax.transAxes, ha="center")
    return ax


def rates(ax: Axes | None, edges_s: Sequence[float], amounts: Mapping[str, Sequence[float]], title: str) -> Axes:
    """Bytes a second that hold from one edge to the next, a line for every name."""
    ax = _axes(ax)
    from matplotlib.ticker import EngFormatter

    for name, values in amounts.items():
        ax.stairs(list(values), list(edges_s), label=name)
    ax.set_title(title, wrap=True)
    ax.set_xlabel("time, s")
    ax.set_ylabel("data rate")
    ax.yaxis.set_major_formatter(EngFormatter("B/s"))
    if amounts:
        ax.legend()
    return ax
