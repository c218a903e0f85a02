//! Views, striping and coverage against explicit lists of offsets.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::common::{monotone_layout, offsets, range, view};
use pio_layout::{Datatype, Layout, LayoutError, Order, Run, Share, Striping, View, coverage};
use proptest::prelude::*;

fn part(bytes: &[u64], positions: &Range<u64>) -> Vec<i64> {
    let at = |position: u64| (position as usize).min(bytes.len());
    bytes[at(positions.start)..at(positions.end)].iter().map(|&byte| byte as i64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn view_is_its_bytes((view, bytes) in view(), positions in range(300), file in range(500)) {
        // The view goes on without end, the model does not.
        let len = bytes.len() as u64;
        let positions = positions.start.min(len)..positions.end.min(len);
        let expected = part(&bytes, &positions);

        for (position, &offset) in bytes.iter().enumerate() {
            prop_assert_eq!(view.offset_of(position as u64), Some(offset));
        }
        let before = |offset: u64| bytes.iter().filter(|&&byte| byte < offset).count() as u64;
        let end = bytes.last().map_or(0, |last| last + 1);
        for offset in [file.start, file.end] {
            prop_assert_eq!(view.position_at_or_after(offset.min(end)), before(offset.min(end)));
        }
        let within = view.positions_within(positions.clone(), file.clone());
        let inside: Vec<i64> = expected.iter().copied().filter(|&byte| file.contains(&(byte as u64))).collect();
        prop_assert_eq!(part(&bytes, &within), inside);

        let pieces = view.runs(positions.clone()).flat_map(|run| run.pieces());
        prop_assert_eq!(pieces.flat_map(|piece| piece.offset..piece.end()).collect::<Vec<_>>(), expected.clone());
        let extents: Vec<_> = view.extents(positions.clone()).collect();
        prop_assert!(extents.windows(2).all(|pair| pair[0].end() < pair[1].offset), "not merged");
        prop_assert_eq!(extents.iter().flat_map(|piece| piece.offset..piece.end()).collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(view.is_contiguous_over(positions.clone()), extents.len() <= 1);
        prop_assert_eq!(offsets(&view.layout_of(positions).unwrap()), expected);
    }

    #[test]
    fn views_survive_encoding((view, _) in view()) {
        let mut bytes = Vec::new();
        view.encode(&mut bytes);
        let mut rest = &bytes[..];
        prop_assert_eq!(View::decode(&mut rest), Ok(view));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn striping_deals_out_every_byte_once(
        (view, bytes) in view(),
        positions in range(300),
        unit in 1u64..20,
        factor in 1u32..5,
        first in 0u32..5,
    ) {
        let striping = Striping::new(unit, factor, first % factor).unwrap();
        let positions = positions.start.min(bytes.len() as u64)..positions.end.min(bytes.len() as u64);
        let expected = part(&bytes, &positions);
        // The definition: strip s is on server (first + s) mod factor.
        let server_of = |offset: u64| ((offset / unit + (first % factor) as u64) % factor as u64) as u32;
        let counts = striping.bytes_per_server(&view, positions.clone());
        for server in 0..factor {
            let mine: Vec<i64> = expected.iter().copied().filter(|&byte| server_of(byte as u64) == server).collect();
            let layout = striping.intersect(server, &view, positions.clone());
            prop_assert!(layout.is_monotone());
            prop_assert_eq!(counts[server as usize], mine.len() as u64);
            prop_assert_eq!(offsets(&layout), mine);
        }
    }

    #[test]
    fn shares_are_the_pieces_cut_at_strips(
        (view, bytes) in view(),
        positions in range(300),
        unit in 1u64..20,
        factor in 1u32..5,
        first in 0u32..5,
    ) {
        let striping = Striping::new(unit, factor, first % factor).unwrap();
        let positions = positions.start.min(bytes.len() as u64)..positions.end.min(bytes.len() as u64);
        let mut expected = vec![Share::default(); factor as usize];
        let layout = view.layout_of(positions.clone()).unwrap();
        for piece in layout.runs(0..layout.size()).flat_map(Run::pieces) {
            let (start, end) = (piece.offset as u64, piece.end() as u64);
            for (index, strip) in striping.strips(start..end).enumerate() {
                let share = &mut expected[strip.server as usize];
                share.first = if share.bytes == 0 { strip.offset } else { share.first };
                share.bytes += strip.len;
                share.pieces += u64::from(factor > 1 || index == 0);
            }
        }
        prop_assert_eq!(striping.shares(&view, positions), expected);
    }

    #[test]
    fn pieces_are_those_of_runs((layout, _) in monotone_layout(), positions in range(300)) {
        let walked: u64 = layout.runs(positions.clone()).map(|run| run.count).sum();
        prop_assert_eq!(layout.pieces(positions), walked);
    }

    /// A view that shows everything is one piece; any other has those of its tiles.
    #[test]
    fn pieces_of_a_view_are_those_of_its_tiles((view, bytes) in view(), positions in range(300)) {
        let len = bytes.len() as u64;
        let positions = positions.start.min(len)..positions.end.min(len);
        let (tile, size) = (view.filetype().layout(), view.filetype().size());
        let mut walked = 0;
        for start in (0..len).step_by(size as usize) {
            let part = positions.start.max(start) - start..positions.end.min(start + size).max(start) - start;
            walked += tile.runs(part).map(|run| run.count).sum::<u64>();
        }
        if view.is_contiguous_over(0..len) && view.filetype().extent() as u64 == size {
            walked = walked.min(1);
        }
        prop_assert_eq!(view.pieces(positions), walked);
    }

    #[test]
    fn striping_addresses(unit in 1u64..9, factor in 1u32..5, first in 0u32..5, file in range(200)) {
        let striping = Striping::new(unit, factor, first % factor).unwrap();
        let mut own = vec![Vec::new(); factor as usize];
        for offset in 0..file.end {
            let server = striping.server_of(offset);
            // A server's own part is its strips, packed.
            prop_assert_eq!(striping.server_offset(offset), own[server as usize].len() as u64);
            prop_assert_eq!(striping.file_offset(server, striping.server_offset(offset)), Some(offset));
            own[server as usize].push(offset as i64);
        }
        for server in 0..factor {
            let layout = striping.layout_of_server(server, file.end);
            prop_assert_eq!(&offsets(&layout), &own[server as usize]);
            prop_assert_eq!(striping.len_of_server(server, file.end), layout.size());
        }
        let mut next = file.start;
        for strip in striping.strips(file.clone()) {
            prop_assert_eq!(strip.offset, next);
            prop_assert!(strip.len > 0);
            for inside in 0..strip.len {
                prop_assert_eq!(striping.server_of(strip.offset + inside), strip.server);
                prop_assert_eq!(striping.server_offset(strip.offset + inside), strip.server_offset + inside);
            }
            next += strip.len;
        }
        prop_assert_eq!(next, file.end.max(file.start));
    }

    #[test]
    fn holes_are_what_nobody_touches(
        parts in prop::collection::vec((view(), range(300)), 0..6),
        window in range(400),
    ) {
        let mut touched = BTreeSet::new();
        let mut access = Vec::new();
        for ((view, bytes), positions) in &parts {
            let positions = positions.start.min(bytes.len() as u64)..positions.end.min(bytes.len() as u64);
            touched.extend(part(bytes, &positions));
            access.push((view, positions));
        }
        let expected: Vec<i64> =
            (window.start as i64..window.end as i64).filter(|offset| !touched.contains(offset)).collect();
        prop_assert_eq!(coverage::covers(window.clone(), &access), expected.is_empty());
        let holes = coverage::holes(window.clone(), &access);
        prop_assert!(holes.is_monotone());
        prop_assert_eq!(offsets(&holes), expected);
        // However it is found, it is written the same.
        let layouts = access.iter().map(|(view, positions)| view.layout_of(positions.clone()).unwrap()).collect();
        prop_assert_eq!(holes, coverage::holes_of_layouts(window.start as i64..window.end as i64, layouts));
    }

    #[test]
    fn a_union_is_what_somebody_touches_and_has_a_place_for_each(
        parts in proptest::collection::vec((view(), range(300)), 1..5),
    ) {
        let parts: Vec<_> = parts
            .iter()
            .map(|((view, bytes), positions)| {
                let len = bytes.len() as u64;
                (view, positions.start.min(len)..positions.end.min(len), bytes)
            })
            .collect();
        let touched: BTreeSet<i64> =
            parts.iter().flat_map(|(_, positions, bytes)| part(bytes, positions)).collect();
        let access: Vec<_> = parts.iter().map(|(view, positions, _)| (*view, positions.clone())).collect();
        let union = coverage::union(&access);
        prop_assert!(union.is_monotone());
        prop_assert_eq!(offsets(&union), touched.into_iter().collect::<Vec<_>>());
        for (view, positions) in access {
            let layout = view.layout_of(positions).unwrap();
            let places = union.positions_of(&layout).unwrap();
            prop_assert!(places.is_monotone());
            let expected: Vec<i64> =
                offsets(&layout).into_iter().map(|byte| union.position_at_or_after(byte) as i64).collect();
            prop_assert_eq!(offsets(&places), expected);
        }
    }

    /// Interleaved ranks, as collective I/O has them: with a common period, started and ended at will.
    #[test]
    fn holes_between_interleaved_ranks(
        ranks in prop::collection::vec((0u64..24, 1u64..9, range(200)), 1..6),
        period in 9u64..24,
        window in range(600),
    ) {
        let mut touched = BTreeSet::new();
        let mut views = Vec::new();
        for (displacement, len, positions) in &ranks {
            let filetype = Datatype::bytes(*len).resized(0, period as i64).unwrap();
            views.push((View::new(*displacement, 1, filetype).unwrap(), positions.clone()));
            touched.extend(positions.clone().map(|position| displacement + position / len * period + position % len));
        }
        let access: Vec<_> = views.iter().map(|(view, positions)| (view, positions.clone())).collect();
        let expected: Vec<i64> =
            window.clone().filter(|offset| !touched.contains(offset)).map(|offset| offset as i64).collect();
        prop_assert_eq!(coverage::covers(window.clone(), &access), expected.is_empty());
        prop_assert_eq!(offsets(&coverage::holes(window, &access)), expected);
    }
}

#[test]
fn interleaved_columns_are_one_run() {
    let filetype = Datatype::vector(100, 1, 4, &Datatype::bytes(4)).unwrap().resized(0, 1600).unwrap();
    let view = View::new(8, 4, filetype).unwrap();
    let runs: Vec<_> = view.runs(0..4_000_000).collect();
    assert_eq!(runs, [Run { offset: 8, len: 4, stride: 16, count: 1_000_000 }]);
}

#[test]
fn contiguous_views_are_one_block() {
    let view = View::contiguous(100);
    assert!(view.is_contiguous_over(5..1 << 40));
    let runs: Vec<_> = view.runs(5..1 << 40).collect();
    assert_eq!(runs, [Run { offset: 105, len: (1 << 40) - 5, stride: 0, count: 1 }]);
    // However the same bytes are put.
    let tiled = View::new(100, 8, Datatype::bytes(64)).unwrap();
    assert_eq!(tiled.runs(5..1 << 40).collect::<Vec<_>>(), runs);
}

#[test]
fn views_end_where_offsets_end() {
    let far = View::contiguous(u64::MAX);
    assert_eq!(far.offset_of(1), None);
    let view = View::new(i64::MAX as u64 - 100, 1, Datatype::bytes(8).resized(0, 64).unwrap()).unwrap();
    assert_eq!(view.limit(), 16);
    assert_eq!(view.offset_of(15), Some(i64::MAX as u64 - 100 + 71));
    assert_eq!(view.offset_of(16), None);
    assert_eq!(view.runs(0..u64::MAX).map(|run| run.size()).sum::<u64>(), 16);
    assert!(view.layout_of(0..17).is_err());
    let nothing = View::new(0, 1, Datatype::bytes(0)).unwrap();
    assert_eq!((nothing.offset_of(0), nothing.position_at_or_after(9)), (None, 0));
    assert_eq!(nothing.runs(0..9).next(), None);
}

#[test]
fn views_that_mpi_forbids_are_refused() {
    let int = Datatype::bytes(4);
    let backward = Datatype::hindexed(&[(1, 8), (1, 0)], &int).unwrap();
    assert!(matches!(View::new(0, 4, backward), Err(LayoutError::NotMonotone { .. })));
    let tight = Datatype::bytes(8).resized(0, 4).unwrap();
    assert!(matches!(View::new(0, 4, tight), Err(LayoutError::NotMonotone { .. })));
    let before = Datatype::hindexed(&[(1, -8)], &int).unwrap();
    assert_eq!(View::new(4, 4, before.clone()), Err(LayoutError::BeforeFile { offset: -4 }));
    assert!(View::new(8, 4, before).is_ok());
    assert_eq!(View::new(0, 4, Datatype::bytes(6)), Err(LayoutError::Etype { filetype: 6, etype: 4 }));
    assert_eq!(View::new(0, 0, Datatype::bytes(6)), Err(LayoutError::Etype { filetype: 6, etype: 0 }));
    assert!(matches!(View::new(u64::MAX, 1, int), Err(LayoutError::Overflow { .. })));
}

/// A tebibyte of 4-byte pieces on 8 servers: neither the time nor the result may grow with the number of pieces.
#[test]
fn striping_stays_symbolic() {
    let view = View::new(0, 4, Datatype::bytes(4).resized(0, 12).unwrap()).unwrap();
    let striping = Striping::new(65536, 8, 3).unwrap();
    let positions = 4..(1 << 40) + 8;
    let counts = striping.bytes_per_server(&view, positions.clone());
    assert_eq!(counts.iter().sum::<u64>(), (1 << 40) + 4);
    let mut encoded = Vec::new();
    striping.intersect(5, &view, positions).encode(&mut encoded);
    assert!(encoded.len() < 200, "{} bytes", encoded.len());
}

/// 64 ranks' blocks of a 3-D array, and what one of them left out.
#[test]
fn coverage_stays_symbolic() {
    let block = |rank: u64| {
        let starts = [rank / 16 * 256, rank / 4 % 4 * 256, rank % 4 * 256];
        Datatype::subarray(&[1024; 3], &[256; 3], &starts, Order::C, &Datatype::bytes(8)).unwrap()
    };
    let views: Vec<View> = (0..64).map(|rank| View::new(0, 8, block(rank)).unwrap()).collect();
    let size = 256 * 256 * 256 * 8;
    let whole = 0..64 * size;
    let all: Vec<_> = views.iter().map(|view| (view, 0..size)).collect();
    assert!(coverage::covers(whole.clone(), &all));
    assert!(coverage::covers(12345..whole.end - 54321, &all));
    let holes = coverage::holes(whole, &all[..63]);
    assert_eq!(holes, *block(63).layout());
}

/// A million columns' holes are one strided layout.
#[test]
fn holes_stay_symbolic() {
    let column = |at| View::new(at, 4, Datatype::bytes(4).resized(0, 16).unwrap()).unwrap();
    let (a, b, c) = (column(0), column(4), column(12));
    let size = 4_000_000;
    let parts = [(&a, 0..size), (&b, 0..size), (&c, 0..size)];
    let expected = Layout::strided(1_000_000, 16, Layout::bytes(4)).unwrap().shifted(8).unwrap();
    assert_eq!(coverage::holes(0..4 * size, &parts), expected);
}

/// Windows and strips as wide as offsets go.
#[test]
fn the_whole_range_of_offsets() {
    let end = i64::MAX as u64;
    let column = View::new(0, 4, Datatype::bytes(4).resized(0, 16).unwrap()).unwrap();
    let other = View::new(8, 8, Datatype::bytes(8).resized(0, 1 << 61).unwrap()).unwrap();
    let parts = [(&column, 0..u64::MAX), (&other, 0..u64::MAX)];
    assert!(!coverage::covers(0..u64::MAX, &parts));
    let holes = coverage::holes(0..u64::MAX, &parts);
    let touched = column.limit() + other.limit();
    assert_eq!(holes.size(), end - touched);
    assert!(coverage::covers(0..u64::MAX, &[(&View::contiguous(0), 0..u64::MAX)]));
    let backward = Range { start: 9, end: 7 };
    assert!(coverage::covers(7..7, &[]) && coverage::covers(backward, &[]) && !coverage::covers(7..8, &[]));
    for unit in [1 << 20, 1 << 60] {
        let striping = Striping::new(unit, 7, 2).unwrap();
        assert_eq!(striping.bytes_per_server(&column, 0..u64::MAX).iter().sum::<u64>(), column.limit());
        let parts: Vec<u64> = (0..7).map(|server| striping.len_of_server(server, end)).collect();
        assert_eq!(parts.iter().sum::<u64>(), end);
        for server in 0..7 {
            assert_eq!(striping.layout_of_server(server, end).size(), parts[server as usize]);
        }
    }
    assert!(Striping::new(1 << 62, 7, 2).is_err() && Striping::new(0, 1, 0).is_err());
    assert!(Striping::new(1, 0, 0).is_err() && Striping::new(1, 2, 2).is_err());
}

fn indexed(blocks: &[(u64, i64)]) -> Datatype {
    Datatype::indexed(blocks, &Datatype::bytes(4)).unwrap()
}

#[test]
fn a_filetype_longer_than_its_extent_is_used_once() {
    let filetype = indexed(&[(2, 0), (3, 10)]).resized(40, 12).unwrap();
    let view = View::of_filetype(100, 4, filetype).unwrap();
    assert_eq!(view.offset_of(0), Some(100));
    assert_eq!(view.offset_of(19), Some(100 + 51));
    assert_eq!(view.offset_of(20), None);
}

/// PnetCDF's: a header, and behind it a subarray that sets the bounds.
#[test]
fn a_filetype_may_begin_before_its_bounds() {
    let filetype = indexed(&[(128, 0), (10, 128), (10, 148)]).resized(512, 160).unwrap();
    let view = View::of_filetype(0, 1, filetype).unwrap();
    assert_eq!(view.offset_of(0), Some(0));
    assert_eq!(view.offset_of(512 + 40), Some(592));
}

#[test]
fn a_filetype_that_fits_its_extent_is_used_again_and_again() {
    let filetype = indexed(&[(2, 0), (3, 10)]).resized(0, 60).unwrap();
    assert_eq!(View::of_filetype(100, 4, filetype.clone()), View::new(100, 4, filetype));
}
