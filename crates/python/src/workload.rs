//! The calls of a program, ready to be carried out on any machine.

use std::path::PathBuf;
use std::sync::Arc;

use pio_sim::{Options, workload};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::machine::Machine;
use crate::prediction;

/// The calls of a program. They never change, and may be predicted by several threads at once.
#[pyclass(frozen)]
pub struct Workload {
    calls: Arc<pio_sim::Workload>,
}

impl Workload {
    pub(crate) fn of(calls: pio_sim::Workload) -> Workload {
        Workload { calls: Arc::new(calls) }
    }
}

#[pymethods]
impl Workload {
    /// A generated workload, by name and parameters.
    #[staticmethod]
    fn generate(
        py: Python<'_>,
        name: &str,
        parameters: Vec<(String, String)>,
        seed: u64,
    ) -> PyResult<Workload> {
        let built = py.detach(|| workload::find(name)?.build(&parameters, seed));
        built.map(Workload::of).map_err(error)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.calls.name
    }

    /// Number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.calls.ranks()
    }

    /// Number of calls, of all ranks.
    #[getter]
    fn call_count(&self) -> usize {
        self.calls.programs.iter().map(Vec::len).sum()
    }

    /// Writes them as a trace, with notes (name, text) on how they were made.
    fn save(&self, py: Python<'_>, path: PathBuf, notes: Vec<(String, String)>) -> PyResult<()> {
        py.detach(|| workload::write_trace(&self.calls, &notes, &path)).map_err(error)
    }

    /// The prediction for a machine, as keys and values.
    #[pyo3(signature = (machine, strategy, hints, cpu_speed, ranks_per_node))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        machine: &Machine,
        strategy: &str,
        hints: &str,
        cpu_speed: f64,
        ranks_per_node: Option<u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let options = Options { cpu_speed, ranks_per_node };
        let found =
            py.detach(|| prediction::predict(&self.calls, &machine.described, strategy, hints, &options))?;
        prediction::to_python(py, &found)
    }
}

/// Names of the workloads that can be generated, and what each is.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(&'static str, &'static str)> {
    workload::catalogue().iter().map(|entry| (entry.name, entry.about)).collect()
}
