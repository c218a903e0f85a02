//! The HTML report: one file, no request to anywhere.

use std::io::{self, Write};

use pio_explain::{Counted, Explanation, Transfers};
use pio_trace::{BlockEvents, Event, Splits, Tables, Trace};

use crate::counted;
use crate::escape::{self, TITLE_COLUMNS};
use crate::figures;
use crate::gathered::{Gathered, Gathering, Part, Take};
use crate::prediction::{self, Prediction};
use crate::sections::{self, Limits, RequestSizes};
use crate::table::Table;
use crate::timeline::Timeline;
use crate::{
    call_sites, collectives, comparison, crowd, file_systems, findings, headline, live, marked, over_time,
    rhythm, units, words,
};

pub(crate) const STYLE: &str = include_str!("page.css");
/// The page's script: one scope, a file a concept. Later ones use earlier ones.
const SCRIPT: [&str; 18] = [
    include_str!("page/data.js"),
    include_str!("page/words.js"),
    include_str!("page/measures.js"),
    include_str!("page/selection.js"),
    include_str!("page/theme.js"),
    include_str!("page/canvas.js"),
    include_str!("page/view.js"),
    include_str!("page/bars.js"),
    include_str!("page/marks.js"),
    include_str!("page/timeline.js"),
    include_str!("page/pointer.js"),
    include_str!("page/overview.js"),
    include_str!("page/offsets.js"),
    include_str!("page/heat.js"),
    include_str!("page/tables.js"),
    include_str!("page/figures.js"),
    include_str!("page/filters.js"),
    include_str!("page/start.js"),
];

/// Nothing may be loaded, whatever the page contains.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Writes the report of a trace as one HTML file that needs nothing else: it can be mailed and opened offline.
///
/// `events` are those of `tables`, in order of their start; `splits` say where the time of their collective calls went
/// ([`pio_explain::splits`]), and `found` is their explanation. Beyond a hundred thousand
/// events the timeline draws neighbours as one, and says so. The same input gives the same bytes.
///
/// # Errors
/// If `out` cannot be written.
pub fn html(
    tables: &Tables,
    events: impl IntoIterator<Item = Event>,
    splits: &Splits,
    found: &Explanation,
    predictions: &[Prediction],
    out: &mut impl Write,
) -> io::Result<()> {
    let each = |take: Take<'_>| events.into_iter().for_each(|event| take(Part::One(&event)));
    page(tables, Gathered::of(tables, each, splits, found), found, predictions, None, out)
}

fn page(
    tables: &Tables,
    gathered: Gathered<'_>,
    found: &Explanation,
    predictions: &[Prediction],
    counted: Option<&Counted>,
    out: &mut impl Write,
) -> io::Result<()> {
    let timeline = Timeline::of(tables, gathered, found);
    head(found, out)?;
    match counted.filter(|_| found.events == 0) {
        Some(counted) => {
            headline(&counted::headline_lines(found, counted), out)?;
            trouble(found, out)?;
            summary_of_counters(found, counted, out)?;
            section("findings", "Findings", &findings_of_counters(found), out)?;
        }
        None => {
            headline(&headline::lines(found), out)?;
            trouble(found, out)?;
            summary(found, out)?;
            filters(&timeline, out)?;
            out.write_all(figures::time_by_operation(found).as_bytes())?;
        }
    }
    let has_events = found.events > 0 || counted.is_none();
    if has_events {
        section("findings", "Findings", &findings::html(found), out)?;
        let is_crowd = over_time::is_crowd(found);
        let heat = over_time::html(found) + &filled(&over_time::apart(found));
        if is_crowd {
            let title = if found.is_mpi { "Ranks over time" } else { "Processes over time" };
            section("over-time", title, &heat, out)?;
        }
        section("timeline", "Timeline", &timeline_figure(&timeline), out)?;
        section("offsets", "Offsets over time", &offsets_figure(&timeline), out)?;
        let heat = if is_crowd { String::new() } else { heat };
        section("activity", "Activity", &(figures::data_rate(found) + &heat), out)?;
    }
    if !predictions.is_empty() {
        let body = figures::predictions(predictions)
            + &prediction::table(predictions).html()
            + &comparison::html(predictions);
        section("predictions", "Predictions", &body, out)?;
    }
    if has_events {
        sections_of_events(found, &timeline, out)?;
    }
    if let Some(counted) = counted.filter(|counted| !counted.is_empty()) {
        section("counters", "Counters", &counted::html(counted), out)?;
    }
    section("about", "About this trace", &about(found), out)?;
    out.write_all(b"</main>\n<script type=\"application/json\" id=\"data\">")?;
    out.write_all(timeline.json.as_bytes())?;
    out.write_all(b"</script>\n<script>\n\"use strict\";\n(() => {\n")?;
    for part in SCRIPT {
        out.write_all(part.as_bytes())?;
    }
    out.write_all(b"})();\n</script>\n</body>\n</html>\n")?;
    out.flush()
}

