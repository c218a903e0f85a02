//! The model's parameters from the printed times, and how well they tell times that were left out.

use super::HongError;
use super::linear::closest_to_one;
use super::model::{COUNT, Experiment, Parameter, Parameters};
use super::published::Measurement;

/// The fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters; 0 for those that the tables do not tell.
    pub parameters: Parameters,
    /// Half of the 95 % confidence interval of each.
    pub half_widths: Parameters,
    /// Relative standard deviation of what is left over.
    pub deviation: f64,
}

/// Student's t for 95 % and the 64 degrees of freedom of 72 times and 8 numbers.
const STUDENT: f64 = 1.998;

/// Bytes of every segment of the paper: how a segment's time splits into one for each segment and one for each byte, it
/// does not tell.
const PRINTED_PIECE_BYTES: f64 = 4.0;

impl Fit {
    /// Least squares of the relative errors. Where all measurements are with one number of clients, all that the server
    /// does is taken to be hidden, as section 4.1 does: they cannot tell it from what the clients do.
    ///
    /// # Errors
    /// If the measurements do not determine the parameters.
    pub fn of(measurements: &[Measurement]) -> Result<Fit, HongError> {
        let clients = |one: &Measurement| one.experiment.clients;
        let first = measurements.first().ok_or(HongError::Undetermined)?;
        let several = measurements.iter().any(|one| clients(one) != clients(first));
        let told: Vec<usize> = Parameter::ALL
            .into_iter()
            .filter(|parameter| several || !parameter.needs_several_numbers_of_clients())
            .map(|parameter| parameter as usize)
            .collect();
        let row = |Measurement { experiment, seconds }: &Measurement| -> Vec<f64> {
            let times = experiment.coefficients();
            told.iter().map(|index| times[*index] / (seconds - experiment.on_the_link())).collect()
        };
        let rows: Vec<Vec<f64>> = measurements.iter().map(row).collect();
        let (found, covariance) = closest_to_one(&rows).ok_or(HongError::Undetermined)?;
        let error =
            |row: &Vec<f64>| row.iter().zip(&found).map(|(times, value)| times * value).sum::<f64>() - 1.0;
        let squares: f64 = rows.iter().map(error).map(|error| error * error).sum();
        let variance = squares / (rows.len() - found.len()) as f64;
        let (mut parameters, mut half_widths) = ([0.0; COUNT], [0.0; COUNT]);
        for (place, index) in told.iter().enumerate() {
            parameters[*index] = found[place];
            half_widths[*index] = STUDENT * (variance * covariance[place][place]).sqrt();
        }
        Ok(Fit { parameters, half_widths, deviation: variance.sqrt() })
    }

    /// What an execution takes at least and at most: whether a segment's time is one for each segment or one for each
    /// byte, and as far as the tables' own times lie off the fit.
    pub fn range(&self, experiment: &Experiment) -> (f64, f64) {
        let by_byte = experiment.piece_bytes as f64 / PRINTED_PIECE_BYTES;
        let mut other = self.parameters;
        for parameter in [Parameter::Gather, Parameter::Scatter, Parameter::Placing] {
            other[parameter as usize] *= by_byte;
        }
        let times = [self.parameters, other].map(|parameters| experiment.seconds(&parameters));
        let spread = STUDENT * self.deviation;
        (times[0].min(times[1]) * (1.0 - spread), times[0].max(times[1]) * (1.0 + spread))
    }
}

/// A part of the printed times that was left out of the fit.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// What was left out.
    pub what: String,
    /// Errors of what the fit to the others tells of it, parts of the printed times, in the order of the tables.
    pub errors: Vec<f64>,
}

/// The name of an experiment's column in the paper's tables.
pub(super) fn column(experiment: &Experiment) -> String {
    let Experiment { method, direction, clients, .. } = experiment;
    format!("{} {}, {clients} clients", method.name(), super::figures::direction(*direction))
}

