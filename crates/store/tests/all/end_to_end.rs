//! Servers in threads and clients, over TCP.
// A test that cannot set up its scene fails there.

use std::time::Duration;

use crate::common::Scene;
use pio_layout::{Datatype, Layout, View};
use pio_protocol::client::{
    CHUNK_BYTES, ClientSession, Direction, Exchange, MOST_STRIPS, Naming, Split, chunk_bytes, exchange,
};
use pio_protocol::{Expected, Failure, MOST_EXTENTS};
use pio_store::StoreError;
use pio_store::client::{Checked, Layed, Mode, Store, StripingHints, Unreferenced};

const CREATE: Mode = Mode { create: true, exclusive: false };
const NEW: Mode = Mode { create: true, exclusive: true };
const OPEN: Mode = Mode { create: false, exclusive: false };

fn striped(unit: u64) -> StripingHints {
    StripingHints { unit, factor: 0 }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect()
}

#[test]
fn what_is_written_is_read_on_any_number_of_servers() {
    for servers in 1..=4 {
        let scene = Scene::new(servers);
        let store = scene.client();
        let file = store.open("run/a", CREATE, striped(1000)).unwrap();
        let data = bytes(5_000_000, servers);
        file.write_at(123, &data).unwrap();
        assert_eq!(file.size().unwrap(), 5_000_123);
        let mut out = vec![9; 5_000_200];
        assert_eq!(file.read_at(0, &mut out).unwrap(), 5_000_123);
        assert_eq!(out[..123], [0; 123]);
        assert!(out[123..5_000_123] == data);
        assert_eq!(out[5_000_123..], [9; 77], "behind the end");
        file.close().unwrap();
        let stat = scene.client().stat("/run//a").unwrap();
        assert_eq!((stat.size, stat.path.as_str()), (5_000_123, "run/a"));
    }
}

#[test]
fn interleaved_pieces_of_two_clients_come_together() {
    let scene = Scene::new(3);
    let data: Vec<Vec<u8>> = (0..2).map(|rank| bytes(400_000, rank)).collect();
    let view = |rank: u64| View::new(rank * 4, 4, Datatype::bytes(4).resized(0, 8).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (scene, data) = (&scene, &data[rank]);
            scope.spawn(move || {
                let file = scene.client().open("shared", CREATE, striped(4096)).unwrap();
                file.write(&view(rank as u64), 0..400_000, &&data[..]).unwrap();
                file.close().unwrap();
            });
        }
    });
    let file = scene.client().open("shared", OPEN, striped(0)).unwrap();
    let mut out = vec![0; 800_000];
    assert_eq!(file.read_at(0, &mut out).unwrap(), 800_000);
    for (at, piece) in out.chunks(4).enumerate() {
        assert_eq!(piece, &data[at % 2][at / 2 * 4..at / 2 * 4 + 4]);
    }
    let mut part = vec![0; 1000];
    assert_eq!(file.read(&view(1), 4..1004, &mut &mut part[..]).unwrap(), 1000);
    assert_eq!(part, data[1][4..1004]);
}

/// What was written piece by listed piece is what a view, and what plain offsets, find; and the other way round.
#[test]
fn lists_of_extents_name_the_same_bytes_as_views() {
    const PIECE: u64 = 7;
    for servers in 1..=3 {
        let scene = Scene::new(servers);
        let store = scene.client();
        let file = store.open("listed", CREATE, striped(100)).unwrap();
        let view = View::new(5, 1, Datatype::bytes(PIECE).resized(0, 31).unwrap()).unwrap();
        let data = bytes(3000 * PIECE as usize, servers);
        let request = MOST_EXTENTS as u64 * PIECE;
        let all = data.len() as u64;
        let requests = || (0..all).step_by(request as usize).map(|start| start..all.min(start + request));
        for positions in requests() {
            let now = &data[positions.start as usize..positions.end as usize];
            file.write_named(Naming::List, &view, positions, &now).unwrap();
        }
        let mut expected = vec![0; file.size().unwrap() as usize];
        for (position, byte) in data.iter().enumerate() {
            expected[view.offset_of(position as u64).unwrap() as usize] = *byte;
        }
        let mut out = vec![9; expected.len()];
        assert_eq!(file.read_at(0, &mut out).unwrap(), expected.len() as u64);
        assert!(out == expected, "{servers} servers");
        let mut through = vec![9; data.len()];
        assert_eq!(file.read(&view, 0..all, &mut &mut through[..]).unwrap(), all);
        assert!(through == data);
        file.write(&View::contiguous(0), 0..expected.len() as u64, &&bytes(expected.len(), 77)[..]).unwrap();
        let plain = bytes(expected.len(), 77);
        for positions in requests() {
            let mut listed = vec![9; (positions.end - positions.start) as usize];
            let len = listed.len() as u64;
            assert_eq!(
                file.read_named(Naming::List, &view, positions.clone(), &mut &mut listed[..]).unwrap(),
                len
            );
            for (position, byte) in positions.zip(listed) {
                assert_eq!(byte, plain[view.offset_of(position).unwrap() as usize]);
            }
        }
        // Behind the end there is nothing.
        let mut behind = [9; 3 * PIECE as usize];
        let last =
            file.read_named(Naming::List, &view, all - PIECE..all + 2 * PIECE, &mut &mut behind[..]).unwrap();
        assert_eq!((last, &behind[PIECE as usize..]), (PIECE, &[9; 2 * PIECE as usize][..]));
    }
}

