//! What the page's script needs to count a table's rows anew for chosen calls: which calls a row is of, and what each of its
//! columns counts. `page/measures.js` has the other half: the names here are its own.

use pio_explain::{Explanation, OperationView};
use pio_trace::Layer;

use crate::escape;
use crate::sections::{self, Limits};
use crate::table::Table;
use crate::timeline::Timeline;

/// A column that is the same whichever calls are chosen: names, for the most part.
const SAME: &str = "";
/// A column that cannot be told of some calls alone.
const WHOLE: &str = "whole";

/// The level of calls at the files that MPI-IO was used on.
pub(crate) const MPI_FILES: &str = "mpi-files";

/// How the rows of a table are counted.
pub(crate) struct Live {
    /// What a row is: an operation, a file, …
    of: &'static str,
    /// Which calls are counted at all, where that is not the same for all such tables.
    level: String,
    /// One a column.
    measures: Vec<&'static str>,
    /// One a row.
    keys: Vec<String>,
}

impl Live {
    /// For the element of the table.
    pub(crate) fn attributes(&self) -> String {
        format!(" data-of=\"{}\" data-level=\"{}\"", self.of, self.level)
    }

    /// For a heading.
    pub(crate) fn of_column(&self, column: usize) -> String {
        let measure = self.measures.get(column).copied().unwrap_or(WHOLE);
        if measure == SAME { String::new() } else { format!(" data-measure=\"{measure}\"") }
    }

    /// For a row.
    pub(crate) fn of_row(&self, row: usize) -> String {
        self.keys.get(row).map_or(String::new(), |key| format!(" data-key=\"{}\"", escape::html(key)))
    }
}

/// Operations as the file system saw them.
pub(crate) fn operations(found: &Explanation) -> Live {
    of_view(&found.operations, level(found))
}

/// Operations as the program asked for them.
pub(crate) fn asked_operations(found: &Explanation) -> Option<Live> {
    let view = found.asked_operations.as_ref()?;
    Some(of_view(view, view.layer.name().to_owned()))
}

/// Which calls the file system's view counts: as in [`Explanation::operations`].
pub(crate) fn level(found: &Explanation) -> String {
    let through_mpi = found.layers.iter().any(|table| table.layer == Layer::MpiIo);
    match found.operations.layer {
        Layer::Posix if found.asked_operations.is_some() && through_mpi => MPI_FILES.to_owned(),
        Layer::Posix => "files".to_owned(),
        layer => layer.name().to_owned(),
    }
}

fn of_view(view: &OperationView, level: String) -> Live {
    let mut keys: Vec<_> = view.for_io().map(|(op, _)| op.name().to_owned()).collect();
    if view.table.acknowledgements.count > 0 {
        keys.push("acknowledgement".to_owned());
    }
    let measures = vec![SAME, "calls", "time", "per-process", "bytes", "rate"];
    Live { of: "operation", level, measures, keys }
}

/// Operations by layer.
pub(crate) fn layers(found: &Explanation) -> Live {
    let keys = sections::layer_rows(found)
        .map(|row| format!("{} {} {}", row.layer.layer.name(), row.layer.physical, row.operation));
    let measures = vec![SAME, SAME, "calls", "time", "mean", WHOLE, "bytes"];
    Live { of: "layer", level: String::new(), measures, keys: keys.collect() }
}

/// All functions.
pub(crate) fn calls(found: &Explanation) -> Live {
    let keys = found.calls.iter().map(|(call, _)| call.name().to_owned()).collect();
    let measures = vec![SAME, SAME, "calls", "failed", "time", "mean", "bytes"];
    Live { of: "call", level: String::new(), measures, keys }
}

/// Request sizes.
pub(crate) fn request_sizes(found: &Explanation, sizes: &sections::RequestSizes) -> Live {
    let keys = sizes.rows.iter().map(|row| {
        let level = if row.at_file_system { level(found) } else { row.layer.name().to_owned() };
        size_key(&level, row.op.name(), row.class.from_bytes, row.class.to_bytes)
    });
    let measures = vec![SAME, SAME, SAME, "calls", WHOLE, "asked", WHOLE];
    Live { of: "size", level: String::new(), measures, keys: keys.collect() }
}

/// Which requests a class of sizes is of.
pub(crate) fn size_key(level: &str, op: &str, from_bytes: u64, to_bytes: u64) -> String {
    format!("{level} {op} {from_bytes} {to_bytes}")
}

/// Files.
pub(crate) fn files(found: &Explanation, limits: &Limits, timeline: &Timeline) -> Live {
    let number = |file| timeline.file_numbers.get(&file).map_or(String::new(), u64::to_string);
    let keys = sections::files_shown(found, limits).iter().map(|file| number(file.file)).collect();
    let mut measures = vec![SAME, SAME, "processes", "requests", "read", "written", "time", "rate", WHOLE];
    measures.extend([WHOLE, WHOLE, "opens", "others", WHOLE, WHOLE, WHOLE, SAME]);
    Live { of: "file", level: String::new(), measures, keys }
}

/// Processes.
pub(crate) fn processes(found: &Explanation, limits: &Limits) -> Live {
    // Their places in the explanation are those in the page.
    let place = |id| found.processes.iter().position(|process| process.process == id);
    let shown = sections::processes_shown(found, limits);
    let keys = shown.iter().map(|one| place(one.process).map_or(String::new(), |place| place.to_string()));
    let measures =
        vec![SAME, SAME, "requests", "read", "written", "on-files", "messages", "busy", WHOLE, "rate"];
    Live { of: "process", level: String::new(), measures, keys: keys.collect() }
}

/// A table that is counted anew; nothing if it has no rows.
pub(crate) fn html(table: &Table, live: &Live) -> String {
    debug_assert_eq!(table.columns.len(), live.measures.len(), "{}", table.title);
    if table.rows.is_empty() { String::new() } else { table.html_with(Some(live)) }
}
