//! When each flow will have ended.

use crate::kernel::Time;

/// Times by the number of a flow. Most change together whenever a flow comes or goes, and then one minimum is wanted: so
/// a change costs no more than two writes, and the minimum is that of blocks.
#[derive(Debug, Default)]
pub(super) struct Finishes {
    times: Vec<Time>,
    /// The earliest time of each block; `None` if it has to be looked for.
    earliest: Vec<std::cell::Cell<Option<Time>>>,
}

const BLOCK: usize = 64;

impl Finishes {
    pub(super) fn set(&mut self, flow: u32, time: Time) {
        let index = flow as usize;
        if index >= self.times.len() {
            self.times.resize(index + 1, Time::NEVER);
            self.earliest.resize(index / BLOCK + 1, std::cell::Cell::new(None));
        }
        self.times[index] = time;
        self.earliest[index / BLOCK].set(None);
    }

    /// The earliest, the first of those at the same time; none if none ever ends.
    pub(super) fn earliest(&self) -> Option<(Time, u32)> {
        let (time, block) = (0..self.earliest.len()).map(|block| (self.of_block(block), block)).min()?;
        if time == Time::NEVER {
            return None;
        }
        let start = block * BLOCK;
        let within = self.times[start..].iter().position(|found| *found == time)?;
        Some((time, (start + within) as u32))
    }

    fn of_block(&self, block: usize) -> Time {
        if let Some(time) = self.earliest[block].get() {
            return time;
        }
        let end = self.times.len().min((block + 1) * BLOCK);
        let time = self.times[block * BLOCK..end].iter().copied().min().unwrap_or(Time::NEVER);
        self.earliest[block].set(Some(time));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_found_after_any_change() {
        let mut finishes = Finishes::default();
        assert_eq!(finishes.earliest(), None);
        let mut naive = [Time::NEVER; 200];
        let mut state = 1_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (flow, draw) = ((state >> 33) % 200, (state >> 50) % 64);
            naive[flow as usize] = if draw == 0 { Time::NEVER } else { Time(draw) };
            finishes.set(flow as u32, naive[flow as usize]);
            let expected = naive.iter().zip(0..).min().filter(|(time, _)| **time < Time::NEVER);
            assert_eq!(finishes.earliest(), expected.map(|(time, flow)| (*time, flow)));
        }
    }
}