fn sections_of_events(found: &Explanation, timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    section("operations", "Operations", &operations(found), out)?;
    let limits = Limits { rows: 1000, path: 72, wide: true };
    let files = live::html(&sections::files(found, &limits), &live::files(found, &limits, timeline));
    section("files", "Files", &(filled(&file_systems::table(found)) + &files), out)?;
    let marked: String = marked::numbers(found, &limits).iter().map(filled).collect();
    section("marked", "Marks", &(marked + &filled(&marked::names(found))), out)?;
    section("call-sites", "Call sites", &filled(&call_sites::table(found, &limits)), out)?;
    let title = if found.is_mpi { "Ranks" } else { "Processes" };
    // Of thousands the tables of hosts and of who differs tell more, and each row takes time whenever other calls are chosen.
    let of_processes =
        Limits { rows: if found.processes.len() > limits.rows { 200 } else { limits.rows }, ..limits };
    let processes =
        live::html(&sections::processes(found, &of_processes), &live::processes(found, &of_processes));
    let crowd =
        filled(&crowd::outliers(found)) + &filled(&crowd::hosts(found, &Limits { rows: 100, ..limits }));
    section("processes", title, &(figures::processes(found) + &crowd + &processes), out)?;
    section(
        "workload",
        "Workload",
        &(filled(&sections::workload(found))
            + &filled(&rhythm::purposes(found, &limits))
            + &filled(&rhythm::phases(found))
            + &filled(&sections::patterns(found))),
        out,
    )
}

/// The same for a trace file; `gathering` comes of [`explain_for_page`](crate::explain_for_page) with the explanation of the same
/// file. Without it the file is read again.
///
/// # Errors
/// If the trace cannot be read, or `out` cannot be written.
pub fn html_of_trace(
    trace: &Trace,
    found: &Explanation,
    gathering: Option<Gathering<'_>>,
    predictions: &[Prediction],
    out: &mut impl Write,
) -> io::Result<()> {
    let gathered = match gathering.and_then(|gathering| gathering.finish(found)) {
        Some(gathered) => gathered,
        None => gather(trace, found)?,
    };
    page(trace.tables(), gathered, found, predictions, None, out)
}

/// The same for a Darshan log: the trace made of it, and what its counters say.
///
/// # Errors
/// If the trace cannot be read, or `out` cannot be written.
pub fn html_with_counters(
    trace: &Trace,
    found: &Explanation,
    counted: &Counted,
    out: &mut impl Write,
) -> io::Result<()> {
    page(trace.tables(), gather(trace, found)?, found, &[], Some(counted), out)
}

fn gather<'a>(trace: &'a Trace, found: &Explanation) -> io::Result<Gathered<'a>> {
    let splits = pio_explain::splits(trace).map_err(io::Error::other)?;
    Ok(Gathered::of(trace.tables(), events(trace), &splits, found))
}

/// Those of all blocks that can be read: the explanation has told of the others.
fn events(trace: &Trace) -> impl FnOnce(Take<'_>) {
    |take| {
        let mut events = BlockEvents::default();
        for block in 0..trace.blocks().len() {
            if trace.read_block(block, &mut events).is_ok() {
                take(Part::Block(&events));
            }
        }
    }
}

fn head(found: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let job = escape::html(&found.job);
    let title = escape::html(&escape::beginning(&found.job, TITLE_COLUMNS));
    let lost = headline::lost(found).map_or(String::new(), |lost| {
        format!("<p class=\"incomplete\" role=\"alert\">{}</p>\n", escape::prose(&lost))
    });
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – I/O report</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{lost}\
         <header><div><p class=\"kind\">I/O report</p><h1 title=\"{job}\">{title}</h1></div>\
         <button type=\"button\" id=\"theme\" title=\"Light or dark\">Dark</button></header>\n"
    )
}

