//! A Darshan log's counters in sentences and tables, as text and as HTML.

mod evidence;
mod heat;
mod striping;

use pio_explain::Explanation;
use pio_explain::counted::{Activity, Counted, CountedFile, RankShare, SIZE_CLASSES, UsedBy};
use pio_import::darshan::Module;

use crate::sections::Limits;
use crate::table::{Table, wrap};
use crate::{escape, figures, findings, headline, units};

pub(crate) use evidence::{NOT_SHOWN, evidence, is_whole};

/// An explanation and the counters of the Darshan log that it is of, as text. Without traced accesses the counters are
/// all that there is.
pub fn text_with_counters(found: &Explanation, counted: &Counted) -> String {
    if found.events > 0 {
        return crate::text::with_more(found, &body(counted));
    }
    let mut text = crate::text::headline(found, &headline_lines(found, counted));
    text.push_str(&crate::text::title(found));
    text.push_str(&crate::text::attention(found));
    for sentence in summary(found, counted) {
        text.push_str(&wrap(&escape::terminal(&sentence), 98, ""));
    }
    text.push_str(&findings::text(found));
    text.push_str(&format!("\n{}", wrap(NOT_SHOWN, 98, "")));
    text.push_str(&body(counted));
    text.push_str(&crate::text::notes(found));
    text
}

fn body(counted: &Counted) -> String {
    let limits = Limits { rows: 12, path: 30, wide: false };
    let mut text = String::new();
    for activity in &counted.activity {
        text.push_str(&activity_text(activity));
        text.push_str(&heat::text(activity, counted.processes));
    }
    for table in tables(counted, &limits) {
        text.push_str(&format!("\n{}", table.text()));
    }
    text
}

/// What matters most.
pub(crate) fn headline_lines(found: &Explanation, counted: &Counted) -> Vec<(&'static str, String)> {
    headline::lines_or(found, &|| evidence::where_time_goes(found, counted))
}

/// What the counters say, in a few sentences.
pub(crate) fn summary(found: &Explanation, counted: &Counted) -> Vec<String> {
    let at_least = headline::at_least(found);
    let ranks = units::things(counted.processes, "rank", "ranks");
    let mut sentences = vec![format!(
        "{ranks} ran for {}. Darshan counted their calls, but traced none.",
        units::time_s(counted.run_time_s)
    )];
    for interface in &counted.interfaces {
        let counts = &interface.counts;
        if counts.accesses() == 0 || matches!(interface.module, Module::Hdf5Dataset | Module::PnetcdfVariable)
        {
            continue;
        }
        let life_s = counted.run_time_s * counted.processes as f64;
        let part = if life_s > 0.0 && counts.time_s() > 0.0 {
            format!(", in {} of the ranks' time", units::percent(counts.time_s() / life_s))
        } else {
            String::new()
        };
        sentences.push(format!(
            "By {} they read {at_least}{} and wrote {at_least}{} in {} of {} on average, on {}{part}.",
            interface.module,
            units::bytes(counts.read_bytes as f64),
            units::bytes(counts.written_bytes as f64),
            units::things(counts.accesses(), "access", "accesses"),
            units::bytes(counts.bytes() as f64 / counts.accesses() as f64),
            units::things(interface.files, "file", "files"),
        ));
    }
    sentences.extend(evidence::below_mpi_io(counted));
    sentences.extend(striping::sentence(counted));
    sentences
}

/// Cards of the page: name and value.
pub(crate) fn cards(counted: &Counted) -> Vec<(&'static str, String)> {
    let at_files = counted.interfaces.iter().filter(|it| matches!(it.module, Module::Posix | Module::Stdio));
    let (mut read, mut written) = (0u64, 0u64);
    for interface in at_files {
        read = read.saturating_add(interface.counts.read_bytes);
        written = written.saturating_add(interface.counts.written_bytes);
    }
    vec![
        ("duration", units::time_s(counted.run_time_s)),
        ("ranks", units::count(counted.processes)),
        ("read", units::bytes(read as f64)),
        ("written", units::bytes(written as f64)),
    ]
}

/// The section of the page.
pub(crate) fn html(counted: &Counted) -> String {
    let limits = Limits { rows: 100, path: 72, wide: true };
    let mut html = String::new();
    for activity in &counted.activity {
        html.push_str(&activity_figure(activity));
        html.push_str(&heat::figure(activity, counted.processes));
    }
    html.extend(tables(counted, &limits).iter().map(Table::html));
    html
}

