//! Where a file has data: what takes a time that grows with a file is to grow with these, not with its holes.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// The first bytes from `at` on that are not in a hole. Where the file system knows no holes, that is all up to the end.
pub(super) fn next_data(file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, SeekFrom::Data(at)) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            let len = file.metadata()?.len();
            return Ok((at < len).then_some(at..len));
        }
        found => found?,
    };
    let Some(start) = start else { return Ok(None) };
    // Without an end, the file was cut meanwhile.
    let end = seek(file, SeekFrom::Hole(start))?;
    Ok(end.filter(|end| *end > start).map(|end| start..end))
}

/// Where data or a hole begins; `None` behind the end of the file.
pub(super) fn seek(file: &File, to: SeekFrom) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, to) {
        Err(Errno::NXIO) => Ok(None),
        found => Ok(Some(found?)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_are_passed_over() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(next_data(&file, 0).unwrap(), None);
        file.write_all_at(&[1; 10], 1 << 20).unwrap();
        file.set_len(1 << 30).unwrap();
        let found = next_data(&file, 0).unwrap().unwrap();
        assert!(found.start <= 1 << 20 && found.end >= (1 << 20) + 10);
        if found.end == 1 << 30 {
            eprintln!("skipped: no holes in files on this file system");
            return;
        }
        assert_eq!(next_data(&file, (1 << 20) + 5).unwrap(), Some((1 << 20) + 5..found.end));
        assert_eq!(next_data(&file, found.end).unwrap(), None);
    }
}
