//! Servers that are killed, stopped, or full: nothing hangs, and nothing that was synced is lost.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{Servers, is_sound};
use crate::support::{Place, mpi, mpiexec};
use pio_layout::{Datatype, View};
use pio_store::StoreError;
use pio_store::client::{Mode, Options, Store, StoreFile, StripingHints};
use pio_store::transport::Transport;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CREATE: Mode = Mode { create: true, exclusive: false };
const CLIENTS: u64 = 3;
/// Bytes of the file that each client has to itself.
const OWN_BYTES: u64 = 400_000;

fn connect(folder: &Path, timeout: Duration, transport: Option<Transport>) -> Store {
    let options = Options { timeout, transport, chunk_bytes: 64 << 10, ..Options::default() };
    Store::connect_with(&folder.join("store.toml"), options).unwrap()
}

/// A client's positions: pieces of 700 bytes, those of the others in between.
fn own(client: u64) -> View {
    let piece = Datatype::bytes(700).resized(0, 700 * CLIENTS as i64).unwrap();
    View::new(700 * client, 1, piece).unwrap()
}

/// Writes and syncs random extents until told to stop; says what must be there then.
fn stress(file: &StoreFile, client: u64, seed: u64, stop: &AtomicBool) -> Vec<u8> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut expected = vec![0; OWN_BYTES as usize];
    while !stop.load(Ordering::SeqCst) {
        let start = random.random_range(0..OWN_BYTES);
        let len = random.random_range(1..=200_000).min(OWN_BYTES - start);
        let data: Vec<u8> = (0..len).map(|_| random.random_range(0..=255) as u8).collect();
        file.write(&own(client), start..start + len, &&data[..]).unwrap();
        expected[start as usize..(start + len) as usize].copy_from_slice(&data);
        if random.random_range(0..4) == 0 {
            file.sync().unwrap();
        }
        if random.random_range(0..4) == 0 {
            let at = random.random_range(0..OWN_BYTES);
            let len = random.random_range(1..=50_000).min(OWN_BYTES - at);
            let mut out = vec![0; len as usize];
            file.read(&own(client), at..at + len, &mut &mut out[..]).unwrap();
            assert!(
                out == expected[at as usize..(at + len) as usize],
                "seed {seed}: read back while running"
            );
        }
    }
    file.sync().unwrap();
    expected
}

/// Clients write; servers are killed `kills` times at random moments and started again; every byte is compared.
fn kill_during_stress(kills: u32, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = Servers::start(folder.path(), &["--servers", "2", "--strip", "5 KiB"]);
    let stop = AtomicBool::new(false);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let expected: Vec<Vec<u8>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (folder, stop) = (folder.path(), &stop);
                let transport = if client % 2 == 0 { Transport::Nearest } else { Transport::Tcp };
                scope.spawn(move || {
                    let store = connect(folder, Duration::from_secs(60), Some(transport));
                    let file = store.open("stress", CREATE, StripingHints::default()).unwrap();
                    stress(&file, client, seed * 10 + client, stop)
                })
            })
            .collect();
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(random.random_range(1..150)));
            servers.restart();
        }
        stop.store(true, Ordering::SeqCst);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    servers.restart();
    let store = connect(folder.path(), Duration::from_secs(60), None);
    let file = store.open("stress", Mode::default(), StripingHints::default()).unwrap();
    for (client, expected) in (0..).zip(&expected) {
        let mut out = vec![0; OWN_BYTES as usize];
        file.read(&own(client), 0..OWN_BYTES, &mut &mut out[..]).unwrap();
        assert!(out == *expected, "seed {seed}: client {client}");
    }
    assert!(is_sound(&store, "stress"), "seed {seed}");
}

#[test]
fn killed_servers_lose_nothing_that_was_synced() {
    kill_during_stress(2, 1);
}

#[test]
#[ignore = "slow"]
fn slow_servers_killed_a_hundred_times_lose_nothing_that_was_synced() {
    for run in 0..20 {
        kill_during_stress(5, 100 + run);
    }
}

