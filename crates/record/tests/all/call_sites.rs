//! Which line of a Python program opens a file, and that the program runs as it would alone.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Job, command, folder, record_in};
use pio_trace::{CallSite, Op};

/// Interpreters to try, those of them that are there.
const INTERPRETERS: [&str; 6] =
    ["python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3"];

const LIBRARY: &str = "\
def read(path):
    return inner(path)
def inner(path):
    with open(path, 'rb') as file: return file.read()
";

const WRAPPER: &str = "\
import reader
def wrap(path): return reader.read(path)
";

const COMMAND: &str = "\
import wrapper, reader, multiprocessing
def main():
    wrapper.wrap('a.1')
    open('b').close()
    process = multiprocessing.get_context('spawn').Process(target=reader.read, args=('c',))
    process.start()
    process.join()
";

/// Opens a file behind Python's back.
const NATIVE: &str = "\
import ctypes
def save(path):
    handle = ctypes.CDLL(None).open(path.encode(), 0)
    assert handle >= 0 and ctypes.CDLL(None).close(handle) == 0
def load(path): save(path)
";

const SAVES: &str = "\
from torch import serialization
serialization.save('a.1')
serialization.load('b')
import torch.native
torch.native.save('c')
open('d').close()
";

const PROGRAM: &str = "\
import os, pathlib, sys, threading
import reader, wrapper
class Set:
    def item(self, name):
        return open(name, 'rb').read()
def lazily():
    import late
here = sys.argv[1]
def at(name): return os.path.join(here, name)
Set().item(at('a.1'))
Set().item(at('a.2').encode())
os.close(os.open(at('b'), os.O_RDONLY))
open(pathlib.Path(at('c'))).close()
pathlib.Path(at('d')).read_text()
reader.read(at('e'))
wrapper.wrap(at('f'))
(lambda: open(at('g')))().close()
thread = threading.Thread(target=lambda: open(at('h')).close())
thread.start(); thread.join()
child = os.fork()
if child == 0:
    open(at('i')).close()
    os._exit(0)
os.waitpid(child, 0)
# Of an open that fails nothing is left for the next.
try: open(at('missing'))
except OSError: pass
fd = os.open(at('j'), os.O_RDONLY)
open(fd).close()
lazily()
exec(compile('open(at(\"k\")).close()', '<string>', 'exec'))
open(at('l'), opener=lambda path, flags: os.open(path, flags)).close()
print('done')
";

/// What a hook of another kind could break: recursion to the limit, signal handlers that raise, hooks that refuse, names that are
/// no text, and opens while the interpreter ends.
const ODD: &str = "\
import atexit, os, signal, sys, threading
def deep(left):
    if left: return deep(left - 1)
    return open('a.1').read()
depth = 0
try:
    while True:
        deep(depth)
        depth += 1
except RecursionError: print('depth', depth)
class Late(Exception): pass
def raise_late(*_): raise Late
signal.signal(signal.SIGALRM, raise_late)
count = 0
for _ in range(50):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5)
        while True: open('b').close()
    except Late: count += 1
print(count)
for name in 7777, 'no\\udc80', b'\\xff', 'no\\0', None, 1.5:
    try: open(name)
    except Exception as error: print(type(error).__name__, flush=True)
try: import _interpreters as interpreters
except ImportError:
    try: import _xxsubinterpreters as interpreters
    except ImportError: interpreters = None
if interpreters:
    other = interpreters.create()
    (getattr(interpreters, 'run_string', None) or interpreters.exec)(other, 'open(\"g\").close()')
    interpreters.destroy(other)
def refuse(event, arguments):
    if event == 'open' and arguments[0] == 'c': raise PermissionError('refused')
