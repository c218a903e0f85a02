//! How long a client tries to reach a server, and when it tries again.

use std::time::Duration;

use crate::request::Body;

/// First and longest time between two attempts to connect.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(200));
/// How many times as long as usual to wait for what depends on how much is to be done.
const LONG_WORK: u32 = 20;
/// What is not worth waiting for.
const SHORTEST: Duration = Duration::from_millis(10);

/// A client's attempts to reach a server: all of them together have the time that one answer has.
///
/// Times are since whenever; they must not go back.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    timeout: Duration,
    /// Since when nothing works.
    since: Option<Duration>,
    /// Since when the client connects, or nothing works.
    begun: Duration,
    /// The next pause: the shortest, unless nothing works.
    pause: Duration,
}

impl Retry {
    /// Gives up when nothing has worked for `timeout`.
    pub fn new(timeout: Duration) -> Retry {
        Retry { timeout, since: None, begun: Duration::ZERO, pause: BACK_OFF.0 }
    }

    /// How long it is tried.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How long an answer to this request may take.
    pub fn answer_timeout(&self, body: &Body) -> Duration {
        if body.takes_long() { self.timeout * LONG_WORK } else { self.timeout }
    }

    /// The server answered, or nobody waits for it any more.
    pub fn over(&mut self) {
        self.since = None;
        self.pause = BACK_OFF.0;
    }

    /// The client begins to connect.
    pub fn begin(&mut self, now: Duration) {
        self.begun = self.since.unwrap_or(now);
    }

    /// How long an attempt to connect may take: never nothing, which sockets take for no limit.
    pub fn left(&self, now: Duration) -> Duration {
        self.timeout.saturating_sub(now.saturating_sub(self.begun)).max(SHORTEST)
    }

    /// The connection broke while the client used it; `waited` if the server did not answer in time. How long to wait before the
    /// next attempt: not at all, unless connections keep breaking without an answer. `None` if it is time to give up.
    #[must_use]
    pub fn broke(&mut self, now: Duration, waited: bool) -> Option<Duration> {
        let is_first = self.since.is_none();
        // Who waited in vain for an answer has waited long enough.
        if waited || self.is_over(now) {
            return None;
        }
        if is_first {
            return Some(Duration::ZERO);
        }
        self.begun = self.since.unwrap_or(now);
        Some(self.next_pause(now))
    }

    /// An attempt to connect failed: how long to wait before the next. `None` if it is time to give up.
    pub fn failed(&mut self, now: Duration) -> Option<Duration> {
        self.since = Some(self.begun);
        // Even a timeout is worth another attempt: while nobody listens, the server may be starting again.
        (!self.is_over(now)).then(|| self.next_pause(now))
    }

    /// Whether nothing has worked for too long; it begins not to work now, if it did before.
    fn is_over(&mut self, now: Duration) -> bool {
        let since = *self.since.get_or_insert(now);
        now.saturating_sub(since) + SHORTEST >= self.timeout
    }

    fn next_pause(&mut self, now: Duration) -> Duration {
        let pause = self.pause.min(self.left(now));
        self.pause = (self.pause * 2).min(BACK_OFF.1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn all_attempts_share_the_time_of_one_answer() {
        let mut retry = Retry::new(ms(1000));
        // A connection that was made leaves nothing behind.
        retry.begin(ms(0));
        assert_eq!(retry.left(ms(400)), ms(600));
        assert_eq!(retry.broke(ms(100), false), Some(ms(0)));
        retry.begin(ms(150));
        let mut now = ms(150);
        let mut pauses = Vec::new();
        while let Some(pause) = retry.failed(now) {
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses[..10], [1, 2, 4, 8, 16, 32, 64, 128, 200, 200]);
        assert!(now >= ms(1090) && now <= ms(1110), "{now:?}");
        assert_eq!(retry.left(now), SHORTEST);
        retry.over();
        retry.begin(now);
        assert_eq!(retry.left(now), ms(1000));
        assert_eq!(retry.broke(now, false), Some(ms(0)));
    }

    #[test]
    fn who_waited_in_vain_gives_up() {
        assert_eq!(Retry::new(ms(1000)).broke(ms(0), true), None);
    }

    /// A server that closes each connection as soon as it hears a request was connected to without end.
    #[test]
    fn connections_that_break_without_an_answer_are_made_more_and_more_slowly() {
        let mut retry = Retry::new(ms(1000));
        let (mut now, mut pauses) = (ms(0), Vec::new());
        while let Some(pause) = retry.broke(now, false) {
            pauses.push(pause.as_millis());
            now += pause;
            retry.begin(now);
        }
        assert_eq!(pauses[..11], [0, 1, 2, 4, 8, 16, 32, 64, 128, 200, 200]);
        assert!(now >= ms(980) && now <= ms(1000), "{now:?}");
        retry.over();
        assert_eq!(retry.broke(now, false), Some(ms(0)));
    }
}
