//! MLPerf Storage: what another model's input would get from the same storage, and how many accelerators it would feed.
//!
//! The time that a byte takes is a sum, for `hosts` hosts that read alike:
//!
//! ```text
//! 1/B = 1/(hosts × path) + parse/(hosts × cores) + open/bytes of a file
//! ```
//!
//! - `path`: what a host can read in large pieces: its links, its file system's client, its share of the servers.
//! - `parse`: processor time for a byte of records (the TFRecords of resnet50 and cosmoflow; the arrays of unet3d are
//!   read as they are, and cost none beyond `path`). A host's cores share it.
//! - `open`: the servers' time to open a file. Small files (cosmoflow, 2.8 MB) feel it, files of 140 MB do not.
//!
//! `parse` and `open` are constants, fitted to the systems of other submitters that ran unet3d, whose bandwidth is `path`.
//! A system may be better or worse: `path` is a part of the host's ports and `parse` a multiple of the constant, each
//! lognormal about what other submitters have. The bandwidth that was measured for one model says which of these pairs can
//! be; the prediction is the median over them, by their probability.
//!
//! A configuration passes while accelerators are busy for a part of the time (90 %; 70 % with cosmoflow). So many pass as
//! need no more than what is predicted.
//!
//! Accelerators that are busier than they need be, by more than [`NEAR_POINTS`], would have let the storage give more. What
//! was measured with them is a lower bound of what the storage can give, and stands as "(at least)". The model takes it as
//! it is, on either side; cases without such an end are counted for themselves too.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::ScoreError;
use super::data::{self, Cells, Column, Row, usable};
use super::leave_out::{Case, Predicted, median, predict_each};
use super::show::{Line, Scoreboard, Section};

/// The carried configurations.
const CONFIGURATIONS: &str = include_str!("../../../../papers/scoreboards/mlperf-storage.csv");

const MIB: f64 = (1u64 << 20) as f64;

/// Standard deviations, in the logarithm: of `path` and of `parse` between systems, and of a measurement.
const PATH_DEVIATION: f64 = 0.2;
const PARSE_DEVIATION: f64 = 0.4;
const MEASURED_DEVIATION: f64 = 0.05;

/// No host reads more than this part of what its ports carry: the rest is the network's own.
const MOST_OF_PORTS: f64 = 0.97;

/// An error of so much, in the logarithm, counts half of the most that an error can count in the fit.
const HALF_COUNTED: f64 = 0.4;

/// Accelerators that are busier than the bar by no more than so many points show what the storage can give.
const NEAR_POINTS: f64 = 5.0;

/// The part that repeats of one configuration differ by, in the median.
const NOISE: f64 = 0.0066;

#[derive(Clone, Debug, Deserialize)]
struct Configuration {
    submitter: String,
    system: String,
    model: String,
    accelerator: String,
    accelerators: Option<f64>,
    hosts: Option<f64>,
    /// In MiB/s, whatever its name.
    #[serde(rename = "MB_per_s")]
    mib_per_s: Option<f64>,
    #[serde(rename = "AU_percent")]
    utilisation_percent: Option<f64>,
    #[serde(rename = "AU_needed_percent")]
    needed_percent: Option<f64>,
    samples_per_s_if_never_waiting: Option<f64>,
    #[serde(rename = "record_B")]
    record_bytes: Option<f64>,
    #[serde(rename = "file_B")]
    file_bytes: Option<f64>,
    #[serde(rename = "client_nic_ports_Gbit_s")]
    ports: String,
    client_cores: Option<f64>,
}

