//! Python programs mark their epochs, waits and checkpoints without being changed, and run as they would alone.
//!
//! The packages here stand in for the real ones, with the names that are wrapped.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Job, command, folder, record_in};
use pio_trace::{Flags, Layer, Target};

const LOADER: &str = r#"
class _BaseDataLoaderIter:
    def __init__(self, loader): self.left = list(loader.items)
    def __iter__(self): return self
    def _next_data(self):
        if not self.left: raise StopIteration
        return self.left.pop(0)
    def __next__(self): return self._next_data()
class DataLoader:
    def __init__(self, items, batch_size=None, sampler=None):
        self.items, self.batch_size, self.num_workers, self.batch_sampler = items, batch_size, 2, sampler
    def __setattr__(self, name, value):
        if name.startswith("_pioscope"): raise ValueError(name)
        object.__setattr__(self, name, value)
    def _get_iterator(self): return _BaseDataLoaderIter(self)
    def __iter__(self): return self._get_iterator()
"#;

const PROGRAM: &str = r#"
import os, sys
import torch.utils.data.dataloader as data
from torch import save
import safetensors.numpy
print("path", any(".spool" in entry for entry in sys.path))
print("site", getattr(sys.modules.get("sitecustomize"), "OWN", None))
class Sampler:
    def __init__(self, batch_size): self.batch_size = batch_size
loader, check = data.DataLoader([1, 2, 3], 16), data.DataLoader([4], sampler=Sampler(20))
print([list(loader), list(check), list(loader)])
for item in loader: break
child = os.fork()
if child == 0:
    list(loader)
    os._exit(0)
os.waitpid(child, 0)
print(save("a", out="b"), save.__name__, save.__doc__, save.__module__)
try: save(1 / 0)
except ZeroDivisionError as error: print(error)
try: save("fail")
except KeyError as error: print(error)
print(data.__spec__.loader.__class__.__name__, safetensors.numpy.load_file)
"#;

/// Iterators that keep no attributes or invent them, and imports that come to nothing at first.
const ODD: &str = r#"
import copy, importlib.util, os, sys
spec = importlib.util.find_spec("torch.serialization")
print(copy.deepcopy(spec).origin == spec.origin, copy.copy(spec).name)
os.environ["FAIL"] = "1"
try: import safetensors.torch
except ValueError as error: print(error)
del os.environ["FAIL"]
import safetensors.torch
print(safetensors.torch.save_file("a"))
import torch
print(torch.save("a", out="b"))
import torch.utils.data.dataloader as data
class Generated(data.DataLoader):
    def _get_iterator(self): yield from self.items
class Slots:
    __slots__ = ("left",)
    def __init__(self, loader): self.left = iter(loader.items)
    def __iter__(self): return self
    def __next__(self): return next(self.left)
class Slotted(data.DataLoader):
    def _get_iterator(self): return Slots(self)
class Proxy:
    def __init__(self, inner): self.__dict__["inner"] = inner
    def __getattr__(self, name): return "invented"
    def __setattr__(self, name, value): raise ValueError(name)
    def __iter__(self): return self
    def __next__(self): return next(self.inner)
class Proxied(data.DataLoader):
    def _get_iterator(self): return Proxy(data._BaseDataLoaderIter(self))
class Failing(data.DataLoader):
    def _get_iterator(self): raise OSError("no iterator")
for kind in Generated, Slotted, Proxied:
    print(list(kind([1, 2])))
try: list(Failing([1]))
except OSError as error: print(error)
print(copy.deepcopy(iter(data.DataLoader([5]))).left)
"#;

fn write_packages(folder: &Path) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, text).expect("the module is written");
    };
    write("torch/__init__.py", "from .serialization import save\n");
    write(
        "torch/serialization.py",
        "def save(what, out=None):\n    'saves'\n    return what + out if out else {}[what]\ndef load(): pass\n",
    );
    write("torch/utils/__init__.py", "");
    write("torch/utils/data/__init__.py", "");
    write("torch/utils/data/dataloader.py", LOADER);
    // Another version, which has not all that is wrapped.
    write("safetensors/__init__.py", "");
    write("safetensors/numpy.py", "load_file = 7\n");
    write(
        "safetensors/torch.py",
        "import os\nif 'FAIL' in os.environ: raise ValueError('not yet')\ndef save_file(what): return what\ndef load_file(): pass\n",
    );
    write("program.py", PROGRAM);
    write("odd.py", ODD);
    write(
        "old.py",
        "import sys\nprint(sys.version_info[0], getattr(sys.modules['sitecustomize'], 'OWN', None))\n",
    );
}

fn python(name: &str) -> Option<()> {
    let found = Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: no {name}");
    }
    found.then_some(())
}

/// Runs the program in `folder` with further words, and what it printed.
fn run(folder: tempfile::TempDir, own: Option<&str>, is_marked: bool) -> (String, Job) {
    run_program(folder, "python3 program.py", own, is_marked)
}

