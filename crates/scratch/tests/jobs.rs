//! Shell scripts run in scratch copies: what they make is what they make in the folder itself, which stays as it is.
#![allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

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
    run_in_scratch(scratch, &["sh", "-c", script])
}

/// The same by a user whom rights hold back.
fn in_scratch_without_override(scratch: &Scratch, script: &str) -> Output {
    let is_root = fs::metadata(scratch.folder()).unwrap().uid() == 0;
    let words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "sh", "-c", script];
    run_in_scratch(scratch, if is_root { &words } else { &words[2..] })
}

fn run_in_scratch(scratch: &Scratch, words: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(scratch.working_folder());
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

const SCRIPTS: [&str; 17] = [
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
    "echo x >> results/../log; echo y > $HERE/results/deep/../new; cat out/../log $HERE/results/../log > results/../seen",
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

/// Runs a script that must be refused.
fn is_refused(scratch: &Scratch, script: &str) {
    let done = in_scratch(scratch, script);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("Read-only file system"), "{script}: {done:?}");
}

/// Runs a script that must do as it does without a scratch copy; what it said.
fn succeeds(scratch: &Scratch, script: &str) -> String {
    let done = in_scratch(scratch, script);
    assert!(done.status.success() && done.stderr.is_empty(), "{script}: {done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// What lies behind a link was overwritten if the link was at such a place.
#[test]
fn links_at_places_for_temporary_files_lead_to_copies_or_are_refused() {
    let (own, outside, temporary) = (place(), place(), tempfile::tempdir().unwrap());
    fill(own.path());
    let old = outside.path().join("file");
    fs::write(&old, "mine\n").unwrap();
    symlink(own.path().join("log"), temporary.path().join("in")).unwrap();
    symlink("in", temporary.path().join("twice")).unwrap();
    symlink(temporary.path().join("twice"), own.path().join("thrice")).unwrap();
    symlink(&old, temporary.path().join("out")).unwrap();
    symlink(own.path().join("new"), temporary.path().join("new")).unwrap();
    let before = stamps(own.path());
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let places = format!("T={}; O={}; ", temporary.path().display(), outside.path().display());
    let run = |script: &str| succeeds(&scratch, &format!("{places}{script}"));
    assert_eq!(run("echo x > $T/in; echo y >> $T/twice; echo z >> thrice; cat log"), "x\ny\nz\n");
    assert_eq!(
        run("cat $T/twice thrice; (cd $T; echo again > in); cat log $T/in"),
        "x\ny\nz\nx\ny\nz\nagain\nagain\n"
    );
    assert_eq!(
        run("mkdir deep; ln -s $PWD/deep/f $T/deep; echo x > $T/deep; cat deep/f; rm -r deep $T/deep"),
        "x\n"
    );
    assert_eq!(run("echo made > $T/new; cat $T/new new"), "made\nmade\n");
    // A link in the place of a file that the job moves there stands for that file.
    assert_eq!(run("mv out/old $T/moved; echo more >> $T/moved; cat $T/moved"), "an earlier result\nmore\n");
    assert_eq!(run("ln -s $T/made $T/l; echo x > $T/l; cp -a $T/l $T/l2; cat $T/made; rm $T/l $T/l2"), "x\n");
    for script in
        ["echo x > $T/out", "truncate -s 0 $T/out", "chmod 600 $T/out", "ln -s $O/file $T/l; echo x >> $T/l"]
    {
        is_refused(&scratch, &format!("{places}{script}"));
    }
    is_refused(&scratch, &format!("{places}ln -s $O/none $T/n; echo x > $T/n"));
    assert!(scratch.refused().contains(&old), "{:?}", scratch.refused());
    assert!(fs::read_to_string(&old).unwrap() == "mine\n" && !outside.path().join("none").exists());
    assert_eq!(stamps(own.path()), before);
}

/// `..` behind a link was dropped as it was written, while the kernel went where the link leads: what is there was emptied.
#[test]
fn above_a_link_is_what_is_above_its_folder() {
    let (own, outside, temporary) = (place(), place(), tempfile::tempdir().unwrap());
    fill(own.path());
    fs::create_dir(outside.path().join("deep")).unwrap();
    fs::write(outside.path().join("log"), "mine\n").unwrap();
    symlink(outside.path().join("deep"), own.path().join("away")).unwrap();
    symlink(outside.path().join("deep"), temporary.path().join("away")).unwrap();
    symlink(own.path().join("out/deep"), temporary.path().join("in")).unwrap();
    let before = (stamps(own.path()), stamps(outside.path()));
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let places = format!("H={}; T={}; ", own.path().display(), temporary.path().display());
    for name in ["away/../log", "$H/away/../log", "$T/away/../log", "out/../away/../log"] {
        assert_eq!(succeeds(&scratch, &format!("{places}cat {name}")), "mine\n", "{name}");
        for change in ["echo x >", "echo x >>", "rm -f", "chmod 600"] {
            is_refused(&scratch, &format!("{places}{change} {name}"));
        }
        is_refused(&scratch, &format!("{places}ln -s {name} l; echo x > l; f=$?; rm l; exit $f"));
    }
    is_refused(
        &scratch,
        &format!("{places}ln -s away/../log $T/l; ln -s $H/away/../log $T/m; echo x > $T/m"),
    );
    assert_eq!(succeeds(&scratch, &format!("{places}echo x > $T/in/../old; cat out/old")), "x\n");
    // What is above no folder is not there.
    for name in ["none/../log", "$H/none/../log", "input/../log", "$H/input/../log"] {
        for call in ["cat", "ls", "echo x >>"] {
            let done = in_scratch(&scratch, &format!("{places}{call} {name}"));
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!done.status.success() && !said.contains("Read-only"), "{call} {name}: {done:?}");
        }
    }
    assert_eq!((stamps(own.path()), stamps(outside.path())), before);
    assert_eq!(fs::read_to_string(outside.path().join("log")).unwrap(), "mine\n");
}

/// It was the job's for having changed in the second of the start or later, for being no file, or by its name in /proc.
#[test]
fn what_was_at_places_for_temporary_files_stays() {
    let (own, temporary) = (place(), tempfile::tempdir().unwrap());
    let file = temporary.path().join("file");
    for folder in ["empty", "full"] {
        fs::create_dir(temporary.path().join(folder)).unwrap();
    }
    fs::write(temporary.path().join("full/file"), "deep\n").unwrap();
    symlink("nowhere", temporary.path().join("link")).unwrap();
    fs::write(&file, "mine\n").unwrap();
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let at = format!("cd {}; ", temporary.path().display());
    let refused = |scripts: &[&str]| {
        for script in scripts {
            let before = tree(temporary.path());
            is_refused(&scratch, &format!("{at}{script}"));
            assert_eq!(tree(temporary.path()), before, "{script}");
        }
    };
    refused(&["echo x > file", "echo x >> file", "rm -f file", "mv file other"]);
    refused(&["f=$(mktemp); mv $f file || { rm $f; false; }"]);
    refused(&[
        "rmdir empty",
        "mv full other",
        "mv link other",
        "rm -f link",
        "chmod 700 empty",
        "rm -rf full",
    ]);
    refused(&["exec 3< file; echo x > /proc/self/fd/3", "exec 3< file; echo x >> /dev/fd/3"]);
    // Another process goes on to write to its file.
    if made_is_known(&file) {
        thread::sleep(Duration::from_millis(20));
        fs::write(&file, "mine, too\n").unwrap();
        refused(&["echo x > file", "rm -f file"]);
    }
    // What the job makes there is its own, at once, and so is what it has open.
    for script in [
        "echo x > a; echo y >> a; mkdir -p empty d/e; mv a d/e; ln -s e/a d/l; echo z >> d/l; mv d f; rm -r f",
        "exec 3> a; echo x > /proc/self/fd/3; echo x > /dev/fd/3; rm a; echo x > /dev/stdout; echo x > /dev/null",
        "echo x | cat > /dev/stdout | cat /dev/stdin",
        "f=$(mktemp -d); mkdir $f/empty; rm -r $f; f=$(mktemp) && chmod 600 $f && rm $f",
        "for i in 1 2 3 4 5 6 7 8; do f=$(mktemp); echo x > $f; rm $f; done",
    ] {
        succeeds(&scratch, &format!("{at}{script}"));
    }
}

/// Whether the file system knows when a file was made.
fn made_is_known(file: &Path) -> bool {
    fs::metadata(file).unwrap().created().is_ok()
}

/// Changes an open file by all calls that can, and says which of them did.
const BY_DESCRIPTOR: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#define TELL(call) do { errno = 0; int done = call; printf("%s", done == 0 ? "+" : errno == EROFS ? "-" : "?"); } while (0)
int main(int count, char **words) {
    (void)count;
    int fd = open(words[1], O_RDONLY);
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0)
        return 1;
    TELL(fchmod(fd, 0640));
    TELL(fchown(fd, getuid(), getgid()));
    struct timeval times[2] = {{1, 0}, {1, 0}};
    TELL(futimes(fd, times));
    struct timespec exact[2] = {{2, 0}, {2, 0}};
    TELL(futimens(fd, exact));
    TELL(fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH));
    errno = 0;
    int set = fsetxattr(fd, "user.pioscope", "x", 1, 0);
    printf("%s", set == 0 || errno == ENOTSUP ? "+" : errno == EROFS ? "-" : "?");
    errno = 0;
    set = fremovexattr(fd, "user.pioscope");
    printf("%s", set == 0 || errno == ENOTSUP ? "+" : errno == EROFS ? "-" : "?");
    int made = open(words[1], O_WRONLY | O_CREAT | O_EXCL, 0666);
    printf(" %s\n", made < 0 && errno == EEXIST ? "there" : "?");
    int pipes[2];
    return pipe(pipes) != 0 || fchmod(pipes[0], 0600) != 0 || fchmod(-1, 0600) == 0 || errno != EBADF;
}
"#;