child = os.fork()
if child == 0:
    sys.addaudithook(refuse)
    try: open('c')
    except PermissionError as error: print(error, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
def late(): open('d').close()
atexit.register(late)
class Keeps:
    def __del__(self, open=open): open('e').close()
kept = Keeps()
sys.kept = kept
threads = [threading.Thread(target=lambda: [open('f').close() for _ in range(200)]) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
sys.stdout.flush()
";

struct Scene {
    folder: tempfile::TempDir,
    python: PathBuf,
    /// Of Python 3: the number behind the point.
    version: u32,
}

/// A folder with the files, and the packages in a folder site-packages; none if there is no such interpreter, or it is too old.
fn scene(python: &str) -> Option<Scene> {
    let output =
        Command::new(python).args(["-c", "import sys; print(sys.version_info[1], sys.executable)"]).output();
    let text = String::from_utf8(output.ok().filter(|output| output.status.success())?.stdout).ok()?;
    let (version, path) = text.trim().split_once(' ')?;
    let (version, python) = (version.parse().ok().filter(|version| *version >= 9)?, PathBuf::from(path));
    let folder = folder();
    let packages = folder.path().join("lib/site-packages");
    fs::create_dir_all(&packages).expect("the folder is made");
    for name in ["a.1", "a.2", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        fs::write(folder.path().join(name), "{}").expect("a file");
    }
    fs::write(packages.join("reader.py"), LIBRARY).expect("a module");
    fs::write(packages.join("wrapper.py"), WRAPPER).expect("a module");
    fs::write(packages.join("command.py"), COMMAND).expect("a module");
    fs::write(folder.path().join("late.py"), "").expect("a module");
    fs::write(folder.path().join("odd.py"), ODD).expect("a program");
    fs::write(folder.path().join("program.py"), PROGRAM).expect("a program");
    Some(Scene { folder, python, version })
}

impl Scene {
    fn home(&self) -> String {
        self.folder.path().canonicalize().expect("the folder").display().to_string()
    }

    /// Records Python with these words in the scene's folder, and what it printed.
    fn record(self, words: &str, has_sites: bool) -> (String, Job) {
        let home = self.folder.path().display().to_string();
        let python = self.python.display();
        let script = format!(
            "cd {home} && PYTHONPATH=$PYTHONPATH:{home}/lib/site-packages PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore exec {python} {words} \
             > {home}/printed 2>&1"
        );
        let job = record_in(self.folder, command(&["sh", "-c", &script]), |options| {
            options.python_marks = has_sites
        });
        (fs::read_to_string(job.folder.path().join("printed")).expect("what it printed"), job)
    }
}

/// The call sites of the opens of a file in the job's folder, with its paths relative to that.
fn sites_of(job: &Job, name: &str) -> Vec<Option<String>> {
    let folder = format!("{}/", job.folder.path().canonicalize().expect("the folder").display());
    let tables = job.trace.tables();
    let on = job.on(&format!("/{name}"));
    let opens = on.iter().filter(|event| event.op() == Op::Open);
    let shown = |site: CallSite<'_>| site.to_string().replace(&folder, "");
    opens.map(|event| tables.call_site_of_event(event).map(shown)).collect()
}

#[test]
fn every_open_has_the_line_that_made_it() {
    for name in INTERPRETERS {
        let Some(scene) = scene(name) else {
            println!("skipped: no {name} of version 3.9 or later");
            continue;
        };
        let item = if scene.version >= 11 { "Set.item" } else { "item" };
        let home = scene.home();
        let (printed, job) = scene.record(&format!("program.py {home}"), true);
        assert_eq!(printed, "done\n", "{name}");
        let class = format!("program.py:5 {item}");
        for (file, site) in [
            ("a.1", class.as_str()),
            ("a.2", &class),
            ("b", "program.py:12 <module>"),
            ("c", "program.py:13 <module>"),
            ("d", "program.py:14 <module>, through pathlib"),
            ("e", "program.py:15 <module>, through reader"),
            ("f", "program.py:16 <module>, through wrapper"),
            ("g", "program.py:17 <lambda>"),
            ("h", "program.py:18 <lambda>"),
            ("i", "program.py:22 <module>"),
            ("j", "program.py:28 <module>"),
            ("late.py", "program.py:7 lazily, through importlib"),
            ("k", "<string>:1 <module>"),
            ("l", "program.py:32 <lambda>"),
            ("reader.py", "program.py:2 <module>, through importlib"),
        ] {
            assert_eq!(sites_of(&job, file), [Some(site.to_owned())], "{name}, {file}");
        }
        // The interpreter opens the program itself, after it was asked whether that is an archive.
        assert_eq!(sites_of(&job, "program.py").last(), Some(&None), "{name}");
    }
}

#[test]
fn where_there_are_only_libraries_the_one_that_called_the_other_is_named() {
    let Some(scene) = scene("python3") else {
        return println!("skipped: no python3 of version 3.9 or later");
    };
    let bin = scene.folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    fs::write(bin.join("tool"), "import command\nif __name__ == '__main__': command.main()\n")
        .expect("a command");
    let (printed, job) = scene.record("bin/tool", true);
    assert_eq!(printed, "");
    assert_eq!(
        sites_of(&job, "a.1"),
        [Some("lib/site-packages/wrapper.py:2 wrap, through reader".to_owned())]
    );
    assert_eq!(sites_of(&job, "b"), [Some("lib/site-packages/command.py:4 main".to_owned())]);
    // A process that multiprocessing starts.
    assert_eq!(sites_of(&job, "c"), [Some("lib/site-packages/reader.py:4 inner".to_owned())]);
}

#[test]
fn what_wrapped_functions_open_in_c_is_opened_by_who_calls_them() {
    let Some(scene) = scene("python3") else {
        return println!("skipped: no python3 of version 3.9 or later");
    };
    let package = scene.folder.path().join("lib/site-packages/torch");
    fs::create_dir(&package).expect("a folder");
    for module in ["__init__.py", "serialization.py", "native.py"] {
        fs::write(package.join(module), if module == "__init__.py" { "" } else { NATIVE }).expect("a module");
    }
    fs::write(scene.folder.path().join("saves.py"), SAVES).expect("a program");
    let (printed, job) = scene.record("saves.py", true);
    assert_eq!(printed, "");
    let line = |line: u32| [Some(format!("saves.py:{line} <module>"))];
    assert_eq!(sites_of(&job, "a.1"), line(2));
    assert_eq!(sites_of(&job, "b"), line(3));
    assert_eq!(sites_of(&job, "c"), [None]);
    assert_eq!(sites_of(&job, "d"), line(6));
}

#[test]
fn the_program_runs_as_it_would_alone() {
    for name in INTERPRETERS {
        let Some(scene) = scene(name) else {
            println!("skipped: no {name} of version 3.9 or later");
            continue;
        };
        let alone = Command::new(&scene.python)
            .arg("odd.py")
            .current_dir(scene.folder.path())
            .output()
            .expect("the program runs");
        assert!(alone.status.success(), "{name}: {}", String::from_utf8_lossy(&alone.stderr));
        // With the allocator that finds memory which it did not give.
        let (printed, job) = self::scene(name).expect("as before").record("-X dev odd.py", true);
        assert!(job.outcome.status.success(), "{name}: {printed}");
        let (printed, job) = scene.record("odd.py", true);
        assert_eq!(printed, String::from_utf8_lossy(&alone.stdout), "{name}");
        assert!(job.outcome.status.success(), "{name}");
        let at_the_end = sites_of(&job, "d");
        assert_eq!(at_the_end, [Some("odd.py:41 late".to_owned())], "{name}");
    }
}

#[test]
fn without_marks_nothing_is_asked() {
    let Some(scene) = scene("python3") else {
        return println!("skipped: no python3 of version 3.9 or later");
    };
    let home = scene.home();
    let (printed, job) = scene.record(&format!("program.py {home}"), false);
    assert_eq!(printed, "done\n");
    assert_eq!((sites_of(&job, "a.1"), sites_of(&job, "e")), (vec![None], vec![None]));
    assert!(job.trace.tables().mark_names.is_empty());
}
