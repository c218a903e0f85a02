//! Whole MPI jobs through the command: recorded, applied, killed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::servers::Servers;
use crate::support::{Place, mpi, mpiexec};
use pio_mpi::any_ranks;
use pio_trace::{Op, Trace};

/// Each rank writes its quarter of every row of 4 KiB, `rows` times, then tells and waits if it is asked to.
/// What stops it goes to a file of the rank's own: a launcher may end a job before it has passed on what it said.
pub(crate) const WRITER: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
  int rank, ranks, rows = atoi(words[2]), wait = count > 3;
  MPI_File file;
  MPI_Datatype row, piece;
  static char data[1024];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 1024; i++) data[i] = (char)(rank * 31 + i);
  if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) {
    fprintf(stderr, "cannot open\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Type_contiguous(1024, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, 1024 * ranks, &row);
  MPI_Type_commit(&row);
  MPI_File_set_view(file, rank * 1024, MPI_BYTE, row, "native", MPI_INFO_NULL);
  for (int i = 0; i < rows; i++) {
    int code = MPI_File_write_all(file, data, 1024, MPI_BYTE, MPI_STATUS_IGNORE);
    if (code) {
      char text[MPI_MAX_ERROR_STRING], name[20];
      int length;
      MPI_Error_string(code, text, &length);
      snprintf(name, sizeof name, "error.%d", rank);
      FILE *error = fopen(name, "w");
      fputs(text, error);
      fclose(error);
      MPI_Abort(MPI_COMM_WORLD, 4);
      for (;;) pause(); /* MPICH's may come back before the rank is ended. */
    }
  }
  if (wait) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%d\n", (int)getpid()), fflush(stdout);
    sleep(60);
  }
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"#;

/// The recorder within left out what applies the strategy.
#[test]
fn a_recorder_within_a_job_leaves_the_strategy_applied() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    let line = format!(
        "'{}' record -o inner.pio --mpicc '{}' -- env -u LD_PRELOAD {} ./writer data 20",
        env!("CARGO_BIN_EXE_pioscope"),
        mpi.mpicc.display(),
        mpiexec(&mpi, 2).join(" ")
    );
    let mpicc = mpi.mpicc.display().to_string();
    let words =
        ["apply", "-s", "two-phase", "--mpicc", &mpicc, "--record", "outer.pio", "--", "sh", "-c", &line];
    let said = place.pioscope(words).succeeds().err;
    assert!(said.contains("pioscope: inner.pio: ") && !said.contains("nothing was applied"), "{said}");
    assert_eq!(fs::metadata(place.join("data")).unwrap().len(), 20 * 2048);
}

#[test]
fn strategies_write_the_same_bytes_and_are_recorded() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    let pioscope = |words: &[&str], output: &str| {
        let job = [&mpiexec(&mpi, 4)[..], &["./writer", output, "20"].map(str::to_owned)].concat();
        place.pioscope(words.iter().map(|word| (*word).to_owned()).chain(job)).succeeds()
    };
    pioscope(&["record", "-o", "own.pio", "--"], "own.dat");
    let own = fs::read(place.join("own.dat")).unwrap();
    assert_eq!(own.len(), 20 * 4096);
    for strategy in ["independent", "two-phase"] {
        pioscope(&["apply", "-s", strategy, "--record", "ours.pio", "--"], "ours.dat");
        assert_eq!(fs::read(place.join("ours.dat")).unwrap(), own, "{strategy}");
        fs::remove_file(place.join("ours.dat")).unwrap();
    }
    // What was asked for is the same, whoever carries it out.
    let asked = |name: &str| {
        let trace = Trace::open(&place.join(name)).unwrap();
        let writes = trace
            .events()
            .map(|event| event.unwrap())
            .filter(|event| event.op() == Op::Write && !event.is_physical());
        writes.map(|event| event.size).collect::<Vec<_>>()
    };
    assert_eq!(asked("own.pio").len(), 80);
    assert_eq!(asked("own.pio"), asked("ours.pio"));
}

