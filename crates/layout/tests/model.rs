//! Layouts against explicit lists of bytes.

mod common;

use common::{any_layout, monotone_layout, offsets};
use pio_layout::Layout;
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
