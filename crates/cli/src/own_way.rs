//! What the MPI library of a recorded program does by itself: what a prediction starts from.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use pio_machine::Machine;
use pio_mpi::{Family, Library};
use pio_plan::{Hints, Strategy};
use pio_trace::{GivenHints, Tables};

use crate::output::note;

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
        None => OwnWay {
            strategy: Strategy::Romio,
            why: "The trace does not name its MPI library: ROMIO is assumed.".to_owned(),
        },
    };
    if !GivenHints::of(tables).is_empty() {
        own.why.push_str(" It gives hints of its own, which come first (pioscope explain lists them).");
    }
    own
}

/// By a note of [`note()`]: all but Open MPI have ROMIO.
fn way_of(library: &str) -> Strategy {
    if library.starts_with(OMPIO) { Strategy::Ompio } else { Strategy::Romio }
}

/// How the note of a library with OMPIO begins.
const OMPIO: &str = "Open MPI (";

/// What a trace says of the MPI library of a command, if it is known.
pub(crate) fn note(library: Option<&Library>, command: &[OsString]) -> Option<String> {
    let library = library?;
    let name = library.path().file_name()?.to_string_lossy().into_owned();
    let variable = std::env::var_os("OMPI_MCA_io");
    let family = match library.family()? {
        Family::OpenMpi if asks_for_romio(command, variable.as_deref()) => "Open MPI with ROMIO",
        Family::OpenMpi => "Open MPI",
        Family::Mpich => "MPICH",
    };
    Some(format!("{family} ({name})"))
}

