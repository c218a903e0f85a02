//! `pioscope store`: what it prints, and what it says of wrong input.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use pio_store::StoreError;
use pio_store::client::{Mode, Store, StripingHints};

use crate::servers::Servers;
use crate::support::{Place, Transcript};

/// A folder with a store of three servers.
struct Scene {
    place: Place,
    servers: Servers,
}

impl Scene {
    fn new() -> Scene {
        let place = Place::new();
        let servers = Servers::start(&place.join("store"), &["--servers", "3", "--strip", "1 KiB"]);
        Scene { place, servers }
    }

    fn store(&self, words: &[&str]) -> Transcript {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        command.arg("store").args(words).env("PIOSCOPE_STORE", self.place.join("store/store.toml"));
        self.place.run(&mut command)
    }

    /// Changes the part of a server, whose only one it is, while the server is down; `None`: takes it away.
    fn damage(&mut self, server: usize, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) {
        self.servers.kill();
        let parts = self.place.join(&format!("store/server-{server}/parts"));
        let data = fs::read_dir(parts)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension() == Some("data".as_ref()))
            .unwrap();
        match change(fs::read(&data).unwrap()) {
            Some(bytes) => fs::write(&data, bytes).unwrap(),
            None => fs::remove_file(&data).unwrap(),
        }
        self.servers.start_again();
    }
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn files_go_in_and_come_out_again() {
    let scene = Scene::new();
    let bytes = data(300_000);
    fs::write(scene.place.join("mesh.nc"), &bytes).unwrap();
    fs::write(scene.place.join("empty"), b"").unwrap();
    fs::create_dir(scene.place.join("results")).unwrap();
    scene.store(&["cp", "mesh.nc", "pioscope:run/mesh.nc"]).succeeds();
    scene.store(&["cp", "empty", "pioscope:"]).succeeds();
    scene
        .store(&["cp", "pioscope:run/mesh.nc", "pioscope:copies/", "--strip", "64 KiB", "--servers", "1"])
        .succeeds();
    for target in ["again.nc", "results"] {
        scene.store(&["cp", "pioscope:run/mesh.nc", target]).succeeds();
    }
    scene.store(&["cp", "pioscope:empty", "nothing"]).succeeds();
    assert!(fs::read(scene.place.join("again.nc")).unwrap() == bytes);
    assert!(fs::read(scene.place.join("results/mesh.nc")).unwrap() == bytes);
    assert_eq!(fs::read(scene.place.join("nothing")).unwrap(), b"");

    assert_eq!(scene.store(&["ls"]).succeeds().out, "copies/mesh.nc\nempty\nrun/mesh.nc\n");
    let long = "         300000 copies/mesh.nc\n              0 empty\n         300000 run/mesh.nc\n";
    assert_eq!(scene.store(&["ls", "--long"]).succeeds().out, long);
    assert_eq!(scene.store(&["ls", "run/"]).succeeds().out, "run/mesh.nc\n");
    let stat = scene.store(&["stat", "pioscope:run/mesh.nc"]).succeeds().out;
    assert!(stat.starts_with("run/mesh.nc\n  size     300000 B\n  strips   1024 B\n  servers  "), "{stat}");
    let df = scene.store(&["df"]).succeeds().out;
    assert_eq!(df.lines().filter(|line| line.contains("127.")).count(), 3, "{df}");

    let check = scene.store(&["check"]).succeeds().out;
    assert!(check.starts_with("3 files, ") && check.ends_with(" blocks: all checksums match\n"), "{check}");
    // A copy replaces what was there.
    scene.store(&["cp", "empty", "pioscope:run/mesh.nc"]).succeeds();
    assert!(scene.store(&["stat", "run/mesh.nc"]).succeeds().out.contains("size     0 B"));
    scene.store(&["rm", "run/mesh.nc", "pioscope:copies/mesh.nc", "empty"]).succeeds();
    assert_eq!(scene.store(&["ls"]).succeeds().out, "");
}

