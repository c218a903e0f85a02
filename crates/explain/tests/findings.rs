//! Small programs, each with one known defect, or none. A defect must be found and cost most, and its cost must be what
//! mending it saves: each program is also run without recording, as it is and mended. (What recording itself takes is no part
//! of a finding: opens take it several times as long as they do without.) In clean programs nothing must be found.
//!
//! A program is a line of `defects!` below, and a function in `programs/`. Its third column says whether its saving is
//! measured: not where it depends on how many processors the machine has, or on what its MPI makes of the change.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use pio_explain::Explanation;
use pio_explain::findings::Kind;
use pio_mpi::Commands;
use pio_record::{MPI_SHIM, Options, Settings, compile_shim, run};
use pio_trace::Trace;

/// The programs measure their own calls: two at a time would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

fn compile(compiler: &str, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O1", "-Wall", "-pthread"])
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

fn launcher(ranks: u32) -> Vec<OsString> {
    Commands::first().expect("an MPI").launch(ranks)
}

/// How far a finding's cost may be from what mending saves: a part of it.
const TOLERANCE: f64 = 0.3;
/// How far from one another they are not even on a machine that runs other programs beside these: times.
const WRONG: f64 = 2.0;
/// Rounds of all three runs before a median is judged; the machine may be busy.
const ROUNDS: usize = 3;
/// Rounds that are repeated until the medians agree, or this is over.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether what mending saves is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Saving {
    Timed,
    Untimed,
}

/// A program in a folder of its own.
struct Program {
    command: Vec<OsString>,
    mpi_shim: Option<PathBuf>,
    data: PathBuf,
}

impl Program {
    fn serial(name: &str) -> Option<Program> {
        Some(Program { command: vec![serial_program().into(), name.into()], mpi_shim: None, data: data() })
    }

    /// A program that needs a device; none (and a message) where files cannot be made to leave the memory.
    fn cold(name: &str) -> Option<Program> {
        static LEAVES: OnceLock<bool> = OnceLock::new();
        if *LEAVES.get_or_init(|| leaves_memory(&data())) {
            return Program::serial(name);
        }
        println!("skipped: files of the target folder do not leave the memory (posix_fadvise)");
        None
    }

    fn mpi(name: &str) -> Option<Program> {
        Program::of_ranks(4, name)
    }

    /// As many ranks as the smallest machine has processors: those that wait take none from the others.
    fn pair(name: &str) -> Option<Program> {
        Program::of_ranks(2, name)
    }

    fn of_ranks(ranks: u32, name: &str) -> Option<Program> {
        let (program, shim) = mpi_program()?;
        let mut command = launcher(ranks);
        command.extend([program.into(), name.into()]);
        Some(Program { command, mpi_shim: Some(shim.clone()), data: data() })
    }

    /// A folder in which there is a file `data`, the same in all.
    fn folder(&self) -> tempfile::TempDir {
        let folder = new_folder();
        std::fs::hard_link(&self.data, folder.path().join("data")).expect("a link");
        // It is in memory: only what a program itself drops from there must come from the device.
        std::fs::read(&self.data).expect("the data can be read");
        folder
    }

    /// What is found in a run.
    fn explain(&self) -> Explanation {
        let folder = self.folder();
        let mut words: Vec<OsString> = ["env", "-C"].map(OsString::from).to_vec();
        words.push(folder.path().into());
        words.extend(self.command.clone());
        let options = Options {
            command: words,
            output: folder.path().join("job.pio"),
            mpi_shim: self.mpi_shim.clone(),
            settings: Settings { measure: true, ..Settings::default() },
            ..Options::default()
        };
        let outcome = run(&options).expect("the job is recorded");
        assert!(outcome.status.success(), "{:?}: {:?}", options.command, outcome.status);
        let trace = Trace::open(&options.output).expect("the trace opens");
        Explanation::of_trace(&trace, &mut |_| {}).expect("the trace can be read")
    }