/// Runs collapse on two servers again and again; each time one of them, or both, is killed at some moment and started
/// again. Its files must be those that it writes without us.
fn kill_during_collapse(runs: u64, seed: u64) {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/collapse");
    let build = format!("BUILD={}", place.join("build").display());
    let compiler = format!("CC={}", mpi.mpicc.display());
    place.run(Command::new("make").arg("-C").arg(source).args([&compiler, &build])).succeeds();
    let job = |output: &str| {
        let program = place.join("build/collapse").display().to_string();
        let steps = ["--mesh", "12x10x9", "--iterations", "6", "--dump-every", "2", "--output", output];
        [&mpiexec(&mpi, 2)[..], &[program], &steps.map(str::to_owned)].concat()
    };
    let words = job("reference");
    place.run(Command::new(&words[0]).args(&words[1..])).succeeds();
    let folder = place.join("store");
    std::fs::create_dir(&folder).unwrap();
    let mut servers = [0, 1].map(|index| Servers::start_one(&folder, index, 2, &["--strip", "1 KiB"]));
    let store = connect(&folder, Duration::from_secs(60), None);
    let description = folder.join("store.toml").display().to_string();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let strategies = ["ecio", "two-phase", "list", "independent", "view-based", "sieving", "auto"];
    let mut usual = Duration::ZERO;
    // The first run is left alone: how long does one take?
    for (run, strategy) in (0..=runs).zip(strategies.iter().cycle()) {
        let when = random.random_range(0..=usual.as_millis() as u64);
        let (which, pause) = (random.random_range(0..3), random.random_range(0..200));
        let output = format!("run-{run}");
        let start = Instant::now();
        thread::scope(|scope| {
            if run > 0 {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(when));
                    let killed = || [0, 1].into_iter().filter(|index| which == 2 || which == *index);
                    killed().for_each(|index| servers[index].kill());
                    thread::sleep(Duration::from_millis(pause));
                    killed().for_each(|index| servers[index].start_again());
                });
            }
            let apply = ["apply", "--strategy", strategy, "--store", &description, "--"];
            place.pioscope(apply.into_iter().map(str::to_owned).chain(job(&output))).succeeds();
        });
        if run == 0 {
            usual = start.elapsed();
        }
        for entry in std::fs::read_dir(place.join("reference")).unwrap() {
            let entry = entry.unwrap();
            let (expected, name) = (std::fs::read(entry.path()).unwrap(), entry.file_name());
            let path = format!("{output}/{}", name.to_str().unwrap());
            let file = store.open(&path, Mode::default(), StripingHints::default()).unwrap();
            let mut bytes = vec![0; file.size().unwrap() as usize];
            file.read_at(0, &mut bytes).unwrap();
            assert!(
                bytes == expected,
                "seed {seed}, run {run}: {path}, server {which} killed after {when} ms"
            );
            assert!(is_sound(&store, &path), "{path}");
            store.remove(&path).unwrap();
        }
    }
    assert_eq!(store.list("").unwrap(), []);
}

#[test]
#[ignore = "slow"]
fn slow_servers_killed_a_hundred_times_during_collapse() {
    kill_during_collapse(100, 7);
}

