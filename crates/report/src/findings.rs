//! Findings in words: what is wrong, by what it shows, and what would help.

use std::collections::BTreeMap;

use pio_explain::Explanation;
use pio_explain::findings::{Cost, Detail, EXCHANGE_COPIES, Finding, Gain, Kind, Reference, Source};
use pio_trace::{Flags, Op, ProcessId};

use crate::bars::OTHER_FILES;
use crate::call_sites;
use crate::collectives;
use crate::escape;
use crate::named_files::NamedFiles;
use crate::rows::Rows;
use crate::screen;
use crate::table::wrap;
use crate::units::{self, things};

/// A finding in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What is wrong.
    pub title: &'static str,
    /// What was counted and measured.
    pub evidence: String,
    /// Where: files and processes.
    pub place: String,
    /// What would help.
    pub change: &'static str,
    /// What that is predicted to gain, a sentence a machine; none if no machine was given, or nothing can be said.
    pub gains: Vec<String>,
}

/// The findings in words, in their order: those that cost most first.
pub fn findings_in_words(found: &Explanation) -> Vec<Told> {
    found.findings.iter().map(|finding| tell(found, finding, 96)).collect()
}

/// The findings whose change is predicted to gain nothing, in the same way.
pub fn not_advised_in_words(found: &Explanation) -> Vec<Told> {
    found.not_advised.iter().map(|finding| tell(found, finding, 96)).collect()
}

/// How the estimates are made: for every reader.
fn method(found: &Explanation) -> String {
    let faults = found.findings.iter().any(|finding| finding.kind == Kind::RandomMapping);
    format!(
        "Costs are estimates, in seconds of the job: the time of the calls named, less what the same would take otherwise. \
         Time that overlaps, of threads or of processes, counts once; no call is counted twice; all costs together are no \
         more than the time in I/O.{}",
        if faults { " Page faults are no calls: what they cost is beside that time." } else { "" }
    )
}

/// The findings for the terminal; nothing if there are none.
pub(crate) fn text(found: &Explanation) -> String {
    let dismissed = not_advised(found)
        .map_or(String::new(), |told| format!("\n{}", wrap(&escape::terminal(&told), 98, "")));
    if found.findings.is_empty() {
        return dismissed;
    }
    let mut text = format!("\n{}\n", screen::title("Findings: what costs time, costliest first"));
    for (index, finding) in found.findings.iter().enumerate() {
        let told = tell(found, finding, 48);
        let (title, price) = (format!("{}. {}:", index + 1, told.title), price(found, finding));
        let length = 3 + title.chars().count() + price.chars().count();
        let between = if screen::columns().is_some_and(|most| length > most) { "\n     " } else { " " };
        text.push_str(&format!("  {}{between}{}\n", screen::title(&title), screen::warning(&price)));
        let change = format!("Change: {}", told.change);
        let body = [&told.evidence, &told.place, &change].into_iter().chain(&told.gains);
        for line in body.filter(|line| !line.is_empty()) {
            text.push_str(&wrap(&escape::terminal(line), 96, "     "));
        }
    }
    text.push_str(&wrap(&method(found), 96, "  "));
    text.push_str(&dismissed);
    text
}

/// The findings for the page; nothing if there are none.
pub(crate) fn html(found: &Explanation) -> String {
    let dismissed =
        not_advised(found).map_or(String::new(), |told| format!("<p>{}</p>", escape::prose(&told)));
    if found.findings.is_empty() {
        return dismissed;
    }
    let mut html = String::from("<ol class=\"findings\">");
    for (index, finding) in found.findings.iter().enumerate() {
        let told = tell(found, finding, 96);
        html.push_str(&format!(
            "<li><h3>{}: {}</h3><p>{}</p><p>{}</p><p><b>Change:</b> {}</p>",
            told.title,
            escape::prose(&price(found, finding)),
            escape::prose(&told.evidence),
            escape::prose(&told.place),
            escape::prose_with_code(told.change)
        ));
        for gain in &told.gains {
            html.push_str(&format!("<p>{}</p>", escape::prose(gain)));
        }
        if finding.counters.is_none() {
            html.push_str(&format!(
                "<button type=\"button\" class=\"show\" data-finding=\"{index}\" aria-pressed=\"false\">Show its calls</button>"
            ));
        }
        html.push_str("</li>");
    }
    html.push_str(&format!("</ol><p class=\"note\">{}</p>{dismissed}", escape::prose(&method(found))));
    html
}

