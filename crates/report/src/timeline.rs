//! What the page's script draws and filters: bars by thread and time, and who was in I/O when.

use std::collections::BTreeMap;

use pio_explain::Explanation;
use pio_trace::{Call, FileId, Layer, ProcessId, Tables};

use crate::bars::{Bar, op_name};
use crate::columns::Column;
use crate::escape;
use crate::gathered::Gathered;
use crate::named_files::NamedFiles;
use crate::rows::Rows;
use crate::units;

/// Times in the page are 32-bit counts of a unit: at most this many.
const MOST_UNITS: u64 = u32::MAX as u64;

/// The data of the timeline, ready to be written into the page.
pub(crate) struct Timeline {
    /// JSON, harmless inside a `<script>` element.
    pub(crate) json: String,
    /// Operations that occur, for the legend.
    pub(crate) ops: Vec<&'static str>,
    /// Layers that occur, top lane first.
    pub(crate) layers: Vec<Layer>,
    /// The parts in which collective calls are drawn, in their order; none if there are no such calls.
    pub(crate) parts: &'static [&'static str],
    /// What one must know of it, in words; may be empty.
    pub(crate) note: String,
    /// What the bands of marks are, in words; empty if there are none.
    pub(crate) marks: String,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Number of processes.
    pub(crate) processes: usize,
    /// Whether calls have offsets in files.
    pub(crate) has_offsets: bool,
    /// The page's numbers of files: those that the tables show have one.
    pub(crate) file_numbers: BTreeMap<FileId, u64>,
}

impl Timeline {
    /// Of the bars of all events.
    pub(crate) fn of(tables: &Tables, gathered: Gathered<'_>, found: &Explanation) -> Timeline {
        let Gathered { bars, span_ns, mut files } = gathered;
        let rows = Rows::of(tables, found, &bars);
        let parts = parts(&bars, found.mpi_io.files_seen);
        let calls = Index::of(bars.iter().map(|bar| bar.call));
        let mut unit_ns = 1;
        while found.duration_ns / unit_ns > MOST_UNITS {
            unit_ns *= 10;
        }
        let findings = crate::findings::scopes(found, &mut files, &rows);
        let drawn = Drawn { bars: &bars, rows: &rows, calls: &calls, files: &files, unit_ns };

        let call =
            |call: &Call| format!("[\"{}\",\"{}\",\"{}\"]", call.name(), call.layer().name(), op_name(*call));
        let fields = [
            ("unit_ns", unit_ns.to_string()),
            ("duration_ns", found.duration_ns.to_string()),
            ("process_count", found.process_count.to_string()),
            ("calls", list(calls.items().map(call))),
            ("files", list(files.paths().into_iter().map(escape::json))),
            ("parts", list(parts.iter().map(|name| escape::json(name)))),
            ("processes", list(rows.processes.iter().map(|name| escape::json(name)))),
            ("rows", list(rows.names.iter().map(|name| escape::json(name)))),
            ("process_of_row", list(rows.process_of_row.iter().map(usize::to_string))),
            ("findings", list(findings.into_iter())),
            ("columns", drawn.columns(parts.len(), span_ns > 0)),
            ("marks", crate::marks::json(found, &rows, unit_ns)),
            ("busy", busy(found)),
            ("apart", crate::over_time::apart_json(found)),
        ];
        let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{value}"));
        let used: Vec<Call> = calls.items().copied().collect();
        Timeline {
            json: format!("{{{}}}", join(fields)),
            ops: crate::figures::op_names(used.iter().copied()),
            layers: Layer::ALL
                .into_iter()
                .filter(|layer| used.iter().any(|call| call.layer() == *layer))
                .collect(),
            parts,
            note: note(found, bars.len(), span_ns),
            marks: crate::marks::note(found),
            rows: rows.names.len(),
            processes: rows.processes.len(),
            has_offsets: bars.iter().any(|bar| bar.place.is_in_file() && bar.files.file != 0),
            file_numbers: files.numbers(),
        }
    }
}

fn note(found: &Explanation, bars: usize, span_ns: u64) -> String {
    if span_ns == 0 {
        return String::new();
    }
    format!(
        "{} events are drawn as {} bars: calls of one thread and function on one file that lie within {} are one bar here. \
         The tables count every event.",
        units::count(found.events),
        units::count(bars as u64),
        units::time_ns(span_ns),
    )
}