/// What matters most.
fn headline(lines: &[(&str, String)], out: &mut impl Write) -> io::Result<()> {
    let items: String = lines
        .iter()
        .map(|(about, line)| format!("<div><dt>{about}</dt><dd>{}</dd></div>", escape::prose_with_code(line)))
        .collect();
    writeln!(out, "<dl class=\"headline\" aria-label=\"What matters most\">{items}</dl>")
}

fn trouble(found: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let lines = words::trouble(&found.trouble);
    if lines.is_empty() {
        return Ok(());
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape::prose(line))).collect();
    writeln!(
        out,
        "<section class=\"trouble\" aria-label=\"Attention\"><h2>Attention</h2><ul>{items}</ul></section>"
    )
}

fn summary(found: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let sentences = escape::prose(&words::summary(found).join(" "));
    let workload = &found.workload;
    let bytes = |value: u64| {
        let least = if found.trouble.is_incomplete() { "≥ " } else { "" };
        format!("{least}{}", units::bytes(value as f64))
    };
    let number = |value: Option<f64>, unit: fn(f64) -> String| value.map_or("–".into(), unit);
    let Transfers { read, write, .. } = found.transfers;
    let in_io = format!("of {} in I/O", words::of_what(found, "it"));
    let cards = [
        ("duration", units::time_ns(found.duration_ns)),
        (&in_io, number(found.io_time.fraction(), units::percent)),
        (if found.is_mpi { "ranks" } else { "processes" }, units::count(found.process_count)),
        ("files", units::count(workload.files)),
        ("read", bytes(workload.read.bytes)),
        ("written", bytes(workload.write.bytes)),
        ("read bandwidth", number(read.bandwidth_bytes_per_s(), units::rate)),
        ("write bandwidth", number(write.bandwidth_bytes_per_s(), units::rate)),
    ];
    write_summary(&sentences, &cards, out)
}

/// What is shown of the whole, and how to choose: the script makes it.
fn filters(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    if timeline.rows == 0 {
        return Ok(());
    }
    writeln!(out, "<div id=\"filters\" role=\"region\" aria-label=\"Filters\"></div>")
}

fn findings_of_counters(found: &Explanation) -> String {
    format!("{}<p class=\"note\">{}</p>", findings::html(found), escape::prose_with_code(counted::NOT_SHOWN))
}

fn summary_of_counters(found: &Explanation, counted: &Counted, out: &mut impl Write) -> io::Result<()> {
    let sentences = escape::prose(&counted::summary(found, counted).join(" "));
    write_summary(&sentences, &counted::cards(counted), out)
}

fn write_summary(sentences: &str, cards: &[(&str, String)], out: &mut impl Write) -> io::Result<()> {
    let cards: String = cards
        .iter()
        .filter(|(_, value)| value != "–")
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>"))
        .collect();
    write!(out, "<p class=\"summary\">{sentences}</p>\n<dl class=\"cards\">{cards}</dl>\n")
}

fn timeline_figure(timeline: &Timeline) -> String {
    if timeline.rows == 0 {
        return String::new();
    }
    let layers: String = timeline
        .layers
        .iter()
        .map(|layer| {
            format!(
                "<button type=\"button\" data-layer=\"{0}\" aria-pressed=\"true\">{0}</button>",
                layer.name()
            )
        })
        .collect();
    let ops: String = timeline
        .ops
        .iter()
        .map(|op| {
            format!("<button type=\"button\" data-op=\"{op}\" aria-pressed=\"true\"><i class=\"key op-{op}\"></i>{op}</button>")
        })
        .collect();
    let paragraph = |text: &str| if text.is_empty() { String::new() } else { format!("<p>{text}</p>") };
    let (note, marks) = (paragraph(&timeline.note), paragraph(&timeline.marks));
    let parts = legend_of_parts(timeline.parts);
    let rows = match timeline.rows > timeline.processes {
        true => "one row a thread",
        false => "one row a process",
    };
    format!(
        "<figure class=\"timeline live\"><div class=\"bar\"><div class=\"group\" role=\"group\" aria-label=\"Layers\">{layers}</div>\
         <div class=\"group\" role=\"group\" aria-label=\"Operations\">{ops}</div>\
         <div class=\"group end\" role=\"group\" aria-label=\"Zoom\">\
         <button type=\"button\" id=\"choose\">Choose this time</button>\
         <button type=\"button\" id=\"out\" aria-label=\"Zoom out\">−</button>\
         <button type=\"button\" id=\"in\" aria-label=\"Zoom in\">+</button>\
         <button type=\"button\" id=\"reset\">Whole run</button></div></div>\
         <noscript><p class=\"note\">Figures over time and filters need JavaScript; the tables do not.</p></noscript>\
         <div class=\"stage\"><canvas id=\"bars\" tabindex=\"0\" role=\"application\" aria-label=\"Timeline: the calls of {processes} \
         over time, {rows}. The tables below hold the same data.\" aria-describedby=\"keys\"></canvas>\
         <canvas id=\"overview\" tabindex=\"0\" role=\"application\" aria-label=\"The whole run: drag, or use arrows, + and -, to choose a time; Escape ends it.\"></canvas>\
         <div class=\"tip\" role=\"status\" hidden></div></div>{parts}\
         <figcaption id=\"keys\"><p>Drag to move; Shift + drag, or drag on the strip below, chooses a time for all figures and \
         tables. Ctrl + wheel or pinch to zoom; after a click on the timeline the wheel alone does. Keys: arrows move, + and − \
         zoom, 0 shows the whole run, C chooses the time that is shown, Escape ends that. Double-click zooms in.</p>{marks}{note}\
         </figcaption></figure>",
        processes = units::things(timeline.processes as u64, "process", "processes"),
    )
}