/// Where the calls of each finding are, as JSON for the page's script: files, processes, operations, of which none means all,
/// and from when until when. `null` of findings that are not made from events.
pub(crate) fn scopes(found: &Explanation, files: &mut NamedFiles<'_>, rows: &Rows) -> Vec<String> {
    found.findings.iter().map(|finding| scope(finding, files, rows)).collect()
}

fn scope(finding: &Finding, files: &mut NamedFiles<'_>, rows: &Rows) -> String {
    /// Files that a reader can tell apart in a picture, by far.
    const MOST: usize = 500;
    if finding.counters.is_some() {
        return "null".to_owned();
    }
    let named: Vec<u32> = finding.files.iter().take(MOST + 1).map(|one| files.number(one.id)).collect();
    let all_named = named.len() <= MOST && !named.contains(&OTHER_FILES);
    let named: Vec<_> = named.iter().filter(|_| all_named).map(u32::to_string).collect();
    // A finding names some of its processes only.
    let all_known = finding.processes.len() as u64 == finding.process_count;
    let processes = finding.processes.iter().filter(|_| all_known).filter_map(|one| rows.process(one.id));
    let processes: Vec<_> = processes.map(|process| process.to_string()).collect();
    let ops: Vec<_> = operations_of(finding).iter().map(|op| escape::json(op.name())).collect();
    format!(
        "{{\"title\":{},\"files\":[{}],\"processes\":[{}],\"ops\":[{}],\"from\":{},\"until\":{}}}",
        escape::json(title_of(finding.kind)),
        named.join(","),
        processes.join(","),
        ops.join(","),
        finding.cost.from_ns.min(finding.cost.until_ns),
        finding.cost.until_ns,
    )
}

/// The operations of a finding's calls; none if they may be any.
fn operations_of(finding: &Finding) -> &'static [Op] {
    match finding.kind {
        Kind::Seeks => &[Op::Seek],
        Kind::SyncPerWrite | Kind::SyncPerFile => &[Op::Sync],
        Kind::OpenStorm | Kind::ManySmallFiles | Kind::FilePerProcess => &[Op::Open, Op::Close],
        Kind::MetadataStorm | Kind::SameNamesByAll | Kind::ManyStripes => {
            &[Op::Open, Op::Close, Op::Metadata]
        }
        Kind::UnbufferedStream
        | Kind::Imports
        | Kind::LockWaits
        | Kind::RandomMapping
        | Kind::LateRanks
        | Kind::InsideLibrary
        | Kind::TooManyRanks
        | Kind::BeyondFiles
        | Kind::MetadataTime
        | Kind::NoOverlap => &[],
        _ => match (finding.cost.read_bytes > 0, finding.cost.write_bytes > 0) {
            (true, false) => &[Op::Read],
            (false, true) => &[Op::Write],
            (true, true) => &[Op::Read, Op::Write],
            (false, false) => &[],
        },
    }
}

pub(crate) fn price(found: &Explanation, finding: &Finding) -> String {
    let share = |time_ns: f64| units::percent((time_ns / (found.duration_ns as f64).max(1.0)).min(1.0));
    let at_least = crate::headline::at_least(found);
    match finding.lost_ns {
        Some(lost_ns) => {
            format!("costs {at_least}{}, {} of the run", units::time_s(lost_ns / 1e9), share(lost_ns))
        }
        None if finding.counters.is_some() && !crate::counted::is_whole(finding.kind) => format!(
            "takes up to {} of the run; how much of it can be saved is not known",
            share(finding.time_ns())
        ),
        None => {
            format!("takes {} of the run; how much of it can be saved is not known", share(finding.time_ns()))
        }
    }
}

