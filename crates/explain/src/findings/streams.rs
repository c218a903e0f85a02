//! In what order one handle's requests come.

use pio_trace::ViewId;

/// Streams that are told apart: threads that share a handle, or one that goes through several arrays by turns.
const STREAMS: usize = 4;

/// How a request follows the earlier ones of its handle and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing to compare with.
    First,
    /// It begins where one of the latest streams ended.
    Sequential,
    /// It is as far from the one before as that one was from its own.
    Strided,
    /// None of these.
    Random,
}

/// The latest requests of a handle in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Streams {
    view: Option<ViewId>,
    /// Ends of the latest streams; `used` of them.
    ends: [u64; STREAMS],
    used: u8,
    /// The one to give up next.
    oldest: u8,
    start: u64,
    step: i64,
}

impl Streams {
    /// Takes note of a request, in the numbering of `view` (none: bytes of the file).
    pub(crate) fn follow(&mut self, view: Option<ViewId>, start: u64, length: u64) -> Order {
        let end = start.saturating_add(length);
        if self.used == 0 || self.view != view {
            *self = Streams { view, used: 1, oldest: 1, start, ..Streams::default() };
            self.ends[0] = end;
            return Order::First;
        }
        let step = start.wrapping_sub(self.start) as i64;
        let repeated = step == self.step;
        self.start = start;
        self.step = step;
        let known = &mut self.ends[..usize::from(self.used)];
        if let Some(stream) = known.iter_mut().find(|stream| **stream == start) {
            *stream = end;
            return Order::Sequential;
        }
        self.ends[usize::from(self.oldest)] = end;
        self.used = self.used.max(self.oldest + 1);
        self.oldest = (self.oldest + 1) % STREAMS as u8;
        if repeated { Order::Strided } else { Order::Random }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(requests: &[(u64, u64)]) -> Vec<Order> {
        let mut streams = Streams::default();
        requests.iter().map(|&(start, length)| streams.follow(None, start, length)).collect()
    }

    #[test]
    fn four_streams_by_turns_are_sequential() {
        let requests: Vec<_> = (0..40).map(|index| (index % 4 * 1000 + index / 4 * 10, 10)).collect();
        assert!(orders(&requests)[4..].iter().all(|order| *order == Order::Sequential));
    }

    #[test]
    fn strides_and_jumps() {
        use Order::*;
        assert_eq!(orders(&[(0, 8), (100, 8), (200, 8), (300, 8)]), [First, Random, Strided, Strided]);
        assert_eq!(orders(&[(50, 8), (7, 8), (90, 8), (31, 8)]), [First, Random, Random, Random]);
    }

    #[test]
    fn a_new_view_starts_anew() {
        let mut streams = Streams::default();
        streams.follow(None, 0, 8);
        assert_eq!(streams.follow(Some(ViewId(1)), 8, 8), Order::First);
    }
}
