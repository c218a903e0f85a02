//! A server of strips: serves strip by strip, and the requests that wait take turns.
//!
//! A server's part of a request is a run of strips. The server is busy with one strip at a time; then the request goes
//! to the back of the line of those that wait, behind what came meanwhile. What a request costs as such (to take it in,
//! to find its bytes) it costs once, before its first strip. So a request that is alone takes as long as if it were
//! served in one go, and of those that come together the last is done when it would be first come, first served; but
//! long ones end together, where first come, first served they would end evenly spread over that time.
//!
//! A server whose disk has an arm serves one part after the other, each in one go: those that come together end evenly
//! spread, and the first to end wait for the last wherever they meet next. Where more wait than its disk can bring into an
//! order, it moves its arm between them.
//!
//! A server with memory takes in what is written as long as there is room, and writes it to its disk meanwhile and later,
//! while ranks do other things; reads go first.

use std::collections::VecDeque;

use pio_machine::{Arm, Duration, Service};
use pio_plan::Direction;

use super::part::Part;
use crate::io_node::IoNodeError;
use crate::kernel::{Model, Time};

/// A server whose work on a strip takes as long as its bytes.
#[derive(Debug)]
pub(crate) struct StripServer {
    costs: Costs,
    /// When it is done with the strip that it is busy with.
    busy_until: Option<Time>,
    /// Whose strip it is busy with.
    current: Option<Turn>,
    /// Who is next, in this order.
    waiting: VecDeque<Turn>,
    /// When its disk has written all that it took in.
    disk_done: Time,
    /// Those who wait for that, as it was when they came.
    syncing: VecDeque<(Time, Part)>,
}

/// How long servers are busy.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    pub(crate) strip: u64,
    pub(crate) read: Service,
    pub(crate) write: Service,
    /// How long it takes the disk to write a memory full.
    pub(crate) memory: Duration,
    /// What its disk's arm does, if it has one.
    pub(crate) arm: Option<Arm>,
}

/// A part, and how much of it is done when the strip is that it waits for.
#[derive(Clone, Copy, Debug)]
struct Turn {
    part: Part,
    /// Bytes.
    served: u64,
    /// How long these take the server, picoseconds.
    moving: u64,
}

impl StripServer {
    pub(crate) fn new(costs: Costs) -> StripServer {
        let disk_done = Time::default();
        let (waiting, syncing) = (VecDeque::new(), VecDeque::new());
        StripServer { costs, busy_until: None, current: None, waiting, disk_done, syncing }
    }

    pub(crate) fn writes_behind(&self) -> bool {
        self.costs.memory > Duration::ZERO
    }

    pub(crate) fn arrive(&mut self, now: Time, part: Part) {
        if part.syncs {
            return self.syncing.push_back((self.disk_done.max(now), part));
        }
        if let Some(busy) = self.take_in(now, part) {
            self.busy_until = Some(now + busy);
        }
    }

    /// Takes in a part, behind those that wait. If the server was idle: how long it is now busy with the first strip.
    fn take_in(&mut self, now: Time, part: Part) -> Option<Duration> {
        self.waiting.push_back(Turn { part, served: 0, moving: 0 });
        if self.current.is_some() { None } else { self.begin_strip(now) }
    }

    /// The strip that the server was busy with is done. The part, if that was its last one; and how long the server is
    /// now busy with the next strip, if there is any.
    fn end_strip(&mut self, now: Time) -> (Option<Part>, Option<Duration>) {
        let Some(turn) = self.current.take() else { return (None, None) };
        let is_whole = turn.served == turn.part.bytes;
        if !is_whole {
            self.waiting.push_back(turn);
        }
        (is_whole.then_some(turn.part), self.begin_strip(now))
    }

    fn begin_strip(&mut self, now: Time) -> Option<Duration> {
        let seek = self.costs.arm.map(|arm| arm.seek_among(self.waiting.len() as u64));
        let mut turn = self.waiting.pop_front()?;
        let part = &turn.part;
        let service = match part.direction {
            Direction::Read => &self.costs.read,
            Direction::Write => &self.costs.write,
        };
        let (strip, request) = match turn.served {
            0 if seek.is_some() => (part.bytes, service.request.picoseconds()),
            0 => (part.first_strip, service.request.picoseconds()),
            _ => (self.costs.strip, 0),
        };
        turn.served = turn.served.saturating_add(strip).min(part.bytes);
        // The difference, so that the strips' times add up to the picosecond to that of the whole.
        let before = turn.moving;
        turn.moving = service.bandwidth.time_of(turn.served).picoseconds();
        let seek = seek.unwrap_or(Duration::ZERO).picoseconds();
        let moving = Duration::from_picoseconds((turn.moving - before).saturating_add(seek));
        self.disk_done = self.disk_done.max(now) + moving;
        let busy = match part.direction {
            Direction::Read => moving.picoseconds(),
            // Until there is room for the strip.
            Direction::Write => {
                let behind = self.disk_done.since(now).picoseconds();
                behind.saturating_sub(self.costs.memory.picoseconds())
            }
        };
        let busy = Duration::from_picoseconds(busy.saturating_add(request));
        self.current = Some(turn);
        Some(busy)
    }
}

