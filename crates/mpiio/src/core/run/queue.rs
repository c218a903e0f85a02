//! The queue of a file's collective operations: one after the other, in the order in which the program called them.
//!
//! Who carries out an operation has the file's channel. A blocking operation waits for the channel, and keeps it until it is
//! done. A nonblocking one waits in the queue; [`progress::progress`] carries on with the first of every file. It is called by
//! whoever waits in this library, by every function of the shim and by the program's calls that wait for or test
//! requests: a rank that is in any of them keeps all its operations going. When it is not, because the program computes or
//! is in another call of MPI, a barrier say, the [progress thread](progress_thread) carries on with those that need no MPI,
//! or with all, if MPI may be called by any thread. It tells nobody that they are complete; that waits for the program.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::coroutine::Coroutine;
use crate::core::mpi::progress::{self, Left, Task, Who};
use crate::core::mpi::progress_thread;
use crate::core::mpi::status::Status;
use crate::core::mpi::table::MpiTable;
use crate::core::run::channel::Channel;

/// What a collective operation does when it has the channel; bytes moved.
pub type Work = Box<dyn FnOnce(&mut Channel) -> Result<u64, Status> + Send>;

/// Whom to tell that a nonblocking operation is complete: the shim.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The shim's functions.
    pub mpi: &'static MpiTable,
    /// The shim's name for the operation.
    pub token: *mut c_void,
}

// SAFETY: the token is the shim's, which takes it back from any thread.
unsafe impl Send for Completion {}

impl Completion {
    fn tell(self, outcome: Result<u64, Status>) {
        let number = Status::number(outcome.map(drop));
        // SAFETY: the shim's function and token; it is told once.
        unsafe { (self.mpi.complete)(self.token, number, outcome.unwrap_or(0)) };
    }
}

/// The queue of one file.
#[derive(Debug)]
pub struct Queue {
    line: Arc<Mutex<Line>>,
}

struct Line {
    /// Here, unless an operation has it.
    channel: Option<Channel>,
    waiting: VecDeque<(Work, Option<Completion>)>,
    current: Option<Current>,
    /// Those that are complete, and whom to tell: from a thread of the program, because MPI is told, too.
    ended: Vec<(Completion, Result<u64, Status>)>,
    /// Whether any thread can carry on with these operations.
    needs_no_program: bool,
    /// The channel is gone for good.
    lost: bool,
}

struct Current {
    coroutine: Coroutine,
    /// What it leaves when it ends. If that is nothing, it panicked.
    left: Arc<Mutex<Option<Outcome>>>,
    completion: Option<Completion>,
}

/// The channel, and what the operation says.
type Outcome = (Channel, Result<u64, Status>);

impl std::fmt::Debug for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Line").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Task for Mutex<Line> {
    fn step(&self, who: Who) -> Left {
        // Whoever has it carries on.
        let Ok(mut line) = self.try_lock() else { return Left { any: true, for_thread: true } };
        line.step(who);
        Left {
            any: line.is_busy() || !line.ended.is_empty(),
            for_thread: line.is_busy() && line.needs_no_program,
        }
    }
}

impl Queue {
    /// Of a file with this channel.
    pub fn new(channel: Channel) -> Queue {
        let needs_no_program = channel.communicator.is_local() || channel.communicator.is_for_threads();
        let (waiting, ended) = Default::default();
        let line =
            Line { channel: Some(channel), waiting, current: None, ended, needs_no_program, lost: false };
        Queue { line: Arc::new(Mutex::new(line)) }
    }

    /// Waits until all operations before are complete, and takes the channel.
    ///
    /// # Errors
    /// If an operation before panicked, and took the channel with it.
    pub fn take(&self) -> Result<Acquired<'_>, Status> {
        let mut backoff = Backoff::new();
        // Who was before this one is told first.
        progress::progress();
        loop {
            let mut line = self.lock();
            if line.lost {
                return Err(Status::Internal);
            }
            if !line.is_busy()
                && let Some(channel) = line.channel.take()
            {
                return Ok(Acquired { queue: self, channel: Some(channel) });
            }
            drop(line);
            // Which makes progress.
            backoff.wait_for_oneself();
        }
    }

    /// Gets in line, and begins at once if it is the first; `completion` is told of the end.
    pub fn start(&self, work: Work, completion: Option<Completion>) {
        let mut needs_no_program = false;
        progress::add(self.line.clone(), || {
            let mut line = self.lock();
            line.waiting.push_back((work, completion));
            needs_no_program = line.needs_no_program;
        });
        progress::progress();
        if needs_no_program && progress::is_busy() {
            progress_thread::wake();
        }
    }

    /// The channel, after the last operation.
    pub fn into_channel(self) -> Option<Channel> {
        self.take().ok().and_then(|mut acquired| acquired.channel.take())
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn is_busy(&self) -> bool {
        self.current.is_some() || !self.waiting.is_empty()
    }

    /// Carries on until an operation has to wait, or all are complete.
    fn step(&mut self, who: Who) {
        if who == Who::Program || self.needs_no_program {
            self.work();
        }
        if who == Who::Program {
            for (completion, outcome) in self.ended.drain(..) {
                completion.tell(outcome);
            }
        }
    }

    fn work(&mut self) {
        while let Some(current) = self.next() {
            if !current.coroutine.resume() {
                return;
            }
            let Some(Current { left, completion, .. }) = self.current.take() else { return };
            let left = left.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (channel, outcome) = match left {
                Some((channel, outcome)) => (Some(channel), outcome),
                None => (None, Err(Status::Internal)),
            };
            self.lost = channel.is_none();
            self.channel = channel;
            self.ended.extend(completion.map(|completion| (completion, outcome)));
        }
    }

    /// The operation that has the channel; begins the next if there is none.
    fn next(&mut self) -> Option<&mut Current> {
        if self.current.is_none() && self.channel.is_some() {
            let (work, completion) = self.waiting.pop_front()?;
            let mut channel = self.channel.take()?;
            let left = Arc::new(Mutex::new(None));
            let leave = left.clone();
            let run = Box::new(move || {
                let outcome = work(&mut channel);
                *leave.lock().unwrap_or_else(PoisonError::into_inner) = Some((channel, outcome));
            });
            self.current = Some(Current { coroutine: Coroutine::new(run), left, completion });
        }
        self.current.as_mut()
    }
}

/// A blocking operation that has the channel.
#[derive(Debug)]
pub struct Acquired<'a> {
    queue: &'a Queue,
    channel: Option<Channel>,
}

impl Deref for Acquired<'_> {
    type Target = Channel;

    #[allow(clippy::expect_used)] // taken only by `drop`
    fn deref(&self) -> &Channel {
        self.channel.as_ref().expect("the channel is here until the operation ends")
    }
}

impl DerefMut for Acquired<'_> {
    #[allow(clippy::expect_used)] // taken only by `drop`
    fn deref_mut(&mut self) -> &mut Channel {
        self.channel.as_mut().expect("the channel is here until the operation ends")
    }
}

impl Drop for Acquired<'_> {
    fn drop(&mut self) {
        self.queue.lock().channel = self.channel.take();
    }
}
