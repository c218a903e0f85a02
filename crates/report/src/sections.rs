//! The explanation in tables: the same for text and HTML.

use std::collections::BTreeMap;

use pio_explain::{
    Amount, Explanation, FileStatistics, Finding, LayerTable, OperationView, Order, Pattern,
    ProcessStatistics, Rates, SizeClass, Sizes, Tally,
};
use pio_trace::{FileId, Layer, Op};

use crate::file_systems;
use crate::live;
use crate::table::Table;
use crate::units;

/// Rows of long tables that are shown.
pub(crate) struct Limits {
    /// Files and processes.
    pub(crate) rows: usize,
    /// Columns of a path.
    pub(crate) path: usize,
    /// Whether there is room for what is less asked for.
    pub(crate) wide: bool,
}

/// What bandwidth is, wherever it is named.
pub(crate) const BANDWIDTH: &str =
    "Bandwidth is bytes over the time in which at least one such call was under way, in any process.";

/// What the titles of operations at the files have behind them, if these are not all that the program did: of a program that reads or
/// writes other files beside those of MPI-IO, only the latter are counted.
pub(crate) fn of_which_files(found: &Explanation) -> &'static str {
    let at_others = |table: &LayerTable| {
        let moves = table.table.operations.iter().any(|(op, _)| matches!(op, Op::Read | Op::Write));
        !table.physical && matches!(table.layer, Layer::Posix | Layer::Stdio) && moves
    };
    let is_mixed = live::level(found) == live::MPI_FILES && found.layers.iter().any(at_others);
    if is_mixed { ", on files of MPI-IO" } else { "" }
}

/// Thakur's Table 1, with the data and bandwidth of Table 2.
pub(crate) fn operations(found: &Explanation) -> Table {
    let through_mpi = found.layers.iter().any(|table| table.layer == Layer::MpiIo);
    let on_servers = found.layers.iter().any(|table| table.layer == Layer::Server);
    let place = match (&found.asked_operations, through_mpi) {
        (Some(_), true) if on_servers => {
            "POSIX calls and requests to I/O servers on the files that the program opened by MPI-IO, and the \
             communication done for them. "
        }
        (Some(_), true) => {
            "POSIX calls on the files that the program opened by MPI-IO, and the communication done for them. "
        }
        (Some(_), false) => "POSIX and stdio calls, whoever made them. ",
        (None, _) => "",
    };
    let mut table = operation_table(&found.operations);
    table.title.push_str(of_which_files(found));
    let own = match found.operations.own_messages {
        own if own.count > 0 => format!(
            "Not {} that the program sent for itself, while it had files open, in {}. ",
            units::things(own.count, "message", "messages"),
            units::time_ns(own.time_ns)
        ),
        _ => String::new(),
    };
    table.note =
        format!("{place}{own}{BANDWIDTH} Times and sizes are those of Thakur et al. 1996, Tables 1 and 2.");
    table
}

/// The same of what the program asked for, if that is something else.
pub(crate) fn asked_operations(found: &Explanation) -> Table {
    found.asked_operations.as_ref().map(operation_table).unwrap_or_default()
}

fn operation_table(view: &OperationView) -> Table {
    let row = |name: &str, tally: Tally, bandwidth: Option<f64>| {
        vec![
            name.to_string(),
            units::count(tally.count),
            units::time_ns(tally.time_ns),
            units::time_s(tally.time_s() / view.processes.max(1) as f64),
            if tally.bytes > 0 { units::bytes(tally.bytes as f64) } else { String::new() },
            bandwidth.map_or(String::new(), units::rate),
        ]
    };
    let mut rows: Vec<_> =
        view.for_io().map(|(op, tally)| row(op.name(), tally, view.bandwidth_bytes_per_s(op))).collect();
    if view.table.acknowledgements.count > 0 {
        rows.push(row("acknowledgements", view.table.acknowledgements, None));
    }
    let title = match library_name(view.layer) {
        Some(library) => format!("Operations as the program asked for them ({library})"),
        None => "Operations as the file system saw them".to_string(),
    };
    Table {
        title,
        note: String::new(),
        columns: vec!["operation", ">calls", ">total time", ">mean per process", ">data", ">bandwidth"],
        rows,
    }
}

