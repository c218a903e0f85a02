//! Libraries that are preloaded: where they must lie, and in which order.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::slice;

use rustix::fs::StatVfsMountFlags;
use tempfile::TempDir;

use crate::error::Error;
use crate::program::Program;

/// Whether a library with this path can be preloaded. The loader takes a blank or a colon in it for the end of a name, and the
/// kernel maps no code of file systems that are mounted with `noexec`.
pub fn can_be_preloaded(path: &Path) -> bool {
    why_not_preloaded(path).is_none()
}

fn why_not_preloaded(path: &Path) -> Option<&'static str> {
    if path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Some("contains a blank or a colon, which LD_PRELOAD cannot hold: choose another folder");
    }
    (!may_run(path))
        .then_some("is mounted with noexec, so that no library is loaded from there: choose another folder")
}

/// Whether the kernel runs programs, and loads libraries, of this path, which may yet be to make: not from file systems that are
/// mounted with `noexec`.
pub fn may_run(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| rustix::fs::statvfs(path).ok());
    !found.is_some_and(|found| found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// A new folder for libraries to preload, which is removed when it is dropped: in the working folder, which the hosts of
/// a job share, else in one for temporary files.
///
/// # Errors
/// If no such folder can be written to, or libraries can be preloaded from none.
pub fn preload_folder() -> io::Result<TempDir> {
    let temporary = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/dev/shm")];
    let folders = std::env::current_dir().into_iter().chain(temporary);
    let mut failure = io::Error::new(
        io::ErrorKind::InvalidInput,
        "the working folder and that for temporary files (TMPDIR) have a blank or a colon in their paths, or are mounted with noexec",
    );
    for folder in folders.filter(|folder| can_be_preloaded(folder)) {
        match tempfile::Builder::new().prefix(".pioscope-").tempdir_in(folder) {
            Ok(made) => return Ok(made),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Libraries as `LD_PRELOAD` names them.
///
/// # Errors
/// If one of them cannot be preloaded.
pub(crate) fn list_of(libraries: &[PathBuf]) -> Result<OsString, Error> {
    let mut list = OsString::new();
    for path in libraries {
        if let Some(reason) = why_not_preloaded(path) {
            return Err(Error::UnusablePath { path: path.clone(), reason });
        }
        append(&mut list, path.as_os_str());
    }
    Ok(list)
}

/// Which come first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Ours.
    OwnFirst,
    /// What the user preloads anyway, such as another recorder, which is to see the program's calls.
    UsersFirst,
}

/// What the user preloads.
pub(crate) fn users_list() -> OsString {
    std::env::var_os("LD_PRELOAD").unwrap_or_default()
}

/// The same without what a recorder preloads that records this process: what it starts is of one recorder.
pub(crate) fn users_list_without_recorder() -> OsString {
    without(&users_list(), &lists_of_recorder())
}

/// What a recorder that records this process preloads beside its own libraries: the job relies on that, whoever records it.
pub(crate) fn companions() -> Vec<PathBuf> {
    // Which of them record is not known where nobody told us.
    std::env::var_os("PIOSCOPE_RECORDER").map_or_else(Vec::new, |recorder| {
        let beside: Vec<_> =
            lists_of_recorder().iter().map(|list| without(list, slice::from_ref(&recorder))).collect();
        common(&users_list(), &beside)
    })
}

fn lists_of_recorder() -> Vec<OsString> {
    ["PIOSCOPE_PRELOAD", "PIOSCOPE_OTHERS_PRELOAD"].into_iter().filter_map(std::env::var_os).collect()
}

fn entries(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    let words = list.as_bytes().split(|byte| b": ".contains(byte));
    words.filter(|word| !word.is_empty()).map(OsStr::from_bytes)
}

fn without(list: &OsStr, others: &[OsString]) -> OsString {
    let others: Vec<_> = others.iter().flat_map(|list| entries(list)).collect();
    let mut left = OsString::new();
    for entry in entries(list).filter(|entry| !others.contains(entry)) {
        append(&mut left, entry);
    }
    left
}

fn common(list: &OsStr, others: &[OsString]) -> Vec<PathBuf> {
    let others: Vec<_> = others.iter().flat_map(|list| entries(list)).collect();
    entries(list).filter(|entry| others.contains(entry)).map(PathBuf::from).collect()
}

/// `LD_PRELOAD` with ours and the user's: unless the program does not bear ours, or a sanitizer that wants to be the first of
/// all. The exec hooks do the same for what the program starts (`c/pio_environment.c`).
pub(crate) fn preload_list(program: &Program, own: &OsStr, users: &OsStr, order: Order) -> OsString {
    let is_sanitizer = |name: &[u8]| users.as_bytes().windows(name.len()).any(|part| part == name);
    let has_sanitizer = is_sanitizer(b"libasan.so") || is_sanitizer(b"libclang_rt.asan");
    let own = if program.is_harmed { OsStr::new("") } else { own };
    let users_first = has_sanitizer || order == Order::UsersFirst;
    let (first, last) = if users_first { (users, own) } else { (own, users) };
    let sanitizer = program.sanitizer.as_deref().filter(|_| !has_sanitizer).unwrap_or(OsStr::new(""));
    let mut list = OsString::new();
    for entry in [sanitizer, first, last].into_iter().filter(|entry| !entry.is_empty()) {
        append(&mut list, entry);
    }
    list
}

fn append(list: &mut OsString, entry: &OsStr) {
    if !list.is_empty() {
        list.push(":");
    }
    list.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_within_a_job_leaves_the_outer_one_out() {
        let left = |list: &str, others: &[&str]| {
            let others: Vec<OsString> = others.iter().map(OsString::from).collect();
            without(list.as_ref(), &others).into_string().expect("UTF-8")
        };
        assert_eq!(left("/q.so /o/a:/o/b:/r.so", &["/o/a:/o/b", "/p/a"]), "/q.so:/r.so");
        assert_eq!(left("/o/a", &["/o/a"]), "");
        assert_eq!(left("/q.so", &[]), "/q.so");
        let beside = common("/q.so /o/a:/o/b:/r.so".as_ref(), &["/o/b:/o/c".into(), "/p/b".into()]);
        assert_eq!(beside, [PathBuf::from("/o/b")]);
    }

    #[test]
    fn lists_are_in_order() {
        let mut program =
            Program { path: "/p".into(), unseen: None, is_harmed: false, sanitizer: Some("/asan.so".into()) };
        let list = |program: &Program, users: &str, order| {
            let list = preload_list(program, "/a:/b".as_ref(), users.as_ref(), order);
            list.into_string().expect("UTF-8")
        };
        assert_eq!(list(&program, "", Order::UsersFirst), "/asan.so:/a:/b");
        assert_eq!(list(&program, "/q.so /r.so", Order::UsersFirst), "/asan.so:/q.so /r.so:/a:/b");
        assert_eq!(list(&program, "/q.so", Order::OwnFirst), "/asan.so:/a:/b:/q.so");
        assert_eq!(list(&program, "/l/libasan.so.8", Order::OwnFirst), "/l/libasan.so.8:/a:/b");
        program.is_harmed = true;
        program.sanitizer = None;
        assert_eq!(list(&program, "/q.so", Order::OwnFirst), "/q.so");
    }
}
