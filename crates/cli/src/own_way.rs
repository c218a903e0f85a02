//! What the MPI library of a recorded program does by itself: what a prediction starts from.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use pio_machine::Machine;
use pio_mpi::{Family, Library};
use pio_plan::{Hints, Strategy};
use pio_trace::{GivenHints, Tables};

/// What an MPI library does by itself, as a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnWay {
    /// The strategy.
    pub strategy: Strategy,
    /// How it is known, as a sentence.
    pub why: String,
}

/// What the MPI library of a trace's program does by itself; where the trace does not name it, ROMIO's way is taken.
pub(crate) fn of_trace(tables: &Tables) -> OwnWay {
    let mut own = match tables.mpi_library() {
        Some(library) => {
            OwnWay { strategy: way_of(library), why: format!("The program's MPI is {library}.") }
        }
        None => {
            let strategy = Strategy::Romio;
            OwnWay { strategy, why: "The trace does not name its MPI library: ROMIO is assumed.".to_owned() }
        }
    };
    if !GivenHints::of(tables).is_empty() {
        own.why.push_str(" It gives hints of its own, which come first (pioscope explain lists them).");
    }
    own
}

/// By a note of [`note`]: all but Open MPI have ROMIO.
fn way_of(library: &str) -> Strategy {
    if library.starts_with(OMPIO) { Strategy::Ompio } else { Strategy::Romio }
}

/// How the note of a library with OMPIO begins.
const OMPIO: &str = "Open MPI (";

/// What a trace says of the MPI library of a command, whose compiler this is.
pub(crate) fn note(mpicc: &Path, command: &[OsString]) -> Option<String> {
    let library = Library::of_compiler(mpicc)?;
    let name = library.path().file_name()?.to_string_lossy().into_owned();
    let family = match library.family()? {
        Family::OpenMpi if asks_for_romio(command) => "Open MPI with ROMIO",
        Family::OpenMpi => "Open MPI",
        Family::Mpich => "MPICH",
    };
    Some(format!("{family} ({name})"))
}

/// What a trace says of the hints of the file that `ROMIO_HINTS` names in the environment of a job, or of the site's own: those that
/// a program and its launcher leave open. None if there is no such file, or nothing in it.
pub(crate) fn site_hints_note() -> Option<String> {
    let named = std::env::var_os(Hints::SITE_VARIABLE).and_then(|path| std::fs::read_to_string(path).ok());
    let text = named.or_else(|| std::fs::read_to_string(Hints::SITE_FILE).ok())?;
    let words: Vec<String> =
        Hints::of_site_file(&text).iter().map(|(key, value)| format!("{key}={value}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Says so where a machine's costs of MPI-IO were measured under another MPI library than a program's: they differ by far.
pub(crate) fn tell_of_another(machine: &Machine, tables: &Tables) {
    let family = |note: &str| note.split(" (").next().unwrap_or_default().to_owned();
    let measured = machine.mpi_io.as_ref().and_then(|mpi_io| mpi_io.library.as_deref());
    let Some((measured, program)) = measured.zip(tables.mpi_library()) else { return };
    if family(measured) != family(program) {
        eprintln!(
            "pioscope: {}: MPI-IO was measured under {measured}, and the program's MPI is {program}: calls of all ranks may take \
             another time (expected a description by `pioscope machines calibrate -- LAUNCHER` of that MPI)",
            machine.name
        );
    }
}

/// Whether Open MPI is told to use ROMIO in place of OMPIO, on the command line or by the environment.
fn asks_for_romio(command: &[OsString]) -> bool {
    let is_romio = |value: &OsStr| value.to_string_lossy().starts_with("romio");
    let by_word = command.windows(2).any(|words| words[0] == "io" && is_romio(&words[1]));
    by_word || std::env::var_os("OMPI_MCA_io").is_some_and(|value| is_romio(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_may_be_told_to_use_romio() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(asks_for_romio(&words("mpiexec --mca io romio321 -n 4 ./a")));
        assert!(!asks_for_romio(&words("mpiexec --mca io ompio -n 4 ./a")));
        assert!(!asks_for_romio(&words("mpiexec -n 4 ./romio io")));
    }

    #[test]
    fn a_trace_that_does_not_say_has_romio() {
        let own = of_trace(&Tables::default());
        assert_eq!(own.strategy, Strategy::Romio);
        assert_eq!(way_of("Open MPI with ROMIO (libmpi.so.40.30.4)"), Strategy::Romio);
        assert_eq!(way_of("Open MPI (libmpi.so.40.30.4)"), Strategy::Ompio);
        assert_eq!(way_of("MPICH (libmpich.so.12.2.0)"), Strategy::Romio);
        assert!(own.why.contains("assumed"), "{}", own.why);
    }
}
