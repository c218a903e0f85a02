//! The simulation of a queueing network.

use std::collections::VecDeque;

use super::network::{Place, QueueingNetwork, Source};
use super::outcome::{ClassOutcome, Outcome, StationOutcome};
use super::service::Service;
use super::station::Station;
use crate::error::SimError;
use crate::kernel::{self, BatchMeans, Events, Histogram, Simulation, Slab, Stop, Stream, Time, WarmUp};

/// How to run a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Seed of the random streams.
    pub seed: u64,
    /// Until then nothing is measured. Without it everything is, but for the means of times: of these, the warm-up is
    /// found and cut.
    pub warm_up: Option<Time>,
    /// When to end. What is counted is jobs done after the warm-up, of all classes; the interval that may end a run is
    /// that of the first class's response time.
    pub stop: Stop,
}

impl Options {
    /// Whether the run has an end.
    fn check(&self, model: &QueueingNetwork) -> Result<(), SimError> {
        let Stop { time, count, relative_half_width } = self.stop;
        let has_end = time.is_some() || count.is_some() || relative_half_width.is_some();
        if has_end && relative_half_width.is_none_or(|width| width > 0.0) {
            return Ok(());
        }
        Err(SimError::Queueing {
            network: model.name.clone(),
            what: "the end of the run".to_owned(),
            found: format!("{:?}", self.stop),
            expected: "a time, a count, or a half width above 0".to_owned(),
        })
    }
}

/// Tells progress, and looks at the interval, after so many events.
const LOOK_EVENTS: u64 = 1 << 16;

/// Simulates a queueing network, and tells `progress` now and then what share of the run is done.
///
/// # Errors
/// If the model cannot be, the run has no end, or it comes to a stop because full stations wait for each other.
pub fn run(
    model: &QueueingNetwork,
    options: &Options,
    progress: &mut dyn FnMut(f64),
) -> Result<Outcome, SimError> {
    model.check()?;
    options.check(model)?;
    let cut = if options.warm_up.is_some() { WarmUp::Count(0) } else { WarmUp::Found };
    let mut run = Run::new(model, options, cut, progress);
    run.start();
    kernel::run(&mut run)?;
    Ok(run.outcome())
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A job of a class comes from outside.
    Arrive(u32),
    /// A job's service is over.
    Served(u32),
}

struct Run<'a> {
    model: &'a QueueingNetwork,
    stop: Stop,
    progress: &'a mut dyn FnMut(f64),
    now: Time,
    /// When it ends, and after how many jobs: no matter how many in the warm-up, and any once it has run long enough.
    end: Time,
    most: u64,
    warm_up: Time,
    is_warm: bool,
    happened: u64,
    measured_from: Time,
    events: Events<Happening>,
    stations: Vec<StationState>,
    classes: Vec<ClassState>,
    visits: Vec<VisitState>,
    jobs: Slab<Job>,
    in_service: u64,
    done: u64,
    /// Stations that have let a job go while others waited for room there.
    have_room: VecDeque<u32>,
}

struct StationState {
    station: Station<u32>,
    /// Jobs that are served elsewhere and wait for room here.
    blocked: VecDeque<u32>,
    stay: BatchMeans,
}

struct ClassState {
    source: Source,
    intervals: Stream,
    first_visit: u32,
    lost: u64,
    response: Histogram,
    response_mean: BatchMeans,
}

struct VisitState {
    class: u32,
    station: u32,
    service: Service,
    services: Stream,
    /// Sums of probabilities, each with the visit that it leads to.
    next: Vec<(f64, u32)>,
    routes: Stream,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    visit: u32,
    /// Where it goes when there is room.
    wanted: u32,
    /// When it came, and when it came to its station.
    born: Time,
    came: Time,
}