fn tell(found: &Explanation, finding: &Finding, path: usize) -> Told {
    let (title, change) = (title_of(finding.kind), change_of(finding));
    let (evidence, place) = (evidence(found, finding), place(found, finding, path));
    Told { title, evidence, place, change, gains: gains(finding) }
}

/// `Predicted on X (two-phase): 12.3 s -> 1.9 s of I/O.`
fn gains(finding: &Finding) -> Vec<String> {
    let sentence = |gain: &Gain| {
        format!(
            "Predicted on {} ({}): {} -> {} of I/O.",
            gain.machine,
            gain.change,
            units::time_s(gain.before_s),
            units::time_s(gain.after_s)
        )
    };
    finding.gains.iter().map(sentence).collect()
}

fn evidence(found: &Explanation, finding: &Finding) -> String {
    let mut text = match &finding.counters {
        Some(counters) => crate::counted::evidence(found, finding, counters),
        None => evidence_of_events(finding),
    };
    if let Some(detail) = detail(found, finding) {
        text.push_str(&format!(" {detail}"));
    }
    if let Some(comparison) = comparison(finding) {
        text.push_str(&format!(" {comparison}"));
    }
    text
}

fn evidence_of_events(finding: &Finding) -> String {
    let cost = &finding.cost;
    let when = format!(
        "between {} and {}",
        units::time_ns(cost.from_ns.min(cost.until_ns)),
        units::time_ns(cost.until_ns)
    );
    // Nobody measures a page fault: the recorder tries what one takes.
    let took = if finding.kind == Kind::RandomMapping { "are estimated to have taken" } else { "took" };
    let mut text = format!("{} {took} {} {when}.", calls(finding.kind, cost), units::time_ns(cost.time_ns));
    // Of these, the number is not one of processes in I/O: those that compute, wait, or have page faults side by side.
    let side_by_side = matches!(
        finding.kind,
        Kind::NoOverlap | Kind::LockWaits | Kind::LateRanks | Kind::TooManyRanks | Kind::RandomMapping
    );
    if finding.together >= 1.05 && !side_by_side {
        text.push_str(&format!(
            " About {} {} at a time.",
            units::significant(round(finding.together)),
            if finding.cost.threads() >= 1.05 { "calls were under way" } else { "processes were in I/O" },
        ));
    }
    text
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// What the calls are, and what they moved.
fn calls(kind: Kind, cost: &Cost) -> String {
    let (one, many) = match kind {
        Kind::SyncPerWrite | Kind::SyncPerFile => ("sync", "syncs"),
        Kind::OpenStorm | Kind::ManySmallFiles | Kind::FilePerProcess => {
            ("open or close", "opens and closes")
        }
        Kind::MetadataStorm => ("call on a name", "calls on names"),
        Kind::ManyStripes => {
            ("open or other call that moves nothing", "opens and other calls that move nothing")
        }
        Kind::SameNamesByAll => ("open, close or call on a name", "opens, closes and calls on names"),
        Kind::Imports => ("call on a module", "calls on modules"),
        Kind::LockWaits => ("call on a lock", "calls on locks"),
        Kind::RandomMapping => ("page fault", "page faults"),
        Kind::Seeks => ("seek", "seeks"),
        Kind::UnbufferedStream => ("call on a stream", "calls on streams"),
        Kind::LateRanks => ("wait in a collective call", "waits in collective calls"),
        Kind::TooManyRanks => ("call of MPI-IO", "calls of MPI-IO"),
        _ if cost.write_bytes == 0 => ("read", "reads"),
        _ if cost.read_bytes == 0 => ("write", "writes"),
        _ => ("request", "requests"),
    };
    let what = things(cost.calls, one, many);
    if cost.bytes() == 0 {
        return what;
    }
    format!(
        "{what} of {} on average ({} in all)",
        units::bytes(cost.bytes() as f64 / cost.calls.max(1) as f64),
        units::bytes(cost.bytes() as f64)
    )
}

fn detail(found: &Explanation, finding: &Finding) -> Option<String> {
    match finding.detail {
        Detail::None => None,
        Detail::Cycle { bytes, passes } => Some(format!(
            "From one pass to the next, of {}, a process moved {}: more than was kept anywhere.",
            units::count(passes),
            units::bytes(bytes as f64)
        )),
        Detail::Mapped { bytes } => Some(format!(
            "The program mapped {}; which of it was touched when is not known, but each of these faults waited for the \
             device.",
            units::bytes(bytes as f64)
        )),
        Detail::Fetched { pages } => Some(format!(
            "They begin or end within {} that had to be fetched from the device first; writes of whole pages wait for \
             nothing.",
            things(pages, "page", "pages")
        )),
        Detail::Stripes { bytes } => {
            let stripe = units::bytes(bytes as f64);
            Some(format!(
                "The file lies in stripes of {stripe}: writes that begin and end at multiples of {stripe} share none."
            ))
        }
        Detail::Placed { size_bytes, striping } => {
            let (size, unit) = (units::bytes(size_bytes as f64), units::bytes(striping.unit_bytes as f64));
            Some(match finding.kind {
                Kind::FewStripes => format!(
                    "The file is {size} long and lies on one target: all its bytes pass through that one."
                ),
                _ => format!(
                    "The largest of them has {size} in one stripe of {unit}; it lies on {}, and all are asked.",
                    things(striping.targets.into(), "target", "targets")
                ),
            })
        }
        Detail::Part(part) => Some(format!("That is {} of all that was written.", units::percent(part))),
        Detail::Against { largest, others } if finding.kind == Kind::Straggler => Some(format!(
            "The {} is {}, its own {} times that.",
            if finding.counters.is_some() { "mean of all ranks" } else { "median of the other ranks" },
            units::time_ns(others),
            units::significant(round(largest as f64 / others.max(1) as f64))
        )),
        Detail::Against { largest, others } => Some(format!(
            "The mean of all ranks is {}, its own {} times that.",
            units::bytes(others as f64),
            units::significant(round(largest as f64 / others.max(1) as f64))
        )),
        Detail::Turns(turns) => {
            Some(format!("Computing and I/O took turns {}.", things(turns, "time", "times")))
        }
        Detail::Last { process, calls, of, waited_ns, think_ns, io_ns } => {
            Some(collectives::last(found, process, [calls, of], waited_ns, [think_ns, io_ns]))
        }
        Detail::AtFiles { time_ns, mean_request_bytes } => Some(format!(
            "The same calls spent {} on the files, in requests of {} on average.",
            units::time_ns(time_ns),
            units::bytes(mean_request_bytes as f64)
        )),
        Detail::Crowded { ranks, processors, library_ns, starved_ns } => Some(format!(
            "Of that, {} was spent inside the MPI library and {} waiting for ranks that had no processor. A host runs {} on {}.",
            units::time_ns(library_ns),
            units::time_ns(starved_ns),
            things(ranks, "rank", "ranks"),
            things(processors, "processor", "processors")
        )),
    }
}

/// Part of the calls' time from which on waits are told that no change of their size would save.
const TOLD_WAITS: f64 = 0.01;

/// What the calls are measured by.
fn comparison(finding: &Finding) -> Option<String> {
    if finding.kind == Kind::UnalignedRequests && finding.counters.is_none() {
        return Some(format!(
            "Aligned to pages, they would take {}.",
            units::time_s(finding.expected_ns / 1e9)
        ));
    }
    if finding.kind == Kind::Imports {
        return Some(match finding.lost_ns {
            Some(_) => "Where several processes read a module, it is compared with one that reads it.".to_owned(),
            None => {
                "The interpreter makes these calls, once a process: what the program's own code can change comes first."
                    .to_owned()
            }
        });
    }
    if finding.kind == Kind::InsideLibrary && finding.counters.is_none() {
        return Some(exchange(finding));
    }
    let by_rate = matches!(
        finding.kind,
        Kind::SmallWrites
            | Kind::SmallReads
            | Kind::UnbufferedStream
            | Kind::RandomAccess
            | Kind::RandomMapping
            | Kind::StridedAccess
            | Kind::UnalignedSharing
            | Kind::SharedAppend
            | Kind::MissingCollective
            | Kind::NoView
    ) || finding.counters.is_some() && finding.kind == Kind::InsideLibrary;
    if !by_rate {
        return None;
    }
    if finding.lost_ns.is_none() {
        let counted =
            "No file of the log was accessed in requests of 1 MiB or more that tell what larger ones reach.";
        let recorded =
            "No request of 1 MiB or more was recorded or measured that tells what larger ones reach.";
        return Some(if finding.counters.is_some() { counted } else { recorded }.into());
    }
    let rates: Vec<_> =
        [finding.references.read, finding.references.write].into_iter().flatten().map(rate).collect();
    if rates.is_empty() {
        return None;
    }
    let rates = rates.join(" and ");
    let mut text = format!(
        "In requests of 1 MiB or more, at {rates}, the same bytes would take {}.",
        units::time_s((finding.expected_ns - finding.waits_ns) / 1e9)
    );
    if finding.waits_ns >= TOLD_WAITS * finding.cost.time_ns as f64 {
        text.push_str(&format!(
            " {} more was spent waiting, as for the system's read-ahead or write-behind: larger requests would wait as \
             long.",
            units::time_s(finding.waits_ns / 1e9)
        ));
    }
    Some(text)
}

/// What an exchange of data in a collective call is measured by.
fn exchange(finding: &Finding) -> String {
    let (Some(copying), Some(_)) = (finding.references.read, finding.lost_ns) else {
        return "No read of 1 MiB or more from the system's memory was recorded or measured that tells what it takes to \
                exchange the data."
            .into();
    };
    format!(
        "With {} of the data in memory, at {}, and no small requests to the files, they would take {}.",
        things(EXCHANGE_COPIES.into(), "copy", "copies"),
        rate(copying),
        units::time_s(finding.expected_ns / 1e9)
    )
}

/// A rate, and where it comes from.
fn rate(reference: Reference) -> String {
    let whence = match reference.source {
        Source::Trace => "as others of this trace",
        Source::Recorder => "measured when it was recorded",
        Source::Counters => "as other files of this log",
    };
    format!("{} ({whence})", units::rate(reference.bytes_per_s))
}

fn place(found: &Explanation, finding: &Finding, path: usize) -> String {
    let share = |time_ns: u64| units::percent(time_ns as f64 / finding.cost.time_ns.max(1) as f64);
    let more = |count: u64, shown: usize| match count.saturating_sub(shown as u64) {
        0 => String::new(),
        rest => format!(", and {} more", units::count(rest)),
    };
    let mut parts = Vec::new();
    if finding.files.len() > 3 && is_about_names(finding.kind) {
        parts.push(folders(found, finding, path));
    } else if !finding.files.is_empty() {
        let shown = 3.min(finding.files.len());
        let named: Vec<_> = finding.files[..shown]
            .iter()
            .map(|one| {
                let name = found.path(one.id).map_or("?".into(), |name| escape::shorten(name, path));
                format!("{name} ({})", share(one.time_ns))
            })
            .collect();
        let title = if finding.files.len() == 1 { "File" } else { "Files" };
        parts.push(format!("{title}: {}{}.", named.join(", "), more(finding.files.len() as u64, shown)));
    }
    parts.extend(call_sites(found, finding, path));
    if found.process_count > 1 && !finding.processes.is_empty() {
        let named: Vec<_> = finding
            .processes
            .iter()
            .map(|one| format!("{} ({})", process(found, one.id), share(one.time_ns)))
            .collect();
        let title = match (found.is_mpi, finding.process_count) {
            (true, 1) => "Rank",
            (true, _) => "Ranks",
            (false, 1) => "Process",
            (false, _) => "Processes",
        };
        parts.push(format!("{title}: {}{}.", named.join(", "), more(finding.process_count, named.len())));
    }
    parts.join(" ")
}

/// `Opened at: /home/me/train.py:12 load, through numpy (98 %).`
fn call_sites(found: &Explanation, finding: &Finding, path: usize) -> Option<String> {
    const SHOWN: usize = 3;
    let named = finding.call_sites.iter().take(SHOWN).filter_map(|one| {
        let site = found.call_site(one.id)?;
        let through = site.library.map_or(String::new(), |library| format!(", through {library}"));
        let share = units::percent(one.time_ns as f64 / finding.cost.time_ns.max(1) as f64);
        Some(format!("{}{through} ({share})", call_sites::line(&site, path)))
    });
    let named: Vec<_> = named.collect();
    let more = match finding.call_sites.len().saturating_sub(SHOWN) {
        0 => String::new(),
        rest => format!("; and {} more", units::count(rest as u64)),
    };
    (!named.is_empty()).then(|| format!("Opened at: {}{more}.", named.join("; ")))
}

pub(crate) fn process(found: &Explanation, id: ProcessId) -> String {
    let known = found.processes.iter().find(|process| process.process == id);
    known.map_or("another process".into(), crate::sections::process_name)
}

/// Whether the folder says more than the names of the files in it.
fn is_about_names(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::SameNamesByAll
            | Kind::MetadataStorm
            | Kind::ManySmallFiles
            | Kind::FilePerProcess
            | Kind::ManyStripes
            | Kind::MetadataTime
            | Kind::Imports
            | Kind::SyncPerFile
    )
}

