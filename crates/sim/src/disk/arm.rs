//! Arm and spindle: when sectors pass under the head.

use pio_machine::Duration;
use pio_machine::disk::{AccessModel, Angle, Mechanics};
use pio_plan::Direction;

use super::geometry::{Run, Track};
use crate::kernel::Time;

/// Where the arm is, and since when it has had nothing to do.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    mechanics: Mechanics,
    pub(super) track: Track,
    pub(super) free: Time,
}

/// The passing of a run's sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    /// When the arm is there.
    pub(super) arrived: Time,
    /// When the first sector begins.
    pub(super) begin: Time,
    /// How many sectors of how long a revolution.
    pub(super) blocks: u64,
    period: u64,
    sectors: u64,
}

/// What has just passed has not been missed if it is less than this: sums of whole picoseconds are a little off.
const TOLERANCE: Duration = Duration::from_picoseconds(10_000);

impl Arm {
    pub(super) fn new(mechanics: &Mechanics) -> Arm {
        Arm { mechanics: mechanics.clone(), track: Track::default(), free: Time(0) }
    }

    /// How the sectors of a run pass, if the arm starts from where it is at `start`; `moves` says whether this begins an
    /// access, and does not continue one.
    pub(super) fn pass(&self, start: Time, run: &Run, direction: Direction, moves: bool) -> Pass {
        let mechanics = &self.mechanics;
        let pass = |arrived: Time, begin: Time| Pass {
            arrived,
            begin,
            blocks: run.blocks,
            period: mechanics.period.picoseconds(),
            sectors: u64::from(run.sectors),
        };
        match mechanics.access {
            AccessModel::Constant(time) => {
                let arrived = if moves { start + time } else { start };
                Pass { period: 0, ..pass(arrived, arrived) }
            }
            AccessModel::AverageRotation => {
                let arrived = start + self.move_time(run.track, direction);
                let half = Duration::from_picoseconds(mechanics.period.picoseconds() / 2);
                pass(arrived, if moves { arrived + half } else { arrived })
            }
            AccessModel::Full => {
                let arrived = start + self.move_time(run.track, direction);
                pass(arrived, arrived + self.wait(arrived, run.angle))
            }
        }
    }

    /// How sectors pass that are taken in the order of their passing: those from the first that comes by on, and then
    /// those before it. Nothing if the first that comes by is the first.
    pub(super) fn zero_latency(&self, pass: &Pass) -> Option<[Pass; 2]> {
        let wait = pass.begin.since(pass.arrived).picoseconds();
        if self.mechanics.access != AccessModel::Full || wait == 0 {
            return None;
        }
        // Sectors that passed before the head came, up to the one that was passing then.
        let period = pass.period;
        let passed = u64::try_from(
            (u128::from(period - wait.min(period)) * u128::from(pass.sectors))
                .div_ceil(u128::from(period.max(1))),
        )
        .unwrap_or(u64::MAX);
        if passed >= pass.blocks {
            return None;
        }
        let first = Pass { blocks: passed, ..*pass };
        let begin = Time((pass.begin + pass.length(passed)).0 - period);
        Some([first, Pass { begin: begin.max(pass.arrived), blocks: pass.blocks - passed, ..*pass }])
    }

    /// The time until an angle is under the head.
    fn wait(&self, now: Time, angle: Angle) -> Duration {
        let period = self.mechanics.period.picoseconds().max(1);
        let phase = Angle((((u128::from(now.0 % period)) << 64) / u128::from(period)) as u64);
        // To the nearest picosecond; the sum has less than 128 bits.
        let wait = ((u128::from((angle - phase).0) * u128::from(period) + (1 << 63)) >> 64) as u64;
        if wait + TOLERANCE.picoseconds() >= period {
            Duration::ZERO
        } else {
            Duration::from_picoseconds(wait)
        }
    }

    fn move_time(&self, to: Track, direction: Direction) -> Duration {
        let mechanics = &self.mechanics;
        let seek = mechanics.seek.time(self.track.cylinder.abs_diff(to.cylinder));
        let switch = if self.track.surface == to.surface { Duration::ZERO } else { mechanics.head_switch };
        let time = seek.max(switch);
        if time == Duration::ZERO || direction == Direction::Read {
            return time;
        }
        Duration::from_picoseconds(time.picoseconds().saturating_add_signed(mechanics.write_settle_ps))
    }
}

impl Pass {
    /// The time of so many sectors.
    pub(super) fn length(&self, blocks: u64) -> Duration {
        let exact = u128::from(self.period) * u128::from(blocks) / u128::from(self.sectors.max(1));
        Duration::from_picoseconds(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// When so many of the sectors have passed.
    pub(super) fn passed(&self, blocks: u64) -> Time {
        self.begin + self.length(blocks)
    }

    /// When all have passed.
    pub(super) fn end(&self) -> Time {
        self.passed(self.blocks)
    }

    /// How many whole sectors of the track passed between the arm's arrival and the first of these.
    pub(super) fn passed_before(&self) -> u64 {
        let wait = u128::from(self.begin.since(self.arrived).picoseconds());
        let passed = (wait * u128::from(self.sectors)).checked_div(u128::from(self.period));
        passed.map_or(0, |passed| u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// How many have passed at `now`.
    pub(super) fn count_at(&self, now: Time) -> u64 {
        if now < self.begin {
            return 0;
        }
        let since = u128::from(now.since(self.begin).picoseconds());
        let count = (since * u128::from(self.sectors)).checked_div(u128::from(self.period));
        let count = count.map_or(self.blocks, |count| u64::try_from(count).unwrap_or(u64::MAX));
        count.min(self.blocks)
    }

    /// The same after a whole number of revolutions, so that it does not begin before `time`.
    pub(super) fn not_before(self, time: Time) -> Pass {
        let late = time.since(self.begin).picoseconds();
        let begin = match self.period {
            0 => self.begin.max(time),
            period => self.begin + Duration::from_picoseconds(late.div_ceil(period).saturating_mul(period)),
        };
        Pass { begin, ..self }
    }
}
