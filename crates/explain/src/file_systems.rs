//! The files of a job by the file system that they are on.

use pio_trace::{FileSystem, Tables};

use crate::explanation::FileStatistics;
use crate::tally::Traffic;

/// What a job did on one file system.
#[derive(Clone, Debug, PartialEq)]
pub struct OnFileSystem {
    /// The file system; none for files of which the trace does not say it, where it does of others.
    pub file_system: Option<FileSystem>,
    /// Files that were used.
    pub files: u64,
    /// Bytes in the largest of them, as far as the trace tells.
    pub largest_bytes: u64,
    /// Calls on them: those that reached the files, or else what the program asked for.
    pub traffic: Traffic,
}

/// One entry for each file system that files were used on, those that took the most time first. None if the trace says it of
/// no file.
pub(crate) fn of(tables: &Tables, files: &[FileStatistics]) -> Vec<OnFileSystem> {
    if tables.placements.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<OnFileSystem> = Vec::new();
    for file in files {
        let file_system = tables.file_system_of(file.file);
        let at = found.iter().position(|one| one.file_system.as_ref() == file_system);
        let at = at.unwrap_or_else(|| {
            found.push(OnFileSystem {
                file_system: file_system.cloned(),
                files: 0,
                largest_bytes: 0,
                traffic: Traffic::default(),
            });
            found.len() - 1
        });
        let one = &mut found[at];
        one.files += 1;
        one.largest_bytes = one.largest_bytes.max(file.size_bytes);
        let at_files = file.file_system.all().count > 0;
        one.traffic = one.traffic.merged(if at_files { file.file_system } else { file.program });
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.traffic.all().time_ns));
    found
}