/// `Folders: /scratch/run (98 %, 1,500 files), /home/me (2 %, 7 files).`
fn folders(found: &Explanation, finding: &Finding, path: usize) -> String {
    let mut folders: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for one in &finding.files {
        let folder =
            found.path(one.id).and_then(|path| path.rsplit_once('/')).map_or("?", |(folder, _)| folder);
        let sum = folders.entry(if folder.is_empty() { "/" } else { folder }).or_default();
        *sum = (sum.0.saturating_add(one.time_ns), sum.1 + 1);
    }
    let mut folders: Vec<_> = folders.into_iter().collect();
    folders.sort_by_key(|(folder, (time_ns, _))| (std::cmp::Reverse(*time_ns), *folder));
    let shown = folders.iter().take(3).map(|(folder, (time_ns, files))| {
        let share = units::percent(*time_ns as f64 / finding.cost.time_ns.max(1) as f64);
        format!("{} ({share}, {})", escape::shorten(folder, path), things(*files, "file", "files"))
    });
    let named = shown.collect::<Vec<_>>().join(", ");
    match folders.len() {
        1 => format!("Folder: {named}."),
        2 | 3 => format!("Folders: {named}."),
        many => format!("Folders: {named}, and {} more.", units::count(many as u64 - 3)),
    }
}

