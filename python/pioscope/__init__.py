"""Parallel I/O on clusters: what a program did, why it took so long, and how long it would take elsewhere.

    import pioscope

    trace = pioscope.open("run.pio")
    trace.events                          # a pyarrow.Table, a row an event
    trace.explain()                       # the report, in a notebook; print() it elsewhere
    trace.predict("sp-argonne", strategy="two-phase").io_time_max_s

Times are in seconds and sizes in bytes, but for the columns of events that end in _ns. What is wrong with a file, a
machine or an argument raises pioscope.Error.
"""

from ._explanation import Explanation, Figure
from ._native import Error, machines, strategies
from ._native import version as __version__
from ._trace import Prediction, Trace, open

__all__ = ["Error", "Explanation", "Figure", "Prediction", "Trace", "machines", "open", "strategies", "__version__"]
