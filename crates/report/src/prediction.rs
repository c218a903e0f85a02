//! Predictions beside measurements.

use pio_explain::Comparison;
use pio_learn::Interval;

use crate::comparison;
use crate::table::Table;
use crate::units;

/// What a machine and a strategy would make of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The machine.
    pub machine: String,
    /// The strategy.
    pub strategy: String,
    /// Predicted I/O time, seconds.
    pub io_time_s: f64,
    /// What the model says before earlier runs correct it, seconds: what they are kept beside.
    pub modelled_s: f64,
    /// Predicted bandwidth: bytes over the time with a read or write of the program under way, bytes per second; 0 if it
    /// moves none.
    pub bandwidth_bytes_per_s: f64,
    /// Parts of the predicted time, seconds, in the order to show.
    pub breakdown: Vec<(String, f64)>,
    /// Whether any strategy would give the same: the program makes no calls of MPI-IO.
    pub of_any_strategy: bool,
    /// The measured I/O time, seconds, if somebody measured.
    pub measured_s: Option<f64>,
    /// Where the measured time is expected in 80 % of runs, if predictions for this machine were compared with runs.
    pub interval: Option<Interval>,
    /// What the program's MPI library does by itself on the same machine, if that was predicted, too.
    pub as_it_is: Option<AsItIs>,
    /// Bytes that go from one node to another; none on one node.
    pub bytes_between_nodes: Option<u64>,
    /// Ranks and cores of a node, where there are more ranks than cores.
    pub crowd: Option<(u32, u32)>,
    /// Where it and the measured run part, if that run's trace is there.
    pub beside: Option<Comparison>,
}

/// A prediction that others are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct AsItIs {
    /// The strategy.
    pub strategy: String,
    /// Predicted I/O time, seconds.
    pub io_time_s: f64,
    /// Where the measured time is expected.
    pub interval: Option<Interval>,
    /// How it is known that the program has it, as a sentence.
    pub why: String,
}

impl Prediction {
    /// The part of the time as it is that this prediction saves: negative if it takes longer; none for that itself, or if
    /// it is not known.
    pub fn saved(&self) -> Option<f64> {
        let before = self.as_it_is.as_ref().filter(|before| before.strategy != self.strategy)?;
        (before.io_time_s > 0.0).then(|| 1.0 - self.io_time_s / before.io_time_s)
    }

    /// The prediction by the machine's earlier ones: with the bias of those taken off, and the interval that they leave.
    pub fn corrected(self, interval: Interval) -> Prediction {
        let by = if self.io_time_s > 0.0 { interval.middle_s() / self.io_time_s } else { 1.0 };
        Prediction {
            io_time_s: self.io_time_s * by,
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s / by,
            breakdown: self.breakdown.into_iter().map(|(part, time_s)| (part, time_s * by)).collect(),
            interval: Some(interval),
            ..self
        }
    }

    /// The factor by which this machine's earlier predictions correct this one: its times are the model's times this.
    pub fn correction(&self) -> f64 {
        if self.modelled_s > 0.0 { self.io_time_s / self.modelled_s } else { 1.0 }
    }

    /// Whether it and the time as it is are too close for their intervals to say which is longer.
    pub fn equals_as_it_is(&self) -> bool {
        let before = self.as_it_is.as_ref().and_then(|before| before.interval.as_ref());
        before.zip(self.interval.as_ref()).is_some_and(|(before, own)| own.equals(before))
    }

    /// Predicted minus measured, over measured; none without a measurement.
    pub fn error(&self) -> Option<f64> {
        self.measured_s
            .filter(|measured| *measured > 0.0)
            .map(|measured| (self.io_time_s - measured) / measured)
    }
}

/// Predictions as text for a terminal, and where those that are shown with a run part from it; empty if there are none.
pub fn predictions_text(predictions: &[Prediction]) -> String {
    if predictions.is_empty() {
        String::new()
    } else {
        table(predictions).text() + &comparison::texts(predictions)
    }
}

/// The parts of the time that are at least one percent of it, largest first.
fn parts(prediction: &Prediction) -> String {
    let share = |time_s: f64| time_s / prediction.io_time_s.max(f64::MIN_POSITIVE);
    let mut parts: Vec<_> =
        prediction.breakdown.iter().filter(|(_, time_s)| share(*time_s) >= 0.01).collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let parts = parts.iter().map(|(name, time_s)| format!("{name} {}", units::percent(share(*time_s))));
    parts.collect::<Vec<_>>().join(", ")
}

