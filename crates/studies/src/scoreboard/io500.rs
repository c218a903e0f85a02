//! IO500: more clients on the same servers, and the hard patterns from the easy ones.
//!
//! A run with few clients says how fast they were together, not what held them up: the clients themselves or the servers.
//! [`growth`] needs one number for that, the utilisation u = B/S of the servers in the run with few clients. Nothing in a
//! submission tells it, but what the phases of that run say of each other does:
//!
//! - **easy write**: u = u₀ (read/write)^a. Links carry as much one way as the other, and clients copy as fast; flash and
//!   its parity are slower to write than to read. Where few clients read faster than they write, the servers hold the
//!   writes up.
//! - **easy read**: u = u₀. Nothing told it better.
//! - **hard write, hard read**: u = u₀ (hard read / easy write)^a. A read of 47,008 B waits mostly for its own latency, at the
//!   client; where it moves data as fast as large writes do, the servers are what both wait for.
//!
//! n is the number of client nodes: the processes of a node share its links and, in hard writes, its cache and its locks. A
//! **hard read** is different. Each process waits for its own 47,008 B before it asks for the next, so n is the number of
//! processes.
//!
//! If the two runs saw file systems of different sizes, there are different servers behind them. Their speed is taken to
//! grow with the root of the size: a larger system has more servers and larger drives.
//!
//! u₀ and a (one or two numbers a phase) are fitted to the other families of systems. A prediction that is far off counts
//! little more than one that is off: some pairs are of different storage under one name, and no model of clients and
//! servers explains them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::ScoreError;
use super::data::{self, Cells, Column, Row, usable};
use super::leave_out::{Case, median, predict_each};
use super::saturation::growth;
use super::show::{Line, Scoreboard, Section};

/// The carried runs.
const RUNS: &str = include_str!("../../../../papers/scoreboards/io500.csv");

/// The exponent with which the servers' speed grows with the size of the file system.
const SIZE_EXPONENT: f64 = 0.5;

/// An error of so much, in the logarithm, counts half of the most that an error can count in the fit.
const HALF_COUNTED: f64 = 0.6;

/// Servers are not used to the full: clients that are ready take a little time.
const MOST_UTILISATION: f64 = 0.999;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    EasyWrite,
    EasyRead,
    HardWrite,
    HardRead,
}

impl Phase {
    const ALL: [Phase; 4] = [Phase::EasyWrite, Phase::EasyRead, Phase::HardWrite, Phase::HardRead];

    fn name(self) -> &'static str {
        match self {
            Phase::EasyWrite => "easy write",
            Phase::EasyRead => "easy read",
            Phase::HardWrite => "hard write",
            Phase::HardRead => "hard read",
        }
    }

    /// The median difference of 21 pairs of runs of one system that differ in no column of their set-up, parts of the
    /// larger.
    fn noise(self) -> f64 {
        match self {
            Phase::EasyWrite => 0.05,
            Phase::EasyRead => 0.03,
            Phase::HardWrite => 0.08,
            Phase::HardRead => 0.06,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Run {
    system_family: String,
    file_system: String,
    file_system_name: String,
    io500_list: String,
    io500_version: String,
    student_competition: String,
    marked_invalid: String,
    client_nodes: Option<f64>,
    processes: Option<f64>,
    storage_servers: String,
    #[serde(rename = "file_system_TiB")]
    size_tib: Option<f64>,
    ior_easy_api: String,
    ior_hard_api: String,
    #[serde(rename = "ior_easy_write_GiB_s")]
    easy_write: Option<f64>,
    #[serde(rename = "ior_easy_read_GiB_s")]
    easy_read: Option<f64>,
    #[serde(rename = "ior_hard_write_GiB_s")]
    hard_write: Option<f64>,
    #[serde(rename = "ior_hard_read_GiB_s")]
    hard_read: Option<f64>,
    /// Whether the project carries it: of a user's own runs nothing is known but what they say.
    #[serde(skip)]
    is_carried: bool,
}

impl Row for Run {
    const COLUMNS: &'static [Column] = &[
        Column("system_family", Cells::Text),
        Column("file_system", Cells::Text),
        Column("file_system_name", Cells::Text),
        Column("io500_list", Cells::Text),
        Column("io500_version", Cells::Text),
        Column("student_competition", Cells::Flag),
        Column("marked_invalid", Cells::Flag),
        Column("client_nodes", Cells::Count),
        Column("processes", Cells::Count),
        Column("storage_servers", Cells::Text),
        Column("file_system_TiB", Cells::Above0),
        Column("ior_easy_api", Cells::Text),
        Column("ior_hard_api", Cells::Text),
        Column("ior_easy_write_GiB_s", Cells::Above0),
        Column("ior_easy_read_GiB_s", Cells::Above0),
        Column("ior_hard_write_GiB_s", Cells::Above0),
        Column("ior_hard_read_GiB_s", Cells::Above0),
    ];
    const MAY_LACK: &'static [&'static str] = &["processes"];

    /// Student competitions have relaxed rules, and runs that are marked invalid ended too soon.
    fn left_out(&self) -> Option<String> {
        let why = if self.student_competition == "1" {
            "of a student competition"
        } else if self.marked_invalid == "1" {
            "marked invalid"
        } else if self.client_nodes.is_none() {
            "without client_nodes"
        } else if Phase::ALL.iter().all(|phase| self.bandwidth(*phase).is_none()) {
            "without a bandwidth"
        } else {
            return None;
        };
        Some(why.to_owned())
    }
}

