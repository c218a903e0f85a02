//! Whose the files are, in words of a user namespace: it knows few users, and its kernel lets nobody write to files of the
//! others. Where it allows that behind, it is to be allowed here: files of unknown users and groups are shown as our own.

use std::fs::read_to_string;
use std::io;

use rustix::process::{getgid, getuid};

/// What the kernel says of users and groups that a namespace does not know.
const UNKNOWN: u32 = 65534;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Owners {
    /// As whom files of unknown users, and of unknown groups, are shown.
    user: u32,
    group: u32,
}

impl Owners {
    /// Of the namespace of this process.
    pub(crate) fn new() -> io::Result<Owners> {
        Ok(Owners {
            user: shown("/proc/self/uid_map", getuid().as_raw())?,
            group: shown("/proc/self/gid_map", getgid().as_raw())?,
        })
    }

    /// The user and group that a file is shown with.
    pub(crate) fn show(self, user: u32, group: u32) -> (u32, u32) {
        (if user == UNKNOWN { self.user } else { user }, if group == UNKNOWN { self.group } else { group })
    }
}

/// As whom unknown ones are shown: as `own`, unless the number is of somebody whom the namespace knows.
fn shown(map: &str, own: u32) -> io::Result<u32> {
    Ok(if knows(&read_to_string(map)?, UNKNOWN) { UNKNOWN } else { own })
}

/// Whether a map (lines of first number inside, first outside, how many) has a number inside.
fn knows(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        (first..first + count).contains(&u64::from(number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_say_whom_a_namespace_knows() {
        assert!(knows("         0          0 4294967295\n", UNKNOWN));
        assert!(!knows("         0       1000          1\n", UNKNOWN));
        assert!(knows("0 1000 1\n1 100000 65536\n", UNKNOWN));
    }
}
