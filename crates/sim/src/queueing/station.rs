//! A station: servers with one queue before them. It knows who is in it and for how long, and leaves the times to
//! whoever uses it: a model may take one into its own event loop.

use std::collections::VecDeque;

use crate::kernel::{Level, Time};

/// Jobs that are served, and jobs that wait for it in the order in which they came.
#[derive(Clone, Debug)]
pub struct Station<J> {
    servers: u64,
    places: u64,
    waiting: VecDeque<J>,
    /// Jobs in the station.
    population: Level,
    /// Servers that are taken, by a job that is served or one that is done but cannot go on.
    busy: Level,
    done: u64,
}

impl<J> Station<J> {
    /// A station of so many servers, with places for so many jobs, the ones in service included; no number stands for
    /// no limit.
    ///
    /// # Panics
    /// If there are no servers, or less places than servers.
    pub fn new(servers: Option<u32>, places: Option<u32>) -> Station<J> {
        let servers = servers.map_or(u64::MAX, u64::from);
        let places = places.map_or(u64::MAX, u64::from);
        assert!(servers > 0 && places > 0, "a station of {servers} servers and {places} places");
        Station {
            servers,
            places,
            waiting: VecDeque::new(),
            population: Level::default(),
            busy: Level::default(),
            done: 0,
        }
    }

    /// Whether another job can come.
    pub fn has_room(&self) -> bool {
        self.population.now() < self.places
    }

    /// A job comes. If a server is free, it is given back: its service begins now. Otherwise it waits.
    ///
    /// # Panics
    /// If there is no room.
    pub fn arrive(&mut self, now: Time, job: J) -> Option<J> {
        assert!(self.has_room(), "a job comes to a full station");
        self.population.rise(now);
        if self.busy.now() < self.servers {
            self.busy.rise(now);
            return Some(job);
        }
        self.waiting.push_back(job);
        None
    }

    /// A job that was served goes. The one whose service begins now, if one waited.
    ///
    /// # Panics
    /// If no server is busy.
    pub fn leave(&mut self, now: Time) -> Option<J> {
        self.population.fall(now);
        self.done += 1;
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.busy.fall(now);
        }
        next
    }

    /// Jobs in the station.
    pub fn population(&self) -> &Level {
        &self.population
    }

    /// Servers that are taken.
    pub fn busy(&self) -> &Level {
        &self.busy
    }

    /// Jobs that have gone since the last [`Station::restart`].
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Forgets what has been: a warm-up is over.
    pub fn restart(&mut self, now: Time) {
        self.population.restart(now);
        self.busy.restart(now);
        self.done = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served_by_as_many_as_there_are() {
        let mut station = Station::new(Some(2), Some(4));
        assert_eq!(station.arrive(Time(0), 'a'), Some('a'));
        assert_eq!(station.arrive(Time(0), 'b'), Some('b'));
        assert_eq!(station.arrive(Time(5), 'c'), None);
        assert!(station.has_room());
        assert_eq!(station.arrive(Time(5), 'd'), None);
        assert!(!station.has_room());
        assert_eq!(station.leave(Time(10)), Some('c'));
        assert_eq!(station.leave(Time(10)), Some('d'));
        assert_eq!(station.leave(Time(20)), None);
        assert_eq!((station.busy().now(), station.population().now(), station.done()), (1, 1, 3));
        assert_eq!(station.busy().mean(Time(20)), 2.0);
        assert_eq!(station.population().mean(Time(20)), 2.5);
    }

    #[test]
    fn a_delay_lets_everybody_in() {
        let mut station = Station::new(None, None);
        assert!((0..1000).all(|job| station.arrive(Time(0), job) == Some(job)));
    }
}
