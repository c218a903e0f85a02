//! Nothing that was recorded is lost, however processes begin and end.

use std::collections::BTreeSet;

use crate::common::{Job, compile, counts, folder, record_in};
use pio_trace::{Event, Op, Target};

fn ending(how: &str) -> Job {
    let folder = folder();
    let program = compile("cc", "endings", folder.path(), &[]);
    let file = folder.path().join("file");
    record_in(folder, vec![program.into(), file.into(), how.into()], |_| {})
}

/// (processes, of them ended by themselves, writes on the file)
fn tally(job: &Job) -> (usize, usize, usize) {
    let processes = &job.trace.tables().processes;
    let ended = processes.iter().filter(|p| p.end_ns.is_some()).count();
    (processes.len(), ended, writes(job).len())
}

fn writes(job: &Job) -> Vec<&Event> {
    job.on("/file").into_iter().filter(|e| e.op() == Op::Write).collect()
}

fn offset(event: &Event) -> u64 {
    match event.target {
        Target::Extent { offset } => offset,
        other => panic!("{event:?} has {other:?}"),
    }
}

#[test]
fn ends_lose_nothing() {
    for how in ["return", "exit", "_exit", "exit_group"] {
        let job = ending(how);
        assert!(job.outcome.status.success(), "{how}");
        assert_eq!(tally(&job), (1, 1, 1000), "{how}");
    }
}

#[test]
fn violent_ends_lose_nothing() {
    for how in ["abort", "kill", "terminate"] {
        let job = ending(how);
        assert!(!job.outcome.status.success(), "{how}");
        assert_eq!(tally(&job), (1, 0, 1000), "{how}: it did not end by itself");
    }
}

#[test]
fn exec_goes_on_as_another_program() {
    let job = ending("exec");
    assert_eq!(tally(&job), (2, 2, 2000));
    let processes = &job.trace.tables().processes;
    assert_eq!(processes[0].pid, processes[1].pid);
    assert_eq!(processes[0].end_ns, Some(processes[1].start_ns));
}

#[test]
fn spawned_children_record_for_themselves() {
    assert_eq!(tally(&ending("spawn")), (2, 2, 2000));
    let job = ending("vfork");
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    assert_eq!(tally(&job), (2, 2, 2010));
    let closes = counts(&job.on("/file")).into_iter().find(|(name, _)| *name == "close");
    assert_eq!(closes, None, "the vfork child's close is not its parent's");
}

#[test]
fn forked_children_go_on_at_the_shared_position() {
    for how in ["fork", "clone"] {
        let job = ending(how);
        assert!(job.outcome.status.success(), "{how}: {:?}", job.outcome);
        assert_eq!(tally(&job), (2, 2, 1510), "{how}");
        let mut offsets: Vec<u64> = writes(&job).into_iter().map(offset).collect();
        if how == "clone" {
            // The parent cannot know that the child of a raw system call shares its descriptors.
            offsets.truncate(1500);
        }
        offsets.sort_unstable();
        let expected: Vec<u64> = (0..offsets.len() as u64).map(|i| i * 100).collect();
        assert_eq!(offsets, expected, "{how}");
    }
}

#[test]
fn closing_unknown_descriptors_does_not_stop_the_recorder() {
    assert_eq!(tally(&ending("close-all")), (1, 1, 1010));
}

#[test]
fn threads_keep_their_order() {
    let folder = folder();
    let program = compile("cc", "threads", folder.path(), &[]);
    let file = folder.path().join("file");
    let job = record_in(folder, vec![program.into(), file.into()], |_| {});
    assert!(job.outcome.status.success());
    assert_eq!(job.outcome.summary.lost_calls, 0);
    let writes = writes(&job);
    let mut offsets: Vec<u64> = writes.iter().copied().map(offset).collect();
    offsets.sort_unstable();
    assert!(offsets.iter().copied().eq((0..20_000).map(|i| i * 8)), "each thread wrote its own places, once");
    let threads: BTreeSet<u32> = writes.iter().map(|e| e.thread).collect();
    assert_eq!(threads.len(), 200);
    for thread in threads {
        let own: Vec<u64> = writes.iter().filter(|e| e.thread == thread).copied().map(offset).collect();
        assert!(own.is_sorted(), "thread {thread}");
        assert_eq!(own.len(), 100, "thread {thread}");
    }
}

/// The recorder took more of the stack than there was.
#[test]
fn a_handler_with_little_stack_may_end_a_rank_or_start_a_program() {
    for how in ["end", "become"] {
        let folder = folder();
        let program = compile("cc", "handler", folder.path(), &["-O1", "-ldl", "-Wl,-z,now"]);
        let words = vec![program.into(), how.into(), folder.path().join("file").into(), "/bin/true".into()];
        let job = record_in(folder, words, |_| {});
        assert!(job.outcome.status.success(), "{how}: {:?}", job.outcome);
        assert_eq!(tally(&job).2, 1, "{how}");
    }
}

/// Files that were opened while the program waited for a child had other numbers than without us.
#[test]
fn a_wait_for_a_child_holds_no_low_descriptor() {
    let folder = folder();
    let program = compile("cc", "waits", folder.path(), &[]);
    let file = folder.path().join("file");
    let job = record_in(folder, vec![program.into(), file.into()], |_| {});
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
}