/// What is wrong, in a few words.
pub(crate) fn title_of(kind: Kind) -> &'static str {
    of_kind(kind).0
}

/// What would help where what is known of the calls speaks against the usual advice.
fn change_by_facts(finding: &Finding) -> Option<&'static str> {
    let cost = &finding.cost;
    let opened = |flag| finding.opened.contains(flag) && cost.write_bytes > cost.read_bytes;
    let small = matches!(
        finding.kind,
        Kind::SmallWrites
            | Kind::SmallReads
            | Kind::RandomAccess
            | Kind::StridedAccess
            | Kind::UnalignedSharing
    );
    if small && opened(Flags::SYNC) {
        return Some(
            "open the file without O_SYNC and O_DSYNC, and sync once (fsync) where the data must be safe; or write a MiB or \
             more at a time: every call waits for the device.",
        );
    }
    if small && finding.opened.contains(Flags::DIRECT) {
        return Some(
            "with O_DIRECT every request goes to the device as it is: make requests of a MiB or more, aligned to the \
             device's blocks, several at a time; or open the file without O_DIRECT, so that the kernel gathers them.",
        );
    }
    let collective = cost.collective * 2 > cost.calls;
    match finding.kind {
        Kind::UnalignedRequests if finding.counters.is_none() => Some(
            "write whole pages: pad records to a multiple of 4 KiB and begin them at one, or gather neighbours in memory; or \
             read the range in large requests before it is updated (posix_fadvise with POSIX_FADV_WILLNEED).",
        ),
        Kind::NoView if collective => Some(
            "describe it as a file view (MPI_File_set_view), and move many pieces by each of the collective calls that are \
             there.",
        ),
        Kind::StridedAccess if cost.write_bytes > cost.read_bytes => Some(
            "write whole ranges: gather the pieces of all steps in memory first, or store what is written together side by \
             side; in MPI-IO, describe them as a file view and write collectively.",
        ),
        _ => None,
    }
}

