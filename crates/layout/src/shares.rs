//! What each server has of an access to a striped file: how much, in how many pieces.
//!
//! The access is gone through once for all servers, from the root of its tree down. Whatever lies in one strip is one step, and so
//! is a row of copies that meets the strips alike again and again.

use std::ops::Range;
use std::sync::Arc;

use crate::layout::{Kind, Layout, Shape};
use crate::striping::{Striping, gcd};
use crate::view::View;

/// What a server has of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Offset in the file of its first byte; 0 if it has none.
    pub first: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// How many pieces they are in: those of the access ([`Layout::pieces`]), cut where another server's strip begins.
    pub pieces: u64,
}

impl Striping {
    /// What each server has of the data bytes `positions` of `view`, by server. The view's limit cuts them.
    pub fn shares(&self, view: &View, positions: Range<u64>) -> Vec<Share> {
        let end = positions.end.min(view.limit());
        // Cut to the limit, nothing is left to fail.
        let layout = view.layout_of(positions.start..end).unwrap_or_else(|_| Layout::empty());
        let mut dealing = Dealing { striping: *self, shares: vec![Share::default(); self.factor as usize] };
        if !layout.is_empty() {
            dealing.deal(&layout, 1);
        }
        dealing.shares
    }
}

struct Dealing {
    striping: Striping,
    shares: Vec<Share>,
}

impl Dealing {
    /// Deals out a layout that is not empty, and as many of its like that meet the strips alike further on.
    fn deal(&mut self, layout: &Layout, times: u64) {
        let (from, to) = (layout.lower_bound() as u64, layout.upper_bound() as u64);
        let unit = self.striping.unit;
        let strips = (to - 1) / unit - from / unit + 1;
        if strips == 1 || self.striping.factor == 1 {
            return self.add(from, layout.size(), layout.shape.pieces, times);
        }
        let Layout { offset, shape } = layout;
        let children = match &shape.kind {
            Kind::Block => return self.deal_block(from..to, times),
            Kind::Strided { count, stride, inner } => {
                let stripe = i128::from(self.striping.stripe());
                let period = (stripe / gcd(stripe, i128::from(*stride))) as u64;
                if *count / 2 >= period {
                    let whole = count / period;
                    let size = period * inner.size;
                    self.deal(&layout.slice(0..size), times * whole);
                    let rest = layout.slice(whole * size..layout.size());
                    if !rest.is_empty() {
                        self.deal(&rest, times);
                    }
                    return;
                }
                *count
            }
            _ => shape.children(),
        };
        if strips <= children {
            return self.deal_by_strip(layout, times);
        }
        match &shape.kind {
            Kind::Block => self.deal_block(from..to, times),
            Kind::Strided { count, stride, inner } => {
                (0..*count as i64).for_each(|index| self.deal_at(offset + index * stride, inner, times));
            }
            Kind::Indexed { displacements, inner } => {
                displacements
                    .iter()
                    .for_each(|displacement| self.deal_at(offset + displacement, inner, times));
            }
            Kind::Blocks { blocks, .. } => {
                for (displacement, len) in blocks {
                    let start = (offset + displacement) as u64;
                    self.deal_block(start..start + len, times);
                }
            }
            Kind::Sequence { parts, .. } => {
                parts.iter().for_each(|part| self.deal_at(offset + part.offset, &part.shape, times));
            }
        }
    }

    fn deal_at(&mut self, offset: i64, shape: &Arc<Shape>, times: u64) {
        self.deal(&Layout { offset, shape: shape.clone() }, times);
    }

    /// A block: the strips at its ends, and between them round after round over all servers.
    fn deal_block(&mut self, block: Range<u64>, times: u64) {
        let Striping { unit, factor, .. } = self.striping;
        let inner = block.start.next_multiple_of(unit)..block.end - block.end % unit;
        let rounds = if inner.is_empty() { 0 } else { (inner.end - inner.start) / unit / u64::from(factor) };
        let behind = inner.start + rounds * self.striping.stripe();
        if rounds > 0 {
            for strip in self.striping.strips(inner.start..inner.start + self.striping.stripe()) {
                self.add(strip.offset, unit, 1, rounds * times);
            }
            self.deal_strips(block.start..inner.start, times);
            self.deal_strips(behind..block.end, times);
        } else {
            self.deal_strips(block, times);
        }
    }

    fn deal_strips(&mut self, block: Range<u64>, times: u64) {
        for strip in self.striping.strips(block) {
            self.add(strip.offset, strip.len, 1, times);
        }
    }

    /// Strip after strip, jumping over those that hold nothing.
    fn deal_by_strip(&mut self, layout: &Layout, times: u64) {
        let mut position = 0;
        while let Some(offset) = layout.offset_of(position) {
            let offset = offset as u64;
            let strip_end = offset - offset % self.striping.unit + self.striping.unit;
            // Onward in any case, even if a caller breaks the promise of order.
            let next = layout.position_at_or_after(strip_end.min(i64::MAX as u64) as i64).max(position + 1);
            self.add(offset, next - position, layout.pieces(position..next), times);
            position = next;
        }
    }

    fn add(&mut self, first: u64, bytes: u64, pieces: u64, times: u64) {
        let share = &mut self.shares[self.striping.server_of(first) as usize];
        share.first = if share.bytes == 0 { first } else { share.first.min(first) };
        share.bytes += bytes * times;
        share.pieces = share.pieces.saturating_add(pieces.saturating_mul(times));
    }
}