    /// What a run takes that is not recorded, milliseconds.
    fn time_ms(&self, mended: bool) -> f64 {
        let folder = self.folder();
        let [program, arguments @ ..] = self.command.as_slice() else { unreachable!("a program has a name") };
        let mut command = Command::new(program);
        command.args(arguments).args(mended.then_some("mended")).current_dir(folder.path());
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        took_ms(folder.path())
    }
}

/// What the program in a folder says that it took, milliseconds.
fn took_ms(folder: &Path) -> f64 {
    let said = std::fs::read_to_string(folder.join("took")).expect("the program is over");
    said.parse::<f64>().expect("nanoseconds") / 1e6
}

fn new_folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder")
}

fn data() -> PathBuf {
    static DATA: OnceLock<tempfile::TempDir> = OnceLock::new();
    let prepared = DATA.get_or_init(|| {
        let folder = new_folder();
        let output = Command::new(serial_program()).arg("prepare").current_dir(folder.path()).output();
        assert!(output.expect("the program starts").status.success());
        folder
    });
    prepared.path().join("data")
}

/// Whether pages of a file are read from a device once the system was asked to forget them: not in a file system in memory.
fn leaves_memory(path: &Path) -> bool {
    let output = Command::new(serial_program()).arg("forget").arg(path).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout == b"forgotten"
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Whether half of the runs lie as near to each other, measured by what the broken program takes, as a cost must lie to
/// what is saved: else the machine was too busy to judge by them.
fn agree(runs: &[f64], broken: &[f64]) -> bool {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() * 3 / 4] - sorted[sorted.len() / 4] <= TOLERANCE * median(broken)
}

/// Kinds and milliseconds, without what is wrong with the machine: four ranks run on whatever processors it has, and those
/// that wait for one come late. But not without what is looked for.
fn of_program(found: &Explanation, sought: Option<Kind>) -> Vec<(Kind, f64)> {
    let of_machine = |kind| matches!(kind, Kind::TooManyRanks | Kind::LateRanks) && Some(kind) != sought;
    let of_program = found.findings.iter().filter(|finding| !of_machine(finding.kind));
    of_program.map(|one| (one.kind, one.lost_ns.unwrap_or(f64::NAN) / 1e6)).collect()
}

/// The named kind must come first, and cost what mending the program saves.
fn check(name: &str, program: &Program, kind: Kind, saving: Saving) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (mut broken, mut mended, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    let until = Instant::now() + TIMEOUT;
    loop {
        let found = program.explain();
        let all = of_program(&found, Some(kind));
        println!("{name}, {} ms: {all:?} (ms)", found.duration_ns / 1_000_000);
        assert_eq!(all.first().map(|first| first.0), Some(kind), "{name}: {all:?}");
        if saving == Saving::Untimed {
            return;
        }
        costs.push(all[0].1);
        broken.push(program.time_ms(false));
        mended.push(program.time_ms(true));
        let (cost, saved) = (median(&costs), median(&broken) - median(&mended));
        println!("{name}: costs {cost:.1} ms, mending saves {saved:.1} of {:.1} ms", median(&broken));
        if costs.len() >= ROUNDS && (cost / saved - 1.0).abs() <= TOLERANCE {
            return;
        }
        if costs.len() < ROUNDS || Instant::now() < until {
            continue;
        }
        if ![&costs, &broken, &mended].into_iter().all(|runs| agree(runs, broken.as_slice())) {
            println!("{name}: not judged: runs of one program differ by more than what is to be told");
            return;
        }
        if (1.0 / WRONG..WRONG).contains(&(cost / saved)) {
            println!("{name}: not judged closer than to a factor of {WRONG}: the processors have other work");
            return;
        }
        panic!(
            "{name}: {kind:?} is said to cost {cost:.1} ms, mending it saves {saved:.1} ms ({costs:?}, {broken:?}, {mended:?})"
        );
    }
}

