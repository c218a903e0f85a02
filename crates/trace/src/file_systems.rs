//! What files are on.

use crate::tables::{FileId, FileSystemId, Tables};

/// A file system that files of the job are on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileSystem {
    /// What the kernel calls its kind: `ext4`, `lustre`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// Where it is mounted; empty if that is not known.
    pub mount: String,
}

/// Kinds that keep their files on other hosts.
const REMOTE: [&str; 23] = [
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "cvmfs2", "daos", "gfs2", "gpfs", "lustre", "ncp", "nfs",
    "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "virtiofs", "wekafs", "xtreemfs",
];
/// The same, of those that a process carries out (FUSE).
const REMOTE_FUSE: [&str; 12] = [
    "ceph-fuse",
    "cvmfs2",
    "dfuse",
    "gcsfuse",
    "glusterfs",
    "goofys",
    "juicefs",
    "orangefs",
    "rclone",
    "s3fs",
    "sshfs",
    "unionfs",
];

impl FileSystem {
    /// Whether its files are on other hosts: every open and every first read takes a message there.
    pub fn is_remote(&self) -> bool {
        match self.kind.strip_prefix("fuse.") {
            Some(kind) => REMOTE_FUSE.contains(&kind),
            None => REMOTE.contains(&self.kind.as_str()),
        }
    }

    /// Whether its files are in memory: nothing in them outlives the host.
    pub fn is_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs" | "hugetlbfs")
    }
}

/// How a file lies on the targets of a parallel file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// Bytes of a file from one target to the next.
    pub unit_bytes: u64,
    /// Targets that it lies on.
    pub targets: u32,
}

/// What a file is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The file.
    pub file: FileId,
    /// Its file system.
    pub file_system: FileSystemId,
    /// How it lies there, if that is known.
    pub striping: Option<Striping>,
}

impl Tables {
    /// What a file is on; none if that is not known.
    pub fn placement_of(&self, file: FileId) -> Option<&Placement> {
        let index = self.placements.binary_search_by_key(&file, |placement| placement.file).ok()?;
        self.placements.get(index)
    }

    /// The file system that a file is on; none if that is not known.
    pub fn file_system_of(&self, file: FileId) -> Option<&FileSystem> {
        self.file_systems.get(self.placement_of(file)?.file_system.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_other_hosts() {
        let is_remote = |kind: &str| FileSystem { kind: kind.into(), mount: String::new() }.is_remote();
        for kind in ["lustre", "nfs4", "fuse.sshfs", "gpfs", "beegfs"] {
            assert!(is_remote(kind), "{kind}");
        }
        for kind in ["ext4", "xfs", "tmpfs", "overlay", "fuse.fuse-overlayfs", "fuse.lxcfs", ""] {
            assert!(!is_remote(kind), "{kind}");
        }
    }
}
