//! A spool may hold anything: the collector never panics, and saves what lies before the damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{compile, folder};
use pio_record::{Filter, POSIX_LIBRARY, Settings, Summary, collect_with};
use pio_trace::{Event, Losses, Trace};
use proptest::prelude::*;

/// Spools of a real program, recorded once: their bytes by name.
fn spools() -> &'static [(String, Vec<u8>)] {
    static SPOOLS: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    SPOOLS.get_or_init(|| {
        let folder = folder();
        let program = compile("cc", "hooks", folder.path(), &[]);
        let library = folder.path().join("recorder.so");
        fs::write(&library, POSIX_LIBRARY).expect("the library");
        let spool = folder.path().join("spool");
        fs::create_dir(&spool).expect("a folder");
        let status = Command::new(program)
            .arg(folder.path())
            .env("LD_PRELOAD", library)
            .env("PIOSCOPE_SPOOL", &spool)
            .status()
            .expect("it runs");
        assert!(status.success());
        let read = |path: PathBuf| {
            (
                path.file_name().expect("a name").to_string_lossy().into_owned(),
                fs::read(&path).expect("a spool"),
            )
        };
        fs::read_dir(&spool).expect("spools").map(|entry| read(entry.expect("an entry").path())).collect()
    })
}

fn collect_bytes(bytes: &[u8]) -> (Summary, Vec<Event>) {
    let folder = folder();
    fs::write(folder.path().join("host-1-1.spool"), bytes).expect("a spool");
    let output = folder.path().join("job.pio");
    let settings = Settings { exact_times: true, ..Settings::default() };
    let summary = collect_with(folder.path(), &output, "damaged", &settings).expect("damage is no error");
    (summary, read(&output))
}

fn read(trace: &Path) -> Vec<Event> {
    let trace = Trace::open(trace).expect("the trace opens");
    assert!(trace.damage().is_none());
    trace.events().map(|event| event.expect("an event")).collect()
}

fn whole() -> &'static [u8] {
    let [(_, bytes)] = spools() else { panic!("one process, one spool") };
    bytes
}

#[test]
fn a_whole_spool_has_no_damage() {
    let (summary, events) = collect_bytes(whole());
    assert_eq!((summary.damaged, summary.lost_calls, summary.lost_processes, summary.moved), (0, 0, 0, 0));
    assert!(events.len() > 90, "{}", events.len());
}

#[test]
fn empty_and_foreign_files_are_counted() {
    for bytes in [&b""[..], &[0; 65536], b"PIOSPOOL"] {
        let (summary, events) = collect_bytes(bytes);
        assert_eq!((summary.lost_processes, events.len()), (1, 0));
    }
}

/// A folder that an older or newer recorder left: it is said which, and the trace is not replaced by an empty one.
#[test]
fn spools_of_another_version_are_named() {
    const VERSION: std::ops::Range<usize> = 8..12;
    let ours = u32::from_le_bytes(whole()[VERSION].try_into().expect("four bytes"));
    let mut older = whole().to_vec();
    older[VERSION].copy_from_slice(&(ours - 1).to_le_bytes());
    let folder = folder();
    let output = folder.path().join("job.pio");
    fs::write(&output, "an earlier trace").expect("a file");
    fs::write(folder.path().join("host-1-1.spool"), &older).expect("a spool");
    fs::write(folder.path().join("host-2-1.spool"), &older).expect("a spool");
    let refused = collect_with(folder.path(), &output, "older", &Settings::default()).expect_err("no trace");
    let expected = format!("its spools are of version {} (expected version {ours})", ours - 1);
    assert!(refused.to_string().contains(&expected), "{refused}");
    assert_eq!(fs::read_to_string(&output).expect("it is there"), "an earlier trace");
    // Beside others that can be read, they are what is missing.
    fs::write(folder.path().join("host-3-1.spool"), whole()).expect("a spool");
    let summary = collect_with(folder.path(), &output, "mixed", &Settings::default()).expect("a trace");
    assert_eq!((summary.processes, summary.lost_processes), (1, 2));
    let problems = summary.problems();
    let expected = format!("2 processes left spools of version {}, which", ours - 1);
    assert!(matches!(&problems[..], [one] if one.starts_with(&expected)), "{problems:?}");
    let losses = Losses::of(&Trace::open(&output).expect("a trace"));
    assert_eq!((losses.lost_processes, losses.other_versions), (2, 2));
}

