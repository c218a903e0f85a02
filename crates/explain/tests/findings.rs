//! Small programs, recorded as they run, each with one known defect: it must be found, and cost most. In clean programs
//! nothing must be found.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use pio_explain::Explanation;
use pio_explain::findings::Kind;
use pio_mpi::Commands;
use pio_record::{MPI_SHIM, Options, compile_shim, run};
use pio_trace::Trace;

/// The programs measure their own calls: two at a time would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

fn compile(compiler: &str, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O1", "-Wall"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn serial_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("cc", "defect"))
}

/// Program and recorder for MPI; none (and a message) without MPI.
fn mpi_program() -> Option<&'static (PathBuf, PathBuf)> {
    static PROGRAM: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let found = PROGRAM.get_or_init(|| {
        Commands::first().ok()?;
        let shim = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("findings-shim");
        let shim = compile_shim(Path::new("mpicc"), MPI_SHIM, &shim).expect("the MPI recorder compiles");
        Some((compile("mpicc", "mpi_defect"), shim))
    });
    if found.is_none() {
        println!("skipped: no mpicc with its mpiexec on the PATH");
    }
    found.as_ref()
}

fn launcher() -> Vec<OsString> {
    Commands::first().expect("an MPI").launch(4)
}

/// What is found in a run of a program, and costs how much.
fn explain(folder: &Path, command: Vec<OsString>, mpi_shim: Option<PathBuf>) -> Explanation {
    let mut words: Vec<OsString> = ["env", "-C"].map(OsString::from).to_vec();
    words.push(folder.into());
    words.extend(command);
    let options = Options { command: words, output: folder.join("job.pio"), mpi_shim, ..Options::default() };
    let outcome = run(&options).expect("the job is recorded");
    assert!(outcome.status.success(), "{:?}: {:?}", options.command, outcome.status);
    let trace = Trace::open(&options.output).expect("the trace opens");
    Explanation::of_trace(&trace, &mut |_| {}).expect("the trace can be read")
}

/// A folder in which there is a file `data`, the same in all.
fn prepared_folder() -> tempfile::TempDir {
    static DATA: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let prepared = DATA.get_or_init(|| {
        let folder = folder();
        let status = Command::new(serial_program()).arg("prepare").current_dir(folder.path()).status();
        assert!(status.expect("the program starts").success());
        folder
    });
    let folder = folder();
    std::fs::hard_link(prepared.path().join("data"), folder.path().join("data")).expect("a link");
    folder
}

fn serial(name: &str) -> Explanation {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = prepared_folder();
    explain(folder.path(), vec![serial_program().into(), name.into()], None)
}

fn mpi(name: &str) -> Option<Explanation> {
    let (program, shim) = mpi_program()?;
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = prepared_folder();
    let mut command = launcher();
    command.extend([program.into(), name.into()]);
    Some(explain(folder.path(), command, Some(shim.clone())))
}

/// Without what is wrong with the machine: four ranks run on whatever processors it has.
fn kinds(found: &Explanation) -> Vec<(Kind, f64)> {
    let of_program = found.findings.iter().filter(|finding| finding.kind != Kind::TooManyRanks);
    of_program.map(|finding| (finding.kind, finding.lost_ns / 1e6)).collect()
}

fn check(name: &str, found: &Explanation, expected: Option<Kind>) {
    let kinds = kinds(found);
    println!("{name}, {} ms: {kinds:?} (ms)", found.duration_ns / 1_000_000);
    assert_eq!(kinds.first().map(|first| first.0), expected, "{name}: {kinds:?}");
}

macro_rules! defects {
    ($($test:ident $run:ident $name:literal $kind:expr;)*) => {$(
        #[test]
        fn $test() {
            if let Some(found) = $run($name).into() {
                check($name, &found, $kind.into());
            }
        }
    )*};
}

defects! {
    small_writes serial "small-writes" Kind::SmallWrites;
    small_reads serial "small-reads" Kind::SmallReads;
    random_access serial "random-access" Kind::RandomAccess;
    strided_access serial "strided-access" Kind::StridedAccess;
    redundant_reads serial "redundant-reads" Kind::RedundantReads;
    cyclic_rereads serial "cyclic-rereads" Kind::CyclicRereads;
    open_storm serial "open-storm" Kind::OpenStorm;
    metadata_storm serial "metadata-storm" Kind::MetadataStorm;
    overwrites serial "overwrites" Kind::Overwrites;
    read_after_write serial "read-after-write" Kind::ReadAfterWrite;
    sync_per_write serial "sync-per-write" Kind::SyncPerWrite;
    unbuffered_stream serial "unbuffered-stream" Kind::UnbufferedStream;
    shared_append serial "shared-append" Kind::SharedAppend;
    unaligned_sharing serial "unaligned-sharing" Kind::UnalignedSharing;
    no_overlap serial "no-overlap" Kind::NoOverlap;
    seeks serial "seeks" Kind::Seeks;
    many_small_files serial "many-small-files" Kind::ManySmallFiles;
    one_writer mpi "one-writer" Kind::OneWriter;
    straggler mpi "straggler" Kind::Straggler;
    uneven_ranks mpi "uneven-ranks" Kind::UnevenRanks;
    missing_collective mpi "missing-collective" Kind::MissingCollective;
    no_view mpi "no-view" Kind::NoView;
    file_per_process mpi "file-per-process" Kind::FilePerProcess;
    same_read_by_all mpi "same-read-by-all" Kind::SameReadByAll;
    clean_copy serial "clean-copy" None;
    clean_stream serial "clean-stream" None;
    clean_checkpoints serial "clean-checkpoints" None;
    clean_shared serial "clean-shared" None;
    clean_collective mpi "clean-collective" None;
}
