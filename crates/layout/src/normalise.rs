//! The constructors that combine layouts, and the normal form they establish.
//!
//! | given | becomes |
//! |---|---|
//! | count 0, nothing inside | empty |
//! | count 1, a list of one | the part itself |
//! | strided, stride = length of the dense inside | one block |
//! | strided of strided that continues | one strided |
//! | a list of equal parts | indexed |
//! | indexed at equal distances | strided |
//! | indexed in equal groups at equal distances | indexed of strided |
//! | adjacent blocks, a strided and its next piece | joined |
//! | a sequence inside a sequence | flattened |
//!
//! Each rule leaves fewer nodes or list entries than it found, and building a layout again from its own parts
//! changes nothing.

use std::sync::Arc;

use crate::error::{LayoutError, overflow};
use crate::layout::{Kind, Layout, Shape};

/// Inside this depth only, lists are searched for groups: each group adds a level.
const GROUPING_DEPTH: usize = 16;

/// Among so many parts before it, the shape of a part of a list is looked for.
const LOOKED_BACK: usize = 8;

/// Up to this depth only, parts of a list that continue each other are joined: a strided one of blocks.
const JOINING_DEPTH: usize = 1;

impl Layout {
    /// `count` copies of `inner`, the k-th moved by k × `stride` bytes.
    ///
    /// # Errors
    /// If an offset, the span or the size does not fit 63 bits, or nesting passes [`MAX_DEPTH`](crate::MAX_DEPTH).
    pub fn strided(count: u64, stride: i64, inner: Layout) -> Result<Layout, LayoutError> {
        if count == 0 || inner.is_empty() {
            return Ok(Layout::empty());
        }
        Layout::placed(inner.offset, strided(count, stride, &inner.shape)?)
    }

    /// A copy of `inner` at each of `displacements`, in this order.
    ///
    /// # Errors
    /// As [`Layout::strided`].
    pub fn indexed(displacements: Vec<i64>, inner: Layout) -> Result<Layout, LayoutError> {
        if displacements.is_empty() || inner.is_empty() {
            return Ok(Layout::empty());
        }
        indexed(displacements, &inner.shape)?.shifted(inner.offset)
    }

    /// The given blocks of bytes (offset, len), in this order.
    ///
    /// # Errors
    /// As [`Layout::strided`].
    pub fn blocks(blocks: Vec<(i64, u64)>) -> Result<Layout, LayoutError> {
        let mut joined: Vec<(i64, u64)> = blocks;
        let mut kept = 0;
        for index in 0..joined.len() {
            let (offset, len) = joined[index];
            let Some(end) = i64::try_from(len).ok().and_then(|len| offset.checked_add(len)) else {
                return overflow("the end of a block");
            };
            if len == 0 {
                continue;
            }
            if kept > 0 {
                let (last_offset, last_len) = &mut joined[kept - 1];
                if *last_offset as i128 + *last_len as i128 == offset as i128 {
                    // Both ends fit, but from a negative to a positive offset the length may not.
                    let Some(sum) = end.checked_sub(*last_offset) else { return overflow("the span") };
                    *last_len = sum as u64;
                    continue;
                }
            }
            joined[kept] = (offset, len);
            kept += 1;
        }
        joined.truncate(kept);
        list_of_blocks(joined)
    }

    /// The given layouts, each moved by its displacement, one after the other.
    ///
    /// # Errors
    /// As [`Layout::strided`].
    pub fn sequence(parts: Vec<(i64, Layout)>) -> Result<Layout, LayoutError> {
        let mut flat = Vec::with_capacity(parts.len());
        for (displacement, part) in parts {
            push(&mut flat, part.shifted(displacement)?)?;
        }
        list(flat)
    }
}

fn strided(count: u64, stride: i64, inner: &Arc<Shape>) -> Result<Arc<Shape>, LayoutError> {
    if count == 1 {
        return Ok(inner.clone());
    }
    let size = count as i128 * inner.size as i128;
    match &inner.kind {
        Kind::Block if stride == inner.size as i64 => {
            return if size <= i64::MAX as i128 {
                Ok(Shape::block(size as u64))
            } else {
                overflow("the size")
            };
        }
        Kind::Strided { count: inner_count, stride: inner_stride, inner: innermost }
            if *inner_count as i128 * *inner_stride as i128 == stride as i128 =>
        {
            return match count.checked_mul(*inner_count) {
                Some(count) => strided(count, *inner_stride, innermost),
                None => overflow("the size"),
            };
        }
        _ => {}
    }
    // |stride| < 2^63 and count < 2^64: the product fits 128 bits.
    let far = (count - 1) as i128 * stride as i128;
    Shape::checked(
        Kind::Strided { count, stride, inner: inner.clone() },
        size,
        far.min(0) + inner.lower as i128,
        far.max(0) + inner.upper as i128,
        inner.depth + 1,
        inner.monotone && stride >= inner.upper,
    )
}

