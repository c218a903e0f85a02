"""Numbers and small tables as people read them."""

import html
from collections.abc import Iterable


def seconds(time_s: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if abs(time_s) * factor >= 1 or time_s == 0:
            return f"{time_s * factor:.4g} {unit}"
    return f"{time_s * 1e6:.4g} µs"


def size(size_bytes: float) -> str:
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size_bytes < 1024:
            break
        size_bytes, unit = size_bytes / 1024, larger
    return f"{size_bytes:.4g} {unit}"


def ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def shortened(text: str, most: int = 72) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def html_of_pairs(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """A table of names and what they are, for a notebook; those that are None are left out."""
    rows = "".join(
        f'<tr><th style="text-align: left">{html.escape(name)}</th>'
        f'<td style="text-align: left">{html.escape(shortened(str(value), 200))}</td></tr>'
        for name, value in pairs if value is not None
    )
    return f"<table><caption>{html.escape(shortened(title))}</caption>{rows}</table>"


def html_of_rows(title: str, names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table with a line of names, for a notebook."""
    def line(tag: str, values: Iterable[object]) -> str:
        cells = "".join(
            f'<{tag} style="text-align: left">{html.escape(shortened(str(value), 200))}</{tag}>' for value in values
        )
        return f"<tr>{cells}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><caption>{html.escape(shortened(title))}</caption>{line('th', names)}{body}</table>"
