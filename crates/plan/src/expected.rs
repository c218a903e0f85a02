//! How many ranks each aggregator is to hear from: what ranks say of it, added up.

use std::ops::Range;

use crate::tree::Sum;

/// By the number of the aggregator, how many ranks have data in its file domain. Aggregators side by side with the same
/// number are one entry: where every rank has data everywhere, there is one in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// Ascending and apart from each other; none is empty, or has no clients.
    pub(crate) runs: Vec<Run>,
}

/// Aggregators with the same number of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) aggregators: Range<u32>,
    pub(crate) clients: u32,
}

impl Clients {
    /// One client: of aggregators with these numbers, ascending.
    pub(crate) fn one_of(aggregators: impl IntoIterator<Item = u32>) -> Clients {
        let mut clients = Clients::default();
        aggregators.into_iter().for_each(|index| clients.push(index..index.saturating_add(1), 1));
        clients
    }

    /// How many an aggregator has.
    pub(crate) fn of(&self, aggregator: u32) -> u32 {
        self.runs.iter().find(|run| run.aggregators.contains(&aggregator)).map_or(0, |run| run.clients)
    }

    /// Those of some of the aggregators.
    pub(crate) fn within(&self, aggregators: &Range<u32>) -> Clients {
        let mut clients = Clients::default();
        for run in &self.runs {
            let (start, end) =
                (run.aggregators.start.max(aggregators.start), run.aggregators.end.min(aggregators.end));
            clients.push(start..end.max(start), run.clients);
        }
        clients
    }

    fn push(&mut self, aggregators: Range<u32>, clients: u32) {
        if aggregators.is_empty() || clients == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(last) if last.clients == clients && last.aggregators.end == aggregators.start => {
                last.aggregators.end = aggregators.end;
            }
            _ => self.runs.push(Run { aggregators, clients }),
        }
    }
}

impl Sum for Clients {
    fn add(&mut self, later: Clients) {
        let [mut these, mut those] =
            [std::mem::take(&mut self.runs), later.runs].map(|runs| runs.into_iter().peekable());
        let mut at = 0;
        loop {
            let next = |run: Option<&Run>| {
                run.map_or((u32::MAX, 0), |run| {
                    if run.aggregators.start > at {
                        (run.aggregators.start, 0)
                    } else {
                        (run.aggregators.end, run.clients)
                    }
                })
            };
            let ((this_end, this), (that_end, that)) = (next(these.peek()), next(those.peek()));
            let end = this_end.min(that_end);
            if these.peek().is_none() && those.peek().is_none() {
                return;
            }
            self.push(at..end, this.saturating_add(that));
            at = end;
            these.next_if(|run| run.aggregators.end <= at);
            those.next_if(|run| run.aggregators.end <= at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_is_everywhere_takes_one_entry() {
        let mut all = Clients::default();
        (0..100).for_each(|_| all.add(Clients::one_of(0..64)));
        assert_eq!(all.runs, [Run { aggregators: 0..64, clients: 100 }]);
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_table(
            ranks in proptest::collection::vec(proptest::collection::btree_set(0u32..20, 0..8), 0..12),
            part in (0u32..20, 0u32..22),
        ) {
            let mut sum = Clients::default();
            let mut table = [0; 20];
            for aggregators in &ranks {
                sum.add(Clients::one_of(aggregators.iter().copied()));
                aggregators.iter().for_each(|index| table[*index as usize] += 1);
            }
            for (index, count) in (0..).zip(table) {
                prop_assert_eq!(sum.of(index), count);
                let inside = part.0 <= index && index < part.1;
                prop_assert_eq!(sum.within(&(part.0..part.1)).of(index), if inside { count } else { 0 });
            }
            let is_short = sum.runs.is_sorted_by(|one, next| {
                one.aggregators.end < next.aggregators.start
                    || (one.aggregators.end == next.aggregators.start && one.clients != next.clients)
            });
            prop_assert!(is_short && sum.runs.iter().all(|run| !run.aggregators.is_empty() && run.clients > 0));
        }
    }
}
