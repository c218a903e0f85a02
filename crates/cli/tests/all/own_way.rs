//! What MPI libraries do by themselves is predicted as they do it: a real job, recorded, and the same job predicted under
//! the library's own way, make the same requests in the same order, rank by rank and call by call.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use pio_mpi::{Commands, Family};
use pio_trace::{Flags, Layer, Op, Tables, Target, Trace};

use crate::support::{Place, mpiexec};
use crate::twins::{CallOfRank, FILE_BLOCK, FILES, scene};

/// Direction, offset and bytes of the requests of a call, in order.
type Requests = Vec<(Op, u64, u64)>;

/// Several rounds for each aggregator, and several buffers of those that sieve.
const SMALL: &str = "cb_buffer_size=32768,ind_rd_buffer_size=16384,ind_wr_buffer_size=16384";

/// The MPIs of a family that are installed.
fn mpis(family: Family, suffix: &str) -> Vec<Commands> {
    let found = [Commands::first(), Commands::with_suffix(suffix)].into_iter().flatten();
    let mut all: Vec<Commands> = found.filter(|mpi| mpi.family() == family).collect();
    all.dedup();
    if all.is_empty() {
        eprintln!("skipped: no {family} on the PATH (mpicc or mpicc{suffix})");
    }
    all
}

/// The requests of each call of a trace.
fn requests(trace: &Path) -> BTreeMap<CallOfRank, Requests> {
    let trace = Trace::open(trace).unwrap();
    let tables = trace.tables().clone();
    let (mut calls, mut requests) = (BTreeMap::new(), BTreeMap::<_, Requests>::new());
    let mut ended: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for event in trace.events().map(|event| event.unwrap()) {
        let Some(rank) = tables.processes[event.process.index()].rank else { continue };
        if !matches!(event.op(), Op::Read | Op::Write) {
            continue;
        }
        // Nonblocking calls have ways of their own, which are not predicted.
        let is_nonblocking = format!("{:?}", event.call).starts_with("MpiFileI");
        if event.layer() == Layer::MpiIo && !is_nonblocking {
            let path = &tables.file_of_event(&event).unwrap().path;
            let name = path.rsplit('/').next().unwrap().to_owned();
            calls.insert((rank, event.operation), (rank, name, event.call));
        }
        let Target::Extent { offset } = event.target else { continue };
        if !event.flags.contains(Flags::PHYSICAL) {
            continue;
        }
        // Who was given less than asked for asks for the rest, to learn whether the file ends there.
        let is_short = event.transferred() < event.size;
        let end = offset + event.transferred();
        let before = ended.insert(rank, (event.op() == Op::Read && is_short).then_some(end)).flatten();
        if event.op() == Op::Read && before == Some(offset) {
            continue;
        }
        requests.entry((rank, event.operation)).or_default().push((event.op(), offset, event.size));
    }
    calls.into_iter().map(|(id, call)| (call, requests.remove(&id).unwrap_or_default())).collect()
}

/// Records the program of the twins under an MPI with these hints, predicts it, and compares.
fn compare(place: &Place, mpi: &Commands, name: &str, strategy: &str, ranks: u32, hints: &str) {
    let data = place.join(&format!("{name}-data/"));
    fs::create_dir(&data).unwrap();
    let trace = format!("{name}.pio");
    let mut record = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    match hints {
        "" => record.args(["record", "-o", &trace]),
        hints => record.args(["apply", "--strategy", strategy, "--hints", hints, "--record", &trace]),
    };
    record.arg("--mpicc").arg(&mpi.mpicc).arg("--").args(mpiexec(mpi, ranks));
    place.run(record.arg("./twins").arg(&data).arg(FILE_BLOCK)).succeeds();
    fs::create_dir(place.join(name)).unwrap();
    // The trace says with which hints the library ran.
    place.pioscope(["predict", &trace, "-m", "node.toml", "-s", strategy, "-o", name]).succeeds();
    let predicted = requests(&place.join(&format!("{name}/{name}-here-{strategy}.pio")));
    let real = requests(&place.join(&trace));
    assert_eq!(real.len(), predicted.len(), "{name}");
    assert!(real.values().any(|requests| requests.len() > 1), "{name}: nothing was recorded");
    for (call, real) in &real {
        assert_eq!(real, &predicted[call], "{name}, {ranks} ranks, {hints}, {call:?}: real and predicted");
    }
}

#[test]
fn romio_makes_the_requests_that_are_predicted() {
    for (index, mpi) in mpis(Family::Mpich, ".mpich").iter().enumerate() {
        let place = scene(mpi, FILES);
        // Of a second MPI with ROMIO only what shows that it does the same.
        let ranks: &[u32] = if index == 0 { &[1, 2, 4, 8] } else { &[4] };
        for ranks in ranks {
            compare(&place, mpi, &format!("small-{index}-{ranks}"), "romio", *ranks, SMALL);
        }
        if index > 0 {
            continue;
        }
        compare(&place, mpi, &format!("default-{index}"), "romio", 4, "");
        for (number, more) in [
            "romio_cb_write=enable,romio_cb_read=enable",
            "romio_cb_write=disable,romio_cb_read=disable",
            "romio_cb_write=disable,romio_ds_write=disable,romio_ds_read=disable",
            "cb_nodes=2",
            "cb_nodes=3,cb_config_list=*:*",
            "striping_unit=10000,cb_config_list=*:*,romio_cb_write=enable",
        ]
        .into_iter()
        .enumerate()
        {
            let hints = format!("{SMALL},{more}");
            compare(&place, mpi, &format!("hints-{index}-{number}"), "romio", 4, &hints);
        }
    }
}