/// They reached the file itself.
#[test]
fn what_is_open_is_changed_only_if_it_is_the_jobs_own() {
    let (own, outside, temporary) = (place(), place(), tempfile::tempdir().unwrap());
    fill(own.path());
    fs::write(outside.path().join("change.c"), BY_DESCRIPTOR).unwrap();
    let built = Command::new("cc").args(["-o", "change", "change.c"]).current_dir(outside.path()).status();
    assert!(built.unwrap().success());
    let old = temporary.path().join("old");
    fs::write(&old, "mine\n").unwrap();
    let before = (stamps(own.path()), stamps(temporary.path()));
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let change = |script: &str, name: &str| {
        succeeds(&scratch, &format!("{script}; {}/change {name}", outside.path().display()))
    };
    assert_eq!(change(":", "input"), "------- there\n");
    assert_eq!(change(":", &old.display().to_string()), "------- there\n");
    assert_eq!((stamps(own.path()), stamps(temporary.path())), before);
    let refused = scratch.refused();
    assert_eq!(refused, BTreeSet::from([own.path().join("input"), old.clone()]));
    assert_eq!(change("echo x >> log", "log"), "+++++++ there\n");
    let new = temporary.path().join("new").display().to_string();
    assert_eq!(change(&format!("echo x > {new}"), &new), "+++++++ there\n");
    assert_eq!(scratch.refused(), refused);
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

/// The call reached the file itself, as there was no copy.
#[test]
fn what_cannot_be_copied_stays() {
    let own = place();
    let file = |name: &str| own.path().join(name);
    for (name, mode) in [("secret", 0), ("log", 0o200), ("anew", 0o200), ("gone", 0o600)] {
        fs::write(file(name), "mine\n").unwrap();
        fs::set_permissions(file(name), Permissions::from_mode(mode)).unwrap();
    }
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    fs::remove_file(file("gone")).unwrap();
    let before = stamps(own.path());
    let run = |script: &str| in_scratch_without_override(&scratch, script);
    for script in ["chmod 600 secret", "touch secret", "echo x >> log", "ln secret hard"] {
        let done = run(script);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains("ermission denied"), "{script}: {done:?}");
    }
    assert_eq!(scratch.refused(), BTreeSet::from([file("log"), file("secret")]));
    // What it holds is of no use where nothing of it is kept.
    assert_eq!(run("echo x > anew; chmod 600 anew; cat anew").stdout, b"x\n");
    // What is there no more can be made anew.
    assert!(!run("cat gone").status.success());
    assert!(!run("chmod 600 gone").status.success());
    assert_eq!(run("echo x >> gone; cat gone").stdout, b"x\n");
    assert_eq!(stamps(own.path()), before);
    assert!(!file("gone").exists());
}