impl Run {
    /// Runs by different interfaces, or by unknown ones, are not paired.
    fn has_interface(&self) -> bool {
        !self.ior_easy_api.is_empty()
    }

    fn bandwidth(&self, phase: Phase) -> Option<f64> {
        usable(match phase {
            Phase::EasyWrite => self.easy_write,
            Phase::EasyRead => self.easy_read,
            Phase::HardWrite => self.hard_write,
            Phase::HardRead => self.hard_read,
        })
    }

    /// The list that the result is from. The issue of the benchmark's code does not tell it: systems of one list ran several
    /// issues, and one issue serves for several lists.
    fn published(&self) -> String {
        let issue = self.io500_version.trim_start_matches("io500-");
        match (self.io500_list.as_str(), issue) {
            ("", "") => "neither list nor issue named".to_owned(),
            ("", issue) => format!("benchmark issue {issue}, no list named"),
            (list, _) if self.is_carried => format!("IO500 {list}, verified"),
            (list, _) => format!("list {list}, as given"),
        }
    }
}

/// The scoreboard of the carried runs, or of those in the tables `io500.csv` of these folders.
///
/// # Errors
/// If a folder has no such table, it cannot be read, or nothing in it can be predicted.
pub fn scoreboard(folders: &[PathBuf]) -> Result<Scoreboard, ScoreError> {
    let mut carried = data::carried::<Run>("io500.csv", RUNS)?;
    carried.rows.iter_mut().for_each(|run| run.is_carried = true);
    let (table, mut others) = if folders.is_empty() {
        (carried, Vec::new())
    } else {
        (data::of_folders(folders, "io500", "io500.csv")?, carried.rows)
    };
    let (left_out, runs) = (table.left_out_text(), table.rows);
    // What is carried of a family that is in the user's data is left to them.
    others.retain(|other| runs.iter().all(|run| run.system_family != other.system_family));
    let mut sections = Vec::new();
    let (pairs, fitted_too) = (pairs(&runs), pairs(&others));
    for phase in Phase::ALL {
        sections.push(more_clients(phase, &pairs, &fitted_too));
    }
    for (hard, easy) in [(Phase::HardWrite, Phase::EasyWrite), (Phase::HardRead, Phase::EasyRead)] {
        sections.push(hard_from_easy(hard, easy, &runs, &others));
    }
    let without_interface = runs.iter().filter(|run| !run.has_interface()).count();
    let by_clients = match pairs.iter().filter(|pair| pair.processes_ratio.is_none()).count() {
        0 => String::new(),
        count => {
            format!(" Hard reads of {count} pairs go by their clients, as their processes are not known.")
        }
    };
    let score = Scoreboard {
        title: "IO500: predicted from other phases or fewer clients of the same system".to_owned(),
        note: format!(
            "Fitted to other families of systems only, each family left out in turn. A result counts as verified where the \
             data name its list. A pair of client counts may span lists; the lists beside it are those of the runs with \
             more clients. For hard from easy, the ratio of two phases is taken within a run, and the ratios of all lists \
             are pooled. {left_out} {without_interface} that are used name no ior_easy_api and stand in no pair.{by_clients}"
        ),
        sections,
    };
    score.with_cases("two client counts of a system, or easy and hard of a run, are needed", left_out)
}