/// What the simulator takes the messages to be is what goes over the wire.
#[test]
fn messages_have_the_bytes_that_are_predicted() {
    let scene = Scene::new(3);
    let store = scene.client();
    let file = store.open("bytes", CREATE, striped(1000)).unwrap();
    let pieces = View::new(5, 1, Datatype::bytes(7).resized(0, 31).unwrap()).unwrap();
    let plain = View::contiguous(0);
    let few = MOST_EXTENTS as u64 * 7;
    let placement = file.file().placement;
    let long = long_view();
    // Every way to every server is there, and has the numbers of the links below.
    file.write_at(0, &bytes(6_000_000, 1)).unwrap();
    let mut links: Vec<ClientSession> = (0..3).map(|_| ClientSession::new()).collect();
    for (naming, view, positions) in [
        (Naming::View, &plain, 17..3_000_017),
        (Naming::View, &pieces, 0..500_000),
        (Naming::View, &pieces, 3..500_009),
        (Naming::View, &long, 5..1_000_000),
        (Naming::List, &pieces, 0..few),
        (Naming::List, &pieces, 70_000..70_000 + few),
        (Naming::List, &plain, 0..2_000_000),
    ] {
        for direction in [Direction::Write, Direction::Read] {
            let before = store.traffic();
            let mut data = bytes((positions.end - positions.start) as usize, 3);
            match direction {
                Direction::Write => file.write_named(naming, view, positions.clone(), &&data[..]).unwrap(),
                Direction::Read => {
                    file.read_named(naming, view, positions.clone(), &mut &mut data[..]).map(drop).unwrap();
                }
            }
            let after = store.traffic();
            let (mut sent, mut received) = (0, 0);
            let most = chunk_bytes(CHUNK_BYTES, direction, view);
            for chunk in Split::new(&placement, view, positions.clone(), most, MOST_STRIPS) {
                let link = &mut links[placement.server_of_slot(chunk.slot) as usize];
                let Exchange { request_bytes, answer_bytes } =
                    exchange(link, file.file(), view, naming, chunk, direction).unwrap();
                sent += request_bytes;
                received += answer_bytes;
            }
            let real = (after.sent - before.sent, after.received - before.received);
            assert_eq!(real, (sent, received), "{naming:?}, {direction:?}, {positions:?}");
        }
    }
}

/// The server hung up on a request that named such a view, and the client came back with it until its time was over.
#[test]
fn a_view_that_no_request_can_name_is_sent_in_parts() {
    let scene = Scene::new(3);
    let client = scene.client();
    let file = client.open("long", CREATE, striped(65536)).unwrap();
    let view = long_view();
    let data = bytes(1_800_000, 5);
    let before = client.traffic().sent;
    file.write(&view, 0..1_800_000, &&data[..]).unwrap();
    // Each server was once told of the pieces on all three.
    let mut encoding = Vec::new();
    view.encode(&mut encoding);
    let told = client.traffic().sent - before - data.len() as u64;
    assert!(told < encoding.len() as u64 * 3 / 2, "{told} bytes for a view of {}", encoding.len());
    let mut whole = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut whole).unwrap();
    let mut at = 0;
    for extent in view.extents(0..1_800_000) {
        let (offset, len) = (extent.offset as usize, extent.len as usize);
        assert!(whole[offset..offset + len] == data[at..at + len], "{offset}");
        at += len;
    }
    let mut back = vec![0; 1_000_000];
    assert_eq!(file.read(&view, 100_000..1_100_000, &mut &mut back[..]).unwrap(), 1_000_000);
    assert!(back == data[100_000..1_100_000]);
}