pub(crate) fn table(predictions: &[Prediction]) -> Table {
    let measured = predictions.iter().any(|prediction| prediction.measured_s.is_some());
    let broken_down = predictions.iter().any(|prediction| !prediction.breakdown.is_empty());
    let with_intervals = predictions.iter().any(|prediction| prediction.interval.is_some());
    let mut columns = vec!["machine", "strategy", ">predicted I/O time"];
    if with_intervals {
        columns.push(">80 % interval");
    }
    columns.push(">bandwidth");
    let compared = predictions.iter().any(|prediction| prediction.as_it_is.is_some());
    if compared {
        columns.push(">saved");
    }
    if measured {
        columns.extend([">measured", ">error"]);
    }
    let between_nodes = predictions.iter().any(|prediction| prediction.bytes_between_nodes.is_some());
    if between_nodes {
        columns.push(">between nodes");
    }
    if broken_down {
        columns.push("where the time goes");
    }
    let rows = predictions.iter().map(|prediction| {
        let mut row = vec![
            prediction.machine.clone(),
            strategy_of(prediction, predictions).to_owned(),
            units::time_s(prediction.io_time_s),
        ];
        if with_intervals {
            row.push(prediction.interval.as_ref().map_or("–".into(), interval_text));
        }
        row.push(units::rate(prediction.bandwidth_bytes_per_s));
        if compared {
            row.push(saved(prediction));
        }
        if measured {
            row.push(units::if_known(prediction.measured_s, units::time_s));
            row.push(prediction.error().map_or("–".into(), |error| format!("{:+.0} %", error * 100.0)));
        }
        if between_nodes {
            let bytes = prediction.bytes_between_nodes.map(|bytes| bytes as f64);
            row.push(units::if_known(bytes, units::bytes));
        }
        if broken_down {
            row.push(parts(prediction));
        }
        row
    });
    Table { title: "Predictions".into(), note: note(predictions), columns, rows: rows.collect() }
}

/// The strategy of one of some predictions; `any` where one stands for all.
pub(crate) fn strategy_of<'a>(one: &'a Prediction, among: &[Prediction]) -> &'a str {
    let stands_for_all = |other: &Prediction| other.of_any_strategy && other.strategy == one.strategy;
    if among.iter().all(stands_for_all) { "any" } else { &one.strategy }
}

/// What is saved of the time as it is, in words.
fn saved(prediction: &Prediction) -> String {
    match prediction.saved() {
        None => "as it is".into(),
        Some(_) if prediction.equals_as_it_is() => "equal".into(),
        Some(saved) => format!("{:.0} %", saved * 100.0),
    }
}

/// From where to where an interval reaches, in words.
pub fn interval_text(interval: &Interval) -> String {
    format!("{} to {}", units::time_s(interval.low_s), units::time_s(interval.high_s))
}

/// What is compared with what; how sure predictions are; on which machines something is not predicted, and what.
fn note(predictions: &[Prediction]) -> String {
    let base = predictions.iter().find_map(|prediction| prediction.as_it_is.as_ref());
    let base = base.map(|base| {
        format!("Saved: of the time of {}, what the MPI library does by itself. {}", base.strategy, base.why)
    });
    let of_any = predictions.iter().any(|prediction| prediction.of_any_strategy);
    let of_any = of_any.then(|| {
        "The program makes no calls of MPI-IO, which strategies are for: there is none to choose, and each gives the same times."
            .to_owned()
    });
    let notes = base.into_iter().chain(of_any).chain(intervals(predictions)).chain(crowds(predictions));
    notes.collect::<Vec<_>>().join(" ")
}

/// What the intervals are, and what their widths rest on.
fn intervals(predictions: &[Prediction]) -> Vec<String> {
    let mut reasons: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for Prediction { machine, interval, strategy, .. } in predictions {
        let Some(Interval { reason, .. }) = interval else { continue };
        match reasons.iter_mut().find(|(on, of, _)| on == machine && of == reason) {
            Some((_, _, strategies)) => strategies.push(strategy),
            None => reasons.push((machine, reason, vec![strategy])),
        }
    }
    let note = |(machine, reason, strategies): &(&str, &str, Vec<&str>)| {
        let is_of_all = reasons.iter().filter(|(on, ..)| on == machine).count() == 1;
        let of = if is_of_all { String::new() } else { format!(", {}", strategies.join(", ")) };
        format!("On {machine}{of}: {reason}.")
    };
    let mut notes: Vec<String> = reasons.iter().map(note).collect();
    if !notes.is_empty() {
        /// Of a middle whose ends are rounded.
        const ROUNDING: f64 = 1e-9;
        let is_corrected = |one: &Prediction| (one.correction() - 1.0).abs() > ROUNDING;
        let corrected = if predictions.iter().any(is_corrected) {
            " Times and intervals are corrected by what earlier runs on the machine took beside what was predicted for them."
        } else {
            ""
        };
        notes.insert(0, format!("Interval: the times of 4 runs in 5 are expected in it.{corrected}"));
    }
    if predictions.iter().any(|prediction| prediction.saved().is_some() && prediction.equals_as_it_is()) {
        notes.push("Equal: the intervals do not tell which takes longer.".to_owned());
    }
    notes
}