fn run_program(
    folder: tempfile::TempDir,
    program: &str,
    own: Option<&str>,
    is_marked: bool,
) -> (String, Job) {
    write_packages(folder.path());
    if let Some(own) = own {
        fs::create_dir(folder.path().join("own")).expect("a folder");
        fs::write(folder.path().join("own/sitecustomize.py"), own).expect("the module is written");
    }
    let home = folder.path().display().to_string();
    // The user's own path comes behind ours, which `record` takes from its environment.
    let script = format!(
        "cd {home} && PYTHONPATH=$PYTHONPATH:{home}/own exec {program} > {home}/printed 2> {home}/errors"
    );
    let job = record_in(folder, command(&["sh", "-c", &script]), |options| options.python_marks = is_marked);
    let read = |name: &str| fs::read_to_string(job.folder.path().join(name)).expect("what was printed");
    assert!(job.outcome.status.success(), "{}", read("errors"));
    let printed = read("printed");
    (printed + &read("errors"), job)
}

#[test]
fn epochs_waits_and_checkpoints_are_marked() {
    if python("python3").is_none() {
        return;
    }
    let (alone, unmarked) = run(folder(), Some("OWN = 5\n"), false);
    assert!(unmarked.events.iter().all(|event| event.layer() != Layer::Mark));
    let (printed, job) = run(folder(), Some("OWN = 5\n"), true);
    assert_eq!(printed, alone);
    assert!(printed.contains("site 5") && printed.contains("path False"), "{printed}");

    let tables = job.trace.tables();
    let main = job.events.iter().find(|event| event.layer() == Layer::Mark).expect("a mark").process;
    let named = |name: &str| -> Vec<(u64, bool)> {
        let of = job.events.iter().filter(|event| event.process == main);
        of.filter(|event| tables.mark_of_event(event) == Some(name))
            .map(|event| match event.target {
                Target::Mark { number, .. } => (number, event.flags.contains(Flags::UNFINISHED)),
                _ => panic!("{event:?} is no mark"),
            })
            .collect()
    };
    // All are ended, the one that was left early, too.
    assert_eq!(named("epoch, loader 1"), [(0, false), (1, false), (2, false)]);
    assert_eq!(named("epoch, loader 2"), [(0, false)]);
    // Once, with what the loader was told, by way of a sampler of batches, too.
    for (setting, number) in
        [("1, batch size", 16), ("2, batch size", 20), ("1, workers", 2), ("2, workers", 2)]
    {
        assert_eq!(named(&format!("loader {setting}")), [(number, false)], "{setting}");
    }
    let waits: Vec<u64> = named("batch wait").into_iter().map(|(number, _)| number).collect();
    assert_eq!(waits, [0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0]);
    assert_eq!(named("loader start"), [(0, false), (0, false), (1, false), (2, false)]);
    assert_eq!(named("torch.save"), [(0, false), (1, false)]);
    // The child's own.
    let others = job.events.iter().filter(|event| event.layer() == Layer::Mark && event.process != main);
    assert_eq!(others.count(), 2 + 4);
}

#[test]
fn odd_iterators_and_imports_work_as_alone() {
    if python("python3").is_none() {
        return;
    }
    let (alone, _) = run_program(folder(), "python3 odd.py", None, false);
    let (printed, job) = run_program(folder(), "python3 odd.py", None, true);
    assert_eq!(printed, alone);
    assert_eq!(printed.matches("[1, 2]").count(), 3, "{printed}");
    let tables = job.trace.tables();
    let named = |name: &str| -> Vec<Flags> {
        let of = job.events.iter().filter(|event| tables.mark_of_event(event) == Some(name));
        of.map(|event| event.flags).collect()
    };
    // Those that were looked for before, or failed at first, are marked, too.
    assert_eq!((named("torch.save").len(), named("safetensors.save_file").len()), (1, 1));
    // One of each loader, all ended.
    for loader in 1..=5 {
        assert_eq!(named(&format!("epoch, loader {loader}")), [Flags::NONE]);
    }
    assert_eq!(named("batch wait").len(), 3);
}

#[test]
fn programs_of_python_2_run_as_alone() {
    if python("python2.7").is_none() {
        return;
    }
    let (printed, _) = run_program(folder(), "python2.7 old.py", Some("OWN = 5\n"), true);
    assert_eq!(printed, "(2, 5)\n");
    let (printed, _) = run_program(folder(), "python2.7 -c 'print(3)'", None, true);
    assert_eq!(printed, "3\n");
}

#[test]
fn a_program_without_or_with_a_broken_sitecustomize_runs_as_alone() {
    if python("python3").is_none() {
        return;
    }
    let (printed, _) = run(folder(), None, true);
    assert!(printed.contains("[[1, 2, 3], [4], [1, 2, 3]]"), "{printed}");
    let broken = "import not_there_at_all\n";
    let (alone, _) = run(folder(), Some(broken), false);
    let (printed, _) = run(folder(), Some(broken), true);
    let first = |text: &str| text.lines().find(|line| line.contains("not_there")).map(str::to_owned);
    assert_eq!(first(&printed), first(&alone));
}
