//! The things that events refer to, each stored once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pio_layout::{Datatype, View};

use crate::event::{Event, Target};
use crate::file_systems::{FileSystem, Placement};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// Index of a [`Process`] in [`Tables::processes`].
    ProcessId,
    /// Index of a [`File`] in [`Tables::files`].
    FileId,
    /// Index of a [`Handle`] in [`Tables::handles`].
    HandleId,
    /// Index of a view in [`Tables::views`].
    ViewId,
    /// Index of a datatype in [`Tables::datatypes`].
    DatatypeId,
    /// Index of a name in [`Tables::mark_names`].
    MarkNameId,
    /// Index of a [`FileSystem`] in [`Tables::file_systems`].
    FileSystemId,
}

/// A process of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its rank in `MPI_COMM_WORLD`, if it is an MPI process.
    pub rank: Option<u32>,
    /// Its process id on its host.
    pub pid: u32,
    /// The host it ran on.
    pub host: String,
    /// Its command line, arguments separated by blanks.
    pub command: String,
    /// When it started, nanoseconds since the start of the job.
    pub start_ns: u64,
    /// When it ended, if it ended by itself; none if it was killed.
    pub end_ns: Option<u64>,
}

impl Process {
    /// The program that it runs, with its folder if the command has one: the first word of the command.
    pub fn program(&self) -> &str {
        self.command.split(' ').next().unwrap_or("")
    }

    /// Name of its program: the first word of its command line, without the folder.
    pub fn program_name(&self) -> &str {
        self.program().rsplit('/').next().unwrap_or_default()
    }
}

/// A file that the job named, opened or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its absolute path.
    pub path: String,
}

/// One open of one file by one process: opening twice gives two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The file that was opened.
    pub file: FileId,
    /// The process that opened it.
    pub process: ProcessId,
    /// Ranks that opened it together: 1 for POSIX, the communicator's size for MPI-IO.
    pub ranks: u32,
    /// Equal for the handles that one collective open gave to its ranks, 0 for none.
    pub collective: u64,
}

/// All that a job's events refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// Name of the job: the command that was recorded, or the workload and machine that were simulated.
    pub job: String,
    /// What the trace says of itself: recorder or simulator version, machine, workload, seed; in order of writing.
    pub notes: Vec<(String, String)>,
    /// Start of the job, nanoseconds since 1970-01-01 UTC; 0 for simulated jobs.
    pub epoch_ns: u64,
    /// The processes.
    pub processes: Vec<Process>,
    /// The files.
    pub files: Vec<File>,
    /// The handles.
    pub handles: Vec<Handle>,
    /// The file views.
    pub views: Vec<View>,
    /// The memory datatypes.
    pub datatypes: Vec<Datatype>,
    /// The names of marks and phases, and of call sites.
    pub mark_names: Vec<String>,
    /// The file systems that opened files are on, as far as that is known.
    pub file_systems: Vec<FileSystem>,
    /// Which file is on which of them: one a file, at most, in order of the files.
    pub placements: Vec<Placement>,
}

impl Tables {
    /// Name of the note that names the MPI library.
    pub const MPI_LIBRARY: &str = "mpi library";

    /// Name of the note that names the strategy by which its MPI-IO was carried out; none if nobody told the MPI library how.
    pub const STRATEGY: &str = "strategy";
    /// Name of the note that says with which hints, as `key=value` words.
    pub const HINTS: &str = "hints";
    /// Name of the note that names the description of the I/O servers that held all files; none if there were none.
    pub const STORE: &str = "store";

    /// Name of the note with the hints of the file that `ROMIO_HINTS` named, as [`Tables::site_hints`] reads them.
    pub const SITE_HINTS: &str = "hints of the site";

    /// The hints of the file that `ROMIO_HINTS` named where the program was recorded, as key and value.
    pub fn site_hints(&self) -> impl Iterator<Item = (&str, &str)> {
        let words = self.note(Tables::SITE_HINTS).unwrap_or_default().split(", ");
        words.filter_map(|word| word.split_once('='))
    }

    /// What the first note of this name says; none if there is no such.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The notes, each name once, for what has one text of a name: those of the same name are its lines. In order of the names'
    /// first.
    pub fn notes_by_name(&self) -> Vec<(String, String)> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, text) in &self.notes {
            match places.entry(name) {
                Entry::Occupied(place) => {
                    let lines = &mut found[*place.get()].1;
                    lines.push('\n');
                    lines.push_str(text);
                }
                Entry::Vacant(place) => {
                    place.insert(found.len());
                    found.push((name.clone(), text.clone()));
                }
            }
        }
        found
    }

    /// The MPI library that the program ran with, such as `MPICH (libmpich.so.12.2.0)`. None if the trace does not say.
    pub fn mpi_library(&self) -> Option<&str> {
        self.note(Tables::MPI_LIBRARY)
    }

    /// The file behind a handle. None if either is missing (never for a trace that the reader accepted).
    pub fn file_of(&self, handle: HandleId) -> Option<&File> {
        let file = self.handles.get(handle.index())?.file;
        self.files.get(file.index())
    }

    /// The file that an event is about: the one behind its handle, or the one that it names. None if there is no such.
    pub fn file_of_event(&self, event: &Event) -> Option<&File> {
        self.files.get(self.file_id_of_event(event)?.index())
    }

    /// The same by its id.
    pub fn file_id_of_event(&self, event: &Event) -> Option<FileId> {
        match (event.handle, event.target) {
            (Some(handle), _) => Some(self.handles.get(handle.index())?.file),
            (None, Target::Name { file, .. }) => Some(file),
            (None, _) => None,
        }
    }

    /// The second path of a call with two: the new one of rename and link, what a symlink stands for. None if there is no
    /// such, or it is not known.
    pub fn other_file_of_event(&self, event: &Event) -> Option<&File> {
        match event.target {
            Target::Name { other: Some(other), .. } => self.files.get(other.index()),
            _ => None,
        }
    }
}
