//! The tables that advice ends with.

use pio_plan::Strategy;
use pio_report::Table;
use pio_report::interval_text;
use pio_report::units::{NOTHING, if_known, time_s};

use super::Advice;
use super::search::Time;
use super::trials::Trial;

/// The program as it is, or under a setting.
pub(super) struct Row {
    /// None: as it is.
    pub advice: Option<Advice>,
    name: String,
    predicted: Time,
    /// Median, seconds.
    measured_s: Option<f64>,
    /// How many, or why none.
    runs: String,
}

impl Row {
    pub(super) fn predicted(advice: Option<Advice>, predicted: Time, own: &Strategy) -> Row {
        let name = advice.as_ref().map_or(format!("as it is ({own})"), ToString::to_string);
        Row { advice, name, predicted, measured_s: None, runs: NOTHING.to_owned() }
    }

    pub(super) fn of_trial(trial: &Trial, own: &Strategy) -> Row {
        let measured_s = trial.median_s();
        let runs = match &trial.problem {
            Some(problem) if measured_s.is_some() => format!("{}, then {problem}", trial.runs.len()),
            Some(problem) => problem.clone(),
            None if trial.runs.is_empty() => NOTHING.to_owned(),
            None => trial.runs.len().to_string(),
        };
        Row { measured_s, runs, ..Row::predicted(trial.advice.clone(), trial.predicted.clone(), own) }
    }
}

/// Which part of the time before is saved, in words; negative if it takes longer.
pub(super) fn saved(after_s: f64, before_s: f64) -> String {
    if before_s <= 0.0 {
        return NOTHING.to_owned();
    }
    // No -0.
    format!("{:.0} %", ((1.0 - after_s / before_s) * 100.0).round() + 0.0)
}

/// Predictions alone, best first.
pub(super) fn predicted_table(title: &str, rows: &[Row], note: &str) -> Table {
    let base = rows.iter().find(|row| row.advice.is_none());
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| a.predicted.expected_s().total_cmp(&b.predicted.expected_s()));
    let saves = |row: &Row| match base.filter(|_| row.advice.is_some()) {
        None => NOTHING.to_owned(),
        Some(base) if row.predicted.equals(&base.predicted) => "equal".to_owned(),
        Some(base) => saved(row.predicted.expected_s(), base.predicted.expected_s()),
    };
    let has_intervals = rows.iter().any(|row| row.predicted.interval.is_some());
    let cells = |row: &&Row| {
        let interval = has_intervals.then(|| interval_of(row));
        [
            vec![row.name.clone(), time_s(row.predicted.expected_s())],
            interval.into_iter().collect(),
            vec![saves(row)],
        ]
        .concat()
    };
    let interval = has_intervals.then_some(INTERVAL);
    Table {
        title: title.to_owned(),
        note: note.to_owned(),
        columns: ["setting", ">predicted"].into_iter().chain(interval).chain([">saved"]).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}

const INTERVAL: &str = ">80 % interval";

fn interval_of(row: &Row) -> String {
    let interval = row.predicted.interval.as_ref();
    interval.map_or(NOTHING.to_owned(), interval_text)
}

/// What was measured, best first, then what was only predicted.
pub(super) fn tried_table(title: &str, mut rows: Vec<Row>, note: &str) -> Table {
    let base = rows.iter().find(|row| row.advice.is_none());
    let before_s = base.and_then(|base| base.measured_s).unwrap_or_default();
    let key = |row: &Row| (row.measured_s.unwrap_or(f64::INFINITY), row.predicted.expected_s());
    rows.sort_by(|a, b| key(a).0.total_cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
    let has_intervals = rows.iter().any(|row| row.predicted.interval.is_some());
    let cells = |row: &Row| {
        let saves = row.measured_s.filter(|_| row.advice.is_some()).map(|after_s| saved(after_s, before_s));
        let interval = has_intervals.then(|| interval_of(row));
        let predicted = [row.name.clone(), time_s(row.predicted.expected_s())];
        let measured =
            [if_known(row.measured_s, time_s), row.runs.clone(), saves.unwrap_or(NOTHING.to_owned())];
        predicted.into_iter().chain(interval).chain(measured).collect()
    };
    let interval = has_intervals.then_some(INTERVAL);
    let columns = ["setting", ">predicted"].into_iter().chain(interval);
    Table {
        title: title.to_owned(),
        note: format!("{note} Measured: the median of the runs; saved: of the time measured as it is."),
        columns: columns.chain([">measured", ">runs", ">saved"]).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}

#[cfg(test)]
mod tests {
    use pio_learn::Interval;

    use super::*;

    #[test]
    fn a_loss_has_a_sign() {
        assert_eq!(saved(1.0, 4.0), "75 %");
        assert_eq!(saved(5.0, 4.0), "-25 %");
        assert_eq!(saved(4.001, 4.0), "0 %");
        assert_eq!(saved(5.0, 0.0), NOTHING);
    }

    #[test]
    fn the_best_comes_first_and_the_program_as_it_is_in_its_place() {
        let advice = |strategy| Some(Advice { strategy, hints: Default::default() });
        let time = |modelled_s| Time { modelled_s, interval: None };
        let row = |strategy, time_s| Row::predicted(advice(strategy), time(time_s), &Strategy::Romio);
        let rows = vec![
            Row::predicted(None, time(2.0), &Strategy::Romio),
            row(Strategy::List, 3.0),
            row(Strategy::TwoPhase, 1.0),
        ];
        let text = predicted_table("Title", &rows, "Note.").text();
        let places = ["two-phase", "as it is (romio)", "list"].map(|name| text.find(name));
        assert!(places[0] < places[1] && places[1] < places[2] && places[0].is_some(), "{text}");
        assert!(text.contains("50 %") && text.contains("-50 %"), "{text}");
        assert!(!text.contains("interval"), "{text}");
        // What earlier runs took corrects what is expected, and says what cannot be told apart.
        let expected = |low_s, high_s| Time {
            modelled_s: 1.0,
            interval: Some(Interval { low_s, high_s, reason: String::new() }),
        };
        let rows = [
            Row::predicted(None, expected(1.0, 4.0), &Strategy::Romio),
            Row::predicted(advice(Strategy::List), expected(1.5, 2.5), &Strategy::Romio),
            Row::predicted(advice(Strategy::Sieving), expected(0.1, 0.9), &Strategy::Romio),
        ];
        let text = predicted_table("Title", &rows, "Note.").text();
        assert!(text.contains("1.5 s to 2.5 s") && text.contains("equal") && text.contains("85 %"), "{text}");
    }
}
