//! What can be wrong with a machine description.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use thiserror::Error;

/// A machine description that cannot be used.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{}: {message}", place(file, *line))]
    Syntax {
        /// The file, or the name of the text.
        file: String,
        /// The line, from 1; none of a text that the user does not see.
        line: Option<NonZeroUsize>,
        /// What the parser says.
        message: String,
    },
    /// A key that no machine has.
    #[error("{}: unknown key '{key}' (known here: {known})", place(file, *line))]
    UnknownKey {
        /// The file, or the name of the text.
        file: String,
        /// The line, from 1; none of a text that the user does not see.
        line: Option<NonZeroUsize>,
        /// The key with its tables.
        key: String,
        /// What may stand there.
        known: String,
    },
    /// A key to change whose table is not one.
    #[error("{machine}: cannot change '{key}': what is before its last dot is not a table")]
    NoTable {
        /// Which machine.
        machine: String,
        /// Which key.
        key: String,
    },
    /// A key to change that the description does not have.
    #[error("{machine}: cannot change '{key}': no such key (known here: {known})")]
    NoKey {
        /// Which machine, or its file.
        machine: String,
        /// Which key.
        key: String,
        /// What may stand there.
        known: String,
    },
    /// A key that every machine of this kind needs.
    #[error("{}: '{key}' is missing (expected {expected})", place(file, *line))]
    MissingKey {
        /// The file, or the name of the text.
        file: String,
        /// The line of the table that lacks it, from 1; none of a text that the user does not see.
        line: Option<NonZeroUsize>,
        /// The key with its tables.
        key: String,
        /// What should stand there.
        expected: String,
    },
    /// A value of the wrong kind or outside its range.
    #[error("{}: {key} = {found}: expected {expected}", place(file, *line))]
    Value {
        /// The file, or the name of the text.
        file: String,
        /// The line, from 1; none of a text that the user does not see.
        line: Option<NonZeroUsize>,
        /// The key with its tables.
        key: String,
        /// What stands there.
        found: String,
        /// The allowed range or the known words.
        expected: String,
    },
    /// It is a computer with buffers, which has no network and no storage.
    #[error("{file}: a computer with buffers, for pioscope reproduce miller-katz (expected another machine)")]
    Computer {
        /// Its file.
        file: String,
    },
    /// It is the inside of an I/O node, without the machine around it.
    #[error(
        "{file}: the [io-node] of a machine alone, to copy into a description whose storage.kind is \"io-nodes\" \
         (expected a whole machine)"
    )]
    IoNode {
        /// Its file.
        file: String,
    },
    /// No description of this name is built in.
    #[error("no machine '{name}' (a path of a .toml file, or one of: {known})")]
    UnknownMachine {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}

/// Where in which text it is.
fn place(file: &str, line: Option<NonZeroUsize>) -> String {
    line.map_or(file.to_owned(), |line| format!("{file}:{line}"))
}
