//! What the job's files are on: the file systems of the devices that the recorder saw, and how files lie on them.
//!
//! In the job, only the number and type of each device are asked for, once. What the file system is called and where it is
//! mounted is read from the kernel's table of mounts once the job is over.

use std::collections::{BTreeMap, HashMap};

use pio_trace::{FileId, FileSystem, FileSystemId, Placement, Tables};

use crate::mounts::{Mount, mounts};
use crate::paths::text_of;
use crate::{members, stripes};

/// Where a file was when it was first opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The host that opened it.
    pub host: String,
    /// Number of the device, as `stat` says it.
    pub device: u64,
    /// Type of the file system, as `statfs` says it.
    pub kind: u32,
}

/// Adds the file systems of these files to the tables.
pub(crate) fn add(places: &BTreeMap<FileId, Place>, tables: &mut Tables) {
    let mounts = Mounts::of(mounts());
    let here = members::host();
    let mut known = HashMap::new();
    let mut asked = 0;
    for (&file, place) in places {
        let Some(path) = tables.files.get(file.index()).map(|file| file.path.as_str()) else { continue };
        let file_system = mounts.file_system(path, place, &here);
        let striping = match file_system.kind == "lustre" && asked < stripes::MOST {
            true => {
                asked += 1;
                stripes::on_lustre(path)
            }
            false => None,
        };
        let next = FileSystemId(tables.file_systems.len() as u32);
        let id = *known.entry(file_system).or_insert_with_key(|file_system| {
            tables.file_systems.push(file_system.clone());
            next
        });
        tables.placements.push(Placement { file, file_system: id, striping });
    }
}

/// Types of `statfs` (statfs(2), and the headers of those file systems that are none of the kernel's own), with the names that
/// the table of mounts has for them.
const KINDS: [(u32, &[&str]); 24] = [
    (0x0000_EF53, &["ext4", "ext3", "ext2"]),
    (0x5846_5342, &["xfs"]),
    (0x9123_683E, &["btrfs"]),
    (0xF2F5_2010, &["f2fs"]),
    (0x2FC1_2FC1, &["zfs"]),
    (0xCA45_1A4E, &["bcachefs"]),
    (0x0102_1994, &["tmpfs", "devtmpfs"]),
    (0x8584_58F6, &["ramfs"]),
    (0x794C_7630, &["overlay"]),
    (0x7371_7368, &["squashfs"]),
    (0x0000_9660, &["iso9660"]),
    (0x0000_4D44, &["vfat"]),
    (0x2011_BAB0, &["exfat"]),
    (0x0000_6969, &["nfs4", "nfs"]),
    (0x0BD0_0BD0, &["lustre"]),
    (0x4750_4653, &["gpfs"]),
    (0x1983_0326, &["beegfs"]),
    (0x00C3_6400, &["ceph"]),
    (0xFF53_4D42, &["cifs", "smb3"]),
    (0xFE53_4D42, &["smb3", "smb2"]),
    (0x0102_1997, &["9p"]),
    (0x2003_0528, &["orangefs", "pvfs2"]),
    (0x6573_5546, &["fuse"]),
    (0x0BAD_F00D, &["cvmfs2"]),
];

/// The names of a type; none if it is not known.
fn names_of(kind: u32) -> &'static [&'static str] {
    KINDS.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, names)| names)
}

/// The mounts of this host that are there now, each with its point as the trace has paths.
struct Mounts(Vec<(String, Mount)>);

impl Mounts {
    fn of(mounts: Vec<Mount>) -> Mounts {
        Mounts(mounts.into_iter().map(|mount| (text_of(&mount.point), mount)).collect())
    }

