//! Traces of Recorder (github.com/uiuc-hpc/Recorder), versions 2.3 to 3.0: a folder of files.
//!
//! Recorder keeps each different call once, with all its arguments in words, in a table of *call signatures*; what a
//! process called in which order is a *grammar* over the numbers of that table; when, are two numbers a call. Both table
//! and grammars may be those of one process or of all. Each part has a file here: [`metadata`] (`recorder.mt`),
//! [`signatures`] (`*.cst`), [`grammar`] (`*.cfg`), [`times`] (`*.ts`); [`folder`] is where the bytes come from,
//! [`packed`] how they may be compressed, [`meaning`] (and [`libraries`]) what a signature says, [`calls`] what becomes of
//! it.

mod calls;
mod folder;
mod grammar;
mod libraries;
mod meaning;
mod metadata;
mod packed;
mod signatures;
mod times;

use std::io::Write;
use std::path::Path;

use self::calls::Reading;
pub use self::folder::Folder;
use self::grammar::Grammar;
use self::metadata::Metadata;
use self::signatures::{Signatures, Table};
use self::times::{Places, Times};
use crate::error::ImportError;

/// The file that every folder of Recorder's has.
const METADATA: &str = "recorder.mt";

/// Whether a path is a folder that Recorder wrote.
pub(super) fn is_folder(path: &Path) -> bool {
    path.join(METADATA).is_file()
}

/// Writes the calls that Recorder saw as a trace to `out`; `name` stands for its path in errors. Returns the number of
/// events.
///
/// # Errors
/// If what a trace cannot do without (`recorder.mt`) is missing or damaged, or the trace, or the temporary file that
/// sorting may need, cannot be written. Other damage is no error: the trace has what came before it, and a note.
pub fn write_trace(folder: &Folder, out: impl Write, name: &Path) -> Result<u64, ImportError> {
    let metadata = Metadata::read(folder)?;
    let mut reading = Reading::new(folder, &metadata);
    let places = reading.usable(Places::read(folder, &metadata));
    let trace = Input { folder, metadata: &metadata, places };
    if metadata.merged {
        trace.read_merged(&mut reading)?;
    } else {
        trace.read_each(&mut reading)?;
    }
    reading.finish(out, name)
}

/// The bytes of a file of the folder are not what they must be, from somewhere on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Broken {
    file: String,
    offset: u64,
    expected: String,
}

impl Broken {
    fn new(file: &str, offset: u64, expected: impl Into<String>) -> Broken {
        Broken { file: file.to_owned(), offset, expected: expected.into() }
    }
}

/// What all processes share.
struct Input<'a> {
    folder: &'a Folder,
    metadata: &'a Metadata,
    places: Places,
}

impl Input<'_> {
    /// One table of signatures for all processes, and a grammar for each different one.
    fn read_merged(&self, reading: &mut Reading) -> Result<(), ImportError> {
        let (folder, metadata) = (self.folder, self.metadata);
        let name = if folder.has("recorder.cst") { "recorder.cst" } else { "0.cst" };
        let table = reading.usable(Table::read(folder, name, metadata));
        let of_rank = reading.usable(grammar::numbers(folder, metadata.ranks));
        let different = of_rank.iter().max().map_or(0, |&most| most as usize + 1);
        let grammars = reading.usable(grammar::read_merged(folder, different, metadata));
        let signatures = Signatures::of(&table, metadata, reading);
        for (rank, &number) in (0..).zip(&of_rank) {
            if let Some(grammar) = grammars.get(number as usize) {
                self.read_process(rank, &signatures, grammar, reading)?;
            }
        }
        Ok(())
    }

    /// A table of signatures and a grammar for each process.
    fn read_each(&self, reading: &mut Reading) -> Result<(), ImportError> {
        let (folder, metadata) = (self.folder, self.metadata);
        for rank in 0..metadata.ranks {
            let table = reading.usable(Table::read(folder, &format!("{rank}.cst"), metadata));
            let grammar = reading.usable(Grammar::read(folder, &format!("{rank}.cfg"), metadata));
            let signatures = Signatures::of(&table, metadata, reading);
            self.read_process(rank, &signatures, &grammar, reading)?;
        }
        Ok(())
    }

    fn read_process(
        &self,
        rank: u32,
        signatures: &Signatures,
        grammar: &Grammar,
        reading: &mut Reading,
    ) -> Result<(), ImportError> {
        let mut times = match Times::open(self.folder, rank, &self.places, self.metadata) {
            Ok(times) => times,
            Err(broken) => {
                reading.broken(broken);
                return Ok(());
            }
        };
        let mut process = reading.process(rank, signatures);
        for call in grammar.calls() {
            let broken = match call {
                Err(expected) => Broken::new(&grammar.file, grammar.offset, expected),
                Ok(number) => match times.next() {
                    Some((start, end)) => {
                        process.call(number, start, end)?;
                        continue;
                    }
                    None => times.broken("a time for every call of the grammar"),
                },
            };
            process.reading.broken(broken);
            break;
        }
        process.end()
    }
}
