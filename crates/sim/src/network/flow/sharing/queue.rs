//! Channels, by their slots, by the level at which they are to be looked at.

/// A rate, which is no number below 0 and no NaN: its bits are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u64);

/// A heap in which every channel is once at most and can be moved, as levels change far more often than channels are
/// looked at. Four entries below each: less deep, and together in memory.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: Vec<(Level, u32)>,
    /// By channel: where it is in the heap.
    places: Vec<u32>,
}

const WAYS: usize = 4;
const NOWHERE: u32 = u32::MAX;

impl Level {
    /// Higher than any rate.
    pub(super) const NEVER: Level = Level(u64::MAX);

    pub(super) fn of(rate: f64) -> Level {
        Level(rate.to_bits())
    }

    pub(super) fn rate(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl Queue {
    /// The lowest level, and a channel that has it: which of several follows from what was done before.
    pub(super) fn first(&self) -> Option<(Level, u32)> {
        self.heap.first().copied()
    }

    /// Puts in or moves a channel.
    pub(super) fn set(&mut self, channel: u32, level: Level) {
        if channel as usize >= self.places.len() {
            self.places.resize(channel as usize + 1, NOWHERE);
        }
        let place = self.places[channel as usize] as usize;
        match self.heap.get(place) {
            Some((before, _)) if *before < level => self.sink(place, (level, channel)),
            Some(_) => self.rise(place, (level, channel)),
            None => {
                self.heap.push((level, channel));
                self.rise(self.heap.len() - 1, (level, channel));
            }
        }
    }

    /// Takes out the first channel.
    pub(super) fn remove_first(&mut self) {
        let Some((_, channel)) = self.first() else { return };
        self.places[channel as usize] = NOWHERE;
        let last = self.heap.pop();
        if let Some(last) = last.filter(|_| !self.heap.is_empty()) {
            self.sink(0, last);
        }
    }

    /// Keeps those channels that have a level. From then on, of several that have the same the one of the lowest `number` is
    /// before the others.
    pub(super) fn keep(&mut self, mut level: impl FnMut(u32) -> Level, number: impl Fn(u32) -> u32) {
        for (_, channel) in &self.heap {
            self.places[*channel as usize] = NOWHERE;
        }
        let mut entries = std::mem::take(&mut self.heap);
        entries.retain_mut(|(before, channel)| {
            *before = level(*channel);
            *before != Level::NEVER
        });
        // In order, they are a heap.
        entries.sort_unstable_by_key(|(level, channel)| (*level, number(*channel)));
        for (place, (_, channel)) in entries.iter().enumerate() {
            self.places[*channel as usize] = place as u32;
        }
        self.heap = entries;
    }

    /// Lets an entry rise from a place that is free for it.
    fn rise(&mut self, mut place: usize, entry: (Level, u32)) {
        while place > 0 {
            let above = (place - 1) / WAYS;
            if self.heap[above].0 <= entry.0 {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, entry);
    }

    /// Lets an entry sink from a place that is free for it.
    fn sink(&mut self, mut place: usize, entry: (Level, u32)) {
        loop {
            let first = place * WAYS + 1;
            let end = self.heap.len().min(first + WAYS);
            let Some(below) = self.heap.get(first..end) else { break };
            let mut least = entry;
            let mut at = place;
            for (number, found) in below.iter().enumerate() {
                if found.0 < least.0 {
                    (least, at) = (*found, first + number);
                }
            }
            if at == place {
                break;
            }
            self.put(place, least);
            place = at;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Level, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_is_first_after_any_change() {
        let mut queue = Queue::default();
        let mut naive = std::collections::BTreeMap::new();
        let mut state = 1_u64;
        for _ in 0..3000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (channel, rate) = ((state >> 33) as u32 % 50, (state >> 50) % 20);
            if state >> 63 == 0 {
                queue.set(channel, Level::of(rate as f64));
                naive.insert(channel, rate);
            } else {
                let found = queue.first().map(|(level, channel)| (level.rate() as u64, channel));
                assert_eq!(found.map(|(rate, _)| rate), naive.values().min().copied());
                queue.remove_first();
                assert_eq!(
                    found.and_then(|(_, channel)| naive.remove(&channel)),
                    found.map(|(rate, _)| rate)
                );
            }
        }
    }
}
