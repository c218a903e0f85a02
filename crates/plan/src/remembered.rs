//! What the automatic choice keeps in mind of a file from one operation to the next.

use crate::access::Direction;
use crate::machine::Choice;
use crate::strategy::Strategy;

/// After how many operations without a word the ranks describe their accesses anew, when they first chose so, and at most; and
/// that where the choice is one that [holds](Choice::holds) for so many.
const FIRST: u32 = 3;
const FIRST_THAT_HOLDS: u32 = 48;
const LONGEST: u32 = 63;
const LONGEST_THAT_HOLDS: u32 = 255;

/// Of how much longer than expected exchanges took, this part is forgotten whenever ranks go on each for itself.
const FORGOTTEN: u64 = 8;

/// What is kept in mind of an open file's collective operations under its views in force.
///
/// How long ranks waited for each other when they last described their accesses is what they expect of the next time. A choice for
/// a strategy without messages is taken again without a word, 3 times, and when it is confirmed 12 times, 48 times, and so on; one
/// that [holds](Choice::holds) for longer 48 times first, if it holds so long. Programs go on as they began, but what all ranks have
/// together a rank sees only if they tell each other. All ranks must hold the same: so only operations that end on each rank before
/// its next one begins may be told. A new view begins with what a [`Memory`](crate::Memory) has of its shape.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remembered {
    /// Of reads and writes.
    each: [Kept; 2],
    /// Operations without a word since the ranks met.
    quiet: u32,
    /// Operations since they set views or opened the file.
    since: u32,
    /// How many there were before they did so again, or closed it; 0 if they have not yet.
    meets_after: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    strategy: Option<Strategy>,
    /// For so many operations more.
    left: u32,
    /// For so many it held.
    held: u32,
    waited_us: Option<u64>,
    /// By how much longer than expected the last exchange took.
    beyond_us: Option<u64>,
    /// By how much longer the last two took at least: one alone may have had bad luck.
    exchanging_us: u64,
}

/// How long an operation took one rank, microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Until it knew what all ranks access.
    pub waited_us: u64,
    /// In all.
    pub all_us: u64,
}

/// What an operation is to know of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// What it is to do without a word; none if the ranks are to describe their accesses. The same on all ranks.
    pub strategy: Option<Strategy>,
    /// Whether the ranks have not described such accesses yet. The same on all ranks.
    pub is_first: bool,
    /// Microseconds that this rank waited for the others when they last did, or, if those are more, that an exchange took it longer
    /// than expected; if they have not, those since the ranks met, divided by the operations since. Who is the last to come has most of
    /// these.
    pub told_us: u64,
    /// Whether the ranks have exchanged data in such an operation before. The same on all ranks.
    pub has_exchanged: bool,
    /// Whether the ranks are likely to set views or close the file next: they did so after as many operations. The same on all ranks.
    pub meets_next: bool,
}

impl Default for Recalled {
    fn default() -> Recalled {
        Recalled { strategy: None, is_first: true, told_us: 0, has_exchanged: false, meets_next: false }
    }
}

impl Remembered {
    /// What the next operation is to know, so many microseconds after the ranks met: opened the file, set its views, or last
    /// described their accesses.
    pub fn recall(&mut self, direction: Direction, since_met_us: u64) -> Recalled {
        self.since = self.since.saturating_add(1);
        let kept = &mut self.each[direction as usize];
        let strategy = kept.strategy.filter(|_| kept.left > 0);
        kept.left = kept.left.saturating_sub(1);
        // What ranks drift apart in operations without a word is not what they would wait in each.
        let told_us = kept.waited_us.unwrap_or(since_met_us / (1 + u64::from(self.quiet)));
        self.quiet = self.quiet.saturating_add(strategy.is_some().into());
        let meets_next = self.since == self.meets_after;
        let (is_first, has_exchanged) = (kept.waited_us.is_none(), kept.beyond_us.is_some());
        Recalled { strategy, is_first, told_us, has_exchanged, meets_next }
    }

    /// The ranks meet: they open a file with views of which this is known, or set such.
    pub(crate) fn met(self) -> Remembered {
        Remembered { quiet: 0, ..self }
    }

    /// What is likely of other views: that ranks meet after as many operations.
    pub(crate) fn unknown_but_for_meeting(self) -> Remembered {
        Remembered { meets_after: self.meets_after, ..Remembered::default() }
    }

