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

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::ScoreError;
use super::data::{self, usable};
use super::leave_out::{Case, median, predict_each};
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
        let needed = usable(row.needed_percent)?;
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
            margin: usable(row.utilisation_percent)? / needed,
            needed_mib_per_s: demand_mib_per_s * needed / 100.0,
            file_mib: usable(row.file_bytes)? / MIB,
            ports_mib_per_s: ports_mib_per_s(&row.ports),
            cores: usable(row.client_cores),
        })
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
/// If a folder has no such table, or it cannot be read.
pub fn scoreboard(folders: &[PathBuf]) -> Result<Scoreboard, ScoreError> {
    let usable = |rows: Vec<Configuration>| -> Vec<Ran> { rows.into_iter().filter_map(Ran::of).collect() };
    let mut others = usable(data::carried("mlperf-storage.csv", CONFIGURATIONS)?);
    let mut rows = usable(data::of_folders(folders, "mlperf-storage", "configurations.csv")?);
    if folders.is_empty() {
        rows = std::mem::take(&mut others);
    }
    // What is carried of a submitter who is in the user's data is left to them.
    others.retain(|other| rows.iter().all(|row| row.submitter != other.submitter));
    let (rows, others) = (most_of_each(&rows), most_of_each(&others));
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
    Ok(Scoreboard {
        title: "MLPerf Storage v1.0: predicted from another configuration on the same hosts and storage".to_owned(),
        note: "Fitted to the systems of other submitters only, each submitter left out in turn. Submitters chose the number \
               of accelerators so that they just pass."
            .to_owned(),
        sections,
    })
}

/// Of each model and accelerator on the same hosts, the configuration that moved most.
fn most_of_each(rows: &[Ran]) -> Vec<&Ran> {
    let mut most: BTreeMap<[String; 5], &Ran> = BTreeMap::new();
    for row in rows {
        let key = [&row.submitter, &row.system, &row.hosts.to_string(), &row.model, &row.accelerator]
            .map(Clone::clone);
        let kept = most.entry(key).or_insert(row);
        if row.mib_per_s > kept.mib_per_s {
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
                if place(from) == place(to) && is_pair(from, to) {
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
        let what = format!("{} {} → {} {}", from.model, from.accelerator, to.model, to.accelerator);
        let hosts = if to.hosts == 1.0 { "1 host".to_owned() } else { format!("{} hosts", to.hosts) };
        let system = format!("{}, {}, {hosts}", to.submitter, to.system);
        Line::new(&system, what, case.measured(), predicted, String::new())
    };
    Section {
        name: name.to_owned(),
        noise: (!counts_accelerators).then_some(NOISE),
        simple: vec![(
            "same MiB/s",
            median(cases.iter().map(|case| (case.unchanged() / case.measured() - 1.0).abs())),
        )],
        lines: cases.iter().zip(predicted).map(line).collect(),
    }
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