impl Row for Configuration {
    const COLUMNS: &'static [Column] = &[
        Column("submitter", Cells::Text),
        Column("system", Cells::Text),
        Column("model", Cells::Text),
        Column("accelerator", Cells::Text),
        Column("accelerators", Cells::Count),
        Column("hosts", Cells::Count),
        Column("MB_per_s", Cells::Above0),
        Column("AU_percent", Cells::Above0),
        Column("AU_needed_percent", Cells::Above0),
        Column("samples_per_s_if_never_waiting", Cells::Above0),
        Column("record_B", Cells::Above0),
        Column("file_B", Cells::Above0),
        Column("client_nic_ports_Gbit_s", Cells::Text),
        Column("client_cores", Cells::Above0),
    ];

    fn left_out(&self) -> Option<String> {
        let needed = [
            ("accelerators", self.accelerators),
            ("hosts", self.hosts),
            ("MB_per_s", self.mib_per_s),
            ("AU_percent", self.utilisation_percent),
            ("AU_needed_percent", self.needed_percent),
            ("samples_per_s_if_never_waiting", self.samples_per_s_if_never_waiting),
            ("record_B", self.record_bytes),
            ("file_B", self.file_bytes),
        ];
        let missing = needed.into_iter().find(|(_, number)| number.is_none());
        missing.map(|(name, _)| format!("without {name}"))
    }
}

/// A configuration that has what the model needs.
#[derive(Clone, Debug)]
struct Ran {
    submitter: String,
    /// The system without the number of its clients.
    system: String,
    /// Nor that of its hosts.
    storage: String,
    model: String,
    accelerator: String,
    accelerators: f64,
    hosts: f64,
    mib_per_s: f64,
    /// How busy the accelerators were, over what a valid run needs.
    margin: f64,
    /// Whether the accelerators were so busy that the storage may give more than was measured.
    is_lower_bound: bool,
    /// What an accelerator reads that is as busy as a valid run needs, MiB/s.
    needed_mib_per_s: f64,
    file_mib: f64,
    /// What a host's ports carry, MiB/s.
    ports_mib_per_s: Option<f64>,
    cores: Option<f64>,
}

impl Ran {
    fn of(row: Configuration) -> Option<Ran> {
        let accelerators = usable(row.accelerators)?;
        let (busy, needed) = (usable(row.utilisation_percent)?, usable(row.needed_percent)?);
        let demand_mib_per_s =
            usable(row.samples_per_s_if_never_waiting)? * usable(row.record_bytes)? / MIB / accelerators;
        Some(Ran {
            system: row.system.split("_Nclient").next().unwrap_or_default().to_owned(),
            storage: storage(&row.system),
            submitter: row.submitter,
            model: row.model,
            accelerator: row.accelerator,
            accelerators,
            hosts: usable(row.hosts)?,
            mib_per_s: usable(row.mib_per_s)?,
            margin: busy / needed,
            is_lower_bound: busy - needed > NEAR_POINTS,
            needed_mib_per_s: demand_mib_per_s * needed / 100.0,
            file_mib: usable(row.file_bytes)? / MIB,
            ports_mib_per_s: ports_mib_per_s(&row.ports),
            cores: usable(row.client_cores),
        })
    }

    /// For a table: its model and accelerator.
    fn name(&self) -> String {
        let at_least = if self.is_lower_bound { " (at least)" } else { "" };
        format!("{} {}{at_least}", self.model, self.accelerator)
    }

    /// Whether the accelerators were as busy as a valid run needs.
    fn passes(&self) -> bool {
        self.margin >= 1.0
    }

    fn parses(&self) -> bool {
        self.model != "unet3d"
    }

    /// Its bandwidth, MiB/s, if a host's path has so much and the system's costs are these.
    fn bandwidth(&self, path_mib_per_s: f64, costs: Costs, cores: f64) -> f64 {
        let parse = if self.parses() { costs.parse_core_s_per_mib / cores } else { 0.0 };
        1.0 / ((1.0 / path_mib_per_s + parse) / self.hosts + costs.open_s / self.file_mib)
    }
}