/// Thakur's Table 2: sizes of single requests, at the file system and as asked for.
pub(crate) struct RequestSizes {
    /// Classes of sizes, by view and operation.
    pub(crate) rows: Vec<SizeRow>,
    /// As [`of_which_files`].
    of_which_files: &'static str,
}

/// Requests of one operation and class of sizes.
pub(crate) struct SizeRow {
    /// The layer of the view that they were counted in.
    pub(crate) layer: Layer,
    /// Whether that is the view of the file system.
    pub(crate) at_file_system: bool,
    /// Reads or writes.
    pub(crate) op: Op,
    /// The class.
    pub(crate) class: SizeClass,
    /// All requests of the operation.
    of: Amount,
}

impl RequestSizes {
    /// Of both views.
    pub(crate) fn of(found: &Explanation) -> RequestSizes {
        let views = [(true, Some(&found.operations)), (false, found.asked_operations.as_ref())];
        let mut rows = Vec::new();
        for (at_file_system, view) in views.into_iter().filter_map(|(first, view)| Some((first, view?))) {
            for (op, sizes) in [(Op::Read, &view.table.read_sizes), (Op::Write, &view.table.write_sizes)] {
                let of = sizes.total();
                let row = |class| SizeRow { layer: view.layer, at_file_system, op, class, of };
                rows.extend(size_classes(sizes).into_iter().map(row));
            }
        }
        RequestSizes { rows, of_which_files: of_which_files(found) }
    }

    /// As a table.
    pub(crate) fn table(&self) -> Table {
        let share = |part: u64, all: u64| units::percent(part as f64 / all.max(1) as f64);
        let mut level = None;
        let rows = self.rows.iter().map(|row| {
            let is_first = level.replace(row.at_file_system) != Some(row.at_file_system);
            let name = library_name(row.layer).unwrap_or("file system");
            vec![
                if is_first { name.to_string() } else { String::new() },
                row.op.name().to_string(),
                size_name(row.class.from_bytes, row.class.to_bytes),
                units::count(row.class.amount.count),
                share(row.class.amount.count, row.of.count),
                units::bytes(row.class.amount.bytes as f64),
                share(row.class.amount.bytes, row.of.bytes),
            ]
        });
        Table {
            title: format!("Request sizes{}", self.of_which_files),
            note: String::new(),
            rows: rows.collect(),
            columns: vec![
                "as seen by",
                "operation",
                ">size",
                ">requests",
                ">share",
                ">bytes asked for",
                ">share",
            ],
        }
    }
}

fn size_classes(sizes: &Sizes) -> Vec<SizeClass> {
    const SHOWN: usize = 12;
    let exact = sizes.classes();
    if exact.len() > SHOWN { sizes.powers() } else { exact }
}

/// A size, or a power of two: `4 KiB`, `4 KiB – 8 KiB`.
pub(crate) fn size_name(from_bytes: u64, to_bytes: u64) -> String {
    if from_bytes == to_bytes {
        units::bytes(from_bytes as f64)
    } else {
        format!("{} – {}", units::bytes(from_bytes as f64), units::bytes(to_bytes as f64 + 1.0))
    }
}

/// What users call a layer by which programs ask for I/O, above that of the file system.
fn library_name(layer: Layer) -> Option<&'static str> {
    match layer {
        Layer::Hdf5 => Some("HDF5"),
        Layer::Pnetcdf => Some("PnetCDF"),
        Layer::MpiIo => Some("MPI-IO"),
        Layer::Posix | Layer::Stdio | Layer::Server | Layer::Message | Layer::Mark => None,
    }
}

/// A row of the table of layers.
pub(crate) struct LayerRow<'a> {
    /// The layer, and whether another one caused the calls.
    pub(crate) layer: &'a LayerTable,
    /// Name of the operation.
    pub(crate) operation: &'static str,
    tally: Tally,
    /// Whether it is the layer's first.
    is_first: bool,
}

/// What occurs of each layer.
pub(crate) fn layer_rows(found: &Explanation) -> impl Iterator<Item = LayerRow<'_>> {
    found.layers.iter().flat_map(|layer| {
        let acknowledgements = ("acknowledgement", layer.table.acknowledgements);
        let operations = layer.table.operations.iter().map(|(op, tally)| (op.name(), tally));
        let occurring = operations.chain([acknowledgements]).filter(|(_, tally)| tally.count > 0);
        let row =
            move |(index, (operation, tally))| LayerRow { layer, operation, tally, is_first: index == 0 };
        occurring.enumerate().map(row).collect::<Vec<_>>()
    })
}

