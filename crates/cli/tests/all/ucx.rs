//! Servers and clients of processes of their own, through UCX: one is killed or stopped, and the other gets an error in
//! time, or goes on when it is back.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{Servers, is_sound};
use pio_store::StoreError;
use pio_store::client::{Mode, Options, Store, StripingHints};
use pio_store::transport::{Transport, ucx};

const CREATE: Mode = Mode { create: true, exclusive: false };

/// Servers in a folder; `None`, and a word about it, where there is no UCX.
fn start(folder: &Path, servers: &str) -> Option<Servers> {
    match ucx::available() {
        Ok(()) => Some(Servers::start_through("ucx", folder, &["--servers", servers])),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn connect(folder: &Path, timeout: Duration) -> Store {
    let options = Options { timeout, transport: Some(Transport::Ucx), ..Options::default() };
    Store::connect_with(&folder.join("store.toml"), options).unwrap()
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251 + seed) as u8).collect()
}

#[test]
fn a_server_that_is_killed_is_noticed_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut servers) = start(folder.path(), "2") else { return };
    let store = connect(folder.path(), Duration::from_secs(20));
    let file = store.open("f", CREATE, StripingHints::default()).unwrap();
    let data = bytes(8_000_000, 1);
    for round in 0..3 {
        thread::scope(|scope| {
            let writing = scope.spawn(|| file.write_at(round * 8_000_000, &data));
            thread::sleep(Duration::from_millis(7 * round));
            servers.restart();
            writing.join().unwrap().unwrap();
        });
    }
    file.sync().unwrap();
    let mut out = vec![0; 24_000_000];
    assert_eq!(file.read_at(0, &mut out).unwrap(), 24_000_000);
    assert!(out.chunks(8_000_000).all(|part| part == data));
    // Killed while nobody looks, and not started again: noticed at once, and an error when the timeout is over.
    let impatient = connect(folder.path(), Duration::from_secs(2));
    let file = impatient.open("f", CREATE, StripingHints::default()).unwrap();
    servers.kill();
    let start = Instant::now();
    let error = file.read_at(0, &mut out).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    servers.start_again();
    assert_eq!(file.read_at(0, &mut out).unwrap(), 24_000_000);
}

#[test]
fn a_slow_server_is_waited_for_and_a_stopped_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let Some(servers) = start(folder.path(), "1") else { return };
    let store = connect(folder.path(), Duration::from_secs(2));
    let file = store.open("f", CREATE, StripingHints::default()).unwrap();
    file.write_at(0, &[1; 100_000]).unwrap();
    thread::scope(|scope| {
        servers.signal("STOP");
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            servers.signal("CONT");
        });
        file.write_at(50_000, &[2; 3_000_000]).unwrap();
    });
    servers.signal("STOP");
    let start = Instant::now();
    let error = file.write_at(0, &[3; 3_000_000]).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    servers.signal("CONT");
    let mut out = [0; 10];
    file.read_at(60_000, &mut out).unwrap();
    assert!(out == [2; 10] || out == [3; 10]);
}

#[test]
fn a_client_that_is_killed_in_the_middle_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_servers) = start(folder.path(), "1") else { return };
    let big = folder.path().join("big");
    std::fs::File::create(&big).unwrap().set_len(2 << 30).unwrap();
    let mut copy = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["store", "cp", "big", "pioscope:target"])
        .env("PIOSCOPE_STORE", folder.path().join("store.toml"))
        .env("PIOSCOPE_TRANSPORT", "ucx")
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let store = connect(folder.path(), Duration::from_secs(20));
    let file = store.open("other", CREATE, StripingHints::default()).unwrap();
    while store.usage().unwrap().iter().map(|usage| usage.used_bytes).sum::<u64>() < 16 << 20 {
        assert!(copy.try_wait().unwrap().is_none(), "the copy ended");
        thread::sleep(Duration::from_millis(1));
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
    file.write_at(0, b"as if nothing had happened").unwrap();
    file.sync().unwrap();
    for (path, _) in store.list("").unwrap() {
        assert!(is_sound(&store, &path));
    }
}