impl Model for StripServer {
    type Out = Result<Part, IoNodeError>;

    fn next_time(&self) -> Option<Time> {
        // The disk is never done earlier than it was to be before.
        let synced = self.syncing.front().map(|(time, _)| *time);
        [self.busy_until, synced].into_iter().flatten().min()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<Self::Out>) {
        let synced = self.syncing.partition_point(|(time, _)| *time <= until);
        if synced > 0 {
            return done.extend(self.syncing.drain(..synced).map(|(_, part)| Ok(part)));
        }
        while let Some(now) = self.busy_until.filter(|time| *time <= until) {
            let (part, busy) = self.end_strip(now);
            self.busy_until = busy.map(|busy| now + busy);
            if let Some(part) = part {
                done.push(Ok(part));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pio_machine::Bandwidth;

    use super::*;

    /// Strips of 10 bytes; a byte takes 1 ns to read and 2 ns to write, a request 5 ns and 7 ns.
    fn server() -> StripServer {
        let service = |nanoseconds: u64, bytes_per_second| Service {
            request: Duration::from_picoseconds(nanoseconds * 1000),
            bandwidth: Bandwidth::from_bytes_per_second(bytes_per_second),
        };
        let (read, write) = (service(5, 1_000_000_000), service(7, 500_000_000));
        StripServer::new(Costs { strip: 10, read, write, memory: Duration::ZERO, arm: None })
    }

    fn part(rank: u32, direction: Direction, bytes: u64, first_strip: u64) -> Part {
        Part {
            rank,
            file: 0,
            server: 0,
            number: 0,
            follows: false,
            direction,
            offset: 0,
            bytes,
            first_strip,
            pieces: 0,
            apart: false,
            new_bytes: 0,
            answer_bytes: 0,
            syncs: false,
        }
    }

    /// When parts, each of which arrives at a time, are done: rank and nanosecond. An arrival comes before a strip's end
    /// of the same time.
    fn ends(arrivals: &[(u64, Part)]) -> Vec<(u32, u64)> {
        ends_of(server(), arrivals)
    }

    fn ends_of(mut server: StripServer, arrivals: &[(u64, Part)]) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        let mut arrivals = arrivals.iter().peekable();
        let mut busy_until = None;
        loop {
            let arrives = arrivals.next_if(|(time, _)| busy_until.is_none_or(|end: u64| time * 1000 <= end));
            if let Some((time, part)) = arrives {
                if let Some(busy) = server.take_in(Time(*time * 1000), *part) {
                    assert!(busy_until.is_none());
                    busy_until = Some(time * 1000 + busy.picoseconds());
                }
            } else if let Some(end) = busy_until {
                let (done, next) = server.end_strip(Time(end));
                found.extend(done.map(|part| (part.rank, end / 1000)));
                busy_until = next.map(|busy| end + busy.picoseconds());
            } else {
                assert_eq!(server.end_strip(Time::NEVER), (None, None));
                return found;
            }
        }
    }

    #[test]
    fn one_that_is_alone_is_served_in_one_go() {
        assert_eq!(ends(&[(3, part(0, Direction::Read, 35, 4))]), [(0, 3 + 5 + 35)]);
        assert_eq!(ends(&[(0, part(0, Direction::Write, 7, 7))]), [(0, 7 + 14)]);
    }

    #[test]
    fn two_that_come_together_end_one_strip_apart() {
        let two = [(0, part(0, Direction::Read, 30, 10)), (0, part(1, Direction::Read, 30, 10))];
        assert_eq!(ends(&two), [(0, 2 * (5 + 30) - 10), (1, 2 * (5 + 30))]);
    }

    #[test]
    fn the_last_of_many_is_done_when_all_are() {
        let many: Vec<_> = (0..64).map(|rank| (0, part(rank, Direction::Write, 40, 10))).collect();
        let all = 64 * (7 + 80);
        // The last round is one strip of each.
        let expected: Vec<_> = (0..64).map(|rank| (rank, all - (63 - u64::from(rank)) * 20)).collect();
        assert_eq!(ends(&many), expected);
    }

    #[test]
    fn a_short_one_waits_for_a_strip_and_not_for_all_of_a_long_one() {
        let long = (0, part(0, Direction::Read, 1000, 10));
        // Comes in the long one's second strip, which ends at 25.
        let short = (17, part(1, Direction::Read, 6, 6));
        assert_eq!(ends(&[long, short]), [(1, 25 + 5 + 6), (0, 5 + 1000 + 5 + 6)]);
    }

    #[test]
    fn what_comes_goes_behind_what_waits_and_before_what_was_just_served() {
        let one = |rank, bytes| part(rank, Direction::Read, bytes, bytes.min(10));
        // Rank 0 until 15; 1 until 30, in which 2 comes; 0 until 40 and done; 2 until 55; 1 until 65.
        let three = [(0, one(0, 20)), (1, one(1, 20)), (20, one(2, 10))];
        assert_eq!(ends(&three), [(0, 40), (2, 55), (1, 65)]);
    }

    #[test]
    fn a_writer_goes_on_when_its_data_are_in_memory() {
        let mut server = server();
        // Room for 30 bytes; the disk takes 2 ns a byte.
        server.costs.memory = Duration::from_picoseconds(60_000);
        let write = |rank| part(rank, Direction::Write, 30, 10);
        // The first fits. The second waits for what the disk has not written since; the third, much later, does not.
        let found = ends_of(server, &[(0, write(0)), (20, write(1)), (1000, write(2))]);
        assert_eq!(found, [(0, 7), (1, 60), (2, 1000 + 7)]);
    }

    /// With an arm that reaches two parts and takes 30 ns to move.
    fn server_with_arm() -> StripServer {
        let mut server = server();
        server.costs.arm = Some(Arm { reach: 2, seek: Duration::from_picoseconds(30_000) });
        server
    }

    #[test]
    fn an_arm_serves_parts_in_one_go_and_moves_where_too_many_wait() {
        let read = |rank| (0, part(rank, Direction::Read, 30, 10));
        let two = ends_of(server_with_arm(), &[read(0), read(1)]);
        assert_eq!(two, [(0, 5 + 30), (1, 2 * (5 + 30))], "it knows where both lie");
        // The first finds nobody else. Of the three that then wait, the next may be one that the arm does not reach.
        let four = ends_of(server_with_arm(), &[read(0), read(1), read(2), read(3)]);
        let ends = [35, 35 + 10 + 35, 80 + 35, 115 + 35].into_iter().zip(0..).map(|(end, rank)| (rank, end));
        assert_eq!(four, ends.collect::<Vec<_>>());
    }

    #[test]
    fn many_that_come_together_cost_the_seeks_of_the_closed_form() {
        // Of w that wait, w - r in w are out of reach: n - r - r (H(n) - H(r)) seeks until all are served.
        let (count, reach) = (63_u64, 2_u64);
        let many: Vec<_> = (0..=count as u32).map(|rank| (0, part(rank, Direction::Write, 40, 10))).collect();
        let found = ends_of(server_with_arm(), &many);
        let harmonic = |n: u64| (1..=n).map(|k| 1.0 / k as f64).sum::<f64>();
        let seeks = (count - reach) as f64 - reach as f64 * (harmonic(count) - harmonic(reach));
        let all = (count + 1) as f64 * (7.0 + 80.0) + seeks * 30.0;
        let (_, last) = found[count as usize];
        assert!((last as f64 - all).abs() <= 1.0, "{last} for {all}: whole nanoseconds");
        // Evenly spread, but for the seeks, that are dearest at first.
        let mean = found.iter().map(|(_, end)| *end as f64).sum::<f64>() / found.len() as f64;
        assert!((0.5..0.6).contains(&(mean / all)), "{mean} of {all}");
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut server = server();
        server.costs.read.bandwidth = Bandwidth::from_bytes_per_second(3_000_000_007);
        let whole = server.costs.read.bandwidth.time_of(1_000_003).picoseconds() + 5000;
        let mut sum = server.take_in(Time(0), part(0, Direction::Read, 1_000_003, 1)).unwrap().picoseconds();
        while let (None, Some(busy)) = server.end_strip(Time(sum)) {
            sum += busy.picoseconds();
        }
        assert_eq!(sum, whole);
    }
}