fn offsets_figure(timeline: &Timeline) -> String {
    if !timeline.has_offsets {
        return String::new();
    }
    "<figure class=\"live\"><div class=\"bar\"><label>File <select id=\"offset-file\"></select></label>\
     <label>Colour by <select id=\"offset-colour\"><option value=\"op\">operation</option>\
     <option value=\"process\">process</option></select></label></div>\
     <div class=\"stage\"><canvas id=\"offset-plot\" role=\"img\" aria-label=\"Offsets in the file over time\"></canvas>\
     <div class=\"tip\" role=\"status\" hidden></div></div>\
     <figcaption><p>Each call that reads or writes, from its first byte up to its last, over its time. The time is that of \
     the timeline above.</p></figcaption></figure>"
        .to_owned()
}

fn legend_of_parts(parts: &[&str]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let keys: String = parts
        .iter()
        .enumerate()
        .map(|(number, name)| {
            // The last is the colour itself.
            let strength = if number + 1 == parts.len() { 2 } else { number };
            format!("<li><i class=\"key part-{strength}\"></i>{name}</li>")
        })
        .collect();
    format!(
        "<ul class=\"keys parts\" aria-label=\"Parts of a collective call\"><li>A collective call, in shades of its colour:</li>\
         {keys}</ul><p class=\"parts\">The length of each part is right; library and files take turns, but are drawn one \
         after the other. A call of which the parts are not known has one shade.</p>"
    )
}

fn operations(found: &Explanation) -> String {
    let mut body = live::html(&sections::operations(found), &live::operations(found));
    if let Some(live) = live::asked_operations(found) {
        body.push_str(&live::html(&sections::asked_operations(found), &live));
    }
    body.push_str(&filled(&collectives::table(found)));
    body.push_str(&figures::request_sizes(found));
    let sizes = RequestSizes::of(found);
    body.push_str(&live::html(&sizes.table(), &live::request_sizes(found, &sizes)));
    body.push_str(&live::html(&sections::layers(found), &live::layers(found)));
    let calls = live::html(&sections::calls(found), &live::calls(found));
    if !calls.is_empty() {
        body.push_str(&format!("<details><summary>All functions</summary>{calls}</details>"));
    }
    body
}

fn about(found: &Explanation) -> String {
    let mut rows = vec![
        vec!["job".into(), found.job.clone()],
        vec!["events".into(), units::count(found.events)],
        vec!["duration".into(), units::time_ns(found.duration_ns)],
    ];
    rows.extend(found.notes.iter().map(|(key, value)| vec![key.clone(), value.clone()]));
    let table = Table {
        title: "What the trace says of itself".into(),
        note: String::new(),
        columns: vec!["what", "value"],
        rows,
    };
    let harmless = Table {
        title: words::HARMLESS.into(),
        note: String::new(),
        columns: vec!["calls"],
        rows: words::harmless(&found.trouble).into_iter().map(|line| vec![line]).collect(),
    };
    filled(&harmless) + &table.html()
}

fn filled(table: &Table) -> String {
    if table.rows.is_empty() { String::new() } else { table.html() }
}

fn section(id: &str, title: &str, body: &str, out: &mut impl Write) -> io::Result<()> {
    if body.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section id=\"{id}\"><h2>{title}</h2>\n{body}</section>")
}
