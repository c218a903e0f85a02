//! Round-robin striping: strip after strip of `unit` bytes is dealt to server after server.

use std::ops::Range;

use crate::error::LayoutError;
use crate::layout::{Kind, Layout, Shape};
use crate::view::View;

/// How a file is dealt out to `factor` servers in strips of `unit` bytes; strip 0 is on server `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Striping {
    /// Bytes in a strip.
    pub unit: u64,
    /// Number of servers.
    pub factor: u32,
    /// Server of the first strip.
    pub first: u32,
}

/// A piece of a file on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Strip {
    /// The server it is on.
    pub server: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Offset in the server's own part of the file.
    pub server_offset: u64,
    /// Number of bytes, at most the striping unit.
    pub len: u64,
}

impl Striping {
    /// Strips of `unit` bytes over `factor` servers, starting at server `first`.
    ///
    /// # Errors
    /// If `unit` or `factor` is 0, the stripe is above `i64::MAX` bytes, or there is no server `first`.
    pub fn new(unit: u64, factor: u32, first: u32) -> Result<Striping, LayoutError> {
        let wrong = |what, found, expected| Err(LayoutError::Striping { what, found, expected });
        if factor == 0 {
            return wrong("the factor", 0, "at least 1 server".into());
        }
        let most = i64::MAX as u64 / factor as u64;
        if unit == 0 || unit > most {
            return wrong("the unit", unit, format!("1 to {most} bytes with {factor} servers"));
        }
        if first >= factor {
            return wrong("the first server", first as u64, format!("less than {factor}"));
        }
        Ok(Striping { unit, factor, first })
    }

    /// Bytes in a stripe: one strip on every server.
    pub fn stripe(&self) -> u64 {
        self.unit * self.factor as u64
    }

    /// The server that has the byte at file offset `offset`.
    pub fn server_of(&self, offset: u64) -> u32 {
        let slot = offset / self.unit % self.factor as u64;
        ((slot + self.first as u64) % self.factor as u64) as u32
    }

    /// Where its server keeps the byte at file offset `offset`: the offset in the server's own part.
    pub fn server_offset(&self, offset: u64) -> u64 {
        offset / self.stripe() * self.unit + offset % self.unit
    }

    /// The file offset of byte `server_offset` of a server's own part; `None` if it does not fit 64 bits.
    pub fn file_offset(&self, server: u32, server_offset: u64) -> Option<u64> {
        let stripe = (server_offset / self.unit).checked_mul(self.stripe())?;
        stripe.checked_add(self.slot(server) * self.unit + server_offset % self.unit)
    }

    /// The strips that the interval `file` of file offsets touches, cut to it, in file order.
    pub fn strips(&self, file: Range<u64>) -> Strips {
        Strips { striping: *self, file }
    }

    /// Bytes of a file of `file_len` bytes that `server` has.
    pub fn len_of_server(&self, server: u32, file_len: u64) -> u64 {
        let rest = (file_len % self.stripe()).saturating_sub(self.slot(server) * self.unit).min(self.unit);
        file_len / self.stripe() * self.unit + rest
    }

    /// The file offsets of the bytes of `server`, in the order of its own part.
    ///
    /// A `file_len` above `i64::MAX` is cut to it.
    pub fn layout_of_server(&self, server: u32, file_len: u64) -> Layout {
        let file = Layout::bytes(file_len);
        self.intersect_layout(server, &file)
    }

    /// Those of the `positions` of `view` that lie on `server`, at their file offsets.
    ///
    /// Stays small wherever the view and the striping have a common period: its size is of the order of one period's
    /// strips or pieces, whichever are fewer.
    pub fn intersect(&self, server: u32, view: &View, positions: Range<u64>) -> Layout {
        let end = positions.end.min(view.limit());
        match view.layout_of(positions.start..end) {
            Ok(layout) => self.intersect_layout(server, &layout),
            // Cut to the limit, nothing is left to fail.
            Err(_) => Layout::empty(),
        }
    }

    /// Those bytes of `layout` that lie on `server`. `layout` must be monotone, from file offset 0 on.
    pub fn intersect_layout(&self, server: u32, layout: &Layout) -> Layout {
        let mut parts = Vec::new();
        let dealt = Dealt {
            unit: self.unit as i128,
            stripe: self.stripe() as i128,
            start: (self.slot(server) * self.unit) as i128,
        };
        dealt.intersect(layout, &mut parts);
        let parts = parts.into_iter().map(|part| (0, part)).collect();
        // Bytes of a layout that fits, and never nested deeper than the limit: see `Dealt::repeat`.
        Layout::sequence(parts).unwrap_or_else(|_| Layout::empty())
    }

    /// Data bytes of the `positions` of `view` on each server.
    pub fn bytes_per_server(&self, view: &View, positions: Range<u64>) -> Vec<u64> {
        (0..self.factor).map(|server| self.intersect(server, view, positions.clone()).size()).collect()
    }

    /// Which strip of a stripe the server has.
    fn slot(&self, server: u32) -> u64 {
        (server as u64 + self.factor as u64 - self.first as u64) % self.factor as u64
    }
}

/// Iterator over strips: see [`Striping::strips`].
#[derive(Debug, Clone)]
pub struct Strips {
    striping: Striping,
    file: Range<u64>,
}