/// Makes a file by fopen() in each of the modes that are given.
const MAKES_BY_MODE: &str = r#"
#include <errno.h>
#include <stdio.h>
int main(int count, char **words) {
    for (int i = 2; i < count; i++) {
        FILE *file = fopen(words[1], words[i]);
        printf("%s\n", file != NULL ? "made" : errno == EEXIST ? "there" : "?");
        if (file != NULL)
            fclose(file);
    }
    return 0;
}
"#;

/// The copy was empty from then on.
#[test]
fn a_call_that_fails_changes_nothing_in_the_copy() {
    let (own, temporary) = (place(), tempfile::tempdir().unwrap());
    fill(own.path());
    fs::set_permissions(own.path().join("log"), Permissions::from_mode(0o444)).unwrap();
    fs::write(own.path().join("make.c"), MAKES_BY_MODE).unwrap();
    let built = Command::new("cc").args(["-o", "make", "make.c"]).current_dir(own.path()).status();
    assert!(built.unwrap().success());
    let old = temporary.path().join("old");
    fs::write(&old, "mine\n").unwrap();
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    assert_eq!(
        succeeds(&scratch, "./make input wx w+bx ax; cat input"),
        "there\nthere\nthere\nwhat is read\n"
    );
    assert_eq!(succeeds(&scratch, &format!("./make {} wx", old.display())), "there\n");
    assert_eq!(succeeds(&scratch, "./make new wx; ./make input w; cat input"), "made\nmade\n");
    assert!(scratch.refused().is_empty(), "{:?}", scratch.refused());
    let done = in_scratch_without_override(&scratch, "echo x > log || cat log");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "before\n", "{done:?}");
}

