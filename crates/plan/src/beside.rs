//! Writes of one handle that go on beside each other.
//!
//! MPI lets a program begin a write of all ranks together and, before it is complete, write other bytes on its own. Aggregators
//! lock no gaps that they fill, as between the first description and the last acknowledgement nobody else should be writing there;
//! who sieves would write back what the file held before their data came, and who fills gaps what it held before the data of who
//! writes alone.
//!
//! So a rank describes its part of a collective write when the independent writes that it began before are complete: when all
//! ranks have, nobody is sieving. What it begins on its own from then on, it writes piece by piece under a shared lock, and
//! aggregators lock the windows in which they fill gaps. So it does while it still waits to describe its part: the collective
//! write does not wait for those, or a program whose threads always have a write under way would never come to it.
//!
//! That can happen where the collective operation is nonblocking, or other threads of a rank may call MPI during a blocking one.
//! All ranks must know the same of it: an operation is nonblocking on all or on none, and what threads may do on any rank is told
//! to all when the file is opened. In other programs, blocking operations lock no gaps.

/// What else the program may be writing through the handle during an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// Nothing that it must look out for.
    #[default]
    Nothing,
    /// Its ranks on their own, during a collective operation that is nonblocking or has other threads beside it.
    Independent,
    /// All ranks together, during an independent operation.
    Collective,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Direction, Group, Rank};
    use crate::hints::Hints;
    use crate::machine::{Action, Event, Io, StateMachine};
    use crate::sieving::tests::{access, requests_of};
    use crate::site::{Context, Gaps, Site, Via, Views};
    use crate::strategy::Strategy;
    use crate::two_phase::TwoPhase;

    fn context(via: Via, ranks: u32, beside: Beside) -> Context {
        let site = Site { ranks, nodes: None, processors: ranks, via, terms: Default::default() };
        let views = Views { each: None, gaps: Gaps::BetweenSmallPieces };
        Context { beside, ..site.context(&views, &Hints::default(), Direction::Write) }
    }

    #[test]
    fn beside_a_collective_write_nobody_writes_back_what_is_not_its_own() {
        for via in [Via::Kernel, Via::Servers { factor: 2, unit: 4096 }] {
            let context = context(via, 3, Beside::Collective);
            for strategy in Strategy::ALL {
                let access = access(100, 4, 12);
                let (file, direction) = (access.bounds(), Direction::Write);
                let mut machine = strategy.alone(Rank(0), direction, access, &context);
                let expected = [
                    Io::Lock { file: file.clone(), shared: true },
                    Io::List { direction, positions: 0..256 },
                    Io::List { direction, positions: 256..400 },
                    Io::Unlock { file },
                ];
                assert_eq!(requests_of(&mut *machine, |_| false), expected, "{strategy:?}");
            }
        }
    }

    #[test]
    fn gaps_are_filled_under_a_lock_if_others_may_write_into_them() {
        for (beside, expected) in [(Beside::Nothing, false), (Beside::Independent, true)] {
            let context = context(Via::Kernel, 1, beside);
            let group = Group { rank: Rank(0), ranks: 1 };
            let mut machine = TwoPhase::new(group, Direction::Write, access(100, 4, 12), &context);
            let mut actions = Vec::new();
            machine.handle(Event::Start, &mut actions);
            let Some(Action::Io(Io::FillAndWrite { locks, .. })) = actions.last() else {
                panic!("{actions:?}")
            };
            assert_eq!(*locks, expected);
        }
    }
}
