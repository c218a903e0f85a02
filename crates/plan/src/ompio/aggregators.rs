//! How many ranks aggregate under OMPIO, and which.
//!
//! By a model of the communication (Jha and Gabriel 2017): the number is raised step by step as long as that pays, to one rank
//! in eight at most. The ranks are the first of groups of equal size.

use pio_layout::View;

use crate::access::{Access, Rank};

/// `max_aggregators_ratio`, and `aggregators_cutoff_threshold` as a part.
const RANKS_OF_AN_AGGREGATOR: u32 = 8;
const LEAST_RELATIVE_GAIN: f64 = 0.03;
/// Seconds.
const LEAST_GAIN: f64 = 0.001;

/// What a view shows at a time without being set, and so one without gaps here.
const WHOLE_BYTES: u64 = 4 << 20;

/// What a view shows: bytes of a tile, and of a piece of it in the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) tile: u64,
    pub(super) piece: u64,
}

impl Shown {
    pub(super) fn of(view: &View) -> Shown {
        if view.is_contiguous_over(0..u64::MAX) {
            return Shown { tile: WHOLE_BYTES, piece: WHOLE_BYTES };
        }
        let tile = Access { view: view.clone(), positions: 0..view.filetype().size() };
        Shown { tile: tile.bytes(), piece: tile.bytes() / tile.pieces().max(1) }
    }
}

/// The ranks that aggregate: as many as `cb_nodes` says, else as the model does for what the views show in the mean.
pub(super) fn aggregators(cb_nodes: Option<u32>, shown: Shown, ranks: u32, bytes: u64) -> Vec<Rank> {
    let chosen = || by_model(shown, ranks, bytes).min(ranks / RANKS_OF_AN_AGGREGATOR);
    let count = cb_nodes.map_or_else(chosen, |count| count.min(ranks)).max(1);
    let (size, larger) = (ranks / count, ranks % count);
    (0..count).map(|group| Rank(group * size + group.min(larger))).collect()
}

fn by_model(shown: Shown, ranks: u32, bytes: u64) -> u32 {
    let step = match ranks {
        0..16 => 2,
        16..128 => 4,
        128..4096 => 16,
        _ => 32,
    };
    let (chunk, is_one_piece) = (shown.piece, shown.piece == shown.tile);
    let seconds = |count| communication_s(ranks, count, chunk as f64, bytes as f64, is_one_piece);
    let (mut best, mut before, mut gain_before) = (1, seconds(1), None);
    let mut count = step;
    while count <= ranks {
        let now = seconds(count);
        let gain = (before - now) / before;
        let difference = gain_before.map_or(gain, |gain_before: f64| gain_before - gain);
        if difference < LEAST_RELATIVE_GAIN || before - now < LEAST_GAIN {
            break;
        }
        (best, before, gain_before) = (count, now, Some(gain));
        count += step;
    }
    best
}

/// Seconds of communication, with so many ranks and aggregators, bytes of a rank and of a buffer: LogGP, with the constants
/// of an InfiniBand network that Open MPI has.
fn communication_s(ranks: u32, aggregators: u32, data: f64, buffer: f64, is_one_piece: bool) -> f64 {
    let (latency, overhead, per_byte) = (1.84e-6, 1.49e-6, 6.7e-10);
    let (ranks, aggregators) = (f64::from(ranks), f64::from(aggregators));
    let rounds = (ranks * data / aggregators).floor() / buffer;
    let side = ranks.sqrt().floor();
    let (sends, receives, message) = if !is_one_piece {
        let message = if data > (aggregators * buffer / ranks).floor() {
            (buffer / side).min(data)
        } else {
            (data * side / aggregators).min(data)
        };
        (aggregators / side, side, message)
    } else if data > buffer {
        (1.0, 1.0, buffer)
    } else {
        (1.0, buffer / data.max(1.0), data)
    };
    let gap = if message < 33_554_432.0 { 1.08e-6 } else { 1.19e-5 };
    let batches = data / (sends * message).max(1.0);
    let time =
        |count: f64| latency + 2.0 * overhead + (count - 1.0) * gap + (message - 1.0) * count * per_byte;
    batches * time(sends) + rounds * time(receives)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(ranks: u32, cb_nodes: Option<u32>) -> Vec<u32> {
        let found = aggregators(cb_nodes, Shown::of(&View::contiguous(0)), ranks, 32 << 20);
        found.into_iter().map(|rank| rank.0).collect()
    }

    #[test]
    fn few_ranks_have_one_aggregator() {
        for ranks in 1..16 {
            assert_eq!(chosen(ranks, None), [0]);
        }
    }

    #[test]
    fn groups_are_of_equal_size() {
        assert_eq!(chosen(8, Some(2)), [0, 4]);
        assert_eq!(chosen(7, Some(3)), [0, 3, 5]);
        assert_eq!(chosen(4, Some(9)), [0, 1, 2, 3]);
    }
}
