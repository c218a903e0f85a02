//! What is kept of advice: files, and what a job script needs of them; and in words what Pioscope cannot set.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pio_machine::IoNodePlacement;
use pio_plan::{Hints, Strategy};
use pio_record::quoted;
use pio_report::units::{bytes, time_s};
use pio_trace::{Stripes, Tables};

use super::Advice;
use super::beyond_hints::{Elsewise, Servers};
use super::outcome::saved;
use super::search::Found;
use crate::output::note;
use crate::own_way;
use crate::whole_file::{self, WholeFile};

/// The first line of each file, by which it is known again.
const WRITTEN_BY: &str = "Written by pioscope advise.";

/// The files of an advice that is kept as `path`: for an MPI library's own MPI-IO also one of hints and one of variables.
fn more_files(path: &Path) -> [PathBuf; 2] {
    ["hints", "env"].map(|extension| path.with_extension(extension))
}

/// Makes sure, before the work, that advice can be written to `path`, and takes the place of nothing but advice.
///
/// # Errors
/// If not.
pub(super) fn check_place(path: &Path) -> Result<()> {
    ensure!(
        more_files(path).iter().all(|file| file != path),
        "{}: a file of this name may be written beside the advice, for job scripts: expected another name, as --keep {}",
        path.display(),
        path.with_extension("toml").display()
    );
    whole_file::check(path)?;
    let is_ours =
        |file: &Path| fs::read(file).is_ok_and(|text| text.starts_with(format!("# {WRITTEN_BY}").as_bytes()));
    let [hints, variables] = more_files(path);
    for (file, is_ours) in
        [(path, Advice::read(path).is_ok()), (&hints, is_ours(&hints)), (&variables, is_ours(&variables))]
    {
        ensure!(
            !file.is_file() || is_ours,
            "{}: is there and was not written by pioscope advise: expected another name (--keep FILE)",
            file.display()
        );
    }
    Ok(())
}

/// Writes the setting to keep for a job, and gives in words how it is used.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn keep(
    path: &Path,
    advice: &Advice,
    source: &[String],
    job: &str,
    store: Option<&Path>,
) -> Result<String> {
    let store = store.map(|store| format!(" --store {}", quoted(store.as_os_str()))).unwrap_or_default();
    let command = format!("pioscope apply --advice {}{store} -- {job}", quoted(path.as_os_str()));
    let mut comments = vec![WRITTEN_BY.to_owned()];
    comments.extend_from_slice(source);
    comments.push(format!("Use: {command}"));
    write(path, &advice.to_toml(&comments))?;
    let mut use_of = format!("In a job script:\n  {command}\n");
    if Strategy::OWN.contains(&advice.strategy) {
        let [hints, variables] = more_files(&std::path::absolute(path)?);
        let told = own_way::variables(advice.strategy, &advice.hints, &hints, &comments[..1])?;
        let mut text = format!("# {WRITTEN_BY}\n");
        for (name, value) in told {
            text.push_str(&format!("export {}={}\n", name.display(), quoted(&value)));
        }
        write(&variables, &text)?;
        use_of.push_str(&format!("or, without Pioscope:\n  . {}\n  {job}\n", quoted(variables.as_os_str())));
    }
    Ok(use_of)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let file = WholeFile::create(path)?;
    file.file().write_all(text.as_bytes()).with_context(|| format!("{}: cannot write", path.display()))?;
    file.keep()?;
    note!("wrote {}", path.display());
    Ok(())
}

/// What would help, or may, that no setting of the program's makes: how the file system deals out its files, or what servers there
/// are. Empty if nothing.
pub(super) fn what_cannot_be_set(found: &Found, tables: &Tables) -> String {
    if let Some(servers) = &found.beyond.servers {
        let Servers { count, placement, dedicated } = servers.value;
        let nodes = if dedicated { "nodes of their own" } else { "the nodes of ranks" };
        let places = match placement {
            IoNodePlacement::Distributed => "at equal distances",
            IoNodePlacement::Clustered => "beside each other",
        };
        return format!(
            "With {count} I/O servers, on {nodes}, {places} (storage.io of the machine's description), {} On each of these nodes, \
             with another index, and strips as described:\n  pioscope serve --servers {count} --server-index INDEX --listen $(hostname) \
             --dir FOLDER --store-file FILE --strip SIZE\n",
            is_predicted(servers, found),
        );
    }
    let stripes = Stripes::of(tables);
    let folder = stripes.first().and_then(|first| {
        if first.of_folder { Some(first.path.as_str()) } else { Stripes::folder_of(&first.path) }
    });
    let folder = folder.unwrap_or("FOLDER");
    if let Some(strips) = &found.beyond.strips {
        return format!(
            "Pioscope cannot set how a file system deals out files. With strips of {} on the servers of this machine, {} On Lustre, \
             for files that are made from then on:\n  lfs setstripe -c -1 -S {} {folder}\n",
            bytes(strips.value as f64),
            is_predicted(strips, found),
            strips.value,
        );
    }
    let Some(first) = stripes.first() else { return String::new() };
    format!(
        "The program's files are in stripes of {} ({}), which Pioscope cannot set and the machine's description does not know, so \
         that others are not predicted. Files of several ranks that are made from then on go over all targets of Lustre by:\n  \
         lfs setstripe -c -1 {folder}\nThe hint striping_unit={} moves the borders of what two-phase's aggregators write to those \
         of stripes.\n",
        bytes(first.unit_bytes as f64),
        first.path,
        first.unit_bytes,
    )
}

