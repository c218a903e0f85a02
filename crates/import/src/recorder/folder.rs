//! Where the files of a trace are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Broken;

/// A folder of files.
pub struct Folder {
    path: PathBuf,
    files: Files,
}

enum Files {
    OnDisk,
    InMemory(BTreeMap<String, Vec<u8>>),
}

impl Folder {
    /// The folder at a path. That it can be read is seen when it is.
    pub fn at(path: &Path) -> Folder {
        Folder { path: path.to_path_buf(), files: Files::OnDisk }
    }

    /// Files in memory, by their names. `name` stands for the path of the folder in errors.
    pub fn in_memory(files: BTreeMap<String, Vec<u8>>, name: &str) -> Folder {
        Folder { path: name.into(), files: Files::InMemory(files) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match &self.files {
            Files::OnDisk => self.path.join(name).is_file(),
            Files::InMemory(files) => files.contains_key(name),
        }
    }

    /// How many files have a name that ends so.
    pub(super) fn count(&self, ending: &str) -> usize {
        match &self.files {
            Files::OnDisk => fs::read_dir(&self.path)
                .into_iter()
                .flatten()
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|it| it.file_name().to_string_lossy().ends_with(ending))
                })
                .count(),
            Files::InMemory(files) => files.keys().filter(|name| name.ends_with(ending)).count(),
        }
    }

    /// A file, from an offset on, and how long it is in all.
    pub(super) fn open(&self, name: &str, offset: u64) -> Result<(Box<dyn Read + '_>, u64), Broken> {
        let failed =
            |error: io::Error| Broken::new(name, offset, format!("a file that can be read ({error})"));
        match &self.files {
            Files::OnDisk => {
                let mut file = File::open(self.path.join(name)).map_err(failed)?;
                let len = file.metadata().map_err(failed)?.len();
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                Ok((Box::new(BufReader::with_capacity(1 << 18, file)), len))
            }
            Files::InMemory(files) => {
                let bytes = files.get(name).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
                let mut rest = Cursor::new(&bytes[..]);
                rest.set_position(offset);
                Ok((Box::new(rest), bytes.len() as u64))
            }
        }
    }

    /// All bytes of a file.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, Broken> {
        let (mut file, _) = self.open(name, 0)?;
        let mut bytes = Vec::new();
        match file.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => {
                Err(Broken::new(name, bytes.len() as u64, format!("bytes that can be read ({error})")))
            }
        }
    }
}
