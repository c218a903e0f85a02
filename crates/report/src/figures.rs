//! Figures as inline SVG, coloured by the page's style sheet.
//!
//! Each has a `role` and a label that says in words what it shows; the numbers themselves are in the tables.

use pio_explain::{Both, Explanation, ProcessStatistics, Sizes};
use pio_trace::{Call, Layer, Op};

use crate::bars::op_name;
use crate::escape::html;
use crate::live;
use crate::prediction::{Prediction, interval_text, strategy_of};
use crate::sections::{of_which_files, process_name, size_name};
use crate::units;

/// Width of every figure in its own units; the page scales it.
const WIDTH: f64 = 1020.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 12.0;

/// Where the time goes, as one bar: that of all processes by operation, and that in MPI-IO calls that is in none of them.
pub(crate) fn time_by_operation(found: &Explanation) -> String {
    let table = &found.operations.table;
    let mut parts: Vec<(&str, f64)> = found
        .operations
        .for_io()
        .map(|(op, tally)| (op.name(), tally.time_s()))
        .filter(|part| part.1 > 0.0)
        .collect();
    if table.acknowledgements.time_ns > 0 {
        parts.push(("acknowledgement", table.acknowledgements.time_s()));
    }
    // Where the operations are those below MPI-IO, its own time is in none of them.
    if found.operations.layer == Layer::Posix {
        parts.extend(elsewhere_in_mpi_io(found));
    }
    let total: f64 = parts.iter().map(|part| part.1).sum();
    if total <= 0.0 {
        return String::new();
    }
    let words: Vec<_> =
        parts.iter().map(|(name, time_s)| format!("{name} {}", units::percent(time_s / total))).collect();
    let mut body = String::new();
    let mut x = 0.0;
    for (name, time_s) in &parts {
        let width = WIDTH * time_s / total;
        let tip = format!("{name}: {} in all, {}", units::time_s(*time_s), units::percent(time_s / total));
        body.push_str(&format!(
            "<rect class=\"{}\" data-key=\"{name}\" x=\"{x:.2}\" y=\"0\" width=\"{width:.2}\" height=\"26\"><title>{tip}</title></rect>",
            part_class(name)
        ));
        x += width;
    }
    let legend: String = parts
        .iter()
        .map(|(name, time_s)| {
            format!(
                "<li><i class=\"key {}\"></i>{name} <b>{}</b></li>",
                part_class(name),
                units::percent(time_s / total)
            )
        })
        .collect();
    let live = format!("data-bars=\"time\" data-level=\"{}\"", live::level(found));
    let svg = live_svg(26.0, &format!("Time by operation: {}", words.join(", ")), &body, &live);
    let title = format!("Where the time of the operations goes{}", of_which_files(found));
    figure(&title, &format!("{svg}<ul class=\"keys\">{legend}</ul>"), "")
}

/// What processes spent in MPI-IO calls, but not in calls at the files or messages that the trace shows.
fn elsewhere_in_mpi_io(found: &Explanation) -> impl Iterator<Item = (&'static str, f64)> {
    let split = found.mpi_io.total();
    let seen = |messages: bool| {
        let below = found.layers.iter().filter(|table| table.physical);
        let below = below.filter(|table| match table.layer {
            Layer::Message => messages,
            Layer::Posix | Layer::Stdio | Layer::Server => !messages,
            Layer::MpiIo | Layer::Hdf5 | Layer::Pnetcdf | Layer::Mark => false,
        });
        below.map(|table| table.table.time_s()).sum::<f64>()
    };
    let seconds = |time_ns: u64| time_ns as f64 / 1e9;
    [
        ("late ranks", seconds(split.late_ns)),
        ("MPI library", seconds(split.library_ns.saturating_add(split.unknown_ns)) - seen(true)),
        ("other ranks at the files", seconds(split.files_ns) - seen(false)),
    ]
    .into_iter()
    .filter(|part| part.1 > 0.0)
}

