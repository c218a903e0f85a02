//! The same over every transport.
// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

mod common;

use common::Scene;
use pio_layout::{Datatype, View};
use pio_store::client::{Mode, Striping};
use pio_store::transport::Way;

const CREATE: Mode = Mode { create: true, exclusive: false };

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect()
}

#[test]
fn what_goes_one_way_comes_back_the_other() {
    let scene = Scene::with_all_ways(3);
    let ways: Vec<Way> = scene.ways().iter().copied().chain([Way::Nearest]).collect();
    for (number, &way) in ways.iter().enumerate() {
        let path = format!("f{number}");
        let file = scene.client_by(way).open(&path, CREATE, Striping { unit: 5000, factor: 0 }).unwrap();
        let (whole, pieces) = (bytes(7_000_000, number), bytes(900_000, number + 9));
        let view = View::new(8, 4, Datatype::bytes(4).resized(0, 24).unwrap()).unwrap();
        file.write_at(0, &whole).unwrap();
        file.write(&view, 0..900_000, &&pieces[..]).unwrap();
        file.close().unwrap();
        let mut expected = whole;
        for (at, piece) in pieces.chunks(4).enumerate() {
            expected[8 + at * 24..][..4].copy_from_slice(piece);
        }
        for &back in &ways {
            let file = scene.client_by(back).open(&path, Mode::default(), Striping::default()).unwrap();
            let mut out = vec![1; 7_000_010];
            assert_eq!(file.read_at(0, &mut out).unwrap(), 7_000_000);
            assert!(out[..7_000_000] == expected && out[7_000_000..] == [0; 10], "{way:?} {back:?}");
            let mut out = vec![1; 900_000];
            assert_eq!(file.read(&view, 0..900_000, &mut &mut out[..]).unwrap(), 900_000);
            assert!(out == pieces, "{way:?} {back:?}");
        }
    }
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let mut scene = Scene::with_all_ways(2);
    for way in scene.ways().to_vec() {
        let store = scene.client_by(way);
        let file = store.open(&format!("{way:?}"), CREATE, Striping::default()).unwrap();
        let data = bytes(3_000_000, 1);
        for round in 0..3 {
            file.write_at(round * 3_000_000, &data).unwrap();
            scene.restart(round as usize % 2);
        }
        file.sync().unwrap();
        let mut out = vec![0; 9_000_000];
        assert_eq!(file.read_at(0, &mut out).unwrap(), 9_000_000);
        assert!(out.chunks(3_000_000).all(|part| part == data));
    }
}
