"""Parallel I/O on clusters: what a program did, why it took so long, and how long it would take elsewhere.

    import pioscope

    trace = pioscope.record(["mpiexec", "-n", "8", "./program"], "run.pio")    # or pioscope.open("run.pio")
    trace.events                          # a pyarrow.Table, a row an event
    trace.explain()                       # the report, in a notebook; print() it elsewhere
    trace.predict("sp-argonne", strategy="two-phase").io_time_max_s

Times are in seconds and sizes in bytes, but for the columns of events that end in _ns. What is wrong with a file, a
machine or an argument raises pioscope.Error.
"""

from ._command import CommandError, apply, calibrate, convert, record
from ._difference import Difference, diff
from ._explanation import Explanation, Figure
from ._findings import Finding, Findings
from ._machine import Machine, machine
from ._marks import mark, phase
from ._native import Error, machines, strategies
from ._native import version as __version__
from ._prediction import Prediction
from ._sweep import Executor, sweep
from ._trace import Trace, open
from ._workload import Workload, workload, workloads

__all__ = [
    "CommandError",
    "Difference",
    "Error",
    "Executor",
    "Explanation",
    "Figure",
    "Finding",
    "Findings",
    "Machine",
    "Prediction",
    "Trace",
    "Workload",
    "__version__",
    "apply",
    "calibrate",
    "convert",
    "diff",
    "machine",
    "machines",
    "mark",
    "open",
    "phase",
    "record",
    "strategies",
    "sweep",
    "workload",
    "workloads",
]