/// All layers.
pub(crate) fn layers(found: &Explanation) -> Table {
    // What caused the calls that the program did not make.
    let causes: Vec<&str> = found
        .layers
        .iter()
        .filter(|table| !table.physical)
        .filter_map(|table| library_name(table.layer))
        .collect();
    let causes = if causes.is_empty() { "MPI-IO".to_string() } else { causes.join(" and ") };
    let name = |layer: &LayerTable| match (layer.layer, layer.physical) {
        (layer, false) => layer.name().to_string(),
        (Layer::Message, true) => "message, for I/O".to_string(),
        (layer, true) => format!("{}, for {causes}", layer.name()),
    };
    let rows = layer_rows(found).map(|LayerRow { layer, operation, tally, is_first }| {
        vec![
            if is_first { name(layer) } else { String::new() },
            operation.to_string(),
            units::count(tally.count),
            units::time_ns(tally.time_ns),
            tally.mean_time_s().map_or(String::new(), units::time_s),
            units::time_ns(tally.longest_ns),
            if tally.bytes > 0 { units::bytes(tally.bytes as f64) } else { String::new() },
        ]
    });
    Table {
        title: "Operations by layer".into(),
        note: String::new(),
        columns: vec!["layer", "operation", ">calls", ">total time", ">mean", ">longest", ">data"],
        rows: rows.collect(),
    }
}

/// All functions.
pub(crate) fn calls(found: &Explanation) -> Table {
    let rows = found.calls.iter().map(|(call, tally)| {
        vec![
            call.name().to_string(),
            call.layer().name().to_string(),
            units::count(tally.count),
            if tally.failed > 0 { units::count(tally.failed) } else { String::new() },
            units::time_ns(tally.time_ns),
            tally.mean_time_s().map_or(String::new(), units::time_s),
            if tally.bytes > 0 { units::bytes(tally.bytes as f64) } else { String::new() },
        ]
    });
    Table {
        title: "Functions".into(),
        note: String::new(),
        columns: vec!["function", "layer", ">calls", ">failed", ">total time", ">mean", ">data"],
        rows: rows.collect(),
    }
}

/// Miller and Katz's Tables 1 and 2.
pub(crate) fn workload(found: &Explanation) -> Table {
    let workload = &found.workload;
    let per_second = |name: &str, rates: Option<Rates>, read: Amount, write: Amount, files: u64| {
        let rates = rates?;
        Some(vec![
            name.to_string(),
            units::count(files),
            units::rate(rates.read_bytes_per_s),
            units::rate(rates.write_bytes_per_s),
            units::significant(rates.reads_per_s),
            units::significant(rates.writes_per_s),
            // Without a request there is no mean: 0 over 0.
            units::bytes((read.bytes as f64 + write.bytes as f64) / (read.count as f64 + write.count as f64)),
            units::if_known(rates.read_write_ratio, units::significant),
        ])
    };
    let rows = [
        per_second("CPU time", workload.per_cpu_second(), workload.read, workload.write, workload.files),
        per_second(
            "CPU time, large files",
            workload.large_per_cpu_second().filter(|_| workload.large_files < workload.files),
            workload.large_read,
            workload.large_write,
            workload.large_files,
        ),
        per_second(
            "wall-clock time",
            workload.per_wall_second(),
            workload.read,
            workload.write,
            workload.files,
        ),
    ];
    let cpu = if workload.cpu_s > 0.0 {
        format!("{} of CPU time between calls", units::time_s(workload.cpu_s))
    } else {
        "no CPU time in the trace".to_string()
    };
    Table {
        title: "What the program asked for, per second".into(),
        note: format!(
            "{cpu}; {} of data in files, {} moved in {}{} (Miller and Katz 1991, Tables 1 and 2; \
             large: 1 MB or more).",
            units::bytes(workload.data_size_bytes as f64),
            units::bytes(workload.io_bytes() as f64),
            units::things(workload.io_count(), "request", "requests"),
            workload
                .mean_io_bytes()
                .map_or(String::new(), |mean| format!(", {} each on average", units::bytes(mean))),
        ),
        columns: vec![
            "per second of",
            ">files",
            ">read",
            ">written",
            ">reads/s",
            ">writes/s",
            ">mean size",
            ">read/write",
        ],
        rows: rows.into_iter().flatten().collect(),
    }
}