/// Two client counts of a system, on the same servers by the same interfaces.
#[derive(Clone, Debug)]
struct Pair {
    family: String,
    name: String,
    clients: (f64, f64),
    /// The processes of the runs with more clients over those of the runs with fewer, if both are known.
    processes_ratio: Option<f64>,
    /// Medians of the runs with fewer clients, and with more, by phase; GiB/s.
    few: [Option<f64>; 4],
    many: [Option<f64>; 4],
    /// The size of the file system with more clients over that with fewer.
    size_ratio: f64,
    /// The lists of the runs with more clients.
    published: String,
}

impl Pair {
    /// How many times as many wait for the servers in a phase.
    fn more(&self, phase: Phase) -> f64 {
        let of_clients = self.clients.1 / self.clients.0;
        match phase {
            Phase::HardRead => self.processes_ratio.unwrap_or(of_clients),
            Phase::EasyWrite | Phase::EasyRead | Phase::HardWrite => of_clients,
        }
    }
}

/// A pair and what the models of one phase need of it.
struct Growing<'a> {
    pair: &'a Pair,
    few: f64,
    many: f64,
    /// How many times as many wait for the servers: clients or processes.
    more: f64,
    /// What tells the utilisation.
    sign: f64,
}

impl Case for Growing<'_> {
    fn family(&self) -> &str {
        &self.pair.family
    }

    fn measured(&self) -> f64 {
        self.many
    }
}

/// What is fitted of a phase.
#[derive(Clone, Copy, Debug)]
struct Fitted {
    utilisation: f64,
    exponent: f64,
}

impl Fitted {
    fn predict(self, case: &Growing<'_>) -> f64 {
        let utilisation = (self.utilisation * case.sign.powf(self.exponent)).min(MOST_UTILISATION);
        case.few * growth(utilisation, case.more, case.pair.size_ratio.powf(SIZE_EXPONENT))
    }

    /// The best of a grid. A family counts as the root of its pairs.
    fn to(cases: &[&Growing<'_>], has_sign: bool) -> Fitted {
        let mut pairs_of: BTreeMap<&str, f64> = BTreeMap::new();
        for case in cases {
            *pairs_of.entry(case.family()).or_default() += 1.0;
        }
        let cost = |fitted: Fitted| -> f64 {
            cases
                .iter()
                .map(|case| {
                    let error = (fitted.predict(case) / case.many).ln().abs();
                    error / (error + HALF_COUNTED) / pairs_of[case.family()].sqrt()
                })
                .sum()
        };
        let exponents: Vec<f64> =
            if has_sign { (-2..=8).map(|half| f64::from(half) / 2.0).collect() } else { vec![0.0] };
        let grid = (0..32).flat_map(|step| {
            let utilisation = 0.05 * 160.0_f64.powf(f64::from(step) / 31.0);
            exponents.iter().map(move |exponent| Fitted { utilisation, exponent: *exponent })
        });
        let best = grid.map(|fitted| (cost(fitted), fitted)).min_by(|one, other| one.0.total_cmp(&other.0));
        best.expect("the grid has points").1
    }
}

fn pairs(runs: &[Run]) -> Vec<Pair> {
    let mut groups: BTreeMap<[&str; 5], BTreeMap<u64, Vec<&Run>>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.has_interface()) {
        let key = [
            run.system_family.as_str(),
            &run.file_system_name,
            &run.storage_servers,
            &run.ior_easy_api,
            &run.ior_hard_api,
        ];
        // A whole number that a u64 holds, as the table was read.
        let clients = run.client_nodes.unwrap_or_default() as u64;
        groups.entry(key).or_default().entry(clients).or_default().push(run);
    }
    let middle = |runs: &[&Run], of: &dyn Fn(&Run) -> Option<f64>| {
        Some(median(runs.iter().filter_map(|run| of(run)))).filter(|middle| !middle.is_nan())
    };
    let phases = |runs: &[&Run]| Phase::ALL.map(|phase| middle(runs, &|run| run.bandwidth(phase)));
    let mut pairs = Vec::new();
    for (key, counts) in &groups {
        for (few, few_runs) in counts {
            for (many, many_runs) in counts.range(few + 1..) {
                let size = |runs| middle(runs, &|run: &Run| usable(run.size_tib));
                let processes = |runs| middle(runs, &|run: &Run| run.processes);
                pairs.push(Pair {
                    family: key[0].to_owned(),
                    name: format!("{}, {}", key[0], key[1]),
                    clients: (*few as f64, *many as f64),
                    processes_ratio: processes(many_runs)
                        .zip(processes(few_runs))
                        .map(|(many, few)| many / few),
                    few: phases(few_runs),
                    many: phases(many_runs),
                    size_ratio: size(many_runs).zip(size(few_runs)).map_or(1.0, |(many, few)| many / few),
                    published: published(many_runs),
                });
            }
        }
    }
    pairs
}