#[test]
fn folders_are_listed_and_removed() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), b"text").unwrap();
    for path in ["run/a", "run/b/c", "runner", "old", "run"] {
        scene.store(&["cp", "f", &format!("pioscope:{path}")]).succeeds();
    }
    assert_eq!(scene.store(&["ls", "run/"]).succeeds().out, "run/a\nrun/b/c\n");
    assert_eq!(scene.store(&["ls", "old", "pioscope:/run/b/", "run/b"]).succeeds().out, "old\nrun/b/c\n");
    scene.store(&["rm", "run/b"]).fails_with("run/b: a folder of 1 file: expected --recursive");
    scene
        .store(&["rm", "-r", "pioscope:/"])
        .fails_with("that is all of the store: expected files or folders");
    // What can be removed is, as rm does.
    scene.store(&["rm", "missing", "old"]).fails_with("missing: no such file or folder in the store");
    scene.store(&["rm", "--force", "missing", "gone/"]).succeeds();
    assert_eq!(scene.store(&["ls"]).succeeds().out, "run\nrun/a\nrun/b/c\nrunner\n");
    scene.store(&["rm", "--recursive", "run/"]).succeeds();
    assert_eq!(scene.store(&["ls"]).succeeds().out, "run\nrunner\n");
    scene.store(&["rm", "-r", "run"]).succeeds();
    assert_eq!(scene.store(&["ls"]).succeeds().out, "runner\n");
    assert_eq!(scene.store(&["check"]).succeeds().out, "1 file, 1 block: all checksums match\n");
}

/// Its locks were kept for 30 s, and nobody said whose they were.
#[test]
fn who_is_killed_gives_up_its_locks_at_once() {
    for transport in ["tcp", "shared"] {
        let scene = Scene::new();
        let pipe = scene.place.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut copy = Command::new(env!("CARGO_BIN_EXE_pioscope"))
            .args(["store", "cp"])
            .arg(&pipe)
            .arg("pioscope:f")
            .env("PIOSCOPE_STORE", scene.place.join("store/store.toml"))
            .env("PIOSCOPE_TRANSPORT", transport)
            .spawn()
            .unwrap();
        let _open = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let store = Store::connect(&scene.place.join("store/store.toml")).unwrap();
        let holder = loop {
            let Some((name, _)) = store.list("f.").unwrap().pop() else { continue };
            // Who looks whether it is locked yet holds the lock for a moment, in which the copy would find it taken.
            thread::sleep(Duration::from_millis(300));
            let file = store.open(&name, Mode::default(), StripingHints::default()).unwrap();
            match file.lock(0..1, false, Duration::ZERO) {
                Ok(lock) => file.unlock(lock).unwrap(),
                Err(StoreError::Locked { holder, .. }) => break (holder, file),
                Err(error) => panic!("{error}"),
            }
        };
        let (holder, file) = holder;
        assert_eq!(holder.pid, copy.id());
        assert_eq!(holder.host, fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim_end());
        copy.kill().unwrap();
        let lock = file.lock(0..1, false, Duration::from_secs(20)).unwrap();
        file.unlock(lock).unwrap();
        copy.wait().unwrap();
        assert!(
            scene
                .store(&["check", "--repair"])
                .succeeds()
                .out
                .contains(": of a copy that was not completed: removed")
        );
    }
}

#[test]
fn damage_is_found_and_named() {
    let mut scene = Scene::new();
    fs::write(scene.place.join("f"), data(600_000)).unwrap();
    scene.store(&["cp", "f", "pioscope:f"]).succeeds();
    let stat = scene.store(&["stat", "f"]).succeeds().out;
    let servers = stat.lines().find(|line| line.contains("servers")).unwrap().replace("servers", "");
    let second: usize = servers.split(',').nth(1).unwrap().trim().parse().unwrap();
    scene.damage(second, |mut bytes| {
        bytes[2 * 65536 + 17] ^= 1;
        Some(bytes)
    });
    let found = scene.store(&["check"]);
    assert_eq!(found.code, Some(1), "{}", found.err);
    // Block 2 of the part begins with its strip 128, which is the file's strip 128 * 3 + 1.
    let expected = format!(
        "f: server {second}: block 2 is damaged: some of bytes 394240 to 588799 of the file\n\
         1 file, 12 blocks: damaged: 1 file, 1 block\n"
    );
    assert_eq!(found.out, expected);
    scene.store(&["cp", "pioscope:f", "g"]).fails_with("damaged data: block 2");
    assert!(!scene.place.join("g").exists());
    // Data that were cut or taken away are no zeros.
    for (kept, block) in [(Some(100_000), 3), (None, 3)] {
        scene.damage(second, |bytes| kept.map(|kept| bytes[..kept].to_vec()));
        let found = scene.store(&["check"]);
        assert_eq!(found.code, Some(1), "{}", found.err);
        let expected = format!("f: server {second}: damaged data: block {block} of the server's part");
        assert!(found.out.starts_with(&expected), "{}", found.out);
        scene.store(&["cp", "pioscope:f", "g"]).fails_with("damaged data: block 3");
    }
    scene.store(&["rm", "f"]).succeeds();
    assert_eq!(scene.store(&["ls"]).succeeds().out, "");
}