/// `displacements` and `inner` must not be empty.
fn indexed(mut displacements: Vec<i64>, inner: &Arc<Shape>) -> Result<Layout, LayoutError> {
    let Some((base, distance, even)) = relative(&mut displacements) else {
        return overflow("the distance of two displacements");
    };
    if even {
        return Layout::placed(base, strided(displacements.len() as u64, distance, inner)?);
    }
    let continues = match &inner.kind {
        Kind::Block => inner.size as i128,
        // What lies inside a joined part must be there once for each of them: deep nests would grow with every level.
        Kind::Strided { count, stride, .. } if inner.depth <= JOINING_DEPTH => {
            *count as i128 * *stride as i128
        }
        // A part of any other kind is never continued by its like.
        _ => i128::MAX,
    };
    if displacements.windows(2).any(|pair| pair[1] as i128 - pair[0] as i128 == continues) {
        let count = displacements.len();
        let mut parts = Vec::with_capacity(count);
        for displacement in displacements {
            push(&mut parts, Layout::placed(displacement, inner.clone())?)?;
        }
        // Neighbours that continue each other are only not joined if what they span is too much; so is the whole, then.
        if parts.len() == count {
            return overflow("the span");
        }
        return list(parts)?.shifted(base);
    }
    if let Some(group) = group_len(&displacements, distance).filter(|_| inner.depth < GROUPING_DEPTH) {
        let firsts = displacements.iter().copied().step_by(group).collect();
        return indexed(firsts, &strided(group as u64, distance, inner)?)?.shifted(base);
    }
    let (mut lower, mut upper) = (0, 0);
    let mut monotone = inner.monotone;
    for (index, &displacement) in displacements.iter().enumerate() {
        lower = displacement.min(lower);
        upper = displacement.max(upper);
        monotone &=
            index == 0 || displacement as i128 - displacements[index - 1] as i128 >= inner.upper as i128;
    }
    let size = displacements.len() as i128 * inner.size as i128;
    let (lower, upper) = (lower as i128 + inner.lower as i128, upper as i128 + inner.upper as i128);
    let kind = Kind::Indexed { displacements, inner: inner.clone() };
    Layout::placed(base, Shape::checked(kind, size, lower, upper, inner.depth + 1, monotone)?)
}

/// Subtracts the first displacement from all. Returns it, the first distance and whether all distances are equal.
fn relative(displacements: &mut [i64]) -> Option<(i64, i64, bool)> {
    let base = displacements[0];
    for displacement in displacements.iter_mut() {
        *displacement = displacement.checked_sub(base)?;
    }
    let distance = displacements.get(1).copied().unwrap_or(0);
    let even = displacements.windows(2).all(|pair| pair[1] as i128 - pair[0] as i128 == distance as i128);
    Some((base, distance, even))
}

/// Number of displacements in a group, if all of them form groups with `distance` inside.
fn group_len(displacements: &[i64], distance: i64) -> Option<usize> {
    let apart = |pair: &[i64]| pair[1] as i128 - pair[0] as i128 == distance as i128;
    let len = 1 + displacements.windows(2).take_while(|pair| apart(pair)).count();
    let grouped = len >= 2
        && displacements.len().is_multiple_of(len)
        && displacements.chunks_exact(len).all(|group| group.windows(2).all(apart));
    grouped.then_some(len)
}

/// Adds `part` to a list of parts, flattened, and joins what continues.
fn push(parts: &mut Vec<Layout>, part: Layout) -> Result<(), LayoutError> {
    match &part.shape.kind {
        Kind::Sequence { parts: inner, .. } => {
            for child in inner {
                push_one(parts, child.shifted(part.offset)?);
            }
        }
        Kind::Blocks { blocks, .. } => {
            for &(offset, len) in blocks {
                push_one(parts, Layout { offset: part.offset + offset, shape: Shape::block(len) });
            }
        }
        _ => push_one(parts, part),
    }
    Ok(())
}

fn push_one(parts: &mut Vec<Layout>, part: Layout) {
    if part.is_empty() {
        return;
    }
    let mut last = part;
    while let Some(joined) = parts.last().and_then(|before| join(before, &last)) {
        parts.pop();
        last = joined;
    }
    parts.push(last);
}

