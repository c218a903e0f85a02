//! Layouts against explicit lists of bytes.

use crate::common::{any_layout, monotone_layout, offsets};
use pio_layout::{Layout, LayoutError, MAX_DEPTH};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Everything that can be asked of a layout agrees with the list of its bytes.
    #[test]
    fn layout_is_its_bytes((layout, bytes) in any_layout(), a in 0u64..200, b in 0u64..200) {
        prop_assert_eq!(layout.size(), bytes.len() as u64);
        prop_assert_eq!(layout.lower_bound(), bytes.iter().min().copied().unwrap_or(0));
        prop_assert_eq!(layout.upper_bound(), bytes.iter().max().map_or(0, |last| last + 1));
        for (position, &offset) in bytes.iter().enumerate() {
            prop_assert_eq!(layout.offset_of(position as u64), Some(offset));
        }
        prop_assert_eq!(layout.offset_of(layout.size()), None);
        prop_assert_eq!(layout.is_monotone(), bytes.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(layout.is_dense(), bytes.windows(2).all(|pair| pair[0] + 1 == pair[1]));

        let part = (a.min(b) as usize).min(bytes.len())..(a.max(b) as usize).min(bytes.len());
        let expected = &bytes[part];
        let positions = a.min(b)..a.max(b);
        let from_runs: Vec<i64> = layout
            .runs(positions.clone())
            .flat_map(|run| run.pieces())
            .flat_map(|piece| piece.offset..piece.end())
            .collect();
        prop_assert_eq!(&from_runs, expected);
        let extents: Vec<_> = layout.extents(positions.clone()).collect();
        let from_extents: Vec<i64> = extents.iter().flat_map(|piece| piece.offset..piece.end()).collect();
        prop_assert_eq!(&from_extents, expected);
        prop_assert!(extents.windows(2).all(|pair| pair[0].end() != pair[1].offset), "not merged");
        let slice = layout.slice(positions);
        prop_assert_eq!(&offsets(&slice), expected);
    }

    #[test]
    fn monotone_layouts_are_searched_and_clipped((layout, bytes) in monotone_layout(), a in -20i64..400, b in -20i64..400) {
        prop_assert_eq!(layout.position_at_or_after(a), bytes.iter().filter(|&&byte| byte < a).count() as u64);
        prop_assert_eq!(layout.position_at_or_after(i64::MIN), 0);
        prop_assert_eq!(layout.position_at_or_after(i64::MAX), layout.size());
        let inside: Vec<i64> = bytes.iter().copied().filter(|&byte| byte >= a && byte < b).collect();
        prop_assert_eq!(offsets(&layout.clip(a, b)), inside);
    }

    /// Building a layout again from its encoding changes nothing: the normal form is a fixed point.
    #[test]
    fn encoding_is_the_identity((layout, _) in any_layout(), a in 0u64..200, b in 0u64..200) {
        for layout in [layout.clone(), layout.slice(a.min(b)..a.max(b))] {
            let mut bytes = Vec::new();
            layout.encode(&mut bytes);
            bytes.push(0xaa);
            let mut rest = &bytes[..];
            prop_assert_eq!(Layout::decode(&mut rest), Ok(layout));
            prop_assert_eq!(rest, &[0xaa]);
        }
    }
}

/// Equal byte sequences that come about in different ways are equal layouts, in the smallest form.
#[test]
fn the_normal_form_is_the_smallest() {
    let (four, column) = (Layout::bytes(4), |count| Layout::strided(count, 16, Layout::bytes(4)).unwrap());
    assert_eq!(Layout::strided(5, 4, four.clone()).unwrap(), Layout::bytes(20));
    assert_eq!(Layout::strided(3, 64, column(4)).unwrap(), column(12));
    assert_eq!(Layout::strided(0, 4, four.clone()).unwrap(), Layout::bytes(0));
    assert_eq!(Layout::strided(1, 99, column(4)).unwrap(), column(4));
    assert_eq!(Layout::indexed((0..12).map(|i| i * 16).collect(), four.clone()).unwrap(), column(12));
    assert_eq!(Layout::blocks((0..12).map(|i| (i * 16, 4)).collect()).unwrap(), column(12));
    assert_eq!(
        Layout::sequence(vec![(0, column(5)), (7, Layout::bytes(0)), (80, column(7))]).unwrap(),
        column(12)
    );
    assert_eq!(Layout::sequence(vec![(0, four.clone()), (16, column(11))]).unwrap(), column(12));
    assert_eq!(
        Layout::blocks(vec![(8, 4), (12, 0), (12, 8)]).unwrap(),
        Layout::bytes(12).shifted(8).unwrap()
    );
    // Explicit lists of regular groups become symbolic, too.
    let listed = (0..1000).flat_map(|plane| (0..50).map(move |row| (plane * 4096 + row * 16, 4))).collect();
    assert_eq!(Layout::blocks(listed).unwrap(), Layout::strided(1000, 4096, column(50)).unwrap());
    assert_eq!(format!("{:?}", column(12).shifted(3).unwrap()), "3 + 12 × 16 of [4]");
}

#[test]
fn nesting_and_numbers_have_limits() {
    let mut deep = Layout::bytes(1);
    for level in (0..MAX_DEPTH).step_by(2) {
        assert_eq!(deep.depth(), level);
        let mixed = Layout::sequence(vec![(0, deep), (-9, Layout::bytes(2))]).unwrap();
        deep = Layout::strided(2, -1, mixed).unwrap();
    }
    let error = Layout::strided(2, -1, deep.clone());
    assert_eq!(error, Err(LayoutError::TooDeep { depth: MAX_DEPTH + 1, limit: MAX_DEPTH }));
    // What is as deep as can be can still be cut and written down.
    let size = deep.size();
    let slice = deep.slice(1..size - 1);
    assert_eq!(slice.size(), size - 2);
    let mut bytes = Vec::new();
    slice.encode(&mut bytes);
    assert_eq!(Layout::decode(&mut &bytes[..]), Ok(slice));
    let too_far = |made: Result<Layout, LayoutError>| {
        assert!(matches!(made, Err(LayoutError::Overflow { .. })), "{made:?}")
    };
    let big = Layout::bytes(1 << 62);
    too_far(Layout::strided(2, 1 << 62, big.clone()));
    too_far(Layout::strided(u64::MAX, 0, big.clone()));
    too_far(Layout::strided(3, i64::MIN, Layout::bytes(1)));
    too_far(Layout::indexed(vec![i64::MIN, i64::MAX - 1], Layout::bytes(1)));
    too_far(Layout::blocks(vec![(i64::MAX, 1)]));
    too_far(Layout::blocks(vec![(i64::MIN, 1 << 62), (0, u64::MAX)]));
    too_far(Layout::sequence(vec![(0, big.clone()), (0, big.clone()), (0, big.clone())]));
    too_far(big.shifted(1 << 62));
    assert!(Layout::bytes(1).shifted(i64::MIN).is_ok());
    assert_eq!(Layout::bytes(u64::MAX).size(), i64::MAX as u64);
}