/// Distinct things, and their places in order.
struct Index<T>(BTreeMap<T, u64>);

impl<T: Ord + Copy> Index<T> {
    fn of(items: impl Iterator<Item = T>) -> Index<T> {
        let mut places: BTreeMap<T, u64> = items.map(|item| (item, 0)).collect();
        for (place, value) in places.values_mut().enumerate() {
            *value = place as u64;
        }
        Index(places)
    }

    fn items(&self) -> impl Iterator<Item = &T> {
        self.0.keys()
    }

    fn place(&self, item: T) -> Option<u64> {
        self.0.get(&item).copied()
    }
}

/// The bars, and what their numbers in the page mean.
struct Drawn<'a> {
    bars: &'a [Bar],
    rows: &'a Rows,
    calls: &'a Index<Call>,
    files: &'a NamedFiles<'a>,
    unit_ns: u64,
}

impl Drawn<'_> {
    /// A JSON object of columns, one value a bar. Only where bars stand for several events do they have more: what a single
    /// event took is from its start to its end, and what it covers of a file is its size.
    fn columns(&self, parts: usize, merged: bool) -> String {
        let mut columns = vec![
            ("row", self.unsigned(|bar| self.rows.row(ProcessId(bar.process), bar.thread))),
            ("call", self.unsigned(|bar| self.calls.place(bar.call).unwrap_or(0))),
            ("start", self.unsigned(|bar| bar.start_ns / self.unit_ns)),
            ("elapsed", self.float(|bar| bar.end_ns - bar.start_ns)),
            // 0 for none.
            ("file", self.unsigned(|bar| self.files.in_page(bar.files.file))),
            ("other", self.unsigned(|bar| self.files.in_page(bar.files.other))),
            ("kind", self.unsigned(|bar| bar.place.kind)),
            ("place", self.unsigned(|bar| bar.place.first)),
            ("size", self.unsigned(|bar| bar.size)),
            ("result", Column::Signed(self.bars.iter().map(|bar| bar.result).collect())),
            ("flags", self.unsigned(|bar| bar.flags.into())),
            ("events", self.unsigned(|bar| bar.events)),
            ("failed", self.unsigned(|bar| bar.failed)),
        ];
        if merged {
            columns.push(("time", self.float(|bar| bar.time_ns)));
            columns.push(("length", self.unsigned(|bar| bar.place.length)));
        }
        for (part, name) in ["part0", "part1", "part2"].into_iter().enumerate().take(parts) {
            columns.push((name, self.float(move |bar| bar.parts_ns[part])));
        }
        let columns = columns.iter().map(|(name, column)| format!("\"{name}\":{}", column.json()));
        format!("{{{}}}", join(columns))
    }

    fn unsigned(&self, of: impl Fn(&Bar) -> u64) -> Column {
        Column::Unsigned(self.bars.iter().map(of).collect())
    }

    fn float(&self, of: impl Fn(&Bar) -> u64) -> Column {
        Column::Float(self.bars.iter().map(|bar| of(bar) as f32).collect())
    }
}

/// The parts in which collective calls are drawn; none if there are no calls of which they are known.
fn parts(bars: &[Bar], files_seen: bool) -> &'static [&'static str] {
    match bars.iter().any(|bar| bar.parts_ns != [0; 3]) {
        false => &[],
        true if files_seen => &["waiting for late ranks", "library", "files"],
        true => &["waiting for late ranks", "library and files"],
    }
}

/// Who was in I/O when, in 256 steps.
fn busy(found: &Explanation) -> String {
    let bins = found.busy.rows.iter().map(|row| row.fraction.len()).max().unwrap_or(0);
    let mut cells = Vec::with_capacity(bins * found.busy.rows.len());
    for row in &found.busy.rows {
        cells.extend(
            (0..bins).map(|bin| row.fraction.get(bin).map_or(0, |part| (part * 255.0).round() as u64)),
        );
    }
    // The explanation's processes are the page's first ones.
    let first = join(found.busy.rows.iter().map(|row| row.first.to_string()));
    format!(
        "{{\"rows\":{},\"first\":[{first}],\"bins\":{bins},\"bin_ns\":{},\"cells\":{}}}",
        found.busy.rows.len(),
        found.busy.bin_ns,
        Column::Unsigned(cells).json()
    )
}

fn list(parts: impl Iterator<Item = String>) -> String {
    format!("[{}]", join(parts))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}
