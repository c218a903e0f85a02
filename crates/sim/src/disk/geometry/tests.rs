use pio_machine::disk::{IndexEntry, Remap, TrackPattern, ZonedLayout};
use proptest::prelude::*;

use super::*;
use crate::disk::example::{drive, zone};

/// Cylinder, surface and angle of every block, run by run.
fn places(geometry: &Geometry) -> Vec<(Track, Angle)> {
    let mut places = Vec::new();
    while (places.len() as u64) < geometry.blocks() {
        let run = geometry.run(places.len() as u64, u64::MAX);
        for block in 0..run.blocks.min(geometry.blocks() - places.len() as u64) {
            places.push((run.track, run.angle + Angle::of_sectors(block, run.sectors)));
        }
    }
    places
}

fn zoned(zones: Vec<Zone>, sparing: Sparing, mapping: Mapping) -> Drive {
    Drive { layout: Layout::Zoned(ZonedLayout { mapping, sparing, zones }), ..drive() }
}

/// Places of a zone with 2 surfaces in the order of its blocks, spelt out sector by sector.
fn naive(zone: &Zone, sparing: Sparing) -> Vec<u64> {
    let sectors = u64::from(zone.sectors);
    let (cylinder, all) = (2 * sectors, 2 * sectors * zone.cylinders());
    let (region, spares) = match sparing {
        Sparing::TrackEnd => (sectors, u64::from(zone.spares)),
        Sparing::RangeEnd(range) => (cylinder * u64::from(range), u64::from(zone.spares)),
        Sparing::ZoneEnd | Sparing::ZoneEndSlipOn | Sparing::None | Sparing::DriveEnd => (all, 0),
        _ => (cylinder, u64::from(zone.spares)),
    };
    let front = matches!(sparing, Sparing::CylinderFront | Sparing::CylinderFrontSlipOn);
    let stays = matches!(
        sparing,
        Sparing::TrackEnd | Sparing::CylinderEnd | Sparing::CylinderFront | Sparing::RangeEnd(_)
    );
    let mut places = Vec::new();
    for begin in (0..all).step_by(region as usize) {
        let whole = begin + region <= all;
        let spares = if whole { spares } else { 0 };
        let place: Vec<u64> = (begin..(begin + region).min(all)).collect();
        if !stays {
            let usable =
                if front { &place[spares as usize..] } else { &place[..place.len() - spares as usize] };
            places.extend(usable.iter().filter(|place| !zone.slips.contains(place)));
            continue;
        }
        let good: Vec<u64> = place.iter().copied().filter(|place| !zone.slips.contains(place)).collect();
        let count = place.len() - spares as usize;
        let from = if front { good.len() - count } else { 0 };
        places.extend(&good[from..from + count]);
    }
    places
}