/// A pipe has nothing that could be copied: to open it for that waited for ever.
#[test]
fn a_pipe_is_one_of_the_copy() {
    let place = place();
    fill(place.path());
    let made = Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let scratch = Scratch::new(place.path(), &[]).unwrap();
    let said = succeeds(&scratch, "timeout 10 sh -c 'echo hello > pipe & cat < pipe; wait'");
    assert_eq!(said, "hello\n");
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

/// Makes its calls by number.
const BY_NUMBER: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    struct stat status;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "log", O_WRONLY | O_APPEND);
    if (fd < 0 || syscall(SYS_write, fd, "more\n", 5) != 5)
        return 1;
    if (syscall(SYS_newfstatat, AT_FDCWD, "input", &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
        return 2;
    if (syscall(SYS_renameat2, AT_FDCWD, "out/old", AT_FDCWD, "out/new", 0) != 0)
        return 3;
    if (syscall(SYS_mkdirat, AT_FDCWD, "out", 0700) != -1 || errno != EEXIST)
        return 4;
    return syscall(SYS_unlinkat, AT_FDCWD, "input", 0) == 0 ? 0 : 5;
}
"#;

#[test]
fn calls_by_number_change_the_copy() {
    let (own, outside) = (place(), place());
    fill(own.path());
    fs::write(outside.path().join("by_number.c"), BY_NUMBER).unwrap();
    let built =
        Command::new("cc").args(["-o", "by_number", "by_number.c"]).current_dir(outside.path()).status();
    assert!(built.unwrap().success());
    let before = tree(own.path());
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let done = run_in_scratch(&scratch, &[outside.path().join("by_number").to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(tree(own.path()), before);
    let found = tree(scratch.working_folder());
    assert_eq!(found[Path::new("log")].as_deref(), Some(&b"before\nmore\n"[..]));
    assert!(found.contains_key(Path::new("out/new")) && !found.contains_key(Path::new("input")));
}

/// Copies a mebibyte each fifth of a second, on a clock by which a file is 599 s older than it is.
const COPIES_SLOWLY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
long syscall(long number, ...) {
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), given[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_copy_file_range) {
        usleep(200000);
        given[4] = given[4] < 1 << 20 ? given[4] : 1 << 20;
    }
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
int ioctl(int fd, unsigned long request, ...) {
    (void)fd, (void)request;
    errno = ENOTTY;
    return -1;
}
time_t time(time_t *seconds) {
    struct timespec now;
    (void)seconds;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec + 599;
}
"#;

/// After 600 s another rank took the one that copied for dead, and began to copy to the same file.
#[test]
fn who_copies_a_large_file_is_waited_for() {
    let (own, outside) = (place(), place());
    fs::write(own.path().join("large"), vec![b'.'; 16 << 20]).unwrap();
    fs::write(outside.path().join("slow.c"), COPIES_SLOWLY).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"])
        .current_dir(outside.path())
        .status();
    assert!(built.unwrap().success());
    let scratch = Scratch::new(own.path(), &[]).unwrap();
    let script = format!(
        "export LD_PRELOAD={}:$LD_PRELOAD; sh -c 'echo x >> large' & sleep 0.1; sh -c 'echo x >> large' && wait $!",
        outside.path().join("slow.so").display(),
    );
    succeeds(&scratch, &script);
    let found = fs::read(scratch.working_folder().join("large")).unwrap();
    let (copied, added) = found.split_at(16 << 20);
    assert!(copied.iter().all(|byte| *byte == b'.') && added == b"x\nx\n");
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let own = place();
    let left = Scratch::new(own.path(), &[]).unwrap();
    let alive = left.folder().to_owned();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let left_on = |host: &str, name: &str| {
        let folder = own.path().join(format!(".pioscope-scratch-{name}"));
        fs::create_dir_all(folder.join("copy/deep")).unwrap();
        fs::write(folder.join("alive"), format!("{host} 4711\n")).unwrap();
        folder
    };
    let dead = left_on(host.trim_end(), "dead");
    // Whether a process of another host lives, a lock need not tell.
    let far = left_on("far", "far");
    let other = own.path().join(".pioscope-scratch-other");
    fs::create_dir(&other).unwrap();
    let _second = Scratch::new(own.path(), &[]).unwrap();
    assert!(alive.exists() && !dead.exists() && far.exists() && other.exists());
}

#[test]
fn a_folder_that_is_none_is_an_error() {
    let own = place();
    fs::create_dir(own.path().join("line\nbreak")).unwrap();
    let refused = Scratch::new(&own.path().join("line\nbreak"), &[]);
    assert!(matches!(refused, Err(Error::LineBreak(_))));
}

/// A name that the kernel cannot read is no reason to end the program.
#[test]
fn names_that_cannot_be_read_are_the_program_s_own_affair() {
    let place = place();
    fill(place.path());
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/programs/pointers.c");
    let program = place.path().join("pointers");
    let built = Command::new("cc").args(["-w", source, "-o"]).arg(&program).status().unwrap();
    assert!(built.success());
    let alone = Command::new(&program).arg(place.path().join("input")).output().unwrap();
    let scratch = Scratch::new(place.path(), &[]).unwrap();
    let redirected = in_scratch(&scratch, "./pointers input");
    assert!(redirected.status.success(), "{redirected:?}");
    assert_eq!(String::from_utf8_lossy(&redirected.stdout), String::from_utf8_lossy(&alone.stdout));
}

/// Comes to its own folder from the root on, part by part as getcwd() names it, by open folders or (with an argument) by
/// chdir(), and reads and makes files there.
const WALKS_DOWN: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    char path[4096], text[64] = "", *rest = path;
    if (getcwd(path, sizeof path) == NULL || (count > 1 && chdir("/") != 0))
        return 1;
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    for (char *part; (part = strsep(&rest, "/")) != NULL;) {
        if (part[0] == 0)
            continue;
        int next = count > 1 ? chdir(part) == 0 ? AT_FDCWD : -1 : openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (next == -1)
            return perror(part), 2;
        if (fd >= 0)
            close(fd);
        fd = next;
    }
    int in = openat(fd, "input", O_RDONLY), out = openat(fd, "made", O_WRONLY | O_CREAT | O_EXCL, 0600);
    long length = read(in, text, sizeof text);
    return length > 0 && write(out, text, length) == length && words[0] != NULL ? 0 : 3;
}
"#;

/// The copy of the working folder is in a scratch folder, of which there is no copy: rsync did not find it.
#[test]
fn a_program_may_walk_down_to_its_folder() {
    let (own, other) = (place(), place());
    for place in [&own, &other] {
        fill(place.path());
        fs::write(place.path().join("walk.c"), WALKS_DOWN).unwrap();
        let built =
            Command::new("cc").args(["-w", "walk.c", "-o", "walk"]).current_dir(place.path()).status();
        assert!(built.unwrap().success());
    }
    let scratch = Scratch::new(own.path(), &[other.path().to_owned()]).unwrap();
    for walk in ["./walk", "./walk by-chdir", "cd $OTHER && ./walk", "cd $OTHER && ./walk by-chdir"] {
        let script = format!("OTHER={}; {walk} && cat made && rm made", other.path().display());
        assert_eq!(succeeds(&scratch, &script), "what is read\n", "{walk}");
    }
}
