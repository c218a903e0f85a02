//! Where the bytes of a file are: a striping, and the server that it begins at.
//!
//! Both sides walk an access strip by strip. A view is monotone, so the data bytes in one strip are one range of
//! positions: the client sends ranges of its memory, and the server turns the same range into offsets of its own part.
//! Neither ever keeps a list of all strips.

use std::ops::Range;

use pio_layout::{Run, Striping, View};

use crate::error::ProtocolError;
use crate::request::Name;
use crate::wire::{Input, put};

/// How a file is dealt out to the servers of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Strips of so many bytes over so many servers, the first strip on slot 0.
    striping: Striping,
    /// The server that is slot 0; the others follow, round the store.
    base: u32,
    /// Servers of the store.
    servers: u32,
}

impl Placement {
    /// Strips of `unit` bytes on `factor` of the store's `servers`, beginning with server `base`; `None` if there are no
    /// such strips or servers.
    pub fn new(unit: u64, factor: u32, base: u32, servers: u32) -> Option<Placement> {
        if factor > servers || base >= servers {
            return None;
        }
        Some(Placement { striping: Striping::new(unit, factor, 0).ok()?, base, servers })
    }

    /// Where a store of so many servers puts a new file: in strips of `unit` bytes over `factor` of them, or all if that is
    /// 0 or more than there are, beginning with the server that owns its name. `None` if there are no such strips.
    pub fn of_new_file(name: &Name, unit: u64, factor: u32, servers: u32) -> Option<Placement> {
        let factor = if factor == 0 { servers } else { factor.min(servers) };
        Placement::new(unit, factor, owner_of(name.as_str(), servers), servers)
    }

    /// Bytes of a strip, and over how many servers they go.
    pub fn striping(&self) -> Striping {
        self.striping
    }

    /// The server that is slot 0.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Servers of the store.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// The server of a slot of the stripe.
    pub fn server_of_slot(&self, slot: u32) -> u32 {
        ((u64::from(self.base) + u64::from(slot)) % u64::from(self.servers)) as u32
    }

    /// The slot of the stripe that a server has, if any.
    pub fn slot_of_server(&self, server: u32) -> Option<u32> {
        if server >= self.servers {
            return None;
        }
        let slot = (u64::from(server) + u64::from(self.servers - self.base)) % u64::from(self.servers);
        (slot < u64::from(self.striping.factor)).then_some(slot as u32)
    }

    /// The servers that have a part of the file, ascending.
    pub fn servers_with_a_part(&self) -> Vec<u32> {
        (0..self.servers).filter(|server| self.slot_of_server(*server).is_some()).collect()
    }

    /// The servers that have some of the data of an access, ascending; all of the file's if that takes long to find out.
    pub fn servers_touched(&self, view: &View, positions: &Range<u64>) -> Vec<u32> {
        let all = self.servers_with_a_part();
        let mut touched = Vec::new();
        let mut shares = self.shares(view, positions.clone());
        for _ in 0..4 * all.len() {
            let Some(share) = shares.next() else {
                touched.sort_unstable();
                touched.dedup();
                return touched;
            };
            touched.push(self.server_of_slot(share.slot));
        }
        all
    }

    /// Bytes of a file whose parts have these slots and bytes.
    pub fn size(&self, lengths: &[(u32, u64)]) -> u64 {
        lengths.iter().map(|(slot, len)| self.file_len(*slot, *len)).max().unwrap_or(0)
    }

    /// Bytes of the file up to the end of a part of `len` bytes of slot `slot`: 0 if the part is empty.
    pub fn file_len(&self, slot: u32, len: u64) -> u64 {
        match len.checked_sub(1) {
            None => 0,
            Some(last) => self
                .striping
                .file_offset(slot, last)
                .map_or(i64::MAX as u64, |offset| offset.saturating_add(1)),
        }
    }

    /// The part of an access that is slot `slot`'s, strip by strip.
    pub fn strips_of(&self, slot: u32, view: &View, positions: Range<u64>) -> SlotStrips {
        let end = positions.end.min(view.limit());
        SlotStrips {
            striping: self.striping,
            slot,
            view: view.clone(),
            positions: positions.start.min(end)..end,
            steps: 0,
            most_steps: u64::MAX,
        }
    }

    /// The part of an access that is each slot's, strip by strip, in file order.
    pub fn shares(&self, view: &View, positions: Range<u64>) -> Shares {
        let end = positions.end.min(view.limit());
        Shares { striping: self.striping, view: view.clone(), positions: positions.start.min(end)..end }
    }