/// What was sound when it was read is not delivered any more once it is known to be damaged.
#[test]
fn damage_that_was_named_is_not_delivered() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), data(600_000)).unwrap();
    scene.store(&["cp", "f", "pioscope:f"]).succeeds();
    scene.store(&["cp", "pioscope:f", "before"]).succeeds();
    let part = fs::read_dir(scene.place.join("store/server-0/parts")).unwrap();
    let part = part.map(|entry| entry.unwrap().path()).find(|path| path.extension() == Some("data".as_ref()));
    let part = part.unwrap();
    let mut bytes = fs::read(&part).unwrap();
    bytes[50] ^= 1;
    // In place: the server has it open.
    let file = fs::OpenOptions::new().write(true).open(&part).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[50..51], 50).unwrap();
    assert_eq!(scene.store(&["check"]).code, Some(1));
    scene.store(&["cp", "pioscope:f", "after"]).fails_with("damaged data: block 0");
    assert!(!scene.place.join("after").exists());
}

#[test]
fn what_is_removed_while_it_is_copied_is_not_taken_for_whole() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), data(24 << 20)).unwrap();
    scene.store(&["cp", "f", "pioscope:f"]).succeeds();
    let pipe = scene.place.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let copying = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["store", "cp", "pioscope:f"])
        .arg(&pipe)
        .env("PIOSCOPE_STORE", scene.place.join("store/store.toml"))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = fs::File::open(&pipe).unwrap();
    let mut first = [0];
    std::io::Read::read_exact(&mut out, &mut first).unwrap();
    // The pipe has room for a small part of what the copy has read by now.
    scene.store(&["rm", "f"]).succeeds();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    let done = copying.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && said.contains("removed, replaced or cut while it was copied"),
        "{said}"
    );
}

/// What is left of files whose removal was cut short is found, and removed when asked to.
#[test]
fn what_belongs_to_no_file_is_found_and_removed() {
    let mut scene = Scene::new();
    fs::write(scene.place.join("f"), data(600_000)).unwrap();
    fs::write(scene.place.join("small"), data(10)).unwrap();
    scene.store(&["cp", "f", "pioscope:f"]).succeeds();
    scene.store(&["cp", "small", "pioscope:kept"]).succeeds();
    let parts = scene.place.join("store/server-1/parts");
    let names =
        || -> Vec<_> { fs::read_dir(&parts).unwrap().map(|entry| entry.unwrap().file_name()).collect() };
    // The server did not see the removal of one of its parts.
    let kept: Vec<_> = names().into_iter().map(|name| (fs::read(parts.join(&name)).unwrap(), name)).collect();
    scene.store(&["rm", "f"]).succeeds();
    assert!(names().len() < kept.len());
    scene.servers.kill();
    kept.iter().for_each(|(bytes, name)| fs::write(parts.join(name), bytes).unwrap());
    scene.servers.start_again();

    let found = scene.store(&["check"]).succeeds().out;
    let lines: Vec<&str> = found.lines().collect();
    assert!(
        matches!(&lines[..], [part, hint, all]
            if part.starts_with("server 1: part ") && part.ends_with(" B, belongs to no file")
                && hint.contains("check --repair") && all.starts_with("1 file, ")),
        "{found}"
    );
    let repaired = scene.store(&["check", "--repair"]).succeeds().out;
    assert!(repaired.contains(" B, belongs to no file: removed\n"), "{repaired}");
    assert_eq!(scene.store(&["check"]).succeeds().out, "1 file, 1 block: all checksums match\n");
    scene.store(&["cp", "pioscope:kept", "again"]).succeeds();
    assert!(fs::read(scene.place.join("again")).unwrap() == data(10));
    assert_eq!(scene.store(&["check", "--repair", "kept"]).code, Some(2));
}

