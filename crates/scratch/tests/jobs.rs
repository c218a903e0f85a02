//! Shell scripts run in scratch copies: what they make is what they make in the folder itself, which stays as it is.
#![allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pio_scratch::{Error, Scratch};
use tempfile::TempDir;

/// A folder that is at no place for temporary files, where all may write.
fn place() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Files that a program may find.
fn fill(folder: &Path) {
    fs::create_dir_all(folder.join("out/deep")).unwrap();
    fs::write(folder.join("input"), "what is read\n").unwrap();
    fs::write(folder.join("log"), "before\n").unwrap();
    fs::write(folder.join("out/old"), "an earlier result\n").unwrap();
    fs::write(folder.join("out/deep/state"), vec![7; 300_000]).unwrap();
    symlink("out/old", folder.join("latest")).unwrap();
    symlink(folder.join("out"), folder.join("results")).unwrap();
}

fn in_scratch(scratch: &Scratch, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(scratch.working_folder());
    command.env("LD_PRELOAD", scratch.library()).envs(scratch.environment()).output().unwrap()
}

/// What a folder holds, by name: folders, and the bytes of files, those behind links, too.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if name.to_string_lossy().starts_with(".pioscope-") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                found.insert(name, None);
                folders.push(path);
            } else if path.is_file() {
                found.insert(name, Some(fs::read(path).unwrap()));
            } else {
                found.insert(name, Some(b"a folder behind a link, or nothing".to_vec()));
            }
        }
    }
    found
}

/// When each file was changed last, and how large it is.
fn stamps(folder: &Path) -> Vec<(PathBuf, i64, i64, u64)> {
    let stamp = |name: PathBuf| {
        let status = fs::symlink_metadata(folder.join(&name)).unwrap();
        let changed = if status.is_dir() { (0, 0) } else { (status.ctime(), status.ctime_nsec()) };
        (name, changed.0, changed.1, status.ino())
    };
    tree(folder).into_keys().map(stamp).collect()
}

const SCRIPTS: [&str; 16] = [
    "cat input > out/new; cat latest >> out/new",
    "echo more >> log",
    "echo anew > out/old",
    "echo through a link > latest",
    "echo into a folder behind a link > results/made; echo more >> results/old",
    "echo absolute >> $HERE/log; echo made > $HERE/out/absolute; cat $HERE/out/absolute $HERE/log > both",
    "rm out/old; mkdir -p out/a/b $HERE/out/c; rmdir out/a/b; touch out/c/x",
    "mv out/old kept; echo more >> kept; mv input out/deep/",
    "mv out elsewhere; echo more >> elsewhere/old",
    "dd if=/dev/zero of=out/deep/state bs=1 count=3 seek=100000 conv=notrunc 2>/dev/null",
    "truncate -s 17 out/deep/state; chmod 600 input; cp -p log log2; ln log hard; echo x >> hard",
    "ln -s $HERE/out/old fresh; echo y >> fresh; cat fresh > seen",
    "cd out/deep; echo up >> ../../log; cat ../old > here; cd ../..; find . -name 'st*' -type d | wc -l > count",
    "sed -i s/before/after/ log; sort -o input input; test -L log || echo plain > is_plain",
    "cp -r out copy; tar cf all.tar out 2>/dev/null; mktemp -p out -q x.XXXXXX > /dev/null; rm -f out/x.* all.tar",
    "rm -r out; mkdir out; echo all new > out/old; cat latest results/old > seen",
];

#[test]
fn a_job_makes_there_what_it_makes_in_the_folder_itself() {
    for script in SCRIPTS {
        let (own, other) = (place(), place());
        fill(own.path());
        fill(other.path());
        let before = stamps(own.path());
        let scratch = Scratch::new(own.path(), &[]).unwrap();
        let with_here = |folder: &Path| format!("HERE={}; {script}", folder.display());
        let done = in_scratch(&scratch, &with_here(own.path()));
        assert!(done.status.success() && done.stderr.is_empty(), "{script}: {done:?}");
        assert!(scratch.refused().is_empty(), "{script}: {:?}", scratch.refused());
        let plain =
            Command::new("sh").args(["-c", &with_here(other.path())]).current_dir(other.path()).output();
        assert!(plain.unwrap().status.success());
        let (found, expected) = (tree(scratch.working_folder()), tree(other.path()));
        let names = |tree: &BTreeMap<PathBuf, _>| tree.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{script}");
        assert!(found == expected, "{script}: other bytes");
        assert_eq!(stamps(own.path()), before, "{script}: the folder itself has changed");
        let folder = scratch.folder().to_owned();
        drop(scratch);
        assert!(!folder.exists());
    }
}

