//! The parameters, from Tables 1 and 3 only.
//!
//! With 2 clients and 1 server, everything that grows with n grows alike: of nine parameters, the tables tell six
//! sums, two start-ups and the slope of each column. These are fitted, by least squares of the relative errors. What the
//! parameters themselves can be is then a polytope: all that give these six sums and that hardware allows. Its corners
//! tell the range of each parameter, and of each prediction.

use pio_plan::Direction;

use super::HongError;
use super::linear::{closest_to_one, solve};
use super::model::{COUNT, Experiment, Method, Parameter, Parameters, ServerTime};
use super::published::Measurement;

/// A fitted number and half of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimated {
    /// The number.
    pub value: f64,
    /// Half of the interval.
    pub half_width: f64,
}

/// What one column of a table tells: seconds for each segment of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Which column.
    pub method: Method,
    /// Which table.
    pub direction: Direction,
    /// Seconds a segment of one client.
    pub seconds: Estimated,
    /// How often each parameter counts in it.
    times: Parameters,
}

/// The fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Start-up of an execution, seconds.
    pub start_up: Estimated,
    /// Start-up of a redistribution, seconds.
    pub redistribution: Estimated,
    /// Of the four columns.
    pub slopes: Vec<Slope>,
    /// Relative standard deviation of what is left over.
    pub deviation: f64,
    /// Where the printed times came from.
    clients: u32,
}

/// Student's t for 95 % and the 30 degrees of freedom of 36 times and 6 numbers.
const STUDENT: f64 = 2.042;

/// 4x InfiniBand: 10 Gb/s on the wire, 8 of 10 bits data (section 5). Nothing moves faster, PCI-X hosts included.
const LINK_BYTES_PER_S: f64 = 1e9;

/// The least that MPI over such links moves of data in one piece: assumed.
const MPI_BYTES_PER_S: f64 = 400e6;

/// The least that a 36 GB SCSI disk of that time streams: assumed.
const DISK_BYTES_PER_S: f64 = 40e6;