/// What was found, but would gain nothing.
fn not_advised(found: &Explanation) -> Option<String> {
    let told = found.not_advised.iter().map(|finding| {
        let gains: Vec<_> = finding
            .gains
            .iter()
            .map(|gain| {
                let (before, after) = (units::time_s(gain.before_s), units::time_s(gain.after_s));
                format!("{before} -> {after} on {}", gain.machine)
            })
            .collect();
        format!("{} ({})", title_of(finding.kind), gains.join(", "))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| {
        format!("Found too, but the usual change is predicted to gain nothing: {}.", told.join("; "))
    })
}

/// What would help.
pub(crate) fn change_of(finding: &Finding) -> &'static str {
    change_by_facts(finding).unwrap_or(of_kind(finding.kind).1)
}

/// Title, and what would help.
fn of_kind(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::SmallWrites => (
            "Many small writes",
            "gather them in a buffer of a MiB or more, and write that; in MPI-IO, write collectively.",
        ),
        Kind::SmallReads => (
            "Many small reads",
            "read a MiB or more at a time into a buffer, and take the pieces from there.",
        ),
        Kind::UnbufferedStream => (
            "A stream that passes every piece on",
            "let it gather: no setvbuf(_IONBF), no fflush after every piece; or give it a larger buffer.",
        ),
        Kind::RandomAccess => (
            "Scattered requests",
            "sort requests by offset and join neighbours, or read the part of the file once and look up in memory.",
        ),
        Kind::StridedAccess => (
            "Small requests in equal steps",
            "read the whole range and pick the pieces (data sieving), or store what is used together side by side.",
        ),
        Kind::RandomMapping => (
            "Pages of a mapped file touched here and there",
            "read what is needed in large requests, or ask for it in advance (madvise with MADV_WILLNEED, or with \
             MADV_SEQUENTIAL where it is gone through in order); sort what is looked up by its place in the file.",
        ),
        Kind::Seeks => ("A seek before every request", "use pread and pwrite, which take the offset along."),
        Kind::RedundantReads => {
            ("The same bytes read again and again", "keep them in memory after the first time.")
        }
        Kind::CyclicRereads => (
            "The same data read in long cycles, beyond any cache",
            "give the job more memory for them, do more with each piece while it is there (blocking), or go through \
             them back and forth, so that the end of one pass is the beginning of the next.",
        ),
        Kind::SameReadByAll => (
            "The same bytes read by every rank",
            "let one rank read and broadcast, or read collectively (MPI_File_read_all).",
        ),
        Kind::Overwrites => (
            "Bytes overwritten before anyone could use them",
            "write them once, when they are final; keep headers and counters in memory until the end.",
        ),
        Kind::ReadAfterWrite => (
            "Bytes read back right after they were written",
            "keep them in memory: the program has just had them.",
        ),
        Kind::UnalignedSharing => (
            "Several processes write parts of the same pages or stripes",
            "give each writer whole blocks (align to 4 KiB, better to the file system's stripe), or write collectively.",
        ),
        Kind::SharedAppend => (
            "Many processes append to one file",
            "let each write at offsets of its own (MPI_File_write_ordered, or a prefix sum of sizes), or send the \
             records to one process that writes them in large pieces.",
        ),
        Kind::MissingCollective => (
            "Ranks share a file without collective I/O",
            "make the calls collective (MPI_File_…_all), so that few large requests are made of them.",
        ),
        Kind::NoView => (
            "A pattern moved piece by piece",
            "describe it as a file view (MPI_File_set_view) and move it in one call, collectively if all ranks do.",
        ),
        Kind::SyncPerWrite => (
            "Data forced to the device every few bytes",
            "sync once, at the end or at points from which the program can go on after a crash.",
        ),
        Kind::SyncPerFile => (
            "Many files, each forced to the device by itself",
            "write all of them and then sync once (syncfs), or keep the pieces in one file: each sync waits for the device.",
        ),
        Kind::OpenStorm => {
            ("The same files opened again and again", "open each once and keep it open while it is used.")
        }
        Kind::ManySmallFiles => (
            "A great many small files",
            "keep the pieces in one file, or an archive or database (tar, HDF5, SQLite) that is opened once.",
        ),
        Kind::FilePerProcess => (
            "A file for every rank and step",
            "write one shared file collectively, or one for a group of ranks (subfiling).",
        ),
        Kind::MetadataStorm => (
            "Too many calls on names and attributes",
            "remember what was found; list a folder once instead of asking for each name.",
        ),
        Kind::SameNamesByAll => (
            "The same files opened and asked for by every rank",
            "let one rank look and tell the others (MPI_Bcast); pack what all need into one file, or stage it to each \
             node's own storage.",
        ),
        Kind::Imports => (
            "Modules of Python looked up and read",
            "import less (`python -X importtime` shows what each import takes), or keep the modules close by: in a container \
             image, or in a copy on each node's own storage.",
        ),
        Kind::LockWaits => (
            "Processes wait for each other's locks",
            "lock only the range that is written, and for no longer than that; or give each process a file or part of \
             its own, which needs no lock.",
        ),
        Kind::OneWriter => {
            ("One rank writes for all", "let all ranks write their part to the file, collectively.")
        }
        Kind::Straggler => (
            "One rank's I/O is far slower than that of the others",
            "look at what is special about its host, its target or its requests.",
        ),
        Kind::UnevenRanks => (
            "Ranks move very different amounts",
            "spread the data evenly; or let collective calls spread the I/O.",
        ),
        Kind::NoOverlap => (
            "The program computes, then waits for I/O, by turns",
            "start the I/O and go on computing: nonblocking MPI-IO (MPI_File_iwrite), aio, or a thread with a second \
             buffer.",
        ),
        Kind::LateRanks => (
            "Ranks arrive late at collective calls",
            "spread the work before these calls evenly over the ranks, or let no rank wait: nonblocking collective calls \
             (MPI_File_iwrite_all) with the wait after the next computation.",
        ),
        Kind::InsideLibrary => (
            "Time is lost inside the MPI library",
            "use another strategy for the same calls: try `pioscope apply --strategy two-phase`, or other hints of the \
             MPI (cb_nodes, cb_buffer_size, romio_cb_write, romio_cb_read).",
        ),
        Kind::TooManyRanks => (
            "More ranks than processors",
            "start as many ranks as there are processors, or let the MPI yield the processor while it waits.",
        ),
        Kind::StreamedData => (
            "Much data through streams",
            "move it by read and write, or MPI-IO, a MiB or more at a time; or give the streams a larger buffer (setvbuf).",
        ),
        Kind::UnalignedRequests => (
            "Requests are not aligned to the file's blocks",
            "begin each rank's part at a multiple of the file system's block or stripe (in HDF5: H5Pset_alignment; in \
             PnetCDF: nc_var_align_size), or write collectively with a striping_unit.",
        ),
        Kind::FewStripes => (
            "A large file of several ranks on one target",
            "spread it over more targets before it is written: `lfs setstripe -c` on its folder, or the hint \
             striping_factor.",
        ),
        Kind::ManyStripes => (
            "Small files on many targets",
            "keep files that fill one stripe on one target: `lfs setstripe -c 1` on their folder.",
        ),
        Kind::BeyondFiles => (
            "Time in collective calls, not at the files",
            "record the run (`pioscope record`) to see whether ranks arrive late or the MPI library exchanges data: then \
             spread the work, or give the library more aggregators and larger buffers (cb_nodes, cb_buffer_size).",
        ),
        Kind::MetadataTime => (
            "Time goes to opens and names, not to data",
            "open fewer files, and those once (collectively, if all ranks do); keep them in folders of their own; ask the \
             site if its metadata server is slow.",
        ),
    }
}