proptest! {
    #[test]
    fn blocks_are_where_a_list_of_all_sectors_has_them(
        slips in proptest::collection::btree_set(0_u64..120, 0..3),
        scheme in 0_usize..10,
        reserved in 0_u32..5,
    ) {
        let (sparing, spares) = [
            (Sparing::None, 0),
            (Sparing::TrackEnd, 2),
            (Sparing::CylinderEnd, 3),
            (Sparing::CylinderEndSlipOn, 3),
            (Sparing::CylinderFront, 3),
            (Sparing::CylinderFrontSlipOn, 3),
            (Sparing::DriveEnd, 0),
            (Sparing::RangeEnd(3), 4),
            (Sparing::ZoneEnd, 5),
            (Sparing::ZoneEndSlipOn, 5),
        ][scheme];
        let slips = if sparing == Sparing::None { Vec::new() } else { slips.into_iter().collect() };
        let zone = Zone { last_cylinder: 6, reserved, spares, slips, ..zone() };
        let geometry = Geometry::new(&zoned(vec![zone.clone()], sparing, Mapping::FromFirst));
        let expected: Vec<(u32, u32)> = naive(&zone, sparing)
            .into_iter()
            .skip(reserved as usize)
            .take(geometry.blocks() as usize)
            .map(|place| ((place / 20) as u32, (place / 10 % 2) as u32))
            .collect();
        let found: Vec<(u32, u32)> =
            places(&geometry).iter().map(|(track, _)| (track.cylinder, track.surface)).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn skew_adds_up_from_track_to_track() {
    let places = places(&Geometry::new(&drive()));
    assert_eq!(places.len(), 2000);
    let sector = |block: usize| (places[block].1.0 as f64 / 2.0_f64.powi(64) * 10.0).round() as u64 % 10;
    // One switch of track within a cylinder; then one of cylinder.
    assert_eq!([0, 9, 10, 20, 30, 40].map(sector), [0, 9, 1, 4, 5, 8]);
    assert_eq!(places[39].0, Track { cylinder: 1, surface: 1 });
}

#[test]
fn zones_follow_each_other_and_serpentines_turn() {
    let second = Zone { first_cylinder: 5, last_cylinder: 6, sectors: 5, ..zone() };
    let first = Zone { last_cylinder: 3, ..zone() };
    let surfaces = |mapping| {
        let geometry = Geometry::new(&zoned(vec![first.clone(), second.clone()], Sparing::None, mapping));
        assert_eq!(geometry.blocks(), 100);
        let track = |block| {
            let track = geometry.run(block, 1).track;
            (track.cylinder, track.surface)
        };
        [0, 20, 30, 80, 90].map(track)
    };
    assert_eq!(surfaces(Mapping::FromFirst), [(0, 0), (1, 0), (1, 1), (5, 0), (6, 0)]);
    assert_eq!(surfaces(Mapping::SerpentineByZone), [(0, 0), (1, 1), (1, 0), (5, 0), (6, 1)]);
    assert_eq!(surfaces(Mapping::Serpentine), [(0, 0), (1, 1), (1, 0), (5, 1), (6, 0)]);
}

#[test]
fn a_moved_block_is_a_run_of_its_own() {
    let zone = Zone { remaps: vec![(4, 199)], last_cylinder: 9, ..zone() };
    let geometry = Geometry::new(&zoned(vec![zone], Sparing::ZoneEnd, Mapping::FromFirst));
    assert_eq!(geometry.run(0, 100).blocks, 4);
    let moved = geometry.run(4, 100);
    assert_eq!((moved.track.cylinder, moved.track.surface, moved.blocks), (9, 1, 1));
    assert_eq!(geometry.run(5, 100).blocks, 5);
}

#[test]
fn whole_tracks_are_spares() {
    let zone = Zone { slips: vec![1], remaps: vec![(3, 19)], spares: 2, last_cylinder: 9, ..zone() };
    let geometry = Geometry::new(&zoned(vec![zone], Sparing::Tracks, Mapping::FromFirst));
    assert_eq!(geometry.blocks(), 180);
    let track = |block| geometry.run(block, 1).track;
    assert_eq!(track(9), Track { cylinder: 0, surface: 0 });
    assert_eq!(track(10), Track { cylinder: 1, surface: 0 });
    assert_eq!(track(20), Track { cylinder: 9, surface: 1 });
    assert_eq!(track(30), Track { cylinder: 2, surface: 0 });
}

/// The layout of [`drive`] as a tree: a cylinder is two tracks one sector askew, the next begins four further on.
fn tree() -> IndexedLayout {
    let sector = |count| Angle::of_sectors(count, 10);
    let entry = IndexEntry {
        block: 0,
        cylinder: 0,
        offset: Angle::default(),
        blocks: 10,
        cylinders: 1,
        child_blocks: 10,
        child_cylinders: 1,
        child_angle: Angle::default(),
        child: Node::Track { pattern: 0, surface: 0 },
    };
    let second =
        IndexEntry { block: 10, offset: sector(1), child: Node::Track { pattern: 0, surface: 1 }, ..entry };
    let root = IndexEntry {
        blocks: 2000,
        cylinders: 100,
        child_blocks: 20,
        child_angle: sector(4),
        child: Node::Index(0),
        ..entry
    };
    IndexedLayout {
        patterns: vec![TrackPattern { low: 0, high: 9, sectors: 10 }],
        nodes: vec![vec![entry, second], vec![root]],
        slips: Vec::new(),
        remaps: Vec::new(),
    }
}

fn indexed(layout: IndexedLayout, blocks: u64) -> Geometry {
    Geometry::new(&Drive { layout: Layout::Indexed(layout), blocks, ..drive() })
}

#[test]
fn a_tree_says_the_same_as_zones() {
    let (tree, zones) = (places(&indexed(tree(), 2000)), places(&Geometry::new(&drive())));
    for (block, (one, other)) in tree.iter().zip(&zones).enumerate() {
        assert_eq!(one.0, other.0, "block {block}");
        let apart = one.1 - other.1;
        assert!(apart.0.min(apart.0.wrapping_neg()) < 1 << 20, "block {block}");
    }
}

#[test]
fn a_tree_slips_and_moves_blocks() {
    let moved = Remap { block: 50, blocks: 3, cylinder: 99, surface: 1, sector: 4, sectors: 10 };
    let geometry = indexed(IndexedLayout { slips: vec![(15, 2)], remaps: vec![moved], ..tree() }, 1998);
    // Blocks 0 to 14 are where they were; those from 15 on two further.
    assert_eq!(geometry.run(10, 100).blocks, 5);
    assert_eq!(geometry.run(18, 100).track, Track { cylinder: 1, surface: 0 });
    let run = geometry.run(51, 100);
    assert_eq!((run.track, run.blocks), (Track { cylinder: 99, surface: 1 }, 2));
    assert_eq!(run.angle, Angle::of_sectors(5, 10));
    assert_eq!(geometry.run(48, 100).blocks, 2);
}
