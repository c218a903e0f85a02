//! What strace saw of the same run: calls and bytes of each file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pio_trace::{Call, Event, Layer, Op, Trace};

/// The calls that both see, by the name under which they are compared.
const FAMILIES: [(&str, &[&str]); 6] = [
    ("read", &["read", "pread64", "readv", "preadv", "preadv2"]),
    ("write", &["write", "pwrite64", "writev", "pwritev", "pwritev2"]),
    ("open", &["open", "openat", "creat"]),
    ("close", &["close"]),
    ("sync", &["fsync", "fdatasync"]),
    ("truncate", &["ftruncate"]),
];
/// Copies inside the kernel: a read of the one and a write of the other.
const COPIES: [&str; 2] = ["copy_file_range", "sendfile"];
/// Calls that name a path: counted for all files together.
const NAMES: [(&str, &[&str]); 6] = [
    ("unlink", &["unlink", "unlinkat"]),
    ("rename", &["rename", "renameat", "renameat2"]),
    ("mkdir", &["mkdir", "mkdirat"]),
    ("rmdir", &["rmdir"]),
    ("link", &["link", "linkat"]),
    ("symlink", &["symlink", "symlinkat"]),
];

/// Calls that returned well, and bytes that they moved.
pub(crate) type Tally = BTreeMap<&'static str, (u64, u64)>;

/// Of each file below a folder; and of all calls that name a path, under the empty name.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub files: BTreeMap<String, Tally>,
    /// Files that somebody worked on through streams: their reads and writes are those of the C library.
    pub streams: Vec<String>,
    /// What was opened as a folder.
    pub folders: BTreeSet<String>,
}

impl Seen {
    fn count(&mut self, path: &str, family: &'static str, bytes: u64) {
        let entry = self.files.entry(path.to_owned()).or_default().entry(family).or_default();
        entry.0 += 1;
        entry.1 += bytes;
    }
}

/// The options that make strace say what we read.
pub(crate) fn options(log: &Path) -> Vec<String> {
    let mut calls: Vec<&str> = COPIES.to_vec();
    calls.extend(FAMILIES.iter().chain(&NAMES).flat_map(|(_, calls)| calls.iter().copied()));
    let words = ["strace", "-f", "-y", "-s", "0", "-qq", "-e", "signal=none", "-e"];
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.push(format!("trace={}", calls.join(",")));
    words.extend(["-o".to_owned(), log.display().to_string()]);
    words
}

/// What strace saw on files below `folder`.
pub(crate) fn seen_by_strace(log: &Path, folder: &str) -> Seen {
    let mut seen = Seen::default();
    let mut unfinished: BTreeMap<String, String> = BTreeMap::new();
    let text = fs::read(log).expect("strace's log");
    for line in String::from_utf8_lossy(&text).lines() {
        let Some((pid, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let whole = if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(pid.to_owned(), start.to_owned());
            continue;
        } else if let Some(rest) = call.strip_prefix("<... ") {
            let Some(start) = unfinished.remove(pid) else { continue };
            format!("{start}{}", rest.split_once("resumed>").map_or("", |(_, rest)| rest))
        } else {
            call.to_owned()
        };
        count_line(&whole, folder, &mut seen);
    }
    seen
}

fn count_line(line: &str, folder: &str, seen: &mut Seen) {
    let Some((name, rest)) = line.split_once('(') else { return };
    let Some((arguments, result)) = rest.rsplit_once(" = ") else { return };
    let value = result.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
    let Ok(value) = value.parse::<u64>() else { return };
    let paths = |text: &str| -> Vec<String> {
        let descriptors = text.split('<').skip(1).filter_map(|part| part.split_once('>'));
        descriptors.map(|(path, _)| path.to_owned()).collect()
    };
    let ours = |path: &String| path.starts_with(folder);
    if COPIES.contains(&name) {
        let found = paths(arguments);
        let (from, to) = if name == "sendfile" { (1, 0) } else { (0, 1) };
        for (which, family) in [(from, "read"), (to, "write")] {
            if let Some(path) = found.get(which).filter(|path| ours(path)) {
                seen.count(path, family, value);
            }
        }
        return;
    }
    for (family, calls) in FAMILIES {
        if calls.contains(&name) {
            // An open returns the descriptor; the others take it first.
            let text = if family == "open" { result } else { arguments };
            let bytes = if matches!(family, "read" | "write") { value } else { 0 };
            // The recorder looks at a program's file before it is started (c/pio_program.h).
            if family == "open" && arguments.ends_with("O_RDONLY|O_NONBLOCK|O_CLOEXEC)") {
                continue;
            }
            if let Some(path) = paths(text).first().filter(|path| ours(path)) {
                if arguments.contains("O_DIRECTORY") {
                    seen.folders.insert(path.clone());
                }
                seen.count(path, family, bytes);
            }
        }
    }
    for (family, calls) in NAMES {
        let foreign = ["\"/proc/", "\"/sys/", "\"/dev/"].iter().any(|start| arguments.contains(start));
        if calls.contains(&name) && !foreign {
            let family = if arguments.contains("AT_REMOVEDIR") { "rmdir" } else { family };
            seen.count("", family, 0);
        }
    }
}

/// What the recorder saw on files below `folder`. Folders are none of its files.
pub(crate) fn seen_by_recorder(trace: &Trace, events: &[Event], folder: &str) -> Seen {
    let mut seen = Seen::default();
    let tables = trace.tables();
    for event in events {
        if event.result < 0 || !matches!(event.layer(), Layer::Posix | Layer::Stdio) {
            continue;
        }
        let Some(file) = event.handle.and_then(|handle| tables.file_of(handle)) else {
            if let Some((family, _)) = NAMES.iter().find(|(family, _)| *family == event.call.name()) {
                seen.count("", family, 0);
            }
            continue;
        };
        let path = file.path.strip_suffix(" (deleted)").unwrap_or(&file.path);
        if !path.starts_with(folder) {
            continue;
        }
        if event.layer() == Layer::Stdio {
            seen.streams.push(path.to_owned());
        }
        let family = match event.op() {
            Op::Read => "read",
            Op::Write => "write",
            Op::Open => "open",
            Op::Close => "close",
            Op::Sync if matches!(event.call, Call::Fsync | Call::Fdatasync) => "sync",
            Op::Metadata if event.call == Call::Ftruncate => "truncate",
            _ => continue,
        };
        let bytes = if matches!(event.op(), Op::Read | Op::Write) { event.transferred() } else { 0 };
        seen.count(path, family, bytes);
    }
    seen.streams.sort();
    seen.streams.dedup();
    seen
}
