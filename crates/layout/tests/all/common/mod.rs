//! Random layouts, each together with the explicit list of its bytes, built by the definition.

use pio_layout::{Datatype, Layout, View};
use proptest::prelude::*;

/// A layout and its bytes in data order.
pub(crate) type Modelled = (Layout, Vec<i64>);

/// No more bytes than this in a model.
const MODEL_BYTES: usize = 400;

/// Every byte of a layout, in data order, one at a time.
pub(crate) fn offsets(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|position| layout.offset_of(position).unwrap()).collect()
}

/// Any layout: also overlapping, backward, negative.
pub(crate) fn any_layout() -> impl Strategy<Value = Modelled> {
    let leaf = (0u64..6).prop_map(|len| (Layout::bytes(len), (0..len as i64).collect()));
    leaf.prop_recursive(4, 256, 4, |inner| {
        prop_oneof![
            (0u64..5, -20i64..40, inner.clone())
                .prop_map(|(count, stride, part)| strided(count, stride, part)),
            // Strides that fit exactly, so that the rules of the normal form come into play.
            (1u64..5, 0i64..3, inner.clone()).prop_map(|(count, gap, part)| {
                let stride = part.0.upper_bound() - part.0.lower_bound() + gap;
                strided(count, stride, part)
            }),
            (prop::collection::vec(-30i64..60, 0..6), inner.clone()).prop_map(|(at, part)| indexed(at, part)),
            (0i64..9, 1i64..9, 2i64..4, inner.clone()).prop_map(|(a, b, groups, part)| {
                indexed((0..3 * groups).map(|i| i / 3 * a + i % 3 * b).collect(), part)
            }),
            prop::collection::vec((-30i64..60, 0u64..6), 0..6).prop_map(blocks),
            prop::collection::vec((-30i64..60, inner.clone()), 0..4).prop_map(sequence),
            // Parts right behind each other.
            (prop::collection::vec(inner.clone(), 0..4)).prop_map(|parts| {
                let mut end = 0;
                let shift = |part: Modelled| {
                    let at = end - part.0.lower_bound();
                    end = at + part.0.upper_bound();
                    (at, part)
                };
                sequence(parts.into_iter().map(shift).collect())
            }),
        ]
    })
    .prop_filter("a small model", |(_, bytes)| bytes.len() <= MODEL_BYTES)
}

/// A layout that could be a filetype: offsets strictly increase.
pub(crate) fn monotone_layout() -> impl Strategy<Value = Modelled> {
    let leaf = (1u64..6).prop_map(|len| (Layout::bytes(len), (0..len as i64).collect()));
    leaf.prop_recursive(4, 256, 4, |inner| {
        prop_oneof![
            (1u64..5, gap(), inner.clone()).prop_map(|(count, gap, part)| {
                let stride = part.0.upper_bound() - part.0.lower_bound() + gap;
                strided(count, stride, part)
            }),
            (prop::collection::vec(gap(), 1..6), inner.clone()).prop_map(|(gaps, part)| {
                let span = part.0.upper_bound() - part.0.lower_bound();
                let mut at = 0;
                indexed(
                    gaps.iter()
                        .map(|gap| {
                            at += span + gap;
                            at
                        })
                        .collect(),
                    part,
                )
            }),
            prop::collection::vec((gap(), 1u64..6), 1..6).prop_map(|list| {
                let mut end = 0;
                blocks(
                    list.into_iter()
                        .map(|(gap, len)| {
                            let at = end + gap;
                            end = at + len as i64;
                            (at, len)
                        })
                        .collect(),
                )
            }),
            prop::collection::vec((gap(), inner.clone()), 1..4).prop_map(|list| {
                let mut end = 0;
                let shift = |(gap, part): (i64, Modelled)| {
                    let at = end + gap - part.0.lower_bound();
                    end = at + part.0.upper_bound();
                    (at, part)
                };
                sequence(list.into_iter().map(shift).collect())
            }),
        ]
    })
    .prop_filter("a small model", |(_, bytes)| bytes.len() <= MODEL_BYTES)
}

fn gap() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 0i64..12]
}

fn strided(count: u64, stride: i64, (inner, bytes): Modelled) -> Modelled {
    let copies = (0..count as i64).flat_map(|index| bytes.iter().map(move |byte| byte + index * stride));
    let copies = copies.collect();
    (Layout::strided(count, stride, inner).unwrap(), copies)
}

fn indexed(at: Vec<i64>, (inner, bytes): Modelled) -> Modelled {
    let copies = at.iter().flat_map(|at| bytes.iter().map(move |byte| byte + at)).collect();
    (Layout::indexed(at, inner).unwrap(), copies)
}

fn blocks(list: Vec<(i64, u64)>) -> Modelled {
    let bytes = list.iter().flat_map(|&(at, len)| at..at + len as i64).collect();
    (Layout::blocks(list).unwrap(), bytes)
}

fn sequence(list: Vec<(i64, Modelled)>) -> Modelled {
    let bytes = list.iter().flat_map(|(at, (_, bytes))| bytes.iter().map(move |byte| byte + at)).collect();
    (Layout::sequence(list.into_iter().map(|(at, (layout, _))| (at, layout)).collect()).unwrap(), bytes)
}

/// A view, and the absolute offsets of its first bytes: a few tiles.
pub(crate) fn view() -> impl Strategy<Value = (View, Vec<u64>)> {
    let etype = |(layout, bytes): Modelled| {
        if bytes.len().is_multiple_of(2) { (layout, bytes, 2) } else { (layout, bytes, 1) }
    };
    (monotone_layout().prop_map(etype), gap(), 0u64..50, -5i64..5, 1i64..5).prop_map(
        |((layout, bytes, etype), gap, above, lower_bound, tiles)| {
            let extent = layout.upper_bound() - layout.lower_bound() + gap;
            let displacement = above + (-layout.lower_bound()).max(0) as u64;
            let filetype = Datatype::structure(&[(1, layout.lower_bound(), dense_parts(&layout))]).unwrap();
            let filetype = filetype.resized(lower_bound, extent).unwrap();
            let tile = |index: i64| {
                bytes.iter().map(move |byte| (byte + displacement as i64 + index * extent) as u64)
            };
            let offsets = (0..tiles).flat_map(tile).collect();
            (View::new(displacement, etype, filetype).unwrap(), offsets)
        },
    )
}

/// A datatype with the bytes of `layout`, its first byte at 0.
fn dense_parts(layout: &Layout) -> Datatype {
    let blocks: Vec<(u64, i64)> = layout
        .extents(0..layout.size())
        .map(|extent| (extent.len, extent.offset - layout.lower_bound()))
        .collect();
    Datatype::hindexed(&blocks, &Datatype::bytes(1)).unwrap()
}

/// Two positions, the smaller first.
pub(crate) fn range(most: u64) -> impl Strategy<Value = std::ops::Range<u64>> {
    (0..=most, 0..=most).prop_map(|(a, b)| a.min(b)..a.max(b))
}