/// Where runs are from, each list once.
fn published(runs: &[&Run]) -> String {
    let distinct: BTreeSet<String> = runs.iter().map(|run| run.published()).collect();
    distinct.into_iter().collect::<Vec<_>>().join("; ")
}

/// The pairs that have what a phase needs.
fn growing(phase: Phase, pairs: &[Pair]) -> Vec<Growing<'_>> {
    let of = |pair: &Pair, phase: Phase| pair.few[phase as usize];
    let sign = |pair: &Pair| match phase {
        Phase::EasyWrite => Some(of(pair, Phase::EasyRead)? / of(pair, Phase::EasyWrite)?),
        Phase::EasyRead => Some(1.0),
        Phase::HardWrite | Phase::HardRead => Some(of(pair, Phase::HardRead)? / of(pair, Phase::EasyWrite)?),
    };
    let growing = |pair| {
        let (few, many) = (of(pair, phase)?, pair.many[phase as usize]?);
        Some(Growing { pair, few, many, more: pair.more(phase), sign: sign(pair)? })
    };
    pairs.iter().filter_map(growing).collect()
}

fn more_clients(phase: Phase, pairs: &[Pair], fitted_too: &[Pair]) -> Section {
    let (cases, fitted_too) = (growing(phase, pairs), growing(phase, fitted_too));
    let fit = |without: &[&str]| {
        let seen: Vec<&Growing<'_>> =
            cases.iter().chain(&fitted_too).filter(|case| !without.contains(&case.family())).collect();
        Fitted::to(&seen, phase != Phase::EasyRead)
    };
    let predicted = predict_each(&cases, &fitted_too, fit, |fitted, case| fitted.predict(case));
    let line = |(case, predicted): (&Growing<'_>, _)| {
        let (few, many) = case.pair.clients;
        let what = format!("{few} → {many} clients");
        Line::new(&case.pair.name, what, case.many, predicted, case.pair.published.clone())
    };
    let simple = |grows: &dyn Fn(&Growing<'_>) -> f64| {
        median(cases.iter().map(|case| (case.few * grows(case) / case.many - 1.0).abs()))
    };
    Section {
        name: format!("more clients: {}, GiB/s", phase.name()),
        noise: Some(phase.noise()),
        simple: vec![
            ("unchanged", simple(&|_| 1.0)),
            ("in proportion", simple(&|case| case.pair.clients.1 / case.pair.clients.0)),
        ],
        lines: cases.iter().zip(predicted).map(line).collect(),
        parts: Vec::new(),
    }
}

/// A run whose hard phase is predicted from its easy one.
struct Harder<'a> {
    run: &'a Run,
    easy: f64,
    hard: f64,
}

impl Case for Harder<'_> {
    fn family(&self) -> &str {
        &self.run.system_family
    }

    fn measured(&self) -> f64 {
        self.hard
    }
}