    /// The file system that a file of this path is on, which was seen to be of that device and type; `here` is this host.
    fn file_system(&self, path: &str, place: &Place, here: &str) -> FileSystem {
        let names = names_of(place.kind);
        let is_of_type = |mount: &Mount| {
            names.contains(&mount.kind.as_str()) || (names == ["fuse"] && mount.kind.starts_with("fuse"))
        };
        let device = device_numbers(place.device);
        let is_here = place.host == here;
        let above: Vec<_> = self.0.iter().filter(|(point, _)| is_below(path, point)).collect();
        let longest = |is_it: &dyn Fn(&Mount) -> bool| {
            let all = above.iter().filter(|(_, mount)| is_it(mount));
            // Of two at one point the later hides the earlier.
            let found = all.max_by_key(|(point, _)| point.len());
            found.map(|(point, mount)| FileSystem { kind: mount.kind.clone(), mount: point.clone() })
        };
        let unnamed = || FileSystem {
            kind: names.first().map_or_else(|| format!("{:#x}", place.kind), |name| (*name).to_owned()),
            mount: String::new(),
        };
        // A device number is this host's own; some file systems (btrfs) have others in the table of mounts than `stat` says.
        let of_device = longest(&|mount| is_here && mount.device == device);
        let of_type = || longest(&is_of_type);
        // Other hosts mount the file systems that they share alike; where they have their own, nobody here knows.
        of_device.or_else(|| of_type().filter(|found| is_here || found.is_remote())).unwrap_or_else(unnamed)
    }
}

/// Whether a path is that of a folder, or below it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Major and minor number, as the C library packs them (makedev(3)).
fn device_numbers(device: u64) -> (u32, u32) {
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & 0xffff_ff00);
    (major as u32, minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::mounts_in;

    const TABLE: &str = "\
22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw
28 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
29 28 0:30 / /tmp rw - tmpfs tmpfs rw
31 28 0:40 / /scratch rw - lustre 10.0.0.1@tcp:/scratch rw
32 28 0:41 / /home/ada/my\\040data rw - fuse.sshfs ada@far: rw
33 28 0:42 / /btrfs rw - btrfs /dev/vdb rw
34 28 253:1 /part /bound rw - ext4 /dev/vda1 rw
no mount";

    fn found(path: &str, host: &str, device: u64, kind: u32) -> (String, String) {
        let place = Place { host: host.into(), device, kind };
        let FileSystem { kind, mount } =
            Mounts::of(mounts_in(TABLE.as_bytes())).file_system(path, &place, &members::host());
        (kind, mount)
    }

    fn pair(kind: &str, mount: &str) -> (String, String) {
        (kind.into(), mount.into())
    }

    #[test]
    fn files_of_this_host_are_on_the_mounts_of_their_devices() {
        let here = &members::host();
        let ext4 = (253 << 8) | 1;
        assert_eq!(found("/etc/passwd", here, ext4, 0xEF53), pair("ext4", "/"));
        assert_eq!(found("/bound/a", here, ext4, 0xEF53), pair("ext4", "/bound"));
        assert_eq!(found("/scratch/run/a", here, 40, 0x0BD0_0BD0), pair("lustre", "/scratch"));
        assert_eq!(
            found("/home/ada/my data/a", here, 41, 0x6573_5546),
            pair("fuse.sshfs", "/home/ada/my data")
        );
        // Of a device number that the table does not have: by the type.
        assert_eq!(found("/btrfs/a", here, 77, 0x9123_683E), pair("btrfs", "/btrfs"));
        // In a container's own mounts: no more than the type is known.
        assert_eq!(found("/tmp/a", here, 99, 0x5846_5342), pair("xfs", ""));
        assert_eq!(found("/tmp/a", here, 99, 0x1234), pair("0x1234", ""));
        assert_eq!(found("/tmpfile", here, 30, 0x0102_1994), pair("tmpfs", ""));
    }

    #[test]
    fn of_other_hosts_only_shared_file_systems_are_looked_up() {
        assert_eq!(found("/scratch/a", "elsewhere", 3, 0x0BD0_0BD0), pair("lustre", "/scratch"));
        assert_eq!(found("/tmp/a", "elsewhere", 30, 0x0102_1994), pair("tmpfs", ""));
    }

    #[test]
    fn device_numbers_are_those_of_the_c_library() {
        for (major, minor) in [(253, 1), (0, 40), (4095, 255), (8, 0xF_FFFF)] {
            assert_eq!(device_numbers(libc::makedev(major, minor)), (major, minor));
        }
    }
}
