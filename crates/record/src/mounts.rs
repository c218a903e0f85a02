//! The kernel's table of mounts (proc(5), `/proc/PID/mountinfo`), as this process sees it.
//!
//! It is read as bytes: the name of one mount point that is no UTF-8 must not hide all others.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A file system, where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// The folder where it is seen.
    pub point: PathBuf,
    /// Such as `nfs4`.
    pub kind: String,
    /// What is mounted, in the words of the kind: all hosts that mount it say the same.
    pub source: OsString,
}

impl Mount {
    /// A line is `36 35 98:0 /root /point options … - kind source options`, with a number of fields before the minus that varies.
    fn read(line: &[u8]) -> Option<Mount> {
        const MINUS: &[u8] = b" - ";
        let minus = line.windows(MINUS.len()).position(|signs| signs == MINUS)?;
        let mut mount = line[..minus].split(|sign| *sign == b' ');
        let mut system = line[minus + MINUS.len()..].split(|sign| *sign == b' ');
        let (major, minor) = str::from_utf8(mount.nth(2)?).ok()?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let point = PathBuf::from(OsString::from_vec(unescaped(mount.nth(1)?)));
        let kind = String::from_utf8_lossy(&unescaped(system.next()?)).into_owned();
        Some(Mount { device, point, kind, source: OsString::from_vec(unescaped(system.next()?)) })
    }
}

/// All that is mounted: of several at one point the last is seen.
pub fn mounts() -> Vec<Mount> {
    mounts_in(&fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// What is mounted where a folder lies, by its path without links.
pub fn mount_of(folder: &Path) -> Option<Mount> {
    let above = mounts().into_iter().filter(|mount| folder.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.as_os_str().len())
}

pub(crate) fn mounts_in(table: &[u8]) -> Vec<Mount> {
    table.split(|sign| *sign == b'\n').filter_map(Mount::read).collect()
}

/// The kernel writes blanks and the like as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| byte == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    /// The table was text: with such a name in it, nothing was mounted at all, and all files were on `/`.
    #[test]
    fn a_mount_whose_name_is_no_utf_8_is_one_of_all() {
        let table = b"28 1 253:1 / / rw shared:1 - ext4 /dev/vda1 rw\n\
            33 28 0:42 / /mnt/\xfc rw - nfs4 far:/\xfc rw\n\
            31 28 0:40 / /scratch rw - lustre 10.0.0.1@tcp:/scratch rw\n";
        let mounts = mounts_in(table);
        let points: Vec<_> = mounts.iter().map(|mount| mount.point.as_os_str().as_bytes()).collect();
        assert_eq!(points, [&b"/"[..], b"/mnt/\xfc", b"/scratch"]);
        assert_eq!(mounts[1].source.as_bytes(), b"far:/\xfc");
        assert_eq!((mounts[2].kind.as_str(), mounts[2].device), ("lustre", (0, 40)));
    }

    #[test]
    fn names_are_read_as_they_are() {
        let [mount] = &mounts_in(
            br"32 28 0:41 / /a\040b\134c\0x rw shared:2 master:1 - fuse.sshfs ada@far:\011 rw",
        )[..] else {
            panic!("one mount");
        };
        assert_eq!(mount.point, Path::new(r"/a b\c\0x"));
        assert_eq!(mount.source, "ada@far:\t");
        assert!(mounts().iter().any(|mount| mount.point == Path::new("/")));
    }

    #[test]
    fn any_table_is_read() {
        for text in
            ["", " - ", "1 2 3 - x", "1 2 3:4 / - x y", "1 2 a:b / /x - ext4 x", r"1 2 3:4 / /\0 - ext4"]
        {
            assert_eq!(mounts_in(text.as_bytes()), []);
        }
    }
}
