//! The same over every transport.
// A test that cannot set up its scene fails there.

use crate::common::Scene;
use pio_layout::{Datatype, View};
use pio_store::client::{Mode, StripingHints};
use pio_store::transport::{Traffic, Transport};

const CREATE: Mode = Mode { create: true, exclusive: false };

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect()
}

#[test]
fn what_goes_one_way_comes_back_the_other() {
    let scene = Scene::with_all_ways(3);
    let transports: Vec<Transport> = scene.transports().iter().copied().chain([Transport::Nearest]).collect();
    for (number, &transport) in transports.iter().enumerate() {
        let path = format!("f{number}");
        let file =
            scene.client_by(transport).open(&path, CREATE, StripingHints { unit: 5000, factor: 0 }).unwrap();
        let (whole, pieces) = (bytes(7_000_000, number), bytes(900_000, number + 9));
        let view = View::new(8, 4, Datatype::bytes(4).resized(0, 24).unwrap()).unwrap();
        file.write_at(0, &whole).unwrap();
        file.write(&view, 0..900_000, &&pieces[..]).unwrap();
        file.close().unwrap();
        let mut expected = whole;
        for (at, piece) in pieces.chunks(4).enumerate() {
            expected[8 + at * 24..][..4].copy_from_slice(piece);
        }
        for &back in &transports {
            let file = scene.client_by(back).open(&path, Mode::default(), StripingHints::default()).unwrap();
            let mut out = vec![1; 7_000_010];
            assert_eq!(file.read_at(0, &mut out).unwrap(), 7_000_000);
            assert!(out[..7_000_000] == expected && out[7_000_000..] == [1; 10], "{transport:?} {back:?}");
            let mut out = vec![1; 900_000];
            assert_eq!(file.read(&view, 0..900_000, &mut &mut out[..]).unwrap(), 900_000);
            assert!(out == pieces, "{transport:?} {back:?}");
        }
    }
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let mut scene = Scene::with_all_ways(2);
    for transport in scene.transports().to_vec() {
        let store = scene.client_by(transport);
        let file = store.open(&format!("{transport:?}"), CREATE, StripingHints::default()).unwrap();
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

#[test]
fn every_byte_is_counted() {
    let scene = Scene::new(2);
    for transport in [Transport::Tcp, Transport::Shared] {
        let store = scene.client_by(transport);
        assert_eq!(store.traffic(), Traffic::default());
        let file = store.open(&format!("{transport:?}"), CREATE, StripingHints::default()).unwrap();
        let before = store.traffic();
        // Both sides have shown the token: 60 bytes and more each.
        assert!(before.sent > 60 && before.received > 60, "{before:?}");
        let data = bytes(6_000_000, 3);
        file.write_at(0, &data).unwrap();
        let written = store.traffic();
        let mut out = vec![0; 6_000_000];
        assert_eq!(file.read_at(0, &mut out).unwrap(), 6_000_000);
        let read = store.traffic();
        for (more, less) in [
            (written.sent - before.sent, written.received - before.received),
            (read.received - written.received, read.sent - written.sent),
        ] {
            assert!((6_000_000..6_002_000).contains(&more) && less < 2_000, "{transport:?} {more} {less}");
        }
    }
}