/// All tables that have rows.
fn tables(counted: &Counted, limits: &Limits) -> Vec<Table> {
    let mut tables = vec![
        interfaces(counted),
        sizes(counted),
        common_sizes(counted),
        files(counted, limits),
        striping::layouts(counted, limits),
        striping::targets(counted, limits),
        ranks(counted, limits),
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn interfaces(counted: &Counted) -> Table {
    let rows = counted.interfaces.iter().map(|interface| {
        let counts = &interface.counts;
        let share = |part: Option<u64>| {
            let part = part.filter(|_| counts.accesses() > 0);
            part.map_or(String::new(), |part| units::percent(part as f64 / counts.accesses() as f64))
        };
        vec![
            interface.module.to_string(),
            units::count(interface.files),
            some(interface.shared_files),
            some(counts.opens),
            some(counts.reads),
            some(counts.writes),
            data(counts.read_bytes),
            data(counts.written_bytes),
            time(counts.read_s),
            time(counts.write_s),
            time(counts.metadata_s),
            share(interface.consecutive),
            share(interface.unaligned),
        ]
    });
    Table {
        title: "Interfaces, as Darshan counted them".into(),
        note: "Times are sums over all ranks. An interface may do its work by calls of one below it: rows do not add up."
            .into(),
        columns: vec![
            "interface", ">files", ">by all", ">opens", ">reads", ">writes", ">read", ">written", ">read time",
            ">write time", ">metadata", ">consecutive", ">unaligned",
        ],
        rows: rows.collect(),
    }
}

fn sizes(counted: &Counted) -> Table {
    let mut rows = Vec::new();
    for interface in &counted.interfaces {
        let Some(sizes) = &interface.sizes else {
            continue;
        };
        let reads: u64 = sizes.iter().map(|size| size.reads).fold(0, u64::saturating_add);
        let writes: u64 = sizes.iter().map(|size| size.writes).fold(0, u64::saturating_add);
        let share = |part: u64, all: u64| {
            if part > 0 { units::percent(part as f64 / all as f64) } else { String::new() }
        };
        let mut name = interface.module.to_string();
        for (class, size) in
            SIZE_CLASSES.iter().zip(sizes).filter(|(_, size)| size.reads.max(size.writes) > 0)
        {
            rows.push(vec![
                std::mem::take(&mut name),
                (*class).to_owned(),
                some(size.reads),
                share(size.reads, reads),
                some(size.writes),
                share(size.writes, writes),
            ]);
        }
    }
    Table {
        title: "Sizes of accesses".into(),
        note: String::new(),
        columns: vec!["interface", "size", ">reads", ">share", ">writes", ">share"],
        rows,
    }
}

fn common_sizes(counted: &Counted) -> Table {
    let mut rows = Vec::new();
    for interface in &counted.interfaces {
        let mut name = interface.module.to_string();
        for &(size, count) in interface.common_sizes.iter().take(4) {
            let share = count as f64 / interface.counts.accesses().max(1) as f64;
            let size = format!("{} ({})", units::count(size), units::bytes(size as f64));
            rows.push(vec![
                std::mem::take(&mut name),
                size,
                units::count(count),
                units::percent(share.min(1.0)),
            ]);
        }
    }
    Table {
        title: "The most common sizes".into(),
        note:
            "Darshan notes the four most common of each file; a size that is common in no file is not here."
                .into(),
        columns: vec!["interface", ">bytes", ">accesses", ">share"],
        rows,
    }
}

fn files(counted: &Counted, limits: &Limits) -> Table {
    let shown = counted.files.len().min(limits.rows);
    let rows = counted.files[..shown].iter().map(|file| file_row(file, limits));
    let mut columns = vec![
        "file",
        "interface",
        ">ranks",
        ">opens",
        ">accesses",
        ">read",
        ">written",
        ">time",
        ">slowest rank",
    ];
    if limits.wide {
        columns.extend([">fastest rank", ">metadata", "stripes on targets"]);
    }
    let rest = counted.files.len() - shown;
    let note = match rest {
        0 => String::new(),
        rest => format!("The {shown} with the most time; {} more.", units::count(rest as u64)),
    };
    Table { title: "Files, by time spent on them".into(), note, columns, rows: rows.collect() }
}

fn file_row(file: &CountedFile, limits: &Limits) -> Vec<String> {
    let counts = &file.counts;
    let share = |share: Option<RankShare>| {
        share.map_or(String::new(), |share| format!("{}: {}", share.rank, units::time_s(share.time_s)))
    };
    let mut row = vec![
        escape::shorten(&file.name, limits.path),
        file.module.to_string(),
        match file.used_by {
            UsedBy::All => "all".into(),
            UsedBy::Some(ranks) => units::count(ranks),
        },
        some(counts.opens),
        some(counts.accesses()),
        data(counts.read_bytes),
        data(counts.written_bytes),
        time(counts.time_s()),
        share(file.slowest),
    ];
    if limits.wide {
        row.push(share(file.fastest));
        row.push(time(counts.metadata_s));
        row.push(striping::of_file(file));
    }
    row
}

fn ranks(counted: &Counted, limits: &Limits) -> Table {
    if counted.ranks.len() < 2 {
        return Table::default();
    }
    let mut ranks: Vec<_> = counted.ranks.iter().collect();
    let cut = ranks.len() > limits.rows;
    if cut {
        ranks.sort_by(|a, b| b.counts.time_s().total_cmp(&a.counts.time_s()));
        ranks.truncate(limits.rows);
    }
    let rows = ranks.iter().map(|rank| {
        let counts = &rank.counts;
        vec![
            rank.rank.to_string(),
            units::count(rank.files),
            some(counts.accesses()),
            data(counts.read_bytes),
            data(counts.written_bytes),
            time(counts.time_s()),
        ]
    });
    let times = || counted.ranks.iter().map(|rank| rank.counts.time_s());
    let mean_s = times().sum::<f64>() / counted.ranks.len() as f64;
    let mut note = if mean_s > 0.0 {
        let largest = times().fold(0.0, f64::max) / mean_s;
        format!("The slowest spent {} times the mean.", units::significant((largest * 100.0).round() / 100.0))
    } else {
        String::new()
    };
    if cut {
        note.push_str(&format!(
            " The {} of {} with the most time.",
            limits.rows,
            units::count(counted.ranks.len() as u64)
        ));
    }
    Table {
        title: "Ranks, on files that not all shared (POSIX and stdio)".into(),
        note,
        columns: vec!["rank", ">files", ">accesses", ">read", ">written", ">time"],
        rows: rows.collect(),
    }
}

fn activity_text(activity: &Activity) -> String {
    let mut lines = String::new();
    if !has_spans(activity) {
        return lines;
    }
    for (name, bins) in [("read", &activity.read), ("write", &activity.written)] {
        let bins: Vec<f64> = bins.iter().map(|&bytes| bytes as f64).collect();
        if let Some((line, top)) = crate::text::blocks(&bins) {
            let columns = line.chars().count().max(1);
            let column_s = activity.bin_s * bins.len() as f64 / columns as f64;
            lines.push_str(&format!("  {name:<6}▏{line}▕ up to {}\n", units::rate(top / column_s)));
        }
    }
    if lines.is_empty() {
        return lines;
    }
    let span_s = activity.bin_s * activity.read.len() as f64;
    format!(
        "\nData rate of {} over {}\n{lines}",
        escape::terminal(&activity.interface),
        units::time_s(span_s)
    )
}

fn activity_figure(activity: &Activity) -> String {
    let bytes = |bins: &[u64]| bins.iter().map(|&bytes| bytes as f64).collect::<Vec<f64>>();
    let (read, written) = (bytes(&activity.read), bytes(&activity.written));
    if !has_spans(activity) || read.iter().chain(&written).sum::<f64>() <= 0.0 {
        return String::new();
    }
    let title = format!("Data rate of {} over time", activity.interface);
    figures::rate_figure(&title, activity.bin_s * read.len() as f64, activity.bin_s, &read, &written, &[])
}

/// Whether the width of its bins is a time.
fn has_spans(activity: &Activity) -> bool {
    activity.bin_s > 0.0 && activity.bin_s < 1e9
}

fn some(count: u64) -> String {
    if count > 0 { units::count(count) } else { String::new() }
}

fn data(bytes: u64) -> String {
    if bytes > 0 { units::bytes(bytes as f64) } else { String::new() }
}

fn time(seconds: f64) -> String {
    if seconds > 0.0 { units::time_s(seconds) } else { String::new() }
}