/// What a server had of files that lost its folder does not read as zeros: nobody may take that for sound.
#[test]
fn what_a_server_lost_with_its_folder_is_named() {
    let mut scene = Scene::new();
    let store = Store::connect(&scene.place.join("store/store.toml")).unwrap();
    // Not by `cp`, which renames: the server of the first strip keeps the name too. The small file has bytes there alone.
    for (path, len) in [("f", 600_000), ("small", 10)] {
        let file =
            store.open(path, Mode { create: true, exclusive: true }, StripingHints::default()).unwrap();
        file.write_at(0, &data(len)).unwrap();
        file.sync().unwrap();
    }
    let first = |path: &str| store.stat(path).unwrap().placement.server_of_slot(0);
    let lost = (0..3).find(|server| *server != first("f") && *server != first("small")).unwrap();
    // One whose name is kept elsewhere, and its record there.
    let home = |path: &str| store.stat(path).unwrap().file.home();
    let made = (0..).map(|number| format!("made-{number}")).find(|path| {
        store.open(path, Mode { create: true, exclusive: true }, StripingHints::default()).unwrap();
        let is_it = home(path) == lost;
        if !is_it {
            store.remove(path).unwrap();
        }
        is_it
    });
    store.rename(&made.unwrap(), "moved").unwrap();
    assert_ne!(pio_protocol::owner_of("moved", 3), lost, "another name for it, then");
    scene.servers.kill();
    fs::remove_dir_all(scene.place.join(&format!("store/server-{lost}"))).unwrap();
    scene.servers.start_again();
    // Of that one the record is gone: the others are listed all the same.
    let long = scene.store(&["ls", "--long"]).succeeds();
    assert_eq!(long.out, "         600000 f\n              ? moved\n             10 small\n");
    assert!(long.err.contains("moved: server"), "{}", long.err);
    scene.store(&["rm", "moved"]).succeeds();
    let check = scene.store(&["check"]);
    assert_eq!(check.code, Some(1), "{}", check.out);
    let said = format!("f: server {lost}: what this server had of the file is lost: ");
    assert!(check.out.starts_with(&said) && check.out.contains("damaged: 1 file, 0 blocks"), "{}", check.out);
    let copied = scene.store(&["cp", "pioscope:f", "again"]);
    assert!(copied.code == Some(1) && copied.err.contains(&said), "{}", copied.err);
    assert_eq!(scene.store(&["cp", "pioscope:small", "again"]).succeeds().err, "");
    let file = store.open("f", Mode::default(), StripingHints::default()).unwrap();
    let found = file.read_at(0, &mut [0; 10_000]).unwrap_err();
    assert!(found.to_string().starts_with(&said), "{found}");
    file.write_at(0, &data(600_000)).unwrap();
    file.sync().unwrap();
    assert_eq!(scene.store(&["check"]).code, Some(0));
    // What was made since was never lost.
    let file = store.open("holes", Mode { create: true, exclusive: true }, StripingHints::default()).unwrap();
    file.write_at(10_000, b"x").unwrap();
    let mut read = [1; 10_001];
    assert_eq!(file.read_at(0, &mut read).unwrap(), 10_001);
    assert!(read[..10_000] == [0; 10_000]);
}