/// Fits to all but a part, for every part, and compares with that part: each column, then all with one number of clients.
///
/// # Errors
/// If the rest does not determine the parameters.
pub fn left_out(measurements: &[Measurement]) -> Result<Vec<LeftOut>, HongError> {
    let column = |one: &Measurement| column(&one.experiment);
    let clients = |one: &Measurement| format!("all with {} clients", one.experiment.clients);
    let mut parts = Vec::new();
    for name in [&column as &dyn Fn(&Measurement) -> String, &clients] {
        let mut names: Vec<String> = measurements.iter().map(name).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        for what in names {
            let (part, rest): (Vec<Measurement>, Vec<Measurement>) =
                measurements.iter().copied().partition(|one| name(one) == what);
            let fit = Fit::of(&rest)?;
            let error = |one: &Measurement| one.experiment.seconds(&fit.parameters) / one.seconds - 1.0;
            parts.push(LeftOut { what, errors: part.iter().map(error).collect() });
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hong::median_error;
    use crate::hong::published::Printed;

    fn measurements() -> Vec<Measurement> {
        Printed::load().unwrap().measurements()
    }

    fn worst(errors: &[f64]) -> f64 {
        errors.iter().fold(0.0, |worst: f64, error| worst.max(error.abs()))
    }

    #[test]
    fn all_times_come_out_within_five_per_cent_in_the_median_and_ten_at_worst() {
        let fit = Fit::of(&measurements()).unwrap();
        assert!(fit.parameters.iter().all(|value| *value > 0.0), "{fit:?}");
        let errors: Vec<f64> = measurements()
            .iter()
            .map(|one| one.experiment.seconds(&fit.parameters) / one.seconds - 1.0)
            .collect();
        let median = median_error(errors.iter().copied()).unwrap();
        assert!(median < 0.02 && worst(&errors) < 0.08, "{median} {errors:?}");
    }

    #[test]
    fn what_was_left_out_is_told_by_the_rest() {
        let parts = left_out(&measurements()).unwrap();
        assert_eq!(parts.len(), 10);
        let (columns, clients) = parts.split_at(8);
        for part in columns {
            assert!(part.errors.len() == 9 && worst(&part.errors) < 0.09, "{part:?}");
        }
        for part in clients {
            let median = median_error(part.errors.iter().copied()).unwrap();
            assert!(part.errors.len() == 36 && median < 0.085, "{} {median}", part.what);
        }
    }

    #[test]
    fn known_parameters_are_found_again() {
        let truth: Parameters = [1e-2, 5e-4, 7e-4, 1.3e-6, 1e-6, 9e-7, 1e-7, 6e-9];
        let mut measurements = measurements();
        for one in &mut measurements {
            one.seconds = one.experiment.seconds(&truth);
        }
        let fit = Fit::of(&measurements).unwrap();
        assert!(fit.deviation < 1e-9);
        for (found, truth) in fit.parameters.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 1e-4, "{found} for {truth}");
        }
        // Of one number of clients, without what needs two.
        let truth = [1e-2, 0.0, 7e-4, 1.3e-6, 1e-6, 9e-7, 0.0, 0.0];
        measurements.retain(|one| one.experiment.clients == 2);
        for one in &mut measurements {
            one.seconds = one.experiment.seconds(&truth);
        }
        for (found, truth) in Fit::of(&measurements).unwrap().parameters.iter().zip(truth) {
            assert!((found - truth).abs() <= 1e-4 * truth, "{found} for {truth}");
        }
    }

    #[test]
    fn a_prediction_lies_in_its_range_which_is_wide_for_other_segments() {
        let fit = Fit::of(&measurements()).unwrap();
        for Measurement { experiment, .. } in measurements() {
            for (clients, piece_bytes) in [(1, 4), (16, 4), (4, 1), (4, 64)] {
                let experiment = Experiment { clients, piece_bytes, ..experiment };
                let (low, high) = fit.range(&experiment);
                let time = experiment.seconds(&fit.parameters);
                assert!(low < time && time < high, "{low} {time} {high}");
            }
        }
    }
}
