//! `pioscope serve`: servers that are killed and started again.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pio_store::client::{Mode, Store, StripingHints};

use crate::servers::{host_of, is_sound};
use crate::support::Place;

/// Servers in a process, killed when the test is over.
pub(crate) struct Servers(Child);

impl Servers {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Servers {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pioscope"))
            .arg("serve")
            .arg("--dir")
            .arg(folder)
            .args(arguments)
            .args(["--listen", &host_of(folder)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("the store is ready")));
        Servers(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn killed_servers_come_back_with_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--servers", "2", "--strip", "1 KiB"];
    let mut servers = Servers::start(folder.path(), &arguments);
    let store = Store::connect(&folder.path().join("store.toml")).unwrap();
    let file = store.open("f", Mode { create: true, exclusive: true }, StripingHints::default()).unwrap();
    let data: Vec<u8> = (0..500_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    file.write_at(1, &data).unwrap();
    servers.kill();
    servers = Servers::start(folder.path(), &arguments);
    file.sync().unwrap();
    servers.kill();
    let _servers = Servers::start(folder.path(), &arguments);
    let mut out = vec![0; data.len()];
    assert_eq!(file.read_at(1, &mut out).unwrap(), data.len() as u64);
    assert!(out == data);
    assert!(is_sound(&store, "f"));
}

/// Else parts of files would not be found, and be read as zeros.
#[test]
fn servers_are_started_with_the_folders_that_they_had() {
    let place = Place::new();
    let arguments = ["--servers", "2"];
    Servers::start(&place.join("one"), &arguments).kill();
    let serve = |words: &[&str]| place.pioscope([&["serve"][..], words].concat());
    serve(&["--servers", "3", "--dir", "one"])
        .fails_with("the folder of server 0 of 2: expected server 0 of 3");
    serve(&["--servers", "2", "--dir", "one", "--dir", "two"])
        .fails_with("has its parts of files in 1 folder (--dir)");
    serve(&["--servers", "2", "--dir", "two", "--dir", "one"])
        .fails_with("expected it as the first folder (--dir)");
    Servers::start(&place.join("one"), &arguments);
}

#[test]
fn a_server_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["serve", "--servers", "2", "--server-index", "2", "--dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "pioscope: there is no server 2: expected less than 2\n");
}

/// The second was said to run already where the first was just started.
#[test]
fn several_servers_do_not_share_a_port() {
    let place = Place::new();
    let serve = |listen| place.pioscope(["serve", "--servers", "4", "--listen", listen, "--dir", "store"]);
    let why = "--listen with port 4000: 4 servers in one process cannot all listen there";
    serve("127.0.0.1:4000").fails_with(why);
    serve("127.0.0.1:4000,ucx=4001").fails_with(why);
    assert!(!place.join("store").exists());
}

/// It was written down as where to connect to: clients on other hosts looked for the servers on their own.
#[test]
fn clients_are_not_told_to_connect_to_any_address() {
    let place = Place::new();
    for any in ["0.0.0.0", "0.0.0.0:0", "[::]:0"] {
        let told = place.pioscope(["serve", "--listen", any, "--dir", "store"]);
        told.fails_with("--listen expects the name or the address that they know this host by");
        assert!(!place.join("store/store.toml").exists());
    }
}

/// It knew where the other had been before, and said that the store was ready.
#[test]
fn the_store_is_ready_when_all_servers_are_there() {
    let place = Place::new();
    let serve = |index: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pioscope"))
            .args(["serve", "--servers", "2", "--server-index", index, "--dir"])
            .arg(place.join("store"))
            .args(["--listen", &host_of(&place.join("store"))])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        // The first line says where it is, the next what of the store.
        said.next().unwrap();
        (Servers(child), said)
    };
    let (first, _) = serve("0");
    let (second, mut said) = serve("1");
    assert!(said.next().unwrap().contains("the store is ready: "));
    drop((first, second));
    let (_first, mut said) = serve("0");
    let line = said.next().unwrap();
    assert!(line.contains("server 1 of 2 is not there yet: ") && line.contains(" does not answer"), "{line}");
    let (_second, mut said) = serve("1");
    assert!(said.next().unwrap().contains("the store is ready: "));
}

/// All files and folders in and below a folder, each with its mode.
fn modes(folder: &Path) -> Vec<(std::path::PathBuf, u32)> {
    let mut found = vec![(folder.to_owned(), fs::metadata(folder).unwrap().mode() & 0o7777)];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(modes(&path)),
            false => found.push((path.clone(), fs::metadata(&path).unwrap().mode() & 0o7777)),
        }
    }
    found
}