/// Bytes per second over time: written above the axis, read below.
pub(crate) fn data_rate(found: &Explanation) -> String {
    let rate = &found.rate;
    let sum = |series: &[f64]| series.iter().sum::<f64>();
    let files = sum(&rate.file_system_read) + sum(&rate.file_system_write) > 0.0;
    let program = sum(&rate.program_read) + sum(&rate.program_write) > 0.0;
    let differ = rate.program_read != rate.file_system_read || rate.program_write != rate.file_system_write;
    let (duration_s, bin_s) = (found.duration_s(), rate.bin_ns as f64 / 1e9);
    // Of no time there is no rate.
    if found.duration_ns == 0 {
        return String::new();
    }
    let cycles = crate::rhythm::cycle_starts(found);
    let mut html = String::new();
    if program && (differ || !files) {
        let title = "Data rate over time, as the program saw it";
        html.push_str(&rate_of_calls(
            title,
            duration_s,
            bin_s,
            [&rate.program_read, &rate.program_write],
            &cycles,
            "program",
        ));
    }
    if files {
        let title = if differ { "Data rate over time, at the files" } else { "Data rate over time" };
        html.push_str(&rate_of_calls(
            title,
            duration_s,
            bin_s,
            [&rate.file_system_read, &rate.file_system_write],
            &cycles,
            "files",
        ));
    }
    html
}

/// Bytes over time: `read` and `write` have the bytes of each span of `bin_s` seconds, of `duration_s` in all; `cycles`
/// are the seconds at which cycles begin.
pub(crate) fn rate_figure(
    title: &str,
    duration_s: f64,
    bin_s: f64,
    read: &[f64],
    write: &[f64],
    cycles: &[f64],
) -> String {
    rate_of_calls(title, duration_s, bin_s, [read, write], cycles, "")
}

/// The same of calls of which the page has bars: `calls` names them. It is empty if there are none.
fn rate_of_calls(
    title: &str,
    duration_s: f64,
    bin_s: f64,
    [read, write]: [&[f64]; 2],
    cycles: &[f64],
    calls: &str,
) -> String {
    const HEIGHT: f64 = 190.0;
    const TOP: f64 = 10.0;
    const BOTTOM: f64 = 24.0;
    let peak = |series: &[f64]| series.iter().copied().fold(0.0, f64::max) / bin_s;
    let (read_peak, write_peak) = (peak(read), peak(write));
    let step = binary_step((read_peak + write_peak) / 4.0);
    let above = (write_peak / step).ceil() * step;
    let below = (read_peak / step).ceil() * step;
    let plot = HEIGHT - TOP - BOTTOM;
    let scale = plot / (above + below).max(f64::MIN_POSITIVE);
    let zero = TOP + above * scale;
    let mut body = String::new();
    let mut level = -below;
    while level <= above + step / 2.0 {
        let y = zero - level * scale;
        let class = if level.abs() < step / 2.0 { "axis" } else { "grid" };
        body.push_str(&format!(
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            WIDTH - RIGHT
        ));
        let label = if level.abs() < step / 2.0 { "0".into() } else { units::rate(level.abs()) };
        body.push_str(&text(LEFT - 8.0, y + 4.0, "end", &label));
        level += step;
    }
    let (axis, x_of) = time_axis(duration_s, HEIGHT - BOTTOM);
    body.push_str(&axis);
    for (series, class, sign) in [(write, "write", 1.0), (read, "read", -1.0)] {
        if series.iter().all(|&bytes| bytes == 0.0) {
            continue;
        }
        let mut path = format!("M{:.1} {zero:.1}", LEFT);
        for (bin, bytes) in series.iter().enumerate() {
            let y = zero - sign * bytes / bin_s * scale;
            let from = x_of((bin as f64 * bin_s).min(duration_s));
            let to = x_of(((bin + 1) as f64 * bin_s).min(duration_s));
            path.push_str(&format!("L{from:.1} {y:.1}L{to:.1} {y:.1}"));
        }
        path.push_str(&format!("L{:.1} {zero:.1}Z", x_of(duration_s)));
        body.push_str(&format!("<path class=\"op-{class}\" data-key=\"{class}\" d=\"{path}\"/>"));
    }
    for start_s in cycles {
        let x = x_of(*start_s);
        body.push_str(&format!(
            "<line class=\"cycle\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>",
            HEIGHT - BOTTOM
        ));
    }
    let label = format!(
        "{title}: writes up to {}, reads up to {}, over {}",
        units::rate(write_peak),
        units::rate(read_peak),
        units::time_s(duration_s)
    );
    let mut keys = String::new();
    for (name, place, peak) in [("write", "above", write_peak), ("read", "below", read_peak)] {
        if peak > 0.0 {
            let side = if read_peak > 0.0 && write_peak > 0.0 {
                format!(", {place} the axis")
            } else {
                String::new()
            };
            keys.push_str(&format!(
                "<li><i class=\"key op-{name}\"></i>{name}{side} <b>up to {}</b></li>",
                units::rate(peak)
            ));
        }
    }
    if !cycles.is_empty() {
        keys.push_str(&format!(
            "<li><i class=\"key cycle\"></i>{} begin</li>",
            units::things(cycles.len() as u64, "cycle", "cycles")
        ));
    }
    let live = match calls {
        "" => String::new(),
        // Where the script draws the same for chosen calls: all times and rates have their places.
        calls => format!(
            "data-bars=\"rate\" data-level=\"{calls}\" data-bin-ns=\"{}\" data-zero=\"{zero:.2}\" data-left=\"{LEFT}\" \
             data-per-ns=\"{:e}\" data-per-rate=\"{scale:e}\"",
            bin_s * 1e9,
            (WIDTH - LEFT - RIGHT) / (duration_s * 1e9).max(1.0),
        ),
    };
    figure(title, &format!("<ul class=\"keys\">{keys}</ul>{}", live_svg(HEIGHT, &label, &body, &live)), "")
}