/// The folder's name without its numbers of clients and of hosts: one storage may have several.
fn storage(system: &str) -> String {
    let is_count = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut kept: Vec<&str> = Vec::new();
    for word in system.split(['_', '-']) {
        if matches!(word, "Host" | "Hosts") && kept.last().is_some_and(|last| is_count(last)) {
            kept.pop();
            break;
        }
        let word_count = word.strip_prefix("Nclient").or_else(|| word.strip_suffix("clients"));
        if !word_count.is_some_and(is_count) {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// What ports such as `2 x 200` (number x Gbit/s; several kinds by `;`) carry, MiB/s.
fn ports_mib_per_s(ports: &str) -> Option<f64> {
    let kind = |kind: &str| -> Option<f64> {
        let (count, gbit) = kind.split_once('x')?;
        usable(Some(count.trim().parse::<f64>().ok()? * gbit.trim().parse::<f64>().ok()? * 1e9 / 8.0 / MIB))
    };
    let sum: f64 = ports.split(';').filter_map(kind).sum();
    usable(Some(sum))
}

/// What work costs beyond the moving of bytes.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// A core's time for a MiB of records, s.
    parse_core_s_per_mib: f64,
    /// The servers' time to open a file, s.
    open_s: f64,
}

/// What is fitted to the systems of some submitters.
struct Fitted {
    costs: Costs,
    /// A host's path over what its ports carry, in the middle.
    path_of_ports: f64,
    /// Cores of a host, in the middle, for those that do not tell.
    cores: f64,
    /// How busy accelerators were over what a valid run needs, in the middle: nobody hits it exactly.
    margin: f64,
}

/// A configuration of another model than unet3d, and the path of a host that unet3d found on the same storage.
struct Example<'a> {
    ran: &'a Ran,
    cores: f64,
    path_mib_per_s: f64,
}

impl Fitted {
    fn to(rows: &[&Ran]) -> Fitted {
        let examples = examples(rows);
        let mut same: BTreeMap<(&str, &str, &str), f64> = BTreeMap::new();
        for Example { ran, .. } in &examples {
            *same.entry((&ran.submitter, &ran.storage, &ran.model)).or_default() += 1.0;
        }
        let cost = |costs: Costs| -> f64 {
            let of = |Example { ran, cores, path_mib_per_s }: &Example<'_>| {
                let error = (ran.bandwidth(*path_mib_per_s, costs, *cores) / ran.mib_per_s).ln().abs();
                let alike = same[&(ran.submitter.as_str(), ran.storage.as_str(), ran.model.as_str())];
                error / (error + HALF_COUNTED) / alike
            };
            examples.iter().map(of).sum()
        };
        let opens = [0.0, 8e-6, 14e-6, 22e-6, 32e-6, 48e-6, 72e-6];
        let grid = (0..25).flat_map(|step| {
            let parse_core_s_per_mib = 5e-4 * 16.0_f64.powf(f64::from(step) / 24.0);
            opens.into_iter().map(move |open_s| Costs { parse_core_s_per_mib, open_s })
        });
        let best = grid.map(|costs| (cost(costs), costs)).min_by(|one, other| one.0.total_cmp(&other.0));
        let mut paths: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.parses()) {
            if let Some(ports) = row.ports_mib_per_s {
                let part = row.mib_per_s / row.hosts / ports;
                paths.entry((&row.submitter, &row.storage)).or_default().push(part);
            }
        }
        let or = |value: f64, default: f64| if value.is_nan() { default } else { value };
        Fitted {
            costs: best.expect("the grid has points").1,
            path_of_ports: or(median(paths.into_values().map(median)), 0.5),
            cores: or(median(rows.iter().filter_map(|row| row.cores)), 64.0),
            margin: or(median(rows.iter().map(|row| row.margin).filter(|margin| *margin >= 1.0)), 1.0),
        }
    }

    /// The bandwidth of `to`, MiB/s, on the hosts and the storage of `from`. The accelerators do not change what hosts and
    /// storage can do.
    fn predict(&self, from: &Ran, to: &Ran) -> f64 {
        if from.model == to.model {
            return from.mib_per_s;
        }
        let cores = from.cores.unwrap_or(self.cores);
        // Without a word of the ports, they are such that the path would be as usual.
        let ports = from.ports_mib_per_s.unwrap_or(from.mib_per_s / from.hosts / self.path_of_ports);
        // Steps of a normal distribution's standard deviation. Storage that is slow for its hosts' ports is far out.
        let steps = |most: i32| (-6 * most..=6 * most).map(|step| f64::from(step) / 6.0);
        let mut possible: Vec<(f64, f64)> = Vec::new();
        for path_step in steps(5) {
            let path = ports * (self.path_of_ports * (PATH_DEVIATION * path_step).exp()).min(MOST_OF_PORTS);
            for parse_step in steps(3) {
                let parse_core_s_per_mib =
                    self.costs.parse_core_s_per_mib * (PARSE_DEVIATION * parse_step).exp();
                let costs = Costs { parse_core_s_per_mib, ..self.costs };
                let off = (from.mib_per_s / from.bandwidth(path, costs, cores)).ln() / MEASURED_DEVIATION;
                let log_weight =
                    -(path_step.powi(2) + parse_step.powi(2)) / 2.0 - (off.powi(2) / 2.0).min(60.0);
                possible.push((to.bandwidth(path, costs, cores), log_weight));
            }
        }
        weighted_median(possible)
    }
}