/// One that comes back as a server that takes less is told at once, too.
#[test]
fn a_request_that_is_too_long_is_refused_with_its_length() {
    let mut scene = Scene::new(1);
    let file = scene.client().open("few", CREATE, striped(65536)).unwrap();
    let offsets: Vec<i64> = (0..300).map(|piece: i64| 9 * piece + piece * piece % 7).collect();
    let pieces = Datatype::hindexed_block(1, &offsets, &Datatype::bytes(1)).unwrap();
    let view = View::new(0, 1, pieces).unwrap();
    file.write(&view, 0..300, &&bytes(300, 1)[..]).unwrap();
    scene.limits.head_bytes = 200;
    scene.restart(0);
    for _ in 0..2 {
        let error = file.write(&view, 0..300, &&bytes(300, 2)[..]).unwrap_err();
        assert!(matches!(error, StoreError::TooLong { bytes: 201.., limit: 200, .. }), "{error}");
    }
    file.write_at(0, b"short").unwrap();
}

/// 600,000 pieces of 3 bytes at irregular distances.
fn long_view() -> View {
    let mut offset = 0;
    let offsets: Vec<i64> = (0..600_000)
        .map(|piece: i64| {
            offset += 64 + piece * piece % 13;
            offset
        })
        .collect();
    View::new(7, 1, Datatype::hindexed_block(3, &offsets, &Datatype::bytes(1)).unwrap()).unwrap()
}

/// A file that is to go when it is closed took the one with it that had its path by then.
#[test]
fn an_open_file_is_removed_under_its_own_path_alone() {
    let scene = Scene::new(2);
    let store = scene.client();
    let ours = store.open("mine", CREATE, striped(0)).unwrap();
    store.rename("mine", "moved").unwrap();
    let gone = |removed: Result<(), StoreError>| {
        matches!(removed, Err(StoreError::Failed { failure: Failure::NotFound, .. }))
    };
    assert!(gone(ours.remove()));
    store.open("mine", NEW, striped(0)).unwrap();
    assert!(gone(ours.remove()));
    assert!(store.stat("mine").is_ok() && store.stat("moved").is_ok());
    store.open("moved", OPEN, striped(0)).unwrap().remove().unwrap();
    assert!(store.stat("moved").is_err());
}

/// Programs that ran asked where it was before until their time was over.
#[test]
fn a_server_that_comes_back_elsewhere_is_found() {
    let mut scene = Scene::new(2);
    let file = scene.client().open("f", CREATE, striped(100)).unwrap();
    file.write_at(0, &bytes(1000, 1)).unwrap();
    scene.restart_elsewhere(1);
    let mut out = vec![0; 1000];
    assert_eq!(file.read_at(0, &mut out).unwrap(), 1000);
    assert!(out == bytes(1000, 1));
}

/// The servers that had room made their parts longer, and so the file.
#[test]
fn a_file_for_which_a_server_has_no_room_stays_as_long_as_it_is() {
    let scene = Scene::new(3);
    let file = scene.client().open("f", CREATE, striped(1000)).unwrap();
    file.write_at(0, &bytes(500, 1)).unwrap();
    let without = file.file().placement.server_of_slot(1) as usize;
    let sums = format!("parts/{:016x}.sums", file.file().id.0);
    // Its part cannot be made.
    let obstacle = scene.folder_of(without).join(sums);
    std::fs::create_dir(&obstacle).unwrap();
    file.preallocate(100_000).unwrap_err();
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(file.size().unwrap(), 500);
    file.preallocate(100_000).unwrap();
    assert_eq!(file.size().unwrap(), 100_000);
    file.preallocate(1000).unwrap();
    assert_eq!(file.size().unwrap(), 100_000);
}

/// It was gone, and the answer was that it had not been there.
#[test]
fn a_name_that_alone_is_left_of_a_file_can_be_removed() {
    let scene = Scene::new(2);
    let store = scene.client();
    let file = store.open("name", NEW, striped(0)).unwrap().file();
    let part = Unreferenced { server: 0, file, bytes: 0, name_lost_by: None };
    store.remove_unreferenced(&part).unwrap();
    assert!(store.stat("name").is_err());
    store.remove("name").unwrap();
    assert_eq!(store.list("").unwrap(), []);
}

