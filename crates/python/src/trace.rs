//! A trace, and what is in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pio_explain::Counted;
use pio_import::darshan::Log;
use pio_import::{Format, ImportError};
use pio_trace::{Splits, TraceError};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::{self, Column};
use crate::explanation::Explanation;
use crate::machine::Machine;
use crate::workload::Workload;

/// A trace that is open. It never changes, and may be used from several threads.
#[pyclass(frozen)]
pub struct Trace {
    trace: Arc<pio_trace::Trace>,
    /// The counters of the Darshan log that it was made of.
    counted: Option<Arc<Counted>>,
    /// Found out when the first events are asked for: it takes a look at all of them.
    splits: OnceLock<Splits>,
}

impl Trace {
    pub(crate) fn opened(&self) -> &pio_trace::Trace {
        &self.trace
    }

    fn splits(&self) -> Result<&Splits, TraceError> {
        if let Some(known) = self.splits.get() {
            return Ok(known);
        }
        let found = pio_explain::splits(&self.trace)?;
        Ok(self.splits.get_or_init(|| found))
    }

    /// How many events a batch has, and their columns.
    fn columns_of(&self, batch: usize) -> Result<(usize, Vec<Column>), TraceError> {
        let walk = self.splits()?.walk_block(batch);
        let events = self.trace.block(batch)?;
        Ok((events.len(), columns::of(&events, walk, self.trace.tables())))
    }
}

/// A column in Python: name, type, which values there are, values, names.
type PyColumn<'py> =
    (&'static str, &'static str, Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>, Option<Vec<String>>);

#[pymethods]
impl Trace {
    /// Opens a trace, or a log of another tool.
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
        py.detach(|| open(&path)).map_err(crate::error)
    }

    #[getter]
    fn job(&self) -> &str {
        &self.trace.tables().job
    }

    /// Each name once: the texts of notes of the same name are its lines.
    #[getter]
    fn notes(&self) -> Vec<(String, String)> {
        self.trace.tables().notes_by_name()
    }

    /// Start of the job, nanoseconds since 1970.
    #[getter]
    fn epoch_ns(&self) -> u64 {
        self.trace.tables().epoch_ns
    }

    /// Number of events.
    #[getter]
    fn event_count(&self) -> u64 {
        self.trace.event_count()
    }

    /// From the start of the job to the end of its last call, seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.trace.duration_ns() as f64 / 1e9
    }

    /// Where the trace stops being readable, in words; nothing if it is whole.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.trace.damage().map(|damage| damage.to_string())
    }

    /// Number of batches that the events are in.
    #[getter]
    fn batch_count(&self) -> usize {
        self.trace.blocks().len()
    }

    /// A batch of events: how many, and their columns.
    fn batch<'py>(&self, py: Python<'py>, index: usize) -> PyResult<(usize, Vec<PyColumn<'py>>)> {
        if index >= self.batch_count() {
            return Err(PyIndexError::new_err(format!("batch {index} of {}", self.batch_count())));
        }
        let (count, columns) = py.detach(|| self.columns_of(index)).map_err(crate::error)?;
        Ok((count, columns.into_iter().map(|column| to_python(py, column)).collect()))
    }

    /// The explanation, with what the findings' changes would gain on these machines.
    fn explain(&self, py: Python<'_>, machines: Vec<Py<Machine>>) -> PyResult<Explanation> {
        py.detach(|| {
            let machines: Vec<_> =
                machines.iter().map(|machine| machine.get().described.as_ref().clone()).collect();
            Explanation::of(self.trace.clone(), self.counted.clone(), &machines)
        })
    }

    /// The calls that the program made, ready to be carried out elsewhere.
    fn workload(&self, py: Python<'_>) -> PyResult<Workload> {
        py.detach(|| pio_sim::Workload::from_trace(&self.trace)).map(Workload::of).map_err(crate::error)
    }
}

fn open(path: &Path) -> Result<Trace, ImportError> {
    let is_log = pio_import::recognise(path)? == Some(Format::Darshan);
    let (trace, counted) = if is_log {
        let log = Log::open(path)?;
        (pio_import::trace_of_log(&log)?, Some(Arc::new(Counted::of(&log))))
    } else {
        (pio_import::open(path)?, None)
    };
    Ok(Trace { trace: Arc::new(trace), counted, splits: OnceLock::new() })
}

fn to_python<'py>(py: Python<'py>, column: Column) -> PyColumn<'py> {
    let Column { name, kind, valid, values, names } = column;
    (name, kind, valid.map(|valid| PyBytes::new(py, &valid)), PyBytes::new(py, &values), names)
}