/// What a trace says of the hints of the file that `ROMIO_HINTS` names in the environment of a job, to which these variables are
/// added, or of the site's own: those that a program and its launcher leave open. None if there is no such file, or nothing in it.
pub(crate) fn site_hints_note(added: &[(OsString, OsString)]) -> Option<String> {
    let text = site_hints(added)?;
    let words: Vec<String> =
        Hints::of_site_file(&text).iter().map(|(key, value)| format!("{key}={value}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The file itself.
fn site_hints(added: &[(OsString, OsString)]) -> Option<String> {
    let added = added.iter().rfind(|(name, _)| name == Hints::SITE_VARIABLE).map(|(_, path)| path.clone());
    let named = added.or_else(|| std::env::var_os(Hints::SITE_VARIABLE));
    let text = named.and_then(|path| fs::read_to_string(path).ok());
    text.or_else(|| fs::read_to_string(Hints::SITE_FILE).ok())
}

/// Says so where a machine's costs of MPI-IO were measured under another MPI library than a program's: they differ by far.
pub(crate) fn tell_of_another(machine: &Machine, tables: &Tables) {
    let family = |note: &str| note.split(" (").next().unwrap_or_default().to_owned();
    let measured = machine.mpi_io.as_ref().and_then(|mpi_io| mpi_io.library.as_deref());
    let Some((measured, program)) = measured.zip(tables.mpi_library()) else { return };
    if family(measured) != family(program) {
        note!(
            "{}: MPI-IO was measured under {measured}, and the program's MPI is {program}: calls of all ranks may take \
             another time (expected a description by `pioscope machines calibrate -- LAUNCHER` of that MPI)",
            machine.name
        );
    }
}

/// The variables of a job by which its MPI library follows hints in what it does by itself. ROMIO reads them from a file, which is
/// written as `file`, with these lines as comments at its head, and behind them what the user's file, or the site's, says of others:
/// of several with one key the first counts.
///
/// # Errors
/// If the file cannot be written, or the library has no such hint.
pub(crate) fn variables(
    strategy: Strategy,
    hints: &Hints,
    file: &Path,
    comments: &[String],
) -> Result<Vec<(OsString, OsString)>> {
    let all = hints.all_pairs();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    if strategy == Strategy::Ompio {
        let variable = |(key, value): (&'static str, String)| match OMPIO_PARAMETERS
            .iter()
            .find(|(hint, _)| *hint == key)
        {
            Some((_, parameter)) => {
                Ok((OsString::from(format!("OMPI_MCA_{parameter}")), OsString::from(value)))
            }
            None => bail!(
                "hint {key}: Open MPI's own MPI-IO does not follow it (expected cb_nodes or cb_buffer_size)"
            ),
        };
        return all.into_iter().map(variable).collect();
    }
    let comments = comments.iter().map(|line| format!("# {line}\n"));
    let lines = comments.chain(all.iter().map(|(key, value)| format!("{key} {value}\n")));
    let text: String = lines.chain(site_hints(&[])).collect();
    fs::write(file, text).with_context(|| format!("{}: cannot write", file.display()))?;
    Ok(vec![(Hints::SITE_VARIABLE.into(), file.into())])
}

/// The parameters of Open MPI (`ompi_info --param io ompio --level 9`) that stand for hints.
const OMPIO_PARAMETERS: [(&str, &str); 2] =
    [("cb_nodes", "io_ompio_num_aggregators"), ("cb_buffer_size", "io_ompio_bytes_per_agg")];

/// Makes sure that the MPI library that a command uses, if it is known, has this way.
///
/// # Errors
/// If it has another.
pub(crate) fn ensure_is(strategy: Strategy, library: Option<&Library>, command: &[OsString]) -> Result<()> {
    if let Some(library) = note(library, command) {
        let own = way_of(&library);
        ensure!(own == strategy, "{strategy}: the program's MPI is {library}, which does {own} by itself");
    }
    Ok(())
}

/// Whether Open MPI is told to use ROMIO in place of OMPIO: on the command line, or if that does not say, by the variable of the
/// environment with this value.
fn asks_for_romio(command: &[OsString], variable: Option<&OsStr>) -> bool {
    // gmca: of all programs of a command line; omca, gomca: so PRRTE calls those of Open MPI.
    let is_parameter = |word: &OsString| {
        let word = word.to_str().unwrap_or_default();
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        matches!(name, Some("mca" | "gmca" | "omca" | "gomca"))
    };
    let by_word = command.windows(3).find(|words| is_parameter(&words[0]) && words[1] == "io");
    by_word.map(|words| words[2].as_os_str()).or(variable).is_some_and(is_romio)
}

/// Whether a value of Open MPI's parameter `io` means ROMIO: its component's name (`romio321`), or a list of those not to use.
fn is_romio(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    match value.strip_prefix('^') {
        Some(excluded) => excluded.split(',').any(|component| component == "ompio"),
        None => value.starts_with("romio"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    #[test]
    fn open_mpi_may_be_told_to_use_romio() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let asks =
            |command: &str, variable: Option<&str>| asks_for_romio(&words(command), variable.map(OsStr::new));
        assert!(asks("mpiexec --omca io romio341 -n 4 ./a", None));
        for (parameter, expected) in [
            ("romio321", true),
            ("ompio", false),
            // The usual way, which was taken for OMPIO.
            ("^ompio", true),
            ("^monitoring,ompio", true),
            ("^romio341", false),
        ] {
            assert_eq!(
                asks(&format!("mpiexec --mca io {parameter} -n 4 ./a"), None),
                expected,
                "{parameter}"
            );
            assert_eq!(asks("mpiexec -n 4 ./a", Some(parameter)), expected, "{parameter}");
        }
        assert!(!asks("mpiexec -n 4 ./romio io", None) && !asks("mpiexec -n 4 ./a io romio", None));
        // The command line comes first.
        assert!(!asks("mpiexec --mca io ompio -n 4 ./a", Some("romio321")));
        assert!(asks("mpiexec -mca io ^ompio -n 4 ./a", Some("ompio")));
    }

    #[test]
    fn libraries_are_given_hints_in_their_own_ways() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hints");
        let of =
            |strategy, text| variables(strategy, &Hints::parse(text).unwrap(), &file, &["Why.".to_owned()]);
        assert_eq!(of(Strategy::Romio, "").unwrap(), []);
        assert!(!file.exists());
        let told = of(Strategy::Romio, "cb_buffer_size=4096,romio_cb_write=disable").unwrap();
        assert_eq!(told, [("ROMIO_HINTS".into(), file.clone().into_os_string())]);
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "# Why.\ncb_buffer_size 4096\nromio_cb_write disable\n"
        );
        let told = of(Strategy::Ompio, "cb_nodes=2,cb_buffer_size=4096").unwrap();
        let words = told.iter().map(|(name, value)| format!("{}={}", name.display(), value.display()));
        assert_eq!(
            words.collect::<Vec<_>>(),
            ["OMPI_MCA_io_ompio_num_aggregators=2", "OMPI_MCA_io_ompio_bytes_per_agg=4096"]
        );
        let error = of(Strategy::Ompio, "romio_cb_write=disable").unwrap_err().to_string();
        assert!(
            error.starts_with("hint romio_cb_write: Open MPI's own MPI-IO does not follow it"),
            "{error}"
        );
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
