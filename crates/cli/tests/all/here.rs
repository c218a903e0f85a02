//! What is measured here is kept and found again, and predictions say how sure they are by the runs that were compared.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::serve::Servers;
use crate::support::{Place, Transcript, mpi, mpiexec};

/// Writes a file through MPI, a part a rank.
const WRITER: &str = r#"
#include <mpi.h>
int main(int argc, char **argv) {
    static char data[65536];
    int rank;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    for (int round = 0; round < 8; round++)
        MPI_File_write_at_all(file, (round * 2 + rank) * (MPI_Offset)sizeof data, data, sizeof data, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return argc > 2 ? 7 : 0;
}
"#;

/// Calibrates a folder's place where no MPI is found, which would take longer; the description's file.
fn calibrate(place: &Place, folder: &str) -> PathBuf {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    command.args(["machines", "calibrate", "--folder", folder]).env("PATH", place.path());
    let done = place.run(&mut command).succeeds();
    let wrote = done.err.lines().find_map(|line| line.strip_prefix("pioscope: wrote "));
    PathBuf::from(wrote.unwrap_or_else(|| panic!("{}", done.err)))
}

/// As if the current folder's place had been calibrated: it is once for all tests, as it takes seconds.
pub(crate) fn calibrated(place: &Place) -> PathBuf {
    static MEASURED: OnceLock<(PathBuf, String)> = OnceLock::new();
    let (file, description) = MEASURED.get_or_init(|| {
        let first = Place::with_own_cache();
        let file = calibrate(&first, ".");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert!(file.starts_with(first.cache().join("pioscope").join(host.trim())), "{}", file.display());
        assert_eq!(files(file.parent().unwrap()).len(), 1, "nothing is left beside it");
        // Not `.`, which says nothing to who reads it elsewhere; nor the scratch folder within, which is gone.
        let measured = fs::read_to_string(&file).unwrap();
        let folder = first.path().canonicalize().unwrap();
        assert!(measured.contains(&format!("files in {}\"", folder.display())), "{measured}");
        (file.strip_prefix(first.cache()).unwrap().to_owned(), fs::read_to_string(&file).unwrap())
    });
    let file = place.cache().join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, description).unwrap();
    file
}

