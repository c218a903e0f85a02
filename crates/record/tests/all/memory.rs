//! Files in `/dev/shm` are recorded; the memory that processes share there is not.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Job, command, compile, counts, folder, record_in};
use pio_trace::Op;

/// A name in `/dev/shm` that nothing else has; removed at the end. None where there is no such folder.
pub(crate) struct InMemory(pub PathBuf);

impl InMemory {
    pub(crate) fn new(name: &str) -> Option<InMemory> {
        let made = tempfile::Builder::new().prefix(name).tempdir_in("/dev/shm");
        // Only the name is wanted.
        let path = made.map_err(|error| println!("skipped: {error}")).ok()?.path().to_path_buf();
        Some(InMemory(path))
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(&self.0);
    }
}

/// The files of a trace that are in memory, and those that its calls name.
pub(crate) fn files_in_memory(job: &Job) -> Vec<&str> {
    let files = job.trace.tables().files.iter().map(|file| file.path.as_str());
    files.filter(|path| path.starts_with("/dev/shm")).collect()
}

#[test]
fn files_in_memory_are_recorded_and_shared_memory_is_not() {
    let Some(place) = InMemory::new("pioscope-files-") else { return };
    let folder = folder();
    let program = compile("cc", "memory", folder.path(), &["-lrt"]);
    let name = format!("/{}-shared", place.0.file_name().unwrap().to_str().unwrap());
    let job = record_in(folder, vec![program.into(), place.0.clone().into(), name.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);

    let place = place.0.to_str().unwrap();
    let [data, missing] = [format!("{place}/data"), format!("{place}/missing")];
    let mut files = files_in_memory(&job);
    files.sort_unstable();
    assert_eq!(files, [place, &data, &missing]);
    let tables = job.trace.tables();
    assert_eq!(files_in_memory(&job).len(), tables.files.len(), "memory without a name is none: {tables:?}");
    assert_eq!(
        counts(&job.on("/data")),
        [
            ("open", 2),
            ("close", 2),
            ("pread", 1),
            ("write", 1),
            ("mmap", 1),
            ("fopen", 1),
            ("fclose", 1),
            ("fread", 1)
        ]
    );
    assert_eq!((job.bytes("/data", Op::Read), job.bytes("/data", Op::Write)), (2100, 4096));
    let others: Vec<_> = job.events.iter().filter(|event| event.handle.is_none()).collect();
    assert_eq!(counts(&others), [("open", 1), ("unlink", 1), ("mkdir", 1), ("rmdir", 1)]);
}

#[test]
fn memory_that_python_processes_share_is_none_of_their_files() {
    const PROGRAM: &str = r#"
import multiprocessing, sys
from multiprocessing import shared_memory

def work(name, numbers):
    part = shared_memory.SharedMemory(name)
    part.buf[0] = 7
    numbers[0] = 3
    part.close()

if __name__ == "__main__":
    whole = shared_memory.SharedMemory(create=True, size=1 << 20)
    context = multiprocessing.get_context(sys.argv[1])
    numbers = context.Array("i", 1000)
    process = context.Process(target=work, args=(whole.name, numbers))
    process.start()
    process.join()
    print(whole.buf[0], numbers[0])
    whole.close()
    whole.unlink()
    with open(sys.argv[2], "w") as kept:
        kept.write("data")
"#;
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    for way in ["fork", "spawn"] {
        let folder = folder();
        let [program, kept] = ["shared.py", "kept"].map(|name| folder.path().join(name));
        fs::write(&program, PROGRAM).unwrap();
        let words = command(&["python3", program.to_str().unwrap(), way, kept.to_str().unwrap()]);
        let job = record_in(folder, words, |_| {});
        assert!(job.outcome.status.success(), "{:?}", job.outcome);
        assert_eq!(job.bytes("/kept", Op::Write), 4);
        assert!(files_in_memory(&job).is_empty(), "{way}: {:?}", files_in_memory(&job));
    }
}
