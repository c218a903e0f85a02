"""What a trace amounts to: tables, figures, the report."""

import html

import pyarrow


class Explanation:
    """Statistics of a trace. A notebook shows the report; print() gives it as text."""

    def __init__(self, native):
        self._native = native

    def __str__(self):
        return self._native.text()

    def _repr_html_(self):
        return _frame(self.html(), 900)

    def html(self):
        """The report as one HTML page that needs nothing else."""
        return self._native.html()

    def save(self, path):
        """Writes that page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    @property
    def duration_s(self):
        """Duration of the job."""
        return self._native.duration_s

    @property
    def figures(self):
        """The report's figures that have something to show, by name: time, rate, sizes, processes."""
        return {name: Figure(page) for name, page in self._native.figures()}

    @property
    def findings(self):
        """What costs time, the dearest first: what is wrong, what it costs (lost_s, an estimate), what shows it, what helps."""
        return _table(self._native.findings())

    @property
    def operations(self):
        """A row for every operation of every layer; physical are those that an upper layer caused."""
        return _table(self._native.operations())

    @property
    def files(self):
        """A row for every file: what the program asked for, and what reached the file system."""
        return _table(self._native.files())

    @property
    def processes(self):
        """A row for every process by which the job is measured; a rank each, if it has ranks."""
        return _table(self._native.processes())


class Figure:
    """A figure of the report, which a notebook shows."""

    def __init__(self, page):
        self.html = page

    def _repr_html_(self):
        return _frame(self.html, 460)


def _table(rows):
    return pyarrow.Table.from_pylist(rows)


def _frame(page, height):
    """A page within a page: so that neither changes how the other looks."""
    page = html.escape(page, quote=True)
    return f'<iframe srcdoc="{page}" style="width: 100%; height: {height}px; border: 0"></iframe>'
