//! What a trace amounts to.

use std::sync::Arc;

use pio_explain::findings::{Finding, Gain};
use pio_explain::{Counted, Traffic};
use pio_machine::Machine;
use pio_report::{Told, figure_pages, findings_in_words, not_advised_in_words};
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
    /// With what the findings' changes would gain on `machines`.
    pub fn of(
        trace: Arc<Trace>,
        counted: Option<Arc<Counted>>,
        machines: &[Machine],
    ) -> PyResult<Explanation> {
        let mut found = pio_explain::Explanation::of_trace(&trace, &mut |_| ()).map_err(error)?;
        pio_cli::predict_gains(&trace, &mut found, machines).map_err(error)?;
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
                None => pio_report::html_of_trace(&self.trace, &self.found, None, &[], &mut page),
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

    /// Name of the job: its command.
    #[getter]
    fn job(&self) -> &str {
        &self.found.job
    }

    /// Number of events.
    #[getter]
    fn event_count(&self) -> u64 {
        self.found.events
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

    /// What costs time, costliest first, then those whose change gains nothing: a row each.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.all_findings().map(|(is_advised, finding, told)| {
            let row = PyDict::new(py);
            row.set_item("kind", finding.kind.name())?;
            row.set_item("title", told.title)?;
            row.set_item("is_advised", is_advised)?;
            row.set_item("lost_s", finding.lost_ns.map(|lost_ns| lost_ns / 1e9))?;
            row.set_item("gain_s", most_gained_s(finding))?;
            row.set_item("files", self.files_of(finding))?;
            row.set_item("ranks", self.ranks_of(finding))?;
            row.set_item("call_sites", self.call_sites_of(finding))?;
            row.set_item("processes", finding.process_count)?;
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
        let mut rows = Vec::new();
        for (_, finding, told) in self.all_findings() {
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

    /// Bytes a second that moved in each of a number of equal spans of time: a row a span.
    fn rate<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rate = &self.found.rate;
        let bin_s = rate.bin_ns as f64 / 1e9;
        let columns = [
            ("read_bytes_per_s", &rate.program_read),
            ("written_bytes_per_s", &rate.program_write),
            ("file_system_read_bytes_per_s", &rate.file_system_read),
            ("file_system_written_bytes_per_s", &rate.file_system_write),
        ];
        let rows = (0..rate.program_read.len()).map(|index| {
            let row = PyDict::new(py);
            row.set_item("start_s", index as f64 * bin_s)?;
            row.set_item("span_s", bin_s)?;
            for (name, bytes) in columns {
                row.set_item(name, bytes.get(index).map(|bytes| bytes / bin_s))?;
            }
            Ok(row)
        });
        rows.collect()
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

    /// A row for every line of the program that opened files, as far as it is known.
    fn call_sites<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.found.call_sites.iter().map(|one| {
            let row = PyDict::new(py);
            let site = one.call_site();
            row.set_item("path", site.path)?;
            row.set_item("line", site.line)?;
            row.set_item("function", site.function)?;
            row.set_item("library", site.library)?;
            row.set_item("opens", one.opens.count)?;
            row.set_item("open_s", one.opens.time_s())?;
            for (name, tally) in [
                ("read_from_memory", &one.moved.from_memory),
                ("read_from_storage", &one.moved.from_storage),
                ("written", &one.moved.written),
            ] {
                row.set_item(format!("{name}_calls"), tally.count)?;
                row.set_item(format!("{name}_bytes"), tally.bytes)?;
                row.set_item(format!("{name}_s"), tally.time_s())?;
            }
            row.set_item("time_s", one.all().time_s())?;
            Ok(row)
        });
        rows.collect()
    }

    /// A row for every rank, or ranks of a host, that were longer or shorter in I/O than the others for a while.
    fn apart<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let seconds = |time_ns: u64| time_ns as f64 / 1e9;
        let rows = self.found.apart.iter().map(|apart| {
            let processes = || apart.processes.iter().filter_map(|&index| self.found.processes.get(index));
            let row = PyDict::new(py);
            row.set_item("host", processes().next().map(|process| &process.host))?;
            row.set_item("ranks", processes().map(|process| process.rank).collect::<Vec<_>>())?;
            row.set_item("is_whole_host", apart.processes.len() == apart.of_host)?;
            row.set_item("from_s", seconds(apart.from_ns))?;
            row.set_item("until_s", seconds(apart.until_ns))?;
            row.set_item("io_fraction", apart.part)?;
            row.set_item("median_io_fraction", apart.median)?;
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

impl Explanation {
    /// The findings in words, and whether their change is advised: those first.
    fn all_findings(&self) -> impl Iterator<Item = (bool, &Finding, Told)> {
        let advised = self.found.findings.iter().zip(findings_in_words(&self.found));
        let dismissed = self.found.not_advised.iter().zip(not_advised_in_words(&self.found));
        let advised = advised.map(|(finding, told)| (true, finding, told));
        advised.chain(dismissed.map(|(finding, told)| (false, finding, told)))
    }

    /// Those that took most first.
    fn files_of(&self, finding: &Finding) -> Vec<&str> {
        finding.files.iter().filter_map(|file| self.found.path(file.id)).collect()
    }

    /// The same of the lines of the program that opened them.
    fn call_sites_of(&self, finding: &Finding) -> Vec<String> {
        let sites = finding.call_sites.iter().filter_map(|one| self.found.call_site(one.id));
        sites.map(|site| site.to_string()).collect()
    }

    /// The same of ranks; empty for processes that have none.
    fn ranks_of(&self, finding: &Finding) -> Vec<u32> {
        let rank = |id| self.found.processes.iter().find(|process| process.process == id)?.rank;
        finding.processes.iter().filter_map(|process| rank(process.id)).collect()
    }
}

/// What a finding's change gains on the machine where it gains most, mean of the processes; none if nothing was predicted.
fn most_gained_s(finding: &Finding) -> Option<f64> {
    let gained = |gain: &Gain| gain.before_s - gain.after_s;
    finding.gains.iter().map(gained).reduce(f64::max)
}

/// Two explanations beside each other, as the command prints them.
#[pyfunction]
pub(crate) fn diff_text(py: Python<'_>, before: &Explanation, after: &Explanation) -> String {
    py.detach(|| pio_report::diff_text(&before.found, &after.found))
}

fn add_traffic(row: &Bound<'_, PyDict>, prefix: &str, traffic: &Traffic) -> PyResult<()> {
    for (name, tally) in [("read", &traffic.read), ("written", &traffic.write)] {
        row.set_item(format!("{prefix}{name}_calls"), tally.count)?;
        row.set_item(format!("{prefix}{name}_bytes"), tally.bytes)?;
        row.set_item(format!("{prefix}{name}_s"), tally.time_s())?;
    }
    row.set_item(format!("{prefix}opens"), traffic.open.count)
}