fn is_predicted<T>(elsewise: &Elsewise<T>, found: &Found) -> String {
    let Advice { strategy, hints } = &elsewise.advice;
    let as_it_is = *hints == Hints::default() && Strategy::OWN.contains(strategy);
    let how = if as_it_is { "the program as it is".to_owned() } else { elsewise.advice.to_string() };
    format!(
        "{how} is predicted to take {}: {} less than the program as it is now.",
        time_s(elsewise.modelled_s),
        saved(elsewise.modelled_s, found.base.modelled_s)
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::super::beyond_hints::BeyondHints;
    use super::super::search::Time;
    use super::*;

    #[test]
    fn what_an_mpi_library_is_told_is_kept_for_a_job_script() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("advice.toml");
        let hints = Hints::parse("romio_cb_write=disable").unwrap();
        let advice = Advice { strategy: Strategy::Romio, hints };
        check_place(&path).unwrap();
        let said = keep(&path, &advice, &[], "mpiexec ./a", None).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let expected = [
            "In a job script:".to_owned(),
            format!("  pioscope apply --advice {} -- mpiexec ./a", at("advice.toml")),
            "or, without Pioscope:".to_owned(),
            format!("  . {}", at("advice.env")),
            "  mpiexec ./a".to_owned(),
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            text("advice.env"),
            format!("# {WRITTEN_BY}\nexport ROMIO_HINTS={}\n", at("advice.hints"))
        );
        assert_eq!(text("advice.hints"), format!("# {WRITTEN_BY}\nromio_cb_write disable\n"));
        assert_eq!(Advice::read(&path).unwrap(), advice);
        // It takes its own place, and no other's.
        check_place(&path).unwrap();
        fs::write(folder.path().join("advice.hints"), "cb_nodes 1\n").unwrap();
        let error = check_place(&path).unwrap_err().to_string();
        assert!(error.starts_with(&at("advice.hints")) && error.contains("--keep FILE"), "{error}");
    }

    /// The variables took the place of the advice.
    #[test]
    fn advice_does_not_have_the_name_of_what_is_kept_with_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["advice.env", "advice.hints"] {
            let error = check_place(&folder.path().join(name)).unwrap_err().to_string();
            let expected = folder.path().join("advice.toml").display().to_string();
            assert!(error.contains(name) && error.ends_with(&expected), "{error}");
        }
        check_place(&folder.path().join("env")).unwrap();
    }

    #[test]
    fn what_no_setting_makes_is_said_in_words() {
        let time = |modelled_s| Time { modelled_s, interval: None };
        let mut found = Found {
            base: time(4.0),
            settings: Vec::new(),
            beyond: BeyondHints::default(),
            predicted_count: 1,
            ranks_per_node: 1,
        };
        let mut tables = Tables::default();
        assert_eq!(what_cannot_be_set(&found, &tables), "");
        tables.notes.push((Stripes::NOTE.into(), "1048576 bytes, file /scratch/run/data".into()));
        let said = what_cannot_be_set(&found, &tables);
        assert!(
            said.contains("\n  lfs setstripe -c -1 /scratch/run\n") && said.contains("striping_unit=1048576"),
            "{said}"
        );
        let advice = Advice { strategy: Strategy::List, hints: Hints::default() };
        found.beyond.strips = Some(Elsewise { value: 4 << 20, advice: advice.clone(), modelled_s: 1.0 });
        let said = what_cannot_be_set(&found, &tables);
        assert!(
            said.contains("list is predicted to take 1 s: 75 % less") && said.contains("4 MiB"),
            "{said}"
        );
        assert!(said.contains("\n  lfs setstripe -c -1 -S 4194304 /scratch/run\n"), "{said}");
        let value = Servers { count: 8, placement: IoNodePlacement::Clustered, dedicated: true };
        found.beyond.servers = Some(Elsewise { value, advice, modelled_s: 0.5 });
        let said = what_cannot_be_set(&found, &tables);
        assert!(said.starts_with("With 8 I/O servers, on nodes of their own, beside each other"), "{said}");
        assert!(said.contains("list is predicted to take 500 ms: 88 % less"), "{said}");
        assert!(said.contains("\n  pioscope serve --servers 8 --server-index INDEX"), "{said}");
    }
}
