//! When each flow will have ended.

use crate::kernel::Time;

/// Times by the number of a flow.
///
/// Where all depend on all, most times change together whenever a flow comes or goes, and then one minimum is wanted; where
/// flows hardly meet, a few of thousands change. So a change is two writes, and [`Finishes::refresh`] looks for the least
/// only in the blocks that changed, and compares blocks as in a tournament.
#[derive(Debug, Default)]
pub(super) struct Finishes {
    times: Vec<Time>,
    /// The least at 1; below each `n`, `2n` and `2n + 1`; the least times of blocks from `leaves` on.
    tree: Vec<Time>,
    leaves: usize,
    /// Blocks with times that changed since the tree was right, each once.
    stale: Vec<u32>,
    is_stale: Vec<bool>,
}

const BLOCK: usize = 32;

impl Finishes {
    /// Changes the time of a flow: [`Finishes::refresh`] before the next question.
    pub(super) fn set(&mut self, flow: u32, time: Time) {
        let (index, block) = (flow as usize, flow as usize / BLOCK);
        if index >= self.times.len() {
            self.times.resize(index + 1, Time::NEVER);
            self.is_stale.resize(block + 1, false);
        }
        self.times[index] = time;
        if !self.is_stale[block] {
            self.is_stale[block] = true;
            self.stale.push(block as u32);
        }
    }

    /// Takes in what was set.
    pub(super) fn refresh(&mut self) {
        if self.is_stale.len() > self.leaves {
            self.leaves = self.is_stale.len().next_power_of_two();
            self.tree = vec![Time::NEVER; 2 * self.leaves];
            for (block, times) in self.times.chunks(BLOCK).enumerate() {
                self.tree[self.leaves + block] = least(times);
            }
            for at in (1..self.leaves).rev() {
                self.tree[at] = self.tree[2 * at].min(self.tree[2 * at + 1]);
            }
        }
        while let Some(block) = self.stale.pop() {
            let block = block as usize;
            self.is_stale[block] = false;
            let end = self.times.len().min((block + 1) * BLOCK);
            let mut at = self.leaves + block;
            let mut time = least(&self.times[block * BLOCK..end]);
            while self.tree[at] != time {
                self.tree[at] = time;
                if at == 1 {
                    break;
                }
                time = time.min(self.tree[at ^ 1]);
                at /= 2;
            }
        }
    }

    /// The earliest time; never, if no flow ever ends.
    pub(super) fn first(&self) -> Time {
        assert!(self.stale.is_empty(), "what was set is taken in");
        self.tree.get(1).copied().unwrap_or(Time::NEVER)
    }

    /// The first of the flows that end at the earliest time, which is some time.
    pub(super) fn first_flow(&self) -> u32 {
        let time = self.first();
        let mut at = 1;
        while at < self.leaves {
            at = if self.tree[2 * at] == time { 2 * at } else { 2 * at + 1 };
        }
        let start = (at - self.leaves) * BLOCK;
        let within = self.times[start..].iter().take_while(|found| **found != time).count();
        (start + within) as u32
    }
}

fn least(times: &[Time]) -> Time {
    times.iter().copied().min().unwrap_or(Time::NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_found_after_any_change() {
        let mut finishes = Finishes::default();
        assert_eq!(finishes.first(), Time::NEVER);
        let mut naive = [Time::NEVER; 500];
        let mut state = 1_u64;
        for step in 0..4000 {
            // The table grows; a few change together, or many.
            let flows = (step / 4 + 1).min(500);
            for _ in 0..if step % 50 == 0 { 300 } else { step % 3 + 1 } {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (flow, draw) = ((state >> 33) % flows, (state >> 50) % 64);
                naive[flow as usize] = if draw < 20 { Time::NEVER } else { Time(draw) };
                finishes.set(flow as u32, naive[flow as usize]);
            }
            finishes.refresh();
            let expected = naive.iter().zip(0..).min().filter(|(time, _)| **time < Time::NEVER);
            assert_eq!(finishes.first(), expected.map_or(Time::NEVER, |(time, _)| *time));
            if let Some((_, flow)) = expected {
                assert_eq!(finishes.first_flow(), flow);
            }
        }
    }
}