/// On which machines ranks share cores.
fn crowds(predictions: &[Prediction]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for Prediction { machine, crowd, .. } in predictions {
        let Some((ranks, cores)) = crowd else { continue };
        let cores = if *cores == 1 { "one core".to_owned() } else { format!("{cores} cores") };
        let note = format!("On {machine}, {ranks} ranks share {cores}.");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn prediction(machine: &str, crowd: Option<(u32, u32)>) -> Prediction {
        Prediction {
            machine: machine.to_owned(),
            strategy: "two-phase".to_owned(),
            io_time_s: 1.0,
            modelled_s: 1.0,
            bandwidth_bytes_per_s: 1e6,
            breakdown: Vec::new(),
            of_any_strategy: false,
            measured_s: None,
            interval: None,
            as_it_is: None,
            bytes_between_nodes: None,
            crowd,
            beside: None,
        }
    }

    fn interval(low_s: f64, high_s: f64) -> Option<Interval> {
        Some(Interval { low_s, high_s, reason: "3 runs compared, off by up to 9 %".to_owned() })
    }

    /// Beside what the library does, which is predicted to take 1.2 s.
    fn beside(own: Option<Interval>, of_library: Option<Interval>) -> Prediction {
        let as_it_is = Some(AsItIs {
            strategy: "romio".to_owned(),
            io_time_s: 1.2,
            interval: of_library,
            why: "So it is.".to_owned(),
        });
        Prediction { interval: own, as_it_is, ..prediction("here", None) }
    }

    #[test]
    fn what_cannot_be_told_apart_saves_nothing() {
        let close = beside(interval(0.8, 1.3), interval(1.0, 1.4));
        let told = predictions_text(&[close]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("800 ms to 1.3 s") && told.contains("equal"), "{told}");
        assert!(told.contains("On here: 3 runs compared, off by up to 9 %."), "{told}");
        assert!(told.contains("Equal: the intervals do not tell which takes longer."), "{told}");
        let apart = predictions_text(&[beside(interval(0.9, 1.1), interval(1.1, 1.3))]);
        assert!(apart.contains("17 %") && !apart.contains("qual"), "{apart}");
        let unknown = predictions_text(&[beside(None, None)]);
        assert!(unknown.contains("17 %") && !unknown.contains("nterval"), "{unknown}");
    }

    #[test]
    fn what_the_model_was_off_by_is_taken_off_all_times() {
        let model = Prediction { breakdown: vec![("write".into(), 0.6)], ..prediction("here", None) };
        // The middle of its interval is half its time.
        let corrected = model.corrected(Interval { low_s: 0.25, high_s: 1.0, reason: String::new() });
        assert_eq!((corrected.io_time_s, corrected.modelled_s, corrected.correction()), (0.5, 1.0, 0.5));
        assert_eq!((corrected.breakdown[0].1, corrected.bandwidth_bytes_per_s), (0.3, 2e6));
    }

    #[test]
    fn times_are_said_to_be_corrected_where_they_are() {
        let interval = |low_s, high_s| Interval { low_s, high_s, reason: "no run was compared".to_owned() };
        let told = |interval: Interval| {
            let one = prediction("here", None).corrected(interval);
            predictions_text(&[one]).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let alone = told(interval(1.0 / 1.35, 1.35));
        assert!(alone.contains("are expected in it.") && !alone.contains("corrected"), "{alone}");
        let corrected = told(interval(0.25, 1.0));
        assert!(corrected.contains("are corrected by what earlier runs"), "{corrected}");
    }

    #[test]
    fn where_there_is_no_strategy_to_choose_none_is_named() {
        let alike = |strategy: &str| Prediction {
            of_any_strategy: true,
            strategy: strategy.to_owned(),
            ..prediction("here", None)
        };
        let one = predictions_text(&[alike("independent")]);
        assert!(one.contains("any") && !one.contains("independent"), "{one}");
        assert!(one.contains("no calls of MPI-IO"), "{one}");
        let asked = predictions_text(&[alike("independent"), alike("two-phase")]);
        assert!(asked.contains("independent") && asked.contains("two-phase"), "{asked}");
        assert!(!predictions_text(&[prediction("here", None)]).contains("no calls"));
    }

    #[test]
    fn a_crowd_is_told_once_a_machine() {
        let roomy = prediction("roomy", None);
        assert_eq!(note(std::slice::from_ref(&roomy)), "");
        let here = prediction("here", Some((8, 2)));
        let told = note(&[here.clone(), roomy, here, prediction("old", Some((4, 1)))]);
        assert_eq!(told, "On here, 8 ranks share 2 cores. On old, 4 ranks share one core.");
    }
}