#[test]
fn what_is_elsewhere_cannot_be_changed_and_is_named() {
    let (own, outside) = (place(), place());
    if ["/tmp", "/var/tmp", "/run", "/dev"].iter().any(|folder| outside.path().starts_with(folder)) {
        eprintln!("skipped: built at a place for temporary files, where a job may write");
        return;
    }
    let file = outside.path().join("file");
    fs::write(&file, "mine\n").unwrap();
    symlink(outside.path(), own.path().join("away")).unwrap();
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let name = file.display();
    for script in [
        format!("echo x >> {name}"),
        format!("rm -f {name}"),
        format!("mv {name} here"),
        format!("ln -s {name} link; echo x > link"),
        "echo x > away/file".to_owned(),
        "mkdir away/new".to_owned(),
    ] {
        let done = in_scratch(&scratch, &script);
        assert!(!done.status.success(), "{script}");
        assert!(
            String::from_utf8_lossy(&done.stderr).contains("Read-only file system"),
            "{script}: {done:?}"
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    let refused = scratch.refused();
    assert!(refused.contains(&file) && refused.contains(&outside.path().join("new")), "{refused:?}");
    // It can be read, and folders on the way are there already.
    let done = in_scratch(&scratch, &format!("cat {name} away/file; mkdir -p {}", outside.path().display()));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "mine\nmine\n");
    assert!(done.status.success());
    // Temporary files come and go.
    let done = in_scratch(&scratch, "f=$(mktemp) && echo x > $f && rm $f");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn other_folders_are_copied_if_they_are_named() {
    let (own, outside) = (place(), place());
    fs::write(outside.path().join("file"), "mine\n").unwrap();
    let fresh = outside.path().join("made/by/the/program");
    symlink(outside.path(), own.path().join("away")).unwrap();
    let outputs = [own.path().join("away"), fresh.clone()];
    let mut scratch = Scratch::new(own.path(), &outputs).unwrap();
    let script = format!(
        "echo x >> away/file; cat {}/file; mkdir -p {fresh}; echo y > {fresh}/z; cat away/made/by/the/program/z",
        outside.path().display(),
        fresh = fresh.display()
    );
    let done = in_scratch(&scratch, &script);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "mine\nx\ny\n", "{done:?}");
    assert!(scratch.refused().is_empty());
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "mine\n");
    assert!(!fresh.exists());
    // Another run finds nothing of this one, but need not wait for the copying again.
    assert_eq!(scratch.copied_in_calls().len(), 1);
    scratch.renew().unwrap();
    let done = in_scratch(&scratch, "cat away/file; echo again >> away/file; ls away");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "mine\nfile\n", "{done:?}");
    assert!(scratch.copied_in_calls().is_empty());
}

/// Runs once more in a namespace of mounts of its own.
#[test]
fn what_is_mounted_below_is_copied_on_its_own_file_system() {
    const MOUNTED: &str = "PIO_SCRATCH_MOUNTED";
    if let Some(place) = std::env::var_os(MOUNTED) {
        return changes_what_is_mounted(Path::new(&place));
    }
    let place = place();
    fs::create_dir(place.path().join("a disk")).unwrap();
    let steps = format!("mount -t tmpfs disk \"${MOUNTED}/a disk\"; exec \"$0\" --exact \"$1\"");
    let mut command = Command::new("unshare");
    command.args(["-r", "-m", "sh", "-ec", &steps]).arg(std::env::current_exe().unwrap());
    command.arg("what_is_mounted_below_is_copied_on_its_own_file_system").env(MOUNTED, place.path());
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn changes_what_is_mounted(place: &Path) {
    let disk = place.join("a disk");
    fs::write(disk.join("old"), "before\n").unwrap();
    let scratch = Scratch::new(place, &[]).unwrap();
    let ran = in_scratch(
        &scratch,
        "echo more >> 'a disk/old'; echo made > $PWD/'a disk/new'; cat 'a disk/new'; stat -Lc %d 'a disk/new'",
    );
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(said, format!("made\n{}\n", fs::metadata(&disk).unwrap().dev()));
    let kept = tree(&disk);
    assert_eq!(kept.into_keys().collect::<Vec<_>>(), [PathBuf::from("old")]);
    assert_eq!(fs::read_to_string(disk.join("old")).unwrap(), "before\n");
}

#[test]
fn ranks_that_open_a_file_at_once_change_one_copy() {
    let own = place();
    fs::write(own.path().join("shared"), vec![b'.'; 4 << 20]).unwrap();
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let script = "for i in 0 1 2 3 4 5 6 7; do printf $i | dd of=shared bs=1 seek=$i conv=notrunc 2>/dev/null & done; wait";
    assert!(in_scratch(&scratch, script).status.success());
    let found = fs::read(scratch.working_folder().join("shared")).unwrap();
    assert_eq!(&found[..9], b"01234567.");
    assert_eq!(found.len(), 4 << 20);
    assert!(!scratch.folder().join("replacing").exists());
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let own = place();
    let left = Scratch::new(own.path(), &[]).unwrap();
    let alive = left.folder().to_owned();
    let dead = own.path().join(".pioscope-scratch-dead");
    fs::create_dir_all(dead.join("copy/deep")).unwrap();
    fs::write(dead.join("alive"), "").unwrap();
    let other = own.path().join(".pioscope-scratch-other");
    fs::create_dir(&other).unwrap();
    let _second = Scratch::new(own.path(), &[]).unwrap();
    assert!(alive.exists() && !dead.exists() && other.exists());
}

#[test]
fn a_folder_that_is_none_is_an_error() {
    let own = place();
    fs::create_dir(own.path().join("line\nbreak")).unwrap();
    let refused = Scratch::new(&own.path().join("line\nbreak"), &[]);
    assert!(matches!(refused, Err(Error::LineBreak(_))));
}
