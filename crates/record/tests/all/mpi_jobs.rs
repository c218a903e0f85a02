//! MPI programs, under the MPI whose `mpicc` is first in the PATH.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::{Job, compile, counts, folder, record_in};
use crate::memory::{InMemory, files_in_memory};
use pio_layout::{Datatype, Order, View};
use pio_mpi::{Commands, Family};
use pio_record::{MPI_SHIM, compile_shim};
use pio_trace::{Call, Event, Flags, GivenHints, Layer, Op, ProcessorWait, Target};

const LOCAL: u64 = 8;
const RANKS: u64 = 4;

/// The MPI to test with; none (and a message) without.
fn mpi() -> Option<Commands> {
    Commands::first().map_err(|missing| println!("skipped: {missing}")).ok()
}

/// Compiles a program and the recorder for an MPI.
fn build(mpi: &Commands, name: &str, folder: &Path) -> (PathBuf, PathBuf) {
    let shim = compile_shim(&mpi.mpicc, MPI_SHIM, &folder.join("shim")).expect("the MPI recorder compiles");
    (compile(mpi.mpicc.to_str().expect("a name"), name, folder, &[]), shim)
}

/// The job that several tests look at, run once.
fn whole_matrix() -> Option<&'static Job> {
    static JOB: OnceLock<Option<(Job, bool)>> = OnceLock::new();
    JOB.get_or_init(|| matrix(None)).as_ref().map(|(job, _)| job)
}

fn matrix(victim: Option<u64>) -> Option<(Job, bool)> {
    let mpi = mpi()?;
    let folder = folder();
    let (program, shim) = build(&mpi, "matrix", folder.path());
    let mut words = mpi.launch(RANKS as u32);
    words.extend([program.into(), folder.path().join("matrix.dat").into()]);
    words.extend(victim.map(|rank| OsString::from(rank.to_string())));
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    Some((job, mpi.family() == Family::OpenMpi))
}

impl Job {
    fn of_rank(&self, rank: u64, layer: Layer) -> Vec<&Event> {
        let processes = &self.trace.tables().processes;
        let is = |e: &&Event| processes[e.process.index()].rank == Some(rank as u32) && e.layer() == layer;
        self.events.iter().filter(is).collect()
    }

    fn view_of(&self, event: &Event) -> (&View, u64) {
        match event.target {
            Target::View { view, position } => (&self.trace.tables().views[view.index()], position),
            other => panic!("{event:?} has {other:?}"),
        }
    }
}

fn block_view(rank: u64) -> View {
    let double = Datatype::bytes(8);
    let starts = [rank / 2 * LOCAL, rank % 2 * LOCAL];
    let block = Datatype::subarray(&[2 * LOCAL, 2 * LOCAL], &[LOCAL, LOCAL], &starts, Order::C, &double);
    View::new(16, 8, block.expect("a block")).expect("a view")
}

#[test]
fn views_positions_and_sizes_are_what_the_program_set() {
    let Some(job) = whole_matrix() else { return };
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let tables = job.trace.tables();
    assert_eq!(
        tables.processes.len(),
        RANKS as usize,
        "the launcher is not in the trace: {:?}",
        tables.processes
    );
    let whole = View::new(0, 4, Datatype::bytes(4)).expect("a view");
    let block_bytes = LOCAL * LOCAL * 8;
    for rank in 0..RANKS {
        let events = job.of_rank(rank, Layer::MpiIo);
        let calls: Vec<Call> = events.iter().map(|e| e.call).collect();
        use Call::*;
        let expected = [
            MpiFileOpen,
            MpiFileSetView,
            MpiFileWriteAll,
            MpiFileWriteAtAll,
            MpiFileSeek,
            MpiFileReadAll,
            MpiFileSetView,
            MpiFileWriteAt,
            MpiFileClose,
        ];
        assert_eq!(calls, expected, "rank {rank}");

        let block = block_view(rank);
        for (index, position, size) in
            [(1, 0, 0), (2, 0, block_bytes), (3, block_bytes, block_bytes), (4, 0, 0), (5, 0, block_bytes)]
        {
            let event = events[index];
            let (view, at) = job.view_of(event);
            assert_eq!((view, at), (&block, position), "rank {rank}: {event:?}");
            assert_eq!(event.size, size);
            assert_eq!(event.result, size as i64);
        }
        for event in &events[6..8] {
            assert_eq!(job.view_of(event).0, &whole);
        }
        assert_eq!(job.view_of(events[7]).1, 4 * rank);
        assert_eq!((events[7].size, events[7].result), (4, 4));

        let memory = events[3].memory.expect("write_at_all is from every other number");
        let column = Datatype::vector(LOCAL * LOCAL, 1, 2, &Datatype::bytes(8)).expect("a vector");
        assert_eq!(tables.datatypes[memory.index()], column);
        assert!(events.iter().all(|e| e.memory.is_none() || e.call == MpiFileWriteAtAll));

        let collective: Vec<Call> =
            events.iter().filter(|e| e.flags.contains(Flags::COLLECTIVE)).map(|e| e.call).collect();
        let single = [MpiFileSeek, MpiFileWriteAt];
        assert_eq!(collective, expected.into_iter().filter(|c| !single.contains(c)).collect::<Vec<_>>());
        assert!(events.iter().all(|e| !e.flags.contains(Flags::UNFINISHED) && !e.is_physical()));
    }
}