/// The folder of a server's names may be one that was not mounted: what other servers have of those files is kept until somebody says
/// that it is to go.
#[test]
fn parts_of_files_whose_names_are_lost_are_kept() {
    let mut scene = Scene::new();
    let store = Store::connect(&scene.place.join("store/store.toml")).unwrap();
    let make = |path: &str| {
        let file =
            store.open(path, Mode { create: true, exclusive: true }, StripingHints::default()).unwrap();
        file.write_at(0, &data(600_000)).unwrap();
        file.sync().unwrap();
        store.stat(path).unwrap()
    };
    let file = make("f");
    let owner = file.placement.server_of_slot(0);
    let folder = scene.place.join(&format!("store/server-{owner}"));
    scene.servers.kill();
    fs::rename(&folder, scene.place.join("away")).unwrap();
    scene.servers.start_again();
    let repaired = scene.store(&["check", "--repair"]);
    assert_eq!(repaired.code, Some(1), "{}", repaired.out);
    let why = format!("of a file whose name may be one that server {owner} lost with its folder\n");
    assert_eq!(repaired.out.matches(&why).count(), 2, "{}", repaired.out);
    assert!(repaired.out.contains("; of files whose names are lost: 2 parts\n"), "{}", repaired.out);
    // The folder is there again, and with it the file.
    scene.servers.kill();
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(scene.place.join("away"), &folder).unwrap();
    scene.servers.start_again();
    scene.store(&["cp", "pioscope:f", "again"]).succeeds();
    assert!(fs::read(scene.place.join("again")).unwrap() == data(600_000));

    // A copy of the names that is older than a file.
    let names = folder.join("names.redb");
    scene.servers.kill();
    fs::copy(&names, scene.place.join("names")).unwrap();
    scene.servers.start_again();
    let later = (0..).map(|number| format!("later-{number}"));
    let path = later.map(|path| (make(&path), path)).find(|(stat, _)| stat.file.home() == owner).unwrap().1;
    scene.servers.kill();
    fs::copy(scene.place.join("names"), &names).unwrap();
    scene.servers.start_again();
    assert!(scene.store(&["stat", &path]).err.contains("no such file"));
    let repaired = scene.store(&["check", "--repair"]);
    assert!(repaired.code == Some(1) && repaired.out.contains(": 3 parts\n"), "{}", repaired.out);
    assert_eq!(repaired.out.matches(&why).count(), 3, "{}", repaired.out);
    let removed = scene.store(&["check", "--repair", "--remove-lost"]).succeeds();
    assert_eq!(removed.out.matches(": removed\n").count(), 3, "{}", removed.out);
    assert_eq!(scene.store(&["check"]).code, Some(0));
}

/// A copy that was killed while it took its path has two: who removes the one must not remove the file.
#[test]
fn a_copy_that_has_its_path_already_is_complete() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), data(100_000)).unwrap();
    let store = Store::connect(&scene.place.join("store/store.toml")).unwrap();
    let left = "f.0123abcd.part";
    for verb in [&["check", "--repair"][..], &["cp", "f", "pioscope:f"], &["rm", left]] {
        scene.store(&["cp", "f", "pioscope:f"]).succeeds();
        store.link(left, store.stat("f").unwrap().file).unwrap();
        assert_eq!(scene.store(&["ls"]).succeeds().out, format!("f\n{left}\n"));
        scene.store(verb).succeeds();
        assert_eq!(scene.store(&["ls"]).succeeds().out, "f\n");
        scene.store(&["cp", "pioscope:f", "again"]).succeeds();
        assert!(fs::read(scene.place.join("again")).unwrap() == data(100_000));
        assert!(scene.store(&["check"]).succeeds().out.starts_with("1 file, "));
    }
}

/// What a copy that was killed left is found under the name that the store has, however the path is written.
#[test]
fn what_another_copy_left_is_removed_whatever_the_path_looks_like() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), data(1000)).unwrap();
    let store = Store::connect(&scene.place.join("store/store.toml")).unwrap();
    for path in ["run/f", "/run/f", "run//f", "./run/f"] {
        let mode = Mode { create: true, exclusive: true };
        drop(store.open("run/f.0123abcd.part", mode, StripingHints::default()).unwrap());
        scene.store(&["cp", "f", &format!("pioscope:{path}")]).succeeds();
        assert_eq!(scene.store(&["ls"]).succeeds().out, "run/f\n", "{path}");
    }
}