/// Nothing must be found, at least where the machine did not keep ranks from their processors in every round.
fn check_clean(name: &str, program: &Program) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut rounds =
        (0..ROUNDS).map(|_| of_program(&program.explain(), None)).take_while(|all| !all.is_empty());
    let last = rounds.by_ref().inspect(|all| println!("{name}: {all:?} (ms)")).nth(ROUNDS - 1);
    assert_eq!(last, None, "{name}");
}

macro_rules! defects {
    ($($test:ident $run:ident $name:literal $saving:ident $kind:ident;)*) => {$(
        #[test]
        fn $test() {
            if let Some(program) = Program::$run($name) {
                check($name, &program, Kind::$kind, Saving::$saving);
            }
        }
    )*};
}

macro_rules! clean {
    ($($test:ident $run:ident $name:literal;)*) => {$(
        #[test]
        fn $test() {
            if let Some(program) = Program::$run($name) {
                check_clean($name, &program);
            }
        }
    )*};
}

defects! {
    small_writes serial "small-writes" Timed SmallWrites;
    blocks_of_512 serial "blocks-of-512" Timed SmallWrites;
    writes_of_2_kib serial "writes-of-2-kib" Timed SmallWrites;
    small_reads serial "small-reads" Timed SmallReads;
    reads_of_160 serial "reads-of-160" Timed SmallReads;
    random_access serial "random-access" Timed RandomAccess;
    mapping_at_random cold "mapping-at-random" Timed RandomMapping;
    partial_pages cold "partial-pages" Timed UnalignedRequests;
    partial_pages_at_random cold "partial-pages-at-random" Timed UnalignedRequests;
    strided_access serial "strided-access" Timed StridedAccess;
    redundant_reads serial "redundant-reads" Timed RedundantReads;
    table_read_again serial "table-read-again" Timed RedundantReads;
    cyclic_rereads serial "cyclic-rereads" Timed CyclicRereads;
    open_storm serial "open-storm" Timed OpenStorm;
    log_reopened serial "log-reopened" Timed OpenStorm;
    metadata_storm serial "metadata-storm" Timed MetadataStorm;
    missing_file serial "missing-file" Timed MetadataStorm;
    overwrites serial "overwrites" Timed Overwrites;
    header_rewritten serial "header-rewritten" Timed Overwrites;
    read_after_write serial "read-after-write" Timed ReadAfterWrite;
    sync_per_write serial "sync-per-write" Timed SyncPerWrite;
    sync_per_file serial "sync-per-file" Timed SyncPerFile;
    unbuffered_stream serial "unbuffered-stream" Timed UnbufferedStream;
    shared_append serial "shared-append" Timed SharedAppend;
    unaligned_sharing serial "unaligned-sharing" Timed UnalignedSharing;
    no_overlap serial "no-overlap" Timed NoOverlap;
    seeks serial "seeks" Timed Seeks;
    lock_waits serial "lock-waits" Timed LockWaits;
    many_small_files serial "many-small-files" Timed ManySmallFiles;
    one_writer mpi "one-writer" Untimed OneWriter;
    late_rank pair "late-rank" Timed LateRanks;
    straggler mpi "straggler" Timed Straggler;
    uneven_ranks mpi "uneven-ranks" Untimed UnevenRanks;
    missing_collective pair "missing-collective" Timed MissingCollective;
    no_view mpi "no-view" Untimed NoView;
    file_per_process mpi "file-per-process" Timed FilePerProcess;
    same_names_by_all mpi "same-names-by-all" Untimed SameNamesByAll;
    same_read_by_all mpi "same-read-by-all" Untimed SameReadByAll;
}

clean! {
    clean_copy serial "clean-copy";
    clean_stream serial "clean-stream";
    clean_checkpoints serial "clean-checkpoints";
    clean_shared serial "clean-shared";
    clean_settings serial "clean-settings";
    clean_tiles serial "clean-tiles";
    clean_log serial "clean-log";
    clean_mapping serial "clean-mapping";
    clean_records serial "clean-records";
    clean_pages cold "clean-pages";
    clean_cold_mapping cold "clean-cold-mapping";
    clean_locks serial "clean-locks";
    clean_collective mpi "clean-collective";
}