/// A spool of a rank, or of no rank (-1), which ran this command.
fn spool_of(rank: i32, ranks: i32, command: &str) -> Vec<u8> {
    let mut bytes = whole().to_vec();
    bytes[20..24].copy_from_slice(&rank.to_le_bytes());
    bytes[24..28].copy_from_slice(&ranks.to_le_bytes());
    bytes[224..228].copy_from_slice(&(command.len() as u32).to_le_bytes());
    bytes[400..400 + command.len()].copy_from_slice(command.as_bytes());
    bytes
}

/// What is collected of such spools.
fn collect_all(spools: &[Vec<u8>]) -> (Summary, Losses) {
    let folder = folder();
    for (number, bytes) in spools.iter().enumerate() {
        fs::write(folder.path().join(format!("host-{number}-1.spool")), bytes).expect("a spool");
    }
    let output = folder.path().join("job.pio");
    let summary = collect_with(folder.path(), &output, "job", &Settings::default()).expect("a trace");
    let losses = Losses::of(&Trace::open(&output).expect("the trace opens"));
    (summary, losses)
}

/// Nodes that do not reach the folder of spools record nothing. Two jobs of two ranks and one of eight, of which six did not come.
#[test]
fn ranks_that_did_not_come_are_counted() {
    let ranks: Vec<_> = [(0, 2), (1, 2), (0, 2), (1, 2), (0, 8), (1, 8)]
        .map(|(rank, ranks)| spool_of(rank, ranks, "./x"))
        .into();
    let (whole, none) = collect_all(&ranks[..4]);
    assert_eq!((whole.ranks, whole.missing_ranks, whole.problems()), (4, 0, Vec::new()));
    assert!(none.is_empty());
    let (summary, losses) = collect_all(&ranks);
    assert_eq!((losses.missing_ranks, losses.expected_ranks), (6, 12));
    assert!(
        summary.problems()[0].starts_with("6 of 12 ranks were not recorded: "),
        "{:?}",
        summary.problems()
    );
    // Who records some ranks alone knows it.
    let folder = folder();
    fs::write(folder.path().join("host-0-1.spool"), &ranks[0]).expect("a spool");
    fs::write(folder.path().join("host-1-1.spool"), &ranks[1]).expect("a spool");
    let filter = Filter { ranks: vec![0..=0], ..Filter::default() };
    let settings = Settings { filter, ..Settings::default() };
    let output = folder.path().join("job.pio");
    let some = collect_with(folder.path(), &output, "job", &settings).expect("a trace");
    assert_eq!((some.ranks, some.missing_ranks), (1, 0));
}

/// By its header, a damaged spool may be of a rank that the job cannot have: more came than there are.
#[test]
fn ranks_beyond_those_of_the_job_leave_none_missing() {
    let (summary, losses) = collect_all(&[spool_of(0, 1, "./x"), spool_of(7, 1, "./x")]);
    assert_eq!((summary.ranks, losses.missing_ranks), (2, 0));
}

/// It reads Slurm's configuration, and passes on what others print: also where no process is of MPI.
#[test]
fn the_launcher_of_slurm_is_no_process_of_the_job() {
    let srun = spool_of(-1, 0, "/usr/bin/srun -n 1 ./x");
    let (summary, _) = collect_all(&[srun.clone(), spool_of(-1, 0, "./x srun")]);
    assert_eq!((summary.processes, summary.problems()), (1, Vec::new()));
    let (summary, _) = collect_all(&[srun]);
    assert_eq!(summary.processes, 0);
    let said = "nothing that srun started was seen at files";
    assert!(matches!(&summary.problems()[..], [one] if one.starts_with(said)), "{:?}", summary.problems());
}

/// On nodes that do not reach the folder of spools, no process has the recorder.
#[test]
fn a_launcher_of_an_mpi_alone_says_that_nobody_came() {
    let launcher = spool_of(-1, 0, "/opt/mpich/bin/mpiexec -n 64 ./x");
    let ssh = spool_of(-1, 0, "/usr/bin/ssh -x n1 /opt/mpich/bin/hydra_pmi_proxy");
    let (summary, _) = collect_all(&[launcher.clone(), ssh.clone()]);
    assert_eq!(summary.processes, 0);
    let said = "nothing that mpiexec started was seen at files";
    assert!(matches!(&summary.problems()[..], [one] if one.starts_with(said)), "{:?}", summary.problems());
    // What is started need not be of MPI; and then what ssh does may be the job's own.
    let (summary, _) = collect_all(&[launcher.clone(), ssh, spool_of(-1, 0, "./x")]);
    assert_eq!((summary.processes, summary.problems()), (3, Vec::new()));
    let (summary, _) = collect_all(&[launcher, spool_of(0, 1, "./x")]);
    assert_eq!((summary.processes, summary.problems()), (1, Vec::new()));
}