impl Fit {
    /// # Errors
    /// If the measurements do not determine the sums.
    pub fn of(measurements: &[Measurement]) -> Result<Fit, HongError> {
        let mut slopes: Vec<Slope> = Vec::new();
        let clients = measurements.first().ok_or(HongError::Undetermined)?.experiment.clients;
        for Measurement { experiment, .. } in measurements {
            let Experiment { method, direction, .. } = *experiment;
            if slopes.iter().any(|slope| (slope.method, slope.direction) == (method, direction)) {
                continue;
            }
            let times = per_segment(experiment, ServerTime::Concurrent);
            slopes.push(Slope {
                method,
                direction,
                seconds: Estimated { value: 0.0, half_width: 0.0 },
                times,
            });
        }
        let row = |measurement: &Measurement| {
            let experiment = &measurement.experiment;
            let own = |slope: &Slope| {
                let mine = (slope.method, slope.direction) == (experiment.method, experiment.direction);
                if mine { experiment.own_pieces() / measurement.seconds } else { 0.0 }
            };
            let redistributes = f64::from(u8::from(experiment.method == Method::Collective));
            let start_ups = [1.0 / measurement.seconds, redistributes / measurement.seconds];
            start_ups.into_iter().chain(slopes.iter().map(own)).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = measurements.iter().map(row).collect();
        let (found, covariance) = closest_to_one(&rows).ok_or(HongError::Undetermined)?;
        let squares: f64 = rows
            .iter()
            .map(|row| row.iter().zip(&found).map(|(times, value)| times * value).sum::<f64>() - 1.0)
            .map(|error| error * error)
            .sum();
        let variance = squares / (rows.len() - found.len()) as f64;
        let estimated = |index: usize| Estimated {
            value: found[index],
            half_width: STUDENT * (variance * covariance[index][index]).sqrt(),
        };
        for (index, slope) in slopes.iter_mut().enumerate() {
            slope.seconds = estimated(index + 2);
        }
        Ok(Fit {
            start_up: estimated(0),
            redistribution: estimated(1),
            slopes,
            deviation: variance.sqrt(),
            clients,
        })
    }

    /// The parameters that are used: what the tables do not tell is as fast as hardware allows (the network, the scatter
    /// of reads, the server's side of reads), so that the time is the processors'.
    ///
    /// # Errors
    /// If the measurements leave even more open.
    pub fn parameters(&self, server: ServerTime) -> Result<Parameters, HongError> {
        let mut fixed = [None; COUNT];
        for assumed in [Parameter::Network, Parameter::Scatter, Parameter::DiskRead] {
            fixed[assumed as usize] = Some(1.0 / LINK_BYTES_PER_S);
        }
        self.with(server, &fixed).ok_or(HongError::Undetermined)
    }

    /// Every corner of what the parameters can be.
    pub fn corners(&self, server: ServerTime) -> Vec<Parameters> {
        let (lower, upper) = bounds(server);
        let free = COUNT - 2 - self.slopes.len();
        let mut corners = Vec::new();
        for chosen in 0_u32..1 << COUNT {
            if chosen.count_ones() as usize != free {
                continue;
            }
            // Each of the chosen ones is at one of its two ends.
            for ends in 0_u32..1 << free {
                let mut fixed = [None; COUNT];
                let at_end = (0..COUNT).filter(|index| chosen >> index & 1 == 1).enumerate();
                for (place, index) in at_end {
                    fixed[index] = Some(if ends >> place & 1 == 0 { lower[index] } else { upper[index] });
                }
                if fixed.iter().flatten().any(|value| value.is_infinite()) {
                    continue;
                }
                let inside = |corner: &Parameters| {
                    let slack = |index: usize| 1e-9 * corner[index].abs();
                    (0..COUNT).all(|index| {
                        (lower[index] - slack(index)..=upper[index] + slack(index)).contains(&corner[index])
                    })
                };
                corners.extend(self.with(server, &fixed).filter(inside));
            }
        }
        corners
    }

    /// What an execution takes at least and at most: of all parameters that fit the tables alike, either way of the
    /// server, and as far as the tables' own times lie off the fit.
    pub fn range(&self, experiment: &Experiment) -> (f64, f64) {
        let servers = [ServerTime::Concurrent, ServerTime::Shared];
        let all = servers.iter().flat_map(|server| {
            self.corners(*server).into_iter().map(|corner| experiment.seconds(*server, &corner))
        });
        let (low, high) =
            all.fold((f64::INFINITY, 0.0_f64), |(low, high), time| (low.min(time), high.max(time)));
        let spread = STUDENT * self.deviation;
        (low * (1.0 - spread), high * (1.0 + spread))
    }

    /// The parameters with some of them given.
    fn with(&self, server: ServerTime, fixed: &[Option<f64>; COUNT]) -> Option<Parameters> {
        let unknown: Vec<usize> = (0..COUNT).filter(|index| fixed[*index].is_none()).collect();
        let mut sums: Vec<(Parameters, f64)> = vec![
            (only(Parameter::StartUp), self.start_up.value),
            (only(Parameter::Redistribution), self.redistribution.value),
        ];
        for slope in &self.slopes {
            let mut times = slope.times;
            if server == ServerTime::Shared {
                // All segments are so many times a client's own.
                times[Parameter::DiskWrite as usize] *= f64::from(self.clients);
                times[Parameter::DiskRead as usize] *= f64::from(self.clients);
            }
            sums.push((times, slope.seconds.value));
        }
        let rest = |(times, sum): &(Parameters, f64)| {
            sum - (0..COUNT).map(|index| fixed[index].unwrap_or(0.0) * times[index]).sum::<f64>()
        };
        let right = sums.iter().map(rest).collect();
        let rows =
            sums.iter().map(|(times, _)| unknown.iter().map(|index| times[*index]).collect()).collect();
        let found = solve(rows, right)?;
        let mut parameters = fixed.map(|value| value.unwrap_or(0.0));
        for (index, value) in unknown.into_iter().zip(found) {
            parameters[index] = value;
        }
        Some(parameters)
    }
}

/// What hardware allows: no bandwidth above the link's, the network not far below it; and, if all wait for one disk, that is not slower than disks were.
fn bounds(server: ServerTime) -> (Parameters, Parameters) {
    let (mut lower, mut upper) = ([0.0; COUNT], [f64::INFINITY; COUNT]);
    for parameter in Parameter::ALL.into_iter().filter(|parameter| parameter.is_bandwidth()) {
        lower[parameter as usize] = 1.0 / LINK_BYTES_PER_S;
    }
    upper[Parameter::Network as usize] = 1.0 / MPI_BYTES_PER_S;
    if server == ServerTime::Shared {
        upper[Parameter::DiskWrite as usize] = 1.0 / DISK_BYTES_PER_S;
        upper[Parameter::DiskRead as usize] = 1.0 / DISK_BYTES_PER_S;
    }
    (lower, upper)
}

fn only(parameter: Parameter) -> Parameters {
    let mut times = [0.0; COUNT];
    times[parameter as usize] = 1.0;
    times
}

/// How often each parameter counts for one segment of a client.
fn per_segment(experiment: &Experiment, server: ServerTime) -> Parameters {
    let mut times = experiment.coefficients(server).map(|times| times / experiment.own_pieces());
    for parameter in Parameter::ALL.into_iter().filter(|parameter| parameter.is_start_up()) {
        times[parameter as usize] = 0.0;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hong::published::Printed;

    fn fit() -> (Vec<Measurement>, Fit) {
        let measurements = Printed::load().unwrap().measurements();
        let fit = Fit::of(&measurements).unwrap();
        (measurements, fit)
    }

    #[test]
    fn every_choice_of_parameters_fits_the_tables_alike() {
        let (measurements, fit) = fit();
        for server in [ServerTime::Concurrent, ServerTime::Shared] {
            let corners = fit.corners(server);
            assert!(corners.len() > 3);
            let chosen = fit.parameters(server).unwrap();
            assert!(chosen.iter().all(|value| *value > 0.0), "{chosen:?}");
            for Measurement { experiment, .. } in &measurements {
                let time = experiment.seconds(server, &chosen);
                for corner in &corners {
                    assert!((experiment.seconds(server, corner) / time - 1.0).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn the_tables_come_out_within_five_per_cent_in_the_median() {
        let (measurements, fit) = fit();
        let parameters = fit.parameters(ServerTime::Concurrent).unwrap();
        let mut errors: Vec<f64> = measurements
            .iter()
            .map(|one| {
                (one.experiment.seconds(ServerTime::Concurrent, &parameters) / one.seconds - 1.0).abs()
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        assert!(errors[18] < 0.02 && errors[35] < 0.07, "{errors:?}");
    }

    #[test]
    fn known_parameters_are_found_again() {
        let truth: Parameters = [1e-2, 1e-3, 9e-7, 3e-7, 1e-9, 2e-8, 1e-9, 1.5e-8, 1e-9];
        let (mut measurements, _) = fit();
        for one in &mut measurements {
            one.seconds = one.experiment.seconds(ServerTime::Concurrent, &truth);
        }
        let fit = Fit::of(&measurements).unwrap();
        assert!(fit.deviation < 1e-9);
        for (found, truth) in fit.parameters(ServerTime::Concurrent).unwrap().iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 1e-4, "{found} for {truth}");
        }
    }

    #[test]
    fn a_prediction_lies_in_its_range() {
        let (measurements, fit) = fit();
        let parameters = fit.parameters(ServerTime::Concurrent).unwrap();
        for Measurement { experiment, .. } in measurements {
            for clients in [1, 4, 16] {
                let experiment = Experiment { clients, ..experiment };
                let (low, high) = fit.range(&experiment);
                let time = experiment.seconds(ServerTime::Concurrent, &parameters);
                assert!(low < time && time < high, "{low} {time} {high}");
            }
        }
    }
}
