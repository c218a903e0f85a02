//! HDF5 and PnetCDF, by name: what programs ask of them, and what that causes.
//!
//! They need the libraries for an MPI with commands of its own name (`mpicc.mpich`, as Debian has them) and `pkg-config`;
//! without, the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Job, command, compile, folder, program_source, record_in};
use pio_mpi::Commands;
use pio_record::{MPI_SHIM, compile_shim};
use pio_trace::{Call, Event, Flags, Layer, Op, Target};

const RANKS: u64 = 2;

/// The ends of the names of MPIs' commands, and what only programs of each load.
const MPIS: [(&str, &str); 2] = [(".mpich", "libmpich.so"), (".openmpi", "libopen-pal.so")];

/// What a program prints; empty if it is not there or fails.
fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compiles a program with a package, by the MPI that the package is for; none (and a message) if it is not there.
fn build(name: &str, package: &str, more: &[&str], folder: &Path) -> Option<(PathBuf, Commands)> {
    let options = printed("pkg-config", &["--cflags", "--libs", package]);
    let program = folder.join(name);
    for (suffix, _) in MPIS {
        let Ok(mpi) = Commands::with_suffix(suffix) else { continue };
        if options.is_empty() {
            continue;
        }
        let output = Command::new(&mpi.mpicc)
            .arg(program_source(&format!("{name}.c")))
            .args(more)
            .arg("-o")
            .arg(&program)
            .args(options.split_whitespace())
            .output()
            .expect("a compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // A package need not say which MPI it is for; but it loads that.
        let loads = printed("ldd", &[program.to_str().expect("a name")]);
        if !MPIS.iter().any(|(other, library)| *other != suffix && loads.contains(library)) {
            return Some((program, mpi));
        }
    }
    println!("skipped: no {package} for an MPI with commands of its own name");
    None
}

/// Records an MPI program that is given the file `data`.
fn parallel(name: &str, package: &str) -> Option<Job> {
    let folder = folder();
    let (program, mpi) = build(name, package, &[], folder.path())?;
    let shim =
        compile_shim(&mpi.mpicc, MPI_SHIM, &folder.path().join("shim")).expect("the MPI recorder compiles");
    let mut words = mpi.launch(RANKS as u32);
    words.extend([program.into(), folder.path().join("data").into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(job.outcome.summary.ranks, RANKS as usize);
    Some(job)
}

impl Job {
    /// The calls of a layer, of one rank or of the only process.
    fn of_layer(&self, rank: Option<u32>, layer: Layer) -> Vec<&Event> {
        let processes = &self.trace.tables().processes;
        let is = |e: &&Event| processes[e.process.index()].rank == rank && e.layer() == layer;
        self.events.iter().filter(is).collect()
    }

    fn path_of(&self, event: &Event) -> Option<&str> {
        let file = event.handle.and_then(|handle| self.trace.tables().file_of(handle));
        file.map(|file| file.path.as_str())
    }

    /// Every call on the file lies in one of the library, whose operation it is; and those of MPI-IO in between have
    /// their own.
    fn all_are_caused_by(&self, library: Layer) {
        let causes: Vec<&Event> = self.events.iter().filter(|e| e.layer() == library).collect();
        assert!(causes.iter().all(|e| !e.is_physical() && e.operation != 0 && e.target == Target::None));
        let mut seen = 0;
        for event in self.on("/data").into_iter().filter(|e| e.layer() != library) {
            assert!(event.is_physical() && event.think_ns == 0, "{event:?}");
            let holds = |cause: &&&Event| {
                (cause.process, cause.thread) == (event.process, event.thread)
                    && cause.start_ns <= event.start_ns
                    && event.end_ns() <= cause.end_ns()
            };
            let cause = causes.iter().find(holds).unwrap_or_else(|| panic!("nothing causes {event:?}"));
            let own = self.events.iter().find(|e| {
                e.layer() == Layer::MpiIo && e.process == event.process && e.operation == event.operation
            });
            match own {
                Some(own) => assert!(own.start_ns <= event.start_ns && event.end_ns() <= own.end_ns()),
                None => assert_eq!(event.operation, cause.operation, "{event:?}"),
            }
            seen += 1;
        }
        assert!(seen > 0);
    }
}

fn calls_with_bytes(events: &[&Event]) -> Vec<(&'static str, u64, i64)> {
    events.iter().map(|e| (e.call.name(), e.size, e.result)).collect()
}

const OBJECTS: [(&str, u64, i64); 22] = [
    ("H5Fcreate", 0, 0),
    ("H5Gcreate", 0, 0),
    ("H5Dcreate", 0, 0),
    ("H5Dwrite", 8000, 8000),
    ("H5Dwrite", 80, 80),
    ("H5Dread", 160, 160),
    ("H5Acreate", 0, 0),
    ("H5Awrite", 6, 6),
    ("H5Aread", 6, 6),
    ("H5Fflush", 0, 0),
    ("H5Aclose", 0, 0),
    ("H5Dclose", 0, 0),
    ("H5Gclose", 0, 0),
    ("H5Fclose", 0, 0),
    ("H5Fopen", 0, -1),
    ("H5Fopen", 0, 0),
    ("H5Lexists", 0, 0),
    ("H5Dopen", 0, 0),
    ("H5Dread", 8000, 8000),
    ("H5Dread", 160, -1),
    ("H5Dclose", 0, 0),
    ("H5Fclose", 0, 0),
];

fn holds_objects(job: &Job) {
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let events = job.of_layer(None, Layer::Hdf5);
    assert_eq!(calls_with_bytes(&events), OBJECTS);
    let data = job.folder.path().join("data").canonicalize().expect("the file is there");
    for event in &events {
        let failed_open = event.op() == Op::Open && event.result < 0;
        let expected = if failed_open { None } else { data.to_str() };
        assert_eq!(job.path_of(event), expected, "{event:?}");
        assert!(!event.flags.contains(Flags::COLLECTIVE), "{event:?}");
    }
    job.all_are_caused_by(Layer::Hdf5);
}

#[test]
fn hdf5_without_mpi() {
    let folder = folder();
    let Some((program, _)) = build("objects_hdf5", "hdf5-mpich", &[], folder.path()) else { return };
    let data = folder.path().join("data");
    holds_objects(&record_in(folder, vec![program.into(), data.into()], |_| {}));
}

#[test]
fn hdf5_that_a_module_brings_for_itself() {
    let folder = folder();
    let module = build("objects_hdf5", "hdf5-mpich", &["-shared", "-fPIC", "-DMODULE"], folder.path());
    let Some((module, _)) = module else { return };
    let program = compile("cc", "load_module", folder.path(), &["-ldl"]);
    let data = folder.path().join("data");
    holds_objects(&record_in(folder, vec![program.into(), module.into(), data.into()], |_| {}));
}

/// A wheel of h5py brings an HDF5 of its own, which it loads for itself alone, and closes files without H5Fclose.
#[test]
fn hdf5_of_python() {
    const PROGRAM: &str = r#"
import h5py, sys
with h5py.File(sys.argv[1], "w") as file:
    data = file.create_dataset("a/b", (1000,), dtype="f8")
    data[10:20] = range(10)
    data[:] = 1.0
with h5py.File(sys.argv[1], "r") as file:
    assert file["a/b"][5:15].sum() == 10
"#;
    if printed("python3", &["-c", "import h5py; print(h5py)"]).is_empty() {
        println!("skipped: no h5py for python3");
        return;
    }
    let folder = folder();
    let data = folder.path().join("data");
    let mut words = command(&["python3", "-B", "-c", PROGRAM]);
    words.push(data.into());
    let job = record_in(folder, words, |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let moved: Vec<_> = calls_with_bytes(&job.of_layer(None, Layer::Hdf5))
        .into_iter()
        .filter(|(name, ..)| name.starts_with("H5F") || matches!(*name, "H5Dread" | "H5Dwrite"))
        .collect();
    let expected = [
        ("H5Fcreate", 0, 0),
        ("H5Dwrite", 80, 80),
        ("H5Dwrite", 8000, 8000),
        ("H5Fclose", 0, 0),
        ("H5Fopen", 0, 0),
        ("H5Dread", 80, 80),
        ("H5Fclose", 0, 0),
    ];
    assert_eq!(moved, expected);
    job.all_are_caused_by(Layer::Hdf5);
}

#[test]
fn parallel_hdf5() {
    let Some(job) = parallel("rows_hdf5", "hdf5-mpich") else { return };
    for rank in 0..RANKS as u32 {
        let events = job.of_layer(Some(rank), Layer::Hdf5);
        let seen: Vec<_> =
            events.iter().map(|e| (e.call.name(), e.result, e.flags.contains(Flags::COLLECTIVE))).collect();
        let expected = [
            ("H5Fcreate", 0, true),
            ("H5Dcreate", 0, false),
            ("H5Dwrite", 8000, false),
            ("H5Dread", 8000, false),
            ("H5Dwrite", 8000, true),
            ("H5Dread", 8000, true),
            ("H5Dclose", 0, false),
            ("H5Fclose", 0, true),
        ];
        assert_eq!(seen, expected, "rank {rank}");
        let handle = events[2].handle.map(|handle| &job.trace.tables().handles[handle.index()]);
        let handle = handle.expect("a handle");
        assert_eq!((u64::from(handle.ranks), handle.collective != 0), (RANKS, true));
        // Each write is one of MPI-IO, and one at the file.
        let writes = job.of_layer(Some(rank), Layer::MpiIo);
        let writes: Vec<_> = writes.into_iter().filter(|e| e.op() == Op::Write && e.size == 8000).collect();
        assert_eq!(writes.len(), 2, "{writes:?}");
    }
    job.all_are_caused_by(Layer::Hdf5);
}

#[test]
fn pnetcdf() {
    let Some(job) = parallel("variables_netcdf", "pnetcdf") else { return };
    let whole = 8 * 16 * 8 * RANKS;
    for rank in 0..RANKS as u32 {
        let events = job.of_layer(Some(rank), Layer::Pnetcdf);
        let expected = [
            ("ncmpi_create", 0, 0),
            ("ncmpi_enddef", 0, 0),
            ("ncmpi_put_vara_all", 1024, 1024),
            ("ncmpi_put_vars_all", 512, 512),
            ("ncmpi_put_vara_all", 512, 512),
            ("ncmpi_iput_vara", 32, 32),
            ("ncmpi_iput_vara", 32, 32),
            ("ncmpi_iput_vara", 32, 32),
            ("ncmpi_wait_all", 0, 0),
            ("ncmpi_put_varn_all", 384, 384),
            ("ncmpi_sync", 0, 0),
            ("ncmpi_close", 0, 0),
            ("ncmpi_open", 0, 0),
            ("ncmpi_get_var_all", whole, whole as i64),
            ("ncmpi_begin_indep_data", 0, 0),
            ("ncmpi_get_var1", 2, 2),
            ("ncmpi_end_indep_data", 0, 0),
            ("ncmpi_get_vara_all", 0, -49), // NC_ENOTVAR
            ("ncmpi_close", 0, 0),
        ];
        assert_eq!(calls_with_bytes(&events), expected, "rank {rank}");
        let data = job.folder.path().join("data").canonicalize().expect("the file is there");
        assert!(events.iter().all(|e| job.path_of(e) == data.to_str()), "{events:?}");
        let started: Vec<Call> =
            events.iter().filter(|e| e.flags.contains(Flags::ASYNC)).map(|e| e.call).collect();
        assert_eq!(started, [Call::NcmpiIputVara; 3]);
        let handle = events[2].handle.map(|handle| &job.trace.tables().handles[handle.index()]);
        assert_eq!(handle.map(|handle| u64::from(handle.ranks)), Some(RANKS));
    }
    job.all_are_caused_by(Layer::Pnetcdf);
}