/// Order of accesses, at both levels.
pub(crate) fn patterns(found: &Explanation) -> Table {
    let mut rows = vec![pattern_row("the program", &found.program_pattern)];
    if found.file_system_pattern != found.program_pattern {
        rows.push(pattern_row("the file system", &found.file_system_pattern));
    }
    rows.retain(|row| row.iter().skip(1).any(|cell| cell != "0" && cell != "–"));
    Table {
        title: "Order of accesses".into(),
        note:
            "Each access is compared with the one before it through the same handle, reads and writes apart. \
               Positions of MPI-IO are counted in its view."
                .into(),
        columns: vec![
            "as seen by",
            ">sequential",
            ">first",
            ">consecutive",
            ">strided",
            ">random",
            ">main stride",
        ],
        rows,
    }
}

fn pattern_row(name: &str, pattern: &Pattern) -> Vec<String> {
    vec![
        name.to_string(),
        pattern.sequential_fraction().map_or("–".into(), units::percent),
        units::count(pattern.first),
        units::count(pattern.consecutive),
        units::count(pattern.strided),
        units::count(pattern.random),
        stride(pattern),
    ]
}

fn stride(pattern: &Pattern) -> String {
    pattern.dominant_stride_bytes().map_or("–".into(), |bytes| units::bytes(bytes as f64))
}

/// Files as their table shows them: those that took the most time first.
pub(crate) fn files_shown<'a>(found: &'a Explanation, limits: &Limits) -> Vec<&'a FileStatistics> {
    let mut files: Vec<&FileStatistics> = found.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(time_on(file)));
    files.truncate(limits.rows);
    files
}

/// Time of all calls on a file, nanoseconds: at the file system if it saw them.
pub(crate) fn time_on(file: &FileStatistics) -> u64 {
    traffic(file).time_ns
}

/// Files, those that took the most time first.
pub(crate) fn files(found: &Explanation, limits: &Limits) -> Table {
    let files = files_shown(found, limits);
    let shown = files.len();
    let lost_ns = if limits.wide { lost_by_file_ns(found) } else { BTreeMap::new() };
    let rows = files.iter().map(|file| {
        let (traffic, order) = if has_posix(file) {
            (&file.file_system, file.order_at_file_system())
        } else {
            (&file.program, file.order())
        };
        let amount =
            |tally: Tally| if tally.count > 0 { units::bytes(tally.bytes as f64) } else { String::new() };
        let mut row = vec![
            crate::escape::shorten(&file.path, limits.path),
            units::if_known((traffic.data().count > 0).then_some(file.size_bytes as f64), units::bytes),
            units::count(file.processes),
            units::count(traffic.data().count),
            amount(traffic.read),
            amount(traffic.write),
            units::time_ns(traffic.all().time_ns),
            file.transfer.bandwidth_bytes_per_s().map_or(String::new(), units::rate),
            order.map_or(String::new(), order_name),
        ];
        if limits.wide {
            row.extend(more_of_file(file, lost_ns.get(&file.file).copied().unwrap_or(0.0)));
        }
        row
    });
    let mut columns =
        vec!["file", ">size", ">used by", ">requests", ">read", ">written", ">time", ">bandwidth", "order"];
    if limits.wide {
        columns.extend(MORE_OF_FILE);
    }
    let rest = found.files.len() - shown;
    Table {
        title: "Files, by time spent on them".into(),
        note: if rest > 0 {
            format!(
                "The {shown} with the most I/O time; {} more.",
                units::things(rest as u64, "file", "files")
            )
        } else {
            String::new()
        },
        columns,
        rows: rows.collect(),
    }
}

/// The order of a file's accesses, in a word or two.
fn order_name(order: Order) -> String {
    match order {
        Order::Once => "once".into(),
        Order::Sequential => "sequential".into(),
        // Bytes that are written again and again, as a header is.
        Order::Strided { bytes, stride: 0 } => format!("{} at one place", units::bytes(bytes.round())),
        Order::Strided { bytes, stride } => {
            format!("{} every {}", units::bytes(bytes.round()), units::bytes(stride as f64))
        }
        Order::Random => "random".into(),
        Order::Mixed => "mixed".into(),
    }
}