impl<'a> Run<'a> {
    fn new(
        model: &'a QueueingNetwork,
        options: &Options,
        cut: WarmUp,
        progress: &'a mut dyn FnMut(f64),
    ) -> Run<'a> {
        let Options { seed, warm_up, stop } = *options;
        let warm_up = warm_up.unwrap_or_default();
        let is_warm = warm_up == Time::default();
        let most = stop.count.unwrap_or(u64::MAX);
        let mut classes = Vec::new();
        let mut visits = Vec::new();
        for (number, class) in model.classes.iter().enumerate() {
            let first_visit = visits.len() as u32;
            for (index, visit) in class.visits.iter().enumerate() {
                let mut sum = 0.0;
                let next = visit.next.iter().map(|(probability, next)| {
                    sum += probability;
                    // What rounding leaves of a sum of 1 is no way out.
                    let sum = if sum > 1.0 - 1e-9 { 1.0 } else { sum };
                    (sum, first_visit + *next as u32)
                });
                visits.push(VisitState {
                    class: number as u32,
                    station: visit.station as u32,
                    service: visit.service,
                    services: Stream::named(seed, &format!("service {} {index}", class.name)),
                    next: next.collect(),
                    routes: Stream::named(seed, &format!("route {} {index}", class.name)),
                });
            }
            classes.push(ClassState {
                source: class.source,
                intervals: Stream::named(seed, &format!("arrivals {}", class.name)),
                first_visit,
                lost: 0,
                response: Histogram::new(),
                response_mean: BatchMeans::new(cut),
            });
        }
        let station = |place: &Place| StationState {
            station: Station::new(place.servers, place.room),
            blocked: VecDeque::new(),
            stay: BatchMeans::new(cut),
        };
        Run {
            model,
            stop,
            progress,
            now: Time::default(),
            end: stop.time.unwrap_or(Time::NEVER),
            most: if is_warm { most } else { u64::MAX },
            warm_up,
            is_warm,
            happened: 0,
            measured_from: Time::default(),
            events: Events::new(),
            stations: model.stations.iter().map(station).collect(),
            classes,
            visits,
            jobs: Slab::new(),
            in_service: 0,
            done: 0,
            have_room: VecDeque::new(),
        }
    }

    fn start(&mut self) {
        for class in 0..self.classes.len() {
            match self.classes[class].source {
                Source::Open(interval) => self.expect_arrival(class as u32, interval),
                Source::Closed(jobs) => (0..jobs).for_each(|_| self.come(class as u32)),
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(class) => {
                self.come(class);
                if let Source::Open(interval) = self.classes[class as usize].source {
                    self.expect_arrival(class, interval);
                }
            }
            Happening::Served(job) => self.served(job),
        }
    }

    /// Whether jobs can still move.
    fn check_moving(&self) -> Result<(), SimError> {
        if self.in_service > 0 || self.jobs.count() == 0 {
            return Ok(());
        }
        let (jobs, seconds) = (self.jobs.count() as u64, self.now.since(Time::default()).seconds());
        Err(SimError::Blocked { network: self.model.name.clone(), jobs, seconds })
    }

    /// Tells how much is done, and finds out whether that is enough.
    fn look(&mut self) {
        let estimate = self.classes[0].response_mean.estimate();
        let done = self.stop.progress(self.now, self.done, estimate);
        (self.progress)(done);
        if done >= 1.0 {
            self.most = 0;
        }
    }

    fn expect_arrival(&mut self, class: u32, interval: Service) {
        let time = self.now + interval.draw(&mut self.classes[class as usize].intervals);
        self.events.add(time, Happening::Arrive(class));
    }

    /// A job comes from outside.
    fn come(&mut self, class: u32) {
        let visit = self.classes[class as usize].first_visit;
        let station = self.visits[visit as usize].station;
        if !self.stations[station as usize].station.has_room() {
            self.classes[class as usize].lost += 1;
            return;
        }
        let job = Job { visit, wanted: visit, born: self.now, came: self.now };
        let number = self.jobs.insert(job);
        self.enter(number, visit);
    }

    /// A job comes to the station of a visit, which has room.
    fn enter(&mut self, job: u32, visit: u32) {
        let state = &mut self.jobs[job];
        (state.visit, state.came) = (visit, self.now);
        let station = self.visits[visit as usize].station;
        if let Some(job) = self.stations[station as usize].station.arrive(self.now, job) {
            self.serve(job);
        }
    }

    /// A job's service begins.
    fn serve(&mut self, job: u32) {
        let visit = &mut self.visits[self.jobs[job].visit as usize];
        let time = visit.service.draw(&mut visit.services);
        self.in_service += 1;
        self.events.add(self.now + time, Happening::Served(job));
    }

    /// A job's service is over: it goes on, if there is room, and so do those that waited for its place.
    fn served(&mut self, job: u32) {
        self.in_service -= 1;
        let visit = &mut self.visits[self.jobs[job].visit as usize];
        let chosen = match visit.next.as_slice() {
            [] => None,
            [(sum, next)] if *sum >= 1.0 => Some(*next),
            next => {
                let at = visit.routes.uniform();
                next.iter().find(|(sum, _)| at < *sum).map(|(_, next)| *next)
            }
        };
        let class = &mut self.classes[visit.class as usize];
        let wanted = match (chosen, class.source) {
            (Some(next), _) => next,
            (None, Source::Closed(_)) => class.first_visit,
            (None, Source::Open(_)) => {
                self.go_out(job);
                self.leave(job);
                self.jobs.remove(job);
                return self.fill_room();
            }
        };
        if chosen.is_none() {
            self.go_out(job);
        }
        self.jobs[job].wanted = wanted;
        let here = self.visits[self.jobs[job].visit as usize].station;
        let there = self.visits[wanted as usize].station;
        let state = &mut self.stations[there as usize];
        // Whoever waited before goes first. One that comes back to its own station takes the place it gives up.
        let can_go = here == there || (state.blocked.is_empty() && state.station.has_room());
        if !can_go {
            return state.blocked.push_back(job);
        }
        self.move_on(job);
        self.fill_room();
    }

    /// A job goes out, or begins anew.
    fn go_out(&mut self, job: u32) {
        let job = &mut self.jobs[job];
        let class = &mut self.classes[self.visits[job.visit as usize].class as usize];
        let response = self.now.since(job.born);
        class.response.record(response.picoseconds());
        class.response_mean.add(response.seconds());
        job.born = self.now;
        self.done += 1;
    }

    /// A job goes to where it wants to, which has room, or will have when it has left.
    fn move_on(&mut self, job: u32) {
        let wanted = self.jobs[job].wanted;
        self.leave(job);
        self.enter(job, wanted);
    }

    /// A job leaves its station: the next one's service begins there.
    fn leave(&mut self, job: u32) {
        let job = self.jobs[job];
        let number = self.visits[job.visit as usize].station;
        let state = &mut self.stations[number as usize];
        state.stay.add(self.now.since(job.came).seconds());
        let next = state.station.leave(self.now);
        if !state.blocked.is_empty() {
            self.have_room.push_back(number);
        }
        if let Some(next) = next {
            self.serve(next);
        }
    }

    /// Lets those go on for whom there is room now.
    fn fill_room(&mut self) {
        while let Some(number) = self.have_room.pop_front() {
            let state = &mut self.stations[number as usize];
            if !state.station.has_room() {
                continue;
            }
            if let Some(job) = state.blocked.pop_front() {
                self.move_on(job);
            }
        }
    }

    /// Forgets what was measured: the warm-up is over.
    fn restart(&mut self, now: Time) {
        self.measured_from = now;
        self.done = 0;
        for state in &mut self.stations {
            state.station.restart(now);
            state.stay = BatchMeans::new(WarmUp::Count(0));
        }
        for class in &mut self.classes {
            class.lost = 0;
            class.response.clear();
            class.response_mean = BatchMeans::new(WarmUp::Count(0));
        }
    }

    fn outcome(self) -> Outcome {
        // What would happen later does not: it was measured until the end.
        let is_cut = self.events.next_time().is_some_and(|next| next > self.end);
        let now = if is_cut { self.end } else { self.now }.max(self.measured_from);
        let (model, events) = (self.model, self.happened);
        let measured = now.since(self.measured_from);
        let rate = |count: u64| if count == 0 { 0.0 } else { count as f64 / measured.seconds() };
        let stations = model.stations.iter().zip(&self.stations).map(|(place, state)| StationOutcome {
            name: place.name.clone(),
            throughput: rate(state.station.done()),
            busy: state.station.busy().mean(now),
            population: state.station.population().mean(now),
            population_max: state.station.population().max(),
            stay: state.stay.estimate(),
        });
        let stations = stations.collect();
        let classes = model.classes.iter().zip(self.classes).map(|(class, state)| ClassOutcome {
            name: class.name.clone(),
            done: state.response.count(),
            lost: state.lost,
            throughput: rate(state.response.count()),
            response_mean: state.response_mean.estimate(),
            response: state.response,
        });
        Outcome { stations, classes: classes.collect(), measured, events }
    }
}

impl Simulation<1> for Run<'_> {
    type Error = SimError;

    fn next_times(&self) -> [Option<Time>; 1] {
        [self.events.next_time()]
    }

    fn is_over(&self, next: Time) -> bool {
        next > self.end || self.done >= self.most
    }

    fn proceed(&mut self, _model: usize, _until: Time) -> Result<(), SimError> {
        let Some((now, happening)) = self.events.pop() else { return Ok(()) };
        if !self.is_warm && now >= self.warm_up {
            self.restart(self.warm_up);
            self.is_warm = true;
            self.most = self.stop.count.unwrap_or(u64::MAX);
        }
        self.now = now;
        self.happen(happening);
        self.happened += 1;
        self.check_moving()?;
        if self.happened.is_multiple_of(LOOK_EVENTS) {
            self.look();
        }
        Ok(())
    }
}