/// How many requests of each size.
pub(crate) fn request_sizes(found: &Explanation) -> String {
    let table = &found.operations.table;
    let mut classes: Vec<(u64, u64)> = Vec::new();
    let is_exact = |sizes: &Sizes| sizes.is_exact() && sizes.classes().len() <= 16;
    let exact = is_exact(&table.read_sizes) && is_exact(&table.write_sizes);
    let of = |sizes: &Sizes| if exact { sizes.classes() } else { sizes.powers() };
    let series = [(Op::Read, of(&table.read_sizes)), (Op::Write, of(&table.write_sizes))];
    for (_, sizes) in &series {
        classes.extend(sizes.iter().map(|class| (class.from_bytes, class.to_bytes)));
    }
    classes.sort_unstable();
    classes.dedup();
    let most = series.iter().flat_map(|(_, sizes)| sizes).map(|class| class.amount.count).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let level = live::level(found);
    let (left, right, bar) = (150.0, 90.0, 11.0);
    let used: Vec<_> = series.iter().filter(|(_, sizes)| !sizes.is_empty()).collect();
    let row = bar * used.len() as f64 + 7.0;
    let mut body = String::new();
    let mut words = Vec::new();
    for (index, &(from_bytes, to_bytes)) in classes.iter().enumerate() {
        let top = index as f64 * row + 2.0;
        let name = size_name(from_bytes, to_bytes);
        body.push_str(&text(left - 8.0, top + (row - 7.0) / 2.0 + 4.0, "end", &name));
        for (slot, (op, sizes)) in used.iter().enumerate() {
            let Some(class) = sizes.iter().find(|class| class.from_bytes == from_bytes) else { continue };
            let width = ((WIDTH - left - right) * class.amount.count as f64 / most as f64).max(1.0);
            let y = top + slot as f64 * bar;
            let op = op.name();
            let count = units::count(class.amount.count);
            words.push(format!("{count} {op}s of {name}"));
            body.push_str(&format!(
                "<rect class=\"op-{op}\" data-key=\"{}\" x=\"{left}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"1.5\"><title>{count} {op}s of {name}: {}</title></rect>",
                live::size_key(&level, op, from_bytes, to_bytes),
                bar - 1.0,
                units::bytes(class.amount.bytes as f64),
            ));
            body.push_str(&text(left + width + 6.0, y + bar - 2.0, "start", &count));
        }
    }
    let keys: String =
        used.iter().map(|(op, _)| format!("<li><i class=\"key op-{0}\"></i>{0}s</li>", op.name())).collect();
    let label = format!("Request sizes: {}", words.join(", "));
    let svg = live_svg(classes.len() as f64 * row + 2.0, &label, &body, "data-bars=\"sizes\"");
    let title = format!("Requests by size{}", of_which_files(found));
    figure(&title, &format!("<ul class=\"keys\">{keys}</ul>{svg}"), "")
}