/// Each of them looks for what others left, and must not take one that is about to begin for that.
#[test]
fn many_copies_to_one_path_at_once_all_succeed() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), data(50_000)).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..4).for_each(|_| drop(scene.store(&["cp", "f", "pioscope:f"]).succeeds())));
        }
    });
    assert_eq!(scene.store(&["ls"]).succeeds().out, "f\n");
    let long = "x".repeat(1024);
    scene.store(&["ls", &format!("{long}y")]).fails_with("no file of the store begins so");
}

#[test]
fn wrong_input_is_one_clear_line() {
    let scene = Scene::new();
    fs::write(scene.place.join("f"), b"text").unwrap();
    scene.place.pioscope(["store", "ls"]).fails_with("no store: expected --store FILE, or PIOSCOPE_STORE");
    scene.place.pioscope(["store", "ls", "--store", "none.toml"]).fails_with("none.toml: No such file");
    fs::write(scene.place.join("bad.toml"), "token = \"t\"\nservers = 3\n").unwrap();
    let bad = scene.place.pioscope(["store", "ls", "--store", "bad.toml"]);
    bad.fails_with("bad.toml: line 2: unknown field `servers`");
    assert_eq!(bad.err.lines().count(), 1, "{}", bad.err);
    // It was the name of the unfinished copy.
    scene.store(&["cp", "f", "pioscope:a/../b"]).fails_with("a/../b: expected a path of 1 to 1024 bytes");
    scene.store(&["cp", "f", "g"]).fails_with("neither f nor g is in the store: expected pioscope:PATH");
    scene.store(&["cp", "missing", "pioscope:f"]).fails_with("missing: cannot read: No such file");
    scene.store(&["cp", "store", "pioscope:f"]).fails_with("store: is a folder: expected a file");
    scene.store(&["cp", "pioscope:missing", "g"]).fails_with("missing: server");
    scene.store(&["cp", "f", "pioscope:../f"]).fails_with("../f");
    scene.store(&["cp", "f", "pioscope:f", "--servers", "4"]).fails_with("the store has 3 servers");
    scene.store(&["cp", "f", "pioscope:f"]).succeeds();
    // All was copied before that failed.
    scene
        .store(&["cp", "pioscope:f", "nowhere/"])
        .fails_with("nowhere/: no such folder (expected one that is");
    scene.store(&["cp", "pioscope:f", "nowhere/g"]).fails_with("nowhere/g: cannot create: No such file");
    scene.store(&["cp", "pioscope:f", "/dev/full"]).fails_with("/dev/full: cannot write: No space left");
    scene.store(&["cp", "pioscope:f", "g", "--strip", "1 KiB"]).fails_with("are for copies in the store");
    scene.store(&["rm", "missing"]).fails_with("missing: no such file or folder in the store");
    scene.store(&["stat", "missing"]).fails_with("no such file");
    scene.store(&["check", "missing"]).fails_with("no such file");
    scene.store(&["ls", "missing/"]).fails_with("no file of the store begins so");
    fs::write(scene.place.join("store/store.token"), format!("{:064x}\n", 1)).unwrap();
    scene.store(&["ls"]).fails_with("refused: another store, or another token");
}

#[test]
fn servers_that_run_already_are_named_as_such() {
    let scene = Scene::new();
    let again = scene.place.pioscope(["serve", "--dir", "store"]);
    again.fails_with("where server 0 of this store was last: it seems to run already");
}

#[test]
fn who_is_waited_for_is_said() {
    let mut scene = Scene::new();
    scene.servers.kill();
    let said = scene.store(&["ls", "--timeout", "2"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let lines: Vec<&str> = said.err.lines().collect();
    let [waits, fails] = lines[..] else { panic!("{}", said.err) };
    assert!(waits.contains("does not answer (Connection refused (os error 111)): trying for "), "{waits}");
    assert!(fails.contains("did not answer within 2 s: Connection refused"), "{fails}");
    // As long as the environment says, where nobody says something else.
    let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    command.args(["store", "ls"]).env("PIOSCOPE_STORE", scene.place.join("store/store.toml"));
    scene.place.run(command.env("PIOSCOPE_TIMEOUT", "1")).fails_with("did not answer within 1 s");
}