/// Of values with the logarithms of their weights.
fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let most = values.iter().map(|value| value.1).fold(f64::NEG_INFINITY, f64::max);
    let weight = |value: &(f64, f64)| (value.1 - most).exp();
    let half = values.iter().map(weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for value in &values {
        below += weight(value);
        if below >= half {
            return value.0;
        }
    }
    f64::NAN
}

fn examples<'a>(rows: &[&'a Ran]) -> Vec<Example<'a>> {
    let mut examples = Vec::new();
    for ran in rows.iter().copied().filter(|row| row.parses()) {
        // Of the same storage and hosts of the same ports, as many of them as can be.
        let distance = |other: &Ran| {
            let accelerator = if other.accelerator == ran.accelerator { 0.0 } else { 0.1 };
            (other.hosts / ran.hosts).ln().abs() + accelerator
        };
        let nearest = rows
            .iter()
            .filter(|other| {
                !other.parses()
                    && (&other.submitter, &other.storage) == (&ran.submitter, &ran.storage)
                    && other.ports_mib_per_s == ran.ports_mib_per_s
            })
            .min_by(|one, other| distance(one).total_cmp(&distance(other)));
        if let (Some(nearest), Some(cores)) = (nearest, ran.cores) {
            examples.push(Example { ran, cores, path_mib_per_s: nearest.mib_per_s / nearest.hosts });
        }
    }
    examples
}

/// Two configurations on the same hosts and storage.
struct Pair<'a> {
    from: &'a Ran,
    to: &'a Ran,
    /// Whether the number of accelerators is predicted, or MiB/s.
    counts_accelerators: bool,
}

impl Case for Pair<'_> {
    fn family(&self) -> &str {
        &self.to.submitter
    }

    fn measured(&self) -> f64 {
        if self.counts_accelerators { self.to.accelerators } else { self.to.mib_per_s }
    }
}

impl Pair<'_> {
    fn has_lower_bound(&self) -> bool {
        self.from.is_lower_bound || self.to.is_lower_bound
    }

    fn predict(&self, fitted: &Fitted) -> f64 {
        let mib_per_s = fitted.predict(self.from, self.to);
        if !self.counts_accelerators {
            return mib_per_s;
        }
        mib_per_s / (self.to.needed_mib_per_s * fitted.margin)
    }

    /// What is predicted if the storage gave as many MiB/s whatever is read.
    fn unchanged(&self) -> f64 {
        if self.counts_accelerators {
            self.from.mib_per_s / self.to.needed_mib_per_s
        } else {
            self.from.mib_per_s
        }
    }
}