impl Iterator for Strips {
    type Item = Strip;

    fn next(&mut self) -> Option<Strip> {
        if self.file.is_empty() {
            return None;
        }
        let offset = self.file.start;
        let len = (self.striping.unit - offset % self.striping.unit).min(self.file.end - offset);
        self.file.start += len;
        Some(Strip {
            server: self.striping.server_of(offset),
            offset,
            server_offset: self.striping.server_offset(offset),
            len,
        })
    }
}

/// One server's strips: `unit` bytes at `start`, `start + stripe`, … In 128 bits, as ends may pass 63.
struct Dealt {
    unit: i128,
    stripe: i128,
    start: i128,
}

impl Dealt {
    /// Appends what `layout` and the strips have in common, in order.
    fn intersect(&self, layout: &Layout, parts: &mut Vec<Layout>) {
        if layout.is_empty() {
            return;
        }
        let strips = self.strips_between(layout.lower_bound(), layout.upper_bound());
        match strips {
            0 => return,
            1 => return self.by_strip(layout, parts),
            _ => {}
        }
        let Layout { offset, shape } = layout;
        match &shape.kind {
            Kind::Block => self.repeat(layout, strips, parts),
            Kind::Strided { count, stride, inner } => {
                let period = self.stripe / gcd(self.stripe, *stride as i128);
                if (*count as i128) < 2 * period {
                    if strips <= *count as i128 {
                        return self.by_strip(layout, parts);
                    }
                    for index in 0..*count as i64 {
                        self.intersect(&at(offset + index * stride, inner), parts);
                    }
                    return;
                }
                let period = period as u64;
                let whole = count / period;
                let first = layout.slice(0..period * inner.size);
                let mut one = Vec::new();
                self.intersect(&first, &mut one);
                let distance = period as i64 * stride;
                let one = Layout::sequence(one.into_iter().map(|part| (0, part)).collect());
                match one.and_then(|one| Layout::strided(whole, distance, one)) {
                    Ok(all) if all.is_empty() => {}
                    Ok(all) => parts.push(all),
                    Err(_) => return self.by_strip(layout, parts),
                }
                self.intersect(&layout.slice(whole * period * inner.size..layout.size()), parts);
            }
            Kind::Indexed { displacements, inner } => {
                if strips <= displacements.len() as i128 {
                    return self.by_strip(layout, parts);
                }
                for displacement in displacements {
                    self.intersect(&at(offset + displacement, inner), parts);
                }
            }
            Kind::Blocks { blocks, .. } => {
                if strips <= blocks.len() as i128 {
                    return self.by_strip(layout, parts);
                }
                for &(displacement, len) in blocks {
                    self.intersect(&at(offset + displacement, &Shape::block(len)), parts);
                }
            }
            Kind::Sequence { parts: inner, .. } => {
                if strips <= inner.len() as i128 {
                    return self.by_strip(layout, parts);
                }
                for part in inner {
                    self.intersect(&at(offset + part.offset, &part.shape), parts);
                }
            }
        }
    }

    /// A block over several strips: a cut strip, whole ones at the distance of a stripe, a cut one.
    fn repeat(&self, block: &Layout, strips: i128, parts: &mut Vec<Layout>) {
        let first = self.strip_ending_after(block.lower_bound() as i128);
        let strip = |index: i128| {
            let start = self.start + (first + index) * self.stripe;
            self.clip(block, start)
        };
        let (head, tail) = (strip(0), strip(strips - 1));
        parts.push(head);
        if strips > 2 {
            let middle = strip(1);
            let offset = middle.offset;
            match Layout::strided(strips as u64 - 2, self.stripe as i64, at(0, &middle.shape)) {
                Ok(all) => parts.push(at(offset, &all.shape)),
                Err(_) => return self.by_strip(block, parts),
            }
        }
        parts.push(tail);
    }

    /// Strip after strip, jumping over those that hold nothing.
    fn by_strip(&self, layout: &Layout, parts: &mut Vec<Layout>) {
        let mut position = 0;
        while let Some(offset) = layout.offset_of(position) {
            let index = self.strip_ending_after(offset as i128);
            let start = self.start + index * self.stripe;
            let part = self.clip(layout, start);
            if !part.is_empty() {
                parts.push(part);
            }
            position = layout.position_at_or_after(clamp(start + self.unit));
        }
    }

    fn clip(&self, layout: &Layout, start: i128) -> Layout {
        layout.clip(clamp(start), clamp(start + self.unit))
    }

    /// Index of the first strip that ends after `offset`.
    fn strip_ending_after(&self, offset: i128) -> i128 {
        (offset - self.start - self.unit).div_euclid(self.stripe) + 1
    }

    /// Number of strips that have a byte in the interval.
    fn strips_between(&self, from: i64, to: i64) -> i128 {
        let end = (to as i128 - 1 - self.start).div_euclid(self.stripe) + 1;
        (end - self.strip_ending_after(from as i128)).max(0)
    }
}

fn at(offset: i64, shape: &std::sync::Arc<Shape>) -> Layout {
    Layout { offset, shape: shape.clone() }
}

fn clamp(offset: i128) -> i64 {
    offset.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

pub(crate) fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