#[track_caller]
fn is_private(folder: &Path) {
    for (path, mode) in modes(folder) {
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

/// Any user of the machine could read the files of a store, whose folder had the modes of the umask.
#[test]
fn a_store_is_its_owners_alone_and_an_older_one_is_made_so() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("store");
    let serve = format!(
        "umask 0; exec '{}' serve --servers 2 --dir '{}'",
        env!("CARGO_BIN_EXE_pioscope"),
        folder.display()
    );
    let start = || {
        let mut child = Command::new("sh").args(["-c", &serve]).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut said = Vec::new();
        for line in lines {
            let ready = line.contains("the store is ready");
            said.push(line);
            if ready {
                break;
            }
        }
        (Servers(child), said)
    };
    let (servers, said) = start();
    assert_eq!(said.len(), 3, "{said:?}");
    let store = Store::connect(&folder.join("store.toml")).unwrap();
    let file = store.open("f", Mode { create: true, exclusive: true }, StripingHints::default()).unwrap();
    file.write_at(0, &[7; 200_000]).unwrap();
    file.sync().unwrap();
    is_private(&folder);
    drop(servers);

    for (path, _) in modes(&folder) {
        fs::set_permissions(&path, Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 }))
            .unwrap();
    }
    let (_servers, said) = start();
    let about = |text: &str| said.iter().filter(|line| line.contains(text)).count();
    assert_eq!(
        (
            about("files and folders of the store: now only their owner can"),
            about("others could read the token")
        ),
        (1, 1)
    );
    is_private(&folder);
    assert_eq!(file.read_at(0, &mut [0; 200_000]).unwrap(), 200_000);
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let place = tempfile::tempdir().unwrap();
    for mode in [0o770, 0o757, 0o1777] {
        fs::set_permissions(place.path(), Permissions::from_mode(mode)).unwrap();
        for arguments in [["--dir", ".", "--strip", "1 KiB"], ["--dir", "own", "--store-file", "store.toml"]]
        {
            let store_file_in_sticky = mode == 0o1777 && arguments[1] == "own";
            if store_file_in_sticky {
                continue;
            }
            let output = Command::new(env!("CARGO_BIN_EXE_pioscope"))
                .arg("serve")
                .args(arguments)
                .current_dir(place.path())
                .output()
                .unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            let expected = format!("pioscope: .: others can write to this folder (mode {mode:04o})");
            assert!(
                !output.status.success() && said.starts_with(&expected) && said.lines().count() == 1,
                "{said}"
            );
        }
    }
}

/// Bytes that the parts of files take on the disk.
fn taken(folder: &Path) -> u64 {
    let parts = modes(folder).into_iter().map(|(path, _)| path);
    let parts =
        parts.filter(|path| path.parent().is_some_and(|folder| folder.ends_with("parts")) && path.is_file());
    parts.map(|path| fs::metadata(path).unwrap().blocks() * 512).sum()
}

const LIMIT: u64 = 4 << 20;
const CREATE: Mode = Mode { create: true, exclusive: false };

#[test]
fn files_take_no_more_room_than_they_may() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["--servers", "2", "--limit", "4MiB"];
    let mut servers = Servers::start(place.path(), &arguments);
    let store = Store::connect(&place.path().join("store.toml")).unwrap();
    let file = store.open("f", CREATE, StripingHints::default()).unwrap();
    let data = vec![3; 3 << 20];
    file.write_at(0, &data).unwrap();
    // A hole takes none.
    file.write_at(1 << 40, b"end").unwrap();
    let refused = store.open("g", CREATE, StripingHints::default()).unwrap().write_at(0, &data).unwrap_err();
    assert_eq!(refused.errno(), rustix::io::Errno::NOSPC.raw_os_error());
    assert!(
        refused.to_string().contains("the limit that `pioscope serve --limit` set is reached"),
        "{refused}"
    );
    assert!(taken(place.path()) <= LIMIT);
    // What is there can be written over, however full it is, and the limit is there after a restart.
    file.write_at(0, &data).unwrap();
    servers.kill();
    servers = Servers::start(place.path(), &arguments);
    file.write_at(0, &data).unwrap();
    store.open("g", CREATE, StripingHints::default()).unwrap().write_at(0, &data).unwrap_err();
    // Room comes back with what is removed or cut.
    store.remove("g").unwrap();
    file.set_size(1 << 20).unwrap();
    let other = store.open("h", CREATE, StripingHints::default()).unwrap();
    other.write_at(0, &data[..2 << 20]).unwrap();
    store.remove("f").unwrap();
    other.preallocate(7 << 19).unwrap();
    other.preallocate(5 << 20).unwrap_err();
    assert_eq!(other.size().unwrap(), 7 << 19);
    // Room that was made sure of is the file's.
    other.write_at(0, &[5; 7 << 19]).unwrap();
    assert!(taken(place.path()) <= LIMIT);
    drop(servers);
}

