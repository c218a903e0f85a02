//! Requests that wait for a disk, and which of them is next.

use std::collections::{BTreeMap, VecDeque};

use pio_machine::disk::Discipline;

/// Requests that wait, each with its position on the disk.
#[derive(Clone, Debug)]
pub struct Waiting<T> {
    order: Order<T>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Order<T> {
    Coming(VecDeque<T>),
    /// By position; those of one position in the order in which they came. `upwards` is how the arm moves.
    Position {
        at: BTreeMap<u64, VecDeque<T>>,
        turns: bool,
        upwards: bool,
    },
}

impl<T> Waiting<T> {
    /// None yet.
    pub fn new(discipline: Discipline) -> Waiting<T> {
        let order = match discipline {
            Discipline::Fcfs => Order::Coming(VecDeque::new()),
            Discipline::Sstf => Order::Position { at: BTreeMap::new(), turns: true, upwards: true },
            Discipline::Look => Order::Position { at: BTreeMap::new(), turns: false, upwards: true },
        };
        Waiting { order, len: 0 }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one at this position.
    pub fn push(&mut self, position: u64, item: T) {
        self.len += 1;
        match &mut self.order {
            Order::Coming(queue) => queue.push_back(item),
            Order::Position { at, .. } => at.entry(position).or_default().push_back(item),
        }
    }

    /// Takes out the next one, with the arm at `position`.
    pub fn pop(&mut self, position: u64) -> Option<T> {
        let item = match &mut self.order {
            Order::Coming(queue) => queue.pop_front(),
            Order::Position { at, turns, upwards } => {
                let above = at.range(position..).next().map(|(above, _)| *above);
                let below = at.range(..position).next_back().map(|(below, _)| *below);
                let next = match (below, above) {
                    (Some(below), Some(above)) if *turns => {
                        if position - below < above - position {
                            below
                        } else {
                            above
                        }
                    }
                    (Some(below), Some(above)) => {
                        if *upwards {
                            above
                        } else {
                            below
                        }
                    }
                    (below, above) => below.or(above)?,
                };
                *upwards = next >= position;
                let queue = at.get_mut(&next)?;
                let item = queue.pop_front();
                if queue.is_empty() {
                    at.remove(&next);
                }
                item
            }
        };
        self.len -= usize::from(item.is_some());
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(discipline: Discipline, start: u64, positions: &[u64]) -> Vec<u64> {
        let mut waiting = Waiting::new(discipline);
        for position in positions {
            waiting.push(*position, *position);
        }
        let mut at = start;
        std::iter::from_fn(|| {
            at = waiting.pop(at)?;
            Some(at)
        })
        .collect()
    }

    #[test]
    fn each_discipline_in_its_order() {
        let positions = [98, 183, 37, 122, 14, 124, 65, 67];
        assert_eq!(order(Discipline::Fcfs, 53, &positions), positions);
        assert_eq!(order(Discipline::Sstf, 53, &positions), [65, 67, 37, 14, 98, 122, 124, 183]);
        assert_eq!(order(Discipline::Look, 53, &positions), [65, 67, 98, 122, 124, 183, 37, 14]);
    }

    #[test]
    fn those_of_one_position_in_the_order_in_which_they_came() {
        let mut waiting = Waiting::new(Discipline::Sstf);
        for item in 0..3 {
            waiting.push(7, item);
        }
        assert_eq!(
            [waiting.pop(9), waiting.pop(7), waiting.pop(7), waiting.pop(7)],
            [Some(0), Some(1), Some(2), None]
        );
        assert!(waiting.is_empty());
    }
}
