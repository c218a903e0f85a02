//! What a trace amounts to.

use std::sync::Arc;

use pio_explain::{Counted, Traffic};
use pio_machine::Machine;
use pio_report::{figure_pages, findings_in_words};
use pio_trace::Trace;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// The explanation of a trace, and the report made from it.
#[pyclass(frozen)]
pub struct Explanation {
    trace: Arc<Trace>,
    found: pio_explain::Explanation,
    /// The counters of the Darshan log that the trace was made of.
    counted: Option<Arc<Counted>>,
}

impl Explanation {
    /// `machines` are names or files: what the findings' changes would gain there.
    pub fn of(
        trace: Arc<Trace>,
        counted: Option<Arc<Counted>>,
        machines: &[String],
    ) -> PyResult<Explanation> {
        let machines = machines.iter().map(|name| Machine::find(name)).collect::<Result<Vec<_>, _>>();
        let machines = machines.map_err(error)?;
        let mut found = pio_explain::Explanation::of_trace(&trace, &mut |_| ()).map_err(error)?;
        pio_cli::predict_gains(&trace, &mut found, &machines).map_err(error)?;
        counted.iter().for_each(|counted| found.add_counters(counted));
        Ok(Explanation { trace, found, counted })
    }
}

#[pymethods]
impl Explanation {
    /// As the command prints it.
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| match &self.counted {
            Some(counted) => pio_report::text_with_counters(&self.found, counted),
            None => pio_report::text(&self.found),
        })
    }

    /// The report: a whole HTML page.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let page = py.detach(|| {
            let mut page = Vec::new();
            let written = match &self.counted {
                Some(counted) => pio_report::html_with_counters(&self.trace, &self.found, counted, &mut page),
                None => pio_report::html_of_trace(&self.trace, &self.found, &[], &mut page),
            };
            written.map(|()| page)
        });
        String::from_utf8(page.map_err(error)?).map_err(error)
    }

    /// The report's figures, by name: each a whole HTML page.
    fn figures(&self, py: Python<'_>) -> Vec<(&'static str, String)> {
        let pages = py.detach(|| figure_pages(&self.found));
        pages.into_iter().map(|page| (page.name, page.html)).collect()
    }

    /// Duration of the job, seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.found.duration_s()
    }

    /// Bytes that the program read, over the time in which any process did; none without.
    #[getter]
    fn read_bandwidth_bytes_per_s(&self) -> Option<f64> {
        self.found.transfers.read.bandwidth_bytes_per_s()
    }

    /// The same of writes.
    #[getter]
    fn write_bandwidth_bytes_per_s(&self) -> Option<f64> {
        self.found.transfers.write.bandwidth_bytes_per_s()
    }

    /// What costs time, costliest first: a row each.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let told = findings_in_words(&self.found);
        let rows = self.found.findings.iter().zip(told).map(|(finding, told)| {
            let row = PyDict::new(py);
            row.set_item("title", told.title)?;
            row.set_item("lost_s", finding.lost_ns.map(|lost_ns| lost_ns / 1e9))?;
            row.set_item("evidence", told.evidence)?;
            row.set_item("place", told.place)?;
            row.set_item("change", told.change)?;
            row.set_item("calls", finding.cost.calls)?;
            row.set_item("bytes", finding.cost.bytes())?;
            row.set_item("time_s", finding.cost.time_ns as f64 / 1e9)?;
            Ok(row)
        });
        rows.collect()
    }

    /// What the changes would gain on the machines that were given: a row for every finding and machine.
    fn gains<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let told = findings_in_words(&self.found);
        let mut rows = Vec::new();
        for (finding, told) in self.found.findings.iter().zip(told) {
            for gain in &finding.gains {
                let row = PyDict::new(py);
                row.set_item("title", told.title)?;
                row.set_item("machine", &gain.machine)?;
                row.set_item("simulated", gain.change)?;
                row.set_item("before_s", gain.before_s)?;
                row.set_item("after_s", gain.after_s)?;
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// A row for every operation of every layer.
    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut rows = Vec::new();
        for layer in &self.found.layers {
            for (op, tally) in layer.table.operations.iter() {
                let row = PyDict::new(py);
                row.set_item("layer", layer.layer.name())?;
                row.set_item("physical", layer.physical)?;
                row.set_item("operation", op.name())?;
                row.set_item("calls", tally.count)?;
                row.set_item("failed", tally.failed)?;
                row.set_item("bytes", tally.bytes)?;
                row.set_item("time_s", tally.time_s())?;
                row.set_item("longest_s", tally.longest_ns as f64 / 1e9)?;
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Where the time of MPI-IO calls went: a row for every operation. No time at the files where the trace saw nothing of
    /// them.
    fn mpi_io<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let seconds = |time_ns: u64| time_ns as f64 / 1e9;
        let found = &self.found.mpi_io;
        let rows = found.operations.iter().map(|(op, split)| {
            let row = PyDict::new(py);
            row.set_item("operation", op.name())?;
            row.set_item("calls", split.calls)?;
            row.set_item("late_s", seconds(split.late_ns))?;
            row.set_item("library_s", seconds(split.library_ns))?;
            row.set_item("files_s", found.files_seen.then(|| seconds(split.files_ns)))?;
            row.set_item("unknown_s", seconds(split.unknown_ns))?;
            Ok(row)
        });
        rows.collect()
    }

    /// A row for every file that was used.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.found.files.iter().map(|file| {
            let row = PyDict::new(py);
            row.set_item("path", &file.path)?;
            row.set_item("size_bytes", file.size_bytes)?;
            row.set_item("processes", file.processes)?;
            row.set_item("imbalance", file.imbalance)?;
            add_traffic(&row, "", &file.program)?;
            add_traffic(&row, "file_system_", &file.file_system)?;
            Ok(row)
        });
        rows.collect()
    }

    /// A row for every process by which the job is measured.
    fn processes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.found.processes.iter().map(|process| {
            let row = PyDict::new(py);
            row.set_item("process", process.process.0)?;
            row.set_item("rank", process.rank)?;
            row.set_item("pid", process.pid)?;
            row.set_item("program", &process.program_name)?;
            row.set_item("host", &process.host)?;
            row.set_item("lifetime_s", process.lifetime_ns as f64 / 1e9)?;
            row.set_item("io_s", process.io_ns as f64 / 1e9)?;
            row.set_item("think_s", process.think_ns as f64 / 1e9)?;
            add_traffic(&row, "", &process.program)?;
            add_traffic(&row, "file_system_", &process.file_system)?;
            Ok(row)
        });
        rows.collect()
    }
}

fn add_traffic(row: &Bound<'_, PyDict>, prefix: &str, traffic: &Traffic) -> PyResult<()> {
    for (name, tally) in [("read", &traffic.read), ("written", &traffic.write)] {
        row.set_item(format!("{prefix}{name}_calls"), tally.count)?;
        row.set_item(format!("{prefix}{name}_bytes"), tally.bytes)?;
        row.set_item(format!("{prefix}{name}_s"), tally.time_s())?;
    }
    row.set_item(format!("{prefix}opens"), traffic.open.count)
}
