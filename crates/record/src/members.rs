//! The processes of a job that run now, by `/proc`: which they are, and what they have moved.
//!
//! A process belongs to the job if it was started with the job's folder of spools in its environment, or has left a spool
//! there. Only processes of this host can be asked.
#![allow(unsafe_code)] // Clocks are read by the C library.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::spool::{self, Spool};

/// Bytes of system calls, by `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// `rchar`.
    pub read_bytes: u64,
    /// `wchar`.
    pub written_bytes: u64,
}

/// The kernel's account of a process. Open from its start on: of a process that has ended, newer kernels let only root
/// open it.
pub(crate) struct Account(Option<File>);

impl Account {
    /// That of a process which runs.
    pub(crate) fn open(pid: u32) -> Account {
        Account(File::open(format!("/proc/{pid}/io")).ok())
    }

    /// What the process has moved up to now, with the children that it waited for. None if it is gone, or is another
    /// user's.
    pub(crate) fn moved(&self) -> Option<Moved> {
        let mut text = [0; 512];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(&text[..length]).ok()?;
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Some(Moved { read_bytes: number("rchar:")?, written_bytes: number("wchar:")? })
    }
}

/// This host's name, as it is in spools, in their names and in traces: what is compared with it must be had here. Other ways to ask
/// give another name where that has all of the 64 bytes that Linux allows.
pub fn host() -> String {
    name_in_spools(&fs::read("/proc/sys/kernel/hostname").unwrap_or_default())
}

/// As the recorder has it (`pio_host_name` in `c/pio_kernel.c`).
fn name_in_spools(name: &[u8]) -> String {
    const BYTES: usize = 63;
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    let name: Vec<u8> = name.iter().take(BYTES).map(|&byte| if byte == b'/' { b'_' } else { byte }).collect();
    spool::text(&name)
}

/// The boot's clock (`CLOCK_MONOTONIC`), which spools tell times by.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Whether the process that had the id `pid` at a moment of the boot's clock still runs: another may have it by now.
pub(crate) fn is_alive(pid: u32, at_ns: u64) -> bool {
    /// The kernel tells starts in hundredths of a second.
    const SLACK_NS: u64 = 20_000_000;
    let stat = stat(pid);
    let (Some(state), Some(start_ticks)) =
        (stat.first(), stat.get(19).and_then(|ticks| ticks.parse::<u64>().ok()))
    else {
        return false;
    };
    // Starts count the time that the machine slept, spools do not.
    let slept_ns = clock_ns(libc::CLOCK_BOOTTIME).saturating_sub(monotonic_ns());
    // SAFETY: sysconf reads no memory of ours.
    let ticks_per_s = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(0).max(1);
    let start_ns = u128::from(start_ticks) * 1_000_000_000 / u128::from(ticks_per_s);
    !matches!(state.as_str(), "Z" | "X" | "x") && start_ns <= u128::from(at_ns + slept_ns + SLACK_NS)
}

/// What the kernel tells of a process, from its state on (proc_pid_stat(5), field 3). Empty if it is gone.
fn stat(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program stands in brackets, and may hold anything.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().map(str::to_owned).collect()
}

/// The variables that a process was started with, separated by zeros. Empty for what has ended, and for what cannot be
/// read: another user's, and so no part of a job of ours.
fn environment(pid: u32) -> Vec<u8> {
    /// How often to look again, and for how long.
    const LOOK_EVERY: Duration = Duration::from_millis(1);
    const LOOKS: usize = 1000;
    for _ in 0..LOOKS {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(empty) if empty.is_empty() && !has_no_environment(pid) => std::thread::sleep(LOOK_EVERY),
            found => return found.unwrap_or_default(),
        }
    }
    Vec::new()
}

/// Whether a process has no variables, and not only none to be seen because it becomes another program at this moment.
fn has_no_environment(pid: u32) -> bool {
    let stat = stat(pid);
    // By the numbers of proc_pid_stat(5). The kernel sets the start of the code last.
    let [vsize, start_code, env_start, env_end] =
        [23, 26, 50, 51].map(|number: usize| stat.get(number - 3).map(String::as_str));
    vsize == Some("0") || env_end.is_none() || (start_code != Some("0") && env_start == env_end)
}

/// Processes of the job on this host that run now.
pub(crate) fn running(folders: &[PathBuf]) -> BTreeSet<u32> {
    let mut pids = with_recorder(folders);
    let here = host();
    for folder in folders {
        for path in files_of(folder, "spool").unwrap_or_default() {
            if let Ok(spool) = Spool::open(&path)
                && spool.header.host == here
                && is_alive(spool.header.pid, spool.header.start_ns)
            {
                pids.insert(spool.header.pid);
            }
        }
    }
    pids.remove(&std::process::id());
    pids
}

/// Processes of this host that run now and were started with one of the folders in their environment, whether they have a
/// spool there or not.
pub(crate) fn with_recorder(folders: &[PathBuf]) -> BTreeSet<u32> {
    let mut pids = BTreeSet::new();
    let names: Vec<Vec<u8>> =
        folders.iter().map(|folder| [b"PIOSCOPE_SPOOL=", folder.as_os_str().as_bytes()].concat()).collect();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if environment(pid).split(|&byte| byte == 0).any(|variable| names.iter().any(|name| name == variable))
        {
            pids.insert(pid);
        }
    }
    pids.remove(&std::process::id());
    pids
}

/// Files of a folder with this extension, in order. Only regular ones: others may write to one of the folders.
pub(crate) fn files_of(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|found| found == extension) && entry.file_type()?.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A name of 64 bytes was cut in spools, and whole where it was compared with them: the job's host was not this one.
    #[test]
    fn the_longest_name_of_a_host_is_that_of_its_spools() {
        assert_eq!(name_in_spools(b"node-7.cluster\n"), "node-7.cluster");
        assert_eq!(name_in_spools(&[&[b'n'; 64][..], b"\n"].concat()), "n".repeat(63));
        assert_eq!(name_in_spools(b"a/b\n"), "a_b");
        assert_eq!(name_in_spools(b"\n"), "");
    }

    /// While a process becomes another program, the kernel shows no environment of it: it was not counted as one of the job.
    #[test]
    fn what_becomes_another_program_has_not_ended() {
        let place = tempfile::tempdir().expect("a folder");
        let script = place.path().join("again.sh");
        let again = "i=$((i + 1)); export i; [ $i -lt 500 ] && exec sh \"$0\"; : > \"$0.last\"";
        fs::write(&script, again).expect("a script");
        let mut child = Command::new("sh").arg(&script).env("i", "0").spawn().expect("a shell");
        let mut looks = 0;
        while !environment(child.id()).is_empty() {
            looks += 1;
        }
        let is_last = place.path().join("again.sh.last").exists();
        child.wait().expect("the shell");
        assert!(is_last, "it ran on after {looks} looks");
    }
}
