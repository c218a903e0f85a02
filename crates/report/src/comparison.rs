//! A run beside its prediction: in words, as tables and as bars.

use pio_explain::{Both, ComparedCall, Comparison, Place};

use crate::escape;
use crate::figures;
use crate::prediction::Prediction;
use crate::table::{Table, wrap};
use crate::units;

/// Functions and ranks that a table shows.
const ROWS: usize = 12;
/// Less of the I/O time is not worth a sentence.
const LITTLE: f64 = 0.05;

/// Where runs and their predictions part, for a terminal; empty if no run is shown.
pub(crate) fn texts(predictions: &[Prediction]) -> String {
    let each = |(prediction, comparison): (&Prediction, &Comparison)| {
        let words = wrap(&sentences(comparison).join(" "), 96, "  ");
        format!("\n{}{words}", table(prediction, comparison).text())
    };
    compared(predictions).map(each).collect()
}

/// The same for a page.
pub(crate) fn html(predictions: &[Prediction]) -> String {
    let each = |(prediction, comparison): (&Prediction, &Comparison)| {
        let words = escape::prose(&sentences(comparison).join(" "));
        let about = title(prediction);
        let calls = comparison.in_order.as_ref().map_or(String::new(), |in_order| {
            let title = format!("{about}: each {}, mean of the processes", in_order.call.name());
            figures::in_pairs(&title, "call", &(1..).zip(in_order.times.iter().copied()).collect::<Vec<_>>())
        });
        let ranks: Vec<_> = comparison.ranks.iter().map(|(rank, time)| (u64::from(*rank), *time)).collect();
        let ranks = figures::in_pairs(&format!("{about}: time in these calls by rank"), "rank", &ranks);
        format!(
            "<p>{about}: {words}</p>{}{calls}{ranks}",
            table(prediction, comparison).html(),
            about = escape::html(&about)
        )
    };
    compared(predictions).map(each).collect()
}

fn compared(predictions: &[Prediction]) -> impl Iterator<Item = (&Prediction, &Comparison)> {
    let beside = predictions.iter().filter_map(|prediction| Some((prediction, prediction.beside.as_ref()?)));
    // Where all calls were taken as recorded, there is none to compare.
    beside.filter(|(_, comparison)| !comparison.calls.is_empty())
}

fn title(prediction: &Prediction) -> String {
    format!("{} on {}", prediction.strategy, prediction.machine)
}

/// By function: the program's calls, then those within them.
fn table(prediction: &Prediction, comparison: &Comparison) -> Table {
    let row = |call: &ComparedCall| {
        let ComparedCall { predicted_count, measured_count, time, .. } = call;
        vec![
            call.call.name().to_owned(),
            if call.by_program { "program" } else { "below it" }.to_owned(),
            units::count(*predicted_count),
            units::count(*measured_count),
            units::time_s(time.predicted_s),
            units::time_s(time.measured_s),
            difference(time),
        ]
    };
    let left_out = comparison.calls.len().saturating_sub(ROWS);
    let more = (left_out > 0)
        .then(|| format!(" {} not shown.", units::things(left_out as u64, "function", "functions")));
    Table {
        title: format!("{}: predicted and measured", title(prediction)),
        note: format!(
            "Times are means of the processes; counts are of all.{} Left out are calls that are taken as recorded, and \
             those of MPI-IO that return before their data move. Calls that libraries of the program make count as its own.",
            more.unwrap_or_default()
        ),
        columns: vec![
            "function",
            "called by",
            ">predicted calls",
            ">calls",
            ">predicted",
            ">measured",
            ">difference",
        ],
        rows: comparison.calls.iter().take(ROWS).map(row).collect(),
    }
}

fn difference(time: &Both) -> String {
    let sign = if time.difference_s() < 0.0 { "−" } else { "+" };
    format!("{sign}{}", units::time_s(time.difference_s().abs()))
}

