//! The description of a queueing network.

use pio_machine::Duration;

use super::service::Service;
use crate::error::SimError;

/// Stations, and jobs that go from one to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueingNetwork {
    /// What to call it.
    pub name: String,
    /// Its stations.
    pub stations: Vec<Place>,
    /// The kinds of jobs.
    pub classes: Vec<Class>,
}

/// A station.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// What to call it.
    pub name: String,
    /// Servers that take from one queue, first come first served; none for a delay, where nobody waits.
    pub servers: Option<u32>,
    /// Room for so many jobs, those in service included; none for no limit. A job that would go to a full station keeps
    /// its server in the one before until there is room (blocking after service).
    pub room: Option<u32>,
}

/// A kind of jobs: where they come from, and where they go.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What to call it.
    pub name: String,
    /// Where they come from.
    pub source: Source,
    /// What they do; each begins with the first.
    pub visits: Vec<Visit>,
}

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// From outside, with these times between them. One that finds the first station full is lost.
    Open(Service),
    /// As many as these stay for ever: one that goes out begins again at once.
    Closed(u32),
}

/// A stay at a station. A job may come to a station more than once, for other services.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// Index of the station.
    pub station: usize,
    /// How long it is served.
    pub service: Service,
    /// The visits that may follow, by index, with their probabilities; with the rest of 1 the job goes out.
    pub next: Vec<(f64, usize)>,
}

impl Place {
    /// Servers with room for everybody.
    pub fn servers(name: &str, servers: u32) -> Place {
        Place { name: name.to_owned(), servers: Some(servers), room: None }
    }

    /// A delay: everybody is served at once.
    pub fn delay(name: &str) -> Place {
        Place { name: name.to_owned(), servers: None, room: None }
    }

    /// With room for so many jobs only.
    pub fn with_room(self, room: u32) -> Place {
        Place { room: Some(room), ..self }
    }
}

impl Class {
    /// A visit of a cycle in which no time passes, in which a simulation would stay for ever.
    fn endless_visit(&self) -> Option<usize> {
        let takes_no_time = |index: &usize| self.visits[*index].service.mean_s() == 0.0;
        let mut timeless: Vec<usize> = (0..self.visits.len()).filter(takes_no_time).collect();
        let goes_out = |visit: &Visit| {
            let sum: f64 = visit.next.iter().map(|(probability, _)| probability).sum();
            sum < 1.0 - 1e-9
        };
        // Those that lead to none of the others are on no cycle with them.
        loop {
            let leads_on = |index: &usize| {
                let visit = &self.visits[*index];
                let begins_anew = matches!(self.source, Source::Closed(_)) && goes_out(visit);
                let mut next = visit.next.iter().filter(|(probability, _)| *probability > 0.0);
                next.any(|(_, next)| timeless.contains(next)) || (begins_anew && timeless.contains(&0))
            };
            let left: Vec<usize> = timeless.iter().copied().filter(leads_on).collect();
            if left.len() == timeless.len() {
                return left.first().copied();
            }
            timeless = left;
        }
    }
}

impl Visit {
    /// After which the job goes out.
    pub fn last(station: usize, service: Service) -> Visit {
        Visit { station, service, next: Vec::new() }
    }

    /// After which another visit follows.
    pub fn then(station: usize, service: Service, next: usize) -> Visit {
        Visit { station, service, next: vec![(1.0, next)] }
    }
}

impl QueueingNetwork {
    /// Whether it can be simulated.
    pub(super) fn check(&self) -> Result<(), SimError> {
        if self.classes.is_empty() {
            return self.wrong("classes", "none", "at least one class of jobs");
        }
        for place in &self.stations {
            let what = |which| format!("{which} of station {}", place.name);
            if place.servers == Some(0) {
                return self.wrong(what("servers"), "0", "at least 1");
            }
            if let Some(room) = place.room.filter(|room| *room < place.servers.unwrap_or(1)) {
                return self.wrong(what("room"), room, "room for the jobs in service at least");
            }
        }
        self.classes.iter().try_for_each(|class| self.check_class(class))
    }

    fn check_class(&self, class: &Class) -> Result<(), SimError> {
        let what = |which: String| format!("{which} of class {}", class.name);
        let Some(first) = class.visits.first() else {
            return self.wrong(what("visits".to_owned()), "none", "at least one visit");
        };
        for (index, visit) in class.visits.iter().enumerate() {
            if visit.station >= self.stations.len() {
                let expected = format!("one of {} stations", self.stations.len());
                return self.wrong(what(format!("station of visit {index}")), visit.station, expected);
            }
            if let Some((found, expected)) = visit.service.trouble() {
                return self.wrong(what(format!("service of visit {index}")), found, expected);
            }
            if let Some((_, next)) = visit.next.iter().find(|(_, next)| *next >= class.visits.len()) {
                let expected = format!("one of {} visits", class.visits.len());
                return self.wrong(what(format!("visit after visit {index}")), next, expected);
            }
            let sum: f64 = visit.next.iter().map(|(probability, _)| probability).sum();
            let is_probability = visit.next.iter().all(|(probability, _)| (0.0..=1.0).contains(probability));
            if !is_probability || sum > 1.0 + 1e-9 {
                let expected = "probabilities from 0 to 1 that sum to at most 1";
                return self.wrong(what(format!("probabilities after visit {index}")), sum, expected);
            }
        }
        match class.source {
            Source::Open(interval) => {
                if let Some((found, expected)) = interval.trouble() {
                    return self.wrong(what("intervals".to_owned()), found, expected);
                }
                if interval.mean_s() == 0.0 {
                    return self.wrong(what("mean interval".to_owned()), Duration::ZERO, "more than 0 s");
                }
            }
            Source::Closed(jobs) => {
                let most = self.stations[first.station].room.unwrap_or(1 << 24);
                if jobs == 0 || self.jobs_first_at(first.station) > u64::from(most) {
                    let expected = format!("1 to {most} with the other classes that begin at this station");
                    return self.wrong(what("jobs".to_owned()), jobs, expected);
                }
            }
        }
        if let Some(visit) = class.endless_visit() {
            let expected = "a time above 0 in every cycle of visits";
            return self.wrong(what(format!("service of visit {visit}")), "0 s", expected);
        }
        Ok(())
    }

    /// Jobs of closed classes that begin at a station.
    fn jobs_first_at(&self, station: usize) -> u64 {
        let here = self
            .classes
            .iter()
            .filter(|class| class.visits.first().is_some_and(|first| first.station == station));
        here.map(|class| match class.source {
            Source::Closed(jobs) => u64::from(jobs),
            Source::Open(_) => 0,
        })
        .sum()
    }

    fn wrong(
        &self,
        what: impl Into<String>,
        found: impl ToString,
        expected: impl Into<String>,
    ) -> Result<(), SimError> {
        Err(SimError::Queueing {
            network: self.name.clone(),
            what: what.into(),
            found: found.to_string(),
            expected: expected.into(),
        })
    }
}
