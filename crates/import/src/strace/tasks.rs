//! Threads and processes: which belongs to which, and whose descriptors it uses.

use std::collections::HashMap;

use super::descriptors::Descriptors;
use crate::builder::Builder;
use pio_trace::ProcessId;

/// A thread, as the kernel sees it.
pub(super) struct Task {
    pub(super) process: ProcessId,
    /// Within its process.
    pub(super) thread: u32,
    /// Which of [`Tasks::descriptors`] and [`Tasks::folders`] it uses.
    pub(super) owner: usize,
    /// A call that was interrupted by another line: its text so far, and when it began.
    pub(super) begun: Option<(String, u64)>,
}

/// All threads seen so far.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: HashMap<u32, Task>,
    /// Threads in each process.
    threads: HashMap<ProcessId, u32>,
    pub(super) descriptors: Vec<Descriptors>,
    /// Working folders; none where not known.
    pub(super) folders: Vec<Option<String>>,
    /// Threads inside a call that makes a new one, oldest first: their children may be seen before the call returns.
    parents: Vec<u32>,
}

impl Tasks {
    /// The task of this number. One that is not known is a child of the oldest that is making one; else strace was
    /// attached to it.
    pub(super) fn get(&mut self, tid: u32, now_ns: u64, builder: &mut Builder) -> Option<&mut Task> {
        if !self.tasks.contains_key(&tid) {
            let parent = (!self.parents.is_empty()).then(|| self.parents.remove(0));
            let flags = parent
                .and_then(|parent| self.tasks.get(&parent))
                .and_then(|task| task.begun.as_ref())
                .map(|(text, _)| text.clone())
                .unwrap_or_default();
            self.add(tid, parent, &flags, now_ns, builder);
        }
        self.tasks.get_mut(&tid)
    }

    /// A thread is inside a call that makes another.
    pub(super) fn begins_child(&mut self, tid: u32) {
        self.parents.push(tid);
    }

    /// A call returned that made `child`, which may have been seen before.
    pub(super) fn made_child(
        &mut self,
        parent: u32,
        child: Option<u32>,
        text: &str,
        now_ns: u64,
        builder: &mut Builder,
    ) {
        self.parents.retain(|&tid| tid != parent);
        if let Some(child) = child.filter(|child| !self.tasks.contains_key(child)) {
            self.add(child, Some(parent), text, now_ns, builder);
        }
    }

    /// A task ended. Its number may be given again.
    pub(super) fn remove(&mut self, tid: u32) -> Option<Task> {
        self.parents.retain(|&parent| parent != tid);
        self.tasks.remove(&tid)
    }

    /// One that was removed is still there.
    pub(super) fn put_back(&mut self, tid: u32, task: Task) {
        self.tasks.insert(tid, task);
    }

    /// The tasks that are still there, in order of their number.
    pub(super) fn drain(&mut self) -> Vec<(u32, Task)> {
        let mut rest: Vec<_> = self.tasks.drain().collect();
        rest.sort_by_key(|(tid, _)| *tid);
        rest
    }

    fn add(&mut self, tid: u32, parent: Option<u32>, text: &str, now_ns: u64, builder: &mut Builder) {
        let parent = parent.and_then(|parent| self.tasks.get(&parent));
        let (process, thread) = match parent {
            Some(parent) if text.contains("CLONE_THREAD") => {
                let count = self.threads.entry(parent.process).or_insert(1);
                *count += 1;
                (parent.process, *count - 1)
            }
            _ => (builder.add_process(tid, None, "", now_ns), 0),
        };
        let owner = match parent {
            Some(parent) if text.contains("CLONE_FILES") => parent.owner,
            other => {
                let (descriptors, folder) = match other {
                    Some(parent) => {
                        (self.descriptors[parent.owner].clone(), self.folders[parent.owner].clone())
                    }
                    None => Default::default(),
                };
                self.descriptors.push(descriptors);
                self.folders.push(folder);
                self.descriptors.len() - 1
            }
        };
        self.tasks.insert(tid, Task { process, thread, owner, begun: None });
    }
}