/// Headings of what is told of a file where there is room.
const MORE_OF_FILE: [&str; 8] =
    [">reads a byte", ">writes a byte", ">opens", ">other calls", ">at a time", ">lost", ">max/mean", "on"];

/// What all findings cost on each file.
fn lost_by_file_ns(found: &Explanation) -> BTreeMap<FileId, f64> {
    let mut lost_ns = BTreeMap::new();
    for (file, one_ns) in found.findings.iter().flat_map(Finding::lost_by_file_ns) {
        *lost_ns.entry(file).or_insert(0.0) += one_ns;
    }
    lost_ns
}

fn more_of_file(file: &FileStatistics, lost_ns: f64) -> [String; 8] {
    let calls = if has_posix(file) { &file.file_system } else { &file.program };
    let times = |value: f64| {
        if value > 0.0 { units::significant((value * 100.0).round() / 100.0) } else { String::new() }
    };
    let (read, written) = file.times_moved().unwrap_or_default();
    [
        times(read),
        times(written),
        units::count(calls.open.count),
        units::count(calls.other.count),
        file.concurrency().map_or(String::new(), times),
        if lost_ns > 0.0 { units::time_s(lost_ns / 1e9) } else { String::new() },
        file.imbalance.map_or(String::new(), units::significant),
        file_systems::of_file(file),
    ]
}

fn has_posix(file: &FileStatistics) -> bool {
    file.file_system.all().count > 0
}

fn traffic(file: &FileStatistics) -> Tally {
    if has_posix(file) { file.file_system.all() } else { file.program.all() }
}

/// Processes as their table shows them: in order of rank; if they are too many, those with the most I/O time.
pub(crate) fn processes_shown<'a>(found: &'a Explanation, limits: &Limits) -> Vec<&'a ProcessStatistics> {
    let mut processes: Vec<&ProcessStatistics> = found.processes.iter().collect();
    if processes.len() > limits.rows {
        processes.sort_by_key(|process| std::cmp::Reverse(process.io_ns));
        processes.truncate(limits.rows);
    }
    processes
}

/// Processes in order of rank; if they are too many, those with the most I/O time.
pub(crate) fn processes(found: &Explanation, limits: &Limits) -> Table {
    let processes = processes_shown(found, limits);
    let cut = processes.len() < found.processes.len();
    let rows = processes.iter().map(|process| {
        let data = process.program.data();
        let part = process.io_ns as f64 / process.lifetime_ns.max(1) as f64;
        let mut row = vec![
            process_name(process),
            process.host.clone(),
            units::count(data.count),
            units::bytes(process.program.read.bytes as f64),
            units::bytes(process.program.write.bytes as f64),
            units::bytes(process.file_system.data().bytes as f64),
            units::bytes(process.messages.bytes as f64),
            units::time_ns(process.io_ns),
            units::percent(part),
        ];
        if limits.wide {
            row.push(process.transfer.bandwidth_bytes_per_s().map_or(String::new(), units::rate));
        }
        row
    });
    let rows = rows.collect();
    let mut note = found.imbalance.filter(|_| found.process_count > 1).map_or(String::new(), |imbalance| {
        let times = |value: Option<f64>| value.map_or("–".into(), units::significant);
        format!(
            "Largest over mean: {} for the bytes the program moved, {} for those that reached the files, {} for time in \
             I/O (1 is even).",
            times(imbalance.program_bytes),
            times(imbalance.file_system_bytes),
            times(imbalance.io_time),
        )
    });
    let mut columns = vec![
        if found.is_mpi { "rank" } else { "process" },
        "host",
        ">requests",
        ">read",
        ">written",
        ">on files",
        ">messages",
        ">time in I/O",
        ">of its life",
    ];
    if limits.wide {
        columns.push(">bandwidth");
    }
    if cut {
        note = format!(
            "The {} of {} with the most I/O time. {note}",
            limits.rows,
            units::count(found.process_count)
        );
    }
    Table {
        title: if found.is_mpi { "Ranks, one by one".into() } else { "Processes, one by one".into() },
        note: note.trim().into(),
        columns,
        rows,
    }
}

/// The rank, or `python3 (pid 4711)`.
pub(crate) fn process_name(process: &ProcessStatistics) -> String {
    match process.rank {
        Some(rank) => format!("{rank}"),
        None => crate::escape::program(&process.program_name, process.pid),
    }
}