    /// Appends the placement's bytes: strip, factor, base, servers.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.striping.unit);
        put(out, u64::from(self.striping.factor));
        put(out, u64::from(self.base));
        put(out, u64::from(self.servers));
    }

    /// The placement that comes next.
    ///
    /// # Errors
    /// If there is none.
    pub fn decode(input: &mut Input) -> Result<Placement, ProtocolError> {
        let unit = input.number("a strip")?;
        let factor = input.small("a number of servers")?;
        let base = input.small("a server")?;
        let servers = input.small("a number of servers")?;
        Placement::new(unit, factor, base, servers)
            .ok_or(ProtocolError::Malformed { expected: "a placement" })
    }
}

/// The bytes of an access that lie in one strip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The slot of the stripe whose strip it is.
    pub slot: u32,
    /// Which data bytes of the view.
    pub positions: Range<u64>,
}

/// Iterator over all strips of an access: see [`Placement::shares`].
#[derive(Clone, Debug)]
pub struct Shares {
    striping: Striping,
    view: View,
    positions: Range<u64>,
}

impl Iterator for Shares {
    type Item = Share;

    fn next(&mut self) -> Option<Share> {
        if self.positions.is_empty() {
            return None;
        }
        let offset = self.view.offset_of(self.positions.start)?;
        let slot = self.striping.server_of(offset);
        let end = end_in_strip(&self.striping, &self.view, &self.positions, offset);
        let positions = self.positions.start..end;
        self.positions.start = end;
        Some(Share { slot, positions })
    }
}

/// A strip's data bytes, and where the strip is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripShare {
    /// Which data bytes of the view.
    pub positions: Range<u64>,
    /// Offset in the file of the first of them.
    pub file_offset: u64,
    /// Offset in the slot's part of the file of the first of them.
    pub part_offset: u64,
}

/// Iterator over one slot's strips of an access: see [`Placement::strips_of`].
#[derive(Clone, Debug)]
pub struct SlotStrips {
    striping: Striping,
    slot: u32,
    view: View,
    positions: Range<u64>,
    steps: u64,
    most_steps: u64,
}

impl SlotStrips {
    /// The same, up to the strip that is looked at after `most_steps` others: what a walk may cost.
    pub fn within(self, most_steps: u64) -> SlotStrips {
        SlotStrips { most_steps, ..self }
    }

    /// Strips looked at so far, of this slot or another: what the walk has cost.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The strided runs of a strip's data bytes, at offsets of the slot's part.
    pub fn runs(&self, strip: &StripShare) -> StripRuns {
        let len = strip.positions.end - strip.positions.start;
        let by = strip.part_offset as i64 - strip.file_offset as i64;
        let last = self.view.offset_of(strip.positions.end - 1);
        if last.is_some_and(|last| last - strip.file_offset == len - 1) {
            let run = Run { offset: strip.part_offset as i64, len, stride: 0, count: 1 };
            return StripRuns { dense: Some(run), runs: None, by };
        }
        StripRuns { dense: None, runs: Some(self.view.runs(strip.positions.clone())), by }
    }
}

impl Iterator for SlotStrips {
    type Item = StripShare;

    fn next(&mut self) -> Option<StripShare> {
        while !self.positions.is_empty() && self.steps <= self.most_steps {
            self.steps += 1;
            let offset = self.view.offset_of(self.positions.start)?;
            if self.striping.server_of(offset) == self.slot {
                let end = end_in_strip(&self.striping, &self.view, &self.positions, offset);
                let positions = self.positions.start..end;
                self.positions.start = end;
                let part_offset = self.striping.server_offset(offset);
                return Some(StripShare { positions, file_offset: offset, part_offset });
            }
            // On to the slot's next strip.
            let start = next_strip(&self.striping, self.slot, offset)?;
            self.positions.start = self.view.position_at_or_after(start).max(self.positions.start + 1);
        }
        None
    }
}

/// Iterator over the strided runs in a strip: see [`SlotStrips::runs`].
#[derive(Clone, Debug)]
pub struct StripRuns {
    dense: Option<Run>,
    runs: Option<pio_layout::Runs>,
    by: i64,
}

impl Iterator for StripRuns {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        if let Some(run) = self.dense.take() {
            return Some(run);
        }
        let run = self.runs.as_mut()?.next()?;
        Some(Run { offset: run.offset + self.by, ..run })
    }
}