#[test]
fn a_cut_spool_gives_its_whole_chunks() {
    let (_, all) = collect_bytes(whole());
    // Chunks of 4096 bytes lie behind a header as long: the first is whole, the second is cut.
    let (_, some) = collect_bytes(&whole()[..2 * 4096 + 100]);
    assert!(!some.is_empty() && some.len() < all.len(), "{} of {}", some.len(), all.len());
    let mut rest = all.iter();
    for event in &some {
        let same = |e: &&Event| (e.call, e.start_ns, e.result) == (event.call, event.start_ns, event.result);
        assert!(rest.any(|e| same(&e)), "{event:?} is none of the whole spool's, or out of order");
    }
}

/// More processes than are merged at a time, on nodes of ten. One node died in the middle: its processes say no end, and what they
/// wrote last is not there.
#[test]
fn a_node_that_dies_costs_what_it_had_not_written() {
    const RANKS: u32 = 300;
    const DEAD: u32 = 7;
    let folder = folder();
    // The first process is lost before it has written a record.
    let is_dead = |rank: u32| rank == 0 || rank / 10 == DEAD;
    for rank in 0..RANKS {
        let mut bytes = whole().to_vec();
        let node = format!("node{:02}", rank / 10);
        bytes[20..24].copy_from_slice(&rank.to_le_bytes());
        // Boots and hosts: each node has a clock of its own.
        bytes[80..224].fill(0);
        bytes[80..80 + node.len()].copy_from_slice(node.as_bytes());
        bytes[120..120 + node.len()].copy_from_slice(node.as_bytes());
        if is_dead(rank) {
            bytes[28..32].fill(0);
            bytes.truncate(if rank == 0 { 4096 } else { 2 * 4096 + 100 });
        }
        fs::write(folder.path().join(format!("{node}-{rank}-1.spool")), bytes).expect("a spool");
    }
    let output = folder.path().join("job.pio");
    let summary = collect_with(folder.path(), &output, "job", &Settings::default()).expect("a trace");
    assert_eq!((summary.ranks, summary.lost_processes, summary.moved), (RANKS as usize, 0, 0));
    let events = read(&output);
    assert_eq!(events.len() as u64, summary.events);
    assert!(events.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));

    let trace = Trace::open(&output).expect("the trace opens");
    let (_, alone) = collect_bytes(whole());
    let handles = &trace.tables().handles;
    for event in &events {
        assert!(
            event.handle.is_none_or(|handle| handles[handle.index()].process == event.process),
            "{event:?}"
        );
    }
    for (process, rank) in trace.tables().processes.iter().zip(0..) {
        assert_eq!((process.rank, process.end_ns.is_none()), (Some(rank), is_dead(rank)), "{process:?}");
        let own = events.iter().filter(|event| event.process.0 == rank).map(|event| (event.call, event.size));
        let all = alone.iter().map(|event| (event.call, event.size));
        if is_dead(rank) {
            let count = own.count();
            assert!((count > 0) == (rank != 0) && count < alone.len(), "rank {rank}: {count}");
        } else {
            assert!(own.eq(all), "rank {rank}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // All but the version: a spool of another one is refused as a whole.
    #[test]
    fn any_bytes_anywhere_do_no_harm(
        changes in prop::collection::vec((prop_oneof![0usize..8, 12usize..24_000], any::<u8>()), 1..40),
        length in 0usize..70_000,
    ) {
        let mut bytes = whole().to_vec();
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(length);
        let (summary, events) = collect_bytes(&bytes);
        prop_assert_eq!(summary.events, events.len() as u64);
    }

    #[test]
    fn any_words_in_records_do_no_harm(
        changes in prop::collection::vec((128usize..1500, prop_oneof![Just(u64::MAX), Just(0), Just(1 << 63), any::<u64>()]), 1..20),
    ) {
        let mut bytes = whole().to_vec();
        for (word, value) in changes {
            bytes[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        }
        let (summary, events) = collect_bytes(&bytes);
        prop_assert_eq!(summary.events, events.len() as u64);
    }
}
