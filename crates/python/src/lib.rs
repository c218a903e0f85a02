//! The native half of the Python module `pioscope`: what a trace holds, says and predicts, in Python's own types.
//!
//! It is as thin as can be. How a user sees it, and what needs libraries of Python, is in `python/pioscope`.

mod columns;
mod explanation;
mod machine;
mod prediction;
mod trace;
mod workload;

use pyo3::prelude::*;

pyo3::create_exception!(
    pioscope,
    Error,
    pyo3::exceptions::PyValueError,
    "What a file, a machine or an argument has that it should not have."
);

/// As an exception that says what the command would.
fn error(source: impl Into<anyhow::Error>) -> PyErr {
    Error::new_err(pio_cli::one_line(&source.into()))
}

/// Names of the machines that Pioscope knows.
#[pyfunction]
fn machines() -> Vec<&'static str> {
    pio_machine::Machine::built_in_names().collect()
}

/// Names of the strategies.
#[pyfunction]
fn strategies() -> Vec<&'static str> {
    pio_plan::Strategy::ALL.iter().map(|strategy| strategy.name()).collect()
}

/// Name and type of every column of events.
#[pyfunction(name = "columns")]
fn columns_of_events() -> Vec<(&'static str, &'static str)> {
    columns::kinds().collect()
}

#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<explanation::Explanation>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<workload::Workload>()?;
    module.add_function(wrap_pyfunction!(columns_of_events, module)?)?;
    module.add_function(wrap_pyfunction!(explanation::diff_text, module)?)?;
    module.add_function(wrap_pyfunction!(machines, module)?)?;
    module.add_function(wrap_pyfunction!(strategies, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workloads, module)?)?;
    Ok(())
}
