//! The objects of `pioscope predict --json`: of predictions, and of sweeps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pio_explain::{Both, ComparedCall};
use pio_report::{Row, Sweep};
use serde::Serialize;

use super::path;

/// What machines and strategies would make of a program.
#[derive(Serialize)]
pub(crate) struct Predicted<'e> {
    schema: &'static str,
    trace: String,
    predictions: Vec<Prediction<'e>>,
}

/// One machine and strategy.
#[derive(Serialize)]
struct Prediction<'e> {
    machine: &'e str,
    strategy: &'e str,
    io_time_s: f64,
    modelled_io_time_s: f64,
    interval_80_percent: Option<Interval<'e>>,
    bandwidth_bytes_per_s: f64,
    parts: Vec<Part<'e>>,
    as_it_is: Option<AsItIs<'e>>,
    saved_fraction: Option<f64>,
    measured_io_time_s: Option<f64>,
    error_fraction: Option<f64>,
    measured_calls: Vec<Call>,
    between_nodes_bytes: Option<u64>,
    simulated_trace: String,
}

/// Where the times of 4 runs in 5 are expected.
#[derive(Serialize)]
struct Interval<'e> {
    low_s: f64,
    high_s: f64,
    reason: &'e str,
}

/// A part of the predicted time.
#[derive(Serialize)]
struct Part<'e> {
    part: &'e str,
    time_s: f64,
}

/// What the program's MPI library does by itself.
#[derive(Serialize)]
struct AsItIs<'e> {
    strategy: &'e str,
    io_time_s: f64,
    is_equal: bool,
}

/// Calls of a function beside those of a measured run.
#[derive(Serialize)]
struct Call {
    function: &'static str,
    by_program: bool,
    predicted_calls: u64,
    measured_calls: u64,
    predicted_time_s: f64,
    measured_time_s: f64,
}

impl<'e> Predicted<'e> {
    /// The object of predictions for a trace, each with its simulated trace.
    pub(crate) fn of(
        trace: &Path,
        predictions: &'e [pio_report::Prediction],
        simulated: &[PathBuf],
    ) -> Predicted<'e> {
        let predictions =
            predictions.iter().zip(simulated).map(|(one, simulated)| prediction(one, simulated));
        Predicted { schema: "pioscope.predict/1", trace: path(trace), predictions: predictions.collect() }
    }
}

fn prediction<'e>(one: &'e pio_report::Prediction, simulated: &Path) -> Prediction<'e> {
    let interval = one.interval.as_ref();
    Prediction {
        machine: &one.machine,
        strategy: &one.strategy,
        io_time_s: one.io_time_s,
        modelled_io_time_s: one.modelled_s,
        interval_80_percent: interval.map(|pio_learn::Interval { low_s, high_s, reason }| Interval {
            low_s: *low_s,
            high_s: *high_s,
            reason,
        }),
        bandwidth_bytes_per_s: one.bandwidth_bytes_per_s,
        parts: one.breakdown.iter().map(|(part, time_s)| Part { part, time_s: *time_s }).collect(),
        as_it_is: one.as_it_is.as_ref().map(|base| AsItIs {
            strategy: &base.strategy,
            io_time_s: base.io_time_s,
            is_equal: one.equals_as_it_is(),
        }),
        saved_fraction: one.saved(),
        measured_io_time_s: one.measured_s,
        error_fraction: one.error(),
        measured_calls: one
            .beside
            .as_ref()
            .map_or_else(Vec::new, |comparison| comparison.calls.iter().map(call).collect()),
        between_nodes_bytes: one.bytes_between_nodes,
        simulated_trace: path(simulated),
    }
}

fn call(compared: &ComparedCall) -> Call {
    let Both { predicted_s, measured_s } = compared.time;
    Call {
        function: compared.call.name(),
        by_program: compared.by_program,
        predicted_calls: compared.predicted_count,
        measured_calls: compared.measured_count,
        predicted_time_s: predicted_s,
        measured_time_s: measured_s,
    }
}

/// A prediction at every point of a sweep.
#[derive(Serialize)]
pub(crate) struct Swept<'e> {
    schema: &'static str,
    title: &'e str,
    note: &'e str,
    points: Vec<Point<'e>>,
}

/// One point: what was set, as it was written, and what came of it.
#[derive(Serialize)]
struct Point<'e> {
    settings: BTreeMap<&'e str, &'e str>,
    measures: BTreeMap<&'static str, f64>,
}

impl<'e> Swept<'e> {
    /// The object of a sweep.
    pub(crate) fn of(sweep: &'e Sweep) -> Swept<'e> {
        let point = |row: &'e Row| Point {
            settings: sweep
                .settings
                .iter()
                .map(String::as_str)
                .zip(row.settings.iter().map(String::as_str))
                .collect(),
            measures: sweep
                .measures
                .iter()
                .map(|measure| measure.column)
                .zip(row.values.iter().copied())
                .collect(),
        };
        Swept {
            schema: "pioscope.predict.sweep/1",
            title: &sweep.title,
            note: &sweep.note,
            points: sweep.rows.iter().map(point).collect(),
        }
    }
}