#[test]
fn a_list_that_is_too_long_is_refused() {
    let scene = Scene::new(1);
    let file = scene.client().open("listed", CREATE, striped(1000)).unwrap();
    let view = View::new(0, 1, Datatype::bytes(1).resized(0, 2).unwrap()).unwrap();
    let most = MOST_EXTENTS as u64;
    file.write_named(Naming::List, &view, 0..most, &&[1; MOST_EXTENTS][..]).unwrap();
    let refused = file.write_named(Naming::List, &view, 0..most + 1, &&[1; MOST_EXTENTS + 1][..]);
    let wrong = Failure::Invalid(Expected::Extents);
    assert!(matches!(refused, Err(StoreError::Failed { failure, .. }) if failure == wrong), "{refused:?}");
}

#[test]
fn memory_may_be_noncontiguous() {
    let scene = Scene::new(2);
    let store = scene.client();
    let file = store.open("columns", CREATE, striped(128)).unwrap();
    for (piece, stride) in [(4, 12), (600, 1000)] {
        let layout = Layout::strided(50, stride, Layout::bytes(piece)).unwrap();
        let memory = bytes(50_000, 3);
        let source = Layed::new(&memory, 0, layout.clone()).unwrap();
        file.write(&View::contiguous(0), 0..50 * piece, &source).unwrap();
        let mut packed = vec![0; 50 * piece as usize];
        file.read_at(0, &mut packed).unwrap();
        for (at, block) in packed.chunks(piece as usize).enumerate() {
            assert_eq!(block, &memory[at * stride as usize..][..piece as usize]);
        }
        let mut back = vec![0; 50_000];
        let mut sink = Layed::new(&mut back, 0, layout).unwrap();
        assert_eq!(file.read(&View::contiguous(0), 0..50 * piece, &mut sink).unwrap(), 50 * piece);
        for at in 0..50 {
            let start = at * stride as usize;
            assert_eq!(back[start..start + piece as usize], memory[start..start + piece as usize]);
        }
    }
}

#[test]
fn names_are_made_listed_renamed_and_removed() {
    let scene = Scene::new(3);
    let store = scene.client();
    for name in ["b", "a/1", "a/2", "c"] {
        store.open(name, NEW, striped(0)).unwrap().write_at(0, name.as_bytes()).unwrap();
    }
    let failure = store.open("b", NEW, striped(0)).unwrap_err();
    assert!(matches!(failure, StoreError::Failed { failure: Failure::Exists, .. }), "{failure}");
    let paths =
        |prefix| -> Vec<String> { store.list(prefix).unwrap().into_iter().map(|(path, _)| path).collect() };
    assert_eq!(paths(""), ["a/1", "a/2", "b", "c"]);
    assert_eq!(paths("a/"), ["a/1", "a/2"]);
    store.rename("a/1", "c").unwrap();
    assert_eq!(paths(""), ["a/2", "b", "c"]);
    let mut out = [0; 3];
    assert_eq!(store.open("c", OPEN, striped(0)).unwrap().read_at(0, &mut out).unwrap(), 3);
    assert_eq!(&out, b"a/1");
    assert_eq!(store.usage().unwrap().iter().map(|usage| usage.files).sum::<u64>(), 3);
    for path in paths("") {
        store.remove(&path).unwrap();
    }
    assert_eq!(store.usage().unwrap().iter().map(|usage| usage.files).sum::<u64>(), 0);
    assert_eq!(store.remove("b").unwrap_err().errno(), rustix::io::Errno::NOENT.raw_os_error());
    assert!(store.open("../b", CREATE, striped(0)).is_err());
}

#[test]
fn sizes_and_pointers_are_kept() {
    let scene = Scene::new(3);
    let store = scene.client();
    let file = store.open("f", CREATE, striped(10)).unwrap();
    file.set_size(95).unwrap();
    assert_eq!(file.size().unwrap(), 95);
    file.preallocate(50).unwrap();
    assert_eq!(file.size().unwrap(), 95);
    file.preallocate(123).unwrap();
    assert_eq!(file.size().unwrap(), 123);
    file.set_size(42).unwrap();
    assert_eq!(file.size().unwrap(), 42);
    let other = scene.client().open("f", OPEN, striped(0)).unwrap();
    assert_eq!((file.move_pointer(10).unwrap(), other.move_pointer(5).unwrap()), (0, 10));
    file.set_pointer(3).unwrap();
    assert_eq!(other.move_pointer(0).unwrap(), 3);
}