/// The scoreboard of the carried configurations, or of those in the tables `configurations.csv` of these folders.
///
/// # Errors
/// If a folder has no such table, it cannot be read, or nothing in it can be predicted.
pub fn scoreboard(folders: &[PathBuf]) -> Result<Scoreboard, ScoreError> {
    let usable = |rows: Vec<Configuration>| -> Vec<Ran> { rows.into_iter().filter_map(Ran::of).collect() };
    let carried = data::carried::<Configuration>("mlperf-storage.csv", CONFIGURATIONS)?;
    let (table, mut others) = if folders.is_empty() {
        (carried, Vec::new())
    } else {
        (data::of_folders(folders, "mlperf-storage", "configurations.csv")?, usable(carried.rows))
    };
    let (left_out, rows) = (table.left_out_text(), usable(table.rows));
    // What is carried of a submitter who is in the user's data is left to them.
    others.retain(|other| rows.iter().all(|row| row.submitter != other.submitter));
    let all = rows.len();
    let (rows, others) = (most_of_each(&rows), most_of_each(&others));
    let lower_bounds = rows.iter().filter(|row| row.is_lower_bound).count();
    let failed = rows.iter().filter(|row| !row.passes()).count();
    let other_model = |from: &Ran, to: &Ran| from.model != to.model && from.accelerator == to.accelerator;
    let other_accelerator =
        |from: &Ran, to: &Ran| from.model == to.model && from.accelerator != to.accelerator;
    let sections = vec![
        section("another model: MiB/s", &rows, &others, false, &other_model),
        section("another model: accelerators that pass", &rows, &others, true, &other_model),
        section(
            "another accelerator, same model: accelerators that pass",
            &rows,
            &others,
            true,
            &other_accelerator,
        ),
    ];
    let mut note = format!(
        "Fitted to the systems of other submitters only, each submitter left out in turn. {left_out} {} more stand behind a \
         row of the same hosts, model and accelerator that moved more or passes. In {lower_bounds} of the other {}, \
         accelerators are busier than the bar by more than {NEAR_POINTS} points: the storage may give more than was \
         measured there (at least).",
        all - rows.len(),
        rows.len(),
    );
    if failed > 0 {
        note.push_str(&format!(" In {failed} they do not pass, and no number of them is predicted."));
    }
    let score = Scoreboard {
        title: "MLPerf Storage v1.0: predicted from another configuration on the same hosts and storage"
            .to_owned(),
        note,
        sections,
    };
    score.with_cases("two models or accelerators on the same hosts and storage are needed", left_out)
}

/// Of each model and accelerator on the same hosts, the configuration that moved most, of those that pass if any does.
fn most_of_each(rows: &[Ran]) -> Vec<&Ran> {
    let mut most: BTreeMap<[String; 5], &Ran> = BTreeMap::new();
    for row in rows {
        let key = [&row.submitter, &row.system, &row.hosts.to_string(), &row.model, &row.accelerator]
            .map(Clone::clone);
        let kept = most.entry(key).or_insert(row);
        if (row.passes(), row.mib_per_s) > (kept.passes(), kept.mib_per_s) {
            *kept = row;
        }
    }
    most.into_values().collect()
}