/// `a` and then `b` as one, where `b` continues `a`. Neither is empty.
fn join(a: &Layout, b: &Layout) -> Option<Layout> {
    let distance = b.offset as i128 - a.offset as i128;
    let continued = |first: &Layout, count: u64, stride: i64, inner: &Arc<Shape>| {
        Layout::placed(first.offset, strided(count, stride, inner).ok()?).ok()
    };
    match (&a.shape.kind, &b.shape.kind) {
        (Kind::Block, Kind::Block) if distance == a.shape.size as i128 => {
            let len = a.shape.size.checked_add(b.shape.size).filter(|&len| len <= i64::MAX as u64)?;
            Some(Layout { offset: a.offset, shape: Shape::block(len) })
        }
        (
            Kind::Strided { count, stride, inner },
            Kind::Strided { count: b_count, stride: b_stride, inner: b_inner },
        ) if stride == b_stride && distance == *count as i128 * *stride as i128 && inner == b_inner => {
            continued(a, count.checked_add(*b_count)?, *stride, inner)
        }
        (Kind::Strided { count, stride, inner }, _)
            if distance == *count as i128 * *stride as i128 && *inner == b.shape =>
        {
            continued(a, count.checked_add(1)?, *stride, inner)
        }
        (_, Kind::Strided { count, stride, inner }) if distance == *stride as i128 && *inner == a.shape => {
            continued(a, count.checked_add(1)?, *stride, inner)
        }
        _ => None,
    }
}

/// The layout of parts of which none is empty, none a list, and no two neighbours join.
fn list(mut parts: Vec<Layout>) -> Result<Layout, LayoutError> {
    let Some(first) = parts.first() else { return Ok(Layout::empty()) };
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    if parts.iter().all(|part| part.shape == first.shape) {
        let shape = first.shape.clone();
        return indexed(parts.iter().map(|part| part.offset).collect(), &shape);
    }
    if parts.iter().all(Layout::is_dense) {
        return list_of_blocks(parts.iter().map(|part| (part.offset, part.size())).collect());
    }
    let base = first.offset;
    share_shapes(&mut parts);
    let mut starts = Vec::with_capacity(parts.len());
    let (mut size, mut lower, mut upper, mut depth, mut monotone) = (0, 0, 0, 0, true);
    for part in &mut parts {
        let Some(offset) = part.offset.checked_sub(base) else { return overflow("the span") };
        part.offset = offset;
        monotone &= part.shape.monotone && offset as i128 >= upper;
        lower = lower.min(offset as i128 + part.shape.lower as i128);
        upper = upper.max(offset as i128 + part.shape.upper as i128);
        depth = depth.max(part.shape.depth);
        starts.push(size as u64);
        size += part.shape.size as i128;
        if size > i64::MAX as i128 {
            return overflow("the size");
        }
    }
    let kind = Kind::Sequence { parts, starts };
    Layout::placed(base, Shape::checked(kind, size, lower, upper, depth + 1, monotone)?)
}

/// Makes equal shapes the same one: of thousands of lists, each of dozens of parts, a processor's cache then holds all.
fn share_shapes(parts: &mut [Layout]) {
    for index in 1..parts.len() {
        let (before, rest) = parts.split_at_mut(index);
        let near = &before[index.saturating_sub(LOOKED_BACK)..];
        if let Some(equal) = near.iter().rev().find(|part| part.shape == rest[0].shape) {
            rest[0].shape = equal.shape.clone();
        }
    }
}

/// The layout of blocks of which none is empty and no two neighbours are adjacent.
fn list_of_blocks(mut blocks: Vec<(i64, u64)>) -> Result<Layout, LayoutError> {
    let Some(&(base, first_len)) = blocks.first() else { return Ok(Layout::empty()) };
    if blocks.iter().all(|&(_, len)| len == first_len) {
        return indexed(blocks.iter().map(|&(offset, _)| offset).collect(), &Shape::block(first_len));
    }
    let mut starts = Vec::with_capacity(blocks.len());
    let (mut size, mut lower, mut upper, mut monotone) = (0i128, 0, 0, true);
    for (offset, len) in &mut blocks {
        let Some(relative) = offset.checked_sub(base) else { return overflow("the span") };
        *offset = relative;
        monotone &= relative as i128 >= upper;
        lower = lower.min(relative as i128);
        upper = upper.max(relative as i128 + *len as i128);
        starts.push(size as u64);
        size += *len as i128;
        if size > i64::MAX as i128 {
            return overflow("the size");
        }
    }
    Layout::placed(base, Shape::checked(Kind::Blocks { blocks, starts }, size, lower, upper, 1, monotone)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_of_a_list_have_one_shape() {
        let rows = |count: u64, at: i64| (at, Layout::strided(count, 64, Layout::bytes(8)).unwrap());
        let list = Layout::sequence(vec![rows(5, 0), rows(6, 1000), rows(5, 2000), rows(6, 3000)]).unwrap();
        let Kind::Sequence { parts, .. } = &list.shape.kind else { panic!("{list:?}") };
        assert!(Arc::ptr_eq(&parts[0].shape, &parts[2].shape));
        assert!(Arc::ptr_eq(&parts[1].shape, &parts[3].shape));
        assert!(!Arc::ptr_eq(&parts[0].shape, &parts[1].shape));
    }
}