#[test]
fn a_job_is_given_no_hints_of_another_library() {
    for (family, suffix, other) in
        [(Family::Mpich, ".mpich", "ompio"), (Family::OpenMpi, ".openmpi", "romio")]
    {
        for mpi in mpis(family, suffix) {
            let place = Place::new();
            let mpicc = mpi.mpicc.display().to_string();
            let words = ["apply", "-s", other, "--hints", "cb_nodes=2", "--mpicc", &mpicc, "--", "true"];
            place.pioscope(words).fails_with(&format!("{other}: the program's MPI is "));
        }
    }
}

/// A run under hints for OMPIO was taken for one without any: no other note has them.
#[test]
fn a_trace_says_by_which_hints_the_library_ran() {
    for (family, suffix, own) in [(Family::Mpich, ".mpich", "romio"), (Family::OpenMpi, ".openmpi", "ompio")]
    {
        for mpi in mpis(family, suffix) {
            let place = scene(&mpi, FILES);
            let mut apply = Command::new(env!("CARGO_BIN_EXE_pioscope"));
            apply.args(["apply", "-s", own, "--hints", "cb_nodes=1", "--record", "run.pio", "--mpicc"]);
            apply.arg(&mpi.mpicc).arg("--").args(mpiexec(&mpi, 2));
            fs::create_dir(place.join("data")).unwrap();
            place.run(apply.arg("./twins").arg(place.join("data/")).arg(FILE_BLOCK)).succeeds();
            let trace = Trace::open(&place.join("run.pio")).unwrap();
            let notes = [Tables::STRATEGY, Tables::HINTS].map(|name| trace.tables().note(name));
            assert_eq!(notes, [Some(own), Some("cb_nodes=1")]);
        }
    }
}

#[test]
fn ompio_makes_the_requests_that_are_predicted() {
    for (index, mpi) in mpis(Family::OpenMpi, ".openmpi").iter().enumerate() {
        let place = scene(mpi, FILES);
        for ranks in [1, 2, 4, 8] {
            compare(&place, mpi, &format!("default-{index}-{ranks}"), "ompio", ranks, "");
        }
    }
}

/// Gives the hint of its second argument; the ranks' parts of the file are interleaved.
const HINTED: &str = r#"
#include <mpi.h>
#include <string.h>
int main(int argc, char **argv) {
    static char data[1024];
    int rank, ranks;
    MPI_File file;
    MPI_Info info;
    MPI_Datatype filetype;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", argv[2]);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
    MPI_Type_vector(64, 16, 16 * ranks, MPI_BYTE, &filetype);
    MPI_Type_commit(&filetype);
    MPI_File_set_view(file, 16 * rank, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, data, 1024, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
"#;

/// The program's own hints come before those of the command line, as when strategies are applied.
#[test]
fn hints_that_the_program_gives_are_followed() {
    let Some(mpi) = mpis(Family::Mpich, ".mpich").into_iter().next() else { return };
    let place = scene(&mpi, FILES);
    place.compile(&mpi.mpicc, "hinted", HINTED, &[]);
    // One writes all at once, or each rank sieves for itself: reads, changes and writes back.
    for (switch, expected_reads) in [("enable", false), ("disable", true)] {
        let trace = format!("{switch}.pio");
        let mut record = Command::new(env!("CARGO_BIN_EXE_pioscope"));
        record.args(["record", "-o", &trace, "--mpicc"]).arg(&mpi.mpicc).arg("--").args(mpiexec(&mpi, 2));
        place.run(record.args(["./hinted", &format!("{switch}.dat"), switch])).succeeds();
        let explained = place.pioscope(["explain", &trace]).succeeds();
        let told = format!("{switch}.dat: romio_cb_write={switch}\n");
        assert!(
            explained.out.contains("hints given for ") && explained.out.contains(&told),
            "{}",
            explained.out
        );
        let words =
            ["predict", &trace, "-m", "node.toml", "-s", "romio", "--hints", "romio_cb_write=automatic"];
        let predicted = place.pioscope(words).succeeds();
        let out = predicted.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("It gives hints of its own, which come first"), "{out}");
        for trace in [place.join(&trace), place.join(&format!("{switch}-here-romio.pio"))] {
            let requests = requests(&trace);
            let reads = requests.values().flatten().any(|(op, ..)| *op == Op::Read);
            assert!(!requests.is_empty() && reads == expected_reads, "{}: {requests:?}", trace.display());
        }
    }
}

/// What a prediction starts from is what the program's MPI library does; what cannot be applied says so.
#[test]
fn a_prediction_starts_from_what_the_library_does() {
    let place = Place::new();
    let generated = ["predict", "-w", "collapse,ranks=4", "-m", "sp-argonne"];
    let found = place.pioscope(generated).succeeds();
    let out = found.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains(" saved ") && out.contains(" as it is "), "{out}");
    assert!(out.contains("The trace does not name its MPI library: ROMIO is assumed."), "{out}");
    // As before where strategies are named that are all ours.
    let named = place.pioscope([&generated[..], &["-s", "independent,two-phase"]].concat()).succeeds();
    assert!(!named.out.contains("saved"), "{}", named.out);
    let apply = |words: &[&str]| place.pioscope([&["apply"], words, &["--", "true"]].concat());
    apply(&["-s", "two-phase", "--hints", "romio_cb_write=enable"])
        .fails_with("hint romio_cb_write: only the MPI library itself follows it");
    fs::write(place.join("store.toml"), "").unwrap();
    apply(&["-s", "romio", "--store", "store.toml"])
        .fails_with("romio: the MPI library's own MPI-IO knows no");
}