fn section<'a>(
    name: &str,
    rows: &[&'a Ran],
    others: &[&'a Ran],
    counts_accelerators: bool,
    is_pair: &dyn Fn(&Ran, &Ran) -> bool,
) -> Section {
    let pairs = |rows: &[&'a Ran]| {
        let mut pairs = Vec::new();
        for from in rows {
            for to in rows {
                let place = |row: &Ran| (row.submitter.clone(), row.system.clone(), row.hosts.to_bits());
                let counts = !counts_accelerators || to.passes();
                if place(from) == place(to) && is_pair(from, to) && counts {
                    pairs.push(Pair { from, to, counts_accelerators });
                }
            }
        }
        pairs
    };
    let (cases, fitted_too) = (pairs(rows), pairs(others));
    let fit = |without: &[&str]| {
        let seen: Vec<&Ran> = rows
            .iter()
            .chain(others)
            .copied()
            .filter(|row| !without.contains(&row.submitter.as_str()))
            .collect();
        Fitted::to(&seen)
    };
    let predicted = predict_each(&cases, &fitted_too, fit, |fitted, case| case.predict(fitted));
    let line = |(case, predicted): (&Pair<'_>, _)| {
        let Pair { from, to, .. } = case;
        let what = format!("{} → {}", from.name(), to.name());
        let hosts = if to.hosts == 1.0 { "1 host".to_owned() } else { format!("{} hosts", to.hosts) };
        let system = format!("{}, {}, {hosts}", to.submitter, to.system);
        Line::new(&system, what, case.measured(), predicted, String::new())
    };
    let of = |name: &str, kept: &[(&Pair<'_>, Predicted)]| Section {
        name: name.to_owned(),
        noise: (!counts_accelerators).then_some(NOISE),
        simple: vec![(
            "same MiB/s",
            median(kept.iter().map(|(case, _)| (case.unchanged() / case.measured() - 1.0).abs())),
        )],
        lines: kept.iter().copied().map(line).collect(),
        parts: Vec::new(),
    };
    let all: Vec<(&Pair<'_>, Predicted)> = cases.iter().zip(predicted).collect();
    let near: Vec<(&Pair<'_>, Predicted)> =
        all.iter().copied().filter(|(case, _)| !case.has_lower_bound()).collect();
    Section { parts: vec![of("– without (at least) at either end", &near)], ..of(name, &all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the carried configurations gave when this was written; a change of the model must not make them worse.
    #[test]
    fn as_good_as_it_was() {
        let sections = scoreboard(&[]).unwrap().sections;
        assert_eq!(sections.iter().map(|section| section.lines.len()).collect::<Vec<_>>(), [42, 42, 20]);
        assert!(sections[0].median_error() <= 0.20, "{}", sections[0].median_error());
        assert!(sections[1].median_error() <= 0.20, "{}", sections[1].median_error());
        assert!(sections[2].median_error() <= 0.12, "{}", sections[2].median_error());
        let parts: Vec<&Section> = sections.iter().map(|section| &section.parts[0]).collect();
        assert_eq!(parts.iter().map(|part| part.lines.len()).collect::<Vec<_>>(), [20, 20, 18]);
        for (part, bound) in parts.iter().zip([0.26, 0.22, 0.12]) {
            assert!(part.median_error() <= bound, "{}", part.median_error());
        }
    }

    /// A row of accelerators that do not pass says how fast the storage is, but not how many pass.
    #[test]
    fn only_accelerators_that_pass_are_counted() {
        let names: Vec<&str> = Configuration::COLUMNS.iter().map(|column| column.0).collect();
        let of = |busy: &str| {
            let folder = tempfile::tempdir().unwrap();
            let text = format!(
                "{}\nOwn,a,unet3d,h100,8,1,22000,95.1,90,173.3,146600628,146600628,2 x 200,96\n\
                 Own,a,resnet50,h100,70,1,13000,{busy},90,125000,114660,143444000,2 x 200,96\n\
                 Own,a,resnet50,h100,,1,13000,91,90,125000,114660,143444000,2 x 200,96\n",
                names.join(",")
            );
            std::fs::write(folder.path().join("configurations.csv"), text).unwrap();
            scoreboard(&[folder.path().to_owned()]).unwrap()
        };
        let lines =
            |score: &Scoreboard| score.sections.iter().map(|section| section.lines.len()).collect::<Vec<_>>();
        let (passing, failing) = (of("91"), of("89.9"));
        assert_eq!((lines(&passing), lines(&failing)), (vec![2, 2, 0], vec![2, 1, 0]));
        assert_eq!(failing.sections[1].lines[0].case, "resnet50 h100 → unet3d h100 (at least)");
        assert!(passing.sections[0].parts[0].lines.is_empty());
        assert!(failing.note.contains("Left out of 3 rows: 1 without accelerators."), "{}", failing.note);
    }

    #[test]
    fn one_storage_with_several_clients() {
        assert_eq!(storage("F8000X_8x7000GiB_nvme_2xHDR200_Nclient3"), "F8000X 8x7000GiB nvme 2xHDR200");
        assert_eq!(storage("AI400X2T_24x14TiB_nvme_8xNDR200_18clients"), "AI400X2T 24x14TiB nvme 8xNDR200");
        assert_eq!(
            storage("Nutanix-Unified-Storage-4-Nodes-5-Hosts-cosmoflow-a100"),
            "Nutanix Unified Storage 4 Nodes"
        );
        assert_eq!(storage("Lightbits-6-IceLake-Clients-3-target"), "Lightbits 6 IceLake Clients 3 target");
    }

    #[test]
    fn ports() {
        assert_eq!(ports_mib_per_s("2 x 200"), Some(50e9 / MIB));
        assert_eq!(ports_mib_per_s("2 x 200; 1 x 100"), Some(62.5e9 / MIB));
        assert_eq!(ports_mib_per_s(""), None);
        assert_eq!(ports_mib_per_s("many"), None);
    }
}
