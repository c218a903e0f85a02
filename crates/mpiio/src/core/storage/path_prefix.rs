//! Names of file system drivers before paths ("ufs:/tmp/a"): a user of ROMIO chooses one so. Here they choose nothing, and are
//! taken off. Any other name is part of the path: who writes to "run:a" does not mean "a".

/// Those of ROMIO, in MPICH since 3.0 and in Open MPI; the case of letters does not matter.
const DRIVERS: [&str; 17] = [
    "daos", "gpfs", "hfs", "ime", "lustre", "nfs", "panfs", "pfs", "piofs", "pvfs", "pvfs2", "quobyte",
    "sfs", "testfs", "ufs", "xfs", "zoidfs",
];

/// How many bytes at the beginning of a path name a driver, the colon included.
pub(crate) fn prefix_len(path: &[u8]) -> usize {
    let Some(colon) = path.iter().position(|byte| *byte == b':') else { return 0 };
    let known = DRIVERS.iter().any(|driver| driver.as_bytes().eq_ignore_ascii_case(&path[..colon]));
    if known { colon + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_drivers_are_found() {
        for (path, len) in [
            ("ufs:/tmp/a", 4),
            ("pvfs2:a", 6),
            ("LUSTRE:a:b", 7),
            ("nfs:", 4),
            ("/tmp/ufs:a", 0),
            ("run:a", 0),
            ("nosuch:a", 0),
            ("2024:b", 0),
            (":a", 0),
            ("a", 0),
        ] {
            assert_eq!(prefix_len(path.as_bytes()), len, "{path}");
        }
    }
}
