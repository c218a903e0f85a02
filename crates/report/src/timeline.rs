//! What the page's script draws: bars by process and time, and who was in I/O when.

use std::collections::BTreeMap;

use pio_explain::Explanation;
use pio_trace::{Call, Event, FileId, Layer, ProcessId, Splits, Tables, Target};

use crate::bars::{Bar, Bars, op_name};
use crate::columns::Column;
use crate::escape;
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
    /// Number of rows.
    pub(crate) rows: usize,
}

impl Timeline {
    /// Of all events, at most `most_bars` bars. `splits` are those of the same events.
    pub(crate) fn of(
        tables: &Tables,
        events: impl IntoIterator<Item = Event>,
        splits: &Splits,
        found: &Explanation,
        most_bars: usize,
    ) -> Timeline {
        let mut bars = Bars::new(found.duration_ns, most_bars);
        let mut splits = splits.walk();
        for event in events {
            bars.add(&event, splits.of(&event));
        }
        let (bars, span_ns) = bars.finish();
        let rows = Rows::of(tables, found, &bars);
        let parts = parts(&bars, found.mpi_io.files_seen);
        let calls = Index::of(bars.iter().map(|bar| bar.call));
        let named = bars.iter().filter_map(|bar| file_of(tables, bar));
        let files = Index::of(named.chain(bars.iter().filter_map(other_file_of)));
        let mut unit_ns = 1;
        while found.duration_ns / unit_ns > MOST_UNITS {
            unit_ns *= 10;
        }

        let mut json = String::from("{");
        json.push_str(&format!("\"unit_ns\":{unit_ns},\"duration_ns\":{},", found.duration_ns));
        let call =
            |call: &Call| format!("[\"{}\",\"{}\",\"{}\"]", call.name(), call.layer().name(), op_name(*call));
        json.push_str(&format!("\"calls\":[{}],", join(calls.items().map(call))));
        let path = |file: &FileId| escape::json(tables.files.get(file.index()).map_or("", |file| &file.path));
        json.push_str(&format!("\"files\":[{}],", join(files.items().map(path))));
        json.push_str(&format!("\"parts\":[{}],", join(parts.iter().map(|name| escape::json(name)))));
        json.push_str(&format!("\"rows\":[{}],", join(rows.names.iter().map(|name| escape::json(name)))));
        json.push_str(&format!(
            "\"columns\":{{{}}},",
            columns(tables, &bars, &rows, &calls, &files, unit_ns, parts.len())
        ));
        json.push_str(&format!("\"busy\":{}}}", busy(found)));

        let note = if span_ns > 0 {
            format!(
                "{} events are drawn as {} bars: calls of the same function by one process that lie within {} are one \
                 bar here. The tables count every event.",
                units::count(found.events),
                units::count(bars.len() as u64),
                units::time_ns(span_ns),
            )
        } else {
            String::new()
        };
        let used: Vec<Call> = calls.items().copied().collect();
        Timeline {
            json,
            ops: crate::figures::op_names(used.iter().copied()),
            layers: Layer::ALL
                .into_iter()
                .filter(|layer| used.iter().any(|call| call.layer() == *layer))
                .collect(),
            parts,
            note,
            rows: rows.names.len(),
        }
    }
}

/// The row of each process: in the explanation's order, then those by which the job is not measured.
struct Rows {
    names: Vec<String>,
    row_of: BTreeMap<ProcessId, u64>,
}

impl Rows {
    fn of(tables: &Tables, found: &Explanation, bars: &[Bar]) -> Rows {
        let mut rows = Rows { names: Vec::new(), row_of: BTreeMap::new() };
        let others = Index::of(bars.iter().map(|bar| ProcessId(bar.process)));
        let measured = found.processes.iter().map(|process| process.process);
        for process in measured.chain(others.items().copied()) {
            if rows.row_of.contains_key(&process) {
                continue;
            }
            let name = match tables.processes.get(process.index()) {
                Some(known) => match known.rank {
                    Some(rank) => format!("rank {rank}"),
                    None => escape::program(known.program_name(), known.pid),
                },
                None => format!("process {}", process.0),
            };
            rows.row_of.insert(process, rows.names.len() as u64);
            rows.names.push(name);
        }
        rows
    }
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

fn file_of(tables: &Tables, bar: &Bar) -> Option<FileId> {
    match bar.target {
        Target::Name { file, .. } => Some(file),
        _ => bar.handle.and_then(|handle| tables.handles.get(handle.index())).map(|handle| handle.file),
    }
}

/// The second path of a call with two.
fn other_file_of(bar: &Bar) -> Option<FileId> {
    match bar.target {
        Target::Name { other, .. } => other,
        _ => None,
    }
}

fn columns(
    tables: &Tables,
    bars: &[Bar],
    rows: &Rows,
    calls: &Index<Call>,
    files: &Index<FileId>,
    unit_ns: u64,
    parts: usize,
) -> String {
    let unsigned = |of: &dyn Fn(&Bar) -> u64| Column::Unsigned(bars.iter().map(of).collect());
    let kind = |bar: &Bar| match bar.target {
        Target::None => 0,
        Target::Extent { .. } => 1,
        Target::View { .. } => 2,
        Target::Peer { .. } => 3,
        Target::Name { .. } => 4,
        Target::Server { server, .. } => 5 + u64::from(server),
    };
    let place = |bar: &Bar| match bar.target {
        Target::None => 0,
        Target::Extent { offset } | Target::Server { offset, .. } => offset,
        Target::View { position, .. } => position,
        Target::Peer { rank } => u64::from(rank),
        Target::Name { file, .. } => file.0.into(),
    };
    let columns = [
        ("row", unsigned(&|bar| rows.row_of.get(&ProcessId(bar.process)).copied().unwrap_or(0))),
        ("call", unsigned(&|bar| calls.place(bar.call).unwrap_or(0))),
        ("start", unsigned(&|bar| bar.start_ns / unit_ns)),
        ("elapsed", Column::Float(bars.iter().map(|bar| (bar.end_ns - bar.start_ns) as f32).collect())),
        // 0 for none.
        (
            "file",
            unsigned(&|bar| {
                file_of(tables, bar).and_then(|file| files.place(file)).map_or(0, |file| file + 1)
            }),
        ),
        (
            "other",
            unsigned(&|bar| other_file_of(bar).and_then(|file| files.place(file)).map_or(0, |file| file + 1)),
        ),
        ("kind", unsigned(&kind)),
        ("place", unsigned(&place)),
        ("size", unsigned(&|bar| bar.size)),
        ("result", Column::Signed(bars.iter().map(|bar| bar.result).collect())),
        ("flags", unsigned(&|bar| u64::from(bar.flags))),
        ("events", unsigned(&|bar| bar.events)),
    ];
    let columns = columns.map(|(name, column)| (name.to_owned(), column));
    let part = |part: usize| Column::Float(bars.iter().map(|bar| bar.parts_ns[part] as f32).collect());
    let parts = (0..parts).map(|number| (format!("part{number}"), part(number)));
    join(columns.into_iter().chain(parts).map(|(name, column)| format!("\"{name}\":{}", column.json())))
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
    // A row's first process is also the timeline's row of that number.
    let first = join(found.busy.rows.iter().map(|row| row.first.to_string()));
    format!(
        "{{\"rows\":{},\"first\":[{first}],\"bins\":{bins},\"bin_ns\":{},\"cells\":{}}}",
        found.busy.rows.len(),
        found.busy.bin_ns,
        Column::Unsigned(cells).json()
    )
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}