/// Time in I/O and bytes of each process, as two rows of bars.
pub(crate) fn processes(found: &Explanation) -> String {
    /// More would be thinner than two units.
    const MOST: usize = 340;
    if found.processes.len() < 2 {
        return String::new();
    }
    let group = found.processes.len().div_ceil(MOST);
    let groups: Vec<_> = found.processes.chunks(group).collect();
    let mean = |of: fn(&ProcessStatistics) -> u64| -> Vec<f64> {
        let mean = |group: &&[ProcessStatistics]| {
            group.iter().map(|process| of(process) as f64).sum::<f64>() / group.len() as f64
        };
        groups.iter().map(mean).collect()
    };
    let io = mean(|process| process.io_ns);
    let (reads, writes) =
        (mean(|process| process.program.read.bytes), mean(|process| process.program.write.bytes));
    let files = mean(|process| process.file_system.data().bytes);
    let data: Vec<f64> = reads.iter().zip(&writes).map(|(read, write)| read + write).collect();
    let names: Vec<String> =
        groups.iter().map(|group| name_of(found, group[0].rank, &process_name(&group[0]))).collect();

    let mut body = String::new();
    let mut words = Vec::new();
    let mut top = 0.0;
    let by_time: fn(f64) -> String = |ns| units::time_s(ns / 1e9);
    let panels = [
        ("time in I/O", &io, "io", by_time),
        ("bytes asked for", &data, "asked", units::bytes),
        ("bytes on files", &files, "issued", units::bytes),
    ];
    for (name, values, class, unit) in panels {
        let largest = values.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 || (name == "bytes on files" && values == &data) {
            continue;
        }
        const PLOT: f64 = 62.0;
        body.push_str(&text(0.0, top + 12.0, "start", name));
        body.push_str(&text(WIDTH, top + 12.0, "end", &format!("up to {}", unit(largest))));
        let base = top + 20.0 + PLOT;
        let slot = WIDTH / values.len() as f64;
        let width = if slot > 4.0 { (slot - 2.0).min(60.0) } else { slot };
        for (index, value) in values.iter().enumerate() {
            let height = PLOT * value / largest;
            body.push_str(&format!(
                "<rect class=\"op-{class}\" data-key=\"{class} {} {}\" x=\"{:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"><title>{}: {}</title></rect>",
                index * group,
                (index + 1) * group,
                index as f64 * slot + (slot - width) / 2.0,
                base - height,
                html(&names[index]),
                unit(*value),
            ));
        }
        body.push_str(&format!("<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{base}\" y2=\"{base}\"/>"));
        words.push(format!("{name} up to {}", unit(largest)));
        top = base + 14.0;
    }
    if words.is_empty() {
        return String::new();
    }
    let (first, last) = (&names[0], &names[names.len() - 1]);
    body.push_str(&text(0.0, top + 2.0, "start", first));
    body.push_str(&text(WIDTH, top + 2.0, "end", last));
    let note = if group > 1 { format!("Each bar is the mean of {group} neighbours.") } else { String::new() };
    let label = format!("Bars by process: {}", words.join(", "));
    let svg = live_svg(top + 8.0, &label, &body, "data-bars=\"processes\"");
    figure("Load of the processes", &svg, &note)
}

fn name_of(found: &Explanation, rank: Option<u32>, name: &str) -> String {
    if found.is_mpi && rank.is_some() { format!("rank {name}") } else { name.to_string() }
}

/// The style of a part of a predicted time: an operation has the same colour everywhere.
fn part_class(name: &str) -> String {
    let name = match name {
        "late ranks" => "late",
        "MPI library" => "library",
        name => name,
    };
    let known =
        ["acknowledgement", "late", "library"].contains(&name) || Op::ALL.iter().any(|op| op.name() == name);
    format!("op-{}", if known { name } else { "other" })
}