#[test]
fn a_killed_job_leaves_all_it_did() {
    let Some(mpi) = mpi() else { return };
    for victim in ["rank", "launcher", "recorder"] {
        let place = Place::new();
        place.compile(&mpi.mpicc, "writer", WRITER, &[]);
        let mut job = Command::new(env!("CARGO_BIN_EXE_pioscope"))
            .args(["record", "-o", "run.pio", "--"])
            .args(mpiexec(&mpi, 4))
            .args(["./writer", "data", "50", "wait"])
            .current_dir(place.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .envs(any_ranks())
            .env("XDG_CACHE_HOME", place.cache())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        let mut out = job.stdout.take().unwrap();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            pid.push(char::from(byte[0]));
        }
        let kill = |pid: &str| {
            assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
        };
        match victim {
            "rank" => kill(&pid),
            "recorder" => job.kill().unwrap(),
            _ => {
                // Its proxy ends the ranks; what they did is there all the same.
                kill(&child_of(job.id()));
            }
        }
        assert!(!job.wait().unwrap().success(), "{victim}");
        if victim == "recorder" {
            // The job has lost its recorder, and we make the trace of what it left, while the ranks still run.
            let spool = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
            let spool = spool.into_iter().find(|path| path.is_dir()).unwrap();
            place
                .pioscope([OsStr::new("convert"), spool.as_os_str(), OsStr::new("-o"), OsStr::new("run.pio")])
                .succeeds();
            kill(&pid);
        }
        let trace = Trace::open(&place.join("run.pio")).unwrap();
        assert!(trace.damage().is_none());
        let events: Vec<_> = trace.events().map(|event| event.unwrap()).collect();
        let writes = events
            .iter()
            .filter(|event| event.op() == Op::Write && !event.is_physical() && event.handle.is_some());
        assert_eq!(writes.filter(|event| event.size == 1024).count(), 4 * 50, "{victim}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_the_program() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "writer", WRITER, &[]);
    let small = place.join("small");
    fs::create_dir(&small).unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "none"]).arg(&small).output().unwrap();
    if !mount.status.success() {
        eprintln!("skipped: may not mount a small file system");
        return;
    }
    let job = [&mpiexec(&mpi, 4)[..], &["./writer", "small/data", "500"].map(str::to_owned)].concat();
    let words = ["apply", "-s", "two-phase", "--"].map(str::to_owned);
    let outcome = place.pioscope(words.into_iter().chain(job));
    let held = fs::metadata(small.join("data")).map(|data| data.len());
    // Ranks that were aborted may hold it a moment longer.
    assert!(Command::new("umount").arg("--lazy").arg(&small).status().unwrap().success());
    assert_eq!(outcome.code, Some(4), "{}", outcome.err);
    // One rank at least got as far as to end the job, and others may have been ended while they wrote.
    let errors = (0..4).filter_map(|rank| fs::read_to_string(place.join(&format!("error.{rank}"))).ok());
    let errors: Vec<_> = errors.collect();
    assert!(errors.iter().any(|error| error.to_lowercase().contains("space")), "{errors:?}");
    assert!(held.unwrap() > 0, "what was there is gone");
}

const NONBLOCKING: &str = r#"
#include <mpi.h>
#include <stdlib.h>
#define CALLS 8
#define BYTES 65536
int main(int count, char **words) {
  int rank;
  MPI_File file;
  MPI_Request requests[2 * CALLS];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *data = calloc(2 * CALLS, BYTES);
  if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) return 1;
  for (int i = 0; i < CALLS; i++)
    if (MPI_File_iwrite_at(file, (MPI_Offset)(rank * CALLS + i) * BYTES, data + i * BYTES, BYTES, MPI_BYTE, &requests[i])) return 1;
  for (int i = 0; i < CALLS; i++)
    if (MPI_File_iwrite_at_all(file, (MPI_Offset)((2 + rank) * CALLS + i) * BYTES, data + i * BYTES, BYTES, MPI_BYTE, &requests[CALLS + i])) return 1;
  MPI_Waitall(2 * CALLS, requests, MPI_STATUSES_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"#;

#[test]
fn requests_of_nonblocking_calls_belong_to_them() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "nonblocking", NONBLOCKING, &[]);
    for strategy in ["independent", "two-phase"] {
        let job = [&mpiexec(&mpi, 2)[..], &["./nonblocking", "data"].map(str::to_owned)].concat();
        let words = ["apply", "-s", strategy, "--record", "run.pio", "--"].map(str::to_owned);
        place.pioscope(words.into_iter().chain(job)).succeeds();
        let trace = Trace::open(&place.join("run.pio")).unwrap();
        let events: Vec<_> = trace.events().map(|event| event.unwrap()).collect();
        let writes = |physical: bool| {
            events.iter().filter(move |event| event.op() == Op::Write && event.is_physical() == physical)
        };
        let of_file = |event: &&pio_trace::Event| event.size == 65536 && event.handle.is_some();
        // The program's own, and none besides: what we do for it in other threads is not what it asked for.
        let asked: Vec<_> = writes(false).filter(of_file).collect();
        assert_eq!(asked.len(), 2 * 2 * 8, "{strategy}");
        let begun: BTreeSet<_> = asked.iter().map(|event| (event.process, event.operation)).collect();
        let done: Vec<_> = writes(true).filter(|event| event.size >= 65536).collect();
        assert!(done.iter().map(|event| event.size).sum::<u64>() >= 2 * 2 * 8 * 65536, "{strategy}");
        assert!(done.iter().all(|event| begun.contains(&(event.process, event.operation))), "{strategy}");
    }
}