/// Where the two part, and what of it is known.
fn sentences(comparison: &Comparison) -> Vec<String> {
    let Comparison { io_time_s, io, calls, ranks, parts, place, .. } = comparison;
    let (of_run_s, apart_s) = (io_time_s.max(io.predicted_s), io.difference_s());
    let says = |time: &Both| {
        format!("{} predicted, {} measured", units::time_s(time.predicted_s), units::time_s(time.measured_s))
    };
    let matters = |time: &Both| time.difference_s().abs() > LITTLE * of_run_s;
    let mut own = calls.iter().filter(|call| call.by_program && matters(&call.time));
    let Some(call) = own.next() else {
        return vec![
            "No function of the program differs by more than a twentieth of the I/O time.".to_owned(),
        ];
    };
    let mut told = vec![format!("They part most in {}: {}.", call.call.name(), says(&call.time))];
    if let Some(Place { call: function, number, of, time }) = place
        && *of > 1
        && *function == call.call
        && time.difference_s().abs() >= 0.5 * call.time.difference_s().abs()
    {
        told.push(format!("One call makes half of that or more, number {number} of {of}: {}.", says(time)));
    }
    if let Some(other) = own.find(|other| other.time.difference_s() * call.time.difference_s() < 0.0) {
        told.push(format!("The other way in {}: {}.", other.call.name(), says(&other.time)));
    }
    if let Some(parts) = parts {
        let size = |part: &&(&str, &Both)| part.1.difference_s().abs();
        let parts: Vec<_> = Comparison::PARTS.into_iter().zip(parts).collect();
        let largest = parts.iter().max_by(|one, other| size(one).total_cmp(&size(other)));
        if let Some((part, time)) = largest.filter(|(_, time)| matters(time)) {
            told.push(format!("Of the time in MPI-IO calls, that {part} is off most: {}.", says(time)));
        }
    }
    let from_mean_s = |time: &Both| (time.difference_s() - apart_s).abs();
    let odd = ranks.iter().max_by(|one, other| from_mean_s(&one.1).total_cmp(&from_mean_s(&other.1)));
    if let Some((rank, time)) = odd.filter(|(_, time)| from_mean_s(time) > 2.0 * LITTLE * of_run_s) {
        told.push(format!("Of the ranks, {rank} differs most from the others in that: {}.", says(time)));
    }
    told
}

#[cfg(test)]
mod tests {
    use pio_explain::InOrder;
    use pio_trace::Call;

    use super::*;
    use crate::prediction::tests::prediction;

    fn both(predicted_s: f64, measured_s: f64) -> Both {
        Both { predicted_s, measured_s }
    }

    fn call(call: Call, by_program: bool, time: Both) -> ComparedCall {
        ComparedCall { call, by_program, predicted_count: 8, measured_count: 8, time }
    }

    fn comparison() -> Comparison {
        let calls = [
            call(Call::MpiFileWriteAtAll, true, both(1.0, 2.0)),
            call(Call::MpiFileClose, true, both(0.5, 0.2)),
            call(Call::Pwrite, false, both(0.8, 1.7)),
        ];
        let place = Place { call: Call::MpiFileWriteAtAll, number: 1, of: 4, time: both(0.2, 0.9) };
        Comparison {
            io_time_s: 2.2,
            io: both(1.5, 2.2),
            calls: calls.to_vec(),
            in_order: Some(InOrder {
                call: Call::MpiFileWriteAtAll,
                times: vec![both(0.2, 0.9), both(0.3, 0.4), both(0.3, 0.4), both(0.2, 0.3)],
            }),
            ranks: vec![(0, both(1.5, 1.8)), (1, both(1.5, 2.6))],
            parts: Some([both(0.1, 0.1), both(0.2, 0.2), both(1.2, 1.9)]),
            place: Some(place),
        }
    }

    #[test]
    fn where_they_part_is_said() {
        let shown = Prediction { beside: Some(comparison()), ..prediction("here", None) };
        let text = texts(&[shown]);
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "two-phase on here: predicted and measured",
            "They part most in MPI_File_write_at_all: 1 s predicted, 2 s measured.",
            "One call makes half of that or more, number 1 of 4: 200 ms predicted, 900 ms measured.",
            "The other way in MPI_File_close: 500 ms predicted, 200 ms measured.",
            "that at the files is off most: 1.2 s predicted, 1.9 s measured.",
            "Of the ranks, 0 differs most from the others in that: 1.5 s predicted, 1.8 s measured.",
            "−300 ms",
        ] {
            assert!(said.contains(expected), "{expected}: {text}");
        }
        assert_eq!(texts(&[prediction("here", None)]), "");
    }

    #[test]
    fn a_page_has_bars_for_each_call_and_each_rank() {
        let page = html(&[Prediction { beside: Some(comparison()), ..prediction("here", None) }]);
        for expected in [
            "two-phase on here: each MPI_File_write_at_all, mean of the processes, up to 900 ms",
            "<title>call 1: 200 ms predicted</title>",
            "<title>call 4: 300 ms measured</title>",
            "two-phase on here: time in these calls by rank, up to 2.6 s",
            "<title>rank 1: 2.6 s measured</title>",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }

    #[test]
    fn what_agrees_is_not_explained() {
        let calls = vec![call(Call::Write, true, both(1.0, 1.01))];
        let agreeing = Comparison {
            io_time_s: 1.01,
            io: both(1.0, 1.01),
            calls,
            in_order: None,
            parts: None,
            place: None,
            ranks: Vec::new(),
        };
        assert_eq!(sentences(&agreeing).len(), 1);
    }
}