    /// The ranks meet: they close the file, or set other views.
    pub(crate) fn left(self) -> Remembered {
        let meets_after = if self.since > 0 { self.since } else { self.meets_after };
        Remembered { since: 0, meets_after, ..self }
    }

    /// Ranks may exchange data in this operation: the next one begins with their descriptions, whatever it is. They say that a rank
    /// is through with this one, so that the others may use the buffers again that it has its data in.
    pub fn describe_next(&mut self) {
        self.since = self.since.saturating_add(1);
        self.quiet_no_more();
    }

    /// The next operation begins with descriptions.
    fn quiet_no_more(&mut self) {
        self.each.iter_mut().for_each(|kept| kept.left = 0);
    }

    /// Takes note of what the ranks chose when they had described their accesses, and how long that took this one.
    pub fn learn(&mut self, direction: Direction, choice: &Choice, took: Took) {
        let chosen = choice.strategy;
        self.quiet = 0;
        let kept = &mut self.each[direction as usize];
        // So it is with what it waited.
        let waited_us = took.waited_us / (1 + u64::from(kept.held));
        *kept = if chosen.sends_messages() {
            let exchange_us = took.all_us.saturating_sub(took.waited_us);
            let beyond_us = waited_us + exchange_us.saturating_sub(choice.expected_us);
            let exchanging_us = kept.beyond_us.map_or(0, |before_us| before_us.min(beyond_us));
            let waited_us = Some(waited_us.max(exchanging_us));
            Kept { waited_us, beyond_us: Some(beyond_us), exchanging_us, ..Kept::default() }
        } else {
            let first = choice.holds.clamp(FIRST, FIRST_THAT_HOLDS);
            let longest = choice.holds.clamp(LONGEST, LONGEST_THAT_HOLDS);
            let is_confirmed = kept.strategy == Some(chosen);
            let held = if is_confirmed { (kept.held * 4).clamp(first, longest) } else { first };
            // Now and then an exchange is tried again: it may take that no longer.
            let exchanging_us = kept.exchanging_us - kept.exchanging_us / FORGOTTEN;
            let waited_us = Some(waited_us.max(exchanging_us));
            Kept { strategy: Some(chosen), left: held, held, waited_us, exchanging_us, ..*kept }
        };
        if chosen.sends_messages() {
            self.quiet_no_more();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(strategy: Strategy) -> Choice {
        Choice { strategy, holds: 0, expected_us: 0, reason: String::new() }
    }

    fn after(waited_us: u64) -> Took {
        Took { waited_us, all_us: waited_us }
    }

    /// Of so many operations, in which this would be the choice, those in which ranks describe.
    fn described(remembered: &mut Remembered, operations: u32, choice: &Choice) -> Vec<u32> {
        let mut described = Vec::new();
        for operation in 0..operations {
            match remembered.recall(Direction::Write, 0).strategy {
                Some(strategy) => assert_eq!(strategy, choice.strategy),
                None => {
                    described.push(operation);
                    remembered.learn(Direction::Write, choice, Took::default());
                }
            }
        }
        described
    }

    #[test]
    fn what_holds_is_asked_ever_less_often() {
        let mut remembered = Remembered::default();
        assert_eq!(described(&mut remembered, 200, &choice(Strategy::Independent)), [0, 4, 17, 66, 130, 194]);
        assert_eq!(remembered.recall(Direction::Read, 0), Recalled::default());
    }

    #[test]
    fn what_holds_by_itself_is_asked_less_often_at_once() {
        let asked = |holds| {
            let choice = Choice { holds, ..choice(Strategy::Independent) };
            described(&mut Remembered::default(), 500, &choice)
        };
        assert_eq!(asked(u32::MAX), [0, 49, 242, 498]);
        assert_eq!(asked(20), [0, 21, 85, 149, 213, 277, 341, 405, 469]);
        assert_eq!(asked(100), [0, 49, 150, 251, 352, 453]);
    }

    #[test]
    fn who_exchanges_data_describes() {
        assert_eq!(described(&mut Remembered::default(), 4, &choice(Strategy::TwoPhase)), [0, 1, 2, 3]);
    }

    #[test]
    fn after_an_exchange_ranks_describe_whatever_comes() {
        let mut remembered = Remembered::default();
        remembered.learn(Direction::Write, &choice(Strategy::Sieving), Took::default());
        assert!(remembered.recall(Direction::Write, 0).strategy.is_some());
        remembered.learn(Direction::Read, &choice(Strategy::TwoPhase), Took::default());
        assert!(remembered.recall(Direction::Write, 0).strategy.is_none());
    }

    #[test]
    fn ranks_expect_to_wait_as_they_waited() {
        let mut remembered = Remembered::default();
        remembered.learn(Direction::Write, &choice(Strategy::TwoPhase), after(700));
        let waited =
            |told_us| Recalled { is_first: false, told_us, has_exchanged: true, ..Recalled::default() };
        assert_eq!(remembered.recall(Direction::Write, 5000), waited(700));
        assert_eq!(
            remembered.recall(Direction::Read, 5000),
            Recalled { told_us: 5000, ..Recalled::default() }
        );
        remembered.learn(Direction::Write, &choice(Strategy::List), after(900));
        for _ in 0..3 {
            assert_eq!(remembered.recall(Direction::Write, 0).strategy, Some(Strategy::List));
        }
        assert_eq!(remembered.recall(Direction::Write, 0), waited(900));
        // The first read comes after three operations without a word.
        assert_eq!(remembered.recall(Direction::Read, 4000).told_us, 1000);
        assert_eq!(remembered.met().recall(Direction::Read, 4000).told_us, 4000);
        // Four operations went by.
        remembered.learn(Direction::Write, &choice(Strategy::TwoPhase), after(2000));
        assert_eq!(remembered.recall(Direction::Write, 0), waited(500));
    }

    #[test]
    fn ranks_expect_an_exchange_to_take_as_much_longer_as_the_last_two_did() {
        let mut remembered = Remembered::default();
        let exchange = Choice { expected_us: 1000, ..choice(Strategy::TwoPhase) };
        let mut told_us = |choice: &Choice, waited_us, all_us| {
            remembered.learn(Direction::Write, choice, Took { waited_us, all_us });
            let mut now = remembered;
            while now.recall(Direction::Write, 0).strategy.is_some() {}
            now.recall(Direction::Write, 0).told_us
        };
        // Once may have been bad luck; twice is not.
        assert_eq!(told_us(&exchange, 500, 9000), 500);
        assert_eq!(told_us(&exchange, 200, 3000), 2000);
        assert_eq!(told_us(&exchange, 200, 17_000), 2000);
        assert_eq!(told_us(&exchange, 200, 900), 200);
        assert_eq!(told_us(&exchange, 200, 17_000), 200);
        assert_eq!(told_us(&exchange, 200, 17_000), 16_000);
        // Each for itself they forget it little by little, whatever they wait to ask.
        assert_eq!(told_us(&choice(Strategy::List), 100, 100), 14_000);
        assert_eq!(told_us(&choice(Strategy::List), 100, 100), 12_250);
        // Tried again, once is enough.
        assert_eq!(told_us(&exchange, 0, 9000), 8000);
    }

    #[test]
    fn ranks_are_likely_to_meet_after_as_many_operations_as_before() {
        let met_next = |remembered: &mut Remembered, operations: usize| -> Vec<bool> {
            let found = (0..operations).map(|_| remembered.recall(Direction::Write, 0).meets_next).collect();
            *remembered = remembered.left().met();
            found
        };
        let mut remembered = Remembered::default();
        assert_eq!(met_next(&mut remembered, 1), [false]);
        // Views were set twice, with nothing between.
        assert!(met_next(&mut remembered, 0).is_empty());
        assert_eq!(met_next(&mut remembered, 3), [true, false, false]);
        assert_eq!(met_next(&mut remembered, 3), [false, false, true]);
        // Reads count, and those that nobody is told of.
        remembered.recall(Direction::Read, 0);
        remembered.describe_next();
        assert_eq!(met_next(&mut remembered, 1), [true]);
    }

    #[test]
    fn another_choice_is_tried_anew() {
        let mut remembered = Remembered::default();
        for chosen in [Strategy::List, Strategy::List, Strategy::Sieving] {
            remembered.learn(Direction::Write, &choice(chosen), Took::default());
        }
        assert_eq!(described(&mut remembered, 5, &choice(Strategy::Sieving)), [3]);
    }
}