/// The one child of a process.
fn child_of(pid: u32) -> String {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_program_that_cannot_be_seen_runs_and_is_named_before_and_after() {
    let place = Place::new();
    let source = "#include <unistd.h>\nint main(void) { return write(1, \"12345\", 5) == 5 ? 7 : 1; }";
    place.compile("cc", "fixed", source, &["-static"]);
    let job = place.pioscope(["record", "--wait", "-o", "run.pio", "--", "./fixed"]);
    assert_eq!((job.code, job.out.as_str()), (Some(7), "12345"), "{}", job.err);
    let ours: Vec<&str> = job.err.lines().collect();
    assert!(ours[0].starts_with("pioscope: ./fixed: not seen: it is statically linked"), "{ours:?}");
    assert!(ours.iter().any(|line| line.contains("wrote 5 bytes")), "{ours:?}");
    place.pioscope(["explain", "run.pio"]).succeeds();
}

/// Opens a file with hints of its striping, and says what it is told of it.
const STRIPED: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
  int rank, flag;
  char value[MPI_MAX_INFO_VAL];
  MPI_File file;
  MPI_Info info, used;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&info);
  MPI_Info_set(info, "striping_unit", words[2]);
  MPI_Info_set(info, "striping_factor", words[3]);
  if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file)) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_File_get_info(file, &used);
  const char *keys[] = {"striping_unit", "striping_factor"};
  for (int i = 0; rank == 0 && i < 2; i++) {
    MPI_Info_get(used, keys[i], sizeof value - 1, value, &flag);
    printf("%s=%s\n", keys[i], flag ? value : "none");
  }
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"#;

/// A factor that a program gave in its MPI_Info came back from MPI_File_get_info, and was never used.
#[test]
fn striping_from_mpi_info_is_used_or_not_told() {
    let Some(mpi) = mpi() else { return };
    let place = Place::new();
    place.compile(&mpi.mpicc, "striped", STRIPED, &[]);
    let description = place.join("store.toml");
    let description = description.to_str().unwrap();
    let _servers = Servers::start(&place.join("data"), &["--servers", "3", "--store-file", description]);
    let told = |store: &[&str], words: [&str; 3]| {
        let apply = [&["apply", "-s", "two-phase"][..], store, &["--"]].concat();
        let job =
            [&mpiexec(&mpi, 2)[..], &["./striped"].map(str::to_owned), &words.map(str::to_owned)].concat();
        let all = apply.into_iter().map(str::to_owned).chain(job);
        place.pioscope(all).succeeds().out
    };
    let on_store = ["--store", description];
    assert_eq!(told(&on_store, ["new", "65536", "2"]), "striping_unit=65536\nstriping_factor=2\n");
    // What is there keeps its own; what cannot be is left out.
    assert_eq!(told(&on_store, ["new", "4096", "1"]), "striping_unit=65536\nstriping_factor=2\n");
    assert!(told(&on_store, ["many", "4096", "1000"]).ends_with("striping_factor=3\n"));
    assert_eq!(told(&[], ["plain", "65536", "2"]), "striping_unit=65536\nstriping_factor=none\n");
}