#[test]
fn locks_exclude_and_go_with_their_client() {
    let scene = Scene::new(2);
    let (a, b) = (scene.client(), scene.client());
    let file_a = a.open("f", CREATE, striped(0)).unwrap();
    let file_b = b.open("f", CREATE, striped(0)).unwrap();
    let patience = Duration::from_secs(5);
    let held = file_a.lock(0..10, false, patience).unwrap();
    let refused = file_b.lock(5..6, false, Duration::from_millis(20)).unwrap_err();
    assert_eq!(refused.errno(), rustix::io::Errno::TIMEDOUT.raw_os_error());
    let other = file_b.lock(10..20, false, patience).unwrap();
    file_b.unlock(other).unwrap();
    file_a.unlock(held).unwrap();
    let _held = file_a.lock(0..10, false, patience).unwrap();
    drop((file_a, a));
    let held = file_b.lock(5..6, false, patience).unwrap();
    file_b.unlock(held).unwrap();
}

#[test]
fn nobody_without_the_token_gets_in() {
    let scene = Scene::new(1);
    scene.client().open("f", CREATE, striped(0)).unwrap();
    let refused = scene.stranger().open("f", OPEN, striped(0)).unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
}

#[test]
fn a_server_that_restarts_loses_nothing_that_was_acknowledged() {
    let mut scene = Scene::new(2);
    let store = scene.client();
    let file = store.open("f", CREATE, striped(1 << 16)).unwrap();
    let data = bytes(3_000_000, 5);
    let view = View::new(0, 1, Datatype::bytes(300).resized(0, 700).unwrap()).unwrap();
    file.write(&view, 0..1_500_000, &&data[..1_500_000]).unwrap();
    scene.restart(0);
    scene.restart(1);
    file.write(&view, 1_500_000..3_000_000, &&data[1_500_000..]).unwrap();
    scene.restart(1);
    file.sync().unwrap();
    let mut out = vec![0; 3_000_000];
    assert_eq!(file.read(&view, 0..3_000_000, &mut &mut out[..]).unwrap(), 3_000_000);
    assert!(out == data);
    for checked in checked(&store, "f") {
        assert_eq!((checked.damaged, checked.blocks > 0), (0, true));
    }
}

#[test]
fn damage_is_found_and_never_delivered() {
    let mut scene = Scene::new(1);
    let store = scene.client();
    let file = store.open("f", CREATE, striped(0)).unwrap();
    file.write_at(0, &bytes(1 << 20, 1)).unwrap();
    file.sync().unwrap();
    scene.stop(0);
    scene.damage(0, 5 * 65536 + 17);
    scene.restart(0);
    let checked = checked(&store, "f");
    assert_eq!((checked[0].blocks, checked[0].damaged, checked[0].first.clone()), (16, 1, vec![5]));
    let mut out = vec![0; 65536];
    file.read_at(4 * 65536, &mut out).unwrap();
    let found = file.read_at(5 * 65536, &mut out).unwrap_err();
    assert!(matches!(found, StoreError::Failed { failure: Failure::Damaged { block: 5 }, .. }), "{found}");
    // Part of a damaged block cannot be written, all of it can.
    assert!(file.write_at(5 * 65536 + 100, &[1; 10]).is_err());
    file.write_at(5 * 65536, &bytes(65536, 2)).unwrap();
    file.sync().unwrap();
    assert_eq!(self::checked(&store, "f")[0].damaged, 0);
}

/// What every server finds of its part.
fn checked(store: &Store, path: &str) -> Vec<Checked> {
    store.check(path).unwrap().into_iter().map(|(_, checked)| checked.unwrap()).collect()
}

#[test]
fn a_server_that_stays_away_is_an_error_in_time() {
    let mut scene = Scene::new(2);
    let store = scene.client_with(Duration::from_millis(300));
    let file = store.open("f", CREATE, striped(100)).unwrap();
    scene.stop(1);
    let start = std::time::Instant::now();
    let error = file.write_at(0, &[1; 1000]).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { server: 1, .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
    scene.restart(1);
    file.write_at(0, &[1; 1000]).unwrap();
}