#[test]
fn writers_at_the_same_moment_take_no_more_room_than_there_is() {
    let place = tempfile::tempdir().unwrap();
    let _servers = Servers::start(place.path(), &["--servers", "2", "--limit", "4 MiB"]);
    let refused = std::thread::scope(|scope| {
        // Twice the room, so that who comes last is refused too.
        let write = |name: String| {
            let store = Store::connect(&place.path().join("store.toml")).unwrap();
            let file = store.open(&name, CREATE, StripingHints::default()).unwrap();
            (0..80_u64).find_map(|piece| file.write_at(piece * 300_007, &[1; 100_000]).err())
        };
        let writers: Vec<_> = (0..4).map(|writer| scope.spawn(move || write(format!("f{writer}")))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    for error in refused {
        assert_eq!(error.unwrap().errno(), rustix::io::Errno::NOSPC.raw_os_error());
    }
    let taken = taken(place.path());
    assert!((LIMIT - (1 << 20)..=LIMIT).contains(&taken), "{taken}");
}

/// A database of names that is damaged took the other servers of its process with it.
#[test]
fn one_damaged_database_stops_no_other_server() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let one = StripingHints { factor: 1, ..StripingHints::default() };
    let mut servers = Servers::start(place.path(), &["--servers", "4"]);
    let store = Store::connect(&path("store.toml")).unwrap();
    let names: Vec<String> = (1..40).map(|name| format!("{}", name * 7919)).collect();
    for name in &names {
        store.open(name, CREATE, one).unwrap().write_at(0, name.as_bytes()).unwrap();
    }
    servers.kill();
    let database = path("server-2/names.redb");
    let whole = fs::read(&database).unwrap();
    let garbled: Vec<u8> = whole.iter().map(|byte| byte ^ 0x5a).collect();
    let late: Vec<u8> =
        whole.iter().enumerate().map(|(at, byte)| if at < 8192 { *byte } else { !byte }).collect();
    for damaged in [garbled, late, Vec::new(), whole[..whole.len() / 2].to_vec()] {
        fs::write(&database, damaged).unwrap();
        let servers = Servers::start(place.path(), &["--servers", "4"]);
        let store = Store::connect(&path("store.toml")).unwrap();
        let outcomes: Vec<_> = names.iter().map(|name| store.stat(name)).collect();
        let there = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert!((1..names.len()).contains(&there), "{there}");
        for error in outcomes.into_iter().filter_map(Result::err) {
            let said = error.to_string();
            assert!(said.starts_with("server 2 at ") && said.contains("server-2/names.redb: "), "{said}");
        }
        let check = Command::new(env!("CARGO_BIN_EXE_pioscope"))
            .args(["store", "check", "--store"])
            .arg(path("store.toml"))
            .output()
            .unwrap();
        let said = String::from_utf8(check.stdout).unwrap();
        assert!(
            !check.status.success() && said.starts_with("server 2: ") && said.contains("names.redb"),
            "{said}"
        );
        drop(servers);
    }
    // Alone, there is nothing to serve.
    let output = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["serve", "--servers", "4", "--server-index", "2", "--dir"])
        .arg(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("server-2/names.redb: "), "{said}");
    // A new database gives no number away that a lost file had.
    fs::remove_file(&database).unwrap();
    let _servers = Servers::start(place.path(), &["--servers", "4"]);
    let store = Store::connect(&path("store.toml")).unwrap();
    for name in &names {
        let file = store.open(name, CREATE, one).unwrap();
        let mut there = [0; 8];
        let len = file.read_at(0, &mut there).unwrap() as usize;
        assert!(len == 0 || there[..len] == *name.as_bytes(), "{name}");
    }
}