/// Predicted times beside measured ones.
pub(crate) fn predictions(predictions: &[Prediction]) -> String {
    let longest = predictions
        .iter()
        .flat_map(|prediction| {
            let high_s = prediction.interval.as_ref().map_or(0.0, |interval| interval.high_s);
            [prediction.io_time_s, prediction.measured_s.unwrap_or(0.0), high_s]
        })
        .fold(0.0, f64::max);
    if longest <= 0.0 {
        return String::new();
    }
    let mut parts: Vec<&str> = Vec::new();
    for (name, _) in predictions.iter().flat_map(|prediction| &prediction.breakdown) {
        if !parts.contains(&name.as_str()) {
            parts.push(name);
        }
    }
    let (left, right, row) = (190.0, 140.0, 40.0);
    let x = |time_s: f64| (WIDTH - left - right) * time_s / longest;
    let mut body = String::new();
    let mut words = Vec::new();
    for (index, prediction) in predictions.iter().enumerate() {
        let top = index as f64 * row;
        body.push_str(&text(left - 10.0, top + 14.0, "end", strategy_of(prediction, predictions)));
        body.push_str(&small(left - 10.0, top + 27.0, &prediction.machine));
        let mut at = 0.0_f64;
        for (name, time_s) in &prediction.breakdown {
            let colour = part_class(name);
            body.push_str(&format!(
                "<rect class=\"{colour}\" x=\"{:.2}\" y=\"{}\" width=\"{:.2}\" height=\"13\"><title>{}: {}</title></rect>",
                left + x(at.min(prediction.io_time_s)),
                top + 4.0,
                x(time_s.min(prediction.io_time_s - at).max(0.0)),
                html(name),
                units::time_s(*time_s)
            ));
            at += time_s;
        }
        if at < prediction.io_time_s {
            body.push_str(&format!(
                "<rect class=\"predicted\" x=\"{:.2}\" y=\"{}\" width=\"{:.2}\" height=\"13\"><title>predicted: {}</title></rect>",
                left + x(at),
                top + 4.0,
                x(prediction.io_time_s - at),
                units::time_s(prediction.io_time_s)
            ));
        }
        let predicted = units::time_s(prediction.io_time_s);
        let mut end_s = prediction.io_time_s;
        if let Some(interval) = &prediction.interval {
            body.push_str(&format!(
                "<path class=\"interval\" d=\"M{low:.2} {y1}V{y2}M{low:.2} {middle}H{high:.2}M{high:.2} {y1}V{y2}\">\
                 <title>80 % interval: {}; {}</title></path>",
                interval_text(interval),
                html(&interval.reason),
                low = left + x(interval.low_s),
                high = left + x(interval.high_s),
                y1 = top + 6.0,
                middle = top + 10.5,
                y2 = top + 15.0,
            ));
            end_s = end_s.max(interval.high_s);
        }
        body.push_str(&text(left + x(end_s) + 6.0, top + 14.0, "start", &predicted));
        words.push(format!("{} on {}: {predicted} predicted", prediction.strategy, prediction.machine));
        if let Some(measured_s) = prediction.measured_s {
            let measured = units::time_s(measured_s);
            body.push_str(&format!(
                "<rect class=\"measured\" x=\"{left}\" y=\"{}\" width=\"{:.2}\" height=\"9\"><title>measured: {measured}</title></rect>",
                top + 18.0,
                x(measured_s)
            ));
            body.push_str(&text(
                left + x(measured_s) + 6.0,
                top + 27.0,
                "start",
                &format!("{measured} measured"),
            ));
            words.push(format!("{measured} measured"));
        }
    }
    let mut keys: String = parts
        .iter()
        .map(|name| format!("<li><i class=\"key {}\"></i>{}</li>", part_class(name), html(name)))
        .collect();
    if parts.is_empty() {
        keys.push_str("<li><i class=\"key predicted\"></i>predicted</li>");
    }
    if predictions.iter().any(|prediction| prediction.interval.is_some()) {
        keys.push_str("<li><i class=\"key interval\"></i>80 % interval</li>");
    }
    if predictions.iter().any(|prediction| prediction.measured_s.is_some()) {
        keys.push_str("<li><i class=\"key measured\"></i>measured</li>");
    }
    let svg = svg(predictions.len() as f64 * row, &format!("I/O time: {}", words.join(", ")), &body);
    figure("I/O time, predicted and measured", &format!("<ul class=\"keys\">{keys}</ul>{svg}"), "")
}

