//! Machines, and machines that differ from their descriptions.

use std::path::PathBuf;
use std::sync::Arc;

use pio_machine::Machine as Described;
use pyo3::prelude::*;

use crate::error;
use crate::trace::Trace;

/// A machine's description. It never changes.
#[pyclass(frozen)]
pub struct Machine {
    pub(crate) described: Arc<Described>,
}

impl Machine {
    fn of(described: Described) -> Machine {
        Machine { described: Arc::new(described) }
    }
}

#[pymethods]
impl Machine {
    /// The machine of this name or file.
    #[staticmethod]
    fn find(name_or_path: &str) -> PyResult<Machine> {
        Described::find(name_or_path).map(Machine::of).map_err(error)
    }

    /// The place of a folder, as it was calibrated.
    #[staticmethod]
    fn of_folder(folder: PathBuf) -> PyResult<Machine> {
        pio_cli::machine_of_folder(&folder).map(Machine::of).map_err(error)
    }

    /// The I/O servers that a file describes, as they were calibrated.
    #[staticmethod]
    fn of_store(description: PathBuf) -> PyResult<Machine> {
        pio_cli::machine_of_store(&description).map(Machine::of).map_err(error)
    }

    /// The place where the files of a trace are, as it was calibrated.
    #[staticmethod]
    fn of_trace(trace: &Trace) -> PyResult<Machine> {
        pio_cli::machine_of_trace(trace.opened()).map(Machine::of).map_err(error)
    }

    /// The machine that a text describes; name is what errors call the text.
    #[staticmethod]
    fn parse(name: &str, text: &str) -> PyResult<Machine> {
        Described::parse(name, text).map(Machine::of).map_err(error)
    }

    /// This machine with the values of some keys changed, each as a description writes it.
    fn with_all(&self, changes: Vec<(String, String)>) -> PyResult<Machine> {
        let changes: Vec<_> = changes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        self.described.with_all(&changes).map(Machine::of).map_err(error)
    }

    /// The description, as TOML.
    fn to_toml(&self) -> String {
        self.described.to_toml("")
    }

    #[getter]
    fn name(&self) -> &str {
        &self.described.name
    }

    #[getter]
    fn source(&self) -> &str {
        &self.described.source
    }

    /// Number of compute nodes.
    #[getter]
    fn nodes(&self) -> u32 {
        self.described.nodes.count
    }

    /// Processor cores of each.
    #[getter]
    fn cores(&self) -> u32 {
        self.described.nodes.cores
    }

    /// Number of I/O nodes or servers; none where files are in the nodes' own file system, or nothing is known of them.
    #[getter]
    fn io_nodes(&self) -> Option<u32> {
        self.described.storage.io_nodes().map(|io| io.count)
    }
}
