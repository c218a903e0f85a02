//! A server that is first come, first served, without a line of those that wait.

use pio_machine::Duration;

use super::time::Time;

/// First come, first served. As events are handled in order of time, when it will be free says all there is to know of
/// those that wait.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    free: Time,
    busy: Duration,
}

impl Queue {
    /// When it will be free.
    pub fn free(&self) -> Time {
        self.free
    }

    /// How long it has been busy, work already taken in included.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Takes in what comes at `now` and needs `service`. When its service begins and ends.
    pub fn serve(&mut self, now: Time, service: Duration) -> (Time, Time) {
        let begin = self.free.max(now);
        self.free = begin + service;
        self.busy = self.busy.saturating_add(service);
        (begin, self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_under_an_even_load_is_exact() {
        // D/D/1: one arrival every 10, service 8: nobody waits. Every 10, service 12: the k-th waits 2 k.
        let mut queue = Queue::default();
        for number in 0..100 {
            let (begin, end) = queue.serve(Time(number * 10), Duration::from_picoseconds(8));
            assert_eq!((begin, end), (Time(number * 10), Time(number * 10 + 8)));
        }
        let mut queue = Queue::default();
        for number in 0..100 {
            let (begin, _) = queue.serve(Time(number * 10), Duration::from_picoseconds(12));
            assert_eq!(begin, Time(number * 12));
        }
        assert_eq!(queue.busy(), Duration::from_picoseconds(1200));
    }
}