/// Hard over easy, by kind of file system: what its locks and its small requests cost is of its design. The median of the
/// families' medians; of all kinds for a kind that no other family has.
struct Ratios {
    by_file_system: BTreeMap<String, f64>,
    all: f64,
}

impl Ratios {
    fn of<'a>(cases: impl Iterator<Item = &'a Harder<'a>>) -> Ratios {
        let mut families: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for case in cases {
            let key = (case.run.file_system.as_str(), case.family());
            families.entry(key).or_default().push(case.hard / case.easy);
        }
        let mut kinds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for ((file_system, _), ratios) in families {
            kinds.entry(file_system.to_owned()).or_default().push(median(ratios));
        }
        let all = median(kinds.values().flatten().copied());
        Ratios {
            all,
            by_file_system: kinds.into_iter().map(|(kind, ratios)| (kind, median(ratios))).collect(),
        }
    }

    fn predict(&self, case: &Harder<'_>) -> f64 {
        case.easy * self.by_file_system.get(&case.run.file_system).copied().unwrap_or(self.all)
    }
}

fn hard_from_easy(hard: Phase, easy: Phase, runs: &[Run], others: &[Run]) -> Section {
    fn harder(runs: &[Run], hard: Phase, easy: Phase) -> Vec<Harder<'_>> {
        let of =
            |run| Some(Harder { run, easy: Run::bandwidth(run, easy)?, hard: Run::bandwidth(run, hard)? });
        runs.iter().filter_map(of).collect()
    }
    let (cases, fitted_too) = (harder(runs, hard, easy), harder(others, hard, easy));
    let fit = |without: &[&str]| {
        Ratios::of(cases.iter().chain(&fitted_too).filter(|case| !without.contains(&case.family())))
    };
    let predicted = predict_each(&cases, &fitted_too, fit, Ratios::predict);
    let line = |(case, predicted): (&Harder<'_>, _)| {
        let Run { system_family, file_system, client_nodes, .. } = case.run;
        let what = format!("{file_system}, {} clients", client_nodes.unwrap_or_default());
        Line::new(system_family, what, case.hard, predicted, case.run.published())
    };
    Section {
        name: format!("{} from {}, GiB/s", hard.name(), easy.name()),
        noise: Some(hard.noise()),
        simple: vec![("the same", median(cases.iter().map(|case| (case.easy / case.hard - 1.0).abs())))],
        lines: cases.iter().zip(predicted).map(line).collect(),
        parts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the carried runs gave when this was written; a change of the model must not make them worse.
    #[test]
    fn as_good_as_it_was() {
        let sections = scoreboard(&[]).unwrap().sections;
        let bounds = [0.25, 0.25, 0.20, 0.24];
        for (section, bound) in sections.iter().zip(bounds) {
            assert_eq!(section.lines.len(), 27, "{}", section.name);
            assert!(section.median_error() <= bound, "{}: {}", section.name, section.median_error());
            assert!(section.median_error() < section.simple[0].1, "{}", section.name);
        }
    }

    const HEADINGS: &str = "system_family,file_system,file_system_name,io500_list,io500_version,student_competition,\
        marked_invalid,client_nodes,storage_servers,file_system_TiB,ior_easy_api,ior_hard_api,ior_easy_write_GiB_s,\
        ior_easy_read_GiB_s,ior_hard_write_GiB_s,ior_hard_read_GiB_s\n";

    fn of(text: &str) -> Result<Scoreboard, ScoreError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("io500.csv"), text).unwrap();
        scoreboard(&[folder.path().to_owned()])
    }

    /// A list is named only where the data name it, each once, and only what is carried was verified.
    #[test]
    fn lists_are_those_of_the_data() {
        let mut published = BTreeSet::new();
        for line in &scoreboard(&[]).unwrap().sections[4].lines {
            published.insert(line.published.clone());
        }
        assert!(published.contains("IO500 isc20, verified"), "{published:?}");
        assert!(published.contains("benchmark issue isc23, no list named"), "{published:?}");
        assert!(published.contains("neither list nor issue named"), "{published:?}");
        let own = "Own,Lustre,a,,io500-isc23,,,10,4,100,POSIX,POSIX,10,12,1,2\n\
                   Own,Lustre,a,sc23,io500-isc23,0,0,20,4,100,POSIX,POSIX,18,20,2,4\n\
                   Own,Lustre,a,,,0,0,20,4,100,POSIX,POSIX,18,20,2,4\n\
                   Own,Lustre,a,,,0,0,20,4,100,POSIX,POSIX,18,20,2,4\n\
                   Own,Lustre,a,,,1,0,20,4,100,POSIX,POSIX,18,20,2,4\n";
        let score = of(&format!("{HEADINGS}{own}")).unwrap();
        assert_eq!(score.sections[0].lines[0].published, "list sc23, as given; neither list nor issue named");
        assert_eq!(score.sections[4].lines[0].published, "benchmark issue isc23, no list named");
        assert!(score.note.contains("Left out of 5 rows: 1 of a student competition."), "{}", score.note);
    }

    /// Two families to fit to, and one that is to be predicted, whose runs have 2 and 8 clients with 4 processes each or, where
    /// nothing else changes, 16 and 16 processes in all.
    #[test]
    fn hard_reads_go_by_processes() {
        let headings = HEADINGS.replace("client_nodes", "client_nodes,processes");
        let predicted = |few: &str, many: &str| {
            let own = format!(
                "Own,Lustre,a,,,,,2,{few}4,100,POSIX,POSIX,10,12,1,2\nOwn,Lustre,a,,,,,8,{many}4,100,POSIX,POSIX,18,20,2,4\n"
            );
            let headings = if few.is_empty() { HEADINGS } else { &headings };
            let score = of(&format!("{headings}{own}")).unwrap();
            let of_section = |index: usize| score.sections[index].lines[0].predicted;
            ([0, 1, 2, 3].map(of_section), score.note)
        };
        let (by_clients, note) = predicted("", "");
        assert!(
            note.ends_with("Hard reads of 1 pairs go by their clients, as their processes are not known."),
            "{note}"
        );
        assert!(predicted(",", ",").0 == by_clients, "blank cells");
        let (in_proportion, note) = predicted("8,", "32,");
        assert!(in_proportion == by_clients && !note.contains("not known"), "{note}");
        let (same, _) = predicted("16,", "16,");
        assert_eq!(same[..3], by_clients[..3], "other phases go by clients");
        // Neither more processes nor more servers.
        assert_eq!((by_clients[3] > 2.0, same[3]), (true, 2.0));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let misspelt = HEADINGS.replace("client_nodes", "clients").replace("ior_hard_read", "hard_read");
        let error = of(&format!("{misspelt}Own,Lustre,a,,,,,10,4,100,POSIX,POSIX,10,12,1,2\n")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(
                "io500.csv: no column client_nodes, ior_hard_read_GiB_s; needed are system_family,"
            ),
            "{error}"
        );
        for clients in ["1e300", "0.5", "0", "-3", "nan"] {
            let row = format!("{HEADINGS}Own,Lustre,a,,,,,{clients},4,100,POSIX,POSIX,10,12,1,2\n");
            let error = of(&row).unwrap_err().to_string();
            let expected =
                format!("io500.csv, line 2, column client_nodes: \"{clients}\" is not a whole number");
            assert!(error.contains(&expected), "{error}");
        }
        let error = of(&format!("{HEADINGS}Own,Lustre,a,,,,,10,4,100,POSIX,POSIX,0,12,1,2\n")).unwrap_err();
        assert!(error.to_string().contains("column ior_easy_write_GiB_s"), "{error}");
        let error = of(&format!("{HEADINGS}Own,Lustre,a,,,,,,4,100,POSIX,POSIX,10,12,1,2\n")).unwrap_err();
        assert!(
            error.to_string().contains("no row can be used. Left out of 1 rows: 1 without client_nodes."),
            "{error}"
        );
        let error = of(&format!("{HEADINGS}Own,Lustre,a,,,,,10,4,100,POSIX,POSIX,10,12,,\n")).unwrap_err();
        assert!(error.to_string().starts_with("nothing to predict"), "{error}");
    }
}