#[test]
fn a_full_disk_is_told_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let Some(_servers) = Servers::start_on_small_disk(&disk, 12 << 20) else {
        eprintln!("skipped: no file systems of one's own here");
        return;
    };
    let store = connect(folder.path(), Duration::from_secs(20), None);
    let first = store.open("first", CREATE, StripingHints::default()).unwrap();
    let data: Vec<u8> = (0..2_000_000_u32).map(|at| (at / 3) as u8).collect();
    first.write_at(0, &data).unwrap();
    first.sync().unwrap();
    let no_space = Some(rustix_no_space());
    let second = store.open("second", CREATE, StripingHints::default()).unwrap();
    let error = second.write_at(0, &vec![1; 20 << 20]).unwrap_err();
    assert_eq!(Some(error.errno()), no_space, "{error}");
    let error = second.preallocate(30 << 20).unwrap_err();
    assert_eq!(Some(error.errno()), no_space, "{error}");
    // What was there is there, and there is room again when something is removed.
    let mut out = vec![0; data.len()];
    first.read_at(0, &mut out).unwrap();
    assert!(out == data);
    drop(second);
    store.remove("second").unwrap();
    let third = store.open("third", CREATE, StripingHints::default()).unwrap();
    third.write_at(0, &data).unwrap();
    third.sync().unwrap();
    for path in ["first", "third"] {
        assert!(is_sound(&store, path), "{path}");
    }
}

/// ENOSPC.
fn rustix_no_space() -> i32 {
    28
}

#[test]
fn a_slow_server_is_waited_for_and_a_stopped_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Servers::start(folder.path(), &["--servers", "1"]);
    for transport in [Transport::Tcp, Transport::Shared] {
        let store = connect(folder.path(), Duration::from_millis(700), Some(transport));
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
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        servers.signal("CONT");
        let mut out = [0; 10];
        file.read_at(60_000, &mut out).unwrap();
        assert!(out == [2; 10] || out == [3; 10]);
    }
}

#[test]
fn a_client_that_is_killed_in_the_middle_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let _servers = Servers::start(folder.path(), &["--servers", "2"]);
    let big = folder.path().join("big");
    std::fs::File::create(&big).unwrap().set_len(2 << 30).unwrap();
    let mut copy = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["store", "cp", "big", "pioscope:target"])
        .env("PIOSCOPE_STORE", folder.path().join("store.toml"))
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let store = connect(folder.path(), Duration::from_secs(20), None);
    let file = store.open("other", CREATE, StripingHints::default()).unwrap();
    while store.usage().unwrap().iter().map(|usage| usage.used_bytes).sum::<u64>() < 32 << 20 {
        thread::sleep(Duration::from_millis(1));
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
    file.write_at(0, b"as if nothing had happened").unwrap();
    file.sync().unwrap();
    // What was being written has another name, and is no longer in the way when the servers have given up its client.
    let paths: Vec<String> = store.list("").unwrap().into_iter().map(|(path, _)| path).collect();
    assert!(matches!(&paths[..], [other, part] if other == "other" && part.ends_with(".part")), "{paths:?}");
    for path in paths {
        assert!(is_sound(&store, &path));
    }
}

/// The next copy to the same path removes what a killed one left, once the servers have given up its client; until then it
/// is left alone, as one that is going on is.
#[test]
#[ignore = "slow"]
fn slow_what_a_killed_copy_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let _servers = Servers::start(folder.path(), &["--servers", "2"]);
    for (name, bytes) in [("big", 4 << 30), ("small", 100)] {
        std::fs::File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
    }
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        command.arg("store").args(words).env("PIOSCOPE_STORE", folder.path().join("store.toml"));
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let store = connect(folder.path(), Duration::from_secs(20), None);
    let paths = || -> Vec<String> { store.list("").unwrap().into_iter().map(|(path, _)| path).collect() };
    let mut copy = command(&["cp", "big", "pioscope:target"]).spawn().unwrap();
    while !paths().iter().any(|path| store.stat(path).is_ok_and(|stat| stat.size > 1 << 20)) {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(command(&["cp", "small", "pioscope:target"]).status().unwrap().success());
    assert!(command(&["check", "--repair"]).status().unwrap().success());
    assert_eq!(paths().len(), 2, "one is there, one is going on: {:?}", paths());
    copy.kill().unwrap();
    copy.wait().unwrap();
    let start = Instant::now();
    while paths() != ["target"] {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", paths());
        thread::sleep(Duration::from_secs(1));
        assert!(command(&["cp", "small", "pioscope:target"]).status().unwrap().success());
    }
    assert_eq!(store.unreferenced().unwrap(), []);
}