#[test]
fn jobs_one_after_the_other_do_not_open_a_file_together() {
    let Some(mpi) = mpi() else { return };
    let folder = folder();
    let (program, shim) = build(&mpi, "matrix", folder.path());
    let mut words: Vec<OsString> = ["sh", "-c", "\"$@\" && \"$@\"", "sh"].map(OsString::from).into();
    words.extend(mpi.launch(RANKS as u32));
    words.extend([program.into(), folder.path().join("matrix.dat").into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let tables = job.trace.tables();
    assert!(tables.has_several_jobs());
    let mut opens: BTreeMap<u64, Vec<Option<u32>>> = BTreeMap::new();
    for handle in tables.handles.iter().filter(|handle| handle.collective != 0) {
        opens.entry(handle.collective).or_default().push(tables.processes[handle.process.index()].rank);
    }
    let all: Vec<_> = (0..RANKS as u32).map(Some).collect();
    assert_eq!(opens.into_values().collect::<Vec<_>>(), [all.clone(), all]);
    assert_eq!((job.outcome.summary.missing_ranks, job.outcome.summary.expected_ranks), (0, 2 * RANKS));
}

/// Beside it there are the segments of the MPI library: MPICH makes each by writing its last byte, Open MPI cuts it to its size.
#[test]
fn files_in_memory_are_told_from_segments() {
    let (Some(mpi), Some(place)) = (mpi(), InMemory::new("pioscope-matrix-")) else { return };
    let folder = folder();
    let (program, shim) = build(&mpi, "matrix", folder.path());
    let mut words = mpi.launch(RANKS as u32);
    words.extend([program.into(), place.0.clone().into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let name = place.0.to_str().unwrap();
    assert_eq!(files_in_memory(&job), [name]);
    let is_below =
        |event: &&Event| event.is_physical() && event.layer() == Layer::Posix && event.op() == Op::Write;
    let below: u64 = job.on(name).into_iter().filter(is_below).map(Event::transferred).sum();
    let all = RANKS * LOCAL * LOCAL * 8 * 2 + RANKS * 4;
    assert_eq!(below, all);

    let Some(beside) = whole_matrix() else { return };
    assert!(files_in_memory(beside).is_empty(), "{:?}", files_in_memory(beside));
}

/// A launcher and its helpers have no MPI, whose functions can then not be bound when they start.
#[test]
fn symbols_may_be_bound_when_processes_start() {
    let Some(mpi) = mpi() else { return };
    let folder = folder();
    let (program, shim) = build(&mpi, "matrix", folder.path());
    let mut words: Vec<OsString> = vec!["env".into(), "LD_BIND_NOW=1".into()];
    words.extend(mpi.launch(RANKS as u32));
    words.extend([program.into(), folder.path().join("matrix.dat").into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    for rank in 0..RANKS {
        assert_eq!(job.view_of(job.of_rank(rank, Layer::MpiIo)[2]), (&block_view(rank), 0));
    }
}

#[test]
fn handles_of_a_collective_open_are_joined() {
    let Some(job) = whole_matrix() else { return };
    let tables = job.trace.tables();
    let joined: Vec<_> = tables.handles.iter().filter(|h| h.ranks > 1).collect();
    assert_eq!(joined.len(), RANKS as usize);
    for handle in joined {
        assert_eq!((u64::from(handle.ranks), handle.collective), (RANKS, 1));
        let path = job.folder.path().join("matrix.dat").canonicalize().expect("the file is there");
        assert_eq!(Path::new(&tables.files[handle.file.index()].path), path);
    }
}

#[test]
fn physical_writes_belong_to_their_operation() {
    let Some(job) = whole_matrix() else { return };
    let mut bytes_by_call = std::collections::BTreeMap::new();
    for write in job.on("/matrix.dat").iter().filter(|e| e.layer() == Layer::Posix && e.op() == Op::Write) {
        assert!(write.is_physical(), "{write:?}");
        assert_eq!(write.think_ns, 0);
        let causes: Vec<_> = job
            .events
            .iter()
            .filter(|e| {
                e.layer() == Layer::MpiIo && e.process == write.process && e.operation == write.operation
            })
            .collect();
        let [cause] = causes.as_slice() else { panic!("{write:?} is caused by {causes:?}") };
        assert!(cause.start_ns <= write.start_ns && write.end_ns() <= cause.end_ns(), "{cause:?} {write:?}");
        *bytes_by_call.entry(cause.call.name()).or_insert(0) += write.transferred();
    }
    let all = RANKS * LOCAL * LOCAL * 8;
    assert_eq!(bytes_by_call.get("MPI_File_write_all"), Some(&all));
    assert_eq!(bytes_by_call.get("MPI_File_write_at_all"), Some(&all));
    assert_eq!(bytes_by_call.get("MPI_File_write_at"), Some(&(4 * RANKS)));
}

/// MPICH does the I/O of a nonblocking collective operation in the call that waits for it: that counted as the program's own,
/// and each byte twice.
#[test]
fn what_mpi_does_in_a_wait_belongs_to_the_operation() {
    const BLOCK: u64 = 1 << 20;
    let Some(job) = recorded("iall", 2) else { return };
    for rank in 0..2 {
        let operations = job.of_rank(rank, Layer::MpiIo);
        let moved: Vec<&Event> =
            operations.into_iter().filter(|e| matches!(e.op(), Op::Read | Op::Write)).collect();
        assert_eq!(moved.len(), 14);
        assert!(moved.iter().all(|e| !e.is_physical() && e.transferred() == BLOCK));
        let names: HashSet<u64> = moved.iter().map(|e| e.operation).collect();
        assert_eq!(names.len(), 14);
        // Both were waited for at once: it is not known for which one a write was.
        let not_known: HashSet<u64> = moved[9..11].iter().map(|e| e.operation).collect();
        let posix = job.of_rank(rank, Layer::Posix);
        let below = posix.iter().filter(|e| matches!(e.op(), Op::Read | Op::Write) && is_on_file(&job, e));
        for event in below {
            assert!(event.is_physical() && event.operation != 0, "{event:?}");
            let cause = moved.iter().find(|e| e.operation == event.operation);
            let Some(cause) = cause else { continue };
            assert!(!not_known.contains(&event.operation) || event.flags.contains(Flags::ASYNC));
            assert_eq!(cause.op(), event.op());
            assert!(event.end_ns() > cause.start_ns);
        }
        let messages = job.of_rank(rank, Layer::Message);
        assert!(messages.iter().all(|e| !e.is_physical() && e.operation == 0), "they are the program's");
    }
    let below = |op, is_known: bool| -> u64 {
        let is_below = |e: &&Event| e.layer() == Layer::Posix && e.op() == op;
        let is_cause = |e: &Event, of: &Event| {
            e.layer() == Layer::MpiIo && e.process == of.process && e.operation == of.operation
        };
        let events = job.on("/file.dat").into_iter().filter(is_below);
        let of = events.filter(|e| job.events.iter().any(|cause| is_cause(cause, e)) == is_known);
        of.map(Event::transferred).sum()
    };
    let writes = [below(Op::Write, true), below(Op::Write, false)];
    assert_eq!(writes.iter().sum::<u64>(), 2 * 12 * BLOCK);
    assert!(writes[0] >= 2 * 10 * BLOCK, "{writes:?}");
    assert_eq!([below(Op::Read, true), below(Op::Read, false)], [2 * 2 * BLOCK, 0]);
}

fn is_on_file(job: &Job, event: &Event) -> bool {
    let file = job.trace.tables().file_of_event(event);
    file.is_some_and(|file| file.path.ends_with("/file.dat"))
}

#[test]
fn messages_are_recorded_while_a_file_is_open() {
    let Some(job) = whole_matrix() else { return };
    for rank in 0..RANKS {
        let events = job.of_rank(rank, Layer::Message);
        assert_eq!(counts(&events), [("MPI_Send", 1), ("MPI_Irecv", 1), ("MPI_Wait", 1), ("MPI_Barrier", 1)]);
        let send = events.iter().find(|e| e.call == Call::MpiSend).expect("a send");
        assert_eq!(send.target, Target::Peer { rank: ((rank + 1) % RANKS) as u32 });
        assert_eq!((send.size, send.result), (4, 4));
    }
}

/// Whether a file is open was asked twice: where another thread opened one in between, the source of a message was read out of
/// MPI_STATUS_IGNORE.
#[test]
fn messages_are_received_without_a_status_while_another_thread_opens_files() {
    let _ = recorded("toggles", 1); // which succeeds
}

#[test]
fn a_killed_rank_leaves_all_it_did() {
    let Some((job, open_mpi)) = matrix(Some(2)) else { return };
    assert!(!job.outcome.status.success());
    assert_eq!(job.outcome.summary.ranks, RANKS as usize);
    for rank in 0..RANKS {
        let events = job.of_rank(rank, Layer::MpiIo);
        let calls: Vec<Call> = events.iter().map(|e| e.call).collect();
        assert_eq!(calls, [Call::MpiFileOpen, Call::MpiFileSetView, Call::MpiFileWriteAll], "rank {rank}");
        assert_eq!(job.view_of(events[2]), (&block_view(rank), 0));
    }
    // Open MPI's launcher ends the others politely, and they call exit.
    let killed = job.trace.tables().processes.iter().filter(|p| p.end_ns.is_none()).count();
    assert!(killed >= 1 && (open_mpi || killed == RANKS as usize), "{:?}", job.trace.tables().processes);
    assert_eq!(job.trace.tables().processes[2].end_ns, None);
}

#[test]
fn an_operation_that_never_returned_is_unfinished() {
    let Some(mpi) = mpi() else { return };
    let folder = folder();
    let (program, shim) = build(&mpi, "stuck", folder.path());
    let mut words = mpi.launch(2);
    words.extend([program.into(), folder.path().join("stuck.dat").into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    let events = job.of_rank(0, Layer::MpiIo);
    let write = events.iter().find(|e| e.call == Call::MpiFileWriteAtAll).expect("it began");
    assert_eq!((write.size, job.view_of(write).1), (800, 80));
    // An MPI may see that each rank writes for itself: then rank 0 gets as far as the close.
    let (last, before) = events.split_last().expect("events");
    assert!(last.flags.contains(Flags::UNFINISHED), "{last:?}");
    assert_eq!(last.result, 0);
    assert!(before.iter().all(|e| !e.flags.contains(Flags::UNFINISHED)));
    assert!(job.outcome.summary.unfinished >= 1);
}

#[test]
fn hints_of_the_program_are_kept() {
    let Some(mpi) = mpi() else { return };
    let folder = folder();
    let (program, shim) = build(&mpi, "hints", folder.path());
    let mut words = mpi.launch(2);
    words.extend([program.into(), folder.path().into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let tables = job.trace.tables();
    let given: Vec<(&str, u32, String)> = GivenHints::of(tables)
        .into_iter()
        .map(|given| {
            let path = &tables.file_of(given.handle).expect("a file").path;
            let process = tables.handles[given.handle.index()].process;
            (path.rsplit('/').next().unwrap_or_default(), process.0, given.words())
        })
        .collect();
    // Of what both ranks gave, one note; the last value of a key counts.
    let alike = "cb_nodes=1, cb_config_list=*:1,*:2, my colour=red, romio_cb_write=enable";
    let other = |device: u32| format!("start_iodevice={device}, cb_nodes=1, romio_cb_write=enable");
    assert_eq!(given, [("alike", 0, alike.to_owned()), ("other", 0, other(0)), ("other", 1, other(1))]);
}

fn with_a_late_rank() -> Option<Job> {
    recorded("late", 2)
}

/// A program in so many ranks; its argument is a file.
fn recorded(name: &str, ranks: u32) -> Option<Job> {
    let mpi = mpi()?;
    let folder = folder();
    let (program, shim) = build(&mpi, name, folder.path());
    let mut words = mpi.launch(ranks);
    words.extend([program.into(), folder.path().join("file.dat").into()]);
    let job = record_in(folder, words, |options| options.mpi_shim = Some(shim));
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    Some(job)
}

#[test]
fn what_a_rank_waits_for_is_counted_from_mpi_init() {
    let Some(job) = with_a_late_rank() else { return };
    let tables = job.trace.tables();
    let sleeps = |rank| {
        let waits = ProcessorWait::of(tables).into_iter();
        let of_rank = |wait: &ProcessorWait| tables.processes[wait.process.0 as usize].rank == Some(rank);
        waits.filter(of_rank).find_map(|wait| wait.sleeps)
    };
    // The hundred before MPI_Init are no part of them.
    let [first, second] = [0, 1].map(|rank| sleeps(rank).expect("the kernel counts them"));
    assert!((30..130).contains(&first) && second < 100, "{first}, {second}");
}

#[test]
fn which_file_a_program_removes_by_mpi_io_is_kept() {
    let Some(job) = with_a_late_rank() else { return };
    let removed = |event: &&Event| event.call == Call::MpiFileDelete;
    assert_eq!(job.of_rank(0, Layer::MpiIo).into_iter().filter(removed).count(), 0);
    let calls = job.of_rank(1, Layer::MpiIo);
    let [opened, .., last] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((last.call, last.result, last.handle), (Call::MpiFileDelete, 0, None));
    let path = |event| job.trace.tables().file_of_event(event).map(|file| file.path.clone());
    assert!(path(opened).is_some_and(|path| path.ends_with("/file.dat")));
    assert_eq!(path(last), path(opened));
}

/// With fewer processors than ranks, too, that is: each loses its own several times while it computes.
#[test]
fn ranks_that_share_processors_think_for_as_long_as_they_compute() {
    const RANKS: u32 = 8;
    let Some(job) = recorded("crowd", RANKS) else { return };
    for rank in 0..RANKS {
        let calls = job.of_rank(rank.into(), Layer::MpiIo).into_iter();
        let mut think_ns: Vec<u64> =
            calls.filter(|event| event.op() == Op::Write).map(|event| event.think_ns).collect();
        assert_eq!(think_ns.len(), 10);
        think_ns.sort_unstable();
        // With the turns of others, ten milliseconds would be forty. What interrupts take counts as well, and what the
        // other guests of a machine take: some of the ten may be long.
        let (sum, median) = (think_ns.iter().sum::<u64>(), think_ns[5]);
        assert!(sum > 99_000_000 && median < 20_000_000, "rank {rank}: {think_ns:?}");
    }
}

/// Both MPIs wait by asking again and again: the waiting rank uses its processor, as far as it has one.
#[test]
fn waiting_by_spinning_is_time_on_a_processor() {
    let Some(job) = with_a_late_rank() else { return };
    let barriers = |rank| -> Vec<&Event> {
        let messages = job.of_rank(rank, Layer::Message).into_iter();
        messages.filter(|event| event.call == Call::MpiBarrier).collect()
    };
    let waiting = barriers(1)[1];
    let used_ns = waiting.used_ns.expect("known of MPI");
    // Of some 300 ms; a loaded machine may take its processor away for most of them. Who sleeps uses a few microseconds.
    assert!(used_ns > 1_000_000, "{waiting:?}");
    for event in &job.events {
        let is_of_mpi = matches!(event.layer(), Layer::Message | Layer::MpiIo);
        assert_eq!(event.used_ns.is_some(), is_of_mpi, "{event:?}");
        assert!(event.used_ns.is_none_or(|used_ns| used_ns <= event.elapsed_ns), "{event:?}");
    }
}