/// One past the last of `positions` in the strip that holds `offset`, which is that of the first of them.
fn end_in_strip(striping: &Striping, view: &View, positions: &Range<u64>, offset: u64) -> u64 {
    let strip_end = (offset - offset % striping.unit).saturating_add(striping.unit);
    view.position_at_or_after(strip_end).clamp(positions.start + 1, positions.end)
}

/// File offset of the first strip of `slot` that begins behind `offset`; `None` if that is behind the last there is.
fn next_strip(striping: &Striping, slot: u32, offset: u64) -> Option<u64> {
    let stripe = offset / striping.stripe();
    let start =
        |stripe: u64| stripe.checked_mul(striping.stripe())?.checked_add(u64::from(slot) * striping.unit);
    let next = match start(stripe) {
        Some(start) if start > offset => start,
        _ => start(stripe.checked_add(1)?)?,
    };
    (next < i64::MAX as u64).then_some(next)
}

/// The number of a server by the hash of a name (FNV-1a): which server owns it, and where its first strip is.
pub fn owner_of(name: &str, servers: u32) -> u32 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The high half: the low bits of FNV are the weaker ones.
    ((hash >> 32) % u64::from(servers.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_layout::Datatype;
    use proptest::prelude::*;

    fn view(displacement: u64, len: u64, extent: u64) -> View {
        let filetype = Datatype::bytes(len).resized(0, extent as i64).unwrap();
        View::new(displacement, 1, filetype).unwrap()
    }

    proptest! {
        /// Every data byte is in exactly one share, that of the server that has it, at the place where it keeps it.
        #[test]
        fn shares_are_what_single_bytes_say(
            displacement in 0u64..50, len in 1u64..20, gap in 0u64..70, unit in 1u64..40, factor in 1u32..5,
            extra in 0u32..3, base in 0u32..8, start in 0u64..60, count in 0u64..150,
        ) {
            let servers = factor + extra;
            let placement = Placement::new(unit, factor, base % servers, servers).unwrap();
            let (view, positions) = (view(displacement, len, len + gap), start..start + count);
            let striping = placement.striping();
            let mut seen = positions.start;
            for share in placement.shares(&view, positions.clone()) {
                prop_assert_eq!(share.positions.start, seen);
                seen = share.positions.end;
                for position in share.positions {
                    prop_assert_eq!(striping.server_of(view.offset_of(position).unwrap()), share.slot);
                }
            }
            prop_assert_eq!(seen, positions.end);
            for slot in 0..factor {
                let expected: Vec<(u64, u64)> = positions.clone()
                    .map(|position| (position, view.offset_of(position).unwrap()))
                    .filter(|(_, offset)| striping.server_of(*offset) == slot)
                    .map(|(position, offset)| (position, striping.server_offset(offset)))
                    .collect();
                let mut found = Vec::new();
                let mut strips = placement.strips_of(slot, &view, positions.clone());
                while let Some(strip) = strips.next() {
                    let offsets = strips.runs(&strip).flat_map(Run::pieces)
                        .flat_map(|piece| piece.offset..piece.end());
                    found.extend(strip.positions.clone().zip(offsets.map(|offset| offset as u64)));
                }
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn slots_and_servers_belong_together() {
        let placement = Placement::new(10, 3, 4, 5).unwrap();
        assert_eq!([0, 1, 2].map(|slot| placement.server_of_slot(slot)), [4, 0, 1]);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|server| placement.slot_of_server(server)),
            [Some(1), Some(2), None, None, Some(0)]
        );
        assert_eq!(placement.file_len(1, 0), 0);
        assert_eq!(placement.file_len(1, 1), 11);
        assert_eq!(placement.file_len(2, 11), 51);
        assert!(Placement::new(10, 6, 0, 5).is_none());
    }

    #[test]
    fn what_lies_elsewhere_costs_a_step_a_stripe() {
        // All pieces on slot 1: slot 0 finds nothing, and says what that cost.
        let placement = Placement::new(8, 2, 0, 2).unwrap();
        let mut strips = placement.strips_of(0, &view(8, 4, 16), 0..4000);
        assert_eq!(strips.next(), None);
        assert_eq!(strips.steps(), 1000);
        // Nobody walks for years.
        let mut strips = placement.strips_of(0, &view(8, 4, 16), 0..1 << 48).within(500);
        assert_eq!((strips.next(), strips.steps()), (None, 501));
    }
}