/// Records a copy whose output is `output`.
fn record(place: &Place, trace: &str, output: &str) {
    fs::write(place.join("in.bin"), vec![7; 1 << 20]).unwrap();
    let output = format!("of={output}");
    place.pioscope(["record", "-o", trace, "--", "dd", "if=in.bin", &output, "bs=64k"]).succeeds();
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The row of a strategy, words apart by one blank.
fn row(found: &Transcript, machine: &str, strategy: &str) -> String {
    let lines = found.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut rows = lines.filter(|line| line.starts_with(&format!("{machine} {strategy} ")));
    rows.next().unwrap_or_else(|| panic!("no row {machine} {strategy}: {}", found.out))
}

/// Words apart by one blank: notes are wrapped.
fn unwrapped(found: &Transcript) -> String {
    found.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_calibrated_place_is_kept_and_found() {
    let place = Place::with_own_cache();
    record(&place, "run.pio", "out.bin");
    let folder = place.path().canonicalize().unwrap();
    let advice = format!("run `pioscope machines calibrate --folder {}`", folder.display());
    place.pioscope(["predict", "run.pio"]).fails_with(&advice);
    place.pioscope(["predict", "run.pio", "-m", "sp-argonne,here"]).fails_with(&advice);
    place.pioscope(["explain", "run.pio", "-m", "here"]).fails_with(&advice);

    let file = calibrated(&place);
    let by_default = place.pioscope(["predict", "run.pio"]).succeeds();
    row(&by_default, "here", "any");
    assert!(place.join("run-here-independent.pio").exists());
    let two = place.pioscope(["predict", "run.pio", "-m", "here,sp-argonne", "-s", "list"]).succeeds();
    row(&two, "here", "any");
    row(&two, "sp-argonne", "any");
    place.pioscope(["predict", "run.pio", "-m", "here,here"]).fails_with("both are named 'here'");
    place.pioscope(["explain", "run.pio", "-m", "here"]).succeeds();
    let swept = ["predict", "run.pio", "--sweep", "nodes.cores=1,2", "-s", "independent"];
    assert!(place.pioscope(swept).succeeds().out.contains("here"));
    let listed = place.pioscope(["machines", "list"]).succeeds().out;
    let line = listed.lines().find(|line| line.starts_with("here ")).expect("it is listed");
    assert!(line.contains("measured on host") && line.ends_with(&file.display().to_string()), "{line}");
    let shown = place.pioscope(["machines", "show", "here"]).succeeds().out;
    assert!(shown.contains("name = \"here\""), "{shown}");

    // Another host's is not ours.
    fs::rename(file.parent().unwrap(), place.cache().join("pioscope/another-host")).unwrap();
    place.pioscope(["predict", "run.pio"]).fails_with(&advice);
    assert!(!place.pioscope(["machines", "list"]).succeeds().out.contains("\nhere "));
}

/// What a job measured on several nodes that share the file system is found on every host that mounts it, until this host is
/// measured anew; what is mounted elsewhere, or is another system, is not taken for it.
#[test]
fn what_several_nodes_share_is_found_on_all_hosts() {
    let place = Place::with_own_cache();
    record(&place, "run.pio", "out.bin");
    let own = calibrated(&place);
    let df = Command::new("df").args(["--output=target", "."]).current_dir(place.path()).output().unwrap();
    let point = String::from_utf8(df.stdout).unwrap().lines().nth(1).unwrap().to_owned();
    // Its kind and source stand behind a minus; df itself may name the source otherwise.
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().rfind(|line| line.split(' ').nth(4) == Some(&point)).unwrap();
    let system: Vec<&str> = line.split_once(" - ").unwrap().1.split(' ').take(2).collect();
    // As the file's name has it: blanks and other signs by number.
    let name = format!("{} {}", point.trim_start_matches('/'), system.join(" "));
    let letter = |letter: char| match letter {
        '/' => "-".to_owned(),
        '.' | '_' => letter.to_string(),
        _ if letter.is_ascii_alphanumeric() => letter.to_string(),
        _ => format!("%{:02x}", letter as u32),
    };
    let name: String = name.chars().map(letter).collect();
    let all = place.cache().join("pioscope/@all-hosts");
    fs::create_dir(&all).unwrap();
    for (other, is_found) in [(format!("{name}2"), false), (name.clone(), true)] {
        let file = all.join(format!("{other}.toml"));
        fs::rename(&own, &file).unwrap();
        let listed = place.pioscope(["machines", "list"]).succeeds().out;
        assert_eq!(listed.contains("@all-hosts"), is_found, "{listed}");
        let found = place.pioscope(["predict", "run.pio"]);
        if is_found {
            row(&found.succeeds(), "here", "any");
            assert!(place.pioscope(["machines", "show", "here"]).succeeds().out.contains("cores = "));
        } else {
            found.fails_with("this place is not calibrated");
        }
        fs::rename(&file, &own).unwrap();
    }
    // Of two, the one that was made last.
    let description = fs::read_to_string(&own).unwrap();
    let marked = |source: &str| {
        let line = description.lines().find(|line| line.starts_with("source = ")).unwrap();
        description.replace(line, &format!("source = \"{source}\""))
    };
    let shared = all.join(format!("{name}.toml"));
    for (file, source) in [(&own, "alone"), (&shared, "nodes"), (&own, "alone")] {
        fs::remove_file(file).ok();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(file, marked(source)).unwrap();
        let shown = place.pioscope(["machines", "show", "here"]).succeeds().out;
        assert!(shown.contains(&format!("source = \"{source}\"")), "{shown}");
    }
}

#[test]
fn here_is_where_the_program_wrote_most() {
    let (place, shared) = (Place::with_own_cache(), Path::new("/dev/shm"));
    let device = |folder: &Path| fs::metadata(folder).map(|metadata| metadata.dev()).ok();
    let Ok(memory) = tempfile::tempdir_in(shared) else {
        eprintln!("skipped: no /dev/shm that can be written to");
        return;
    };
    if [place.path(), Path::new("/dev")].iter().any(|other| device(other) == device(shared)) {
        eprintln!("skipped: /dev/shm is not a file system of its own");
        return;
    }
    // The recorder leaves out what is below /dev. First a log, then most of the data, then some elsewhere.
    let folders = [place.path(), memory.path(), place.path()].map(|folder| folder.display().to_string());
    let rows = folders.iter().zip([100, 9000, 8000]).enumerate();
    let rows = rows.map(|(at, (folder, size))| format!("{at},write,{folder}/{at},0,{size},0.1\n"));
    let table = format!("start_s,call,file,offset,size,elapsed_s\n{}", rows.collect::<String>());
    fs::write(place.join("calls.csv"), table).unwrap();
    let advice = format!("calibrate --folder {}`", memory.path().display());
    calibrated(&place);
    place.pioscope(["predict", "calls.csv"]).fails_with(&advice);
    let file = calibrate(&place, &memory.path().display().to_string());
    assert_eq!(file.file_name().unwrap(), "dev-shm.toml");
    place.pioscope(["predict", "calls.csv"]).succeeds();
    // Where its folder is gone, the current one is meant.
    drop(memory);
    fs::remove_file(file).unwrap();
    place.pioscope(["predict", "calls.csv"]).succeeds();
}

#[test]
fn compared_runs_make_intervals() {
    let place = Place::with_own_cache();
    record(&place, "run.pio", "out.bin");
    record(&place, "again.pio", "out.bin");
    let history = calibrated(&place).with_extension("runs.jsonl");
    let predict = |more: &[&str]| place.pioscope([&["predict", "run.pio"], more].concat()).succeeds();
    // Asked for other nodes, it is no prediction of the run that was recorded.
    let first = predict(&["--ranks-per-node", "1", "--html", "report.html"]);
    assert!(
        unwrapped(&first).contains("80 % interval")
            && unwrapped(&first).contains("no run was compared here yet"),
        "{}",
        first.out
    );
    assert!(row(&first, "here", "any").contains(" to "), "{}", first.out);
    assert!(unwrapped(&first).contains("there is none to choose"), "{}", first.out);
    // What does not touch MPI is the same under each.
    let asked = predict(&["--ranks-per-node", "1", "-s", "romio,two-phase"]);
    assert!(row(&asked, "here", "two-phase").contains(" equal "), "{}", asked.out);
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.contains("class=\"interval\"") && page.contains("no run was compared here yet"));
    assert!(!history.exists());

    // The run itself is known before anything is tried, and counts once.
    let compared = predict(&["--html", "beside.html"]);
    assert!(unwrapped(&compared).contains("On here: 1 run compared, the model off by "), "{}", compared.out);
    // Both are shown side by side, by function.
    assert!(compared.out.contains("independent on here: predicted and measured"), "{}", compared.out);
    let writes = unwrapped(&compared);
    assert!(writes.contains(" write program 16 16 "), "{}", compared.out);
    let page = fs::read_to_string(place.join("beside.html")).unwrap();
    assert!(page.contains("independent on here: predicted and measured"));
    // Another run is compared with what was known before it.
    let known = predict(&["--measured", "here/independent=again.pio"]);
    assert!(unwrapped(&known).contains("On here: 1 run compared, the model off by "), "{}", known.out);
    let lines = fs::read_to_string(&history).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    fs::write(&history, format!("{lines}{{\"pre")).unwrap();
    let known = predict(&[]);
    assert!(unwrapped(&known).contains("On here: 2 runs compared"), "{}", known.out);
    let line = format!("{}:3: skipped 1 line", history.display());
    assert!(known.err.contains(&line), "{}", known.err);

    // A description of another host has none before a run is compared; a built-in one never has.
    let copy = history.with_extension("").with_extension("toml");
    let here = fs::read_to_string(copy).unwrap();
    let elsewhere = here.replace("measured on host '", "measured on host 'not-");
    assert_ne!(here, elsewhere);
    fs::write(place.join("mine.toml"), elsewhere).unwrap();
    let with =
        |more: &[&str]| predict(&[&["-m", "mine.toml,sp-argonne", "-s", "independent"], more].concat());
    assert!(!with(&["--measured", "sp-argonne/independent=run.pio"]).out.contains("interval"));
    fs::write(place.join("mine.toml"), {
        let text = fs::read_to_string(place.join("mine.toml")).unwrap();
        text.replace("name = \"here\"", "name = \"mine\"")
    })
    .unwrap();
    assert!(!with(&["--measured", "mine/independent=run.pio"]).out.contains("interval"));
    let told = with(&[]);
    assert!(row(&told, "mine", "any").contains(" to "), "{}", told.out);
    assert!(row(&told, "sp-argonne", "any").contains(" – "), "{}", told.out);
    assert!(place.join("mine.runs.jsonl").exists());
}

/// A description may be off, and the machine faster or slower than when it was made.
#[test]
fn reads_and_writes_take_what_they_took_in_the_recorded_run() {
    let place = Place::with_own_cache();
    record(&place, "run.pio", "out.bin");
    let file = calibrated(&place);
    let description = fs::read_to_string(&file).unwrap();
    let of_writes = description.lines().find(|line| line.starts_with("write = ")).unwrap();
    let slow = "write = { call = \"5 ms\", bandwidth = \"1 GB/s\" }";
    fs::write(&file, description.replace(of_writes, slow)).unwrap();
    let modelled_s = |more: &[&str]| {
        let told = place.pioscope([&["predict", "run.pio", "--json"], more].concat()).succeeds();
        let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
        told["predictions"][0]["modelled_io_time_s"].as_f64().unwrap()
    };
    // Asked for other nodes, it is no prediction of the run that was recorded.
    let by_description = modelled_s(&["--ranks-per-node", "1"]);
    assert!(by_description > 16.0 * 5e-3, "{by_description}");
    let by_run = modelled_s(&[]);
    assert!(by_run < by_description / 2.0, "{by_run} s by the run, {by_description} s without it");
}

#[test]
fn a_description_says_how_near_it_comes_to_runs() {
    let Some(mpi) = mpi() else { return };
    let place = Place::with_own_cache();
    let words = ["machines", "calibrate", "-o", "m.toml", "--"].map(str::to_owned);
    fs::write(place.join("m.runs.jsonl"), "of another description\n").unwrap();
    // Four programs, as they are and under two strategies.
    let done = place.pioscope(words.into_iter().chain(mpiexec(&mpi, 2))).succeeds();
    assert!(done.err.contains("pioscope: wrote m.toml") && done.err.lines().count() < 5, "{}", done.err);
    let rows = done.out.lines().filter(|line| line.trim_end().ends_with(" %"));
    assert_eq!(rows.count(), 12, "{}", done.out);
    let history = fs::read_to_string(place.join("m.runs.jsonl")).unwrap();
    assert_eq!(history.lines().count(), 12, "a new description begins a new history: {history}");
    assert_eq!(files(place.path()), ["cache", "m.runs.jsonl", "m.toml"]);
    // What is known of both libraries corrects what is predicted under each.
    let told = place.pioscope([
        "predict",
        "--workload",
        "ior-easy,ranks=2",
        "-m",
        "m.toml",
        "-s",
        "romio,two-phase",
    ]);
    let told = told.succeeds();
    assert!(unwrapped(&told).contains("On m, romio: 4 runs compared, the model off by "), "{}", told.out);
    assert!(unwrapped(&told).contains("On m, two-phase: 8 runs compared, the model off by "), "{}", told.out);
    // Under another MPI, calls of all ranks cost something else.
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    let words = ["record", "-o", "run.pio", "--"].map(str::to_owned);
    let program = ["./writer", "out.bin"].map(str::to_owned);
    place.pioscope(words.into_iter().chain(mpiexec(&mpi, 2)).chain(program)).succeeds();
    let predict = || place.pioscope(["predict", "run.pio", "-m", "m.toml", "-s", "romio"]).succeeds().err;
    let said = predict();
    assert!(!said.contains("was measured under"), "{said}");
    let text = fs::read_to_string(place.join("m.toml")).unwrap();
    let library = text.lines().find(|line| line.starts_with("library = ")).expect("it says under which MPI");
    fs::write(place.join("m.toml"), text.replace(library, "library = \"Another (libmpi.so.9)\"")).unwrap();
    let said = predict();
    assert!(
        said.contains("m: MPI-IO was measured under Another (libmpi.so.9), and the program's MPI is "),
        "{said}"
    );
}

/// A file on servers is none of the kernel's: a call is not to be compared with the kernel's own.
#[test]
fn servers_are_measured_in_a_job() {
    let Some(mpi) = mpi() else { return };
    let place = Place::with_own_cache();
    let _servers = Servers::start(&place.join("store"), &["--servers", "2"]);
    let words =
        ["machines", "calibrate", "--store", "store/store.toml", "-o", "m.toml", "--"].map(str::to_owned);
    let done = place.pioscope(words.iter().cloned().chain(mpiexec(&mpi, 2))).succeeds();
    assert!(done.err.contains("pioscope: wrote m.toml") && done.err.lines().count() < 5, "{}", done.err);
    for strategy in ["independent", "two-phase", "ecio"] {
        let rows = done.out.lines().filter(|line| line.contains(&format!("2  {strategy}")));
        // Where the machine is busy, there is no time for all programs.
        assert!((1..=4).contains(&rows.count()), "{}", done.out);
    }
}

#[test]
fn an_applied_run_is_compared_where_the_place_is_calibrated() {
    let Some(mpi) = mpi() else { return };
    let place = Place::with_own_cache();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    let apply = |more: &[&str]| {
        let words = ["apply", "-s", "two-phase", "--record", "applied.pio", "--"].map(str::to_owned);
        let program = ["./writer", "out.bin"].iter().chain(more).map(|&word| word.to_owned());
        place.pioscope(words.into_iter().chain(mpiexec(&mpi, 2)).chain(program))
    };
    let unknown = apply(&[]).succeeds();
    assert!(!unknown.err.contains("predicted") && !unknown.err.contains("calibrate"), "{}", unknown.err);

    let history = calibrated(&place).with_extension("runs.jsonl");
    let known = apply(&[]).succeeds();
    assert!(known.err.contains("pioscope: I/O time ") && known.err.contains(", predicted "), "{}", known.err);
    let pairs = fs::read_to_string(&history).unwrap();
    assert_eq!(pairs.lines().count(), 1, "{pairs}");
    assert!(pairs.contains("\"strategy\":\"two-phase\",\"ranks\":2,"), "{pairs}");
    assert!(pairs.contains("./writer out.bin"), "{pairs}");
    let predicted = place.pioscope(["predict", "applied.pio", "-s", "two-phase"]).succeeds();
    assert!(unwrapped(&predicted).contains("1 run compared"), "{}", predicted.out);
    // It is the same run, predicted from the same calls.
    place
        .pioscope(["predict", "applied.pio", "-s", "two-phase", "--measured", "here/two-phase=applied.pio"])
        .succeeds();
    assert_eq!(fs::read_to_string(&history).unwrap(), pairs);

    // A job that failed is no measurement, and what goes wrong behind a job is not the job's.
    assert_eq!(apply(&["fail"]).code, Some(7));
    assert_eq!(fs::read_to_string(&history).unwrap(), pairs);
    fs::remove_file(&history).unwrap();
    fs::create_dir(&history).unwrap();
    apply(&[]).succeeds();
}
