//! How long a traced program takes on a machine.

use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::{Options, Prediction, Workload, simulate};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

pub(crate) fn predict(
    workload: &Workload,
    machine: &Machine,
    strategy: &str,
    hints: &str,
    options: &Options,
) -> PyResult<Prediction> {
    let strategy = Strategy::to_predict(strategy).map_err(|message| error(anyhow::Error::msg(message)))?;
    let hints = Hints::parse(hints).map_err(error)?;
    simulate(machine, workload, strategy, &hints, options, None, &mut |_| ()).map_err(error)
}

/// Times in seconds, sizes in bytes.
pub(crate) fn to_python<'py>(py: Python<'py>, found: &Prediction) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("workload", &found.workload)?;
    row.set_item("machine", &found.machine)?;
    row.set_item("strategy", found.strategy.name())?;
    row.set_item("hints", &found.hints)?;
    row.set_item("ranks", found.ranks)?;
    row.set_item("makespan_s", found.makespan.seconds())?;
    row.set_item("io_time_mean_s", found.io_time_mean.seconds())?;
    row.set_item("io_time_max_s", found.io_time_max.seconds())?;
    row.set_item("bytes_read", found.bytes_read)?;
    row.set_item("bytes_written", found.bytes_written)?;
    row.set_item("bandwidth_bytes_per_s", found.bandwidth_bytes_per_s())?;
    let times = PyDict::new(py);
    for total in &found.operations {
        times.set_item(total.op.name(), total.time.seconds())?;
    }
    row.set_item("time_by_operation_s", times)?;
    let parts = PyDict::new(py);
    for (part, seconds) in found.breakdown() {
        parts.set_item(part, seconds)?;
    }
    row.set_item("breakdown_s", parts)?;
    Ok(row)
}