/// Times of numbered things (ranks, calls), predicted and measured, as pairs of bars.
pub(crate) fn in_pairs(title: &str, thing: &str, pairs: &[(u64, Both)]) -> String {
    /// More would be thinner than three units.
    const MOST: usize = 340;
    const PLOT: f64 = 90.0;
    let largest = pairs.iter().map(|(_, time)| time.predicted_s.max(time.measured_s)).fold(0.0, f64::max);
    if pairs.len() < 2 || largest <= 0.0 {
        return String::new();
    }
    let group = pairs.len().div_ceil(MOST);
    let groups: Vec<_> = pairs.chunks(group).collect();
    let slot = WIDTH / groups.len() as f64;
    let width = (slot * 0.4).min(30.0);
    let mut body = String::new();
    for (index, group) in groups.iter().enumerate() {
        let mean =
            |of: fn(&Both) -> f64| group.iter().map(|(_, time)| of(time)).sum::<f64>() / group.len() as f64;
        let times =
            [("predicted", mean(|time| time.predicted_s)), ("measured", mean(|time| time.measured_s))];
        for (at, (class, time_s)) in times.into_iter().enumerate() {
            let height = PLOT * time_s / largest;
            body.push_str(&format!(
                "<rect class=\"{class}\" x=\"{:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"><title>{thing} {}: {} {class}</title></rect>",
                index as f64 * slot + at as f64 * width,
                PLOT - height,
                group[0].0,
                units::time_s(time_s),
            ));
        }
    }
    body.push_str(&format!("<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{PLOT}\" y2=\"{PLOT}\"/>"));
    let name = |number: u64| format!("{thing} {number}");
    body.push_str(&text(0.0, PLOT + 16.0, "start", &name(pairs[0].0)));
    body.push_str(&text(WIDTH, PLOT + 16.0, "end", &name(pairs[pairs.len() - 1].0)));
    let title = format!("{title}, up to {}", units::time_s(largest));
    let keys = "<ul class=\"keys\"><li><i class=\"key predicted\"></i>predicted</li><li><i class=\"key measured\"></i>measured</li></ul>";
    let note = if group > 1 { format!("Each bar is the mean of {group} neighbours.") } else { String::new() };
    figure(
        &title,
        &format!("{keys}{}", svg(PLOT + 22.0, &format!("{title}, predicted and measured"), &body)),
        &note,
    )
}

/// Ticks and labels of a time axis at height `y`, and the place of a time on it.
fn time_axis(duration_s: f64, y: f64) -> (String, impl Fn(f64) -> f64) {
    let scale = (WIDTH - LEFT - RIGHT) / duration_s.max(f64::MIN_POSITIVE);
    let x_of = move |time_s: f64| LEFT + time_s * scale;
    let step = decimal_step(duration_s / 7.0);
    let mut body = String::new();
    let mut tick = 0;
    while tick as f64 * step <= duration_s * (1.0 + 1e-9) {
        let time_s = tick as f64 * step;
        let x = x_of(time_s);
        body.push_str(&format!(
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\"/>",
            y + 4.0
        ));
        // The last may stand at the very end.
        let anchor = if x > WIDTH - 30.0 { "end" } else { "middle" };
        body.push_str(&text(
            if anchor == "end" { WIDTH } else { x },
            y + 17.0,
            anchor,
            &units::time_s(time_s),
        ));
        tick += 1;
        if step <= 0.0 {
            break;
        }
    }
    (body, x_of)
}

/// The next of 1, 2, 5, 10, … not below `least`.
fn decimal_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

/// The same for bytes: round in their binary units.
fn binary_step(least: f64) -> f64 {
    let unit = 1024_f64.powf(least.max(1.0).log(1024.0).floor());
    let step = decimal_step((least / unit).max(1.0));
    // 1000 KiB reads worse than 1 MiB.
    if step >= 1000.0 { unit * 1024.0 } else { step * unit }
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", html(words))
}

fn small(x: f64, y: f64, words: &str) -> String {
    format!("<text class=\"small\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>", html(words))
}

fn svg(height: f64, label: &str, body: &str) -> String {
    live_svg(height, label, body, "")
}

/// The same, with attributes by which the page's script draws into it what chosen calls amount to: `page/figures.js`.
fn live_svg(height: f64, label: &str, body: &str, attributes: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{0}\"><svg role=\"img\" aria-label=\"{0}\" \
         viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"100%\" {attributes}>{body}</svg></div>",
        html(label)
    )
}

pub(crate) fn figure(title: &str, body: &str, note: &str) -> String {
    let note =
        if note.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", html(note)) };
    format!("<figure><h3>{}</h3>{body}{note}</figure>\n", html(title))
}

/// Names of the operations that have a colour, for the legend of the timeline.
pub(crate) fn op_names(calls: impl Iterator<Item = Call>) -> Vec<&'static str> {
    let mut names: Vec<_> =
        calls.map(|call| (call.op(), call == Call::StrategyAcknowledge, op_name(call))).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|(_, _, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(decimal_step(0.3), 0.5);
        assert_eq!(decimal_step(0.12), 0.2);
        assert_eq!(decimal_step(7.0), 10.0);
        assert_eq!(binary_step(3.0 * 1048576.0), 5.0 * 1048576.0);
        assert_eq!(binary_step(700.0 * 1024.0), 1048576.0);
    }
}
